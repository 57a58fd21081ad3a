/* The law for a whole model: the logits and the hidden state of every token, and what a lane keeps, depend on the tokens
 * of the lane alone: of a dense model and of two with experts.  The reference is each sequence alone, in one call, at the best level with one thread. */
#include "law/batch.h"

enum { WINDOW = 4 };

static void fill_sequence(sequence *q, int number, gdn_type kv_type)
{
    const session_config config = {.n_lanes = 1, .max_rows = q->n, .max_positions = q->n, .kv_type = kv_type};
    session              s = session_open(model, best, &config);
    rng                  r = {1000u + (unsigned)number}; /* the same tokens for both types */
    for (int i = 0; i < q->n; i++) q->tokens[i] = rng_below(&r, V);
    assert_ok(session_forward(&s, &q->n, q->tokens, q->logits, q->out, &ok_err));
    q->memory = numbers(session_memory_size(&s));
    assert_true(session_memory(&s, 0, q->memory));
    session_close(&s);
}

static batch batch_open(gdn_compute *compute, int type, const int *which, const session_config *config,
                        const char *what)
{
    session_config c = *config;
    batch          b = {.what = what, .type = type, .n_lanes = config->n_lanes};
    c.kv_type = kv_types[type];
    if (!c.max_rows) c.max_rows = c.n_lanes * MAX_TOKENS;
    if (!c.max_positions) c.max_positions = MAX_TOKENS;
    for (int i = 0; i < c.n_lanes; i++) b.lanes[i] = &sequences[type][which[i]];
    b.s = session_open(model, compute, &c);
    b.kv = b.s.kv;
    return b;
}

static batch batch_of(gdn_compute *compute, int type, const int *which, int n_lanes, const char *what)
{
    const session_config config = {.n_lanes = n_lanes};
    return batch_open(compute, type, which, &config, what);
}

static void batch_close(batch *b) { session_close(&b->s); }

static gdn_status run_rows(batch *b, const int *n, const int32_t *tokens, const float *in, float *logits, float *out,
                           gdn_error *err)
{
    (void)in;
    return session_forward(&b->s, n, tokens, logits, out, err);
}

/* ---- what is wanted -------------------------------------------------------------------------------------------------- */

/* Logits of any rows, in any order, none, one twice. */
static void wanted(void **unused)
{
    (void)unused;
    const sequence      *q = &sequences[0][1], *other = &sequences[0][SHORT];
    const session_config config = {.n_lanes = 2, .max_rows = 61, .max_positions = 64};
    const int            n[2] = {q->n, other->n};
    static const int     lists[][4] = {{60, 0, 41, 40}, {7, 7, 7, 60}, {0, 0, 0, 0}};
    static const int     counts[] = {4, 4, 0};
    int32_t              tokens[61];
    memcpy(tokens, q->tokens, (size_t)q->n * sizeof *tokens);
    memcpy(tokens + q->n, other->tokens, (size_t)other->n * sizeof *tokens);
    for (int list = 0; list < 3; list++) {
        batch                  b = batch_open(best, 0, (const int[]){1, SHORT}, &config, "wanted");
        float *const           logits = numbers(4 * (size_t)V);
        const gdn_forward_args args = {.n_lanes = 2,
                                       .n_tokens = n,
                                       .tokens = tokens,
                                       .n_wanted = counts[list],
                                       .wanted = counts[list] ? lists[list] : NULL,
                                       .logits = counts[list] ? logits : NULL};
        assert_ok(gdn_model_forward(model, best, b.s.workspace, b.s.cache, b.s.kv, &args, &ok_err));
        for (int i = 0; i < counts[list]; i++) {
            const int lane = lists[list][i] >= q->n, t = lists[list][i] - (lane ? q->n : 0);
            same_row(&b, lane, t, "logits", logits + (size_t)i * V, (lane ? other : q)->logits + (size_t)t * V, V);
        }
        move(&b, n);
        assert_ends(&b);
        free(logits);
        batch_close(&b);
    }
}

/* ---- speculative rounds ---------------------------------------------------------------------------------------------- */

