/* The template interpreter: its limits, its errors, where its bytes come from, several threads.  What templates mean is in
 * tests/golden/test_template.c and tests/diff/template.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/template.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- help ------------------------------------------------------------------------------------------------------------------- */

static gdn_status open_source(gdn_template **t, const char *source, gdn_error *err)
{
    char *copy = malloc(strlen(source) + 1); /* its own block: the template must keep nothing of it */
    assert_non_null(copy);
    memcpy(copy, source, strlen(source));
    const gdn_status status = gdn_template_open(t, copy, strlen(source), err);
    free(copy);
    return status;
}

static gdn_status render_with(const char *source, const char *vars, gdn_template_input input, gdn_rendered *out,
                              gdn_error *err)
{
    gdn_template *t = NULL;
    json_t       *json = json_loads(vars, 0, NULL);
    assert_non_null(json);
    input.vars = json;
    gdn_status status = open_source(&t, source, err);
    *out = (gdn_rendered){.text = NULL};
    if (!status) status = gdn_template_render(t, &input, out, err);
    gdn_template_close(t);
    json_decref(json);
    return status;
}

static const gdn_template_input plain;

/* The text with its spans: [trusted], (other). */
static void assert_spans(const char *source, const char *vars, const char *wanted)
{
    static const char *const trusted[] = {"bos"};
    const gdn_template_input input = {.trusted = trusted, .n_trusted = 1};
    gdn_rendered             r;
    gdn_error                err = {GDN_OK, 0, ""};
    char                     got[1024] = "";
    if (render_with(source, vars, input, &r, &err)) fail_msg("%s: %s", source, err.message);
    for (size_t i = 0; i < r.n_spans; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), r.spans[i].trusted ? "[%.*s]" : "(%.*s)",
                 (int)r.spans[i].n_bytes, r.text + r.spans[i].offset);
    if (strcmp(got, wanted)) fail_msg("%s\ngave   %s\nwanted %s", source, got, wanted);
    gdn_rendered_free(&r);
}

static void assert_error(const char *source, gdn_template_input input, gdn_status wanted, int line, const char *message)
{
    gdn_rendered     r;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status status = render_with(source, "{\"s\": \"x\", \"l\": [1, 2, 3]}", input, &r, &err);
    if (status != wanted || !strstr(err.message, message) || err.at != line)
        fail_msg("%s\ngave   %s at %lld: %s\nwanted %s at %d: %s", source, gdn_status_name(status), err.at, err.message,
                 gdn_status_name(wanted), line, message);
    assert_null(r.text);
    gdn_rendered_free(&r);
}

/* ---- where bytes come from ----------------------------------------------------------------------------------------------------- */

