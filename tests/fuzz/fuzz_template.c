/* Any bytes as a chat template: they are refused with a sentence, or render, twice to the same.  Bytes up to a first NUL are the
 * variables, as JSON; without one there are some to play with. */
#include "text/template.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) abort();
}

static const char some[] = "{\"s\": \"a<|x|>\\u00df\\n \", \"n\": 3, \"f\": 2.5, \"t\": true, \"z\": null, \"l\": [3, "
                           "1, \"b\", null], \"d\": {\"a\": 1, \"k\": [\"v\"]},"
                           "\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", "
                           "\"content\": \"<think>x</think>y\","
                           "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1}}}]}, "
                           "{\"role\": \"tool\", \"content\": \"5\"}],"
                           "\"tools\": [{\"type\": \"function\"}], \"add_generation_prompt\": true}";

static void check(const gdn_rendered *r)
{
    size_t at = 0;
    must(r->text != NULL && r->text[r->n_bytes] == 0);
    for (size_t i = 0; i < r->n_spans; i++) {
        must(r->spans[i].offset == at && r->spans[i].n_bytes > 0);
        must(i == 0 || r->spans[i].trusted != r->spans[i - 1].trusted);
        at += r->spans[i].n_bytes;
    }
    must(at == r->n_bytes);
}

static void try_template(const char *source, size_t n, const json_t *vars)
{
    const gdn_template_input input = {
        .vars = vars, .limits = {.max_text_bytes = 1 << 20, .max_memory_bytes = 8 << 20, .max_steps = 200000}};
    gdn_template *t = NULL;
    gdn_rendered  first, second;
    gdn_error     err = {GDN_OK, 0, ""};
    gdn_status    status = gdn_template_open(&t, source, n, &err);
    if (status) {
        must((status == GDN_BAD_FILE || status == GDN_UNSUPPORTED) && err.code == status && err.message[0] && !t);
        return;
    }
    status = gdn_template_render(t, &input, &first, &err);
    must(gdn_template_render(t, &input, &second, NULL) == status);
    if (status) must(err.code == status && err.message[0] && !first.text && !first.spans);
    else {
        check(&first);
        must(first.n_bytes == second.n_bytes && !memcmp(first.text, second.text, first.n_bytes));
    }
    gdn_rendered_free(&first);
    gdn_rendered_free(&second);
    gdn_template_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    const char    *source = nul ? (const char *)nul + 1 : (const char *)data;
    json_t        *vars = nul ? json_loadb((const char *)data, (size_t)(nul - data), JSON_ALLOW_NUL, NULL) : NULL;
    if (!json_is_object(vars)) {
        json_decref(vars);
        vars = json_loads(some, 0, NULL);
    }
    must(vars != NULL);
    try_template(source, size - (size_t)(source - (const char *)data), vars);
    json_decref(vars);
    return 0;
}
