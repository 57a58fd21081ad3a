#include "device/dense.h"
#include "base/alloc.h"
#include "base/half.h"
#include "device/compute.h"

enum {
    TASKS = 4,               /* of a product for each of several threads */
    TASK_ROWS = 16,          /* rows of a row-wise task */
    TASK_PRODUCTS = 1 << 20, /* multiplications below which a hand-over costs more than it brings */
    ACT_ROWS = 1 << 12,      /* rows times panels of a task of two products: so much stays in a second-level cache */
    ATTENTION_TOKENS = 16,   /* tokens of an attention task */
};

static int parts(int n, int size) { return n / size + (n % size != 0); }
static int least(int a, int b) { return a < b ? a : b; }

/* ---- scratch ---- */

static size_t work_floats(int k) { return (size_t)GDN_MATMUL_ROWS * k; }

size_t gdn_dense_scratch_bytes(int n_rows, int k, int n_pages)
{
    const size_t panels = 2 * sizeof(float) * GDN_PANEL * (ACT_ROWS + 5 * (size_t)n_rows); /* see panels_of_task */
    const size_t matmul = work_floats(k) * sizeof(float) + panels, pages = 2 * (size_t)n_pages * sizeof(void *);
    return ((matmul > pages ? matmul : pages) + 63) / 64 * 64;
}

gdn_status gdn_compute_reserve(gdn_compute *c, size_t n_bytes, gdn_error *err)
{
    if (n_bytes <= c->dense_bytes) return GDN_OK;
    unsigned char *dense = gdn_alloc_aligned(n_bytes * (size_t)gdn_threads_count(c->threads));
    if (!dense) return gdn_fail(err, GDN_NO_MEMORY, 0, "compute: no memory for %zu bytes of scratch a thread", n_bytes);
    free(c->dense);
    c->dense = dense;
    c->dense_bytes = n_bytes;
    return GDN_OK;
}

static void *scratch_of(const gdn_compute *c, int thread) { return c->dense + (size_t)thread * c->dense_bytes; }

/* ---- matrix products: panels are split, sums never ---- */

typedef struct products_call {
    const gdn_compute *compute;
    const gdn_product *products;
    int                n;
} products_call;

static int panels_of(const gdn_linear *l) { return parts(l->n_outputs, GDN_PANEL); }

/* Panels of a task.  Each task reads x anew, so it has as many outputs as x has rows, where that leaves one for every thread; and where
 * two products are put together, so few that both stay in the cache. */
static int panels_of_task(const gdn_compute *c, const gdn_product *p)
{
    const int n = gdn_threads_count(c->threads), one = parts(panels_of(p->linear), n), rows = p->n_rows / GDN_PANEL;
    const int few = parts(one, n > 1 ? TASKS : 1), shared = few < rows ? least(rows, one) : few;
    const int act = ACT_ROWS / p->n_rows;
    return ((p->up || p->split ? least(act < 4 ? 4 : act, shared) : shared) + 3) / 4 * 4;
}

/* Panels first.. of a product. */
typedef struct piece {
    const gdn_product *product;
    int                first, n_panels;
} piece;

/* Piece number `task` of some products; product is NULL past the last. */
static piece piece_of(const products_call *call, int task)
{
    const gdn_product       *p = call->products;
    const gdn_product *const end = p + call->n;
    for (; p < end && task >= p->n_tasks; p++) task -= p->n_tasks;
    if (p == end) return (piece){0};
    const int first = task * p->panels;
    return (piece){p, first, least(p->panels, panels_of(p->linear) - first)};
}

static const uint16_t *weights_of(const gdn_linear *l, int panel) { return l->w + (size_t)panel * GDN_PANEL * l->k; }

static gdn_matmul_job job_of(const gdn_compute *c, const piece *a, int thread)
{
    const gdn_product *const p = a->product;
    const gdn_linear *const  l = p->linear;
    return (gdn_matmul_job){.n_rows = p->n_rows,
                            .n_inputs = l->k,
                            .n_panels = a->n_panels,
                            .n_outputs = least(l->n_outputs - a->first * GDN_PANEL, a->n_panels * GDN_PANEL),
                            .w = weights_of(l, a->first),
                            .x = p->x,
                            .x_stride = p->x_stride,
                            .y = p->y + (size_t)a->first * GDN_PANEL,
                            .y_stride = p->y_stride,
                            .work = scratch_of(c, thread)};
}

