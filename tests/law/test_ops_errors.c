/* Calls outside the contract of an operation: each is refused with its code and a sentence, and nothing is written.
 * Each starts from arguments that are accepted and changes one thing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdn/delta.h"
#include <math.h>
#include <string.h>

enum { LANES = 2, TOKENS = 3, HEADS = 2, DIM = 32, ROWS = LANES * TOKENS, CHANNELS = 3 * HEADS * DIM };

/* Inputs are zeros, whatever type; outputs start as a pattern and are compared with it. */
static float         zeros[ROWS * CHANNELS], taps[8 * CHANNELS];
static unsigned char out[1 << 18], pattern[sizeof out];
static gdn_compute  *compute;
static const int     counts[LANES] = {TOKENS, TOKENS};

static int open_all(void **unused)
{
    (void)unused;
    memset(pattern, 0xa5, sizeof pattern);
    return gdn_compute_open(&compute, NULL, 2, NULL) != GDN_OK;
}

static int close_all(void **unused)
{
    (void)unused;
    gdn_compute_close(compute);
    return 0;
}

/* A status and its error that speak of a refusal, and untouched outputs. */
static void assert_refused(gdn_status got, gdn_status wanted, const gdn_error *err, const char *what)
{
    if (got != wanted) fail_msg("%s: %s, not %s", what, gdn_status_name(got), gdn_status_name(wanted));
    if (err && err->code != wanted) fail_msg("%s: the error says %s", what, gdn_status_name(err->code));
    if (err && (!memchr(err->message, 0, sizeof err->message) || strlen(err->message) < 10))
        fail_msg("%s: no message", what);
    if (memcmp(out, pattern, sizeof out) != 0) fail_msg("%s: something was written", what);
}

