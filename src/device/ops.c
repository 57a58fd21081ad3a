/* The row-wise operations of delta.h: checks, and how their rows and channels are split over threads. */
#include "device/check.h"
#include "device/compute.h"
#include "kernel/math.h"

#define REFUSE(at, ...) return gdn_fail(err, GDN_BAD_ARGUMENT, at, __VA_ARGS__)

enum { CONV_CHANNELS = 512, TASK_ROWS = 16 };

static int parts(int n, int size) { return n / size + (n % size != 0); }

/* ---- convolution ---- */

typedef struct conv_call {
    const gdn_conv_args *args;
    const gdn_compute   *compute;
    int                  n_blocks;
} conv_call;

static void zero_masked_rows(const uint8_t *mask, int n_rows, char *y, size_t row_bytes, size_t bytes)
{
    for (int t = 0; mask && t < n_rows; t++)
        if (!mask[t]) memset(y + t * row_bytes, 0, bytes);
}

static void conv_task(void *arg, int task, int thread)
{
    (void)thread;
    const conv_call *const     call = arg;
    const gdn_conv_args *const a = call->args;
    const int                  lane = task / call->n_blocks, c0 = task % call->n_blocks * CONV_CHANNELS;
    const int                  n_rows = gdn_batch_rows(&a->batch, lane);
    const uint8_t *const       mask = a->batch.mask ? a->batch.mask + (size_t)lane * a->batch.length : NULL;
    const size_t               row = gdn_first_row(&a->batch, lane), C = a->n_channels;
    const void *const          tail_in = gdn_slot_in(&a->tail_in, lane);

    gdn_conv_job job = {
        .n_channels = a->n_channels - c0 < CONV_CHANNELS ? a->n_channels - c0 : CONV_CHANNELS,
        .n_taps = a->n_taps,
        .type = a->type,
        .recipe = a->recipe,
        .x_stride = C,
        .w = a->w + c0,
        .w_stride = C,
        .tail_in = tail_in ? gdn_at(a->type, tail_in, c0) : NULL,
        .tail_out = gdn_at_out(a->type, gdn_slot_out(&a->tail_out, lane), c0),
        .tail_stride = C,
        .y_stride = C,
    };
    gdn_run run = gdn_next_run(mask, n_rows, 0, n_rows);
    do { /* once also for a lane without rows: its tail moves from in to out */
        job.n_tokens = run.n;
        job.x = gdn_at(a->type, a->x, (row + run.first) * C + c0);
        job.y = gdn_at_out(a->type, a->y, (row + run.first) * C + c0);
        call->compute->kernels.conv_silu(&job);
        job.tail_in = job.tail_out;
        run = gdn_next_run(mask, n_rows, run.first + run.n, n_rows);
    } while (run.n > 0);
    const size_t size = gdn_type_bytes(a->type);
    zero_masked_rows(mask, n_rows, gdn_at_out(a->type, a->y, row * C + c0), C * size, job.n_channels * size);
}

gdn_status gdn_conv_silu(gdn_compute *compute, const gdn_conv_args *a, gdn_error *err)
{
    static const char who[] = "conv_silu";
    gdn_status        s;
    if (!compute || !a) REFUSE(0, "conv_silu: compute or args is NULL");
    if ((s = gdn_batch_check(&a->batch, err)) != GDN_OK) return s;
    if ((s = gdn_taps_check(who, a->n_taps, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->type, err)) != GDN_OK) return s;
    if ((s = gdn_recipe_check(who, a->recipe, err)) != GDN_OK) return s;
    if (a->n_channels < 1 || a->n_channels > 1 << 24)
        REFUSE(a->n_channels, "conv_silu: %d channels; use 1 to %d", a->n_channels, 1 << 24);
    if (!a->x || !a->w || !a->y) REFUSE(0, "conv_silu: x, w or y is NULL");
    const size_t           bytes = (size_t)(a->n_taps - 1) * a->n_channels * gdn_type_bytes(a->type);
    const gdn_slots *const in = &a->tail_in, *const out = &a->tail_out;
    if ((s = gdn_slots_check(who, in, out, a->batch.n_lanes, bytes, err)) != GDN_OK) return s;

    conv_call call = {a, compute, parts(a->n_channels, CONV_CHANNELS)};
    gdn_threads_run(compute->threads, a->batch.n_lanes * call.n_blocks, conv_task, &call);
    return GDN_OK;
}

