/* The sampler: recorded draws, and each option by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdn/gdn.h"
#include <math.h>
#include <string.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define INF ((double)INFINITY)

static gdn_sampler *open_sampler(int vocab_size, gdn_sampler_options options)
{
    gdn_sampler     *sampler = NULL;
    gdn_error        err = {.code = GDN_OK};
    const gdn_status status = gdn_sampler_open(&sampler, vocab_size, vocab_size, &options, &err);
    if (status) fail_msg("%s", err.message);
    return sampler;
}

/* The pick of a sampler of its own, and that the logits have their bits back. */
static int pick_once(int n, const float *logits, gdn_sampler_options options)
{
    float        x[64], before[64];
    gdn_sampler *sampler = open_sampler(n, options);
    memcpy(x, logits, (size_t)n * sizeof *x);
    memcpy(before, x, sizeof before);
    const int id = gdn_sampler_pick(sampler, x, NULL);
    assert_memory_equal(x, before, (size_t)n * sizeof *x);
    gdn_sampler_close(sampler);
    return id;
}

/* Which of n <= 64 tokens are ever picked, as bits, over many draws. */
static uint64_t picked(int n, const float *logits, gdn_sampler_options options)
{
    float        x[64];
    uint64_t     set = 0;
    gdn_sampler *sampler = open_sampler(n, options);
    memcpy(x, logits, (size_t)n * sizeof *x);
    for (int i = 0; i < 4000; i++) {
        const int id = gdn_sampler_pick(sampler, x, NULL);
        assert_in_range(id, 0, n - 1);
        set |= UINT64_C(1) << id;
        gdn_sampler_accept(sampler, id, true);
    }
    gdn_sampler_close(sampler);
    return set;
}

/* ---- recorded ---------------------------------------------------------------------------------------------------- */

/* Printed by tests/unit/sampler_reference.py, which computes in fractions; the cases are those of its CASES. */
static const int recorded[][20] = {
    {46, 46, 24, 46, 57, 13, 54, 16, 24, 43, 24, 5, 5, 43, 43, 21, 46, 54, 57, 5},
    {24, 57, 5, 57, 16, 57, 46, 16, 16, 16, 46, 57, 16, 57, 57, 24, 57, 57, 35, 5},
    {24, 51, 35, 57, 35, 10, 57, 46, 5, 57, 54, 2, 62, 62, 16, 7, 46, 24, 35, 51},
    {21, 59, 32, 5, 45, 5, 13, 46, 6, 46, 43, 13, 15, 16, 57, 51, 35, 29, 43, 9},
    {16, 40, 18, 46, 48, 24, 10, 13, 2, 51, 32, 51, 43, 35, 54, 16, 62, 29, 26, 57},
};

static void test_recorded(void **state)
{
    (void)state;
    static const gdn_token_bias      bias[] = {{3, 2.5}, {7, -1.25}};
    static const gdn_sampler_options cases[] = {
        {.temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 0},
        {.temperature = 0.7, .top_k = 20, .top_p = 0.8, .repetition_penalty = 1, .seed = 1},
        {.temperature = 1.5, .top_p = 0.95, .repetition_penalty = 1, .seed = UINT64_MAX},
        {.temperature = 3.25, .top_p = 1, .min_p = 0.05, .repetition_penalty = 1, .seed = 42},
        {.temperature = 2,
         .top_k = 30,
         .top_p = 0.9,
         .min_p = 0.02,
         .repetition_penalty = 1.3,
         .presence_penalty = 0.4,
         .frequency_penalty = 0.15,
         .n_bias = 2,
         .bias = bias,
         .seed = 12345678901234567890u},
    };
    float logits[64];
    for (int i = 0; i < 64; i++) logits[i] = (float)((i * 37 + 11) % 101 - 50) / 8;
    for (int c = 0; c < COUNT(cases); c++) {
        gdn_sampler *sampler = open_sampler(64, cases[c]);
        gdn_sampler_accept(sampler, 5, false);
        gdn_sampler_accept(sampler, 9, false);
        gdn_sampler_accept(sampler, 42, false);
        for (int i = 0; i < 20; i++) {
            const int id = gdn_sampler_pick(sampler, logits, NULL);
            assert_int_equal(id, recorded[c][i]);
            assert_int_equal(gdn_sampler_pick(sampler, logits, NULL), id); /* a pick that is thrown away */
            gdn_sampler_accept(sampler, id, true);
        }
        gdn_sampler_close(sampler);
    }
}

