/* gdn run: a prompt, and the text that the model makes of it. */
#include "cli/json.h"
#include "cli/messages.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/signals.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct options {
    gdn_session_options session;
    const char         *text, *file, *state;
    int                 chat, json, logprobs, help;
} options;

static int help(void)
{
    printf("gdn run - answer a prompt\n"
           "\n"
           "usage: gdn run [MODEL] [-p TEXT | -f FILE] [options]    without both from stdin\n"
           "\n"
           "  --chat            the prompt is a user's message, or JSON: a list of messages\n"
           "                    or {\"messages\": ..., \"tools\": ...}; else it is continued\n"
           "  --system TEXT     a system message for --chat\n"
           "  --think  --no-think   ask the chat template for thoughts, or for none\n"
           "  -n N              most tokens to make (512)\n"
           "%s"
           "  --state FILE      begin with the prompt that is kept there, and keep this one\n"
           "  --json            one object at the end; with --logprobs N and the N likeliest\n"
           "  --quiet           nothing on stderr but errors\n"
           "  gdn run --chat -p 'What is 12 + 30?'\n"
           "  gdn run -p 'Once upon a time' -n 100 --temperature 0.8 --seed 7\n"
           "  gdn run Qwen/Qwen3.5-0.8B --chat -f question.txt --json\n",
           gdn_session_help);
    return GDN_EXIT_OK;
}

/* ---- from the command line to a prompt ---------------------------------------------------------------------------- */

static int read_prompt(const options *o, gdn_text *text)
{
    gdn_text repaired = {0};
    bool     broken = false;
    int      status = GDN_EXIT_OK;
    if (!o->text) status = gdn_cli_read(text, "run", o->file);
    else if (!gdn_text_append(text, o->text, strlen(o->text)))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "no memory for the prompt");
    if (status) return status;
    if (!text->n)
        return gdn_cli_fail(GDN_EXIT_USAGE, "run", "the prompt is empty; give one with -p, -f or standard input");
    if (!gdn_text_repair(&repaired, text->bytes, text->n, &broken))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "no memory for the prompt");
    else if (broken) status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "the prompt is not UTF-8; convert it first");
    free(repaired.bytes);
    return status;
}

/* Put the system message of the command line before the others. */
static int add_system(const char *text, json_t *messages)
{
    const char *first = json_string_value(json_object_get(json_array_get(messages, 0), "role"));
    if (first && !strcmp(first, "system"))
        return gdn_cli_fail(GDN_EXIT_USAGE, "run", "the messages begin with a system message; leave out --system");
    json_t *message = json_pack("{s:s,s:s}", "role", "system", "content", text);
    if (message && !json_array_insert_new(messages, 0, message)) return GDN_EXIT_OK;
    return gdn_cli_fail(GDN_EXIT_FAILED, "run", "--system is not UTF-8; convert it first");
}

/* The variables of the chat template: messages from JSON, or one message of the user. */
static int read_chat(const options *o, const gdn_text *text, json_t **vars)
{
    char why[GDN_WHY];
    bool meant;
    *vars = gdn_messages_parse(text->bytes, text->n, &meant, why);
    if (!*vars && meant) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "the prompt %s", why);
    if (!*vars) *vars = json_pack("{s:[{s:s,s:s%}]}", "messages", "role", "user", "content", text->bytes, text->n);
    if (!*vars) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "no memory for the prompt");
    return o->session.system ? add_system(o->session.system, json_object_get(*vars, "messages")) : GDN_EXIT_OK;
}

static int encode(const gdn_session *s, json_t *vars, const gdn_text *text, gdn_ids *ids, int *thinks)
{
    gdn_error        err;
    const gdn_span   span = {text->bytes, text->n, false};
    const gdn_status status = vars ? gdn_session_encode(s, vars, ids, thinks, &err)
                                   : gdn_tokenizer_encode(gdn_engine_tokenizer(s->engine), &span, 1, ids, &err);
    if (status) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    if (!ids->n) return gdn_cli_fail(GDN_EXIT_USAGE, "run", "the prompt has no tokens; write more of it");
    if (ids->n < (size_t)gdn_engine_max_tokens(s->engine)) return GDN_EXIT_OK;
    return gdn_cli_fail(GDN_EXIT_FAILED, "run",
                        "the prompt has %zu tokens and the context has room for %d; shorten it, or raise --context",
                        ids->n, gdn_engine_max_tokens(s->engine));
}

