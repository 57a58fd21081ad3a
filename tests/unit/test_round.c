/* Speculative rounds: what commit, rollback and a stale round leave, bit for bit, and every refusal. */
#include "unit/lanes.h"
#include "state/cache.h"

enum { WINDOW = 5 };
static const int A[] = {11, 12, 13, 14, 15, 16, 17, 18, 19}, B[] = {21, 22, 23, 24, 25, 26, 27};
static const int one = 1, zero = 0;

/* Two lanes, 3 tokens of A and 1 of B in their states. */
static gdn_cache *two_lanes(lab *l)
{
    static const int n_tokens[] = {3, 1}, tokens[] = {11, 12, 13, 21};
    gdn_cache       *cache = lab_cache(l, 2, 3, WINDOW);
    lab_run(l, cache, n_tokens, tokens);
    return cache;
}

/* Arm a round and feed it the next na tokens of A and nb of B. */
static void verify(lab *l, gdn_cache *cache, int na, int nb)
{
    const int n_tokens[] = {na, nb};
    int       tokens[2 * WINDOW];
    memcpy(tokens, A + 3, (size_t)na * sizeof *A);
    memcpy(tokens + na, B + 1, (size_t)nb * sizeof *B);
    ACCEPTED(gdn_round_begin(cache, &err));
    lab_forward(l, cache, ragged(cache, n_tokens), tokens);
}

static void expect_both(lab *l, const gdn_cache *cache, int na, int nb)
{
    lab_expect(l, cache, 0, A, na, na);
    lab_expect(l, cache, 1, B, nb, nb);
}

/* ---- the three ends of a round ------------------------------------------------------------------------------------ */

static void every_rollback(void **unused)
{
    (void)unused;
    for (int type = 0; type < 2; type++) {
        lab l;
        lab_open(&l, (gdn_type)type, 2, 4);
        for (int window = 0; window <= WINDOW; window++)
            for (int keep = 0; keep <= window; keep++) {
                gdn_cache *cache = two_lanes(&l);
                const int  other = WINDOW - window, keeps[] = {keep, keep % (other + 1)}, next[] = {1, 1};
                verify(&l, cache, window, other);
                if (keep % 2)
                    ACCEPTED(gdn_cache_advance(cache, 4, NULL, &err)); /* counted or not, the round sets the offset */
                assert_int_equal(gdn_pool_free_slots(l.pool), (window == 0) + (other == 0));
                ACCEPTED(gdn_round_rollback(l.compute, cache, keeps, 2, &err));
                assert_int_equal(gdn_pool_free_slots(l.pool), 2);
                expect_both(&l, cache, 3 + keeps[0], 1 + keeps[1]);
                const int tokens[] = {A[3 + keeps[0]], B[1 + keeps[1]]};
                lab_run(&l, cache, next, tokens);
                expect_both(&l, cache, 4 + keeps[0], 2 + keeps[1]);
                gdn_cache_close(cache);
            }
        lab_close(&l);
    }
}

/* Nothing is copied or computed: after a commit the lane is the shadow that the forward wrote, after keep 0 the slot that it had, and
 * a whole window that is kept is a commit. */
static void ends_without_copies(void **unused)
{
    (void)unused;
    for (int end = 0; end < 3; end++) {
        lab l;
        lab_open(&l, GDN_BF16, 2, 4);
        gdn_cache   *cache = two_lanes(&l);
        const float *old[2], *shadow[2];
        const int    all[] = {4, 2};
        for (int lane = 0; lane < 2; lane++) old[lane] = lane_state(cache, lane, 1);
        verify(&l, cache, 4, 2);
        for (int lane = 0; lane < 2; lane++) shadow[lane] = lane_state(cache, lane, 1);
        float *const seen = (float *)(uintptr_t)shadow[0], kept = *seen;
        *seen = 42; /* stays if nothing is written */
        if (end == 0) ACCEPTED(gdn_round_commit(cache, &err));
        if (end == 1) ACCEPTED(gdn_round_rollback(l.compute, cache, all, 2, &err));
        if (end == 2) ACCEPTED(gdn_round_rollback(l.compute, cache, &zero, 1, &err));
        for (int lane = 0; lane < 2; lane++) {
            assert_ptr_not_equal(old[lane], shadow[lane]);
            assert_ptr_equal(lane_state(cache, lane, 1), end == 2 ? old[lane] : shadow[lane]);
        }
        if (end < 2) {
            assert_true(*seen == 42);
            *seen = kept;
        }
        expect_both(&l, cache, end == 2 ? 3 : 7, end == 2 ? 1 : 3);
        assert_int_equal(gdn_round_window(cache, 0), -1);
        gdn_cache_close(cache);
        lab_close(&l);
    }
}

