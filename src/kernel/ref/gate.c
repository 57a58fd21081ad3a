#include "kernel/kernel.h"
#include "kernel/math.h"

void gdn_gate_ref(const gdn_gate_job *j)
{
    for (int i = 0; i < j->n; i++) {
        const float s = gdn_sigmoidf(j->a[i]);
        gdn_store(j->y_type, j->y, i, j->swiglu ? (j->a[i] * s) * j->b[i] : j->b[i] * s);
    }
}
