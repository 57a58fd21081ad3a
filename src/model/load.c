/* From a bound checkpoint to packed weights. */
#include "base/alloc.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

typedef struct loader {
    gdn_model *model;
    uint16_t  *rows; /* a weight in bf16, before it is packed */
    size_t     rows_size;
    const int *permute; /* row i of the weight is row permute[i] of the tensor; NULL: as it stands */
    gdn_error *err;
    gdn_status status;
} loader;

/* A block that the model owns; NULL after a failure, which `status` keeps. */
static void *take(loader *ld, size_t n_bytes)
{
    if (ld->status) return NULL;
    gdn_model *m = ld->model;
    void     **owned = realloc(m->owned, ((size_t)m->n_owned + 1) * sizeof *owned);
    if (owned) m->owned = owned;
    void *block = owned ? gdn_alloc_aligned(n_bytes ? n_bytes : 1) : NULL;
    if (!block) {
        ld->status = gdn_fail(ld->err, GDN_NO_MEMORY, 0, "model: no memory for a weight of %zu bytes", n_bytes);
        return NULL;
    }
    m->owned[m->n_owned++] = block;
    return block;
}

/* A vector in f32, with `plus` added. */
static float *vector(loader *ld, const gdn_tensor *t, float plus)
{
    const size_t n = gdn_tensor_elements(t);
    float       *v = take(ld, n * sizeof *v);
    if (v) ld->status = gdn_tensor_to_f32(v, t, 0, n, ld->err);
    for (size_t i = 0; v && !ld->status && i < n; i++) v[i] += plus;
    return v;
}

/* Rows of a tensor in bf16, permuted, in ld->rows. */
static void read_rows(loader *ld, const gdn_tensor *t, int n_outputs, int n_inputs)
{
    const size_t n = (size_t)n_outputs * n_inputs;
    if (ld->status) return;
    if (n > ld->rows_size) {
        free(ld->rows);
        ld->rows = malloc(n * sizeof *ld->rows);
        ld->rows_size = ld->rows ? n : 0;
        if (!ld->rows) {
            ld->status = gdn_fail(ld->err, GDN_NO_MEMORY, 0, "model: no memory to unpack %s", t->name);
            return;
        }
    }
    for (int i = 0; i < n_outputs && !ld->status; i++) {
        const size_t row = ld->permute ? (size_t)ld->permute[i] : (size_t)i;
        ld->status = gdn_tensor_to_bf16(ld->rows + (size_t)i * n_inputs, t, row * n_inputs, (size_t)n_inputs, ld->err);
    }
}

static gdn_linear linear(loader *ld, const gdn_tensor *t, int n_outputs, int n_inputs)
{
    gdn_linear l = {take(ld, gdn_linear_bytes(n_outputs, n_inputs)), n_outputs, n_inputs, gdn_padded(n_inputs)};
    gdn_tensor_expect(t);
    read_rows(ld, t, n_outputs, n_inputs);
    if (!ld->status) gdn_matmul_pack(l.w, ld->rows, n_outputs, n_inputs);
    gdn_tensor_release(t);
    return l;
}

/* Rows of Qwen3-Next's fused projections, for each of the four; or of Qwen3.5's own. */
static void linear_projections(loader *ld, gdn_delta_layer_weights *w, const gdn_linear_tensors *t)
{
    const gdn_model_config *c = &ld->model->config;
    const int               h = c->hidden_size, CD = gdn_config_channels(c), VD = c->n_value_heads * c->value_dim,
              Hv = c->n_value_heads;
    if (t->in_proj_qkv) {
        w->in_qkv = linear(ld, t->in_proj_qkv, CD, h);
        w->in_z = linear(ld, t->in_proj_z, VD, h);
        w->in_b = linear(ld, t->in_proj_b, Hv, h);
        w->in_a = linear(ld, t->in_proj_a, Hv, h);
        return;
    }
    int *rows = malloc(((size_t)CD + VD + 2 * (size_t)Hv) * sizeof *rows);
    if (!rows) {
        ld->status = gdn_fail(ld->err, GDN_NO_MEMORY, 0, "model: no memory to unpack %s", t->in_proj_qkvz->name);
        return;
    }
    int *const qkv = rows, *const z = qkv + CD, *const b = z + VD, *const a = b + Hv;
    gdn_rows_of_qkvz(c, qkv, z);
    gdn_rows_of_ba(c, b, a);
    ld->permute = qkv;
    w->in_qkv = linear(ld, t->in_proj_qkvz, CD, h);
    ld->permute = z;
    w->in_z = linear(ld, t->in_proj_qkvz, VD, h);
    ld->permute = b;
    w->in_b = linear(ld, t->in_proj_ba, Hv, h);
    ld->permute = a;
    w->in_a = linear(ld, t->in_proj_ba, Hv, h);
    ld->permute = NULL;
    free(rows);
}

static void delta_layer(loader *ld, gdn_delta_layer_weights *w, const gdn_linear_tensors *t)
{
    const gdn_model_config *c = &ld->model->config;
    const int               CD = gdn_config_channels(c);
    linear_projections(ld, w, t);
    w->out = linear(ld, t->out_proj, c->hidden_size, c->n_value_heads * c->value_dim);
    float *const conv = take(ld, (size_t)CD * c->n_taps * sizeof *conv), *const taps = vector(ld, t->conv1d, 0.0f);
    if (!ld->status) gdn_conv_pack(conv, taps, GDN_F32, CD, c->n_taps);
    w->delta = (gdn_delta_weights){.conv = conv,
                                   .A_log = vector(ld, t->A_log, 0.0f),
                                   .dt_bias = vector(ld, t->dt_bias, 0.0f),
                                   .norm = vector(ld, t->norm, 0.0f),
                                   .norm_eps = (float)c->rms_eps};
}

