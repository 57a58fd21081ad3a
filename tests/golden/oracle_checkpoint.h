/* oracle_checkpoint.h - a checkpoint as the oracle's doubles.  src/format reads the files; which tensor is what is stated here
 * anew.  What cannot be had (a file, memory) aborts with a message. */
#ifndef TESTS_GOLDEN_ORACLE_CHECKPOINT_H
#define TESTS_GOLDEN_ORACLE_CHECKPOINT_H
#include "format/config.h"
#include "format/safetensors.h"
#include "oracle/model.h"
#include <stdio.h>
#include <stdlib.h>

static inline oracle_model *oracle_model_open(const char *folder); /* free with oracle_model_close */
static inline oracle_model *oracle_model_open_rounding(
    const char *folder);                                    /* rounds what a matrix multiplies, as gdn does */
static inline void oracle_model_close(oracle_model *model); /* NULL is allowed */

typedef struct checkpoint_reader {
    oracle_model    *model;
    gdn_model_config config;
    gdn_tensors      files;
} checkpoint_reader;

static inline _Noreturn void checkpoint_stop(const char *what, const char *why)
{
    fprintf(stderr, "oracle: %s: %s\n", what, why);
    abort();
}

static inline void *checkpoint_allocate_zeros(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    if (!p) checkpoint_stop("memory", "there is too little");
    return p;
}

static inline void *checkpoint_own(oracle_model *m, size_t n, size_t bytes)
{
    m->owned = realloc(m->owned, ((size_t)m->n_owned + 1) * sizeof *m->owned);
    if (!m->owned) checkpoint_stop("memory", "there is too little");
    return m->owned[m->n_owned++] = checkpoint_allocate_zeros(n, bytes);
}

/* A tensor of the text model is called with one of three prefixes; NULL if it is not there. */
static inline const gdn_tensor *checkpoint_find(const checkpoint_reader *r, const char *scope, const char *name)
{
    static const char *const prefixes[] = {"", "model.", "model.language_model."};
    for (int i = 0; i < 3; i++) {
        char full[200];
        snprintf(full, sizeof full, "%s%s%s", prefixes[i], scope, name);
        const gdn_tensor *t = gdn_tensors_find(&r->files, full);
        if (t) return t;
    }
    return NULL;
}

static inline const double *checkpoint_numbers(checkpoint_reader *r, const char *scope, const char *name, size_t n)
{
    const gdn_tensor *t = checkpoint_find(r, scope, name);
    gdn_error         err = {0};
    if (!t) checkpoint_stop(name, "there is no such tensor");
    if (gdn_tensor_elements(t) != n) checkpoint_stop(t->name, "it has another number of elements");
    float  *f32 = checkpoint_allocate_zeros(n, sizeof *f32);
    double *f64 = checkpoint_own(r->model, n, sizeof *f64);
    if (gdn_tensor_to_f32(f32, t, 0, n, &err) != GDN_OK) checkpoint_stop(t->name, err.message);
    for (size_t i = 0; i < n; i++) f64[i] = (double)f32[i];
    free(f32);
    return f64;
}

static inline oracle_matrix checkpoint_matrix(checkpoint_reader *r, const char *scope, const char *name, int rows,
                                              int cols)
{
    return (oracle_matrix){rows, cols, checkpoint_numbers(r, scope, name, (size_t)rows * cols), r->model->rounds};
}

static inline oracle_swiglu read_swiglu(checkpoint_reader *r, const char *scope, int width)
{
    const int h = r->config.hidden_size;
    return (oracle_swiglu){checkpoint_matrix(r, scope, "gate_proj.weight", width, h),
                           checkpoint_matrix(r, scope, "up_proj.weight", width, h),
                           checkpoint_matrix(r, scope, "down_proj.weight", h, width)};
}

/* Packed, gate over up in one matrix, or one by one. */
static inline oracle_swiglu *read_experts(checkpoint_reader *r, const char *scope)
{
    const gdn_model_config *c = &r->config;
    const int               E = c->n_experts, I = c->expert_size, h = c->hidden_size;
    oracle_swiglu          *experts = checkpoint_own(r->model, E, sizeof *experts);
    if (checkpoint_find(r, scope, "mlp.experts.gate_up_proj")) {
        const size_t  n = (size_t)I * h;
        const double *gate_up = checkpoint_numbers(r, scope, "mlp.experts.gate_up_proj", (size_t)E * 2 * n);
        const double *down = checkpoint_numbers(r, scope, "mlp.experts.down_proj", (size_t)E * n);
        const int     rounds = r->model->rounds;
        for (int e = 0; e < E; e++)
            experts[e] = (oracle_swiglu){{I, h, gate_up + 2 * e * n, rounds},
                                         {I, h, gate_up + (2 * e + 1) * n, rounds},
                                         {h, I, down + e * n, rounds}};
        return experts;
    }
    for (int e = 0; e < E; e++) {
        char expert[100];
        snprintf(expert, sizeof expert, "%smlp.experts.%d.", scope, e);
        experts[e] = read_swiglu(r, expert, I);
    }
    return experts;
}

