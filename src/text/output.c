#include "gdn/gdn.h"
#include "base/alloc.h"
#include "base/float_mode.h"
#include "base/status.h"
#include "text/output_call.h"
#include <stdint.h>
#include <string.h>

typedef enum mode { MODE_START, MODE_REASONING, MODE_CONTENT, MODE_CALL } mode;

struct gdn_output {
    gdn_output_fn *fn;
    void          *arg;
    json_t        *tools; /* NULL: calls are text */
    mode           mode;
    int            skip; /* newlines that are still to be dropped */
    char          *held; /* of it n bytes from `from` on are not decided yet */
    size_t         from, n, cap;
    size_t         before; /* MODE_CALL: newlines in front of the call in `held` */
    gdn_call       call;
    int            n_calls;
};

static const char think_tag[] = "<think>", think_end[] = "</think>", call_tag[] = "<tool_call>";

static gdn_status read_tools(json_t **tools, const char *text, gdn_error *err)
{
    json_error_t problem = {0}; /* jansson leaves its code alone where memory ends at once */
    *tools = json_loads(text, JSON_ALLOW_NUL, &problem);
    if (json_is_array(*tools)) return GDN_OK;
    const bool parsed = *tools != NULL;
    json_decref(*tools);
    *tools = NULL;
    const enum json_error_code code = json_error_code(&problem);
    if (!parsed && (code == json_error_out_of_memory || code == json_error_unknown))
        return gdn_fail(err, GDN_NO_MEMORY, 0, "output parser: no memory for the tools");
    return gdn_fail(err, GDN_BAD_ARGUMENT, parsed ? 0 : problem.position,
                    "output parser: the tools are not the JSON text of an array (%s)",
                    parsed ? "it is another value" : problem.text);
}

gdn_status gdn_output_open(gdn_output **out, const char *tools, bool in_reasoning, gdn_output_fn *fn, void *arg,
                           gdn_error *err)
{
    if (!out || !fn) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "output parser: out and fn must not be NULL; pass both");
    gdn_output *output = calloc(1, sizeof *output);
    if (!output) return gdn_fail(err, GDN_NO_MEMORY, 0, "output parser: no memory for it");
    output->fn = fn;
    output->arg = arg;
    output->mode = in_reasoning ? MODE_REASONING : MODE_START;
    const gdn_status status = tools ? read_tools(&output->tools, tools, err) : GDN_OK;
    if (status) {
        gdn_output_close(output);
        return status;
    }
    if (!json_array_size(output->tools)) {
        json_decref(output->tools);
        output->tools = NULL;
    }
    *out = output;
    return GDN_OK;
}

void gdn_output_close(gdn_output *output)
{
    if (!output) return;
    gdn_call_clear(&output->call);
    json_decref(output->tools);
    free(output->held);
    free(output);
}

/* ---- handing out ----------------------------------------------------------------------------------------------------------- */

static const char *held(const gdn_output *output) { return output->held + output->from; }

static void drop(gdn_output *output, size_t n)
{
    output->from += n;
    output->n -= n;
}

/* Hand out the first n held bytes. */
static void give(gdn_output *output, size_t n)
{
    const gdn_output_kind kind = output->mode == MODE_REASONING ? GDN_OUTPUT_REASONING : GDN_OUTPUT_CONTENT;
    if (n == 0) return;
    output->fn(output->arg, &(gdn_output_event){.kind = kind, .text = held(output), .n_bytes = n});
    drop(output, n);
}

/* Bytes at the end of n that may be the start of the tag; 0 to its length - 1. */
static size_t started(const char *bytes, size_t n, const char *tag)
{
    size_t length = strlen(tag) - 1;
    if (length > n) length = n;
    while (length > 0 && memcmp(bytes + n - length, tag, length)) length--;
    return length;
}

/* Newlines, at most `most`, that end the first n bytes. */
static size_t newlines_before(const char *bytes, size_t n, size_t most)
{
    size_t count = 0;
    while (count < most && count < n && bytes[n - 1 - count] == '\n') count++;
    return count;
}

/* ---- one step: true if something was decided, so that there may be more ------------------------------------------------------ */

static bool step_start(gdn_output *output)
{
    const size_t length = sizeof think_tag - 1;
    if (output->n >= length && !memcmp(held(output), think_tag, length)) {
        drop(output, length);
        output->skip = 1;
        output->mode = MODE_REASONING;
        return true;
    }
    if (output->n < length && !memcmp(held(output), think_tag, output->n)) return false;
    output->mode = MODE_CONTENT;
    return true;
}