/* A round may be the first that a lane sees: back to keep 0 means back to no state. */
static void from_no_state(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 2);
    for (int keep = 0; keep <= 4; keep++) {
        gdn_cache *cache = lab_cache(&l, 1, 1, WINDOW);
        const int  n = 4;
        ACCEPTED(gdn_round_begin(cache, &err));
        lab_forward(&l, cache, ragged(cache, &n), A);
        assert_int_equal(gdn_pool_free_slots(l.pool), 1);
        if (keep == 4) ACCEPTED(gdn_round_commit(cache, &err));
        else ACCEPTED(gdn_round_rollback(l.compute, cache, &keep, 1, &err));
        lab_expect(&l, cache, 0, A, keep, keep);
        assert_int_equal(gdn_pool_free_slots(l.pool), keep ? 1 : 2);
        assert_int_equal(gdn_cache_is_empty(cache), !keep);
        gdn_cache_close(cache);
    }
    lab_close(&l);
}

static void one_count_for_all(void **unused)
{
    lab       l;
    const int two = 2;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    gdn_cache *cache = two_lanes(&l);
    verify(&l, cache, 4, 2);
    ACCEPTED(gdn_round_rollback(l.compute, cache, &two, 1, &err));
    expect_both(&l, cache, 5, 3);
    gdn_cache_close(cache);
    lab_close(&l);
}

/* A lane without tokens in the round takes part, with a window of 0, and comes out as it went in. */
static void lanes_without_tokens(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    for (int commit = 0; commit < 2; commit++) {
        gdn_cache *cache = two_lanes(&l);
        verify(&l, cache, 2, 0);
        assert_int_equal(gdn_pool_free_slots(l.pool), 1); /* no shadow for it */
        assert_int_equal(gdn_round_window(cache, 0), 2);
        assert_int_equal(gdn_round_window(cache, 1), 0);
        assert_int_equal(gdn_cache_has_state(cache, 1), 1);
        const int keep[] = {1, 0};
        if (commit) ACCEPTED(gdn_round_commit(cache, &err));
        else ACCEPTED(gdn_round_rollback(l.compute, cache, keep, 2, &err));
        expect_both(&l, cache, commit ? 5 : 4, 1);
        assert_int_equal(gdn_pool_free_slots(l.pool), 2);
        verify(&l, cache, 0, 0);
        if (commit) ACCEPTED(gdn_round_commit(cache, &err));
        else ACCEPTED(gdn_round_rollback(l.compute, cache, &zero, 1, &err));
        expect_both(&l, cache, commit ? 5 : 4, 1);
        gdn_cache_close(cache);
    }
    lab_close(&l);
}

/* A lane that the round leaves out steps for good and in place, with more tokens than the window; the other one is rolled back, or
 * the round is dropped. */
static void lanes_outside(void **unused)
{
    static const int drafts[] = {1, 0}, n_tokens[] = {4, WINDOW + 1};
    lab              l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    for (int keep = -1; keep <= 4; keep++) {
        gdn_cache *cache = two_lanes(&l);
        int        tokens[4 + WINDOW + 1], keeps[] = {keep, 0};
        memcpy(tokens, A + 3, 4 * sizeof *A);
        for (int i = 0; i < WINDOW + 1; i++) tokens[4 + i] = B[1 + i];
        const float *in_place = lane_state(cache, 1, 0);
        ACCEPTED(gdn_round_begin_some(cache, drafts, &err));
        lab_forward(&l, cache, ragged(cache, n_tokens), tokens);
        ACCEPTED(gdn_cache_advance_rows(cache, n_tokens, &err));
        assert_int_equal(gdn_pool_free_slots(l.pool), 1);
        assert_int_equal(gdn_round_window(cache, 1), 0);
        if (keep < 0) gdn_round_drop(cache);
        else ACCEPTED(gdn_round_rollback(l.compute, cache, keeps, 2, &err));
        assert_int_equal(gdn_round_window(cache, 0), -1);
        assert_int_equal(gdn_pool_free_slots(l.pool), 2);
        expect_both(&l, cache, 3 + (keep < 0 ? 0 : keep), 1 + WINDOW + 1);
        assert_ptr_equal(lane_state(cache, 1, 0), in_place);
        gdn_cache_close(cache);
    }
    lab_close(&l);
}

