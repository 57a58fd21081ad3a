#include "kernel/check.h"
#include "oracle/oracle.h"
#include <stdlib.h>

typedef struct shape {
    int              dim, n_rows, in_place, x_padding, y_padding, is_query;
    gdn_type         x_type, y_type;
    gdn_qk_norm_form form;
    fill             kind;
    float            eps;
} shape;

static void make_output(check *c, const shape *s, gdn_qk_norm_job *j, const void *x)
{
    if (s->in_place) {
        j->y = check_copy(c, x, typed_bytes(s->x_type) * check_extent(s->n_rows, s->dim, j->x_stride));
        j->x = j->y;
    } else {
        j->y = check_output(c, typed_bytes(s->y_type) * check_extent(s->n_rows, s->dim, j->y_stride));
    }
}

static const oracle_form forms[] =
    {[GDN_QK_NORM_SUM] = ORACLE_SUM, [GDN_QK_NORM_RMS] = ORACLE_RMS, [GDN_QK_NORM_MAX] = ORACLE_MAX};

/* From the exact normalised value n: the sum of squares has dim/32 + 5 roundings, of which the root leaves half; then come
 * eps, the root, the quotient, the division by dim (RMS) and the product with x.  An x^2 below the smallest float is lost,
 * which is nothing beside eps (SUM, RMS) or eps^2 (MAX): 1e-9 of it at most. */
static interval output(const shape *s, double n, double scale)
{
    const int chain = s->dim / 32;
    interval  v = interval_widen(interval_of(n), (0.5 * (chain + 6) + 4.0) * INTERVAL_U * (1.0 + 1e-6) + 1e-9);
    if (s->form == GDN_QK_NORM_RMS) v = interval_round(s->x_type, v);
    scale = s->form == GDN_QK_NORM_RMS ? typed_round(s->x_type, (float)scale) : (float)scale;
    v = interval_mul(v, interval_of(scale));
    if (s->form == GDN_QK_NORM_RMS) v = interval_round(s->x_type, v);
    return interval_round(s->y_type, v);
}

static void against_oracle(check *c, const shape *s, const gdn_qk_norm_job *j, const void *x)
{
    double      *in = check_doubles(s->x_type, x, s->n_rows, s->dim, j->x_stride);
    const double scale = oracle_qk_scale(forms[s->form], s->dim, s->is_query);
    for (int r = 0; r < s->n_rows; r++) {
        double *row = in + (size_t)r * s->dim;
        oracle_norm(forms[s->form], s->dim, (double)s->eps, row, row);
        for (int i = 0; i < s->dim; i++)
            check_inside(c, "y", (size_t)r * s->dim + i, typed_get(s->y_type, j->y, r * j->y_stride + i),
                         output(s, row[i], scale));
    }
    if (!s->in_place) check_rows(c, "y", s->y_type, j->y, s->n_rows, s->dim, j->y_stride);
    free(in);
}

static void one_case(check *c, const shape *s)
{
    gdn_qk_norm_job tst = {.n_rows = s->n_rows,
                           .dim = s->dim,
                           .x_type = s->x_type,
                           .y_type = s->y_type,
                           .form = s->form,
                           .eps = s->eps,
                           .scale = (float)oracle_qk_scale(forms[s->form], s->dim, s->is_query),
                           .x_stride = (size_t)s->dim + s->x_padding,
                           .y_stride = (size_t)s->dim + (s->in_place ? s->x_padding : s->y_padding)};
    check_case(c, "dim %d, %d rows, padding %d and %d, %s to %s, form %d, %s, eps %g, %s", s->dim, s->n_rows,
               s->x_padding, s->y_padding, check_type_name(s->x_type), check_type_name(s->y_type), s->form,
               s->in_place ? "in place" : "apart", (double)s->eps, check_fill_name(s->kind));
    const void *x = tst.x = check_input(c, s->x_type, check_extent(s->n_rows, s->dim, tst.x_stride), s->kind);
    make_output(c, s, &tst, x);
    c->tst.qk_norm(&tst);
    if (c->definition) {
        against_oracle(c, s, &tst, x);
        return;
    }
    gdn_qk_norm_job ref = tst;
    ref.x = x;
    make_output(c, s, &ref, x);
    c->ref.qk_norm(&ref);
    check_equal(c, "y", s->y_type, tst.y, ref.y, check_extent(s->n_rows, s->dim, tst.y_stride));
}

void check_qk_norm(check *c)
{
    static const int rows[] = {0, 1, 2, 3, 7, 16};
    int              turn = 0;
    for (int dim = 32; dim <= GDN_MAX_DIM; dim += 32)
        for (int form = 0; form < 3; form++)
            for (int types = 0; types < 4; types++)
                for (int variant = 0; variant < 60; variant++) {
                    shape s = {.dim = dim,
                               .form = form,
                               .x_type = types & 1 ? GDN_BF16 : GDN_F32,
                               .y_type = types & 2 ? GDN_BF16 : GDN_F32,
                               .kind = turn++ % FILL_COUNT,
                               .n_rows = rows[variant % 6],
                               .is_query = variant & 1,
                               .eps = variant % 7 ? 1e-6f : 1.28e-4f};
                    if (rng_below(&c->random, 2)) s.x_padding = 1 + rng_below(&c->random, 40);
                    if (rng_below(&c->random, 2)) s.y_padding = 1 + rng_below(&c->random, 40);
                    s.in_place = s.x_type == s.y_type && rng_below(&c->random, 2);
                    if (check_sample(c, 16)) one_case(c, &s);
                }
}
