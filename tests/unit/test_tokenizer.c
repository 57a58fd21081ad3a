/* Encoding and decoding, against plain definitions, Unicode's own examples and utf8proc's NFC. */
#include "unit/tokenizer_json.h"
#include "support/random.h"
#include "text/bpe.h"
#include "text/scan_utf8.h"
#include "text/tokenizer_nfc.h"
#include <pthread.h>
#include <utf8proc.h>

/* ---- tokens and spans -------------------------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
    (void)state;
    gdn_tokenizer *t = opened(common);
    size_t         n;
    assert_int_equal(gdn_tokenizer_size(t), 262);
    assert_int_equal(gdn_tokenizer_find(t, "<|im_end|>", 10), 259);
    assert_int_equal(gdn_tokenizer_find(t, "<think>", 7), 260);
    assert_int_equal(gdn_tokenizer_find(t, "<think>!", 8), 261);
    assert_int_equal(gdn_tokenizer_find(t, "<think", 6), -1);
    assert_int_equal(gdn_tokenizer_find(t, " the", 4), 258);
    assert_int_equal(gdn_tokenizer_find(t, "\xff", 1), 255);
    assert_int_equal(gdn_tokenizer_find(t, "", 0), -1);
    assert_true(gdn_tokenizer_is_special(t, 259) && !gdn_tokenizer_is_special(t, 260));
    assert_true(gdn_tokenizer_is_added(t, 259) && gdn_tokenizer_is_added(t, 260) && !gdn_tokenizer_is_added(t, 258));
    assert_false(gdn_tokenizer_is_added(t, -1) || gdn_tokenizer_is_special(t, 262));
    assert_memory_equal(gdn_tokenizer_bytes(t, 258, &n), " the", 4);
    assert_int_equal(n, 4);
    assert_null(gdn_tokenizer_bytes(t, 262, &n));
    assert_null(gdn_tokenizer_bytes(t, -1, &n));
    assert_int_equal(n, 0);
    gdn_tokenizer_close(t);
}

static void test_trust(void **state)
{
    (void)state;
    gdn_tokenizer *t = opened(common);
    ASSERT_ENCODES(t, "<think>!he<think><|im_end|>", true, 261, 257, 260, 259);
    ASSERT_ENCODES(t, "<think>", false, '<', 't', 'h', 'i', 'n', 'k', '>');
    ASSERT_ENCODES(t, "<|im_end|>", false, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>');
    /* A user's token stays text between the template's, and its text merges with the template's. */
    const gdn_span spans[] = {{"<think>", 7, true}, {"<|im_end|>", 10, false}, {" t", 2, true},
                              {"h", 1, false},      {"e<th", 4, true},         {NULL, 0, false},
                              {"ink>", 4, true},    {"<thi", 4, true},         {"nk>", 3, false},
                              {"!", 1, true}};
    const int      want[] = {260, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>',
                             258, 260, '<', 't', 'h', 'i', 'n', 'k', '>', '!'};
    gdn_ids        ids = {0};
    assert_int_equal(gdn_tokenizer_encode(t, spans, 10, &ids, NULL), GDN_OK);
    assert_int_equal(ids.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < ids.n; i++) assert_int_equal(ids.id[i], want[i]);
    assert_int_equal(gdn_tokenizer_encode(t, spans, 1, &ids, NULL), GDN_OK); /* appended */
    assert_int_equal(ids.n, sizeof want / sizeof *want + 1);
    assert_int_equal(ids.id[ids.n - 1], 260);
    assert_int_equal(gdn_tokenizer_encode(t, NULL, 0, &ids, NULL), GDN_OK);
    assert_int_equal(ids.n, sizeof want / sizeof *want + 1);
    free(ids.id);
    gdn_tokenizer_close(t);
}

