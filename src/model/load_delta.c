/* A gated delta layer: rows in the order of Qwen3.5, whatever the file's, and heads of 16 as heads of 32.
 *
 * What is added to a head is zero, and stays so: zero rows of the projection and zero taps give q, k, v and z of 0, the state
 * gets rows and columns of 0, and zero columns of the output matrix take what comes out.  The true numbers change by two known
 * factors.  With F = 32/16 for a padded dim and 1 for another, the query is scaled with 1/sqrt(Dk*F), so that outputs are
 * 1/sqrt(F_k) of what they were, and the mean of their squares, over Dv*F_v elements, 1/(F_k*F_v).  The gated norm with eps/(F_k*F_v)
 * then gives sqrt(F_v) times what it did; its weight takes that back. */
#include "model/load.h"
#include <math.h>
#include <stdlib.h>

/* Where each row of a projection, and each channel of the convolution, comes from; -1: it is padding. */
typedef struct sources {
    int *block;                      /* of all */
    int *qkv, *z, *b, *a, *channels; /* [C], [Hv*Dv], [Hv], [Hv], [C] */
} sources;

/* dst[n_heads*padded]: heads of src [n_heads*dim], or of the numbers from `from` on when src is NULL. */
static int *pad_heads(int *dst, const int *src, int from, int n_heads, int dim, int padded)
{
    for (int head = 0; head < n_heads; head++)
        for (int i = 0; i < padded; i++) {
            const int at = from + head * dim + i;
            *dst++ = i >= dim ? -1 : src ? src[at] : at;
        }
    return dst;
}

/* The rows of q, k and v. */
static void pad_qkv(int *dst, const int *src, const gdn_model_config *c, const gdn_delta_config *d)
{
    const int keys = 2 * c->n_key_heads;
    dst = pad_heads(dst, src, 0, keys, c->key_dim, d->key_dim);
    pad_heads(dst, src, keys * c->key_dim, c->n_value_heads, c->value_dim, d->value_dim);
}

static gdn_status sources_open(sources *s, const gdn_model_config *c, const gdn_delta_config *d, bool interleaved,
                               gdn_error *err)
{
    const int CD = gdn_config_channels(c), VD = c->n_value_heads * c->value_dim, Hv = c->n_value_heads;
    const int C = gdn_channels(d), V = Hv * d->value_dim;
    s->block = malloc((2 * (size_t)C + V + 2 * (size_t)Hv + CD + VD) * sizeof *s->block);
    if (!s->block) return gdn_fail(err, GDN_NO_MEMORY, 0, "model: no memory for the rows of a linear layer");
    s->qkv = s->block, s->z = s->qkv + C, s->b = s->z + V, s->a = s->b + Hv, s->channels = s->a + Hv;
    int *const true_qkv = s->channels + C, *const true_z = true_qkv + CD;
    if (interleaved) {
        gdn_rows_of_qkvz(c, true_qkv, true_z);
        gdn_rows_of_ba(c, s->b, s->a);
    } else {
        for (int i = 0; i < Hv; i++) s->b[i] = s->a[i] = i;
    }
    pad_qkv(s->channels, NULL, c, d);
    pad_qkv(s->qkv, interleaved ? true_qkv : NULL, c, d);
    pad_heads(s->z, interleaved ? true_z : NULL, 0, Hv, c->value_dim, d->value_dim);
    return GDN_OK;
}

static gdn_linear rows_of(gdn_loader *ld, const gdn_tensor *t, const int *rows, int n_outputs)
{
    const int               h = ld->model->config.hidden_size;
    const gdn_matrix_source source = {
        .tensor = t, .rows = rows, .n_outputs = n_outputs, .n_heads = 1, .head = h, .padded_head = h};
    return gdn_load_matrix(ld, &source, NULL);
}

