#include "engine/parts.h"
#include "base/float_mode.h"
#include "format/safetensors.h"
#include "state/pool.h"
#include "text/tokenizer.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TOKENS = 32768,
    REUSE = 1 << 30, /* bytes of the prefix index */
    DRAFTS = 8,      /* of a sequence in a pass */
    CACHED =
        64 << 20, /* bytes of weights that a cache may hold; larger ones come from memory, for more rows at a time */
};

/* ---- opening: each step fills its part of the engine ---------------------------------------------------------------- */

static const long long DISK = 8LL << 30; /* bytes of cache_dir */

/* What the small files of the folder say. */
static gdn_status load_config(gdn_engine *e, gdn_model_config *config, const char *folder, gdn_error *err)
{
    const gdn_status s = gdn_model_config_load(config, folder, err);
    return s ? s : gdn_generation_config_load(&e->generation, folder, config, err);
}

static gdn_status load_model(gdn_engine *e, const gdn_engine_options *o, const gdn_model_config *config, gdn_error *err)
{
    gdn_tensors    tensors = {0};
    gdn_checkpoint checkpoint = {0};
    gdn_status     s = gdn_tensors_open(&tensors, o->model, err);
    if (!s) s = gdn_checkpoint_bind(&checkpoint, config, &tensors, err);
    if (!s && o->drafter == GDN_DRAFTER_MTP && !checkpoint.has_mtp)
        s = gdn_fail(err, GDN_UNSUPPORTED, 0, "engine: this model has no MTP part; draft by look-up, or not at all");
    if (!s)
        s = gdn_model_load(&e->model, &checkpoint, o->drafter == GDN_DRAFTER_AUTO || o->drafter == GDN_DRAFTER_MTP,
                           o->progress, o->progress_arg, err);
    gdn_checkpoint_close(&checkpoint);
    gdn_tensors_close(&tensors);
    return s;
}

static gdn_status load_text(gdn_engine *e, const char *folder, gdn_error *err)
{
    char      path[4096];
    const int n = snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (n < 0 || n >= (int)sizeof path)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "engine: the model's path is too long");
    gdn_status s = gdn_tokenizer_open(&e->tokenizer, path, err);
    if (!s) s = gdn_tokenizer_config_load(&e->text, folder, err);
    if (!s && e->text.chat_template)
        s = gdn_template_open(&e->chat, e->text.chat_template, strlen(e->text.chat_template), err);
    if (s) return s;
    static const char turn[] = "<|im_start|>";
    e->turn = gdn_tokenizer_find(e->tokenizer, turn, sizeof turn - 1);
    if (!gdn_tokenizer_is_added(e->tokenizer, e->turn)) e->turn = -1;
    return GDN_OK;
}

/* Pages of keys and values. */
static long long n_pages(const gdn_engine *e, const gdn_engine_options *o)
{
    if (o->kv_tokens) return (o->kv_tokens - 1) / GDN_PAGE + 1;
    return (long long)e->n_sequences * ((e->max_tokens + GDN_PAGE - 1) / GDN_PAGE);
}

/* Sizes, from the options and the model's config. */
static gdn_status set_sizes(gdn_engine *e, const gdn_engine_options *o, const gdn_model_config *config, gdn_error *err)
{
    const int most = config->max_positions < MAX_TOKENS ? config->max_positions : MAX_TOKENS;
    e->n_sequences = o->n_sequences ? o->n_sequences : 1;
    e->max_tokens = o->max_tokens ? o->max_tokens : most;
    if (e->max_tokens < 1 || e->max_tokens > config->max_positions)
        return gdn_fail(err, GDN_BAD_ARGUMENT, o->max_tokens,
                        "engine: %d tokens a sequence; this model has room for 1 to %d", o->max_tokens,
                        config->max_positions);
    const long long pages = n_pages(e, o);
    if (o->kv_tokens < 0 || pages > INT_MAX)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "engine: keys and values of %lld tokens; use 0 for what all sequences need, or 1 to %lld",
                        o->kv_tokens ? o->kv_tokens : pages * GDN_PAGE, (long long)INT_MAX * GDN_PAGE);
    e->piece = gdn_model_bytes(config, true, false) > CACHED ? 512 : 256;
    e->max_step = e->n_sequences > e->piece ? e->n_sequences : e->piece;
    e->drafter = o->drafter;
    e->n_drafts = o->n_drafts ? o->n_drafts : o->drafter ? DRAFTS : 0;
    e->max_rows = e->n_sequences * (1 + e->n_drafts) < e->max_step ? e->n_sequences * (1 + e->n_drafts) : e->max_step;
    return GDN_OK;
}

