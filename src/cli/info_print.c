#include "cli/info.h"
#include <stdio.h>
#include <string.h>

/* A letter for each layer. */
static void print_layers(const gdn_info *info)
{
    enum { MOST = 64 };
    const gdn_model_config *c = &info->config;
    printf("layers         %d: %d linear attention (L), %d full attention (F), in the order ", c->n_layers,
           gdn_layers_with(&info->config, GDN_MIXER_LINEAR), gdn_layers_with(&info->config, GDN_MIXER_FULL));
    for (int l = 0; l < c->n_layers && l < MOST; l++) putchar(c->layers[l].mixer == GDN_MIXER_LINEAR ? 'L' : 'F');
    printf("%s\n", c->n_layers > MOST ? "..." : "");
}

static void print_shapes(const gdn_model_config *c)
{
    printf("sizes          hidden %d, vocabulary %d, context %d tokens\n", c->hidden_size, c->vocab_size,
           c->max_positions);
    printf("linear         %d key heads of %d, %d value heads of %d, convolution of %d\n", c->n_key_heads, c->key_dim,
           c->n_value_heads, c->value_dim, c->n_taps);
    printf("full           %d query heads and %d key/value heads of %d, %d of them rotary with theta %g\n", c->n_heads,
           c->n_kv_heads, c->head_dim, c->rope_dims, c->rope_theta);
    if (c->ffn_size) printf("feed-forward   dense, %d wide\n", c->ffn_size);
    if (c->n_experts)
        printf("experts        %d of %d used, %d wide; a shared one, %d wide\n", c->n_experts_used, c->n_experts,
               c->expert_size, c->shared_expert_size);
}

static void print_tensors(const gdn_info *info)
{
    const gdn_tensors    *t = &info->tensors;
    const gdn_checkpoint *checkpoint = &info->checkpoint;
    uint64_t              n_bytes = 0;
    const char           *comma = " ";
    for (size_t i = 0; i < t->n; i++) n_bytes += t->all[i].n_bytes;
    printf("tensors        %zu in %zu %s (%s), %s:", t->n, t->n_files, t->n_files == 1 ? "file" : "shards", t->source,
           gdn_size_words(n_bytes).text);
    for (int type = 0; type < GDN_TENSOR_TYPES; type++) {
        const size_t n = gdn_info_tensors(info, (gdn_tensor_type)type);
        if (!n) continue;
        printf("%s%zu %s", comma, n, gdn_tensor_type_name((gdn_tensor_type)type));
        comma = ", ";
    }
    printf("\n");
    if (checkpoint->n_vision) printf("vision         %zu tensors, which gdn does not use\n", checkpoint->n_vision);
    if (!checkpoint->n_unknown) return;
    printf("unknown        %zu tensors that are no part of the model:", checkpoint->n_unknown);
    for (size_t i = 0; i < checkpoint->n_unknown && i < GDN_UNKNOWN_NAMES; i++) printf(" %s", checkpoint->unknown[i]);
    printf("%s\n", checkpoint->n_unknown > GDN_UNKNOWN_NAMES ? " ..." : "");
}

static void print_tokenizer(const gdn_info *info)
{
    const gdn_generation_config *g = &info->generation;
    if (info->tokenizer) printf("tokenizer      %d tokens\n", (int)gdn_tokenizer_size(info->tokenizer));
    else printf("tokenizer      none: there is no tokenizer.json\n");
    printf("stop tokens   ");
    for (int i = 0; i < g->n_stops; i++) {
        size_t      n = 0;
        const char *bytes = info->tokenizer ? gdn_tokenizer_bytes(info->tokenizer, g->stops[i], &n) : NULL;
        printf("%s %d%s%.*s", i ? "," : "", g->stops[i], bytes ? " " : "", (int)n, bytes ? bytes : "");
    }
    printf("%s\n", g->n_stops ? "" : " none");
}

static void print_plan(const gdn_plan *p)
{
    printf("\nmemory\n");
    printf("  weights      %s", gdn_size_words(p->weights).text);
    if (p->mtp_weights) printf(" and %s for MTP", gdn_size_words(p->mtp_weights).text);
    printf("\n");
    printf("  state        %s a sequence\n", gdn_size_words(p->state).text);
    printf("  drafts       %s a sequence\n", gdn_size_words(p->drafts).text);
    printf("  KV           %s a token", gdn_size_words(p->kv_per_token).text);
    if (p->mtp_kv_per_token) printf(" and %s for MTP", gdn_size_words(p->mtp_kv_per_token).text);
    printf("\n");
    if (!p->available) printf("  fits         unknown: the system does not say how much memory is available\n");
    else if (p->available <= p->weights + p->mtp_weights + p->state + p->drafts)
        printf("  fits         no: %s available, %s needed before the first token\n", gdn_size_words(p->available).text,
               gdn_size_words(p->weights + p->mtp_weights + p->state + p->drafts).text);
    else if (!(p->kv_per_token + p->mtp_kv_per_token))
        printf("  fits         any number of tokens in %s available\n", gdn_size_words(p->available).text);
    else
        printf("  fits         %s tokens in %s available\n", gdn_number_words(p->tokens).text,
               gdn_size_words(p->available).text);
}

void gdn_info_print(const gdn_info *info)
{
    const gdn_model_config *c = &info->config;
    printf("model          %s\n", info->model.text);
    printf("architecture   %s, made to run in %s, %s output matrix\n", c->model_type, gdn_tensor_type_name(c->type),
           info->checkpoint.tied ? "the embedding as" : "its own");
    print_layers(info);
    print_shapes(c);
    printf("parameters     %s", gdn_number_words(info->parameters).text);
    if (info->checkpoint.has_mtp) printf(" and %s in an MTP layer", gdn_number_words(info->mtp_parameters).text);
    printf("\n");
    print_tensors(info);
    print_tokenizer(info);
    print_plan(&info->plan);
}
