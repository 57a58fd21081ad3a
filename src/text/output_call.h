/* text/output_call.h - recognising one tool call in a buffer that grows, and its arguments as JSON. */
#ifndef GDN_TEXT_OUTPUT_CALL_H
#define GDN_TEXT_OUTPUT_CALL_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes from..to-1 of the buffer. */
typedef struct gdn_part {
    size_t from, to;
} gdn_part;

typedef struct gdn_parameter {
    gdn_part key, value;
} gdn_parameter;

/* Where the recogniser is; all zero before <tool_call>.  The buffer may move, its bytes may not change. */
typedef struct gdn_call {
    int            phase;
    size_t         at; /* all before it is understood */
    gdn_part       name;
    gdn_parameter *parameters; /* free with free */
    size_t         n_parameters, cap;
    json_t        *json; /* of the form with JSON; free with json_decref */
} gdn_call;

typedef enum gdn_call_state { GDN_CALL_MORE, GDN_CALL_WHOLE, GDN_CALL_WRONG, GDN_CALL_NO_MEMORY } gdn_call_state;

/* Read on in n bytes that begin with <tool_call>.  WHOLE: the call ends at call->at; WRONG: whatever follows, this is no call;
 * MORE: call again when there are more bytes. */
gdn_call_state gdn_call_read(gdn_call *call, const char *bytes, size_t n);

/* The name and the arguments of a whole call, both to free with free; false without memory.  A value has the type that
 * the schema of the tool gives the parameter, where it can be read as that: null (for every type), integer, number,
 * boolean, object, array; otherwise it is a string.  Of several types the first that fits. */
bool gdn_call_finish(const gdn_call *call, const char *bytes, const json_t *tools, char **name, char **arguments);

void gdn_call_clear(gdn_call *call); /* all zero again */

#endif
