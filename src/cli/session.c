#include "cli/session.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- options ------------------------------------------------------------------------------------------------------- */

void gdn_session_table(gdn_option table[GDN_SESSION_OPTIONS], gdn_session_options *o)
{
    const gdn_option all[GDN_SESSION_OPTIONS] = {
        {"MODEL", GDN_OPTION_ARGUMENT, &o->model, 0, 0},
        {"--system", GDN_OPTION_TEXT, &o->system, 0, 0},
        {"--think", GDN_OPTION_FLAG, &o->think, 0, 0},
        {"--no-think", GDN_OPTION_FLAG, &o->no_think, 0, 0},
        {"-n", GDN_OPTION_INT, &o->most, 1, 1000000},
        {"--temperature", GDN_OPTION_NUMBER, &o->temperature, 0, 100},
        {"--top-k", GDN_OPTION_INT, &o->top_k, 0, 1 << 22},
        {"--top-p", GDN_OPTION_NUMBER, &o->top_p, 0, 1},
        {"--min-p", GDN_OPTION_NUMBER, &o->min_p, 0, 1},
        {"--repeat", GDN_OPTION_NUMBER, &o->repeat, 0.01, 100},
        {"--presence", GDN_OPTION_NUMBER, &o->presence, -100, 100},
        {"--frequency", GDN_OPTION_NUMBER, &o->frequency, -100, 100},
        {"--bias", GDN_OPTION_TEXTS, &o->bias, 0, 0},
        {"--seed", GDN_OPTION_INT, &o->seed, 0, 2147483647},
        {"--stop", GDN_OPTION_TEXTS, &o->stops, 0, 0},
        {"--context", GDN_OPTION_INT, &o->context, 1, 1 << 24},
        {"--threads", GDN_OPTION_INT, &o->threads, 1, 256},
        {"--cpu", GDN_OPTION_TEXT, &o->level, 0, 0},
        {"--spec", GDN_OPTION_TEXT, &o->spec, 0, 0},
        {"--draft", GDN_OPTION_INT, &o->drafts, 1, GDN_DRAFTS_MAX},
        {"--quiet", GDN_OPTION_FLAG, &o->quiet, 0, 0},
        {"--cache-dir", GDN_OPTION_TEXT, &o->cache_dir, 0, 0},
    };
    memcpy(table, all, sizeof all);
}

const char gdn_session_help[] = "  --temperature T   0 is greedy; else the model's own, as for these four:\n"
                                "  --top-k K  --top-p P  --min-p P  --repeat R     --presence X  --frequency X\n"
                                "  --bias ID=X       is added to a token's logit, -inf: never; again for others\n"
                                "  --seed N          same seed, same text on every machine (0)\n"
                                "  --stop TEXT       the text ends before it; again for others\n"
                                "  --context N       tokens in all (as the model was made for, at most 32768)\n"
                                "  --spec HOW        drafts: auto, lookup, mtp, off; --draft N: most of them (8)\n"
                                "  --threads N  --cpu LEVEL   ref, avx2, avx512, amx, neon: the same text\n"
                                "  --cache-dir DIR   keep there what was computed, for the next time\n";

/* "ID=VALUE" of --bias. */
static int read_bias(gdn_session *s)
{
    for (int i = 0; i < s->o->bias.n; i++) {
        const char *const text = s->o->bias.text[i];
        char             *end;
        const size_t      digits = strspn(text, "0123456789");
        errno = 0;
        if (digits && digits < 10 && text[digits] == '=' && text[digits + 1]) {
            const char *value = text + digits + 1;
            s->bias[i] = (gdn_token_bias){(int32_t)strtol(text, NULL, 10), strtod(value, &end)};
            if (!strcmp(value, "-inf") || !value[strspn(value, "-.0123456789")]) {
                if (!*end) continue;
            }
        }
        return gdn_cli_fail(GDN_EXIT_USAGE, s->verb,
                            "--bias takes ID=NUMBER, a token's id and what is added to its logit, not '%s'", text);
    }
    return GDN_EXIT_OK;
}

