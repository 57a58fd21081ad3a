#include "engine/draft.h"
#include "state/cache.h"
#include <string.h>
#include <time.h>

double gdn_engine_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int gdn_judge(const float *logits, size_t V, const int32_t *drafts, int n_drafts, gdn_pick_fn *pick, void *arg,
              int32_t *next)
{
    for (int row = 0;; row++) {
        *next = pick(arg, logits + (size_t)row * V);
        if (row == n_drafts || *next != drafts[row]) return row;
    }
}

/* ---- checks ---------------------------------------------------------------------------------------------------------- */

static gdn_status check_drafts(const gdn_engine *e, const gdn_verify *call, int i, gdn_error *err)
{
    if (call->n_drafts < 0 || call->n_drafts > e->n_drafts)
        return gdn_fail(err, GDN_BAD_ARGUMENT, i, "verify %d: %d drafts; this engine was opened for 0 to %d", i,
                        call->n_drafts, e->n_drafts);
    for (int k = 0; call->drafts && k < call->n_drafts; k++)
        if (call->drafts[k] < 0 || call->drafts[k] >= e->model->config.vocab_size)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "verify %d: draft %d is %d; ids go from 0 to %d", i, k,
                            (int)call->drafts[k], e->model->config.vocab_size - 1);
    return GDN_OK;
}

/* Find the call of each lane; its checks are done on the way. */
static gdn_status sort_calls(gdn_engine *e, gdn_verify *calls, int n, gdn_error *err)
{
    memset(e->call_of, 0, (size_t)e->n_sequences * sizeof *e->call_of);
    for (int i = 0; i < n; i++) {
        gdn_verify *const call = &calls[i];
        if (!call->pick)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "verify %d: pick is NULL; pass what picks the next token", i);
        const gdn_step step = {call->sequence, &call->token, 1};
        gdn_status     status = gdn_engine_check_step(e, &step, i, err);
        if (!status) status = check_drafts(e, call, i, err);
        if (status) return status;
        gdn_verify **const of = &e->call_of[call->sequence->lane];
        if (*of)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "verify %d: its sequence is that of call %d too; use one", i,
                            (int)(*of - calls));
        *of = call;
    }
    return GDN_OK;
}

/* ---- the pass -------------------------------------------------------------------------------------------------------- */

int gdn_verify_room(const gdn_verify *call, int n_drafts)
{
    const gdn_sequence *const seq = call->sequence;
    const int                 room = seq->engine->max_tokens - seq->length - 1;
    return n_drafts < room ? n_drafts : room;
}

/* The drafts that calls bring, as far as there is room, then those that the engine makes. */
static void gather_drafts(gdn_engine *e, int n_calls)
{
    int room = e->max_rows - n_calls;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        const gdn_verify *const call = e->call_of[lane];
        e->n_drafted[lane] = 0;
        e->kind[lane] = -1;
        if (!call || !call->drafts) continue;
        const int fit = gdn_verify_room(call, call->n_drafts), n = fit < room ? fit : room;
        memcpy(e->drafts + (size_t)lane * GDN_DRAFTS_MAX, call->drafts, (size_t)n * sizeof *e->drafts);
        e->n_drafted[lane] = n;
        room -= n;
    }
    if (e->drafter != GDN_DRAFTER_OFF) gdn_draft_guess(e, n_calls);
}

/* Lay the rows out, lane after lane: token and drafts; all are wanted.  Returns their number. */
static int gather_rows(gdn_engine *e)
{
    int n_rows = 0;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        e->n_tokens[lane] = 0;
        e->first_row[lane] = n_rows;
        if (!e->call_of[lane]) continue;
        const int n = e->n_drafted[lane];
        e->n_tokens[lane] = n + 1;
        e->tokens[n_rows] = e->call_of[lane]->token;
        memcpy(e->tokens + n_rows + 1, e->drafts + (size_t)lane * GDN_DRAFTS_MAX, (size_t)n * sizeof *e->tokens);
        n_rows += n + 1;
    }
    for (int row = 0; row < n_rows; row++) e->wanted[row] = row;
    return n_rows;
}

static gdn_status forward(gdn_engine *e, int n_calls, int n_rows, gdn_error *err)
{
    const gdn_forward_args args = {.n_lanes = e->n_sequences,
                                   .n_tokens = e->n_tokens,
                                   .tokens = e->tokens,
                                   .n_wanted = n_rows,
                                   .wanted = e->wanted,
                                   .logits = e->logits,
                                   .hidden = e->hidden};
    gdn_status             status = gdn_prefix_reserve(e->prefix, e->n_tokens, e->n_sequences, err);
    if (!status && n_rows > n_calls) status = gdn_round_begin_some(e->cache, e->n_drafted, err);
    if (!status) status = gdn_model_forward(e->model, e->compute, e->workspace, e->cache, e->kv, &args, err);
    if (status) gdn_round_drop(e->cache);
    return status;
}

/* ---- its end --------------------------------------------------------------------------------------------------------- */

