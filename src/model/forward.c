/* The forward pass, written once for every batch shape; the equations are those of the Qwen3.5 family. */
#include "base/half.h"
#include "device/compute.h"
#include "model/forward.h"
#include <math.h>
#include <string.h>

/* ---- steps ---- */

/* u = y [rows][n] as bf16, or as two parts that are bf16: itself rounded, and what that leaves, rounded. */
static void round_into_u(const gdn_pass *f, int n_rows, int n, int split)
{
    gdn_dense_round(f->compute, n_rows, n, f->w->y, (size_t)n, f->w->u, gdn_input_stride((size_t)n), split);
}

/* u = RMS(x) * weight */
static void norm(const gdn_pass *f, const float *weight)
{
    const size_t           h = (size_t)f->m->config.hidden_size;
    const float            eps = (float)f->m->config.rms_eps;
    const gdn_rms_norm_job one = {f->n_rows, (int)h, GDN_BF16, eps, f->w->x, h, weight, f->w->u, gdn_input_stride(h)};
    const gdn_rms_norm_job two = {f->n_rows, (int)h, GDN_F32, eps, f->w->x, h, weight, f->w->y, h};
    gdn_dense_rms_norm(f->compute, f->split ? &two : &one);
    if (f->split) round_into_u(f, f->n_rows, (int)h, 1);
}

/* out[i] = matrix i * in: projections of the same rows, at most four */
static void project(const gdn_pass *f, int n, const gdn_linear *const *matrices, const uint16_t *in, float *const *out)
{
    gdn_product products[4];
    for (int i = 0; i < n; i++)
        products[i] = (gdn_product){.linear = matrices[i],
                                    .n_rows = f->n_rows,
                                    .split = f->split,
                                    .x = in,
                                    .x_stride = gdn_input_stride((size_t)matrices[i]->k),
                                    .y = out[i],
                                    .y_stride = gdn_output_stride((size_t)matrices[i]->n_outputs)};
    gdn_dense_products(f->compute, products, n);
}

/* x += matrix * in */
static void project_back(const gdn_pass *f, const gdn_linear *l, const uint16_t *in)
{
    project(f, 1, &l, in, f->w->p);
    const int h = f->m->config.hidden_size;
    gdn_dense_add(f->compute, f->n_rows, h, f->w->x, (size_t)h, f->w->p[0], gdn_output_stride((size_t)h));
}

static gdn_status delta_mixer(const gdn_pass *f, const gdn_layer_weights *l, gdn_error *err)
{
    gdn_workspace *const                 w = f->w;
    const gdn_delta_layer_weights *const d = &l->linear;
    project(f, 4, (const gdn_linear *const[]){&d->in_qkv, &d->in_z, &d->in_a, &d->in_b}, w->u, w->p);
    const gdn_layer_args args = {.batch = {.n_lanes = f->a->n_lanes, .n_tokens = f->a->n_tokens},
                                 .qkv = w->p[0],
                                 .z = w->p[1],
                                 .a = w->p[2],
                                 .b = w->p[3],
                                 .y = w->y,
                                 .qkv_stride = gdn_output_stride((size_t)d->in_qkv.n_outputs),
                                 .z_stride = gdn_output_stride((size_t)d->in_z.n_outputs)};
    const gdn_status     status = gdn_delta_layer(f->compute, f->cache, l->number, &d->delta, &args, err);
    if (status) return status;
    round_into_u(f, f->n_rows, d->out.n_inputs, f->split);
    project_back(f, &d->out, w->u);
    return GDN_OK;
}

/* Norm and rotation of a row's heads: in [heads][stride], out [heads][D]. */
static void heads(const gdn_pass *f, const float *weight, int n, const float *in, size_t stride, float *out, size_t row)
{
    const gdn_model_config *const c = &f->m->config;
    const size_t                  D = (size_t)c->head_dim, pairs = (size_t)c->rope_dims / 2;
    const gdn_rms_norm_job        norms = {n, c->head_dim, GDN_F32, (float)c->rms_eps, in, stride, weight, out, D};
    const gdn_rope_job            rope = {n, (int)pairs, f->w->cos + row * pairs, f->w->sin + row * pairs, out, D};
    f->compute->kernels.rms_norm(&norms);
    f->compute->kernels.rope(&rope);
}

