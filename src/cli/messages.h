/* cli/messages.h - conversations as JSON. */
#ifndef GDN_CLI_MESSAGES_H
#define GDN_CLI_MESSAGES_H
#include <jansson.h>
#include <stdbool.h>

enum { GDN_WHY = 256 };

/* The variables of a chat template, an object with "messages" and perhaps "tools" and others, from the text of such an object, or
 * of a list of messages.  NULL: the text is no such thing, and `why` says so in words that may follow "FILE "; *meant, unless
 * meant is NULL, says whether it looks like an attempt. */
json_t *gdn_messages_parse(const char *text, size_t n, bool *meant, char why[GDN_WHY]);

/* Write such an object to a file, which has either what it had or all of it.  A file that is there and no conversation is left
 * alone.  false: it cannot be done, and `why` says so in words that may follow "FILE ". */
bool gdn_messages_save(const char *path, const json_t *vars, char why[GDN_WHY]);

#endif
