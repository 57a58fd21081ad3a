/* From a bound checkpoint, or a seed, to packed weights. */
#include "model/load.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void attention_layer(gdn_loader *ld, gdn_attention_weights *w, const gdn_attention_tensors *t)
{
    const gdn_model_config *c = &ld->model->config;
    const int               h = c->hidden_size, HD = c->n_heads * c->head_dim, GD = c->n_kv_heads * c->head_dim;
    w->q = gdn_load_linear(ld, t->q_proj, 2 * HD, h);
    w->k = gdn_load_linear(ld, t->k_proj, GD, h);
    w->v = gdn_load_linear(ld, t->v_proj, GD, h);
    w->o = gdn_load_linear(ld, t->o_proj, h, HD);
    w->q_norm = gdn_load_vector(ld, t->q_norm, 1.0f);
    w->k_norm = gdn_load_vector(ld, t->k_norm, 1.0f);
}

/* Layer `at` of all: that of MTP is behind the others. */
static void layer(gdn_loader *ld, gdn_layer_weights *w, int at, gdn_layer_kind kind, const gdn_layer_tensors *t)
{
    gdn_model              *m = ld->model;
    const gdn_model_config *c = &m->config;
    w->mixer = (gdn_mixer)kind.mixer;
    w->ffn = (gdn_ffn)kind.ffn;
    w->input_norm = gdn_load_vector(ld, t->input_norm, 1.0f);
    w->post_norm = gdn_load_vector(ld, t->post_norm, 1.0f);
    if (w->mixer == GDN_MIXER_LINEAR) gdn_load_delta(ld, &w->linear, &t->linear);
    else attention_layer(ld, &w->attention, &t->attention);
    if (m->experts) w->moe.experts = m->experts + (size_t)at * (c->n_experts + 1);
    if (w->ffn == GDN_FFN_MOE) gdn_load_moe(ld, &w->moe, &t->moe);
    else gdn_load_mlp(ld, &w->mlp, &t->mlp, c->ffn_size);
}

static void layers(gdn_loader *ld, const gdn_checkpoint *checkpoint)
{
    gdn_model *const m = ld->model;
    for (int i = 0; i < m->config.n_layers && !ld->status; i++) {
        gdn_layer_weights *const w = &m->layers[i];
        layer(ld, w, i, m->config.layers[i], &checkpoint->layers[ld->random ? 0 : i]);
        w->number = w->mixer == GDN_MIXER_LINEAR ? m->n_delta_layers++ : m->n_attention_layers++;
    }
}

static void mtp(gdn_loader *ld, const gdn_mtp_tensors *t)
{
    gdn_model *const       m = ld->model;
    gdn_mtp_weights *const w = &m->mtp;
    const int              h = m->config.hidden_size;
    w->norm_embedding = gdn_load_vector(ld, t->norm_embedding, 1.0f);
    w->norm_hidden = gdn_load_vector(ld, t->norm_hidden, 1.0f);
    w->norm = gdn_load_vector(ld, t->norm, 1.0f);
    w->fc = gdn_load_linear(ld, t->fc, h, 2 * h);
    layer(ld, &w->layer, m->config.n_layers, gdn_mtp_kind(&m->config), &t->layer);
    w->layer.number = m->n_attention_layers;
}

/* The output matrix, and the embedding when it is another one. */
static void vocabulary(gdn_loader *ld, const gdn_checkpoint *checkpoint)
{
    gdn_model *const m = ld->model;
    const int        V = m->config.vocab_size, h = m->config.hidden_size;
    m->lm_head = gdn_load_linear(ld, checkpoint->lm_head, V, h);
    if (checkpoint->tied) return;
    m->embed = gdn_load_take(ld, (size_t)V * h * sizeof *m->embed);
    gdn_tensor_expect(checkpoint->embed);
    for (int i = 0; i < V && !ld->status; i++) {
        const size_t at = (size_t)i * h;
        gdn_load_bf16(ld, m->embed + at, checkpoint->embed, at, (size_t)h);
        gdn_load_count(ld, h * sizeof *m->embed);
    }
    gdn_tensor_release(checkpoint->embed);
}

