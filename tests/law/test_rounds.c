/* Speculative rounds and snapshots keep the law: after a rollback of any depth, a commit, a restore, a file, a lane
 * is bit for bit what a plain run over its committed tokens gives, and so is everything that it computes afterwards. */
#include "law/run.h"
#include "support/folder.h"

enum { MAX_S = 16 };

static const gdn_delta_config configs[] = {
    {.n_key_heads = 1,
     .n_value_heads = 2,
     .key_dim = 32,
     .value_dim = 32,
     .n_taps = 4,
     .head_map = GDN_HEADS_GROUPED,
     .type = GDN_BF16,
     .recipe = GDN_RECIPE_MLX,
     .qk_norm = GDN_QK_NORM_RMS,
     .qk_eps = 1e-6f},
    {.n_key_heads = 2,
     .n_value_heads = 4,
     .key_dim = 32,
     .value_dim = 64,
     .n_taps = 8,
     .head_map = GDN_HEADS_TILED,
     .type = GDN_BF16,
     .recipe = GDN_RECIPE_HF,
     .qk_norm = GDN_QK_NORM_SUM,
     .qk_eps = 1e-6f},
    {.n_key_heads = 2,
     .n_value_heads = 2,
     .key_dim = 64,
     .value_dim = 32,
     .n_taps = 2,
     .head_map = GDN_HEADS_GROUPED,
     .type = GDN_F32,
     .recipe = GDN_RECIPE_HF,
     .qk_norm = GDN_QK_NORM_MAX,
     .qk_eps = 1e-6f},
    {.n_key_heads = 1,
     .n_value_heads = 1,
     .key_dim = 128,
     .value_dim = 128,
     .n_taps = 4,
     .head_map = GDN_HEADS_TILED,
     .type = GDN_F32,
     .recipe = GDN_RECIPE_MLX,
     .qk_norm = GDN_QK_NORM_SUM,
     .qk_eps = 1e-6f},
};
enum { N_CONFIGS = sizeof configs / sizeof *configs, N_LAYERS = 2, N_SLOTS = 12 };

/* Ids of lane i: its prompt, its draft, and what comes after. */
static span prompt(int i, int n) { return (span){1000u * (unsigned)i, n}; }
static span draft(int i, int n) { return (span){1000u * (unsigned)i + 500u, n}; }

/* Run a draft in the layers without counting it. */
static void run_layers(stack *s, gdn_cache *cache, const span *spans)
{
    size_t n_rows = 0;
    for (int i = 0; i < gdn_cache_lanes(cache); i++) n_rows += (size_t)spans[i].n;
    void *y = law_alloc(n_rows * row_bytes(s));
    for (int layer = 0; layer < N_LAYERS; layer++) assert_ok(feed_layer(s, cache, layer, spans, y, &ok_err));
    free(y);
}

/* ---- rollback ---------------------------------------------------------------------------------------------------- */

/* One lane: a prompt (or none), a round of S tokens, rolled back to `keep`; beside it a lane that never saw the rest.
 * Whether the draft is counted by advance must not matter. */
static void check_depth(stack *s, int n_prompt, int n_window, int keep, bool advance)
{
    const span before = prompt(0, n_prompt), window = draft(0, n_window), kept = draft(0, keep);
    gdn_cache *cache = open_lanes(s, 1, MAX_S), *plain = open_lanes(s, 1, 0);
    run(s, cache, &before);
    run(s, plain, &before);
    assert_ok(gdn_round_begin(cache, &ok_err));
    assert_int_equal(gdn_round_window(cache, 0), 0);
    if (advance) run(s, cache, &window);
    else run_layers(s, cache, &window);
    assert_int_equal(gdn_round_window(cache, 0), n_window);
    assert_ok(gdn_round_rollback(s->compute, cache, &keep, 1, &ok_err));
    assert_int_equal(gdn_round_window(cache, 0), -1);

    run(s, plain, &kept);
    assert_int_equal(gdn_cache_lane_offset(cache, 0), n_prompt + keep);
    assert_same_lane(s, cache, 0, plain, 0);
    assert_int_equal(gdn_pool_free_slots(s->pool), N_SLOTS - 2 * (n_prompt + keep > 0));
    assert_same_future(s, cache, plain, 3);
    gdn_cache_close(cache);
    gdn_cache_close(plain);
}

