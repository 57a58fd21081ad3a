/* The law for the MTP layer: the draft and the output of a row depend on the rows of its lane up to it alone; of a dense model and of
 * two with experts.  The reference is each sequence alone, in one call, at the best level with one thread. */
#include "law/run.h"
#include "support/fpmode.h"
#include "law/model.h"
#include "support/random.h"

enum { SEQUENCES = 3, DRAFTS = 3, MAX_TOKENS = 150, MAX_ROWS = 5 * MAX_TOKENS };

static const int      lengths[SEQUENCES] = {MAX_TOKENS, 41, 20}; /* of the last, few enough for the level "ref" */
static const gdn_type kv_types[] = {GDN_F32, GDN_BF16};

/* Rows, and what must come out of them. */
typedef struct sequence {
    int      n;
    int32_t *tokens;     /* [n] */
    float   *hidden;     /* [n][h] */
    float   *logits, *m; /* [n][V], [n][h] */
} sequence;

static const char  *folder;
static gdn_model   *model;
static gdn_compute *best; /* one thread */
static sequence     sequences[2][SEQUENCES];
static int          V, h;

static float *numbers(size_t n)
{
    float *p = malloc((n + 1) * sizeof *p);
    assert_non_null(p);
    return p;
}

static session workspace_for(gdn_compute *compute)
{
    const session_config config = {.n_lanes = 1, .max_rows = MAX_ROWS, .max_positions = MAX_TOKENS};
    return session_open(model, compute, &config);
}

/* Numbers that bf16 does not have, of many sizes. */
static sequence sequence_open(int number, gdn_type type)
{
    sequence q = {.n = lengths[number]};
    rng      r = {2000u + (unsigned)number}; /* the same for both types */
    session  s = workspace_for(best);
    gdn_kv  *kv = mtp_kv_open(model, 1, MAX_TOKENS, type);
    q.tokens = malloc((size_t)q.n * sizeof *q.tokens);
    assert_non_null(q.tokens);
    q.hidden = numbers((size_t)q.n * h);
    q.logits = numbers((size_t)q.n * V);
    q.m = numbers((size_t)q.n * h);
    for (int i = 0; i < q.n; i++) q.tokens[i] = rng_below(&r, V);
    for (int i = 0; i < q.n * h; i++) q.hidden[i] = (float)(rng_below(&r, 2000001) - 1000000) * 1.7e-6f;
    assert_ok(session_mtp(&s, kv, &q.n, q.tokens, q.hidden, q.logits, q.m, &ok_err));
    gdn_kv_close(kv);
    session_close(&s);
    return q;
}

static int open_all(void **unused)
{
    (void)unused;
    model = model_load(folder);
    best = demo_compute(NULL, 1);
    V = model->config.vocab_size;
    h = model->config.hidden_size;
    for (int type = 0; type < 2; type++)
        for (int i = 0; i < SEQUENCES; i++) sequences[type][i] = sequence_open(i, kv_types[type]);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2 * SEQUENCES; i++) {
        sequence *const q = &sequences[i / SEQUENCES][i % SEQUENCES];
        free(q->tokens);
        free(q->hidden);
        free(q->logits);
        free(q->m);
    }
    gdn_compute_close(best);
    gdn_model_close(model);
    return 0;
}

/* ---- batches --------------------------------------------------------------------------------------------------------- */

typedef struct batch {
    session         s;
    gdn_kv         *kv;
    int             n_lanes, type;
    const sequence *lanes[MAX_RUN_LANES];
    int             done[MAX_RUN_LANES];
    const char     *what; /* for messages */
} batch;

static batch batch_open(gdn_compute *compute, int type, const int *which, int n_lanes, const char *what)
{
    batch b = {.s = workspace_for(compute), .n_lanes = n_lanes, .type = type, .what = what};
    b.kv = mtp_kv_open(model, n_lanes, MAX_TOKENS, kv_types[type]);
    for (int i = 0; i < n_lanes; i++) b.lanes[i] = &sequences[type][which[i]];
    return b;
}

static void batch_close(batch *b)
{
    gdn_kv_close(b->kv);
    session_close(&b->s);
}

