/* model.h - a whole text model of the Qwen3.5 family in double and in plain loops: dense or with experts, Qwen3-Next's fused
 * projections, heads of any size, the MTP layer.  It shares no code with src/, and rounds nowhere unless it is asked to.  Weights
 * are as a checkpoint holds them: nothing is permuted, no 1 is added to a norm (golden/oracle_checkpoint.h reads them). */
#ifndef TESTS_ORACLE_MODEL_H
#define TESTS_ORACLE_MODEL_H
#include "oracle/oracle.h"
#include <stddef.h>
#include <stdint.h>

/* Letters as in gdn's config.h; matrices are [out][in]. */
typedef struct oracle_config {
    int    vocab_size, hidden_size, n_layers;
    int    n_heads, n_kv_heads, head_dim, rope_dims; /* H, G, D of full attention; dims that rotate, up to 256 */
    int    n_experts, n_experts_used, sum_to_1;      /* E, k; whether the weights of the chosen ones sum to 1 */
    double rope_theta, rms_eps;
} oracle_config;

typedef struct oracle_matrix {
    int           rows, cols;
    const double *w;      /* [rows][cols] */
    int           rounds; /* 1: what it multiplies to bf16 first; 2: to the sum of two, the second of what is left */
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

typedef struct oracle_model {
    oracle_config config;
    int           rounds; /* every matrix once; twice: lm_head, the first mixer's, and a router behind it */
    oracle_matrix embed, lm_head;
    const double *norm;
    oracle_block *blocks;                                  /* [L] */
    const double *mtp_embedding_norm, *mtp_norm_of_hidden; /* [h]; NULL without MTP */
    const double *mtp_norm;
    oracle_matrix mtp_fc; /* [h][2h] */
    oracle_block  mtp;
    void        **owned;
    int           n_owned;
} oracle_model;

/* What a linear layer remembers. */
typedef struct oracle_memory {
    double *tail, *state; /* [K-1][C], oldest input first; [Hv][dv][dk]; NULL for a layer of full attention */
} oracle_memory;

typedef struct oracle_run {
    int     n_tokens, n_layers;
    double *hidden; /* [L+1][T][h]: the embedding, what each layer but the last puts out, the last's after the norm */
    oracle_memory *memory; /* [L], after the first n_remembered tokens */
    int           *chosen; /* [L][T][k]: ids of the experts used, ascending; 0s in a dense layer */
} oracle_run;

/* Tokens from the beginning of a text, 0 <= n_remembered <= n_tokens.  Free with oracle_run_close. */
oracle_run oracle_model_run(const oracle_model *model, int n_tokens, const int32_t *ids, int n_remembered);
void       oracle_run_close(oracle_run *run);

/* Row t of layer `layer` of `hidden`; -1 is the embedding, L-1 the output of the model. */
const double *oracle_run_hidden(const oracle_run *run, const oracle_model *model, int layer, int t);

/* logits [n][V] of outputs of the model, or of its MTP layer, x [n][h]. */
void oracle_model_logits(const oracle_model *model, int n, const double *x, double *logits);

/* The MTP layer after its norm, y [T][h], from the outputs of the model at positions 0..T-1, x [T][h], and the token that
 * follows each.  y is an output that the layer can be applied to again. */
void oracle_model_mtp(const oracle_model *model, int n_tokens, const double *x, const int32_t *next_ids, double *y);

#endif
