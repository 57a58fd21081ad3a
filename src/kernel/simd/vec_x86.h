/* vec_x86.h - the words of simd/ for four floats, which AVX2 and AVX-512 share. */
#ifndef GDN_KERNEL_SIMD_VEC_X86_H
#define GDN_KERNEL_SIMD_VEC_X86_H
#include <immintrin.h>

typedef __m128     vec4;
static inline vec4 v4_load(const float *p) { return _mm_loadu_ps(p); }
static inline void v4_store(float *p, vec4 a) { _mm_storeu_ps(p, a); }
static inline vec4 v4_sub(vec4 a, vec4 b) { return _mm_sub_ps(a, b); }
static inline vec4 v4_scale(vec4 a, float s) { return _mm_mul_ps(a, _mm_set1_ps(s)); }

#endif
