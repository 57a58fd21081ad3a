/* recorded.c - the library on recorded input: what `make run` runs until a model can.
 *
 *     recorded [tests/golden/mlx-delta.json]
 *
 * The file holds inputs and outputs of mlx-lm's Metal kernel, recorded on an Apple GPU: three tokens of prefill and one of
 * decode, 16 key heads and 48 value heads of 128 x 128, bf16.  The program computes them at every CPU level and counts the
 * values that differ; drafts and rolls back, with the recurrence and with the whole layer, and compares every byte with runs
 * that never saw the rejected tokens; and says how fast it was.  Exit status 1 when a check fails. */
#include <errno.h>
#include <gdn/delta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HK = 16, HV = 48, DIM = 128, TAPS = 4, PREFILL = 3, TOKENS = 4, QK = HK * DIM, V = HV * DIM, C = 2 * QK + V };
enum { STATE = HV * DIM * DIM, LONG = 512 };

static gdn_error err;
static int       n_failed;

static void must(gdn_status status, const char *what)
{
    if (!status) return;
    fprintf(stderr, "recorded: %s: %s\n", what, err.message);
    exit(1);
}

static void *take(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p) fprintf(stderr, "recorded: no memory for %zu bytes\n", bytes), exit(1);
    return p;
}

static int same(const void *a, const void *b, size_t bytes) { return !memcmp(a, b, bytes); }

static void check(int ok, const char *what)
{
    printf("  %-4s %s\n", ok ? "ok" : "FAIL", what);
    n_failed += !ok;
}

/* ---- the recording: JSON of numbers, arrays of numbers and objects; every name must be known, every array complete ---- */

static float A_log[HV], dt_bias[HV];
static float q32[TOKENS * QK], k32[TOKENS * QK], v32[TOKENS * V], a32[TOKENS * HV], b32[TOKENS * HV], y32[TOKENS * V];
static float shape[5], lengths[2], y_shapes[2][4];