static bool step_reasoning(gdn_output *output)
{
    const size_t length = sizeof think_end - 1;
    const char  *found = memmem(held(output), output->n, think_end, length);
    const size_t end = found ? (size_t)(found - held(output)) : output->n - started(held(output), output->n, think_end);
    const size_t newline = newlines_before(held(output), end, 1);
    give(output, end - newline);
    if (!found) return false;
    drop(output, newline + length);
    output->skip = 2;
    output->mode = MODE_CONTENT;
    return true;
}

static bool step_content(gdn_output *output)
{
    const char *found = output->tools ? memmem(held(output), output->n, call_tag, sizeof call_tag - 1) : NULL;
    if (!output->tools) {
        give(output, output->n);
        return false;
    }
    const size_t end = found ? (size_t)(found - held(output)) : output->n - started(held(output), output->n, call_tag);
    const size_t newlines = newlines_before(held(output), end, 2);
    give(output, end - newlines);
    if (!found) return false;
    output->before = newlines;
    output->mode = MODE_CALL;
    return true;
}

static gdn_status finish_call(gdn_output *output, gdn_error *err)
{
    char *name, *arguments;
    if (!gdn_call_finish(&output->call, held(output) + output->before, output->tools, &name, &arguments))
        return gdn_fail(err, GDN_NO_MEMORY, output->n_calls, "output parser: no memory for the arguments of a call");
    output->fn(output->arg, &(gdn_output_event){.kind = GDN_OUTPUT_CALL,
                                                .text = arguments,
                                                .n_bytes = strlen(arguments),
                                                .name = name,
                                                .call = output->n_calls++});
    free(name);
    free(arguments);
    drop(output, output->before + output->call.at);
    output->skip = 2;
    return GDN_OK;
}

static gdn_status step_call(gdn_output *output, bool *decided, gdn_error *err)
{
    const gdn_call_state state =
        gdn_call_read(&output->call, held(output) + output->before, output->n - output->before);
    gdn_status status = GDN_OK;
    *decided = state != GDN_CALL_MORE;
    if (state == GDN_CALL_MORE) return GDN_OK;
    output->mode = MODE_CONTENT;
    if (state == GDN_CALL_NO_MEMORY)
        status = gdn_fail(err, GDN_NO_MEMORY, output->n_calls, "output parser: no memory for the parameters of a call");
    else if (state == GDN_CALL_WHOLE) status = finish_call(output, err);
    else give(output, output->before + sizeof call_tag - 1);
    gdn_call_clear(&output->call);
    return status;
}

static void skip_newlines(gdn_output *output)
{
    size_t n = 0;
    while (output->skip > 0 && n < output->n && held(output)[n] == '\n') n++, output->skip--;
    if (n < output->n) output->skip = 0;
    drop(output, n);
}

static gdn_status advance(gdn_output *output, gdn_error *err)
{
    gdn_status status = GDN_OK;
    for (bool decided = true; decided && !status;) {
        skip_newlines(output);
        if (output->n == 0) break;
        switch (output->mode) {
        case MODE_START: decided = step_start(output); break;
        case MODE_REASONING: decided = step_reasoning(output); break;
        case MODE_CONTENT: decided = step_content(output); break;
        case MODE_CALL: status = step_call(output, &decided, err); break;
        }
    }
    return status;
}

gdn_status gdn_output_feed(gdn_output *output, const char *bytes, size_t n, gdn_error *err)
{
    size_t wanted;
    if (!output || (!bytes && n))
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "output parser: output and bytes must not be NULL");
    if (n == 0) return GDN_OK;
    if (output->n) memmove(output->held, held(output), output->n);
    output->from = 0;
    if (!gdn_size_add(&wanted, output->n, n))
        return gdn_fail(err, GDN_NO_MEMORY, 0, "output parser: no memory for %zu bytes", n);
    if (wanted > output->cap) {
        size_t cap = output->cap < SIZE_MAX / 2 && wanted < 2 * output->cap ? 2 * output->cap : wanted;
        if (cap < 256) cap = 256;
        char *grown = realloc(output->held, cap);
        if (!grown) return gdn_fail(err, GDN_NO_MEMORY, 0, "output parser: no memory for %zu bytes", n);
        output->held = grown;
        output->cap = cap;
    }
    memcpy(output->held + output->n, bytes, n);
    output->n = wanted;
    const unsigned long long floats = gdn_float_mode_enter(); /* numbers of calls become JSON */
    const gdn_status         status = advance(output, err);
    gdn_float_mode_leave(floats);
    return status;
}

gdn_status gdn_output_end(gdn_output *output, gdn_error *err)
{
    if (!output) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "output parser: output must not be NULL");
    if (output->mode == MODE_CALL) output->mode = MODE_CONTENT; /* a call that is cut off is text */
    give(output, output->n);
    return GDN_OK;
}
