#include "kernel/check.h"
#include "oracle/oracle.h"

typedef struct shape {
    int        n, in_place;
    gdn_type   type;
    gdn_recipe recipe;
    fill       kind;
} shape;

typedef struct inputs {
    const float *a, *b, *A_log, *dt_bias;
} inputs;

static void make_outputs(check *c, const shape *s, gdn_gates_job *j, const inputs *in)
{
    const size_t bytes = (size_t)s->n * sizeof(float);
    j->a = in->a;
    j->b = in->b;
    if (s->in_place) {
        j->a = j->g = check_copy(c, in->a, bytes);
        j->b = j->beta = check_copy(c, in->b, bytes);
    } else {
        j->g = check_output(c, bytes);
        j->beta = check_output(c, bytes);
    }
}

static interval mlx_beta(const shape *s, double b)
{
    interval e = interval_exp(interval_of(fmin(fabs(b), 88.7228)));
    if (fabs(b) > 88.7) e.hi = fmax(e.hi, 0x1p128); /* exp stops there, and rounding to bf16 may give infinity */
    e = interval_round(s->type, e);
    e = interval_round(s->type, interval_add(interval_of(1.0), e));
    e = interval_round(s->type, interval_inverse(e));
    return b < 0.0 ? e : interval_round(s->type, interval_sub(interval_of(1.0), e));
}

/* R(max(s, 0) + R(log(1 + R(exp(R(-|s|)))))) */
static interval mlx_softplus(const shape *s, interval x)
{
    const interval hi = {fmax(x.lo, 0.0), fmax(x.hi, 0.0)};
    interval       far = x.lo >= 0.0 ? (interval){-x.hi, -x.lo} : x.hi <= 0.0 ? x : (interval){fmin(x.lo, -x.hi), 0.0};
    far = interval_round(s->type, far);
    const interval e = interval_round(s->type, interval_exp(far));
    const interval l = interval_round(s->type, interval_log1p(e));
    return interval_round(s->type, interval_add(hi, l));
}

static interval hf_softplus(interval x)
{
    const interval exact = {oracle_softplus(x.lo), oracle_softplus(x.hi)}; /* it rises; exp, log1p and a sum */
    return interval_widen(exact, 2 * INTERVAL_EXP + INTERVAL_U);
}

/* exp(-(exp(A_log) * softplus)): exp(A_log) stops short of infinity, where the decay is 0 already unless softplus is tiny. */
static interval decay(interval softplus, double A_log)
{
    interval rate = interval_exp(interval_of(fmax(fmin(A_log, 88.72283), -104.0)));
    if (A_log > 88.7) rate.lo *= 1.0 - 1e-4; /* the last float below that point */
    const interval x = interval_mul(rate, softplus);
    return interval_exp((interval){-x.hi, -x.lo});
}

static void against_oracle(check *c, const shape *s, const gdn_gates_job *j, const inputs *in)
{
    for (int i = 0; i < s->n; i++) {
        const double   a = in->a[i], b = in->b[i], A_log = in->A_log[i], dt_bias = in->dt_bias[i];
        const int      mlx = s->recipe == GDN_RECIPE_MLX;
        const interval sum = interval_add(interval_of(a), interval_of(dt_bias));
        const interval sp = mlx ? mlx_softplus(s, interval_round(s->type, sum)) : hf_softplus(sum);
        check_inside(c, "g", i, j->g[i], decay(sp, A_log));
        check_inside(c, "beta", i, j->beta[i], mlx ? mlx_beta(s, b) : interval_sigmoid(interval_of(b)));
        /* The equation in one piece: exp(A_log)*softplus is below 121 here, and 20U of it is below 1.5e-4. */
        if (!mlx && fabs(A_log) < 3.0 && fabs(a) < 3.0 && fabs(dt_bias) < 3.0)
            check_inside(c, "g by the equation", i, j->g[i],
                         interval_widen(interval_of(oracle_decay(a, A_log, dt_bias)), 1.5e-4));
        if (!(j->g[i] >= 0.0f && j->g[i] <= 1.0f)) check_fail(c, "g[%d] is %g", i, (double)j->g[i]);
        if (!(j->beta[i] >= 0.0f && j->beta[i] <= 1.0f)) check_fail(c, "beta[%d] is %g", i, (double)j->beta[i]);
    }
}

static void run_case(check *c, const shape *s, const inputs *in)
{
    gdn_gates_job tst = {.n = s->n, .type = s->type, .recipe = s->recipe, .A_log = in->A_log, .dt_bias = in->dt_bias};
    check_case(c, "n %d, %s, recipe %d, %s, %s", s->n, check_type_name(s->type), s->recipe,
               s->in_place ? "in place" : "apart", check_fill_name(s->kind));
    make_outputs(c, s, &tst, in);
    c->tst.gates(&tst);
    if (c->definition) {
        against_oracle(c, s, &tst, in);
        return;
    }
    gdn_gates_job ref = tst;
    make_outputs(c, s, &ref, in);
    c->ref.gates(&ref);
    check_equal(c, "g", GDN_F32, tst.g, ref.g, s->n);
    check_equal(c, "beta", GDN_F32, tst.beta, ref.beta, s->n);
}

/* a and b of the data type, held in floats. */
static const float *data(check *c, const shape *s)
{
    float *p = check_output(c, (size_t)s->n * sizeof *p);
    for (int i = 0; i < s->n; i++) p[i] = (float)typed_round(s->type, check_pick(c, s->kind));
    check_read_only(c, p);
    return p;
}

static void one_case(check *c, const shape *s)
{
    const fill   parameters = rng_below(&c->random, 2) ? FILL_RANDOM : s->kind;
    const inputs in = {data(c, s), data(c, s), check_input(c, GDN_F32, s->n, parameters),
                       check_input(c, GDN_F32, s->n, parameters)};
    run_case(c, s, &in);
}

/* A_log and dt_bias of 0 and every finite bf16 value as a and b, in two halves. */
static void every_bf16(check *c, const shape *given)
{
    shape  s = *given;
    float *zeros = check_output(c, 0x7f80 * sizeof *zeros), *p = check_output(c, 0x7f80 * sizeof *p);
    s.n = 0x7f80;
    memset(zeros, 0, 0x7f80 * sizeof *zeros);
    for (int sign = 0; sign < 2; sign++) {
        for (int i = 0; i < s.n; i++) {
            const uint16_t h = (uint16_t)(sign << 15 | i);
            p[i] = typed_get(GDN_BF16, &h, 0);
        }
        const inputs in = {p, p, zeros, zeros};
        run_case(c, &s, &in);
    }
}

void check_gates(check *c)
{
    for (int variant = 0; variant < 4; variant++) {
        shape s = {.type = variant & 1 ? GDN_BF16 : GDN_F32, .recipe = variant & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF};
        for (s.n = 0; s.n <= 70; s.n++)
            for (int k = 0; k < 2 * FILL_COUNT; k++) {
                s.kind = k % FILL_COUNT;
                s.in_place = k / FILL_COUNT;
                if (check_sample(c, 8)) one_case(c, &s);
            }
        s.kind = FILL_RANDOM;
        every_bf16(c, &s);
    }
}
