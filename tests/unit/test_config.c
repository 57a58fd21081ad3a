/* config.json and its companions: every nesting, the published shapes, and the sentence for what is refused. */
#include "unit/files.h"
#include "format/checkpoint.h"
#include "format/config.h"
#include <math.h>

static gdn_model_config      config;
static gdn_generation_config generation;
static gdn_tokenizer_config  tokenizer;

#define PARSE(text) gdn_model_config_parse(&config, text, strlen(text), &err)

static const char flat[] =
    "{\"model_type\":\"qwen3_5_text\",\"vocab_size\":1000,\"hidden_size\":64,\"intermediate_size\":96,"
    "\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":64,\"hidden_act\":"
    "\"silu\","
    "\"max_position_embeddings\":2048,\"rms_norm_eps\":1e-06,\"attention_bias\":false,\"attn_output_gate\":true,"
    "\"full_attention_interval\":2,\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":32,\"linear_value_head_dim\":"
    "96,"
    "\"linear_num_key_heads\":2,\"linear_num_value_heads\":6,\"tie_word_embeddings\":true,\"eos_token_id\":7,"
    "\"mtp_num_hidden_layers\":1,\"dtype\":\"bfloat16\",\"pad_token_id\":null,"
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}}";

/* ---- nestings ------------------------------------------------------------------------------------------------------ */

enum { NUMBERS = 20 };

static void numbers(int *n, const gdn_model_config *c)
{
    const int all[NUMBERS] = {c->type,       c->vocab_size,   c->hidden_size, c->n_layers,      c->n_heads,
                              c->n_kv_heads, c->head_dim,     c->n_key_heads, c->n_value_heads, c->key_dim,
                              c->value_dim,  c->n_taps,       c->ffn_size,    c->rope_dims,     c->max_positions,
                              c->n_experts,  c->n_mtp_layers, c->tie,         c->stops[0],      gdn_config_channels(c)};
    memcpy(n, all, sizeof all);
}

static void reads_flat(void **unused)
{
    (void)unused;
    ACCEPTED(PARSE(flat));
    const gdn_model_config *c = &config;
    const int               want[NUMBERS] = {
                      GDN_TENSOR_BF16, 1000, 64, 4, 4, 2, 64, 2, 6, 32, 96, 4, 96, 16, 2048, 0, 1, GDN_TIE_YES, 7, 2 * 64 + 6 * 96};
    int got[NUMBERS];
    numbers(got, c);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(c->family, GDN_QWEN3_5);
    assert_string_equal(c->model_type, "qwen3_5_text");
    assert_int_equal(c->n_stops, 1);
    assert_true(c->rope_theta == 1e7 && c->rms_eps == 1e-6);
    for (int l = 0; l < 4; l++) {
        assert_int_equal(c->layers[l].mixer, l % 2 ? GDN_MIXER_FULL : GDN_MIXER_LINEAR);
        assert_int_equal(c->layers[l].ffn, GDN_FFN_DENSE);
    }
}

/* The same text model under text_config, with keys of its surroundings, is the same. */
static void reads_nested(void **unused)
{
    (void)unused;
    int  alone[NUMBERS], inside[NUMBERS];
    char text[2048];
    ACCEPTED(PARSE(flat));
    numbers(alone, &config);
    snprintf(text, sizeof text,
             "{\"model_type\":\"qwen3_5\",\"vision_config\":{\"hidden_size\":9,\"model_type\":\"x\"},\"vocab_size\":-1,"
             "\"text_config\":%s,\"eos_token_id\":[7,8],\"tie_word_embeddings\":true}",
             flat);
    ACCEPTED(PARSE(text));
    numbers(inside, &config);
    assert_memory_equal(inside, alone, sizeof alone);
    assert_string_equal(config.model_type, "qwen3_5_text");
    assert_true(config.rope_theta == 1e7 && config.rms_eps == 1e-6);
    for (int l = 0; l < 4; l++) assert_int_equal(config.layers[l].mixer, l % 2 ? GDN_MIXER_FULL : GDN_MIXER_LINEAR);
    assert_int_equal(config.n_stops, 2);
    assert_int_equal(config.stops[1], 8);
}