enum { ROWS = 16 }; /* of a task */

typedef struct heads_call {
    const gdn_pass          *f;
    const gdn_layer_weights *l;
} heads_call;

/* Queries and keys of some rows; keys and values go to the pages of their lanes. */
static void heads_task(void *arg, int task, int thread)
{
    (void)thread;
    const heads_call *const            call = arg;
    const gdn_pass *const              f = call->f;
    gdn_workspace *const               w = f->w;
    const gdn_attention_weights *const t = &call->l->attention;
    const gdn_model_config *const      c = &f->m->config;
    const size_t                       D = (size_t)c->head_dim, q_stride = gdn_output_stride((size_t)t->q.n_outputs);
    const size_t                       k_stride = gdn_output_stride((size_t)t->k.n_outputs), Q = (size_t)c->n_heads * D;
    const size_t end = (size_t)(task + 1) * ROWS < (size_t)f->n_rows ? (size_t)(task + 1) * ROWS : (size_t)f->n_rows;
    const gdn_attention_lane *lane = w->lanes;
    for (size_t row = (size_t)task * ROWS; row < end; row++) {
        while (row >= lane->first_row + (size_t)lane->n_rows) lane++;
        float *const k = w->p[1] + row * k_stride;
        if (!f->keys_only) heads(f, t->q_norm, c->n_heads, w->p[0] + row * q_stride, 2 * D, w->p[3] + row * Q, row);
        heads(f, t->k_norm, c->n_kv_heads, k, D, k, row);
        gdn_kv_write(f->kv, lane->lane, call->l->number, lane->position + (long long)(row - lane->first_row), k,
                     w->p[2] + row * k_stride);
    }
}

static void attention_mixer(const gdn_pass *f, const gdn_layer_weights *l)
{
    gdn_workspace *const               w = f->w;
    const gdn_attention_weights *const t = &l->attention;
    const gdn_model_config *const      c = &f->m->config;
    const size_t                       H = (size_t)c->n_heads, D = (size_t)c->head_dim;
    const int                          no_q = f->keys_only;
    const gdn_linear *const            matrices[] = {&t->q, &t->k, &t->v};
    project(f, 3 - no_q, matrices + no_q, w->u, w->p + no_q);
    heads_call call = {f, l}; /* q: [rows][H][query D, gate D] */
    gdn_threads_run(f->compute->threads, (f->n_rows + ROWS - 1) / ROWS, heads_task, &call);
    if (f->keys_only) return;
    const gdn_kv_view        view = {f->kv, l->number};
    const gdn_attention_rows rows = {.n_lanes = f->n_active,
                                     .lanes = w->lanes,
                                     .n_heads = c->n_heads,
                                     .n_kv_heads = c->n_kv_heads,
                                     .dim = c->head_dim,
                                     .from = f->from,
                                     .kv_type = gdn_kv_type(f->kv),
                                     .kv_stride = D,
                                     .pages = gdn_kv_pages,
                                     .pages_arg = &view,
                                     .q = w->p[3],
                                     .y = w->y};
    gdn_dense_attention(f->compute, &rows);
    for (size_t h = 0; h < H; h++) { /* y * sigmoid(gate), head by head: gates stand 2*D apart */
        const gdn_gate_job gate = {.n_rows = f->n_rows,
                                   .n = (int)D,
                                   .y_type = f->split ? GDN_F32 : GDN_BF16,
                                   .a = w->p[0] + h * 2 * D + D,
                                   .b = w->y + h * D,
                                   .y = f->split ? (void *)(w->y + h * D) : w->u + h * D,
                                   .a_stride = gdn_output_stride(2 * H * D),
                                   .b_stride = H * D,
                                   .y_stride = f->split ? H * D : gdn_input_stride(H * D)};
        gdn_dense_gate(f->compute, &gate);
    }
    if (f->split) round_into_u(f, f->n_rows, (int)(H * D), 1);
    project_back(f, &t->o, w->u);
}

