/* What gdn_delta_layer computes: bit for bit what the kernels' definitions give one token at a time, and what the
 * public operations give one after the other; within a bound what the mathematics say. */
#include "law/configs.h"
#include "law/run.h"
#include "oracle/oracle.h"

enum { N_LAYERS = 2, N_SLOTS = 4, LONG = 200 };

/* The naive model: one token at a time through the kernels' definitions. */
static void test_is_the_definition(void **state)
{
    enum { T = 40 };
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) {
        uint64_t tokens[T];
        stack    s;
        stack_open(&s, &configs[c], N_LAYERS, N_SLOTS, NULL, 1);
        for (unsigned t = 0; t < T; t++) tokens[t] = 70 + t;
        gdn_cache     *cache = open_lanes(&s, 1, 0);
        unsigned char *got = feed(&s, cache, &(span){70, T});
        unsigned char *lane = law_alloc(s.model.lane_bytes), *y = law_alloc(N_LAYERS * T * row_bytes(&s));
        law_run(&s.model, tokens, T, lane, y);
        assert_memory_equal(got, y, N_LAYERS * T * row_bytes(&s));
        for (int layer = 0; layer < N_LAYERS; layer++) {
            const float *held;
            const void  *tail;
            gdn_cache_peek(cache, 0, layer, &held, &tail);
            assert_memory_equal(held, law_state(&s.model, lane, layer), s.model.n_state * sizeof(float));
            assert_memory_equal(tail, law_tail(&s.model, lane, layer), s.model.n_tail * s.model.type_bytes);
        }
        free(lane);
        free(y);
        free(got);
        gdn_cache_close(cache);
        stack_close(&s, N_SLOTS);
    }
}

/* Three lanes with memory of their own; lane i's is at index[i]. */
enum { OP_LANES = 3 };
static const int     op_tokens[OP_LANES] = {17, 0, 64};
static const int32_t op_index[OP_LANES] = {2, 0, 1};

typedef struct op_memory {
    size_t         n_rows;
    law_rows       rows;
    unsigned char *conv, *v, *o, *y, *tails;
    float         *q, *k, *g, *beta, *states;
} op_memory;

static op_memory op_memory_alloc(const law_model *m)
{
    op_memory    x = {.n_rows = (size_t)(op_tokens[0] + op_tokens[1] + op_tokens[2])};
    const size_t n = x.n_rows, n_keys = (size_t)(m->config.n_key_heads * m->config.key_dim),
                 hv = (size_t)m->config.n_value_heads;
    size_t row = 0;
    x.rows = law_rows_alloc(m, n);
    for (int i = 0; i < OP_LANES; i++)
        for (int t = 0; t < op_tokens[i]; t++) law_token_row(m, 0, 1000u * (unsigned)i + (unsigned)t, &x.rows, row++);
    x.conv = law_alloc(n * m->n_channels * m->type_bytes);
    x.v = law_alloc(n * m->n_z * m->type_bytes);
    x.o = law_alloc(n * m->n_z * m->type_bytes);
    x.y = law_alloc(n * m->n_z * m->type_bytes);
    x.tails = law_alloc(OP_LANES * m->n_tail * m->type_bytes);
    x.q = law_alloc(n * n_keys * sizeof(float));
    x.k = law_alloc(n * n_keys * sizeof(float));
    x.g = law_alloc(n * hv * sizeof(float));
    x.beta = law_alloc(n * hv * sizeof(float));
    x.states = law_alloc(OP_LANES * m->n_state * sizeof(float));
    return x;
}