/* Where keys may also stand: rope keys beside rope_parameters, an older name of dtype, the layers as a list. */
static void reads_other_places(void **unused)
{
    (void)unused;
    char *text = replaced(
             flat,
             "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}",
             "\"rope_theta\":5e6,\"partial_rotary_factor\":1.0,\"rope_scaling\":null"),
         *more = replaced(text, "\"dtype\":\"bfloat16\"", "\"torch_dtype\":\"float32\""),
         *list = replaced(
             more, "\"full_attention_interval\":2",
             "\"layer_types\":[\"full_attention\",\"linear_attention\",\"linear_attention\",\"linear_attention\"]");
    ACCEPTED(PARSE(list));
    assert_true(config.rope_theta == 5e6);
    assert_int_equal(config.rope_dims, 64);
    assert_int_equal(config.type, GDN_TENSOR_F32);
    for (int l = 0; l < 4; l++) assert_int_equal(config.layers[l].mixer, l ? GDN_MIXER_LINEAR : GDN_MIXER_FULL);
    free(text), free(more), free(list);
}

static void reads_the_tie(void **unused)
{
    (void)unused;
    static const struct {
        const char *inner, *outer;
        gdn_tie     tie;
    } ties[] = {{"true", NULL, GDN_TIE_YES},       {"false", NULL, GDN_TIE_NO},       {NULL, "true", GDN_TIE_YES},
                {NULL, "false", GDN_TIE_NO},       {"true", "true", GDN_TIE_YES},     {"false", "false", GDN_TIE_NO},
                {"true", "false", GDN_TIE_UNSAID}, {"false", "true", GDN_TIE_UNSAID}, {NULL, NULL, GDN_TIE_UNSAID}};
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        char inner[48], outer[48], text[2048];
        snprintf(inner, sizeof inner, ties[i].inner ? "\"tie_word_embeddings\":%s" : "\"x\":1", ties[i].inner);
        snprintf(outer, sizeof outer, ties[i].outer ? "\"tie_word_embeddings\":%s" : "\"x\":1", ties[i].outer);
        char *object = replaced(flat, "\"tie_word_embeddings\":true", inner);
        snprintf(text, sizeof text, "{\"model_type\":\"qwen3_5\",\"text_config\":%s,%s}", object, outer);
        ACCEPTED(PARSE(text));
        assert_int_equal(config.tie, ties[i].tie);
        free(object);
    }
}

/* ---- experts ------------------------------------------------------------------------------------------------------- */

#define EXPERTS \
    "\"num_experts\":8,\"num_experts_per_tok\":3,\"moe_intermediate_size\":24,\"shared_expert_intermediate_size\":48"

static char *next_text(const char *more)
{
    char *text = replaced(flat, "qwen3_5_text", "qwen3_next"), *whole = replaced(text, "\"pad_token_id\":null", more);
    free(text);
    return whole;
}

