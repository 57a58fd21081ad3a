/* The project's own exp, log and what is made of them, against libm in double. */
#include "kernel/check.h"
#include "kernel/math.h"
#include <stdio.h>

/* Error of `got` in units in the last place of a float near `want`; the last place of denormals is 2^-149. */
static double ulps(double got, double want)
{
    int exponent;
    frexp(want, &exponent);
    return fabs(got - want) / ldexp(1.0, exponent - 24 > -149 ? exponent - 24 : -149);
}

typedef struct sweep {
    const char *name;
    float (*fn)(float);
    double (*exact)(double);
    float    from, to; /* of one sign, |from| < |to|: all floats between, `step` apart */
    uint32_t step;
    double   bound; /* in ulp */
} sweep;

static double sigmoid_exact(double x) { return 1.0 / (1.0 + exp(-x)); }
static double softplus_exact(double x) { return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

/* Bounds.  exp: the recorded outputs of mlx need a decay that is nearly always rounded correctly (0.99 ulp was too far off
 * for one of them); measured 0.65, and 0.75 where the result is a denormal and so is rounded twice.  log1p: the intervals
 * take it for 2 ulp; measured 1.74.  sigmoid adds a sum, a quotient and, below 0, exp once more and a product: measured 1.49
 * and 2.65.  softplus adds a sum to exp and log1p: measured 1.95 and 2.29. */
static const sweep sweeps[] = {{"exp", gdn_expf, exp, -0.0f, -103.97f, 131, 0.8},
                               {"exp", gdn_expf, exp, 0.0f, 88.72283f, 131, 0.7},
                               {"log1p", gdn_log1pf_unit, log1p, 0.0f, 1.0f, 131, 2.0},
                               {"sigmoid", gdn_sigmoidf, sigmoid_exact, 0.0f, 104.0f, 257, 2.0},
                               {"sigmoid", gdn_sigmoidf, sigmoid_exact, -0.0f, -103.97f, 257, 3.0},
                               {"softplus", gdn_softplusf, softplus_exact, 0.0f, 1e4f, 257, 2.5},
                               {"softplus", gdn_softplusf, softplus_exact, -0.0f, -103.97f, 257, 3.0}};

static void run_sweep(check *c, const sweep *s)
{
    const uint32_t step = s->step * (c->quick ? 64 : 1), last = gdn_bits(s->to);
    double         worst = 0.0;
    float          where = s->from;
    check_case(c, "%s in [%g, %g]", s->name, (double)s->from, (double)s->to);
    for (uint64_t u = gdn_bits(s->from);; u = u + step < last ? u + step : last) { /* both ends are visited */
        const float  x = gdn_from_bits((uint32_t)u);
        const double e = ulps(s->fn(x), s->exact(x));
        if (!(e <= worst)) {
            worst = e;
            where = x;
        }
        if (u == last) break;
    }
    printf("    %-8s [%g, %g]: at most %.3f ulp (at %a)\n", s->name, (double)s->from, (double)s->to, worst,
           (double)where);
    if (!(worst <= s->bound)) check_fail(c, "%.3f ulp at %a, the bound is %g", worst, (double)where, s->bound);
}

static void equal(check *c, const char *name, float got, float want)
{
    check_case(c, "%s", name);
    if (gdn_bits(got) != gdn_bits(want)) check_fail(c, "%a, not %a", (double)got, (double)want);
}

/* Values that must be exact, and the ends of the range. */
static void ends(check *c)
{
    equal(c, "exp(0)", gdn_expf(0.0f), 1.0f);
    equal(c, "exp(-0)", gdn_expf(-0.0f), 1.0f);
    equal(c, "exp(-1e4)", gdn_expf(-1e4f), 0.0f);
    equal(c, "exp(-104)", gdn_expf(-104.0f), 0.0f);
    equal(c, "exp(-inf)", gdn_expf(-HUGE_VALF), 0.0f);
    equal(c, "log1p(0)", gdn_log1pf_unit(0.0f), 0.0f);
    equal(c, "log1p of a denormal", gdn_log1pf_unit(0x1p-149f), 0x1p-149f);
    equal(c, "sigmoid(0)", gdn_sigmoidf(0.0f), 0.5f);
    equal(c, "sigmoid(1e4)", gdn_sigmoidf(1e4f), 1.0f);
    equal(c, "sigmoid(-1e4)", gdn_sigmoidf(-1e4f), 0.0f);
    equal(c, "softplus(1e4)", gdn_softplusf(1e4f), 1e4f);
    equal(c, "softplus(-1e4)", gdn_softplusf(-1e4f), 0.0f);
    check_case(c, "exp(1e4) and exp(NaN)");
    if (!isfinite(gdn_expf(1e4f)) || gdn_expf(1e4f) < 3.4e38f) check_fail(c, "exp(1e4) is %g", (double)gdn_expf(1e4f));
    if (!isnan(gdn_expf(NAN))) check_fail(c, "exp of NaN is a number");
}

/* Every float whose lower half is near a rounding decision, against the rounding written for the tests. */
static void bf16(check *c)
{
    static const uint16_t low[] = {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff};
    check_case(c, "bf16 rounding");
    for (uint32_t h = 0; h < 0x10000; h++)
        for (size_t i = 0; i < sizeof low / sizeof low[0]; i++) {
            const float x = gdn_from_bits(h << 16 | low[i]);
            uint16_t    want;
            if (isnan(x)) {
                if (!isnan(gdn_f32_of_bf16(gdn_bf16_of_f32(x))))
                    check_fail(c, "a NaN (%04x%04x) became a number", h, low[i]);
                continue;
            }
            typed_set(GDN_BF16, &want, 0, x);
            if (gdn_bf16_of_f32(x) != want)
                check_fail(c, "%a gives %04x, not %04x", (double)x, gdn_bf16_of_f32(x), want);
        }
}

void check_math(check *c)
{
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) run_sweep(c, &sweeps[i]);
    ends(c);
    bf16(c);
}