/* Both products of the piece into the scratch, [rows][panels and one more], then SwiGLU. */
static void activate(const gdn_compute *c, const piece *a, gdn_matmul_job job, int thread)
{
    const gdn_product *const p = a->product;
    const uint16_t *const    soon = job.soon;
    float *const             gate = (float *)scratch_of(c, thread) + work_floats(job.n_inputs);
    job.y_stride = ((size_t)a->n_panels + 1) * GDN_PANEL; /* one more: rows of whole pages would meet in the cache */
    float *const up = gate + (size_t)p->n_rows * job.y_stride;
    job.y = gate;
    job.soon = a->n_panels > 1 ? weights_of(p->up, a->first) : NULL;
    c->kernels.matmul(&job);
    job.y = up;
    job.w = weights_of(p->up, a->first);
    job.soon = soon;
    c->kernels.matmul(&job);
    const gdn_gate_job swiglu = {.n_rows = p->n_rows,
                                 .n = job.n_outputs,
                                 .y_type = GDN_BF16,
                                 .swiglu = 1,
                                 .a = gate,
                                 .b = up,
                                 .y = p->act + (size_t)a->first * GDN_PANEL,
                                 .a_stride = job.y_stride,
                                 .b_stride = job.y_stride,
                                 .y_stride = p->act_stride};
    c->kernels.gate(&swiglu);
}

/* The products of both parts into the scratch, [parts][rows][panels and one more], then their sum. */
static void add_parts(const gdn_compute *c, const piece *a, gdn_matmul_job job, int thread)
{
    const gdn_product *const p = a->product;
    const size_t             n = (size_t)p->n_rows;
    float *const y = job.y, *const parts = (float *)scratch_of(c, thread) + work_floats(job.n_inputs);
    job.n_rows = 2 * p->n_rows;
    job.y_stride = ((size_t)a->n_panels + 1) * GDN_PANEL;
    job.y = parts;
    c->kernels.matmul(&job);
    for (size_t row = 0; row < n; row++) {
        float *const       to = y + row * p->y_stride;
        const float *const first = parts + row * job.y_stride, *const second = first + n * job.y_stride;
        for (int i = 0; i < job.n_outputs; i++) to[i] = first[i] + second[i];
    }
}

/* `then`: the piece that this thread is likely to get next. */
static void multiply(const gdn_compute *c, const piece *a, const piece *then, int thread)
{
    gdn_matmul_job job = job_of(c, a, thread);
    if (then->product && then->n_panels > 1 && then->product->linear->k == job.n_inputs)
        job.soon = weights_of(then->product->linear, then->first);
    if (a->product->up) activate(c, a, job, thread);
    else if (a->product->split) add_parts(c, a, job, thread);
    else c->kernels.matmul(&job);
}

static void products_task(void *arg, int task, int thread)
{
    const products_call *const call = arg;
    const piece a = piece_of(call, task), then = piece_of(call, task + gdn_threads_count(call->compute->threads));
    multiply(call->compute, &a, &then, thread);
}

static void products_alone(void *arg, int task, int thread)
{
    const products_call *const call = arg;
    for (piece a = piece_of(call, task), then; a.product; a = then) {
        then = piece_of(call, ++task);
        multiply(call->compute, &a, &then, thread);
    }
}

void gdn_dense_products(gdn_compute *compute, gdn_product *products, int n)
{
    const products_call call = {compute, products, n};
    int                 n_tasks = 0;
    double              work = 0.0;
    for (gdn_product *p = products; p < products + n; p++) {
        p->panels = p->n_rows ? panels_of_task(compute, p) : 0;
        p->n_tasks = p->n_rows ? parts(panels_of(p->linear), p->panels) : 0;
        n_tasks += p->n_tasks;
        work += (double)p->n_rows * p->linear->n_outputs * p->linear->k * (p->up || p->split ? 2 : 1);
    }
    if (work >= TASK_PRODUCTS) gdn_threads_run(compute->threads, n_tasks, products_task, (void *)&call);
    else gdn_threads_run(compute->threads, n_tasks > 0, products_alone, (void *)&call);
}

/* ---- rows ---- */

typedef struct norm_call {
    const gdn_compute      *compute;
    const gdn_rms_norm_job *job;
} norm_call;

static void norm_task(void *arg, int task, int thread)
{
    (void)thread;
    const norm_call *const call = arg;
    gdn_rms_norm_job       job = *call->job;
    const size_t           row = (size_t)task * TASK_ROWS;
    job.n_rows = least(TASK_ROWS, job.n_rows - (int)row);
    job.x += row * job.x_stride;
    job.y = gdn_at_out(job.y_type, job.y, row * job.y_stride);
    call->compute->kernels.rms_norm(&job);
}

void gdn_dense_rms_norm(gdn_compute *compute, const gdn_rms_norm_job *job)
{
    norm_call call = {compute, job};
    gdn_threads_run(compute->threads, parts(job->n_rows, TASK_ROWS), norm_task, &call);
}

typedef struct gate_call {
    const gdn_compute  *compute;
    const gdn_gate_job *job;
} gate_call;

static void gate_task(void *arg, int task, int thread)
{
    (void)thread;
    const gate_call *const call = arg;
    gdn_gate_job           job = *call->job;
    const size_t           row = (size_t)task * TASK_ROWS;
    job.n_rows = least(TASK_ROWS, job.n_rows - (int)row);
    job.a += row * job.a_stride;
    job.b += row * job.b_stride;
    job.y = gdn_at_out(job.y_type, job.y, row * job.y_stride);
    call->compute->kernels.gate(&job);
}