static inline oracle_ffn read_ffn(checkpoint_reader *r, const char *scope)
{
    const gdn_model_config *c = &r->config;
    oracle_ffn              ffn = {0};
    char                    part[100];
    if (!checkpoint_find(r, scope, "mlp.gate.weight")) {
        snprintf(part, sizeof part, "%smlp.", scope);
        ffn.dense = read_swiglu(r, part, c->ffn_size);
        return ffn;
    }
    ffn.router = checkpoint_matrix(r, scope, "mlp.gate.weight", c->n_experts, c->hidden_size);
    ffn.shared_gate = checkpoint_matrix(r, scope, "mlp.shared_expert_gate.weight", 1, c->hidden_size);
    snprintf(part, sizeof part, "%smlp.shared_expert.", scope);
    ffn.shared = read_swiglu(r, part, c->shared_expert_size);
    ffn.experts = read_experts(r, scope);
    return ffn;
}

static inline void read_attention(checkpoint_reader *r, const char *scope, oracle_block *b)
{
    const gdn_model_config *c = &r->config;
    const int               h = c->hidden_size, D = c->head_dim, keys = c->n_kv_heads * D, all = c->n_heads * D;
    b->q = checkpoint_matrix(r, scope, "self_attn.q_proj.weight", 2 * all, h);
    b->k = checkpoint_matrix(r, scope, "self_attn.k_proj.weight", keys, h);
    b->v = checkpoint_matrix(r, scope, "self_attn.v_proj.weight", keys, h);
    b->o = checkpoint_matrix(r, scope, "self_attn.o_proj.weight", h, all);
    b->q_norm = checkpoint_numbers(r, scope, "self_attn.q_norm.weight", D);
    b->k_norm = checkpoint_numbers(r, scope, "self_attn.k_norm.weight", D);
}

/* [C][1][K] of the file, taps innermost, as [K][C]. */
static inline const double *read_conv(checkpoint_reader *r, const char *scope, int C, int K)
{
    const double *stored = checkpoint_numbers(r, scope, "linear_attn.conv1d.weight", (size_t)C * K);
    double       *w = checkpoint_own(r->model, (size_t)C * K, sizeof *w);
    for (int c = 0; c < C; c++)
        for (int j = 0; j < K; j++) w[(size_t)j * C + c] = stored[(size_t)c * K + j];
    return w;
}

static inline void read_linear(checkpoint_reader *r, const char *scope, oracle_block *b)
{
    const gdn_model_config *c = &r->config;
    const int h = c->hidden_size, Hv = c->n_value_heads, keys = c->n_key_heads * c->key_dim, values = Hv * c->value_dim,
              C = 2 * keys + values;
    if (checkpoint_find(r, scope, "linear_attn.in_proj_qkvz.weight")) {
        b->in_qkvz = checkpoint_matrix(r, scope, "linear_attn.in_proj_qkvz.weight", C + values, h);
        b->in_ba = checkpoint_matrix(r, scope, "linear_attn.in_proj_ba.weight", 2 * Hv, h);
    } else {
        b->in_qkv = checkpoint_matrix(r, scope, "linear_attn.in_proj_qkv.weight", C, h);
        b->in_z = checkpoint_matrix(r, scope, "linear_attn.in_proj_z.weight", values, h);
        b->in_b = checkpoint_matrix(r, scope, "linear_attn.in_proj_b.weight", Hv, h);
        b->in_a = checkpoint_matrix(r, scope, "linear_attn.in_proj_a.weight", Hv, h);
    }
    b->delta = checkpoint_matrix(r, scope, "linear_attn.out_proj.weight", h, values);
    b->linear = (oracle_layer){.n_key_heads = c->n_key_heads,
                               .n_value_heads = Hv,
                               .key_dim = c->key_dim,
                               .value_dim = c->value_dim,
                               .n_taps = c->n_taps,
                               .form = ORACLE_SUM,
                               .qk_eps = 1e-6, /* of the family, whatever rms_norm_eps says */
                               .norm_eps = c->rms_eps,
                               .conv = read_conv(r, scope, C, c->n_taps),
                               .A_log = checkpoint_numbers(r, scope, "linear_attn.A_log", Hv),
                               .dt_bias = checkpoint_numbers(r, scope, "linear_attn.dt_bias", Hv),
                               .norm = checkpoint_numbers(r, scope, "linear_attn.norm.weight", c->value_dim)};
}

