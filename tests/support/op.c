#include "support/op.h"
#include <stdio.h>
#include <stdlib.h>

void *op_alloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) abort();
    return p;
}

/* ---- operations --------------------------------------------------------------------------------------------------- */

static void set_input(op *o, gdn_type type, size_t width)
{
    o->in_type[o->n_inputs] = type;
    o->in_width[o->n_inputs++] = width;
}

static op conv_op(rng *r, const char *name, int K, int C, gdn_type type, gdn_recipe recipe)
{
    op o = {.name = name, .kind = OP_CONV, .y_type = type, .y_width = C};
    set_input(&o, type, C);
    o.state_bytes = (size_t)(K - 1) * C * typed_bytes(type);
    o.held = op_alloc((size_t)K * C * sizeof(float));
    for (int i = 0; i < K * C; i++) o.held[i] = rng_normal(r);
    o.conv = (gdn_conv_args){.n_channels = C, .n_taps = K, .type = type, .recipe = recipe, .w = o.held};
    return o;
}

static op delta_op(rng *r, const char *name, op_kind kind, const gdn_delta_args *shape)
{
    const int Hk = shape->n_key_heads, Hv = shape->n_value_heads, Dk = shape->key_dim, Dv = shape->value_dim;
    op        o = {.name = name, .kind = kind, .y_type = shape->y_type, .y_width = (size_t)Hv * Dv, .delta = *shape};
    set_input(&o, shape->qk_type, (size_t)Hk * Dk);
    set_input(&o, shape->qk_type, (size_t)Hk * Dk);
    set_input(&o, shape->v_type, (size_t)Hv * Dv);
    set_input(&o, kind == OP_FUSED ? shape->ab_type : GDN_F32, shape->vector_gate ? (size_t)Hv * Dk : (size_t)Hv);
    set_input(&o, kind == OP_FUSED ? shape->ab_type : GDN_F32, Hv);
    o.state_bytes = (size_t)Hv * Dv * Dk * sizeof(float);
    o.held = op_alloc(2 * (size_t)Hv * sizeof(float));
    for (int i = 0; i < Hv; i++) {
        o.held[i] = rng_uniform(r, 0.0f, 2.0f);
        o.held[Hv + i] = rng_uniform(r, -3.0f, 1.0f);
    }
    if (kind == OP_FUSED) {
        o.delta.A_log = o.held;
        o.delta.dt_bias = o.held + Hv;
    }
    return o;
}

#define HEADS(hk, hv, dk, dv) .n_key_heads = hk, .n_value_heads = hv, .key_dim = dk, .value_dim = dv
#define TYPES(qk, v, y, ab) .qk_type = qk, .v_type = v, .y_type = y, .ab_type = ab

void ops_open(op ops[OP_COUNT], rng *r)
{
    const gdn_delta_args mlx = {HEADS(2, 4, 32, 32), TYPES(GDN_BF16, GDN_BF16, GDN_BF16, GDN_BF16),
                                .recipe = GDN_RECIPE_MLX};
    const gdn_delta_args tiled = {HEADS(2, 6, 64, 32), TYPES(GDN_F32, GDN_F32, GDN_F32, GDN_F32),
                                  .head_map = GDN_HEADS_TILED, .lane_order = 1};
    const gdn_delta_args model = {HEADS(1, 2, 128, 128), TYPES(GDN_BF16, GDN_BF16, GDN_F32, GDN_BF16), .lane_order = 1};
    const gdn_delta_args plain = {HEADS(1, 3, 128, 64), TYPES(GDN_F32, GDN_BF16, GDN_BF16, GDN_F32)};
    const gdn_delta_args vector = {HEADS(2, 2, 96, 32), TYPES(GDN_BF16, GDN_F32, GDN_F32, GDN_F32), .vector_gate = 1};
    const gdn_delta_args wide = {HEADS(1, 5, 256, 32), TYPES(GDN_F32, GDN_F32, GDN_BF16, GDN_F32), .vector_gate = 1,
                                 .head_map = GDN_HEADS_TILED, .lane_order = 1};
    ops[0] = conv_op(r, "conv 4x100 bf16 hf", 4, 100, GDN_BF16, GDN_RECIPE_HF);
    ops[1] = conv_op(r, "conv 8x33 f32 hf", 8, 33, GDN_F32, GDN_RECIPE_HF);
    ops[2] = conv_op(r, "conv 2x17 bf16 mlx", 2, 17, GDN_BF16, GDN_RECIPE_MLX);
    ops[3] = conv_op(r, "conv 3x1100 f32 mlx", 3, 1100, GDN_F32, GDN_RECIPE_MLX);
    ops[4] = delta_op(r, "delta fused mlx bf16", OP_FUSED, &mlx);
    ops[5] = delta_op(r, "delta fused tiled f32", OP_FUSED, &tiled);
    ops[6] = delta_op(r, "delta fused 128x128", OP_FUSED, &model);
    ops[7] = delta_op(r, "delta gated 128x64", OP_GATED, &plain);
    ops[8] = delta_op(r, "delta vector gate 96x32", OP_GATED, &vector);
    ops[9] = delta_op(r, "delta vector gate tiled 256x32", OP_GATED, &wide);
}

