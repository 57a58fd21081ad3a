/* law.h - the naive model behind the tests of the law: a sequence is a list of token ids.  Everything that a layer
 * sees of a token follows from its id, and everything that the library holds or returns for a sequence is recomputed
 * here, one token at a time, from the kernels' definitions (the *_ref variants) and from nothing else of src/. */
#ifndef LAW_H
#define LAW_H
#include "gdn/delta.h"
#include "kernel/kernel.h"
#include "support/typed.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LAW_MAX_LAYERS = 3 };

/* What the tokens of a batch give to one layer: arrays as in gdn_layer_args. */
typedef struct law_rows {
    void *qkv, *z, *a, *b;
} law_rows;

/* The shape and the weights of a stack of layers.  A lane's memory here is [layer]{state, tail}, the state's rows in
 * lane order as in a pool, so that memcmp compares them; a lane without tokens has none, whatever the bytes are. */
typedef struct law_model {
    gdn_delta_config  config;
    int               n_layers;
    uint64_t          seed;
    gdn_kernels       kernels;
    gdn_delta_weights weights[LAW_MAX_LAYERS];
    size_t            n_channels, n_z, n_state, n_tail; /* elements */
    size_t            type_bytes, layer_bytes, lane_bytes;
    float            *weight_memory;
    int               lane_order[GDN_MAX_DIM]; /* where element i of a state's row stands in a pool */
    unsigned char    *scratch;
} law_model;

/* ---- numbers from ids -------------------------------------------------------------------------------------------- */

static inline uint64_t law_hash(uint64_t a, uint64_t b)
{
    uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0..n-1 */
static inline int law_pick(uint64_t a, uint64_t b, int n) { return (int)(law_hash(a, b) % (uint64_t)n); }

/* In [lo, hi), exact in f32. */
static inline float law_float(uint64_t a, uint64_t b, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(law_hash(a, b) >> 40) * 0x1p-24f);
}

static inline void *law_alloc(size_t n_bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, n_bytes ? n_bytes : 1)) abort();
    return p;
}

/* dst[at..at+n) of `type`, values in [-scale, scale) that depend on the key alone. */
static inline void law_fill(gdn_type type, void *dst, size_t at, size_t n, uint64_t key, float scale)
{
    uint64_t x = law_hash(key, 0) | 1;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        const float value = scale * ((float)(int32_t)(x >> 32) * 0x1p-31f);
        if (type == GDN_BF16) {
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            ((uint16_t *)dst)[at + i] = (uint16_t)(bits >> 16);
        } else {
            ((float *)dst)[at + i] = value;
        }
    }
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

static inline void law_weights(law_model *m)
{
    const gdn_delta_config *c = &m->config;
    const size_t            n_conv = m->n_channels * (size_t)c->n_taps, n_heads = (size_t)c->n_value_heads;
    const size_t            n = n_conv + 2 * n_heads + (size_t)c->value_dim;
    m->weight_memory = law_alloc((size_t)m->n_layers * n * sizeof(float));
    for (int layer = 0; layer < m->n_layers; layer++) {
        float         *conv = m->weight_memory + (size_t)layer * n, *A_log = conv + n_conv;
        float         *dt_bias = A_log + n_heads, *norm = dt_bias + n_heads;
        const uint64_t key = law_hash(m->seed, 1000u + (unsigned)layer);
        law_fill(GDN_F32, conv, 0, n_conv, law_hash(key, 1), 0.8f);
        for (size_t h = 0; h < n_heads; h++) {
            A_log[h] = law_float(key, 10 + 2 * h, -3.0f, 1.0f);
            dt_bias[h] = law_float(key, 11 + 2 * h, -2.0f, 1.0f);
        }
        for (int i = 0; i < c->value_dim; i++) norm[i] = law_float(key, 1000u + (unsigned)i, 0.5f, 1.5f);
        m->weights[layer] =
            (gdn_delta_weights){.conv = conv, .A_log = A_log, .dt_bias = dt_bias, .norm = norm, .norm_eps = 1e-6f};
    }
}

static inline void law_model_open(law_model *m, const gdn_delta_config *config, int n_layers, uint64_t seed)
{
    const size_t hk = (size_t)config->n_key_heads, hv = (size_t)config->n_value_heads;
    const size_t dk = (size_t)config->key_dim, dv = (size_t)config->value_dim;
    *m = (law_model){.config = *config, .n_layers = n_layers, .seed = seed};
    gdn_kernels_fill(&m->kernels, 0);
    m->n_channels = 2 * hk * dk + hv * dv;
    m->n_z = hv * dv;
    m->n_state = hv * dv * dk;
    m->n_tail = m->n_channels * (size_t)(config->n_taps - 1);
    m->type_bytes = typed_bytes(config->type);
    m->layer_bytes = m->n_state * sizeof(float) + m->n_tail * m->type_bytes;
    m->lane_bytes = m->layer_bytes * (size_t)n_layers;
    for (int i = 0; i < config->key_dim; i++) {
        const int l = i / (config->key_dim / 32), bit[] = {l & 1, l >> 1 & 1, l >> 2 & 1, l >> 3 & 1, l >> 4 & 1};
        m->lane_order[i] =
            i % (config->key_dim / 32) * 32 + 16 * bit[0] + 8 * bit[1] + 4 * bit[3] + 2 * bit[2] + bit[4];
    }
    m->scratch = law_alloc((GDN_DELTA_WORK + dk * dv + 6 * m->n_channels + 8 * hv) * sizeof(float));
    law_weights(m);
}

