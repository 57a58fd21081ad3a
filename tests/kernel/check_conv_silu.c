#include "kernel/check.h"
#include "oracle/oracle.h"
#include <stdlib.h>

enum tail_kind { TAIL_NONE, TAIL_APART, TAIL_IN_PLACE, TAIL_KINDS };

typedef struct shape {
    int            n_taps, n_channels, n_tokens, padding;
    gdn_type       type;
    gdn_recipe     recipe;
    enum tail_kind tail;
    fill           kind;
} shape;

static gdn_conv_job make_inputs(check *c, const shape *s, const void **tail)
{
    const size_t stride = (size_t)s->n_channels + s->padding;
    gdn_conv_job j = {.n_tokens = s->n_tokens,
                      .n_channels = s->n_channels,
                      .n_taps = s->n_taps,
                      .type = s->type,
                      .recipe = s->recipe,
                      .x_stride = stride,
                      .w_stride = stride + s->padding,
                      .tail_stride = stride + 2 * s->padding,
                      .y_stride = stride + s->padding};
    const fill   w_kind = s->kind == FILL_TINY ? FILL_RANDOM : s->kind; /* tiny times tiny would only be zero */
    j.x = check_input(c, s->type, check_extent(s->n_tokens, s->n_channels, j.x_stride), s->kind);
    j.w = check_input(c, GDN_F32, check_extent(s->n_taps, s->n_channels, j.w_stride), w_kind);
    *tail = check_input(c, s->type, check_extent(s->n_taps - 1, s->n_channels, j.tail_stride), s->kind);
    return j;
}

/* Gives the job outputs of its own. */
static void make_outputs(check *c, const shape *s, gdn_conv_job *j, const void *tail)
{
    const size_t size = typed_bytes(s->type),
                 tail_bytes = size * check_extent(s->n_taps - 1, s->n_channels, j->tail_stride);
    j->y = check_output(c, size * check_extent(s->n_tokens, s->n_channels, j->y_stride));
    if (s->tail == TAIL_IN_PLACE) {
        j->tail_out = check_copy(c, tail, tail_bytes);
        j->tail_in = j->tail_out;
    } else {
        j->tail_out = check_output(c, tail_bytes);
        j->tail_in = s->tail == TAIL_APART ? tail : NULL;
    }
}

/* The interval of y from the exact sum s of the taps: K roundings, each at most U times the sum of |terms|. */
static interval output(const shape *s, double sum, double terms)
{
    interval x = interval_around(sum, s->n_taps * (1.0 + 1e-6) * (INTERVAL_U * terms + INTERVAL_TINY)), sigmoid;
    if (s->recipe == GDN_RECIPE_MLX) {
        x = interval_round(s->type, x);
        const interval a = sum < 0.0 ? (interval){-x.hi, -x.lo} : x;
        interval       e = interval_round(s->type, interval_exp((interval){fmin(a.lo, 88.72), fmin(a.hi, 88.7229)}));
        e = interval_round(s->type, interval_add(interval_of(1.0), e));
        e = interval_round(s->type, interval_inverse(e));
        sigmoid = sum < 0.0 ? e : interval_round(s->type, interval_sub(interval_of(1.0), e));
    } else {
        sigmoid = interval_sigmoid(x);
    }
    return interval_round(s->type, interval_mul(x, sigmoid));
}

static void against_oracle(check *c, const shape *s, const gdn_conv_job *j, const void *tail)
{
    const int    T = s->n_tokens, C = s->n_channels, history = s->n_taps - 1;
    const size_t n = (size_t)T * C + 1;
    double      *x = check_doubles(s->type, j->x, T, C, j->x_stride),
           *w = check_doubles(GDN_F32, j->w, s->n_taps, C, j->w_stride);
    double *past = check_doubles(s->type, tail, history, C, j->tail_stride);
    double *y = calloc(3 * n, sizeof *y), *sum = y + n, *terms = sum + n;
    if (s->tail == TAIL_NONE) memset(past, 0, (size_t)history * C * sizeof *past);
    oracle_conv_silu(T, C, s->n_taps, x, w, past, y, sum, terms);
    for (int t = 0; t < T; t++)
        for (int i = 0; i < C; i++)
            check_inside(c, "y", (size_t)t * C + i, typed_get(s->type, j->y, t * j->y_stride + i),
                         output(s, sum[(size_t)t * C + i], terms[(size_t)t * C + i]));
    for (int t = 0; t < history; t++)
        for (int i = 0; i < C; i++)
            check_inside(c, "tail", (size_t)t * C + i, typed_get(s->type, j->tail_out, t * j->tail_stride + i),
                         interval_of(past[(size_t)t * C + i]));
    check_rows(c, "y", s->type, j->y, T, C, j->y_stride);
    if (s->tail != TAIL_IN_PLACE) check_rows(c, "tail", s->type, j->tail_out, history, C, j->tail_stride);
    free(x);
    free(w);
    free(past);
    free(y);
}