static void reads_experts(void **unused)
{
    (void)unused;
    char *text = next_text(EXPERTS);
    ACCEPTED(PARSE(text));
    assert_int_equal(config.family, GDN_QWEN3_NEXT);
    assert_int_equal(config.n_experts, 8);
    assert_int_equal(config.n_experts_used, 3);
    assert_int_equal(config.expert_size, 24);
    assert_int_equal(config.shared_expert_size, 48);
    assert_int_equal(config.ffn_size, 0);
    assert_true(config.norm_topk_prob);
    for (int l = 0; l < 4; l++) assert_int_equal(config.layers[l].ffn, GDN_FFN_MOE);
    free(text);

    text = next_text(EXPERTS ",\"norm_topk_prob\":false,\"decoder_sparse_step\":2,\"mlp_only_layers\":[3]");
    ACCEPTED(PARSE(text));
    assert_false(config.norm_topk_prob);
    assert_int_equal(config.ffn_size, 96);
    for (int l = 0; l < 4; l++) assert_int_equal(config.layers[l].ffn, l == 1 ? GDN_FFN_MOE : GDN_FFN_DENSE);
    char *moe = replaced(text, "qwen3_next", "qwen3_5_moe_text");
    ACCEPTED(PARSE(moe));
    assert_true(config.norm_topk_prob); /* Qwen3.5 always normalises */
    free(text), free(moe);

    text = next_text("\"num_experts\":0");
    REFUSED(PARSE(text), GDN_BAD_FILE, "config.json: num_experts is 0; a whole number from 1 to 4096 was expected");
    free(text);
    text = next_text("\"x\":0");
    REFUSED(PARSE(text), GDN_BAD_FILE, "config.json: num_experts is missing");
    free(text);
    text = next_text("\"num_experts\":2,\"num_experts_per_tok\":3,\"moe_intermediate_size\":24,\"shared_expert_"
                     "intermediate_size\":48");
    REFUSED(PARSE(text), GDN_BAD_FILE, "config.json: num_experts_per_tok is 3; there are fewer experts (num_experts)");
    free(text);
    text = next_text(EXPERTS ",\"mlp_only_layers\":[0,4]");
    REFUSED(PARSE(text), GDN_BAD_FILE, "config.json: mlp_only_layers is 4; a list of layers was expected");
    free(text);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *old, *new;
    gdn_status  status;
    const char *sentence;
} wrong[] = {
    {"\"qwen3_5_text\"", "\"qwen4_exp\"", GDN_UNSUPPORTED,
     "config.json: model_type is 'qwen4_exp'; gdn runs qwen3_5, qwen3_5_moe (and their _text) and qwen3_next"},
    {"\"qwen3_5_text\"", "\"llama\"", GDN_UNSUPPORTED,
     "config.json: model_type is 'llama'; gdn runs qwen3_5, qwen3_5_moe (and their _text) and qwen3_next"},
    {"\"qwen3_5_text\"", "\"\\u001b[2J\\u00e9!\"", GDN_UNSUPPORTED,
     "config.json: model_type is '?[2J?"
     "?!'; gdn runs qwen3_5, qwen3_5_moe (and their _text) and qwen3_next"},
    {"\"qwen3_5_text\"", "3", GDN_BAD_FILE, "config.json: model_type is 3; a string was expected"},
    {"\"model_type\"", "\"model_kind\"", GDN_BAD_FILE, "config.json: model_type is missing"},
    {"\"silu\"", "\"gelu\"", GDN_UNSUPPORTED, "config.json: hidden_act is 'gelu'; gdn computes silu only"},
    {"\"pad_token_id\":null", "\"output_gate_type\":\"sigmoid\"", GDN_UNSUPPORTED,
     "config.json: output_gate_type is 'sigmoid'; gdn computes the gate swish only"},
    {"\"attention_bias\":false", "\"attention_bias\":true", GDN_UNSUPPORTED,
     "config.json: attention_bias is true; gdn computes attention without biases only"},
    {"\"attention_bias\":false", "\"attention_bias\":0", GDN_BAD_FILE,
     "config.json: attention_bias is 0; true or false was expected"},
    {"\"attn_output_gate\":true", "\"attn_output_gate\":false", GDN_UNSUPPORTED,
     "config.json: attn_output_gate is false; gdn computes attention with an output gate only"},
    {"\"pad_token_id\":null", "\"mtp_use_dedicated_embeddings\":true", GDN_UNSUPPORTED,
     "config.json: mtp_use_dedicated_embeddings is true; gdn computes an MTP layer with the model's own embeddings "
     "only"},
    {"\"pad_token_id\":null", "\"quantization_config\":{\"quant_method\":\"fp8\"}", GDN_UNSUPPORTED,
     "config.json: quantization_config is 'fp8'; quantised checkpoints are not supported; use the one in BF16"},
    {"\"pad_token_id\":null", "\"quantization\":{\"bits\":4}", GDN_UNSUPPORTED,
     "config.json: quantization is an object; quantised checkpoints are not supported; use the one in BF16"},
    {"\"rope_type\":\"default\"", "\"rope_type\":\"yarn\"", GDN_UNSUPPORTED,
     "config.json: rope_parameters.rope_type is 'yarn'; positions stretched beyond max_position_embeddings are not "
     "supported, only "
     "'default'"},
    {"\"pad_token_id\":null", "\"rope_scaling\":{\"type\":\"linear\"},\"rope_theta\":1e4", GDN_OK, NULL},
    {"\"rope_parameters\"", "\"rope_theta\":1e4,\"partial_rotary_factor\":0.5,\"rope_scaling\"", GDN_OK, NULL},
    {"\"rope_parameters\":{\"rope_type\":\"default\"", "\"rope_scaling\":{\"type\":\"linear\"", GDN_UNSUPPORTED,
     "config.json: rope_scaling.type is 'linear'; positions stretched beyond max_position_embeddings are not "
     "supported, only "
     "'default'"},
    {"\"rope_theta\":10000000,", "", GDN_BAD_FILE, "config.json: rope_theta is missing"},
    {",\"partial_rotary_factor\":0.25", "", GDN_BAD_FILE, "config.json: partial_rotary_factor is missing"},
    {"0.25}", "0.3}", GDN_BAD_FILE,
     "config.json: partial_rotary_factor is 0.3; that part of head_dim must be an even number of dims"},
    {"\"rope_theta\":10000000", "\"rope_theta\":0", GDN_BAD_FILE,
     "config.json: rope_parameters.rope_theta is 0; a number from 1 to 1e+12 was expected"},
    {"\"head_dim\":64", "\"head_dim\":80", GDN_UNSUPPORTED,
     "config.json: head_dim is 80; gdn computes 32, 64, 96, 128, 160, 192, 224 and 256"},
    {"\"head_dim\":64", "\"head_dim\":512", GDN_UNSUPPORTED,
     "config.json: head_dim is 512; gdn computes 32, 64, 96, 128, 160, 192, 224 and 256"},
    {"\"linear_key_head_dim\":32", "\"linear_key_head_dim\":48", GDN_UNSUPPORTED,
     "config.json: linear_key_head_dim is 48; gdn computes 16, 32, 64, 96, 128, 160, 192, 224 and 256"},
    {"\"linear_value_head_dim\":96", "\"linear_value_head_dim\":288", GDN_UNSUPPORTED,
     "config.json: linear_value_head_dim is 288; gdn computes 16, 32, 64, 96, 128, 160, 192, 224 and 256"},
    {"\"num_key_value_heads\":2", "\"num_key_value_heads\":3", GDN_BAD_FILE,
     "config.json: num_attention_heads is 4; it must be a multiple of num_key_value_heads, 3"},
    {"\"linear_num_value_heads\":6", "\"linear_num_value_heads\":5", GDN_BAD_FILE,
     "config.json: linear_num_value_heads is 5; it must be a multiple of linear_num_key_heads, 2"},
    {"\"num_hidden_layers\":4", "\"num_hidden_layers\":1025", GDN_BAD_FILE,
     "config.json: num_hidden_layers is 1025; a whole number from 1 to 1024 was expected"},
    {"\"num_hidden_layers\":4", "\"num_hidden_layers\":-4", GDN_BAD_FILE,
     "config.json: num_hidden_layers is -4; a whole number from 1 to 1024 was expected"},
    {"\"num_hidden_layers\":4", "\"num_hidden_layers\":4.0", GDN_BAD_FILE,
     "config.json: num_hidden_layers is 4.0; a whole number from 1 to 1024 was expected"},
    {"\"vocab_size\":1000", "\"vocab_size\":4194305", GDN_BAD_FILE,
     "config.json: vocab_size is 4194305; a whole number from 1 to 4194304 was expected"},
    {"\"hidden_size\":64", "\"hidden_size\":65537", GDN_BAD_FILE,
     "config.json: hidden_size is 65537; a whole number from 1 to 65536 was expected"},
    {"\"hidden_size\":64", "\"hidden_size\":\"64\"", GDN_BAD_FILE,
     "config.json: hidden_size is '64'; a whole number from 1 to 65536 was expected"},
    {"\"hidden_size\":64,", "", GDN_BAD_FILE, "config.json: hidden_size is missing"},
    {"\"intermediate_size\":96,", "", GDN_BAD_FILE, "config.json: intermediate_size is missing"},
    {"\"full_attention_interval\":2,", "", GDN_BAD_FILE, "config.json: full_attention_interval is missing"},
    {"\"full_attention_interval\":2", "\"layer_types\":[\"full_attention\"]", GDN_BAD_FILE,
     "config.json: layer_types has 1 entries, num_hidden_layers is 4"},
    {"\"full_attention_interval\":2",
     "\"layer_types\":[\"full_attention\",\"linear_attention\",\"sliding_attention\",\"linear_attention\"]",
     GDN_UNSUPPORTED,
     "config.json: layer_types is 'sliding_attention'; gdn computes linear_attention and full_attention"},
    {"1e-06", "0", GDN_BAD_FILE, "config.json: rms_norm_eps is 0; a number from 1e-12 to 0.01 was expected"},
    {"1e-06", "-1e-06", GDN_BAD_FILE, "config.json: rms_norm_eps is -1e-06; a number from 1e-12 to 0.01 was expected"},
    {"1e-06", "NaN", GDN_BAD_FILE, "config.json is not valid JSON: line 1, column 240; mend it or get it again"},
    {"1e-06", "1e999", GDN_BAD_FILE, "config.json is not valid JSON: line 1, column 242; mend it or get it again"},
    {"\"eos_token_id\":7", "\"eos_token_id\":1000", GDN_BAD_FILE,
     "config.json: eos_token_id is 1000; token ids from 0 to 999 were expected"},
    {"\"eos_token_id\":7", "\"eos_token_id\":[1,true]", GDN_BAD_FILE,
     "config.json: eos_token_id is true; token ids from 0 to 999 were expected"},
    {"\"eos_token_id\":7", "\"eos_token_id\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,16,17]", GDN_UNSUPPORTED,
     "config.json: eos_token_id is 17; at most 16 different ids are supported"},
    {"\"bfloat16\"", "\"float8\"", GDN_UNSUPPORTED,
     "config.json: dtype is 'float8'; gdn computes models in bfloat16, float16 and float32"},
    {"\"mtp_num_hidden_layers\":1", "\"mtp_num_hidden_layers\":2", GDN_BAD_FILE,
     "config.json: mtp_num_hidden_layers is 2; a whole number from 0 to 1 was expected"},
    {"\"pad_token_id\":null", "\"text_config\":7", GDN_BAD_FILE,
     "config.json: text_config is 7; an object was expected"},
    {"\"pad_token_id\":null", "\"text_config\":{\"model_type\":\"qwen4_exp_text\"}", GDN_UNSUPPORTED,
     "config.json: text_config.model_type is 'qwen4_exp_text'; gdn runs qwen3_5, qwen3_5_moe (and their _text) and "
     "qwen3_next"},
    {"\"pad_token_id\":null", "\"text_config\":{}", GDN_BAD_FILE, "config.json: text_config.vocab_size is missing"},
    {"\"vocab_size\":1000", "\"vocab_size\":1000,\"vocab_size\":1001", GDN_BAD_FILE,
     "config.json is not valid JSON: line 1, column 59: a key stands there twice; mend it or get it again"},
};