/* Masked rows are not recorded: the window counts tokens. */
static void masked_round(void **unused)
{
    static const uint8_t mask[] = {0, 1, 1, 0, 1, 0, 0, 1};
    static const int     tokens[] = {99, 14, 15, 99, 22, 99, 99, 23};
    lab                  l;
    (void)unused;
    lab_open(&l, GDN_F32, 2, 4);
    const gdn_batch batch = {.n_lanes = 2, .length = 4, .mask = mask};
    for (int keep = 0; keep <= 2; keep++) {
        gdn_cache *cache = two_lanes(&l);
        ACCEPTED(gdn_round_begin(cache, &err));
        lab_forward(&l, cache, batch, tokens);
        assert_int_equal(gdn_round_window(cache, 0), 2);
        assert_int_equal(gdn_round_window(cache, 1), 2);
        ACCEPTED(gdn_round_rollback(l.compute, cache, &keep, 1, &err));
        expect_both(&l, cache, 3 + keep, 1 + keep);
        gdn_cache_close(cache);
    }
    lab_close(&l);
}

/* Layers may have weights of their own and run in any order; the records of one round do not disturb the next. */
static void rounds_in_a_row(void **unused)
{
    static const int keeps[] = {2, 0, 1};
    lab              l;
    int              n = 0;
    (void)unused;
    lab_open(&l, GDN_BF16, 3, 2);
    gdn_cache *cache = lab_cache(&l, 1, 1, WINDOW);
    for (int i = 0; i < 3; i++) {
        const int window = 3, tokens[] = {A[n], i == 1 ? 99 : A[n + 1], 98};
        ACCEPTED(gdn_round_begin(cache, &err));
        for (int layer = 2; layer >= 0; layer--)
            ACCEPTED(lab_layer(&l, cache, layer, ragged(cache, &window), tokens, NULL));
        ACCEPTED(gdn_round_rollback(l.compute, cache, &keeps[i], 1, &err));
        n += keeps[i];
        lab_expect(&l, cache, 0, A, n, n);
    }
    gdn_cache_close(cache);
    lab_close(&l);
}

/* A round on a slot that others see leaves theirs alone. */
static void shared_slots(void **unused)
{
    lab        l;
    gdn_cache *alone;
    const int  n = 3, keep = 2;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 3);
    gdn_cache *cache = lab_prefilled(&l, 1, WINDOW, A, 3);
    ACCEPTED(gdn_cache_extract(cache, 0, &alone, &err));
    ACCEPTED(gdn_round_begin(cache, &err));
    ACCEPTED(gdn_round_begin(alone, &err));
    lab_forward(&l, cache, ragged(cache, &n), A + 3);
    lab_forward(&l, alone, ragged(alone, &n), B);
    ACCEPTED(gdn_round_rollback(l.compute, cache, &zero, 1, &err));
    ACCEPTED(gdn_round_rollback(l.compute, alone, &keep, 1, &err));
    const int other[] = {11, 12, 13, 21, 22};
    lab_expect(&l, cache, 0, A, 3, 3);
    lab_expect(&l, alone, 0, other, 5, 5);
    assert_int_equal(gdn_pool_free_slots(l.pool), 1);
    gdn_cache_close(cache);
    gdn_cache_close(alone);
    lab_close(&l);
}

