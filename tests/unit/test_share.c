/* Single lanes of a cache that become views of others, or empty. */
#include "unit/lanes.h"

/* Tokens of three sequences. */
static const int A[] = {11, 12, 13, 14, 15}, B[] = {21, 22, 23, 24}, C[] = {31, 32};

/* A lane becomes a view of another one, in its cache or in a second one; whoever runs next writes to a slot of its own. */
static void share_and_clear(void **unused)
{
    lab       l;
    const int both[] = {1, 1}, tokens[] = {A[4], B[0]}, parted[] = {11, 12, 13, 14, 21}, n[] = {4, 2}, one = 1;
    const int start[] = {A[0], A[1], A[2], A[3], C[0], C[1]}, padding[] = {2, 0}, second_only[] = {0, 1};
    uint8_t   mask[4];
    (void)unused;
    lab_open(&l, GDN_BF16, 3, 4);
    gdn_cache *cache = lab_cache(&l, 2, 2, 0), *kept = lab_cache(&l, 1, 1, 0);
    lab_run(&l, cache, n, start);
    assert_int_equal(gdn_pool_free_slots(l.pool), 2);
    ACCEPTED(gdn_cache_share(kept, 0, cache, 0, &err));
    ACCEPTED(gdn_cache_share(cache, 1, cache, 0, &err)); /* what lane 1 held is given back */
    assert_int_equal(gdn_pool_free_slots(l.pool), 3);
    assert_ptr_equal(lane_state(cache, 1, 2), lane_state(cache, 0, 2));
    assert_ptr_equal(lane_state(kept, 0, 2), lane_state(cache, 0, 2));
    lab_expect(&l, cache, 1, A, 4, 4);
    ACCEPTED(gdn_cache_share(cache, 1, cache, 1, &err)); /* itself: nothing */
    lab_run(&l, cache, both, tokens);                    /* the two part, and from what is kept */
    assert_int_equal(gdn_pool_free_slots(l.pool), 1);
    lab_expect(&l, cache, 0, A, 5, 5);
    lab_expect(&l, cache, 1, parted, 5, 5);
    lab_expect(&l, kept, 0, A, 4, 4);
    ACCEPTED(gdn_cache_prepare(cache, padding, NULL, &err));
    ACCEPTED(gdn_cache_share(cache, 0, kept, 0, &err)); /* back to what was kept, without padding */
    assert_int_equal(gdn_cache_make_mask(cache, 2, mask), 1);
    assert_memory_equal(mask, "\1\1\1\1", 4);
    gdn_cache_finalize(cache);
    lab_expect(&l, cache, 0, A, 4, 4);
    lab_run(&l, cache, second_only, B + 1); /* a lane without tokens is not touched and needs no slot */
    lab_expect(&l, cache, 0, A, 4, 4);
    ACCEPTED(gdn_cache_clear(cache, 0, &err));
    lab_expect(&l, cache, 0, NULL, 0, 0);
    lab_expect(&l, kept, 0, A, 4, 4);
    ACCEPTED(gdn_cache_share(kept, 0, cache, 0, &err)); /* of a lane without a state */
    lab_expect(&l, kept, 0, NULL, 0, 0);
    assert_int_equal(gdn_pool_free_slots(l.pool), 3);
    lab_run(&l, kept, &one, C);
    lab_expect(&l, kept, 0, C, 1, 1);
    gdn_cache_close(cache);
    gdn_cache_close(kept);
    assert_int_equal(gdn_pool_free_slots(l.pool), 4);
    lab_close(&l);
}

static void share_and_clear_refusals(void **unused)
{
    lab       l, other;
    const int one = 1;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    lab_open(&other, GDN_BF16, 2, 2);
    gdn_cache *cache = lab_prefilled(&l, 2, 1, A, 3), *second = lab_prefilled(&l, 2, 1, B, 2);
    gdn_cache *foreign = lab_prefilled(&other, 1, 0, A, 1);
    watch(&l, cache, second);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_share(NULL, 0, cache, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_share(cache, 0, NULL, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "different pools", gdn_cache_share(cache, 0, foreign, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "share: dst: there is no lane 1", gdn_cache_share(cache, 1, second, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "share: src: there is no lane -1", gdn_cache_share(cache, 0, second, -1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_cache_clear(NULL, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane 1", gdn_cache_clear(cache, 1, &err));
    ACCEPTED(gdn_round_begin(second, &err));
    REFUSED(GDN_BAD_STATE, "share: src: a speculative round", gdn_cache_share(cache, 0, second, 0, &err));
    REFUSED(GDN_BAD_STATE, "share: dst: a speculative round", gdn_cache_share(second, 0, cache, 0, &err));
    REFUSED(GDN_BAD_STATE, "clear: a speculative round", gdn_cache_clear(second, 0, &err));
    lab_run(&l, second, &one, B + 2);
    ACCEPTED(gdn_round_commit(second, &err));

    /* In the middle of a step a lane cannot be shared, with an old state beneath it or without; but it can be replaced. */
    ACCEPTED(gdn_cache_add(second, 1, 0, &err));
    ACCEPTED(gdn_cache_share(cache, 0, second, 0, &err));
    const int n[] = {1, 1}, tokens[] = {B[3], C[0]};
    ACCEPTED(lab_layer(&l, second, 0, ragged(second, n), tokens, NULL));
    REFUSED(GDN_BAD_STATE, "middle of a step", gdn_cache_share(cache, 0, second, 0, &err));
    REFUSED(GDN_BAD_STATE, "lane 1 has no state in layer 1", gdn_cache_share(cache, 0, second, 1, &err));
    ACCEPTED(gdn_cache_share(second, 0, cache, 0, &err));
    ACCEPTED(gdn_cache_clear(second, 1, &err));
    lab_expect(&l, second, 0, B, 3, 3);
    lab_expect(&l, second, 1, NULL, 0, 0);
    assert_int_equal(gdn_pool_free_slots(l.pool), 3);
    watch(NULL, NULL, NULL);
    gdn_cache_close(cache);
    gdn_cache_close(second);
    gdn_cache_close(foreign);
    lab_close(&l);
    lab_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(share_and_clear), cmocka_unit_test(share_and_clear_refusals)};
    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
