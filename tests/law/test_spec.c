/* The law for drafts: an answer made with any of them, right or wrong, has the tokens and the logits of the answer made token by
 * token, bit for bit, and so does all that follows. */
#include "law/spec.h"
#include "engine/parts.h"
#include <math.h>

/* ---- the matrix -------------------------------------------------------------------------------------------------------- */

/* Drafts of the test, or of the engine. */
typedef enum source { OWN_RIGHT, OWN_WRONG, OWN_RANDOM, OWN_PARTLY, ENGINE } source;

/* Where the state of a sequence comes from: the tokens; the index of the engine; a file, in the middle of the answer. */
typedef enum way { MISS, HIT, RESTORED } way;

static void restore(maker *m)
{
    static const char path[] = "build/test_spec.state";
    ACCEPTED(gdn_sequence_save(m->s, path, &err));
    const int32_t other = 7;
    ACCEPTED(gdn_sequence_set(m->s, &other, 1, NULL, NULL, NULL, &err));
    ACCEPTED(gdn_sequence_load(m->s, path, &err));
    expect_made(m);
    remove(path);
}

/* Make n answers at once, until each has `most` tokens; answer i drafts to depth[i]. */
static void make(gdn_engine *engine, const int *which, const int *depth, int n, source from, way how, long *n_accepted)
{
    maker m[ANSWERS];
    rng   r = {31};
    for (int i = 0; i < n; i++) {
        m[i] = maker_open(engine, &answers[which[i]], MADE - 5 * i);
        pick(&m[i], gdn_sequence_logits(m[i].s));
    }
    for (int left = n; left;) {
        gdn_verify calls[ANSWERS];
        int        maker_of[ANSWERS], n_calls = 0;
        for (int i = n - 1; i >= 0; i--) { /* not in the order of the lanes */
            if (m[i].made == m[i].most || (n > 1 && rng_below(&r, 4) == 0)) continue;
            const int32_t *drafts = from == ENGINE ? NULL : drafts_of(&m[i], (style)from, depth[i], &r);
            maker_of[n_calls] = i;
            calls[n_calls++] = call_of(&m[i], drafts, depth[i]);
        }
        if (!n_calls) continue;
        ACCEPTED(gdn_engine_verify(engine, calls, n_calls, &err));
        for (int k = 0; k < n_calls; k++) {
            called(&m[maker_of[k]], &calls[k]);
            if (calls[k].drafts) assert_int_equal(calls[k].n_drafted, depth[maker_of[k]]);
            left -= calls[k].next < 0;
            if (how == RESTORED && m[maker_of[k]].n_passes == 4) restore(&m[maker_of[k]]);
        }
    }
    for (int i = 0; i < n; i++) {
        const gdn_draft_stats s = gdn_sequence_draft_stats(m[i].s);
        assert_int_equal(s.n_passes, m[i].n_passes);
        assert_int_equal(s.n_drafted, m[i].n_drafted);
        assert_int_equal(s.n_accepted, m[i].n_accepted);
        assert_int_equal(s.n_tokens, m[i].most - 1);
        if (how == MISS) assert_int_equal(m[i].n_computed, m[i].a->n_prompt);
        if (from == OWN_RIGHT) assert_true(m[i].n_accepted >= (m[i].most - 1) * depth[i] / (depth[i] + 1));
        if (from == OWN_WRONG) assert_int_equal(m[i].n_accepted, 0);
        if (n_accepted) *n_accepted += m[i].n_accepted;
        go_on(&m[i]);
        maker_close(&m[i]);
    }
}

static void matrix(void **unused)
{
    static const struct {
        gdn_drafter drafter;
        source      from, last;
    } ways[] = {{GDN_DRAFTER_OFF, OWN_RIGHT, OWN_PARTLY},
                {GDN_DRAFTER_LOOKUP, ENGINE, ENGINE},
                {GDN_DRAFTER_MTP, ENGINE, ENGINE},
                {GDN_DRAFTER_AUTO, OWN_PARTLY, ENGINE}};
    (void)unused;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (way how = MISS; how <= RESTORED; how++) {
            const int                threads = how == RESTORED ? 1 : 1 + (int)how;
            long                     n_accepted = 0;
            const gdn_engine_options options = {.n_threads = threads,
                                                .n_sequences = ANSWERS,
                                                .drafter = ways[w].drafter,
                                                .n_drafts = GDN_DRAFTS_MAX,
                                                .reuse_bytes = how == MISS ? -1 : 0};
            gdn_engine              *engine = open_engine(&options);
            for (source from = ways[w].from; from <= ways[w].last; from++)
                for (int d = 0; d <= DEPTHS; d += how == RESTORED ? 3 : 1) {
                    const int deep = d < DEPTHS ? d : GDN_DRAFTS_MAX, mixed[] = {deep, 0, 3, deep};
                    const int batch[] = {(d + 1) % ANSWERS, (d + 2) % ANSWERS, (d + 3) % ANSWERS, (d + 4) % ANSWERS};
                    const int alone = d % ANSWERS;
                    make(engine, &alone, &deep, 1, from, how, &n_accepted);
                    make(engine, batch, mixed, 4, from, how, &n_accepted);
                }
            print_message("drafter %d, %s, %d threads: %ld drafts accepted\n", (int)ways[w].drafter,
                          how == MISS  ? "miss"
                          : how == HIT ? "hit"
                                       : "restored",
                          threads, n_accepted);
            assert_true(n_accepted > 20);
            gdn_engine_close(engine);
        }
}

