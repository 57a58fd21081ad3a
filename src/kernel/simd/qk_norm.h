/* qk_norm.h - see gdn_qk_norm_fn. */
#ifndef GDN_KERNEL_SIMD_QK_NORM_H
#define GDN_KERNEL_SIMD_QK_NORM_H
#include "kernel/simd/vec.h"

VEC_INLINE float qk_norm_factor(const gdn_qk_norm_job *j, float ss)
{
    if (j->form == GDN_QK_NORM_RMS) return 1.0f / sqrtf(ss / (float)j->dim + j->eps);
    if (j->form == GDN_QK_NORM_SUM) return 1.0f / sqrtf(ss + j->eps);
    const float root = sqrtf(ss);
    return 1.0f / (root > j->eps ? root : j->eps);
}

VEC_INLINE void qk_norm_run(const gdn_qk_norm_job *j, gdn_type x_type, gdn_type y_type, gdn_qk_norm_form form)
{
    const vec scale = v_set1(form == GDN_QK_NORM_RMS ? gdn_round_to(x_type, j->scale) : j->scale);
    for (int row = 0; row < j->n_rows; row++) {
        const size_t x = (size_t)row * j->x_stride, y = (size_t)row * j->y_stride;
        const vec    r = v_set1(qk_norm_factor(j, v_sum_squares(x_type, j->x, x, j->dim)));
        for (int i = 0; i < j->dim; i += VEC_WIDTH) {
            vec n = v_mul(v_load_as(x_type, j->x, x + i), r);
            if (form == GDN_QK_NORM_RMS) n = v_round_to(x_type, v_mul(v_round_to(x_type, n), scale));
            else n = v_mul(n, scale);
            v_store_as(y_type, j->y, y + i, n);
        }
    }
}

void VEC_NAME(gdn_qk_norm)(const gdn_qk_norm_job *j)
{
    if (j->form == GDN_QK_NORM_RMS) qk_norm_run(j, j->x_type, j->y_type, GDN_QK_NORM_RMS);
    else if (j->x_type == GDN_BF16) qk_norm_run(j, GDN_BF16, j->y_type, GDN_QK_NORM_SUM);
    else qk_norm_run(j, GDN_F32, j->y_type, GDN_QK_NORM_SUM);
}

#endif
