/* The law for the operations without a memory, through the public API: a row's numbers depend on that row alone, whatever
 * the rows beside it, the threads, the CPU level, the place of the output and the caller's floating-point mode; and they are
 * what the oracle says, scales and heads included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oracle/oracle.h"
#include "law/computes.h"
#include "support/fpmode.h"
#include "support/lanes.h"
#include "support/op.h"
#include <stdlib.h>

static computes all;
static rng      numbers = {20260803};

static int open_all(void **unused)
{
    (void)unused;
    computes_open(&all);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    computes_close(&all);
    return 0;
}

/* n numbers of `type`, a few of them extreme; the denormals among them matter to the tests of modes. */
static void *fill(gdn_type type, size_t n)
{
    void *p = op_alloc(n * typed_bytes(type));
    for (size_t i = 0; i < n; i++) {
        const int kind = rng_below(&numbers, 32);
        typed_set(type, p, i,
                  kind == 0   ? 0.0
                  : kind == 1 ? 9e3
                  : kind < 4  ? 1e-39 * (double)rng_normal(&numbers)
                              : (double)rng_normal(&numbers));
    }
    return p;
}

/* Runs call(arg) with every rounding direction, flushing and not; it must succeed and leave the mode alone. */
static void in_mode(int mode, gdn_status (*call)(gdn_compute *, const void *), gdn_compute *compute, const void *arg)
{
    const fpmode own = fpmode_get(), wanted = fpmode_make(mode / 2, mode % 2);
    fpmode_put(wanted);
    const gdn_status status = call(compute, arg);
    const fpmode     left = fpmode_get();
    fpmode_put(own);
    assert_int_equal(status, GDN_OK);
    assert_int_equal(left, wanted);
}

/* Close to the oracle: some 30 roundings of f32, or three of bf16; and half a bf16 denormal (2^-134) times 9e3 twice (w, silu). */
static void assert_close(gdn_type type, double got, double want)
{
    const double bound = fabs(want) * (type == GDN_BF16 ? 3.0 * 0x1p-8 : 30.0 * 0x1p-24) + 0x1p-106;
    if (!(fabs(got - want) <= bound)) fail_msg("%.9g, the oracle says %.9g", got, want);
}

/* ---- q/k norm ------------------------------------------------------------------------------------------------------- */

static gdn_status call_qk_norm(gdn_compute *compute, const void *arg) { return gdn_qk_norm(compute, arg, NULL); }

static void one_qk_norm(const gdn_qk_norm_args *shape, int mode)
{
    static const oracle_form forms[] = {
        [GDN_QK_NORM_SUM] = ORACLE_SUM, [GDN_QK_NORM_RMS] = ORACLE_RMS, [GDN_QK_NORM_MAX] = ORACLE_MAX};
    gdn_qk_norm_args a = *shape;
    const size_t D = a.dim, width = a.n_heads * D, stride = a.x_stride ? a.x_stride : width, xb = typed_bytes(a.x_type);
    const size_t yb = typed_bytes(a.y_type), y_bytes = a.n_rows * width * yb;
    void        *x = fill(a.x_type, a.n_rows * stride), *want = op_alloc(y_bytes), *y = op_alloc(y_bytes);
    double       row[256];
    for (int r = 0; r < a.n_rows; r++)
        for (int h = 0; h < a.n_heads; h++) { /* each alone, by the definition */
            gdn_qk_norm_args one = a;
            one.n_rows = one.n_heads = 1;
            one.x_stride = 0;
            one.x = (char *)x + (r * stride + h * D) * xb;
            one.y = (char *)want + (r * width + h * D) * yb;
            assert_int_equal(gdn_qk_norm(all.ref, &one, NULL), GDN_OK);
            for (size_t i = 0; i < D; i++) row[i] = typed_get(a.x_type, one.x, i);
            oracle_norm(forms[a.form], a.dim, (double)a.eps, row, row);
            for (size_t i = 0; i < D; i++)
                assert_close(a.x_type == GDN_BF16 && a.form == GDN_QK_NORM_RMS ? GDN_BF16 : a.y_type,
                             typed_get(a.y_type, one.y, i), row[i] * oracle_qk_scale(forms[a.form], a.dim, a.is_query));
        }
    for (int c = 0; c < all.n; c++) {
        memset(y, 0xa5, y_bytes);
        a.x = x;
        a.y = y;
        in_mode(mode, call_qk_norm, all.each[c], &a);
        assert_true(bits_equal("qk_norm", a.y_type, y, want, a.n_rows * width));
        if (a.x_type != a.y_type || a.x_stride) continue;
        memcpy(y, x, y_bytes);
        a.x = y;
        in_mode(mode, call_qk_norm, all.each[c], &a);
        assert_true(bits_equal("qk_norm in place", a.y_type, y, want, a.n_rows * width));
    }
    free(x);
    free(want);
    free(y);
}

