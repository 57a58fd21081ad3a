/* Drafts from the text itself, against a search through all of it; how many drafts are taken, against trying every number; and the
 * first logits of a row, against all of them. */
#include "engine/draft.h"
#include "law/engine.h"
#include <math.h>

/* ---- look-up ------------------------------------------------------------------------------------------------------------- */

enum { MOST = 2000, DRAFTS = 12 };

/* The longest match of the end of text[n] and `next` that ends before it, of at least 2 and as if 64 were no longer than more; the
 * latest of equals.  Returns where it ends, or -1. */
static int naive_match(const int32_t *tokens, int n, int32_t next, int *length)
{
    int at = -1;
    *length = 1;
    for (int end = n - 1; end >= 1; end--) {
        int same = 0;
        if (tokens[end] == next) same = 1;
        while (same && same < 64 && same <= end && n - same >= 0 && tokens[end - same] == tokens[n - same]) same++;
        if (same <= *length) continue;
        *length = same;
        at = end;
    }
    return at;
}

/* Texts of few kinds of tokens, so that there are matches; cut and grown at random.  Fewer places than are tried must hold a pair,
 * else only the latest count. */
static void look_up(void **unused)
{
    static int32_t tokens[MOST + 1 + DRAFTS];
    rng            r = {5};
    int            n_found = 0, n_none = 0, n_long = 0;
    (void)unused;
    for (int kinds = 12; kinds <= 300; kinds *= 5) {
        gdn_lookup lookup = {0};
        int        n = 0;
        assert_true(gdn_lookup_open(&lookup, MOST));
        for (int round = 0; round < 3000; round++) {
            const int what = rng_below(&r, 12);
            if (what == 0) { /* cut */
                n = rng_below(&r, n + 1);
                gdn_lookup_cut(&lookup, n);
            } else if (what < 4 && n > 20) { /* say something again */
                const int from = rng_below(&r, n - 10), length = 1 + rng_below(&r, 70);
                for (int i = 0; i < length && n < MOST; i++, n++) tokens[n] = tokens[from + i];
            } else if (n < MOST) {
                tokens[n++] = rng_below(&r, kinds);
            }
            if (n > kinds * kinds * 4) { /* pairs would be too frequent */
                n = 0;
                gdn_lookup_cut(&lookup, n);
            }
            int32_t next = rng_below(&r, kinds);
            for (int i = 0; i < 40 && n > 1; i++) { /* mostly what came before after the last token */
                const int before = rng_below(&r, n - 1);
                if (tokens[before] == tokens[n - 1]) next = tokens[before + 1];
            }
            const int most = rng_below(&r, DRAFTS + 1);
            int32_t   out[DRAFTS];
            int       matched, length, n_pairs = 0;
            const int found = gdn_lookup_find(&lookup, tokens, n, next, most, out, &matched);
            const int at = naive_match(tokens, n, next, &length);
            for (int i = 1; i < n; i++) n_pairs += tokens[i] == next && tokens[i - 1] == tokens[n - 1];
            if (n < 2 || most == 0 || n_pairs > 20) continue; /* hashes meet: some of 32 places may be of other pairs */
            assert_int_equal(found, at < 0 ? 0 : most);
            n_none += at < 0;
            if (at < 0) continue;
            assert_int_equal(matched, length);
            n_found++;
            n_long += length > 5;
            tokens[n] = next; /* what follows, where it runs into its own end too */
            for (int i = 0; i < most; i++) {
                assert_int_equal(out[i], tokens[at + 1 + i]);
                tokens[n + 1 + i] = out[i];
            }
        }
        gdn_lookup_close(&lookup);
    }
    print_message("%d matches, %d of them long, %d times none\n", n_found, n_long, n_none);
    assert_true(n_found > 1000 && n_none > 100 && n_long > 300);
}

/* ---- how many ------------------------------------------------------------------------------------------------------------ */

enum { CALLS = 2, ROWS = 20 };

/* Costs that are known: a pass of so many calls, what each draft adds to one of so many rows, a run of the MTP layer. */
static gdn_costs costs_of(rng *r)
{
    gdn_costs c = {.credit = 1000, .begun = true, .mtp = rng_below(r, 40) / 100.0, .n_mtp = 10};
    double    drafts = 0; /* the more, the longer */
    for (int i = 1; i <= ROWS; i++, drafts += rng_below(r, 60) / 100.0) {
        c.plain[i] = 1 + 0.1 * i;
        c.added[i] = i > 1 ? drafts / (i - 1) : 0;
        c.n_plain[i] = c.n_added[i] = 10;
    }
    return c;
}

/* Written out: the pass, its drafts and the runs before it. */
static double seconds_of(const gdn_costs *c, const gdn_offer *o, const int *depth, int n)
{
    int drafts = 0, runs = 0;
    for (int i = 0; i < n; i++) {
        drafts += depth[i];
        if (o[i].by_mtp && depth[i] > runs) runs = depth[i];
    }
    return c->plain[n] + drafts * c->added[n + drafts] + runs * c->mtp;
}

