/* cli/limit_text.h - the in-place scale and the reading of memory, written once for every vector width.  The includer defines
 * WIDTH (floats in a vector), LEVEL (the name of the table of scales) and READ (of readers). */
#include "cli/limits.h"
#include <stdint.h>

typedef float vec __attribute__((vector_size(4 * WIDTH)));

/* `streams` parts of x are walked side by side, so that several hardware prefetchers run; `ahead` floats in front of each a
 * software prefetch for writing, 0 for none. */
static inline __attribute__((always_inline)) void scale(float *x, size_t n, float s, int streams, int ahead)
{
    enum { LINE = 16, STEP = 4 * LINE };
    size_t part = n / (size_t)streams;
    for (size_t i = 0; i < part; i += STEP) {
#pragma GCC unroll 8
        for (int j = 0; j < streams; j++) {
            float *p = x + (size_t)j * part + i;
            if (ahead) {
#pragma GCC unroll 4
                for (int u = 0; u < STEP; u += LINE) __builtin_prefetch(p + u + ahead, 1, 3);
            }
#pragma GCC unroll 16
            for (int u = 0; u < STEP; u += WIDTH) *(vec *)(void *)(p + u) *= s;
        }
    }
}

static void scale_1(float *x, size_t n, float s) { scale(x, n, s, 1, 0); }
static void scale_2(float *x, size_t n, float s) { scale(x, n, s, 2, 0); }
static void scale_4(float *x, size_t n, float s) { scale(x, n, s, 4, 0); }
static void scale_1_near(float *x, size_t n, float s) { scale(x, n, s, 1, 256); }
static void scale_1_far(float *x, size_t n, float s) { scale(x, n, s, 1, 1024); }
static void scale_2_far(float *x, size_t n, float s) { scale(x, n, s, 2, 1024); }

gdn_scale_fn *const LEVEL[GDN_SCALE_WAYS] = {scale_1, scale_2, scale_4, scale_1_near, scale_1_far, scale_2_far};

typedef int32_t bits __attribute__((vector_size(4 * WIDTH)));

/* Streams and prefetches as above; what was read goes into a sum that nobody can leave out. */
static inline __attribute__((always_inline)) void fetch(const float *x, size_t n, int streams, int ahead)
{
    enum { LINE = 16, STEP = 4 * LINE };
    bits   a = {0}, b = a;
    size_t part = n / (size_t)streams;
    for (size_t i = 0; i < part; i += STEP) {
#pragma GCC unroll 8
        for (int j = 0; j < streams; j++) {
            const float *p = x + (size_t)j * part + i;
            if (ahead) {
#pragma GCC unroll 4
                for (int u = 0; u < STEP; u += LINE) __builtin_prefetch(p + u + ahead, 0, 3);
            }
#pragma GCC unroll 16
            for (int u = 0; u < STEP; u += 2 * WIDTH) {
                a ^= *(const bits *)(const void *)(p + u);
                b ^= *(const bits *)(const void *)(p + u + WIDTH);
            }
        }
    }
    a ^= b;
    __asm__ volatile("" : : "m"(a));
}

static void fetch_1(const float *x, size_t n) { fetch(x, n, 1, 0); }
static void fetch_2(const float *x, size_t n) { fetch(x, n, 2, 0); }
static void fetch_4(const float *x, size_t n) { fetch(x, n, 4, 0); }
static void fetch_1_near(const float *x, size_t n) { fetch(x, n, 1, 256); }
static void fetch_1_far(const float *x, size_t n) { fetch(x, n, 1, 1024); }
static void fetch_2_far(const float *x, size_t n) { fetch(x, n, 2, 1024); }

gdn_read_fn *const READ[GDN_READ_WAYS] = {fetch_1, fetch_2, fetch_4, fetch_1_near, fetch_1_far, fetch_2_far};