/* Lanes for every sequence, and room for their steps. */
static gdn_status open_lanes(gdn_engine *e, const gdn_engine_options *o, gdn_error *err)
{
    const gdn_model_config *c = &e->model->config;
    const int               n = e->n_sequences;
    e->by_mtp = e->model->has_mtp && (o->drafter == GDN_DRAFTER_AUTO || o->drafter == GDN_DRAFTER_MTP);
    const gdn_kv_config kv = {.n_layers = e->model->n_attention_layers + e->by_mtp,
                              .n_heads = c->n_kv_heads,
                              .dim = c->head_dim,
                              .type = o->kv_type,
                              .n_pages = (int)n_pages(e, o),
                              .n_lanes = n + 1,
                              .max_positions = e->max_tokens};
    const long long     budget = o->reuse_bytes ? o->reuse_bytes : REUSE;
    const size_t        slot_bytes = gdn_slot_bytes(&e->model->delta, e->model->n_delta_layers);
    const int           n_snapshots = slot_bytes ? gdn_prefix_slots(slot_bytes, budget) : 0;
    gdn_status          s = gdn_pool_open(&e->pool, &e->model->delta, e->model->n_delta_layers,
                                          (e->n_drafts ? 3 : 2) * n + n_snapshots + 1, err);
    if (!s) s = gdn_cache_open(&e->cache, e->pool, n, e->n_drafts ? e->n_drafts + 1 : 0, err);
    if (!s) s = gdn_cache_add(e->cache, n, 0, err);
    if (!s) s = gdn_cache_open(&e->read, e->pool, 1, 0, err);
    if (!s) s = gdn_cache_add(e->read, 1, 0, err);
    if (!s) s = gdn_kv_open(&e->kv, &kv, err);
    if (!s)
        s = gdn_prefix_open(&e->prefix, e->pool, e->kv, n_snapshots, c->vocab_size, e->by_mtp ? c->hidden_size : 0,
                            budget, err);
    if (s) return s;
    e->used = calloc((size_t)n, sizeof *e->used);
    e->step_of = calloc((size_t)n, sizeof *e->step_of);
    e->n_tokens = calloc((size_t)n, sizeof *e->n_tokens);
    e->wanted = calloc((size_t)e->max_rows, sizeof *e->wanted);
    e->tokens = calloc((size_t)e->max_step, sizeof *e->tokens);
    e->more = calloc((size_t)n + 1, sizeof *e->more);
    e->list = malloc((size_t)e->max_tokens * sizeof *e->list);
    e->logits = malloc((size_t)e->max_rows * c->vocab_size * sizeof *e->logits);
    if (e->used && e->step_of && e->n_tokens && e->wanted && e->tokens && e->more && e->list && e->logits)
        return gdn_engine_open_drafts(e, err);
    return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for steps of %d sequences; use fewer", n);
}

static gdn_status check(const gdn_engine_options *o, gdn_error *err)
{
    if (o->n_sequences < 0 || o->n_sequences > 4096)
        return gdn_fail(err, GDN_BAD_ARGUMENT, o->n_sequences, "engine: %d sequences; use 1 to 4096", o->n_sequences);
    if (o->kv_type != GDN_F32 && o->kv_type != GDN_BF16)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "engine: kv_type is %d; use GDN_F32 or GDN_BF16", (int)o->kv_type);
    if (o->reuse_bytes < -1 || o->cache_bytes < 0)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "engine: %lld bytes of reuse and %lld of cache; use 0 for the defaults, or more",
                        o->reuse_bytes, o->cache_bytes);
    if ((int)o->drafter < GDN_DRAFTER_OFF || o->drafter > GDN_DRAFTER_MTP)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "engine: drafter is %d; use one of gdn_drafter", (int)o->drafter);
    if (o->n_drafts < 0 || o->n_drafts > GDN_DRAFTS_MAX)
        return gdn_fail(err, GDN_BAD_ARGUMENT, o->n_drafts, "engine: %d drafts; use 0 to %d", o->n_drafts,
                        (int)GDN_DRAFTS_MAX);
    return GDN_OK;
}

/* An engine of a model that is here, or of that in `folder`, then with its text.  What is small comes first, so that it is told
 * at once what is wrong there; the weights come last. */
