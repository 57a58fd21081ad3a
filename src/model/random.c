#include "model/random.h"
#include <math.h>
#include <string.h>

static gdn_random_tensor numbers(int n, float least, float most)
{
    return (gdn_random_tensor){{.name = "random", .n_dims = 1, .shape = {(uint64_t)n}}, least, most};
}

/* Norms as they are stored, around 0 where 1 is added; decays between slow and fast, as trained models have them. */
void gdn_random_open(gdn_random *r, const gdn_model_config *c, uint64_t seed)
{
    *r = (gdn_random){.state = seed,
                      .matrix = numbers(0, 0.0f, 0.0f),
                      .norm = numbers(c->hidden_size, -0.1f, 0.1f),
                      .head_norm = numbers(c->head_dim, -0.1f, 0.1f),
                      .gated_norm = numbers(c->value_dim, 0.9f, 1.1f),
                      .conv = numbers(gdn_config_channels(c) * c->n_taps, -0.5f, 0.5f),
                      .A_log = numbers(c->n_value_heads, 0.0f, 2.8f),
                      .dt_bias = numbers(c->n_value_heads, -7.0f, -2.0f)};
    const gdn_tensor *const any = &r->matrix.tensor;
    const gdn_mlp_tensors   mlp = {any, any, any};
    r->layer = (gdn_layer_tensors){
        .input_norm = &r->norm.tensor,
        .post_norm = &r->norm.tensor,
        .linear = {.in_proj_qkv = any,
                   .in_proj_z = any,
                   .in_proj_b = any,
                   .in_proj_a = any,
                   .conv1d = &r->conv.tensor,
                   .A_log = &r->A_log.tensor,
                   .dt_bias = &r->dt_bias.tensor,
                   .norm = &r->gated_norm.tensor,
                   .out_proj = any},
        .attention = {any, any, any, any, .q_norm = &r->head_norm.tensor, .k_norm = &r->head_norm.tensor},
        .mlp = mlp,
        .moe = {.router = any, .gate_up_proj = any, .down_proj = any, .shared = mlp, .shared_gate = any},
    };
    r->mtp = (gdn_mtp_tensors){&r->norm.tensor, &r->norm.tensor, &r->norm.tensor, any, r->layer};
}

/* splitmix64 */
static uint64_t next(gdn_random *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void gdn_random_f32(gdn_random *r, float *v, const gdn_tensor *vector, size_t n)
{
    const gdn_random_tensor *const from = (const gdn_random_tensor *)(const void *)vector;
    for (size_t i = 0; i < n; i++)
        v[i] = from->least + (from->most - from->least) * ((float)(next(r) >> 40) * 0x1p-24f);
}

/* Four numbers of 64 random bits: sign, mantissa and the lowest bit of the exponent are random, so that a number is 1 to 4 times
 * a power of two, and their root mean square 2.415 times it. */
void gdn_random_bf16(gdn_random *r, uint16_t *row, size_t n)
{
    const uint64_t random = 0x80ff80ff80ff80ffu, each = 0x0001000100010001u;
    int            exponent;
    (void)frexp(1.41421356 / 2.415 / sqrt((double)n), &exponent); /* the nearest power of two, on a logarithmic scale */
    const uint64_t least = (uint64_t)(127 + exponent - 1) << 7;
    for (size_t i = 0; i < n; i += 4) {
        const uint64_t four = (next(r) & random) + least * each;
        memcpy(row + i, &four, (n - i < 4 ? n - i : 4) * sizeof *row);
    }
}
