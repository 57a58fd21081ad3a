/* cli/json.h - what verbs print for programs. */
#ifndef GDN_CLI_JSON_H
#define GDN_CLI_JSON_H
#include "text/tokenizer.h"
#include <jansson.h>

enum { GDN_LOGPROBS_MAX = 20 };

/* {"id", "piece"}, with "bytes" where the piece is not whole UTF-8; NULL without memory. */
json_t *gdn_json_piece(const gdn_tokenizer *tokenizer, int32_t id);

/* Print a value and `end`; takes it.  Returns GDN_EXIT_OK, or says that there is no memory and returns GDN_EXIT_FAILED.  What stdout
 * does not take is found when it is flushed. */
int gdn_json_print(const char *verb, json_t *value, const char *end);

#endif
