#include "cli/info.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *shapes(const gdn_model_config *c)
{
    return json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:i,s:i,s:i,s:i,s:i}", "vocab_size",
                     c->vocab_size, "hidden_size", c->hidden_size, "key_heads", c->n_key_heads, "value_heads",
                     c->n_value_heads, "key_dim", c->key_dim, "value_dim", c->value_dim, "conv_taps", c->n_taps,
                     "query_heads", c->n_heads, "kv_heads", c->n_kv_heads, "head_dim", c->head_dim, "rope_dims",
                     c->rope_dims, "rope_theta", c->rope_theta, "ffn_size", c->ffn_size, "experts", c->n_experts,
                     "experts_used", c->n_experts_used, "expert_size", c->expert_size, "shared_expert_size",
                     c->shared_expert_size);
}

static json_t *layers(const gdn_model_config *c)
{
    json_t *list = json_array();
    for (int l = 0; l < c->n_layers; l++)
        json_array_append_new(list,
                              json_pack("{s:s,s:s}", "mixer", c->layers[l].mixer == GDN_MIXER_FULL ? "full" : "linear",
                                        "ffn", c->layers[l].ffn == GDN_FFN_MOE ? "moe" : "dense"));
    return list;
}

static json_t *tensors(const gdn_info *info)
{
    json_t  *types = json_object();
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < info->tensors.n; i++) n_bytes += info->tensors.all[i].n_bytes;
    for (int type = 0; type < GDN_TENSOR_TYPES; type++) {
        const size_t n = gdn_info_tensors(info, (gdn_tensor_type)type);
        if (n) json_object_set_new(types, gdn_tensor_type_name((gdn_tensor_type)type), json_integer((json_int_t)n));
    }
    return json_pack("{s:I,s:I,s:s,s:I,s:o,s:I,s:I}", "count", (json_int_t)info->tensors.n, "files",
                     (json_int_t)info->tensors.n_files, "source", info->tensors.source, "bytes", (json_int_t)n_bytes,
                     "types", types, "vision", (json_int_t)info->checkpoint.n_vision, "unknown",
                     (json_int_t)info->checkpoint.n_unknown);
}

static json_t *stops(const gdn_generation_config *g)
{
    json_t *list = json_array();
    for (int i = 0; i < g->n_stops; i++) json_array_append_new(list, json_integer(g->stops[i]));
    return list;
}

/* What is not there, or not known, is null. */
static json_t *memory(const gdn_plan *p)
{
    json_t *available = p->available ? json_integer((json_int_t)p->available) : json_null();
    json_t *fits =
        p->available && p->kv_per_token + p->mtp_kv_per_token ? json_integer((json_int_t)p->tokens) : json_null();
    return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o,s:o}", "weight_bytes", (json_int_t)p->weights, "mtp_weight_bytes",
                     (json_int_t)p->mtp_weights, "state_bytes_per_sequence", (json_int_t)p->state,
                     "draft_bytes_per_sequence", (json_int_t)p->drafts, "kv_bytes_per_token",
                     (json_int_t)p->kv_per_token, "mtp_kv_bytes_per_token", (json_int_t)p->mtp_kv_per_token,
                     "available_bytes", available, "tokens_that_fit", fits);
}

int gdn_info_print_json(const gdn_info *info)
{
    const gdn_model_config *c = &info->config;
    json_t                 *tokens = info->tokenizer ? json_integer(gdn_tokenizer_size(info->tokenizer)) : json_null();
    json_t *root = json_pack("{s:s,s:s,s:s,s:b,s:i,s:o,s:o,s:I,s:I,s:o,s:o,s:o,s:o}", "model", info->model.text,
                             "architecture", c->model_type, "dtype", gdn_tensor_type_name(c->type), "tied_embeddings",
                             info->checkpoint.tied, "context", c->max_positions, "sizes", shapes(c), "layers",
                             layers(c), "parameters", (json_int_t)info->parameters, "mtp_parameters",
                             (json_int_t)info->mtp_parameters, "tensors", tensors(info), "tokens", tokens,
                             "stop_tokens", stops(&info->generation), "memory", memory(&info->plan));
    char   *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    if (!text)
        return gdn_cli_fail(GDN_EXIT_FAILED, "info",
                            "the model cannot be written as JSON: its path is not UTF-8, or memory is out");
    printf("%s\n", text);
    free(text);
    return GDN_EXIT_OK;
}
