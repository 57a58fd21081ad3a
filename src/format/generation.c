/* generation_config.json, tokenizer_config.json and chat_template.jinja. */
#include "format/config.h"
#include "format/folder.h"
#include "format/json.h"
#include <stdlib.h>
#include <string.h>

#define GENERATION "generation_config.json"
#define TOKENIZER "tokenizer_config.json"
#define TEMPLATE "chat_template.jinja"

/* The text of one file of the model; *text stays NULL when there is no such file. */
static gdn_status load_optional(char **text, size_t *n, const char *model, const char *name, gdn_error *err)
{
    gdn_path         path;
    const gdn_status status = gdn_model_path(&path, model, name, err);
    if (status || !gdn_path_exists(path.text)) return status;
    return gdn_text_load(text, n, path.text, err);
}

gdn_status gdn_generation_config_parse(gdn_generation_config *g, const gdn_model_config *of, const void *text, size_t n,
                                       gdn_error *err)
{
    json_t    *root;
    gdn_status status = gdn_json_parse(&root, GENERATION, text, n, err);
    if (status) return status;
    gdn_json_reader r = {.object = root, .file = GENERATION, .scope = "", .status = &status, .err = err};
    *g = (gdn_generation_config){.n_stops = of->n_stops};
    memcpy(g->stops, of->stops, sizeof g->stops);
    g->do_sample = gdn_json_bool(&r, "do_sample", false);
    g->temperature = gdn_json_number(&r, "temperature", 0, 100, 1);
    g->top_p = gdn_json_number(&r, "top_p", 0, 1, 1);
    g->min_p = gdn_json_number(&r, "min_p", 0, 1, 0);
    g->repetition_penalty = gdn_json_number(&r, "repetition_penalty", 0.01, 100, 1);
    g->top_k = (int)gdn_json_int(&r, "top_k", 0, 1 << 22, 0);
    gdn_json_ids(&r, "eos_token_id", of->vocab_size, g->stops, &g->n_stops, GDN_MAX_STOPS);
    json_decref(root);
    return status;
}

gdn_status gdn_generation_config_load(gdn_generation_config *g, const char *model, const gdn_model_config *of,
                                      gdn_error *err)
{
    char      *text = NULL;
    size_t     n = 0;
    gdn_status status = load_optional(&text, &n, model, GENERATION, err);
    if (!status)
        status =
            text ? gdn_generation_config_parse(g, of, text, n, err) : gdn_generation_config_parse(g, of, "{}", 2, err);
    free(text);
    return status;
}

/* *copy of a string; NO_MEMORY goes to the reader. */
static void copy_string(gdn_json_reader *r, char **copy, const char *string)
{
    *copy = string ? strdup(string) : NULL;
    if (string && !*copy && !*r->status)
        *r->status = gdn_fail(r->err, GDN_NO_MEMORY, 0, TOKENIZER ": no memory for a string");
}

/* A special token is its text, or an object with the text as "content". */
static void read_token(gdn_json_reader *r, char **token, const char *key)
{
    const json_t *value = gdn_json_get(r, key);
    if (json_is_object(value)) value = json_object_get(value, "content");
    if (value && !json_is_string(value)) gdn_json_refuse(r, GDN_BAD_FILE, key, value, "a token was expected");
    copy_string(r, token, json_string_value(value));
}

static void read_template(gdn_json_reader *r, char **template)
{
    const json_t *value = gdn_json_get(r, "chat_template");
    const char   *found = json_string_value(value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *element = json_array_get(value, i);
        const char   *name = json_string_value(json_object_get(element, "name"));
        if (name && !strcmp(name, "default")) found = json_string_value(json_object_get(element, "template"));
    }
    if (value && !found)
        gdn_json_refuse(r, GDN_BAD_FILE, "chat_template", value,
                        "a template, or a list with one named 'default', was expected");
    copy_string(r, template, found);
}

gdn_status gdn_tokenizer_config_parse(gdn_tokenizer_config *t, const void *text, size_t n, gdn_error *err)
{
    json_t    *root;
    gdn_status status = gdn_json_parse(&root, TOKENIZER, text, n, err);
    if (status) return status;
    gdn_json_reader r = {.object = root, .file = TOKENIZER, .scope = "", .status = &status, .err = err};
    *t = (gdn_tokenizer_config){.chat_template = NULL};
    read_token(&r, &t->bos_token, "bos_token");
    read_token(&r, &t->eos_token, "eos_token");
    read_token(&r, &t->pad_token, "pad_token");
    read_token(&r, &t->unk_token, "unk_token");
    read_template(&r, &t->chat_template);
    json_decref(root);
    if (status) gdn_tokenizer_config_close(t);
    return status;
}

gdn_status gdn_tokenizer_config_load(gdn_tokenizer_config *t, const char *model, gdn_error *err)
{
    char      *text = NULL, *jinja = NULL;
    size_t     n = 0, n_jinja = 0;
    gdn_status status = load_optional(&text, &n, model, TOKENIZER, err);
    *t = (gdn_tokenizer_config){.chat_template = NULL};
    if (!status && text) status = gdn_tokenizer_config_parse(t, text, n, err);
    free(text);
    if (!status) status = load_optional(&jinja, &n_jinja, model, TEMPLATE, err);
    if (!status && jinja && strlen(jinja) != n_jinja)
        status = gdn_fail(err, GDN_BAD_FILE, (long long)strlen(jinja), TEMPLATE " holds a zero byte; it must be text");
    if (!status && jinja && !n_jinja) status = gdn_fail(err, GDN_BAD_FILE, 0, TEMPLATE " is empty; get it again");
    if (status) {
        free(jinja);
        gdn_tokenizer_config_close(t);
    } else if (jinja) {
        free(t->chat_template);
        t->chat_template = jinja;
    }
    return status;
}

void gdn_tokenizer_config_close(gdn_tokenizer_config *t)
{
    char *const owned[] = {t->chat_template, t->bos_token, t->eos_token, t->pad_token, t->unk_token};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    *t = (gdn_tokenizer_config){.chat_template = NULL};
}
