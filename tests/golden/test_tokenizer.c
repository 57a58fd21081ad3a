/* Strings recorded from the Hugging Face library (README.md here): their ids and texts with the demo model's tokenizer, and
 * their pieces with both patterns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/tokenizer.h"
#include "text/scan.h"
#include "text/scan_utf8.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { STRINGS = 230, PIECES = 201 };

static const char *const recordings = "tests/golden/tokenizer.json", *const model = "models/demo/tokenizer.json";

static gdn_tokenizer *tokenizer;
static json_t        *recorded;

static int open_all(void **state)
{
    (void)state;
    gdn_error err;
    recorded = json_load_file(recordings, JSON_ALLOW_NUL, NULL);
    if (gdn_tokenizer_open(&tokenizer, model, &err)) fail_msg("%s", err.message);
    return recorded && json_array_size(recorded) == STRINGS ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    gdn_tokenizer_close(tokenizer);
    json_decref(recorded);
    return 0;
}

static gdn_span text_of(const json_t *entry, const char *name)
{
    const json_t *text = json_object_get(entry, name);
    return (gdn_span){json_string_value(text), json_string_length(text), true};
}

static void assert_ids(const gdn_ids *ids, const json_t *entry)
{
    const json_t *want = json_object_get(entry, "ids");
    assert_int_equal(ids->n, json_array_size(want));
    for (size_t i = 0; i < ids->n; i++) assert_int_equal(ids->id[i], json_integer_value(json_array_get(want, i)));
}

static void test_ids(void **state)
{
    (void)state;
    for (size_t i = 0; i < STRINGS; i++) {
        const json_t  *entry = json_array_get(recorded, i);
        const gdn_span span = text_of(entry, "text");
        gdn_ids        ids = {0};
        assert_int_equal(gdn_tokenizer_encode(tokenizer, &span, 1, &ids, NULL), GDN_OK);
        assert_ids(&ids, entry);
        free(ids.id);
    }
}

/* In trusted spans of 1, 2, 3 and 4 bytes, with empty ones of both sorts between them. */
static void test_ids_from_spans(void **state)
{
    (void)state;
    for (size_t i = 0; i < STRINGS; i++) {
        const json_t  *entry = json_array_get(recorded, i);
        const gdn_span whole = text_of(entry, "text");
        gdn_span      *spans = calloc(3 * whole.n + 1, sizeof *spans);
        gdn_ids        ids = {0};
        size_t         n = 0;
        assert_non_null(spans);
        for (size_t at = 0, length; at < whole.n; at += length) {
            length = at % 4 + 1 < whole.n - at ? at % 4 + 1 : whole.n - at;
            spans[n++] = (gdn_span){whole.text + at, length, true};
            spans[n++] = (gdn_span){NULL, 0, false};
            spans[n++] = (gdn_span){NULL, 0, true};
        }
        assert_int_equal(gdn_tokenizer_encode(tokenizer, spans, n, &ids, NULL), GDN_OK);
        assert_ids(&ids, entry);
        free(spans);
        free(ids.id);
    }
}

static int32_t *ids_of(const json_t *entry, size_t *n)
{
    const json_t *list = json_object_get(entry, "ids");
    *n = json_array_size(list);
    int32_t *ids = calloc(*n + 1, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < *n; i++) ids[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return ids;
}

static void test_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < STRINGS; i++) {
        const json_t  *entry = json_array_get(recorded, i);
        const gdn_span want = text_of(entry, "decoded");
        char          *text;
        size_t         n_ids, n;
        int32_t       *ids = ids_of(entry, &n_ids);
        assert_int_equal(gdn_decode(tokenizer, ids, n_ids, false, &text, &n, NULL), GDN_OK);
        assert_int_equal(n, want.n);
        assert_memory_equal(text, want.text, n);
        free(text);
        free(ids);
    }
}

/* Each part of the stream is valid UTF-8, and the parts make the text. */
static void test_text_as_it_comes(void **state)
{
    (void)state;
    char *out = malloc(gdn_decoder_room(tokenizer));
    assert_non_null(out);
    for (size_t i = 0; i < STRINGS; i++) {
        const json_t  *entry = json_array_get(recorded, i);
        const gdn_span want = text_of(entry, "decoded");
        gdn_decoder    decoder = {.tokenizer = tokenizer};
        size_t         n_ids, at = 0;
        int32_t       *ids = ids_of(entry, &n_ids);
        for (size_t k = 0; k <= n_ids; k++) {
            const size_t n = k < n_ids ? gdn_decoder_put(&decoder, ids[k], out) : gdn_decoder_end(&decoder, out);
            assert_true(n <= want.n - at);
            assert_memory_equal(out, want.text + at, n);
            at += n;
            uint32_t code;
            for (size_t c = 0; c < n; c += gdn_utf8_next(out + c, n - c, &code)) continue;
            assert_true(!n || code < GDN_UTF8_BAD);
        }
        assert_int_equal(at, want.n);
        free(ids);
    }
    free(out);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------- */

static void assert_pieces(const gdn_scanner *scanner, const json_t *entry, const char *pattern)
{
    const gdn_span text = text_of(entry, "text");
    const json_t  *ends = json_object_get(entry, pattern);
    const char    *at = text.text;
    assert_true(json_array_size(ends) > 0);
    for (size_t i = 0; i < json_array_size(ends); i++) {
        at = gdn_scan(scanner, at, text.text + text.n);
        if (at - text.text != json_integer_value(json_array_get(ends, i)))
            fail_msg("%s, piece %zu of '%s'", pattern, i, text.text);
    }
    assert_ptr_equal(at, text.text + text.n);
}

static void test_pieces(void **state)
{
    (void)state;
    gdn_scanner qwen2, qwen35;
    json_t     *strings = json_load_file("tests/golden/pieces.json", JSON_ALLOW_NUL, NULL);
    assert_true(gdn_scanner_open(&qwen2, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                                         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"));
    assert_true(gdn_scanner_open(&qwen35, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
                                          "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"));
    assert_false(gdn_scanner_open(&(gdn_scanner){0}, "\\s+"));
    assert_int_equal(json_array_size(strings), PIECES);
    for (size_t i = 0; i < PIECES; i++) {
        assert_pieces(&qwen2, json_array_get(strings, i), "qwen2");
        assert_pieces(&qwen35, json_array_get(strings, i), "qwen35");
    }
    json_decref(strings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),    cmocka_unit_test(test_ids_from_spans),
        cmocka_unit_test(test_text),   cmocka_unit_test(test_text_as_it_comes),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests_name("golden tokenizer", tests, open_all, close_all);
}
