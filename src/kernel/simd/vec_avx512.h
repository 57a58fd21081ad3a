/* vec_avx512.h - the vector words of simd/, 16 floats wide.  The meaning of each word stands in simd/vec.h. */
#ifndef GDN_KERNEL_SIMD_VEC_AVX512_H
#define GDN_KERNEL_SIMD_VEC_AVX512_H
#include "kernel/simd/vec_x86.h"
#include <stdint.h>

#define VEC_NAME(name) name##_avx512
enum { VEC_WIDTH = 16, VEC_ROWS = 4 };
typedef __m512 vec;

static inline vec  v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, vec a) { _mm512_storeu_ps(p, a); }
static inline vec  v_set1(float a) { return _mm512_set1_ps(a); }
static inline vec  v_add(vec a, vec b) { return _mm512_add_ps(a, b); }
static inline vec  v_sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
static inline vec  v_mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
static inline vec  v_div(vec a, vec b) { return _mm512_div_ps(a, b); }
static inline vec  v_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
static inline vec  v_max(vec a, vec b) { return _mm512_max_ps(a, b); }
static inline vec  v_min(vec a, vec b) { return _mm512_min_ps(a, b); }
static inline vec  v_abs(vec a) { return _mm512_abs_ps(a); }
static inline vec  v_neg(vec a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
static inline vec  v_if_less(vec x, vec y, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), b, a);
}
static inline vec v_if_equal(vec x, vec y, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ), b, a);
}

static inline vec v_scale(vec a, vec n) { return _mm512_scalef_ps(a, n); }

static inline vec v_load_bf16(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

static inline __m512i v_bf16_bits(vec a) /* in the upper halves; the lower halves hold rubbish */
{
    const __m512i   u = _mm512_castps_si512(a), one = _mm512_set1_epi32(1);
    const __m512i   odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
    const __m512i   rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
}

static inline vec v_round_bf16(vec a)
{
    return _mm512_castsi512_ps(_mm512_and_si512(v_bf16_bits(a), _mm512_set1_epi32((int)0xffff0000u)));
}

static inline void v_store_bf16(uint16_t *p, vec a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(_mm512_srli_epi32(v_bf16_bits(a), 16)));
}

/* a[P] + a[P+8], then +4, +2, +1. */
static inline float v_fold(vec a)
{
    const __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

static inline __m128 v_fold4(vec a, vec b, vec c, vec d)
{
    const vec ab = v_add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    const vec cd = v_add(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    vec       x = v_add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    x = v_add(x, _mm512_permute_ps(x, 0x4E));
    x = v_add(x, _mm512_permute_ps(x, 0xB1));
    return _mm512_castps512_ps128(
        _mm512_permutexvar_ps(_mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0), x));
}

static inline void v_transpose4(vec r[4])
{
    const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1])),
                  b = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
    const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3])),
                  d = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
    r[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    r[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    r[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    r[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
}

/* Quads of a row of 128: vector u = parity, quads [bit 1][bit 3] of the lane; s = 2*(bit 2) + (bit 4). */
static inline void v_load_quads(vec out[2][4], const float *row)
{
    const __m512i even = _mm512_set_epi32(27, 26, 25, 24, 11, 10, 9, 8, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(4));
    for (int s = 0; s < 4; s++) {
        const float *p = row + 16 * (s >> 1) + 64 * (s & 1);
        const vec    a = _mm512_loadu_ps(p), b = _mm512_loadu_ps(p + 32);
        out[0][s] = _mm512_permutex2var_ps(a, even, b);
        out[1][s] = _mm512_permutex2var_ps(a, odd, b);
    }
}

static inline void v_store_quads(float *row, vec in[2][4])
{
    const __m512i low = _mm512_set_epi32(27, 26, 25, 24, 11, 10, 9, 8, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
    for (int s = 0; s < 4; s++) {
        float *p = row + 16 * (s >> 1) + 64 * (s & 1);
        _mm512_storeu_ps(p, _mm512_permutex2var_ps(in[0][s], low, in[1][s]));
        _mm512_storeu_ps(p + 32, _mm512_permutex2var_ps(in[0][s], high, in[1][s]));
    }
}
#endif