static void qk_norm(void **unused)
{
    int mode = 0;
    (void)unused;
    for (int form = 0; form < 3; form++)
        for (int types = 0; types < 4; types++)
            for (int variant = 0; variant < 8; variant++) {
                const gdn_qk_norm_args a = {
                    .n_rows = variant % 4 == 3 ? 70 : variant % 4, /* 0, 1, 2, 70 */
                    .n_heads = 1 + variant % 3,
                    .dim = variant == 5  ? 256
                           : variant % 2 ? 32
                                         : 128,
                    .x_type = types & 1 ? GDN_BF16 : GDN_F32,
                    .y_type = types & 2 ? GDN_BF16 : GDN_F32,
                    .form = form,
                    .eps = 1e-6f,
                    .is_query = variant < 4,
                    .x_stride = variant % 3 ? 0 : 777,
                };
                one_qk_norm(&a, mode++ % (2 * FPMODE_DIRECTIONS));
            }
}

/* ---- gates ---------------------------------------------------------------------------------------------------------- */

static gdn_status call_gates(gdn_compute *compute, const void *arg) { return gdn_gates(compute, arg, NULL); }

static void one_gates(gdn_type type, gdn_recipe recipe, int n_rows, int n_heads, int mode)
{
    const size_t n = (size_t)n_rows * n_heads;
    void        *a = fill(type, n), *b = fill(type, n);
    float       *A_log = op_alloc(n_heads * sizeof *A_log), *dt_bias = op_alloc(n_heads * sizeof *dt_bias);
    float       *want = op_alloc(2 * n * sizeof *want), *got = op_alloc(2 * n * sizeof *got);
    for (int h = 0; h < n_heads; h++) {
        A_log[h] = rng_uniform(&numbers, -1.0f, 2.0f);
        dt_bias[h] = rng_uniform(&numbers, -3.0f, 1.0f);
    }
    for (size_t i = 0; i < n; i++) {
        const size_t         h = i % n_heads, at = i * typed_bytes(type);
        const gdn_gates_args one = {.n_rows = 1,
                                    .n_value_heads = 1,
                                    .type = type,
                                    .recipe = recipe,
                                    .a = (char *)a + at,
                                    .b = (char *)b + at,
                                    .A_log = A_log + h,
                                    .dt_bias = dt_bias + h,
                                    .g = want + i,
                                    .beta = want + n + i};
        assert_int_equal(gdn_gates(all.ref, &one, NULL), GDN_OK);
        if (recipe == GDN_RECIPE_MLX && type == GDN_BF16)
            continue; /* test_mlx.c and check_gates.c know its roundings */
        const double x = typed_get(type, a, i), g = oracle_decay(x, (double)A_log[h], (double)dt_bias[h]);
        /* log g has 30 roundings at most, exp turns them into as many of g times |log g| */
        assert_true(fabs((double)want[i] - g) <= g * (-log(g < 1e-300 ? 1e-300 : g) + 1.0) * 30.0 * 0x1p-24 + 0x1p-130);
        assert_close(GDN_F32, (double)want[n + i], oracle_beta(typed_get(type, b, i)));
    }
    const gdn_gates_args args = {.n_rows = n_rows,
                                 .n_value_heads = n_heads,
                                 .type = type,
                                 .recipe = recipe,
                                 .a = a,
                                 .b = b,
                                 .A_log = A_log,
                                 .dt_bias = dt_bias,
                                 .g = got,
                                 .beta = got + n};
    for (int c = 0; c < all.n; c++) {
        memset(got, 0xa5, 2 * n * sizeof *got);
        in_mode(mode, call_gates, all.each[c], &args);
        assert_true(bits_equal("g and beta", GDN_F32, got, want, 2 * n));
    }
    free(a);
    free(b);
    free(A_log);
    free(dt_bias);
    free(want);
    free(got);
}

