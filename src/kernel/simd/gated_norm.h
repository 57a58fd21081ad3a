/* gated_norm.h - see gdn_gated_norm_fn. */
#ifndef GDN_KERNEL_SIMD_GATED_NORM_H
#define GDN_KERNEL_SIMD_GATED_NORM_H
#include "kernel/simd/vec.h"

VEC_INLINE void gated_norm_run(const gdn_gated_norm_job *j, gdn_type type)
{
    const size_t size = type == GDN_BF16 ? 2 : 4;
    for (int row = 0; row < j->n_rows; row++) {
        const size_t o = (size_t)row * j->o_stride, z = (size_t)row * j->z_stride, y = (size_t)row * j->y_stride;
        const vec    r = v_set1(1.0f / sqrtf(v_sum_squares(type, j->o, o, j->dim) / (float)j->dim + j->eps));
        const char  *next =
            (const char *)j->z + (z + 4 * j->z_stride) * size; /* heads apart: out of sight of the prefetcher */
        for (int i = 0; i < j->dim; i += VEC_WIDTH) {
            __builtin_prefetch(next + (size_t)i * size);
            const vec gate = v_load_as(type, j->z, z + i), silu = v_mul(gate, v_sigmoid(gate));
            vec       n = v_mul(v_round_to(type, v_mul(v_load_as(type, j->o, o + i), r)), v_load(j->w + i));
            if (j->recipe == GDN_RECIPE_MLX) n = v_round_to(type, n);
            v_store_as(type, j->y, y + i, v_mul(n, silu));
        }
    }
}

void VEC_NAME(gdn_gated_norm)(const gdn_gated_norm_job *j)
{
    if (j->type == GDN_BF16) gated_norm_run(j, GDN_BF16);
    else gated_norm_run(j, GDN_F32);
}

#endif
