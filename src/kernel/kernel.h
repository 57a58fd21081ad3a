/* kernel.h - what every CPU kernel computes, and the table that picks one.
 *
 * A kernel is a leaf: plain pointers and sizes in, no failure, no allocation, no locks, no threads.  It reads and writes only
 * what its contract names; pointers need the alignment of their type only, and ranges do not overlap unless said.
 * Each contract stands at a function TYPE from which all variants are declared.  The variant *_ref (ref/) is the definition;
 * the others (simd/, compiled for each instruction set in x86/ and arm/) equal it bit for bit.
 * Strides count elements.  `type` says what a void pointer holds.  R() below is rounding to the data type (none for f32). */
#ifndef GDN_KERNEL_KERNEL_H
#define GDN_KERNEL_KERNEL_H
#include "gdn/delta.h"

enum { GDN_LANES = 32, GDN_MAX_DIM = 256, GDN_MAX_TAPS = 8 };

/* Causal depthwise convolution and SiLU of one lane's next tokens, for a range of channels.
 *   s = sum_j w[j][c]*x[t-K+1+j][c]: 0, then fmaf with j ascending; x before 0 is tail_in (NULL: zeros)
 *   HF:  y = R(s * sigmoid(s))         MLX: y = R(R(s) * sigmoid_rounded(R(s)))            (math.h has both sigmoids)
 *   tail_out row j is x[T-K+1+j]; tail_out may equal tail_in.  y must not overlap x. */
typedef struct gdn_conv_job {
    int          n_tokens, n_channels, n_taps; /* T >= 0, n >= 1, K 2..8 */
    gdn_type     type;                         /* of x, tails and y */
    gdn_recipe   recipe;
    const void  *x; /* [T][x_stride] */
    size_t       x_stride;
    const float *w; /* [K][w_stride] */
    size_t       w_stride;
    const void  *tail_in; /* [K-1][tail_stride] or NULL */
    void        *tail_out;
    size_t       tail_stride;
    void        *y; /* [T][y_stride] */
    size_t       y_stride;
} gdn_conv_job;
typedef void     gdn_conv_silu_fn(const gdn_conv_job *job);
gdn_conv_silu_fn gdn_conv_silu_ref, gdn_conv_silu_avx2, gdn_conv_silu_avx512, gdn_conv_silu_neon;

/* Normalise rows.  ss = sum of squares: lane i%32 by fmaf, i ascending, then lanes fold 32->16->8->4->2->1 (lane l += lane
 * l+half).
 *   SUM  y = R((x * r) * scale), r = 1/sqrt(ss + eps)        MAX  r = 1/max(sqrt(ss), eps)
 *   RMS  y = R(R(x * r) * R(scale)), r = 1/sqrt(ss/dim + eps); R is to x_type, the outer one to x_type and y_type */
typedef struct gdn_qk_norm_job {
    int              n_rows, dim; /* dim a multiple of 32 up to 256 */
    gdn_type         x_type, y_type;
    gdn_qk_norm_form form;
    float            eps, scale;
    const void      *x; /* [rows][x_stride] */
    size_t           x_stride;
    void            *y; /* [rows][y_stride]; may be x when types and strides agree */
    size_t           y_stride;
} gdn_qk_norm_job;
typedef void   gdn_qk_norm_fn(const gdn_qk_norm_job *job);
gdn_qk_norm_fn gdn_qk_norm_ref, gdn_qk_norm_avx2, gdn_qk_norm_avx512, gdn_qk_norm_neon;

/* The gates of n independent (token, head) pairs; every array [n].
 *   HF   beta = sigmoid(b);  g = exp(-(exp(A_log) * softplus(a + dt_bias))), f32 throughout
 *   MLX  beta = sigmoid_rounded(b);  softplus step by step (math.h), g in f32 */
typedef struct gdn_gates_job {
    int          n;
    gdn_type     type; /* whose roundings MLX makes; a and b are f32 here */
    gdn_recipe   recipe;
    const float *a, *b, *A_log, *dt_bias;
    float       *g, *beta; /* g may be a, beta may be b */
} gdn_gates_job;
typedef void gdn_gates_fn(const gdn_gates_job *job);
gdn_gates_fn gdn_gates_ref, gdn_gates_avx2, gdn_gates_avx512, gdn_gates_neon;

