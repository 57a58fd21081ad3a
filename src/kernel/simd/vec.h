/* vec.h - the words that the fast kernels are written in, and the arithmetic of math.h in them.
 *
 * A file of x86/ or arm/ includes one vec_<isa>.h, then this, then the kernels.  Each vec_<isa>.h defines
 *   VEC_NAME(gdn_x)  gdn_x_<isa>            VEC_WIDTH  floats in a vec: 4, 8 or 16     VEC_ROWS  state rows that fit registers
 *   v_max(a, b)      a > b ? a : b          v_min(a, b)  a < b ? a : b     (a NaN in b comes through, as in math.h)
 *   v_if_less(x, y, a, b)  x < y ? a : b    v_if_equal(x, y, a, b)
 *   v_fma(a, b, c)   a*b + c, one rounding  v_scale(a, n)  a * 2^n for whole n from -152 to 128 and a near 1, one rounding
 *   v_fold(a)        a[p] += a[p + half] for half = WIDTH/2 ... 1, then a[0];  v_fold4: that of four vecs
 *   v_transpose4     4x4 transposes inside each quad of 4 floats
 *   v_load_quads, v_store_quads   a row of 128 to and from the quads of its lanes: see delta.h */
#ifndef GDN_KERNEL_SIMD_VEC_H
#define GDN_KERNEL_SIMD_VEC_H
#include "kernel/kernel.h"
#include "kernel/math.h"

#ifdef GDN_SANITIZED /* instrumented and inlined, the recurrence takes compilers minutes */
#define VEC_INLINE static inline
#else
#define VEC_INLINE static inline __attribute__((always_inline))
#endif
#if defined(__clang__)
#define VEC_UNROLL /* clang unrolls by itself, and warns where a pragma asks for what it cannot do */
#else
#define VEC_UNROLL _Pragma("GCC unroll 8")
#endif

VEC_INLINE vec v_load_as(gdn_type type, const void *p, size_t i)
{
    return type == GDN_BF16 ? v_load_bf16((const uint16_t *)p + i) : v_load((const float *)p + i);
}

VEC_INLINE void v_store_as(gdn_type type, void *p, size_t i, vec a)
{
    if (type == GDN_BF16) v_store_bf16((uint16_t *)p + i, a);
    else v_store((float *)p + i, a);
}

/* The first n elements, 1 <= n <= VEC_WIDTH, touching no more; the rest of the vec is 0. */
VEC_INLINE vec v_load_part(gdn_type type, const void *p, size_t i, int n)
{
    if (n == VEC_WIDTH) return v_load_as(type, p, i);
    float t[VEC_WIDTH] = {0};
    for (int k = 0; k < n; k++) t[k] = gdn_load(type, p, i + k);
    return v_load(t);
}

VEC_INLINE void v_store_part(gdn_type type, void *p, size_t i, int n, vec a)
{
    if (n == VEC_WIDTH) {
        v_store_as(type, p, i, a);
        return;
    }
    float t[VEC_WIDTH];
    v_store(t, a);
    for (int k = 0; k < n; k++) gdn_store(type, p, i + k, t[k]);
}

VEC_INLINE vec v_round_to(gdn_type type, vec a) { return type == GDN_BF16 ? v_round_bf16(a) : a; }

VEC_INLINE vec v_exp(vec x)
{
    x = v_max(v_set1(GDN_EXP_LO), x);
    x = v_min(v_set1(GDN_EXP_HI), x);
    const vec magic = v_set1(GDN_EXP_MAGIC), t = v_fma(x, v_set1(GDN_EXP_LOG2E), magic), n = v_sub(t, magic);
    const vec r1 = v_fma(n, v_set1(-GDN_EXP_LN2_HI), x), low = v_set1(-GDN_EXP_LN2_LO), r = v_fma(n, low, r1);
    const vec r_low = v_fma(n, low, v_sub(r1, r)), one = v_set1(1.0f);
    vec       p = v_fma(v_set1(GDN_EXP_C6), r, v_set1(GDN_EXP_C5));
    p = v_fma(p, r, v_set1(GDN_EXP_C4));
    p = v_fma(p, r, v_set1(GDN_EXP_C3));
    p = v_fma(p, r, v_set1(GDN_EXP_C2));
    p = v_fma(p, r, v_set1(GDN_EXP_C1));
    const vec h = v_add(one, r), h_low = v_sub(r, v_sub(h, one));
    return v_scale(v_add(h, v_add(v_fma(p, v_mul(r, r), r_low), h_low)), n);
}