static void one_case(check *c, const shape *s)
{
    const void  *tail;
    gdn_conv_job tst = make_inputs(c, s, &tail);
    check_case(c, "K %d, C %d, T %d, padding %d, %s, recipe %d, tail %d, %s", s->n_taps, s->n_channels, s->n_tokens,
               s->padding, check_type_name(s->type), s->recipe, s->tail, check_fill_name(s->kind));
    make_outputs(c, s, &tst, tail);
    c->tst.conv_silu(&tst);
    if (c->definition) {
        against_oracle(c, s, &tst, tail);
        return;
    }
    gdn_conv_job ref = tst;
    make_outputs(c, s, &ref, tail);
    c->ref.conv_silu(&ref);
    check_equal(c, "y", s->type, tst.y, ref.y, check_extent(s->n_tokens, s->n_channels, tst.y_stride));
    check_equal(c, "tail", s->type, tst.tail_out, ref.tail_out,
                check_extent(s->n_taps - 1, s->n_channels, tst.tail_stride));
}

/* y = silu(x) of every finite bf16 value, through the second of two taps. */
static void every_bf16(check *c, gdn_type type, gdn_recipe recipe)
{
    enum { C = 256, T = 255 };
    const shape  s = {.n_taps = 2, .n_channels = C, .n_tokens = T, .type = type, .recipe = recipe, .tail = TAIL_NONE};
    const void  *tail;
    gdn_conv_job j = make_inputs(c, &s, &tail);
    float       *w = check_output(c, 2 * C * sizeof *w);
    uint16_t    *x = check_output(c, (size_t)T * C * typed_bytes(type));
    for (int i = 0; i < 2 * C; i++) w[i] = i < C ? 0.0f : 1.0f;
    for (int sign = 0; sign < 2; sign++) {
        check_case(c, "every %s bf16 value, %s, recipe %d", sign ? "negative" : "positive", check_type_name(type),
                   recipe);
        for (int i = 0; i < T * C; i++) {
            const uint16_t h = (uint16_t)(sign << 15 | (i / 2 % 0x7f80)); /* twice each, 0x7f80 is infinity */
            typed_set(type, x, i, typed_get(GDN_BF16, &h, 0));
        }
        j.x = x;
        j.w = w;
        make_outputs(c, &s, &j, tail);
        c->tst.conv_silu(&j);
        gdn_conv_job ref = j;
        make_outputs(c, &s, &ref, tail);
        c->ref.conv_silu(&ref);
        check_equal(c, "y", type, j.y, ref.y, T * C);
    }
}

void check_conv_silu(check *c)
{
    static const int channels[] = {1, 3, 8, 15, 16, 17, 31, 32, 33, 64, 100, 1000}, tokens[] = {0, 1, 2, 3, 5, 17, 64};
    int              turn = 0;
    for (int K = 2; K <= GDN_MAX_TAPS; K++)
        for (size_t ci = 0; ci < sizeof channels / sizeof channels[0]; ci++)
            for (size_t ti = 0; ti < sizeof tokens / sizeof tokens[0]; ti++)
                for (int variant = 0; variant < 4 * TAIL_KINDS; variant++) {
                    const int   padding = rng_below(&c->random, 2) ? 1 + rng_below(&c->random, 9) : 0;
                    const shape s = {.n_taps = K,
                                     .n_channels = channels[ci],
                                     .n_tokens = tokens[ti],
                                     .type = variant & 1 ? GDN_BF16 : GDN_F32,
                                     .recipe = variant & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF,
                                     .tail = variant / 4,
                                     .padding = padding,
                                     .kind = turn++ % FILL_COUNT};
                    if (check_sample(c, channels[ci] * tokens[ti] > 6000 ? 64 : 12)) one_case(c, &s);
                }
    for (int variant = 0; variant < 4 && !c->definition; variant++)
        every_bf16(c, variant & 1 ? GDN_BF16 : GDN_F32, variant & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF);
}
