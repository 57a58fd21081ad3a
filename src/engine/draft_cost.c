#include "engine/draft.h"

/* Costs are seconds, measured while the engine runs, and forgotten slowly: what has not been measured for long is believed to be
 * a little cheaper each time, so that it is tried again one day. */

static const double FORGET = 1.0 / 2048, WEIGHT = 0.25, A_ROW = 0.02;
enum { SAMPLES = 3, IN_A_ROW = 64 }; /* of a pass before it is known; rounds with drafts before one without */
static const double ALLOWED = 0.01;  /* of the time of plain decoding, to be lost on attempts */
static const double WORTH = 1.01;    /* less than this gain is none */
enum { CREDIT = 3 };                 /* plain passes that attempts may lose ahead */

/* The first samples say the least: they find cold memory, and other programs only ever make them longer. */
static void measured(double *cost, int *n_samples, double seconds)
{
    if (*n_samples < SAMPLES) {
        ++*n_samples;
        if (*cost == 0 || seconds < *cost) *cost = seconds;
        return;
    }
    if (seconds > 2 * *cost) seconds = 2 * *cost;
    *cost += (seconds - *cost) * WEIGHT;
}

void gdn_costs_pass(gdn_costs *c, int n_rows, double seconds)
{
    if (n_rows < 1 || n_rows > GDN_COSTS_ROWS) return;
    for (int i = 1; i <= GDN_COSTS_ROWS; i++) c->pass[i] -= c->pass[i] * FORGET;
    const double expected = gdn_costs_of(c, n_rows);
    if (c->n_samples[n_rows] == 0 && expected > 0 && seconds > 2 * expected) seconds = 2 * expected;
    measured(&c->pass[n_rows], &c->n_samples[n_rows], seconds);
}

void gdn_costs_mtp(gdn_costs *c, double seconds) { measured(&c->mtp, &c->n_mtp_samples, seconds); }

double gdn_costs_of(const gdn_costs *c, int n_rows)
{
    int known = n_rows < GDN_COSTS_ROWS ? n_rows : GDN_COSTS_ROWS;
    while (known > 0 && c->pass[known] == 0) known--;
    return known ? c->pass[known] * (1 + A_ROW * (n_rows - known)) : 0;
}

void gdn_costs_round(gdn_costs *c, int n_tokens, int n_plain, bool drafted, double plain, double seconds)
{
    const double as_plain = plain * n_tokens / n_plain;
    if (!c->begun) c->credit = CREDIT * plain;
    c->begun = true;
    c->n_drafted = drafted ? c->n_drafted + 1 : 0;
    c->credit += ALLOWED * as_plain + (drafted ? as_plain - seconds : 0);
    if (c->credit > CREDIT * plain) c->credit = CREDIT * plain;
}

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

/* Take the likeliest draft of all, then the next: the best of these ways to go is where to stop. */
void gdn_costs_choose(const gdn_costs *c, gdn_offer *offers, int n, int n_rows, int max_rows)
{
    int taken[GDN_COSTS_ROWS], n_taken = 0, best = 0, runs = 0, i;
    n_rows += take_asked(offers, n, max_rows - n_rows);
    if (n_rows > GDN_COSTS_ROWS || c->n_samples[n_rows] < SAMPLES || c->n_drafted >= IN_A_ROW)
        return;                /* measure that first */
    if (c->credit < 0) return; /* too much was lost lately */
    const double plain = c->pass[n_rows];
    double       tokens = n_rows, fastest = WORTH * n_rows / plain;
    while (n_rows < GDN_COSTS_ROWS && n_rows < max_rows && (i = likeliest(offers, n)) >= 0) {
        tokens += offers[i].chance;
        take_one(&offers[i]);
        taken[n_taken++] = i;
        if (offers[i].by_mtp && offers[i].depth > runs) runs = offers[i].depth;
        const double speed = tokens / (gdn_costs_of(c, ++n_rows) + runs * c->mtp);
        if (speed <= fastest) continue;
        fastest = speed;
        best = n_taken;
    }
    while (n_taken > best) offers[taken[--n_taken]].depth--;
}
