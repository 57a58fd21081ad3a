/* The law for gdn_delta_layer: what a lane gets depends on its tokens alone, not on how they were cut into calls,
 * the batch, the slots, the threads, the CPU level or the caller's floating-point mode.  What the numbers mean:
 * test_layer_meaning. */
#include "law/configs.h"
#include "law/run.h"
#include "support/fpmode.h"
#include "support/random.h"

enum { N_LAYERS = 2, N_LANES = 4, N_SLOTS = 12, LONG = 200 };

/* Lane i of the batches below, of 0 to LONG tokens. */
static const int lane_tokens[N_LANES] = {37, 1, 90, 20};
static span      lane_span(int i) { return (span){10000u * (unsigned)i, lane_tokens[i]}; }

/* A lane run alone in one call: its outputs [N_LAYERS][n][Hv][Dv], and a cache that holds what it holds. */
typedef struct alone {
    gdn_cache     *cache;
    unsigned char *y;
} alone;

static alone run_alone(stack *s, span tokens)
{
    alone a = {.cache = open_lanes(s, 1, 0)};
    a.y = feed(s, a.cache, &tokens);
    return a;
}

static void alone_free(alone *a)
{
    gdn_cache_close(a->cache);
    free(a->y);
}

/* Rows of lane `tokens` from token t on, n of them, in the outputs of a call in which they start at `row` of
 * `n_rows`. */
static void assert_rows(const stack *s, const alone *want, span tokens, int t, int n, const unsigned char *y,
                        size_t row, size_t n_rows)
{
    const size_t bytes = row_bytes(s);
    for (int layer = 0; layer < N_LAYERS; layer++)
        assert_memory_equal(y + ((size_t)layer * n_rows + row) * bytes,
                            want->y + ((size_t)layer * (size_t)tokens.n + (size_t)t) * bytes, (size_t)n * bytes);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* In pieces of random lengths up to `longest`. */
static void check_pieces(stack *s, const alone *whole, span tokens, int longest, uint64_t seed)
{
    rng        r = {seed};
    gdn_cache *cache = open_lanes(s, 1, 0);
    for (int t = 0; t < tokens.n;) {
        const int      left = tokens.n - t, n = longest == 1 ? 1 : 1 + rng_below(&r, longest < left ? longest : left);
        unsigned char *y = feed(s, cache, &(span){tokens.first + (unsigned)t, n});
        assert_rows(s, whole, tokens, t, n, y, 0, (size_t)n);
        free(y);
        t += n;
    }
    assert_same_lane(s, cache, 0, whole->cache, 0);
    gdn_cache_close(cache);
}

static void test_whole_is_pieces_is_tokens(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        const span tokens = {1, LONG};
        stack      s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        alone whole = run_alone(&s, tokens);
        check_pieces(&s, &whole, tokens, 1, 0);
        for (uint64_t seed = 1; seed <= 4; seed++) check_pieces(&s, &whole, tokens, 8 << seed, seed);
        alone_free(&whole);
        stack_close(&s, N_SLOTS);
    }
}

/* ---- batches and slots ------------------------------------------------------------------------------------------- */

/* Run other sequences through all slots and give them back in a random order, so that the next lanes find used
 * slots. */
static void soil(stack *s, rng *r)
{
    gdn_cache *caches[N_SLOTS];
    int        order[N_SLOTS], n = gdn_pool_free_slots(s->pool);
    for (int i = 0; i < n; i++) {
        order[i] = i;
        caches[i] = open_lanes(s, 1, 0);
        run(s, caches[i], &(span){rng_u32(r), 1 + rng_below(r, 5)});
    }
    rng_shuffle(r, order, n);
    for (int i = 0; i < n; i++) gdn_cache_close(caches[order[i]]);
}