static void attention_layer(loader *ld, gdn_attention_weights *w, const gdn_attention_tensors *t)
{
    const gdn_model_config *c = &ld->model->config;
    const int               h = c->hidden_size, HD = c->n_heads * c->head_dim, GD = c->n_kv_heads * c->head_dim;
    w->q = linear(ld, t->q_proj, 2 * HD, h);
    w->k = linear(ld, t->k_proj, GD, h);
    w->v = linear(ld, t->v_proj, GD, h);
    w->o = linear(ld, t->o_proj, h, HD);
    w->q_norm = vector(ld, t->q_norm, 1.0f);
    w->k_norm = vector(ld, t->k_norm, 1.0f);
}

static void layer(loader *ld, int number, const gdn_layer_tensors *t)
{
    gdn_model              *m = ld->model;
    const gdn_model_config *c = &m->config;
    gdn_layer_weights      *w = &m->layers[number];
    w->mixer = (gdn_mixer)c->layers[number].mixer;
    w->number = w->mixer == GDN_MIXER_LINEAR ? m->n_delta_layers++ : m->n_attention_layers++;
    w->input_norm = vector(ld, t->input_norm, 1.0f);
    w->post_norm = vector(ld, t->post_norm, 1.0f);
    if (w->mixer == GDN_MIXER_LINEAR) delta_layer(ld, &w->linear, &t->linear);
    else attention_layer(ld, &w->attention, &t->attention);
    w->gate = linear(ld, t->mlp.gate_proj, c->ffn_size, c->hidden_size);
    w->up = linear(ld, t->mlp.up_proj, c->ffn_size, c->hidden_size);
    w->down = linear(ld, t->mlp.down_proj, c->hidden_size, c->ffn_size);
}

static gdn_status check(const gdn_model_config *c, gdn_error *err)
{
    if (c->n_experts)
        return gdn_fail(err, GDN_UNSUPPORTED, 0, "model: %s has experts, which this version cannot run", c->model_type);
    if (c->key_dim % 32 || c->value_dim % 32)
        return gdn_fail(err, GDN_UNSUPPORTED, 0, "model: linear heads of %d and %d; this version runs multiples of 32",
                        c->key_dim, c->value_dim);
    if (c->hidden_size % 32 || c->ffn_size % 32)
        return gdn_fail(err, GDN_UNSUPPORTED, 0,
                        "model: hidden size %d and FFN size %d; this version runs multiples of 32", c->hidden_size,
                        c->ffn_size);
    return GDN_OK;
}

/* theta_i = base^(-2i/rope_dims), in f32 as transformers has it. */
static void rope_frequencies(loader *ld)
{
    gdn_model *m = ld->model;
    const int  n = m->config.rope_dims / 2;
    m->inv_freq = take(ld, (size_t)n * sizeof *m->inv_freq);
    for (int i = 0; m->inv_freq && i < n; i++)
        m->inv_freq[i] = (float)(1.0 / pow(m->config.rope_theta, 2.0 * i / m->config.rope_dims));
}

gdn_status gdn_model_load(gdn_model **out, const gdn_checkpoint *checkpoint, gdn_error *err)
{
    const gdn_model_config *c = &checkpoint->config;
    const gdn_status        status = check(c, err);
    if (status) return status;
    gdn_model *m = calloc(1, sizeof *m);
    if (!m) return gdn_fail(err, GDN_NO_MEMORY, 0, "model: no memory");
    loader ld = {.model = m, .err = err};
    m->config = *c;
    m->delta = (gdn_delta_config){.n_key_heads = c->n_key_heads,
                                  .n_value_heads = c->n_value_heads,
                                  .key_dim = c->key_dim,
                                  .value_dim = c->value_dim,
                                  .n_taps = c->n_taps,
                                  .type = GDN_F32,
                                  .qk_eps = 1e-6f};
    m->layers = take(&ld, (size_t)c->n_layers * sizeof *m->layers);
    if (m->layers) memset(m->layers, 0, (size_t)c->n_layers * sizeof *m->layers);
    const size_t n = (size_t)c->vocab_size * c->hidden_size;
    m->embed = take(&ld, n * sizeof *m->embed);
    if (m->embed) ld.status = gdn_tensor_to_bf16(m->embed, checkpoint->embed, 0, n, err);
    if (!ld.status) m->lm_head = linear(&ld, checkpoint->lm_head, c->vocab_size, c->hidden_size);
    if (!ld.status) m->norm = vector(&ld, checkpoint->norm, 1.0f);
    if (!ld.status) rope_frequencies(&ld);
    for (int i = 0; i < c->n_layers && !ld.status; i++) layer(&ld, i, &checkpoint->layers[i]);
    free(ld.rows);
    if (ld.status) {
        gdn_model_close(m);
        return ld.status;
    }
    *out = m;
    return GDN_OK;
}

void gdn_model_close(gdn_model *m)
{
    if (!m) return;
    for (int i = 0; i < m->n_owned; i++) free(m->owned[i]);
    free(m->owned);
    free(m);
}