void gdn_dense_gate(gdn_compute *compute, const gdn_gate_job *job)
{
    gate_call call = {compute, job};
    gdn_threads_run(compute->threads, parts(job->n_rows, TASK_ROWS), gate_task, &call);
}

typedef struct rows_call {
    int          n_rows, n, split;
    float       *sum;
    uint16_t    *rounded;
    const float *x;
    size_t       x_stride, y_stride;
} rows_call;

static void add_task(void *arg, int task, int thread)
{
    (void)thread;
    const rows_call *const c = arg;
    for (size_t row = (size_t)task * TASK_ROWS; row < (size_t)least(c->n_rows, (task + 1) * TASK_ROWS); row++) {
        float *const       y = c->sum + row * c->y_stride;
        const float *const x = c->x + row * c->x_stride;
        for (int i = 0; i < c->n; i++) y[i] += x[i];
    }
}

void gdn_dense_add(gdn_compute *compute, int n_rows, int n, float *x, size_t x_stride, const float *y, size_t y_stride)
{
    rows_call call = {.n_rows = n_rows, .n = n, .sum = x, .y_stride = x_stride, .x = y, .x_stride = y_stride};
    gdn_threads_run(compute->threads, parts(n_rows, TASK_ROWS), add_task, &call);
}

static void round_task(void *arg, int task, int thread)
{
    (void)thread;
    const rows_call *const c = arg;
    for (size_t row = (size_t)task * TASK_ROWS; row < (size_t)least(c->n_rows, (task + 1) * TASK_ROWS); row++) {
        const float *const x = c->x + row * c->x_stride;
        uint16_t *const y = c->rounded + row * c->y_stride, *const rest = y + (size_t)c->n_rows * c->y_stride;
        gdn_bf16_from_f32(y, x, (size_t)c->n);
        for (int i = 0; c->split && i < c->n; i++) rest[i] = gdn_bf16_of_f32(x[i] - gdn_f32_of_bf16(y[i]));
    }
}

void gdn_dense_round(gdn_compute *compute, int n_rows, int n, const float *x, size_t x_stride, uint16_t *y,
                     size_t y_stride, int split)
{
    rows_call call = {
        .n_rows = n_rows, .n = n, .rounded = y, .y_stride = y_stride, .x = x, .x_stride = x_stride, .split = split};
    gdn_threads_run(compute->threads, parts(n_rows, TASK_ROWS), round_task, &call);
}

/* ---- attention: one task a key-value head and a block of one lane's tokens ---- */

typedef struct attention_call {
    const gdn_compute        *compute;
    const gdn_attention_rows *rows;
} attention_call;

static void attention_task(void *arg, int task, int thread)
{
    const attention_call *const     call = arg;
    const gdn_attention_rows *const r = call->rows;
    const int                       head = task % r->n_kv_heads, group = r->n_heads / r->n_kv_heads;
    int                             block = task / r->n_kv_heads, i = 0;
    while (block >= parts(r->lanes[i].n_rows, ATTENTION_TOKENS)) block -= parts(r->lanes[i++].n_rows, ATTENTION_TOKENS);
    const gdn_attention_lane *const lane = &r->lanes[i];
    const int                       first = block * ATTENTION_TOKENS, n = least(ATTENTION_TOKENS, lane->n_rows - first);
    const long long                 position = lane->position + first;
    const int                       n_pages = (int)((position + n + GDN_PAGE - 1) / GDN_PAGE);
    const void                    **keys = scratch_of(call->compute, thread), **values = keys + n_pages;
    const size_t                    row = (size_t)r->n_heads * r->dim,
                 at = (lane->first_row + first) * row + (size_t)head * group * r->dim;
    r->pages(r->pages_arg, lane->lane, head, n_pages, keys, values);
    const gdn_attention_job job = {
        .n_tokens = n,
        .n_heads = group,
        .dim = r->dim,
        .first_position = position,
        .from = r->from,
        .scale = gdn_qk_scale(GDN_QK_NORM_SUM, 1, r->dim),
        .kv_type = r->kv_type,
        .q = r->q + at,
        .q_stride = row,
        .q_head = r->dim,
        .keys = keys,
        .values = values,
        .kv_stride = r->kv_stride,
        .y = r->y + at,
        .y_stride = row,
        .y_head = r->dim,
    };
    call->compute->kernels.attention(&job);
}

void gdn_dense_attention(gdn_compute *compute, const gdn_attention_rows *rows)
{
    attention_call call = {compute, rows};
    int            n_blocks = 0;
    for (int i = 0; i < rows->n_lanes; i++) n_blocks += parts(rows->lanes[i].n_rows, ATTENTION_TOKENS);
    gdn_threads_run(compute->threads, n_blocks * rows->n_kv_heads, attention_task, &call);
}
