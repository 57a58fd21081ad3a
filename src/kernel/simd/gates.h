/* gates.h - see gdn_gates_fn. */
#ifndef GDN_KERNEL_SIMD_GATES_H
#define GDN_KERNEL_SIMD_GATES_H
#include "kernel/simd/vec.h"

void VEC_NAME(gdn_gates)(const gdn_gates_job *j)
{
    for (int i = 0; i < j->n; i += VEC_WIDTH) {
        const int n = j->n - i < VEC_WIDTH ? j->n - i : VEC_WIDTH;
        const vec x = v_add(v_load_part(GDN_F32, j->a, (size_t)i, n), v_load_part(GDN_F32, j->dt_bias, (size_t)i, n));
        const vec b = v_load_part(GDN_F32, j->b, (size_t)i, n),
                  rate = v_exp(v_load_part(GDN_F32, j->A_log, (size_t)i, n));
        vec softplus, beta;
        if (j->recipe == GDN_RECIPE_MLX) {
            softplus = v_softplus_rounded(j->type, v_round_to(j->type, x));
            beta = v_sigmoid_rounded(j->type, b);
        } else {
            softplus = v_softplus(x);
            beta = v_sigmoid(b);
        }
        v_store_part(GDN_F32, j->g, (size_t)i, n, v_exp(v_neg(v_mul(rate, softplus))));
        v_store_part(GDN_F32, j->beta, (size_t)i, n, beta);
    }
}

#endif
