#include "kernel/check.h"
#include "oracle/oracle.h"
#include "support/lanes.h"
#include <stdlib.h>

enum state_kind { STATE_NONE, STATE_APART, STATE_IN_PLACE, STATE_KINDS };
enum gate_kind { GATE_RANDOM, GATE_ONE, GATE_ZERO, GATE_VANISHING, GATE_MIXED, GATE_KINDS };
enum key_kind { KEY_RANDOM, KEY_ZERO, KEY_ONE_HOT, KEY_TINY, KEY_MIXED, KEY_KINDS };

typedef struct shape {
    int             key_dim, value_dim, n_tokens, n_heads, vector_gate, lane_order, want_y, padding;
    gdn_type        qk_type, v_type, y_type;
    enum state_kind state;
    enum gate_kind  gate, beta;
    enum key_kind   key;
    fill            v_kind, state_fill;
} shape;

/* A decay or beta in [0, 1]; exp(-90) is a denormal. */
static float pick_gate(check *c, enum gate_kind kind)
{
    if (kind == GATE_MIXED) kind = rng_below(&c->random, GATE_MIXED);
    switch (kind) {
    case GATE_ONE: return 1.0f;
    case GATE_ZERO: return 0.0f;
    case GATE_VANISHING: return (float)exp(-90.0 + rng_below(&c->random, 4));
    default:
        return rng_below(&c->random, 4) ? rng_uniform(&c->random, 0.9f, 1.0f) : rng_uniform(&c->random, 0.0f, 1.0f);
    }
}

