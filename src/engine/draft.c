#include "engine/draft.h"
#include <stdlib.h>
#include <string.h>

static const float FIRST[GDN_DRAFT_KINDS] = {0.4F, 0.6F, 0.8F, 0.8F}; /* believed before anything is judged */
static const float WEIGHT = 0.125F;                                   /* of what was judged just now */
static const float TRIED_WEIGHT = 0.5F; /* of an accepted draft that was not believed in */

enum { PAUSE = 8, LONGEST_PAUSE = 128 };

static float believed(int kind, int place) { return kind == GDN_DRAFT_HEAD && place ? 0.6F : FIRST[kind]; }

/* ---- of an engine ----------------------------------------------------------------------------------------------------- */

static gdn_status open_mtp(gdn_engine *e, gdn_error *err)
{
    e->hidden = malloc((size_t)e->max_step * e->model->config.hidden_size * sizeof *e->hidden);
    e->mtp_rows = calloc((size_t)e->n_sequences, sizeof *e->mtp_rows);
    e->mtp_places = calloc((size_t)e->n_sequences, sizeof *e->mtp_places);
    e->mtp_tokens = malloc((size_t)e->max_step * sizeof *e->mtp_tokens);
    if (e->hidden && e->mtp_rows && e->mtp_places && e->mtp_tokens) return GDN_OK;
    return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for MTP of %d tokens; use another drafter", e->max_step);
}

gdn_status gdn_engine_open_drafts(gdn_engine *e, gdn_error *err)
{
    const size_t n = (size_t)e->n_sequences;
    e->call_of = calloc(n, sizeof *e->call_of);
    e->drafts = calloc(n * GDN_DRAFTS_MAX, sizeof *e->drafts);
    e->lanes = calloc(n * 5, sizeof *e->lanes);
    e->offers = calloc(n, sizeof *e->offers);
    if (!e->call_of || !e->drafts || !e->lanes || !e->offers)
        return gdn_fail(err, GDN_NO_MEMORY, 0, "engine: no memory for drafts of %zu sequences; use fewer", n);
    e->n_drafted = e->lanes;
    e->kind = e->lanes + n;
    e->depth = e->lanes + 2 * n;
    e->keep = e->lanes + 3 * n;
    e->first_row = e->lanes + 4 * n;
    return e->by_mtp ? open_mtp(e, err) : GDN_OK;
}

void gdn_engine_close_drafts(gdn_engine *e)
{
    free(e->call_of);
    free(e->drafts);
    free(e->lanes);
    free(e->offers);
    free(e->hidden);
    free(e->mtp_rows);
    free(e->mtp_places);
    free(e->mtp_tokens);
}

/* ---- of a sequence --------------------------------------------------------------------------------------------------- */

bool gdn_draft_open(gdn_sequence *seq, const gdn_engine *e)
{
    const size_t h = (size_t)e->model->config.hidden_size;
    if (e->drafter == GDN_DRAFTER_OFF) return true;
    gdn_draft *const d = seq->draft = calloc(1, sizeof *d);
    if (!d) return false;
    for (int kind = 0; kind < GDN_DRAFT_KINDS; kind++) {
        for (int i = 0; i < GDN_DRAFTS_MAX; i++) d->trust[kind].rate[i] = believed(kind, i);
        d->trust[kind].wait = PAUSE;
    }
    if (e->drafter != GDN_DRAFTER_MTP && !gdn_lookup_open(&d->lookup, e->max_tokens)) return false;
    if (!e->by_mtp) return true;
    d->hidden = malloc(GDN_DRAFT_HIDDEN * h * sizeof *d->hidden);
    return d->hidden != NULL;
}

void gdn_draft_close(gdn_sequence *seq)
{
    if (!seq->draft) return;
    gdn_lookup_close(&seq->draft->lookup);
    free(seq->draft->hidden);
    free(seq->draft);
}

void gdn_draft_share(gdn_sequence *dst, const gdn_sequence *src)
{
    const gdn_engine *const e = dst->engine;
    gdn_draft *const        to = dst->draft;
    const gdn_draft *const  from = src->draft;
    if (!to) return;
    memcpy(to->trust, from->trust, sizeof to->trust);
    to->n_hidden = from->n_hidden;
    if (to->n_hidden) memcpy(to->hidden, from->hidden, (size_t)e->model->config.hidden_size * sizeof *to->hidden);
}

void gdn_draft_cut(gdn_sequence *seq, int kept, const float *hidden)
{
    gdn_draft *const d = seq->draft;
    if (!d) return;
    if (d->lookup.last) gdn_lookup_cut(&d->lookup, kept);
    d->n_hidden = hidden != NULL;
    if (hidden) memcpy(d->hidden, hidden, (size_t)seq->engine->model->config.hidden_size * sizeof *hidden);
}