static void op_memory_free(op_memory *x)
{
    void *const all[] = {x->conv, x->v, x->o, x->y, x->tails, x->q, x->k, x->g, x->beta, x->states};
    law_rows_free(&x->rows);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void op_conv_and_norms(stack *s, op_memory *x, const gdn_batch *batch)
{
    const law_model        *m = &s->model;
    const gdn_delta_config *c = &m->config;
    const size_t            n_keys = (size_t)(c->n_key_heads * c->key_dim);
    const gdn_slots         none = {0}, tails = {x->tails, op_index, m->n_tail * m->type_bytes};
    const gdn_conv_args     conv = {.batch = *batch,
                                    .n_channels = (int)m->n_channels,
                                    .n_taps = c->n_taps,
                                    .type = c->type,
                                    .recipe = c->recipe,
                                    .x = x->rows.qkv,
                                    .w = m->weights[0].conv,
                                    .tail_in = none,
                                    .tail_out = tails,
                                    .y = x->conv};
    assert_ok(gdn_conv_silu(s->compute, &conv, &ok_err));
    gdn_qk_norm_args norm = {.n_rows = (int)x->n_rows,
                             .n_heads = c->n_key_heads,
                             .dim = c->key_dim,
                             .x_type = c->type,
                             .y_type = GDN_F32,
                             .form = c->qk_norm,
                             .eps = c->qk_eps,
                             .is_query = 1,
                             .x = x->conv,
                             .x_stride = m->n_channels,
                             .y = x->q};
    assert_ok(gdn_qk_norm(s->compute, &norm, &ok_err));
    norm.is_query = 0;
    norm.x = x->conv + n_keys * m->type_bytes;
    norm.y = x->k;
    assert_ok(gdn_qk_norm(s->compute, &norm, &ok_err));
    for (size_t r = 0; r < x->n_rows; r++)
        memcpy(x->v + r * m->n_z * m->type_bytes, x->conv + (r * m->n_channels + 2 * n_keys) * m->type_bytes,
               m->n_z * m->type_bytes);
}

static void op_rule_and_norm(stack *s, op_memory *x, const gdn_batch *batch, bool fused, bool lane_order)
{
    const law_model        *m = &s->model;
    const gdn_delta_config *c = &m->config;
    const gdn_gates_args    gates = {.n_rows = (int)x->n_rows,
                                     .n_value_heads = c->n_value_heads,
                                     .type = c->type,
                                     .recipe = c->recipe,
                                     .a = x->rows.a,
                                     .b = x->rows.b,
                                     .A_log = m->weights[0].A_log,
                                     .dt_bias = m->weights[0].dt_bias,
                                     .g = x->g,
                                     .beta = x->beta};
    gdn_delta_args          rule = {.batch = *batch,
                                    .n_key_heads = c->n_key_heads,
                                    .n_value_heads = c->n_value_heads,
                                    .key_dim = c->key_dim,
                                    .value_dim = c->value_dim,
                                    .head_map = c->head_map,
                                    .qk_type = GDN_F32,
                                    .v_type = c->type,
                                    .y_type = c->type,
                                    .ab_type = c->type,
                                    .recipe = c->recipe,
                                    .q = x->q,
                                    .k = x->k,
                                    .v = x->v,
                                    .lane_order = lane_order,
                                    .state_out = {x->states, op_index, m->n_state * sizeof(float)},
                                    .y = x->o};
    if (fused) {
        rule.a = x->rows.a;
        rule.b = x->rows.b;
        rule.A_log = m->weights[0].A_log;
        rule.dt_bias = m->weights[0].dt_bias;
    } else {
        assert_ok(gdn_gates(s->compute, &gates, &ok_err));
        rule.g = x->g;
        rule.beta = x->beta;
    }
    assert_ok(gdn_delta_rule(s->compute, &rule, &ok_err));
    if (!lane_order)
        gdn_rows_to_lanes(x->states, x->states, OP_LANES * (size_t)(c->n_value_heads * c->value_dim), c->key_dim);
    const gdn_gated_norm_args norm = {.n_rows = (int)x->n_rows * c->n_value_heads,
                                      .dim = c->value_dim,
                                      .type = c->type,
                                      .recipe = c->recipe,
                                      .eps = m->weights[0].norm_eps,
                                      .o = x->o,
                                      .z = x->rows.z,
                                      .w = m->weights[0].norm,
                                      .y = x->y};
    assert_ok(gdn_gated_norm(s->compute, &norm, &ok_err));
}

static void test_is_the_composition_of_the_operations(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++)
        for (int form = 0; form < 4; form++) {
            const gdn_batch batch = {.n_lanes = OP_LANES, .n_tokens = op_tokens};
            stack           s;
            stack_open(&s, &configs[c], 1, N_SLOTS, NULL, 1 + form % 2);
            op_memory            x = op_memory_alloc(&s.model);
            gdn_cache           *cache = open_lanes(&s, OP_LANES, 0);
            unsigned char       *y = law_alloc(x.n_rows * row_bytes(&s));
            const gdn_layer_args args = {
                .batch = batch, .qkv = x.rows.qkv, .z = x.rows.z, .a = x.rows.a, .b = x.rows.b, .y = y};
            assert_ok(gdn_delta_layer(s.compute, cache, 0, &s.model.weights[0], &args, &ok_err));
            op_conv_and_norms(&s, &x, &batch);
            op_rule_and_norm(&s, &x, &batch, form / 2, form % 2);
            assert_memory_equal(x.y, y, x.n_rows * row_bytes(&s));
            for (int i = 0; i < OP_LANES; i++) {
                const float *held;
                const void  *tail;
                gdn_cache_peek(cache, i, 0, &held, &tail);
                assert_int_equal(!held, op_tokens[i] == 0);
                if (!held) continue;
                assert_memory_equal(held, x.states + (size_t)op_index[i] * s.model.n_state,
                                    s.model.n_state * sizeof(float));
                assert_memory_equal(tail, x.tails + (size_t)op_index[i] * s.model.n_tail * s.model.type_bytes,
                                    s.model.n_tail * s.model.type_bytes);
            }
            free(y);
            gdn_cache_close(cache);
            op_memory_free(&x);
            stack_close(&s, N_SLOTS);
        }
}