static void test_every_depth_of_every_window(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        stack s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        for (int n = 1; n <= MAX_S; n++)
            for (int keep = 0; keep <= n; keep++) {
                check_depth(&s, 0, n, keep, keep % 2);
                check_depth(&s, 5, n, keep, (keep + n) % 2);
            }
        stack_close(&s, N_SLOTS);
    }
}

/* Three lanes with windows and keeps of their own (one of them may have no token in the round), prompts of 0, 3 and
 * 7. */
static void check_lanes(stack *s, const int *windows, const int *keeps)
{
    static const int n_prompt[] = {0, 3, 7};
    span             before[3], window[3], kept[3];
    for (int i = 0; i < 3; i++) {
        before[i] = prompt(i, n_prompt[i]);
        window[i] = draft(i, windows[i]);
        kept[i] = draft(i, keeps[i]);
    }
    gdn_cache *cache = open_lanes(s, 3, MAX_S), *plain = open_lanes(s, 3, 0);
    run(s, cache, before);
    run(s, plain, before);
    assert_ok(gdn_round_begin(cache, &ok_err));
    run(s, cache, window);
    for (int i = 0; i < 3; i++) assert_int_equal(gdn_round_window(cache, i), windows[i]);
    assert_ok(gdn_round_rollback(s->compute, cache, keeps, 3, &ok_err));
    run(s, plain, kept);
    for (int i = 0; i < 3; i++) assert_same_lane(s, cache, i, plain, i);
    assert_same_future(s, cache, plain, 2);
    gdn_cache_close(cache);
    gdn_cache_close(plain);
}

static void test_lanes_keep_different_counts(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++)
        for (int threads = 1; threads <= 2; threads++) {
            stack s;
            stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, threads);
            for (int n = 1; n <= MAX_S; n++)
                for (int k = 0; k <= n; k += threads) {
                    const int windows[] = {n, 1 + n * 7 % MAX_S, n * 5 % MAX_S};
                    const int keeps[] = {k, k * 5 % (windows[1] + 1), k * 3 % (windows[2] + 1)};
                    check_lanes(&s, windows, keeps);
                }
            stack_close(&s, N_SLOTS);
        }
}

/* A forward with a mask in a round: the window is made of the valid rows. */
static void test_masked_round(void **state)
{
    enum { LENGTH = 6 };
    static const uint8_t mask[2 * LENGTH] = {0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0};
    static const int     valid[] = {4, 3};
    (void)state;
    for (int keep = 0; keep <= 3; keep++) {
        stack s;
        stack_open(&s, &configs[keep], N_LAYERS, N_SLOTS, NULL, 1);
        gdn_cache *cache = open_lanes(&s, 2, 4), *plain = open_lanes(&s, 2, 0);
        const span before[] = {prompt(0, 2), prompt(1, 0)}, kept[] = {draft(0, keep), draft(1, keep)};
        void      *y = law_alloc(2 * LENGTH * row_bytes(&s));
        run(&s, cache, before);
        run(&s, plain, before);
        assert_ok(gdn_round_begin(cache, &ok_err));
        for (int layer = 0; layer < N_LAYERS; layer++) {
            law_rows rows = law_rows_alloc(&s.model, 2 * LENGTH);
            for (int i = 0; i < 2; i++)
                for (int row = 0, t = 0; row < LENGTH; row++) {
                    const bool real = mask[i * LENGTH + row];
                    law_token_row(&s.model, layer, real ? draft(i, 0).first + (unsigned)t : 7777, &rows,
                                  (size_t)(i * LENGTH + row));
                    t += real;
                }
            const gdn_layer_args args = {.batch = {.n_lanes = 2, .length = LENGTH, .mask = mask},
                                         .qkv = rows.qkv,
                                         .z = rows.z,
                                         .a = rows.a,
                                         .b = rows.b,
                                         .y = y};
            assert_ok(gdn_delta_layer(s.compute, cache, layer, &s.model.weights[layer], &args, &ok_err));
            law_rows_free(&rows);
        }
        for (int i = 0; i < 2; i++) assert_int_equal(gdn_round_window(cache, i), valid[i]);
        assert_ok(gdn_round_rollback(s.compute, cache, &keep, 1, &ok_err));
        run(&s, plain, kept);
        for (int i = 0; i < 2; i++) assert_same_lane(&s, cache, i, plain, i);
        assert_same_future(&s, cache, plain, 2);
        free(y);
        gdn_cache_close(cache);
        gdn_cache_close(plain);
        stack_close(&s, N_SLOTS);
    }
}

