/* The parser of generated text: what comes out of streams, and that it does not depend on how they were cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/random.h"
#include "gdn/gdn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what came out, as one line: R(thoughts) C(text) T0(name, arguments) ------------------------------------------------------ */

typedef struct record {
    char   text[1 << 14];
    size_t n;
    int    kind; /* of the last event, whose bracket is still open; -1: none */
    int    n_calls;
    bool   empty; /* an event without bytes */
} record;

static void add(record *r, const char *bytes, size_t n)
{
    assert_true(r->n + n < sizeof r->text);
    memcpy(r->text + r->n, bytes, n);
    r->n += n;
    r->text[r->n] = 0;
}

static void finish(record *r)
{
    if (r->kind >= 0) add(r, ")", 1);
    r->kind = -1;
}

static void on_event(void *arg, const gdn_output_event *event)
{
    record *r = arg;
    if (event->kind == GDN_OUTPUT_CALL) {
        char head[32];
        finish(r);
        assert_int_equal(event->call, r->n_calls++);
        assert_int_equal(strlen(event->text), event->n_bytes);
        add(r, head, (size_t)snprintf(head, sizeof head, "T%d(", event->call));
        add(r, event->name, strlen(event->name));
        add(r, ", ", 2);
        add(r, event->text, event->n_bytes);
        add(r, ")", 1);
        return;
    }
    r->empty |= event->n_bytes == 0;
    if (r->kind != (int)event->kind) {
        finish(r);
        add(r, event->kind == GDN_OUTPUT_REASONING ? "R(" : "C(", 2);
        r->kind = (int)event->kind;
    }
    add(r, event->text, event->n_bytes);
}

/* A stream that is fed in pieces that end at `cuts` (ascending) and at its end. */
static void parse(record *r, const char *tools, bool in_reasoning, const char *stream, const size_t *cuts,
                  size_t n_cuts)
{
    gdn_output *output = NULL;
    gdn_error   err;
    size_t      from = 0;
    *r = (record){.kind = -1};
    assert_int_equal(gdn_output_open(&output, tools, in_reasoning, on_event, r, &err), GDN_OK);
    for (size_t i = 0; i <= n_cuts; i++) {
        const size_t to = i < n_cuts ? cuts[i] : strlen(stream);
        char        *piece = malloc(to - from + 1); /* its own block, so that a sanitizer sees a read behind it */
        assert_non_null(piece);
        memcpy(piece, stream + from, to - from);
        assert_int_equal(gdn_output_feed(output, piece, to - from, &err), GDN_OK);
        free(piece);
        from = to;
    }
    assert_int_equal(gdn_output_end(output, &err), GDN_OK);
    gdn_output_close(output);
    finish(r);
    assert_false(r->empty);
}