static double tokens_of(const gdn_offer *o, const int *depth, int n)
{
    double tokens = n;
    for (int i = 0; i < n; i++) {
        double chance = 1;
        for (int k = 0; k < depth[i]; k++) tokens += chance *= (double)o[i].rate[k];
    }
    return tokens;
}

static double speed_of(const gdn_costs *c, const gdn_offer *o, const int *depth, int n)
{
    return tokens_of(o, depth, n) / seconds_of(c, o, depth, n);
}

/* What is lost if only half of what is expected is gained. */
static double risk_of(const gdn_costs *c, const gdn_offer *o, const int *depth, int n)
{
    return seconds_of(c, o, depth, n) - c->plain[n] - 0.5 * (tokens_of(o, depth, n) - n) * c->plain[n] / n;
}

static void choose(const gdn_costs *c, gdn_offer *o, int n, int max_rows, int *depth)
{
    gdn_costs_choose(c, o, n, n, 0, max_rows);
    for (int i = 0; i < n; i++) {
        assert_in_range(o[i].depth, 0, o[i].most);
        depth[i] = o[i].depth;
        o[i].tried = false;
    }
}

/* With one offer, the choice is the best of all depths that there is credit for; with two it is never worse than none, and never
 * above what is offered. */
static void choices(void **unused)
{
    rng r = {8};
    int n_some = 0, n_none = 0, n_poor = 0, none[CALLS] = {0}, depth[CALLS] = {0};
    (void)unused;
    for (int round = 0; round < 4000; round++) {
        gdn_costs costs = costs_of(&r);
        float     rate[CALLS][8];
        for (int i = 0; i < 16; i++) rate[i / 8][i % 8] = (float)rng_below(&r, 101) / 100;
        gdn_offer offers[CALLS] = {{.rate = rate[0], .most = rng_below(&r, 9), .by_mtp = rng_below(&r, 2)},
                                   {.rate = rate[1], .most = rng_below(&r, 9)}};
        const int n = 1 + rng_below(&r, CALLS), max_rows = CALLS + rng_below(&r, 10);
        if (rng_below(&r, 2)) costs.credit = rng_below(&r, 200) / 100.0;
        choose(&costs, offers, n, max_rows, depth);
        const int    n_drafts = depth[0] + (n > 1 ? depth[1] : 0);
        const double chosen = speed_of(&costs, offers, depth, n);
        assert_in_range(n + n_drafts, n, max_rows);
        assert_true(chosen >= speed_of(&costs, offers, none, n));
        assert_true(risk_of(&costs, offers, depth, n) <= costs.credit);
        n_some += n_drafts > 0;
        n_none += n_drafts == 0;
        for (int d = 0; n == 1 && d <= offers[0].most && d <= max_rows - 1; d++) {
            const bool poor = risk_of(&costs, offers, &d, 1) > costs.credit;
            n_poor += poor;
            if (!poor) assert_true(speed_of(&costs, offers, &d, 1) <= (n_drafts ? 1.0000001 : 1.0101) * chosen);
        }
        offers[0].asked = true; /* whether it pays or not */
        choose(&costs, offers, n, max_rows, depth);
        assert_int_equal(depth[0], offers[0].most < max_rows - n ? offers[0].most : max_rows - n);
        offers[0].asked = false;
        for (int i = 0; i < n; i++) offers[i].due = true;
        costs.credit = -1;
        choose(&costs, offers, n, max_rows, depth);
        assert_int_equal(depth[0] + (n > 1 ? depth[1] : 0), 0);
    }
    assert_true(n_some > 1000 && n_none > 100 && n_poor > 100);
}

/* What does not pay is tried with one draft of one offer that is due, if there is credit for it. */
static void trials(void **unused)
{
    rng             r = {9};
    const float     rate[8] = {0};
    const gdn_costs costs = costs_of(&r);
    (void)unused;
    for (int due = 0; due < 4; due++)
        for (int rich = 0; rich < 2; rich++) {
            gdn_costs c = costs;
            gdn_offer offers[CALLS] = {{.rate = rate, .most = 8, .by_mtp = true, .due = due & 1},
                                       {.rate = rate, .most = 8, .due = due & 2}};
            c.credit = c.added[3] + (due & 1) * c.mtp + (rich ? 0.001 : -0.001);
            gdn_costs_choose(&c, offers, CALLS, CALLS, 0, 16);
            const int which = due & 1 ? 0 : 1; /* the first of them */
            assert_int_equal(offers[which].depth, rich && due);
            assert_int_equal(offers[which].tried, rich && due);
            if (due != 3 || rich) assert_int_equal(offers[!which].depth, 0);
        }
}

