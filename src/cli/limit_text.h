/* cli/limit_text.h - the in-place scale, written once for every vector width.  The includer defines WIDTH (floats in a
 * vector) and LEVEL (the table's name). */
#include "cli/limits.h"

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
