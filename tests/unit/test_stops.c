/* Stop strings: what comes out by hand, under every cut, and as a plain search of the whole text says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdn/gdn.h"
#include "support/random.h"
#include <stdlib.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum { MAX_STOPS = 6, ROOM = 512 };

static gdn_stops *open_stops(const char *const *strings, int n)
{
    gdn_stop   list[MAX_STOPS];
    gdn_stops *stops = NULL;
    for (int i = 0; i < n; i++) list[i] = (gdn_stop){strings[i], strlen(strings[i])};
    assert_int_equal(gdn_stops_open(&stops, list, n, NULL), GDN_OK);
    return stops;
}

/* Put n bytes into memory of just the size that the contract asks for, so that sanitizers see an overrun. */
static size_t put(gdn_stops *stops, const char *text, size_t n, char *out)
{
    char        *exact = malloc(n + gdn_stops_held_max(stops) + (n + gdn_stops_held_max(stops) == 0));
    const size_t n_out = gdn_stops_put(stops, text, n, exact);
    assert_true(n_out <= n + gdn_stops_held_max(stops));
    memcpy(out, exact, n_out);
    free(exact);
    return n_out;
}

/* ---- a plain search ---------------------------------------------------------------------------------------------- */

/* The string that ends the text and the bytes before it; -1 and all bytes. */
static int search(const char *text, size_t n, const char *const *strings, int n_strings, size_t *n_before)
{
    int best = -1;
    *n_before = n;
    for (size_t end = 1; end <= n && best < 0; end++)
        for (int i = 0; i < n_strings; i++) {
            const size_t length = strlen(strings[i]);
            if (length > end || memcmp(text + end - length, strings[i], length)) continue;
            if (best >= 0 && length <= strlen(strings[best])) continue;
            best = i;
            *n_before = end - length;
        }
    return best;
}

/* Bytes at the end of n that begin a string. */
static size_t undecided(const char *text, size_t n, const char *const *strings, int n_strings)
{
    for (size_t length = n; length > 0; length--)
        for (int i = 0; i < n_strings; i++)
            if (length < strlen(strings[i]) && !memcmp(text + n - length, strings[i], length)) return length;
    return 0;
}

/* Stream the text, cut after byte i where bit i of cuts is set: at each cut just what is undecided is held back. */
static void stream(gdn_stops *stops, const char *text, const char *const *strings, int n_strings, uint64_t cuts)
{
    char         out[ROOM];
    const size_t n = strlen(text);
    size_t       n_out = 0, n_before, from = 0;
    const int    match = search(text, n, strings, n_strings, &n_before);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && !(cuts >> (i % 64) & 1)) continue;
        n_out += put(stops, text + from, i + 1 - from, out + n_out);
        from = i + 1;
        const int so_far = search(text, from, strings, n_strings, &n_before);
        assert_int_equal(gdn_stops_matched(stops), so_far);
        assert_int_equal(n_out, so_far < 0 ? from - undecided(text, from, strings, n_strings) : n_before);
        assert_memory_equal(out, text, n_out);
    }
    assert_int_equal(gdn_stops_matched(stops), match);
    n_out += gdn_stops_end(stops, out + n_out);
    assert_int_equal(gdn_stops_matched(stops), -1);
    search(text, n, strings, n_strings, &n_before);
    assert_int_equal(n_out, n_before);
    assert_memory_equal(out, text, n_out);
}

/* ---- by hand ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *shown;
    int         matched, n;
    const char *strings[MAX_STOPS];
} cases[] = {
    {"plain text", "plain text", -1, 0, {0}},
    {"one.END two", "one.", 0, 1, {"END"}},
    {"END", "", 0, 1, {"END"}},
    {"EN EEN E", "EN EEN E", -1, 1, {"END"}},
    {"EEND", "E", 0, 1, {"END"}},
    {"ababababc", "abab", 0, 1, {"ababc"}}, /* a mismatch falls back into the string */
    {"aabaabaaac", "aabaab", 0, 1, {"aaac"}},
    {"aaaa", "", 0, 1, {"aa"}},
    {"xabcdy", "xa", 1, 2, {"abcd", "bc"}}, /* completed first, though it starts later */
    {"xabcdy", "x", 0, 2, {"abcd", "cd"}},  /* completed together: the longest */
    {"xabcdy", "x", 1, 2, {"cd", "abcd"}},
    {"xabcdy", "x", 1, 2, {"abcd", "ab"}}, /* one begins the other */
    {"xabcz bc ", "xabcz ", 1, 2, {"abcd", "bc "}},
    {"xabcz bc", "xabcz bc", -1, 2, {"abcd", "cza"}},
    {"same", "s", 0, 2, {"am", "am"}},
    {"a\n\nb", "a", 1, 3, {"\n\n\n", "\n\n", "b"}},
    {"na\xc3\xafve", "na\xc3\xafve", -1, 1, {"\xc3\xa9"}},
    {"caf\xc3\xa9", "caf", 0, 1, {"\xc3\xa9"}},
    {"<|im_e<|im_end|>", "<|im_e", 0, 2, {"<|im_end|>", "<|im_start|>"}},
    {"yes\nUser: no", "yes", 1, 3, {"Assistant:", "\nUser:", "User: n"}},
};

