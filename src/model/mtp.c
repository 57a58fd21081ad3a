/* The MTP layer: one more layer behind the model, between norms of its own, that drafts tokens. */
#include "model/forward.h"

/* x = fc * [norm(embedding); norm(hidden)]; x holds the embeddings. */
static void mix(const gdn_pass *f, const float *hidden)
{
    const gdn_mtp_weights *const t = &f->m->mtp;
    const int                    h = f->m->config.hidden_size;
    const size_t                 stride = gdn_input_stride(2 * (size_t)h);
    const gdn_rms_norm_job       of_embedding = {.n_rows = f->n_rows,
                                                 .dim = h,
                                                 .y_type = GDN_BF16,
                                                 .eps = (float)f->m->config.rms_eps,
                                                 .x = f->w->x,
                                                 .x_stride = (size_t)h,
                                                 .w = t->norm_embedding,
                                                 .y = f->w->u,
                                                 .y_stride = stride};
    gdn_rms_norm_job             of_hidden = of_embedding;
    of_hidden.x = hidden;
    of_hidden.w = t->norm_hidden;
    of_hidden.y = f->w->u + h;
    gdn_dense_rms_norm(f->compute, &of_embedding);
    gdn_dense_rms_norm(f->compute, &of_hidden);
    gdn_product product = {
        .linear = &t->fc, .n_rows = f->n_rows, .x = f->w->u, .x_stride = stride, .y = f->w->x, .y_stride = (size_t)h};
    gdn_dense_products(f->compute, &product, 1);
}

gdn_status gdn_mtp_forward(const gdn_model *m, gdn_compute *compute, gdn_workspace *workspace, gdn_kv *kv,
                           const gdn_forward_args *args, const int *positions, const float *hidden, gdn_error *err)
{
    gdn_pass f = {.m = m,
                  .compute = compute,
                  .w = workspace,
                  .kv = kv,
                  .a = args,
                  .positions = positions,
                  .from = 1,
                  .keys_only = !args->n_wanted && !args->hidden};
    if (!m->has_mtp)
        return gdn_fail(err, GDN_UNSUPPORTED, 0, "mtp: the model was loaded without an MTP part; draft another way");
    gdn_status status = gdn_pass_begin(&f, err);
    if (status || f.n_rows == 0) return status;
    mix(&f, hidden);
    status = gdn_pass_layer(&f, &m->mtp.layer, err);
    if (!status && !f.keys_only) gdn_pass_head(&f, m->mtp.norm);
    return status;
}
