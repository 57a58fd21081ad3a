/* parts.h - what stands behind an engine and a sequence. */
#ifndef GDN_ENGINE_PARTS_H
#define GDN_ENGINE_PARTS_H
#include "engine/prefix.h"
#include "format/config.h"
#include "gdn/gdn.h"
#include "model/model.h"
#include "text/template.h"

/* A sequence is a lane, of the cache and of kv alike.
 *
 * The pool has two slots for a sequence besides one for each snapshot of the prefix index, and more are never needed: a step takes
 * one for every lane whose slot others see, and lanes that see one slot which is no snapshot came by it in forks. */
struct gdn_engine {
    gdn_model            *model;
    gdn_generation_config generation;
    gdn_tokenizer        *tokenizer;
    gdn_tokenizer_config  text;
    gdn_template         *chat; /* NULL: the model has none */
    gdn_compute          *compute;
    gdn_pool             *pool;
    gdn_cache            *cache; /* n_sequences lanes */
    gdn_kv               *kv;    /* likewise */
    gdn_prefix           *prefix;
    int32_t               turn; /* the token that opens a turn of a chat, or -1 */
    gdn_workspace        *workspace;
    int                   n_sequences, max_tokens, max_step;
    int                   piece; /* tokens of a prompt that are computed at a time */
    bool                 *used;  /* [n_sequences]: lanes that a sequence owns */

    /* of the step that runs */
    const gdn_step **step_of;  /* [n_sequences]: NULL for lanes without tokens */
    int             *n_tokens; /* [n_sequences] */
    int             *wanted;   /* [n_sequences] */
    int32_t         *tokens;   /* [max_step], lane after lane */
    float           *logits;   /* [n_sequences][V] of several sequences */
};

struct gdn_sequence {
    gdn_engine *engine;
    int         lane;
    int32_t    *tokens; /* [max_tokens] */
    int         length;
    bool        has_logits;
    float      *logits; /* [V] */
};

/* Append; logits are computed if `wanted`, else these sequences have none afterwards.  Else as gdn_engine_step. */
gdn_status gdn_engine_append(gdn_engine *engine, const gdn_step *steps, int n_steps, bool wanted, gdn_error *err);

#endif
