/* The layer over a cache: steps that are half done, slots that run out, and every refusal. */
#include "unit/lanes.h"

static const int A[] = {11, 12, 13, 14, 15, 16}, B[] = {21, 22, 23, 24};
static const int one = 1;

/* A forward on a shared slot writes a fresh one, layer by layer; until the last layer has run, the lane is in the middle of
 * a step and whatever would take it apart is refused. */
static void half_a_step(void **unused)
{
    lab        l;
    gdn_cache *alone = NULL, *out = NULL;
    const int  zero = 0;
    (void)unused;
    lab_open(&l, GDN_BF16, 3, 4);
    gdn_cache    *cache = lab_prefilled(&l, 2, 2, A, 3), *other = lab_prefilled(&l, 2, 2, B, 2);
    gdn_snapshot *snapshot = NULL;
    ACCEPTED(gdn_cache_extract(cache, 0, &alone, &err));
    const float *const old[] = {lane_state(cache, 0, 0), lane_state(cache, 0, 1)};
    ACCEPTED(lab_layer(&l, cache, 0, ragged(cache, &one), A + 3, NULL));
    assert_int_equal(gdn_pool_free_slots(l.pool), 1);
    assert_ptr_not_equal(lane_state(cache, 0, 0), old[0]);
    assert_ptr_equal(lane_state(cache, 0, 1), old[1]); /* until layer 1 has run, its state is the shared one */
    assert_int_equal(gdn_cache_has_state(cache, 0), 1);
    lab_expect(&l, alone, 0, A, 3, 3);

    watch(&l, cache, other);
    REFUSED(GDN_BAD_STATE, "begin: lane 0 is in the middle of a step, layer 1 has not run",
            gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_STATE, "layer 1 has not run", gdn_cache_merge(other, cache, &err));
    REFUSED(GDN_BAD_STATE, "layer 1 has not run", gdn_cache_merge(cache, other, &err));
    REFUSED(GDN_BAD_STATE, "layer 1 has not run", gdn_cache_filter(cache, &zero, 1, &err));
    REFUSED(GDN_BAD_STATE, "layer 1 has not run", gdn_cache_extract(cache, 0, &out, &err));
    REFUSED(GDN_BAD_STATE, "layer 1 has not run", gdn_snapshot_take(&snapshot, cache, 0, &err));
    watch(NULL, NULL, NULL);
    ACCEPTED(lab_layer(&l, cache, 2, ragged(cache, &one), A + 3, NULL)); /* in any order */
    watch(&l, cache, other);
    REFUSED(GDN_BAD_STATE, "layer 1 has not run", gdn_cache_filter(cache, &zero, 1, &err));
    assert_true(!out && !snapshot);

    watch(NULL, NULL, NULL);
    gdn_cache_close(alone); /* the old slot is now this lane's only: nothing changes for it */
    ACCEPTED(lab_layer(&l, cache, 1, ragged(cache, &one), A + 3, NULL));
    ACCEPTED(gdn_cache_advance(cache, 1, NULL, &err));
    lab_expect(&l, cache, 0, A, 4, 4);
    assert_int_equal(gdn_pool_free_slots(l.pool), 2);
    ACCEPTED(gdn_cache_merge(other, cache, &err));
    lab_expect(&l, other, 1, A, 4, 4);
    gdn_cache_close(cache);
    gdn_cache_close(other);
    lab_close(&l);
}

/* A cache may be closed, and a lane restored, in the middle of a step. */
static void half_a_step_given_up(void **unused)
{
    lab           l;
    gdn_cache    *alone;
    gdn_snapshot *snapshot;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 3);
    gdn_cache *cache = lab_prefilled(&l, 1, 0, A, 3);
    ACCEPTED(gdn_snapshot_take(&snapshot, cache, 0, &err));
    ACCEPTED(gdn_cache_extract(cache, 0, &alone, &err));
    ACCEPTED(lab_layer(&l, alone, 0, ragged(alone, &one), B, NULL));
    assert_int_equal(gdn_pool_free_slots(l.pool), 1);
    ACCEPTED(gdn_snapshot_restore(alone, 0, snapshot, &err));
    lab_expect(&l, alone, 0, A, 3, 3);
    gdn_cache_close(cache);
    assert_int_equal(gdn_pool_free_slots(l.pool), 2); /* the restored lane does not hold the shared slot any more */
    ACCEPTED(gdn_cache_extract(alone, 0, &cache, &err));
    ACCEPTED(lab_layer(&l, cache, 1, ragged(cache, &one), B, NULL));
    gdn_cache_close(cache);
    gdn_cache_close(alone);
    assert_int_equal(gdn_pool_free_slots(l.pool), 3);
    gdn_snapshot_release(snapshot);
    lab_close(&l);
}

