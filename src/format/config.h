/* format/config.h - what the JSON files of a model say: config.json, generation_config.json, tokenizer_config.json.
 *
 * Letters: h hidden size, V vocabulary, L layers; full attention: H query heads, G key/value heads, D head dim; linear attention:
 * Hk key heads, Hv value heads, dk, dv their dims, K taps; E experts.
 *
 * What a reading function fills is good only if it returned GDN_OK. */
#ifndef GDN_FORMAT_CONFIG_H
#define GDN_FORMAT_CONFIG_H
#include "format/tensor.h"
#include <stdbool.h>

enum { GDN_MAX_LAYERS = 1024, GDN_MAX_STOPS = 16 };

typedef enum gdn_family { GDN_QWEN3_5, GDN_QWEN3_NEXT } gdn_family;

/* Whether the output matrix is the embedding.  UNSAID: the file says both, or nothing; then it is when there is no lm_head. */
typedef enum gdn_tie { GDN_TIE_NO, GDN_TIE_YES, GDN_TIE_UNSAID } gdn_tie;

/* What a layer is made of. */
typedef enum gdn_mixer { GDN_MIXER_LINEAR, GDN_MIXER_FULL } gdn_mixer;
typedef enum gdn_ffn { GDN_FFN_DENSE, GDN_FFN_MOE } gdn_ffn;

typedef struct gdn_layer_kind {
    unsigned char mixer, ffn; /* gdn_mixer, gdn_ffn */
} gdn_layer_kind;

/* The text model.  Every number lies in the range behind it. */
typedef struct gdn_model_config {
    gdn_family      family;
    char            model_type[24];                    /* of the text model, as the file spells it */
    gdn_tensor_type type;                              /* BF16, F16 or F32: what the model was trained to run in */
    int             vocab_size, hidden_size, n_layers; /* V 1..4194304, h 1..65536, L 1..1024 */
    int             n_heads, n_kv_heads, head_dim;     /* H, G 1..1024, G divides H; D a multiple of 32 up to 256 */
    int             n_key_heads, n_value_heads;        /* Hk, Hv 1..1024, Hk divides Hv */
    int             key_dim, value_dim;                /* dk, dv: 16, or a multiple of 32 up to 256 */
    int             n_taps;                            /* K 2..8 */
    int             ffn_size;                          /* I of dense layers, 1..1048576; 0: there are none */
    int             n_experts, n_experts_used;         /* E 0..4096, 0: no MoE; k 1..E */
    int             expert_size, shared_expert_size;   /* Im, Is 1..1048576; 0 without MoE */
    bool            norm_topk_prob;                    /* the weights of the chosen experts are made to sum to 1 */
    int             rope_dims;                         /* leading dims of a head that rotate: even, 2..D */
    double          rope_theta, rms_eps;               /* 1..1e12; 1e-12..0.01 */
    int             max_positions;                     /* 1..16777216 */
    uint64_t        sum;                               /* gdn_checksum of the file; 0: there is none */
    int             n_mtp_layers;                      /* 0 or 1, as announced; the checkpoint decides */
    gdn_tie         tie;
    int             n_stops, stops[GDN_MAX_STOPS]; /* ids 0..V-1 that end a text (eos_token_id) */
    gdn_layer_kind  layers[GDN_MAX_LAYERS];        /* [L] */
} gdn_model_config;

/* Rows of in_proj_qkv, which are the channels of the convolution: 2*Hk*dk + Hv*dv. */
int gdn_config_channels(const gdn_model_config *config);

/* Read config.json of a model (a folder, or a file in it), nested under text_config or flat.
 * UNSUPPORTED: another architecture, or a variant that gdn does not compute, named in the message; BAD_FILE: damaged, a key
 * missing, or a value outside its range; IO; NO_MEMORY. */
gdn_status gdn_model_config_load(gdn_model_config *config, const char *model, gdn_error *err);
gdn_status gdn_model_config_parse(gdn_model_config *config, const void *text, size_t n, gdn_error *err);

/* The shape of a published Qwen3.5 model, by the size in its name.  BAD_ARGUMENT: no such name; the message lists them. */
gdn_status gdn_model_config_published(gdn_model_config *config, const char *name, gdn_error *err);

/* How the makers of a model sample from it.  What the file does not say has the neutral value in brackets. */
typedef struct gdn_generation_config {
    bool   do_sample;                     /* [false]: greedy */
    double temperature, top_p, min_p;     /* [1] 0..100, [1] 0..1, [0] 0..1 */
    double repetition_penalty;            /* [1] 0.01..100 */
    int    top_k;                         /* [0], all */
    int    n_stops, stops[GDN_MAX_STOPS]; /* the model's, and those of this file, none twice */
} gdn_generation_config;

/* Read generation_config.json, which a model need not have; `of` is the model's config.  Errors as above. */
gdn_status gdn_generation_config_load(gdn_generation_config *generation, const char *model, const gdn_model_config *of,
                                      gdn_error *err);
gdn_status gdn_generation_config_parse(gdn_generation_config *generation, const gdn_model_config *of, const void *text,
                                       size_t n, gdn_error *err);

/* Texts about the tokenizer, NULL where there is none.  Owned: free with gdn_tokenizer_config_close. */
typedef struct gdn_tokenizer_config {
    char *chat_template;
    char *bos_token, *eos_token, *pad_token, *unk_token;
} gdn_tokenizer_config;

/* Read tokenizer_config.json and chat_template.jinja, which a model need not have; the template of the latter goes before the
 * former's, of several named ones in the former the one named "default" is taken.  Errors as above. */
gdn_status gdn_tokenizer_config_load(gdn_tokenizer_config *tokenizer, const char *model, gdn_error *err);
gdn_status gdn_tokenizer_config_parse(gdn_tokenizer_config *tokenizer, const void *text, size_t n, gdn_error *err);
void       gdn_tokenizer_config_close(gdn_tokenizer_config *tokenizer); /* idempotent */

#endif
