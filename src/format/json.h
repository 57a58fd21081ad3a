/* format/json.h - small JSON files of a model, read with jansson. */
#ifndef GDN_FORMAT_JSON_H
#define GDN_FORMAT_JSON_H
#include "base/status.h"
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { GDN_JSON_LIMIT = 64 << 20 }; /* bytes of a file */

/* The whole file, a 0 behind it; free with free.  BAD_FILE: more than GDN_JSON_LIMIT bytes; IO; NO_MEMORY. */
gdn_status gdn_text_load(char **text, size_t *n, const char *path, gdn_error *err);

/* An object; `file` stands for it in messages.  Release with json_decref.  BAD_FILE: other bytes, or a key twice in one
 * object. */
gdn_status gdn_json_parse(json_t **root, const char *file, const void *text, size_t n, gdn_error *err);

/* A number, a word or a kind of value ("a list"), for a message. */
typedef struct gdn_json_words {
    char text[48];
} gdn_json_words;
gdn_json_words gdn_json_describe(const json_t *value);

/* Members of one object.  The first one that is missing or not as asked sets the status and the error; later ones do not,
 * and return their fallback or the low end of their range.  A null counts as absent. */
typedef struct gdn_json_reader {
    const json_t *object;
    const char   *file, *scope; /* scope: "" or "text_config.", before the key in messages */
    gdn_status   *status;       /* of all readers of one file; GDN_OK at first */
    gdn_error    *err;
} gdn_json_reader;

#define GDN_JSON_NEEDED LLONG_MIN /* as a fallback: the key must be there */

const json_t *gdn_json_get(const gdn_json_reader *r, const char *key); /* NULL: absent */
long long     gdn_json_int(gdn_json_reader *r, const char *key, long long lo, long long hi, long long fallback);
double gdn_json_number(gdn_json_reader *r, const char *key, double lo, double hi, double fallback); /* NAN: needed */
bool   gdn_json_bool(gdn_json_reader *r, const char *key, bool fallback);
const char *gdn_json_string(gdn_json_reader *r, const char *key); /* NULL: absent; borrowed from the object */

/* Append the ids of a key, one number or a list of them, each from 0 to limit-1, to ids [room], none twice. */
void gdn_json_ids(gdn_json_reader *r, const char *key, long long limit, int *ids, int *n, int room);

/* Set the reader's error, if it has none: KEY is VALUE; `expected` says what it should be, or why it is refused. */
void gdn_json_refuse(gdn_json_reader *r, gdn_status status, const char *key, const json_t *value, const char *expected);
void gdn_json_missing(gdn_json_reader *r, const char *key);

#endif
