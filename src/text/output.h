/* text/output.h - what a model writes, taken apart while it is written: thoughts, text and tool calls.
 *
 * Thoughts end with </think>.  A tool call is
 *     <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
 * with any number of parameters, or, as Qwen3-Next writes it, <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>.
 * The newlines that the chat template puts between these parts belong to none of them: one before </think>, up to two behind
 * it, before <tool_call> and behind </tool_call>.  Everything else is handed out, in order and once: what looks like a call
 * and is none, or is cut off by the end, is text. */
#ifndef GDN_TEXT_OUTPUT_H
#define GDN_TEXT_OUTPUT_H
#include "base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum gdn_output_kind { GDN_OUTPUT_REASONING, GDN_OUTPUT_CONTENT, GDN_OUTPUT_CALL } gdn_output_kind;

/* Valid during the callback.  Of thoughts and text, n_bytes >= 1 more; never a part of a tag that is yet to be completed.
 * A call comes whole: the name of its function, and its arguments as the JSON text of an object. */
typedef struct gdn_output_event {
    gdn_output_kind kind;
    const char     *text; /* of a call its arguments; ends with a NUL only there */
    size_t          n_bytes;
    const char     *name; /* of a call; ends with a NUL */
    int             call; /* of a call: 0, 1, ... */
} gdn_output_event;

/* Must not call the parser. */
typedef void gdn_output_fn(void *arg, const gdn_output_event *event);

typedef struct gdn_output gdn_output;

/* in_reasoning: the prompt ended inside a think block; otherwise the text may open one itself, at its very start.
 * tools: the tools of the request, an array that is borrowed until gdn_output_close; NULL or empty: calls are text.  Free with
 * gdn_output_close. */
gdn_status gdn_output_open(gdn_output **out, const json_t *tools, bool in_reasoning, gdn_output_fn *fn, void *arg,
                           gdn_error *err);
void       gdn_output_close(gdn_output *output); /* NULL is allowed */

/* The next n bytes.  However the text is cut into calls, the same bytes come out, and the same calls between them.
 * NO_MEMORY: nothing of these bytes was taken, or not all of what they complete was handed out; close the parser. */
gdn_status gdn_output_feed(gdn_output *output, const char *bytes, size_t n, gdn_error *err);

/* The text is over: hand out what was held back.  Afterwards only gdn_output_close may follow. */
gdn_status gdn_output_end(gdn_output *output, gdn_error *err);

#endif
