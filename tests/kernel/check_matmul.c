#include "kernel/check.h"
#include <float.h>
#include <stdlib.h>

/* What is multiplied; each is of bf16 numbers. */
typedef enum kind {
    KIND_RANDOM,
    KIND_ZEROS,    /* of both signs */
    KIND_TINY,     /* products around FLT_MIN, so that sums are in and out of denormals */
    KIND_DENORMAL, /* denormals among ordinary numbers */
    KIND_HUGE,     /* up to 1e4 */
    KIND_EDGE,     /* sums that round to FLT_MIN or just miss it */
    KIND_COUNT
} kind;
static const char *const kind_names[] = {"random", "zeros", "tiny", "denormal", "huge", "edge"};

typedef struct shape {
    int  n_rows, n_inputs, n_outputs, x_padding, y_padding;
    kind kind;
} shape;

static uint16_t pick(check *c, kind of)
{
    rng *const r = &c->random;
    float      x = 0;
    switch (of) {
    case KIND_ZEROS: x = check_pick(c, rng_below(r, 8) ? FILL_ZEROS : FILL_RANDOM); break;
    case KIND_TINY: x = ldexpf(rng_uniform(r, -2.0f, 2.0f), -60 - rng_below(r, 8)); break;
    case KIND_DENORMAL:
        x = rng_below(r, 2) ? ldexpf(rng_uniform(r, -2.0f, 2.0f), -128) : check_pick(c, FILL_MIXED);
        break;
    case KIND_HUGE: x = check_pick(c, FILL_HUGE); break;
    case KIND_EDGE: { /* +-FLT_MIN, a little more, or a product that pulls it down by less than 2^-149 */
        static const int exponents[] = {-63, -63, -74, -75, -76, -80};
        x = ldexpf((float)(rng_below(r, 4) + 4) / 4, exponents[rng_below(r, 6)]);
        if (rng_below(r, 2)) x = -x;
        if (rng_below(r, 2)) x = 0;
        break;
    }
    default: x = check_pick(c, FILL_RANDOM);
    }
    uint16_t h;
    typed_set(GDN_BF16, &h, 0, x);
    return h;
}

