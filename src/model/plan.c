/* What follows from a config: how linear layers run, and the bytes of weights. */
#include "model/load.h"

gdn_delta_config gdn_model_delta(const gdn_model_config *c)
{
    return (gdn_delta_config){.n_key_heads = c->n_key_heads,
                              .n_value_heads = c->n_value_heads,
                              .key_dim = gdn_padded(c->key_dim),
                              .value_dim = gdn_padded(c->value_dim),
                              .n_taps = c->n_taps,
                              .type = GDN_F32,
                              .qk_eps = 1e-6f};
}

/* Of n numbers in f32, to the next cache line. */
static size_t vector(int n) { return gdn_load_bytes((size_t)n * sizeof(float)); }

static size_t delta_bytes(const gdn_model_config *c)
{
    const gdn_delta_config d = gdn_model_delta(c);
    const int              h = c->hidden_size, C = gdn_channels(&d), V = d.n_value_heads * d.value_dim;
    return gdn_linear_bytes(C, h) + gdn_linear_bytes(V, h) + 2 * gdn_linear_bytes(d.n_value_heads, h) +
           gdn_linear_bytes(h, V) + vector(d.n_taps * C) + 2 * vector(d.n_value_heads) + vector(d.value_dim);
}

static size_t attention_bytes(const gdn_model_config *c)
{
    const int h = c->hidden_size, HD = c->n_heads * c->head_dim, GD = c->n_kv_heads * c->head_dim;
    return gdn_linear_bytes(2 * HD, h) + 2 * gdn_linear_bytes(GD, h) + gdn_linear_bytes(h, HD) +
           2 * vector(c->head_dim);
}

static size_t ffn_bytes(const gdn_model_config *c, int ffn)
{
    const int h = c->hidden_size;
    if (ffn == GDN_FFN_DENSE) return gdn_mlp_bytes(h, c->ffn_size);
    return gdn_linear_bytes(c->n_experts, h) + gdn_linear_bytes(1, h) +
           (size_t)c->n_experts * gdn_mlp_bytes(h, c->expert_size) + gdn_mlp_bytes(h, c->shared_expert_size);
}

static size_t layer_bytes(const gdn_model_config *c, gdn_layer_kind kind)
{
    return (kind.mixer == GDN_MIXER_FULL ? attention_bytes(c) : delta_bytes(c)) + ffn_bytes(c, kind.ffn) +
           2 * vector(c->hidden_size);
}

gdn_layer_kind gdn_mtp_kind(const gdn_model_config *c)
{
    return (gdn_layer_kind){GDN_MIXER_FULL, c->n_experts ? GDN_FFN_MOE : GDN_FFN_DENSE};
}

size_t gdn_model_bytes(const gdn_model_config *c, bool tied, bool mtp)
{
    const int h = c->hidden_size;
    size_t    n = gdn_linear_bytes(c->vocab_size, h) + vector(h) + vector(c->rope_dims / 2);
    if (!tied) n += gdn_load_bytes((size_t)c->vocab_size * h * sizeof(uint16_t));
    if (mtp) n += gdn_linear_bytes(h, 2 * h) + 3 * vector(h) + layer_bytes(c, gdn_mtp_kind(c));
    for (int i = 0; i < c->n_layers; i++) n += layer_bytes(c, c->layers[i]);
    return n;
}