/* ---- q/k norm ---- */

typedef struct qk_norm_call {
    const gdn_qk_norm_args *args;
    const gdn_compute      *compute;
    float                   scale;
} qk_norm_call;

float gdn_qk_scale(gdn_qk_norm_form form, int is_query, int dim)
{
    const float root = (float)(1.0 / sqrt((double)dim)); /* nearest, as Python's dim**-0.5 */
    if (form == GDN_QK_NORM_RMS) return is_query ? 1.0f / (float)dim : root;
    return is_query ? root : 1.0f;
}

static void qk_norm_task(void *arg, int task, int thread)
{
    (void)thread;
    const qk_norm_call *const     call = arg;
    const gdn_qk_norm_args *const a = call->args;
    const size_t                  width = (size_t)a->n_heads * a->dim, stride = a->x_stride ? a->x_stride : width;
    for (int row = task * TASK_ROWS; row < a->n_rows && row < (task + 1) * TASK_ROWS; row++) {
        const gdn_qk_norm_job job = {
            .n_rows = a->n_heads,
            .dim = a->dim,
            .x_type = a->x_type,
            .y_type = a->y_type,
            .form = a->form,
            .eps = a->eps,
            .scale = call->scale,
            .x = gdn_at(a->x_type, a->x, row * stride),
            .x_stride = a->dim,
            .y = gdn_at_out(a->y_type, a->y, row * width),
            .y_stride = a->dim,
        };
        call->compute->kernels.qk_norm(&job);
    }
}

gdn_status gdn_qk_norm(gdn_compute *compute, const gdn_qk_norm_args *a, gdn_error *err)
{
    static const char who[] = "qk_norm";
    gdn_status        s;
    if (!compute || !a) REFUSE(0, "qk_norm: compute or args is NULL");
    if ((s = gdn_dim_check(who, "dim", a->dim, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->x_type, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->y_type, err)) != GDN_OK) return s;
    if ((s = gdn_norm_check(who, a->form, a->eps, err)) != GDN_OK) return s;
    if (a->n_rows < 0 || a->n_heads < 1)
        REFUSE(0, "qk_norm: %d rows of %d heads; use 0 or more of 1 or more", a->n_rows, a->n_heads);
    if (a->x_stride && a->x_stride < (size_t)a->n_heads * a->dim)
        REFUSE(0, "qk_norm: x_stride %zu is smaller than a row", a->x_stride);
    if (!a->x || !a->y) REFUSE(0, "qk_norm: x or y is NULL");
    qk_norm_call call = {a, compute, gdn_qk_scale(a->form, a->is_query, a->dim)};
    gdn_threads_run(compute->threads, parts(a->n_rows, TASK_ROWS), qk_norm_task, &call);
    return GDN_OK;
}

/* ---- gates ---- */

typedef struct gates_call {
    const gdn_gates_args *args;
    const gdn_compute    *compute;
} gates_call;

static void gates_task(void *arg, int task, int thread)
{
    (void)thread;
    const gates_call *const     call = arg;
    const gdn_gates_args *const args = call->args;
    const size_t                n = args->n_value_heads;
    for (int row = task * TASK_ROWS; row < args->n_rows && row < (task + 1) * TASK_ROWS; row++) {
        float *const g = args->g + row * n, *const beta = args->beta + row * n;
        for (size_t h = 0; h < n; h++) {
            g[h] = gdn_load(args->type, args->a, row * n + h);
            beta[h] = gdn_load(args->type, args->b, row * n + h);
        }
        const gdn_gates_job job = {args->n_value_heads, args->type, args->recipe, g, beta, args->A_log,
                                   args->dt_bias,       g,          beta};
        call->compute->kernels.gates(&job);
    }
}

