/* The oracle against numbers that were computed elsewhere (by another program, in double), and the recorded-data reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oracle/oracle.h"
#include "support/json.h"
#include "support/typed.h"
#include <stdlib.h>

/* d = 4, one head, two tokens, q and k as they leave the convolution; 9 decimals were written down. */
static void toy_vector(void **unused)
{
    static const double q[2][4] = {{1, 2, 3, 4}, {0.5, -1, 0.25, 2}}, k[2][4] = {{1, 0, -1, 2}, {2, 1, 0, -1}};
    static const double v[2][4] = {{0.5, -1, 2, 0}, {1, 1, -0.5, 3}}, a[2] = {0.3, -0.6}, b[2] = {-0.2, 1.1};
    static const double log_decay[2] = {-0.811916998, -0.370330615}, beta[2] = {0.450166003, 0.750260106};
    static const double o[2][4] = {{0.050330084, -0.100660168, 0.201320337, 0},
                                   {-0.074389890, -0.249885060, 0.300437701, -0.398664840}};
    static const double final[4][4] = {{0.676035179, 0.485683922, -0.052490704, 1.837754280}, /* [key][value] */
                                       {0.306292380, 0.306292380, -0.153146190, 0.918877140},
                                       {-0.063450419, 0.126900838, -0.253801676, 0},
                                       {-0.179391542, -0.560094056, 0.660749541, -0.918877140}};
    double              state[16] = {0};
    (void)unused;
    for (int t = 0; t < 2; t++) {
        double       qn[4], kn[4], y[4];
        const double g = oracle_decay(a[t], 0.7, -1.0), gate = oracle_beta(b[t]);
        oracle_norm(ORACLE_SUM, 4, 1e-6, q[t], qn);
        oracle_norm(ORACLE_SUM, 4, 1e-6, k[t], kn);
        for (int i = 0; i < 4; i++) qn[i] *= oracle_qk_scale(ORACLE_SUM, 4, 1);
        const oracle_delta rule = {.n_tokens = 1,
                                   .n_key_heads = 1,
                                   .n_value_heads = 1,
                                   .key_dim = 4,
                                   .value_dim = 4,
                                   .q = qn,
                                   .k = kn,
                                   .v = v[t],
                                   .g = &g,
                                   .beta = &gate};
        oracle_delta_rule(&rule, state, y);
        assert_true(fabs(log(g) - log_decay[t]) < 1e-9);
        assert_true(fabs(gate - beta[t]) < 1e-9);
        for (int i = 0; i < 4; i++) assert_true(fabs(y[i] - o[t][i]) < 1e-9);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) assert_true(fabs(state[j * 4 + i] - final[i][j]) < 1e-9);
}

/* The same two tokens through the whole layer: a convolution whose only tap is the current token, fed with SiLU's inverse,
 * gives q, k and v; a norm weight of 1 leaves o / rms(o) * silu(z). */
static double silu_inverse(double y)
{
    double lo = -1.27, hi = 50.0; /* silu rises from -0.2784 on */
    for (int i = 0; i < 200; i++) {
        const double mid = 0.5 * (lo + hi);
        if (mid * oracle_sigmoid(mid) < y) lo = mid;
        else hi = mid;
    }
    return lo;
}

static void toy_vector_through_the_layer(void **unused)
{
    /* All divided by 4, for SiLU reaches no lower than -0.278: with eps / 16 q and k normalise alike, o is linear in v and
     * the norm takes the factor out. */
    static const double x[2][12] = {{1, 2, 3, 4, 1, 0, -1, 2, 0.5, -1, 2, 0},
                                    {0.5, -1, 0.25, 2, 2, 1, 0, -1, 1, 1, -0.5, 3}};
    static const double a[2] = {0.3, -0.6}, b[2] = {-0.2, 1.1}, A_log = 0.7, dt_bias = -1.0, norm[4] = {1, 1, 1, 1};
    static const double o1[4] = {-0.074389890, -0.249885060, 0.300437701, -0.398664840};
    double qkv[2][12], conv[4][12] = {{0}}, z[2][4], y[2][4], tail[3][12] = {{0}}, state[16] = {0}, ms = 0.0;
    (void)unused;
    for (int c = 0; c < 12; c++) conv[3][c] = 1.0;
    for (int t = 0; t < 2; t++)
        for (int c = 0; c < 12; c++) qkv[t][c] = silu_inverse(x[t][c] / 4.0);
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 4; i++) z[t][i] = 2.0;
    const oracle_layer layer = {.n_key_heads = 1,
                                .n_value_heads = 1,
                                .key_dim = 4,
                                .value_dim = 4,
                                .n_taps = 4,
                                .form = ORACLE_SUM,
                                .qk_eps = 1e-6 / 16.0,
                                .norm_eps = 1e-30,
                                .conv = &conv[0][0],
                                .A_log = &A_log,
                                .dt_bias = &dt_bias,
                                .norm = norm};
    oracle_layer_run(&layer, 2, &qkv[0][0], &z[0][0], a, b, &tail[0][0], state, &y[0][0]);
    for (int i = 0; i < 4; i++) ms += o1[i] * o1[i] / 4.0;
    for (int i = 0; i < 4; i++) assert_true(fabs(y[1][i] - o1[i] / sqrt(ms) * 2.0 * oracle_sigmoid(2.0)) < 1e-7);
    for (int c = 0; c < 12; c++) {
        assert_true(tail[0][c] == 0.0);
        assert_true(tail[1][c] == qkv[0][c]);
        assert_true(tail[2][c] == qkv[1][c]);
    }
}