/* One round: windows of up to WINDOW tokens, of which some first ones are right; then dropped, committed or rolled back. */
static void play_round(batch *b, rng *r)
{
    const int n_lanes = b->s.config.n_lanes;
    int       n[MAX_RUN_LANES], right[MAX_RUN_LANES], keep[MAX_RUN_LANES];
    bool      all_right = true;
    if (!next_pieces(b, r, WINDOW, n)) return;
    const bool drop = rng_below(r, 5) == 0, hopeful = rng_below(r, 3) == 0;
    for (int i = 0; i < n_lanes; i++) {
        right[i] = hopeful ? n[i] : rng_below(r, n[i] + 1);
        keep[i] = hopeful ? n[i] : right[i] - (right[i] > 0 && rng_below(r, 3) == 0);
        all_right = all_right && keep[i] == n[i];
    }
    assert_ok(gdn_round_begin(b->s.cache, &ok_err));
    feed_batch(b, n, right);
    if (drop) {
        assert_ok(gdn_round_begin(b->s.cache, &ok_err)); /* takes the lanes back */
        memset(keep, 0, sizeof keep);
        for (int i = 0; i < n_lanes; i++) gdn_kv_set_length(b->s.kv, i, b->done[i]);
        move(b, keep);
        feed_batch(b, n, NULL);
        memcpy(keep, n, sizeof keep);
        all_right = true;
    }
    if (all_right) assert_ok(gdn_round_commit(b->s.cache, &ok_err));
    else assert_ok(gdn_round_rollback(b->s.compute, b->s.cache, keep, n_lanes, &ok_err));
    for (int i = 0; i < n_lanes; i++) gdn_kv_set_length(b->s.kv, i, b->done[i] + keep[i]);
    move(b, keep);
}

static void rounds(void **unused)
{
    (void)unused;
    rng r = {15};
    for (int type = 0; type < 2; type++)
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
            gdn_compute *const   compute = demo_compute(NULL, n_threads);
            const session_config config = {.n_lanes = 3, .max_window = WINDOW};
            batch                b = batch_open(compute, type, (const int[]){0, 2, 1}, &config, "rounds");
            step(&b, (const int[]){60, 30, 3}); /* the end of a page is near */
            for (int i = 0; i < 25; i++) play_round(&b, &r);
            finish(&b, &r, 30);
            batch_close(&b);

            batch fresh = batch_open(compute, type, (const int[]){1, SHORT, 2}, &config, "rounds from nothing");
            for (int i = 0; i < 6; i++) play_round(&fresh, &r);
            finish(&fresh, &r, 30);
            batch_close(&fresh);
            gdn_compute_close(compute);
        }
}

/* ---- refusals -------------------------------------------------------------------------------------------------------- */

/* What must not change. */
typedef struct picture {
    long long lengths[MAX_RUN_LANES], offsets[MAX_RUN_LANES];
    int       free_slots, has[MAX_RUN_LANES];
    float    *memory[MAX_RUN_LANES];
} picture;

static picture picture_take(const batch *b)
{
    picture p = {.free_slots = gdn_pool_free_slots(b->s.pool)};
    for (int i = 0; i < b->s.config.n_lanes; i++) {
        p.lengths[i] = gdn_kv_length(b->s.kv, i);
        p.offsets[i] = gdn_cache_lane_offset(b->s.cache, i);
        p.memory[i] = numbers(session_memory_size(&b->s));
        p.has[i] = session_memory(&b->s, i, p.memory[i]);
    }
    return p;
}

static void assert_unchanged(const batch *b, picture *before, const char *after_what)
{
    picture now = picture_take(b);
    for (int i = 0; i < b->s.config.n_lanes; i++) {
        if (now.lengths[i] != before->lengths[i] || now.offsets[i] != before->offsets[i] ||
            now.has[i] != before->has[i])
            fail_msg("%s: lane %d: length %lld (was %lld), offset %lld (was %lld), state %d (was %d)", after_what, i,
                     now.lengths[i], before->lengths[i], now.offsets[i], before->offsets[i], now.has[i],
                     before->has[i]);
        if (now.has[i] && memcmp(now.memory[i], before->memory[i], session_memory_size(&b->s) * sizeof(float)) != 0)
            fail_msg("%s: lane %d: its memory changed", after_what, i);
        free(now.memory[i]);
        free(before->memory[i]);
    }
    assert_int_equal(now.free_slots, before->free_slots);
}

