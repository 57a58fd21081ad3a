/* vec_neon.h - the vector words of simd/, 4 floats wide.  The meaning of each word stands in simd/vec.h. */
#ifndef GDN_KERNEL_SIMD_VEC_NEON_H
#define GDN_KERNEL_SIMD_VEC_NEON_H
#include <arm_neon.h>

#define VEC_NAME(name) name##_neon
enum { VEC_WIDTH = 4, VEC_ROWS = 4 };
typedef float32x4_t vec;

static inline vec  v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, vec a) { vst1q_f32(p, a); }
static inline vec  v_set1(float a) { return vdupq_n_f32(a); }
static inline vec  v_add(vec a, vec b) { return vaddq_f32(a, b); }
static inline vec  v_sub(vec a, vec b) { return vsubq_f32(a, b); }
static inline vec  v_mul(vec a, vec b) { return vmulq_f32(a, b); }
static inline vec  v_div(vec a, vec b) { return vdivq_f32(a, b); }
static inline vec  v_fma(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
static inline vec  v_max(vec a, vec b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline vec  v_min(vec a, vec b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vec  v_abs(vec a) { return vabsq_f32(a); }
static inline vec  v_neg(vec a) { return vnegq_f32(a); }
static inline vec  v_if_less(vec x, vec y, vec a, vec b) { return vbslq_f32(vcltq_f32(x, y), a, b); }
static inline vec  v_if_equal(vec x, vec y, vec a, vec b) { return vbslq_f32(vceqq_f32(x, y), a, b); }

static inline float32x4_t two_to(int32x4_t n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
static inline vec v_scale(vec a, vec n) /* by two powers, which a float has each; only the second product can round */
{
    const int32x4_t e = vcvtq_s32_f32(n), half = vshrq_n_s32(e, 1);
    return v_mul(v_mul(a, two_to(half)), two_to(vsubq_s32(e, half)));
}

static inline vec v_load_bf16(const uint16_t *p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }

static inline uint32x4_t v_bf16_bits(vec a) /* in the upper halves; the lower halves hold rubbish */
{
    const uint32x4_t u = vreinterpretq_u32_f32(a);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(vaddq_u32(u, vdupq_n_u32(0x7fff)), odd);
    return vbslq_u32(vceqq_f32(a, a), rounded, vorrq_u32(u, vdupq_n_u32(0x400000)));
}

static inline vec v_round_bf16(vec a)
{
    return vreinterpretq_f32_u32(vandq_u32(v_bf16_bits(a), vdupq_n_u32(0xffff0000u)));
}

static inline void v_store_bf16(uint16_t *p, vec a) { vst1_u16(p, vshrn_n_u32(v_bf16_bits(a), 16)); }

/* a[P] + a[P+2], then +1. */
static inline float v_fold(vec a)
{
    const float32x2_t s = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(s, 0) + vget_lane_f32(s, 1);
}

static inline vec v_fold4(vec a, vec b, vec c, vec d)
{
    const vec ab =
        vaddq_f32(vcombine_f32(vget_low_f32(a), vget_low_f32(b)), vcombine_f32(vget_high_f32(a), vget_high_f32(b)));
    const vec cd =
        vaddq_f32(vcombine_f32(vget_low_f32(c), vget_low_f32(d)), vcombine_f32(vget_high_f32(c), vget_high_f32(d)));
    return vpaddq_f32(ab, cd);
}

typedef vec        vec4;
static inline vec4 v4_load(const float *p) { return vld1q_f32(p); }
static inline void v4_store(float *p, vec4 a) { vst1q_f32(p, a); }
static inline vec4 v4_sub(vec4 a, vec4 b) { return vsubq_f32(a, b); }
static inline vec4 v4_scale(vec4 a, float s) { return vmulq_n_f32(a, s); }

static inline void v_transpose4(vec r[4])
{
    const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

/* Quads of a row of 128: vector u = 4*parity + 2*(bit 1 of the lane) + (bit 3); s = 2*(bit 2) + (bit 4). */
static inline int v_quad(int u, int s)
{
    return 16 * (s >> 1) + 64 * (s & 1) + 4 * (u >> 2) + 8 * (u >> 1 & 1) + 32 * (u & 1);
}

static inline void v_load_quads(vec out[8][4], const float *row)
{
    for (int u = 0; u < 8; u++)
        for (int s = 0; s < 4; s++) out[u][s] = vld1q_f32(row + v_quad(u, s));
}

static inline void v_store_quads(float *row, vec in[8][4])
{
    for (int u = 0; u < 8; u++)
        for (int s = 0; s < 4; s++) vst1q_f32(row + v_quad(u, s), in[u][s]);
}
#endif
