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

/* ---- around the recurrence: what the rest of a model needs ---------------------------------------------------------- */

/* RMS norm of rows:  y = R((x * r) * w), r = 1/sqrt(ss/dim + eps), ss as in gdn_qk_norm_fn; R is to y_type. */
typedef struct gdn_rms_norm_job {
    int          n_rows, dim; /* dim a multiple of 32 */
    gdn_type     y_type;
    float        eps;
    const float *x; /* [rows][x_stride] */
    size_t       x_stride;
    const float *w; /* [dim], what a row is multiplied with (1 is already added where a checkpoint wants it) */
    void        *y; /* [rows][y_stride]; may be x when y_type is f32 and the strides agree */
    size_t       y_stride;
} gdn_rms_norm_job;
typedef void gdn_rms_norm_fn(const gdn_rms_norm_job *job);

gdn_rms_norm_fn gdn_rms_norm_ref, gdn_rms_norm_avx2, gdn_rms_norm_avx512, gdn_rms_norm_neon;

/* Rows of x times the transpose of bf16 weights:  y[m][n] = sum_k x[m][k] * w[n][k].
 * Tile order: k is cut into runs of 32; inside a run E is the fmaf chain over the even k from 0 and O the one over the odd k,
 * ascending; then C <- C + (E + O), from C = 0.  Denormal inputs and results count as zero, in every operation.  This is what
 * the AMX instruction TDPBF16PS computes, so a row gets the same bits whatever the number of rows and the CPU.
 * Weights are packed in panels of 16 outputs, [K/2][16][2]: gdn_matmul_pack.  K is a multiple of 32 (padded with zeros). */
enum { GDN_PANEL = 16, GDN_RUN = 32, GDN_MATMUL_ROWS = 64 };
typedef struct gdn_matmul_job {
    int             n_rows, n_inputs;    /* M >= 1; K */
    int             n_panels, n_outputs; /* 16*(n_panels-1) < n_outputs <= 16*n_panels; only n_outputs are written */
    const uint16_t *w;                   /* [n_panels][K/2][16][2] bf16 */
    const uint16_t *x;                   /* [M][x_stride] bf16, 64-byte aligned rows: x_stride a multiple of 32 */
    size_t          x_stride;
    float          *y; /* [M][y_stride] */
    size_t          y_stride;
    float          *work; /* GDN_MATMUL_ROWS * K floats, 64-byte aligned */
    const uint16_t *soon; /* two panels of K inputs that will be wanted next, or NULL: a hint */
} gdn_matmul_job;
typedef void gdn_matmul_fn(const gdn_matmul_job *job);

gdn_matmul_fn gdn_matmul_ref, gdn_matmul_avx2, gdn_matmul_avx512, gdn_matmul_amx, gdn_matmul_neon;

/* Rotary embedding, half-split, of the first 2*n_pairs elements of each head, in place:
 *   x'[i] = fma(x[i], cos[i], -(x[i+n] * sin[i])),  x'[i+n] = fma(x[i+n], cos[i], x[i] * sin[i]),  n = n_pairs */
typedef struct gdn_rope_job {
    int          n_heads, n_pairs;
    const float *cos, *sin; /* [n_pairs] of this position */
    float       *x;         /* [heads][stride] */
    size_t       stride;
} gdn_rope_job;
typedef void gdn_rope_fn(const gdn_rope_job *job);

gdn_rope_fn gdn_rope_ref, gdn_rope_avx2, gdn_rope_avx512, gdn_rope_neon;

