/* gate.h - see gdn_gate_fn. */
#ifndef GDN_KERNEL_SIMD_GATE_H
#define GDN_KERNEL_SIMD_GATE_H
#include "kernel/simd/vec.h"

VEC_INLINE void gate_run(const gdn_gate_job *j, gdn_type y_type, int swiglu)
{
    for (size_t row = 0; row < (size_t)j->n_rows; row++) {
        const float *const pa = j->a + row * j->a_stride, *const pb = j->b + row * j->b_stride;
        for (int i = 0; i < j->n; i += VEC_WIDTH) {
            const int n = j->n - i < VEC_WIDTH ? j->n - i : VEC_WIDTH;
            const vec a = v_load_part(GDN_F32, pa, i, n), b = v_load_part(GDN_F32, pb, i, n), s = v_sigmoid(a);
            v_store_part(y_type, j->y, row * j->y_stride + i, n, swiglu ? v_mul(v_mul(a, s), b) : v_mul(b, s));
        }
    }
}

void VEC_NAME(gdn_gate)(const gdn_gate_job *j)
{
    if (j->y_type == GDN_BF16) gate_run(j, GDN_BF16, j->swiglu);
    else gate_run(j, GDN_F32, j->swiglu);
}

#endif
