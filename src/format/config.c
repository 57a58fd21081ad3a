#include "format/config.h"
#include "base/checksum.h"
#include "format/folder.h"
#include "format/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "config.json"

/* Some keys stand in the text model's object, in the object around it, or in both. */
typedef struct reading {
    gdn_json_reader   text, outer;
    gdn_model_config *config;
} reading;

/* ---- which model --------------------------------------------------------------------------------------------------- */

static const struct known_type {
    const char *name;
    gdn_family  family;
    bool        moe;
} known_types[] = {
    {"qwen3_5", GDN_QWEN3_5, false},         {"qwen3_5_text", GDN_QWEN3_5, false}, {"qwen3_5_moe", GDN_QWEN3_5, true},
    {"qwen3_5_moe_text", GDN_QWEN3_5, true}, {"qwen3_next", GDN_QWEN3_NEXT, true},
};

static const struct known_type *find_type(const char *name)
{
    for (size_t i = 0; name && i < sizeof known_types / sizeof *known_types; i++)
        if (!strcmp(name, known_types[i].name)) return &known_types[i];
    return NULL;
}

/* The model_type of one object; NULL where it has none or one that is refused. */
static const struct known_type *read_type(gdn_json_reader *r)
{
    const char              *name = gdn_json_string(r, "model_type");
    const struct known_type *type = find_type(name);
    if (name && !type)
        gdn_json_refuse(r, GDN_UNSUPPORTED, "model_type", gdn_json_get(r, "model_type"),
                        "gdn runs qwen3_5, qwen3_5_moe (and their _text) and qwen3_next");
    return type;
}

/* Fills family and name; whether it has experts. */
static bool read_model_type(reading *in)
{
    const struct known_type *type = read_type(&in->outer);
    const bool               nested = in->text.object != in->outer.object;
    const struct known_type *inner = nested ? read_type(&in->text) : NULL;
    if (inner) type = inner;
    if (!type) {
        gdn_json_missing(&in->text, "model_type");
        return false;
    }
    in->config->family = type->family;
    snprintf(in->config->model_type, sizeof in->config->model_type, "%s", type->name);
    return type->moe;
}

/* ---- what gdn does not compute ------------------------------------------------------------------------------------- */

static void refuse_unless(gdn_json_reader *r, const char *key, const char *one, const char *other, const char *why)
{
    const char *name = gdn_json_string(r, key);
    if (name && strcmp(name, one) && strcmp(name, other))
        gdn_json_refuse(r, GDN_UNSUPPORTED, key, gdn_json_get(r, key), why);
}

static void refuse_if(gdn_json_reader *r, const char *key, bool refused, const char *why)
{
    if (gdn_json_bool(r, key, !refused) == refused) gdn_json_refuse(r, GDN_UNSUPPORTED, key, gdn_json_get(r, key), why);
}

static void refuse_quantized(gdn_json_reader *r)
{
    static const char *const keys[] = {"quantization", "quantization_config"};
    for (int i = 0; i < 2; i++) {
        const json_t *value = gdn_json_get(r, keys[i]), *method = value ? json_object_get(value, "quant_method") : NULL;
        if (value)
            gdn_json_refuse(r, GDN_UNSUPPORTED, keys[i], method ? method : value,
                            "quantised checkpoints are not supported; use the one in BF16");
    }
}

