/* vec_avx2.h - the vector words of simd/, 8 floats wide.  The meaning of each word stands in simd/vec.h. */
#ifndef GDN_KERNEL_SIMD_VEC_AVX2_H
#define GDN_KERNEL_SIMD_VEC_AVX2_H
#include "kernel/simd/vec_x86.h"
#include <stdint.h>

#define VEC_NAME(name) name##_avx2
enum { VEC_WIDTH = 8, VEC_ROWS = 2 };
typedef __m256 vec;

static inline vec  v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vec a) { _mm256_storeu_ps(p, a); }
static inline vec  v_set1(float a) { return _mm256_set1_ps(a); }
static inline vec  v_add(vec a, vec b) { return _mm256_add_ps(a, b); }
static inline vec  v_sub(vec a, vec b) { return _mm256_sub_ps(a, b); }
static inline vec  v_mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
static inline vec  v_div(vec a, vec b) { return _mm256_div_ps(a, b); }
static inline vec  v_fma(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
static inline vec  v_max(vec a, vec b) { return _mm256_max_ps(a, b); }
static inline vec  v_min(vec a, vec b) { return _mm256_min_ps(a, b); }
static inline vec  v_abs(vec a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline vec  v_neg(vec a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
static inline vec  v_if_less(vec x, vec y, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}
static inline vec v_if_equal(vec x, vec y, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_EQ_OQ));
}

static inline __m256 two_to(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
static inline vec v_scale(vec a, vec n) /* by two powers, which a float has each; only the second product can round */
{
    const __m256i e = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(e, 1);
    return v_mul(v_mul(a, two_to(half)), two_to(_mm256_sub_epi32(e, half)));
}

static inline vec v_load_bf16(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

static inline __m256i v_bf16_bits(vec a) /* in the upper halves; the lower halves hold rubbish */
{
    const __m256i u = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}

static inline vec v_round_bf16(vec a)
{
    return _mm256_castsi256_ps(_mm256_and_si256(v_bf16_bits(a), _mm256_set1_epi32((int)0xffff0000u)));
}

static inline void v_store_bf16(uint16_t *p, vec a)
{
    const __m256i u = _mm256_srli_epi32(v_bf16_bits(a), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(u, u), 0x08);
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(packed));
}

/* a[P] + a[P+4], then +2, +1. */
static inline float v_fold(vec a)
{
    const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}

static inline __m128 v_fold4(vec a, vec b, vec c, vec d)
{
    const vec ac = v_add(_mm256_permute2f128_ps(a, c, 0x20), _mm256_permute2f128_ps(a, c, 0x31));
    const vec bd = v_add(_mm256_permute2f128_ps(b, d, 0x20), _mm256_permute2f128_ps(b, d, 0x31));
    vec       x = v_add(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xEE)); /* a a b b | c c d d */
    x = v_add(x, _mm256_permute_ps(x, 0xB1));
    return _mm_shuffle_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1), 0x88);
}

static inline void v_transpose4(vec r[4])
{
    const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1])),
                  b = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
    const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3])),
                  d = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
    r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
}

/* Quads of a row of 128: vector u = 2*parity + (bit 1 of the lane), quads [bit 3]; s = 2*(bit 2) + (bit 4). */
static inline void v_load_quads(vec out[4][4], const float *row)
{
    for (int u = 0; u < 4; u++)
        for (int s = 0; s < 4; s++) {
            const float *p = row + 16 * (s >> 1) + 64 * (s & 1) + 4 * (u >> 1) + 8 * (u & 1);
            out[u][s] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 32), 1);
        }
}

static inline void v_store_quads(float *row, vec in[4][4])
{
    for (int u = 0; u < 4; u++)
        for (int s = 0; s < 4; s++) {
            float *p = row + 16 * (s >> 1) + 64 * (s & 1) + 4 * (u >> 1) + 8 * (u & 1);
            _mm_storeu_ps(p, _mm256_castps256_ps128(in[u][s]));
            _mm_storeu_ps(p + 32, _mm256_extractf128_ps(in[u][s], 1));
        }
}
#endif
