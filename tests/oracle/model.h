/* model.h - a whole text model of the Qwen3.5 family in double and in plain loops: dense or with experts in either layout,
 * Qwen3-Next's fused projections, heads of any size, the MTP layer.  src/format reads the files; which tensor is what, and all
 * that is computed with it, is stated here anew.  It rounds nowhere unless it is asked to.
 *
 * Letters as in format/config.h; matrices [out][in].  What cannot be had (a file, memory) aborts with a message. */
#ifndef TESTS_ORACLE_MODEL_H
#define TESTS_ORACLE_MODEL_H
#include "format/config.h"
#include <stdint.h>

typedef struct oracle_model oracle_model;

oracle_model *oracle_model_open(const char *folder);          /* free with oracle_model_close */
oracle_model *oracle_model_open_rounding(const char *folder); /* rounds what a matrix multiplies to bf16, as gdn does */
void          oracle_model_close(oracle_model *model);
const gdn_model_config *oracle_model_config(const oracle_model *model);

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