static void projections(gdn_loader *ld, gdn_delta_layer_weights *w, const gdn_linear_tensors *t, const sources *s)
{
    const gdn_delta_config *const d = &ld->model->delta;
    const bool                    interleaved = t->in_proj_qkvz != NULL;
    const gdn_tensor *const       qkv = interleaved ? t->in_proj_qkvz : t->in_proj_qkv;
    const gdn_tensor *const       z = interleaved ? t->in_proj_qkvz : t->in_proj_z;
    gdn_tensor_expect(qkv);
    if (!interleaved) gdn_tensor_expect(z);
    w->in_qkv = rows_of(ld, qkv, s->qkv, gdn_channels(d));
    w->in_z = rows_of(ld, z, s->z, d->n_value_heads * d->value_dim);
    w->in_b = rows_of(ld, interleaved ? t->in_proj_ba : t->in_proj_b, s->b, d->n_value_heads);
    w->in_a = rows_of(ld, interleaved ? t->in_proj_ba : t->in_proj_a, s->a, d->n_value_heads);
    gdn_tensor_release(qkv);
    if (!interleaved) gdn_tensor_release(z);
}

static gdn_linear out_projection(gdn_loader *ld, const gdn_tensor *t)
{
    const gdn_model_config *const c = &ld->model->config;
    const gdn_matrix_source       source = {.tensor = t,
                                            .n_rows = c->hidden_size,
                                            .n_outputs = c->hidden_size,
                                            .n_heads = c->n_value_heads,
                                            .head = c->value_dim,
                                            .padded_head = ld->model->delta.value_dim};
    gdn_tensor_expect(t);
    const gdn_linear l = gdn_load_matrix(ld, &source, NULL);
    gdn_tensor_release(t);
    return l;
}

/* [K][C] */
static float *convolution(gdn_loader *ld, const gdn_tensor *t, const int *channels)
{
    const int    C = gdn_channels(&ld->model->delta), K = ld->model->delta.n_taps;
    const size_t n = (size_t)C * K;
    float *const conv = gdn_load_take(ld, n * sizeof *conv), *const taps = calloc(n, sizeof *taps);
    if (!taps && !ld->status) ld->status = gdn_fail(ld->err, GDN_NO_MEMORY, 0, "model: no memory for a convolution");
    for (int i = 0; i < C && !ld->status; i++)
        if (channels[i] >= 0) gdn_load_f32(ld, taps + (size_t)i * K, t, (size_t)channels[i] * K, (size_t)K);
    if (!ld->status) gdn_conv_pack(conv, taps, GDN_F32, C, K);
    free(taps);
    gdn_load_count(ld, n * sizeof *conv);
    return conv;
}

/* The weight of the gated norm [Dv], and its eps. */
static float *gated_norm(gdn_loader *ld, const gdn_tensor *t, float *eps)
{
    const gdn_model_config *const c = &ld->model->config;
    const gdn_delta_config *const d = &ld->model->delta;
    const int                     true_dim = c->value_dim, dim = d->value_dim;
    const float  k_share = (float)c->key_dim / (float)d->key_dim, v_share = (float)true_dim / (float)dim;
    float *const w = gdn_load_take(ld, (size_t)dim * sizeof *w);
    if (w) gdn_load_f32(ld, w, t, 0, (size_t)true_dim);
    for (int i = 0; w && !ld->status && i < dim; i++) w[i] = i < true_dim ? w[i] * sqrtf(v_share) : 0.0f;
    *eps = (float)c->rms_eps * k_share * v_share;
    gdn_load_count(ld, (size_t)dim * sizeof *w);
    return w;
}

void gdn_load_delta(gdn_loader *ld, gdn_delta_layer_weights *w, const gdn_linear_tensors *t)
{
    sources s = {.block = NULL};
    if (ld->status) return;
    ld->status = sources_open(&s, &ld->model->config, &ld->model->delta, t->in_proj_qkvz != NULL, ld->err);
    if (!s.block) return;
    projections(ld, w, t, &s);
    w->out = out_projection(ld, t->out_proj);
    w->delta = (gdn_delta_weights){.conv = convolution(ld, t->conv1d, s.channels),
                                   .A_log = gdn_load_vector(ld, t->A_log, 0.0f),
                                   .dt_bias = gdn_load_vector(ld, t->dt_bias, 0.0f)};
    w->delta.norm = gated_norm(ld, t->norm, &w->delta.norm_eps);
    free(s.block);
}
