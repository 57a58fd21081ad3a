#include "kernel/ref/lanes.h"

/* One query over positions first..n-1 of one page. */
static void block(const gdn_attention_job *j, const float *q, const void *keys, const void *values, int first, int n,
                  float *max, float *sum, float *acc)
{
    float e[GDN_PAGE], lane[GDN_LANES] = {0}, m = *max;
    for (int p = first; p < n; p++) {
        e[p] = gdn_dot(q, j->kv_type, keys, (size_t)p * j->kv_stride, j->dim) * j->scale;
        m = e[p] > m ? e[p] : m;
    }
    const float c = gdn_expf(*max - m); /* exp(-inf) is 0 */
    for (int p = first; p < n; p++) {
        e[p] = gdn_expf(e[p] - m);
        lane[p % GDN_LANES] += e[p];
    }
    *max = m;
    *sum = fmaf(*sum, c, gdn_fold_lanes(lane));
    for (int d = 0; d < j->dim; d++) {
        acc[d] = acc[d] * c;
        for (int p = first; p < n; p++)
            acc[d] = fmaf(e[p], gdn_load(j->kv_type, values, (size_t)p * j->kv_stride + d), acc[d]);
    }
}

void gdn_attention_ref(const gdn_attention_job *j)
{
    for (int t = 0; t < j->n_tokens; t++)
        for (int h = 0; h < j->n_heads; h++) {
            const float    *q = j->q + (size_t)t * j->q_stride + (size_t)h * j->q_head;
            float          *y = j->y + (size_t)t * j->y_stride + (size_t)h * j->y_head;
            float           max = -INFINITY, sum = 0.0f, acc[GDN_MAX_DIM] = {0};
            const long long end = j->first_position + t + 1;
            for (long long at = 0, i = 0; at < end; at += GDN_PAGE, i++)
                block(j, q, j->keys[i], j->values[i], i ? 0 : j->from, end - at < GDN_PAGE ? (int)(end - at) : GDN_PAGE,
                      &max, &sum, acc);
            for (int d = 0; d < j->dim; d++) y[d] = acc[d] / sum;
        }
}