/* Forms and scales by hand: x = (3, 4), sum of squares 25. */
static void norm_forms(void **unused)
{
    static const double x[2] = {3, 4};
    double              y[2];
    (void)unused;
    oracle_norm(ORACLE_SUM, 2, 11.0, x, y);
    assert_true(y[0] == 0.5 && fabs(y[1] - 4.0 / 6.0) < 1e-15);
    oracle_norm(ORACLE_RMS, 2, 3.5, x, y);
    assert_true(y[0] == 0.75 && y[1] == 1.0);
    oracle_norm(ORACLE_MAX, 2, 1.0, x, y);
    assert_true(fabs(y[0] - 0.6) < 1e-15 && fabs(y[1] - 0.8) < 1e-15);
    oracle_norm(ORACLE_MAX, 2, 10.0, x, y);
    assert_true(fabs(y[0] - 0.3) < 1e-15 && fabs(y[1] - 0.4) < 1e-15);
    assert_true(oracle_qk_scale(ORACLE_SUM, 64, 1) == 0.125 && oracle_qk_scale(ORACLE_SUM, 64, 0) == 1.0);
    assert_true(oracle_qk_scale(ORACLE_MAX, 64, 1) == 0.125 && oracle_qk_scale(ORACLE_MAX, 64, 0) == 1.0);
    assert_true(oracle_qk_scale(ORACLE_RMS, 64, 1) == 0.015625 && oracle_qk_scale(ORACLE_RMS, 64, 0) == 0.125);
}

/* One channel, two taps, by hand; head maps and the vector gate by hand. */
static void conv_and_heads(void **unused)
{
    static const double x[3] = {1, 2, 3}, w[2] = {10, 100};
    double              tail[1] = {7}, y[3], sum[3], terms[3];
    (void)unused;
    oracle_conv_silu(3, 1, 2, x, w, tail, y, sum, terms);
    assert_true(sum[0] == 170 && sum[1] == 210 && sum[2] == 320 && terms[2] == 320 && tail[0] == 3);
    assert_true(fabs(y[0] - 170) < 1e-12);

    /* beta 1 and k a unit vector write v into its column; two key heads, four value heads. */
    static const double k[4] = {1, 0, 0, 1}, v[4] = {1, 2, 3, 4}, beta[4] = {1, 1, 1, 1};
    static const double g[8] = {0.5, 0.25, 1, 1, 1, 1, 0, 0.5};
    for (int tiled = 0; tiled < 2; tiled++) {
        double             state[8] = {8, 8, 8, 8, 8, 8, 8, 8}, out[4];
        const oracle_delta rule = {.n_tokens = 1,
                                   .n_key_heads = 2,
                                   .n_value_heads = 4,
                                   .key_dim = 2,
                                   .value_dim = 1,
                                   .tiled = tiled,
                                   .vector_gate = 1,
                                   .q = k,
                                   .k = k,
                                   .v = v,
                                   .g = g,
                                   .beta = beta};
        oracle_delta_rule(&rule, state, out);
        const double grouped[8] = {1, 2, 2, 8, 8, 3, 0, 4}, by_turns[8] = {1, 2, 8, 2, 3, 8, 0, 4};
        for (int i = 0; i < 8; i++) assert_true(state[i] == (tiled ? by_turns[i] : grouped[i]));
        for (int i = 0; i < 4; i++) assert_true(out[i] == v[i]);
    }
}

static void json_reader(void **unused)
{
    static const char text[] =
        "{\"s\": \"a,}\\\"b\", \"n\": 3, \"o\": {\"x\": [1, -2.5,3e2 ], \"e\": []}, \"bad\": [1, \"2\"]}";
    size_t n;
    (void)unused;
    double *x = json_numbers(text, "o.x", &n);
    assert_non_null(x);
    assert_int_equal(n, 3);
    assert_true(x[0] == 1.0 && x[1] == -2.5 && x[2] == 300.0);
    free(x);
    x = json_numbers(text, "n", &n);
    assert_non_null(x);
    assert_int_equal(n, 1);
    assert_true(x[0] == 3.0);
    free(x);
    assert_null(json_numbers(text, "o.y", &n));
    assert_null(json_numbers(text, "o.e", &n));
    assert_null(json_numbers(text, "bad", &n));
    assert_null(json_numbers(text, "s", &n));
    assert_int_equal(n, 0);
}

/* bf16 rounding of the tests themselves: ties to even, the step into denormals, overflow. */
static void bf16_rounding(void **unused)
{
    (void)unused;
    assert_true(typed_round(GDN_BF16, 1.0 + 0x1p-8) == 1.0);
    assert_true(typed_round(GDN_BF16, 1.0 + 0x1p-8 + 0x1p-40) == 1.0 + 0x1p-7);
    assert_true(typed_round(GDN_BF16, 1.0 + 3 * 0x1p-8) == 1.0 + 0x1p-6);
    assert_true(typed_round(GDN_BF16, 0x1p-134) == 0.0);
    assert_true(typed_round(GDN_BF16, 3 * 0x1p-134) == 0x1p-132);
    assert_true(signbit(typed_round(GDN_BF16, -0x1p-140)));
    assert_true(typed_round(GDN_BF16, 0x1.ffp127) == HUGE_VAL);
    assert_true(typed_round(GDN_BF16, 0x1.fep127) == 0x1.fep127);
    uint16_t h;
    typed_set(GDN_BF16, &h, 0, -1.5);
    assert_int_equal(h, 0xbfc0);
    assert_true(typed_get(GDN_BF16, &h, 0) == -1.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(toy_vector),  cmocka_unit_test(toy_vector_through_the_layer),
                                       cmocka_unit_test(norm_forms),  cmocka_unit_test(conv_and_heads),
                                       cmocka_unit_test(json_reader), cmocka_unit_test(bf16_rounding)};
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