static void refuses_wrong_values(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = replaced(flat, wrong[i].old, wrong[i].new);
        if (wrong[i].status) REFUSED(PARSE(text), wrong[i].status, wrong[i].sentence);
        else ACCEPTED(PARSE(text));
        free(text);
    }
    REFUSED(PARSE("[1]"), GDN_BAD_FILE, "config.json holds no JSON object; get it again");
    REFUSED(PARSE(""), GDN_BAD_FILE, "config.json is not valid JSON: line 1, column 0; mend it or get it again");
    for (size_t n = 0; n < sizeof flat - 1; n++)
        assert_int_equal(gdn_model_config_parse(&config, flat, n, NULL), GDN_BAD_FILE);
}

/* ---- the published models ------------------------------------------------------------------------------------------ */

/* Dimensions and totals as published; `mtp` where the totals of MTP layers are published too, else 0.  The text totals are
 * those that, together with MTP layer and vision tower, equal the safetensors totals of the model pages to the last digit. */
static const struct published {
    const char *name, *model_type;
    bool        nested, tied;
    int         h, layers, heads, kv_heads, value_heads, ffn, experts, used, expert, shared, vocab;
    uint64_t    text, mtp;
} published[] = {
    {"0.8B", "qwen3_5", 1, 1, 1024, 24, 8, 2, 16, 3584, 0, 0, 0, 0, 248320, 752393024, 0},
    {"2B", "qwen3_5", 1, 1, 2048, 24, 8, 2, 16, 6144, 0, 0, 0, 0, 248320, 1881825088, 60828160},
    {"4B", "qwen3_5", 1, 1, 2560, 32, 16, 4, 32, 9216, 0, 0, 0, 0, 248320, 4205751296, 120599552},
    {"9B", "qwen3_5", 1, 0, 4096, 32, 16, 4, 32, 12288, 0, 0, 0, 0, 248320, 8953803264, 243290624},
    {"27B", "qwen3_5", 1, 0, 5120, 64, 24, 4, 48, 17408, 0, 0, 0, 0, 248320, 26895998464, 0},
    {"35B-A3B", "qwen3_5_moe", 1, 0, 2048, 40, 16, 2, 32, 0, 256, 8, 512, 512, 248320, 34660610688, 0},
    {"122B-A10B", "qwen3_5_moe", 1, 0, 3072, 48, 32, 2, 64, 0, 256, 8, 1024, 1024, 248320, 122111526912, 0},
    {"397B-A17B", "qwen3_5_moe", 1, 0, 4096, 60, 32, 2, 64, 0, 512, 10, 1024, 1024, 248320, 396346350336, 0},
    {"2.4T-A95B", "qwen3_5_moe_text", 0, 0, 8192, 92, 64, 4, 128, 0, 512, 10, 2048, 2048, 248320, 2419804697984, 0},
    {"Next-80B-A3B", "qwen3_next", 0, 0, 2048, 48, 16, 2, 32, 5120, 512, 10, 512, 512, 151936, 79674391296, 1650471424},
};