/* ---- the ends of texts ------------------------------------------------------------------------------------------------- */

/* A text that ends anywhere among accepted drafts holds what it would hold without them. */
static void stops_among_accepted(void **unused)
{
    (void)unused;
    gdn_engine *engine = open_engine(&(gdn_engine_options){.n_threads = 2, .n_drafts = 8});
    for (int most = 2; most <= 20; most++)
        for (int i = 0; i < ANSWERS; i++) {
            maker m = maker_open(engine, &answers[i], most);
            rng   r = {1};
            pick(&m, gdn_sequence_logits(m.s));
            while (m.made < most) {
                gdn_verify call = call_of(&m, drafts_of(&m, RIGHT, 8, &r), 8);
                ACCEPTED(gdn_engine_verify(engine, &call, 1, &err));
                called(&m, &call);
            }
            assert_int_equal(m.n_passes, (most - 1 + 8) / 9);
            go_on(&m);
            maker_close(&m);
        }
    gdn_engine_close(engine);
}

/* A sequence with less room than drafts, and one whose drafts need a page that is not there. */
static void full(void **unused)
{
    (void)unused;
    for (int what = 0; what < 2; what++)
        for (int room = 1; room <= 12; room++) {
            const answer            *a = &answers[room % ANSWERS];
            const int                end = (a->n_prompt / 64 + 1) * 64; /* of the page in which the prompt ends */
            const gdn_engine_options options = {.n_threads = 1,
                                                .n_drafts = 16,
                                                .max_tokens = what ? 320 : a->n_prompt + room,
                                                .kv_tokens = what ? end : 0};
            const int                most = what ? end - a->n_prompt : room;
            gdn_engine              *engine = open_engine(&options);
            maker                    m = maker_open(engine, a, MADE);
            rng                      r = {1};
            pick(&m, gdn_sequence_logits(m.s));
            while (m.made <= most && m.made < MADE) {
                gdn_verify call = call_of(&m, drafts_of(&m, PARTLY, what ? room : 16, &r), what ? room : 16);
                ACCEPTED(gdn_engine_verify(engine, &call, 1, &err));
                called(&m, &call);
            }
            if (m.made > most) {
                gdn_verify call = call_of(&m, m.drafts, 2);
                const int  made = m.made;
                assert_refused(what ? GDN_NO_SLOT : GDN_BAD_ARGUMENT, gdn_engine_verify(engine, &call, 1, &ok_err));
                assert_int_equal(m.made, made);
                expect_made(&m);
            }
            maker_close(&m);
            gdn_engine_close(engine);
        }
}

/* ---- forks, edits -------------------------------------------------------------------------------------------------------- */

/* Between rounds a sequence is forked, and the first answer is made again from its prompt: all go on as recorded. */
static void forks(void **unused)
{
    (void)unused;
    for (gdn_drafter drafter = GDN_DRAFTER_OFF; drafter <= GDN_DRAFTER_MTP; drafter++) {
        const gdn_engine_options options = {.n_threads = 2, .n_sequences = 4, .drafter = drafter, .n_drafts = 6};
        gdn_engine              *engine = open_engine(&options);
        rng                      r = {77};
        for (int i = 0; i < ANSWERS; i++) {
            maker m[4] = {maker_open(engine, &answers[i], MADE)};
            int   n = 1, again = 0;
            pick(&m[0], gdn_sequence_logits(m[0].s));
            while (n < 4 || again < 3 || m[0].made < MADE) {
                gdn_verify calls[4];
                int        maker_of[4], n_calls = 0;
                for (int k = 0; k < n; k++) {
                    const int depth = rng_below(&r, 7);
                    if (m[k].made >= MADE) continue;
                    maker_of[n_calls] = k;
                    calls[n_calls++] =
                        call_of(&m[k], drafter && k % 2 ? NULL : drafts_of(&m[k], PARTLY, depth, &r), depth);
                }
                if (n_calls) ACCEPTED(gdn_engine_verify(engine, calls, n_calls, &err));
                for (int k = 0; k < n_calls; k++) called(&m[maker_of[k]], &calls[k]);
                if (n < 4 && m[0].made < MADE) { /* a fork, with a sampler of its own that saw the same */
                    m[n] = m[0];
                    ACCEPTED(gdn_sequence_fork(&m[n].s, m[0].s, &err));
                    m[n].sampler = sampler_of(&answers[i]);
                    for (int t = 0; t < m[n].made; t++)
                        gdn_sampler_accept(m[n].sampler, answers[i].tokens[answers[i].n_prompt + t], true);
                    expect_made(&m[n++]);
                } else if (again < 3) {
                    const int k = again++;
                    if (k >= n) continue;
                    int computed = -1;
                    gdn_sampler_close(m[k].sampler);
                    m[k].sampler = sampler_of(&answers[i]);
                    ACCEPTED(
                        gdn_sequence_set(m[k].s, answers[i].tokens, answers[i].n_prompt, NULL, NULL, &computed, &err));
                    assert_int_equal(computed, 0);
                    m[k].made = 0;
                    pick(&m[k], gdn_sequence_logits(m[k].s));
                }
            }
            for (int k = 0; k < n; k++) {
                go_on(&m[k]);
                maker_close(&m[k]);
            }
        }
        gdn_engine_close(engine);
    }
}

