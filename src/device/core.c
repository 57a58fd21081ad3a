/* gdn_core_delta: a layer between its projections.  A task is a lane and a strip of its key heads; for a tile of tokens, a key
 * head goes from the convolution to the gated norm while what it needs stays in the cache. */
#include "device/compute.h"
#include "kernel/math.h"

typedef struct core_call {
    const gdn_core_args *args;
    const gdn_compute   *compute;
    int                  n_strips;
} core_call;

/* One key head of one lane. */
typedef struct core_head {
    const core_call     *call;
    const gdn_core_lane *lane;
    gdn_scratch         *scratch;
    int                  key;
    const void          *tail_in;  /* of the lane, or NULL */
    const float         *state_in; /* of the lane, or NULL */
} core_head;

/* Convolve `width` channels from channel c of rows row.. into y, [n][y_stride]. */
static void convolve(const core_head *h, size_t row, int n, size_t c, int width, void *y, size_t y_stride)
{
    const gdn_core_args *const    a = h->call->args;
    const gdn_delta_config *const f = a->config;
    const size_t                  C = gdn_channels(f);
    const gdn_conv_job            job = {
                   .n_tokens = n,
                   .n_channels = width,
                   .n_taps = f->n_taps,
                   .type = f->type,
                   .recipe = f->recipe,
                   .x = gdn_at(f->type, a->qkv, row * a->qkv_stride + c),
                   .x_stride = a->qkv_stride,
                   .w = a->weights->conv + c,
                   .w_stride = C,
                   .tail_in = h->tail_in ? gdn_at(f->type, h->tail_in, c) : NULL,
                   .tail_out = gdn_at_out(f->type, h->lane->tail_out, c),
                   .tail_stride = C,
                   .y = y,
                   .y_stride = y_stride,
    };
    h->call->compute->kernels.conv_silu(&job);
}

static void normalise(const core_head *h, int n, int is_query, const void *x, float *y)
{
    const gdn_delta_config *const f = h->call->args->config;
    const gdn_qk_norm_job         job = {
                .n_rows = n,
                .dim = f->key_dim,
                .x_type = f->type,
                .y_type = GDN_F32,
                .form = f->qk_norm,
                .eps = f->qk_eps,
                .scale = gdn_qk_scale(f->qk_norm, is_query, f->key_dim),
                .x = x,
                .x_stride = f->key_dim,
                .y = y,
                .y_stride = f->key_dim,
    };
    h->call->compute->kernels.qk_norm(&job);
}

/* Value heads i0..i0+n_heads of this key head over rows row..row+n; q and k are ready in the scratch. */
static void value_heads(const core_head *h, size_t row, int n, int i0, int n_heads)
{
    const gdn_core_args *const    a = h->call->args;
    const gdn_delta_config *const f = a->config;
    const gdn_kernels *const      kernels = &h->call->compute->kernels;
    gdn_scratch *const            x = h->scratch;
    const size_t Hv = f->n_value_heads, Dk = f->key_dim, Dv = f->value_dim, keys = 2 * f->n_key_heads * Dk;
    const int    first = gdn_value_head(f->head_map, f->n_key_heads, f->n_value_heads, h->key, i0);
    const size_t step = f->head_map == GDN_HEADS_TILED ? f->n_key_heads : 1, tile = n_heads * Dv,
                 state = first * Dv * Dk;

    for (int i = 0; i < n_heads; i++)
        convolve(h, row, n, keys + (first + i * step) * Dv, f->value_dim, gdn_at_out(f->type, x->v, i * Dv), tile);

    const gdn_gates_tile gates = {
        .type = f->type,
        .recipe = f->recipe,
        .a = gdn_at(f->type, a->a, row * Hv),
        .b = gdn_at(f->type, a->b, row * Hv),
        .A_log = a->weights->A_log,
        .dt_bias = a->weights->dt_bias,
        .stride = Hv,
        .n_tokens = n,
        .n_heads = n_heads,
        .head = first,
        .step = (int)step,
    };
    gdn_gates_of_tile(h->call->compute, x, &gates);

    const gdn_delta_job rule = {
        .n_tokens = n,
        .n_heads = n_heads,
        .key_dim = f->key_dim,
        .value_dim = f->value_dim,
        .qk_type = GDN_F32,
        .v_type = f->type,
        .y_type = f->type,
        .q = x->q,
        .k = x->k,
        .qk_stride = Dk,
        .v = x->v,
        .v_stride = tile,
        .v_head = Dv,
        .g = x->a,
        .g_stride = n_heads,
        .g_head = 1,
        .beta = x->b,
        .beta_stride = n_heads,
        .beta_head = 1,
        .lane_order = 1,
        .state_in = h->state_in ? h->state_in + state : NULL,
        .state_out = h->lane->state_out + state,
        .state_head = step * Dv * Dk,
        .y = a->y ? x->y : NULL,
        .y_stride = tile,
        .y_head = Dv,
        .work = x->delta,
    };
    kernels->delta(&rule);

    for (int i = 0; a->y && i < n_heads; i++) {
        const size_t             head = (first + i * step) * Dv, at = row * Hv * Dv + head;
        const gdn_gated_norm_job norm = {
            .n_rows = n,
            .dim = f->value_dim,
            .type = f->type,
            .recipe = f->recipe,
            .eps = a->weights->norm_eps,
            .o = gdn_at(f->type, x->y, i * Dv),
            .z = gdn_at(f->type, a->z, row * a->z_stride + head),
            .o_stride = tile,
            .z_stride = a->z_stride,
            .w = a->weights->norm,
            .y = gdn_at_out(f->type, a->y, at),
            .y_stride = Hv * Dv,
        };
        kernels->gated_norm(&norm);
    }
}