/* Two lanes of one cache on one slot, fed together and apart. */
static void lanes_that_share(void **unused)
{
    static const int both[] = {1, 1}, first[] = {1, 0}, tokens[] = {14, 21};
    (void)unused;
    for (int apart = 0; apart < 2; apart++) {
        lab        l;
        gdn_cache *copy;
        lab_open(&l, GDN_BF16, 2, 3);
        gdn_cache *cache = lab_prefilled(&l, 2, 0, A, 3);
        ACCEPTED(gdn_cache_extract(cache, 0, &copy, &err));
        ACCEPTED(gdn_cache_merge(cache, copy, &err));
        gdn_cache_close(copy);
        assert_int_equal(gdn_pool_free_slots(l.pool), 2);
        assert_int_equal(gdn_cache_bytes(cache), gdn_pool_slot_bytes(l.pool));
        assert_ptr_equal(lane_state(cache, 0, 0), lane_state(cache, 1, 0));
        if (apart) {
            const int second[] = {0, 1};
            lab_run(&l, cache, first, tokens);
            lab_expect(&l, cache, 1, A, 3, 3);
            lab_run(&l, cache, second, tokens + 1);
        } else {
            lab_run(&l, cache, both, tokens);
        }
        const int forked[] = {11, 12, 13, 21};
        lab_expect(&l, cache, 0, A, 4, 4);
        lab_expect(&l, cache, 1, forked, 4, 4);
        assert_int_equal(gdn_pool_free_slots(l.pool), 1);
        assert_int_equal(gdn_cache_bytes(cache), 2 * gdn_pool_slot_bytes(l.pool));
        gdn_cache_close(cache);
        lab_close(&l);
    }
}

static void no_slot(void **unused)
{
    static const int two[] = {1, 1}, second[] = {0, 1}, tokens[] = {11, 21};
    lab              l;
    gdn_cache       *alone;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 1);
    gdn_cache *cache = lab_cache(&l, 2, 2, 0);
    watch(&l, cache, NULL);
    REFUSED(GDN_NO_SLOT, "2 slots are needed and 1 of the pool's 1 are free",
            lab_layer(&l, cache, 0, ragged(cache, two), tokens, NULL));
    watch(NULL, NULL, NULL);
    lab_run(&l, cache, second, tokens + 1); /* one of them has room */
    lab_expect(&l, cache, 1, B, 1, 1);
    lab_expect(&l, cache, 0, A, 0, 0);
    gdn_cache_close(cache);

    cache = lab_prefilled(&l, 1, 0, A, 2);
    ACCEPTED(gdn_cache_extract(cache, 0, &alone, &err)); /* sharing needs none, writing does */
    watch(&l, cache, alone);
    REFUSED(GDN_NO_SLOT, "1 slots are needed", lab_layer(&l, alone, 0, ragged(alone, &one), B, NULL));
    watch(NULL, NULL, NULL);
    gdn_cache_close(cache);
    lab_run(&l, alone, &one, A + 2);
    lab_expect(&l, alone, 0, A, 3, 3);
    gdn_cache_close(alone);
    lab_close(&l);
}

/* A lane without tokens in a forward needs no slot and stays as it is, a stateless one without a state. */
static void no_tokens(void **unused)
{
    static const int none[] = {0, 0};
    lab              l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 1);
    gdn_cache *cache = lab_prefilled(&l, 2, 0, A, 2);
    ACCEPTED(gdn_cache_add(cache, 1, 9, &err));
    lab_run(&l, cache, none, A);
    lab_expect(&l, cache, 0, A, 2, 2);
    lab_expect(&l, cache, 1, B, 0, 9);
    const gdn_layer_args nothing = {.batch = ragged(cache, none)}; /* without rows the arrays may be NULL */
    ACCEPTED(gdn_delta_layer(l.compute, cache, 0, &l.weights[0], &nothing, &err));
    gdn_cache_close(cache);
    lab_close(&l);
}

