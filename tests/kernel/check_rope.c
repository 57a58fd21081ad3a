#include "kernel/check.h"
#include "oracle/oracle.h"
#include <stdlib.h>

typedef struct shape {
    int  n_heads, n_pairs, padding;
    fill kind;
} shape;

/* A product is rounded, then the sum. */
static void against_oracle(check *c, const shape *s, const gdn_rope_job *j, const float *x)
{
    const int width = 2 * s->n_pairs;
    double   *want = check_doubles(GDN_F32, x, s->n_heads, width, j->stride);
    double   *cos = check_doubles(GDN_F32, j->cos, 1, s->n_pairs, 0);
    double   *sin = check_doubles(GDN_F32, j->sin, 1, s->n_pairs, 0);
    for (int h = 0; h < s->n_heads; h++) {
        oracle_rope(s->n_pairs, cos, sin, want + (size_t)h * width);
        for (int i = 0; i < width; i++) {
            const size_t at = (size_t)h * j->stride + i;
            const int    other = i < s->n_pairs ? s->n_pairs : -s->n_pairs;
            const double product = (double)x[at + other] * sin[i % s->n_pairs];
            check_inside(c, "x", at, (double)j->x[at],
                         interval_f32(interval_around(want[(size_t)h * width + i],
                                                      fabs(product) * INTERVAL_U * (1.0 + 1e-6) + INTERVAL_TINY)));
        }
    }
    free(want);
    free(cos);
    free(sin);
}

static void one_case(check *c, const shape *s)
{
    gdn_rope_job tst = {.n_heads = s->n_heads, .n_pairs = s->n_pairs, .stride = 2 * (size_t)s->n_pairs + s->padding};
    const size_t n = check_extent(s->n_heads, 2 * s->n_pairs, tst.stride);
    check_case(c, "%d heads, %d pairs, padding %d, %s", s->n_heads, s->n_pairs, s->padding, check_fill_name(s->kind));
    const float *x = check_input(c, GDN_F32, n, s->kind);
    float       *cos = check_output(c, (size_t)s->n_pairs * sizeof *cos);
    float       *sin = check_output(c, (size_t)s->n_pairs * sizeof *sin);
    for (int i = 0; i < s->n_pairs; i++) {
        const double angle = rng_uniform(&c->random, -4.0f, 4.0f);
        cos[i] = (float)__builtin_cos(angle);
        sin[i] = (float)__builtin_sin(angle);
    }
    check_read_only(c, cos);
    check_read_only(c, sin);
    tst.cos = cos;
    tst.sin = sin;
    tst.x = check_copy(c, x, n * sizeof *x);
    c->tst.rope(&tst);
    for (int h = 0; h < s->n_heads; h++) /* what is not turned stays */
        if (h + 1 < s->n_heads)
            check_equal(c, "the rest", GDN_F32, tst.x + h * tst.stride + 2 * s->n_pairs,
                        x + h * tst.stride + 2 * s->n_pairs, s->padding);
    if (c->definition) {
        against_oracle(c, s, &tst, x);
        return;
    }
    gdn_rope_job ref = tst;
    ref.x = check_copy(c, x, n * sizeof *x);
    c->ref.rope(&ref);
    check_equal(c, "x", GDN_F32, tst.x, ref.x, n);
}

void check_rope(check *c)
{
    for (int pairs = 1; pairs <= 128; pairs++)
        for (int heads = 0; heads <= 8; heads++)
            for (int kind = 0; kind < FILL_COUNT; kind++) {
                shape s = {.n_heads = heads, .n_pairs = pairs, .kind = kind};
                if (rng_below(&c->random, 2)) s.padding = 1 + rng_below(&c->random, 200);
                if (check_sample(c, 16)) one_case(c, &s);
            }
}
