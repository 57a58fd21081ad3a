/* dense.h - the operations of a model around the recurrence, over rows, split over threads. */
#ifndef GDN_DEVICE_DENSE_H
#define GDN_DEVICE_DENSE_H
#include "device/device.h"

/* A weight matrix [n_outputs][n_inputs], packed for gdn_matmul_fn; k is n_inputs padded to a multiple of 32. */
typedef struct gdn_linear {
    uint16_t *w;
    int       n_outputs, n_inputs, k;
} gdn_linear;

static inline int    gdn_padded(int n) { return (n + 31) / 32 * 32; }
static inline size_t gdn_linear_bytes(int n_outputs, int n_inputs)
{
    return (size_t)(n_outputs + GDN_PANEL - 1) / GDN_PANEL * GDN_PANEL * (size_t)gdn_padded(n_inputs) *
           sizeof(uint16_t);
}

/* Bytes of scratch a thread needs for products of n_rows rows and k inputs, and for lanes of n_pages pages. */
size_t gdn_dense_scratch_bytes(int n_rows, int k, int n_pages);

/* Give every thread at least n_bytes of scratch.  NO_MEMORY leaves what there was. */
gdn_status gdn_compute_reserve(gdn_compute *compute, size_t n_bytes, gdn_error *err);

/* y [rows][y_stride] = x [rows][x_stride] times the transpose of the matrix; x is bf16 with zeros from n_inputs to k.  No rows: y
 * is untouched.  With `up`, of the shape of `linear`, what is written is act [rows][act_stride] = SwiGLU(linear * x, up * x),
 * rounded to bf16, and neither product leaves the cache.  With `split`, x has n_rows rows more, what rounding left of the first
 * ones, and y is the sum of both products; the matrix is read once. */
typedef struct gdn_product {
    const gdn_linear *linear, *up;
    int               n_rows, split;
    const uint16_t   *x;
    size_t            x_stride;
    float            *y;
    size_t            y_stride;
    uint16_t         *act;
    size_t            act_stride;
    int               n_tasks, panels; /* of a task; for gdn_dense_products alone */
} gdn_product;

/* Products that do not wait for one another, handed to the threads as one piece of work. */
void gdn_dense_products(gdn_compute *compute, gdn_product *products, int n);

/* As gdn_rms_norm_fn. */
void gdn_dense_rms_norm(gdn_compute *compute, const gdn_rms_norm_job *job);

/* As gdn_gate_fn. */
void gdn_dense_gate(gdn_compute *compute, const gdn_gate_job *job);

/* Rows of n numbers:  x += y;  and y = x rounded to bf16, with `split` n_rows rows more: what that leaves of x, rounded. */
void gdn_dense_add(gdn_compute *compute, int n_rows, int n, float *x, size_t x_stride, const float *y, size_t y_stride);
void gdn_dense_round(gdn_compute *compute, int n_rows, int n, const float *x, size_t x_stride, uint16_t *y,
                     size_t y_stride, int split);

/* Causal attention of a ragged batch. */
typedef struct gdn_attention_lane {
    size_t    first_row;
    int       n_rows, lane; /* lane: its number for `pages` */
    long long position;     /* of its first row */
} gdn_attention_lane;

/* Fill keys and values [n_pages] with the pages of a lane at key-value head `head`. */
typedef void gdn_pages_fn(const void *arg, int lane, int head, int n_pages, const void **keys, const void **values);

typedef struct gdn_attention_rows {
    int                       n_lanes;
    const gdn_attention_lane *lanes;
    int                       n_heads, n_kv_heads, dim;
    int                       from; /* positions before it are not seen: gdn_attention_fn */
    gdn_type                  kv_type;
    size_t                    kv_stride;
    gdn_pages_fn             *pages;
    const void               *pages_arg;
    const float              *q; /* [rows][H][D] */
    float                    *y; /* [rows][H][D] */
} gdn_attention_rows;
void gdn_dense_attention(gdn_compute *compute, const gdn_attention_rows *rows);

#endif
