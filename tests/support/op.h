/* op.h - the operations with a memory (convolution, delta rule) seen alike: rows of tokens in, rows out, a state from and to.
 * What the law says of one it says of all, so the tests of the law are written once, over this.
 *
 * A failed allocation aborts. */
#ifndef TESTS_SUPPORT_OP_H
#define TESTS_SUPPORT_OP_H
#include "gdn/delta.h"
#include "support/random.h"
#include "support/typed.h"

enum { OP_INPUTS = 5, OP_COUNT = 10 };
/* Of those that ops_open makes: a fused one with tiled heads, several to a key head; and a fused one of 128x128. */
enum { OP_TILED = 5, OP_MODEL = 6 };

typedef enum op_kind { OP_CONV, OP_FUSED, OP_GATED } op_kind; /* x; q k v a b; q k v g beta */

typedef struct op {
    const char *name;
    op_kind     kind;
    int         n_inputs;
    gdn_type    in_type[OP_INPUTS], y_type;
    size_t      in_width[OP_INPUTS], y_width; /* elements of a token */
    size_t      state_bytes;
    /* One of these, with everything but batch, rows and states set; the parameters it points to are kept in `held`. */
    gdn_conv_args  conv;
    gdn_delta_args delta;
    float         *held;
} op;

/* All operations of the tests: recipes, types, head maps, gates, orders, small dims and 128; opened with numbers from r. */
void ops_open(op ops[OP_COUNT], rng *r);
void ops_close(op ops[OP_COUNT]);

/* What a call works on. */
typedef struct op_call {
    gdn_batch   batch;
    const void *in[OP_INPUTS];
    void       *y;
    gdn_slots   state_in, state_out;
} op_call;
gdn_status op_run(const op *o, gdn_compute *compute, const op_call *call, gdn_error *err);

/* A sequence of tokens, the state it starts from (NULL: none), and what must come out. */
typedef struct sequence {
    int   n;
    void *in[OP_INPUTS];
    void *start, *end; /* [state_bytes] */
    void *y;           /* [n] rows */
} sequence;

enum { SEQUENCE_FRESH = 1, SEQUENCE_TINY = 2 }; /* starts from no state; denormals and numbers near them */

/* n tokens with extremes strewn in, and their y and end as `compute` gives them for the sequence alone, in one call. */
sequence sequence_open(const op *o, gdn_compute *compute, rng *r, int n, int flags);
void     sequence_close(sequence *s);

/* A batch of pieces of sequences. */
typedef struct piece {
    const sequence *s;
    int             from, n; /* its tokens from .. from+n-1 */
} piece;

/* Rows for a call, and where each token stands in them; rows of a mask that are no token hold NaNs. */
typedef struct batch {
    op_call   call; /* without states */
    const op *o;
    int       n_lanes, n_rows;
    int      *counts; /* tokens of each lane */
    int     **rows;   /* [lane][token] */
    uint8_t  *mask;
    void     *memory[OP_INPUTS];
    piece    *pieces;
} batch;

typedef enum mask_style { MASK_LEFT, MASK_RIGHT, MASK_HOLES } mask_style; /* which side the padding is on */

batch batch_ragged(const op *o, int n_lanes, const piece *pieces);
batch batch_masked(const op *o, int n_lanes, const piece *pieces, rng *r, mask_style style);
void  batch_close(batch *b);

/* 1 if every token's y has the bits its sequence says and every other row is 0; otherwise prints the first difference. */
int batch_outputs_hold(const batch *b);

/* 1 if n elements at got are those at want; otherwise prints the first difference. */
int bits_equal(const char *what, gdn_type type, const void *got, const void *want, size_t n);

void *op_alloc(size_t bytes); /* calloc */

#endif