/* All lanes in one cache in the given order, each call giving every lane a random number of its next tokens. */
static void check_batch(stack *s, const alone *want, const int *order, rng *r)
{
    gdn_cache *cache = open_lanes(s, N_LANES, 0);
    int        at[N_LANES] = {0};
    for (bool more = true; more;) {
        span   spans[N_LANES];
        size_t n_rows = 0, row = 0;
        for (int i = 0; i < N_LANES; i++) {
            const span all = lane_span(order[i]);
            const int  left = all.n - at[i], most = rng_below(r, 4) ? 12 : 70;
            spans[i] = (span){all.first + (unsigned)at[i], left ? rng_below(r, (most < left ? most : left) + 1) : 0};
            n_rows += (size_t)spans[i].n;
        }
        unsigned char *y = feed(s, cache, spans);
        more = false;
        for (int i = 0; i < N_LANES; i++) {
            assert_rows(s, &want[order[i]], lane_span(order[i]), at[i], spans[i].n, y, row, n_rows);
            row += (size_t)spans[i].n;
            at[i] += spans[i].n;
            more = more || at[i] < lane_tokens[order[i]];
        }
        free(y);
    }
    for (int i = 0; i < N_LANES; i++) assert_same_lane(s, cache, i, want[order[i]].cache, 0);
    gdn_cache_close(cache);
}

static void test_a_lane_is_the_same_in_any_batch_and_slot(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        alone want[N_LANES];
        int   order[N_LANES];
        rng   r = {11u + (unsigned)c};
        stack s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        for (int i = 0; i < N_LANES; i++) {
            want[i] = run_alone(&s, lane_span(i));
            order[i] = i;
        }
        for (int trial = 0; trial < 6; trial++) {
            soil(&s, &r);
            check_batch(&s, want, order, &r);
            rng_shuffle(&r, order, N_LANES);
        }
        for (int i = 0; i < N_LANES; i++) alone_free(&want[i]);
        stack_close(&s, N_SLOTS);
    }
}

/* ---- threads, CPU levels, floating-point modes ------------------------------------------------------------------- */

/* Two calls over all lanes: a long one and one token each. */
static gdn_cache *two_calls(stack *s, unsigned char **y)
{
    gdn_cache *cache = open_lanes(s, N_LANES, 0);
    span       first[N_LANES], second[N_LANES];
    for (int i = 0; i < N_LANES; i++) {
        first[i] = lane_span(i);
        second[i] = (span){first[i].first + 5000, 1};
    }
    y[0] = feed(s, cache, first);
    y[1] = feed(s, cache, second);
    return cache;
}

static void assert_same_calls(stack *s, gdn_cache *want, unsigned char *const *want_y, stack *other)
{
    const size_t   n_rows[] = {(size_t)(lane_tokens[0] + lane_tokens[1] + lane_tokens[2] + lane_tokens[3]), N_LANES};
    unsigned char *y[2];
    gdn_cache     *cache = two_calls(other, y);
    for (int k = 0; k < 2; k++) {
        assert_memory_equal(y[k], want_y[k], N_LAYERS * n_rows[k] * row_bytes(s));
        free(y[k]);
    }
    for (int i = 0; i < N_LANES; i++) assert_same_lane(s, cache, i, want, i);
    gdn_cache_close(cache);
}

static void test_levels_and_threads(void **state)
{
    static const int threads[] = {1, 2, 5};
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        unsigned char *y[2];
        stack          s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, "ref", 1);
        gdn_cache *want = two_calls(&s, y);
        for (int i = 0; gdn_kernels_level(i); i++)
            for (int t = 0; t < 3; t++) {
                const char      *level = gdn_kernels_level(i)->name;
                gdn_compute     *probe = NULL;
                gdn_error        err;
                const gdn_status status = gdn_compute_open(&probe, level, threads[t], &err);
                if (status) {
                    assert_int_equal(status, GDN_UNSUPPORTED);
                    if (c + t == 0) print_message("this CPU has no %s: not compared\n", level);
                    continue;
                }
                assert_string_equal(gdn_compute_level(probe), level);
                assert_int_equal(gdn_compute_threads(probe), threads[t]);
                gdn_compute_close(probe);
                if (!strcmp(level, "ref") && t == 0) continue; /* that one is `want` */
                stack other;
                stack_open(&other, &configs[c], N_LAYERS, N_LANES, level, threads[t]);
                assert_same_calls(&s, want, y, &other);
                stack_close(&other, N_LANES);
            }
        gdn_cache_close(want);
        free(y[0]);
        free(y[1]);
        stack_close(&s, N_SLOTS);
    }
}