static void same_row(const batch *b, int lane, int at, const char *what, const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0)
            fail_msg("%s: level %s, %d threads, kv %s: lane %d of %d, position %d: %s[%d] is %a, alone it is %a",
                     b->what, gdn_compute_level(b->s.compute), gdn_compute_threads(b->s.compute),
                     b->type ? "bf16" : "f32", lane, b->n_lanes, at, what, i, (double)got[i], (double)want[i]);
}

/* Feed the next n[lane] rows, which must be as alone; kv ends behind them. */
static void step(batch *b, const int *n)
{
    int n_rows = 0, row = 0;
    for (int i = 0; i < b->n_lanes; i++) n_rows += n[i];
    int32_t *const tokens = malloc(((size_t)n_rows + 1) * sizeof *tokens);
    float *const logits = numbers((size_t)n_rows * V), *const hidden = numbers((size_t)n_rows * h);
    assert_non_null(tokens);
    for (int i = 0; i < b->n_lanes; row += n[i++]) {
        memcpy(tokens + row, b->lanes[i]->tokens + b->done[i], (size_t)n[i] * sizeof *tokens);
        memcpy(hidden + (size_t)row * h, b->lanes[i]->hidden + (size_t)b->done[i] * h,
               (size_t)n[i] * h * sizeof *hidden);
    }
    assert_ok(session_mtp(&b->s, b->kv, n, tokens, hidden, logits, hidden, &ok_err)); /* in place */
    row = 0;
    for (int i = 0; i < b->n_lanes; row += n[i++]) {
        for (int t = 0; t < n[i]; t++) {
            const size_t at = (size_t)(b->done[i] + t), r = (size_t)(row + t);
            same_row(b, i, (int)at, "m", hidden + r * h, b->lanes[i]->m + at * h, h);
            same_row(b, i, (int)at, "logits", logits + r * V, b->lanes[i]->logits + at * V, V);
        }
        b->done[i] += n[i];
        assert_int_equal(gdn_kv_length(b->kv, i), b->done[i]);
    }
    free(tokens);
    free(logits);
    free(hidden);
}

/* DRAFTS more rows of every lane that has room, one after the other, of the layer's own choices and outputs from the last true row
 * on; then they are dropped.  Each lane's must be what it drafts alone, which `want` [lane][DRAFTS][h] keeps at first. */
static void draft(batch *b, float *want, bool first)
{
    int     n[MAX_RUN_LANES];
    int32_t tokens[MAX_RUN_LANES];
    float  *hidden = numbers((size_t)b->n_lanes * h), *logits = numbers((size_t)b->n_lanes * V);
    int     n_rows = 0;
    for (int i = 0; i < b->n_lanes; i++) {
        n[i] = b->done[i] > 0 && b->done[i] + DRAFTS <= MAX_TOKENS;
        if (!n[i]) continue;
        const float *const last = b->lanes[i]->logits + (size_t)(b->done[i] - 1) * V;
        memcpy(hidden + (size_t)n_rows * h, b->lanes[i]->m + (size_t)(b->done[i] - 1) * h, h * sizeof *hidden);
        tokens[n_rows++] = argmax_of(last, V);
    }
    for (int j = 0; j < DRAFTS && n_rows; j++) {
        assert_ok(session_mtp(&b->s, b->kv, n, tokens, hidden, logits, hidden, &ok_err));
        for (int i = 0, row = 0; i < b->n_lanes; row += n[i++]) {
            float *const at = want + ((size_t)i * DRAFTS + j) * h;
            if (!n[i]) continue;
            if (first) memcpy(at, hidden + (size_t)row * h, h * sizeof *at);
            else same_row(b, i, b->done[i] + j, "drafted m", hidden + (size_t)row * h, at, h);
        }
        for (int row = 0; row < n_rows; row++) tokens[row] = argmax_of(logits + (size_t)row * V, V);
    }
    for (int i = 0; i < b->n_lanes; i++) gdn_kv_set_length(b->kv, i, b->done[i]);
    free(hidden);
    free(logits);
}