VEC_INLINE vec v_log_1_2(vec u)
{
    const vec half = v_mul(u, v_set1(0.5f)), split = v_set1(GDN_LOG_SQRT2), one = v_set1(1.0f);
    const vec f = v_sub(v_if_less(split, u, half, u), one), z = v_mul(f, f), k = v_if_less(split, u, one, v_set1(0.0f));
    vec       p = v_fma(v_set1(GDN_LOG_C0), f, v_set1(GDN_LOG_C1));
    p = v_fma(p, f, v_set1(GDN_LOG_C2));
    p = v_fma(p, f, v_set1(GDN_LOG_C3));
    p = v_fma(p, f, v_set1(GDN_LOG_C4));
    p = v_fma(p, f, v_set1(GDN_LOG_C5));
    p = v_fma(p, f, v_set1(GDN_LOG_C6));
    p = v_fma(p, f, v_set1(GDN_LOG_C7));
    p = v_fma(p, f, v_set1(GDN_LOG_C8));
    p = v_mul(v_mul(p, f), z);
    p = v_fma(k, v_set1(GDN_EXP_LN2_LO), p);
    p = v_fma(z, v_set1(-0.5f), p);
    return v_fma(k, v_set1(GDN_EXP_LN2_HI), v_add(f, p));
}

VEC_INLINE vec v_log1p_unit(vec e)
{
    const vec one = v_set1(1.0f), u = v_add(one, e);
    return v_if_equal(u, one, e, v_mul(e, v_div(v_log_1_2(u), v_sub(u, one))));
}

VEC_INLINE vec v_sigmoid(vec x)
{
    const vec one = v_set1(1.0f), e = v_exp(v_neg(v_abs(x))), r = v_div(one, v_add(one, e));
    return v_if_less(x, v_set1(0.0f), v_mul(e, r), r);
}

VEC_INLINE vec v_softplus(vec x) { return v_add(v_max(x, v_set1(0.0f)), v_log1p_unit(v_exp(v_neg(v_abs(x))))); }

VEC_INLINE vec v_sigmoid_rounded(gdn_type type, vec x)
{
    const vec one = v_set1(1.0f), e = v_round_to(type, v_exp(v_abs(x)));
    const vec d = v_round_to(type, v_add(one, e)), s = v_round_to(type, v_div(one, d));
    return v_if_less(x, v_set1(0.0f), s, v_round_to(type, v_sub(one, s)));
}

VEC_INLINE vec v_softplus_rounded(gdn_type type, vec x)
{
    const vec zero = v_set1(0.0f), hi = v_max(x, zero), lo = v_min(x, zero);
    const vec e = v_round_to(type, v_exp(v_round_to(type, v_sub(lo, hi))));
    return v_round_to(type, v_add(hi, v_round_to(type, v_log1p_unit(e))));
}

/* Sum of squares of a row in the order of the norms: lane i%32, then 32->16->...->1. */
VEC_INLINE float v_sum_squares(gdn_type type, const void *x, size_t at, int n)
{
    enum { N = GDN_LANES / VEC_WIDTH };
    vec lane[N];
    VEC_UNROLL
    for (int b = 0; b < N; b++) lane[b] = v_set1(0.0f);
    for (int i = 0; i < n; i += GDN_LANES) {
        VEC_UNROLL
        for (int b = 0; b < N; b++) {
            const vec v = v_load_as(type, x, at + i + b * VEC_WIDTH);
            lane[b] = v_fma(v, v, lane[b]);
        }
    }
    for (int half = N / 2; half >= 1; half /= 2)
        for (int b = 0; b < half; b++) lane[b] = v_add(lane[b], lane[b + half]);
    return v_fold(lane[0]);
}

#endif
