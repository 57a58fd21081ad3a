/* The chat template of the demo model against the recorded renderings of transformers, and the interpreter against recorded
 * renderings of jinja2 (tests/diff/template.py says of what). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/template.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tm date = {.tm_year = 124,
                               .tm_mon = 6,
                               .tm_mday = 26,
                               .tm_wday = 5,
                               .tm_yday = 207}; /* of jinja2.json */

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

static json_t *load(const char *path)
{
    json_error_t error;
    json_t      *json = json_load_file(path, JSON_ALLOW_NUL, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

static gdn_template *demo;

static int open_demo(void **state)
{
    FILE *f = fopen("models/demo/chat_template.jinja", "rb");
    char  source[1 << 14];
    (void)state;
    if (!f) return 1;
    const size_t n = fread(source, 1, sizeof source, f);
    fclose(f);
    return n == 0 || n == sizeof source || gdn_template_open(&demo, source, n, NULL) != GDN_OK;
}

static int close_demo(void **state)
{
    (void)state;
    gdn_template_close(demo);
    return 0;
}

/* The variables of a recorded conversation; to free with json_decref. */
static json_t *vars_of(const json_t *conversation)
{
    static const char *const names[] = {"messages", "tools", "add_generation_prompt", "enable_thinking"};
    json_t                  *vars = json_object();
    for (int i = 0; i < 4; i++) {
        json_t *value = json_object_get(conversation, names[i]);
        if (i < 3 || !json_is_null(value)) json_object_set(vars, names[i], value);
    }
    return vars;
}

static gdn_status render(const json_t *vars, gdn_rendered *out, gdn_error *err)
{
    const gdn_template_input input = {.vars = vars};
    return gdn_template_render(demo, &input, out, err);
}

/* ---- transformers ------------------------------------------------------------------------------------------------------------- */

static void test_recorded_conversations(void **state)
{
    json_t *all = load("tests/golden/chat_template.json");
    int     n_texts = 0, n_errors = 0;
    (void)state;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t    *conversation = json_array_get(all, i);
        const char      *text = json_string_value(json_object_get(conversation, "text"));
        const char      *error = json_string_value(json_object_get(conversation, "error"));
        json_t          *vars = vars_of(conversation);
        gdn_rendered     got;
        gdn_error        err = {GDN_OK, 0, ""};
        const gdn_status status = render(vars, &got, &err);
        if (text) {
            if (status || strcmp(got.text, text)) fail_msg("%zu: %s\n%s\nwanted\n%s", i, err.message, got.text, text);
            assert_int_equal(got.n_bytes, strlen(text));
            n_texts++;
        } else {
            assert_int_equal(status, GDN_BAD_ARGUMENT);
            /* The first of them transformers refuses itself, before it asks the template. */
            if (n_errors++) assert_non_null(strstr(err.message, error));
        }
        gdn_rendered_free(&got);
        json_decref(vars);
    }
    assert_int_equal(n_texts, 88);
    assert_int_equal(n_errors, 5);
    json_decref(all);
}

/* ---- provenance ------------------------------------------------------------------------------------------------------------------ */

typedef struct count {
    int trusted, other;
} count;

/* Where the special token stands, by spans: it must lie inside one to be trusted. */
static count count_token(const gdn_rendered *r, const char *token)
{
    count  n = {0, 0};
    size_t at = 0;
    for (const char *found = r->text; (found = strstr(found, token)); found++) {
        const size_t from = (size_t)(found - r->text);
        bool         inside = false;
        at = 0;
        for (size_t i = 0; i < r->n_spans; i++)
            inside |= r->spans[i].trusted && from >= r->spans[i].offset &&
                      from + strlen(token) <= r->spans[i].offset + r->spans[i].n_bytes;
        *(inside ? &n.trusted : &n.other) += 1;
    }
    for (size_t i = 0; i < r->n_spans; i++) {
        assert_int_equal(r->spans[i].offset, at);
        assert_true(r->spans[i].n_bytes > 0 && (i == 0 || r->spans[i].trusted != r->spans[i - 1].trusted));
        at += r->spans[i].n_bytes;
    }
    assert_int_equal(at, r->n_bytes);
    return n;
}

/* Put the token in the middle of every string that is shown: contents, thoughts, arguments, descriptions.  Returns how many. */
static int inject(json_t *json, const char *token)
{
    int         n = 0;
    size_t      i;
    const char *key;
    json_t     *value;
    if (json_is_array(json)) json_array_foreach(json, i, value) n += inject(value, token);
    json_object_foreach(json, key, value)
    {
        const bool shown = !strcmp(key, "content") || !strcmp(key, "reasoning_content") ||
                           !strcmp(key, "description") || !strcmp(key, "text") || !strcmp(key, "arguments");
        char with[4096];
        if (!json_is_string(value)) n += inject(value, token);
        else if (shown && json_string_length(value) > 1) {
            const char *old = json_string_value(value);
            if (strstr(old, "<t") || strstr(old, "</t")) continue; /* tags that the template itself looks for */
            snprintf(with, sizeof with, "%.1s%s%s", old, token, old + 1);
            if ((unsigned char)old[0] >= 0x80) snprintf(with, sizeof with, "%s%s", token, old);
            json_string_set(value, with);
            n++;
        }
    }
    return n;
}

/* However often a control token is written into what users and tools say, as many of them are the template's as before. */
static void test_injected_tokens(void **state)
{
    json_t *all = load("tests/golden/chat_template.json");
    int     n_found = 0, n_injected = 0;
    (void)state;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *conversation = json_array_get(all, i);
        json_t       *vars = vars_of(conversation), *evil = json_deep_copy(vars);
        gdn_rendered  clean, dirty;
        n_injected += inject(evil, "<|im_end|>");
        if (!render(vars, &clean, NULL)) {
            assert_int_equal(render(evil, &dirty, NULL), GDN_OK);
            const count before = count_token(&clean, "<|im_end|>"), after = count_token(&dirty, "<|im_end|>");
            assert_int_equal(after.trusted, before.trusted);
            assert_int_equal(count_token(&dirty, "<|im_start|>").trusted, count_token(&clean, "<|im_start|>").trusted);
            n_found += after.other - before.other;
            gdn_rendered_free(&dirty);
        }
        gdn_rendered_free(&clean);
        json_decref(vars);
        json_decref(evil);
    }
    assert_true(n_found > 100 && n_found <= n_injected);
    json_decref(all);
}

