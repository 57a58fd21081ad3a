#include "device/dense.h"
#include "base/alloc.h"
#include "device/compute.h"

enum {
    TASK_ROWS = 16,          /* rows of a row-wise task */
    TASK_BYTES = 1 << 20,    /* weights of a task: most of a second-level cache */
    TASK_PRODUCTS = 1 << 20, /* multiplications below which a hand-over costs more than it brings */
    ATTENTION_TOKENS = 16,   /* tokens of an attention task */
};

static int parts(int n, int size) { return n / size + (n % size != 0); }
static int least(int a, int b) { return a < b ? a : b; }

/* ---- scratch ---- */

size_t gdn_dense_scratch_bytes(int k, int n_pages)
{
    const size_t matmul = (size_t)GDN_MATMUL_ROWS * k * sizeof(float), pages = 2 * (size_t)n_pages * sizeof(void *);
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
    bool               alone; /* all of it is one task */
} products_call;

static int panels_of(const gdn_linear *l) { return parts(l->n_outputs, GDN_PANEL); }

/* Panels of a task: what stays in the cache, but few enough that every thread finds work. */
static int panels_of_task(const gdn_compute *c, const gdn_linear *l)
{
    const int cached = TASK_BYTES / (GDN_PANEL * l->k * (int)sizeof(uint16_t)), most = cached < 4 ? 4 : cached;
    const int shared = parts(panels_of(l), 4 * gdn_threads_count(c->threads));
    return (least(most, shared) + 3) / 4 * 4;
}

static int tasks_of(const gdn_compute *c, const gdn_product *p)
{
    return p->n_rows ? parts(panels_of(p->linear), panels_of_task(c, p->linear)) : 0;
}

/* Panels first.. of a product. */
static void multiply(const gdn_compute *c, const gdn_product *p, int first, int n_panels, int thread)
{
    const gdn_linear *const l = p->linear;
    const gdn_matmul_job    job = {
           .n_rows = p->n_rows,
           .n_inputs = l->k,
           .n_panels = n_panels,
           .n_outputs = least(l->n_outputs - first * GDN_PANEL, n_panels * GDN_PANEL),
           .w = l->w + (size_t)first * GDN_PANEL * l->k,
           .x = p->x,
           .x_stride = p->x_stride,
           .y = p->y + (size_t)first * GDN_PANEL,
           .y_stride = p->y_stride,
           .work = scratch_of(c, thread),
    };
    c->kernels.matmul(&job);
}

static void products_task(void *arg, int task, int thread)
{
    const products_call *const call = arg;
    const gdn_compute *const   c = call->compute;
    const gdn_product         *p = call->products;
    if (call->alone) {
        for (int i = 0; i < call->n; i++)
            if (p[i].n_rows) multiply(c, &p[i], 0, panels_of(p[i].linear), thread);
        return;
    }
    while (task >= tasks_of(c, p)) task -= tasks_of(c, p++);
    const int panels = panels_of_task(c, p->linear), first = task * panels;
    multiply(c, p, first, least(panels, panels_of(p->linear) - first), thread);
}

void gdn_dense_products(gdn_compute *compute, const gdn_product *products, int n)
{
    int    n_tasks = 0;
    double work = 0.0;
    for (int i = 0; i < n; i++) {
        const gdn_linear *const l = products[i].linear;
        n_tasks += tasks_of(compute, &products[i]);
        work += (double)products[i].n_rows * l->n_outputs * l->k;
    }
    products_call call = {compute, products, n, work < TASK_PRODUCTS};
    gdn_threads_run(compute->threads, call.alone && n_tasks ? 1 : n_tasks, products_task, &call);
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
    const gdn_compute   *compute;
    const gdn_gate_rows *rows;
} gate_call;

static void gate_task(void *arg, int task, int thread)
{
    (void)thread;
    const gate_call *const     call = arg;
    const gdn_gate_rows *const r = call->rows;
    for (size_t row = (size_t)task * TASK_ROWS; row < (size_t)least(r->n_rows, (task + 1) * TASK_ROWS); row++) {
        gdn_gate_job job = r->job;
        job.a += row * r->a_stride;
        job.b += row * r->b_stride;
        job.y = gdn_at_out(job.y_type, job.y, row * r->y_stride);
        call->compute->kernels.gate(&job);
    }
}

void gdn_dense_gate(gdn_compute *compute, const gdn_gate_rows *rows)
{
    gate_call call = {compute, rows};
    gdn_threads_run(compute->threads, parts(rows->n_rows, TASK_ROWS), gate_task, &call);
}

typedef struct rows_call {
    int          n_rows, n;
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
    for (size_t row = (size_t)task * TASK_ROWS; row < (size_t)least(c->n_rows, (task + 1) * TASK_ROWS); row++)
        gdn_bf16_from_f32(c->rounded + row * c->y_stride, c->x + row * c->x_stride, (size_t)c->n);
}

void gdn_dense_round(gdn_compute *compute, int n_rows, int n, const float *x, size_t x_stride, uint16_t *y,
                     size_t y_stride)
{
    rows_call call = {.n_rows = n_rows, .n = n, .rounded = y, .y_stride = y_stride, .x = x, .x_stride = x_stride};
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
