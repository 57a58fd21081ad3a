/* gdn/delta.h - the gated delta rule and the recurrent-state cache.
 *
 * The law: the state of a sequence, and every number computed from it, depends on its committed tokens alone, bit for bit:
 * not on how they were cut into calls, the batch, the slot, the thread count, the CPU level, a rejected draft, or a save
 * and restore.  Every function below keeps it.
 *
 * Letters   B lanes (sequences in a batch)   T tokens of a lane      rows  tokens of all lanes, lane after lane
 *           Hk key heads   Hv value heads (Hk divides Hv)            Dk, Dv  key and value dims, multiples of 32 up to 256
 *           K  convolution taps, 2..8        C  = 2*Hk*Dk + Hv*Dv channels, ordered q | k | v, heads contiguous
 * Shapes are written [outer][inner], the last index contiguous.
 *
 * Threads   A gdn_compute, a gdn_pool and the caches of that pool serve one call at a time; different computes and pools
 *           are independent.  A gdn_snapshot is immutable and may be shared: retain and release are atomic.
 * Memory    A call on an opened object allocates nothing, except those that return a new object.
 * Errors    A call that fails changes nothing: arguments are checked first.
 * Floats    Calls compute with denormals on and rounding to nearest whatever the caller's floating-point mode is, and put
 *           that mode back.  Inputs of magnitude up to 1e4 give no NaN and no infinity (q and k normalised).
 */
#ifndef GDN_DELTA_H
#define GDN_DELTA_H
#include <stddef.h>
#include <stdint.h>
#include "gdn/status.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ------------------------------------------------------------------------------------------------------- */

typedef enum gdn_type { GDN_F32 = 0, GDN_BF16 = 1 } gdn_type; /* bf16 is the upper half of an f32, in a uint16_t */

/* Whose roundings an operation follows.  With f32 data both are free of intermediate rounding.
 *   HF   Hugging Face transformers: everything in f32, one rounding at the end (the gated norm also rounds the normalised
 *        value, as there)
 *   MLX  mlx-lm: sigmoid, softplus, SiLU and norms round every step to the data type; equals recorded Metal outputs */
typedef enum gdn_recipe { GDN_RECIPE_HF = 0, GDN_RECIPE_MLX = 1 } gdn_recipe;

/* How q and k are normalised over Dk.  query scale: 1/sqrt(Dk).
 *   SUM  x / sqrt(sum x^2 + eps)            HF, FLA; q times the query scale
 *   RMS  x / sqrt(mean x^2 + eps)           mlx-lm; rounded to the data type, then q times 1/Dk and k times 1/sqrt(Dk)
 *   MAX  x / max(sqrt(sum x^2), eps)        llama.cpp; q times the query scale */
typedef enum gdn_qk_norm_form { GDN_QK_NORM_SUM = 0, GDN_QK_NORM_RMS = 1, GDN_QK_NORM_MAX = 2 } gdn_qk_norm_form;

/* Which key head value head n reads: n / (Hv/Hk) (HF, mlx, Qwen3-Next GGUF) or n % Hk (Qwen3.5 GGUF). */
typedef enum gdn_head_map { GDN_HEADS_GROUPED = 0, GDN_HEADS_TILED = 1 } gdn_head_map;

/* The shape and numerics of a gated delta layer; the same for all layers of a model. */
typedef struct gdn_delta_config {
    int              n_key_heads, n_value_heads; /* Hk, Hv */
    int              key_dim, value_dim;         /* Dk, Dv */
    int              n_taps;                     /* K */
    gdn_head_map     head_map;
    gdn_type         type; /* of activations and of the conv tail; the state is f32 */
    gdn_recipe       recipe;
    gdn_qk_norm_form qk_norm;
    float            qk_eps; /* 1e-6 in every known model */
} gdn_delta_config;

/* ---- compute: kernels and threads -------------------------------------------------------------------------------- */

typedef struct gdn_compute gdn_compute;

/* Open the kernels of a CPU level and a pool of threads.
 *   level      "ref", "avx2", "avx512", "amx", "neon", or NULL for the best this CPU has; levels differ in speed only
 *   n_threads  1..256 including the caller, or 0 for what affinity and the cgroup quota allow
 * Free with gdn_compute_close.  UNSUPPORTED: this CPU or build lacks the level. */
gdn_status gdn_compute_open(gdn_compute **out, const char *level, int n_threads, gdn_error *err);
void       gdn_compute_close(gdn_compute *compute); /* NULL is allowed */

