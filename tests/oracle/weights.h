/* weights.h - the tensors of a model as doubles, as the files hold them: nothing is permuted, no 1 is added to a norm. */
#ifndef TESTS_ORACLE_WEIGHTS_H
#define TESTS_ORACLE_WEIGHTS_H
#include "oracle/model.h"
#include "oracle/oracle.h"
#include <stddef.h>

typedef struct oracle_matrix {
    int           rows, cols;
    const double *w;      /* [rows][cols] */
    int           rounds; /* what it multiplies to bf16 first */
} oracle_matrix;

typedef struct oracle_swiglu {
    oracle_matrix gate, up, down;
} oracle_swiglu;

typedef struct oracle_ffn {
    oracle_swiglu  dense;
    oracle_matrix  router, shared_gate; /* [E][h], [1][h]; router.w is NULL when dense */
    oracle_swiglu  shared;
    oracle_swiglu *experts; /* [E] */
} oracle_ffn;

typedef struct oracle_block {
    const double *input_norm, *post_norm;          /* [h] */
    oracle_matrix q, k, v, o;                      /* full attention; q.w is NULL in a linear layer */
    const double *q_norm, *k_norm;                 /* [D] */
    oracle_matrix in_qkv, in_z, in_b, in_a, delta; /* linear; delta is its output matrix */
    oracle_matrix in_qkvz, in_ba;                  /* instead of those four, in Qwen3-Next */
    oracle_layer  linear;
    oracle_ffn    ffn;
} oracle_block;

struct oracle_model {
    gdn_model_config config;
    int              rounds; /* every matrix */
    oracle_matrix    embed, lm_head;
    const double    *norm;
    oracle_block    *blocks;                                  /* [L] */
    const double    *mtp_embedding_norm, *mtp_norm_of_hidden; /* [h]; NULL without MTP */
    const double    *mtp_norm;
    oracle_matrix    mtp_fc; /* [h][2h] */
    oracle_block     mtp;
    void           **owned;
    int              n_owned;
};

void *oracle_allocate(size_t n, size_t bytes); /* zeroed; aborts instead of returning NULL; free with free */

#endif
