/* compute.h - what stands behind a gdn_compute. */
#ifndef GDN_DEVICE_COMPUTE_H
#define GDN_DEVICE_COMPUTE_H
#include "device/device.h"

enum {
    GDN_TILE_HEADS = 4, /* value heads of one key head that are taken at a time */
    GDN_TILE_TOKENS =
        64, /* tokens that all heads of a task see before the next ones come: what stays in a second-level cache */
};

/* Scratch of one thread.  Arrays are used densely from their start, in the shape that the comment gives. */
typedef struct gdn_scratch {
    _Alignas(64) float delta[GDN_DELTA_WORK];
    _Alignas(64) float q_conv[GDN_TILE_TOKENS * GDN_MAX_DIM],
        k_conv[GDN_TILE_TOKENS * GDN_MAX_DIM];                                             /* [T][Dk] of type */
    _Alignas(64) float q[GDN_TILE_TOKENS * GDN_MAX_DIM], k[GDN_TILE_TOKENS * GDN_MAX_DIM]; /* [T][Dk] f32 */
    _Alignas(64) float v[GDN_TILE_TOKENS * GDN_TILE_HEADS * GDN_MAX_DIM];                  /* [T][heads][Dv] of type */
    _Alignas(64) float y[GDN_TILE_TOKENS * GDN_TILE_HEADS * GDN_MAX_DIM];                  /* likewise */
    float a[GDN_TILE_TOKENS * GDN_TILE_HEADS], b[GDN_TILE_TOKENS * GDN_TILE_HEADS]; /* [T][heads]; become g, beta */
    float A_log[GDN_TILE_TOKENS * GDN_TILE_HEADS], dt_bias[GDN_TILE_TOKENS * GDN_TILE_HEADS]; /* repeated over T */
} gdn_scratch;

struct gdn_compute {
    const gdn_level *level;
    gdn_kernels      kernels;
    gdn_threads     *threads;
    gdn_scratch     *scratch; /* [threads] */
    unsigned char   *dense;   /* [threads][dense_bytes]: scratch of dense.h; NULL until reserved */
    size_t           dense_bytes;
};

/* A run: consecutive rows of a lane that exist. */
typedef struct gdn_run {
    int first, n; /* rows within the lane */
} gdn_run;

/* The next run at or after `from`; n is 0 when there is none.  A run never passes max_tokens. */
static inline gdn_run gdn_next_run(const uint8_t *mask, int n_rows, int from, int max_tokens)
{
    while (mask && from < n_rows && !mask[from]) from++;
    int end = from;
    while (end < n_rows && end - from < max_tokens && (!mask || mask[end])) end++;
    return (gdn_run){from, end - from};
}

/* A lane's heads are handed out in strips of neighbours: few enough strips that a strip shares pages and lines of the
 * activations, enough for every thread to find work.  How many, for n_units heads or groups of heads. */
static inline int gdn_strips(const gdn_compute *compute, int n_lanes, int n_units)
{
    const int threads = gdn_threads_count(compute->threads), wanted = (4 * threads + n_lanes - 1) / n_lanes;
    return threads == 1 ? 1 : wanted < n_units ? wanted : n_units;
}

/* Value head number `i` of key head `key_head`. */
static inline int gdn_value_head(gdn_head_map map, int n_key_heads, int n_value_heads, int key_head, int i)
{
    return map == GDN_HEADS_TILED ? key_head + i * n_key_heads : key_head * (n_value_heads / n_key_heads) + i;
}

/* The factor that a normalised q or k is multiplied with: see gdn_qk_norm_form. */
float gdn_qk_scale(gdn_qk_norm_form form, int is_query, int dim);

/* Element `i` of an array of `type`. */
static inline const void *gdn_at(gdn_type type, const void *p, size_t i)
{
    return (const char *)p + i * (type == GDN_BF16 ? 2 : 4);
}
static inline void *gdn_at_out(gdn_type type, void *p, size_t i) { return (char *)p + i * (type == GDN_BF16 ? 2 : 4); }

/* Gates of `n_tokens` tokens (row stride `stride`) and `n_heads` heads (first `head`, step `step`), into scratch->a (g) and
 * scratch->b (beta), [n_tokens][n_heads]. */
typedef struct gdn_gates_tile {
    gdn_type     type;
    gdn_recipe   recipe;
    const void  *a, *b; /* at the first token */
    const float *A_log, *dt_bias;
    size_t       stride;
    int          n_tokens, n_heads, head, step;
} gdn_gates_tile;
void gdn_gates_of_tile(const gdn_compute *compute, gdn_scratch *scratch, const gdn_gates_tile *tile);

#endif
