/* cli/limits.h - what a core can do at most at one CPU level, and plain C to compare with. */
#ifndef GDN_CLI_LIMITS_H
#define GDN_CLI_LIMITS_H
#include <stddef.h>

/* n rounds of `chains` independent fused multiply-adds of `width` floats, registers only. */
typedef void gdn_fma_fn(long n);
gdn_fma_fn   gdn_fma_avx2, gdn_fma_avx512, gdn_fma_neon;

/* n rounds of 4 products of AMX tiles of bf16, registers only. */
gdn_fma_fn gdn_tiles_amx;

/* x[i] *= s in place; n a multiple of GDN_SCALE_BLOCK, x aligned to 64 bytes.  Ways differ in the number of streams and in
 * prefetching; which is fastest depends on the size and the processor, so all of them are timed. */
enum { GDN_SCALE_WAYS = 6, GDN_SCALE_BLOCK = 512 };
typedef void               gdn_scale_fn(float *x, size_t n, float s);
extern gdn_scale_fn *const gdn_scale_avx2[GDN_SCALE_WAYS], *const gdn_scale_avx512[GDN_SCALE_WAYS],
                                                               *const gdn_scale_neon[GDN_SCALE_WAYS];

/* Read n floats; n a multiple of GDN_SCALE_BLOCK, x aligned to 64 bytes.  Ways as above. */
enum { GDN_READ_WAYS = 6 };
typedef void              gdn_read_fn(const float *x, size_t n);
extern gdn_read_fn *const gdn_read_avx2[GDN_READ_WAYS], *const gdn_read_avx512[GDN_READ_WAYS],
                                                            *const gdn_read_neon[GDN_READ_WAYS];

/* The delta rule in plain C: f32 data, n / (Hv/Hk) head mapping, scalar gate, one lane, state in place. */
typedef struct gdn_plain_job {
    int          n_tokens, n_key_heads, n_value_heads, key_dim, value_dim;
    const float *q, *k;    /* [T][Hk][Dk] */
    const float *v;        /* [T][Hv][Dv] */
    const float *g, *beta; /* [T][Hv] */
    float       *state;    /* [Hv][Dv][Dk] */
    float       *y;        /* [T][Hv][Dv] */
} gdn_plain_job;
typedef void gdn_plain_fn(const gdn_plain_job *job);
gdn_plain_fn gdn_plain_base, gdn_plain_avx2, gdn_plain_avx512, gdn_plain_neon;

typedef struct gdn_limits {
    const char          *level;
    int                  width, chains; /* floats in a vector; independent chains of `fma` */
    gdn_fma_fn          *fma;           /* NULL for "ref", as are the next three */
    gdn_scale_fn *const *scale;         /* [GDN_SCALE_WAYS] */
    gdn_read_fn *const  *read;          /* [GDN_READ_WAYS] */
    gdn_fma_fn          *matrix;        /* what bounds matrix products: tiles, or `fma` */
    double               matrix_ops;    /* multiplications with addition in a round of it */
    gdn_plain_fn        *plain;         /* for "ref": without instruction-set flags */
} gdn_limits;

/* The limits of a level, or NULL for a level that has none. */
const gdn_limits *gdn_limits_of(const char *level);

#endif
