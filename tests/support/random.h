/* random.h - a small generator for tests: the same seed gives the same numbers on every machine. */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H
#include <stdint.h>

typedef struct rng {
    uint64_t s;
} rng;

/* splitmix64: any seed, 0 among them, is a good one. */
static inline uint32_t rng_u32(rng *r)
{
    uint64_t z = r->s += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

/* 0 <= result < n */
static inline int rng_below(rng *r, int n) { return (int)((uint64_t)rng_u32(r) * (uint32_t)n >> 32); }

/* lo <= result < hi, a multiple of 2^-24 of the range */
static inline float rng_uniform(rng *r, float lo, float hi)
{
    return lo + (hi - lo) * ((float)(rng_u32(r) >> 8) * 0x1p-24f);
}

/* Near enough to a normal distribution of variance 1: the sum of three uniform ones. */
static inline float rng_normal(rng *r)
{
    return rng_uniform(r, -1.0f, 1.0f) + rng_uniform(r, -1.0f, 1.0f) + rng_uniform(r, -1.0f, 1.0f);
}

static inline void rng_shuffle(rng *r, int *a, int n)
{
    for (int i = n - 1; i > 0; i--) {
        const int j = rng_below(r, i + 1), t = a[i];
        a[i] = a[j];
        a[j] = t;
    }
}

#endif
