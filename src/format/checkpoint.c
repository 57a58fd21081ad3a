#include "format/checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 160 };

/* One checkpoint being bound.  After the first error `status` is set and nothing more is looked for. */
typedef struct binder {
    const gdn_model_config *config;
    const gdn_tensors      *tensors;
    const char             *root;              /* prefix of the text model */
    char                    prefix[NAME_SIZE]; /* of the part that is being bound */
    unsigned char          *used;              /* [tensors->n] */
    gdn_status              status;
    gdn_error              *err;
} binder;

/* ---- one tensor ---------------------------------------------------------------------------------------------------- */

static const gdn_tensor *find(const binder *b, const char *name)
{
    char full[2 * NAME_SIZE];
    snprintf(full, sizeof full, "%s%s", b->prefix, name);
    return gdn_tensors_find(b->tensors, full);
}

static bool has_shape(const gdn_tensor *t, const uint64_t *shape, int n_dims)
{
    return t->n_dims == n_dims && !memcmp(t->shape, shape, (size_t)n_dims * sizeof *shape);
}

static void check_tensor(binder *b, const gdn_tensor *t, const uint64_t *shape, int n_dims)
{
    char expected[64], found[64];
    if (t->type != GDN_TENSOR_BF16 && t->type != GDN_TENSOR_F16 && t->type != GDN_TENSOR_F32)
        b->status = gdn_fail(b->err, GDN_UNSUPPORTED, 0,
                             "%.60s: tensor %.90s has type %s; gdn reads BF16, F16 and F32, no quantised weights",
                             t->file, t->name, gdn_tensor_type_name(t->type));
    if (b->status || has_shape(t, shape, n_dims)) return;
    gdn_shape_text(expected, sizeof expected, shape, n_dims);
    gdn_shape_text(found, sizeof found, t->shape, t->n_dims);
    b->status = gdn_fail(b->err, GDN_BAD_FILE, 0, "%.50s: tensor %.80s has shape %s; config.json asks for %s", t->file,
                         t->name, found, expected);
}

static const gdn_tensor *want_shape(binder *b, const char *name, const uint64_t *shape, int n_dims)
{
    if (b->status) return NULL;
    const gdn_tensor *t = find(b, name);
    if (t) {
        b->used[t - b->tensors->all] = 1;
        check_tensor(b, t, shape, n_dims);
        return t;
    }
    char expected[64];
    gdn_shape_text(expected, sizeof expected, shape, n_dims);
    b->status =
        gdn_fail(b->err, GDN_BAD_FILE, 0, "%.50s: tensor %.70s%.50s is missing; config.json asks for it with shape %s",
                 b->tensors->source, b->prefix, name, expected);
    return NULL;
}

static const gdn_tensor *matrix(binder *b, const char *name, int rows, int columns)
{
    return want_shape(b, name, (uint64_t[]){(uint64_t)rows, (uint64_t)columns}, 2);
}

static const gdn_tensor *cube(binder *b, const char *name, int d0, int d1, int d2)
{
    return want_shape(b, name, (uint64_t[]){(uint64_t)d0, (uint64_t)d1, (uint64_t)d2}, 3);
}

/* Vectors are few and small, so their numbers are looked at. */
static const gdn_tensor *vector(binder *b, const char *name, int n)
{
    const gdn_tensor *t = want_shape(b, name, (uint64_t[]){(uint64_t)n}, 1);
    float             values[256];
    for (int at = 0; at < n && !b->status; at += 256) {
        const int part = n - at < 256 ? n - at : 256;
        b->status = gdn_tensor_to_f32(values, t, (size_t)at, (size_t)part, b->err);
        for (int i = 0; i < part && !b->status; i++)
            if (!isfinite(values[i]))
                b->status = gdn_fail(b->err, GDN_BAD_FILE, at + i,
                                     "%.60s: tensor %.100s holds %s at %d; every number must be finite", t->file,
                                     t->name, isnan(values[i]) ? "NaN" : "infinity", at + i);
    }
    return t;
}

/* ---- parts of a layer ---------------------------------------------------------------------------------------------- */

/* MLX keeps the convolution as [CD][K][1], and has added 1 to the norms of such a file. */
static void refuse_mlx_conv(binder *b, const gdn_tensor *t)
{
    const gdn_model_config *c = b->config;
    const uint64_t          mlx[] = {(uint64_t)gdn_config_channels(c), (uint64_t)c->n_taps, 1};
    if (!b->status && t && has_shape(t, mlx, 3))
        b->status =
            gdn_fail(b->err, GDN_UNSUPPORTED, 0,
                     "%.50s: tensor %.80s has the layout of an MLX conversion; gdn reads the Hugging Face checkpoint",
                     t->file, t->name);
}

