/* What the sampler draws: the distributions, and a plain sorting sampler that must agree on every pick. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdn/gdn.h"
#include "kernel/math.h"
#include "support/random.h"
#include <float.h>
#include <stdlib.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static gdn_sampler *open_sampler(int vocab_size, gdn_sampler_options options)
{
    gdn_sampler     *sampler = NULL;
    gdn_error        err = {.code = GDN_OK};
    const gdn_status status = gdn_sampler_open(&sampler, vocab_size, vocab_size, &options, &err);
    if (status) fail_msg("%s", err.message);
    return sampler;
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

enum { N_TOKENS = 40, N_DRAWS = 100000 };

/* The probabilities in double: the tokens by falling logit, cut off one by one. */
static void probabilities(double *p, const float *logits, const gdn_sampler_options *o)
{
    int    order[N_TOKENS], n = N_TOKENS;
    double sum = 0, below = 0;
    for (int i = 0; i < N_TOKENS; i++) {
        int at = i;
        for (; at > 0 && logits[i] > logits[order[at - 1]]; at--) order[at] = order[at - 1];
        order[at] = i;
        p[i] = 0;
    }
    if (o->top_k && o->top_k < n) n = o->top_k;
    for (int i = 0; i < n; i++)
        sum += p[order[i]] = exp(((double)logits[order[i]] - (double)logits[order[0]]) / o->temperature);
    for (int i = 0; i < n; i++) {
        const double w = p[order[i]];
        if (below >= o->top_p * sum || w < o->min_p) p[order[i]] = 0;
        below += w;
    }
    sum = 0;
    for (int i = 0; i < N_TOKENS; i++) sum += p[i];
    for (int i = 0; i < N_TOKENS; i++) p[i] /= sum;
}

static void test_distributions(void **state)
{
    (void)state;
    static const struct {
        double temperature, top_p, min_p;
        int    top_k;
    } cases[] = {{1, 1, 0, 0},     {0.5, 1, 0, 0},      {3, 1, 0, 0},      {100, 1, 0, 0},       {1, 1, 0, 10},
                 {2, 0.9, 0, 0},   {1, 0.8, 0, 0},      {1, 1, 0.05, 0},   {2, 1, 0.3, 0},       {0.7, 0.8, 0, 20},
                 {1, 0.95, 0, 20}, {1.5, 0.9, 0.1, 30}, {1, 0.999, 0, 39}, {2.5, 0.97, 0.02, 0}, {0.2, 1, 0, 0}};
    for (int c = 0; c < COUNT(cases); c++) {
        gdn_sampler_options o = GDN_SAMPLER_GREEDY;
        float               logits[N_TOKENS];
        double              p[N_TOKENS], chi2 = 0, rest = 0, rest_seen = 0;
        int                 counts[N_TOKENS] = {0}, n_bins = 0;
        rng                 r = {(uint64_t)c + 100};
        for (int i = 0; i < N_TOKENS; i++) logits[i] = 2 * rng_normal(&r);
        o.temperature = cases[c].temperature;
        o.top_k = cases[c].top_k;
        o.top_p = cases[c].top_p;
        o.min_p = cases[c].min_p;
        o.seed = (uint64_t)c;
        probabilities(p, logits, &o);
        gdn_sampler *sampler = open_sampler(N_TOKENS, o);
        for (int i = 0; i < N_DRAWS; i++) {
            const int id = gdn_sampler_pick(sampler, logits, NULL);
            counts[id]++;
            gdn_sampler_accept(sampler, id, true);
        }
        gdn_sampler_close(sampler);
        for (int i = 0; i < N_TOKENS; i++) {
            const double want = p[i] * N_DRAWS;
            if (p[i] == 0) assert_int_equal(counts[i], 0);
            if (want < 10) { /* too few for a bin of their own */
                rest += want;
                rest_seen += counts[i];
                continue;
            }
            chi2 += (counts[i] - want) * (counts[i] - want) / want;
            n_bins++;
        }
        if (rest > 5) {
            chi2 += (rest_seen - rest) * (rest_seen - rest) / rest;
            n_bins++;
        }
        /* Wilson and Hilferty: exceeded once in 10,000 times (3.72 standard deviations) by a right sampler; the seeds are fixed */
        const double df = n_bins - 1, v = 2 / (9 * df), limit = df * pow(1 - v + 3.72 * sqrt(v), 3);
        if (!(n_bins > 1 && chi2 < limit))
            fail_msg("case %d: chi-square %.1f of %d bins, at most %.1f", c, chi2, n_bins, limit);
    }
}

