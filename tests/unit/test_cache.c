/* The pool, the lanes, padding and the batch operations: every contract of delta.h, and every refusal. */
#include "unit/lanes.h"

/* Tokens of three sequences. */
static const int A[] = {11, 12, 13, 14, 15, 16, 17, 18}, B[] = {21, 22, 23, 24, 25, 26, 27, 28},
                 C[] = {31, 32, 33, 34, 35};

/* Sizes that no machine has must come back as an error under the sanitizers too. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void pool_ranges(void **unused)
{
    gdn_delta_config c = lab_config(GDN_BF16);
    gdn_pool        *pool = NULL;
    (void)unused;
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_pool_open(NULL, &c, 1, 1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_pool_open(&pool, NULL, 1, 1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "n_layers is 0; use 1 to 1024", gdn_pool_open(&pool, &c, 0, 1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "n_layers is 1025", gdn_pool_open(&pool, &c, 1025, 1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "n_slots is 0; use 1 to 65536", gdn_pool_open(&pool, &c, 1, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "n_slots is 65537", gdn_pool_open(&pool, &c, 1, 65537, &err));
    c.key_dim = 48;
    REFUSED(GDN_BAD_ARGUMENT, "key_dim", gdn_pool_open(&pool, &c, 1, 1, &err));
    c = lab_config(GDN_BF16);
    c.n_taps = 9;
    REFUSED(GDN_BAD_ARGUMENT, "taps", gdn_pool_open(&pool, &c, 1, 1, &err));
    c = lab_config((gdn_type)7);
    REFUSED(GDN_BAD_ARGUMENT, "type", gdn_pool_open(&pool, &c, 1, 1, &err));
    assert_null(pool);
    gdn_pool_close(NULL);
}

static void absurd_sizes(void **unused)
{
    const gdn_delta_config huge = {
        .n_key_heads = 4096, .n_value_heads = 4096, .key_dim = 256, .value_dim = 256, .n_taps = 8, .qk_eps = 1e-6f};
    gdn_delta_config beyond = huge;
    gdn_pool        *pool = NULL;
    (void)unused;
    REFUSED(GDN_NO_MEMORY, "no memory for 65536 slots of", gdn_pool_open(&pool, &huge, 1024, 65536, &err));
    beyond.n_key_heads = beyond.n_value_heads = INT32_MAX;
    REFUSED(GDN_BAD_ARGUMENT, "heads", gdn_pool_open(&pool, &beyond, 1024, 65536, &err));
    assert_null(pool);

    /* The pool fits (its memory is not touched), the records of the largest rounds do not. */
    const gdn_delta_config wide = {
        .n_key_heads = 4096, .n_value_heads = 4096, .key_dim = 32, .value_dim = 32, .n_taps = 2, .qk_eps = 1e-6f};
    gdn_cache *cache = NULL;
    ACCEPTED(gdn_pool_open(&pool, &wide, 64, 1, &err));
    REFUSED(GDN_NO_MEMORY, "records of 4096 lanes of 1024 tokens", gdn_cache_open(&cache, pool, 4096, 1024, &err));
    assert_null(cache);
    gdn_pool_close(pool);
}

