/* Drafts of the model's MTP layer, which takes what the model put out at a token and the token after it. */
#include "engine/draft.h"
#include "device/compute.h"
#include <string.h>

enum {
    FEW = 1 + GDN_DRAFTS_MAX, /* rows of a sequence that go into the pass that drafts, if that has room for all */
    COMMON = 65536,           /* ids below it are of common tokens */
    RECENT = 64,              /* tokens of a text, */
    RARE = 6                  /* of which so many are rare: it is made of such */
};

static size_t width(const gdn_engine *e) { return (size_t)e->model->config.hidden_size; }

/* A row is at the position of its token, in pages that the sequence has: nothing here can fail. */
static void run(gdn_engine *e, const gdn_forward_args *args, const float *hidden)
{
    gdn_mtp_forward(e->model, e->compute, e->workspace, e->kv, args, e->mtp_places, hidden, NULL);
}

static void keep_last(const gdn_sequence *seq)
{
    gdn_draft *const d = seq->draft;
    const size_t     h = width(seq->engine);
    memmove(d->hidden, d->hidden + (size_t)(d->n_hidden - 1) * h, h * sizeof *d->hidden);
    d->n_hidden = 1;
}

void gdn_mtp_catch_up(const gdn_sequence *seq, int ahead)
{
    gdn_engine *const e = seq->engine;
    const int         n = seq->draft->n_hidden - 1, first = seq->length - ahead - n;
    if (n < 1) return;
    memset(e->mtp_rows, 0, (size_t)e->n_sequences * sizeof *e->mtp_rows);
    e->mtp_rows[seq->lane] = n;
    e->mtp_places[seq->lane] = first;
    run(e, &(gdn_forward_args){.n_lanes = e->n_sequences, .n_tokens = e->mtp_rows, .tokens = seq->tokens + first},
        seq->draft->hidden);
    keep_last(seq);
}

/* The rows of the first pass: for each lane that drafts, the tokens that the layer has not seen, the last of them with the one
 * that is about to come.  Returns the number of lanes. */
static int gather_first(gdn_engine *e, const int *depth)
{
    const size_t h = width(e);
    int          n_rows = 0, n_wanted = 0;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        e->mtp_rows[lane] = 0;
        if (!depth[lane]) continue;
        const gdn_sequence *seq = e->call_of[lane]->sequence;
        const int           n = seq->draft->n_hidden;
        memcpy(e->mtp_tokens + n_rows, seq->tokens + seq->length - n + 1, (size_t)(n - 1) * sizeof *e->mtp_tokens);
        memcpy(e->hidden + (size_t)n_rows * h, seq->draft->hidden, (size_t)n * h * sizeof *e->hidden);
        n_rows += n;
        e->mtp_tokens[n_rows - 1] = e->call_of[lane]->token;
        e->mtp_rows[lane] = n;
        e->mtp_places[lane] = seq->length - n + 1;
        e->wanted[n_wanted++] = n_rows - 1;
    }
    return n_wanted;
}

/* The rows of the pass after `done` drafts: of each lane that goes on, its last draft and what the layer put out there. */
static int gather_next(gdn_engine *e, const int *depth, int done)
{
    const size_t h = width(e);
    int          n_rows = 0, from = 0;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        e->mtp_rows[lane] = 0;
        if (depth[lane] < done) continue; /* it had no row in the pass before */
        const int last = e->wanted[from++];
        if (depth[lane] == done) continue;
        memmove(e->hidden + (size_t)n_rows * h, e->hidden + (size_t)last * h, h * sizeof *e->hidden);
        e->mtp_tokens[n_rows] = e->drafts[(size_t)lane * GDN_DRAFTS_MAX + done - 1];
        e->wanted[n_rows] = n_rows;
        e->mtp_rows[lane] = 1;
        e->mtp_places[lane] = e->call_of[lane]->sequence->length + done;
        n_rows++;
    }
    return n_rows;
}

/* The output matrix is most of what a draft costs, and rare tokens have high ids: only the first are considered, unless a text
 * is made of others. */
static int n_considered(const gdn_engine *e, const int *depth)
{
    const int n_usable = gdn_engine_n_usable(e);
    for (int lane = 0; lane < e->n_sequences && n_usable > COMMON; lane++) {
        if (!depth[lane]) continue;
        const gdn_sequence *const seq = e->call_of[lane]->sequence;
        int                       n_rare = 0;
        for (int i = seq->length < RECENT ? 0 : seq->length - RECENT; i < seq->length; i++)
            n_rare += seq->tokens[i] >= COMMON;
        if (n_rare > RARE) return n_usable;
    }
    return n_usable < COMMON ? n_usable : COMMON;
}

static int32_t likeliest(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void pass(gdn_engine *e, int n_wanted, int n_logits)
{
    const gdn_forward_args args = {.n_lanes = e->n_sequences,
                                   .n_tokens = e->mtp_rows,
                                   .tokens = e->mtp_tokens,
                                   .n_wanted = n_wanted,
                                   .wanted = e->wanted,
                                   .n_logits = n_logits,
                                   .logits = e->logits,
                                   .hidden = e->hidden};
    const double           start = gdn_engine_now();
    run(e, &args, e->hidden);
    gdn_costs_mtp(&e->costs, gdn_engine_now() - start);
    e->n_mtp_runs++;
}

/* Take what the pass says; `done`: drafts before it. */
static void take(gdn_engine *e, const int *depth, int done, int n_logits)
{
    const size_t V = (size_t)e->model->config.vocab_size;
    const float *logits = e->logits;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        if (depth[lane] <= done) continue;
        e->drafts[(size_t)lane * GDN_DRAFTS_MAX + done] = likeliest(logits, n_logits);
        e->n_drafted[lane] = done + 1;
        logits += V;
    }
}

void gdn_mtp_draft(gdn_engine *e, const int *depth)
{
    const int few = e->n_sequences * FEW <= e->max_step ? FEW : 1;
    int       most = 0;
    for (int lane = 0; lane < e->n_sequences; lane++) most = depth[lane] > most ? depth[lane] : most;
    /* The rows lie where the drafts themselves will, when they are verified. */
    if (!most || gdn_prefix_reserve(e->prefix, depth, e->n_sequences, NULL)) return;
    for (int lane = 0; lane < e->n_sequences; lane++)
        if (depth[lane] && e->call_of[lane]->sequence->draft->n_hidden > few)
            gdn_mtp_catch_up(e->call_of[lane]->sequence, 0);
    const int n_logits = n_considered(e, depth);
    for (int done = 0; done < most; done++) {
        pass(e, done ? gather_next(e, depth, done) : gather_first(e, depth), n_logits);
        take(e, depth, done, n_logits);
    }
    for (int lane = 0; lane < e->n_sequences; lane++) { /* rows behind the end count for nothing */
        if (!depth[lane]) continue;
        gdn_kv_set_length(e->kv, lane, e->call_of[lane]->sequence->length);
        keep_last(e->call_of[lane]->sequence);
    }
}