static void mlp(const gdn_pass *f, const gdn_layer_weights *l)
{
    gdn_workspace *const w = f->w;
    const size_t         h = (size_t)f->m->config.hidden_size, I = (size_t)l->mlp.gate.n_outputs;
    uint16_t *const      act = (uint16_t *)(void *)w->p[1];
    gdn_product          product = {.linear = &l->mlp.gate,
                                    .up = &l->mlp.up,
                                    .n_rows = f->n_rows,
                                    .x = w->u,
                                    .x_stride = gdn_input_stride(h),
                                    .act = act,
                                    .act_stride = gdn_input_stride(I)};
    gdn_dense_products(f->compute, &product, 1);
    project_back(f, &l->mlp.down, act);
}

/* ---- the whole ---- */

static void embed(const gdn_pass *f)
{
    const gdn_model *const m = f->m;
    const size_t           h = (size_t)m->config.hidden_size;
    for (int row = 0; row < f->n_rows; row++) {
        const int32_t   id = f->a->tokens[row];
        const uint16_t *embedding = m->embed ? m->embed + (size_t)id * h : f->w->u;
        if (!m->embed) gdn_matmul_unpack_row(f->w->u, m->lm_head.w, id, (int)h);
        gdn_f32_from_bf16(f->w->x + (size_t)row * h, embedding, h);
    }
}

static long long position_of(const gdn_pass *f, int lane)
{
    return f->positions ? f->positions[lane] : gdn_kv_length(f->kv, lane);
}

/* Where each row stands, and the angles of its rotation, counted from the first that is seen: in f32 as transformers has them. */
static void place_task(void *arg, int task, int thread)
{
    const gdn_pass *const f = arg;
    (void)task;
    (void)thread;
    const size_t pairs = (size_t)f->m->config.rope_dims / 2;
    size_t       row = 0;
    int          n = 0;
    for (int i = 0; i < f->a->n_lanes; i++) {
        const long long position = position_of(f, i);
        if (!f->a->n_tokens[i]) continue;
        f->w->lanes[n++] = (gdn_attention_lane){row, f->a->n_tokens[i], i, position};
        for (int t = 0; t < f->a->n_tokens[i]; t++, row++)
            for (size_t k = 0; k < pairs; k++) {
                const float angle = (float)(position - f->from + t) * f->m->inv_freq[k];
                f->w->cos[row * pairs + k] = (float)cos((double)angle);
                f->w->sin[row * pairs + k] = (float)sin((double)angle);
            }
    }
}

/* The final norm, which takes the place of the residual stream, and the logits of the wanted rows.  Their matrix multiplies both
 * parts of a row: no other rounding is so near to the logits, and a row here and there costs next to nothing. */
void gdn_pass_head(const gdn_pass *f, const float *weight)
{
    const gdn_forward_args *const a = f->a;
    const int                     h = f->m->config.hidden_size;
    const gdn_rms_norm_job        last = {f->n_rows, h,       GDN_F32,  (float)f->m->config.rms_eps, f->w->x, (size_t)h,
                                          weight,    f->w->x, (size_t)h};
    gdn_dense_rms_norm(f->compute, &last);
    for (size_t i = 0; a->hidden && i < (size_t)f->n_rows * h; i++)
        a->hidden[i] = gdn_f32_of_bf16(gdn_bf16_of_f32(f->w->x[i]));
    if (!a->n_wanted) return;
    for (size_t i = 0; i < (size_t)a->n_wanted; i++)
        memcpy(f->w->y + i * h, f->w->x + (size_t)a->wanted[i] * h, (size_t)h * sizeof(float));
    round_into_u(f, a->n_wanted, h, 1);
    gdn_linear some = f->m->lm_head;
    if (a->n_logits) some.n_outputs = a->n_logits;
    gdn_product logits = {.linear = &some,
                          .n_rows = a->n_wanted,
                          .split = 1,
                          .x = f->w->u,
                          .x_stride = gdn_input_stride((size_t)h),
                          .y = a->logits,
                          .y_stride = (size_t)f->m->config.vocab_size};
    gdn_dense_products(f->compute, &logits, 1);
}

