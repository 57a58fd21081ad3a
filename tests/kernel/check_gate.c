#include "kernel/check.h"
#include "oracle/oracle.h"

enum place { APART, OVER_A, OVER_B, PLACES };

typedef struct shape {
    int        n_rows, n, padding, swiglu;
    gdn_type   y_type;
    enum place place;
    fill       a_kind, b_kind;
} shape;

static void make_output(check *c, const shape *s, gdn_gate_job *j, const float *a, const float *b)
{
    j->a = a;
    j->b = b;
    if (s->place == OVER_A) j->a = j->y = check_copy(c, a, check_extent(s->n_rows, s->n, j->a_stride) * sizeof *a);
    else if (s->place == OVER_B) j->b = j->y = check_copy(c, b, check_extent(s->n_rows, s->n, j->b_stride) * sizeof *b);
    else j->y = check_output(c, check_extent(s->n_rows, s->n, j->y_stride) * typed_bytes(s->y_type));
}

static void one_number(check *c, const shape *s, double a, double b, double got, size_t at)
{
    const interval ai = interval_of(a), bi = interval_of(b), sigmoid = interval_sigmoid(ai);
    const interval y = interval_mul(s->swiglu ? interval_mul(ai, sigmoid) : sigmoid, bi);
    check_inside(c, "y", at, got, interval_round(s->y_type, y));
    /* In one piece: two exps, three operations in sigmoid, two products and the rounding to the type. */
    if (fabs(a) < 80.0 && fabs(b) > 1e-10 && fabs(a) > 1e-10)
        check_inside(c, "y by the equation", at, got,
                     interval_round(s->y_type, interval_widen(interval_of(oracle_gate(s->swiglu, a, b)),
                                                              2.0 * INTERVAL_EXP + 6.0 * INTERVAL_U)));
}

static void run_case(check *c, const shape *s, const float *a, const float *b)
{
    const size_t stride = (size_t)s->n + (size_t)s->padding;
    gdn_gate_job tst = {.n_rows = s->n_rows,
                        .n = s->n,
                        .y_type = s->y_type,
                        .swiglu = s->swiglu,
                        .a_stride = stride,
                        .b_stride = s->place == OVER_A ? stride + 1 : stride,
                        .y_stride = s->place == APART ? stride + 2 : stride};
    check_case(c, "%d rows of %d, padding %d, to %s, %s, place %d, a %s, b %s", s->n_rows, s->n, s->padding,
               check_type_name(s->y_type), s->swiglu ? "SwiGLU" : "gate", s->place, check_fill_name(s->a_kind),
               check_fill_name(s->b_kind));
    make_output(c, s, &tst, a, b);
    c->tst.gate(&tst);
    if (!c->definition) {
        gdn_gate_job ref = tst;
        make_output(c, s, &ref, a, b);
        c->ref.gate(&ref);
        check_equal(c, "y", s->y_type, tst.y, ref.y, check_extent(s->n_rows, s->n, tst.y_stride));
        return;
    }
    for (size_t r = 0; r < (size_t)s->n_rows; r++)
        for (size_t i = 0; i < (size_t)s->n; i++)
            one_number(c, s, (double)a[r * tst.a_stride + i], (double)b[r * tst.b_stride + i],
                       typed_get(s->y_type, tst.y, r * tst.y_stride + i), r * (size_t)s->n + i);
    if (s->place == APART) check_rows(c, "y", s->y_type, tst.y, s->n_rows, s->n, tst.y_stride);
}

/* Every bf16 value up to 2^16 as a. */
static void every_bf16(check *c, const shape *given)
{
    shape s = *given;
    s.n_rows = 1;
    s.n = 2 * 0x4780;
    float *a = check_output(c, (size_t)s.n * sizeof *a);
    for (int i = 0; i < s.n; i++) {
        const uint16_t h = (uint16_t)((i & 1) << 15 | i / 2);
        a[i] = typed_get(GDN_BF16, &h, 0);
    }
    check_read_only(c, a);
    run_case(c, &s, a, check_input(c, GDN_F32, s.n, FILL_RANDOM));
}

void check_gate(check *c)
{
    for (int variant = 0; variant < 4; variant++) {
        shape s = {.swiglu = variant & 1, .y_type = variant & 2 ? GDN_BF16 : GDN_F32};
        for (s.n = 0; s.n <= 70; s.n++)
            for (int k = 0; k < 3 * FILL_COUNT; k++) {
                s.place = s.y_type == GDN_F32 ? k / FILL_COUNT : APART;
                s.a_kind = k % FILL_COUNT;
                s.b_kind = rng_below(&c->random, FILL_COUNT);
                s.n_rows = rng_below(&c->random, 4);
                s.padding = rng_below(&c->random, 20);
                if (!check_sample(c, 8)) continue;
                const size_t n = check_extent(s.n_rows, s.n, (size_t)s.n + (size_t)s.padding + 1);
                const float *a = check_input(c, GDN_F32, n, s.a_kind);
                run_case(c, &s, a, check_input(c, GDN_F32, n, s.b_kind));
            }
        s.place = APART;
        s.a_kind = s.b_kind = FILL_RANDOM;
        every_bf16(c, &s);
    }
}
