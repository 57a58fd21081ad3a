/* cli/info.h - what `gdn info` knows of a model, and how it is printed. */
#ifndef GDN_CLI_INFO_H
#define GDN_CLI_INFO_H
#include "cli/cli.h"
#include "format/checkpoint.h"
#include "text/tokenizer.h"

/* Bytes of memory. */
typedef struct gdn_plan {
    uint64_t weights, mtp_weights; /* every parameter in bf16; mtp: 0 without an MTP layer */
    uint64_t state;                /* of one sequence: for each linear layer the conv tail in bf16 and S in f32 */
    uint64_t kv_per_token, mtp_kv_per_token; /* keys and values in bf16 of the full attention layers */
    uint64_t available;                      /* what the system says it could give; 0: it does not say */
    uint64_t tokens; /* whose keys and values, with those of MTP, fit beside all weights and one state */
} gdn_plan;

typedef struct gdn_info {
    gdn_path              model;
    gdn_model_config      config;
    gdn_generation_config generation;
    gdn_tensors           tensors;
    gdn_checkpoint        checkpoint;
    gdn_tokenizer        *tokenizer; /* NULL: the model has none */
    uint64_t              parameters, mtp_parameters;
    gdn_plan              plan;
} gdn_info;

/* Layers with this mixer. */
int gdn_info_count(const gdn_info *info, gdn_mixer mixer);

/* Tensors of this type. */
size_t gdn_info_tensors(const gdn_info *info, gdn_tensor_type type);

void gdn_info_print(const gdn_info *info);

/* Returns GDN_EXIT_OK, or says what is wrong and returns GDN_EXIT_FAILED. */
int gdn_info_print_json(const gdn_info *info);

#endif