/* ---- commit and rounds in a row ---------------------------------------------------------------------------------- */

/* Commit is a plain run, keeps the memory that the round wrote (no state is copied), and gives the old slot back. */
static void test_commit(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++)
        for (int n = 1; n <= MAX_S; n += 5) {
            stack s;
            stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
            gdn_cache   *cache = open_lanes(&s, 2, MAX_S), *plain = open_lanes(&s, 2, 0);
            const span   before[] = {prompt(0, 4), prompt(1, 0)}, window[] = {draft(0, n), draft(1, n / 2 + 1)};
            const float *written, *now;
            run(&s, cache, before);
            run(&s, plain, before);
            assert_int_equal(gdn_pool_free_slots(s.pool), N_SLOTS - 2);
            assert_ok(gdn_round_begin(cache, &ok_err));
            assert_int_equal(gdn_pool_free_slots(s.pool), N_SLOTS - 2);
            run_layers(&s, cache, window);
            assert_int_equal(gdn_pool_free_slots(s.pool), N_SLOTS - 4); /* one slot a lane */
            gdn_cache_peek(cache, 0, 1, &written, NULL);
            assert_ok(gdn_round_commit(cache, &ok_err));
            gdn_cache_peek(cache, 0, 1, &now, NULL);
            assert_ptr_equal(written, now);
            assert_int_equal(gdn_pool_free_slots(s.pool), N_SLOTS - 3);
            run(&s, plain, window);
            for (int i = 0; i < 2; i++) assert_same_lane(&s, cache, i, plain, i);
            assert_same_future(&s, cache, plain, 3);
            gdn_cache_close(cache);
            gdn_cache_close(plain);
            stack_close(&s, N_SLOTS);
        }
}

/* Round after round, each ending in its own way, against one plain run over what was kept. */
static void test_rounds_in_a_row(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        stack s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        gdn_cache *cache = open_lanes(&s, 1, MAX_S), *plain = open_lanes(&s, 1, 0);
        for (int round = 0; round < 40; round++) {
            const int  n = 1 + law_pick(3, (unsigned)round, MAX_S), keep = law_pick(4, (unsigned)round, n + 1);
            const span window = draft(round, n), kept = draft(round, keep), step = prompt(round, round % 2);
            assert_ok(gdn_round_begin(cache, &ok_err));
            run(&s, cache, &window);
            if (keep == n) assert_ok(gdn_round_commit(cache, &ok_err));
            else assert_ok(gdn_round_rollback(s.compute, cache, &keep, 1, &ok_err));
            run(&s, plain, &kept);
            assert_same_lane(&s, cache, 0, plain, 0);
            run(&s, cache, &step); /* every other time a plain step between two rounds */
            run(&s, plain, &step);
        }
        assert_same_lane(&s, cache, 0, plain, 0);
        gdn_cache_close(cache);
        gdn_cache_close(plain);
        stack_close(&s, N_SLOTS);
    }
}