static void write_published(char *text, size_t size, const struct published *p)
{
    char experts[256] = "";
    if (p->experts)
        snprintf(experts, sizeof experts,
                 ",\"num_experts\":%d,\"num_experts_per_tok\":%d,\"moe_intermediate_size\":%d,\"shared_expert_"
                 "intermediate_size\":%d",
                 p->experts, p->used, p->expert, p->shared);
    if (p->ffn) {
        const size_t n = strlen(experts);
        snprintf(experts + n, sizeof experts - n, ",\"intermediate_size\":%d", p->ffn);
    }
    snprintf(
        text, size,
        "{\"model_type\":\"%s\"%s,\"vocab_size\":%d,\"hidden_size\":%d,\"num_hidden_layers\":%d,\"num_attention_"
        "heads\":%d,"
        "\"num_key_value_heads\":%d,\"head_dim\":256,\"hidden_act\":\"silu\",\"max_position_embeddings\":262144,"
        "\"rms_norm_eps\":1e-06,\"full_attention_interval\":4,\"linear_conv_kernel_dim\":4,\"linear_key_head_dim\":128,"
        "\"linear_value_head_dim\":128,\"linear_num_key_heads\":16,\"linear_num_value_heads\":%d,"
        "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000000,\"partial_rotary_factor\":0.25}%s%s,"
        "\"tie_word_embeddings\":%s}",
        p->model_type, p->nested ? ",\"text_config\":{\"x\":0" : "", p->vocab, p->h, p->layers, p->heads, p->kv_heads,
        p->value_heads, experts, p->nested ? "}" : "", p->tied ? "true" : "false");
}