/* Rows row..row+n, at most GDN_TILE_TOKENS of them. */
static void key_head(const core_head *h, size_t row, int n)
{
    const gdn_delta_config *const f = h->call->args->config;
    const size_t                  Dk = f->key_dim, q = h->key * Dk, k = f->n_key_heads * Dk + q;
    const int                     per_key = f->n_value_heads / f->n_key_heads;

    convolve(h, row, n, q, f->key_dim, h->scratch->q_conv, Dk);
    convolve(h, row, n, k, f->key_dim, h->scratch->k_conv, Dk);
    if (h->call->args->y) normalise(h, n, 1, h->scratch->q_conv, h->scratch->q);
    normalise(h, n, 0, h->scratch->k_conv, h->scratch->k);
    for (int i = 0; i < per_key; i += GDN_TILE_HEADS)
        value_heads(h, row, n, i, per_key - i < GDN_TILE_HEADS ? per_key - i : GDN_TILE_HEADS);
}

/* A lane without rows: what it remembers moves from in to out. */
static void move_lane(const core_head *h)
{
    const gdn_delta_config *const f = h->call->args->config;
    const size_t                  Dk = f->key_dim, Dv = f->value_dim, keys = f->n_key_heads * Dk, state = Dv * Dk;
    convolve(h, 0, 0, h->key * Dk, f->key_dim, NULL, 0);
    convolve(h, 0, 0, keys + h->key * Dk, f->key_dim, NULL, 0);
    for (int i = 0; i < f->n_value_heads / f->n_key_heads; i++) {
        const int    head = gdn_value_head(f->head_map, f->n_key_heads, f->n_value_heads, h->key, i);
        float *const out = h->lane->state_out + head * state;
        convolve(h, 0, 0, 2 * keys + head * Dv, f->value_dim, NULL, 0);
        if (!h->state_in) memset(out, 0, state * sizeof *out);
        else if (h->state_in != h->lane->state_out) memcpy(out, h->state_in + head * state, state * sizeof *out);
    }
}

static void zero_masked_rows(const core_head *h)
{
    const gdn_core_args *const    a = h->call->args;
    const gdn_delta_config *const f = a->config;
    for (int t = 0; t < h->lane->n_rows; t++)
        for (int i = 0; i < f->n_value_heads / f->n_key_heads && !h->lane->mask[t]; i++) {
            const size_t head = gdn_value_head(f->head_map, f->n_key_heads, f->n_value_heads, h->key, i);
            const size_t at = ((h->lane->first_row + t) * f->n_value_heads + head) * f->value_dim;
            memset(gdn_at_out(f->type, a->y, at), 0, f->value_dim * gdn_type_bytes(f->type));
        }
}

static void core_task(void *arg, int task, int thread)
{
    const core_call *const     call = arg;
    const int                  n_keys = call->args->config->n_key_heads, strip = task % call->n_strips;
    const int                  key0 = strip * n_keys / call->n_strips, key1 = (strip + 1) * n_keys / call->n_strips;
    const gdn_core_lane *const lane = &call->args->lanes[task / call->n_strips];
    core_head                  h = {call, lane, &call->compute->scratch[thread], 0, lane->tail_in, lane->state_in};

    gdn_run run = gdn_next_run(lane->mask, lane->n_rows, 0, GDN_TILE_TOKENS);
    for (h.key = key0; run.n == 0 && h.key < key1; h.key++) move_lane(&h);
    while (run.n > 0) {
        for (h.key = key0; h.key < key1; h.key++) key_head(&h, lane->first_row + run.first, run.n);
        h.tail_in = lane->tail_out;
        h.state_in = lane->state_out;
        run = gdn_next_run(lane->mask, lane->n_rows, run.first + run.n, GDN_TILE_TOKENS);
    }
    for (h.key = key0; lane->mask && call->args->y && h.key < key1; h.key++) zero_masked_rows(&h);
}

void gdn_core_delta(gdn_compute *compute, const gdn_core_args *args)
{
    core_call call = {args, compute, gdn_strips(compute, args->n_lanes, args->config->n_key_heads)};
    gdn_threads_run(compute->threads, args->n_lanes * call.n_strips, core_task, &call);
}