/* A forward that must be refused and change nothing. */
static void refuse(batch *b, gdn_status status, const char *what, const gdn_forward_args *args)
{
    picture          before = picture_take(b);
    gdn_error        err = {0};
    const gdn_status got = gdn_model_forward(model, b->s.compute, b->s.workspace, b->s.cache, b->s.kv, args, &err);
    if (got != status) fail_msg("%s: %s, not %s", what, gdn_status_name(got), gdn_status_name(status));
    assert_int_equal(err.code, status);
    assert_true(strlen(err.message) > 10);
    assert_unchanged(b, &before, what);
}

static void refuse_counts(batch *b, gdn_status status, const char *what, const int *n)
{
    static const int32_t   tokens[2 * MAX_TOKENS] = {0};
    const gdn_forward_args args = {.n_lanes = b->s.config.n_lanes, .n_tokens = n, .tokens = tokens};
    refuse(b, status, what, &args);
}

static void bad_arguments(void **unused)
{
    (void)unused;
    const session_config config = {.n_lanes = 2, .max_rows = 60, .max_positions = 100};
    batch                b = batch_open(best, 0, (const int[]){2, 1}, &config, "after refusals");
    const int            two[] = {2, 1}, negative[] = {3, -1}, one_more[] = {31, 30};
    int32_t              tokens[3] = {1, 2, 3};
    float *const         logits = numbers(4 * (size_t)V);
    for (int round = 0; round < 2; round++) { /* from nothing, and after some tokens */
        for (int at = 0; at < 3; at++) {
            const gdn_forward_args args = {.n_lanes = 2, .n_tokens = two, .tokens = tokens};
            const int32_t          good = tokens[at], bad[] = {-1, V, INT32_MIN, INT32_MAX};
            for (int i = 0; i < 4; i++) {
                tokens[at] = bad[i];
                refuse(&b, GDN_BAD_ARGUMENT, "a token out of range", &args);
            }
            tokens[at] = good;
        }
        for (int i = 0; i < 3; i++) {
            const int              rows[2] = {0, i == 0 ? -1 : i == 1 ? 3 : INT32_MAX};
            const gdn_forward_args args = {
                .n_lanes = 2, .n_tokens = two, .tokens = tokens, .n_wanted = 2, .wanted = rows, .logits = logits};
            refuse(&b, GDN_BAD_ARGUMENT, "a wanted row out of range", &args);
        }
        for (int n_lanes = -1; n_lanes < 4; n_lanes += n_lanes == 1 ? 2 : 1) {
            const gdn_forward_args args = {.n_lanes = n_lanes, .n_tokens = (const int[]){1, 1, 1}, .tokens = tokens};
            refuse(&b, GDN_BAD_ARGUMENT, "another number of lanes", &args);
        }
        refuse_counts(&b, GDN_BAD_ARGUMENT, "a negative count", negative);
        refuse_counts(&b, GDN_BAD_ARGUMENT, "too many rows", one_more);
        if (round == 0) step(&b, (const int[]){40, 20});
    }
    step(&b, (const int[]){20, 21});
    refuse_counts(&b, GDN_BAD_ARGUMENT, "too many positions", (const int[]){41, 0});
    refuse_counts(&b, GDN_BAD_ARGUMENT, "too many positions of the second lane", (const int[]){0, 60});
    step(&b, (const int[]){0, 0});
    step(&b, (const int[]){30, 0});
    assert_ends(&b);
    free(logits);
    batch_close(&b);
}

