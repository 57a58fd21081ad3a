/* text/tokenizer_json.h - a strict JSON reader that goes through the text once and builds nothing: a tokenizer.json is
 * 7 to 20 MB of which almost all is two long lists. */
#ifndef GDN_TEXT_TOKENIZER_JSON_H
#define GDN_TEXT_TOKENIZER_JSON_H
#include "gdn/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Set name, text, n and err, the rest zero; after the first failure `status` says so and every function does nothing and
 * returns false.  End it with gdn_pull_close. */
typedef struct gdn_pull {
    const char *name; /* of the file, for messages */
    const char *text;
    size_t      n, at; /* bytes, and the next one to read */
    gdn_error  *err;
    gdn_status  status;
    bool        first;   /* nothing of the innermost object or list has been read */
    char       *decoded; /* the last string that had escapes */
    size_t      capacity;
} gdn_pull;

typedef struct gdn_pull_string {
    const char *text; /* valid UTF-8, not terminated; good until the next string is read */
    size_t      n;
} gdn_pull_string;

void gdn_pull_close(gdn_pull *json);

/* Fail at the byte `json->at` with a sentence; the file and the byte are put before it. */
__attribute__((format(printf, 3, 4))) bool gdn_pull_fail(gdn_pull *json, gdn_status status, const char *format, ...);

/* Go into an object ('{') or a list ('['), which must be next. */
bool gdn_pull_enter(gdn_pull *json, char bracket);

/* The name of the next member of the object; or the start of the next element of the list.  false at the end, which is then
 * behind, or on failure. */
bool gdn_pull_member(gdn_pull *json, gdn_pull_string *name);
bool gdn_pull_element(gdn_pull *json);

/* The first byte of the next value, or 0. */
char gdn_pull_peek(gdn_pull *json);

/* Values.  A count is an integer from 0 to UINT32_MAX. */
bool gdn_pull_string_read(gdn_pull *json, gdn_pull_string *string);
bool gdn_pull_count_read(gdn_pull *json, uint32_t *count);

/* Any value, checked and passed over; at most 64 levels deep. */
bool gdn_pull_skip(gdn_pull *json);

/* Nothing but white space follows. */
bool gdn_pull_finish(gdn_pull *json);

#endif