static void test_arguments(void **state)
{
    (void)state;
    gdn_tokenizer *t = opened(common);
    gdn_ids        ids = {0};
    gdn_error      err;
    const gdn_span absent[] = {{"a", 1, true}, {NULL, 1, true}}, huge[] = {{"a", 1, true}, {"a", 0x7fffffff, true}},
                   wrapping[] = {{"a", SIZE_MAX, true}, {"a", 1, true}};
    assert_int_equal(gdn_tokenizer_encode(t, absent, 2, &ids, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(err.at, 1);
    assert_int_equal(gdn_tokenizer_encode(t, huge, 2, &ids, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_tokenizer_encode(t, wrapping, 2, &ids, &err), GDN_BAD_ARGUMENT);
    assert_null(ids.id);
    gdn_tokenizer_close(t);
}

/* Where the two patterns differ: a mark inside a word. */
static void test_patterns(void **state)
{
    (void)state;
    parts p = common;
    p.vocab = ",\"\xc5\x80\xc3\xa0\":256"; /* bytes 9E E0 */
    p.merges = "\"\xc5\x80 \xc3\xa0\"";
    p.added = "";
    /* U+0E01 U+0E1E U+0E31 U+0E1E: E0 B8 81, E0 B8 9E, E0 B8 B1 (a mark), E0 B8 9E */
    gdn_tokenizer *qwen35 = opened(p);
    ASSERT_ENCODES(qwen35, "\xe0\xb8\x9e\xe0\xb8\xb1\xe0\xb8\x9e", true, 0xe0, 0xb8, 256, 0xb8, 0xb1, 0xe0, 0xb8, 0x9e);
    gdn_tokenizer_close(qwen35);
    p.regex = QWEN2_REGEX;
    gdn_tokenizer *qwen2 = opened(p);
    ASSERT_ENCODES(qwen2, "\xe0\xb8\x9e\xe0\xb8\xb1\xe0\xb8\x9e", true, 0xe0, 0xb8, 0x9e, 0xe0, 0xb8, 0xb1, 0xe0, 0xb8,
                   0x9e);
    gdn_tokenizer_close(qwen2);
}

/* ---- merging ----------------------------------------------------------------------------------------------------- */

enum { MOST_TOKENS = 200, MOST_MERGES = 220, MOST_BYTES = 16, PIECE = 300 };

typedef struct vocabulary {
    char text[MOST_TOKENS][MOST_BYTES + 1];
    int  n_tokens;
    int  left[MOST_MERGES], right[MOST_MERGES], made[MOST_MERGES], n_merges;
} vocabulary;

static int find_text(const vocabulary *v, const char *text)
{
    for (int i = 0; i < v->n_tokens; i++)
        if (!strcmp(v->text[i], text)) return i;
    return -1;
}

/* Merges of random tokens over four letters; some make a token that there is already. */
static void random_vocabulary(vocabulary *v, rng *r)
{
    memset(v, 0, sizeof *v);
    for (int i = 0; i < 4; i++) v->text[v->n_tokens++][0] = (char)('a' + i);
    while (v->n_tokens < MOST_TOKENS && v->n_merges < MOST_MERGES) {
        char      text[2 * MOST_BYTES + 1];
        const int left = rng_below(r, v->n_tokens), right = rng_below(r, v->n_tokens);
        sprintf(text, "%s%s", v->text[left], v->text[right]);
        bool known = strlen(text) > MOST_BYTES;
        for (int i = 0; i < v->n_merges; i++) known |= v->left[i] == left && v->right[i] == right;
        if (known) continue;
        int made = find_text(v, text);
        if (made < 0) strcpy(v->text[made = v->n_tokens++], text);
        v->left[v->n_merges] = left;
        v->right[v->n_merges] = right;
        v->made[v->n_merges++] = made;
    }
}

/* The definition: while a merge applies, the first in the list does, at its first place. */
static int merge_plainly(const vocabulary *v, const char *piece, int *tokens)
{
    int n = 0;
    for (; piece[n]; n++) tokens[n] = piece[n] - 'a';
    for (;;) {
        int best = v->n_merges, place = 0;
        for (int i = 0; i + 1 < n; i++)
            for (int m = 0; m < best; m++)
                if (v->left[m] == tokens[i] && v->right[m] == tokens[i + 1]) best = m, place = i;
        if (best == v->n_merges) return n;
        tokens[place] = v->made[best];
        n--;
        for (int i = place + 1; i < n; i++) tokens[i] = tokens[i + 1];
    }
}

static gdn_tokenizer *opened_vocabulary(const vocabulary *v)
{
    static char vocab[MOST_TOKENS * 40], merges[MOST_MERGES * 60];
    char       *at = vocab;
    parts       p = common;
    *at = 0;
    for (int i = 4; i < v->n_tokens; i++) at += sprintf(at, ",\"%s\":%d", v->text[i], 256 + i);
    at = merges;
    for (int i = 0; i < v->n_merges; i++)
        at += sprintf(at, "%s\"%s %s\"", i ? "," : "", v->text[v->left[i]], v->text[v->right[i]]);
    p.vocab = vocab;
    p.merges = merges;
    p.added = "";
    return opened(p);
}

static void test_merging(void **state)
{
    (void)state;
    static vocabulary v;
    rng               r = {7};
    for (int round = 0; round < 60; round++) {
        random_vocabulary(&v, &r);
        gdn_tokenizer *t = opened_vocabulary(&v);
        for (int k = 0; k < 60; k++) {
            char piece[PIECE + 1] = "";
            int  want[PIECE];
            if (k % 3 == 0)
                strcpy(piece, v.text[rng_below(&r, v.n_tokens)]); /* a token's own text, and more than once */
            else
                for (int i = 0, n = 1 + rng_below(&r, k % 3 == 1 ? 40 : PIECE); i < n; i++)
                    piece[i] = (char)('a' + rng_below(&r, 2 + k % 3));
            const int n = merge_plainly(&v, piece, want);
            for (int i = 0; i < n; i++) want[i] += want[i] < 4 ? 'a' : 256;
            assert_encodes(t, piece, strlen(piece), true, want, (size_t)n);
            assert_encodes(t, piece, strlen(piece), true, want, (size_t)n);
        }
        gdn_tokenizer_close(t);
    }
}

/* Pieces for which work that grows with the square of their length would take hours. */
static void test_long_pieces(void **state)
{
    (void)state;
    enum { N = 1 << 20 };
    parts p = common;
    p.vocab = ",\"aa\":256,\"aaaa\":257,\"aaaaaaaa\":258,\"ba\":259";
    p.merges = "\"a a\",\"aa aa\",\"aaaa aaaa\",\"b a\"";
    p.added = "";
    gdn_tokenizer *t = opened(p);
    char          *text = malloc(2 * N + 1);
    gdn_ids        ids = {0};
    assert_non_null(text);
    memset(text, 'a', N);
    text[0] = 'b'; /* ba aa...: the first a merges with the second before b can */
    const gdn_span letters = {text, N, true};
    assert_int_equal(gdn_tokenizer_encode(t, &letters, 1, &ids, NULL), GDN_OK);
    assert_int_equal(ids.n, 1 + (N - 8) / 8 + 3); /* b, eights, and 7 = 4 + 2 + 1 */
    assert_int_equal(ids.id[0], 'b');
    assert_int_equal(ids.id[1], 258);
    assert_int_equal(ids.id[ids.n - 1], 'a');

    /* Marks that must change places: a, then acute (class 230) and dot below (220) in turns, as "ạ", dots, acutes. */
    text[0] = 'a';
    for (int i = 0; i < N / 2; i++) memcpy(text + 1 + 4 * i, "\xcc\x81\xcc\xa3", 4);
    gdn_text composed = {0};
    bool     changed;
    assert_true(gdn_text_compose(&composed, text, 1 + 2 * N, &changed));
    assert_true(changed);
    assert_int_equal(composed.n, 3 + 2 * (N - 1));
    assert_memory_equal(composed.bytes, "\xe1\xba\xa1\xcc\xa3", 5);
    for (size_t i = 3; i < composed.n; i += 2)
        assert_memory_equal(composed.bytes + i, i < 3 + 2 * (N / 2 - 1) ? "\xcc\xa3" : "\xcc\x81", 2);
    free(composed.bytes);

    memset(text, ' ', N);
    memset(text + N, '\n', N);
    ids.n = 0;
    const gdn_span white = {text, 2 * N, true};
    assert_int_equal(gdn_tokenizer_encode(t, &white, 1, &ids, NULL), GDN_OK);
    assert_int_equal(ids.n, 2 * N);
    free(ids.id);
    free(text);
    gdn_tokenizer_close(t);
}

/* ---- Unicode ------------------------------------------------------------------------------------------------------ */

static void assert_composed(const char *text, size_t n)
{
    gdn_text composed = {0};
    bool     changed;
    char    *copy = malloc(n + 1);
    assert_non_null(copy);
    memcpy(copy, text, n);
    copy[n] = 0;
    assert_true(gdn_text_compose(&composed, text, n, &changed));
    char        *want = (char *)utf8proc_NFC((utf8proc_uint8_t *)copy);
    const char  *got = changed ? composed.bytes : text;
    const size_t n_got = changed ? composed.n : n;
    assert_non_null(want);
    if (n_got != strlen(want) || memcmp(got, want, n_got) != 0)
        fail_msg("'%s' became '%.*s', not '%s'", copy, (int)n_got, got, want);
    free(want);
    free(copy);
    free(composed.bytes);
}

/* Every code point alone, after and before what may join or change places with it. */
static void test_composition(void **state)
{
    (void)state;
    static const char *const around[] = {"a\xcc\xa3\xcc\x81", "\xe1\x84\x80", "\xea\xb0\x80",
                                         "\xe0\xa7\x87",      "\xcc\xb4",     "o\xcc\x9b"};
    for (int code = 1; code < 0x110000; code++) {
        char text[64];
        if (code >= 0xd800 && code < 0xe000) continue;
        if (code > 0x32000 && code % 97 != 0) continue;
        for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
            size_t n = (size_t)sprintf(text, "%s", around[i]);
            n += (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)text + n);
            n += (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)text + n);
            assert_composed(text, n);
            n += (size_t)sprintf(text + n, "%s", around[i]);
            assert_composed(text, n);
        }
    }
}