static void judge(gdn_engine *e, gdn_verify *calls, int n)
{
    const size_t V = (size_t)e->model->config.vocab_size;
    memset(e->keep, 0, (size_t)e->n_sequences * sizeof *e->keep);
    for (int i = 0; i < n; i++) {
        gdn_verify *const call = &calls[i];
        const int         lane = call->sequence->lane;
        call->n_drafted = e->n_drafted[lane];
        call->n_accepted =
            gdn_judge(e->logits + (size_t)e->first_row[lane] * V, V, e->drafts + (size_t)lane * GDN_DRAFTS_MAX,
                      call->n_drafted, call->pick, call->arg, &call->next);
        e->keep[lane] = e->n_drafted[lane] ? 1 + call->n_accepted : 0;
    }
}

/* The sequence has its token and the drafts that were accepted; the rest was never there. */
static void append(gdn_engine *e, const gdn_verify *call)
{
    const size_t        V = (size_t)e->model->config.vocab_size, h = (size_t)e->model->config.hidden_size;
    gdn_sequence *const seq = call->sequence;
    const size_t        first = (size_t)e->first_row[seq->lane];
    const int           n = 1 + call->n_accepted;
    memcpy(seq->tokens + seq->length, e->tokens + first, (size_t)n * sizeof *seq->tokens);
    seq->length += n;
    gdn_kv_set_length(e->kv, seq->lane, seq->length);
    memcpy(seq->logits, e->logits + (first + (size_t)call->n_accepted) * V, V * sizeof *seq->logits);
    seq->has_logits = true;
    if (e->by_mtp) gdn_draft_follow(seq, n, e->hidden + first * h);
}

/* What a round of these calls took, of which guessing and computing took so long. */
static gdn_spent spent(const gdn_engine *e, const gdn_verify *calls, int n, double guesses, double pass)
{
    gdn_spent s = {.n_calls = n, .n_runs = e->n_mtp_runs, .seconds = guesses + pass};
    for (int i = 0; i < n; i++) {
        const gdn_verify *const call = &calls[i];
        const int               n_runs = e->depth[call->sequence->lane];
        s.n_drafts += call->n_drafted;
        if (call->n_drafts) {
            s.n_given += call->n_drafted;
            if (!call->drafts && n_runs > s.n_given_runs) s.n_given_runs = n_runs;
        } else {
            s.n_gained += call->n_accepted;
        }
    }
    return s;
}

/* Learn from the round. */
static void learn(gdn_engine *e, const gdn_verify *calls, int n, double guesses, double pass)
{
    const gdn_spent s = spent(e, calls, n, guesses, pass);
    gdn_costs_pass(&e->costs, n, s.n_drafts, pass);
    const double seconds = gdn_costs_round(&e->costs, &s), plain = gdn_costs_of(&e->costs, n, 0, 0);
    for (int i = 0; i < n; i++) {
        const gdn_verify *const call = &calls[i];
        gdn_draft_stats *const  stats = &call->sequence->stats;
        stats->n_passes++;
        stats->n_tokens += 1 + call->n_accepted;
        stats->n_drafted += call->n_drafted;
        stats->n_accepted += call->n_accepted;
        if (seconds > 0) {
            stats->seconds += seconds;
            stats->plain_seconds += plain * (1 + call->n_accepted);
        }
        gdn_draft_judged(call->sequence, e->kind[call->sequence->lane], call->n_drafted, call->n_accepted,
                         call->next < 0);
    }
}

static gdn_status verify(gdn_engine *e, gdn_verify *calls, int n, gdn_error *err)
{
    gdn_status status = sort_calls(e, calls, n, err);
    if (status) return status;
    e->n_mtp_runs = 0;
    const double begun = gdn_engine_now();
    gather_drafts(e, n);
    const double guessed = gdn_engine_now();
    int          n_rows = gather_rows(e);
    status = forward(e, n, n_rows, err);
    if (status == GDN_NO_SLOT && n_rows > n) { /* pages for the drafts: the text goes on without */
        memset(e->n_drafted, 0, (size_t)e->n_sequences * sizeof *e->n_drafted);
        n_rows = gather_rows(e);
        status = forward(e, n, n_rows, err);
    }
    if (status) return status;
    const double computed = gdn_engine_now();
    judge(e, calls, n);
    const double judged = gdn_engine_now();
    if (n_rows > n) gdn_round_rollback(e->compute, e->cache, e->keep, e->n_sequences, NULL); /* it fits the round */
    const double settled = gdn_engine_now();
    for (int i = 0; i < n; i++) append(e, &calls[i]);
    gdn_prefix_trim(e->prefix);
    learn(e, calls, n, guessed - begun, computed - guessed + settled - judged);
    return GDN_OK;
}

gdn_status gdn_engine_verify(gdn_engine *e, gdn_verify *calls, int n, gdn_error *err)
{
    if (!e || !calls) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "verify: engine and calls must not be NULL; pass both");
    if (n < 1 || n > e->n_sequences)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "verify: %d sequences; use 1 to %d", n, e->n_sequences);
    return verify(e, calls, n, err);
}

gdn_draft_stats gdn_sequence_draft_stats(const gdn_sequence *seq) { return seq->stats; }

int gdn_engine_n_drafts(const gdn_engine *e) { return e->n_drafts; }