/* The law holds in any mode of the caller, and the mode is left as it was. */
static void test_the_callers_floating_point_mode(void **state)
{
    enum { T = 90 };
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        const int      n_tokens[] = {T};
        const fpmode   mine = fpmode_get();
        unsigned char *y[2];
        stack          s;
        stack_open(&s, &configs[c], 1, 2, NULL, 2);
        law_rows rows = law_rows_alloc(&s.model, T);
        for (size_t t = 0; t < T; t++) law_token_row(&s.model, 0, 40 + t, &rows, t);
        for (int k = 0; k < 2; k++) y[k] = law_alloc(T * row_bytes(&s));
        gdn_layer_args args = {.batch = {.n_lanes = 1, .n_tokens = n_tokens},
                               .qkv = rows.qkv,
                               .z = rows.z,
                               .a = rows.a,
                               .b = rows.b,
                               .y = y[0]};
        gdn_cache     *plain = open_lanes(&s, 1, 0);
        assert_ok(gdn_delta_layer(s.compute, plain, 0, &s.model.weights[0], &args, &ok_err));
        args.y = y[1];
        for (int mode = 0; mode < 2 * FPMODE_DIRECTIONS; mode++) {
            const fpmode theirs = fpmode_make(mode / 2, mode % 2);
            gdn_cache   *cache = open_lanes(&s, 1, 0);
            fpmode_put(theirs);
            const gdn_status status = gdn_delta_layer(s.compute, cache, 0, &s.model.weights[0], &args, NULL);
            const fpmode     left = fpmode_get();
            fpmode_put(mine);
            assert_int_equal(status, GDN_OK);
            assert_true(left == theirs);
            assert_memory_equal(y[0], y[1], T * row_bytes(&s));
            assert_same_lane(&s, cache, 0, plain, 0);
            gdn_cache_close(cache);
        }
        free(y[0]);
        free(y[1]);
        law_rows_free(&rows);
        gdn_cache_close(plain);
        stack_close(&s, 2);
    }
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* One rectangular call of all layers; rows that the mask leaves out hold NaNs and must come back as zeros. */
static void feed_masked(stack *s, gdn_cache *cache, int length, const uint8_t *mask, const alone *want, const span *all,
                        int *at)
{
    const size_t n_rows = (size_t)(gdn_cache_lanes(cache) * length), bytes = row_bytes(s);
    for (int layer = 0; layer < N_LAYERS; layer++) {
        law_rows       rows = law_rows_alloc(&s->model, n_rows);
        unsigned char *y = law_alloc(n_rows * bytes), *zeros = calloc(1, bytes);
        int            t[MAX_RUN_LANES];
        memset(rows.qkv, 0xff, n_rows * s->model.n_channels * s->model.type_bytes);
        memset(rows.z, 0xff, n_rows * bytes);
        memset(rows.a, 0xff, n_rows * (size_t)s->model.config.n_value_heads * s->model.type_bytes);
        memset(rows.b, 0xff, n_rows * (size_t)s->model.config.n_value_heads * s->model.type_bytes);
        memset(y, 0xa5, n_rows * bytes);
        memcpy(t, at, (size_t)gdn_cache_lanes(cache) * sizeof *t);
        for (size_t r = 0; r < n_rows; r++) {
            const size_t i = r / (size_t)length;
            if (!mask || mask[r]) law_token_row(&s->model, layer, all[i].first + (unsigned)t[i]++, &rows, r);
        }
        const gdn_layer_args args = {.batch = {.n_lanes = gdn_cache_lanes(cache), .length = length, .mask = mask},
                                     .qkv = rows.qkv,
                                     .z = rows.z,
                                     .a = rows.a,
                                     .b = rows.b,
                                     .y = y};
        assert_ok(gdn_delta_layer(s->compute, cache, layer, &s->model.weights[layer], &args, &ok_err));
        memcpy(t, at, (size_t)gdn_cache_lanes(cache) * sizeof *t);
        for (size_t r = 0; r < n_rows; r++) {
            const size_t         i = r / (size_t)length;
            const unsigned char *expected = zeros;
            if (!mask || mask[r]) expected = want[i].y + ((size_t)layer * (size_t)all[i].n + (size_t)t[i]++) * bytes;
            assert_memory_equal(y + r * bytes, expected, bytes);
        }
        if (layer == N_LAYERS - 1) memcpy(at, t, (size_t)gdn_cache_lanes(cache) * sizeof *t);
        free(y);
        free(zeros);
        law_rows_free(&rows);
    }
}