/* Two lanes of one batch that share a slot: the first one's end must not change what is done for the second. */
static void shared_slot_in_one_batch(void **unused)
{
    lab        l;
    gdn_cache *alone;
    const int  n[] = {3, 3}, keep[] = {1, 2}, tokens[] = {14, 15, 16, 21, 22, 23};
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 3);
    gdn_cache *cache = lab_prefilled(&l, 2, WINDOW, A, 3);
    ACCEPTED(gdn_cache_extract(cache, 0, &alone, &err));
    ACCEPTED(gdn_cache_merge(cache, alone, &err));
    ACCEPTED(gdn_round_begin(cache, &err));
    lab_forward(&l, cache, ragged(cache, n), tokens);
    ACCEPTED(gdn_round_rollback(l.compute, cache, keep, 2, &err));
    const int first[] = {11, 12, 13, 14}, second[] = {11, 12, 13, 21, 22};
    lab_expect(&l, cache, 0, first, 4, 4);
    lab_expect(&l, cache, 1, second, 5, 5);
    assert_int_equal(gdn_pool_free_slots(l.pool), 1);
    gdn_cache_close(cache);
    gdn_cache_close(alone);
    lab_close(&l);
}

/* ---- rounds that nobody ends -------------------------------------------------------------------------------------- */

static void stale_rounds(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    for (int n_layers = 0; n_layers <= 2; n_layers++) {
        gdn_cache *cache = two_lanes(&l);
        const int  n_tokens[] = {2, 1}, tokens[] = {14, 15, 22}, keep[] = {1, 1};
        ACCEPTED(gdn_round_begin(cache, &err));
        for (int layer = 0; layer < n_layers; layer++)
            ACCEPTED(lab_layer(&l, cache, layer, ragged(cache, n_tokens), tokens, NULL));
        ACCEPTED(gdn_cache_advance(cache, 2, NULL, &err));
        ACCEPTED(gdn_round_begin(cache, &err));
        assert_int_equal(gdn_pool_free_slots(l.pool), 2);
        assert_int_equal(gdn_round_window(cache, 0), 0);
        expect_both(&l, cache, 3, 1);
        lab_forward(&l, cache, ragged(cache, n_tokens), tokens);
        ACCEPTED(gdn_round_rollback(l.compute, cache, keep, 2, &err));
        expect_both(&l, cache, 4, 2);
        verify(&l, cache, 1, 1);
        gdn_cache_close(cache);
        assert_int_equal(gdn_pool_free_slots(l.pool), 4);
    }
    lab_close(&l);
}

static void windows_and_memory(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    gdn_cache   *cache = two_lanes(&l), *plain = lab_cache(&l, 0, 3, 0);
    const size_t slot = gdn_pool_slot_bytes(l.pool), records = gdn_cache_bytes(cache) - 2 * slot;
    const size_t row =
        l.qkv_row + 2 * l.ab_row; /* qkv, a and b of a token, for 2 layers, and less than 3*64 of rounding */
    assert_in_range(records, 3 * WINDOW * row * 2, 3 * WINDOW * row * 2 + 2 * 192);
    assert_int_equal(gdn_cache_bytes(plain), 0);
    assert_int_equal(gdn_round_window(cache, 0), -1);
    ACCEPTED(gdn_round_begin(cache, &err));
    assert_int_equal(gdn_round_window(cache, 0), 0);
    assert_int_equal(gdn_round_window(cache, 2), -1);
    assert_int_equal(gdn_round_window(cache, -1), -1);
    verify(&l, cache, 4, 2);
    assert_int_equal(gdn_round_window(cache, 0), 4);
    assert_int_equal(gdn_round_window(cache, 1), 2);
    assert_int_equal(gdn_cache_bytes(cache), 4 * slot + records); /* one shadow a lane */
    gdn_cache_close(cache);
    gdn_cache_close(plain);
    lab_close(&l);
}

/* ---- refusals ----------------------------------------------------------------------------------------------------- */

