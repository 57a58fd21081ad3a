/* cli/plan.h - what a model needs of the memory, and what there is. */
#ifndef GDN_CLI_PLAN_H
#define GDN_CLI_PLAN_H
#include "cli/cli.h"
#include "format/checkpoint.h"

/* Bytes of memory. */
typedef struct gdn_plan {
    uint64_t weights, mtp_weights; /* packed: matrices in bf16, the rest in f32; MTP: 0 without it */
    uint64_t state;                /* of one sequence: for each linear layer the conv tail and S in f32 */
    uint64_t
        drafts; /* of one sequence, 8 at a time: a second state, what a pass records for taking them back, and its logits */
    uint64_t kv_per_token, mtp_kv_per_token; /* keys and values in bf16 of the full attention layers */
    uint64_t available;                      /* what the system says it could give; 0: it does not say */
    uint64_t tokens; /* whose keys and values, with those of MTP, fit beside all weights, one state and its drafts */
} gdn_plan;

gdn_plan gdn_plan_of(const gdn_model_config *config, bool tied, bool has_mtp);

/* What this process has in memory now, and what of it is on huge pages; 0: the system does not say. */
typedef struct gdn_resident {
    uint64_t bytes, huge_bytes;
} gdn_resident;
gdn_resident gdn_resident_now(void);

/* Layers with this mixer. */
int gdn_layers_with(const gdn_model_config *config, gdn_mixer mixer);

typedef struct gdn_words {
    char text[64];
} gdn_words;

gdn_words gdn_number_words(uint64_t n); /* "6,858,800" */
gdn_words gdn_size_words(uint64_t n);   /* "13.1 MiB"; below a KiB bytes */

#endif
