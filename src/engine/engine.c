#include "engine/engine.h"
#include "engine/parts.h"
#include "format/safetensors.h"
#include "text/template.h"
#include <stdio.h>
#include <string.h>

enum { MAX_TOKENS = 32768 };

/* ---- opening: each step fills its part of the engine ---------------------------------------------------------------- */

static gdn_status load_model(gdn_engine *e, const char *folder, gdn_error *err)
{
    gdn_tensors      tensors = {0};
    gdn_checkpoint   checkpoint = {0};
    gdn_model_config config;
    gdn_status       s = gdn_model_config_load(&config, folder, err);
    if (!s) s = gdn_generation_config_load(&e->generation, folder, &config, err);
    if (!s) s = gdn_tensors_open(&tensors, folder, err);
    if (!s) s = gdn_checkpoint_bind(&checkpoint, &config, &tensors, err);
    if (!s) s = gdn_model_load(&e->model, &checkpoint, NULL, NULL, err);
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
    return s;
}

static gdn_status open_memory(gdn_engine *e, const gdn_engine_options *o, gdn_error *err)
{
    const int most = e->model->config.max_positions < MAX_TOKENS ? e->model->config.max_positions : MAX_TOKENS;
    e->max_tokens = o->max_tokens ? o->max_tokens : most;
    if (e->max_tokens < 1 || e->max_tokens > e->model->config.max_positions)
        return gdn_fail(err, GDN_BAD_ARGUMENT, o->max_tokens,
                        "engine: %d tokens a sequence; this model has room for 1 to %d", o->max_tokens,
                        e->model->config.max_positions);
    gdn_status s = gdn_compute_open(&e->compute, o->level, o->n_threads, err);
    if (!s) s = gdn_pool_open(&e->pool, &e->model->delta, e->model->n_delta_layers, o->n_sequences, err);
    if (!s) s = gdn_workspace_open(&e->workspace, e->model, e->compute, GDN_PIECE, e->max_tokens, err);
    return s;
}

gdn_status gdn_engine_open(gdn_engine **out, const gdn_engine_options *o, gdn_error *err)
{
    if (!out || !o || !o->model) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "engine: out, options or the model is NULL");
    if (o->n_sequences < 1 || o->n_sequences > 4096)
        return gdn_fail(err, GDN_BAD_ARGUMENT, o->n_sequences, "engine: %d sequences; use 1 to 4096", o->n_sequences);
    gdn_engine *e = calloc(1, sizeof *e);
    if (!e) return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory");
    e->kv_type = o->kv_type;
    gdn_status s = load_model(e, o->model, err);
    if (!s) s = load_text(e, o->model, err);
    if (!s) s = open_memory(e, o, err);
    if (s) {
        gdn_engine_close(e);
        return s;
    }
    *out = e;
    return GDN_OK;
}

void gdn_engine_close(gdn_engine *e)
{
    if (!e) return;
    gdn_workspace_close(e->workspace);
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
int                  gdn_engine_max_tokens(const gdn_engine *e) { return e->max_tokens; }
int                  gdn_engine_has_template(const gdn_engine *e) { return e->chat != NULL; }

int gdn_engine_is_stop(const gdn_engine *e, int32_t id)
{
    for (int i = 0; i < e->generation.n_stops; i++)
        if (e->generation.stops[i] == id) return 1;
    return 0;
}

gdn_engine_defaults gdn_engine_default_sampling(const gdn_engine *e)
{
    const gdn_generation_config *g = &e->generation;
    return (gdn_engine_defaults){g->do_sample ? g->temperature : 0.0, g->top_p, g->min_p, g->repetition_penalty,
                                 g->top_k};
}

/* ---- chat ------------------------------------------------------------------------------------------------------------ */

static void set_token(json_t *vars, const char *name, const char *text)
{
    if (text && !json_object_get(vars, name)) json_object_set_new(vars, name, json_string(text));
}

/* The template's variables: the caller's, and the tokens that the tokenizer's files name. */
static json_t *with_tokens(const gdn_engine *e, const json_t *vars)
{
    json_t *all = json_copy((json_t *)(uintptr_t)vars); /* shallow: the caller's object stays as it is */
    if (!all) return NULL;
    set_token(all, "bos_token", e->text.bos_token);
    set_token(all, "eos_token", e->text.eos_token);
    set_token(all, "pad_token", e->text.pad_token);
    set_token(all, "unk_token", e->text.unk_token);
    return all;
}

static int ends_in_think(const gdn_rendered *r)
{
    static const char open[] = "<think>";
    const size_t      n = sizeof open - 1;
    size_t            end = r->n_bytes;
    while (end && (r->text[end - 1] == '\n' || r->text[end - 1] == ' ')) end--;
    return end >= n && memcmp(r->text + end - n, open, n) == 0;
}

gdn_status gdn_engine_encode_chat(const gdn_engine *e, const json_t *vars, const struct tm *now, gdn_ids *ids,
                                  int *thinks, gdn_error *err)
{
    static const char *const trusted[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    if (!e->chat)
        return gdn_fail(err, GDN_BAD_STATE, 0,
                        "engine: the model has no chat template; give a plain prompt instead of messages");
    json_t   *all = with_tokens(e, vars);
    gdn_span *spans = NULL;
    if (!all) return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for the chat");
    const gdn_template_input input = {.vars = all, .trusted = trusted, .n_trusted = 4, .now = now};
    gdn_rendered             text = {0};
    gdn_status               s = gdn_template_render(e->chat, &input, &text, err);
    if (!s) {
        spans = malloc((text.n_spans + 1) * sizeof *spans);
        if (!spans) s = gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for the chat");
    }
    for (size_t i = 0; spans && i < text.n_spans; i++)
        spans[i] = (gdn_span){text.text + text.spans[i].offset, text.spans[i].n_bytes, text.spans[i].trusted};
    if (!s) s = gdn_tokenizer_encode(e->tokenizer, spans, text.n_spans, ids, err);
    if (!s && thinks) *thinks = ends_in_think(&text);
    free(spans);
    gdn_rendered_free(&text);
    json_decref(all);
    return s;
}