static inline oracle_block read_block(checkpoint_reader *r, const char *scope, int full)
{
    const int    h = r->config.hidden_size;
    oracle_block b = {0};
    b.input_norm = checkpoint_numbers(r, scope, "input_layernorm.weight", h);
    b.post_norm = checkpoint_numbers(r, scope, "post_attention_layernorm.weight", h);
    if (full) read_attention(r, scope, &b);
    else read_linear(r, scope, &b);
    b.ffn = read_ffn(r, scope);
    return b;
}

/* A mixer and router whose matrices multiply two parts, if any. */
static inline void checkpoint_round_twice(oracle_block *b)
{
    oracle_matrix *const of_mixer[] = {
        &b->q,    &b->k,       &b->v,     &b->o,     &b->in_qkv,     &b->in_z,           &b->in_b,
        &b->in_a, &b->in_qkvz, &b->in_ba, &b->delta, &b->ffn.router, &b->ffn.shared_gate};
    for (size_t i = 0; i < sizeof of_mixer / sizeof *of_mixer; i++) of_mixer[i]->rounds *= 2;
}

static inline void checkpoint_mtp(checkpoint_reader *r)
{
    oracle_model *m = r->model;
    const int     h = r->config.hidden_size;
    m->mtp_embedding_norm = checkpoint_numbers(r, "mtp.", "pre_fc_norm_embedding.weight", h);
    m->mtp_norm_of_hidden = checkpoint_numbers(r, "mtp.", "pre_fc_norm_hidden.weight", h);
    m->mtp_norm = checkpoint_numbers(r, "mtp.", "norm.weight", h);
    m->mtp_fc = checkpoint_matrix(r, "mtp.", "fc.weight", h, 2 * h);
    m->mtp = read_block(r, "mtp.layers.0.", 1);
}

static inline oracle_config checkpoint_config_of(const gdn_model_config *c)
{
    return (oracle_config){.vocab_size = c->vocab_size,
                           .hidden_size = c->hidden_size,
                           .n_layers = c->n_layers,
                           .n_heads = c->n_heads,
                           .n_kv_heads = c->n_kv_heads,
                           .head_dim = c->head_dim,
                           .rope_dims = c->rope_dims,
                           .n_experts = c->n_experts,
                           .n_experts_used = c->n_experts_used,
                           .sum_to_1 = c->norm_topk_prob,
                           .rope_theta = c->rope_theta,
                           .rms_eps = c->rms_eps};
}

static inline oracle_model *checkpoint_open(const char *folder, int rounds)
{
    oracle_model *m = checkpoint_allocate_zeros(1, sizeof *m);
    m->rounds = rounds;
    checkpoint_reader r = {.model = m};
    gdn_error         err = {0};
    if (gdn_model_config_load(&r.config, folder, &err) != GDN_OK) checkpoint_stop(folder, err.message);
    if (gdn_tensors_open(&r.files, folder, &err) != GDN_OK) checkpoint_stop(folder, err.message);
    m->config = checkpoint_config_of(&r.config);
    const int V = m->config.vocab_size, h = m->config.hidden_size, L = m->config.n_layers;
    m->embed = checkpoint_matrix(&r, "", "embed_tokens.weight", V, h);
    m->lm_head =
        checkpoint_find(&r, "", "lm_head.weight") ? checkpoint_matrix(&r, "", "lm_head.weight", V, h) : m->embed;
    m->lm_head.rounds = 2 * rounds;
    m->norm = checkpoint_numbers(&r, "", "norm.weight", h);
    m->blocks = checkpoint_own(m, L, sizeof *m->blocks);
    for (int l = 0; l < L; l++) {
        char scope[40];
        snprintf(scope, sizeof scope, "layers.%d.", l);
        m->blocks[l] = read_block(&r, scope, r.config.layers[l].mixer == GDN_MIXER_FULL);
    }
    checkpoint_round_twice(&m->blocks[0]);
    if (checkpoint_find(&r, "mtp.", "fc.weight")) checkpoint_mtp(&r);
    gdn_tensors_close(&r.files);
    return m;
}

static inline oracle_model *oracle_model_open(const char *folder) { return checkpoint_open(folder, 0); }
static inline oracle_model *oracle_model_open_rounding(const char *folder) { return checkpoint_open(folder, 1); }

static inline void oracle_model_close(oracle_model *m)
{
    if (!m) return;
    for (int i = 0; i < m->n_owned; i++) free(m->owned[i]);
    free(m->owned);
    free(m);
}

#endif
