/* The program behind tests/diff/template.py: renders templates that it reads as JSON, one case a line,
 * {"template": ..., "vars": {...}}, and answers each with a line: {"text": ..., "spans": [[n_bytes, trusted], ...]} or
 * {"status": ..., "error": ...}. */
#include "text/template.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *answer(const gdn_rendered *rendered)
{
    json_t *spans = json_array();
    for (size_t i = 0; i < rendered->n_spans; i++)
        json_array_append_new(spans,
                              json_pack("[I,b]", (json_int_t)rendered->spans[i].n_bytes, rendered->spans[i].trusted));
    return json_pack("{s:s%,s:o}", "text", rendered->text, rendered->n_bytes, "spans", spans);
}

static json_t *render(const json_t *request)
{
    const json_t      *source = json_object_get(request, "template");
    const char        *trusted[] = {"bos_token"};
    struct tm          now = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5, .tm_yday = 207};
    gdn_template_input input = {
        .vars = json_object_get(request, "vars"), .trusted = trusted, .n_trusted = 1, .now = &now};
    gdn_template *template = NULL;
    gdn_rendered rendered = {.text = NULL};
    gdn_error    err = {GDN_OK, 0, ""};
    gdn_status   status = gdn_template_open(&template, json_string_value(source), json_string_length(source), &err);
    if (!status) status = gdn_template_render(template, &input, &rendered, &err);
    json_t *result =
        status ? json_pack("{s:s,s:s}", "status", gdn_status_name(status), "error", err.message) : answer(&rendered);
    gdn_rendered_free(&rendered);
    gdn_template_close(template);
    return result;
}

int main(void)
{
    char  *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        json_t *request = json_loads(line, JSON_ALLOW_NUL, NULL);
        json_t *result = request ? render(request) : NULL;
        if (!result) return 1;
        json_dumpf(result, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        fflush(stdout);
        json_decref(result);
        json_decref(request);
    }
    free(line);
    return 0;
}