static uint16_t *numbers(check *c, size_t n, kind of)
{
    uint16_t *p = check_output(c, n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = pick(c, of);
    return p;
}

/* n bytes at a multiple of 64, as near to the end of a buffer as that allows; what is left over is not to be
 * written. */
static void *aligned(check *c, size_t bytes)
{
    const uintptr_t p = (uintptr_t)check_output(c, bytes + 63);
    return (void *)((p + 63) / 64 * 64);
}

static double value(uint16_t h)
{
    const double x = (double)typed_get(GDN_BF16, &h, 0);
    return fabs(x) < (double)FLT_MIN ? 0.0 : x;
}

/* A chain rounds 16 times, E + O once, and C once a run: each term passes at most 17 + K/32 roundings of u.  A
 * result that is flushed is off by FLT_MIN at most; there are K of the chains and 2 a run of the sums. */
static void against_double(check *c, const shape *s, const gdn_matmul_job *j, const uint16_t *w)
{
    const int    runs = j->n_inputs / GDN_RUN;
    const double roundings = (17 + runs) * (double)FLT_EPSILON / 2 * (1 + 1e-4);
    const double flushed = (j->n_inputs + 2 * runs) * (double)FLT_MIN * (1 + 1e-4);
    for (int m = 0; m < s->n_rows; m++)
        for (int n = 0; n < s->n_outputs; n++) {
            double sum = 0, size = 0;
            for (int k = 0; k < s->n_inputs; k++) {
                const double term = value(j->x[m * j->x_stride + k]) * value(w[(size_t)n * s->n_inputs + k]);
                sum += term;
                size += fabs(term);
            }
            const double bound = roundings * size + flushed, got = (double)j->y[m * j->y_stride + n];
            if (!(fabs(got - sum) <= bound))
                check_fail(c, "y[%d][%d] is %.9g, not %.9g within %.2g", m, n, got, sum, bound);
        }
}

/* The definition says so by itself, but a fast kernel works on many rows at once. */
static void row_law(check *c, const gdn_matmul_job *j, size_t n_work)
{
    const int      m = rng_below(&c->random, j->n_rows);
    gdn_matmul_job one = *j;
    one.n_rows = 1;
    one.x = j->x + m * j->x_stride;
    one.y = check_output(c, (size_t)j->n_outputs * sizeof *one.y);
    one.work = aligned(c, n_work * sizeof *one.work);
    c->tst.matmul(&one);
    check_equal(c, "y of a row alone", GDN_F32, one.y, j->y + m * j->y_stride, j->n_outputs);
}

static void one_case(check *c, const shape *s)
{
    check_case(c, "%d rows, %d inputs, %d outputs, padding %d %d, %s", s->n_rows, s->n_inputs, s->n_outputs,
               s->x_padding, s->y_padding, kind_names[s->kind]);
    const int      padded = (s->n_inputs + GDN_RUN - 1) / GDN_RUN * GDN_RUN;
    gdn_matmul_job j = {.n_rows = s->n_rows,
                        .n_inputs = padded,
                        .n_panels = (s->n_outputs + GDN_PANEL - 1) / GDN_PANEL,
                        .n_outputs = s->n_outputs,
                        .x_stride = (size_t)padded + s->x_padding,
                        .y_stride = (size_t)s->n_outputs + s->y_padding};
    const size_t   n_x = check_extent(s->n_rows, padded, j.x_stride), n_w = (size_t)j.n_panels * GDN_PANEL * padded;
    const size_t   n_y = check_extent(s->n_rows, s->n_outputs, j.y_stride), n_work = (size_t)GDN_MATMUL_ROWS * padded;
    uint16_t      *w = numbers(c, (size_t)s->n_outputs * s->n_inputs, s->kind);
    uint16_t      *packed = check_output(c, n_w * sizeof *packed), *x = aligned(c, n_x * sizeof *x);
    for (size_t i = 0; i < n_x; i++) x[i] = pick(c, s->kind); /* past n_inputs, too: the weights are zero there */
    gdn_matmul_pack(packed, w, s->n_outputs, s->n_inputs);
    check_read_only(c, packed);
    check_read_only(c, x);
    j.x = x;
    j.w = packed;
    j.y = check_output(c, n_y * sizeof *j.y);
    j.work = aligned(c, n_work * sizeof *j.work);
    if (j.n_panels > 1) j.soon = packed;
    c->tst.matmul(&j);
    check_rows(c, "y", GDN_F32, j.y, s->n_rows, s->n_outputs, j.y_stride);
    if (c->definition) {
        against_double(c, s, &j, w);
    } else {
        gdn_matmul_job ref = j;
        ref.y = check_output(c, n_y * sizeof *j.y);
        c->ref.matmul(&ref);
        check_equal(c, "y", GDN_F32, j.y, ref.y, n_y);
    }
    row_law(c, &j, n_work);
}

/* Packing: every number is where the contract says, and the rest is zero. */
static void pack_case(check *c, int n_outputs, int n_inputs)
{
    check_case(c, "pack %d outputs, %d inputs", n_outputs, n_inputs);
    const int       padded = (n_inputs + GDN_RUN - 1) / GDN_RUN * GDN_RUN;
    const int       rows = (n_outputs + GDN_PANEL - 1) / GDN_PANEL * GDN_PANEL;
    uint16_t *const dst = check_output(c, (size_t)rows * padded * sizeof *dst);
    uint16_t *const src = numbers(c, (size_t)n_outputs * n_inputs, KIND_RANDOM);
    check_read_only(c, src);
    gdn_matmul_pack(dst, src, n_outputs, n_inputs);
    for (int n = 0; n < rows; n++)
        for (int k = 0; k < padded; k++) {
            const uint16_t want = n < n_outputs && k < n_inputs ? src[(size_t)n * n_inputs + k] : 0;
            const size_t at = (((size_t)(n / GDN_PANEL) * padded / 2 + k / 2) * GDN_PANEL + n % GDN_PANEL) * 2 + k % 2;
            if (dst[at] != want) check_fail(c, "weight [%d][%d] is %#x, not %#x", n, k, dst[at], want);
        }
}

/* C becomes -0 in the second run (FLT_MIN - 1.5*FLT_MIN), and products of -0 follow: chains that begin with +0 make
 * it +0. */
static void sign_case(check *c, int n_rows)
{
    enum { K = 3 * GDN_RUN, N = GDN_PANEL };
    const uint16_t root = 0x2000, minus = 0xa040, minus_zero = 0x8000; /* 2^-63, -1.5*2^-63 */
    check_case(c, "the sign of zero, %d rows", n_rows);
    uint16_t      *x = aligned(c, (size_t)n_rows * K * sizeof *x), *w = check_output(c, K * N * sizeof *w);
    gdn_matmul_job j = {.n_rows = n_rows, .n_inputs = K, .n_panels = 1, .n_outputs = N, .x_stride = K, .y_stride = N};
    for (int i = 0; i < n_rows * K; i++) x[i] = i % K == 0 ? root : i % K == GDN_RUN ? minus : 0;
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++) w[(k / 2 * N + n) * 2 + k % 2] = k == 0 || k == GDN_RUN ? root : minus_zero;
    j.x = x;
    j.w = w;
    j.y = check_output(c, (size_t)n_rows * N * sizeof *j.y);
    j.work = aligned(c, (size_t)GDN_MATMUL_ROWS * K * sizeof *j.work);
    c->tst.matmul(&j);
    for (int i = 0; i < n_rows * N; i++)
        if (j.y[i] != 0.0f || signbit(j.y[i])) check_fail(c, "y[%d] is %g, not +0", i, (double)j.y[i]);
}