static void test_every_cut(void **state)
{
    (void)state;
    for (int c = 0; c < COUNT(cases); c++) {
        const char  *text = cases[c].text;
        const size_t n = strlen(text);
        size_t       n_before;
        assert_int_equal(search(text, n, cases[c].strings, cases[c].n, &n_before), cases[c].matched);
        assert_int_equal(n_before, strlen(cases[c].shown));
        gdn_stops *stops = open_stops(cases[c].strings, cases[c].n);
        for (uint64_t cuts = 0; cuts < UINT64_C(1) << (n - 1); cuts++)
            stream(stops, text, cases[c].strings, cases[c].n, cuts);
        gdn_stops_close(stops);
    }
}

static void test_after_the_end(void **state)
{
    (void)state;
    char       out[ROOM];
    gdn_stops *stops = open_stops((const char *const[]){"ab", "xyz"}, 2);
    assert_int_equal(gdn_stops_held_max(stops), 2);
    assert_int_equal(gdn_stops_put(stops, "1xab2", 5, out), 2);
    assert_memory_equal(out, "1x", 2);
    assert_int_equal(gdn_stops_put(stops, "more", 4, out), 0);
    assert_int_equal(gdn_stops_put(stops, "xyz", 3, out), 0);
    assert_int_equal(gdn_stops_matched(stops), 0);
    assert_int_equal(gdn_stops_end(stops, out), 0);
    assert_int_equal(gdn_stops_put(stops, "xy", 2, out), 0); /* another stream: nothing of the first is left */
    assert_int_equal(gdn_stops_put(stops, NULL, 0, out), 0);
    assert_int_equal(gdn_stops_end(stops, out), 2);
    assert_memory_equal(out, "xy", 2);
    assert_int_equal(gdn_stops_put(stops, "z", 1, out), 1);
    assert_int_equal(gdn_stops_end(stops, out), 0);
    gdn_stops_close(stops);
    /* bytes of every kind, the zero byte among them */
    const gdn_stop zero = {"\0\xff", 2};
    assert_int_equal(gdn_stops_open(&stops, &zero, 1, NULL), GDN_OK);
    assert_int_equal(gdn_stops_put(stops, "\0\0\xff", 3, out), 1);
    assert_int_equal(gdn_stops_matched(stops), 0);
    gdn_stops_close(stops);
}

static void test_random(void **state)
{
    (void)state;
    rng r = {3};
    for (int round = 0; round < 20000; round++) {
        char        memory[MAX_STOPS][9], text[ROOM / 2];
        const char *strings[MAX_STOPS];
        const int   n = rng_below(&r, MAX_STOPS + 1), letters = 1 + rng_below(&r, 3), length = rng_below(&r, 120);
        for (int i = 0; i < n; i++) {
            const int n_bytes = 1 + rng_below(&r, 8);
            for (int j = 0; j < n_bytes; j++) memory[i][j] = (char)('a' + rng_below(&r, letters));
            memory[i][n_bytes] = 0;
            strings[i] = memory[i];
        }
        for (int j = 0; j < length; j++) text[j] = (char)('a' + rng_below(&r, letters + (round % 4 == 0)));
        text[length] = 0;
        gdn_stops *stops = open_stops(strings, n);
        for (int i = 0; i < 3; i++) {
            const uint64_t cuts = (uint64_t)rng_u32(&r) << 32 | rng_u32(&r);
            stream(stops, text, strings, n, i ? cuts : cuts & cuts << 7 & cuts >> 9);
        }
        gdn_stops_close(stops);
    }
}

static void test_longest(void **state)
{
    (void)state;
    enum { N = GDN_STOPS_MAX_BYTES };
    static char text[2 * N], out[4 * N];
    gdn_stop    stop[GDN_STOPS_MAX];
    gdn_stops  *stops;
    memset(text, 'a', sizeof text);
    text[2 * N - 1] = 'b';
    stop[0] = (gdn_stop){text + N, N}; /* N-1 times a, then b */
    assert_int_equal(gdn_stops_open(&stops, stop, 1, NULL), GDN_OK);
    assert_int_equal(gdn_stops_held_max(stops), N - 1);
    size_t n_out = 0;
    for (size_t i = 0; i < 2 * N; i++) n_out += gdn_stops_put(stops, text + i, 1, out + n_out);
    assert_int_equal(n_out, N);
    assert_int_equal(gdn_stops_matched(stops), 0);
    gdn_stops_close(stops);
    for (int i = 0; i < GDN_STOPS_MAX; i++) stop[i] = (gdn_stop){text + N, N};
    assert_int_equal(gdn_stops_open(&stops, stop, GDN_STOPS_MAX, NULL), GDN_OK);
    gdn_stops_close(stops);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char long_text[GDN_STOPS_MAX_BYTES + 1] = "x";
    const gdn_stop    list[] = {{"a", 1}, {"", 0}, {NULL, 1}, {long_text, sizeof long_text}};
    gdn_stops        *stops = NULL;
    gdn_error         err;
    assert_int_equal(gdn_stops_open(&stops, list, 2, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(err.at, 1);
    assert_string_equal(err.message, "stop string 1 is empty; leave it out");
    assert_int_equal(gdn_stops_open(&stops, list + 2, 1, &err), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_stops_open(&stops, list + 3, 1, &err), GDN_BAD_ARGUMENT);
    assert_string_equal(err.message, "stop string 0 has 4097 bytes; at most 4096 are allowed");
    assert_int_equal(gdn_stops_open(&stops, list, -1, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_stops_open(&stops, list, GDN_STOPS_MAX + 1, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_stops_open(&stops, NULL, 1, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_stops_open(NULL, list, 1, NULL), GDN_BAD_ARGUMENT);
    assert_null(stops);
    gdn_stops_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cut), cmocka_unit_test(test_after_the_end), cmocka_unit_test(test_random),
        cmocka_unit_test(test_longest),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
