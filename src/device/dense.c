#include "device/dense.h"
#include "base/alloc.h"
#include "device/compute.h"

enum {
    TASK_ROWS = 16,          /* rows of a row-wise task */
    TASK_BYTES = 1 << 18,    /* weights that a task of many rows keeps in the second-level cache */
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

/* ---- matrix product: panels are split, sums never ---- */

typedef struct matmul_call {
    const gdn_compute *compute;
    gdn_matmul_job     job;
    int                panels; /* of a task */
} matmul_call;

static void matmul_task(void *arg, int task, int thread)
{
    const matmul_call *const call = arg;
    const int                first = task * call->panels;
    gdn_matmul_job           job = call->job;
    job.n_panels = least(call->panels, job.n_panels - first);
    job.n_outputs = least(job.n_outputs - first * GDN_PANEL, job.n_panels * GDN_PANEL);
    job.w += (size_t)first * GDN_PANEL * job.n_inputs;
    job.y += first * GDN_PANEL;
    job.work = scratch_of(call->compute, thread);
    call->compute->kernels.matmul(&job);
}

void gdn_dense_matmul(gdn_compute *compute, const gdn_linear *l, int n_rows, const uint16_t *x, size_t x_stride,
                      float *y, size_t y_stride)
{
    const int   n_panels = parts(l->n_outputs, GDN_PANEL), threads = gdn_threads_count(compute->threads);
    const int   cached = TASK_BYTES / (GDN_PANEL * l->k * (int)sizeof(uint16_t)), shared = parts(n_panels, 4 * threads);
    const int   panels = cached < 4 ? 4 : cached;
    matmul_call call = {compute,
                        {.n_rows = n_rows,
                         .n_inputs = l->k,
                         .n_panels = n_panels,
                         .n_outputs = l->n_outputs,
                         .w = l->w,
                         .x = x,
                         .x_stride = x_stride,
                         .y = y,
                         .y_stride = y_stride},
                        (least(panels, shared) + 3) / 4 * 4};
    if ((double)n_rows * l->n_outputs * l->k < TASK_PRODUCTS) call.panels = n_panels;
    gdn_threads_run(compute->threads, parts(n_panels, call.panels), matmul_task, &call);
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

typedef struct add_call {
    int          n_rows, n;
    float       *x;
    const float *y;
} add_call;

static void add_task(void *arg, int task, int thread)
{
    (void)thread;
    const add_call *const call = arg;
    const size_t          first = (size_t)task * TASK_ROWS * call->n;
    const size_t          end = first + (size_t)least(TASK_ROWS, call->n_rows - task * TASK_ROWS) * call->n;
    for (size_t i = first; i < end; i++) call->x[i] += call->y[i];
}

void gdn_dense_add(gdn_compute *compute, int n_rows, int n, float *x, const float *y)
{
    add_call call = {n_rows, n, x, y};
    gdn_threads_run(compute->threads, parts(n_rows, TASK_ROWS), add_task, &call);
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
