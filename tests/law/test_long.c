/* A long prompt on the demo model's shape: resident memory grows by the pages of keys and values alone, and how the prompt was cut
 * changes no bit, tens of thousands of tokens after its beginning.  20,000 tokens; 100,000 with --long, which takes minutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "law/model.h"
#include "support/random.h"
#include <math.h>

enum { ROWS = 256 }; /* of a forward at most */

/* Instrumented kernels are slow, and the instrument has memory of its own; there the bits alone are compared. */
#ifdef GDN_SANITIZED
enum { MEASURED = 0, FIRST = 500 };
static int n_tokens = 1000;
#else
enum { MEASURED = 1, FIRST = 4000 };
static int n_tokens = 20000;
#endif

static gdn_model   *model;
static gdn_compute *compute;
static int32_t     *tokens;
static gdn_error    err;

static long long resident_bytes(void)
{
    char      line[200];
    long long kib = -1;
    FILE     *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (kib < 0 && fgets(line, sizeof line, f)) sscanf(line, "VmRSS: %lld kB", &kib);
    fclose(f);
    assert_true(kib > 0);
    return kib * 1024;
}

static session open_session(int max_positions)
{
    const session_config config = {.n_lanes = 1, .max_rows = ROWS, .max_positions = max_positions};
    return session_open(model, compute, &config);
}

/* Tokens `from` to `to` in pieces of `piece`, or of 1 to ROWS at random when it is 0; logits [V] of the last. */
static void feed(session *s, int from, int to, int piece, float *logits)
{
    rng r = {7};
    while (from < to) {
        int n = piece ? piece : 1 + rng_below(&r, ROWS);
        if (n > to - from) n = to - from;
        gdn_forward_args args = {.n_lanes = 1, .n_tokens = &n, .tokens = tokens + from};
        const int        row = n - 1;
        if (from + n == to) args.n_wanted = 1, args.wanted = &row, args.logits = logits;
        if (gdn_model_forward(model, compute, s->workspace, s->cache, s->kv, &args, &err) != GDN_OK)
            fail_msg("%s", err.message);
        from += n;
    }
    assert_int_equal(gdn_kv_length(s->kv, 0), to);
}

static void *numbers(size_t n)
{
    void *p = calloc(n, sizeof(float));
    assert_non_null(p);
    return p;
}

/* Keys and values are written page after page, which the system may back 2 MiB at a time: one such piece may be there at
 * either end that the pages do not fill.  Everything else was there before the first measurement. */
static void memory_is_flat(void **unused)
{
    (void)unused;
    const gdn_model_config *c = &model->config;
    const gdn_kv_config     kv = {
            .n_layers = model->n_attention_layers, .n_heads = c->n_kv_heads, .dim = c->head_dim, .type = GDN_F32};
    const int       n_first = n_tokens > 20000 ? 20000 : FIRST;
    const long long slack = 2 * (2 << 20), page = (long long)gdn_kv_page_bytes(&kv);
    if (!MEASURED) {
        print_message("an instrumented program has memory of its own: not measured\n");
        skip();
    }
    float  *logits = numbers(c->vocab_size);
    session s = open_session(n_tokens);
    feed(&s, 0, n_first, ROWS, logits);
    const long long before = resident_bytes();
    feed(&s, n_first, n_tokens, ROWS, logits);
    const long long grown = resident_bytes() - before;
    const long long pages = (n_tokens + GDN_PAGE - 1) / GDN_PAGE - (n_first + GDN_PAGE - 1) / GDN_PAGE;
    print_message("%d to %d tokens: %.2f MiB more are resident; the pages are %.2f MiB\n", n_first, n_tokens,
                  (double)grown / (1 << 20), (double)(pages * page) / (1 << 20));
    for (int i = 0; i < c->vocab_size; i++) assert_true(isfinite(logits[i]));
    if (llabs(grown - pages * page) > slack)
        fail_msg("memory grew by %lld bytes, the pages are %lld", grown, pages * page);
    session_close(&s);
    free(logits);
}

static void pieces(void **unused)
{
    (void)unused;
    const int    n = n_tokens > 20000 ? 20000 : n_tokens / 2, V = model->config.vocab_size;
    float       *want = numbers(V), *got = numbers(V);
    session      whole = open_session(n), cut = open_session(n);
    const size_t n_memory = session_memory_size(&whole);
    float       *want_memory = numbers(n_memory), *got_memory = numbers(n_memory);
    feed(&whole, 0, n, ROWS, want);
    feed(&cut, 0, n, 0, got);
    assert_memory_equal(got, want, (size_t)V * sizeof *got);
    assert_true(session_memory(&whole, 0, want_memory) && session_memory(&cut, 0, got_memory));
    assert_memory_equal(got_memory, want_memory, n_memory * sizeof *got_memory);
    session_close(&whole);
    session_close(&cut);
    free(want);
    free(got);
    free(want_memory);
    free(got_memory);
}

static int open_all(void **unused)
{
    rng r = {100};
    (void)unused;
    model = demo_load();
    compute = demo_compute(NULL, 2);
    tokens = malloc((size_t)n_tokens * sizeof *tokens);
    for (int i = 0; tokens && i < n_tokens; i++) tokens[i] = rng_below(&r, model->config.vocab_size);
    return tokens ? 0 : -1;
}

static int close_all(void **unused)
{
    (void)unused;
    free(tokens);
    gdn_compute_close(compute);
    gdn_model_close(model);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--long") == 0) n_tokens = 100000;

    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_is_flat), cmocka_unit_test(pieces)};
    return cmocka_run_group_tests_name("long", tests, open_all, close_all);
}
