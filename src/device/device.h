/* device.h - operations over whole batches on one device: outputs are split over threads, sums never. */
#ifndef GDN_DEVICE_DEVICE_H
#define GDN_DEVICE_DEVICE_H
#include "gdn/delta.h"
#include "base/threads.h"
#include "kernel/kernel.h"

/* One lane of a layer call: its rows in the batch and where its memory is. */
typedef struct gdn_core_lane {
    size_t         first_row;
    int            n_rows;
    const uint8_t *mask;      /* [n_rows] or NULL */
    const void    *tail_in;   /* [K-1][C] or NULL: zeros */
    void          *tail_out;  /* may be tail_in */
    const float   *state_in;  /* [Hv][Dv][Dk], rows in lane order, or NULL: zeros */
    float         *state_out; /* may be state_in */
} gdn_core_lane;

typedef struct gdn_core_args {
    const gdn_delta_config  *config;
    const gdn_delta_weights *weights;
    int                      n_lanes;
    const gdn_core_lane     *lanes;
    const void              *qkv, *z, *a, *b;      /* rows, as in gdn_layer_args */
    size_t                   qkv_stride, z_stride; /* likewise, and given */
    void                    *y;                    /* NULL: only tails and states move (z is then not read) */
} gdn_core_args;

/* Convolution, q/k norm, gates, recurrence and gated norm, one task a lane and key head: what a layer does between its
 * projections, and what a rollback replays.  Arguments are trusted. */
void gdn_core_delta(gdn_compute *compute, const gdn_core_args *args);

/* OK or BAD_ARGUMENT with a sentence: the ranges stated in delta.h. */
gdn_status gdn_config_check(const gdn_delta_config *config, gdn_error *err);
gdn_status gdn_batch_check(const gdn_batch *batch, gdn_error *err);

static inline int gdn_channels(const gdn_delta_config *c)
{
    return 2 * c->n_key_heads * c->key_dim + c->n_value_heads * c->value_dim;
}
static inline size_t gdn_values(const gdn_delta_config *c) { return (size_t)c->n_value_heads * c->value_dim; }
static inline size_t gdn_type_bytes(gdn_type type) { return type == GDN_BF16 ? 2 : 4; }

/* Rows of lane `lane` in a checked batch. */
static inline int gdn_batch_rows(const gdn_batch *b, int lane) { return b->n_tokens ? b->n_tokens[lane] : b->length; }

/* The batch row of a lane's first token. */
static inline size_t gdn_first_row(const gdn_batch *b, int lane)
{
    if (!b->n_tokens) return (size_t)lane * b->length;
    size_t row = 0;
    for (int i = 0; i < lane; i++) row += b->n_tokens[i];
    return row;
}

#endif