static gdn_status check_lanes(gdn_pass *f, gdn_error *err)
{
    const gdn_forward_args *const a = f->a;
    const int                     n_lanes = f->cache ? gdn_cache_lanes(f->cache) : a->n_lanes;
    if (a->n_lanes < 1 || a->n_lanes != n_lanes || a->n_lanes > gdn_kv_lanes(f->kv))
        return gdn_fail(err, GDN_BAD_ARGUMENT, a->n_lanes, "forward: %d lanes; the cache has %d and the kv %d",
                        a->n_lanes, n_lanes, gdn_kv_lanes(f->kv));
    if (f->cache && gdn_cache_make_mask(f->cache, 0, NULL))
        return gdn_fail(err, GDN_BAD_STATE, 0, "forward: the cache is padded; finalize the padding first");
    long long n = 0;
    for (int i = 0; i < a->n_lanes; i++) {
        if (a->n_tokens[i] < 0)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "forward: lane %d has %d tokens", i, a->n_tokens[i]);
        if (position_of(f, i) + a->n_tokens[i] > f->w->max_positions)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "forward: lane %d passes the workspace's %d positions", i,
                            f->w->max_positions);
        n += a->n_tokens[i];
        f->n_active += a->n_tokens[i] > 0;
    }
    if (n > f->w->max_rows)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "forward: %lld rows; the workspace has room for %d", n,
                        f->w->max_rows);
    f->n_rows = (int)n;
    return GDN_OK;
}

static gdn_status check(gdn_pass *f, gdn_error *err)
{
    const gdn_forward_args *const a = f->a;
    const gdn_status              status = check_lanes(f, err);
    if (status) return status;
    for (int row = 0; row < f->n_rows; row++)
        if (a->tokens[row] < 0 || a->tokens[row] >= f->m->config.vocab_size)
            return gdn_fail(err, GDN_BAD_ARGUMENT, row, "forward: token %d of row %d is outside 0 to %d",
                            (int)a->tokens[row], row, f->m->config.vocab_size - 1);
    if (a->n_wanted < 0 || a->n_wanted > f->w->max_rows)
        return gdn_fail(err, GDN_BAD_ARGUMENT, a->n_wanted, "forward: %d wanted rows; use 0 to %d", a->n_wanted,
                        f->w->max_rows);
    for (int i = 0; i < a->n_wanted; i++)
        if (a->wanted[i] < 0 || a->wanted[i] >= f->n_rows)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "forward: wanted row %d is outside 0 to %d", a->wanted[i],
                            f->n_rows - 1);
    return GDN_OK;
}

gdn_status gdn_pass_begin(gdn_pass *f, gdn_error *err)
{
    gdn_status status = check(f, err);
    if (!status && !f->positions) status = gdn_kv_reserve(f->kv, f->a->n_tokens, f->a->n_lanes, err);
    if (status || f->n_rows == 0) return status;
    embed(f);
    gdn_threads_run(f->compute->threads, 1, place_task, f); /* for the floating-point mode */
    return GDN_OK;
}

gdn_status gdn_pass_layer(gdn_pass *f, const gdn_layer_weights *l, gdn_error *err)
{
    norm(f, l->input_norm);
    if (l->mixer == GDN_MIXER_LINEAR) {
        const gdn_status status = delta_mixer(f, l, err);
        if (status) return status;
    } else {
        attention_mixer(f, l);
    }
    if (f->keys_only) return GDN_OK;
    f->split = f->split && l->ffn == GDN_FFN_MOE; /* whose router, but no expert, multiplies both parts */
    norm(f, l->post_norm);
    if (l->ffn == GDN_FFN_MOE) gdn_moe(f, &l->moe);
    else mlp(f, l);
    f->split = false;
    return GDN_OK;
}

gdn_status gdn_model_forward(const gdn_model *m, gdn_compute *compute, gdn_workspace *workspace, gdn_cache *cache,
                             gdn_kv *kv, const gdn_forward_args *args, gdn_error *err)
{
    gdn_pass   f = {.m = m, .compute = compute, .w = workspace, .cache = cache, .kv = kv, .a = args, .split = true};
    gdn_status status = gdn_pass_begin(&f, err);
    if (status || f.n_rows == 0) return status;
    for (int i = 0; i < m->config.n_layers && !status; i++) status = gdn_pass_layer(&f, &m->layers[i], err);
    for (int i = 0; i < args->n_lanes; i++) /* after a failure the pages go back */
        gdn_kv_set_length(kv, i, gdn_kv_length(kv, i) + (status ? 0 : args->n_tokens[i]));
    if (!status) gdn_pass_head(&f, m->norm);
    return status ? status : gdn_cache_advance_rows(cache, args->n_tokens, err);
}