static void counts_published_models(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct published *p = &published[i];
        char                    text[2048];
        write_published(text, sizeof text, p);
        ACCEPTED(PARSE(text));
        assert_int_equal(config.tie, p->tied ? GDN_TIE_YES : GDN_TIE_NO);
        assert_int_equal(config.rope_dims, 64);
        if (gdn_text_parameters(&config, p->tied) != p->text) fail_msg("%s: the text total differs", p->name);
        if (p->mtp && gdn_mtp_parameters(&config) != p->mtp) fail_msg("%s: the MTP total differs", p->name);
    }
}

/* ---- Qwen3-Next's rows --------------------------------------------------------------------------------------------- */

/* Walk over the interleaved rows in their stored order and ask where each went. */
static void untangles_rows(void **unused)
{
    (void)unused;
    enum { HK = 3, HV = 6, R = 2, DK = 32, DV = 64, KD = HK * DK, CD = 2 * KD + HV * DV, VD = HV * DV };
    const gdn_model_config c = {.n_key_heads = HK, .n_value_heads = HV, .key_dim = DK, .value_dim = DV};
    int                    qkv[CD], z[VD], b[HV], a[HV], row = 0;
    gdn_rows_of_qkvz(&c, qkv, z);
    gdn_rows_of_ba(&c, b, a);
    for (int head = 0; head < HK; head++) {
        for (int i = 0; i < DK; i++) assert_int_equal(qkv[head * DK + i], row++);
        for (int i = 0; i < DK; i++) assert_int_equal(qkv[KD + head * DK + i], row++);
        for (int j = 0; j < R; j++)
            for (int i = 0; i < DV; i++) assert_int_equal(qkv[2 * KD + (head * R + j) * DV + i], row++);
        for (int j = 0; j < R; j++)
            for (int i = 0; i < DV; i++) assert_int_equal(z[(head * R + j) * DV + i], row++);
    }
    assert_int_equal(row, CD + VD);
    row = 0;
    for (int head = 0; head < HK; head++) {
        for (int j = 0; j < R; j++) assert_int_equal(b[head * R + j], row++);
        for (int j = 0; j < R; j++) assert_int_equal(a[head * R + j], row++);
    }
}