const char *gdn_compute_level(const gdn_compute *compute); /* static */
int         gdn_compute_threads(const gdn_compute *compute);

/* dst[i] = src[i], rounded to nearest even going to bf16 (a NaN stays a NaN).  dst and src must not overlap. */
void gdn_bf16_from_f32(uint16_t *dst, const float *src, size_t n);
void gdn_f32_from_bf16(float *dst, const uint16_t *src, size_t n);

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* Which rows belong to which lane.
 *   ragged       n_tokens[i] >= 0 tokens of lane i; lane i's rows follow lane i-1's; mask must be NULL
 *   rectangular  n_tokens NULL: every lane has `length` rows; mask [B][length] or NULL.  Where mask is 0 the row does not
 *                exist for its lane: states and tails stay as they were and the outputs there are 0. */
typedef struct gdn_batch {
    int            n_lanes; /* B, 1..4096 */
    const int     *n_tokens;
    int            length;
    const uint8_t *mask;
} gdn_batch;

/* Where the states of a batch live: lane i's is `base` + index[i]*stride bytes, or base + i*stride when index is NULL.
 * On input a NULL base, or a negative index[i], stands for zeros.  Outputs need a base, indices >= 0, all different.
 * An output may be its own lane's input (in place) and must not overlap another lane's. */
typedef struct gdn_slots {
    void          *base;
    const int32_t *index;  /* [B] or NULL */
    size_t         stride; /* bytes; a multiple of 4, at least the size of one state */
} gdn_slots;

/* ---- operations: independent of any cache; arrays must not overlap unless said ------------------------------------ */

/* Causal depthwise convolution over each lane's tokens, then SiLU:  y[t][c] = silu(sum_j w[j][c] * x[t-K+1+j][c]),
 * taps ascending; positions before the first token come from tail_in.  tail [K-1][C] of `type` holds the last K-1 inputs,
 * oldest first; tail_out may be tail_in. */
typedef struct gdn_conv_args {
    gdn_batch    batch;
    int          n_channels, n_taps; /* C >= 1, K 2..8 */
    gdn_type     type;
    gdn_recipe   recipe;
    const void  *x; /* [rows][C] of type */
    const float *w; /* [K][C], tap K-1 is the current token: see gdn_conv_pack */
    gdn_slots    tail_in, tail_out;
    void        *y; /* [rows][C] of type */
} gdn_conv_args;
gdn_status gdn_conv_silu(gdn_compute *compute, const gdn_conv_args *args, gdn_error *err);

/* dst [K][C] f32 from a checkpoint's weight [C][K] (HF [C,1,K] and MLX [C,K,1] have the same bytes). */
void gdn_conv_pack(float *dst, const void *src, gdn_type type, int n_channels, int n_taps);

/* Normalise the heads of q or k:  y[r][h] = norm(x[r][h]) * scale.  SUM and MAX compute in f32 and round once to y_type;
 * RMS rounds to x_type first and again after the product with the scale, which is rounded too. */
typedef struct gdn_qk_norm_args {
    int              n_rows, n_heads, dim; /* dim: a multiple of 32 up to 256 */
    gdn_type         x_type, y_type;
    gdn_qk_norm_form form;
    float            eps;      /* > 0 */
    int              is_query; /* which scale: see gdn_qk_norm_form */
    const void      *x;        /* [rows][heads][dim], token stride x_stride elements (0: heads*dim) */
    size_t           x_stride;
    void            *y; /* [rows][heads][dim]; may be x when the types agree */
} gdn_qk_norm_args;
gdn_status gdn_qk_norm(gdn_compute *compute, const gdn_qk_norm_args *args, gdn_error *err);

/* The gates:  beta = sigmoid(b),  g = exp(-exp(A_log) * softplus(a + dt_bias)) in (0, 1].
 * HF: f32 throughout.  MLX: beta and softplus rounded step by step to `type`; g is f32 in both. */
typedef struct gdn_gates_args {
    int          n_rows, n_value_heads;
    gdn_type     type; /* of a and b */
    gdn_recipe   recipe;
    const void  *a, *b;           /* [rows][Hv] of type */
    const float *A_log, *dt_bias; /* [Hv] */
    float       *g, *beta;        /* [rows][Hv] */
} gdn_gates_args;
gdn_status gdn_gates(gdn_compute *compute, const gdn_gates_args *args, gdn_error *err);

