/* model.h - a loaded text model, and its forward pass over a ragged batch. */
#ifndef GDN_MODEL_MODEL_H
#define GDN_MODEL_MODEL_H
#include "device/dense.h"
#include "format/checkpoint.h"
#include "gdn/gdn.h"
#include "state/kv.h"

typedef struct gdn_delta_layer_weights {
    gdn_linear        in_qkv, in_z, in_b, in_a, out;
    gdn_delta_weights delta; /* its arrays are owned by the model */
} gdn_delta_layer_weights;

typedef struct gdn_attention_weights {
    gdn_linear q, k, v, o;
    float     *q_norm, *k_norm; /* [D], 1 added */
} gdn_attention_weights;

/* A width that is no multiple of 32 is padded with zero rows of gate and up, which silu(0)*0 keeps at zero. */
typedef struct gdn_mlp_weights {
    gdn_linear gate, up, down;
} gdn_mlp_weights;

typedef struct gdn_moe_weights {
    gdn_linear       router, shared_gate; /* [E][h], [1][h] */
    gdn_mlp_weights *experts;             /* [E+1]: the last is the shared one */
} gdn_moe_weights;

typedef struct gdn_layer_weights {
    gdn_mixer               mixer;
    gdn_ffn                 ffn;
    int                     number;                 /* among the layers of its mixer */
    float                  *input_norm, *post_norm; /* [h], 1 added */
    gdn_delta_layer_weights linear;                 /* filled for GDN_MIXER_LINEAR */
    gdn_attention_weights   attention;              /* filled for GDN_MIXER_FULL */
    gdn_mlp_weights         mlp;                    /* filled for GDN_FFN_DENSE */
    gdn_moe_weights         moe;                    /* filled for GDN_FFN_MOE */
} gdn_layer_weights;

/* The layer that drafts: from what the model puts out at a position and the token that follows, the one after that. */
typedef struct gdn_mtp_weights {
    float            *norm_embedding, *norm_hidden, *norm; /* [h], 1 added */
    gdn_linear        fc;                                  /* [h][2h]: the embedding's columns come first */
    gdn_layer_weights layer; /* full attention: in a gdn_kv the layer behind those of the model */
} gdn_mtp_weights;

typedef struct gdn_model {
    gdn_model_config   config; /* as the checkpoint says */
    gdn_delta_config   delta;  /* of its linear layers: gdn_model_delta */
    int                n_delta_layers, n_attention_layers;
    uint16_t          *embed;    /* [V][h] bf16; NULL when tied: then its rows are those of lm_head */
    gdn_linear         lm_head;  /* [V][h] */
    float             *norm;     /* [h], 1 added */
    float             *inv_freq; /* [rope_dims/2] */
    gdn_layer_weights *layers;   /* [L] */
    bool               has_mtp;
    gdn_mtp_weights    mtp;     /* filled when has_mtp */
    gdn_mlp_weights   *experts; /* [L, and 1 of MTP][E+1], or NULL: those that layers' moe.experts point to */
    unsigned char     *weights; /* all numbers above, in one block: gdn_model_bytes */
} gdn_model;

/* How the linear layers of a model run: f32 activations, Hugging Face's numerics, heads of 16 as heads of 32 whose other half
 * is zero (docs/NUMERICS.md says why that is exact). */
gdn_delta_config gdn_model_delta(const gdn_model_config *config);

/* Bytes of the packed weights of a text model, and of its MTP part if that is loaded. */
size_t gdn_model_bytes(const gdn_model_config *config, bool tied, bool mtp);

/* Load a checkpoint into packed memory, if `mtp` with the MTP part where it has one; progress, of gdn_model_bytes, may be NULL.
 * UNSUPPORTED: a hidden size that is no multiple of 32; NO_MEMORY.  The checkpoint is not needed afterwards.  Free with
 * gdn_model_close. */
gdn_status gdn_model_load(gdn_model **out, const gdn_checkpoint *checkpoint, bool mtp, gdn_load_progress_fn *progress,
                          void *arg, gdn_error *err);
void       gdn_model_close(gdn_model *model); /* NULL is allowed */

/* A model of this shape without a checkpoint: random weights of natural size, which the seed alone decides; config->tie says
 * whether the output matrix is the embedding, `mtp` whether there is an MTP part, which changes no other number.  Else as
 * gdn_model_load. */
gdn_status gdn_model_random(gdn_model **out, const gdn_model_config *config, uint64_t seed, bool mtp,
                            gdn_load_progress_fn *progress, void *arg, gdn_error *err);

/* Room for forwards of at most max_rows tokens. */
typedef struct gdn_workspace gdn_workspace;
gdn_status gdn_workspace_open(gdn_workspace **out, const gdn_model *model, gdn_compute *compute, int max_rows,
                              int max_positions, gdn_error *err);
void       gdn_workspace_close(gdn_workspace *workspace);       /* NULL is allowed */
size_t     gdn_workspace_bytes(const gdn_workspace *workspace); /* of its memory, without the scratch of the threads */

/* Tokens of lanes 0..n_lanes-1 of `cache` and `kv`, lane after lane; ids are 0..V-1.  Logits [n_wanted][V] of the rows named in
 * `wanted`.  hidden [rows][h], when not NULL, receives the output of the last layer after the final norm, in
 * bf16's numbers. */
typedef struct gdn_forward_args {
    int            n_lanes;
    const int     *n_tokens; /* [n_lanes] */
    const int32_t *tokens;   /* [rows] */
    int            n_wanted;
    const int     *wanted;
    int            n_logits; /* compute those of tokens 0..n_logits-1 only; 0: of all V */
    float         *logits, *hidden;
} gdn_forward_args;

/* Runs the layers and moves both caches forward by n_tokens.  Nothing is allocated.  Errors leave both as they were: NO_SLOT (no
 * state slot or page is free), BAD_ARGUMENT (an id, a count, a length). */
gdn_status gdn_model_forward(const gdn_model *model, gdn_compute *compute, gdn_workspace *workspace, gdn_cache *cache,
                             gdn_kv *kv, const gdn_forward_args *args, gdn_error *err);

/* Runs the MTP layer on rows of lanes of `kv`, whose last layer, number n_attention_layers, is this one's; those of lane i begin at
 * positions[i], 1 or more, for which kv has pages.  A row at position t takes the token there and hidden [rows][h], what the model
 * put out at t-1; its logits are a draft of the token of t+1.  So its keys and values depend on the tokens up to t, as those of
 * the model's layers at t do, and there is none at 0.  args->hidden, when not NULL, receives the output M after the layer's own
 * norm: to draft further, feed M and the drafted token at t+1.  It may be `hidden` itself.  If neither that nor logits are wanted,
 * keys and values are all that is computed: they are of one layer, and need no others.
 * kv keeps its lengths.  Nothing is allocated.  UNSUPPORTED: the model has no MTP part; BAD_ARGUMENT as above. */
gdn_status gdn_mtp_forward(const gdn_model *model, gdn_compute *compute, gdn_workspace *workspace, gdn_kv *kv,
                           const gdn_forward_args *args, const int *positions, const float *hidden, gdn_error *err);

#endif
