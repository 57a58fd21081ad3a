/* lanes.h - sums along a row in strided lanes, the order that kernel.h states for the norms. */
#ifndef GDN_KERNEL_REF_LANES_H
#define GDN_KERNEL_REF_LANES_H
#include "kernel/kernel.h"
#include "kernel/math.h"

static inline float gdn_fold_lanes(float lane[GDN_LANES])
{
    for (int half = GDN_LANES / 2; half >= 1; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

static inline float gdn_sum_squares(gdn_type type, const void *x, size_t at, int n)
{
    float lane[GDN_LANES] = {0};
    for (int i = 0; i < n; i++) {
        const float v = gdn_load(type, x, at + i);
        lane[i % GDN_LANES] = fmaf(v, v, lane[i % GDN_LANES]);
    }
    return gdn_fold_lanes(lane);
}

static inline float gdn_dot(const float *a, gdn_type type, const void *b, size_t at, int n)
{
    float lane[GDN_LANES] = {0};
    for (int i = 0; i < n; i++) lane[i % GDN_LANES] = fmaf(a[i], gdn_load(type, b, at + i), lane[i % GDN_LANES]);
    return gdn_fold_lanes(lane);
}

#endif