/* ---- the tools --------------------------------------------------------------------------------------------------------------- */

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {"
    "\"s\": {\"type\": \"string\"}, \"i\": {\"type\": \"integer\"}, \"n\": {\"type\": \"number\"},"
    "\"b\": {\"type\": \"boolean\"}, \"o\": {\"type\": \"object\"}, \"a\": {\"type\": \"array\"},"
    "\"in\": {\"type\": [\"integer\", \"null\"]}, \"si\": {\"type\": [\"integer\", \"string\"]},"
    "\"any\": {\"anyOf\": [{\"type\": \"boolean\"}, {\"type\": \"number\"}]}, \"e\": {\"enum\": [1, 2]}}}}},"
    "{\"name\": \"flat\", \"parameters\": {\"properties\": {\"i\": {\"type\": \"integer\"}}}}]";

/* ---- streams and what they mean ------------------------------------------------------------------------------------------------ */

#define CALL(body) "<tool_call>\n<function=f>\n" body "</function>\n</tool_call>"
#define ARG(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"

typedef struct stream {
    const char *text, *wanted;
    bool        in_reasoning, without_tools;
} stream;

static const stream streams[] = {
    /* thoughts */
    {"", "", true, false},
    {"", "", false, false},
    {"hello", "C(hello)", false, false},
    {"I think\n</think>\n\nhello", "R(I think)C(hello)", true, false},
    {"\n</think>\n\nhello", "C(hello)", true, false},
    {"</think>hello", "C(hello)", true, false},
    {"a</think>\nb\n", "R(a)C(b\n)", true, false},
    {"a\n\n</think>\n\n\nb", "R(a\n)C(\nb)", true, false},
    {"never closed\n", "R(never closed\n)", true, false},
    {"cut </thin", "R(cut </thin)", true, false},
    {"a < b </ x </thinker></think>c", "R(a < b </ x </thinker>)C(c)", true, false},
    {"a</</think>b", "R(a</)C(b)", true, false},
    {"<think>\na\n</think>\n\nb", "R(a)C(b)", false, false},
    {"<think>a", "R(a)", false, false},
    {"<think", "C(<think)", false, false},
    {"<thinking>a", "C(<thinking>a)", false, false},
    {" <think>a</think>", "C( <think>a</think>)", false, false},
    {"a</think>b", "C(a</think>b)", false, false},
    {"a</think>b</think>c", "R(a)C(b</think>c)", true, false},
    {"\xc3\xa9\n</think>\xf0\x9f\x98\x80", "R(\xc3\xa9)C(\xf0\x9f\x98\x80)", true, false},
    /* calls */
    {CALL(""), "T0(f, {})", false, false},
    {CALL(ARG("s", "x")), "T0(f, {\"s\":\"x\"})", false, false},
    {"why\n</think>\n\n" CALL(ARG("i", "5")), "R(why)T0(f, {\"i\":5})", true, false},
    {"text\n\n" CALL("") "\n" CALL(ARG("b", "true")), "C(text)T0(f, {})T1(f, {\"b\":true})", false, false},
    {"text\n\n\n" CALL(""), "C(text\n)T0(f, {})", false, false},
    {"a" CALL("") "b", "C(a)T0(f, {})C(b)", false, false},
    {CALL("") "\n", "T0(f, {})", false, false},
    {CALL("") "\n\n\nend\n\n", "T0(f, {})C(\nend\n\n)", false, false},
    {"<tool_call><function=f><parameter=s>x</parameter></function></tool_call>", "T0(f, {\"s\":\"x\"})", false, false},
    {"<tool_call>\n<function=g>\n" ARG("q", "5") "</function>\n</tool_call>", "T0(g, {\"q\":\"5\"})", false, false},
    {"<tool_call>\n<function=flat>\n" ARG("i", "7") "</function>\n</tool_call>", "T0(flat, {\"i\":7})", false, false},
    {"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"</tool_call>\"]}}\n</tool_call>",
     "T0(f, {\"a\":[1,\"</tool_call>\"]})", false, false},
    {"<tool_call>{\"name\": \"f\"}</tool_call>", "T0(f, {})", false, false},
    {CALL(""), "C(" CALL("") ")", false, true},
    /* values */
    {CALL(ARG("s", "a\nb") ARG("i", "-3") ARG("n", "2.50")), "T0(f, {\"s\":\"a\\nb\",\"i\":-3,\"n\":2.50})", false,
     false},
    {CALL(ARG("s", "\n a \n")), "T0(f, {\"s\":\"\\n a \\n\"})", false, false},
    {CALL(ARG("s", "")), "T0(f, {\"s\":\"\"})", false, false},
    {CALL("<parameter=s>\n</parameter>\n"), "T0(f, {\"s\":\"\"})", false, false},
    {CALL(ARG("s", "5") ARG("i", "x") ARG("b", "maybe")), "T0(f, {\"s\":\"5\",\"i\":\"x\",\"b\":\"maybe\"})", false,
     false},
    {CALL(ARG("i", "1.5") ARG("n", "1e3") ARG("b", "False")), "T0(f, {\"i\":\"1.5\",\"n\":1e3,\"b\":false})", false,
     false},
    {CALL(ARG("i", "99999999999999999999")), "T0(f, {\"i\":\"99999999999999999999\"})", false, false},
    {CALL(ARG("s", "null") ARG("i", "null")), "T0(f, {\"s\":null,\"i\":null})", false, false},
    {CALL(ARG("o", "{\"k\": [1,\n 2]}") ARG("a", " [1] ")), "T0(f, {\"o\":{\"k\": [1,\n 2]},\"a\":[1]})", false, false},
    {CALL(ARG("o", "{'k': 1}") ARG("a", "{}")), "T0(f, {\"o\":\"{'k': 1}\",\"a\":\"{}\"})", false, false},
    {CALL(ARG("in", "4") ARG("si", "4") ARG("any", "0.5") ARG("e", "1")),
     "T0(f, {\"in\":4,\"si\":4,\"any\":0.5,\"e\":\"1\"})", false, false},
    {CALL(ARG("in", "x") ARG("si", "x") ARG("any", "TRUE")), "T0(f, {\"in\":\"x\",\"si\":\"x\",\"any\":true})", false,
     false},
    {CALL(ARG("s", "q\" \\ \t\x01 \xe6\x97\xa5")), "T0(f, {\"s\":\"q\\\" \\\\ \\u0009\\u0001 \xe6\x97\xa5\"})", false,
     false},
    {CALL(ARG("s", "1") ARG("s", "2")), "T0(f, {\"s\":\"2\"})", false, false},
    {CALL(ARG("s", "x</parameter>y</parameter>\n</functions>")),
     "T0(f, {\"s\":\"x</parameter>y</parameter>\\n</functions>\"})", false, false},
    {CALL(ARG("s", "</tool_call></function>")), "T0(f, {\"s\":\"</tool_call></function>\"})", false, false},
    {CALL(ARG("s", "</parameter></parameter>")), "T0(f, {\"s\":\"</parameter></parameter>\"})", false, false},
    /* what is no call is text, and nothing of it is lost */
    {"a <tool_cal", "C(a <tool_cal)", false, false},
    {"a\n\n<tool_call>", "C(a\n\n<tool_call>)", false, false},
    {"a\n\n<tool_call>\nb\n</tool_call>", "C(a\n\n<tool_call>\nb\n</tool_call>)", false, false},
    {"<tool_call>\n<function=f>\nx</function></tool_call>", "C(<tool_call>\n<function=f>\nx</function></tool_call>)",
     false, false},
    {"<tool_call><function=></function></tool_call>", "C(<tool_call><function=></function></tool_call>)", false, false},
    {"<tool_call><function=f\n></function></tool_call>", "C(<tool_call><function=f\n></function></tool_call>)", false,
     false},
    {"<tool_call>\n<function=f>\n<parameter=s>\ncut", "C(<tool_call>\n<function=f>\n<parameter=s>\ncut)", false, false},
    {"<tool_call>\n<function=f>\n</function>", "C(<tool_call>\n<function=f>\n</function>)", false, false},
    {"<tool_call>\n<function=f>\n</function>\nx", "C(<tool_call>\n<function=f>\n</function>\nx)", false, false},
    {"<tool_call>{\"name\": 5}</tool_call>", "C(<tool_call>{\"name\": 5}</tool_call>)", false, false},
    {"<tool_call>{bad}</tool_call>", "C(<tool_call>{bad}</tool_call>)", false, false},
    {"<tool_call>{\"name\": \"f\", \"arguments\": 1}</tool_call>",
     "C(<tool_call>{\"name\": \"f\", \"arguments\": 1}</tool_call>)", false, false},
    {"x<tool_call>" CALL("") "y", "C(x<tool_call>)T0(f, {})C(y)", false, false},
    {"<<tool_call><tool_call", "C(<<tool_call><tool_call)", false, false},
    {"\n\n", "C(\n\n)", false, false},
    {"in thoughts " CALL("") "\n</think>\n\n", "R(in thoughts " CALL("") ")", true, false},
    /* a call inside a call that is cut off must not run */
    {"<tool_call>\n<function=f>\n<parameter=s>\n" CALL(""), "C(<tool_call>\n<function=f>\n<parameter=s>\n" CALL("") ")",
     false, false},
};
enum { N_STREAMS = sizeof streams / sizeof streams[0] };

static void check(const stream *s, const size_t *cuts, size_t n_cuts)
{
    static record r;
    parse(&r, s->without_tools ? NULL : tools, s->in_reasoning, s->text, cuts, n_cuts);
    if (strcmp(r.text, s->wanted))
        fail_msg("%s\ngave   %s\nwanted %s (%zu cuts, the first at %zu)", s->text, r.text, s->wanted, n_cuts,
                 n_cuts ? cuts[0] : 0);
}

static void test_whole(void **state)
{
    (void)state;
    for (int i = 0; i < N_STREAMS; i++) check(&streams[i], NULL, 0);
}

static void test_cut_in_two(void **state)
{
    (void)state;
    for (int i = 0; i < N_STREAMS; i++)
        for (size_t cut = 0; cut <= strlen(streams[i].text); cut++) check(&streams[i], &cut, 1);
}

static void test_byte_by_byte(void **state)
{
    size_t cuts[1024];
    (void)state;
    for (size_t k = 0; k < 1024; k++) cuts[k] = k;
    for (int i = 0; i < N_STREAMS; i++) check(&streams[i], cuts, strlen(streams[i].text));
}

static int ascending(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static void test_random_cuts(void **state)
{
    rng random = {1};
    (void)state;
    for (int round = 0; round < 200; round++)
        for (int i = 0; i < N_STREAMS; i++) {
            size_t       cuts[8];
            const size_t n_cuts = (size_t)rng_below(&random, 8);
            for (size_t k = 0; k < n_cuts; k++) cuts[k] = (size_t)rng_below(&random, (int)strlen(streams[i].text) + 1);
            qsort(cuts, n_cuts, sizeof *cuts, ascending);
            check(&streams[i], cuts, n_cuts);
        }
}

/* Streams glued together at random from the parts that decide something: whole and byte by byte they give the same. */
static void test_random_streams(void **state)
{
    static const char *const parts[] = {"<tool_call>",
                                        "</tool_call>",
                                        "<function=f>",
                                        "</function>",
                                        "<parameter=s>",
                                        "<parameter=i>",
                                        "</parameter>",
                                        "<think>",
                                        "</think>",
                                        "\n",
                                        "\n\n",
                                        "<",
                                        "x",
                                        "5",
                                        "</",
                                        ">",
                                        "{\"name\":\"f\"}",
                                        "<tool_call>\n<function=f>\n",
                                        "\n</function>\n</tool_call>",
                                        "tool_call>"};
    static record            whole, pieces;
    rng                      random = {7};
    size_t                   n_calls = 0, cuts[1024];
    (void)state;
    for (size_t k = 0; k < 1024; k++) cuts[k] = k;
    for (int round = 0; round < 20000; round++) {
        char         text[1024] = "";
        const size_t n = (size_t)rng_below(&random, 12);
        const bool   in_reasoning = rng_below(&random, 3) == 0;
        for (size_t k = 0; k < n; k++) strcat(text, parts[rng_below(&random, sizeof parts / sizeof parts[0])]);
        parse(&whole, tools, in_reasoning, text, NULL, 0);
        parse(&pieces, tools, in_reasoning, text, cuts, strlen(text));
        if (strcmp(whole.text, pieces.text)) fail_msg("%s\nwhole  %s\npieces %s", text, whole.text, pieces.text);
        n_calls += (size_t)whole.n_calls;
    }
    assert_true(n_calls > 100);
}

/* ---- what is held back, and for how long ------------------------------------------------------------------------------------------ */

static void test_text_comes_at_once(void **state)
{
    gdn_output   *output = NULL;
    static record r;
    (void)state;
    r = (record){.kind = -1};
    assert_int_equal(gdn_output_open(&output, tools, true, on_event, &r, NULL), GDN_OK);
    assert_int_equal(gdn_output_feed(output, "abc", 3, NULL), GDN_OK);
    assert_string_equal(r.text, "R(abc");
    assert_int_equal(gdn_output_feed(output, "\n</th", 5, NULL), GDN_OK);
    assert_string_equal(r.text, "R(abc");
    assert_int_equal(gdn_output_feed(output, "e", 1, NULL), GDN_OK);
    assert_string_equal(r.text, "R(abc\n</the");
    assert_int_equal(gdn_output_feed(output, "</think>\n\nde<tool_c", 19, NULL), GDN_OK);
    assert_string_equal(r.text, "R(abc\n</the)C(de");
    assert_int_equal(gdn_output_feed(output, "x", 1, NULL), GDN_OK);
    assert_string_equal(r.text, "R(abc\n</the)C(de<tool_cx");
    gdn_output_close(output);
}

static void on_long(void *arg, const gdn_output_event *event)
{
    assert_int_equal(event->kind, GDN_OUTPUT_CALL);
    *(size_t *)arg += event->n_bytes;
}

/* The work does not grow with what is held: half a million pieces of a value are read as fast as they come. */
static void test_long_value(void **state)
{
    enum { N_PIECES = 500000 };
    static const char head[] = "<tool_call>\n<function=f>\n<parameter=s>\n",
                      tail[] = "\n</parameter>\n</function>\n</tool_call>";
    gdn_output *output = NULL;
    size_t      n_bytes = 0;
    (void)state;
    assert_int_equal(gdn_output_open(&output, tools, false, on_long, &n_bytes, NULL), GDN_OK);
    assert_int_equal(gdn_output_feed(output, head, sizeof head - 1, NULL), GDN_OK);
    for (int i = 0; i < N_PIECES; i++) assert_int_equal(gdn_output_feed(output, "</pa", 4, NULL), GDN_OK);
    assert_int_equal(gdn_output_feed(output, tail, sizeof tail - 1, NULL), GDN_OK);
    assert_int_equal(gdn_output_end(output, NULL), GDN_OK);
    gdn_output_close(output);
    assert_int_equal(n_bytes, strlen("{\"s\":\"\"}") + 4 * N_PIECES);
}

static void test_bad_arguments(void **state)
{
    gdn_output *output = NULL;
    gdn_error   err = {GDN_OK, 0, ""};
    (void)state;
    assert_int_equal(gdn_output_open(&output, NULL, false, NULL, NULL, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_output_open(NULL, NULL, false, on_event, NULL, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_output_feed(NULL, "x", 1, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_output_end(NULL, &err), GDN_BAD_ARGUMENT);
    gdn_output_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),          cmocka_unit_test(test_cut_in_two),
        cmocka_unit_test(test_byte_by_byte),   cmocka_unit_test(test_random_cuts),
        cmocka_unit_test(test_random_streams), cmocka_unit_test(test_text_comes_at_once),
        cmocka_unit_test(test_long_value),     cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
