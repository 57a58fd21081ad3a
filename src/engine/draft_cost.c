#include "engine/draft.h"

/* Costs are seconds, measured while the engine runs.  Drafts are taken while they are expected to pay; one is tried now and then
 * where they are not, for texts change.  Expectations may be wrong, so what all attempts may lose is kept as a credit: it begins
 * with a pass, grows by a share of the time of plain decoding and by what drafts gain, and is charged with what they lose. */

static const double WEIGHT = 0.25;       /* of what was measured just now */
static const double FORGET = 1.0 / 2048; /* of what has not been measured for a pass: it is tried again one day */
static const double BOUND = 0.06; /* what is further from the average counts as so far from it: other programs run */
static const double ROW = 0.05, ROUND = 0.2,
                    RUN = 0.2; /* of a plain pass: a draft, a round and a run of MTP, not yet measured */
static const double ALLOWED = 0.01, START = 1, CREDIT = 2; /* of the time of plain decoding; in plain passes */
static const double MOST = 1.5;      /* of what a round takes on average; if one takes longer, others ran meanwhile */
static const double SURE = 0.5;      /* of what drafts are expected to gain, at least so much is taken for sure */
static const double WORTH = 1.01;    /* less than this gain is none */
enum { SAMPLES = 3, IN_A_ROW = 64 }; /* of a pass before it is known; rounds with drafts before one without */

/* ---- measuring ------------------------------------------------------------------------------------------------------------ */

