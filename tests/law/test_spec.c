/* The law for drafts: an answer made with any of them, right or wrong, has the tokens and the logits of the answer made token by
 * token, bit for bit, and so does all that follows. */
#include "law/spec.h"
#include <math.h>

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

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { DRAWS = 16000 }; /* many times slower, and there for other errors */
#else
enum { DRAWS = 100000 };
#endif
enum { AT_ONCE = 16 };

static const double TEMPERATURE = 2; /* so that many tokens are drawn */

/* Picks of a call, and the logits that they must see: after its token, and after the draft. */
typedef struct drawer {
    gdn_sampler *sampler;
    const float *rows[2];
    int32_t      picked[2];
    int          n;
} drawer;

static int32_t draw(void *arg, const float *logits)
{
    drawer *d = arg;
    assert_in_range(d->n, 0, 1);
    assert_memory_equal(logits, d->rows[d->n], (size_t)V * sizeof *logits);
    const int32_t token = gdn_sampler_pick(d->sampler, logits, NULL);
    gdn_sampler_accept(d->sampler, token, true);
    return d->picked[d->n++] = token;
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

/* Probabilities of the tokens; returns the likeliest. */
static int32_t softmax(const float *logits, double *p)
{
    double  sum = 0;
    int32_t best = 0;
    for (int i = 0; i < V; i++) sum += p[i] = i < n_usable ? exp((double)logits[i] / TEMPERATURE) : 0;
    for (int i = 0; i < V; i++) {
        p[i] /= sum;
        if (p[i] > p[best]) best = i;
    }
    return best;
}

static void expect_distribution(const char *what, const long *seen, const double *p, long n)
{
    int          freedom;
    const double sum = chi_square(seen, p, n, &freedom);
    print_message("%s: %ld draws, chi-square %.1f of %d\n", what, n, sum, freedom);
    assert_true(freedom >= 20 && sum < too_much(freedom));
}

/* n draws with a draft each, in forks of the first `length` tokens of an answer: of the token after the next one into seen[0][V],
 * and where that was the draft, of the one after it into seen[1][V]. */
static void draw_many(const answer *a, int length, drawer d, int n, long *seen)
{
    const int32_t draft = a->tokens[length + 1];
    gdn_engine   *engine = open_engine(
          &(gdn_engine_options){.n_threads = 1, .n_sequences = 1 + AT_ONCE, .n_drafts = 1, .reuse_bytes = -1});
    gdn_sequence *base = NULL, *forks[AT_ONCE];
    ACCEPTED(gdn_sequence_open(&base, engine, &err));
    ACCEPTED(gdn_sequence_set(base, a->tokens, length, NULL, NULL, NULL, &err));
    for (int done = 0; done < n; done += AT_ONCE) {
        drawer     drawers[AT_ONCE];
        gdn_verify calls[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            ACCEPTED(gdn_sequence_fork(&forks[i], base, &err));
            drawers[i] = d;
            calls[i] = (gdn_verify){.sequence = forks[i],
                                    .token = a->tokens[length],
                                    .drafts = &draft,
                                    .n_drafts = 1,
                                    .pick = draw,
                                    .arg = &drawers[i]};
        }
        ACCEPTED(gdn_engine_verify(engine, calls, AT_ONCE, &err));
        for (int i = 0; i < AT_ONCE; i++) {
            const drawer *got = &drawers[i];
            assert_int_equal(calls[i].n_accepted, got->picked[0] == draft);
            assert_int_equal(got->n, 1 + calls[i].n_accepted);
            assert_int_equal(calls[i].next, got->picked[calls[i].n_accepted]);
            seen[got->picked[0]]++;
            if (calls[i].n_accepted) seen[V + got->picked[1]]++;
            gdn_sequence_close(forks[i]);
        }
    }
    gdn_sequence_close(base);
    gdn_engine_close(engine);
}

/* Draws with a draft have the distribution of the logits: all of them, those that are not the draft, those that follow it. */
static void distribution(void **unused)
{
    const answer *const a = &answers[4];
    long               *seen = calloc(2 * (size_t)V, sizeof *seen);
    double             *p = malloc(2 * (size_t)V * sizeof *p);
    int                 at = 1;
    (void)unused;
    assert_true(seen && p);
    for (;; at++) { /* a draft that is right about every other time, and something to draw after it */
        assert_true(at + 1 < MADE);
        const int32_t draft = softmax(logits_at(a, at), p), next = softmax(logits_at(a, at + 1), p + V);
        if (draft == a->tokens[a->n_prompt + at] && p[draft] > 0.3 && p[draft] < 0.7 && p[V + next] < 0.9) break;
    }
    const int32_t             draft = a->tokens[a->n_prompt + at];
    const double              p_draft = p[draft], sd = sqrt(DRAWS * p_draft * (1 - p_draft));
    const gdn_sampler_options options = {.temperature = TEMPERATURE, .top_p = 1, .repetition_penalty = 1, .seed = 4};
    drawer                    d = {.rows = {logits_at(a, at), logits_at(a, at + 1)}};
    ACCEPTED(gdn_sampler_open(&d.sampler, V, n_usable, &options, &err));
    draw_many(a, a->n_prompt + at - 1, d, DRAWS, seen);
    const long n_accepted = seen[draft];
    print_message("p(draft) %.4f, accepted %.4f\n", p_draft, (double)n_accepted / DRAWS);
    assert_true(fabs((double)n_accepted - DRAWS * p_draft) < 5 * sd);
    expect_distribution("all", seen, p, DRAWS);
    expect_distribution("after the draft", seen + V, p + V, n_accepted);
    seen[draft] = 0;
    p[draft] = 0;
    for (int i = 0; i < V; i++) p[i] /= 1 - p_draft;
    expect_distribution("not the draft", seen, p, DRAWS - n_accepted);
    gdn_sampler_close(d.sampler);
    free(seen);
    free(p);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(stops_among_accepted), cmocka_unit_test(full),
                                       cmocka_unit_test(forks), cmocka_unit_test(distribution),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests_name("drafts", tests, record_all, forget_all);
}
