/* rms_norm.h - see gdn_rms_norm_fn. */
#ifndef GDN_KERNEL_SIMD_RMS_NORM_H
#define GDN_KERNEL_SIMD_RMS_NORM_H
#include "kernel/simd/vec.h"

VEC_INLINE void rms_norm_run(const gdn_rms_norm_job *j, gdn_type y_type)
{
    for (int row = 0; row < j->n_rows; row++) {
        const size_t x = (size_t)row * j->x_stride, y = (size_t)row * j->y_stride;
        const vec    r = v_set1(1.0f / sqrtf(v_sum_squares(GDN_F32, j->x, x, j->dim) / (float)j->dim + j->eps));
        for (int i = 0; i < j->dim; i += VEC_WIDTH)
            v_store_as(y_type, j->y, y + i, v_mul(v_mul(v_load(j->x + x + i), r), v_load(j->w + i)));
    }
}

void VEC_NAME(gdn_rms_norm)(const gdn_rms_norm_job *j)
{
    if (j->y_type == GDN_BF16) rms_norm_run(j, GDN_BF16);
    else rms_norm_run(j, GDN_F32);
}

#endif