static void test_spans(void **state)
{
    static const char vars[] = "{\"s\": \"user\", \"bos\": \"<s>\", \"n\": 5, \"l\": [\"a\", \"b\"], \"d\": {\"k\": "
                               "\"v\"}, \"m\": [{\"role\": \"r\"}]}";
    static const struct {
        const char *source, *wanted;
    } cases[] = {
        {"", ""},
        {"abc", "[abc]"},
        {"{{ s }}", "(user)"},
        {"<{{ s }}>", "[<](user)[>]"},
        {"{{ bos }}{{ s }}", "[<s>](user)"},
        {"{{ bos + 'x' }}", "[<s>x]"},
        {"{{ n }}{{ true }}{{ none }}", "[5TrueNone]"},
        {"{{ '<' + s + '>' }}", "[<](user)[>]"},
        {"{{ ('<' + s + '>')[0:3] }}", "[<](us)"},
        {"{{ ('<' ~ s ~ '>')[::-1] }}", "[>](resu)[<]"},
        {"{{ ('<' + s + '>') | upper }}", "[<](USER)[>]"},
        {"{{ (' ' + s + ' ') | trim }}", "(user)"},
        {"{{ ('a,' + s + ',b').split(',') | join('|') }}", "[a|](user)[|b]"},
        {"{{ s.replace('s', 'S') }}", "(u)[S](er)"},
        {"{{ 'x-y'.replace('-', s) }}", "[x](user)[y]"},
        {"{{ l | join('<|im_end|>') }}", "(a)[<|im_end|>](b)"},
        {"{{ 'u' * 2 }}{{ s * 2 }}", "[uu](useruser)"},
        {"{{ d }}", "[{'](k)[': '](v)['}]"},
        {"{{ d | tojson }}", "[{\"](k)[\": \"](v)[\"}]"},
        {"{{ '%s=%s' % ('a', s) }}", "[a=](user)"},
        {"{{ '{}={}'.format('a', s) }}", "[a=](user)"},
        {"{{ '{:>6}'.format(s) }}", "[  ](user)"},
        {"{{ s | indent(2, true) }}", "[  ](user)"},
        {"{{ ('<' + s) | e }}", "[&lt;](user)"},
        {"{{ s | title }}{{ s | capitalize }}", "(UserUser)"},
        {"{% set x %}<{{ s }}>{% endset %}{{ x }}", "[<](user)[>]"},
        {"{% macro f(a) %}<{{ a }}>{% endmacro %}{{ f(s) }}", "[<](user)[>]"},
        {"{% filter upper %}a{{ s }}b{% endfilter %}", "[A](USER)[B]"},
        {"{% for c in 'x' + s %}{{ c }}{% endfor %}", "[x](user)"},
        {"{% set ns = namespace(t='') %}{% for x in l %}{% set ns.t = ns.t + x + ';' %}{% endfor %}{{ ns.t }}",
         "(a)[;](b)[;]"},
        {"{{ m[0].role }}{{ m[0]['role'] ~ '!' }}", "(rr)[!]"},
        {"{{ ['z', s] | sort | first }}", "(user)"},
        {"{{ (s ~ '</think>x').split('</think>')[0] }}", "(user)"},
        {"{{ s if n > 1 else 't' }}{{ s or 't' }}", "(useruser)"},
        {"{{ '<|im_start|>' + 'user' + '\\n' + s }}", "[<|im_start|>user\n](user)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_spans(cases[i].source, vars, cases[i].wanted);
}

/* ---- errors ---------------------------------------------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    static const struct {
        const char *source;
        gdn_status  status;
        int         line;
        const char *message;
    } cases[] = {
        {"a\n{{ raise_exception('no ' ~ s) }}", GDN_BAD_ARGUMENT, 2, "chat template, line 2: no x"},
        {"\n\n{% if %}", GDN_BAD_FILE, 3, "expected an expression, got %}"},
        {"{% if s %}\n", GDN_BAD_FILE, 1, "ends where {% endif %} is expected"},
        {"{% for x in l %}\n{{ x }", GDN_BAD_FILE, 2, "unexpected '}'"},
        {"\n{% nosuch %}", GDN_BAD_FILE, 2, "unknown tag 'nosuch'"},
        {"{{ s | nosuch }}", GDN_BAD_FILE, 1, "there is no filter 'nosuch'"},
        {"{% if s is nosuch %}{% endif %}", GDN_BAD_ARGUMENT, 1, "there is no test 'nosuch'"},
        {"{{ s | urlize }}", GDN_UNSUPPORTED, 1, "the filter 'urlize' is not supported"},
        {"x\n{% include 'a' %}", GDN_UNSUPPORTED, 2, "{% include %} is not supported"},
        {"{{ 'abc }}", GDN_BAD_FILE, 1, "a string that begins with ' is not closed"},
        {"{# abc", GDN_BAD_FILE, 1, "a comment is not closed"},
        {"{% raw %}abc", GDN_BAD_FILE, 1, "a raw block is not closed"},
        {"{{ \xff }}", GDN_BAD_FILE, 1, "byte 3 of the source is not UTF-8"},
        {"{{ 99999999999999999999 }}", GDN_UNSUPPORTED, 1, "more than 64 bits"},
        {"{{ u.x }}", GDN_BAD_ARGUMENT, 1, "'u' is undefined"},
        {"{{ s.a.b }}", GDN_BAD_ARGUMENT, 1, "a value of type str has no 'a'"},
        {"{{ l.append(1) }}", GDN_BAD_ARGUMENT, 1, "the sandbox does not let templates change lists and dicts"},
        {"{{ 1 + 'a' }}", GDN_BAD_ARGUMENT, 1, "'+' does not take values of types int and str"},
        {"{% for x in l %}\n{% if x == 3 %}\n{{ 1 // (x - 3) }}\n{% endif %}\n{% endfor %}", GDN_BAD_ARGUMENT, 3,
         "division by zero"},
        {"{{ strftime_now('%Y') }}", GDN_BAD_ARGUMENT, 1, "the caller gave no date"},
        {"{{ range(200000) }}", GDN_BAD_ARGUMENT, 1, "more than 100000 items"},
        {"{{ l | map('upper') }}", GDN_UNSUPPORTED, 1, "printing a value of type generator"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(cases[i].source, plain, cases[i].status, cases[i].line, cases[i].message);
}

/* A long message is cut between characters. */
static void test_long_message(void **state)
{
    gdn_rendered r;
    gdn_error    err = {GDN_OK, 0, ""};
    (void)state;
    for (int shift = 0; shift < 4; shift++) {
        char source[128];
        snprintf(source, sizeof source, "{{ raise_exception('%.*s' ~ '\xf0\x9f\x98\x80' * 100) }}", shift, "abcd");
        assert_int_equal(render_with(source, "{}", plain, &r, &err), GDN_BAD_ARGUMENT);
        const size_t n = strlen(err.message);
        assert_true(n > sizeof err.message - 5 && n < sizeof err.message);
        assert_memory_equal(err.message + n - 4, "\xf0\x9f\x98\x80", 4);
    }
}

static void test_bad_arguments(void **state)
{
    gdn_template      *t = NULL;
    gdn_rendered       r;
    json_t            *array = json_array(), *object = json_object();
    gdn_template_input input = {.vars = array};
    (void)state;
    assert_int_equal(gdn_template_open(NULL, "", 0, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_template_open(&t, NULL, 1, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_template_open(&t, NULL, 0, NULL), GDN_OK);
    assert_int_equal(gdn_template_render(t, &input, &r, NULL), GDN_BAD_ARGUMENT);
    input.vars = object;
    assert_int_equal(gdn_template_render(NULL, &input, &r, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_template_render(t, &input, &r, NULL), GDN_OK);
    assert_string_equal(r.text, "");
    assert_int_equal(r.n_spans, 0);
    gdn_rendered_free(&r);
    gdn_rendered_free(&r);
    gdn_template_close(t);
    gdn_template_close(NULL);
    json_decref(array);
    json_decref(object);
}

static void test_date(void **state)
{
    const struct tm          now = {.tm_year = 124, .tm_mon = 6, .tm_mday = 26, .tm_wday = 5};
    const gdn_template_input input = {.now = &now};
    gdn_rendered             r;
    (void)state;
    assert_int_equal(render_with("{{ strftime_now('%d %b %Y, %A') }}{{ strftime_now('') }}", "{}", input, &r, NULL),
                     GDN_OK);
    assert_string_equal(r.text, "26 Jul 2024, Friday");
    gdn_rendered_free(&r);
}

/* ---- limits ---------------------------------------------------------------------------------------------------------------------- */

static void test_default_limits(void **state)
{
    static const struct {
        const char *source;
        gdn_status  status;
        const char *message;
    } cases[] = {
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", GDN_BAD_FILE,
         "too many steps"},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", GDN_BAD_FILE, "nested more than 800 deep"},
        {"{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(1) }}", GDN_BAD_FILE, "nested more than"},
        {"{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}", GDN_BAD_FILE, "nested more than"},
        {"{% set n = namespace(x=[]) %}{% for i in range(2000) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
         GDN_BAD_FILE, "nested more than"},
        {"{% set n = namespace() %}{% set n.x = n %}{{ n }}", GDN_BAD_FILE, "nested more than"},
        {"{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", GDN_NO_MEMORY,
         "grows beyond"},
        {"{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", GDN_NO_MEMORY,
         "of memory"},
        {"{{ 'x' * 9223372036854775807 }}", GDN_NO_MEMORY, "grows beyond"},
        {"{{ [1] * 9223372036854775807 }}", GDN_NO_MEMORY, "repeated"},
        {"{{ '%999999999d' % 1 }}", GDN_BAD_ARGUMENT, "too large"},
        {"{{ 'x'.center(9223372036854775807) }}", GDN_NO_MEMORY, "grows beyond"},
        {"{{ 'abc' | indent(1000000000000) }}", GDN_NO_MEMORY, "grows beyond"},
        {"{{ ('a' * 1000000).rfind('a' * 500000 + 'b') }}{{ ('a' * 1000000).rfind('a' * 999 + 'b') }}", GDN_BAD_FILE,
         "too many steps"},
        {"{% for a in range(99999) %}{{ ('a' * 99999) | upper | length }}{% endfor %}", GDN_BAD_FILE, "too many steps"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(cases[i].source, plain, cases[i].status, 1, cases[i].message);
}

static void test_own_limits(void **state)
{
    const gdn_template_input few_steps = {.limits = {.max_steps = 50}}, short_text = {.limits = {.max_text_bytes = 10}};
    const gdn_template_input shallow = {.limits = {.max_depth = 8}};
    gdn_rendered             r;
    (void)state;
    assert_error("{% for x in l %}{% for y in l %}{{ x }}{{ y }}{% endfor %}{% endfor %}", few_steps, GDN_BAD_FILE, 1,
                 "too many steps");
    assert_error("12345678901", short_text, GDN_NO_MEMORY, 1, "beyond 10 bytes");
    assert_int_equal(render_with("1234567890", "{}", short_text, &r, NULL), GDN_OK);
    gdn_rendered_free(&r);
    assert_error("{{ [[[[[[[[1]]]]]]]] }}", shallow, GDN_BAD_FILE, 1, "nested more than 8 deep");
    assert_error("{{ s }}", (gdn_template_input){.limits = {.max_text_bytes = SIZE_MAX, .max_memory_bytes = 1000}},
                 GDN_NO_MEMORY, 1, "more than 1000 bytes of memory");
}

/* With any bound on memory a rendering ends well or says that it has too little: the sanitizers look for what it loses. */
static void test_little_memory(void **state)
{
    static const char source[] =
        "{% macro m(a) %}{{ a | tojson(indent=2) }}{% endmacro %}{% set n = namespace(x='') %}"
        "{% for x in range(40) %}{% set n.x = n.x + m({'k': [x, 'y', loop.index]}) %}{% endfor %}"
        "{{ n.x.split('\\n') | map('upper') | sort | unique | join('-') | length }}";
    int n_short = 0;
    (void)state;
    for (size_t n_bytes = 1000; n_bytes < 2000000; n_bytes += n_bytes / 8) {
        const gdn_template_input input = {.limits = {.max_memory_bytes = n_bytes}};
        gdn_rendered             r;
        gdn_error                err;
        const gdn_status         status = render_with(source, "{}", input, &r, &err);
        assert_true(status == GDN_OK || status == GDN_NO_MEMORY);
        n_short += status != GDN_OK;
        gdn_rendered_free(&r);
    }
    assert_true(n_short > 5);
}

/* Deep sources are refused, not run over the end of the stack. */
static void test_deep_sources(void **state)
{
    static const struct {
        const char *open, *middle, *close;
    } shapes[] = {{"(", "1", ")"},      {"[", "1", "]"},           {"{1:", "1", "}"}, {"-", "1", ""},
                  {"not ", "1", ""},    {"1 if 1 else ", "1", ""}, {"f(", "1", ")"},  {"1 + ", "1", ""},
                  {"1 ** ", "1", ""},   {"x.", "x", ""},           {"x[", "1", "]"},  {"a|f|", "f", ""},
                  {"1 is in ", "x", ""}};
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        for (int n = 10; n <= 100000; n *= 10) {
            char         *source = calloc(1, (size_t)n * 20 + 20);
            gdn_template *t = NULL;
            assert_non_null(source);
            char *at = stpcpy(source, "{{ ");
            for (int i = 0; i < n; i++) at = stpcpy(at, shapes[k].open);
            at = stpcpy(at, shapes[k].middle);
            for (int i = 0; i < n; i++) at = stpcpy(at, shapes[k].close);
            strcpy(at, " }}");
            const gdn_status status = gdn_template_open(&t, source, strlen(source), NULL);
            assert_true(n > 100 ? status == GDN_BAD_FILE : status == GDN_OK || status == GDN_BAD_FILE);
            gdn_template_close(t);
            free(source);
        }
}

static void test_deep_blocks(void **state)
{
    gdn_template *t = NULL;
    char         *source = malloc(20 * 20000);
    (void)state;
    assert_non_null(source);
    char *at = source;
    for (int i = 0; i < 20000; i++) at = stpcpy(at, "{% if 1 %}");
    assert_int_equal(gdn_template_open(&t, source, (size_t)(at - source), NULL), GDN_BAD_FILE);
    at = source;
    for (int i = 0; i < 10000; i++) at = stpcpy(at, "{% set x = 1 %}{{ x }}"); /* long is fine */
    assert_int_equal(gdn_template_open(&t, source, (size_t)(at - source), NULL), GDN_OK);
    gdn_template_close(t);
    free(source);
}

/* ---- scale, threads ---------------------------------------------------------------------------------------------------------------- */

/* A conversation of 8 MB in 2000 turns, several copies of which a template makes, is far inside the limits. */
static void test_large_conversation(void **state)
{
    static const char  source[] = "{% for m in messages %}{% set s = m.content | trim %}"
                                  "{{ '<|im_start|>' + m.role + '\\n' + s + '<|im_end|>' + '\\n' }}{% endfor %}";
    gdn_template      *t = NULL;
    gdn_rendered       r;
    json_t            *vars = json_object(), *messages = json_array();
    char              *content = malloc(4097);
    gdn_template_input input = {.vars = vars};
    (void)state;
    memset(content, 'x', 4096);
    content[4096] = 0;
    for (int i = 0; i < 2000; i++)
        json_array_append_new(messages,
                              json_pack("{s:s,s:s}", "role", i % 2 ? "user" : "assistant", "content", content));
    json_object_set_new(vars, "messages", messages);
    assert_int_equal(open_source(&t, source, NULL), GDN_OK);
    assert_int_equal(gdn_template_render(t, &input, &r, NULL), GDN_OK);
    assert_int_equal(r.n_bytes, 2000 * (4096 + strlen("<|im_start|>\n<|im_end|>\n")) + 1000 * strlen("userassistant"));
    assert_int_equal(r.n_spans, 2000 * 4 + 1);
    gdn_rendered_free(&r);
    gdn_template_close(t);
    json_decref(vars);
    free(content);
}

static const char threaded[] =
    "{% macro m(a) %}{{ a }}-{{ a | tojson }}{% endmacro %}{% for x in l %}{{ m(x) }}{{ loop.index }}{% endfor %}";

static void *render_often(void *template)
{
    json_t            *vars = json_loads("{\"l\": [1, \"a\", null, 2.5]}", 0, NULL);
    gdn_template_input input = {.vars = vars};
    bool               ok = vars != NULL;
    for (int i = 0; i < 200 && ok; i++) {
        gdn_rendered r;
        ok = !gdn_template_render(template, &input, &r, NULL) && !strcmp(r.text, "1-11a-\"a\"2None-null32.5-2.54");
        gdn_rendered_free(&r);
    }
    json_decref(vars);
    return ok ? template : NULL;
}

static void test_threads(void **state)
{
    gdn_template *t = NULL;
    pthread_t     threads[3];
    void         *result;
    (void)state;
    assert_int_equal(open_source(&t, threaded, NULL), GDN_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, render_often, t), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    gdn_template_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_long_message),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_date),
        cmocka_unit_test(test_default_limits),
        cmocka_unit_test(test_own_limits),
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_deep_sources),
        cmocka_unit_test(test_deep_blocks),
        cmocka_unit_test(test_large_conversation),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