/* ---- the answer ---------------------------------------------------------------------------------------------------- */

static const char *finish_reason(const gdn_answer *a)
{
    switch (a->finish) {
    case GDN_FINISH_STOP: return json_array_size(a->calls) ? "tool_calls" : "stop";
    case GDN_FINISH_LENGTH:
    case GDN_FINISH_CONTEXT: return "length";
    case GDN_FINISH_INTERRUPTED: break;
    }
    return "interrupted";
}

static json_t *text_of(const gdn_text *text) { return json_stringn(text->bytes ? text->bytes : "", text->n); }
static json_t *ms_of(double seconds) { return seconds > 0 ? json_real(1e3 * seconds) : json_null(); }
static json_t *rate_of(int n, double seconds) { return seconds > 0 ? json_real(n / seconds) : json_null(); }

static json_t *speed_up_of(const gdn_draft_stats *s)
{
    return s->seconds > 0 ? json_real(s->plain_seconds / s->seconds) : json_null();
}

static int print_json(const gdn_session *s, const gdn_answer *a)
{
    const gdn_compute *compute = gdn_engine_compute(s->engine);
    json_t            *root = json_pack("{s:s,s:o,s:o,s:O,s:s,s:s?}", "model", s->model.text, "text", text_of(&a->text),
                                        "reasoning", text_of(&a->reasoning), "tool_calls", a->calls, "finish_reason",
                                        finish_reason(a), "stop", a->stop < 0 ? NULL : s->o->stops.text[a->stop]);
    json_t            *numbers =
        json_pack("{s:i,s:i,s:i,s:o,s:o,s:o,s:o,s:o,s:s,s:i}", "prompt_tokens", a->n_prompt, "cached_tokens",
                  a->n_prompt - a->n_computed, "answer_tokens", a->n_made, "first_token_ms", ms_of(a->first_token),
                  "prompt_ms", ms_of(a->prompt_seconds), "answer_ms", ms_of(a->made_seconds),
                  "prompt_tokens_per_second", rate_of(a->n_computed, a->prompt_seconds), "answer_tokens_per_second",
                  rate_of(a->n_made, a->made_seconds), "cpu_level", gdn_compute_level(compute), "threads",
                  gdn_compute_threads(compute));
    json_object_set_new(root, "drafts",
                        json_pack("{s:I,s:I,s:I,s:o}", "passes", (json_int_t)a->drafts.n_passes, "made",
                                  (json_int_t)a->drafts.n_drafted, "accepted", (json_int_t)a->drafts.n_accepted,
                                  "speed_up", speed_up_of(&a->drafts)));
    if (root && a->logprobs) json_object_set(root, "logprobs", a->logprobs);
    if (!root || json_object_update(root, numbers))
        return gdn_cli_fail(GDN_EXIT_FAILED, "run", "the model's path or a --stop is not UTF-8, or memory is out");
    json_decref(numbers);
    return gdn_json_print("run", root, "\n");
}

static int stop_if_interrupted(void *arg, int done, int total)
{
    (void)arg, (void)done, (void)total;
    return gdn_interrupted();
}

/* With --state: go on from what the file has, if there is one, and write what the next prompt will begin with: of a chat all turns
 * before the one that is to be answered, since templates change what they show of an answer later. */
static int use_state(const options *o, gdn_session *s, const gdn_ids *ids, gdn_answer *a)
{
    static const char turn[] = "<|im_start|>";
    gdn_error         err;
    const int32_t     id = gdn_tokenizer_find(gdn_engine_tokenizer(s->engine), turn, sizeof turn - 1);
    const double      start = gdn_cli_seconds();
    size_t            n = ids->n;
    if (!access(o->state, F_OK) && gdn_sequence_load(s->sequence, o->state, &err))
        return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s: %s", o->state, err.message);
    for (size_t i = ids->n - 1; o->chat && i > 0 && n == ids->n; i--)
        if (ids->id[i] == id) n = i;
    gdn_status status = gdn_sequence_set(s->sequence, ids->id, (int)n, stop_if_interrupted, NULL, &a->n_computed, &err);
    if (status && gdn_interrupted()) return GDN_EXIT_INTERRUPTED;
    if (!status) status = gdn_sequence_save(s->sequence, o->state, &err);
    if (status) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "--state: %s", err.message);
    a->prompt_seconds = gdn_cli_seconds() - start;
    return GDN_EXIT_OK;
}

