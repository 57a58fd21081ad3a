/* One answer: the prompt through the sequence, then a token at a time. */
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/signals.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct making {
    gdn_session        *s;
    const gdn_question *q;
    gdn_answer         *a;
    gdn_sampler        *sampler;
    gdn_output         *output; /* NULL: text is taken as it is */
    gdn_decoder         decoder;
    int                 ended, full; /* by a stop string; no memory */
    int                 status;
} making;

static int failed(const making *m, const gdn_error *err)
{
    return gdn_cli_fail(GDN_EXIT_FAILED, m->s->verb, "%s", err->message);
}

/* ---- from tokens to text ------------------------------------------------------------------------------------------- */

static json_t *call_of(const gdn_output_event *event)
{
    json_t *arguments = json_loadb(event->text, event->n_bytes, 0, NULL);
    return json_pack("{s:s,s:{s:s,s:o}}", "type", "function", "function", "name", event->name, "arguments", arguments);
}

static void take(void *arg, const gdn_output_event *event)
{
    making *m = arg;
    if (event->kind == GDN_OUTPUT_CALL) m->full |= json_array_append_new(m->a->calls, call_of(event)) != 0;
    else
        m->full |= !gdn_text_append(event->kind == GDN_OUTPUT_CONTENT ? &m->a->text : &m->a->reasoning, event->text,
                                    event->n_bytes);
    if (m->q->show) m->q->show(m->q->arg, event);
}

static int give(making *m, const char *text, size_t n)
{
    gdn_error err;
    if (!n) return GDN_EXIT_OK;
    if (!m->output) take(m, &(gdn_output_event){.kind = GDN_OUTPUT_CONTENT, .text = text, .n_bytes = n});
    else if (gdn_output_feed(m->output, text, n, &err)) return failed(m, &err);
    if (m->full) return gdn_cli_fail(GDN_EXIT_FAILED, m->s->verb, "no memory for the answer");
    return m->q->failed && *m->q->failed ? GDN_EXIT_FAILED : GDN_EXIT_OK;
}

/* Text that tokens have completed, through the stop strings. */
static int pass(making *m, size_t n)
{
    const size_t n_shown = gdn_stops_put(m->s->stops, m->s->piece, n, m->s->shown);
    m->a->stop = gdn_stops_matched(m->s->stops);
    m->ended = m->a->stop >= 0;
    return give(m, m->s->shown, n_shown);
}

/* What was held back, if nothing ended the text before. */
static int finish(making *m)
{
    gdn_error err;
    int       status = m->ended ? GDN_EXIT_OK : pass(m, gdn_decoder_end(&m->decoder, m->s->piece));
    if (!status) status = give(m, m->s->shown, gdn_stops_end(m->s->stops, m->s->shown));
    if (!status && m->output && gdn_output_end(m->output, &err)) status = failed(m, &err);
    if (!status && m->full) status = gdn_cli_fail(GDN_EXIT_FAILED, m->s->verb, "no memory for the answer");
    return status ? status : m->q->failed && *m->q->failed ? GDN_EXIT_FAILED : GDN_EXIT_OK;
}

/* ---- tokens -------------------------------------------------------------------------------------------------------- */

static json_t *logprob(double value) { return isinf(value) ? json_null() : json_real(value); }

/* What is likely after the tokens so far, and how likely what was picked is. */
static int note_logprobs(making *m, const float *logits, int32_t token)
{
    const gdn_tokenizer *const tokenizer = gdn_engine_tokenizer(m->s->engine);
    gdn_logprob                top[GDN_LOGPROBS_MAX];
    const int                  n = m->q->n_logprobs;
    if (n < 0) return GDN_EXIT_OK;
    const double chosen = gdn_logprobs(logits, gdn_engine_vocab_size(m->s->engine), token, top, n);
    json_t      *entry = gdn_json_piece(tokenizer, token), *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *other = gdn_json_piece(tokenizer, top[i].id);
        json_object_set_new(other, "logprob", logprob(top[i].logprob));
        json_array_append_new(list, other);
    }
    json_object_set_new(entry, "logprob", logprob(chosen));
    json_object_set_new(entry, "top", list);
    if (!json_array_append_new(m->a->logprobs, entry)) return GDN_EXIT_OK;
    return gdn_cli_fail(GDN_EXIT_FAILED, m->s->verb, "no memory for the logprobs");
}

