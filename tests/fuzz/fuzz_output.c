/* Any bytes as generated text: whole and in pieces they mean the same, and all of the text comes out.  The first byte says
 * whether the prompt ended in thoughts and whether there are tools, the second how long the pieces are. */
#include "gdn/gdn.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) abort();
}

typedef struct record {
    char  *bytes;
    size_t n, cap;
    int    kind;
    size_t n_text; /* bytes of thoughts and text */
    int    n_calls;
} record;

static void add(record *r, const char *bytes, size_t n)
{
    if (r->n + n > r->cap) {
        r->cap = 2 * (r->n + n);
        r->bytes = realloc(r->bytes, r->cap);
        must(r->bytes != NULL);
    }
    memcpy(r->bytes + r->n, bytes, n);
    r->n += n;
}

static bool is_ascii(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] & 0x80) return false;
    return true;
}

static void on_event(void *arg, const gdn_output_event *event)
{
    static const char *const marks[] = {"\001R", "\001C", "\001T"};
    record                  *r = arg;
    if (r->kind != (int)event->kind || event->kind == GDN_OUTPUT_CALL) add(r, marks[event->kind], 2);
    r->kind = (int)event->kind;
    add(r, event->text, event->n_bytes);
    if (event->kind != GDN_OUTPUT_CALL) {
        must(event->n_bytes > 0);
        r->n_text += event->n_bytes;
        return;
    }
    json_t *arguments = json_loadb(event->text, event->n_bytes, JSON_ALLOW_NUL, NULL);
    must(json_is_object(arguments) || !is_ascii(event->text, event->n_bytes)); /* what is not UTF-8 makes no JSON */
    json_decref(arguments);
    add(r, event->name, strlen(event->name));
    must(event->call == r->n_calls++);
}

static record parse(const char *text, size_t n, size_t piece, bool in_reasoning, const char *tools)
{
    record      r = {.kind = -1};
    gdn_output *output = NULL;
    must(gdn_output_open(&output, tools, in_reasoning, on_event, &r, NULL) == GDN_OK);
    for (size_t at = 0; at < n; at += piece) {
        const size_t length = n - at < piece ? n - at : piece;
        char        *copy = malloc(length);
        must(copy != NULL);
        memcpy(copy, text + at, length);
        must(gdn_output_feed(output, copy, length, NULL) == GDN_OK);
        free(copy);
    }
    must(gdn_output_end(output, NULL) == GDN_OK);
    gdn_output_close(output);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const bool  in_reasoning = data[0] & 1, has_tools = data[0] & 2;
    const char *text = (const char *)data + 2;
    const char *tools =
        "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"i\": {\"type\": \"integer\"}, \"b\": {\"type\":"
        "[\"boolean\", \"null\"]}, \"o\": {\"type\": \"object\"}, \"a\": {\"anyOf\": [{\"type\": \"array\"}]}}}}]";
    record whole = parse(text, size - 2, size, in_reasoning, has_tools ? tools : NULL);
    record pieces = parse(text, size - 2, 1 + data[1] % 16, in_reasoning, has_tools ? tools : NULL);
    must(whole.n == pieces.n && (whole.n == 0 || !memcmp(whole.bytes, pieces.bytes, whole.n)));
    must(whole.n_text <= size - 2);
    if (!in_reasoning && whole.n_calls == 0 && (size < 9 || memcmp(text, "<think>", 7))) must(whole.n_text == size - 2);
    free(whole.bytes);
    free(pieces.bytes);
    return 0;
}