static struct field {
    const char *name;
    float      *to;
    size_t      n, got;
} fields[] = {
    {"B", &shape[0], 1, 0},
    {"HK", &shape[1], 1, 0},
    {"HV", &shape[2], 1, 0},
    {"DK", &shape[3], 1, 0},
    {"DV", &shape[4], 1, 0},
    {"A_log", A_log, HV, 0},
    {"dt_bias", dt_bias, HV, 0},
    {"prefill.T", &lengths[0], 1, 0},
    {"prefill.q", q32, PREFILL *QK, 0},
    {"prefill.k", k32, PREFILL *QK, 0},
    {"prefill.v", v32, PREFILL *V, 0},
    {"prefill.a", a32, PREFILL *HV, 0},
    {"prefill.b", b32, PREFILL *HV, 0},
    {"prefill.y", y32, PREFILL *V, 0},
    {"prefill.y_shape", y_shapes[0], 4, 0},
    {"decode.T", &lengths[1], 1, 0},
    {"decode.q", q32 + PREFILL *QK, QK, 0},
    {"decode.k", k32 + PREFILL *QK, QK, 0},
    {"decode.v", v32 + PREFILL *V, V, 0},
    {"decode.a", a32 + PREFILL *HV, HV, 0},
    {"decode.b", b32 + PREFILL *HV, HV, 0},
    {"decode.y", y32 + PREFILL *V, V, 0},
    {"decode.y_shape", y_shapes[1], 4, 0},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

static const char *text, *at;

static void bad(const char *why)
{
    fprintf(stderr, "recorded: the recording is not as expected at byte %td: %s\n", at - text, why);
    exit(1);
}

static char next_char(void) /* the next that is not white space */
{
    at += strspn(at, " \t\r\n");
    return *at;
}

static void expect(char c)
{
    char why[] = "expected ' '";
    why[10] = c;
    if (next_char() != c) bad(why);
    at++;
}

static void read_number(struct field *field)
{
    char *end;
    if (next_char() != '-' && (*at < '0' || *at > '9')) bad("expected a number");
    if (strspn(at, "-+.0123456789eE") != strcspn(at, ",]} \t\r\n")) bad("malformed number");
    float x = strtof(at, &end);
    if (end != at + strcspn(at, ",]} \t\r\n")) bad("malformed number");
    if (field->got == field->n) bad("more numbers than expected");
    field->to[field->got++] = x;
    at = end;
}

static void read_object(const char *prefix)
{
    expect('{');
    for (;;) {
        char   name[32];
        size_t n = 0;
        expect('"');
        while (at[n] && at[n] != '"') n++;
        int length = snprintf(name, sizeof name, "%s%.*s", prefix, (int)(n < 16 ? n : 16), at);
        at += n;
        expect('"');
        expect(':');
        if (next_char() == '{') {
            if (*prefix) bad("an object too deep");
            name[length] = '.', name[length + 1] = 0;
            read_object(name);
        } else {
            struct field *field = fields;
            while (field < fields + N_FIELDS && strcmp(field->name, name)) field++;
            if (field == fields + N_FIELDS) bad("an unknown name");
            if (field->got) bad("a name that was already there");
            if (*at == '[') {
                do {
                    at++;
                    read_number(field);
                } while (next_char() == ',');
                expect(']');
            } else {
                read_number(field);
            }
        }
        if (next_char() != ',') break;
        at++;
    }
    expect('}');
}

static uint16_t *q, *k, *v, *a, *b, *y; /* all four tokens as bf16 */

static uint16_t *bf16(const float *x, size_t n)
{
    uint16_t *p = take(n * sizeof *p);
    gdn_bf16_from_f32(p, x, n);
    return p;
}

static void read_recording(const char *path)
{
    static const float want[5] = {1, HK, HV, DIM, DIM};
    FILE              *f = fopen(path, "rb");
    enum { MOST_BYTES = 8 << 20 };
    if (!f) {
        fprintf(stderr, "recorded: %s: %s; give the path of mlx-delta.json as the argument\n", path, strerror(errno));
        exit(1);
    }
    char  *bytes = take(MOST_BYTES + 1);
    size_t n = fread(bytes, 1, MOST_BYTES, f);
    fclose(f);
    bytes[n] = 0;
    text = at = bytes;
    read_object("");
    if (next_char() || at != text + n) bad("expected the end of the file");
    for (int i = 0; i < N_FIELDS; i++) {
        if (fields[i].got != fields[i].n) bad("an array with too few numbers");
    }
    if (!same(shape, want, sizeof want) || lengths[0] != PREFILL || lengths[1] != TOKENS - PREFILL)
        bad("another shape");
    free(bytes);
    q = bf16(q32, TOKENS * QK), k = bf16(k32, TOKENS * QK), v = bf16(v32, TOKENS * V);
    a = bf16(a32, TOKENS * HV), b = bf16(b32, TOKENS * HV), y = bf16(y32, TOKENS * V);
}

/* ---- the recurrence on the recorded tokens ---- */

/* Tokens first..first+n of the recording from `in` (NULL: zeros) to `out`; y may be NULL. */
static void recur(gdn_compute *compute, const float *in, float *out, int first, int n, uint16_t *result)
{
    gdn_delta_args args = {
        .batch = {.n_lanes = 1, .length = n},
        .n_key_heads = HK,
        .n_value_heads = HV,
        .key_dim = DIM,
        .value_dim = DIM,
        .qk_type = GDN_BF16,
        .v_type = GDN_BF16,
        .y_type = GDN_BF16,
        .ab_type = GDN_BF16,
        .recipe = GDN_RECIPE_MLX,
        .q = q + first * QK,
        .k = k + first * QK,
        .v = v + first * V,
        .a = a + first * HV,
        .b = b + first * HV,
        .A_log = A_log,
        .dt_bias = dt_bias,
        .state_in = {.base = (void *)in, .stride = STATE * sizeof(float)},
        .state_out = {.base = out, .stride = STATE * sizeof(float)},
        .y = result,
    };
    must(gdn_delta_rule(compute, &args, &err), "gdn_delta_rule");
}

static int count_different(const uint16_t *got, const uint16_t *want, int n)
{
    int different = 0;
    for (int i = 0; i < n; i++) different += got[i] != want[i];
    return different;
}

static void compare_with_recording(const char *level)
{
    gdn_compute *compute;
    gdn_status   status = gdn_compute_open(&compute, level, 1, &err);
    char         line[96];
    if (status == GDN_UNSUPPORTED) return;
    must(status, "gdn_compute_open");
    float    *state = take(STATE * sizeof *state);
    uint16_t *got = take(TOKENS * V * sizeof *got);
    recur(compute, NULL, state, 0, PREFILL, got);
    recur(compute, state, state, PREFILL, TOKENS - PREFILL, got + PREFILL * V);
    int prefill = count_different(got, y, PREFILL * V);
    int decode = count_different(got + PREFILL * V, y + PREFILL * V, (TOKENS - PREFILL) * V);
    snprintf(line, sizeof line, "%-6s  prefill: %d of %d values differ   decode: %d of %d", level, prefill, PREFILL * V,
             decode, (TOKENS - PREFILL) * V);
    check(!prefill && !decode, line);
    free(got), free(state);
    gdn_compute_close(compute);
}

/* A draft of all four tokens into a shadow state; then, for every keep, a replay from the old one. */
static void draft_recurrence(gdn_compute *compute)
{
    float    *steps = take((size_t)TOKENS * STATE * sizeof *steps), *shadow = take(STATE * sizeof *shadow);
    uint16_t *got = take(TOKENS * V * sizeof *got);
    for (int t = 0; t < TOKENS; t++) {
        recur(compute, t ? steps + (t - 1) * STATE : NULL, steps + t * STATE, t, 1, NULL);
    }
    recur(compute, NULL, shadow, 0, TOKENS, got);
    int equal = !count_different(got, y, TOKENS * V);
    for (int keep = TOKENS; keep > 0; keep--) {
        recur(compute, NULL, shadow, 0, keep, NULL);
        equal &= same(shadow, steps + (keep - 1) * STATE, STATE * sizeof *shadow);
    }
    check(equal, "recurrence: the four tokens verified at once, then replayed to keep 4, 3, 2, 1");
    free(got), free(shadow), free(steps);
}

/* ---- the layer, its cache and its rounds, with the recorded q|k|v as rows before the convolution ---- */

static gdn_delta_weights weights;
static gdn_pool         *pool;
static uint16_t         *qkv, *rows_y; /* [LONG][C]: the recording over and over; [LONG][V] */
static uint16_t         *z, *rows_a, *rows_b;

static void open_layer(void)
{
    static float           conv[TAPS * C], norm[DIM];
    const gdn_delta_config config = {
        HK, HV, DIM, DIM, TAPS, GDN_HEADS_GROUPED, GDN_BF16, GDN_RECIPE_MLX, GDN_QK_NORM_RMS, 1e-6f,
    };
    for (int i = 0; i < TAPS * C; i++) conv[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < DIM; i++) norm[i] = 1;
    weights = (gdn_delta_weights){conv, A_log, dt_bias, norm, 1e-6f};
    qkv = take((size_t)LONG * C * sizeof *qkv), rows_y = take((size_t)LONG * V * sizeof *rows_y);
    z = take((size_t)LONG * V * sizeof *z);
    rows_a = take((size_t)LONG * HV * sizeof *a), rows_b = take((size_t)LONG * HV * sizeof *b);
    for (int t = 0, from = 0; t < LONG; t++, from = t % TOKENS) {
        memcpy(qkv + (size_t)t * C, q + from * QK, QK * sizeof *q);
        memcpy(qkv + (size_t)t * C + QK, k + from * QK, QK * sizeof *k);
        memcpy(qkv + (size_t)t * C + 2 * QK, v + from * V, V * sizeof *v);
        memcpy(z + (size_t)t * V, v + from * V, V * sizeof *v);
        memcpy(rows_a + t * HV, a + from * HV, HV * sizeof *a);
        memcpy(rows_b + t * HV, b + from * HV, HV * sizeof *b);
    }
    must(gdn_pool_open(&pool, &config, 1, 4, &err), "gdn_pool_open");
}

static void forward(gdn_compute *compute, gdn_cache *cache, int first, int n, uint16_t *result)
{
    gdn_layer_args args = {
        .batch = {.n_lanes = 1, .length = n},
        .qkv = qkv + (size_t)first * C,
        .z = z + (size_t)first * V,
        .a = rows_a + first * HV,
        .b = rows_b + first * HV,
        .y = result,
    };
    must(gdn_delta_layer(compute, cache, 0, &weights, &args, &err), "gdn_delta_layer");
    must(gdn_cache_advance(cache, n, NULL, &err), "gdn_cache_advance");
}

static gdn_cache *prefilled(gdn_compute *compute)
{
    gdn_cache *cache;
    must(gdn_cache_open(&cache, pool, 1, TOKENS, &err), "gdn_cache_open");
    must(gdn_cache_add(cache, 1, 0, &err), "gdn_cache_add");
    forward(compute, cache, 0, PREFILL, rows_y);
    return cache;
}

static int same_lane(const gdn_cache *one, const gdn_cache *other)
{
    const float *states[2];
    const void  *tails[2];
    gdn_cache_peek(one, 0, 0, &states[0], &tails[0]);
    gdn_cache_peek(other, 0, 0, &states[1], &tails[1]);
    return states[0] && states[1] && same(states[0], states[1], STATE * sizeof(float)) &&
           same(tails[0], tails[1], (TAPS - 1) * C * sizeof *qkv) &&
           gdn_cache_lane_offset(one, 0) == gdn_cache_lane_offset(other, 0);
}

static void draft_layer(gdn_compute *compute)
{
    static uint16_t after[2][V];
    for (int keep = 0; keep <= TOKENS; keep++) {
        char       line[96];
        gdn_cache *drafted = prefilled(compute), *clean = prefilled(compute);
        must(gdn_round_begin(drafted, &err), "gdn_round_begin");
        forward(compute, drafted, PREFILL, TOKENS, rows_y);
        must(gdn_round_rollback(compute, drafted, &keep, 1, &err), "gdn_round_rollback");
        if (keep) forward(compute, clean, PREFILL, keep, rows_y);
        int equal = same_lane(drafted, clean);
        forward(compute, drafted, PREFILL + TOKENS, 1, after[0]);
        forward(compute, clean, PREFILL + TOKENS, 1, after[1]);
        equal &= same_lane(drafted, clean) && same(after[0], after[1], sizeof after[0]);
        snprintf(line, sizeof line, "layer: drafted %d, kept %d: state, tail, offset and the next token's output",
                 TOKENS, keep);
        check(equal, line);
        gdn_cache_close(drafted), gdn_cache_close(clean);
    }
}

/* ---- speed ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several runs of n tokens in pieces of `piece`, in seconds a token. */
static double time_layer(gdn_compute *compute, int n, int piece)
{
    double     best = 1e9;
    gdn_cache *cache = prefilled(compute);
    for (int i = 0; i < 7; i++) {
        double start = now();
        for (int t = 0; t + piece <= n; t += piece) forward(compute, cache, t, piece, rows_y);
        double seconds = (now() - start) / n;
        best = seconds < best ? seconds : best;
    }
    gdn_cache_close(cache);
    return best;
}

int main(int argc, char **argv)
{
    static const char *const levels[] = {"ref", "avx2", "avx512", "neon"};
    gdn_compute             *compute;
    if (argc > 2) return fprintf(stderr, "recorded: takes one argument at most, the path of mlx-delta.json\n"), 2;
    read_recording(argc == 2 ? argv[1] : "tests/golden/mlx-delta.json");

    printf("recorded outputs of mlx-lm's Metal kernel, %d value heads of %d x %d\n", HV, DIM, DIM);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) compare_with_recording(levels[i]);

    must(gdn_compute_open(&compute, NULL, 0, &err), "gdn_compute_open");
    open_layer();
    printf("drafts and rollbacks, byte for byte against runs that never saw the rejected tokens (%s, %d threads)\n",
           gdn_compute_level(compute), gdn_compute_threads(compute));
    draft_recurrence(compute);
    draft_layer(compute);

    double prefill = time_layer(compute, LONG, LONG), decode = time_layer(compute, 64, 1);
    printf("speed of one layer between its projections (%s, %d threads)\n", gdn_compute_level(compute),
           gdn_compute_threads(compute));
    printf("  prefill of %d tokens  %7.0f ns a token and head  %8.0f tokens/s\n", LONG, prefill * 1e9 / HV,
           1 / prefill);
    printf("  decode               %8.0f ns a token and head  %8.0f tokens/s\n", decode * 1e9 / HV, 1 / decode);
    printf(n_failed ? "%d checks FAILED\n" : "all checks passed\n", n_failed);

    gdn_pool_close(pool);
    gdn_compute_close(compute);
    free(qkv), free(rows_y), free(z), free(rows_a), free(rows_b);
    free(q), free(k), free(v), free(a), free(b), free(y);
    if (fflush(stdout) || ferror(stdout)) return 1;
    return n_failed > 0;
}