static int answer(const options *o, gdn_session *s, json_t *vars, const gdn_text *text)
{
    gdn_ids      ids = {0};
    gdn_answer   a = {.calls = NULL}, before = a;
    gdn_show     show;
    gdn_question q = {.prompt = &ids, .chat = vars != NULL, .n_logprobs = o->json ? o->logprobs : -1};
    gdn_show_start(&show, o->session.quiet);
    if (!o->json) {
        q.show = gdn_show_event;
        q.arg = &show;
        q.failed = &show.failed;
    }
    q.tools = json_object_get(vars, "tools");
    int status = encode(s, vars, text, &ids, &q.thinks);
    if (!status && o->state) status = use_state(o, s, &ids, &before);
    if (!status) {
        status = gdn_session_answer(s, &q, &a);
        a.n_computed += before.n_computed;
        a.prompt_seconds += before.prompt_seconds;
        if (!status && o->json) status = print_json(s, &a);
        else if (!o->json && a.n_made && gdn_show_end(&show)) status = GDN_EXIT_FAILED;
        if (!status) status = gdn_cli_flush();
        if (!status) gdn_show_summary(&show, s, &a);
    }
    if (!status && a.finish == GDN_FINISH_CONTEXT && !o->session.quiet)
        fprintf(stderr, "gdn run: the context of %d tokens is full (--context)\n", gdn_engine_max_tokens(s->engine));
    if (!status && a.finish == GDN_FINISH_INTERRUPTED) status = GDN_EXIT_INTERRUPTED;
    gdn_answer_free(&a);
    free(ids.id);
    return status;
}

static int check(const options *o)
{
    const gdn_session_options *s = &o->session;
    if (o->text && o->file) return gdn_cli_fail(GDN_EXIT_USAGE, "run", "-p and -f both give a prompt; use one of them");
    if (!o->chat && (s->system || s->think || s->no_think))
        return gdn_cli_fail(GDN_EXIT_USAGE, "run", "%s says how a chat is answered; add --chat",
                            s->system  ? "--system"
                            : s->think ? "--think"
                                       : "--no-think");
    if (o->logprobs >= 0 && !o->json)
        return gdn_cli_fail(GDN_EXIT_USAGE, "run", "--logprobs are a part of what --json prints; add --json");
    return GDN_EXIT_OK;
}

int gdn_verb_run(int argc, char **argv)
{
    options    o = {.session = GDN_SESSION_DEFAULTS, .logprobs = -1};
    gdn_option table[GDN_SESSION_OPTIONS + 7] = {
        {"-p", GDN_OPTION_TEXT, &o.text, 0, 0},       {"-f", GDN_OPTION_TEXT, &o.file, 0, 0},
        {"--chat", GDN_OPTION_FLAG, &o.chat, 0, 0},   {"--json", GDN_OPTION_FLAG, &o.json, 0, 0},
        {"--help", GDN_OPTION_FLAG, &o.help, 0, 0},   {"--logprobs", GDN_OPTION_INT, &o.logprobs, 0, GDN_LOGPROBS_MAX},
        {"--state", GDN_OPTION_TEXT, &o.state, 0, 0},
    };
    o.session.most = 512;
    gdn_session_table(table + 7, &o.session);
    int status = gdn_options_read("run", argc, argv, table, sizeof table / sizeof *table);
    if (status) return status;
    if (o.help) return help();
    if ((status = check(&o))) return status;

    gdn_session session = {.verb = "run"};
    gdn_text    text = {0};
    json_t     *vars = NULL;
    status = read_prompt(&o, &text);
    if (!status && o.chat) status = read_chat(&o, &text, &vars);
    if (!status) status = gdn_session_open(&session, "run", &o.session);
    if (!status) status = answer(&o, &session, vars, &text);
    gdn_session_close(&session);
    json_decref(vars);
    free(text.bytes);
    return status;
}