/* Lane order: the order in which a row of Dk floats is best computed on, the same for every kernel.  Lane l of 32 owns elements
 * l*Dk/32 ... of the natural order; element i of it stands at i*32 + position(l), where position(l) is
 * 16*(bit 0 of l) + 8*(bit 1) + 4*(bit 3) + 2*(bit 2) + (bit 4).  dst must not overlap src, or be it. */
void gdn_row_to_lanes(float *dst, const float *src, int key_dim);
void gdn_row_from_lanes(float *dst, const float *src, int key_dim);

/* The gated delta rule for one lane and the value heads of one key head: see gdn_delta_rule in delta.h for the equations and
 * the order.  `value_dim` may be a part of a head's rows (a multiple of 4): rows are independent. */
typedef struct gdn_delta_job {
    int          n_tokens, n_heads, key_dim, value_dim; /* T >= 1; heads >= 1; Dk a multiple of 32 up to 256; Dv of 4 */
    gdn_type     qk_type, v_type, y_type;
    const void  *q, *k; /* [T][qk_stride] */
    size_t       qk_stride;
    const void  *v; /* [T][v_stride], head h at h*v_head */
    size_t       v_stride, v_head;
    const float *g; /* [T][g_stride], head h at h*g_head; there one value, or [Dk] with vector_gate */
    size_t       g_stride, g_head;
    int          vector_gate;
    const float *beta; /* [T][beta_stride], head h at h*beta_head */
    size_t       beta_stride, beta_head;
    int          lane_order; /* 1: the rows of both states are in lane order; 0: in natural order */
    const float *state_in;   /* head h at h*state_head: [Dv][Dk]; NULL: zeros */
    float       *state_out;  /* likewise; may be state_in */
    size_t       state_head;
    void        *y; /* [T][y_stride], head h at h*y_head; NULL: not wanted (q is then not read) */
    size_t       y_stride, y_head;
    float       *work; /* GDN_DELTA_WORK floats, 64-byte aligned */
} gdn_delta_job;
enum { GDN_DELTA_CHUNK = 16, GDN_DELTA_WORK = GDN_DELTA_CHUNK * 5 * GDN_MAX_DIM + 2 * GDN_MAX_DIM };
typedef void gdn_delta_fn(const gdn_delta_job *job);
gdn_delta_fn gdn_delta_ref, gdn_delta_avx2, gdn_delta_avx512, gdn_delta_neon;

/* The gated norm of rows.  ss as in gdn_qk_norm_fn, r = 1/sqrt(ss/dim + eps), n = R(o * r).
 *   HF  y = R((n * w) * silu(z))          MLX  y = R(silu(z) * R(n * w));       silu(z) = z * sigmoid(z) in f32 */
typedef struct gdn_gated_norm_job {
    int          n_rows, dim;
    gdn_type     type;
    gdn_recipe   recipe;
    float        eps;
    const void  *o, *z; /* [rows][o_stride], [rows][z_stride] */
    size_t       o_stride, z_stride;
    const float *w; /* [dim] */
    void        *y; /* [rows][y_stride]; may be o or z when the strides agree */
    size_t       y_stride;
} gdn_gated_norm_job;
typedef void      gdn_gated_norm_fn(const gdn_gated_norm_job *job);
gdn_gated_norm_fn gdn_gated_norm_ref, gdn_gated_norm_avx2, gdn_gated_norm_avx512, gdn_gated_norm_neon;

/* One consistent set of variants; immutable once filled. */
typedef struct gdn_kernels {
    gdn_conv_silu_fn  *conv_silu;
    gdn_qk_norm_fn    *qk_norm;
    gdn_gates_fn      *gates;
    gdn_delta_fn      *delta;
    gdn_gated_norm_fn *gated_norm;
} gdn_kernels;

/* The levels, lowest first.  Each needs the ones before it (on its own architecture). */
typedef struct gdn_level {
    const char *name;  /* "ref", "avx2", "avx512", "neon" */
    unsigned    flags; /* of gdn_cpu_flags, all needed */
} gdn_level;

/* Level i of this build, or NULL past the last.  Level 0 is "ref". */
const gdn_level *gdn_kernels_level(int i);

/* Fill *kernels with the best variant of each that `flags` (from gdn_cpu_flags, or a level's) allows; 0 gives ref. */
void gdn_kernels_fill(gdn_kernels *kernels, unsigned flags);

#endif
