/* The shapes of the published Qwen3.5 models, whose weights one need not have to measure how fast they would run. */
#include "format/config.h"
#include <stdio.h>
#include <string.h>

/* What differs between them: h, L, H, G, Hv; I, or E, k, and Im = Is; whether the output matrix is the embedding. */
static const struct shape {
    const char *name;
    int     hidden_size, n_layers, n_heads, n_kv_heads, n_value_heads, ffn_size, n_experts, n_experts_used, expert_size;
    gdn_tie tie;
} shapes[] = {
    {"0.8B", 1024, 24, 8, 2, 16, 3584, 0, 0, 0, GDN_TIE_YES},
    {"2B", 2048, 24, 8, 2, 16, 6144, 0, 0, 0, GDN_TIE_YES},
    {"4B", 2560, 32, 16, 4, 32, 9216, 0, 0, 0, GDN_TIE_YES},
    {"9B", 4096, 32, 16, 4, 32, 12288, 0, 0, 0, GDN_TIE_NO},
    {"27B", 5120, 64, 24, 4, 48, 17408, 0, 0, 0, GDN_TIE_NO},
    {"35B-A3B", 2048, 40, 16, 2, 32, 0, 256, 8, 512, GDN_TIE_NO},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes, FULL_INTERVAL = 4 };

static void fill(gdn_model_config *c, const struct shape *s)
{
    *c = (gdn_model_config){
        .family = GDN_QWEN3_5,
        .type = GDN_TENSOR_BF16,
        .vocab_size = 248320,
        .hidden_size = s->hidden_size,
        .n_layers = s->n_layers,
        .n_heads = s->n_heads,
        .n_kv_heads = s->n_kv_heads,
        .head_dim = 256,
        .n_key_heads = 16,
        .n_value_heads = s->n_value_heads,
        .key_dim = 128,
        .value_dim = 128,
        .n_taps = 4,
        .ffn_size = s->ffn_size,
        .n_experts = s->n_experts,
        .n_experts_used = s->n_experts_used,
        .expert_size = s->expert_size,
        .shared_expert_size = s->expert_size,
        .norm_topk_prob = s->n_experts > 0,
        .rope_dims = 64,
        .rope_theta = 1e7,
        .rms_eps = 1e-6,
        .max_positions = 262144,
        .tie = s->tie,
        .n_stops = 1,
        .stops = {248044},
    };
    snprintf(c->model_type, sizeof c->model_type, "%s", s->n_experts ? "qwen3_5_moe_text" : "qwen3_5_text");
    for (int l = 0; l < c->n_layers; l++) {
        c->layers[l].mixer = l % FULL_INTERVAL == FULL_INTERVAL - 1 ? GDN_MIXER_FULL : GDN_MIXER_LINEAR;
        c->layers[l].ffn = s->n_experts ? GDN_FFN_MOE : GDN_FFN_DENSE;
    }
}

gdn_status gdn_model_config_published(gdn_model_config *config, const char *name, gdn_error *err)
{
    char   list[96] = "";
    size_t n = 0;
    for (int i = 0; i < N_SHAPES; i++) {
        if (!strcmp(name, shapes[i].name)) {
            fill(config, &shapes[i]);
            return GDN_OK;
        }
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", shapes[i].name);
    }
    return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "'%s' is not a published shape; choose one of %s", name, list);
}