/* A prompt batch with left padding or with lengths, in two calls, then two decode steps, against every lane alone. */
static void check_padded(stack *s, bool left)
{
    enum { LENGTH = 41, CUT = 17 };
    static const int n_prompt[3] = {LENGTH, 5, 24};
    int              padding[3], counts[3], gained[3] = {0}, at[3] = {0};
    span             all[3];
    alone            want[3];
    uint8_t          mask[3 * LENGTH];
    gdn_cache       *cache = open_lanes(s, 3, 0);
    for (int i = 0; i < 3; i++) {
        padding[i] = left ? LENGTH - n_prompt[i] : n_prompt[i];
        all[i] = (span){10000u * (unsigned)i, n_prompt[i] + 2};
        want[i] = run_alone(s, all[i]);
    }
    assert_ok(gdn_cache_prepare(cache, left ? padding : NULL, left ? NULL : padding, &ok_err));
    for (int row = 0; row < LENGTH; row += CUT) {
        const int n = LENGTH - row < CUT ? LENGTH - row : CUT;
        assert_int_equal(gdn_cache_make_mask(cache, n, mask), 1);
        feed_masked(s, cache, n, mask, want, all, at);
        assert_ok(gdn_cache_advance(cache, n, counts, &ok_err));
        for (int i = 0; i < 3; i++) gained[i] += counts[i];
    }
    assert_memory_equal(gained, n_prompt, sizeof gained);
    gdn_cache_finalize(cache);
    assert_int_equal(gdn_cache_make_mask(cache, 1, mask), 0);
    for (int step = 0; step < 2; step++) {
        feed_masked(s, cache, 1, NULL, want, all, at);
        assert_ok(gdn_cache_advance(cache, 1, NULL, &ok_err));
    }
    for (int i = 0; i < 3; i++) assert_same_lane(s, cache, i, want[i].cache, 0);
    for (int i = 0; i < 3; i++) alone_free(&want[i]);
    gdn_cache_close(cache);
}

/* A mask may have holes anywhere, and leave a lane out whole. */
static void check_holes(stack *s, uint64_t seed)
{
    enum { LENGTH = 50 };
    rng        r = {seed};
    span       all[3] = {{1000, 0}, {2000, 0}, {3000, 0}};
    alone      want[3];
    uint8_t    mask[3 * LENGTH] = {0};
    int        at[3] = {0};
    gdn_cache *cache = open_lanes(s, 3, 0);
    for (int i = 0; i < 2 * LENGTH; i++)
        all[i / LENGTH].n += mask[i] = i < LENGTH ? rng_below(&r, 2) != 0 : rng_below(&r, 12) != 0;
    for (int i = 0; i < 3; i++) want[i] = run_alone(s, all[i]);
    feed_masked(s, cache, LENGTH, mask, want, all, at);
    assert_ok(gdn_cache_advance_rows(cache, at, &ok_err));
    for (int i = 0; i < 3; i++) assert_same_lane(s, cache, i, want[i].cache, 0);
    assert_int_equal(gdn_cache_has_state(cache, 2), 0);
    for (int i = 0; i < 3; i++) alone_free(&want[i]);
    gdn_cache_close(cache);
}

static void test_masked_is_ragged(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        stack s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        check_padded(&s, true);
        check_padded(&s, false);
        for (uint64_t seed = 0; seed < 3; seed++) check_holes(&s, seed);
        stack_close(&s, N_SLOTS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_is_pieces_is_tokens),
        cmocka_unit_test(test_a_lane_is_the_same_in_any_batch_and_slot),
        cmocka_unit_test(test_levels_and_threads),
        cmocka_unit_test(test_the_callers_floating_point_mode),
        cmocka_unit_test(test_masked_is_ragged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
