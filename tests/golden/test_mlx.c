/* The recorded outputs of mlx-lm's Metal kernels (see README.md here), through the public API: every value equal, at every
 * CPU level, with one and with two threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdn/delta.h"
#include "kernel/kernel.h"
#include "support/json.h"
#include "support/typed.h"
#include <stdio.h>
#include <stdlib.h>

enum { DELTA_VALUES = 24576, CONV_VALUES = 40 };

static const char *folder = "tests/golden";

/* ---- recordings --------------------------------------------------------------------------------------------------- */

static char *load(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = json_load(path);
    assert_non_null(text);
    return text;
}

/* The `count` numbers at `name`, which must be exactly values of `type`. */
static void *typed_numbers(const char *text, const char *name, gdn_type type, size_t count)
{
    size_t  n;
    double *numbers = json_numbers(text, name, &n);
    void   *typed = malloc(count * typed_bytes(type));
    assert_non_null(numbers);
    assert_non_null(typed);
    assert_int_equal(n, count);
    for (size_t i = 0; i < n; i++) {
        typed_set(type, typed, i, numbers[i]);
        if ((double)typed_get(type, typed, i) != numbers[i])
            fail_msg("%s[%zu] = %.17g is not a value of its type", name, i, numbers[i]);
    }
    free(numbers);
    return typed;
}

static int integer(const char *text, const char *name)
{
    size_t  n;
    double *number = json_numbers(text, name, &n);
    assert_non_null(number);
    assert_int_equal(n, 1);
    const int value = (int)number[0];
    free(number);
    return value;
}

/* ---- every level and thread count ----------------------------------------------------------------------------------- */

typedef void body(gdn_compute *compute);

/* Runs it with every level of this CPU; "ref" must be one of them, and the best one too. */
static void at_every_level(body *run)
{
    int n_run = 0;
    int more = 1;
    for (int i = 0; more; i++)
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
            const gdn_level *level = gdn_kernels_level(i);
            const char      *name = level ? level->name : NULL;
            gdn_compute     *compute = NULL;
            gdn_error        err;
            const gdn_status status = gdn_compute_open(&compute, name, n_threads, &err);
            more = level != NULL;
            if (status == GDN_UNSUPPORTED && i != 0 && level) continue;
            if (status != GDN_OK) fail_msg("%s: %s", level ? name : "best", err.message);
            assert_int_equal(gdn_compute_threads(compute), n_threads);
            run(compute);
            gdn_compute_close(compute);
            n_run++;
        }
    assert_true(n_run >= 4);
}

static void equal_bits(const gdn_compute *compute, const char *what, const uint16_t *got, const uint16_t *want,
                       size_t n)
{
    size_t n_different = 0, first = 0;
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i] && n_different++ == 0) first = i;
    if (n_different)
        fail_msg("%s, %d threads: %s: %zu of %zu values differ, first [%zu]: %a, recorded %a",
                 gdn_compute_level(compute), gdn_compute_threads(compute), what, n_different, n, first,
                 (double)typed_get(GDN_BF16, got, first), (double)typed_get(GDN_BF16, want, first));
}

/* ---- the gated delta rule ------------------------------------------------------------------------------------------- */

typedef struct part {
    int       n_tokens;
    void     *q, *k, *v, *a, *b;
    uint16_t *y;
} part;

static struct {
    int    n_key_heads, n_value_heads, key_dim, value_dim;
    float *A_log, *dt_bias;
    part   prefill, decode;
} recording;

static part load_part(const char *text, const char *name)
{
    part   p = {0};
    char   key[32];
    size_t keys, values, heads;
    snprintf(key, sizeof key, "%s.T", name);
    p.n_tokens = integer(text, key);
    keys = (size_t)p.n_tokens * recording.n_key_heads * recording.key_dim;
    values = (size_t)p.n_tokens * recording.n_value_heads * recording.value_dim;
    heads = (size_t)p.n_tokens * recording.n_value_heads;
    const struct {
        const char *name;
        size_t      n;
        void      **to;
    } arrays[] = {{"q", keys, &p.q}, {"k", keys, &p.k}, {"v", values, &p.v}, {"a", heads, &p.a}, {"b", heads, &p.b}};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        snprintf(key, sizeof key, "%s.%s", name, arrays[i].name);
        *arrays[i].to = typed_numbers(text, key, GDN_BF16, arrays[i].n);
    }
    snprintf(key, sizeof key, "%s.y", name);
    p.y = typed_numbers(text, key, GDN_BF16, values);
    return p;
}

static int load_recording(void **unused)
{
    char *text = load("mlx-delta.json");
    (void)unused;
    assert_int_equal(integer(text, "B"), 1);
    recording.n_key_heads = integer(text, "HK");
    recording.n_value_heads = integer(text, "HV");
    recording.key_dim = integer(text, "DK");
    recording.value_dim = integer(text, "DV");
    recording.A_log = typed_numbers(text, "A_log", GDN_F32, recording.n_value_heads);
    recording.dt_bias = typed_numbers(text, "dt_bias", GDN_F32, recording.n_value_heads);
    recording.prefill = load_part(text, "prefill");
    recording.decode = load_part(text, "decode");
    free(text);
    return 0;
}

static void free_part(part *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->a);
    free(p->b);
    free(p->y);
}

static int free_recording(void **unused)
{
    (void)unused;
    free(recording.A_log);
    free(recording.dt_bias);
    free_part(&recording.prefill);
    free_part(&recording.decode);
    return 0;
}