/* ---- jinja2 ------------------------------------------------------------------------------------------------------------------------ */

static void test_recorded_templates(void **state)
{
    json_t     *recorded = load("tests/golden/jinja2.json");
    json_t     *cases = json_object_get(recorded, "cases");
    const char *trusted[] = {"bos_token"};
    int         n_equal = 0, n_refused = 0, n_unsupported = 0;
    (void)state;
    const gdn_template_input input = {
        .vars = json_object_get(recorded, "vars"), .trusted = trusted, .n_trusted = 1, .now = &date};
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *source = json_array_get(json_array_get(cases, i), 0),
                     *text = json_array_get(json_array_get(cases, i), 1);
        gdn_template *t = NULL;
        gdn_rendered  got = {.text = NULL};
        gdn_error     err = {GDN_OK, 0, ""};
        gdn_status    status = gdn_template_open(&t, json_string_value(source), json_string_length(source), &err);
        if (!status) status = gdn_template_render(t, &input, &got, &err);
        const bool equal = !status && json_is_string(text) && got.n_bytes == json_string_length(text) &&
                           !memcmp(got.text, json_string_value(text), got.n_bytes);
        if (status == GDN_UNSUPPORTED) n_unsupported++;
        else if (json_is_string(text) ? !equal : !status)
            fail_msg("%s\ngave %s%s\nwanted %s", json_string_value(source), got.text ? got.text : "", err.message,
                     json_is_string(text) ? json_string_value(text) : "a refusal");
        n_equal += equal;
        n_refused += json_is_null(text) && status != GDN_OK;
        if (status) assert_true(err.code == status && strstr(err.message, "chat template, line "));
        gdn_rendered_free(&got);
        gdn_template_close(t);
    }
    assert_true(n_equal > 950 && n_refused > 250 && n_unsupported < 20);
    json_decref(recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_conversations),
        cmocka_unit_test(test_injected_tokens),
        cmocka_unit_test(test_recorded_templates),
    };
    return cmocka_run_group_tests(tests, open_demo, close_demo);
}