static void gates(void **unused)
{
    static const int rows[] = {0, 1, 2, 17, 100}, heads[] = {1, 3, 16, 48, 65};
    int              mode = 0;
    (void)unused;
    for (int variant = 0; variant < 4; variant++)
        for (int i = 0; i < 25; i++)
            one_gates(variant & 1 ? GDN_BF16 : GDN_F32, variant & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF, rows[i % 5],
                      heads[i / 5], mode++ % (2 * FPMODE_DIRECTIONS));
}

/* ---- gated norm ----------------------------------------------------------------------------------------------------- */

static gdn_status call_gated_norm(gdn_compute *compute, const void *arg) { return gdn_gated_norm(compute, arg, NULL); }

static void one_gated_norm(const gdn_gated_norm_args *shape, int mode)
{
    gdn_gated_norm_args a = *shape;
    const size_t        n = (size_t)a.n_rows * a.dim, bytes = n * typed_bytes(a.type);
    void               *o = fill(a.type, n), *z = fill(a.type, n), *want = op_alloc(bytes), *y = op_alloc(bytes);
    float              *w = fill(GDN_F32, a.dim);
    double              od[256], zd[256], wd[256], yd[256];
    a.w = w;
    for (int r = 0; r < a.n_rows; r++) {
        gdn_gated_norm_args one = a;
        const size_t        at = (size_t)r * a.dim * typed_bytes(a.type);
        one.n_rows = 1;
        one.o = (char *)o + at;
        one.z = (char *)z + at;
        one.y = (char *)want + at;
        assert_int_equal(gdn_gated_norm(all.ref, &one, NULL), GDN_OK);
        for (int i = 0; i < a.dim; i++) {
            od[i] = typed_get(a.type, one.o, i);
            zd[i] = typed_get(a.type, one.z, i);
            wd[i] = (double)w[i];
        }
        oracle_gated_norm(a.dim, (double)a.eps, od, zd, wd, yd);
        for (int i = 0; i < a.dim; i++) assert_close(a.type, typed_get(a.type, one.y, i), yd[i]);
    }
    for (int c = 0; c < all.n; c++)
        for (int place = 0; place < 3; place++) { /* apart, over o, over z */
            if (place) memcpy(y, place == 1 ? o : z, bytes);
            else memset(y, 0xa5, bytes);
            a.o = place == 1 ? y : o;
            a.z = place == 2 ? y : z;
            a.y = y;
            in_mode(mode, call_gated_norm, all.each[c], &a);
            assert_true(bits_equal("gated_norm", a.type, y, want, n));
        }
    free(o);
    free(z);
    free(want);
    free(y);
    free(w);
}

static void gated_norm(void **unused)
{
    static const int rows[] = {0, 1, 2, 15, 16, 17, 130};
    int              mode = 0;
    (void)unused;
    for (int variant = 0; variant < 4; variant++)
        for (int dim = 32; dim <= 256; dim += dim < 128 ? 32 : 128)
            for (int i = 0; i < 7; i++) {
                const gdn_gated_norm_args a = {.n_rows = rows[i],
                                               .dim = dim,
                                               .type = variant & 1 ? GDN_BF16 : GDN_F32,
                                               .recipe = variant & 2 ? GDN_RECIPE_MLX : GDN_RECIPE_HF,
                                               .eps = 1e-6f};
                one_gated_norm(&a, mode++ % (2 * FPMODE_DIRECTIONS));
            }
}

