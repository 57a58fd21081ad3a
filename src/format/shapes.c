/* What follows from a config alone: how rows are interleaved in Qwen3-Next, and how many parameters there are. */
#include "format/checkpoint.h"

int gdn_config_channels(const gdn_model_config *c)
{
    return 2 * c->n_key_heads * c->key_dim + c->n_value_heads * c->value_dim;
}

/* Rows from .. from+n-1, to dst. */
static void rows(int *dst, int from, int n)
{
    for (int i = 0; i < n; i++) dst[i] = from + i;
}

void gdn_rows_of_qkvz(const gdn_model_config *c, int *qkv, int *z)
{
    const int dk = c->key_dim, kd = c->n_key_heads * dk, values = c->n_value_heads / c->n_key_heads * c->value_dim;
    for (int head = 0; head < c->n_key_heads; head++) {
        const int group = head * 2 * (dk + values);
        rows(qkv + head * dk, group, dk);
        rows(qkv + kd + head * dk, group + dk, dk);
        rows(qkv + 2 * kd + head * values, group + 2 * dk, values);
        rows(z + head * values, group + 2 * dk + values, values);
    }
}

void gdn_rows_of_ba(const gdn_model_config *c, int *b, int *a)
{
    const int r = c->n_value_heads / c->n_key_heads;
    for (int head = 0; head < c->n_key_heads; head++) {
        rows(b + head * r, head * 2 * r, r);
        rows(a + head * r, head * 2 * r + r, r);
    }
}

static uint64_t linear_parameters(const gdn_model_config *c)
{
    const uint64_t h = (uint64_t)c->hidden_size, hv = (uint64_t)c->n_value_heads, dv = (uint64_t)c->value_dim,
                   cd = (uint64_t)gdn_config_channels(c);
    return (cd + hv * dv + 2 * hv) * h + cd * (uint64_t)c->n_taps + 2 * hv + dv + hv * dv * h;
}

static uint64_t attention_parameters(const gdn_model_config *c)
{
    const uint64_t h = (uint64_t)c->hidden_size, d = (uint64_t)c->head_dim;
    return (3 * (uint64_t)c->n_heads + 2 * (uint64_t)c->n_kv_heads) * d * h + 2 * d;
}

static uint64_t ffn_parameters(const gdn_model_config *c, int ffn)
{
    const uint64_t h = (uint64_t)c->hidden_size, e = (uint64_t)c->n_experts;
    if (ffn == GDN_FFN_DENSE) return 3 * h * (uint64_t)c->ffn_size;
    return h * (e + 3 * e * (uint64_t)c->expert_size + 3 * (uint64_t)c->shared_expert_size + 1);
}

uint64_t gdn_text_parameters(const gdn_model_config *c, bool tied)
{
    const uint64_t h = (uint64_t)c->hidden_size;
    uint64_t       n = h * (uint64_t)c->vocab_size * (tied ? 1 : 2) + h;
    for (int l = 0; l < c->n_layers; l++) {
        n += c->layers[l].mixer == GDN_MIXER_FULL ? attention_parameters(c) : linear_parameters(c);
        n += ffn_parameters(c, c->layers[l].ffn) + 2 * h;
    }
    return n;
}

uint64_t gdn_mtp_parameters(const gdn_model_config *c)
{
    const uint64_t h = (uint64_t)c->hidden_size;
    return attention_parameters(c) + ffn_parameters(c, c->n_experts ? GDN_FFN_MOE : GDN_FFN_DENSE) + 2 * h + 2 * h * h +
           3 * h;
}