static void test_composition_of_strings(void **state)
{
    (void)state;
    rng r = {3};
    for (int round = 0; round < 20000; round++) {
        char   text[200];
        size_t n = 0;
        while (n < 150 && rng_below(&r, 20)) {
            const int kind = rng_below(&r, 5);
            const int code = kind == 0   ? 'a' + rng_below(&r, 26)
                             : kind == 1 ? 0x300 + rng_below(&r, 0x70)
                             : kind == 2 ? 0x1100 + rng_below(&r, 0x100)
                             : kind == 3 ? 0x900 + rng_below(&r, 0x700)
                                         : 0x1e00 + rng_below(&r, 0x200);
            n += (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)text + n);
        }
        assert_composed(text, n);
    }
}

/* What Unicode (chapter 3, "U+FFFD Substitution of Maximal Subparts") gives as examples; X is U+FFFD. */
static void test_repair(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } examples[] = {
        {"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", "XXXXXXXXA"},
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", "XXXXXXXXA"},
        {"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "XXXXXAXXB"},
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "XXXXA"},
        {"a\xc3\xa9", "a\xc3\xa9"},
        {"\xc3", "X"},
        {"12345678\xe2\x82", "12345678X"},
    };
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        gdn_text repaired = {0};
        bool     changed;
        char     want[64] = "", *end = want;
        for (const char *c = examples[i].text; *c; c++) end += sprintf(end, *c == 'X' ? "\xef\xbf\xbd" : "%c", *c);
        assert_true(gdn_text_repair(&repaired, examples[i].bytes, strlen(examples[i].bytes), &changed));
        assert_int_equal(changed, strcmp(examples[i].bytes, want) != 0);
        if (changed) {
            assert_int_equal(repaired.n, strlen(want));
            assert_memory_equal(repaired.bytes, want, repaired.n);
        }
        free(repaired.bytes);
    }
}

