/* format/checkpoint.h - the tensors of a text model by what they are, from a Hugging Face checkpoint.
 *
 * Shapes are in the letters of config.h, matrices [out][in] as stored; I, Im, Is widths of dense, routed and shared experts;
 * KD = Hk*dk, VD = Hv*dv, CD = 2*KD + VD.  Norms are stored as w and used as 1+w, except the linear layers' own. */
#ifndef GDN_FORMAT_CHECKPOINT_H
#define GDN_FORMAT_CHECKPOINT_H
#include "format/config.h"
#include "format/safetensors.h"

/* Either the four projections of Qwen3.5, or the two of Qwen3-Next, whose rows are interleaved: see gdn_rows_of_qkvz. */
typedef struct gdn_linear_tensors {
    const gdn_tensor *in_proj_qkv, *in_proj_z;   /* [CD][h], [VD][h] */
    const gdn_tensor *in_proj_b, *in_proj_a;     /* [Hv][h] */
    const gdn_tensor *in_proj_qkvz, *in_proj_ba; /* [CD+VD][h], [2*Hv][h] */
    const gdn_tensor *conv1d;                    /* [CD][1][K] */
    const gdn_tensor *A_log, *dt_bias;           /* [Hv] */
    const gdn_tensor *norm;                      /* [dv], used as stored */
    const gdn_tensor *out_proj;                  /* [h][VD] */
} gdn_linear_tensors;

typedef struct gdn_attention_tensors {
    const gdn_tensor *q_proj;          /* [2*H*D][h]: for each head D rows of query, D of gate */
    const gdn_tensor *k_proj, *v_proj; /* [G*D][h] */
    const gdn_tensor *o_proj;          /* [h][H*D] */
    const gdn_tensor *q_norm, *k_norm; /* [D] */
} gdn_attention_tensors;

typedef struct gdn_mlp_tensors {
    const gdn_tensor *gate_proj, *up_proj, *down_proj; /* [I][h], [I][h], [h][I] */
} gdn_mlp_tensors;

/* The routed experts are packed, or one by one. */
typedef struct gdn_moe_tensors {
    const gdn_tensor *router;                   /* [E][h] */
    const gdn_tensor *gate_up_proj, *down_proj; /* [E][2*Im][h], gate before up; [E][h][Im] */
    gdn_mlp_tensors  *experts;                  /* [E], widths Im; NULL when packed */
    gdn_mlp_tensors   shared;                   /* width Is */
    const gdn_tensor *shared_gate;              /* [1][h] */
} gdn_moe_tensors;

/* Of a pair, config.layers says which is filled; the other is NULLs. */
typedef struct gdn_layer_tensors {
    const gdn_tensor     *input_norm, *post_norm; /* [h] */
    gdn_linear_tensors    linear;
    gdn_attention_tensors attention;
    gdn_mlp_tensors       mlp;
    gdn_moe_tensors       moe;
} gdn_layer_tensors;

typedef struct gdn_mtp_tensors {
    const gdn_tensor *norm_embedding, *norm_hidden, *norm; /* [h] */
    const gdn_tensor *fc;    /* [h][2h]: columns of the embedding, then of the hidden state */
    gdn_layer_tensors layer; /* full attention; MoE if the model has experts */
} gdn_mtp_tensors;

enum { GDN_UNKNOWN_NAMES = 8 };

/* A bound checkpoint: a copy of the config, and tensors, which it borrows. */
typedef struct gdn_checkpoint {
    gdn_model_config   config;
    const gdn_tensor  *embed;   /* [V][h] */
    const gdn_tensor  *norm;    /* [h] */
    const gdn_tensor  *lm_head; /* [V][h]; embed when tied */
    bool               tied, has_mtp;
    gdn_mtp_tensors    mtp;                        /* when has_mtp */
    gdn_layer_tensors *layers;                     /* [L] */
    size_t             n_unknown;                  /* tensors that are no part of the model, */
    const char        *unknown[GDN_UNKNOWN_NAMES]; /* the first of them, */
    size_t             n_vision;                   /* and those of a vision tower, which are expected */
} gdn_checkpoint;

/* Find every tensor of the text model, named with the prefix "model.language_model.", "model." or none, and check its shape and
 * type; the MTP layer ("mtp.") is optional.  Norms, A_log and dt_bias must be finite.
 * BAD_FILE: a tensor is missing, of another shape or not finite; UNSUPPORTED: quantised, of a type that gdn does not compute
 * with, or in the layout of MLX; NO_MEMORY.  Free with gdn_checkpoint_close. */
gdn_status gdn_checkpoint_bind(gdn_checkpoint *checkpoint, const gdn_model_config *config, const gdn_tensors *tensors,
                               gdn_error *err);
void       gdn_checkpoint_close(gdn_checkpoint *checkpoint); /* idempotent; a zeroed struct is allowed */

/* Qwen3-Next's rows: for each key head, in_proj_qkvz has dk rows of q, dk of k, r*dv of v and r*dv of z (r = Hv/Hk), and
 * in_proj_ba r of b and r of a.  Row i of in_proj_qkv is row qkv[i] of in_proj_qkvz, and so on.  qkv [CD], z [VD]; b, a [Hv]. */
void gdn_rows_of_qkvz(const gdn_model_config *config, int *qkv, int *z);
void gdn_rows_of_ba(const gdn_model_config *config, int *b, int *a);

/* Numbers in the text model, and in its MTP layer, from the shapes alone. */
uint64_t gdn_text_parameters(const gdn_model_config *config, bool tied);
uint64_t gdn_mtp_parameters(const gdn_model_config *config);

#endif