/* The gated delta rule.  For each token of a lane, value head n with its key head, each row S = state[n][dv]:
 *     S <- g*S;  m = S.k;  d = (v - m)*beta;  S <- fma(k, d, S);  y = S.q, rounded to y_type
 * Dots in lane order: lane l of 32 owns elements l*Dk/32 ..., a product and then fmaf ascending; lanes are added by the
 * butterfly xor 1, 2, 8, 4, 16.  (This is the order of mlx-lm's Metal kernel.)
 * Either g and beta are given, or a, b, A_log and dt_bias, from which the gates are computed as gdn_gates does. */
typedef struct gdn_delta_args {
    gdn_batch    batch;
    int          n_key_heads, n_value_heads, key_dim, value_dim;
    gdn_head_map head_map;
    gdn_type     qk_type, v_type, y_type, ab_type; /* of q and k, of v, of y, of a and b */
    gdn_recipe   recipe;                           /* of the gates; not read when g and beta are given */
    const void  *q, *k;                            /* [rows][Hk][Dk], normalised, q scaled */
    const void  *v;                                /* [rows][Hv][Dv] */
    const float *g;                                /* decay in [0,1]: [rows][Hv], or [rows][Hv][Dk] with vector_gate */
    const float *beta;                             /* [rows][Hv] in [0,1] */
    int          vector_gate;
    const void  *a, *b;               /* [rows][Hv] of ab_type; read when g is NULL */
    const float *A_log, *dt_bias;     /* [Hv] */
    int          lane_order;          /* 1: state rows are in lane order (faster, what a pool holds); 0: natural */
    gdn_slots    state_in, state_out; /* [Hv][Dv][Dk] f32 a lane */
    void        *y;                   /* [rows][Hv][Dv]; NULL: only the state is wanted */
} gdn_delta_args;
gdn_status gdn_delta_rule(gdn_compute *compute, const gdn_delta_args *args, gdn_error *err);

/* Lane order is a fixed permutation of a state row's Dk floats, the same on every CPU, in which no kernel has to shuffle:
 * element i of lane l (natural index l*Dk/32 + i) stands at i*32 + 16*l0 + 8*l1 + 4*l3 + 2*l2 + l4, with lB bit B of l.
 * Convert n_rows rows; dst may be src. */
void gdn_rows_to_lanes(float *dst, const float *src, size_t n_rows, int key_dim);
void gdn_rows_from_lanes(float *dst, const float *src, size_t n_rows, int key_dim);

/* The gated norm:  y = (o / sqrt(mean o^2 + eps)) * w * silu(z), over the last dimension. */
typedef struct gdn_gated_norm_args {
    int          n_rows, dim; /* rows: tokens times value heads; dim: a multiple of 32 up to 256 */
    gdn_type     type;        /* of o, z and y */
    gdn_recipe   recipe;
    float        eps;
    const void  *o, *z; /* [rows][dim] */
    const float *w;     /* [dim], as stored (nothing is added to it) */
    void        *y;     /* [rows][dim]; may be o or z */
} gdn_gated_norm_args;
gdn_status gdn_gated_norm(gdn_compute *compute, const gdn_gated_norm_args *args, gdn_error *err);

/* ---- the pool of states ------------------------------------------------------------------------------------------ */

/* A pool holds n_slots slots; a slot holds the recurrent memory of one sequence: for each delta layer the conv tail [K-1][C]
 * and the state [Hv][Dv][Dk], its rows in lane order.  A slot that was never written for a layer is an explicit "no state"
 * there, whatever its memory holds; a freed slot is poisoned in debug builds (-DGDN_DEBUG). */
typedef struct gdn_pool gdn_pool;

/* All memory is taken here: n_slots * gdn_pool_slot_bytes.  n_layers 1..1024, n_slots 1..65536.
 * Free with gdn_pool_close, after its caches. */
gdn_status gdn_pool_open(gdn_pool **out, const gdn_delta_config *config, int n_layers, int n_slots, gdn_error *err);
void       gdn_pool_close(gdn_pool *pool); /* NULL is allowed */

size_t gdn_pool_slot_bytes(const gdn_pool *pool);
int    gdn_pool_free_slots(const gdn_pool *pool);

/* ---- the cache: an ordered batch of lanes ------------------------------------------------------------------------- */

/* A lane is one sequence in a batch: an index into the pool, its offset (how many tokens its state covers) and its padding.
 * Taking lanes apart and together moves indices, never states. */
typedef struct gdn_cache gdn_cache;