void gdn_draft_follow(gdn_sequence *seq, int n, const float *hidden)
{
    const gdn_engine *const e = seq->engine;
    gdn_draft *const        d = seq->draft;
    const size_t            h = (size_t)e->model->config.hidden_size;
    for (int left = n; left > 0;) {
        const int room = GDN_DRAFT_HIDDEN - d->n_hidden, some = left < room ? left : room;
        memcpy(d->hidden + (size_t)d->n_hidden * h, hidden, (size_t)some * h * sizeof *hidden);
        d->n_hidden += some;
        hidden += (size_t)some * h;
        left -= some;
        if (d->n_hidden == GDN_DRAFT_HIDDEN) gdn_mtp_catch_up(seq, left);
    }
}

float *gdn_draft_settle(const gdn_sequence *seq)
{
    const gdn_draft *const d = seq->draft;
    if (!d || !d->n_hidden) return NULL;
    gdn_mtp_catch_up(seq, 0);
    return d->hidden;
}

/* ---- guessing -------------------------------------------------------------------------------------------------------- */

static void make_offer(gdn_engine *e, int lane, gdn_draft_kind kind, int most)
{
    const gdn_trust *const t = &e->call_of[lane]->sequence->draft->trust[kind];
    e->kind[lane] = kind;
    e->offers[lane] = (gdn_offer){.rate = t->rate, .most = most, .by_mtp = kind == GDN_DRAFT_HEAD, .due = !t->pause};
}

/* What a sequence could draft, as an offer; a match of its own text is written to e->drafts. */
static void offer(gdn_engine *e, int lane, int most)
{
    const gdn_verify *const   call = e->call_of[lane];
    const gdn_sequence *const seq = call->sequence;
    gdn_draft *const          d = seq->draft;
    int                       matched = 0, found = 0;
    if (d->lookup.last)
        found = gdn_lookup_find(&d->lookup, seq->tokens, seq->length, call->token, most,
                                e->drafts + (size_t)lane * GDN_DRAFTS_MAX, &matched);
    const gdn_draft_kind kind = matched < 3 ? GDN_DRAFT_SHORT : matched < 6 ? GDN_DRAFT_MIDDLE : GDN_DRAFT_LONG;
    const bool           head = d->n_hidden > 0;
    const bool           better = found && d->trust[kind].rate[0] > 0.9F * d->trust[GDN_DRAFT_HEAD].rate[0];
    if (head && !better) make_offer(e, lane, GDN_DRAFT_HEAD, most);
    else make_offer(e, lane, kind, found);
}

void gdn_draft_guess(gdn_engine *e, int n_calls)
{
    int n_drafts = 0; /* that calls bring */
    for (int lane = 0; lane < e->n_sequences; lane++) n_drafts += e->n_drafted[lane];
    for (int lane = 0; lane < e->n_sequences; lane++) {
        const gdn_verify *const call = e->call_of[lane];
        e->offers[lane] = (gdn_offer){0};
        if (!call || call->drafts || !call->sequence->draft) continue;
        const int most = gdn_verify_room(call, call->n_drafts ? call->n_drafts : e->n_drafts);
        offer(e, lane, most);
        e->offers[lane].asked = call->n_drafts > 0;
    }
    gdn_costs_choose(&e->costs, e->offers, e->n_sequences, n_calls, n_drafts, e->max_rows);
    for (int lane = 0; lane < e->n_sequences; lane++) {
        const gdn_offer *const o = &e->offers[lane];
        if (o->depth && !o->by_mtp) e->n_drafted[lane] = o->depth;
        e->depth[lane] = o->by_mtp ? o->depth : 0;
        gdn_draft *const d = e->call_of[lane] ? e->call_of[lane]->sequence->draft : NULL;
        if (d) d->tried = o->tried;
    }
    if (e->by_mtp) gdn_mtp_draft(e, e->depth);
}

void gdn_draft_judged(gdn_sequence *seq, int kind, int n_drafted, int n_accepted, bool stopped)
{
    gdn_draft *const d = seq->draft;
    if (!d) return;
    for (int k = 0; k < GDN_DRAFT_KINDS; k++) {
        int *const pause = &d->trust[k].pause;
        *pause = *pause > n_accepted ? *pause - n_accepted - 1 : 0;
    }
    if (kind < 0 || !n_drafted || (stopped && !n_accepted)) return;
    gdn_trust *const t = &d->trust[kind];
    for (int i = 0; i < n_accepted; i++) t->rate[i] += (1 - t->rate[i]) * (d->tried ? TRIED_WEIGHT : WEIGHT);
    if (n_accepted < n_drafted && !stopped) t->rate[n_accepted] -= t->rate[n_accepted] * WEIGHT;
    t->pause = n_accepted ? 0 : t->wait;
    t->wait = n_accepted ? PAUSE : t->wait < LONGEST_PAUSE ? 2 * t->wait : LONGEST_PAUSE;
}