static gdn_status open_parts(gdn_engine *e, const gdn_engine_options *o, const char *folder, gdn_error *err)
{
    gdn_model_config own;
    gdn_status       s = folder ? load_config(e, &own, folder, err) : GDN_OK;
    if (s) return s;
    s = set_sizes(e, o, folder ? &own : &e->model->config, err);
    if (!s) s = gdn_compute_open(&e->compute, o->level, o->n_threads, err);
    if (!s && folder) s = load_text(e, folder, err);
    if (!s && o->cache_dir)
        s = gdn_store_open(&e->store, o->cache_dir, o->cache_bytes ? o->cache_bytes : DISK, e->max_tokens, err);
    if (!s && folder) s = load_model(e, o, &own, err);
    if (!s) s = open_lanes(e, o, err);
    if (!s) s = gdn_workspace_open(&e->workspace, e->model, e->compute, e->max_step, e->max_tokens, err);
    if (!s && e->store) {
        gdn_store_bind(e->store, gdn_engine_record(e).binding);
        gdn_prefix_on_leave(e->prefix, gdn_engine_spill, e);
    }
    return s;
}

static gdn_status open_engine(gdn_engine **out, gdn_engine *e, const gdn_engine_options *o, const char *folder,
                              gdn_error *err)
{
    const unsigned long long mode = gdn_float_mode_enter();
    e->turn = -1;
    const gdn_status s = open_parts(e, o, folder, err);
    gdn_float_mode_leave(mode);
    if (s) {
        gdn_engine_close(e);
        return s;
    }
    *out = e;
    return GDN_OK;
}

gdn_status gdn_engine_open(gdn_engine **out, const gdn_engine_options *o, gdn_error *err)
{
    if (!out || !o || !o->model)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "engine: out, options and the model's folder must not be NULL; pass them");
    gdn_status s = check(o, err);
    if (s) return s;
    gdn_engine *e = calloc(1, sizeof *e);
    if (!e) return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for the engine itself; free some");
    return open_engine(out, e, o, o->model, err);
}

gdn_status gdn_engine_open_model(gdn_engine **out, gdn_model *model, const gdn_engine_options *o, gdn_error *err)
{
    gdn_engine *e = calloc(1, sizeof *e);
    if (!e) {
        gdn_model_close(model);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for the engine itself; free some");
    }
    e->model = model;
    return open_engine(out, e, o, NULL, err);
}

void gdn_engine_close(gdn_engine *e)
{
    if (!e) return;
    gdn_engine_store(e);
    free(e->used);
    free(e->step_of);
    free(e->n_tokens);
    free(e->wanted);
    free(e->tokens);
    free(e->more);
    free(e->list);
    free(e->logits);
    gdn_engine_close_drafts(e);
    gdn_workspace_close(e->workspace);
    gdn_store_close(e->store);
    gdn_prefix_close(e->prefix);
    gdn_kv_close(e->kv);
    gdn_cache_close(e->read);
    gdn_cache_close(e->cache);
    gdn_pool_close(e->pool);
    gdn_compute_close(e->compute);
    gdn_template_close(e->chat);
    gdn_tokenizer_config_close(&e->text);
    gdn_tokenizer_close(e->tokenizer);
    gdn_model_close(e->model);
    free(e);
}

/* ---- what it is ------------------------------------------------------------------------------------------------------ */

const gdn_tokenizer *gdn_engine_tokenizer(const gdn_engine *e) { return e->tokenizer; }
const gdn_compute   *gdn_engine_compute(const gdn_engine *e) { return e->compute; }
int                  gdn_engine_vocab_size(const gdn_engine *e) { return e->model->config.vocab_size; }
int                  gdn_engine_n_sequences(const gdn_engine *e) { return e->n_sequences; }
int                  gdn_engine_max_tokens(const gdn_engine *e) { return e->max_tokens; }
int                  gdn_engine_max_step(const gdn_engine *e) { return e->max_step; }
int                  gdn_engine_has_template(const gdn_engine *e) { return e->chat != NULL; }

int gdn_engine_is_stop(const gdn_engine *e, int32_t id)
{
    for (int i = 0; i < e->generation.n_stops; i++)
        if (e->generation.stops[i] == id) return 1;
    return 0;
}

int gdn_engine_n_usable(const gdn_engine *e)
{
    const int V = e->model->config.vocab_size, size = e->tokenizer ? gdn_tokenizer_size(e->tokenizer) : V;
    return size < V ? size : V;
}

gdn_sampler_options gdn_engine_default_sampling(const gdn_engine *e)
{
    const gdn_generation_config *g = &e->generation;
    return (gdn_sampler_options){.temperature = g->do_sample ? g->temperature : 0.0,
                                 .top_k = g->top_k,
                                 .top_p = g->top_p,
                                 .min_p = g->min_p,
                                 .repetition_penalty = g->repetition_penalty};
}