/* Seeds made by inverting mix: the first random number is the least, the greatest below one half, one half, the greatest. */
static void test_bounds(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {14258097010372255221u, 10380149243021826651u, 16394053443022800329u,
                                     2295574122455614247u};
    gdn_sampler_options   o = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    for (int i = 0; i < 4; i++) {
        o.seed = seeds[i];
        assert_int_equal(pick_once(2, (float[]){3, 3}, o), i / 2);
    }
}

/* ---- each option by hand ----------------------------------------------------------------------------------------- */

static void test_greedy(void **state)
{
    (void)state;
    float x[40];
    for (int first = 0; first < 40; first++)
        for (int second = first; second < 40; second++) {
            for (int i = 0; i < 40; i++) x[i] = -1 - (float)i;
            x[first] = x[second] = 0.5f;
            assert_int_equal(pick_once(40, x, GDN_SAMPLER_GREEDY), first);
        }
    assert_int_equal(pick_once(3, (float[]){-1, -0.0f, 0.0f}, GDN_SAMPLER_GREEDY), 1);
    assert_int_equal(pick_once(3, (float[]){-1, 0.0f, -0.0f}, GDN_SAMPLER_GREEDY), 1);
    gdn_sampler_options o = GDN_SAMPLER_GREEDY;
    o.temperature = 1e-60; /* 0 as a float */
    assert_int_equal(pick_once(3, (float[]){-1, 2, 2}, o), 1);
    o.temperature = 1e-40; /* a denormal */
    assert_int_equal(pick_once(3, (float[]){-1, 2, 2.5f}, o), 2);
}

static void test_unusable(void **state)
{
    (void)state;
    float               x[40];
    gdn_sampler        *sampler = NULL;
    gdn_sampler_options o = GDN_SAMPLER_GREEDY;
    for (int i = 0; i < 40; i++) x[i] = i < 30 ? (float)(i % 7) : 100;
    for (int sampled = 0; sampled < 2; sampled++) {
        o.temperature = sampled * 50;
        assert_int_equal(gdn_sampler_open(&sampler, 40, 30, &o, NULL), GDN_OK);
        for (int i = 0; i < 1000; i++) {
            assert_in_range(gdn_sampler_pick(sampler, x, NULL), 0, 29);
            gdn_sampler_accept(sampler, i % 40, true);
        }
        gdn_sampler_close(sampler);
    }
}

static void test_filters(void **state)
{
    (void)state;
    const float         x[6] = {1, 3, 2, 3, 0, 2};
    gdn_sampler_options o = GDN_SAMPLER_GREEDY;
    o.temperature = 1;
    assert_int_equal(picked(6, x, o), 0x3f);
    /* top_k: tokens 1 and 3, then 2 before 5, then 0 */
    static const uint64_t of_k[] = {0x3f, 0x02, 0x0a, 0x0e, 0x2e, 0x2f, 0x3f, 0x3f};
    for (o.top_k = 0; o.top_k < COUNT(of_k); o.top_k++) assert_int_equal(picked(6, x, o), of_k[o.top_k]);
    /* top_p: weights e^-2, 1, e^-1, 1, e^-3, e^-1 of 2.9208; in the order 1 3 2 5 0 4 they add up to
     * .3424 .6847 .8107 .9366 .9830 1 */
    static const struct {
        double   p;
        uint64_t set;
    } of_p[] = {{0, 0x02},    {0.34, 0x02},  {0.343, 0x0a}, {0.684, 0x0a}, {0.685, 0x0e},
                {0.81, 0x0e}, {0.812, 0x2e}, {0.936, 0x2e}, {0.937, 0x2f}, {0.984, 0x3f}};
    o.top_k = 0;
    for (int i = 0; i < COUNT(of_p); i++) {
        o.top_p = of_p[i].p;
        assert_int_equal(picked(6, x, o), of_p[i].set);
    }
    /* top_p is of what top_k left: of 1, 1 and e^-1 two make .845 */
    o.top_k = 3;
    o.top_p = 0.84;
    assert_int_equal(picked(6, x, o), 0x0a);
    o.top_p = 0.85;
    assert_int_equal(picked(6, x, o), 0x0e);
    /* half and half: .5 of the weight is one token, exactly */
    o = (gdn_sampler_options){.temperature = 1, .top_p = 0.5, .repetition_penalty = 1};
    assert_int_equal(picked(2, (float[]){7, 7}, o), 0x1);
    /* two that weigh 2^40 and one that weighs 1 (e^-27.7 is 1.026 * 2^-40): the first is half a unit short of half */
    assert_int_equal(picked(3, (float[]){27.7f, 27.7f, 0}, o), 0x3);
    /* min_p: e^-1 = .3679, e^-2 = .1353, e^-3 = .0498 */
    static const struct {
        double   p;
        uint64_t set;
    } of_min[] = {{1, 0x0a}, {0.368, 0x0a}, {0.367, 0x2e}, {0.136, 0x2e}, {0.135, 0x2f}, {0.05, 0x2f}, {0.049, 0x3f}};
    o.top_p = 1;
    for (int i = 0; i < COUNT(of_min); i++) {
        o.min_p = of_min[i].p;
        assert_int_equal(picked(6, x, o), of_min[i].set);
    }
    /* temperature comes before: with 2, e^-1 is the weight of token 0 */
    o.temperature = 2;
    o.min_p = 0.367;
    assert_int_equal(picked(6, x, o), 0x2f);
    /* top_p before min_p: .3424 of the weight is one token, though min_p would let two stay, whose half it is */
    o = (gdn_sampler_options){.temperature = 1, .top_p = 0.34, .min_p = 0.9, .repetition_penalty = 1};
    assert_int_equal(picked(6, x, o), 0x02);
    o.top_p = 0.45;
    assert_int_equal(picked(6, x, o), 0x0a);
}