gdn_status gdn_gates(gdn_compute *compute, const gdn_gates_args *a, gdn_error *err)
{
    static const char who[] = "gates";
    gdn_status        s;
    if (!compute || !a) REFUSE(0, "gates: compute or args is NULL");
    if ((s = gdn_type_check(who, a->type, err)) != GDN_OK) return s;
    if ((s = gdn_recipe_check(who, a->recipe, err)) != GDN_OK) return s;
    if (a->n_rows < 0 || a->n_value_heads < 1)
        REFUSE(0, "gates: %d rows of %d heads; use 0 or more of 1 or more", a->n_rows, a->n_value_heads);
    if (!a->a || !a->b || !a->A_log || !a->dt_bias || !a->g || !a->beta)
        REFUSE(0, "gates: a, b, A_log, dt_bias, g or beta is NULL");
    gates_call call = {a, compute};
    gdn_threads_run(compute->threads, parts(a->n_rows, TASK_ROWS), gates_task, &call);
    return GDN_OK;
}

void gdn_gates_of_tile(const gdn_compute *compute, gdn_scratch *scratch, const gdn_gates_tile *tile)
{
    int n = 0;
    for (int t = 0; t < tile->n_tokens; t++)
        for (int i = 0; i < tile->n_heads; i++, n++) {
            const int head = tile->head + i * tile->step;
            scratch->a[n] = gdn_load(tile->type, tile->a, (size_t)t * tile->stride + head);
            scratch->b[n] = gdn_load(tile->type, tile->b, (size_t)t * tile->stride + head);
            scratch->A_log[n] = tile->A_log[head];
            scratch->dt_bias[n] = tile->dt_bias[head];
        }
    const gdn_gates_job job = {n,          tile->type,     tile->recipe,     scratch->a,
                               scratch->b, scratch->A_log, scratch->dt_bias, scratch->a,
                               scratch->b};
    compute->kernels.gates(&job);
}

/* ---- gated norm ---- */

typedef struct gated_norm_call {
    const gdn_gated_norm_args *args;
    const gdn_compute         *compute;
} gated_norm_call;

static void gated_norm_task(void *arg, int task, int thread)
{
    (void)thread;
    const gated_norm_call *const     call = arg;
    const gdn_gated_norm_args *const a = call->args;
    const int                        row = task * TASK_ROWS;
    const size_t                     at = (size_t)row * a->dim, dim = a->dim;
    const gdn_gated_norm_job         job = {
                .n_rows = a->n_rows - row < TASK_ROWS ? a->n_rows - row : TASK_ROWS,
                .dim = a->dim,
                .type = a->type,
                .recipe = a->recipe,
                .eps = a->eps,
                .o = gdn_at(a->type, a->o, at),
                .z = gdn_at(a->type, a->z, at),
                .o_stride = dim,
                .z_stride = dim,
                .w = a->w,
                .y = gdn_at_out(a->type, a->y, at),
                .y_stride = dim,
    };
    call->compute->kernels.gated_norm(&job);
}

gdn_status gdn_gated_norm(gdn_compute *compute, const gdn_gated_norm_args *a, gdn_error *err)
{
    static const char who[] = "gated_norm";
    gdn_status        s;
    if (!compute || !a) REFUSE(0, "gated_norm: compute or args is NULL");
    if ((s = gdn_dim_check(who, "dim", a->dim, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->type, err)) != GDN_OK) return s;
    if ((s = gdn_recipe_check(who, a->recipe, err)) != GDN_OK) return s;
    if (!(a->eps > 0.0f && a->eps <= 1.0f))
        REFUSE(0, "gated_norm: eps is %g; it must be above 0 and at most 1", (double)a->eps);
    if (a->n_rows < 0) REFUSE(a->n_rows, "gated_norm: %d rows; use 0 or more", a->n_rows);
    if (!a->o || !a->z || !a->w || !a->y) REFUSE(0, "gated_norm: o, z, w or y is NULL");
    gated_norm_call call = {a, compute};
    gdn_threads_run(compute->threads, parts(a->n_rows, TASK_ROWS), gated_norm_task, &call);
    return GDN_OK;
}