/* Sizes of the next pieces, each at most `most`, some 0 when there are several lanes; false when all is done. */
static bool next_pieces(const batch *b, rng *r, int most, int *n)
{
    int left = 0, n_rows = 0;
    for (int i = 0; i < b->n_lanes; i++) left += b->lanes[i]->n - b->done[i];
    if (!left) return false;
    while (n_rows == 0)
        for (int i = 0; i < b->n_lanes; i++) {
            const int rest = b->lanes[i]->n - b->done[i],
                      piece = b->n_lanes > 1 ? rng_below(r, most + 1) : 1 + rng_below(r, most);
            n[i] = piece < rest ? piece : rest;
            n_rows += n[i];
        }
    return true;
}

/* Lanes `which` from nothing to their ends: whole when most is 0. */
static void run_batch(gdn_compute *compute, int type, const int *which, int n_lanes, rng *r, int most, const char *what)
{
    batch b = batch_open(compute, type, which, n_lanes, what);
    int   n[MAX_RUN_LANES];
    for (int i = 0; i < n_lanes; i++) n[i] = b.lanes[i]->n;
    if (most == 0) step(&b, n);
    else
        while (next_pieces(&b, r, most, n)) step(&b, n);
    batch_close(&b);
}

/* ---- the law --------------------------------------------------------------------------------------------------------- */

static void pieces_and_strangers(void **unused)
{
    (void)unused;
    static const int sizes[] = {0, 1, 4, 33, 64};
    rng              r = {21};
    for (int type = 0; type < 2; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            int which[] = {0, 1, 2, 1, 0}; /* two of them twice */
            run_batch(best, type, which, 1, &r, sizes[i], "pieces");
            rng_shuffle(&r, which, 5);
            run_batch(best, type, which, 2 + rng_below(&r, 4), &r, sizes[i], "strangers");
        }
}

static void threads(void **unused)
{
    (void)unused;
    rng r = {22};
    for (int n = 2; n <= 3; n++) {
        gdn_compute *const compute = demo_compute(NULL, n);
        for (int type = 0; type < 2; type++) {
            run_batch(compute, type, (const int[]){0}, 1, &r, 0, "threads");
            run_batch(compute, type, (const int[]){2, 0, 1}, 3, &r, 40, "threads");
            run_batch(compute, type, (const int[]){1}, 1, &r, 1, "threads");
        }
        gdn_compute_close(compute);
    }
}

static void levels(void **unused)
{
    (void)unused;
    rng r = {23};
    int n_levels = 0;
    for (int i = 0; gdn_kernels_level(i); i++) {
        gdn_compute *compute = NULL;
        gdn_error    err = {0};
        if (gdn_compute_open(&compute, gdn_kernels_level(i)->name, 1, &err) == GDN_UNSUPPORTED && i > 0) continue;
        assert_non_null(compute);
        n_levels++;
        for (int type = 0; type < 2; type++) {
            run_batch(compute, type, (const int[]){2}, 1, &r, 9, "levels");
            if (i == 0) continue; /* slow */
            run_batch(compute, type, (const int[]){1, 0, 2}, 3, &r, 50, "levels");
            run_batch(compute, type, (const int[]){1}, 1, &r, 1, "levels");
        }
        gdn_compute_close(compute);
    }
    assert_true(n_levels >= 1);
}

/* Drafts beside others are those alone, and when they are dropped nothing of them is left. */
static void drafts(void **unused)
{
    (void)unused;
    static const int which[] = {0, 1, 2};
    float *const     want = numbers(3 * DRAFTS * (size_t)h);
    for (int type = 0; type < 2; type++) {
        for (int i = 0; i < 3; i++) {
            batch b = batch_open(best, type, &which[i], 1, "a draft alone");
            step(&b, &(int){17});
            draft(&b, want + (size_t)i * DRAFTS * h, true);
            batch_close(&b);
        }
        batch b = batch_open(best, type, which, 3, "after drafts");
        step(&b, (const int[]){17, 10, 0});
        step(&b, (const int[]){0, 7, 17});
        draft(&b, want, false);
        step(&b, (const int[]){1, 24, 3});
        draft(&b, want, true);
        draft(&b, want, false);
        step(&b, (const int[]){132, 0, 0});
        batch_close(&b);
    }
    free(want);
}