/* ---- the other files ----------------------------------------------------------------------------------------------- */

#define GENERATION(text) gdn_generation_config_parse(&generation, &config, text, strlen(text), &err)

static void reads_generation(void **unused)
{
    (void)unused;
    ACCEPTED(PARSE(flat));
    ACCEPTED(GENERATION("{\"do_sample\":true,\"temperature\":0.6,\"top_p\":0.95,\"top_k\":20,\"min_p\":0.1,"
                        "\"repetition_penalty\":1.05,\"eos_token_id\":[9,7,11]}"));
    assert_true(generation.do_sample && generation.temperature == 0.6 && generation.top_p == 0.95);
    assert_true(generation.min_p == 0.1 && generation.repetition_penalty == 1.05);
    assert_int_equal(generation.top_k, 20);
    assert_int_equal(generation.n_stops, 3);
    assert_memory_equal(generation.stops, ((int[]){7, 9, 11}), 3 * sizeof(int));
    REFUSED(GENERATION("{\"temperature\":-1}"), GDN_BAD_FILE,
            "generation_config.json: temperature is -1; a number from 0 to 100 was expected");
    REFUSED(GENERATION("{\"top_p\":1.5}"), GDN_BAD_FILE,
            "generation_config.json: top_p is 1.5; a number from 0 to 1 was expected");
    REFUSED(GENERATION("{\"top_k\":0.5}"), GDN_BAD_FILE,
            "generation_config.json: top_k is 0.5; a whole number from 0 to 4194304 was expected");
    REFUSED(GENERATION("{\"eos_token_id\":\"x\"}"), GDN_BAD_FILE,
            "generation_config.json: eos_token_id is 'x'; token ids from 0 to 999 were expected");
    ACCEPTED(gdn_generation_config_load(&generation, folder, &config, &err)); /* no such file */
    assert_true(!generation.do_sample && generation.temperature == 1 && generation.top_p == 1 && generation.min_p == 0);
    assert_true(generation.repetition_penalty == 1 && generation.top_k == 0);
    assert_int_equal(generation.n_stops, 1);
    assert_int_equal(generation.stops[0], 7);
}