static void bind_linear(binder *b, gdn_linear_tensors *t)
{
    const gdn_model_config *c = b->config;
    const int h = c->hidden_size, hv = c->n_value_heads, vd = hv * c->value_dim, cd = gdn_config_channels(c);
    if (find(b, "linear_attn.in_proj_qkvz.weight")) {
        t->in_proj_qkvz = matrix(b, "linear_attn.in_proj_qkvz.weight", cd + vd, h);
        t->in_proj_ba = matrix(b, "linear_attn.in_proj_ba.weight", 2 * hv, h);
    } else {
        t->in_proj_qkv = matrix(b, "linear_attn.in_proj_qkv.weight", cd, h);
        t->in_proj_z = matrix(b, "linear_attn.in_proj_z.weight", vd, h);
        t->in_proj_b = matrix(b, "linear_attn.in_proj_b.weight", hv, h);
        t->in_proj_a = matrix(b, "linear_attn.in_proj_a.weight", hv, h);
    }
    refuse_mlx_conv(b, find(b, "linear_attn.conv1d.weight"));
    t->conv1d = cube(b, "linear_attn.conv1d.weight", cd, 1, c->n_taps);
    t->A_log = vector(b, "linear_attn.A_log", hv);
    t->dt_bias = vector(b, "linear_attn.dt_bias", hv);
    t->norm = vector(b, "linear_attn.norm.weight", c->value_dim);
    t->out_proj = matrix(b, "linear_attn.out_proj.weight", h, vd);
}

static void bind_attention(binder *b, gdn_attention_tensors *t)
{
    const gdn_model_config *c = b->config;
    const int               h = c->hidden_size, d = c->head_dim, qd = c->n_heads * d, kvd = c->n_kv_heads * d;
    t->q_proj = matrix(b, "self_attn.q_proj.weight", 2 * qd, h);
    t->k_proj = matrix(b, "self_attn.k_proj.weight", kvd, h);
    t->v_proj = matrix(b, "self_attn.v_proj.weight", kvd, h);
    t->o_proj = matrix(b, "self_attn.o_proj.weight", h, qd);
    t->q_norm = vector(b, "self_attn.q_norm.weight", d);
    t->k_norm = vector(b, "self_attn.k_norm.weight", d);
}

/* name: "mlp.", "mlp.shared_expert." or "mlp.experts.N." */
static void bind_mlp(binder *b, gdn_mlp_tensors *t, const char *name, int width)
{
    const int h = b->config->hidden_size;
    char      full[64];
    snprintf(full, sizeof full, "%sgate_proj.weight", name);
    t->gate_proj = matrix(b, full, width, h);
    snprintf(full, sizeof full, "%sup_proj.weight", name);
    t->up_proj = matrix(b, full, width, h);
    snprintf(full, sizeof full, "%sdown_proj.weight", name);
    t->down_proj = matrix(b, full, h, width);
}

static void bind_experts(binder *b, gdn_moe_tensors *t)
{
    const gdn_model_config *c = b->config;
    if (find(b, "mlp.experts.gate_up_proj")) {
        t->gate_up_proj = cube(b, "mlp.experts.gate_up_proj", c->n_experts, 2 * c->expert_size, c->hidden_size);
        t->down_proj = cube(b, "mlp.experts.down_proj", c->n_experts, c->hidden_size, c->expert_size);
        return;
    }
    t->experts = calloc((size_t)c->n_experts, sizeof *t->experts);
    if (!t->experts) {
        b->status = gdn_fail(b->err, GDN_NO_MEMORY, 0, "no memory for the list of experts of %.100s", b->prefix);
        return;
    }
    for (int e = 0; e < c->n_experts && !b->status; e++) {
        char name[32];
        snprintf(name, sizeof name, "mlp.experts.%d.", e);
        bind_mlp(b, &t->experts[e], name, c->expert_size);
    }
}

static void bind_moe(binder *b, gdn_moe_tensors *t)
{
    const gdn_model_config *c = b->config;
    t->router = matrix(b, "mlp.gate.weight", c->n_experts, c->hidden_size);
    if (!b->status) bind_experts(b, t);
    bind_mlp(b, &t->shared, "mlp.shared_expert.", c->shared_expert_size);
    t->shared_gate = matrix(b, "mlp.shared_expert_gate.weight", 1, c->hidden_size);
}

static void bind_layer(binder *b, gdn_layer_tensors *t, gdn_layer_kind kind)
{
    const int h = b->config->hidden_size;
    t->input_norm = vector(b, "input_layernorm.weight", h);
    if (kind.mixer == GDN_MIXER_FULL) bind_attention(b, &t->attention);
    else bind_linear(b, &t->linear);
    t->post_norm = vector(b, "post_attention_layernorm.weight", h);
    if (kind.ffn == GDN_FFN_MOE) bind_moe(b, &t->moe);
    else bind_mlp(b, &t->mlp, "mlp.", b->config->ffn_size);
}

/* ---- the model ----------------------------------------------------------------------------------------------------- */

static void enter(binder *b, const char *prefix) { snprintf(b->prefix, sizeof b->prefix, "%s", prefix); }