void check_matmul(check *c)
{
    static const int rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100};
    static const int inputs[] = {32, 64, 96, 256}, outputs[] = {1, 15, 16, 17, 31, 32, 33, 48, 64, 100};
    enum { ROWS = sizeof rows / sizeof *rows, INPUTS = sizeof inputs / sizeof *inputs };
    enum { OUTPUTS = sizeof outputs / sizeof *outputs };
    int turn = 0;
    for (int m = 0; m < ROWS; m++)
        for (int n = 0; n < OUTPUTS; n++)
            for (int k = 0; k < INPUTS; k++, turn++) {
                shape s = {
                    .n_rows = rows[m], .n_inputs = inputs[k], .n_outputs = outputs[n], .kind = turn % KIND_COUNT};
                if (rng_below(&c->random, 2)) s.x_padding = 32 * (1 + rng_below(&c->random, 3));
                if (rng_below(&c->random, 2)) s.y_padding = 1 + rng_below(&c->random, 40);
                if (rng_below(&c->random, 4) == 0) s.n_inputs -= 1 + rng_below(&c->random, 31);
                if (check_sample(c, 16)) one_case(c, &s);
            }
    for (int i = 0; i < 4 * KIND_COUNT; i++) {
        const shape s = {.n_rows = rows[5 * i % ROWS],
                         .n_inputs = 1024,
                         .n_outputs = outputs[7 * i % OUTPUTS],
                         .kind = i % KIND_COUNT};
        if (check_sample(c, 8)) one_case(c, &s);
    }
    static const shape large[] = {
        {.n_rows = 70, .n_inputs = 1050, .n_outputs = 48},                   /* more weights than one cache holds, */
        {.n_rows = 300, .n_inputs = 2050, .n_outputs = 48, .x_padding = 32}, /* more x than another */
        {.n_rows = 150, .n_inputs = 4000, .n_outputs = 33},
        {.n_rows = 1100, .n_inputs = 544, .n_outputs = 33}}; /* more sums than there is room for */
    for (int i = 0; i < (int)(sizeof large / sizeof *large); i++) one_case(c, &large[i]);
    for (int n_rows = 1; n_rows <= 40; n_rows++) sign_case(c, n_rows);
    for (int i = 0; c->definition && i < 40; i++)
        pack_case(c, 1 + rng_below(&c->random, 70), 1 + rng_below(&c->random, 140));
}
