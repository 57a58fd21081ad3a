#include "kernel/kernel.h"
#include "kernel/math.h"

void gdn_gates_ref(const gdn_gates_job *j)
{
    for (int i = 0; i < j->n; i++) {
        const float rate = gdn_expf(j->A_log[i]);
        if (j->recipe == GDN_RECIPE_MLX) {
            const float s = gdn_round_to(j->type, j->a[i] + j->dt_bias[i]);
            j->g[i] = gdn_expf(-(rate * gdn_softplus_rounded(j->type, s)));
            j->beta[i] = gdn_sigmoid_rounded(j->type, j->b[i]);
        } else {
            j->g[i] = gdn_expf(-(rate * gdn_softplusf(j->a[i] + j->dt_bias[i])));
            j->beta[i] = gdn_sigmoidf(j->b[i]);
        }
    }
}