static void begin_refusals(void **unused)
{
    lab l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    gdn_cache *cache = lab_cache(&l, 0, 1, WINDOW), *plain = lab_cache(&l, 1, 1, 0);
    watch(&l, cache, plain);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_round_begin(NULL, &err));
    REFUSED(GDN_BAD_STATE, "max_window 0", gdn_round_begin(plain, &err));
    REFUSED(GDN_BAD_STATE, "no lanes", gdn_round_begin(cache, &err));
    ACCEPTED(gdn_cache_add(cache, 1, 0, &err));
    ACCEPTED(gdn_cache_prepare(cache, &one, NULL, &err));
    REFUSED(GDN_BAD_STATE, "finalize the padding first", gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_round_commit(NULL, &err));
    REFUSED(GDN_BAD_STATE, "commit: no round is armed", gdn_round_commit(cache, &err));
    REFUSED(GDN_BAD_STATE, "rollback: no round is armed", gdn_round_rollback(l.compute, cache, &zero, 1, &err));
    gdn_cache_finalize(cache);
    ACCEPTED(gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_STATE, "commit: the round has recorded nothing", gdn_round_commit(cache, &err));
    REFUSED(GDN_BAD_STATE, "rollback: the round has recorded nothing to replay",
            gdn_round_rollback(l.compute, cache, &zero, 1, &err));
    watch(NULL, NULL, NULL);
    gdn_cache_close(cache);
    gdn_cache_close(plain);
    lab_close(&l);
}

static void forward_refusals(void **unused)
{
    static const int too_long[] = {1, WINDOW + 1}, good[] = {2, 1}, longer[] = {2, 2};
    static const int tokens[] = {14, 15, 22, 23, 24, 25, 26};
    lab              l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    gdn_cache *cache = two_lanes(&l);
    watch(&l, cache, NULL);
    ACCEPTED(gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_ARGUMENT, "lane 1 has 6 tokens in a round of at most 5",
            lab_layer(&l, cache, 0, ragged(cache, too_long), tokens, NULL));
    ACCEPTED(lab_layer(&l, cache, 1, ragged(cache, good), tokens, NULL));
    REFUSED(GDN_BAD_STATE, "layer 1: it has already run", lab_layer(&l, cache, 1, ragged(cache, good), tokens, NULL));
    REFUSED(GDN_BAD_STATE, "lane 1 has 2 tokens, the round's first layer had 1",
            lab_layer(&l, cache, 0, ragged(cache, longer), tokens, NULL));
    REFUSED(GDN_BAD_STATE, "commit: layer 0 has not run", gdn_round_commit(cache, &err));
    REFUSED(GDN_BAD_STATE, "rollback: layer 0 has not run", gdn_round_rollback(l.compute, cache, &zero, 1, &err));
    ACCEPTED(lab_layer(&l, cache, 0, ragged(cache, good), tokens, NULL));
    watch(NULL, NULL, NULL);
    ACCEPTED(gdn_round_rollback(l.compute, cache, &one, 1, &err)); /* the refusals broke nothing */
    expect_both(&l, cache, 4, 2);
    gdn_cache_close(cache);

    cache = lab_cache(&l, 0, 1, WINDOW);
    ACCEPTED(gdn_cache_add(cache, 1, INT64_MAX - 1, &err));
    ACCEPTED(gdn_round_begin(cache, &err));
    REFUSED(GDN_BAD_ARGUMENT, "the largest offset", lab_layer(&l, cache, 0, ragged(cache, good), tokens, NULL));
    gdn_cache_close(cache);
    lab_close(&l);
}

static void no_slot_for_the_shadows(void **unused)
{
    static const int n_tokens[] = {2, 1}, tokens[] = {14, 15, 22};
    lab              l;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    gdn_cache *cache = two_lanes(&l), *guest = lab_prefilled(&l, 1, 0, A, 1);
    ACCEPTED(gdn_round_begin(cache, &err));
    watch(&l, cache, guest);
    REFUSED(GDN_NO_SLOT, "2 slots are needed and 1 of the pool's 4 are free",
            lab_layer(&l, cache, 0, ragged(cache, n_tokens), tokens, NULL));
    watch(NULL, NULL, NULL);
    gdn_cache_close(guest);
    lab_forward(&l, cache, ragged(cache, n_tokens), tokens);
    ACCEPTED(gdn_round_commit(cache, &err));
    expect_both(&l, cache, 5, 2);
    gdn_cache_close(cache);
    lab_close(&l);
}