/* Causal attention of consecutive tokens of one lane and the query heads of one key-value head, over paged keys, values.
 * Token i sees positions from..first_position+i.  They are taken in blocks of GDN_PAGE (a page), ascending, the first block
 * without what stands before `from`, the last one cut off after the token's own position; per block, with the running
 * maximum M, sum L, accumulator A (from -inf, 0, 0):
 *   s[p] = (q . k[p]) * scale, the dot in strided lanes: element d by fmaf into lane d%32, from 0, d ascending,
 *   then folded as in gdn_qk_norm_fn
 *   M' = max(M, s[p]...);  c = exp(M - M') (so 0 for the first block);  e[p] = exp(s[p] - M')
 *   L = fma(L, c, sum of e), e[p] added to lane p%32, from 0, p ascending, then folded likewise
 *   A[d] = A[d]*c, then A[d] = fma(e[p], v[p][d], A[d]), p ascending
 * y = A / L.  A token's bits depend on nothing past its position or before `from`, nor on which tokens or heads share the call;
 * nothing past the last token's position is read.  y overlaps nothing. */
enum { GDN_PAGE = 64 };
typedef struct gdn_attention_job {
    int       n_tokens, n_heads, dim; /* tokens; query heads of this key-value head; dim a multiple of 32 up to 256 */
    long long first_position;
    int       from; /* 0..GDN_PAGE-1, at most first_position */
    float     scale;
    gdn_type  kv_type;
    const float       *q; /* [T][q_stride], head h at h*q_head */
    size_t             q_stride, q_head;
    const void *const *keys, *const *values; /* [pages]: each [GDN_PAGE][kv_stride] of kv_type, at this head */
    size_t kv_stride;
    float *y; /* [T][y_stride], head h at h*y_head */
    size_t y_stride, y_head;
} gdn_attention_job;
typedef void gdn_attention_fn(const gdn_attention_job *job);

gdn_attention_fn gdn_attention_ref, gdn_attention_avx2, gdn_attention_avx512, gdn_attention_neon;

/* Gated products of rows of n numbers:  SwiGLU  y = R((a * sigmoid(a)) * b);   gate  y = R(b * sigmoid(a)). */
typedef struct gdn_gate_job {
    int          n_rows, n;
    gdn_type     y_type;
    int          swiglu; /* 1: SwiGLU; 0: gate */
    const float *a, *b;  /* [rows][a_stride], [rows][b_stride] */
    void        *y;      /* [rows][y_stride]; may be a or b when y_type is f32 and the strides agree */
    size_t       a_stride, b_stride, y_stride;
} gdn_gate_job;
typedef void gdn_gate_fn(const gdn_gate_job *job);

gdn_gate_fn gdn_gate_ref, gdn_gate_avx2, gdn_gate_avx512, gdn_gate_neon;

/* One consistent set of variants; immutable once filled. */
typedef struct gdn_kernels {
    gdn_conv_silu_fn  *conv_silu;
    gdn_qk_norm_fn    *qk_norm;
    gdn_gates_fn      *gates;
    gdn_delta_fn      *delta;
    gdn_gated_norm_fn *gated_norm;
    gdn_rms_norm_fn   *rms_norm;
    gdn_matmul_fn     *matmul;
    gdn_rope_fn       *rope;
    gdn_attention_fn  *attention;
    gdn_gate_fn       *gate;
} gdn_kernels;

/* dst [panels][K/2][16][2] from rows of a checkpoint's weight [n_outputs][n_inputs] in bf16; K is n_inputs rounded up to 32, and
 * what is padded is zero. */
void gdn_matmul_pack(uint16_t *dst, const uint16_t *src, int n_outputs, int n_inputs);

/* dst [n_inputs]: row `output` of a packed weight. */
void gdn_matmul_unpack_row(uint16_t *dst, const uint16_t *w, int output, int n_inputs);

/* The levels, lowest first.  Each needs the ones before it (on its own architecture). */
typedef struct gdn_level {
    const char *name;  /* "ref", "avx2", "avx512", "amx", "neon" */
    unsigned    flags; /* of gdn_cpu_flags, all needed */
} gdn_level;

/* Level i of this build, or NULL past the last.  Level 0 is "ref". */
const gdn_level *gdn_kernels_level(int i);

/* Fill *kernels with the best variant of each that `flags` (from gdn_cpu_flags, or a level's) allows; 0 gives ref. */
void gdn_kernels_fill(gdn_kernels *kernels, unsigned flags);

#endif