/* theta_i = base^(-2i/rope_dims), in f32 as transformers has it. */
static void rope_frequencies(gdn_loader *ld)
{
    gdn_model *m = ld->model;
    const int  n = m->config.rope_dims / 2;
    m->inv_freq = gdn_load_take(ld, (size_t)n * sizeof *m->inv_freq);
    for (int i = 0; m->inv_freq && i < n; i++)
        m->inv_freq[i] = (float)(1.0 / pow(m->config.rope_theta, 2.0 * i / m->config.rope_dims));
    gdn_load_count(ld, (size_t)n * sizeof *m->inv_freq);
}

/* `random`: NULL, or what the tensors of the checkpoint, whose layers then are all alike, are read from. */
static gdn_status load(gdn_model **out, const gdn_checkpoint *checkpoint, bool with_mtp, gdn_random *random,
                       gdn_load_progress_fn *progress, void *arg, gdn_error *err)
{
    const gdn_model_config *c = &checkpoint->config;
    if (c->hidden_size % 32)
        return gdn_fail(err, GDN_UNSUPPORTED, c->hidden_size,
                        "model: a hidden size of %d; this version runs multiples of 32", c->hidden_size);
    gdn_model *m = calloc(1, sizeof *m);
    if (!m) return gdn_fail(err, GDN_NO_MEMORY, 0, "model: no memory");
    m->has_mtp = with_mtp && checkpoint->has_mtp;
    const size_t n_layers = (size_t)c->n_layers + m->has_mtp;
    gdn_loader   ld = {.model = m,
                       .random = random,
                       .progress = progress,
                       .arg = arg,
                       .total = gdn_model_bytes(c, checkpoint->tied, m->has_mtp),
                       .err = err};
    m->config = *c;
    m->delta = gdn_model_delta(c);
    m->weights = gdn_alloc_aligned(ld.total);
    m->layers = calloc((size_t)c->n_layers, sizeof *m->layers);
    if (c->n_experts) m->experts = calloc(n_layers * (c->n_experts + 1), sizeof *m->experts);
    if (!m->weights || !m->layers || (c->n_experts && !m->experts))
        ld.status = gdn_fail(err, GDN_NO_MEMORY, 0, "model: no memory for %zu bytes of weights", ld.total);
    vocabulary(&ld, checkpoint);
    m->norm = gdn_load_vector(&ld, checkpoint->norm, 1.0f);
    rope_frequencies(&ld);
    layers(&ld, checkpoint);
    if (m->has_mtp) mtp(&ld, &checkpoint->mtp);
    free(ld.rows);
    if (ld.status) {
        gdn_model_close(m);
        return ld.status;
    }
    *out = m;
    return GDN_OK;
}

gdn_status gdn_model_load(gdn_model **out, const gdn_checkpoint *checkpoint, bool with_mtp,
                          gdn_load_progress_fn *progress, void *arg, gdn_error *err)
{
    return load(out, checkpoint, with_mtp, NULL, progress, arg, err);
}

gdn_status gdn_model_random(gdn_model **out, const gdn_model_config *config, uint64_t seed, bool with_mtp,
                            gdn_load_progress_fn *progress, void *arg, gdn_error *err)
{
    gdn_random random;
    gdn_random_open(&random, config, seed);
    const gdn_checkpoint checkpoint = {.config = *config,
                                       .tied = config->tie == GDN_TIE_YES,
                                       .embed = &random.matrix.tensor,
                                       .lm_head = &random.matrix.tensor,
                                       .norm = &random.norm.tensor,
                                       .layers = &random.layer,
                                       .has_mtp = true,
                                       .mtp = random.mtp};
    return load(out, &checkpoint, with_mtp, &random, progress, arg, err);
}

void gdn_model_close(gdn_model *m)
{
    if (!m) return;
    free(m->weights);
    free(m->layers);
    free(m->experts);
    free(m);
}