/* ---- decoding ----------------------------------------------------------------------------------------------------- */

typedef struct step {
    int         id; /* -1: the end */
    const char *out;
} step;

static void assert_stream(const gdn_tokenizer *t, bool skip_special, const step *steps, size_t n)
{
    gdn_decoder decoder = {.tokenizer = t, .skip_special = skip_special};
    char       *out = malloc(gdn_decoder_room(t));
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        const size_t got =
            steps[i].id < 0 ? gdn_decoder_end(&decoder, out) : gdn_decoder_put(&decoder, steps[i].id, out);
        assert_int_equal(got, strlen(steps[i].out));
        assert_memory_equal(out, steps[i].out, got);
    }
    free(out);
}

static void test_stream(void **state)
{
    (void)state;
    gdn_tokenizer    *t = opened(common);
    static const step whole[] = {{0xf0, ""}, {0x9f, ""}, {0x98, ""}, {0x80, "\xf0\x9f\x98\x80"}, {-1, ""}};
    static const step cut[] = {{258, " the"}, {0xe2, ""}, {0x82, ""}, {-1, "\xef\xbf\xbd"}, {-1, ""}, {'a', "a"}};
    static const step wrong[] = {{0xe2, ""},
                                 {0x82, ""},
                                 {257, "\xef\xbf\xbdhe"},
                                 {0x80, "\xef\xbf\xbd"},
                                 {0xe2, ""},
                                 {0xe2, "\xef\xbf\xbd"},
                                 {0xe0, "\xef\xbf\xbd"},
                                 {0x80, "\xef\xbf\xbd\xef\xbf\xbd"},
                                 {-1, ""}};
    static const step shown[] = {{259, "<|im_end|>"}, {0xc3, ""}, {260, "\xef\xbf\xbd<think>"},
                                 {262, ""},           {9999, ""}, {-1, ""}};
    static const step skipped[] = {{259, ""}, {0xc3, ""}, {259, ""}, {0xa9, "\xc3\xa9"}, {260, "<think>"}, {-1, ""}};
    assert_stream(t, false, whole, 5);
    assert_stream(t, false, cut, 6);
    assert_stream(t, false, wrong, 9);
    assert_stream(t, false, shown, 6);
    assert_stream(t, true, skipped, 6);
    gdn_tokenizer_close(t);
}