/* ---- conversions ---------------------------------------------------------------------------------------------------- */

static void bf16(void **unused)
{
    enum { N = 1 << 16 };
    static const uint16_t low[] = {0x0000, 0x0001, 0x7fff, 0x8000, 0x8001, 0xffff};
    uint16_t             *h = op_alloc(N * sizeof *h), *back = op_alloc(N * sizeof *back);
    float                *f = op_alloc(N * sizeof *f);
    (void)unused;
    for (int i = 0; i < N; i++) h[i] = (uint16_t)i;
    gdn_f32_from_bf16(f, h, N);
    for (int i = 0; i < N; i++) {
        uint32_t bits;
        memcpy(&bits, &f[i], sizeof bits);
        assert_int_equal(bits, (uint32_t)i << 16);
    }
    for (size_t l = 0; l < sizeof low / sizeof low[0]; l++) {
        for (int i = 0; i < N; i++) {
            const uint32_t bits = (uint32_t)i << 16 | low[l];
            memcpy(&f[i], &bits, sizeof bits);
        }
        gdn_bf16_from_f32(back, f, N);
        for (int i = 0; i < N; i++) {
            uint16_t want;
            typed_set(GDN_BF16, &want, 0, (double)f[i]);
            if (isnan(f[i])) assert_true((back[i] & 0x7fff) > 0x7f80);
            else assert_int_equal(back[i], want);
        }
    }
    for (size_t n = 0; n < 70; n++) { /* no more than n are written */
        memset(back, 0xa5, N * sizeof *back);
        gdn_bf16_from_f32(back, f, n);
        assert_int_equal(back[n], 0xa5a5);
        memset(f, 0xa5, N * sizeof *f);
        gdn_f32_from_bf16(f, h, n);
        assert_memory_equal(&f[n], back + n, sizeof *f);
        for (int i = 0; i < N; i++) f[i] = 1.0f;
    }
    free(h);
    free(back);
    free(f);
}

static void conv_pack(void **unused)
{
    enum { C = 5, K = 3 };
    (void)unused;
    for (int type = 0; type < 2; type++) {
        void *stored = fill(type, C * K);
        float w[K * C + 1];
        w[K * C] = 7.0f;
        gdn_conv_pack(w, stored, type, C, K);
        for (int c = 0; c < C; c++)
            for (int k = 0; k < K; k++) assert_true(w[k * C + c] == typed_get(type, stored, c * K + k));
        assert_true(w[K * C] == 7.0f);
        free(stored);
    }
}

/* Every dimension: each float moves to the place that delta.h states, apart and in place, and back. */
static void rows_to_lanes(void **unused)
{
    enum { ROWS = 3, MOST = ROWS * 256 };
    (void)unused;
    for (int dim = 32; dim <= 256; dim += 32) {
        float     natural[MOST], lanes[MOST], got[MOST];
        const int bytes = ROWS * dim * (int)sizeof(float);
        for (int i = 0; i < ROWS * dim; i++) natural[i] = (float)i;
        lanes_from_natural(lanes, natural, ROWS, dim);
        gdn_rows_to_lanes(got, natural, ROWS, dim);
        assert_memory_equal(got, lanes, bytes);
        gdn_rows_from_lanes(got, got, ROWS, dim);
        assert_memory_equal(got, natural, bytes);
        gdn_rows_to_lanes(got, got, ROWS, dim);
        assert_memory_equal(got, lanes, bytes);
        gdn_rows_from_lanes(got, lanes, ROWS, dim);
        assert_memory_equal(got, natural, bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qk_norm), cmocka_unit_test(gates),     cmocka_unit_test(gated_norm),
        cmocka_unit_test(bf16),    cmocka_unit_test(conv_pack), cmocka_unit_test(rows_to_lanes),
    };
    return cmocka_run_group_tests_name("row operations", tests, open_all, close_all);
}