static void keep_refusals(void **unused)
{
    static const int below[] = {0, -1}, beyond[] = {4, 3}, good[] = {3, 1};
    lab              l;
    gdn_cache       *out = NULL;
    gdn_snapshot    *snapshot = NULL;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 5);
    gdn_cache *cache = two_lanes(&l), *guest = lab_prefilled(&l, 1, 0, A, 1);
    verify(&l, cache, 4, 2);
    watch(&l, cache, guest);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_round_rollback(NULL, cache, good, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_round_rollback(l.compute, NULL, good, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "keep is NULL", gdn_round_rollback(l.compute, cache, NULL, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "3 counts for 2 lanes", gdn_round_rollback(l.compute, cache, good, 3, &err));
    REFUSED(GDN_BAD_ARGUMENT, "0 counts for 2 lanes", gdn_round_rollback(l.compute, cache, good, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "keep -1 of lane 1 is outside its window of 2 tokens; use 0 to 2",
            gdn_round_rollback(l.compute, cache, below, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "keep 3 of lane 1", gdn_round_rollback(l.compute, cache, beyond, 2, &err));
    REFUSED(GDN_BAD_ARGUMENT, "keep 4 of lane 1",
            gdn_round_rollback(l.compute, cache, beyond, 1, &err)); /* for all lanes */
    REFUSED(GDN_BAD_STATE, "filter: a speculative round", gdn_cache_filter(cache, good + 1, 1, &err));
    REFUSED(GDN_BAD_STATE, "extract: a speculative round", gdn_cache_extract(cache, 0, &out, &err));
    REFUSED(GDN_BAD_STATE, "merge: dst: a speculative round", gdn_cache_merge(cache, guest, &err));
    REFUSED(GDN_BAD_STATE, "merge: src: a speculative round", gdn_cache_merge(guest, cache, &err));
    REFUSED(GDN_BAD_STATE, "add: a speculative round", gdn_cache_add(cache, 1, 0, &err));
    REFUSED(GDN_BAD_STATE, "prepare: a speculative round", gdn_cache_prepare(cache, good, NULL, &err));
    REFUSED(GDN_BAD_STATE, "snapshot: a speculative round", gdn_snapshot_take(&snapshot, cache, 0, &err));
    ACCEPTED(gdn_snapshot_take(&snapshot, guest, 0, &err));
    REFUSED(GDN_BAD_STATE, "restore: a speculative round", gdn_snapshot_restore(cache, 0, snapshot, &err));
    watch(NULL, NULL, NULL);
    ACCEPTED(gdn_round_rollback(l.compute, cache, good, 2, &err)); /* the refusals broke nothing */
    expect_both(&l, cache, 6, 2);
    assert_null(out);
    gdn_snapshot_release(snapshot);
    gdn_cache_close(cache);
    gdn_cache_close(guest);
    lab_close(&l);
}

/* A restore before the first forward of a round: the round begins at what was restored. */
static void restore_in_an_armed_round(void **unused)
{
    lab           l;
    gdn_snapshot *snapshot;
    (void)unused;
    lab_open(&l, GDN_BF16, 2, 4);
    gdn_cache *cache = lab_prefilled(&l, 1, WINDOW, A, 3);
    ACCEPTED(gdn_snapshot_take(&snapshot, cache, 0, &err));
    lab_run(&l, cache, &one, A + 3);
    ACCEPTED(gdn_round_begin(cache, &err));
    ACCEPTED(gdn_snapshot_restore(cache, 0, snapshot, &err));
    const int n = 4, keep = 3;
    lab_forward(&l, cache, ragged(cache, &n), A + 3);
    ACCEPTED(gdn_round_rollback(l.compute, cache, &keep, 1, &err));
    lab_expect(&l, cache, 0, A, 6, 6);
    gdn_snapshot_release(snapshot);
    gdn_cache_close(cache);
    lab_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rollback),
        cmocka_unit_test(ends_without_copies),
        cmocka_unit_test(from_no_state),
        cmocka_unit_test(one_count_for_all),
        cmocka_unit_test(lanes_without_tokens),
        cmocka_unit_test(lanes_outside),
        cmocka_unit_test(masked_round),
        cmocka_unit_test(rounds_in_a_row),
        cmocka_unit_test(shared_slots),
        cmocka_unit_test(shared_slot_in_one_batch),
        cmocka_unit_test(stale_rounds),
        cmocka_unit_test(windows_and_memory),
        cmocka_unit_test(begin_refusals),
        cmocka_unit_test(forward_refusals),
        cmocka_unit_test(no_slot_for_the_shadows),
        cmocka_unit_test(keep_refusals),
        cmocka_unit_test(restore_in_an_armed_round),
    };
    return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