/* A text as the account sees it: of each pass, the drafts, what they take, and what is accepted of them; time is what the test says
 * it is, and longer by `noise` now and then.  Returns how many times as fast as without drafts it is. */
static double play(double more, double mtp, double hit, double noise, int n_tokens, bool learns)
{
    gdn_costs    costs = {0};
    gdn_sequence seq = {0};
    gdn_draft    draft = {0};
    rng          r = {4};
    double       spent = 0;
    int          made = 0;
    seq.draft = &draft;
    for (int i = 0; i < 8; i++) draft.trust[GDN_DRAFT_HEAD].rate[i] = 0.8F;
    draft.trust[GDN_DRAFT_HEAD].wait = 8;
    while (made < n_tokens) {
        gdn_trust *const t = &draft.trust[GDN_DRAFT_HEAD];
        gdn_offer        offer = {.rate = t->rate, .most = 8, .by_mtp = true, .due = !t->pause};
        gdn_costs_choose(&costs, &offer, 1, 1, 0, 9);
        int n_accepted = 0;
        while (n_accepted < offer.depth && rng_below(&r, 1000) < (int)(1000 * hit)) n_accepted++;
        const double late = rng_below(&r, 10) == 0 ? noise : 0, pass = 1 + more * offer.depth + late;
        for (int i = 0; i < offer.depth; i++) gdn_costs_mtp(&costs, mtp);
        gdn_costs_pass(&costs, 1, offer.depth, pass);
        gdn_costs_round(&costs, &(gdn_spent){.n_calls = 1,
                                             .n_drafts = offer.depth,
                                             .n_runs = offer.depth,
                                             .n_gained = n_accepted,
                                             .seconds = pass + offer.depth * mtp});
        draft.tried = offer.tried;
        if (learns) gdn_draft_judged(&seq, GDN_DRAFT_HEAD, offer.depth, n_accepted, false);
        spent += pass - late + offer.depth * mtp;
        made += 1 + n_accepted;
    }
    return made / spent;
}

/* No text loses more than a start and about one in a hundred, whatever drafts cost, whatever else the machine does, and even if
 * nothing is learnt from drafts; texts whose drafts are always accepted gain nearly all that can be gained. */
static void attempts_cost_little(void **unused)
{
    (void)unused;
    for (int slope = 2; slope <= 80; slope *= 3)
        for (int hit = 0; hit <= 4; hit++)
            for (int noise = 0; noise <= 4; noise += 4) {
                const double more = slope / 100.0, rate = hit / 4.0;
                const double speed = play(more, more, rate, noise, 600, true);
                print_message("accepted %.2f, a draft costs 2 * %.2f, noise %d: %.3f times as fast\n", rate, more,
                              noise, speed);
                assert_true(speed > (noise ? 0.97 : 0.98));
                if (hit == 0) assert_true(play(more, more, 0, noise, 3000, false) > 0.985);
                if (hit == 4 && slope == 2) assert_true(speed > 0.85 * 9 / (1 + 8 * 2 * more));
            }
}

/* ---- the first logits of a row -------------------------------------------------------------------------------------------- */

static void some_logits(void **unused)
{
    enum { N = 20, SOME = 1000 };
    gdn_model           *model = demo_load();
    gdn_compute         *compute = demo_compute(NULL, 2);
    const session_config config = {.n_lanes = 1, .max_rows = N, .max_positions = N};
    const size_t         n_vocab = (size_t)model->config.vocab_size;
    float               *logits = calloc(N * n_vocab, sizeof *logits), *some = calloc(N * n_vocab, sizeof *some);
    session              a = session_open(model, compute, &config), b = session_open(model, compute, &config);
    const int            n = N, wanted[] = {3, 19};
    (void)unused;
    assert_true(logits && some);
    const gdn_forward_args args = {.n_lanes = 1,
                                   .n_tokens = &n,
                                   .tokens = text[0],
                                   .n_wanted = 2,
                                   .wanted = wanted,
                                   .n_logits = SOME,
                                   .logits = some};
    ACCEPTED(session_forward(&a, &n, text[0], logits, NULL, &err));
    ACCEPTED(gdn_model_forward(model, compute, b.workspace, b.cache, b.kv, &args, &err));
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(some + i * n_vocab, logits + wanted[i] * n_vocab, SOME * sizeof *some);
        for (size_t k = SOME; k < n_vocab; k++) assert_true(some[i * n_vocab + k] == 0);
    }
    session_close(&a);
    session_close(&b);
    free(logits);
    free(some);
    gdn_compute_close(compute);
    gdn_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(look_up), cmocka_unit_test(choices), cmocka_unit_test(trials),
                                       cmocka_unit_test(attempts_cost_little), cmocka_unit_test(some_logits)};
    return cmocka_run_group_tests_name("drafts", tests, NULL, NULL);
}