static void test_bias(void **state)
{
    (void)state;
    const float         x[4] = {1, 2, 3, 4};
    gdn_token_bias      bias[] = {{3, -INF}, {0, 1.5}, {0, 1}};
    gdn_sampler_options o = GDN_SAMPLER_GREEDY;
    o.bias = bias;
    o.n_bias = 1;
    assert_int_equal(pick_once(4, x, o), 2);
    o.n_bias = 2;
    assert_int_equal(pick_once(4, x, o), 2); /* 2.5 < 3 */
    o.n_bias = 3;
    assert_int_equal(pick_once(4, x, o), 0); /* 3.5 */
    o.temperature = 100;
    assert_int_equal(picked(4, x, o), 0x7);
    for (int i = 0; i < 3; i++) bias[i] = (gdn_token_bias){i + 1, -INF};
    assert_int_equal(picked(4, x, o), 0x1);
    /* bias comes before penalties: (-1 + 3) / 2 = 1 is less than 1.5, -1 / 2 + 3 would not be */
    o = GDN_SAMPLER_GREEDY;
    bias[0] = (gdn_token_bias){0, 3};
    o.bias = bias;
    o.n_bias = 1;
    o.repetition_penalty = 2;
    gdn_sampler *sampler = open_sampler(2, o);
    float        y[2] = {-1, 1.5f};
    assert_int_equal(gdn_sampler_pick(sampler, y, NULL), 0);
    gdn_sampler_accept(sampler, 0, false);
    assert_int_equal(gdn_sampler_pick(sampler, y, NULL), 1);
    gdn_sampler_close(sampler);
}

/* The logit that token 0 has after penalties: between the greatest of token 1 that loses to it and the least that does not. */
static void expect_logit(gdn_sampler *sampler, float logit, float want)
{
    float x[2] = {logit, want};
    assert_int_equal(gdn_sampler_pick(sampler, x, NULL), 0); /* equal: the lowest id */
    x[1] = nextafterf(want, INFINITY);
    assert_int_equal(gdn_sampler_pick(sampler, x, NULL), 1);
}

static void test_penalties(void **state)
{
    (void)state;
    gdn_sampler_options o = GDN_SAMPLER_GREEDY;
    o.repetition_penalty = 1.25;
    o.frequency_penalty = 0.5;
    o.presence_penalty = 0.125;
    gdn_sampler *sampler = open_sampler(2, o);
    expect_logit(sampler, 5, 5);
    gdn_sampler_accept(sampler, 0, false); /* the prompt: repetition only, however often */
    expect_logit(sampler, 5, 4);
    expect_logit(sampler, -4, -5);
    gdn_sampler_accept(sampler, 0, false);
    expect_logit(sampler, 5, 4);
    gdn_sampler_accept(sampler, 0, true);
    expect_logit(sampler, 5, 3.375f);
    expect_logit(sampler, -4, -5.625f);
    gdn_sampler_accept(sampler, 0, true);
    gdn_sampler_accept(sampler, 0, true);
    expect_logit(sampler, 5, 2.375f);
    expect_logit(sampler, 0, -1.625f);
    gdn_sampler_accept(sampler, -1, true); /* no token: nothing to punish */
    gdn_sampler_accept(sampler, 2, true);
    gdn_sampler_accept(sampler, INT32_MAX, false);
    expect_logit(sampler, 5, 2.375f);
    gdn_sampler_close(sampler);
    o = GDN_SAMPLER_GREEDY;
    o.frequency_penalty = -0.5;
    sampler = open_sampler(2, o);
    gdn_sampler_accept(sampler, 0, true);
    gdn_sampler_accept(sampler, 0, true);
    expect_logit(sampler, 1, 2);
    gdn_sampler_close(sampler);
}