static void refuse_variants(reading *in)
{
    gdn_json_reader *r = &in->text;
    refuse_unless(r, "hidden_act", "silu", "swish", "gdn computes silu only");
    refuse_unless(r, "output_gate_type", "swish", "silu", "gdn computes the gate swish only");
    refuse_if(r, "attention_bias", true, "gdn computes attention without biases only");
    refuse_if(r, "attn_output_gate", false, "gdn computes attention with an output gate only");
    refuse_if(r, "mtp_use_dedicated_embeddings", true,
              "gdn computes an MTP layer with the model's own embeddings only");
    refuse_quantized(r);
    refuse_quantized(&in->outer);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

enum key_use { ALWAYS, DENSE, MOE, MTP };

#define FIELD(name) offsetof(gdn_model_config, name)
static const struct int_key {
    const char  *key;
    size_t       field;
    int          lo, hi;
    enum key_use use;
} int_keys[] = {
    {"vocab_size", FIELD(vocab_size), 1, 1 << 22, ALWAYS},
    {"hidden_size", FIELD(hidden_size), 1, 1 << 16, ALWAYS},
    {"num_hidden_layers", FIELD(n_layers), 1, GDN_MAX_LAYERS, ALWAYS},
    {"num_attention_heads", FIELD(n_heads), 1, 1024, ALWAYS},
    {"num_key_value_heads", FIELD(n_kv_heads), 1, 1024, ALWAYS},
    {"head_dim", FIELD(head_dim), 1, 1 << 16, ALWAYS},
    {"linear_num_key_heads", FIELD(n_key_heads), 1, 1024, ALWAYS},
    {"linear_num_value_heads", FIELD(n_value_heads), 1, 1024, ALWAYS},
    {"linear_key_head_dim", FIELD(key_dim), 1, 1 << 16, ALWAYS},
    {"linear_value_head_dim", FIELD(value_dim), 1, 1 << 16, ALWAYS},
    {"linear_conv_kernel_dim", FIELD(n_taps), 2, 8, ALWAYS},
    {"max_position_embeddings", FIELD(max_positions), 1, 1 << 24, ALWAYS},
    {"intermediate_size", FIELD(ffn_size), 1, 1 << 20, DENSE},
    {"num_experts_per_tok", FIELD(n_experts_used), 1, 4096, MOE},
    {"moe_intermediate_size", FIELD(expert_size), 1, 1 << 20, MOE},
    {"shared_expert_intermediate_size", FIELD(shared_expert_size), 1, 1 << 20, MOE},
    {"mtp_num_hidden_layers", FIELD(n_mtp_layers), 0, 1, MTP},
};

static bool has_ffn(const gdn_model_config *c, gdn_ffn ffn)
{
    for (int l = 0; l < c->n_layers; l++)
        if (c->layers[l].ffn == ffn) return true;
    return false;
}

static void read_ints(reading *in, enum key_use use, long long fallback)
{
    for (size_t i = 0; i < sizeof int_keys / sizeof *int_keys; i++) {
        const struct int_key *k = &int_keys[i];
        if (k->use != use) continue;
        const int value = (int)gdn_json_int(&in->text, k->key, k->lo, k->hi, fallback);
        memcpy((char *)in->config + k->field, &value, sizeof value);
    }
}

/* A dim that kernels compute with. */
static void check_dim(gdn_json_reader *r, const char *key, int dim, bool sixteen)
{
    if (dim % 32 == 0 && dim <= 256) return;
    if (dim == 16 && sixteen) return;
    gdn_json_refuse(r, GDN_UNSUPPORTED, key, gdn_json_get(r, key),
                    sixteen ? "gdn computes 16, 32, 64, 96, 128, 160, 192, 224 and 256"
                            : "gdn computes 32, 64, 96, 128, 160, 192, 224 and 256");
}

static void check_shapes(reading *in)
{
    gdn_json_reader        *r = &in->text;
    const gdn_model_config *c = in->config;
    char                    expected[80];
    if (*r->status) return;
    check_dim(r, "head_dim", c->head_dim, false);
    check_dim(r, "linear_key_head_dim", c->key_dim, true);
    check_dim(r, "linear_value_head_dim", c->value_dim, true);
    snprintf(expected, sizeof expected, "it must be a multiple of num_key_value_heads, %d", c->n_kv_heads);
    if (c->n_heads % c->n_kv_heads)
        gdn_json_refuse(r, GDN_BAD_FILE, "num_attention_heads", gdn_json_get(r, "num_attention_heads"), expected);
    snprintf(expected, sizeof expected, "it must be a multiple of linear_num_key_heads, %d", c->n_key_heads);
    if (c->n_value_heads % c->n_key_heads)
        gdn_json_refuse(r, GDN_BAD_FILE, "linear_num_value_heads", gdn_json_get(r, "linear_num_value_heads"), expected);
}

/* ---- layers -------------------------------------------------------------------------------------------------------- */

static void read_layer_list(reading *in, const json_t *list)
{
    gdn_json_reader *const r = &in->text;
    const int              n_layers = in->config->n_layers;
    if (!json_is_array(list)) gdn_json_refuse(r, GDN_BAD_FILE, "layer_types", list, "a list was expected");
    else if (json_array_size(list) != (size_t)n_layers && !*r->status)
        *r->status =
            gdn_fail(r->err, GDN_BAD_FILE, 0, FILE_NAME ": %slayer_types has %zu entries, num_hidden_layers is %d",
                     r->scope, json_array_size(list), n_layers);
    for (int l = 0; l < n_layers && !*r->status; l++) {
        const json_t *kind = json_array_get(list, (size_t)l);
        const char   *name = json_string_value(kind);
        const bool    full = name && !strcmp(name, "full_attention");
        if (!full && !(name && !strcmp(name, "linear_attention")))
            gdn_json_refuse(r, GDN_UNSUPPORTED, "layer_types", kind,
                            "gdn computes linear_attention and full_attention");
        in->config->layers[l].mixer = full ? GDN_MIXER_FULL : GDN_MIXER_LINEAR;
    }
}

static void read_mixers(reading *in)
{
    const json_t *list = gdn_json_get(&in->text, "layer_types");
    if (list) {
        read_layer_list(in, list);
        return;
    }
    const long long interval = gdn_json_int(&in->text, "full_attention_interval", 1, GDN_MAX_LAYERS, GDN_JSON_NEEDED);
    for (int l = 0; l < in->config->n_layers; l++)
        in->config->layers[l].mixer = (l + 1) % interval ? GDN_MIXER_LINEAR : GDN_MIXER_FULL;
}

/* A layer is MoE if there are experts, unless the two older keys say that it is dense. */
static void read_ffns(reading *in, bool moe)
{
    gdn_model_config *const c = in->config;
    gdn_json_reader *const  r = &in->text;
    c->n_experts = (int)gdn_json_int(r, "num_experts", moe, 4096, moe ? GDN_JSON_NEEDED : 0);
    if (!c->n_experts) return;
    const long long step = gdn_json_int(r, "decoder_sparse_step", 1, GDN_MAX_LAYERS, 1);
    const json_t   *dense = gdn_json_get(r, "mlp_only_layers");
    for (int l = 0; l < c->n_layers; l++) c->layers[l].ffn = (l + 1) % step ? GDN_FFN_DENSE : GDN_FFN_MOE;
    if (dense && !json_is_array(dense))
        gdn_json_refuse(r, GDN_BAD_FILE, "mlp_only_layers", dense, "a list was expected");
    for (size_t i = 0; i < json_array_size(dense); i++) {
        const json_t *layer = json_array_get(dense, i);
        if (!json_is_integer(layer) || json_integer_value(layer) < 0 || json_integer_value(layer) >= c->n_layers)
            gdn_json_refuse(r, GDN_BAD_FILE, "mlp_only_layers", layer, "a list of layers was expected");
        else c->layers[json_integer_value(layer)].ffn = GDN_FFN_DENSE;
    }
}

static void read_layers(reading *in, bool moe)
{
    gdn_model_config *const c = in->config;
    if (*in->text.status) return;
    read_mixers(in);
    read_ffns(in, moe);
    if (has_ffn(c, GDN_FFN_DENSE)) read_ints(in, DENSE, GDN_JSON_NEEDED);
    if (c->n_experts) read_ints(in, MOE, GDN_JSON_NEEDED);
    if (c->n_experts_used > c->n_experts)
        gdn_json_refuse(&in->text, GDN_BAD_FILE, "num_experts_per_tok", gdn_json_get(&in->text, "num_experts_per_tok"),
                        "there are fewer experts (num_experts)");
    /* Qwen3.5 normalises whatever the file says, as its reference implementation does. */
    c->norm_topk_prob = gdn_json_bool(&in->text, "norm_topk_prob", true) || c->family == GDN_QWEN3_5;
}

/* ---- positions, head, type, stops ---------------------------------------------------------------------------------- */

/* rope_parameters (also called rope_scaling), and what older files have beside it. */
static void read_rope(reading *in)
{
    gdn_json_reader *const  r = &in->text;
    gdn_model_config *const c = in->config;
    char                    scope[48];
    const char             *name = gdn_json_get(r, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    const json_t           *object = gdn_json_get(r, name);
    if (object && !json_is_object(object)) gdn_json_refuse(r, GDN_BAD_FILE, name, object, "an object was expected");
    snprintf(scope, sizeof scope, "%s%s.", r->scope, name);
    gdn_json_reader   rope = {.object = object, .file = r->file, .scope = scope, .status = r->status, .err = r->err};
    const char *const why = "positions stretched beyond max_position_embeddings are not supported, only 'default'";
    gdn_json_reader *const theta = gdn_json_get(&rope, "rope_theta") ? &rope : r;
    refuse_unless(&rope, "rope_type", "default", "default", why);
    refuse_unless(&rope, "type", "default", "default", why);
    c->rope_theta = gdn_json_number(theta, "rope_theta", 1, 1e12, NAN);
    gdn_json_reader *const part = gdn_json_get(&rope, "partial_rotary_factor") ? &rope : r;
    const double factor = gdn_json_number(part, "partial_rotary_factor", 0.001, 1, NAN), dims = factor * c->head_dim;
    c->rope_dims = 2 * (int)(dims / 2 + 1e-6);
    if (fabs(c->rope_dims - dims) > 1e-6 || c->rope_dims < 2)
        gdn_json_refuse(r, GDN_BAD_FILE, "partial_rotary_factor", gdn_json_get(part, "partial_rotary_factor"),
                        "that part of head_dim must be an even number of dims");
}

static void read_tie(reading *in)
{
    static const char key[] = "tie_word_embeddings";
    const bool        text = gdn_json_bool(&in->text, key, false), outer = gdn_json_bool(&in->outer, key, false);
    const bool        in_text = gdn_json_get(&in->text, key) != NULL, in_outer = gdn_json_get(&in->outer, key) != NULL;
    if (in_text == in_outer && (!in_text || text != outer)) in->config->tie = GDN_TIE_UNSAID;
    else in->config->tie = text || outer ? GDN_TIE_YES : GDN_TIE_NO;
}

static void read_dtype(reading *in)
{
    static const struct {
        const char     *name;
        gdn_tensor_type type;
    } types[] = {{"bfloat16", GDN_TENSOR_BF16}, {"float16", GDN_TENSOR_F16}, {"float32", GDN_TENSOR_F32}};
    gdn_json_reader *const readers[] = {&in->text, &in->text, &in->outer, &in->outer};
    const char            *key = NULL, *name = NULL;
    int                    i = 0;
    for (; i < 4 && !name; i++) name = gdn_json_string(readers[i], key = i % 2 ? "torch_dtype" : "dtype");
    if (!name) return;
    for (int k = 0; k < 3; k++)
        if (!strcmp(name, types[k].name)) {
            in->config->type = types[k].type;
            return;
        }
    gdn_json_refuse(readers[i - 1], GDN_UNSUPPORTED, key, gdn_json_get(readers[i - 1], key),
                    "gdn computes models in bfloat16, float16 and float32");
}

static void read_stops(reading *in)
{
    gdn_model_config *const c = in->config;
    gdn_json_ids(&in->text, "eos_token_id", c->vocab_size, c->stops, &c->n_stops, GDN_MAX_STOPS);
    gdn_json_ids(&in->outer, "eos_token_id", c->vocab_size, c->stops, &c->n_stops, GDN_MAX_STOPS);
}

/* ---- the file ------------------------------------------------------------------------------------------------------ */

static void read_config(reading *in)
{
    gdn_json_reader *const r = &in->text;
    const bool             moe = read_model_type(in);
    refuse_variants(in);
    read_ints(in, ALWAYS, GDN_JSON_NEEDED);
    read_ints(in, MTP, 0);
    in->config->rms_eps = gdn_json_number(r, "rms_norm_eps", 1e-12, 0.01, NAN);
    check_shapes(in);
    read_layers(in, moe);
    if (!*r->status) read_rope(in);
    read_tie(in);
    read_dtype(in);
    read_stops(in);
}

gdn_status gdn_model_config_parse(gdn_model_config *config, const void *text, size_t n, gdn_error *err)
{
    json_t    *root;
    gdn_status status = gdn_json_parse(&root, FILE_NAME, text, n, err);
    if (status) return status;
    *config = (gdn_model_config){.sum = gdn_checksum(text, n), .type = GDN_TENSOR_BF16};
    gdn_json_reader outer = {.object = root, .file = FILE_NAME, .scope = "", .status = &status, .err = err},
                    inner = outer;
    const json_t *nested = gdn_json_get(&outer, "text_config");
    if (nested) {
        inner.object = nested;
        inner.scope = "text_config.";
    }
    if (nested && !json_is_object(nested))
        gdn_json_refuse(&outer, GDN_BAD_FILE, "text_config", nested, "an object was expected");
    else read_config(&(reading){.text = inner, .outer = outer, .config = config});
    json_decref(root);
    return status;
}

gdn_status gdn_model_config_load(gdn_model_config *config, const char *model, gdn_error *err)
{
    gdn_path   path;
    char      *text = NULL;
    size_t     n = 0;
    gdn_status status = gdn_model_path(&path, model, FILE_NAME, err);
    if (!status) status = gdn_text_load(&text, &n, path.text, err);
    if (!status) status = gdn_model_config_parse(config, text, n, err);
    free(text);
    return status;
}