static void layer_refusals(void **unused)
{
    static const int     negative[] = {1, -1}, good[] = {1, 1};
    static const uint8_t mask[] = {1, 1};
    lab                  l;
    static float         memory[4096];
    (void)unused;
    lab_open(&l, GDN_F32, 2, 2);
    gdn_cache           *cache = lab_cache(&l, 2, 2, 0);
    const gdn_layer_args args = {
        .batch = ragged(cache, good), .qkv = memory, .z = memory, .a = memory, .b = memory, .y = memory};
    gdn_layer_args    bad = args;
    gdn_delta_weights w = l.weights[0];
    watch(&l, cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_delta_layer(NULL, cache, 0, &w, &args, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_delta_layer(l.compute, NULL, 0, &w, &args, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_delta_layer(l.compute, cache, 0, NULL, &args, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_delta_layer(l.compute, cache, 0, &w, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no layer 2; use 0 to 1", gdn_delta_layer(l.compute, cache, 2, &w, &args, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no layer -1", gdn_delta_layer(l.compute, cache, -1, &w, &args, &err));
    const float **const pointers[] = {&w.conv, &w.A_log, &w.dt_bias, &w.norm};
    for (int i = 0; i < 4; i++) {
        const float *const kept = *pointers[i];
        *pointers[i] = NULL;
        REFUSED(GDN_BAD_ARGUMENT, "conv, A_log, dt_bias and norm",
                gdn_delta_layer(l.compute, cache, 0, &w, &args, &err));
        *pointers[i] = kept;
    }
    const float eps[] = {0.0f, -1e-6f, 2.0f, NAN};
    for (int i = 0; i < 4; i++) {
        w.norm_eps = eps[i];
        REFUSED(GDN_BAD_ARGUMENT, "norm_eps", gdn_delta_layer(l.compute, cache, 0, &w, &args, &err));
    }
    w = l.weights[0];
    bad.batch.n_lanes = 3;
    bad.batch.n_tokens = NULL;
    REFUSED(GDN_BAD_ARGUMENT, "the batch has 3 lanes, the cache 2",
            gdn_delta_layer(l.compute, cache, 0, &w, &bad, &err));
    bad = args;
    bad.batch.n_tokens = negative;
    REFUSED(GDN_BAD_ARGUMENT, "lane 1", gdn_delta_layer(l.compute, cache, 0, &w, &bad, &err));
    bad = args;
    bad.batch.mask = mask;
    REFUSED(GDN_BAD_ARGUMENT, "mask", gdn_delta_layer(l.compute, cache, 0, &w, &bad, &err));
    for (int i = 0; i < 5; i++) {
        bad = args;
        if (i == 0) bad.qkv = NULL;
        if (i == 1) bad.z = NULL;
        if (i == 2) bad.a = NULL;
        if (i == 3) bad.b = NULL;
        if (i == 4) bad.y = NULL;
        REFUSED(GDN_BAD_ARGUMENT, "qkv, z, a, b and y", gdn_delta_layer(l.compute, cache, 0, &w, &bad, &err));
    }
    bad = args;
    bad.qkv_stride = 127;
    REFUSED(GDN_BAD_ARGUMENT, "127 and 0 apart", gdn_delta_layer(l.compute, cache, 0, &w, &bad, &err));
    bad = args;
    bad.z_stride = 63;
    REFUSED(GDN_BAD_ARGUMENT, "0 and 63 apart", gdn_delta_layer(l.compute, cache, 0, &w, &bad, &err));
    watch(NULL, NULL, NULL);
    assert_int_equal(gdn_pool_free_slots(l.pool), 2);
    gdn_cache_close(cache);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_a_step),      cmocka_unit_test(half_a_step_given_up),
        cmocka_unit_test(lanes_that_share), cmocka_unit_test(no_slot),
        cmocka_unit_test(no_tokens),        cmocka_unit_test(layer_refusals),
    };
    return cmocka_run_group_tests_name("layer", tests, NULL, NULL);
}
