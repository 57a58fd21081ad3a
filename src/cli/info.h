/* cli/info.h - what `gdn info` knows of a model, and how it is printed. */
#ifndef GDN_CLI_INFO_H
#define GDN_CLI_INFO_H
#include "cli/plan.h"
#include "text/tokenizer.h"

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

/* Tensors of this type. */
size_t gdn_info_tensors(const gdn_info *info, gdn_tensor_type type);

void gdn_info_print(const gdn_info *info);

/* Returns GDN_EXIT_OK, or says what is wrong and returns GDN_EXIT_FAILED. */
int gdn_info_print_json(const gdn_info *info);

#endif
