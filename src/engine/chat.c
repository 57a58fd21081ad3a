/* From the variables of a chat template to tokens. */
#include "engine/parts.h"
#include "base/float_mode.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* False without memory. */
static bool set_token(json_t *vars, const char *name, const char *text)
{
    return !text || json_object_get(vars, name) || !json_object_set_new(vars, name, json_string(text));
}

/* The template's variables: the caller's, and the tokens that the tokenizer's files name.  *out is to be freed in any case. */
static gdn_status read_vars(json_t **out, const gdn_engine *e, const char *text, gdn_error *err)
{
    json_error_t               problem = {0}; /* jansson leaves its code alone where memory ends at once */
    json_t                    *vars = json_loads(text, JSON_ALLOW_NUL, &problem);
    const enum json_error_code code = json_error_code(&problem);
    if (!vars && (code == json_error_out_of_memory || code == json_error_unknown))
        return gdn_fail(err, GDN_NO_MEMORY, 0, "chat: no memory for the messages");
    *out = vars;
    if (!json_is_object(vars))
        return gdn_fail(err, GDN_BAD_ARGUMENT, vars ? 0 : problem.position,
                        "chat: the variables are not the JSON text of an object (%s)",
                        vars ? "it is another value" : problem.text);
    if (set_token(vars, "bos_token", e->text.bos_token) && set_token(vars, "eos_token", e->text.eos_token) &&
        set_token(vars, "pad_token", e->text.pad_token) && set_token(vars, "unk_token", e->text.unk_token))
        return GDN_OK;
    return gdn_fail(err, GDN_NO_MEMORY, 0, "chat: no memory for the messages");
}

static int ends_in_think(const gdn_rendered *r)
{
    static const char open[] = "<think>";
    const size_t      n = sizeof open - 1;
    size_t            end = r->n_bytes;
    while (end && (r->text[end - 1] == '\n' || r->text[end - 1] == ' ')) end--;
    return end >= n && memcmp(r->text + end - n, open, n) == 0;
}

static gdn_status encode(const gdn_engine *e, const gdn_rendered *text, gdn_ids *ids, gdn_error *err)
{
    gdn_span *spans = malloc((text->n_spans + 1) * sizeof *spans);
    if (!spans) return gdn_fail(err, GDN_NO_MEMORY, 0, "chat: no memory for its %zu bytes", text->n_bytes);
    for (size_t i = 0; i < text->n_spans; i++)
        spans[i] = (gdn_span){text->text + text->spans[i].offset, text->spans[i].n_bytes, text->spans[i].trusted};
    const gdn_status s = gdn_tokenizer_encode(e->tokenizer, spans, text->n_spans, ids, err);
    free(spans);
    return s;
}

gdn_status gdn_engine_encode_chat(const gdn_engine *e, const char *vars, const struct tm *now, gdn_ids *ids,
                                  int *thinks, gdn_error *err)
{
    static const char *const trusted[] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    if (!e || !vars || !ids)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "chat: engine, vars and ids must not be NULL; pass all three");
    if (!e->chat)
        return gdn_fail(err, GDN_BAD_STATE, 0,
                        "chat: the model has no chat template; give a plain prompt instead of messages");
    const unsigned long long mode = gdn_float_mode_enter();
    json_t                  *all = NULL;
    gdn_rendered             text = {0};
    gdn_status               s = read_vars(&all, e, vars, err);
    const gdn_template_input input = {.vars = all, .trusted = trusted, .n_trusted = 4, .now = now};
    if (!s) s = gdn_template_render(e->chat, &input, &text, err);
    if (!s) s = encode(e, &text, ids, err);
    if (!s && thinks) *thinks = ends_in_think(&text);
    gdn_rendered_free(&text);
    json_decref(all);
    gdn_float_mode_leave(mode);
    return s;
}