static void no_page(void **unused)
{
    (void)unused;
    const session_config config = {.n_lanes = 2, .n_pages = 4};
    batch                b = batch_open(best, 0, (const int[]){0, 2}, &config, "after want of pages");
    refuse_counts(&b, GDN_NO_SLOT, "no page, from nothing", (const int[]){129, 65});
    step(&b, (const int[]){100, 60});
    refuse_counts(&b, GDN_NO_SLOT, "no page for one of two", (const int[]){29, 5}); /* one is free */
    step(&b, (const int[]){20, 4});                                                 /* no new page */
    refuse_counts(&b, GDN_NO_SLOT, "no page for one of two", (const int[]){9, 1});
    step(&b, (const int[]){8, 26}); /* takes the last page */
    refuse_counts(&b, GDN_NO_SLOT, "no page left", (const int[]){1, 0});
    assert_end(&b, 1);
    gdn_kv_set_length(b.s.kv, 1, 0);
    feed_batch(&b, (const int[]){22, 0}, NULL); /* into a page that the other lane had */
    b.done[0] += 22;
    assert_end(&b, 0);
    batch_close(&b);
}

static void no_slot(void **unused)
{
    (void)unused;
    const session_config config = {.n_lanes = 2, .n_slots = 1, .n_pages = 3};
    batch                b = batch_open(best, 0, (const int[]){0, 1}, &config, "after want of slots");
    refuse_counts(&b, GDN_NO_SLOT, "one slot for two lanes", (const int[]){5, 5});
    step(&b, (const int[]){50, 0});
    for (int i = 0; i < 4; i++) refuse_counts(&b, GDN_NO_SLOT, "no slot for the second lane", (const int[]){3, 3});
    step(&b, (const int[]){100, 0}); /* needs every page: none was lost */
    assert_end(&b, 0);
    batch_close(&b);
}

static void in_a_round(void **unused)
{
    (void)unused;
    const session_config config = {.n_lanes = 2, .max_window = WINDOW};
    rng                  r = {17};
    batch                b = batch_open(best, 0, (const int[]){0, 1}, &config, "after refusals in a round");
    step(&b, (const int[]){62, 20});
    assert_ok(gdn_round_begin(b.s.cache, &ok_err));
    refuse_counts(&b, GDN_BAD_ARGUMENT, "a window that is too long", (const int[]){2, WINDOW + 1});
    feed_batch(&b, (const int[]){4, 2}, (const int[]){4, 1});
    refuse_counts(&b, GDN_BAD_STATE, "a second forward", (const int[]){1, 1});
    assert_ok(gdn_round_rollback(best, b.s.cache, (const int[]){3, 1}, 2, &ok_err));
    gdn_kv_set_length(b.s.kv, 0, 65);
    gdn_kv_set_length(b.s.kv, 1, 21);
    move(&b, (const int[]){3, 1});
    finish(&b, &r, 40);
    batch_close(&b);
}

/* A forward is ragged: padding for rectangular batches, which would not be heeded, is refused. */
static void padded(void **unused)
{
    (void)unused;
    const session_config config = {.n_lanes = 2};
    rng                  r = {18};
    batch                b = batch_open(best, 0, (const int[]){0, 1}, &config, "after padding");
    step(&b, (const int[]){10, 20});
    assert_ok(gdn_cache_prepare(b.s.cache, NULL, (const int[]){3, 1}, &ok_err));
    refuse_counts(&b, GDN_BAD_STATE, "a padded cache", (const int[]){3, 3});
    gdn_cache_finalize(b.s.cache);
    finish(&b, &r, 40);
    batch_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),  cmocka_unit_test(strangers),     cmocka_unit_test(threads),
        cmocka_unit_test(levels),  cmocka_unit_test(wanted),        cmocka_unit_test(floating_point_mode),
        cmocka_unit_test(rounds),  cmocka_unit_test(bad_arguments), cmocka_unit_test(no_page),
        cmocka_unit_test(no_slot), cmocka_unit_test(in_a_round),    cmocka_unit_test(padded),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        folder = folders[i];
        failed += cmocka_run_group_tests_name(folder, tests, open_all, close_all);
    }
    return failed;
}