/* An empty cache of at most max_lanes lanes (1..4096).
 *   max_window  most tokens a lane may have in a speculative round (0: no rounds; up to 1024); the recorded inputs of
 *               max_lanes * max_window tokens are allocated here
 * Free with gdn_cache_close, before the pool. */
gdn_status gdn_cache_open(gdn_cache **out, gdn_pool *pool, int max_lanes, int max_window, gdn_error *err);
void       gdn_cache_close(gdn_cache *cache); /* NULL is allowed; gives the slots back */

/* Append n fresh lanes: no state, offset `offset` (0, or the position from which another store continues). */
gdn_status gdn_cache_add(gdn_cache *cache, int n, int64_t offset, gdn_error *err);

int     gdn_cache_lanes(const gdn_cache *cache);
int     gdn_cache_is_empty(const gdn_cache *cache);              /* 1: no lane holds a state */
int     gdn_cache_has_state(const gdn_cache *cache, int lane);   /* 1: every layer of the lane holds one */
int64_t gdn_cache_offset(const gdn_cache *cache);                /* the largest offset of its lanes; 0 without lanes */
int64_t gdn_cache_lane_offset(const gdn_cache *cache, int lane); /* -1: no such lane */
size_t  gdn_cache_bytes_per_token(const gdn_cache *cache);       /* 0: a recurrent state does not grow */
size_t  gdn_cache_bytes(const gdn_cache *cache);                 /* of the slots it holds and of its records */

/* What a lane's layer holds now, for tests and tools: pointers into the pool (the state in lane order: see
 * gdn_rows_from_lanes), NULL where there is no state; valid until the next call that changes the pool or one of its caches. */
void gdn_cache_peek(const gdn_cache *cache, int lane, int layer, const float **state, const void **tail);

/* Rectangular batches with padding.  prepare sets, per lane, either left padding (rows to skip before the first token) or
 * lengths (tokens that are valid, from the first row), each >= 0; exactly one of the two.  make_mask fills mask [B][n] for
 * the next n rows and returns 1, or returns 0 when there is no padding (all rows are valid; mask untouched).
 * finalize ends the padding. */
gdn_status gdn_cache_prepare(gdn_cache *cache, const int *left_padding, const int *lengths, gdn_error *err);
int        gdn_cache_make_mask(const gdn_cache *cache, int n, uint8_t *mask);
void       gdn_cache_finalize(gdn_cache *cache);

/* Count tokens after the layers have seen them.  advance: n rows for every lane; a padded lane counts its valid rows only,
 * and its padding shrinks by n.  counts [B], when not NULL, receives what each lane gained.  advance_rows: counts[i] for
 * lane i; refused while padding is set. */
gdn_status gdn_cache_advance(gdn_cache *cache, int n, int *counts, gdn_error *err);
gdn_status gdn_cache_advance_rows(gdn_cache *cache, const int *counts, gdn_error *err);

/* Batch operations; refused while a round is armed.
 *   merge    append all lanes of src to dst (same pool); src is left empty.  An empty dst adopts them.  Offsets and padding
 *            stay per lane.  BAD_STATE: a lane of src has no state.
 *   filter   keep the lanes rows[0..n), ascending, no repeats; the others give their slots back
 *   extract  a new cache (max_lanes 1, max_window of the source) whose one lane shares row `lane`'s state; whichever of the
 *            two runs next writes to a slot of its own.  BAD_STATE: the lane has no state.
 *   share    lane dst_lane becomes another view of lane src_lane (same pool; the cache may be the same): its state, or lack of
 *            one, and its offset, without padding.  Whichever runs next writes to a slot of its own.  BAD_STATE: src_lane is in
 *            the middle of a step.
 *   clear    the lane becomes as fresh: no state, offset 0, no padding */
gdn_status gdn_cache_merge(gdn_cache *dst, gdn_cache *src, gdn_error *err);
gdn_status gdn_cache_filter(gdn_cache *cache, const int *rows, int n, gdn_error *err);
gdn_status gdn_cache_extract(gdn_cache *cache, int lane, gdn_cache **out, gdn_error *err);
gdn_status gdn_cache_share(gdn_cache *dst, int dst_lane, const gdn_cache *src, int src_lane, gdn_error *err);
gdn_status gdn_cache_clear(gdn_cache *cache, int lane, gdn_error *err);

/* Always NOT_TRIMMABLE: the message names the round operations below. */
gdn_status gdn_cache_trim(gdn_cache *cache, int64_t n, gdn_error *err);