static double *doubles(gdn_type type, const void *x, size_t n)
{
    double *d = malloc(n * sizeof *d);
    for (size_t i = 0; i < n; i++) d[i] = (double)typed_get(type, x, i);
    return d;
}

/* Rows of T tokens of layer 0 through the oracle: y, tail and state in double. */
static void oracle_run(const law_model *m, int n, const law_rows *rows, double *tail, double *state, double *y)
{
    const gdn_delta_config  *c = &m->config;
    const gdn_delta_weights *w = &m->weights[0];
    const size_t             N = (size_t)n, hv = (size_t)c->n_value_heads;
    double *const            arrays[] = {doubles(GDN_F32, w->conv, m->n_channels * (size_t)c->n_taps),
                                         doubles(GDN_F32, w->A_log, hv),
                                         doubles(GDN_F32, w->dt_bias, hv),
                                         doubles(GDN_F32, w->norm, (size_t)c->value_dim),
                                         doubles(c->type, rows->qkv, N * m->n_channels),
                                         doubles(c->type, rows->z, N * m->n_z),
                                         doubles(c->type, rows->a, N * hv),
                                         doubles(c->type, rows->b, N * hv)};
    const oracle_form        forms[] = {
               [GDN_QK_NORM_SUM] = ORACLE_SUM, [GDN_QK_NORM_RMS] = ORACLE_RMS, [GDN_QK_NORM_MAX] = ORACLE_MAX};
    const oracle_layer layer = {.n_key_heads = c->n_key_heads,
                                .n_value_heads = c->n_value_heads,
                                .key_dim = c->key_dim,
                                .value_dim = c->value_dim,
                                .n_taps = c->n_taps,
                                .tiled = c->head_map == GDN_HEADS_TILED,
                                .form = forms[c->qk_norm],
                                .qk_eps = (double)c->qk_eps,
                                .norm_eps = (double)w->norm_eps,
                                .conv = arrays[0],
                                .A_log = arrays[1],
                                .dt_bias = arrays[2],
                                .norm = arrays[3]};
    memset(tail, 0, m->n_tail * sizeof *tail);
    memset(state, 0, m->n_state * sizeof *state);
    oracle_layer_run(&layer, n, arrays[4], arrays[5], arrays[6], arrays[7], tail, state, y);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

/* Errors of rows of n values, in units of the rounding of the type, each as a part of the largest value of its row:
 * the norms at the ends of a layer divide by the root mean square of a head, and so make relative errors of a head
 * of what they are. */
typedef struct errors {
    double worst, mean_square;
} errors;

static errors row_errors(gdn_type type, gdn_type unit, const void *got, const double *want, size_t n_rows, size_t n)
{
    errors e = {0};
    for (size_t row = 0; row < n_rows; row++) {
        double largest = 0, error = 0;
        for (size_t i = row * n; i < (row + 1) * n; i++) {
            largest = fmax(largest, fabs(want[i]));
            error = fmax(error, fabs((double)typed_get(type, got, i) - want[i]));
        }
        error /= largest * (unit == GDN_BF16 ? 0x1p-8 : 0x1p-24);
        e.worst = fmax(e.worst, error);
        e.mean_square += error * error / (double)n_rows;
    }
    return e;
}

/* Against the mathematics, which round nowhere, over LONG tokens.  The bounds are about twice what is measured: a
 * head whose output nearly cancels is off by tens of units, all heads together by 1 to 4. */
static void check_mathematics(const gdn_delta_config *config)
{
    const double worst = config->type == GDN_BF16 ? 32 : 128, rms = config->type == GDN_BF16 ? 4 : 8;
    stack        s;
    stack_open(&s, config, 1, N_SLOTS, NULL, 1);
    const law_model *m = &s.model;
    const size_t     dv = (size_t)config->value_dim, dk = (size_t)config->key_dim;
    double          *tail = malloc(m->n_tail * sizeof *tail), *S = malloc(m->n_state * sizeof *S);
    double          *y = malloc(LONG * m->n_z * sizeof *y);
    unsigned char   *got = law_alloc(LONG * row_bytes(&s));
    float           *natural = law_alloc(m->n_state * sizeof(float));
    law_rows         rows = law_rows_alloc(m, LONG);
    gdn_cache       *cache = open_lanes(&s, 1, 0);
    const float     *held;
    const void      *held_tail;
    for (size_t t = 0; t < LONG; t++) law_token_row(m, 0, 5 + t, &rows, t);
    oracle_run(m, LONG, &rows, tail, S, y);
    assert_ok(feed_layer(&s, cache, 0, &(span){5, LONG}, got, &ok_err));
    gdn_cache_peek(cache, 0, 0, &held, &held_tail);
    gdn_rows_from_lanes(natural, held, m->n_state / dk, config->key_dim);

    const errors in_y = row_errors(config->type, config->type, got, y, LONG * m->n_z / dv, dv);
    const errors in_S = row_errors(GDN_F32, config->type, natural, S, m->n_state / dk, dk);
    if (in_y.worst > worst || in_S.worst > worst || in_y.mean_square > rms * rms || in_S.mean_square > rms * rms)
        fail_msg("Dk %d, type %d: y is off by up to %g units (rms %g), the state by %g (rms %g)", config->key_dim,
                 config->type, in_y.worst, sqrt(in_y.mean_square), in_S.worst, sqrt(in_S.mean_square));
    for (size_t i = 0; i < m->n_tail; i++) assert_true((double)typed_get(config->type, held_tail, i) == tail[i]);
    free(tail);
    free(S);
    free(y);
    free(got);
    free(natural);
    law_rows_free(&rows);
    gdn_cache_close(cache);
    stack_close(&s, N_SLOTS);
}

static void test_is_the_mathematics(void **state)
{
    (void)state;
    for (int c = 0; c < N_CONFIGS; c++) check_mathematics(&configs[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_the_definition),
        cmocka_unit_test(test_is_the_composition_of_the_operations),
        cmocka_unit_test(test_is_the_mathematics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
