/* forward.h - one forward pass, and the memory that it works in. */
#ifndef GDN_MODEL_FORWARD_H
#define GDN_MODEL_FORWARD_H
#include "model/model.h"

/* What the experts of a layer work in.  R rows of k experts each: slot s of R*k is a row at an expert, those of an expert
 * stand together; R more are the rows at the shared one.  Wm: the widest expert, padded. */
typedef struct gdn_moe_space {
    size_t       width;    /* Wm */
    int         *chosen;   /* [R][k]: ids, ascending */
    float       *weight;   /* [R][k] */
    int         *slot;     /* [R][k] */
    int         *row;      /* [R*k]: of a slot */
    int         *first;    /* [E+1]: slots of expert e are first[e] .. first[e+1]-1 */
    uint16_t    *in;       /* [R*k][h] */
    uint16_t    *act;      /* [R*k + R][Wm] */
    float       *out;      /* [R*k + R][h] */
    gdn_product *products; /* [E+1] */
} gdn_moe_space;

/* Rows that are multiples of 4 KiB apart compete for the same lines of a cache, and a matrix product touches many rows at a
 * time: so rows of inputs (bf16) stand a line further apart than they are long, and rows of outputs (f32) that fill 4 KiB three. */
static inline size_t gdn_input_stride(size_t n) { return n + 32; }
static inline size_t gdn_output_stride(size_t n) { return n < 1024 ? n : n + 48; }

/* Activations of one forward.  R rows; widths are the largest that any layer needs. */
struct gdn_workspace {
    int                 max_rows, max_positions;
    float              *x;         /* [R][h]: the residual stream */
    uint16_t           *u;         /* [R, and R second parts][input stride]: what a matrix is multiplied with */
    float              *p[4];      /* [R][output stride]: projections */
    float              *y;         /* [R][widest input] */
    float              *cos, *sin; /* [R][rope_dims/2] */
    gdn_attention_lane *lanes;     /* [R]: those that have rows */
    gdn_moe_space       moe;       /* with experts */
    void               *block;     /* all of them */
    size_t              n_bytes;   /* of the block */
};

typedef struct gdn_pass {
    const gdn_model        *m;
    gdn_compute            *compute;
    gdn_workspace          *w;
    gdn_cache              *cache; /* NULL: there is no linear layer */
    gdn_kv                 *kv;
    const gdn_forward_args *a;
    const int *positions;        /* [n_lanes] of first rows; NULL: the ends of the lanes of kv, where room is made */
    int        from;             /* the first position that attention sees */
    bool       keys_only;        /* nothing but keys and values of the layer is wanted */
    bool       split;            /* matrices multiply two parts: those of the first mixer, and of a router behind it */
    int        n_rows, n_active; /* rows; lanes that have any */
} gdn_pass;

/* The arguments are checked, kv has room, rows have their places and x their embeddings.  With no rows nothing else is due. */
gdn_status gdn_pass_begin(gdn_pass *f, gdn_error *err);

/* x += mixer, x += feed-forward.  The first layer ends `split`. */
gdn_status gdn_pass_layer(gdn_pass *f, const gdn_layer_weights *l, gdn_error *err);

/* Put out what is wanted of x under its last norm. */
void gdn_pass_head(const gdn_pass *f, const float *weight);

/* x += what the experts of each row make of it; w->u is its norm. */
void gdn_moe(const gdn_pass *f, const gdn_moe_weights *moe);

#endif