/* Tokens `first` to `first` + `n` of a part, from `state` to `state`. */
static size_t run_part(gdn_compute *compute, const part *p, int first, int n, float *state, int has_state,
                       int lane_order)
{
    const size_t Hk = recording.n_key_heads, Hv = recording.n_value_heads, Dk = recording.key_dim,
                 Dv = recording.value_dim;
    const size_t   count = n * Hv * Dv;
    uint16_t      *y = malloc(count * sizeof *y);
    gdn_error      err;
    gdn_delta_args args = {
        .batch = {.n_lanes = 1, .n_tokens = &n},
        .n_key_heads = recording.n_key_heads,
        .n_value_heads = recording.n_value_heads,
        .key_dim = recording.key_dim,
        .value_dim = recording.value_dim,
        .qk_type = GDN_BF16,
        .v_type = GDN_BF16,
        .y_type = GDN_BF16,
        .ab_type = GDN_BF16,
        .recipe = GDN_RECIPE_MLX,
        .q = (uint16_t *)p->q + first * Hk * Dk,
        .k = (uint16_t *)p->k + first * Hk * Dk,
        .v = (uint16_t *)p->v + first * Hv * Dv,
        .a = (uint16_t *)p->a + first * Hv,
        .b = (uint16_t *)p->b + first * Hv,
        .A_log = recording.A_log,
        .dt_bias = recording.dt_bias,
        .lane_order = lane_order,
        .state_in = {.base = has_state ? state : NULL, .stride = Hv * Dv * Dk * sizeof *state},
        .state_out = {.base = state, .stride = Hv * Dv * Dk * sizeof *state},
        .y = y,
    };
    assert_non_null(y);
    if (gdn_delta_rule(compute, &args, &err) != GDN_OK) fail_msg("%s", err.message);
    equal_bits(compute, "y", y, p->y + first * Hv * Dv, count);
    free(y);
    return count;
}

static float *new_state(void)
{
    float *state = malloc((size_t)recording.n_value_heads * recording.value_dim * recording.key_dim * sizeof *state);
    assert_non_null(state);
    return state;
}

static void prefill_then_decode(gdn_compute *compute)
{
    for (int lane_order = 0; lane_order < 2; lane_order++) {
        float       *state = new_state();
        const part  *p = &recording.prefill, *d = &recording.decode;
        const size_t n = run_part(compute, p, 0, p->n_tokens, state, 0, lane_order) +
                         run_part(compute, d, 0, d->n_tokens, state, 1, lane_order);
        assert_int_equal(n, DELTA_VALUES);
        free(state);
    }
}

static void one_token_at_a_time(gdn_compute *compute)
{
    float *state = new_state();
    size_t n = 0;
    for (int t = 0; t < recording.prefill.n_tokens; t++)
        n += run_part(compute, &recording.prefill, t, 1, state, t > 0, 1);
    for (int t = 0; t < recording.decode.n_tokens; t++) n += run_part(compute, &recording.decode, t, 1, state, 1, 1);
    assert_int_equal(n, DELTA_VALUES);
    free(state);
}

static void delta_prefill_then_decode(void **unused)
{
    (void)unused;
    at_every_level(prefill_then_decode);
}

static void delta_one_token_at_a_time(void **unused)
{
    (void)unused;
    at_every_level(one_token_at_a_time);
}

/* ---- the convolution ------------------------------------------------------------------------------------------------ */

static void conv(gdn_compute *compute)
{
    char     *text = load("mlx-conv1d.json");
    const int K = integer(text, "K"), C = integer(text, "C"), S = integer(text, "S"), history = K - 1;
    uint16_t *x = typed_numbers(text, "x", GDN_BF16, (size_t)(history + S) * C);
    uint16_t *stored = typed_numbers(text, "w", GDN_BF16, (size_t)C * K),
             *out = typed_numbers(text, "out", GDN_BF16, (size_t)S * C);
    float    *w = malloc((size_t)K * C * sizeof *w);
    uint16_t *y = malloc((size_t)(history + S) * C * sizeof *y), *tail = malloc((size_t)history * C * sizeof *tail);
    gdn_error err;
    free(text);
    assert_true(w && y && tail);
    gdn_conv_pack(w, stored, GDN_BF16, C, K);
    assert_int_equal(S * C, CONV_VALUES);

    /* The history as a tail, and as tokens of their own from no state: both give the recorded rows. */
    const size_t  bytes = (size_t)history * C * sizeof *tail;
    gdn_conv_args args = {
        .batch = {.n_lanes = 1, .n_tokens = &S},
        .n_channels = C,
        .n_taps = K,
        .type = GDN_BF16,
        .recipe = GDN_RECIPE_MLX,
        .x = x + history * C,
        .w = w,
        .tail_in = {.base = x, .stride = bytes},
        .tail_out = {.base = tail, .stride = bytes},
        .y = y,
    };
    if (gdn_conv_silu(compute, &args, &err) != GDN_OK) fail_msg("%s", err.message);
    equal_bits(compute, "y", y, out, CONV_VALUES);
    assert_memory_equal(tail, x + S * C, bytes);

    const int all = history + S;
    args.batch.n_tokens = &all;
    args.x = x;
    args.tail_in.base = NULL;
    if (gdn_conv_silu(compute, &args, &err) != GDN_OK) fail_msg("%s", err.message);
    equal_bits(compute, "y after its history", y + history * C, out, CONV_VALUES);
    assert_memory_equal(tail, x + S * C, bytes);
    free(x);
    free(stored);
    free(out);
    free(w);
    free(y);
    free(tail);
}

static void conv1d(void **unused)
{
    (void)unused;
    at_every_level(conv);
}

/* The folder of the recordings may be given; otherwise it is that of the repository, as seen from its root. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_prefill_then_decode),
        cmocka_unit_test(delta_one_token_at_a_time),
        cmocka_unit_test(conv1d),
    };
    if (argc > 1) folder = argv[1];
    return cmocka_run_group_tests_name("mlx", tests, load_recording, free_recording);
}