/* ---- speculative rounds ------------------------------------------------------------------------------------------ */

/* begin arms a round: the next forward of each layer keeps the state that it replaces, and records its inputs.
 *          An unresolved earlier round is dropped: its lanes go back to where they were before it.
 * commit   accepts the whole window; no state is copied.
 * rollback keep[i] tokens of lane i's window (n_keep = B), or keep[0] of every lane's (n_keep = 1), 0 <= keep <= window:
 *          states, tails and offsets become those of a run that never saw the rest.
 * Both also set the offsets: the offset at begin plus what was kept, whether or not advance was called.
 * A round takes one slot from the pool for each lane that has tokens in it, at its first forward.
 * BAD_STATE: no round, no forward recorded, or a layer that did not run; BAD_ARGUMENT: keep outside the window. */
gdn_status gdn_round_begin(gdn_cache *cache, gdn_error *err);
gdn_status gdn_round_commit(gdn_cache *cache, gdn_error *err);
gdn_status gdn_round_rollback(gdn_compute *compute, gdn_cache *cache, const int *keep, int n_keep, gdn_error *err);
int        gdn_round_window(const gdn_cache *cache, int lane); /* recorded tokens; -1 without an armed round or lane */

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

/* An immutable copy of a lane: every layer's state and tail, and the offset. */
typedef struct gdn_snapshot gdn_snapshot;

gdn_status    gdn_snapshot_take(gdn_snapshot **out, const gdn_cache *cache, int lane, gdn_error *err);
gdn_status    gdn_snapshot_restore(gdn_cache *cache, int lane, const gdn_snapshot *snapshot, gdn_error *err);
gdn_snapshot *gdn_snapshot_retain(gdn_snapshot *snapshot);  /* returns it */
void          gdn_snapshot_release(gdn_snapshot *snapshot); /* the last one frees; NULL is allowed */
int64_t       gdn_snapshot_offset(const gdn_snapshot *snapshot);
size_t        gdn_snapshot_bytes(const gdn_snapshot *snapshot); /* memory it holds; its file has the same size */

/* Files: a versioned, checksummed image, little-endian.  save writes PATH.tmp-PID, waits until the disk has it and renames
 * it, so that PATH is the old file or the new one, also after a failure of power.  load refuses a truncated, damaged or
 * foreign file (BAD_FILE) and one of another shape or type than `pool` (MISMATCH) whole.  parse does the same from memory. */
gdn_status gdn_snapshot_save(const gdn_snapshot *snapshot, const char *path, gdn_error *err);
gdn_status gdn_snapshot_load(gdn_snapshot **out, const gdn_pool *pool, const char *path, gdn_error *err);
gdn_status gdn_snapshot_parse(gdn_snapshot **out, const gdn_pool *pool, const void *bytes, size_t n_bytes,
                              gdn_error *err);

/* ---- the layer --------------------------------------------------------------------------------------------------- */

typedef struct gdn_delta_weights {
    const float *conv;            /* [K][C]: see gdn_conv_pack */
    const float *A_log, *dt_bias; /* [Hv] */
    const float *norm;            /* [Dv] */
    float        norm_eps;
} gdn_delta_weights;

typedef struct gdn_layer_args {
    gdn_batch   batch;                /* n_lanes must be the cache's; make_mask gives the mask of a padded batch */
    const void *qkv;                  /* [rows][C] of config.type, before the convolution */
    const void *z;                    /* [rows][Hv][Dv] of config.type */
    const void *a, *b;                /* [rows][Hv] of config.type */
    void       *y;                    /* [rows][Hv][Dv] of config.type: input of the output projection */
    size_t      qkv_stride, z_stride; /* elements from a row to the next, C and Hv*Dv or more; 0: C and Hv*Dv */
} gdn_layer_args;

/* One gated delta layer between its projections: convolution, q/k norm, gates, recurrence, gated norm; reads and moves the
 * lanes' tails and states of layer `layer`, and records an armed round.  Between the steps, what the operations above round
 * to `type` is rounded likewise; q and k are normalised into f32.  `weights` must outlive the round.  The offsets
 * move with gdn_cache_advance, once all layers have run.
 * NO_SLOT: a lane needs a slot and the pool has none. */
gdn_status gdn_delta_layer(gdn_compute *compute, gdn_cache *cache, int layer, const gdn_delta_weights *weights,
                           const gdn_layer_args *args, gdn_error *err);

#ifdef __cplusplus
}
#endif
#endif
