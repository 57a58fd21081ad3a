#include "kernel/check.h"
#include "oracle/oracle.h"
#include <stdlib.h>

enum place { APART, OVER_O, OVER_Z, PLACES };

typedef struct shape {
    int        dim, n_rows, o_padding, z_padding, y_padding;
    gdn_type   type;
    gdn_recipe recipe;
    enum place place;
    fill       o_kind, z_kind, w_kind;
    float      eps;
} shape;

static void make_output(check *c, const shape *s, gdn_gated_norm_job *j, const void *o, const void *z)
{
    const size_t size = typed_bytes(s->type);
    j->o = o;
    j->z = z;
    if (s->place == OVER_O) j->o = j->y = check_copy(c, o, size * check_extent(s->n_rows, s->dim, j->o_stride));
    else if (s->place == OVER_Z) j->z = j->y = check_copy(c, z, size * check_extent(s->n_rows, s->dim, j->z_stride));
    else j->y = check_output(c, size * check_extent(s->n_rows, s->dim, j->y_stride));
}

/* The norm is widened as in check_qk_norm.c, with one division more. */
static interval output(const shape *s, double n, double w, double z)
{
    const int      chain = s->dim / 32;
    const interval silu = interval_mul(interval_of(z), interval_sigmoid(interval_of(z)));
    interval       v = interval_widen(interval_of(n), (0.5 * (chain + 7) + 4.0) * INTERVAL_U * (1.0 + 1e-6) + 1e-9);
    v = interval_mul(interval_round(s->type, v), interval_of(w));
    if (s->recipe == GDN_RECIPE_MLX) v = interval_round(s->type, v);
    return interval_round(s->type, interval_mul(v, silu));
}

static void against_oracle(check *c, const shape *s, const gdn_gated_norm_job *j, const void *o, const void *z)
{
    double *od = check_doubles(s->type, o, s->n_rows, s->dim, j->o_stride);
    double *zd = check_doubles(s->type, z, s->n_rows, s->dim, j->z_stride);
    double *n = malloc((size_t)s->dim * sizeof *n);
    if (!n) abort();
    for (int r = 0; r < s->n_rows; r++) {
        oracle_norm(ORACLE_RMS, s->dim, (double)s->eps, od + (size_t)r * s->dim, n);
        for (int i = 0; i < s->dim; i++)
            check_inside(c, "y", (size_t)r * s->dim + i, typed_get(s->type, j->y, r * j->y_stride + i),
                         output(s, n[i], (double)j->w[i], zd[(size_t)r * s->dim + i]));
    }
    if (s->place == APART) check_rows(c, "y", s->type, j->y, s->n_rows, s->dim, j->y_stride);
    free(od);
    free(zd);
    free(n);
}

static void run_case(check *c, const shape *s, gdn_gated_norm_job *tst, const void *o, const void *z)
{
    check_case(c, "dim %d, %d rows, padding %d %d %d, %s, recipe %d, place %d, o %s, z %s, w %s", s->dim, s->n_rows,
               s->o_padding, s->z_padding, s->y_padding, check_type_name(s->type), s->recipe, s->place,
               check_fill_name(s->o_kind), check_fill_name(s->z_kind), check_fill_name(s->w_kind));
    make_output(c, s, tst, o, z);
    c->tst.gated_norm(tst);
    if (c->definition) {
        against_oracle(c, s, tst, o, z);
        return;
    }
    gdn_gated_norm_job ref = *tst;
    make_output(c, s, &ref, o, z);
    c->ref.gated_norm(&ref);
    check_equal(c, "y", s->type, tst->y, ref.y, check_extent(s->n_rows, s->dim, tst->y_stride));
}

static gdn_gated_norm_job make_job(const shape *s)
{
    return (gdn_gated_norm_job){.n_rows = s->n_rows,
                                .dim = s->dim,
                                .type = s->type,
                                .recipe = s->recipe,
                                .eps = s->eps,
                                .o_stride = (size_t)s->dim + s->o_padding,
                                .z_stride = (size_t)s->dim + s->z_padding,
                                .y_stride = (size_t)s->dim + (s->place == OVER_O   ? s->o_padding
                                                              : s->place == OVER_Z ? s->z_padding
                                                                                   : s->y_padding)};
}

static void one_case(check *c, const shape *s)
{
    gdn_gated_norm_job j = make_job(s);
    const void        *o = check_input(c, s->type, check_extent(s->n_rows, s->dim, j.o_stride), s->o_kind);
    const void        *z = check_input(c, s->type, check_extent(s->n_rows, s->dim, j.z_stride), s->z_kind);
    j.w = check_input(c, GDN_F32, s->dim, s->w_kind);
    run_case(c, s, &j, o, z);
}

/* Every bf16 value up to 2^16 as z, in rows of 256. */
static void every_bf16(check *c, gdn_type type, gdn_recipe recipe)
{
    const shape        s = {.dim = 256, .n_rows = 2 * 0x4780 / 256, .type = type, .recipe = recipe, .eps = 1e-6f};
    const size_t       n = (size_t)s.dim * s.n_rows;
    gdn_gated_norm_job j = make_job(&s);
    const void        *o = check_input(c, type, n, FILL_RANDOM);
    void              *z = check_output(c, n * typed_bytes(type));
    j.w = check_input(c, GDN_F32, s.dim, FILL_RANDOM);
    for (size_t i = 0; i < n; i++) {
        const uint16_t h = (uint16_t)((i & 1) << 15 | i / 2);
        typed_set(type, z, i, typed_get(GDN_BF16, &h, 0));
    }
    run_case(c, &s, &j, o, z);
}

void check_gated_norm(check *c)
{
    static const int rows[] = {0, 1, 2, 3, 7, 16};
    for (int dim = 32; dim <= GDN_MAX_DIM; dim += 32)
        for (int kinds = 0; kinds < 4; kinds++)
            for (int variant = 0; variant < 120; variant++) {
                shape s = {.dim = dim,
                           .n_rows = rows[variant % 6],
                           .type = kinds & 1 ? GDN_BF16 : GDN_F32,
                           .recipe = kinds & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF,
                           .place = variant / 6 % PLACES,
                           .o_kind = variant % FILL_COUNT,
                           .eps = variant % 7 ? 1e-6f : 1e-5f};
                s.z_kind = rng_below(&c->random, FILL_COUNT);
                s.w_kind = rng_below(&c->random, 2) ? FILL_RANDOM : rng_below(&c->random, FILL_COUNT);
                if (rng_below(&c->random, 2)) s.o_padding = 1 + rng_below(&c->random, 40);
                if (rng_below(&c->random, 2)) s.z_padding = 1 + rng_below(&c->random, 40);
                if (rng_below(&c->random, 2)) s.y_padding = 1 + rng_below(&c->random, 40);
                if (check_sample(c, 16)) one_case(c, &s);
            }
    for (int kinds = 0; kinds < 4; kinds++)
        every_bf16(c, kinds & 1 ? GDN_BF16 : GDN_F32, kinds & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF);
}
