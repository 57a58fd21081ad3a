/* The feed-forward part of a layer.  A width that is no multiple of 32 is padded with zero rows of gate and up, which
 * silu(0)*0 keeps at zero, and with zero columns of down. */
#include "model/load.h"
#include <string.h>

size_t gdn_mlp_bytes(int h, int width)
{
    return 2 * gdn_linear_bytes(gdn_padded(width), h) + gdn_linear_bytes(h, width);
}

/* gate, up and down of `width`, which begin at elements first[3] of their tensors, into a block of gdn_mlp_bytes. */
static gdn_mlp_weights pack_mlp(gdn_loader *ld, const gdn_mlp_tensors *t, const size_t *first, int width,
                                uint16_t *block)
{
    const int       h = ld->model->config.hidden_size, padded = gdn_padded(width);
    uint16_t *const up = block + gdn_linear_bytes(padded, h) / sizeof *block, *const down = up + (up - block);
    gdn_matrix_source source = {.tensor = t->gate_proj,
                                .first = first[0],
                                .n_rows = width,
                                .n_outputs = padded,
                                .n_heads = 1,
                                .head = h,
                                .padded_head = h};
    gdn_mlp_weights   w = {.gate = gdn_load_matrix(ld, &source, block)};
    source.tensor = t->up_proj;
    source.first = first[1];
    w.up = gdn_load_matrix(ld, &source, up);
    source = (gdn_matrix_source){.tensor = t->down_proj,
                                 .first = first[2],
                                 .n_rows = h,
                                 .n_outputs = h,
                                 .n_heads = 1,
                                 .head = width,
                                 .padded_head = padded};
    w.down = gdn_load_matrix(ld, &source, down);
    return w;
}

/* Its pages are asked for before and given back after. */
static gdn_mlp_weights whole_mlp(gdn_loader *ld, const gdn_mlp_tensors *t, int width, uint16_t *block)
{
    const gdn_tensor *const tensors[] = {t->gate_proj, t->up_proj, t->down_proj};
    for (int i = 0; i < 3; i++) gdn_tensor_expect(tensors[i]);
    const gdn_mlp_weights w = pack_mlp(ld, t, (const size_t[3]){0, 0, 0}, width, block);
    for (int i = 0; i < 3; i++) gdn_tensor_release(tensors[i]);
    return w;
}

void gdn_load_mlp(gdn_loader *ld, gdn_mlp_weights *w, const gdn_mlp_tensors *t, int width)
{
    uint16_t *const block = gdn_load_take(ld, gdn_mlp_bytes(ld->model->config.hidden_size, width));
    if (block) *w = whole_mlp(ld, t, width, block);
}

/* All experts of a layer stand in one block. */
static void experts(gdn_loader *ld, gdn_mlp_weights *w, const gdn_moe_tensors *t)
{
    const gdn_model_config *const c = &ld->model->config;
    const size_t                  h = (size_t)c->hidden_size, Im = (size_t)c->expert_size;
    const size_t                  each = gdn_mlp_bytes(c->hidden_size, c->expert_size);
    unsigned char *const          block = gdn_load_take(ld, (size_t)c->n_experts * each);
    if (block && !t->experts) {
        gdn_tensor_expect(t->gate_up_proj);
        gdn_tensor_expect(t->down_proj);
    }
    for (size_t e = 0; block && !ld->status && e < (size_t)c->n_experts; e++) {
        uint16_t *const       at = (uint16_t *)(void *)(block + e * each);
        const gdn_mlp_tensors packed = {t->gate_up_proj, t->gate_up_proj, t->down_proj};
        const size_t          first[3] = {e * 2 * Im * h, (e * 2 + 1) * Im * h, e * h * Im};
        w[e] = t->experts ? whole_mlp(ld, &t->experts[e], c->expert_size, at)
                          : pack_mlp(ld, &packed, first, c->expert_size, at);
    }
    if (block && !t->experts) {
        gdn_tensor_release(t->gate_up_proj);
        gdn_tensor_release(t->down_proj);
    }
}

void gdn_load_moe(gdn_loader *ld, gdn_moe_weights *w, const gdn_moe_tensors *t)
{
    const gdn_model_config *const c = &ld->model->config;
    w->router = gdn_load_linear(ld, t->router, c->n_experts, c->hidden_size);
    w->shared_gate = gdn_load_linear(ld, t->shared_gate, 1, c->hidden_size);
    experts(ld, w->experts, t);
    gdn_load_mlp(ld, &w->experts[c->n_experts], &t->shared, c->shared_expert_size);
}
