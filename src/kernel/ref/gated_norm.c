#include "kernel/ref/lanes.h"

void gdn_gated_norm_ref(const gdn_gated_norm_job *j)
{
    for (int row = 0; row < j->n_rows; row++) {
        const size_t o = (size_t)row * j->o_stride, z = (size_t)row * j->z_stride, y = (size_t)row * j->y_stride;
        const float  r = 1.0f / sqrtf(gdn_sum_squares(j->type, j->o, o, j->dim) / (float)j->dim + j->eps);
        for (int i = 0; i < j->dim; i++) {
            const float zi = gdn_load(j->type, j->z, z + i), silu = zi * gdn_sigmoidf(zi);
            float       n = gdn_round_to(j->type, gdn_load(j->type, j->o, o + i) * r) * j->w[i];
            if (j->recipe == GDN_RECIPE_MLX) n = gdn_round_to(j->type, n);
            gdn_store(j->type, j->y, y + i, n * silu);
        }
    }
}