/* CASE(function, args, change): `change` may speak of `a`, a copy of *args. */
#define CASE(type, function, good, change)                                                           \
    do {                                                                                             \
        type      a = (good);                                                                        \
        gdn_error err;                                                                               \
        change;                                                                                      \
        memcpy(out, pattern, sizeof out);                                                            \
        memset(&err, 0, sizeof err);                                                                 \
        assert_refused(function(compute, &a, &err), GDN_BAD_ARGUMENT, &err, #function ": " #change); \
        assert_refused(function(compute, &a, NULL), GDN_BAD_ARGUMENT, NULL, #function ": " #change); \
    } while (0)

/* The good arguments are accepted and write something; NULL for the compute or the arguments is refused. */
#define ENDS(type, function, good)                                                                         \
    do {                                                                                                   \
        const type a = (good);                                                                             \
        gdn_error  err = {0};                                                                              \
        memcpy(out, pattern, sizeof out);                                                                  \
        if (function(compute, &a, &err) != GDN_OK) fail_msg(#function ": %s", err.message);                \
        assert_int_equal(err.code, 0); /* written only on failure */                                       \
        assert_true(memcmp(out, pattern, sizeof out) != 0);                                                \
        memcpy(out, pattern, sizeof out);                                                                  \
        assert_refused(function(NULL, &a, &err), GDN_BAD_ARGUMENT, &err, #function ": no compute");        \
        assert_refused(function(compute, NULL, &err), GDN_BAD_ARGUMENT, &err, #function ": no arguments"); \
    } while (0)

/* What conv and delta have in common: S_IN and S_OUT are their slots. */
#define BATCH_AND_SLOTS(DO, S_IN, S_OUT)                                          \
    static const int     negative[] = {4, -1};                                    \
    static const int32_t twice[] = {1, 1}, below[] = {0, -1}, crossed[] = {1, 0}; \
    static const uint8_t mask[ROWS] = {1};                                        \
    DO(a.batch.n_lanes = 0);                                                      \
    DO(a.batch.n_lanes = -1);                                                     \
    DO(a.batch.n_tokens = negative);                                              \
    DO((a.batch.n_tokens = NULL, a.batch.length = -1));                           \
    DO(a.batch.mask = mask);                                                      \
    DO(S_OUT.base = NULL);                                                        \
    DO(S_OUT.index = twice);                                                      \
    DO(S_OUT.index = below);                                                      \
    DO(S_OUT.stride += 2);                                                        \
    DO(S_OUT.stride = 4);                                                         \
    DO(S_OUT.stride = 0);                                                         \
    DO((S_IN = S_OUT, S_IN.stride += 1));                                         \
    DO((S_IN = S_OUT, S_IN.index = crossed))

static gdn_delta_args delta_args(void)
{
    return (gdn_delta_args){
        .batch = {.n_lanes = LANES, .n_tokens = counts},
        .n_key_heads = HEADS,
        .n_value_heads = HEADS,
        .key_dim = DIM,
        .value_dim = DIM,
        .q = zeros,
        .k = zeros,
        .v = zeros,
        .g = zeros,
        .beta = zeros,
        .state_out = {.base = out, .stride = HEADS * DIM * DIM * sizeof(float)},
        .y = out + sizeof out / 2,
    };
}

#define BAD(change) CASE(gdn_delta_args, gdn_delta_rule, delta_args(), change)
static void delta_rule(void **unused)
{
    (void)unused;
    ENDS(gdn_delta_args, gdn_delta_rule, delta_args());
    BATCH_AND_SLOTS(BAD, a.state_in, a.state_out);
    BAD(a.n_key_heads = 0);
    BAD(a.n_key_heads = -2);
    BAD(a.n_value_heads = 0);
    BAD(a.n_value_heads = -2);
    BAD(a.n_value_heads = 1);
    BAD(a.n_value_heads = 3);
    static const int dims[] = {0, -32, 1, 16, 31, 33, 48, 257, 288, 512};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        BAD(a.key_dim = dims[i]);
        BAD(a.value_dim = dims[i]);
    }
    BAD(a.head_map = (gdn_head_map)2);
    BAD(a.qk_type = (gdn_type)2);
    BAD(a.v_type = (gdn_type)-1);
    BAD(a.y_type = (gdn_type)9);
    BAD(a.q = NULL);
    BAD(a.k = NULL);
    BAD(a.v = NULL);
    BAD(a.beta = NULL);
    BAD(a.g = NULL);
}
#undef BAD

static gdn_delta_args fused_args(void)
{
    gdn_delta_args a = delta_args();
    a.g = a.beta = NULL;
    a.a = a.b = zeros;
    a.A_log = a.dt_bias = zeros;
    return a;
}

#define BAD(change) CASE(gdn_delta_args, gdn_delta_rule, fused_args(), change)
static void delta_rule_with_gates(void **unused)
{
    (void)unused;
    ENDS(gdn_delta_args, gdn_delta_rule, fused_args());
    BAD(a.a = NULL);
    BAD(a.b = NULL);
    BAD(a.A_log = NULL);
    BAD(a.dt_bias = NULL);
    BAD(a.ab_type = (gdn_type)2);
    BAD(a.recipe = (gdn_recipe)2);
    BAD(a.vector_gate = 1);
}
#undef BAD

static gdn_conv_args conv_args(void)
{
    return (gdn_conv_args){
        .batch = {.n_lanes = LANES, .n_tokens = counts},
        .n_channels = CHANNELS,
        .n_taps = 4,
        .x = zeros,
        .w = taps,
        .tail_out = {.base = out, .stride = 3 * CHANNELS * sizeof(float)},
        .y = out + sizeof out / 2,
    };
}

#define BAD(change) CASE(gdn_conv_args, gdn_conv_silu, conv_args(), change)
static void conv_silu(void **unused)
{
    (void)unused;
    ENDS(gdn_conv_args, gdn_conv_silu, conv_args());
    BATCH_AND_SLOTS(BAD, a.tail_in, a.tail_out);
    BAD(a.n_channels = 0);
    BAD(a.n_channels = -1);
    BAD(a.n_taps = 1);
    BAD(a.n_taps = 9);
    BAD(a.n_taps = 0);
    BAD(a.n_taps = -4);
    BAD(a.type = (gdn_type)2);
    BAD(a.recipe = (gdn_recipe)2);
    BAD(a.x = NULL);
    BAD(a.w = NULL);
    BAD(a.y = NULL);
}
#undef BAD

#define BAD(change) CASE(gdn_qk_norm_args, gdn_qk_norm, good, change)
static void qk_norm(void **unused)
{
    const gdn_qk_norm_args good = {.n_rows = 2, .n_heads = HEADS, .dim = DIM, .eps = 1e-6f, .x = zeros, .y = out};
    (void)unused;
    ENDS(gdn_qk_norm_args, gdn_qk_norm, good);
    static const int dims[] = {0, -32, 16, 33, 288};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) BAD(a.dim = dims[i]);
    BAD(a.n_rows = -1);
    BAD(a.n_heads = 0);
    BAD(a.n_heads = -1);
    BAD(a.x_type = (gdn_type)2);
    BAD(a.y_type = (gdn_type)2);
    BAD(a.form = (gdn_qk_norm_form)3);
    BAD(a.eps = 0.0f);
    BAD(a.eps = -1e-6f);
    BAD(a.eps = NAN);
    BAD(a.x_stride = HEADS * DIM - 1);
    BAD(a.x = NULL);
    BAD(a.y = NULL);
}
#undef BAD

#define BAD(change) CASE(gdn_gates_args, gdn_gates, good, change)
static void gates(void **unused)
{
    const gdn_gates_args good = {.n_rows = 3,
                                 .n_value_heads = HEADS,
                                 .a = zeros,
                                 .b = zeros,
                                 .A_log = zeros,
                                 .dt_bias = zeros,
                                 .g = (float *)out,
                                 .beta = (float *)(out + sizeof out / 2)};
    (void)unused;
    ENDS(gdn_gates_args, gdn_gates, good);
    BAD(a.n_rows = -1);
    BAD(a.n_value_heads = 0);
    BAD(a.n_value_heads = -1);
    BAD(a.type = (gdn_type)2);
    BAD(a.recipe = (gdn_recipe)2);
    BAD(a.a = NULL);
    BAD(a.b = NULL);
    BAD(a.A_log = NULL);
    BAD(a.dt_bias = NULL);
    BAD(a.g = NULL);
    BAD(a.beta = NULL);
}
#undef BAD

#define BAD(change) CASE(gdn_gated_norm_args, gdn_gated_norm, good, change)
static void gated_norm(void **unused)
{
    const gdn_gated_norm_args good = {
        .n_rows = 3, .dim = DIM, .eps = 1e-6f, .o = zeros, .z = zeros, .w = zeros, .y = out};
    (void)unused;
    ENDS(gdn_gated_norm_args, gdn_gated_norm, good);
    static const int dims[] = {0, -32, 16, 33, 288};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) BAD(a.dim = dims[i]);
    BAD(a.n_rows = -1);
    BAD(a.type = (gdn_type)2);
    BAD(a.recipe = (gdn_recipe)2);
    BAD(a.eps = 0.0f);
    BAD(a.eps = -1.0f);
    BAD(a.eps = NAN);
    BAD(a.o = NULL);
    BAD(a.z = NULL);
    BAD(a.w = NULL);
    BAD(a.y = NULL);
}
#undef BAD

/* Opening: an unknown level, another machine's, and thread counts outside 0 to 256. */
static void compute_open(void **unused)
{
    static const struct {
        const char *level;
        int         n_threads;
        gdn_status  status;
    } bad[] = {
        {NULL, -1, GDN_BAD_ARGUMENT},
        {NULL, 257, GDN_BAD_ARGUMENT},
        {"ref", -7, GDN_BAD_ARGUMENT},
        {"sse9", 1, GDN_UNSUPPORTED},
        {"", 1, GDN_UNSUPPORTED},
        {"AVX2", 1, GDN_UNSUPPORTED},
#if defined(__x86_64__)
        {"neon", 1, GDN_UNSUPPORTED},
#else
        {"avx2", 1, GDN_UNSUPPORTED},
#endif
    };
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gdn_error    err = {0};
        gdn_compute *c = NULL;
        memcpy(out, pattern, sizeof out);
        assert_refused(gdn_compute_open(&c, bad[i].level, bad[i].n_threads, &err), bad[i].status, &err, "compute_open");
        assert_null(c);
        assert_refused(gdn_compute_open(&c, bad[i].level, bad[i].n_threads, NULL), bad[i].status, NULL, "compute_open");
        assert_null(c);
    }
    gdn_compute *c = NULL;
    assert_int_equal(gdn_compute_open(NULL, NULL, 1, NULL), GDN_BAD_ARGUMENT);
    assert_int_equal(gdn_compute_open(&c, NULL, 0, NULL), GDN_OK);
    assert_true(gdn_compute_threads(c) >= 1 && gdn_compute_threads(c) <= 256);
    assert_non_null(gdn_compute_level(c));
    gdn_compute_close(c);
    gdn_compute_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_rule),   cmocka_unit_test(delta_rule_with_gates),
        cmocka_unit_test(conv_silu),    cmocka_unit_test(qk_norm),
        cmocka_unit_test(gates),        cmocka_unit_test(gated_norm),
        cmocka_unit_test(compute_open),
    };
    return cmocka_run_group_tests_name("refused calls of operations", tests, open_all, close_all);
}
