#include "base/alloc.h"
#include "model/forward.h"

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* The widest expert. */
static size_t widest_expert(const gdn_model_config *c)
{
    return larger((size_t)gdn_padded(c->expert_size), (size_t)gdn_padded(c->shared_expert_size));
}

static size_t widest_input(const gdn_model *model)
{
    const gdn_model_config *const c = &model->config;
    const size_t                  h = (size_t)c->hidden_size * (model->has_mtp ? 2 : 1); /* of fc */
    const gdn_delta_config        d = gdn_model_delta(c);
    const size_t                  HD = (size_t)c->n_heads * c->head_dim, VD = (size_t)d.n_value_heads * d.value_dim;
    const size_t                  ffn = larger((size_t)gdn_padded(c->ffn_size), widest_expert(c));
    return larger(larger(HD, VD), larger(h, ffn));
}

static size_t widest_output(const gdn_model *model)
{
    const gdn_model_config *const c = &model->config;
    const gdn_delta_config        d = gdn_model_delta(c);
    const size_t                  HD = (size_t)c->n_heads * c->head_dim, C = (size_t)gdn_channels(&d);
    return larger(larger(larger(2 * HD, C), (size_t)c->n_experts), widest_input(model));
}

/* Space for n elements from *offset on, which moves behind it; NULL without a base: only the size is wanted. */
static void *space(unsigned char *base, size_t *offset, size_t n, size_t element)
{
    const size_t at = *offset;
    *offset += (n * element + GDN_ALIGN - 1) / GDN_ALIGN * GDN_ALIGN;
    return base ? base + at : NULL;
}

#define SPACE(field, n) ((field) = space(base, &offset, (n), sizeof *(field)))

static size_t place_moe(gdn_moe_space *m, const gdn_model_config *c, size_t R, unsigned char *base, size_t offset)
{
    const size_t h = (size_t)c->hidden_size, E = (size_t)c->n_experts, W = widest_expert(c);
    const size_t slots = R * (size_t)c->n_experts_used, all = slots + R;
    m->width = W;
    SPACE(m->chosen, slots);
    SPACE(m->weight, slots);
    SPACE(m->slot, slots);
    SPACE(m->row, slots);
    SPACE(m->first, E + 1);
    SPACE(m->in, slots * h);
    SPACE(m->act, all * W);
    SPACE(m->out, all * h);
    SPACE(m->products, E + 1);
    return offset;
}

/* Every array of w, from base on; returns their bytes. */
static size_t place(gdn_workspace *w, const gdn_model *model, unsigned char *base)
{
    const gdn_model_config *const c = &model->config;
    const size_t                  R = (size_t)w->max_rows, in = widest_input(model), wide = widest_output(model),
                 pairs = (size_t)c->rope_dims / 2;
    size_t offset = 0;
    SPACE(w->x, R * c->hidden_size);
    SPACE(w->u, 2 * R * gdn_input_stride(in));
    for (int i = 0; i < 4; i++) SPACE(w->p[i], R * gdn_output_stride(wide));
    SPACE(w->y, R * in);
    SPACE(w->cos, R * pairs);
    SPACE(w->sin, R * pairs);
    SPACE(w->lanes, R);
    return c->n_experts ? place_moe(&w->moe, c, R, base, offset) : offset;
}

size_t gdn_workspace_bytes(const gdn_workspace *w) { return w->n_bytes; }

gdn_status gdn_workspace_open(gdn_workspace **out, const gdn_model *m, gdn_compute *compute, int max_rows,
                              int max_positions, gdn_error *err)
{
    if (max_rows < 1 || max_positions < 1)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "workspace: rows and positions must be 1 or more");
    const int        n_pages = (max_positions + GDN_PAGE - 1) / GDN_PAGE;
    const gdn_status status =
        gdn_compute_reserve(compute, gdn_dense_scratch_bytes(max_rows, (int)widest_input(m), n_pages), err);
    if (status) return status;
    gdn_workspace *w = calloc(1, sizeof *w);
    if (!w) return gdn_fail(err, GDN_NO_MEMORY, 0, "workspace: no memory");
    w->max_rows = max_rows;
    w->max_positions = max_positions;
    w->n_bytes = place(w, m, NULL);
    w->block = gdn_alloc_aligned(w->n_bytes);
    if (!w->block) {
        gdn_workspace_close(w);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "workspace: no memory for %d rows; use fewer", max_rows);
    }
    place(w, m, w->block);
    *out = w;
    return GDN_OK;
}

void gdn_workspace_close(gdn_workspace *w)
{
    if (!w) return;
    free(w->block);
    free(w);
}
