#include "kernel/ref/lanes.h"

void gdn_qk_norm_ref(const gdn_qk_norm_job *j)
{
    for (int row = 0; row < j->n_rows; row++) {
        const size_t x = (size_t)row * j->x_stride, y = (size_t)row * j->y_stride;
        const float  ss = gdn_sum_squares(j->x_type, j->x, x, j->dim);
        float        r;
        if (j->form == GDN_QK_NORM_SUM) {
            r = 1.0f / sqrtf(ss + j->eps);
        } else if (j->form == GDN_QK_NORM_MAX) {
            const float root = sqrtf(ss);
            r = 1.0f / (root > j->eps ? root : j->eps);
        } else {
            r = 1.0f / sqrtf(ss / (float)j->dim + j->eps);
        }
        for (int i = 0; i < j->dim; i++) {
            float n = gdn_load(j->x_type, j->x, x + i) * r;
            if (j->form == GDN_QK_NORM_RMS)
                n = gdn_round_to(j->x_type, gdn_round_to(j->x_type, n) * gdn_round_to(j->x_type, j->scale));
            else n = n * j->scale;
            gdn_store(j->y_type, j->y, y + i, n);
        }
    }
}