/* Neither the draws of one seed nor the first draws of neighbouring seeds go together. */
static void test_random_numbers(void **state)
{
    (void)state;
    enum { SIDE = 16, N = 1 << 16 };
    float               logits[SIDE] = {0};
    gdn_sampler_options o = GDN_SAMPLER_GREEDY;
    o.temperature = 1;
    for (int kind = 0; kind < 2; kind++) {
        int          pairs[SIDE][SIDE] = {{0}}, last = 0;
        double       chi2 = 0;
        gdn_sampler *sampler = open_sampler(SIDE, o);
        for (int i = 0; i < N; i++) {
            if (kind) {
                gdn_sampler_close(sampler);
                o.seed = (uint64_t)i;
                sampler = open_sampler(SIDE, o);
            }
            const int id = gdn_sampler_pick(sampler, logits, NULL);
            if (i) pairs[last][id]++;
            gdn_sampler_accept(sampler, last = id, true);
        }
        gdn_sampler_close(sampler);
        for (int i = 0; i < SIDE * SIDE; i++) {
            const double want = (double)N / (SIDE * SIDE), diff = pairs[i / SIDE][i % SIDE] - want;
            chi2 += diff * diff / want;
        }
        assert_in_range((int)chi2, 170, 346); /* 255 of freedom: 4 standard deviations each way */
    }
}

/* ---- a plain sampler that sorts ---------------------------------------------------------------------------------- */

enum { N_RANDOM = 5000 };

typedef struct plain {
    int      id;
    float    logit;
    uint64_t w;
} plain;

static int by_logit(const void *a, const void *b)
{
    const plain *x = a, *y = b;
    return x->logit != y->logit ? (x->logit < y->logit) - (x->logit > y->logit) : x->id - y->id;
}

static int by_weight(const void *a, const void *b)
{
    const plain *x = a, *y = b;
    return x->w != y->w ? (x->w < y->w) - (x->w > y->w) : x->id - y->id;
}

static int by_id(const void *a, const void *b) { return ((const plain *)a)->id - ((const plain *)b)->id; }

static uint64_t mixed(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint64_t total(const plain *list, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) sum += list[i].w;
    return sum;
}

static int plain_pick(const float *logits, int n_tokens, const gdn_sampler_options *o, uint64_t n_output)
{
    __extension__ typedef unsigned __int128 wide;
    static plain                            list[N_RANDOM];
    const uint64_t step = 0x9E3779B97F4A7C15u, random = mixed(mixed(o->seed + step) + (n_output + 1) * step);
    int            n = 0, kept = 0;
    wide           have = 0;
    for (int i = 0; i < n_tokens; i++)
        if (logits[i] > -INFINITY) list[n++] = (plain){.id = i, .logit = logits[i]};
    if (!n) return 0;
    qsort(list, (size_t)n, sizeof *list, by_logit);
    if (o->top_k && o->top_k < n) n = o->top_k;
    const float most = fminf(list[0].logit, FLT_MAX);
    for (int i = 0; i < n; i++)
        list[i].w = (uint64_t)(gdn_expf((fminf(list[i].logit, FLT_MAX) - most) / (float)o->temperature) * 0x1p40f);
    qsort(list, (size_t)n, sizeof *list, by_weight);
    while (n && !list[n - 1].w) n--;
    const wide wanted = (wide)(uint64_t)(o->top_p * 0x1p32 + 0.5) * total(list, n);
    while (kept < n && (kept == 0 || have << 32 < wanted)) have += list[kept++].w;
    for (n = kept, kept = 0; kept < n && (double)list[kept].w >= o->min_p * (double)list[0].w;) kept++;
    uint64_t below = (uint64_t)((wide)random * total(list, kept) >> 64);
    qsort(list, (size_t)kept, sizeof *list, by_id);
    int i = 0;
    for (; list[i].w <= below; i++) below -= list[i].w;
    return list[i].id;
}

static void test_against_sorting(void **state)
{
    (void)state;
    static float        x[N_RANDOM];
    static const double ps[] = {0, 1e-9, 0.1, 0.5, 0.9, 0.95, 0.999, 1 - 1e-9, 1};
    rng                 r = {7};
    for (int round = 0; round < 3000; round++) {
        const int           n = 1 + rng_below(&r, round % 30 ? 60 : N_RANDOM);
        const bool          ties = rng_below(&r, 2), strange = rng_below(&r, 4) == 0;
        gdn_sampler_options o = GDN_SAMPLER_GREEDY;
        o.temperature = exp((double)rng_uniform(&r, -6, 4.6f));
        o.top_k = rng_below(&r, 2) ? rng_below(&r, n + 2) : 0;
        o.top_p = ps[rng_below(&r, COUNT(ps))];
        o.min_p = rng_below(&r, 2) ? (double)rng_uniform(&r, 0, 1) : 0;
        o.seed = (uint64_t)rng_u32(&r) << 32 | rng_u32(&r);
        for (int i = 0; i < n; i++) {
            x[i] = ties ? (float)rng_below(&r, 5) - 2 : 5 * rng_normal(&r);
            if (ties && x[i] == 0 && rng_below(&r, 2)) x[i] = -0.0f;
            if (strange && rng_below(&r, 3) == 0)
                x[i] = (float[]){NAN, -INFINITY, -INFINITY, INFINITY, FLT_MAX, -FLT_MAX, 1e-42f}[rng_below(&r, 7)];
        }
        gdn_sampler *sampler = open_sampler(n, o);
        for (int i = 0; i < 5; i++) {
            const int id = gdn_sampler_pick(sampler, x, NULL);
            assert_int_equal(id, plain_pick(x, n, &o, (uint64_t)i));
            gdn_sampler_accept(sampler, id, true);
        }
        gdn_sampler_close(sampler);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distributions),
        cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_against_sorting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