static void test_strange_logits(void **state)
{
    (void)state;
    gdn_sampler_options       o = GDN_SAMPLER_GREEDY;
    const gdn_sampler_options sampled[] = {
        {.temperature = 1, .top_p = 1, .repetition_penalty = 1},
        {.temperature = 1, .top_p = 0.999, .repetition_penalty = 1},
        {.temperature = 100, .top_k = 3, .top_p = 1, .repetition_penalty = 1},
        {.temperature = 1e-3, .top_k = 2, .top_p = 0.5, .min_p = 0.5, .repetition_penalty = 1}};
    const float none[] = {-INFINITY, NAN, -NAN, -INFINITY};
    const float one[] = {-INFINITY, NAN, -3e38f, NAN};
    const float infinite[] = {NAN, 5, INFINITY, 3e38f};
    assert_int_equal(pick_once(4, none, o), 0);
    assert_int_equal(pick_once(4, one, o), 2);
    assert_int_equal(pick_once(4, infinite, o), 2);
    for (int i = 0; i < COUNT(sampled); i++) {
        assert_int_equal(picked(4, none, sampled[i]), 0x1);
        assert_int_equal(picked(4, one, sampled[i]), 0x4);
        assert_int_equal(picked(4, infinite, sampled[i]), 0x4);
    }
    /* penalties and biases that leave the floats */
    const gdn_token_bias bias[] = {{0, 1e4}, {2, -INF}};
    o = (gdn_sampler_options){.temperature = 1,
                              .top_k = 1,
                              .top_p = 1,
                              .repetition_penalty = 0.01,
                              .presence_penalty = -100,
                              .n_bias = 2,
                              .bias = bias};
    gdn_sampler *sampler = open_sampler(4, o);
    for (int i = 0; i < 4; i++) gdn_sampler_accept(sampler, i, true);
    assert_int_equal(gdn_sampler_pick(sampler, (float[]){3e38f, 3e38f, INFINITY, NAN}, NULL), 0);
    assert_int_equal(gdn_sampler_pick(sampler, (float[]){-INFINITY, 1, INFINITY, NAN}, NULL), 1);
    gdn_sampler_close(sampler);
}