static void test_whole(void **state)
{
    (void)state;
    gdn_tokenizer *t = opened(common);
    const int32_t  ids[] = {259, 257, 0, 0xe2, 0x82, 259, -1, 0xac, 260, 0xc3};
    char          *text;
    size_t         n;
    assert_int_equal(gdn_decode(t, ids, 10, true, &text, &n, NULL), GDN_OK);
    assert_int_equal(n, 16);
    assert_memory_equal(text, "he\0\xe2\x82\xac<think>\xef\xbf\xbd", 17);
    free(text);
    assert_int_equal(gdn_decode(t, NULL, 0, true, &text, &n, NULL), GDN_OK);
    assert_int_equal(n, 0);
    assert_string_equal(text, "");
    free(text);
    gdn_tokenizer_close(t);
}

/* ---- threads ------------------------------------------------------------------------------------------------------ */

static void *encode_much(void *arg)
{
    const gdn_span span = {"he the he the <|im_end|> hehe the", 33, true};
    size_t         sum = 0;
    for (int round = 0; round < 200; round++) {
        gdn_ids ids = {0};
        if (gdn_tokenizer_encode(arg, &span, 1, &ids, NULL)) return NULL;
        for (size_t i = 0; i < ids.n; i++) sum += (size_t)ids.id[i] * (i + 1);
        free(ids.id);
    }
    return (void *)sum;
}

/* Each of four threads gets what one alone gets; the thread sanitizer sees what they share. */
static void test_threads(void **state)
{
    (void)state;
    gdn_tokenizer *t = opened(common), *other = opened(common);
    pthread_t      threads[4];
    void          *sum, *want = encode_much(other);
    assert_non_null(want);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, encode_much, t), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &sum), 0);
        assert_ptr_equal(sum, want);
    }
    gdn_tokenizer_close(t);
    gdn_tokenizer_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),      cmocka_unit_test(test_trust),
        cmocka_unit_test(test_arguments),   cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_merging),     cmocka_unit_test(test_long_pieces),
        cmocka_unit_test(test_composition), cmocka_unit_test(test_composition_of_strings),
        cmocka_unit_test(test_repair),      cmocka_unit_test(test_stream),
        cmocka_unit_test(test_whole),       cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