void ops_close(op ops[OP_COUNT])
{
    for (int i = 0; i < OP_COUNT; i++) free(ops[i].held);
}

gdn_status op_run(const op *o, gdn_compute *compute, const op_call *call, gdn_error *err)
{
    if (o->kind == OP_CONV) {
        gdn_conv_args a = o->conv;
        a.batch = call->batch;
        a.x = call->in[0];
        a.y = call->y;
        a.tail_in = call->state_in;
        a.tail_out = call->state_out;
        return gdn_conv_silu(compute, &a, err);
    }
    gdn_delta_args a = o->delta;
    a.batch = call->batch;
    a.q = call->in[0];
    a.k = call->in[1];
    a.v = call->in[2];
    if (o->kind == OP_FUSED) {
        a.a = call->in[3];
        a.b = call->in[4];
    } else {
        a.g = call->in[3];
        a.beta = call->in[4];
    }
    a.y = call->y;
    a.state_in = call->state_in;
    a.state_out = call->state_out;
    return gdn_delta_rule(compute, &a, err);
}

/* ---- sequences ---------------------------------------------------------------------------------------------------- */

static float any_number(rng *r, int flags)
{
    if (flags & SEQUENCE_TINY) return ldexpf(rng_uniform(r, -2.0f, 2.0f), -126 - rng_below(r, 16));
    switch (rng_below(r, 64)) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return rng_uniform(r, -1e4f, 1e4f);
    case 3: return ldexpf(rng_uniform(r, -2.0f, 2.0f), -130);
    default: return rng_normal(r);
    }
}

/* A decay or beta: mostly near 1, at times 0, 1 or a denormal. */
static float any_gate(rng *r)
{
    switch (rng_below(r, 32)) {
    case 0: return 0.0f;
    case 1: return 1.0f;
    case 2: return 8e-40f;
    case 3: return rng_uniform(r, 0.0f, 1.0f);
    default: return rng_uniform(r, 0.9f, 1.0f);
    }
}

/* Rows of keys of about unit length; one in sixteen is zero. */
static void fill_keys(rng *r, gdn_type type, void *p, int n_rows, int dim)
{
    for (int row = 0; row < n_rows; row++) {
        const float scale = rng_below(r, 16) ? 1.0f / sqrtf((float)dim) : 0.0f;
        for (int i = 0; i < dim; i++) typed_set(type, p, (size_t)row * dim + i, (double)(rng_normal(r) * scale));
    }
}

static void fill_inputs(const op *o, rng *r, sequence *s, int flags)
{
    for (int i = 0; i < o->n_inputs; i++) {
        const size_t n = s->n * o->in_width[i];
        s->in[i] = op_alloc(n * typed_bytes(o->in_type[i]));
        if (o->kind != OP_CONV && i < 2) {
            fill_keys(r, o->in_type[i], s->in[i], s->n * o->delta.n_key_heads, o->delta.key_dim);
            continue;
        }
        const int gate = o->kind == OP_GATED && i > 2, parameter = o->kind == OP_FUSED && i > 2;
        for (size_t k = 0; k < n; k++)
            typed_set(o->in_type[i], s->in[i], k, (double)(gate ? any_gate(r) : any_number(r, parameter ? 0 : flags)));
    }
}

sequence sequence_open(const op *o, gdn_compute *compute, rng *r, int n, int flags)
{
    sequence       s = {.n = n};
    const gdn_type state_type = o->kind == OP_CONV ? o->conv.type : GDN_F32;
    fill_inputs(o, r, &s, flags);
    if (!(flags & SEQUENCE_FRESH)) {
        s.start = op_alloc(o->state_bytes);
        for (size_t i = 0; i < o->state_bytes / typed_bytes(state_type); i++)
            typed_set(state_type, s.start, i, (double)any_number(r, flags));
    }
    s.end = op_alloc(o->state_bytes);
    s.y = op_alloc(s.n * o->y_width * typed_bytes(o->y_type));
    op_call call = {.batch = {.n_lanes = 1, .length = n}, .y = s.y};
    for (int i = 0; i < o->n_inputs; i++) call.in[i] = s.in[i];
    call.state_in = (gdn_slots){.base = s.start, .stride = (o->state_bytes + 3) & ~(size_t)3};
    call.state_out = (gdn_slots){.base = s.end, .stride = call.state_in.stride};
    gdn_error err;
    if (op_run(o, compute, &call, &err) != GDN_OK) {
        fprintf(stderr, "%s: %s\n", o->name, err.message);
        abort();
    }
    return s;
}

void sequence_close(sequence *s)
{
    for (int i = 0; i < OP_INPUTS; i++) free(s->in[i]);
    free(s->start);
    free(s->end);
    free(s->y);
}

/* ---- batches ------------------------------------------------------------------------------------------------------ */

