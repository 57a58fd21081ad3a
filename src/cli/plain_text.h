/* cli/plain_text.h - the recurrence as one would first write it in C, for comparison.  plain_base.c, plain_avx2.c,
 * plain_avx512.c and plain_neon.c include it and define PLAIN_NAME; a file's name gives its instruction set, the lines below
 * what -O3 -ffast-math gives. */
#if !defined(__clang__)
#pragma GCC optimize("O3", "fast-math", "fp-contract=fast")
#endif
#include "cli/limits.h"

void PLAIN_NAME(const gdn_plain_job *job)
{
#if defined(__clang__)
#pragma clang fp reassociate(on) contract(fast)
#endif
    int Dk = job->key_dim, Dv = job->value_dim, Hk = job->n_key_heads, Hv = job->n_value_heads;
    for (int h = 0; h < Hv; h++) {
        float *state = job->state + (size_t)h * Dv * Dk;
        for (int t = 0; t < job->n_tokens; t++) {
            const float *restrict q = job->q + ((size_t)t * Hk + h / (Hv / Hk)) * Dk;
            const float *restrict k = job->k + ((size_t)t * Hk + h / (Hv / Hk)) * Dk;
            float g = job->g[(size_t)t * Hv + h], beta = job->beta[(size_t)t * Hv + h];
            for (int i = 0; i < Dv; i++) {
                float *restrict row = state + (size_t)i * Dk;
                float predicted = 0, out = 0;
                for (int j = 0; j < Dk; j++) {
                    row[j] *= g;
                    predicted += row[j] * k[j];
                }
                float d = (job->v[((size_t)t * Hv + h) * Dv + i] - predicted) * beta;
                for (int j = 0; j < Dk; j++) {
                    row[j] += k[j] * d;
                    out += row[j] * q[j];
                }
                job->y[((size_t)t * Hv + h) * Dv + i] = out;
            }
        }
    }
}
