/* The law for the MTP layer: the draft and the output of a row depend on the rows of its lane up to it alone; of a dense model and of
 * two with experts.  The reference is each sequence alone, in one call, at the best level with one thread. */
#include "law/batch.h"

enum { DRAFTS = 3, MAX_ROWS = 5 * MAX_TOKENS };

static session workspace_for(gdn_compute *compute)
{
    const session_config config = {.n_lanes = 1, .max_rows = MAX_ROWS, .max_positions = MAX_TOKENS + 1};
    return session_open(model, compute, &config);
}

/* Numbers that bf16 does not have, of many sizes. */
static void fill_sequence(sequence *q, int number, gdn_type type)
{
    rng     r = {2000u + (unsigned)number}; /* the same for both types */
    session s = workspace_for(best);
    gdn_kv *kv = mtp_kv_open(model, 1, MAX_TOKENS, type);
    q->in = numbers((size_t)q->n * h);
    for (int i = 0; i < q->n; i++) q->tokens[i] = rng_below(&r, V);
    for (int i = 0; i < q->n * h; i++) q->in[i] = (float)(rng_below(&r, 2000001) - 1000000) * 1.7e-6f;
    assert_ok(session_mtp(&s, kv, &q->n, q->tokens, q->in, q->logits, q->out, &ok_err));
    gdn_kv_close(kv);
    session_close(&s);
}

static batch batch_of(gdn_compute *compute, int type, const int *which, int n_lanes, const char *what)
{
    batch b = {.s = workspace_for(compute), .n_lanes = n_lanes, .type = type, .first = 1, .what = what};
    b.kv = mtp_kv_open(model, n_lanes, MAX_TOKENS, kv_types[type]);
    for (int i = 0; i < n_lanes; i++) b.lanes[i] = &sequences[type][which[i]];
    return b;
}

static void batch_close(batch *b)
{
    gdn_kv_close(b->kv);
    session_close(&b->s);
}

static gdn_status run_rows(batch *b, const int *n, const int32_t *tokens, const float *in, float *logits, float *out,
                           gdn_error *err)
{
    return session_mtp(&b->s, b->kv, n, tokens, in, logits, out, err);
}

/* ---- drafts ---------------------------------------------------------------------------------------------------------- */

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
        memcpy(hidden + (size_t)n_rows * h, b->lanes[i]->out + (size_t)(b->done[i] - 1) * h, h * sizeof *hidden);
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
    for (int i = 0; i < b->n_lanes; i++) mtp_keep(b->kv, i, b->done[i]);
    free(hidden);
    free(logits);
}

/* Drafts beside others are those alone, and when they are dropped nothing of them is left. */
static void drafts(void **unused)
{
    (void)unused;
    static const int which[] = {0, 1, 2};
    float *const     want = numbers(3 * DRAFTS * (size_t)h);
    for (int type = 0; type < 2; type++) {
        for (int i = 0; i < 3; i++) {
            batch b = batch_of(best, type, &which[i], 1, "a draft alone");
            step(&b, &(int){17});
            draft(&b, want + (size_t)i * DRAFTS * h, true);
            batch_close(&b);
        }
        batch b = batch_of(best, type, which, 3, "after drafts");
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

/* ---- errors ---------------------------------------------------------------------------------------------------------- */

static void refusals(void **unused)
{
    (void)unused;
    batch         b = batch_of(best, 0, (const int[]){0, 1}, 2, "after refusals");
    const int32_t tokens[] = {1, V, 2};
    const int     ends[] = {21, 21, 21};
    const float  *hidden = sequences[0][0].in;
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
        assert_refused(GDN_BAD_ARGUMENT,
                       gdn_mtp_forward(model, best, b.s.workspace, b.kv, &args, ends, hidden, &ok_err));
    }
    const gdn_forward_args args = {
        .n_lanes = 2, .n_tokens = (const int[]){1, 0}, .tokens = tokens, .n_wanted = 1, .wanted = (const int[]){1}};
    assert_refused(GDN_BAD_ARGUMENT, gdn_mtp_forward(model, best, b.s.workspace, b.kv, &args, ends, hidden, &ok_err));
    const int past[] = {MAX_TOKENS + 1, 21};
    assert_refused(GDN_BAD_ARGUMENT, gdn_mtp_forward(model, best, b.s.workspace, b.kv, &args, past, hidden, &ok_err));
    step(&b, (const int[]){0, 0});
    step(&b, (const int[]){130, 21});
    batch_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),   cmocka_unit_test(strangers),           cmocka_unit_test(threads),
        cmocka_unit_test(levels),   cmocka_unit_test(floating_point_mode), cmocka_unit_test(drafts),
        cmocka_unit_test(refusals),
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        folder = folders[i];
        failed += cmocka_run_group_tests_name(folder, tests, open_all, close_all);
    }
    return failed;
}