/* ---- distribution -------------------------------------------------------------------------------------------------------- */

/* With fixed logits, draws with a draft: all of them, and those that follow a rejection, have the distribution of the logits. */
typedef struct drawer {
    gdn_sampler *sampler;
    int32_t      first;
    int          n_calls;
} drawer;

static int32_t draw(void *arg, const float *logits)
{
    drawer       *d = arg;
    const int32_t token = gdn_sampler_pick(d->sampler, logits, NULL);
    gdn_sampler_accept(d->sampler, token, true);
    if (!d->n_calls++) d->first = token;
    return token;
}

/* Sum over the tokens of (seen - expected)^2 / expected, those with fewer than 5 expected taken together; *freedom: degrees. */
static double chi_square(const long *seen, const double *p, long n, int *freedom)
{
    double sum = 0, rare_p = 0, rare_seen = 0;
    *freedom = -1;
    for (int i = 0; i < V; i++) {
        const double expected = p[i] * (double)n;
        if (expected < 5) {
            rare_p += expected;
            rare_seen += (double)seen[i];
            continue;
        }
        sum += ((double)seen[i] - expected) * ((double)seen[i] - expected) / expected;
        ++*freedom;
    }
    if (rare_p >= 5) {
        sum += (rare_seen - rare_p) * (rare_seen - rare_p) / rare_p;
        ++*freedom;
    } else if (rare_p == 0) {
        assert_true(rare_seen == 0);
    }
    return sum;
}

/* The value that chi-square of so many degrees passes once in a million (Wilson and Hilferty). */
static double too_much(int freedom)
{
    const double v = 2.0 / (9.0 * freedom), z = 1 - v + 4.753 * sqrt(v);
    return freedom * z * z * z;
}