static const float *gates(check *c, size_t n, enum gate_kind kind)
{
    float *p = check_output(c, n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = pick_gate(c, kind);
    check_read_only(c, p);
    return p;
}

/* Rows of at most unit length, as a norm leaves them (or zero, where it saw nothing but zeros). */
static const void *keys(check *c, const shape *s, size_t stride)
{
    float row[GDN_MAX_DIM];
    void *p = check_output(c, typed_bytes(s->qk_type) * check_extent(s->n_tokens, s->key_dim, stride));
    for (int t = 0; t < s->n_tokens; t++) {
        const enum key_kind kind = s->key == KEY_MIXED ? (enum key_kind)rng_below(&c->random, KEY_MIXED) : s->key;
        double              length = 1e-6;
        for (int i = 0; i < s->key_dim; i++) {
            row[i] = kind == KEY_RANDOM ? rng_normal(&c->random)
                     : kind == KEY_TINY ? check_pick(c, FILL_TINY)
                                        : check_pick(c, FILL_ZEROS);
            length += (double)row[i] * row[i];
        }
        if (kind == KEY_ONE_HOT) row[rng_below(&c->random, s->key_dim)] = rng_below(&c->random, 2) ? 1.0f : -1.0f;
        for (int i = 0; i < s->key_dim; i++)
            typed_set(s->qk_type, p, t * stride + i, kind == KEY_RANDOM ? row[i] / sqrt(length) : (double)row[i]);
    }
    check_read_only(c, p);
    return p;
}

/* Strides of T and of heads, with padding between tokens, heads and states. */
static gdn_delta_job make_inputs(check *c, const shape *s, const float **state)
{
    const int     pad = s->padding, gate_dim = s->vector_gate ? s->key_dim : 1;
    gdn_delta_job j = {.n_tokens = s->n_tokens,
                       .n_heads = s->n_heads,
                       .key_dim = s->key_dim,
                       .value_dim = s->value_dim,
                       .qk_type = s->qk_type,
                       .v_type = s->v_type,
                       .y_type = s->y_type,
                       .vector_gate = s->vector_gate,
                       .lane_order = s->lane_order,
                       .qk_stride = (size_t)s->key_dim + pad,
                       .v_head = (size_t)s->value_dim + pad,
                       .g_head = (size_t)gate_dim + pad,
                       .beta_head = 1 + (size_t)pad,
                       .y_head = (size_t)s->value_dim + 2 * pad,
                       .state_head = (size_t)s->value_dim * s->key_dim + pad};
    j.v_stride = s->n_heads * j.v_head + pad;
    j.g_stride = s->n_heads * j.g_head + pad;
    j.beta_stride = s->n_heads * j.beta_head + pad;
    j.y_stride = s->n_heads * j.y_head;
    j.k = keys(c, s, j.qk_stride);
    j.q = s->want_y ? keys(c, s, j.qk_stride) : NULL;
    const size_t last = s->n_tokens - 1, heads = s->n_heads - 1;
    j.v = check_input(c, s->v_type, last * j.v_stride + heads * j.v_head + s->value_dim, s->v_kind);
    j.g = gates(c, last * j.g_stride + heads * j.g_head + gate_dim, s->gate);
    j.beta = gates(c, last * j.beta_stride + heads * j.beta_head + 1, s->beta);
    *state = check_input(c, GDN_F32, heads * j.state_head + (size_t)s->value_dim * s->key_dim, s->state_fill);
    return j;
}

static size_t state_extent(const gdn_delta_job *j)
{
    return check_extent(j->n_heads, j->value_dim * j->key_dim, j->state_head);
}
static size_t y_extent(const gdn_delta_job *j)
{
    return check_extent(j->n_tokens * j->n_heads, j->value_dim, j->y_head);
}

static void make_outputs(check *c, const shape *s, gdn_delta_job *j, const float *state)
{
    const size_t bytes = state_extent(j) * sizeof(float);
    j->work =
        check_output(c, GDN_DELTA_WORK * sizeof(float)); /* a multiple of 64 bytes: aligned at either end of a slot */
    j->y = s->want_y ? check_output(c, typed_bytes(s->y_type) * y_extent(j)) : NULL;
    if (s->state == STATE_IN_PLACE) {
        j->state_out = check_copy(c, state, bytes);
        j->state_in = j->state_out;
    } else {
        j->state_out = check_output(c, bytes);
        j->state_in = s->state == STATE_APART ? state : NULL;
    }
}

static void check_outputs(check *c, const shape *s, const gdn_delta_job *j)
{
    if (s->want_y) check_rows(c, "y", s->y_type, j->y, s->n_tokens * s->n_heads, s->value_dim, j->y_head);
    if (s->state != STATE_IN_PLACE)
        check_rows(c, "state", GDN_F32, j->state_out, s->n_heads, s->value_dim * s->key_dim, j->state_head);
}

/* The one token t of head h from the float state `before`, by the oracle; the definition's result of that token is in
 * `after` and `y`.  Roundings, with p = Dk/32 + 5 in a dot and terms as oracle_delta_terms adds them up:
 *   g*S 1, m p more, v - m 1, times beta 1, fma 1:   p + 4 of the state's terms (and the dot's own products are exact)
 *   y p more on every element of the state:          2p + 4 of y's terms
 * and each of the few operations an element passes through may lose a denormal, times at most Dk of them in a dot. */
static void token_against_oracle(check *c, const gdn_delta_job *j, int t, int h, const float *before,
                                 const float *after)
{
    const int    Dk = j->key_dim, Dv = j->value_dim, p = Dk / 32 + 5, gate_dim = j->vector_gate ? Dk : 1;
    const size_t n = (size_t)Dv * Dk;
    double *k = check_doubles(j->qk_type, (const char *)j->k + t * j->qk_stride * typed_bytes(j->qk_type), 1, Dk, Dk);
    double *q =
        check_doubles(j->qk_type, (const char *)(j->q ? j->q : j->k) + t * j->qk_stride * typed_bytes(j->qk_type), 1,
                      Dk, Dk);
    const size_t v_at = t * j->v_stride + h * j->v_head;
    double      *v = check_doubles(j->v_type, (const char *)j->v + v_at * typed_bytes(j->v_type), 1, Dv, Dv);
    double      *g = check_doubles(GDN_F32, j->g + t * j->g_stride + h * j->g_head, 1, gate_dim, gate_dim);
    double *state = check_doubles(GDN_F32, before, 1, (int)n, n), *terms = check_doubles(GDN_F32, before, 1, (int)n, n);
    double *y = calloc(2 * (size_t)Dv, sizeof *y), *y_terms = y + Dv;
    const double       beta = j->beta[t * j->beta_stride + h * j->beta_head];
    const oracle_delta rule = {.n_tokens = 1,
                               .n_key_heads = 1,
                               .n_value_heads = 1,
                               .key_dim = Dk,
                               .value_dim = Dv,
                               .vector_gate = j->vector_gate,
                               .q = q,
                               .k = k,
                               .v = v,
                               .g = g,
                               .beta = &beta};
    if (!y) abort();
    oracle_delta_rule(&rule, state, y);
    oracle_delta_terms(&rule, terms, y_terms);
    const double u = INTERVAL_U * (1.0 + 1e-5); /* second order: (p + 4)^2 U^2 and less */
    const double tiny = INTERVAL_TINY * Dk;
    for (size_t i = 0; i < n; i++)
        check_inside(c, "state", i, after[i], interval_around(state[i], (p + 4) * u * terms[i] + tiny));
    for (int i = 0; i < Dv && j->y; i++)
        check_inside(c, "y", i, typed_get(j->y_type, j->y, t * j->y_stride + h * j->y_head + i),
                     interval_round(j->y_type, interval_around(y[i], (2 * p + 4) * u * y_terms[i] + tiny * Dk)));
    free(k);
    free(q);
    free(v);
    free(g);
    free(state);
    free(terms);
    free(y);
}

/* The job of token t and head h alone, on states of its own in natural order. */
static gdn_delta_job one_token(const gdn_delta_job *whole, int t, int h, const float *before, float *after)
{
    gdn_delta_job one = *whole;
    one.n_tokens = one.n_heads = 1;
    one.k = (const char *)one.k + t * one.qk_stride * typed_bytes(one.qk_type);
    one.v = (const char *)one.v + (t * one.v_stride + h * one.v_head) * typed_bytes(one.v_type);
    one.g += t * one.g_stride + h * one.g_head;
    one.beta += t * one.beta_stride + h * one.beta_head;
    one.lane_order = 0;
    one.state_in = before;
    one.state_out = after;
    one.y = NULL;
    return one;
}

/* Token by token, each from the float state that the one before it left: one rounding bound a token, never a product of
 * them; and the call over all tokens must have the bits of these calls of one. */
static void against_oracle(check *c, const gdn_delta_job *whole, const float *state)
{
    const int    Dk = whole->key_dim, Dv = whole->value_dim;
    const size_t size = (size_t)Dv * Dk;
    float       *before = calloc(3 * size, sizeof *before), *after = before + size, *last = after + size;
    if (!before) abort();
    for (int h = 0; h < whole->n_heads; h++) {
        const float *in = state + h * whole->state_head, *out = whole->state_out + h * whole->state_head;
        memset(before, 0, size * sizeof *before);
        memcpy(last, out, size * sizeof *last);
        if (whole->lane_order) lanes_to_natural(last, out, Dv, Dk);
        if (whole->state_in && whole->lane_order) lanes_to_natural(before, in, Dv, Dk);
        else if (whole->state_in) memcpy(before, in, size * sizeof *before);
        for (int t = 0; t < whole->n_tokens; t++) {
            const gdn_delta_job one = one_token(whole, t, h, before, after);
            c->ref.delta(&one);
            token_against_oracle(c, whole, t, h, before, after);
            memcpy(before, after, size * sizeof *before);
        }
        check_equal(c, "state, token by token,", GDN_F32, last, before, size);
    }
    free(before);
}

static void one_case(check *c, const shape *s)
{
    const float  *state;
    gdn_delta_job tst = make_inputs(c, s, &state);
    check_case(c,
               "Dk %d, Dv %d, T %d, heads %d, padding %d, order %d, qk %s, v %s, y %s, %s gate %d, beta %d, key %d, v "
               "%s, state %d %s",
               s->key_dim, s->value_dim, s->n_tokens, s->n_heads, s->padding, s->lane_order,
               check_type_name(s->qk_type), check_type_name(s->v_type), s->want_y ? check_type_name(s->y_type) : "none",
               s->vector_gate ? "vector" : "scalar", s->gate, s->beta, s->key, check_fill_name(s->v_kind), s->state,
               check_fill_name(s->state_fill));
    make_outputs(c, s, &tst, state);
    c->tst.delta(&tst);
    check_outputs(c, s, &tst);
    if (c->definition) {
        against_oracle(c, &tst, state);
        return;
    }
    gdn_delta_job ref = tst;
    make_outputs(c, s, &ref, state);
    c->ref.delta(&ref);
    check_equal(c, "state", GDN_F32, tst.state_out, ref.state_out, state_extent(&tst));
    if (s->want_y) check_equal(c, "y", s->y_type, tst.y, ref.y, y_extent(&tst));
}

/* Every second case is plain (random keys, gates, values), the others draw from all the extremes. */
static shape draw(check *c, int key_dim, int value_dim, int turn)
{
    static const int tokens[] = {1, 2, 3, 15, 16, 17, 33, 100};
    rng             *r = &c->random;
    shape            s = {.key_dim = key_dim, .value_dim = value_dim, .n_tokens = tokens[turn % 8]};
    s.n_heads = s.n_tokens > 33 ? 1 : 1 + rng_below(r, s.n_tokens > 17 ? 2 : 4);
    s.qk_type = rng_below(r, 2);
    s.v_type = rng_below(r, 2);
    s.y_type = rng_below(r, 2);
    s.vector_gate = rng_below(r, 2);
    s.lane_order = rng_below(r, 2);
    s.want_y = rng_below(r, 6) != 0;
    s.padding = rng_below(r, 2) ? 1 + rng_below(r, 20) : 0;
    s.state = rng_below(r, STATE_KINDS);
    if (rng_below(r, 2)) {
        s.gate = rng_below(r, GATE_KINDS);
        s.beta = rng_below(r, GATE_KINDS);
        s.key = rng_below(r, KEY_KINDS);
        s.v_kind = rng_below(r, FILL_COUNT);
        s.state_fill = rng_below(r, FILL_COUNT);
    }
    return s;
}

void check_delta(check *c)
{
    static const int key_dims[] = {32, 64, 96, 128, 128, 128, 160, 192, 224, 256};
    static const int value_dims[] = {4, 12, 32, 36, 64, 96, 100, 128, 128, 160, 192, 224, 252, 256};
    int              turn = 0;
    for (size_t k = 0; k < sizeof key_dims / sizeof key_dims[0]; k++)
        for (size_t v = 0; v < sizeof value_dims / sizeof value_dims[0]; v++) {
            const int rounds = c->definition ? 2 : 10, at = turn++;
            for (int i = 0; i < rounds; i++) {
                const shape s = draw(c, key_dims[k], value_dims[v], at + i);
                if (check_sample(c, 16)) one_case(c, &s);
            }
        }
}