/* The token after these logits, made into text; -1: it is the last. */
static int32_t pick(void *arg, const float *logits)
{
    making *const      m = arg;
    gdn_session *const s = m->s;
    gdn_answer *const  a = m->a;
    if (gdn_interrupted()) {
        a->finish = GDN_FINISH_INTERRUPTED;
        return -1;
    }
    const int32_t token = gdn_sampler_pick(m->sampler, logits, NULL);
    gdn_sampler_accept(m->sampler, token, true);
    if (!a->n_made++) a->first_token = gdn_cli_seconds();
    m->status = note_logprobs(m, logits, token);
    const int is_stop = gdn_engine_is_stop(s->engine, token);
    if (!m->status && !is_stop) m->status = pass(m, gdn_decoder_put(&m->decoder, token, s->piece));
    if (is_stop || m->ended) a->finish = GDN_FINISH_STOP;
    if (m->status || is_stop || m->ended || a->n_made == s->o->most) return -1;
    if (m->q->prompt->n + (size_t)a->n_made <= (size_t)gdn_engine_max_tokens(s->engine)) return token;
    a->finish = GDN_FINISH_CONTEXT;
    return -1;
}

static gdn_draft_stats since(const gdn_draft_stats *before, gdn_draft_stats now)
{
    now.n_passes -= before->n_passes;
    now.n_tokens -= before->n_tokens;
    now.n_drafted -= before->n_drafted;
    now.n_accepted -= before->n_accepted;
    now.seconds -= before->seconds;
    now.plain_seconds -= before->plain_seconds;
    return now;
}

static int make_text(making *m)
{
    gdn_session *const    s = m->s;
    gdn_answer *const     a = m->a;
    gdn_error             err;
    const double          start = gdn_cli_seconds();
    const gdn_draft_stats before = gdn_sequence_draft_stats(s->sequence);
    a->finish = GDN_FINISH_LENGTH;
    int32_t token = pick(m, gdn_sequence_logits(s->sequence));
    while (token >= 0) {
        gdn_verify next = {.sequence = s->sequence, .token = token, .pick = pick, .arg = m};
        const int  refused = gdn_engine_verify(s->engine, &next, 1, &err) != GDN_OK;
        if (refused) m->status = failed(m, &err);
        token = refused ? -1 : next.next;
    }
    if (!m->status) m->status = finish(m);
    else gdn_stops_end(s->stops, s->shown);
    a->made_seconds = gdn_cli_seconds() - start;
    a->drafts = since(&before, gdn_sequence_draft_stats(s->sequence));
    return m->status;
}

/* ---- the prompt ---------------------------------------------------------------------------------------------------- */

static int on_progress(void *arg, int done, int total)
{
    const making *m = arg;
    if (!m->s->o->quiet) gdn_progress_prompt(gdn_interrupted() ? total : done, total);
    return gdn_interrupted();
}

static int read_prompt(making *m)
{
    gdn_error            err;
    const gdn_ids *const prompt = m->q->prompt;
    const double         start = gdn_cli_seconds();
    for (size_t i = 0; i < prompt->n; i++) gdn_sampler_accept(m->sampler, prompt->id[i], false);
    m->a->n_prompt = (int)prompt->n;
    const gdn_status s =
        gdn_sequence_set(m->s->sequence, prompt->id, (int)prompt->n, on_progress, m, &m->a->n_computed, &err);
    m->a->prompt_seconds = gdn_cli_seconds() - start;
    if (!s) return GDN_EXIT_OK;
    m->a->finish = GDN_FINISH_INTERRUPTED;
    return gdn_interrupted() ? GDN_EXIT_OK : failed(m, &err);
}

static int open_parts(making *m)
{
    gdn_error           err;
    gdn_session *const  s = m->s;
    gdn_sampler_options sampling = s->sampling;
    sampling.seed += m->q->seed;
    gdn_status status = gdn_sampler_open(&m->sampler, gdn_engine_vocab_size(s->engine), gdn_engine_n_usable(s->engine),
                                         &sampling, &err);
    if (status)
        return gdn_cli_fail(status == GDN_BAD_ARGUMENT ? GDN_EXIT_USAGE : GDN_EXIT_FAILED, s->verb, "%s", err.message);
    if (m->q->chat) {
        char *tools = m->q->tools ? json_dumps(m->q->tools, 0) : NULL;
        status = gdn_output_open(&m->output, tools, m->q->thinks, take, m, &err);
        free(tools);
        if (status) return failed(m, &err);
    }
    m->decoder = (gdn_decoder){.tokenizer = gdn_engine_tokenizer(s->engine), .skip_special = true};
    m->a->calls = json_array();
    if (m->q->n_logprobs >= 0) m->a->logprobs = json_array();
    return GDN_EXIT_OK;
}

int gdn_session_answer(gdn_session *s, const gdn_question *q, gdn_answer *a)
{
    making m = {.s = s, .q = q, .a = a};
    *a = (gdn_answer){.stop = -1};
    int status = open_parts(&m);
    if (!status) status = read_prompt(&m);
    if (!status && a->finish != GDN_FINISH_INTERRUPTED) status = make_text(&m);
    gdn_output_close(m.output);
    gdn_sampler_close(m.sampler);
    return status;
}

void gdn_answer_free(gdn_answer *a)
{
    free(a->text.bytes);
    free(a->reasoning.bytes);
    json_decref(a->calls);
    json_decref(a->logprobs);
    *a = (gdn_answer){.calls = NULL};
}