static void distribution(void **unused)
{
    enum { DRAWS = 100000 };
    const answer *a = &answers[4];
    const int     n_ids = 512; /* of the demo's: enough kinds of tokens, and quick to draw from */
    long         *seen = calloc((size_t)V, sizeof *seen), *after = calloc((size_t)V, sizeof *after);
    double       *p = calloc((size_t)V, sizeof *p), *rest = calloc((size_t)V, sizeof *rest);
    float        *rows = malloc(2 * (size_t)V * sizeof *rows);
    (void)unused;
    assert_true(seen && after && p && rest && rows);
    int n_tested = 0;
    for (int at = 0; at < MADE && n_tested < 1; at++) {
        const float *logits = logits_at(a, at);
        double       sum = 0;
        int          best = 0;
        for (int i = 0; i < n_ids; i++) {
            if (logits[i] > logits[best]) best = i;
            sum += exp((double)logits[i]);
        }
        for (int i = 0; i < V; i++) p[i] = i < n_ids ? exp((double)logits[i]) / sum : 0;
        if (p[best] > 0.7 || p[best] < 0.3) continue; /* both ends must be frequent */
        n_tested++;
        for (int i = 0; i < V; i++) rest[i] = i == best ? 0 : p[i] / (1 - p[best]);
        memset(seen, 0, (size_t)V * sizeof *seen);
        memset(after, 0, (size_t)V * sizeof *after);
        memcpy(rows, logits, (size_t)V * sizeof *rows);
        memcpy(rows + V, logits, (size_t)V * sizeof *rows);
        drawer                    d = {0};
        const gdn_sampler_options options = {
            .temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = (uint64_t)at};
        ACCEPTED(gdn_sampler_open(&d.sampler, V, n_ids, &options, &err));
        long          n_accepted = 0, n_rejected = 0;
        const int32_t draft = best;
        for (int i = 0; i < DRAWS; i++) {
            int32_t next;
            d.n_calls = 0;
            const int accepted = gdn_judge(rows, (size_t)V, &draft, 1, draw, &d, &next);
            assert_int_equal(accepted, d.first == draft);
            assert_int_equal(d.n_calls, 1 + accepted);
            seen[d.first]++;
            if (accepted) n_accepted++;
            else after[next]++, n_rejected++;
        }
        int          f_all, f_rest;
        const double all = chi_square(seen, p, DRAWS, &f_all), others = chi_square(after, rest, n_rejected, &f_rest);
        const double sd = sqrt(DRAWS * p[best] * (1 - p[best]));
        print_message(
            "after %d tokens: p(draft) %.4f, accepted %.4f; chi-square %.1f of %d, after a rejection %.1f of %d\n", at,
            p[best], (double)n_accepted / DRAWS, all, f_all, others, f_rest);
        assert_true(f_all >= 3 && all < too_much(f_all));
        assert_true(f_rest >= 2 && others < too_much(f_rest));
        assert_true(fabs((double)n_accepted - DRAWS * p[best]) < 5 * sd);
        gdn_sampler_close(d.sampler);
    }
    assert_int_equal(n_tested, 1);
    free(seen), free(after), free(p), free(rest), free(rows);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

static void refusals(void **unused)
{
    (void)unused;
    gdn_engine *engine = open_engine(&(gdn_engine_options){.n_threads = 1, .n_sequences = 2, .n_drafts = 4});
    gdn_engine *other = open_engine(&(gdn_engine_options){.n_threads = 1});
    maker       m = maker_open(engine, &answers[0], MADE), stranger = maker_open(other, &answers[0], MADE);
    rng         r = {1};
    pick(&m, gdn_sequence_logits(m.s));
    pick(&stranger, gdn_sequence_logits(stranger.s));
    const gdn_verify good = call_of(&m, drafts_of(&m, RIGHT, 4, &r), 4);
    const int32_t    outside[] = {1, 2, V}, below[] = {-1};
    gdn_verify       calls[3] = {good, good, good};
#define REFUSED(status, field, value)                                        \
    do {                                                                     \
        gdn_verify bad = good;                                               \
        bad.field = value;                                                   \
        assert_refused(status, gdn_engine_verify(engine, &bad, 1, &ok_err)); \
    } while (0)
    REFUSED(GDN_BAD_ARGUMENT, sequence, NULL);
    REFUSED(GDN_BAD_ARGUMENT, sequence, stranger.s);
    REFUSED(GDN_BAD_ARGUMENT, token, -1);
    REFUSED(GDN_BAD_ARGUMENT, token, V);
    REFUSED(GDN_BAD_ARGUMENT, n_drafts, 5);
    REFUSED(GDN_BAD_ARGUMENT, n_drafts, -1);
    REFUSED(GDN_BAD_ARGUMENT, drafts, outside);
    REFUSED(GDN_BAD_ARGUMENT, drafts, below);
    REFUSED(GDN_BAD_ARGUMENT, pick, NULL);
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_verify(engine, calls, 2, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_verify(engine, calls, 3, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_verify(engine, calls, 0, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_verify(engine, NULL, 1, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_verify(NULL, calls, 1, &ok_err));
    gdn_verify drafting = call_of(&stranger, stranger.drafts, 1); /* an engine that was not opened for drafts */
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_verify(other, &drafting, 1, &ok_err));
    assert_int_equal(m.made, 1);
    expect_made(&m);
    ACCEPTED(gdn_engine_verify(engine, calls, 1, &err)); /* the refusals broke nothing */
    called(&m, &calls[0]);
    assert_int_equal(calls[0].n_accepted, 4);
    maker_close(&m);
    maker_close(&stranger);
    gdn_engine_close(engine);
    gdn_engine_close(other);
    for (int i = 0; i < 3; i++) {
        const gdn_engine_options wrong[] = {{.model = "models/demo", .n_drafts = GDN_DRAFTS_MAX + 1},
                                            {.model = "models/demo", .n_drafts = -1},
                                            {.model = "models/demo", .drafter = (gdn_drafter)4}};
        gdn_engine              *none = NULL;
        assert_refused(GDN_BAD_ARGUMENT, gdn_engine_open(&none, &wrong[i], &ok_err));
        assert_null(none);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(matrix),       cmocka_unit_test(stops_among_accepted),
                                       cmocka_unit_test(full),         cmocka_unit_test(forks),
                                       cmocka_unit_test(distribution), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests_name("drafts", tests, record_all, forget_all);
}
