#include "kernel/kernel.h"
#include "kernel/math.h"
#include <float.h>

/* A result that is denormal counts as zero of its sign. */
static float flush(float x) { return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x; }

/* a*b + c.  Denormal is what is below FLT_MIN once rounded to 24 bits: hardware looks before it shifts digits out.
 * fmaf shifts first, and so makes FLT_MIN out of what lies up to 2^-150 below it; there, and only there, the two
 * differ, and the same sum scaled up tells.  All its terms are then below 2^-101 (of more the sum would have more
 * than 24 bits), so none overflows. */
static float fma_flush(float a, float b, float c)
{
    const float x = fmaf(a, b, c), up = 0x1p64f;
    if (fabsf(x) != FLT_MIN) return flush(x);
    const float scaled = fabsf(a) < fabsf(b) ? fmaf(a * up, b, c * up) : fmaf(a, b * up, c * up);
    return fabsf(scaled) < FLT_MIN * up ? copysignf(0.0f, x) : x;
}

static float input(uint16_t h) { return flush(gdn_f32_of_bf16(h)); }

void gdn_matmul_ref(const gdn_matmul_job *j)
{
    for (int m = 0; m < j->n_rows; m++)
        for (int n = 0; n < j->n_outputs; n++) {
            const uint16_t *const x = j->x + (size_t)m * j->x_stride;
            const uint16_t *const w = j->w + (size_t)(n / GDN_PANEL) * GDN_PANEL * j->n_inputs + 2 * (n % GDN_PANEL);
            float                 c = 0.0f;
            for (int k0 = 0; k0 < j->n_inputs; k0 += GDN_RUN) {
                float even = 0.0f, odd = 0.0f;
                for (int k = k0; k < k0 + GDN_RUN; k += 2) {
                    const uint16_t *const pair = w + (size_t)k * GDN_PANEL;
                    even = fma_flush(input(x[k]), input(pair[0]), even);
                    odd = fma_flush(input(x[k + 1]), input(pair[1]), odd);
                }
                c = flush(c + flush(even + odd)); /* what sums of two lose is never in denormals */
            }
            j->y[(size_t)m * j->y_stride + n] = c;
        }
}