static double within(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* The first samples say the least: they find cold memory, and other programs only ever make them longer.  Those after them count as
 * at most `bound` away from the average. */
static void measured(double *cost, int *n_samples, double seconds, double bound)
{
    if (*n_samples >= SAMPLES) {
        *cost += within(seconds - *cost, -bound, bound) * WEIGHT;
        return;
    }
    if (!*n_samples || seconds < *cost) *cost = seconds;
    ++*n_samples;
}

/* What drafts add to a pass of so many calls: each the same, more or less, beside what a round takes whatever is in it. */
static double added_by(const gdn_costs *c, int n_calls, int n_drafts)
{
    const int rows = n_calls + n_drafts;
    int       known = rows < GDN_COSTS_ROWS ? rows : GDN_COSTS_ROWS;
    while (known > n_calls && c->n_added[known] < SAMPLES) known--;
    const double plain = c->plain[n_calls], more = ROW * (rows - known) * plain;
    return known > n_calls ? (known - n_calls) * c->added[known] + more : ROUND * plain + more;
}

static bool is_known(const gdn_costs *c, int n_calls)
{
    return n_calls <= GDN_COSTS_ROWS && c->n_plain[n_calls] >= SAMPLES;
}

double gdn_costs_of(const gdn_costs *c, int n_calls, int n_drafts, int n_runs)
{
    if (!is_known(c, n_calls)) return 0;
    const double plain = c->plain[n_calls];
    return plain + (n_drafts ? added_by(c, n_calls, n_drafts) : 0) +
           n_runs * (c->n_mtp < SAMPLES ? RUN * plain : c->mtp);
}

void gdn_costs_pass(gdn_costs *c, int n_calls, int n_drafts, double seconds)
{
    const int rows = n_calls + n_drafts;
    if (rows > GDN_COSTS_ROWS) return;
    if (!n_drafts) measured(&c->plain[n_calls], &c->n_plain[n_calls], seconds, BOUND * c->plain[n_calls]);
    if (!n_drafts || !is_known(c, n_calls)) return;
    const double plain = c->plain[n_calls], pass = plain + n_drafts * c->added[rows];
    for (int i = 1; i <= GDN_COSTS_ROWS; i++) c->added[i] -= c->added[i] * FORGET;
    const double each = within((seconds - plain) / n_drafts, 0, plain); /* no more than a token takes without */
    measured(&c->added[rows], &c->n_added[rows], each, BOUND * pass / n_drafts);
}

void gdn_costs_mtp(gdn_costs *c, double seconds) { measured(&c->mtp, &c->n_mtp, seconds, BOUND * c->mtp); }

double gdn_costs_round(gdn_costs *c, const gdn_spent *s)
{
    const double plain = gdn_costs_of(c, s->n_calls, 0, 0), a_token = plain / s->n_calls;
    if (plain <= 0) return 0;
    if (!c->begun) c->credit = START * plain;
    c->begun = true;
    c->n_drafted = s->n_drafts ? c->n_drafted + 1 : 0;
    c->credit += ALLOWED * (plain + a_token * s->n_gained);
    const double average = gdn_costs_of(c, s->n_calls, s->n_drafts, s->n_runs);
    const double seconds = s->n_drafts + s->n_runs && s->seconds < MOST * average ? s->seconds : average;
    if (s->n_drafts > s->n_given || s->n_runs > s->n_given_runs) /* runs may have been for nothing */
        c->credit += gdn_costs_of(c, s->n_calls, s->n_given, s->n_given_runs) + a_token * s->n_gained - seconds;
    if (c->credit > CREDIT * plain) c->credit = CREDIT * plain;
    return seconds;
}

/* ---- choosing ------------------------------------------------------------------------------------------------------------- */

/* The offer whose next draft is the likeliest, or -1. */
static int likeliest(const gdn_offer *offers, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (offers[i].chance > 0 && (best < 0 || offers[i].chance > offers[best].chance)) best = i;
    return best;
}

static void take_one(gdn_offer *o)
{
    o->depth++;
    o->chance = o->depth < o->most ? o->chance * (double)o->rate[o->depth] : 0;
}

/* Those that were asked for are taken as far as there is room; returns their number. */
static int take_asked(gdn_offer *offers, int n, int room)
{
    const int all = room;
    for (int i = 0; i < n; i++) {
        gdn_offer *o = &offers[i];
        o->depth = 0;
        o->chance = !o->asked && o->most ? (double)o->rate[0] : 0;
        if (!o->asked) continue;
        o->depth = o->most < room ? o->most : room;
        room -= o->depth;
    }
    return all - room;
}

/* Take the likeliest draft of all, then the next: the best of these ways to go is where to stop.  Returns how many are taken. */
static int take_best(const gdn_costs *c, gdn_offer *offers, int n, int n_calls, int n_drafts, int room)
{
    int          taken[GDN_COSTS_ROWS], n_taken = 0, best = 0, runs = 0, i;
    const double before = gdn_costs_of(c, n_calls, n_drafts, 0);
    double       tokens = n_calls, fastest = WORTH * n_calls / before;
    while (n_taken < room && (i = likeliest(offers, n)) >= 0) {
        tokens += offers[i].chance;
        take_one(&offers[i]);
        taken[n_taken++] = i;
        if (offers[i].by_mtp && offers[i].depth > runs) runs = offers[i].depth;
        const double seconds = gdn_costs_of(c, n_calls, n_drafts + n_taken, runs);
        const double sure = SURE * (tokens - n_calls) * before / n_calls;
        if (tokens / seconds <= fastest || seconds - before - sure > c->credit) continue;
        fastest = tokens / seconds;
        best = n_taken;
    }
    while (n_taken > best) offers[taken[--n_taken]].depth--;
    return best;
}

/* One draft of one offer, to see whether the text has changed. */
static void try_one(const gdn_costs *c, gdn_offer *offers, int n, int n_calls, int n_drafts)
{
    const double before = gdn_costs_of(c, n_calls, n_drafts, 0);
    for (int i = 0; i < n; i++) {
        gdn_offer *const o = &offers[i];
        if (!o->due || o->asked || !o->most) continue;
        if (gdn_costs_of(c, n_calls, n_drafts + 1, o->by_mtp) - before > c->credit) continue;
        o->depth = 1;
        o->tried = true;
        return;
    }
}

void gdn_costs_choose(const gdn_costs *c, gdn_offer *offers, int n, int n_calls, int n_drafts, int max_rows)
{
    n_drafts += take_asked(offers, n, max_rows - n_calls - n_drafts);
    if (!is_known(c, n_calls) || c->n_drafted >= IN_A_ROW) return; /* measure that first */
    if (c->credit < 0) return;
    const int most = max_rows < GDN_COSTS_ROWS ? max_rows : GDN_COSTS_ROWS, room = most - n_calls - n_drafts;
    if (room > 0 && !take_best(c, offers, n, n_calls, n_drafts, room)) try_one(c, offers, n, n_calls, n_drafts);
}
