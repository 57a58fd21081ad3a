/* typed.h - arrays of a gdn_type, read and written one element at a time.  Written for the tests, apart from src/. */
#ifndef TESTS_SUPPORT_TYPED_H
#define TESTS_SUPPORT_TYPED_H
#include "gdn/delta.h"
#include <math.h>
#include <string.h>

static inline size_t typed_bytes(gdn_type type) { return type == GDN_BF16 ? 2 : 4; }

/* x rounded to `type`, to nearest and even, from double in one step. */
static inline double typed_round(gdn_type type, double x)
{
    if (x == 0.0 || isnan(x) || isinf(x)) return x;
    if (type == GDN_F32) return (double)(float)x;
    int exponent;
    frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    const double step = ldexp(1.0, exponent > -125 ? exponent - 8 : -133);
    const double y = nearbyint(x / step) * step;
    return fabs(y) >= 0x1p128 ? copysign(HUGE_VAL, y) : copysign(y, x);
}

static inline float typed_get(gdn_type type, const void *p, size_t i)
{
    if (type == GDN_F32) return ((const float *)p)[i];
    const uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
    float          x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline void typed_set(gdn_type type, void *p, size_t i, double x)
{
    const float y = (float)typed_round(type, x);
    uint32_t    u;
    memcpy(&u, &y, sizeof u);
    if (type == GDN_F32) ((float *)p)[i] = y;
    else ((uint16_t *)p)[i] = (uint16_t)(u >> 16);
}

#endif