static void cache_ranges(void **unused)
{
    lab        l;
    gdn_cache *cache = NULL;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 3);
    assert_int_equal(gdn_pool_slot_bytes(l.pool), 2 * (3 * 128 * 2 + 2 * 32 * 32 * 4));
    assert_int_equal(gdn_pool_free_slots(l.pool), 3);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_open(NULL, l.pool, 1, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_open(&cache, NULL, 1, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "max_lanes is 0; use 1 to 4096", gdn_cache_open(&cache, l.pool, 0, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "max_lanes is 4097", gdn_cache_open(&cache, l.pool, 4097, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "max_window is -1; use 0 to 1024", gdn_cache_open(&cache, l.pool, 1, -1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "max_window is 1025", gdn_cache_open(&cache, l.pool, 1, 1025, &err));
    assert_null(cache);
    gdn_cache_close(NULL);
    ACCEPTED(gdn_cache_open(&cache, l.pool, 4096, 0, NULL)); /* an error is optional */
    assert_int_equal(gdn_cache_open(&cache, NULL, 1, 0, NULL), GDN_BAD_ARGUMENT);
    gdn_cache_close(cache);
    lab_close(&l);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static void fresh_lanes(void **unused)
{
    lab          l;
    const float *state = (const float *)&l;
    const void  *tail = &l;
    (void)unused;
    lab_open(&l, GDN_F32, 2, 3);
    gdn_cache *cache = lab_cache(&l, 0, 3, 0);
    assert_int_equal(gdn_cache_lanes(cache), 0);
    assert_int_equal(gdn_cache_offset(cache), 0);
    assert_int_equal(gdn_cache_is_empty(cache), 1);
    ACCEPTED(gdn_cache_add(cache, 1, 0, &err));
    ACCEPTED(gdn_cache_add(cache, 1, 500, &err));
    assert_int_equal(gdn_cache_lanes(cache), 2);
    assert_int_equal(gdn_cache_offset(cache), 500);
    assert_int_equal(gdn_cache_lane_offset(cache, 0), 0);
    assert_int_equal(gdn_cache_lane_offset(cache, 1), 500);
    assert_int_equal(gdn_cache_lane_offset(cache, 2), -1);
    assert_int_equal(gdn_cache_lane_offset(cache, -1), -1);
    assert_int_equal(gdn_cache_is_empty(cache), 1);
    assert_int_equal(gdn_cache_has_state(cache, 0), 0);
    assert_int_equal(gdn_cache_has_state(cache, 2), 0);
    gdn_cache_peek(cache, 0, 0, &state, &tail);
    assert_true(!state && !tail);
    gdn_cache_peek(cache, 5, 0, &state, &tail);
    gdn_cache_peek(cache, 0, 2, &state, &tail);
    gdn_cache_peek(cache, 0, -1, &state, NULL);
    assert_true(!state && !tail);
    assert_int_equal(gdn_cache_bytes(cache), 0);
    assert_int_equal(gdn_cache_bytes_per_token(cache), 0);
    assert_int_equal(gdn_pool_free_slots(l.pool), 3); /* a lane without a state needs no slot */

    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_add(NULL, 1, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "add: -1 lanes", gdn_cache_add(cache, -1, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "offset -5", gdn_cache_add(cache, 1, -5, &err));
    REFUSED(GDN_BAD_ARGUMENT, "2 lanes do not fit, 2 of at most 3 are in use", gdn_cache_add(cache, 2, 0, &err));
    REFUSED(GDN_NOT_TRIMMABLE, "gdn_round_rollback", gdn_cache_trim(cache, 1, &err));
    assert_non_null(strstr(err.message, "gdn_round_begin"));
    watch(NULL, NULL, NULL);
    gdn_cache_close(cache);
    lab_close(&l);
}

static void lanes_hold_their_tokens(void **unused)
{
    static const int pieces[3][2] = {{2, 1}, {0, 3}, {1, 0}}, tokens[] = {11, 12, 21, 22, 23, 24, 13};
    (void)unused;
    for (int type = 0; type < 2; type++) {
        lab l;
        lab_open(&l, (gdn_type)type, 2, 4);
        gdn_cache *cache = lab_cache(&l, 2, 2, 0);
        for (int i = 0, first = 0; i < 3; first += pieces[i][0] + pieces[i][1], i++)
            lab_run(&l, cache, pieces[i], tokens + first);
        lab_expect(&l, cache, 0, A, 3, 3);
        lab_expect(&l, cache, 1, B, 4, 4);
        assert_int_equal(gdn_cache_offset(cache), 4);
        assert_int_equal(gdn_cache_is_empty(cache), 0);
        assert_int_equal(gdn_pool_free_slots(l.pool), 2);
        assert_int_equal(gdn_cache_bytes(cache), 2 * gdn_pool_slot_bytes(l.pool));
        for (int layer = 0; layer < 2; layer++) {
            const float *state;
            const void  *tail;
            gdn_cache_peek(cache, 1, layer, &state, &tail);
            assert_int_equal((uintptr_t)state % 64, 0);
            assert_int_equal((uintptr_t)tail % 64, 0);
        }
        gdn_cache_close(cache);
        assert_int_equal(gdn_pool_free_slots(l.pool), 4);
        lab_close(&l);
    }
}

/* A slot that was used before is no state for the next lane, although its memory is full. */
static void slots_do_not_leak(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 1);
    gdn_cache         *cache = lab_prefilled(&l, 1, 0, A, 5);
    const float *const memory = lane_state(cache, 0, 0);
    gdn_cache_close(cache);
#ifdef GDN_DEBUG
    for (size_t i = 0; i < l.state_bytes / sizeof *memory; i++) assert_true(isnan(memory[i]));
#endif
    cache = lab_cache(&l, 1, 1, 0);
    const int two = 2;
    ACCEPTED(lab_layer(&l, cache, 0, ragged(cache, &two), B, NULL));
    assert_ptr_equal(lane_state(cache, 0, 0), memory);
    assert_null(lane_state(cache, 0, 1)); /* written by the sequence before, not by this one */
    assert_int_equal(gdn_cache_has_state(cache, 0), 0);
    assert_int_equal(gdn_cache_is_empty(cache), 0);
    ACCEPTED(lab_layer(&l, cache, 1, ragged(cache, &two), B, NULL));
    lab_expect(&l, cache, 0, B, 2, 0);
    gdn_cache_close(cache);
    lab_close(&l);
}

static void counting(void **unused)
{
    lab       l;
    int       counts[2] = {7, 7};
    const int rows[2] = {2, 5}, negative[2] = {1, -1};
    (void)unused;
    lab_open(&l, GDN_BF16, 1, 2);
    gdn_cache *cache = lab_cache(&l, 2, 2, 0);
    ACCEPTED(gdn_cache_advance(cache, 3, counts, &err));
    assert_true(counts[0] == 3 && counts[1] == 3);
    ACCEPTED(gdn_cache_advance(cache, 0, NULL, &err));
    ACCEPTED(gdn_cache_advance_rows(cache, rows, &err));
    assert_int_equal(gdn_cache_lane_offset(cache, 0), 5);
    assert_int_equal(gdn_cache_lane_offset(cache, 1), 8);
    assert_int_equal(gdn_cache_offset(cache), 8);

    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_advance(NULL, 1, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "advance: -1 rows", gdn_cache_advance(cache, -1, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_advance_rows(NULL, rows, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_advance_rows(cache, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "the count of lane 1 is -1", gdn_cache_advance_rows(cache, negative, &err));
    gdn_cache_close(cache);

    cache = lab_cache(&l, 1, 2, 0);
    ACCEPTED(gdn_cache_add(cache, 1, INT64_MAX - 2, &err));
    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "lane 1", gdn_cache_advance(cache, 3, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "lane 1", gdn_cache_advance_rows(cache, rows, &err));
    watch(NULL, NULL, NULL);
    ACCEPTED(gdn_cache_advance(cache, 2, NULL, &err));
    gdn_cache_close(cache);
    lab_close(&l);
}

/* ---- padding ----------------------------------------------------------------------------------------------------- */

static void expect_mask(const gdn_cache *cache, int n, const char *expected)
{
    uint8_t mask[32];
    assert_int_equal(gdn_cache_make_mask(cache, n, mask), 1);
    for (size_t i = 0; i < strlen(expected); i++) assert_int_equal(mask[i], expected[i] == '1');
}

static void padding(void **unused)
{
    static const int left[3] = {0, 2, 5}, lengths[3] = {4, 0, 2}, negative[3] = {0, -1, 0};
    lab              l;
    int              counts[3];
    uint8_t          mask[3] = {9, 9, 9};
    (void)unused;
    lab_open(&l, GDN_BF16, 1, 3);
    gdn_cache *cache = lab_cache(&l, 3, 3, 0);
    assert_int_equal(gdn_cache_make_mask(cache, 1, mask), 0);
    assert_true(mask[0] == 9 && mask[1] == 9 && mask[2] == 9);

    ACCEPTED(gdn_cache_prepare(cache, left, NULL, &err));
    expect_mask(cache, 3,
                "111"
                "001"
                "000");
    ACCEPTED(gdn_cache_advance(cache, 3, counts, &err));
    assert_true(counts[0] == 3 && counts[1] == 1 && counts[2] == 0);
    expect_mask(cache, 3,
                "111"
                "111"
                "001");
    ACCEPTED(gdn_cache_advance(cache, 3, NULL, &err));
    assert_int_equal(gdn_cache_lane_offset(cache, 0), 6);
    assert_int_equal(gdn_cache_lane_offset(cache, 1), 4);
    assert_int_equal(gdn_cache_lane_offset(cache, 2), 1);
    gdn_cache_finalize(cache);
    assert_int_equal(gdn_cache_make_mask(cache, 1, mask), 0);

    ACCEPTED(gdn_cache_prepare(cache, NULL, lengths, &err));
    expect_mask(cache, 3,
                "111"
                "000"
                "110");
    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_STATE, "finalize the padding", gdn_cache_advance_rows(cache, left, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_prepare(NULL, left, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "exactly one", gdn_cache_prepare(cache, NULL, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "exactly one", gdn_cache_prepare(cache, left, lengths, &err));
    REFUSED(GDN_BAD_ARGUMENT, "the length of lane 1 is -1", gdn_cache_prepare(cache, NULL, negative, &err));
    REFUSED(GDN_BAD_ARGUMENT, "left_padding of lane 1 is -1", gdn_cache_prepare(cache, negative, NULL, &err));
    watch(NULL, NULL, NULL);
    ACCEPTED(gdn_cache_advance(cache, 3, counts, &err));
    assert_true(counts[0] == 3 && counts[1] == 0 && counts[2] == 2);
    expect_mask(cache, 2,
                "10"
                "00"
                "00");

    /* The rows kept keep their padding. */
    ACCEPTED(gdn_cache_prepare(cache, left, NULL, &err));
    const int kept[] = {1, 2};
    ACCEPTED(gdn_cache_filter(cache, kept, 2, &err));
    expect_mask(cache, 4,
                "0011"
                "0000");
    gdn_cache_close(cache);
    lab_close(&l);
}

static void merged_padding(void **unused)
{
    static const int left = 1, length = 2;
    lab              l;
    uint8_t          mask[1];
    (void)unused;
    lab_open(&l, GDN_BF16, 1, 3);
    gdn_cache *dst = lab_prefilled(&l, 3, 0, A, 2), *src = lab_prefilled(&l, 1, 0, B, 2),
              *plain = lab_prefilled(&l, 1, 0, C, 2);
    ACCEPTED(gdn_cache_prepare(dst, &left, NULL, &err));
    ACCEPTED(gdn_cache_prepare(src, NULL, &length, &err));
    ACCEPTED(gdn_cache_merge(dst, src, &err));
    ACCEPTED(gdn_cache_merge(dst, plain, &err));
    expect_mask(dst, 3,
                "011"
                "110"
                "111");
    gdn_cache *alone;
    ACCEPTED(gdn_cache_extract(dst, 1, &alone, &err));
    assert_int_equal(gdn_cache_make_mask(alone, 1, mask), 0); /* a sequence of its own, without padding */
    gdn_cache_close(alone);
    gdn_cache_close(plain);
    gdn_cache_close(src);
    gdn_cache_close(dst);
    lab_close(&l);
}

/* A masked row does not exist: states and tails are those of the valid tokens, outputs there are 0, and a lane without a
 * valid row gets no slot. */
static void masked_rows(void **unused)
{
    static const int padded[2][3][3] = {{{99, 11, 12}, {21, 22, 23}, {99, 99, 99}},
                                        {{13, 14, 99}, {24, 99, 99}, {99, 31, 99}}};
    static const int left[3] = {1, 0, 3}, lengths[3] = {2, 1, 2};
    (void)unused;
    for (int type = 0; type < 2; type++) {
        lab     l;
        uint8_t mask[9];
        lab_open(&l, (gdn_type)type, 2, 3);
        unsigned char *y = malloc(9 * l.z_row), *zero = calloc(1, l.z_row);
        gdn_cache     *cache = lab_cache(&l, 3, 3, 0);
        assert_true(y && zero);
        for (int half = 0; half < 2; half++) {
            ACCEPTED(gdn_cache_prepare(cache, half ? NULL : left, half ? lengths : NULL, &err));
            assert_int_equal(gdn_cache_make_mask(cache, 3, mask), 1);
            if (half) mask[6] = 0; /* any mask, not only those of padding */
            const gdn_batch batch = {.n_lanes = 3, .length = 3, .mask = mask};
            for (int layer = 0; layer < 2; layer++) {
                ACCEPTED(lab_layer(&l, cache, layer, batch, &padded[half][0][0], y));
                for (size_t i = 0; i < 9; i++) assert_int_equal(!memcmp(y + i * l.z_row, zero, l.z_row), !mask[i]);
            }
            ACCEPTED(gdn_cache_advance(cache, 3, NULL, &err));
            gdn_cache_finalize(cache);
            if (!half) assert_int_equal(gdn_pool_free_slots(l.pool), 1);
            if (!half) assert_null(lane_state(cache, 2, 0));
        }
        lab_expect(&l, cache, 0, A, 4, 4);
        lab_expect(&l, cache, 1, B, 4, 4);
        lab_expect(&l, cache, 2, C, 1, 2);
        free(y);
        free(zero);
        gdn_cache_close(cache);
        lab_close(&l);
    }
}

/* ---- batch operations -------------------------------------------------------------------------------------------- */

static void merge_moves_indices(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 2);
    gdn_cache *dst = lab_cache(&l, 0, 2, 0), *a = lab_prefilled(&l, 1, 0, A, 3), *b = lab_prefilled(&l, 1, 0, B, 5);
    const float *const of_a = lane_state(a, 0, 1), *const of_b = lane_state(b, 0, 1);
    ACCEPTED(gdn_cache_merge(dst, a, &err)); /* an empty one adopts; no slot is free for a copy */
    ACCEPTED(gdn_cache_merge(dst, b, &err));
    ACCEPTED(gdn_cache_merge(dst, a, &err)); /* nothing is left in it */
    assert_int_equal(gdn_cache_lanes(a), 0);
    assert_int_equal(gdn_cache_lanes(dst), 2);
    assert_ptr_equal(lane_state(dst, 0, 1), of_a);
    assert_ptr_equal(lane_state(dst, 1, 1), of_b);
    assert_int_equal(gdn_cache_offset(dst), 5);
    gdn_cache_close(a);
    gdn_cache_close(b);
    lab_expect(&l, dst, 0, A, 3, 3);
    lab_expect(&l, dst, 1, B, 5, 5);
    const int one[] = {1, 1}, next[] = {A[3], B[5]};
    lab_run(&l, dst, one, next);
    lab_expect(&l, dst, 0, A, 4, 4);
    lab_expect(&l, dst, 1, B, 6, 6);
    gdn_cache_close(dst);
    lab_close(&l);
}

static void merge_refusals(void **unused)
{
    lab l, other;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 8);
    lab_open(&other, GDN_BF16, 2, 1);
    gdn_cache *dst = lab_prefilled(&l, 2, 2, A, 3), *src = lab_prefilled(&l, 2, 2, B, 3),
              *away = lab_prefilled(&other, 1, 0, C, 3);
    watch(&l, dst, src);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_merge(NULL, src, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_merge(dst, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "the same cache", gdn_cache_merge(dst, dst, &err));
    REFUSED(GDN_BAD_ARGUMENT, "different pools", gdn_cache_merge(dst, away, &err));
    ACCEPTED(gdn_round_begin(src, &err));
    REFUSED(GDN_BAD_STATE, "merge: src: a speculative round is armed", gdn_cache_merge(dst, src, &err));
    REFUSED(GDN_BAD_STATE, "merge: dst: a speculative round is armed", gdn_cache_merge(src, dst, &err));
    gdn_cache_close(src);

    src = lab_prefilled(&l, 2, 0, B, 3);
    ACCEPTED(gdn_cache_add(src, 1, 0, &err));
    watch(&l, dst, src);
    REFUSED(GDN_BAD_ARGUMENT, "2 lanes do not fit, 1 of at most 2", gdn_cache_merge(dst, src, &err));
    const int second = 1;
    watch(NULL, NULL, NULL);
    ACCEPTED(gdn_cache_filter(src, &second, 1, &err));
    watch(&l, dst, src);
    REFUSED(GDN_BAD_STATE, "lane 0 has no state in layer 0", gdn_cache_merge(dst, src, &err));
    const int one = 1;
    watch(NULL, NULL, NULL);
    ACCEPTED(lab_layer(&l, src, 0, ragged(src, &one), A, NULL));
    watch(&l, dst, src);
    REFUSED(GDN_BAD_STATE, "lane 0 has no state in layer 1", gdn_cache_merge(dst, src, &err));
    watch(NULL, NULL, NULL);
    gdn_cache_close(src);
    gdn_cache_close(dst);
    gdn_cache_close(away);
    lab_close(&other);
    lab_close(&l);
}

static void filter_keeps_rows(void **unused)
{
    static const int n_tokens[4] = {1, 2, 3, 1}, tokens[] = {11, 21, 22, 31, 32, 33, 99};
    static const int twice[] = {1, 1}, falling[] = {2, 0}, beyond[] = {0, 4}, below[] = {-1, 0}, kept[] = {0, 2};
    lab              l;
    (void)unused;
    lab_open(&l, GDN_BF16, 1, 5);
    gdn_cache *cache = lab_cache(&l, 4, 4, 1);
    lab_run(&l, cache, n_tokens, tokens);
    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_filter(NULL, kept, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "rows is NULL", gdn_cache_filter(cache, NULL, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "-1 rows of 4 lanes", gdn_cache_filter(cache, kept, -1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "5 rows of 4 lanes", gdn_cache_filter(cache, kept, 5, &err));
    REFUSED(GDN_BAD_ARGUMENT, "rows[1] is 1 after 1", gdn_cache_filter(cache, twice, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "rows[1] is 0 after 2", gdn_cache_filter(cache, falling, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane 4; use 0 to 3", gdn_cache_filter(cache, beyond, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane -1", gdn_cache_filter(cache, below, 2, &err));
    watch(NULL, NULL, NULL);
    const float *const third = lane_state(cache, 2, 0);
    ACCEPTED(gdn_cache_filter(cache, kept, 2, &err));
    assert_int_equal(gdn_pool_free_slots(l.pool), 3);
    assert_ptr_equal(lane_state(cache, 1, 0), third);
    lab_expect(&l, cache, 0, A, 1, 1);
    lab_expect(&l, cache, 1, C, 3, 3);
    ACCEPTED(gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_STATE, "filter: a speculative round is armed", gdn_cache_filter(cache, kept, 1, &err));
    gdn_cache_close(cache);
    cache = lab_prefilled(&l, 1, 0, A, 1);
    ACCEPTED(gdn_cache_filter(cache, NULL, 0, &err));
    assert_int_equal(gdn_cache_lanes(cache), 0);
    assert_int_equal(gdn_pool_free_slots(l.pool), 5);
    gdn_cache_close(cache);
    lab_close(&l);
}

/* The two lanes of an extract share a slot until one of them writes; the last one writes in place. */
static void extract_shares(void **unused)
{
    (void)unused;
    for (int extracted_first = 0; extracted_first < 2; extracted_first++) {
        lab       l;
        const int one = 1;
        lab_open(&l, GDN_BF16, 3, 2);
        gdn_cache         *cache = lab_prefilled(&l, 1, 1, A, 4), *alone = NULL;
        const float *const shared = lane_state(cache, 0, 2);
        ACCEPTED(gdn_cache_extract(cache, 0, &alone, &err));
        assert_int_equal(gdn_pool_free_slots(l.pool), 1);
        assert_ptr_equal(lane_state(alone, 0, 2), shared);
        lab_expect(&l, alone, 0, A, 4, 4);
        gdn_cache *first = extracted_first ? alone : cache, *second = extracted_first ? cache : alone;
        lab_run(&l, first, &one, A + 4);
        assert_int_equal(gdn_pool_free_slots(l.pool), 0);
        lab_run(&l, second, &one, B);
        assert_int_equal(gdn_pool_free_slots(l.pool), 0);
        assert_ptr_equal(lane_state(second, 0, 2), shared);
        lab_expect(&l, first, 0, A, 5, 5);
        const int other[] = {11, 12, 13, 14, 21};
        lab_expect(&l, second, 0, other, 5, 5);
        REFUSED(GDN_BAD_ARGUMENT, "1 of at most 1", gdn_cache_add(alone, 1, 0, &err));
        gdn_cache_close(second);
        ACCEPTED(gdn_round_begin(first, &err)); /* the window came along */
        lab_run(&l, first, &one, A + 5);
        ACCEPTED(gdn_round_commit(first, &err));
        lab_expect(&l, first, 0, A, 6, 6);
        gdn_cache_close(first);
        assert_int_equal(gdn_pool_free_slots(l.pool), 2);
        lab_close(&l);
    }
}

static void extract_refusals(void **unused)
{
    lab        l;
    gdn_cache *out = NULL;
    (void)unused;
    lab_open(&l, GDN_BF16, 1, 2);
    gdn_cache *cache = lab_cache(&l, 0, 2, 1);
    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_extract(NULL, 0, &out, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_extract(cache, 0, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "without lanes", gdn_cache_extract(cache, 0, &out, &err));
    ACCEPTED(gdn_cache_add(cache, 1, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane 1", gdn_cache_extract(cache, 1, &out, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane -1", gdn_cache_extract(cache, -1, &out, &err));
    REFUSED(GDN_BAD_STATE, "lane 0 has no state", gdn_cache_extract(cache, 0, &out, &err));
    ACCEPTED(gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_STATE, "extract: a speculative round is armed", gdn_cache_extract(cache, 0, &out, &err));
    REFUSED(GDN_BAD_STATE, "add: a speculative round is armed", gdn_cache_add(cache, 1, 0, &err));
    REFUSED(GDN_BAD_STATE, "prepare: a speculative round is armed", gdn_cache_prepare(cache, C, NULL, &err));
    assert_null(out);
    watch(NULL, NULL, NULL);
    gdn_cache_close(cache);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pool_ranges),
        cmocka_unit_test(absurd_sizes),
        cmocka_unit_test(cache_ranges),
        cmocka_unit_test(fresh_lanes),
        cmocka_unit_test(lanes_hold_their_tokens),
        cmocka_unit_test(slots_do_not_leak),
        cmocka_unit_test(counting),
        cmocka_unit_test(padding),
        cmocka_unit_test(merged_padding),
        cmocka_unit_test(masked_rows),
        cmocka_unit_test(merge_moves_indices),
        cmocka_unit_test(merge_refusals),
        cmocka_unit_test(filter_keeps_rows),
        cmocka_unit_test(extract_shares),
        cmocka_unit_test(extract_refusals),
    };
    return cmocka_run_group_tests_name("cache", tests, NULL, NULL);
}
