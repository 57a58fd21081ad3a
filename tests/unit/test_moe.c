/* A mixture of experts by itself, with random weights: against plain loops in double, and row by row against itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/forward.h"
#include "support/random.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 64, ROWS = 70, MAX_WIDTH = 96, MAX_EXPERTS = 64 };

typedef struct shape {
    int  n_experts, n_used, width, shared_width;
    bool sum_to_1;
} shape;

static const shape shapes[] = {{40, 7, 48, 80, true}, {40, 7, 96, 16, false}, {5, 5, 32, 32, true},
                               {64, 1, 1, 64, true},  {64, 1, 33, 33, false}, {1, 1, 32, 32, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* A matrix as numbers and packed; rows past n_rows are zeros. */
typedef struct dense {
    int        n_rows, n_cols;
    double    *numbers;
    gdn_linear packed;
} dense;

typedef struct experts {
    gdn_model       model;
    gdn_moe_weights moe;
    gdn_mlp_weights mlps[MAX_EXPERTS + 1];
    dense           router, shared_gate, gate[MAX_EXPERTS + 1], up[MAX_EXPERTS + 1], down[MAX_EXPERTS + 1];
    float           x[ROWS * H];
    uint16_t        u[ROWS * H];
} experts;

static void *allocate(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    assert_non_null(p);
    return p;
}

static double of_bf16(uint16_t bits)
{
    float x;
    gdn_f32_from_bf16(&x, &bits, 1);
    return (double)x;
}

static uint16_t random_bf16(rng *r, float size)
{
    const float x = size * rng_normal(r);
    uint16_t    bits;
    gdn_bf16_from_f32(&bits, &x, 1);
    return bits;
}

/* [n_rows][n_cols] random, padded to n_outputs. */
static dense dense_open(rng *r, int n_rows, int n_cols, int n_outputs)
{
    const size_t n = (size_t)n_outputs * n_cols;
    dense        d = {n_rows, n_cols, allocate(n, sizeof *d.numbers), {NULL, n_outputs, n_cols, gdn_padded(n_cols)}};
    uint16_t    *rows = allocate(n, sizeof *rows);
    for (size_t i = 0; i < (size_t)n_rows * n_cols; i++) {
        rows[i] = random_bf16(r, 0.2f);
        d.numbers[i] = of_bf16(rows[i]);
    }
    d.packed.w = aligned_alloc(64, gdn_linear_bytes(n_outputs, n_cols));
    assert_non_null(d.packed.w);
    gdn_matmul_pack(d.packed.w, rows, n_outputs, n_cols);
    free(rows);
    return d;
}

static void dense_close(dense *d)
{
    free(d->numbers);
    free(d->packed.w);
}

/* The router has every third row twice: those experts are equally good. */
static dense router_open(rng *r, int n_experts)
{
    dense     d = dense_open(r, n_experts, H, n_experts);
    uint16_t *rows = allocate((size_t)n_experts * H, sizeof *rows);
    for (int e = 0; e < n_experts; e++) {
        const int from = e % 3 == 2 ? e - 1 : e;
        gdn_matmul_unpack_row(rows + (size_t)e * H, d.packed.w, from, H);
        memmove(d.numbers + (size_t)e * H, d.numbers + (size_t)from * H, H * sizeof *d.numbers);
    }
    gdn_matmul_pack(d.packed.w, rows, n_experts, H);
    free(rows);
    return d;
}

static experts *experts_open(const shape *s, unsigned seed)
{
    experts *x = allocate(1, sizeof *x);
    rng      r = {seed};
    x->model.config = (gdn_model_config){.hidden_size = H,
                                         .n_experts = s->n_experts,
                                         .n_experts_used = s->n_used,
                                         .expert_size = s->width,
                                         .shared_expert_size = s->shared_width,
                                         .norm_topk_prob = s->sum_to_1};
    x->router = router_open(&r, s->n_experts);
    x->shared_gate = dense_open(&r, 1, H, 1);
    for (int e = 0; e <= s->n_experts; e++) {
        const int width = e < s->n_experts ? s->width : s->shared_width;
        x->gate[e] = dense_open(&r, width, H, gdn_padded(width));
        x->up[e] = dense_open(&r, width, H, gdn_padded(width));
        x->down[e] = dense_open(&r, H, width, H);
        x->mlps[e] = (gdn_mlp_weights){x->gate[e].packed, x->up[e].packed, x->down[e].packed};
    }
    x->moe = (gdn_moe_weights){x->router.packed, x->shared_gate.packed, x->mlps};
    for (int i = 0; i < ROWS * H; i++) {
        x->x[i] = rng_normal(&r);
        x->u[i] = random_bf16(&r, 1.0f);
    }
    return x;
}

static void experts_close(experts *x)
{
    dense_close(&x->router);
    dense_close(&x->shared_gate);
    for (int e = 0; e <= x->model.config.n_experts; e++) {
        dense_close(&x->gate[e]);
        dense_close(&x->up[e]);
        dense_close(&x->down[e]);
    }
    free(x);
}

/* n rows from `row` on; y [n][H], chosen [n][k] or NULL. */
static void run(experts *x, gdn_compute *compute, int row, int n, float *y, int *chosen)
{
    gdn_workspace *w = NULL;
    gdn_error      err = {0};
    if (gdn_workspace_open(&w, &x->model, compute, n, 1, &err) != GDN_OK) fail_msg("%s", err.message);
    memset(w->block, 0xFF, gdn_workspace_bytes(w)); /* NaNs, and wrong ids */
    memcpy(w->x, x->x + row * H, (size_t)n * H * sizeof *w->x);
    for (int i = 0; i < n; i++) memcpy(w->u + (size_t)i * gdn_input_stride(H), x->u + (row + i) * H, H * sizeof *w->u);
    const gdn_pass pass = {.m = &x->model, .compute = compute, .w = w, .n_rows = n};
    gdn_moe(&pass, &x->moe);
    memcpy(y, w->x, (size_t)n * H * sizeof *y);
    if (chosen) memcpy(chosen, w->moe.chosen, (size_t)n * x->model.config.n_experts_used * sizeof *chosen);
    gdn_workspace_close(w);
}