static inline void law_model_close(law_model *m)
{
    free(m->weight_memory);
    free(m->scratch);
}

static inline float *law_state(const law_model *m, unsigned char *lane, int layer)
{
    return (float *)(void *)(lane + (size_t)layer * m->layer_bytes);
}

static inline void *law_tail(const law_model *m, unsigned char *lane, int layer)
{
    return law_state(m, lane, layer) + m->n_state;
}

/* Row `row` of the arrays: what layer `layer` sees of a token. */
static inline void law_token_row(const law_model *m, int layer, uint64_t token, const law_rows *rows, size_t row)
{
    const gdn_type type = m->config.type;
    const size_t   hv = (size_t)m->config.n_value_heads;
    const uint64_t key = law_hash(law_hash(m->seed, token), (uint64_t)layer);
    law_fill(type, rows->qkv, row * m->n_channels, m->n_channels, key ^ 1, 2.0f);
    law_fill(type, rows->z, row * m->n_z, m->n_z, key ^ 2, 2.0f);
    law_fill(type, rows->a, row * hv, hv, key ^ 3, 3.0f);
    law_fill(type, rows->b, row * hv, hv, key ^ 4, 3.0f);
}

/* Rows for n tokens; free them with law_rows_free.  Each array has its own allocation, so that a sanitizer sees its
 * end. */
static inline law_rows law_rows_alloc(const law_model *m, size_t n)
{
    const size_t hv = (size_t)m->config.n_value_heads;
    return (law_rows){.qkv = law_alloc(n * m->n_channels * m->type_bytes),
                      .z = law_alloc(n * m->n_z * m->type_bytes),
                      .a = law_alloc(n * hv * m->type_bytes),
                      .b = law_alloc(n * hv * m->type_bytes)};
}

static inline void law_rows_free(law_rows *rows)
{
    free(rows->qkv);
    free(rows->z);
    free(rows->a);
    free(rows->b);
}

/* ---- one token --------------------------------------------------------------------------------------------------- */

/* The normalised heads are f32, whatever the type of the activations. */
static inline void law_norm_heads(const law_model *m, const void *heads, bool is_query, float *y)
{
    const gdn_delta_config *c = &m->config;
    const double            root = 1.0 / sqrt((double)c->key_dim);
    const float             rms = (float)(is_query ? 1.0 / (double)c->key_dim : root);
    const float             scale = c->qk_norm == GDN_QK_NORM_RMS ? rms : (float)(is_query ? root : 1.0);
    const gdn_qk_norm_job   job = {.n_rows = c->n_key_heads,
                                   .dim = c->key_dim,
                                   .x_type = c->type,
                                   .y_type = GDN_F32,
                                   .form = c->qk_norm,
                                   .eps = c->qk_eps,
                                   .scale = scale,
                                   .x = heads,
                                   .x_stride = (size_t)c->key_dim,
                                   .y = y,
                                   .y_stride = (size_t)c->key_dim};
    m->kernels.qk_norm(&job);
}

static inline void law_gates(const law_model *m, int layer, const law_rows *row, float *g, float *beta)
{
    const gdn_delta_config *c = &m->config;
    for (int h = 0; h < c->n_value_heads; h++) {
        g[h] = typed_get(c->type, row->a, (size_t)h);
        beta[h] = typed_get(c->type, row->b, (size_t)h);
    }
    const gdn_gates_job job = {.n = c->n_value_heads,
                               .type = c->type,
                               .recipe = c->recipe,
                               .a = g,
                               .b = beta,
                               .A_log = m->weights[layer].A_log,
                               .dt_bias = m->weights[layer].dt_bias,
                               .g = g,
                               .beta = beta};
    m->kernels.gates(&job);
}

/* dst[to[i]] = src[i] or dst[i] = src[to[i]] in every row of a head's state. */
static inline void law_reorder(const law_model *m, float *dst, const float *src, bool to_pool)
{
    const int dk = m->config.key_dim, *to = m->lane_order;
    for (int row = 0; row < m->config.value_dim; row++, dst += dk, src += dk)
        for (int i = 0; i < dk; i++) *(to_pool ? dst + to[i] : dst + i) = *(to_pool ? src + i : src + to[i]);
}