static void reads_tokenizer(void **unused)
{
    (void)unused;
    ACCEPTED(gdn_tokenizer_config_load(&tokenizer, folder, &err)); /* no such files */
    assert_null(tokenizer.chat_template);
    assert_null(tokenizer.eos_token);
    store_text("tokenizer_config.json",
               "{\"chat_template\":[{\"name\":\"tool_use\",\"template\":\"no\"},{\"name\":\"default\","
               "\"template\":\"named\"}],\"eos_token\":{\"content\":\"<e>\",\"special\":true},"
               "\"bos_token\":null,\"pad_token\":\"<p>\",\"unk_token\":\"<u>\"}");
    ACCEPTED(gdn_tokenizer_config_load(&tokenizer, folder, &err));
    assert_string_equal(tokenizer.chat_template, "named");
    assert_string_equal(tokenizer.eos_token, "<e>");
    assert_string_equal(tokenizer.pad_token, "<p>");
    assert_string_equal(tokenizer.unk_token, "<u>");
    assert_null(tokenizer.bos_token);
    gdn_tokenizer_config_close(&tokenizer);
    gdn_tokenizer_config_close(&tokenizer);
    store_text("chat_template.jinja", "{{ of its own }}\n");
    ACCEPTED(gdn_tokenizer_config_load(&tokenizer, folder, &err));
    assert_string_equal(tokenizer.chat_template, "{{ of its own }}\n");
    gdn_tokenizer_config_close(&tokenizer);
    store("chat_template.jinja", "a\0b", 3);
    REFUSED(gdn_tokenizer_config_load(&tokenizer, folder, &err), GDN_BAD_FILE,
            "chat_template.jinja holds a zero byte; it must be text");
    assert_null(tokenizer.eos_token);
    store_text("tokenizer_config.json",
               "{\"eos_token\":\"<e>\",\"chat_template\":[{\"name\":\"other\",\"template\":\"x\"}]}");
    REFUSED(
        gdn_tokenizer_config_load(&tokenizer, folder, &err), GDN_BAD_FILE,
        "tokenizer_config.json: chat_template is a list; a template, or a list with one named 'default', was expected");
    store_text("tokenizer_config.json", "{\"eos_token\":5}");
    REFUSED(gdn_tokenizer_config_load(&tokenizer, folder, &err), GDN_BAD_FILE,
            "tokenizer_config.json: eos_token is 5; a token was expected");
    forget("tokenizer_config.json");
    forget("chat_template.jinja");
}

/* A model is its folder or a file in it. */
static void finds_the_files(void **unused)
{
    (void)unused;
    char slash[80];
    store_text("config.json", flat);
    store_text("model.safetensors", "");
    ACCEPTED(gdn_model_config_load(&config, folder, &err));
    snprintf(slash, sizeof slash, "%s/", folder);
    ACCEPTED(gdn_model_config_load(&config, slash, &err));
    ACCEPTED(gdn_model_config_load(&config, in_folder("model.safetensors"), &err));
    forget("config.json");
    char sentence[400];
    snprintf(sentence, sizeof sentence, "%s cannot be opened: No such file or directory; check the path",
             in_folder("config.json"));
    REFUSED(gdn_model_config_load(&config, folder, &err), GDN_IO, sentence);
    store_text("config.json", "");
    assert_int_equal(truncate(in_folder("config.json"), (64 << 20) + 1), 0);
    snprintf(sentence, sizeof sentence, "%s has 67108865 bytes; at most 67108864 are allowed",
             in_folder("config.json"));
    REFUSED(gdn_model_config_load(&config, folder, &err), GDN_BAD_FILE, sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_flat),
        cmocka_unit_test(reads_nested),
        cmocka_unit_test(reads_other_places),
        cmocka_unit_test(reads_the_tie),
        cmocka_unit_test(reads_experts),
        cmocka_unit_test(refuses_wrong_values),
        cmocka_unit_test(counts_published_models),
        cmocka_unit_test(untangles_rows),
        cmocka_unit_test(reads_generation),
        cmocka_unit_test(reads_tokenizer),
        cmocka_unit_test(finds_the_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
