/* math.h - the scalar arithmetic that kernels are defined by: bf16 rounding, exp, log1p and what is made of them.  Only
 * IEEE operations with one rounding each (fmaf, +, -, *, /), so every compiler and CPU gives the same bits. */
#ifndef GDN_KERNEL_MATH_H
#define GDN_KERNEL_MATH_H
#include "base/half.h"
#include "gdn/delta.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t gdn_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float gdn_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float gdn_round_to(gdn_type type, float x)
{
    return type == GDN_BF16 ? gdn_f32_of_bf16(gdn_bf16_of_f32(x)) : x;
}

/* Element i of an array of `type`. */
static inline float gdn_load(gdn_type type, const void *p, size_t i)
{
    return type == GDN_BF16 ? gdn_f32_of_bf16(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static inline void gdn_store(gdn_type type, void *p, size_t i, float x)
{
    if (type == GDN_BF16) ((uint16_t *)p)[i] = gdn_bf16_of_f32(x);
    else ((float *)p)[i] = x;
}

/* exp.  x is held to [-104, 88.72]: the result is finite, and 0 at the lower end.  n = round(x/ln 2) by adding 1.5*2^23,
 * r + r_low = x - n*ln 2, then 1 + r + r^2*P(r) (minimax on |r| <= ln2/2, the coefficients of Cephes) with what the sums round
 * off carried along, then two scalings by powers of two of which only the second can round (into a denormal).  Within 0.7 ulp,
 * 0.8 where the result is denormal (tests/kernel/check_math.c). */
#define GDN_EXP_LO (-104.0f)
#define GDN_EXP_HI 88.72283f
#define GDN_EXP_LOG2E 1.44269504f
#define GDN_EXP_MAGIC 12582912.0f
#define GDN_EXP_LN2_HI 0.693359375f
#define GDN_EXP_LN2_LO (-2.12194440e-4f)
#define GDN_EXP_C6 1.9875691500e-4f
#define GDN_EXP_C5 1.3981999507e-3f
#define GDN_EXP_C4 8.3334519073e-3f
#define GDN_EXP_C3 4.1665795894e-2f
#define GDN_EXP_C2 1.6666665459e-1f
#define GDN_EXP_C1 5.0000001201e-1f

static inline float gdn_expf(float x)
{
    x = GDN_EXP_LO > x ? GDN_EXP_LO : x;
    x = GDN_EXP_HI < x ? GDN_EXP_HI : x;
    const float t = fmaf(x, GDN_EXP_LOG2E, GDN_EXP_MAGIC), n = t - GDN_EXP_MAGIC;
    const int   e = (int)(gdn_bits(t) - gdn_bits(GDN_EXP_MAGIC)); /* n as an integer */
    const float r1 = fmaf(n, -GDN_EXP_LN2_HI, x), r = fmaf(n, -GDN_EXP_LN2_LO, r1),
                r_low = fmaf(n, -GDN_EXP_LN2_LO, r1 - r);
    float p = fmaf(GDN_EXP_C6, r, GDN_EXP_C5);
    p = fmaf(p, r, GDN_EXP_C4);
    p = fmaf(p, r, GDN_EXP_C3);
    p = fmaf(p, r, GDN_EXP_C2);
    p = fmaf(p, r, GDN_EXP_C1);
    const float h = 1.0f + r, h_low = r - (h - 1.0f);
    p = h + (fmaf(p, r * r, r_low) + h_low);
    const int e1 = e >> 1, e2 = e - e1;
    return p * gdn_from_bits((uint32_t)(e1 + 127) << 23) * gdn_from_bits((uint32_t)(e2 + 127) << 23);
}

/* log(u) for u in [1, 2]: f = u - 1, or u/2 - 1 with ln 2 added when u > sqrt 2; f - f^2/2 + f^3*P(f), as in Cephes. */
#define GDN_LOG_SQRT2 1.41421356f
#define GDN_LOG_C0 7.0376836292e-2f
#define GDN_LOG_C1 (-1.1514610310e-1f)
#define GDN_LOG_C2 1.1676998740e-1f
#define GDN_LOG_C3 (-1.2420140846e-1f)
#define GDN_LOG_C4 1.4249322787e-1f
#define GDN_LOG_C5 (-1.6668057665e-1f)
#define GDN_LOG_C6 2.0000714765e-1f
#define GDN_LOG_C7 (-2.4999993993e-1f)
#define GDN_LOG_C8 3.3333331174e-1f

static inline float gdn_logf_1_2(float u)
{
    const int   upper = u > GDN_LOG_SQRT2;
    const float f = (upper ? u * 0.5f : u) - 1.0f, z = f * f, k = upper ? 1.0f : 0.0f;
    float       p = fmaf(GDN_LOG_C0, f, GDN_LOG_C1);
    p = fmaf(p, f, GDN_LOG_C2);
    p = fmaf(p, f, GDN_LOG_C3);
    p = fmaf(p, f, GDN_LOG_C4);
    p = fmaf(p, f, GDN_LOG_C5);
    p = fmaf(p, f, GDN_LOG_C6);
    p = fmaf(p, f, GDN_LOG_C7);
    p = fmaf(p, f, GDN_LOG_C8);
    p = p * f * z;
    p = fmaf(k, GDN_EXP_LN2_LO, p);
    p = fmaf(z, -0.5f, p);
    return fmaf(k, GDN_EXP_LN2_HI, f + p);
}

/* log(1 + e) for e in [0, 1]: e * log(u)/(u - 1) with u = 1 + e, which cancels the rounding of u; e itself when u is 1. */
static inline float gdn_log1pf_unit(float e)
{
    const float u = 1.0f + e;
    return u == 1.0f ? e : e * (gdn_logf_1_2(u) / (u - 1.0f));
}

static inline float gdn_sigmoidf(float x)
{
    const float e = gdn_expf(-fabsf(x)), r = 1.0f / (1.0f + e);
    return x < 0.0f ? e * r : r;
}

/* max(x, 0) + log(1 + exp(-|x|)) */
static inline float gdn_softplusf(float x)
{
    const float hi = x > 0.0f ? x : 0.0f;
    return hi + gdn_log1pf_unit(gdn_expf(-fabsf(x)));
}

/* mlx's sigmoid and softplus, every step rounded to `type`. */
static inline float gdn_sigmoid_rounded(gdn_type type, float x)
{
    const float e = gdn_round_to(type, gdn_expf(fabsf(x)));
    const float d = gdn_round_to(type, 1.0f + e);
    const float s = gdn_round_to(type, 1.0f / d);
    return x < 0.0f ? s : gdn_round_to(type, 1.0f - s);
}

static inline float gdn_softplus_rounded(gdn_type type, float x)
{
    const float hi = x > 0.0f ? x : 0.0f, lo = x < 0.0f ? x : 0.0f;
    const float e = gdn_round_to(type, gdn_expf(gdn_round_to(type, lo - hi)));
    const float l = gdn_round_to(type, gdn_log1pf_unit(e));
    return gdn_round_to(type, hi + l);
}

#endif