static gdn_compute *compute_open(const char *level, int n_threads)
{
    gdn_compute *compute = NULL;
    gdn_error    err = {0};
    if (gdn_compute_open(&compute, level, n_threads, &err) != GDN_OK) fail_msg("%s", err.message);
    return compute;
}

/* ---- in double ---------------------------------------------------------------------------------------------------------- */

static double dot(const dense *d, int row, const double *u)
{
    double sum = 0;
    for (int i = 0; i < d->n_cols; i++) sum += d->numbers[(size_t)row * d->n_cols + i] * u[i];
    return sum;
}

/* y += weight * expert e of u; size += the magnitudes of the terms. */
static void add_expert(const experts *x, int e, double weight, const double *u, double *y, double *size)
{
    const int width = x->gate[e].n_rows;
    double    act[MAX_WIDTH];
    for (int j = 0; j < width; j++) {
        const double gate = dot(&x->gate[e], j, u);
        act[j] = gate / (1 + exp(-gate)) * dot(&x->up[e], j, u);
    }
    for (int i = 0; i < H; i++)
        for (int j = 0; j < width; j++) {
            const double term = weight * x->down[e].numbers[(size_t)i * width + j] * act[j];
            y[i] += term;
            size[i] += fabs(term);
        }
}

/* weights [E]: of experts that are not chosen 0. */
static void route(const experts *x, const double *u, double *weights)
{
    const gdn_model_config *c = &x->model.config;
    double                  logits[MAX_EXPERTS], most = -HUGE_VAL, sum = 0, kept = 0;
    int                     rank[MAX_EXPERTS] = {0};
    for (int e = 0; e < c->n_experts; e++) most = fmax(most, logits[e] = dot(&x->router, e, u));
    for (int e = 0; e < c->n_experts; e++) {
        for (int f = 0; f < c->n_experts; f++) rank[e] += logits[f] > logits[e] || (logits[f] == logits[e] && f < e);
        sum += exp(logits[e] - most);
        kept += rank[e] < c->n_experts_used ? exp(logits[e] - most) : 0;
    }
    for (int e = 0; e < c->n_experts; e++)
        weights[e] = rank[e] < c->n_experts_used ? exp(logits[e] - most) / (c->norm_topk_prob ? kept : sum) : 0;
}

/* What goes into down is rounded to bf16, by at most 2^-8 of itself; all else is f32: a few roundings of 2^-24 for each. */
static void check_row(const experts *x, int row, const float *got, const int *chosen)
{
    const int E = x->model.config.n_experts;
    double    u[H], y[H], size[H] = {0}, weights[MAX_EXPERTS];
    for (int i = 0; i < H; i++) {
        u[i] = of_bf16(x->u[row * H + i]);
        y[i] = (double)x->x[row * H + i];
    }
    route(x, u, weights);
    for (int e = 0; e < E; e++) {
        if (weights[e] == 0) continue;
        assert_int_equal(*chosen++, e);
        add_expert(x, e, weights[e], u, y, size);
    }
    add_expert(x, E, 1 / (1 + exp(-dot(&x->shared_gate, 0, u))), u, y, size);
    for (int i = 0; i < H; i++)
        if (!(fabs((double)got[i] - y[i]) <= (0x1p-8 + 0x1p-18) * size[i] + 0x1p-23 * fabs(y[i])))
            fail_msg("row %d, element %d: %g, in double %g (terms of %g)", row, i, (double)got[i], y[i], size[i]);
}

static void against_loops(void **unused)
{
    (void)unused;
    gdn_compute *const compute = compute_open(NULL, 1);
    for (int i = 0; i < SHAPES; i++) {
        experts *const x = experts_open(&shapes[i], 1 + (unsigned)i);
        float          y[ROWS * H];
        int            chosen[ROWS * MAX_EXPERTS];
        run(x, compute, 0, ROWS, y, chosen);
        for (int row = 0; row < ROWS; row++) check_row(x, row, y + row * H, chosen + row * shapes[i].n_used);
        experts_close(x);
    }
    gdn_compute_close(compute);
}

/* Alone, beside others, with more threads, on every level: the same bits. */
static void any_company(void **unused)
{
    (void)unused;
    gdn_compute *const one = compute_open(NULL, 1);
    for (int i = 0; i < SHAPES; i++) {
        experts *const x = experts_open(&shapes[i], 100 + (unsigned)i);
        float          want[ROWS * H], got[ROWS * H];
        for (int row = 0; row < ROWS; row++) run(x, one, row, 1, want + row * H, NULL);
        for (int level = 0; gdn_kernels_level(level); level++)
            for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
                gdn_compute *compute = NULL;
                gdn_error    err = {0};
                const char  *name = gdn_kernels_level(level)->name;
                if (gdn_compute_open(&compute, name, n_threads, &err) == GDN_UNSUPPORTED && level > 0) continue;
                assert_non_null(compute);
                run(x, compute, 0, ROWS, got, NULL);
                assert_memory_equal(got, want, sizeof want);
                run(x, compute, 13, 29, got, NULL);
                assert_memory_equal(got, want + 13 * H, 29 * H * sizeof *want);
                gdn_compute_close(compute);
            }
        experts_close(x);
    }
    gdn_compute_close(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(against_loops), cmocka_unit_test(any_company)};
    return cmocka_run_group_tests_name("experts", tests, NULL, NULL);
}
