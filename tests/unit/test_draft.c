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

static double speed_of(const gdn_costs *c, const gdn_offer *o, const int *depth, int n, int n_rows)
{
    double tokens = n_rows;
    int    runs = 0;
    for (int i = 0; i < n; i++) {
        double chance = 1;
        for (int k = 0; k < depth[i]; k++) tokens += chance *= (double)o[i].rate[k];
        n_rows += depth[i];
        if (o[i].by_mtp && depth[i] > runs) runs = depth[i];
    }
    return tokens / (gdn_costs_of(c, n_rows) + runs * c->mtp);
}

/* With one offer, the choice is the best of all depths; with two it is never worse than none, and never above what is offered. */
static void choices(void **unused)
{
    rng r = {8};
    int n_some = 0, n_none = 0;
    (void)unused;
    for (int round = 0; round < 4000; round++) {
        gdn_costs costs = {.credit = 1, .begun = true, .mtp = rng_below(&r, 40) / 100.0};
        float     rate[2][8];
        double    pass = 1;
        for (int i = 1; i <= 20; i++, pass += rng_below(&r, 60) / 100.0) costs.pass[i] = pass, costs.n_samples[i] = 10;
        for (int i = 0; i < 16; i++) rate[i / 8][i % 8] = (float)rng_below(&r, 101) / 100;
        gdn_offer offers[2] = {{.rate = rate[0], .most = rng_below(&r, 9), .by_mtp = rng_below(&r, 2)},
                               {.rate = rate[1], .most = rng_below(&r, 9)}};
        const int n = 1 + rng_below(&r, 2), n_rows = n, max_rows = 2 + rng_below(&r, 10), none[2] = {0};
        gdn_costs_choose(&costs, offers, n, n_rows, max_rows);
        const int    depth[] = {offers[0].depth, n > 1 ? offers[1].depth : 0};
        const double chosen = speed_of(&costs, offers, depth, n, n_rows),
                     plain = speed_of(&costs, offers, none, n, n_rows);
        for (int i = 0; i < n; i++) assert_in_range(depth[i], 0, offers[i].most);
        assert_in_range(n_rows + depth[0] + depth[1], n_rows, max_rows);
        assert_true(chosen >= plain);
        n_some += depth[0] + depth[1] > 0;
        n_none += depth[0] + depth[1] == 0;
        for (int d = 0; n == 1 && d <= offers[0].most && d <= max_rows - 1; d++)
            assert_true(speed_of(&costs, offers, &d, 1, 1) <= (d && !depth[0] ? 1.0101 * plain : 1.0000001 * chosen));
        offers[0].asked = true; /* whether it pays or not */
        gdn_costs_choose(&costs, offers, n, n_rows, max_rows);
        assert_int_equal(offers[0].depth, offers[0].most < max_rows - n_rows ? offers[0].most : max_rows - n_rows);
        costs.credit = -1;
        offers[0].asked = false;
        gdn_costs_choose(&costs, offers, n, n_rows, max_rows);
        assert_int_equal(offers[0].depth + (n > 1 ? offers[1].depth : 0), 0);
    }
    assert_true(n_some > 1000 && n_none > 100);
}

/* Texts whose drafts are never accepted lose little, whatever verifying costs; texts whose drafts always are gain nearly all that
 * can be gained.  Time is what the test says it is. */
static void attempts_cost_little(void **unused)
{
    (void)unused;
    for (int accepts = 0; accepts < 2; accepts++)
        for (int slope = 2; slope <= 80; slope *= 3) {
            const double more = slope / 100.0; /* of a pass, for each row more */
            gdn_costs    costs = {0};
            float        rate[8];
            double       spent = 0, tokens = 0;
            for (int i = 0; i < 8; i++) rate[i] = 0.8F;
            for (int pass = 0; pass < 2000; pass++) {
                gdn_offer offer = {.rate = rate, .most = 8};
                gdn_costs_choose(&costs, &offer, 1, 1, 9);
                const double seconds = 1 + more * offer.depth;
                const int    made = 1 + (accepts ? offer.depth : 0);
                gdn_costs_pass(&costs, 1 + offer.depth, seconds);
                gdn_costs_round(&costs, made, 1, offer.depth > 0, gdn_costs_of(&costs, 1), seconds);
                spent += seconds;
                tokens += made;
                if (accepts) continue; /* rates stay at what they are believed to be: nobody learns */
            }
            print_message("accepted %d, a row costs %.2f: %.3f times as fast\n", accepts, more, tokens / spent);
            if (!accepts) assert_true(tokens / spent > 0.97);
            else if (slope == 2) assert_true(tokens / spent > 0.95 * 9 / (1 + 8 * more));
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(look_up), cmocka_unit_test(choices),
                                       cmocka_unit_test(attempts_cost_little), cmocka_unit_test(some_logits)};
    return cmocka_run_group_tests_name("drafts", tests, NULL, NULL);
}