/* A begin drops an unresolved round, recorded or half recorded or not at all, and the next round starts from before
 * it. */
static void test_stale_round_is_dropped(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++)
        for (int n_prompt = 0; n_prompt <= 3; n_prompt += 3) {
            stack s;
            stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
            gdn_cache *cache = open_lanes(&s, 1, MAX_S), *plain = open_lanes(&s, 1, 0);
            const span before = prompt(0, n_prompt), stale = draft(1, 6), window = draft(0, 5), kept = draft(0, 2);
            const int  keep = 2;
            void      *y = law_alloc(8 * row_bytes(&s));
            run(&s, cache, &before);
            run(&s, plain, &before);
            assert_ok(gdn_round_begin(cache, &ok_err));
            assert_ok(gdn_round_begin(cache, &ok_err));
            run(&s, cache, &stale);
            assert_ok(gdn_round_begin(cache, &ok_err));
            assert_same_lane(&s, cache, 0, plain, 0);
            assert_int_equal(gdn_pool_free_slots(s.pool), N_SLOTS - 2 * (n_prompt > 0));
            assert_ok(feed_layer(&s, cache, 0, &stale, y, &ok_err)); /* the first layer only */
            assert_ok(gdn_round_begin(cache, &ok_err));
            assert_same_lane(&s, cache, 0, plain, 0);
            assert_int_equal(gdn_round_window(cache, 0), 0);
            run(&s, cache, &window);
            assert_ok(gdn_round_rollback(s.compute, cache, &keep, 1, &ok_err));
            run(&s, plain, &kept);
            assert_same_lane(&s, cache, 0, plain, 0);
            assert_same_future(&s, cache, plain, 2);
            free(y);
            gdn_cache_close(cache);
            gdn_cache_close(plain);
            stack_close(&s, N_SLOTS);
        }
}

