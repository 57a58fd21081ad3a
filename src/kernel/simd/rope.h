/* rope.h - see gdn_rope_fn. */
#ifndef GDN_KERNEL_SIMD_ROPE_H
#define GDN_KERNEL_SIMD_ROPE_H
#include "kernel/simd/vec.h"

void VEC_NAME(gdn_rope)(const gdn_rope_job *j)
{
    for (int h = 0; h < j->n_heads; h++) {
        float *low = j->x + (size_t)h * j->stride, *high = low + j->n_pairs;
        for (int i = 0; i < j->n_pairs; i += VEC_WIDTH) {
            const int n = j->n_pairs - i < VEC_WIDTH ? j->n_pairs - i : VEC_WIDTH;
            const vec a = v_load_part(GDN_F32, low, i, n), b = v_load_part(GDN_F32, high, i, n);
            const vec cos = v_load_part(GDN_F32, j->cos, i, n), sin = v_load_part(GDN_F32, j->sin, i, n);
            v_store_part(GDN_F32, low, i, n, v_fma(a, cos, v_neg(v_mul(b, sin))));
            v_store_part(GDN_F32, high, i, n, v_fma(b, cos, v_mul(a, sin)));
        }
    }
}

#endif