/* One value head of one token; `state` is in lane order, the kernel works on a copy in natural order. */
static inline void law_delta_head(const law_model *m, int head, const float *qk, const unsigned char *v, const float *g,
                                  const float *beta, float *state, bool fresh, unsigned char *o)
{
    float                  *work = (float *)(void *)m->scratch, *natural = work + GDN_DELTA_WORK;
    const gdn_delta_config *c = &m->config;
    const size_t        dk = (size_t)c->key_dim, dv = (size_t)c->value_dim, key_channels = (size_t)c->n_key_heads * dk;
    const int           per_key = c->n_value_heads / c->n_key_heads;
    const size_t        key_head = (size_t)(c->head_map == GDN_HEADS_GROUPED ? head / per_key : head % c->n_key_heads);
    const gdn_delta_job job = {.n_tokens = 1,
                               .n_heads = 1,
                               .key_dim = c->key_dim,
                               .value_dim = c->value_dim,
                               .qk_type = GDN_F32,
                               .v_type = c->type,
                               .y_type = c->type,
                               .q = qk + key_head * dk,
                               .k = qk + key_channels + key_head * dk,
                               .v = v + (size_t)head * dv * m->type_bytes,
                               .g = g + head,
                               .beta = beta + head,
                               .state_in = fresh ? NULL : natural,
                               .state_out = natural,
                               .y = o + (size_t)head * dv * m->type_bytes,
                               .work = work};
    state += (size_t)head * dv * dk;
    if (!fresh) law_reorder(m, natural, state, false);
    m->kernels.delta(&job);
    law_reorder(m, state, natural, true);
}

/* One token through one layer: the lane's memory moves, y [Hv][Dv] is what the output projection would get. */
static inline void law_step(const law_model *m, int layer, uint64_t token, bool fresh, unsigned char *lane, void *y)
{
    const gdn_delta_config *c = &m->config;
    float                  *g = (float *)(void *)m->scratch + GDN_DELTA_WORK + (size_t)(c->key_dim * c->value_dim);
    float                  *beta = g + c->n_value_heads;
    float                  *arrays = beta + c->n_value_heads;
    law_rows                row = {.qkv = arrays, .z = arrays + m->n_channels, .a = arrays + 2 * m->n_channels};
    float                  *qk = arrays + 3 * m->n_channels;
    unsigned char          *conv = (unsigned char *)(arrays + 4 * m->n_channels);
    unsigned char          *o = (unsigned char *)(arrays + 5 * m->n_channels);
    const size_t            n_keys = (size_t)c->n_key_heads * (size_t)c->key_dim;
    void                   *tail = law_tail(m, lane, layer);
    row.b = (float *)row.a + c->n_value_heads;
    law_token_row(m, layer, token, &row, 0);

    const gdn_conv_job job = {.n_tokens = 1,
                              .n_channels = (int)m->n_channels,
                              .n_taps = c->n_taps,
                              .type = c->type,
                              .recipe = c->recipe,
                              .x = row.qkv,
                              .x_stride = m->n_channels,
                              .w = m->weights[layer].conv,
                              .w_stride = m->n_channels,
                              .tail_in = fresh ? NULL : tail,
                              .tail_out = tail,
                              .tail_stride = m->n_channels,
                              .y = conv,
                              .y_stride = m->n_channels};
    m->kernels.conv_silu(&job);
    law_norm_heads(m, conv, true, qk);
    law_norm_heads(m, conv + n_keys * m->type_bytes, false, qk + n_keys);
    law_gates(m, layer, &row, g, beta);
    for (int head = 0; head < c->n_value_heads; head++)
        law_delta_head(m, head, qk, conv + 2 * n_keys * m->type_bytes, g, beta, law_state(m, lane, layer), fresh, o);
    const gdn_gated_norm_job norm = {.n_rows = c->n_value_heads,
                                     .dim = c->value_dim,
                                     .type = c->type,
                                     .recipe = c->recipe,
                                     .eps = m->weights[layer].norm_eps,
                                     .o = o,
                                     .z = row.z,
                                     .o_stride = (size_t)c->value_dim,
                                     .z_stride = (size_t)c->value_dim,
                                     .w = m->weights[layer].norm,
                                     .y = y,
                                     .y_stride = (size_t)c->value_dim};
    m->kernels.gated_norm(&norm);
}

/* A whole sequence from its tokens: lane memory, and when y is not NULL the outputs [n_layers][n][Hv][Dv]. */
static inline void law_run(const law_model *m, const uint64_t *tokens, int n, unsigned char *lane, unsigned char *y)
{
    const size_t   y_bytes = m->n_z * m->type_bytes;
    unsigned char *ignored = law_alloc(y_bytes);
    for (int layer = 0; layer < m->n_layers; layer++)
        for (int t = 0; t < n; t++)
            law_step(m, layer, tokens[t], t == 0, lane,
                     y ? y + ((size_t)layer * (size_t)n + (size_t)t) * y_bytes : ignored);
    free(ignored);
}

#endif