static batch batch_begin(const op *o, int n_lanes, const piece *pieces)
{
    batch b = {.o = o,
               .n_lanes = n_lanes,
               .counts = op_alloc(n_lanes * sizeof(int)),
               .rows = op_alloc(n_lanes * sizeof(int *)),
               .pieces = op_alloc(n_lanes * sizeof *pieces)};
    memcpy(b.pieces, pieces, n_lanes * sizeof *pieces);
    for (int i = 0; i < n_lanes; i++) {
        b.counts[i] = pieces[i].n;
        b.rows[i] = op_alloc(pieces[i].n * sizeof(int));
    }
    return b;
}

/* Once the rows are known: NaNs everywhere, and the tokens at their places. */
static void batch_fill(batch *b)
{
    for (int i = 0; i < b->o->n_inputs; i++) {
        const size_t bytes = b->o->in_width[i] * typed_bytes(b->o->in_type[i]);
        b->memory[i] = memset(op_alloc(b->n_rows * bytes), 0xff, b->n_rows * bytes);
        for (int lane = 0; lane < b->n_lanes; lane++)
            for (int t = 0; t < b->counts[lane]; t++)
                memcpy((char *)b->memory[i] + b->rows[lane][t] * bytes,
                       (const char *)b->pieces[lane].s->in[i] + (b->pieces[lane].from + t) * bytes, bytes);
        b->call.in[i] = b->memory[i];
    }
    const size_t bytes = b->n_rows * b->o->y_width * typed_bytes(b->o->y_type);
    b->call.y = memset(op_alloc(bytes), 0xa5, bytes);
    b->call.batch.n_lanes = b->n_lanes;
}

batch batch_ragged(const op *o, int n_lanes, const piece *pieces)
{
    batch b = batch_begin(o, n_lanes, pieces);
    for (int lane = 0; lane < n_lanes; lane++)
        for (int t = 0; t < b.counts[lane]; t++) b.rows[lane][t] = b.n_rows++;
    batch_fill(&b);
    b.call.batch.n_tokens = b.counts;
    return b;
}

batch batch_masked(const op *o, int n_lanes, const piece *pieces, rng *r, mask_style style)
{
    batch b = batch_begin(o, n_lanes, pieces);
    int   length = 0;
    for (int lane = 0; lane < n_lanes; lane++)
        if (pieces[lane].n > length) length = pieces[lane].n;
    length += rng_below(r, 4);
    b.n_rows = n_lanes * length;
    b.mask = op_alloc(b.n_rows);
    for (int lane = 0; lane < n_lanes; lane++) {
        const int n = b.counts[lane];
        for (int row = 0, t = 0; row < length; row++) {
            const int left = length - row, wanted = n - t;
            const int here = style == MASK_LEFT    ? left <= wanted
                             : style == MASK_RIGHT ? wanted > 0
                                                   : rng_below(r, left) < wanted;
            if (!here) continue;
            b.rows[lane][t++] = lane * length + row;
            b.mask[lane * length + row] = (uint8_t)(1 + rng_below(r, 255)); /* anything but 0 is a token */
        }
    }
    batch_fill(&b);
    b.call.batch.length = length;
    b.call.batch.mask = b.mask;
    return b;
}

void batch_close(batch *b)
{
    for (int i = 0; i < OP_INPUTS; i++) free(b->memory[i]);
    for (int i = 0; i < b->n_lanes; i++) free(b->rows[i]);
    free(b->rows);
    free(b->counts);
    free(b->mask);
    free(b->pieces);
    free(b->call.y);
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

int bits_equal(const char *what, gdn_type type, const void *got, const void *want, size_t n)
{
    const size_t size = typed_bytes(type);
    if (!memcmp(got, want, n * size)) return 1;
    for (size_t i = 0; i < n; i++)
        if (memcmp((const char *)got + i * size, (const char *)want + i * size, size)) {
            fprintf(stderr, "%s: [%zu] is %a, must be %a\n", what, i, (double)typed_get(type, got, i),
                    (double)typed_get(type, want, i));
            break;
        }
    return 0;
}

int batch_outputs_hold(const batch *b)
{
    const size_t bytes = b->o->y_width * typed_bytes(b->o->y_type);
    uint8_t     *is_token = op_alloc(b->n_rows);
    int          hold = 1;
    for (int lane = 0; lane < b->n_lanes && hold; lane++)
        for (int t = 0; t < b->counts[lane] && hold; t++) {
            const piece *p = &b->pieces[lane];
            const int    row = b->rows[lane][t];
            is_token[row] = 1;
            hold = bits_equal("y", b->o->y_type, (const char *)b->call.y + row * bytes,
                              (const char *)p->s->y + (p->from + t) * bytes, b->o->y_width);
            if (!hold) fprintf(stderr, "%s: lane %d, token %d of %d\n", b->o->name, lane, t, b->counts[lane]);
        }
    for (int row = 0; row < b->n_rows && hold; row++)
        for (size_t i = 0; i < bytes && hold && !is_token[row]; i++)
            if (((const uint8_t *)b->call.y)[row * bytes + i]) {
                fprintf(stderr, "%s: masked row %d is not 0\n", b->o->name, row);
                hold = 0;
            }
    free(is_token);
    return hold;
}
