#include "kernel/check.h"
#include "oracle/oracle.h"
#include <stdlib.h>

typedef struct shape {
    int      dim, n_rows, x_padding, y_padding, in_place;
    gdn_type y_type;
    fill     x_kind, w_kind;
    float    eps;
} shape;

static void make_output(check *c, const shape *s, gdn_rms_norm_job *j, const float *x)
{
    const size_t n = check_extent(s->n_rows, s->dim, j->y_stride);
    if (s->in_place) j->x = j->y = check_copy(c, x, n * sizeof *x);
    else j->y = check_output(c, n * typed_bytes(s->y_type));
}

/* The norm is widened as in check_gated_norm.c: a sum of squares of dim/32 steps and five folds counts half, under
 * the root. */
static void against_oracle(check *c, const shape *s, const gdn_rms_norm_job *j, const float *x)
{
    const double roundings = 0.5 * (s->dim / 32 + 7) + 4.0;
    double      *xd = check_doubles(GDN_F32, x, s->n_rows, s->dim, j->x_stride);
    for (int r = 0; r < s->n_rows; r++) {
        double *n = xd + (size_t)r * s->dim;
        oracle_norm(ORACLE_RMS, s->dim, (double)s->eps, n, n);
        for (int i = 0; i < s->dim; i++) {
            const interval v = interval_widen(interval_of(n[i]), roundings * INTERVAL_U * (1.0 + 1e-4) + 1e-9);
            check_inside(c, "y", (size_t)r * s->dim + i, typed_get(s->y_type, j->y, r * j->y_stride + i),
                         interval_round(s->y_type, interval_mul(v, interval_of((double)j->w[i]))));
        }
    }
    if (!s->in_place) check_rows(c, "y", s->y_type, j->y, s->n_rows, s->dim, j->y_stride);
    free(xd);
}

static void one_case(check *c, const shape *s)
{
    gdn_rms_norm_job tst = {.n_rows = s->n_rows,
                            .dim = s->dim,
                            .y_type = s->y_type,
                            .eps = s->eps,
                            .x_stride = (size_t)s->dim + s->x_padding,
                            .y_stride = (size_t)s->dim + (s->in_place ? s->x_padding : s->y_padding)};
    check_case(c, "dim %d, %d rows, padding %d %d, to %s, %s, x %s, w %s", s->dim, s->n_rows, s->x_padding,
               s->y_padding, check_type_name(s->y_type), s->in_place ? "in place" : "apart", check_fill_name(s->x_kind),
               check_fill_name(s->w_kind));
    const float *x = tst.x = check_input(c, GDN_F32, check_extent(s->n_rows, s->dim, tst.x_stride), s->x_kind);
    tst.w = check_input(c, GDN_F32, s->dim, s->w_kind);
    make_output(c, s, &tst, x);
    c->tst.rms_norm(&tst);
    if (c->definition) {
        against_oracle(c, s, &tst, x);
        return;
    }
    gdn_rms_norm_job ref = tst;
    ref.x = x;
    make_output(c, s, &ref, x);
    c->ref.rms_norm(&ref);
    check_equal(c, "y", s->y_type, tst.y, ref.y, check_extent(s->n_rows, s->dim, tst.y_stride));
}

void check_rms_norm(check *c)
{
    static const int rows[] = {0, 1, 2, 3, 7, 16};
    static const int dims[] = {32, 64, 96, 128, 160, 256, 1024, 2048, 2080, 5120, 8192};
    for (size_t d = 0; d < sizeof dims / sizeof dims[0]; d++)
        for (int variant = 0; variant < 120; variant++) {
            shape s = {.dim = dims[d],
                       .n_rows = rows[variant % 6],
                       .y_type = variant / 6 & 1 ? GDN_BF16 : GDN_F32,
                       .x_kind = variant % FILL_COUNT,
                       .eps = variant % 7 ? 1e-6f : 1e-5f};
            s.w_kind = rng_below(&c->random, 2) ? FILL_RANDOM : rng_below(&c->random, FILL_COUNT);
            s.in_place = s.y_type == GDN_F32 && rng_below(&c->random, 2);
            if (rng_below(&c->random, 2)) s.x_padding = 1 + rng_below(&c->random, 40);
            if (rng_below(&c->random, 2)) s.y_padding = 1 + rng_below(&c->random, 40);
            if (check_sample(c, 16)) one_case(c, &s);
        }
}
