/* interval.h - bounds on what float arithmetic may give.  An interval starts from a value that the oracle states, each
 * operation of a kernel widens it by that operation's rounding, and a result is right if it lies inside.  So the bound of
 * every check is derived from the roundings of the definition, one by one; no constant is tuned.
 *
 * One operation in f32 changes its exact result r by at most U*|r| + 2^-150: half a unit in the last place, or half the
 * smallest denormal.  TINY is four such halves, so that one step here may stand for up to four operations. */
#ifndef TESTS_ORACLE_INTERVAL_H
#define TESTS_ORACLE_INTERVAL_H
#include "support/typed.h"
#include <math.h>

#define INTERVAL_U 0x1p-24
#define INTERVAL_TINY 0x1p-148
/* The kernels' own exp, log and what is made of them, relative: 2 units in the last place at most (check_math.c measures
 * it), each unit at most 2U. */
#define INTERVAL_EXP (4.0 * INTERVAL_U)

typedef struct interval {
    double lo, hi;
} interval;

static inline interval interval_of(double x) { return (interval){x, x}; }

/* x +- error, error >= 0. */
static inline interval interval_around(double x, double error) { return (interval){x - error, x + error}; }

/* Grown by a relative error and by the smallest absolute one; infinite ends stay. */
static inline interval interval_widen(interval a, double relative)
{
    if (isfinite(a.lo)) a.lo -= fabs(a.lo) * relative + INTERVAL_TINY;
    if (isfinite(a.hi)) a.hi += fabs(a.hi) * relative + INTERVAL_TINY;
    return a;
}

/* The results of one f32 operation whose exact results are a. */
static inline interval interval_f32(interval a) { return interval_widen(a, INTERVAL_U); }

/* Rounded to `type`: rounding is monotonic, so the ends are rounded. */
static inline interval interval_round(gdn_type type, interval a)
{
    return type == GDN_BF16 ? (interval){typed_round(type, a.lo), typed_round(type, a.hi)} : a;
}

static inline interval interval_add(interval a, interval b)
{
    return interval_f32((interval){a.lo + b.lo, a.hi + b.hi});
}
static inline interval interval_sub(interval a, interval b)
{
    return interval_f32((interval){a.lo - b.hi, a.hi - b.lo});
}

static inline interval interval_mul(interval a, interval b)
{
    const double p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
    return interval_f32((interval){fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s))});
}

/* 1/a for a > 0. */
static inline interval interval_inverse(interval a) { return interval_f32((interval){1.0 / a.hi, 1.0 / a.lo}); }

/* sqrt(a) for a >= 0, where an end below 0 is only the slack of an earlier step. */
static inline interval interval_sqrt(interval a) { return interval_f32((interval){sqrt(fmax(a.lo, 0.0)), sqrt(a.hi)}); }

static inline interval interval_exp(interval a)
{
    return interval_widen((interval){exp(a.lo), exp(a.hi)}, INTERVAL_EXP);
}

/* log(1 + a) for a in [0, 1], up to slack. */
static inline interval interval_log1p(interval a)
{
    return interval_widen((interval){log1p(fmax(a.lo, 0.0)), log1p(a.hi)}, INTERVAL_EXP);
}

/* The project's sigmoid in f32: two exps at most, a sum, a quotient and a product. */
static inline interval interval_sigmoid(interval a)
{
    return interval_widen((interval){1.0 / (1.0 + exp(-a.lo)), 1.0 / (1.0 + exp(-a.hi))},
                          2.0 * INTERVAL_EXP + 3.0 * INTERVAL_U);
}

static inline int interval_has(interval a, double x) { return a.lo <= x && x <= a.hi; }

#endif
