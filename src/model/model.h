/* model.h - a loaded text model, and its forward pass over a ragged batch. */
#ifndef GDN_MODEL_MODEL_H
#define GDN_MODEL_MODEL_H
#include "device/dense.h"
#include "format/checkpoint.h"
#include "state/kv.h"

typedef struct gdn_delta_layer_weights {
    gdn_linear        in_qkv, in_z, in_b, in_a, out;
    gdn_delta_weights delta; /* its arrays are owned by the model */
} gdn_delta_layer_weights;

typedef struct gdn_attention_weights {
    gdn_linear q, k, v, o;
    float     *q_norm, *k_norm; /* [D], 1 added */
} gdn_attention_weights;

typedef struct gdn_layer_weights {
    gdn_mixer               mixer;
    int                     number;                 /* among the layers of its mixer */
    float                  *input_norm, *post_norm; /* [h], 1 added */
    gdn_delta_layer_weights linear;                 /* filled for GDN_MIXER_LINEAR */
    gdn_attention_weights   attention;              /* filled for GDN_MIXER_FULL */
    gdn_linear              gate, up, down;
} gdn_layer_weights;

typedef struct gdn_model {
    gdn_model_config   config;
    gdn_delta_config   delta; /* of its linear layers: f32 activations, Hugging Face's numerics */
    int                n_delta_layers, n_attention_layers;
    uint16_t          *embed;    /* [V][h] bf16 */
    gdn_linear         lm_head;  /* packed, also when tied */
    float             *norm;     /* [h], 1 added */
    float             *inv_freq; /* [rope_dims/2] */
    gdn_layer_weights *layers;
    void             **owned; /* every block of memory above */
    int                n_owned;
} gdn_model;

/* Load a dense checkpoint into packed memory.  UNSUPPORTED: experts, or linear heads whose dims are no multiples of 32; else as
 * gdn_checkpoint_bind.  Free with gdn_model_close. */
gdn_status gdn_model_load(gdn_model **out, const gdn_checkpoint *checkpoint, gdn_error *err);
void       gdn_model_close(gdn_model *model); /* NULL is allowed */

/* Room for forwards of at most max_rows tokens. */
typedef struct gdn_workspace gdn_workspace;
gdn_status gdn_workspace_open(gdn_workspace **out, const gdn_model *model, gdn_compute *compute, int max_rows,
                              int max_positions, gdn_error *err);
void       gdn_workspace_close(gdn_workspace *workspace); /* NULL is allowed */

/* Tokens of lanes 0..n_lanes-1 of `cache` and `kv`, lane after lane; ids are 0..V-1.  Logits [n_wanted][V] of the rows named in
 * `wanted`.  hidden [rows][h], when not NULL, receives the output of the last layer after the final norm. */
typedef struct gdn_forward_args {
    int            n_lanes;
    const int     *n_tokens; /* [n_lanes] */
    const int32_t *tokens;   /* [rows] */
    int            n_wanted;
    const int     *wanted;
    float         *logits, *hidden;
} gdn_forward_args;

/* Runs the layers and moves both caches forward by n_tokens.  Nothing is allocated.  Errors leave both as they were: NO_SLOT (no
 * state slot or page is free), BAD_ARGUMENT (an id, a count, a length). */
gdn_status gdn_model_forward(const gdn_model *model, gdn_compute *compute, gdn_workspace *workspace, gdn_cache *cache,
                             gdn_kv *kv, const gdn_forward_args *args, gdn_error *err);

#endif