/* The drafter of this name, or -1. */
static int drafter_of(const char *name)
{
    static const char *const names[] = {"off", "auto", "lookup", "mtp"};
    if (!name) return GDN_DRAFTER_AUTO;
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

static int check(const gdn_session_options *o, const char *verb)
{
    if (drafter_of(o->spec) < 0)
        return gdn_cli_fail(GDN_EXIT_USAGE, verb, "--spec takes auto, lookup, mtp or off, not '%s'", o->spec);
    if (drafter_of(o->spec) == GDN_DRAFTER_OFF && o->drafts)
        return gdn_cli_fail(GDN_EXIT_USAGE, verb, "--draft and --spec off contradict each other; use one of them");
    if (o->think && o->no_think)
        return gdn_cli_fail(GDN_EXIT_USAGE, verb, "--think and --no-think contradict each other; use one of them");
    if (o->cache_dir && !*o->cache_dir)
        return gdn_cli_fail(GDN_EXIT_USAGE, verb,
                            "--cache-dir takes the name of a folder that is not empty; leave it out");
    for (int i = 0; i < o->stops.n; i++)
        if (!*o->stops.text[i])
            return gdn_cli_fail(GDN_EXIT_USAGE, verb, "--stop takes a text that is not empty; leave it out");
    return GDN_EXIT_OK;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static gdn_status open_stops(gdn_session *s, gdn_error *err)
{
    gdn_stop stops[GDN_TEXTS_MAX];
    for (int i = 0; i < s->o->stops.n; i++) stops[i] = (gdn_stop){s->o->stops.text[i], strlen(s->o->stops.text[i])};
    return gdn_stops_open(&s->stops, stops, s->o->stops.n, err);
}

static gdn_sampler_options sampling(const gdn_session *s)
{
    const gdn_session_options *o = s->o;
    const gdn_sampler_options  d = gdn_engine_default_sampling(s->engine);
    return (gdn_sampler_options){.temperature = o->temperature < 0 ? d.temperature : o->temperature,
                                 .top_k = o->top_k < 0 ? d.top_k : o->top_k,
                                 .top_p = o->top_p < 0 ? d.top_p : o->top_p,
                                 .min_p = o->min_p < 0 ? d.min_p : o->min_p,
                                 .repetition_penalty = o->repeat < 0 ? d.repetition_penalty : o->repeat,
                                 .presence_penalty = o->presence,
                                 .frequency_penalty = o->frequency,
                                 .n_bias = o->bias.n,
                                 .bias = s->bias,
                                 .seed = (uint64_t)o->seed};
}

int gdn_session_open(gdn_session *s, const char *verb, const gdn_session_options *o)
{
    gdn_error err;
    *s = (gdn_session){.verb = verb, .o = o};
    int status = check(o, verb);
    if (!status) status = read_bias(s);
    if (!status) status = gdn_cli_find_model(&s->model, verb, o->model);
    if (status) return status;
    const gdn_engine_options opening = {.model = s->model.text,
                                        .level = o->level,
                                        .n_threads = o->threads,
                                        .n_sequences = 1,
                                        .max_tokens = o->context,
                                        .kv_type = GDN_BF16, /* what gdn info plans */
                                        .cache_dir = o->cache_dir,
                                        .drafter = (gdn_drafter)drafter_of(o->spec),
                                        .n_drafts = o->drafts,
                                        .progress = o->quiet ? NULL : gdn_progress_load};
    if (gdn_engine_open(&s->engine, &opening, &err) || gdn_sequence_open(&s->sequence, s->engine, &err))
        return gdn_cli_fail(GDN_EXIT_FAILED, verb, "%s", err.message);
    if (open_stops(s, &err)) return gdn_cli_fail(GDN_EXIT_USAGE, verb, "%s", err.message);
    const size_t room = gdn_decoder_room(gdn_engine_tokenizer(s->engine)) + 4;
    s->sampling = sampling(s);
    s->piece = malloc(room);
    s->shown = malloc(room + gdn_stops_held_max(s->stops));
    if (!s->piece || !s->shown) return gdn_cli_fail(GDN_EXIT_FAILED, verb, "no memory");
    gdn_signals_catch();
    return GDN_EXIT_OK;
}

void gdn_session_close(gdn_session *s)
{
    free(s->piece);
    free(s->shown);
    gdn_stops_close(s->stops);
    gdn_sequence_close(s->sequence);
    gdn_engine_close(s->engine);
}

/* ---- chats --------------------------------------------------------------------------------------------------------- */

static gdn_status encode(const gdn_session *s, json_t *vars, gdn_ids *ids, int *thinks, gdn_error *err)
{
    const time_t now = time(NULL);
    struct tm    local;
    json_object_set_new(vars, "add_generation_prompt", json_true());
    char            *text = json_dumps(vars, 0);
    const gdn_status status = gdn_engine_encode_chat(s->engine, text, localtime_r(&now, &local), ids, thinks, err);
    free(text);
    return status;
}

gdn_status gdn_session_encode(const gdn_session *s, json_t *vars, gdn_ids *ids, int *thinks, gdn_error *err)
{
    if (s->o->think || s->o->no_think) json_object_set_new(vars, "enable_thinking", json_boolean(s->o->think));
    return encode(s, vars, ids, thinks, err);
}

bool gdn_session_can_think(const gdn_session *s)
{
    gdn_error err;
    gdn_ids   ids[2] = {{0}};
    bool      made = true;
    for (int on = 0; on < 2; on++) {
        json_t *vars =
            json_pack("{s:[{s:s,s:s}],s:b}", "messages", "role", "user", "content", "a", "enable_thinking", on);
        made = made && vars && !encode(s, vars, &ids[on], NULL, &err);
        json_decref(vars);
    }
    const bool differ =
        made && (ids[0].n != ids[1].n || memcmp(ids[0].id, ids[1].id, ids[0].n * sizeof *ids[0].id) != 0);
    free(ids[0].id);
    free(ids[1].id);
    return differ;
}