/* An extracted lane shares its slot: a round in one of the two leaves the other as it was. */
static void test_rounds_on_shared_slots(void **state)
{
    (void)state;
    for (int keep = 0; keep <= 4; keep++)
        for (int which = 0; which < 2; which++) {
            stack s;
            stack_open(&s, &configs[keep % N_CONFIGS], N_LAYERS, N_SLOTS, NULL, 1);
            const span before = prompt(0, 5), window = draft(0, 4), kept = draft(0, keep), other = prompt(3, 3);
            gdn_cache *pair[2] = {open_lanes(&s, 1, 4), NULL}, *plain = open_lanes(&s, 1, 0),
                      *still = open_lanes(&s, 1, 0);
            run(&s, pair[0], &before);
            run(&s, plain, &before);
            run(&s, still, &before);
            assert_ok(gdn_cache_extract(pair[0], 0, &pair[1], &ok_err));
            gdn_cache *drafts = pair[which], *rests = pair[!which];
            assert_ok(gdn_round_begin(drafts, &ok_err));
            run(&s, drafts, &window);
            assert_same_lane(&s, rests, 0, still, 0);
            assert_ok(gdn_round_rollback(s.compute, drafts, &keep, 1, &ok_err));
            run(&s, plain, &kept);
            assert_same_lane(&s, drafts, 0, plain, 0);
            assert_same_lane(&s, rests, 0, still, 0);
            run(&s, rests, &other); /* with keep 0 both still share the slot */
            run(&s, still, &other);
            assert_same_lane(&s, rests, 0, still, 0);
            assert_same_future(&s, drafts, plain, 2);
            for (int i = 0; i < 2; i++) gdn_cache_close(pair[i]);
            gdn_cache_close(plain);
            gdn_cache_close(still);
            stack_close(&s, N_SLOTS);
        }
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

/* Taken after a round; restored into a lane that ran on, a fresh lane and a lane of another pool; directly and from
 * a file. */
static void test_snapshot_restore_continue(void **state)
{
    (void)state;
    const char *path = in_folder("lane");
    for (int c = 0; c < N_CONFIGS; c++) {
        stack s, elsewhere;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        stack_open(&elsewhere, &configs[c], N_LAYERS, 1, "ref", 1);
        gdn_cache *cache = open_lanes(&s, 2, MAX_S), *plain = open_lanes(&s, 2, 0),
                  *away = open_lanes(&elsewhere, 1, 0);
        gdn_snapshot *taken = NULL, *read = NULL;
        const int     keep[] = {3, 0};
        const span    before = prompt(0, 5), kept = draft(0, 3), window[] = {draft(0, 6), draft(1, 0)};
        run_one(&s, cache, 0, before);
        assert_ok(gdn_round_begin(cache, &ok_err));
        run(&s, cache, window);
        assert_ok(gdn_round_rollback(s.compute, cache, keep, 2, &ok_err));
        assert_ok(gdn_snapshot_take(&taken, cache, 0, &ok_err));
        assert_int_equal(gdn_snapshot_offset(taken), 8);
        run_one(&s, cache, 0, prompt(5, 7));
        assert_ok(gdn_snapshot_save(taken, path, &ok_err));
        assert_ok(gdn_snapshot_load(&read, elsewhere.pool, path, &ok_err));
        assert_int_equal(gdn_snapshot_offset(read), 8);

        for (int i = 0; i < 2; i++) {
            run_one(&s, plain, i, before);
            run_one(&s, plain, i, kept);
        }
        assert_ok(gdn_snapshot_restore(cache, 0, taken, &ok_err));
        assert_ok(gdn_snapshot_restore(cache, 1, read, &ok_err));
        assert_ok(gdn_snapshot_restore(away, 0, read, &ok_err));
        gdn_snapshot_release(taken);
        gdn_snapshot_release(read);
        for (int i = 0; i < 2; i++) assert_same_lane(&s, cache, i, plain, i);
        assert_same_lane(&s, away, 0, plain, 0);
        assert_same_future(&s, cache, plain, 4);
        run(&elsewhere, away, &(span){900000u, 4}); /* lane 0's future, in another pool on another CPU level */
        assert_same_lane(&s, away, 0, plain, 0);
        gdn_cache_close(cache);
        gdn_cache_close(plain);
        gdn_cache_close(away);
        stack_close(&s, N_SLOTS);
        stack_close(&elsewhere, 1);
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void test_refusals(void **state)
{
    stack s;
    (void)state;
    stack_open(&s, &configs[0], N_LAYERS, N_SLOTS, NULL, 1);
    gdn_cache *cache = open_lanes(&s, 2, 4), *plain = open_lanes(&s, 2, 0);
    const span before[] = {prompt(0, 3), prompt(1, 2)}, window[] = {draft(0, 3), draft(1, 2)},
               kept[] = {draft(0, 1), draft(1, 2)};
    const span too_long[] = {draft(0, 1), draft(1, 5)}, other[] = {draft(0, 2), draft(1, 2)};
    const int  zero = 0, below[] = {-1, 0}, above[] = {3, 3}, more = 3, keep[] = {1, 2};
    void      *y = law_alloc(16 * row_bytes(&s));
    run(&s, cache, before);
    run(&s, plain, before);
    assert_refused(GDN_BAD_STATE, gdn_round_begin(plain, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_round_commit(cache, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_round_rollback(s.compute, cache, &zero, 1, &ok_err));
    assert_int_equal(gdn_round_window(cache, 0), -1);

    assert_ok(gdn_round_begin(cache, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_round_commit(cache, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_round_rollback(s.compute, cache, &zero, 1, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, feed_layer(&s, cache, 0, too_long, y, &ok_err));
    assert_ok(feed_layer(&s, cache, 0, window, y, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_round_commit(cache, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_round_rollback(s.compute, cache, &zero, 1, &ok_err));
    assert_refused(GDN_BAD_STATE, feed_layer(&s, cache, 1, other, y, &ok_err)); /* another window than layer 0's */
    assert_ok(feed_layer(&s, cache, 1, window, y, &ok_err));

    assert_refused(GDN_BAD_ARGUMENT, gdn_round_rollback(s.compute, cache, below, 2, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_round_rollback(s.compute, cache, above, 2, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_round_rollback(s.compute, cache, &more, 1, &ok_err)); /* lane 1 has only 2 */
    assert_refused(GDN_BAD_ARGUMENT, gdn_round_rollback(s.compute, cache, keep, 3, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_round_rollback(s.compute, cache, NULL, 2, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_cache_filter(cache, &zero, 1, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_cache_merge(cache, plain, &ok_err));
    assert_refused(GDN_BAD_STATE, gdn_cache_extract(cache, 0, &(gdn_cache *){NULL}, &ok_err));
    assert_refused(GDN_NOT_TRIMMABLE, gdn_cache_trim(cache, 1, &ok_err));

    assert_ok(gdn_round_rollback(s.compute, cache, keep, 2, &ok_err)); /* none of the refusals changed anything */
    run(&s, plain, kept);
    for (int i = 0; i < 2; i++) assert_same_lane(&s, cache, i, plain, i);
    free(y);
    gdn_cache_close(cache);
    gdn_cache_close(plain);
    stack_close(&s, N_SLOTS);
}

/* A round needs a slot a lane: without one its first forward is refused, the round stays armed, and runs once there
 * is one. */
static void test_no_slot_for_a_round(void **state)
{
    stack s;
    (void)state;
    stack_open(&s, &configs[0], N_LAYERS, 4, NULL, 1);
    gdn_cache *cache = open_lanes(&s, 2, 4), *plain = open_lanes(&s, 1, 0);
    const span before[] = {prompt(0, 3), prompt(1, 3)}, window[] = {draft(0, 3), draft(1, 3)};
    const int  keep = 2;
    void      *y = law_alloc(6 * row_bytes(&s));
    run(&s, cache, before);
    run(&s, plain, before);
    assert_ok(gdn_round_begin(cache, &ok_err));
    assert_refused(GDN_NO_SLOT, feed_layer(&s, cache, 0, window, y, &ok_err));
    assert_int_equal(gdn_pool_free_slots(s.pool), 1);
    assert_int_equal(gdn_round_window(cache, 0), 0);
    assert_same_lane(&s, cache, 0, plain, 0);
    gdn_cache_close(plain);
    run(&s, cache, window);
    assert_int_equal(gdn_pool_free_slots(s.pool), 0);
    assert_ok(gdn_round_rollback(s.compute, cache, &keep, 1, &ok_err));
    assert_int_equal(gdn_pool_free_slots(s.pool), 2);
    plain = open_lanes(&s, 1, 0);
    run(&s, plain, before);
    run(&s, plain, &(span){window[0].first, keep});
    assert_same_lane(&s, cache, 0, plain, 0);
    free(y);
    gdn_cache_close(cache);
    gdn_cache_close(plain);
    stack_close(&s, 4);
}

static int teardown(void **unused)
{
    (void)unused;
    return unlink(in_folder("lane")) || rmdir(folder); /* fails when anything is left beside it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_depth_of_every_window),
        cmocka_unit_test(test_lanes_keep_different_counts),
        cmocka_unit_test(test_masked_round),
        cmocka_unit_test(test_commit),
        cmocka_unit_test(test_rounds_in_a_row),
        cmocka_unit_test(test_stale_round_is_dropped),
        cmocka_unit_test(test_rounds_on_shared_slots),
        cmocka_unit_test(test_snapshot_restore_continue),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_slot_for_a_round),
    };
    return cmocka_run_group_tests(tests, make_folder, teardown);
}
