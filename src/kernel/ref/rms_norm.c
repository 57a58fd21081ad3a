#include "kernel/ref/lanes.h"

void gdn_rms_norm_ref(const gdn_rms_norm_job *j)
{
    for (int row = 0; row < j->n_rows; row++) {
        const size_t x = (size_t)row * j->x_stride, y = (size_t)row * j->y_stride;
        const float  r = 1.0f / sqrtf(gdn_sum_squares(GDN_F32, j->x, x, j->dim) / (float)j->dim + j->eps);
        for (int i = 0; i < j->dim; i++) gdn_store(j->y_type, j->y, y + i, (j->x[x + i] * r) * j->w[i]);
    }
}
