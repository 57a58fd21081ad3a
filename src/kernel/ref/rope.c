#include "kernel/kernel.h"
#include "kernel/math.h"

void gdn_rope_ref(const gdn_rope_job *j)
{
    for (int h = 0; h < j->n_heads; h++) {
        float *low = j->x + (size_t)h * j->stride, *high = low + j->n_pairs;
        for (int i = 0; i < j->n_pairs; i++) {
            const float a = low[i], b = high[i];
            low[i] = fmaf(a, j->cos[i], -(b * j->sin[i]));
            high[i] = fmaf(b, j->cos[i], a * j->sin[i]);
        }
    }
}
