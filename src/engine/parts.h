/* parts.h - what stands behind an engine. */
#ifndef GDN_ENGINE_PARTS_H
#define GDN_ENGINE_PARTS_H
#include "engine/engine.h"
#include "format/config.h"
#include "model/model.h"
#include "text/template.h"

enum { GDN_PIECE = 256 }; /* tokens of a prompt that are computed at a time */

struct gdn_engine {
    gdn_model            *model;
    gdn_generation_config generation;
    gdn_tokenizer        *tokenizer;
    gdn_tokenizer_config  text;
    gdn_template         *chat; /* NULL: the model has none */
    gdn_compute          *compute;
    gdn_pool             *pool;
    gdn_workspace        *workspace;
    gdn_type              kv_type;
    int                   max_tokens;
};

#endif
