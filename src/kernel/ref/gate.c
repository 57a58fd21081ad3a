#include "kernel/kernel.h"
#include "kernel/math.h"

void gdn_gate_ref(const gdn_gate_job *j)
{
    for (size_t row = 0; row < (size_t)j->n_rows; row++)
        for (size_t i = 0; i < (size_t)j->n; i++) {
            const float a = j->a[row * j->a_stride + i], b = j->b[row * j->b_stride + i], s = gdn_sigmoidf(a);
            gdn_store(j->y_type, j->y, row * j->y_stride + i, j->swiglu ? (a * s) * b : b * s);
        }
}
