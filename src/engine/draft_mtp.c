/* Drafts of the model's MTP layer, which takes what the model put out at a token and the token after it. */
#include "engine/draft.h"
#include "device/compute.h"
#include <string.h>

static const float RARE = 0.1F; /* of a text's tokens */

enum { FEW = 1 + GDN_DRAFTS_MAX }; /* rows of a sequence that go into the pass that drafts, if that has room for all */

static size_t width(const gdn_engine *e) { return (size_t)e->model->config.hidden_size; }

void gdn_mtp_skip(gdn_sequence *seq)
{
    gdn_draft *const d = seq->draft;
    const size_t     h = width(seq->engine);
    if (d->n_hidden > 1) memcpy(d->hidden, d->hidden + (size_t)(d->n_hidden - 1) * h, h * sizeof *d->hidden);
    if (d->n_hidden > 1) d->n_hidden = 1;
}

/* Start anew at the last token, as after a lack of room. */
static void forget(gdn_sequence *seq)
{
    gdn_kv_set_length(seq->engine->mtp_kv, seq->lane, 0);
    gdn_mtp_skip(seq);
}

void gdn_mtp_catch_up(gdn_sequence *seq, int ahead)
{
    gdn_engine *const e = seq->engine;
    gdn_draft *const  d = seq->draft;
    const int         n = d->n_hidden - 1;
    if (n < 1) return;
    memset(e->mtp_rows, 0, (size_t)e->n_sequences * sizeof *e->mtp_rows);
    e->mtp_rows[seq->lane] = n;
    const gdn_forward_args args = {.n_lanes = e->n_sequences,
                                   .n_tokens = e->mtp_rows,
                                   .tokens = seq->tokens + seq->length - ahead - n};
    if (gdn_mtp_forward(e->model, e->compute, e->workspace, e->mtp_kv, &args, d->hidden, NULL)) {
        forget(seq);
        return;
    }
    memmove(d->hidden, d->hidden + (size_t)n * width(e), width(e) * sizeof *d->hidden);
    d->n_hidden = 1;
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
        n_rows++;
    }
    return n_rows;
}

/* The output matrix is most of what a draft costs, and rare tokens have high ids: only the first are considered, unless a text
 * is made of others. */
static int n_considered(const gdn_engine *e, const int *depth)
{
    const int n_usable = gdn_engine_n_usable(e);
    for (int lane = 0; lane < e->n_sequences; lane++)
        if (depth[lane] && e->call_of[lane]->sequence->draft->rare > RARE) return n_usable;
    return n_usable < GDN_DRAFT_IDS ? n_usable : GDN_DRAFT_IDS;
}

static int32_t likeliest(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static bool pass(gdn_engine *e, int n_wanted, int n_logits)
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
    if (gdn_mtp_forward(e->model, e->compute, e->workspace, e->mtp_kv, &args, e->hidden, NULL)) return false;
    gdn_costs_mtp(&e->costs, gdn_engine_now() - start);
    e->n_mtp_runs++;
    return true;
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

/* Keep the rows of tokens that the sequence holds, and what the model put out at its last. */
static void leave(gdn_engine *e, const int *depth, bool complete)
{
    for (int lane = 0; lane < e->n_sequences; lane++) {
        if (!depth[lane]) continue;
        gdn_sequence *seq = e->call_of[lane]->sequence;
        gdn_draft    *d = seq->draft;
        if (!complete) {
            forget(seq);
            continue;
        }
        const long long behind = gdn_kv_length(e->mtp_kv, lane) - (e->n_drafted[lane] - 1) - 1;
        gdn_kv_set_length(e->mtp_kv, lane, behind);
        memmove(d->hidden, d->hidden + (size_t)(d->n_hidden - 1) * width(e), width(e) * sizeof *d->hidden);
        d->n_hidden = 1;
    }
}

void gdn_mtp_draft(gdn_engine *e, const int *depth)
{
    const int few = e->n_sequences * FEW <= e->max_step ? FEW : 1;
    int       most = 0;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        if (!depth[lane]) continue;
        if (depth[lane] > most) most = depth[lane];
        if (e->call_of[lane]->sequence->draft->n_hidden > few) gdn_mtp_skip(e->call_of[lane]->sequence);
    }
    const int n_logits = n_considered(e, depth);
    bool      complete = true;
    for (int done = 0; done < most && complete; done++) {
        const int n = done ? gather_next(e, depth, done) : gather_first(e, depth);
        complete = pass(e, n, n_logits);
        if (complete) take(e, depth, done, n_logits);
    }
    if (most) leave(e, depth, complete);
}