static void test_refusals(void **state)
{
    (void)state;
    static const gdn_token_bias outside[] = {{1, 0}, {10, 0}}, negative[] = {{-1, 0}}, no_number[] = {{0, NAN}},
                                infinite[] = {{0, INFINITY}}, large[] = {{0, -10001}};
    static const struct {
        const char         *says;
        int                 vocab_size, n_usable;
        gdn_sampler_options o;
    } cases[] = {
        {"vocabulary of 0", 0, 1, {.top_p = 1, .repetition_penalty = 1}},
        {"vocabulary of 4194305", 4194305, 1, {.top_p = 1, .repetition_penalty = 1}},
        {"0 usable", 10, 0, {.top_p = 1, .repetition_penalty = 1}},
        {"11 usable", 10, 11, {.top_p = 1, .repetition_penalty = 1}},
        {"temperature is -0.5", 10, 10, {.temperature = -0.5, .top_p = 1, .repetition_penalty = 1}},
        {"temperature is 101", 10, 10, {.temperature = 101, .top_p = 1, .repetition_penalty = 1}},
        {"temperature is nan", 10, 10, {.temperature = NAN, .top_p = 1, .repetition_penalty = 1}},
        {"top_k is -1", 10, 10, {.top_k = -1, .top_p = 1, .repetition_penalty = 1}},
        {"top_p is 1.01", 10, 10, {.top_p = 1.01, .repetition_penalty = 1}},
        {"top_p is -0.1", 10, 10, {.top_p = -0.1, .repetition_penalty = 1}},
        {"min_p is 2", 10, 10, {.top_p = 1, .min_p = 2, .repetition_penalty = 1}},
        {"repetition_penalty is 0;", 10, 10, {.top_p = 1}},
        {"presence_penalty is inf", 10, 10, {.top_p = 1, .repetition_penalty = 1, .presence_penalty = INFINITY}},
        {"frequency_penalty is -101", 10, 10, {.top_p = 1, .repetition_penalty = 1, .frequency_penalty = -101}},
        {"n_bias is -1", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = -1}},
        {"bias is NULL", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = 1}},
        {"bias 1 is for token 10", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = 2, .bias = outside}},
        {"bias 0 is for token -1", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = 1, .bias = negative}},
        {"token 0 is nan", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = 1, .bias = no_number}},
        {"token 0 is inf", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = 1, .bias = infinite}},
        {"token 0 is -10001", 10, 10, {.top_p = 1, .repetition_penalty = 1, .n_bias = 1, .bias = large}},
    };
    gdn_sampler *sampler = NULL;
    for (int i = 0; i < COUNT(cases); i++) {
        gdn_error err;
        assert_int_equal(gdn_sampler_open(&sampler, cases[i].vocab_size, cases[i].n_usable, &cases[i].o, &err),
                         GDN_BAD_ARGUMENT);
        assert_int_equal(err.code, GDN_BAD_ARGUMENT);
        if (!strstr(err.message, cases[i].says)) fail_msg("'%s' does not say '%s'", err.message, cases[i].says);
        assert_null(sampler);
    }
    assert_int_equal(gdn_sampler_open(&sampler, 10, 10, NULL, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_sampler_open(NULL, 10, 10, &cases[0].o, NULL), GDN_BAD_ARGUMENT);
    gdn_sampler_close(NULL);
}

/* ---- logprobs ---------------------------------------------------------------------------------------------------- */

static void near(double got, double want)
{
    if (!(fabs(got - want) < 1e-12)) fail_msg("%.15g, not %.15g", got, want);
}

static void test_logprobs(void **state)
{
    (void)state;
    /* e^0 + e^1 + e^1 + e^-2 = 6.571898940154703, by Python's decimal */
    const float  x[] = {0, 1, NAN, 1, -INFINITY, -2};
    gdn_logprob  top[6];
    const double all = 1.882802822721838392;
    near(gdn_logprobs(x, 6, 5, top, 6), -2 - all);
    static const int order[] = {1, 3, 0, 5, 2, 4};
    const double     want[] = {1 - all, 1 - all, -all, -2 - all};
    for (int i = 0; i < 6; i++) assert_int_equal(top[i].id, order[i]);
    for (int i = 0; i < 4; i++) near(top[i].logprob, want[i]);
    assert_true(top[4].logprob == -INF && top[5].logprob == -INF);
    assert_true(gdn_logprobs(x, 6, 2, NULL, 0) == -INF);
    near(gdn_logprobs(x, 6, 1, top, 2), 1 - all);
    assert_int_equal(top[0].id, 1);
    assert_int_equal(top[1].id, 3);
    near(gdn_logprobs((float[]){3e38f}, 1, 0, top, 1), 0);
    near(gdn_logprobs((float[]){INFINITY, 3, INFINITY}, 3, 2, top, 3), -log(2));
    assert_int_equal(top[1].id, 2);
    assert_true(gdn_logprobs((float[]){NAN, -INFINITY}, 2, 0, top, 2) == -INF);
    assert_true(top[0].id == 0 && top[1].id == 1 && top[0].logprob == -INF);
    /* pick gives that of the raw logits, whatever the options made of them */
    const gdn_token_bias bias = {5, 100};
    gdn_sampler_options  o = {.temperature = 0.5, .top_p = 0.5, .repetition_penalty = 2, .n_bias = 1, .bias = &bias};
    gdn_sampler         *sampler = open_sampler(6, o);
    float                y[6];
    double               logprob;
    memcpy(y, x, sizeof y);
    gdn_sampler_accept(sampler, 5, true);
    assert_int_equal(gdn_sampler_pick(sampler, y, &logprob), 5);
    near(logprob, -2 - all);
    gdn_sampler_close(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),  cmocka_unit_test(test_bounds),         cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_unusable),  cmocka_unit_test(test_filters),        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_penalties), cmocka_unit_test(test_strange_logits), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_logprobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