/* The caller's rounding and flushing have no part in it, and are left alone. */
static void floating_point_mode(void **unused)
{
    (void)unused;
    const fpmode    before = fpmode_get();
    const sequence *q = &sequences[0][1];
    float *const    logits = numbers((size_t)q->n * V);
    for (int direction = 0; direction < FPMODE_DIRECTIONS; direction++)
        for (int flush = 0; flush < 2; flush++) {
            batch     b = batch_open(best, 0, &(int){1}, 1, "floating-point mode");
            gdn_error err;
            fpmode_put(fpmode_make(direction, flush));
            const gdn_status status = session_mtp(&b.s, b.kv, &q->n, q->tokens, q->hidden, logits, NULL, &err);
            const fpmode     after = fpmode_get();
            fpmode_put(before);
            assert_int_equal(status, GDN_OK);
            assert_int_equal(after, fpmode_make(direction, flush));
            for (int t = 0; t < q->n; t++)
                same_row(&b, 0, t, "logits", logits + (size_t)t * V, q->logits + (size_t)t * V, V);
            batch_close(&b);
        }
    free(logits);
}

/* ---- errors ---------------------------------------------------------------------------------------------------------- */

static void refusals(void **unused)
{
    (void)unused;
    batch         b = batch_open(best, 0, (const int[]){0, 1}, 2, "after refusals");
    const int32_t tokens[] = {1, V, 2};
    const float  *hidden = sequences[0][0].hidden;
    step(&b, (const int[]){20, 20});
    model->has_mtp = false;
    assert_refused(GDN_UNSUPPORTED, session_mtp(&b.s, b.kv, (const int[]){1, 0}, tokens, hidden, NULL, NULL, &ok_err));
    model->has_mtp = true;
    assert_refused(GDN_BAD_ARGUMENT, session_mtp(&b.s, b.kv, (const int[]){1, 1}, tokens, hidden, NULL, NULL, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT,
                   session_mtp(&b.s, b.kv, (const int[]){1, -1}, tokens, hidden, NULL, NULL, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT,
                   session_mtp(&b.s, b.kv, (const int[]){131, 0}, tokens, hidden, NULL, NULL, &ok_err));
    for (int n_lanes = 0; n_lanes <= 3; n_lanes += 3) {
        const gdn_forward_args args = {.n_lanes = n_lanes, .n_tokens = (const int[]){1, 0, 0}, .tokens = tokens};
        assert_refused(GDN_BAD_ARGUMENT, gdn_mtp_forward(model, best, b.s.workspace, b.kv, &args, hidden, &ok_err));
    }
    const gdn_forward_args args = {
        .n_lanes = 2, .n_tokens = (const int[]){1, 0}, .tokens = tokens, .n_wanted = 1, .wanted = (const int[]){1}};
    assert_refused(GDN_BAD_ARGUMENT, gdn_mtp_forward(model, best, b.s.workspace, b.kv, &args, hidden, &ok_err));
    step(&b, (const int[]){0, 0});
    step(&b, (const int[]){130, 21});
    batch_close(&b);
}

static void no_page(void **unused)
{
    (void)unused;
    const sequence     *q = &sequences[0][0];
    const gdn_kv_config config = {.n_layers = 1,
                                  .n_heads = model->config.n_kv_heads,
                                  .dim = model->config.head_dim,
                                  .n_pages = 1,
                                  .n_lanes = 1,
                                  .max_positions = MAX_TOKENS};
    batch               b = batch_open(best, 0, (const int[]){0}, 1, "after want of pages");
    gdn_kv_close(b.kv);
    assert_ok(gdn_kv_open(&b.kv, &config, &ok_err));
    step(&b, &(int){60});
    assert_refused(GDN_NO_SLOT, session_mtp(&b.s, b.kv, &(int){5}, q->tokens, q->hidden, NULL, NULL, &ok_err));
    step(&b, &(int){4});
    batch_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_and_strangers),
        cmocka_unit_test(threads),
        cmocka_unit_test(levels),
        cmocka_unit_test(drafts),
        cmocka_unit_test(floating_point_mode),
        cmocka_unit_test(refusals),
        cmocka_unit_test(no_page),
    };
    static const char *const folders[] = {DEMO_FOLDER, "tests/checkpoints/tiny-moe", "tests/checkpoints/tiny-next"};
    int                      failed = 0;
    for (int i = 0; i < 3; i++) {
        folder = folders[i];
        failed += cmocka_run_group_tests_name(folder, tests, open_all, close_all);
    }
    return failed;
}
