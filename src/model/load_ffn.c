/* The feed-forward part of a layer.  A width that is no multiple of 32 is padded with zero rows of gate and up, which
 * silu(0)*0 keeps at zero, and with zero columns of down. */
#include "model/load.h"

size_t gdn_mlp_bytes(int h, int width)
{
    return 2 * gdn_linear_bytes(gdn_padded(width), h) + gdn_linear_bytes(h, width);
}

/* Gate, up and down of `width` into a block of gdn_mlp_bytes; up begins at element up_first of its tensor. */
static gdn_mlp_weights pack_mlp(gdn_loader *ld, const gdn_mlp_tensors *t, size_t up_first, int width, uint16_t *block)
{
    const int       h = ld->model->config.hidden_size, padded = gdn_padded(width);
    uint16_t *const up = block + gdn_linear_bytes(padded, h) / sizeof *block, *const down = up + (up - block);
    const gdn_tensor *const tensors[] = {t->gate_proj, t->up_proj, t->down_proj};
    const gdn_matrix_source of_gate = {
        .tensor = t->gate_proj, .n_rows = width, .n_outputs = padded, .n_heads = 1, .head = h, .padded_head = h};
    const gdn_matrix_source of_down = {
        .tensor = t->down_proj, .n_rows = h, .n_outputs = h, .n_heads = 1, .head = width, .padded_head = padded};
    gdn_matrix_source of_up = of_gate;
    gdn_mlp_weights   w;
    of_up.tensor = t->up_proj;
    of_up.first = up_first;
    for (int i = 0; i < 3; i++) gdn_tensor_expect(tensors[i]);
    w.gate = gdn_load_matrix(ld, &of_gate, block);
    w.up = gdn_load_matrix(ld, &of_up, up);
    w.down = gdn_load_matrix(ld, &of_down, down);
    for (int i = 0; i < 3; i++) gdn_tensor_release(tensors[i]);
    return w;
}

void gdn_load_mlp(gdn_loader *ld, gdn_mlp_weights *w, const gdn_mlp_tensors *t, int width)
{
    uint16_t *const block = gdn_load_take(ld, gdn_mlp_bytes(ld->model->config.hidden_size, width));
    if (block) *w = pack_mlp(ld, t, 0, width, block);
}

/* One of the experts that a tensor holds. */
static gdn_tensor expert_of(const gdn_tensor *t, size_t e, size_t n_experts)
{
    gdn_tensor one = *t;
    one.n_bytes /= n_experts;
    one.data = (const unsigned char *)t->data + e * one.n_bytes;
    one.shape[0] = 1;
    return one;
}

/* All experts of a layer stand in one block. */
static void experts(gdn_loader *ld, gdn_mlp_weights *w, const gdn_moe_tensors *t)
{
    const gdn_model_config *const c = &ld->model->config;
    const size_t                  E = (size_t)c->n_experts, n = (size_t)c->expert_size * (size_t)c->hidden_size;
    const size_t                  each = gdn_mlp_bytes(c->hidden_size, c->expert_size);
    unsigned char *const          block = gdn_load_take(ld, E * each);
    for (size_t e = 0; block && !ld->status && e < E; e++) {
        uint16_t *const at = (uint16_t *)(void *)(block + e * each);
        if (t->experts) {
            w[e] = pack_mlp(ld, &t->experts[e], 0, c->expert_size, at);
        } else {
            const gdn_tensor      gate_up = expert_of(t->gate_up_proj, e, E), down = expert_of(t->down_proj, e, E);
            const gdn_mlp_tensors one = {&gate_up, &gate_up, &down};
            w[e] = pack_mlp(ld, &one, n, c->expert_size, at);
        }
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