/* What says that a file is not a plain Hugging Face checkpoint. */
static void refuse_foreign(binder *b)
{
    static const struct {
        const char *part, *what;
    } marks[] = {{".scales", "quantised by MLX"},
                 {".weight_scale_inv", "quantised to FP8"},
                 {".weight_scale", "quantised"},
                 {".weight_packed", "quantised"},
                 {".qweight", "quantised by GPTQ or AWQ"},
                 {".switch_mlp.", "an MLX conversion"},
                 {"language_model.model.", "an MLX conversion"}};
    for (size_t i = 0; i < b->tensors->n; i++) {
        const gdn_tensor *t = &b->tensors->all[i];
        for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
            if (strstr(t->name, marks[m].part)) {
                b->status = gdn_fail(b->err, GDN_UNSUPPORTED, 0,
                                     "%.50s: tensor %.80s says that the checkpoint is %s; use the original in BF16",
                                     t->file, t->name, marks[m].what);
                return;
            }
    }
}

static void find_root(binder *b)
{
    static const char *const roots[] = {"model.language_model.", "model.", ""};
    for (int i = 0; i < 3; i++) {
        enter(b, b->root = roots[i]);
        if (find(b, "embed_tokens.weight")) return;
    }
    enter(b, b->root = roots[1]); /* the missing embedding is reported with this name */
}

static void bind_head(binder *b, gdn_checkpoint *out)
{
    const gdn_model_config *c = b->config;
    enter(b, "");
    const gdn_tensor *t = find(b, "lm_head.weight");
    out->tied = c->tie == GDN_TIE_YES || (c->tie == GDN_TIE_UNSAID && !t);
    out->lm_head = out->tied ? out->embed : matrix(b, "lm_head.weight", c->vocab_size, c->hidden_size);
    if (t) b->used[t - b->tensors->all] = 1; /* a tied model's copy is no mistake */
}

static void bind_mtp(binder *b, gdn_checkpoint *out)
{
    const gdn_model_config *c = b->config;
    gdn_mtp_tensors        *t = &out->mtp;
    const gdn_layer_kind    kind = {GDN_MIXER_FULL, c->n_experts ? GDN_FFN_MOE : GDN_FFN_DENSE};
    enter(b, "mtp.");
    out->has_mtp = find(b, "fc.weight") != NULL;
    if (!out->has_mtp) return;
    t->norm_embedding = vector(b, "pre_fc_norm_embedding.weight", c->hidden_size);
    t->norm_hidden = vector(b, "pre_fc_norm_hidden.weight", c->hidden_size);
    t->fc = matrix(b, "fc.weight", c->hidden_size, 2 * c->hidden_size);
    t->norm = vector(b, "norm.weight", c->hidden_size);
    enter(b, "mtp.layers.0.");
    bind_layer(b, &t->layer, kind);
}

static bool is_vision(const char *name)
{
    static const char *const prefixes[] = {"model.visual.", "visual.", "model.vision_tower.", "vision_tower.",
                                           "mmproj."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return false;
}

/* Rotary frequencies are computed; some writers store them. */
static bool is_derived(const char *name) { return strstr(name, "rotary_emb.inv_freq") != NULL; }

static void report_rest(const binder *b, gdn_checkpoint *out)
{
    for (size_t i = 0; i < b->tensors->n; i++) {
        const char *name = b->tensors->all[i].name;
        if (b->used[i] || is_derived(name)) continue;
        if (is_vision(name)) {
            out->n_vision++;
            continue;
        }
        if (out->n_unknown < GDN_UNKNOWN_NAMES) out->unknown[out->n_unknown] = name;
        out->n_unknown++;
    }
}

gdn_status gdn_checkpoint_bind(gdn_checkpoint *checkpoint, const gdn_model_config *config, const gdn_tensors *tensors,
                               gdn_error *err)
{
    gdn_checkpoint *const c = checkpoint;
    binder                b = {.config = config, .tensors = tensors, .used = calloc(tensors->n + 1, 1), .err = err};
    *c = (gdn_checkpoint){.config = *config, .layers = calloc((size_t)config->n_layers, sizeof *c->layers)};
    if (!c->layers || !b.used) b.status = gdn_fail(err, GDN_NO_MEMORY, 0, "no memory to bind %.100s", tensors->source);
    else refuse_foreign(&b);
    find_root(&b);
    c->embed = matrix(&b, "embed_tokens.weight", config->vocab_size, config->hidden_size);
    c->norm = vector(&b, "norm.weight", config->hidden_size);
    for (int l = 0; l < config->n_layers && !b.status; l++) {
        snprintf(b.prefix, sizeof b.prefix, "%slayers.%d.", b.root, l);
        bind_layer(&b, &c->layers[l], config->layers[l]);
    }
    if (!b.status) bind_head(&b, c);
    if (!b.status) bind_mtp(&b, c);
    if (!b.status) report_rest(&b, c);
    free(b.used);
    if (b.status) gdn_checkpoint_close(c);
    return b.status;
}

void gdn_checkpoint_close(gdn_checkpoint *checkpoint)
{
    for (int l = 0; checkpoint->layers && l < checkpoint->config.n_layers; l++) free(checkpoint->layers[l].moe.experts);
    free(checkpoint->layers);
    free(checkpoint->mtp.layer.moe.experts);
    *checkpoint = (gdn_checkpoint){.embed = NULL};
}
