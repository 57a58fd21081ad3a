/* The law for the operations with a memory, through the public API: what comes out depends on a sequence's tokens alone, bit
 * for bit, whatever the cut into calls, the batch, the slots, the mask, the threads, the CPU level and the caller's
 * floating-point mode.  The numbers compared with are those of level "ref", one thread, one lane, one call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "law/computes.h"
#include "support/fpmode.h"
#include "support/lanes.h"
#include "support/op.h"
#include <pthread.h>
#include <stdlib.h>

static op       ops[OP_COUNT];
static computes all;
static rng      numbers = {20260802};

static int open_all(void **unused)
{
    (void)unused;
    computes_open(&all);
    ops_open(ops, &numbers);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    ops_close(ops);
    computes_close(&all);
    return 0;
}

static void run(const op *o, gdn_compute *compute, const op_call *call)
{
    gdn_error err;
    if (op_run(o, compute, call, &err) != GDN_OK)
        fail_msg("%s, %s, %d threads: %s", o->name, gdn_compute_level(compute), gdn_compute_threads(compute),
                 err.message);
}

static void require(int holds, const op *o, const gdn_compute *compute, const char *what)
{
    if (!holds)
        fail_msg("%s, %s, %d threads: %s", o->name, gdn_compute_level(compute), gdn_compute_threads(compute), what);
}

static gdn_type state_type(const op *o) { return o->kind == OP_CONV ? o->conv.type : GDN_F32; }
static size_t   state_count(const op *o) { return o->state_bytes / typed_bytes(state_type(o)); }
static size_t   slot_stride(const op *o) { return (o->state_bytes + 3) & ~(size_t)3; }

/* ---- whole = pieces = token by token -------------------------------------------------------------------------------- */

/* The tokens of s in calls of 0 to `most` of them (of 1, if most is 1), one state in place. */
static void in_pieces(const op *o, gdn_compute *compute, const sequence *s, int most)
{
    void *state = op_alloc(slot_stride(o));
    int   first = 1, here;
    memset(state, 0xff, slot_stride(o));
    if (s->start) memcpy(state, s->start, o->state_bytes);
    for (int from = 0; from < s->n || first; from += here) {
        here = most == 1 ? 1 : rng_below(&numbers, most + 1);
        if (here > s->n - from) here = s->n - from;
        const piece p = {s, from, here};
        batch       b = batch_ragged(o, 1, &p);
        b.call.state_out = (gdn_slots){.base = state, .stride = slot_stride(o)};
        if (s->start || !first) b.call.state_in = b.call.state_out;
        run(o, compute, &b.call);
        require(batch_outputs_hold(&b), o, compute, "a piece differs from the whole");
        batch_close(&b);
        first = 0;
    }
    require(bits_equal("state", state_type(o), state, s->end, state_count(o)), o, compute, "the last state differs");
    free(state);
}

static void whole_is_pieces(void **unused)
{
    static const int lengths[] = {0, 1, 2, 7, 17, 64, 300};
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
            sequence s = sequence_open(&ops[i], all.ref, &numbers, lengths[l], l % 2 ? SEQUENCE_FRESH : 0);
            for (int c = 0; c < all.n; c++) {
                if (lengths[l] == 300 && gdn_compute_threads(all.each[c]) > 1 && c != all.n - 1) continue; /* enough */
                in_pieces(&ops[i], all.each[c], &s, 1);
                in_pieces(&ops[i], all.each[c], &s, 1 + rng_below(&numbers, 40));
                in_pieces(&ops[i], all.each[c], &s, lengths[l]);
            }
            sequence_close(&s);
        }
}

/* ---- batches -------------------------------------------------------------------------------------------------------- */

enum { LANES = 7, SLOTS = 2 * LANES };
enum arrangement {
    IN_PLACE,
    APART,
    IN_ORDER,
    ARRANGEMENTS
}; /* shuffled slots, twice; lane i in slot i, without an index */

/* Runs a batch of whole sequences with their states in slots of one array: the states that come out, the slots that are
 * only read and the bytes between slots are as they must be. */
static void check_batch(const op *o, gdn_compute *compute, batch *b, enum arrangement how)
{
    const size_t stride = slot_stride(o) + 4 * (size_t)rng_below(&numbers, 5);
    uint8_t     *memory = op_alloc(SLOTS * stride), *before = op_alloc(SLOTS * stride);
    int          slots[SLOTS];
    int32_t      in[LANES], out[LANES];
    memset(memory, 0xff, SLOTS * stride);
    for (int i = 0; i < SLOTS; i++) slots[i] = i;
    if (how != IN_ORDER) rng_shuffle(&numbers, slots, SLOTS);
    for (int i = 0; i < b->n_lanes; i++) {
        const sequence *s = b->pieces[i].s;
        in[i] = s->start ? slots[i] : -1 - rng_below(&numbers, 3);
        out[i] = how == APART ? slots[LANES + i] : slots[i];
        if (s->start) memcpy(memory + in[i] * stride, s->start, o->state_bytes);
    }
    memcpy(before, memory, SLOTS * stride);
    b->call.state_in = (gdn_slots){.base = memory, .index = in, .stride = stride};
    b->call.state_out = (gdn_slots){.base = memory, .index = how == IN_ORDER ? NULL : out, .stride = stride};
    run(o, compute, &b->call);
    require(batch_outputs_hold(b), o, compute, "a lane differs from its sequence alone");
    for (int i = 0; i < b->n_lanes; i++) {
        uint8_t *got = memory + out[i] * stride, *was = before + out[i] * stride;
        require(bits_equal("state", state_type(o), got, b->pieces[i].s->end, state_count(o)), o, compute,
                "a state differs");
        memcpy(got, was, o->state_bytes);
    }
    require(!memcmp(memory, before, SLOTS * stride), o, compute, "memory of no lane's output was written");
    free(memory);
    free(before);
}

/* LANES sequences of up to `most` tokens: one of none at all, some that start from no state. */
static void open_lanes(const op *o, sequence s[LANES], piece pieces[LANES], int most, int flags)
{
    int order[LANES];
    for (int i = 0; i < LANES; i++) {
        order[i] = i;
        s[i] = sequence_open(o, all.ref, &numbers, i < 2 ? 0 : 1 + rng_below(&numbers, most),
                             (i % 2 ? SEQUENCE_FRESH : 0) | flags);
    }
    rng_shuffle(&numbers, order, LANES);
    for (int i = 0; i < LANES; i++) pieces[i] = (piece){&s[order[i]], 0, s[order[i]].n};

    /* No token: the state stays what it was, and no state becomes zeros. */
    void *zeros = op_alloc(o->state_bytes);
    assert_int_equal(s[0].n, 0);
    assert_int_equal(s[1].n, 0);
    assert_memory_equal(s[0].end, s[0].start, o->state_bytes);
    assert_memory_equal(s[1].end, zeros, o->state_bytes);
    free(zeros);
}

static void batch_is_lanes_alone(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++)
        for (int c = 0; c < all.n; c++) {
            sequence s[LANES];
            piece    pieces[LANES];
            open_lanes(&ops[i], s, pieces, c % 3 ? 9 : 40, 0);
            for (int how = 0; how < ARRANGEMENTS; how++) {
                batch b = batch_ragged(&ops[i], how == IN_ORDER ? 1 + rng_below(&numbers, LANES) : LANES, pieces);
                check_batch(&ops[i], all.each[c], &b, how);
                batch_close(&b);
            }
            for (int lane = 0; lane < LANES; lane++) sequence_close(&s[lane]);
        }
}

static void masked_is_ragged(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++)
        for (int c = 0; c < all.n; c++) {
            sequence s[LANES];
            piece    pieces[LANES];
            open_lanes(&ops[i], s, pieces, c % 3 ? 9 : 40, 0);
            for (int style = MASK_LEFT; style <= MASK_HOLES; style++) {
                batch b = batch_masked(&ops[i], LANES, pieces, &numbers, style);
                check_batch(&ops[i], all.each[c], &b, (style + c) % ARRANGEMENTS);
                batch_close(&b);
            }
            for (int lane = 0; lane < LANES; lane++) sequence_close(&s[lane]);
        }
}

/* All rows masked, and a NULL state base: zeros come out, and outputs of 0. */
static void nothing_but_padding(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++)
        for (int c = 0; c < all.n; c++) {
            sequence     s = sequence_open(&ops[i], all.ref, &numbers, 0, SEQUENCE_FRESH);
            const piece  two[] = {{&s, 0, 0}, {&s, 0, 0}};
            batch        b = batch_masked(&ops[i], 2, two, &numbers, MASK_HOLES);
            const size_t stride = slot_stride(&ops[i]);
            uint8_t     *state = op_alloc(2 * stride), *zeros = op_alloc(stride);
            memset(state, 0xff, 2 * stride);
            b.call.state_out = (gdn_slots){.base = state, .stride = stride};
            run(&ops[i], all.each[c], &b.call);
            require(batch_outputs_hold(&b), &ops[i], all.each[c], "padding has outputs");
            assert_memory_equal(state, zeros, ops[i].state_bytes);
            assert_memory_equal(state + stride, zeros, ops[i].state_bytes);
            free(state);
            free(zeros);
            batch_close(&b);
            sequence_close(&s);
        }
}

/* No state and a state of zeros are the same thing. */
static void no_state_is_zeros(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++)
        for (int c = 0; c < all.n; c++) {
            sequence    s = sequence_open(&ops[i], all.ref, &numbers, 5, SEQUENCE_FRESH);
            const piece p = {&s, 0, s.n};
            batch       b = batch_ragged(&ops[i], 1, &p);
            void       *state = op_alloc(slot_stride(&ops[i]));
            b.call.state_in = b.call.state_out = (gdn_slots){.base = state, .stride = slot_stride(&ops[i])};
            run(&ops[i], all.each[c], &b.call);
            require(batch_outputs_hold(&b), &ops[i], all.each[c], "zeros differ from no state");
            assert_memory_equal(state, s.end, ops[i].state_bytes);
            free(state);
            batch_close(&b);
            sequence_close(&s);
        }
}

/* ---- the caller's floating-point mode, and other threads ---------------------------------------------------------- */

static size_t count_denormals(gdn_type type, const void *p, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += fpclassify(typed_get(type, p, i)) == FP_SUBNORMAL;
    return found;
}

/* s under every rounding direction, with and without flushing of denormals; the mode is the caller's again afterwards. */
static void in_every_mode(const op *o, gdn_compute *compute, const sequence *s)
{
    const fpmode own = fpmode_get();
    for (int mode = 0; mode < 2 * FPMODE_DIRECTIONS; mode++) {
        const piece  p = {s, 0, s->n};
        batch        b = batch_ragged(o, 1, &p);
        void        *state = op_alloc(slot_stride(o));
        gdn_error    err;
        const fpmode wanted = fpmode_make(mode / 2, mode % 2);
        b.call.state_in = (gdn_slots){.base = s->start, .stride = slot_stride(o)};
        b.call.state_out = (gdn_slots){.base = state, .stride = slot_stride(o)};
        fpmode_put(wanted);
        const gdn_status status = op_run(o, compute, &b.call, &err);
        const fpmode     left = fpmode_get();
        fpmode_put(own);
        assert_int_equal(status, GDN_OK);
        assert_int_equal(left, wanted);
        require(batch_outputs_hold(&b) && bits_equal("state", state_type(o), state, s->end, state_count(o)), o, compute,
                "the caller's floating-point mode changes a result");
        free(state);
        batch_close(&b);
    }
}

static void floating_point_modes(void **unused)
{
    size_t n_denormals = 0;
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++)
        for (int tiny = 0; tiny < 2; tiny++) {
            sequence s = sequence_open(&ops[i], all.ref, &numbers, 9, tiny ? SEQUENCE_TINY : 0);
            if (tiny) n_denormals += count_denormals(ops[i].y_type, s.y, s.n * ops[i].y_width) > 0;
            for (int c = 0; c < all.n; c++) in_every_mode(&ops[i], all.each[c], &s);
            sequence_close(&s);
        }
    assert_int_equal(n_denormals, OP_COUNT); /* or flushing could have changed nothing */
}

/* A compute that was opened under an odd mode: its threads, which inherit that mode, compute as others do. */
static void opened_in_another_mode(void **unused)
{
    const fpmode own = fpmode_get();
    (void)unused;
    for (int mode = 1; mode < 2 * FPMODE_DIRECTIONS; mode++) {
        gdn_compute *compute = NULL;
        fpmode_put(fpmode_make(mode / 2, mode % 2));
        const gdn_status status = gdn_compute_open(&compute, NULL, 5, NULL);
        fpmode_put(own);
        assert_int_equal(status, GDN_OK);
        for (int i = 0; i < OP_COUNT; i++) {
            sequence s[LANES];
            piece    pieces[LANES];
            open_lanes(&ops[i], s, pieces, 5, SEQUENCE_TINY);
            batch b = batch_ragged(&ops[i], LANES, pieces);
            check_batch(&ops[i], compute, &b, APART);
            batch_close(&b);
            for (int lane = 0; lane < LANES; lane++) sequence_close(&s[lane]);
        }
        gdn_compute_close(compute);
    }
}

/* Two threads with a compute each, at the same time. */
typedef struct side {
    gdn_compute    *compute;
    const sequence *s;
    int             holds;
} side;

static void *one_side(void *arg)
{
    side     *me = arg;
    const op *o = &ops[OP_MODEL];
    void     *state = op_alloc(slot_stride(o));
    me->holds = 1;
    for (int i = 0; i < 20; i++) {
        const piece p = {me->s, 0, me->s->n};
        batch       b = batch_ragged(o, 1, &p);
        b.call.state_in = (gdn_slots){.base = me->s->start, .stride = slot_stride(o)};
        b.call.state_out = (gdn_slots){.base = state, .stride = slot_stride(o)};
        me->holds &= op_run(o, me->compute, &b.call, NULL) == GDN_OK && batch_outputs_hold(&b);
        me->holds &= !memcmp(state, me->s->end, o->state_bytes);
        batch_close(&b);
    }
    free(state);
    return NULL;
}

static void computes_are_independent(void **unused)
{
    sequence  s[2];
    side      sides[2];
    pthread_t threads[2];
    (void)unused;
    for (int i = 0; i < 2; i++) {
        s[i] = sequence_open(&ops[OP_MODEL], all.ref, &numbers, 20, 0);
        sides[i] = (side){.s = &s[i]};
        assert_int_equal(gdn_compute_open(&sides[i].compute, NULL, 2, NULL), GDN_OK);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, one_side, &sides[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_true(sides[i].holds);
        gdn_compute_close(sides[i].compute);
        sequence_close(&s[i]);
    }
}

/* ---- ways to say the same ------------------------------------------------------------------------------------------- */

/* Gates computed by gdn_gates and then the rule: the bits of the fused call. */
static void fused_is_gates_then_rule(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++) {
        const op *o = &ops[i];
        if (o->kind != OP_FUSED) continue;
        sequence     s = sequence_open(o, all.ref, &numbers, 23, 0);
        const size_t Hv = o->delta.n_value_heads;
        float       *g = op_alloc(s.n * Hv * sizeof *g), *beta = op_alloc(s.n * Hv * sizeof *beta),
              *state = op_alloc(o->state_bytes);
        for (int c = 0; c < all.n; c++) {
            gdn_gates_args gates = {.n_rows = s.n,
                                    .n_value_heads = (int)Hv,
                                    .type = o->delta.ab_type,
                                    .recipe = o->delta.recipe,
                                    .a = s.in[3],
                                    .b = s.in[4],
                                    .A_log = o->delta.A_log,
                                    .dt_bias = o->delta.dt_bias,
                                    .g = g,
                                    .beta = beta};
            gdn_delta_args rule = o->delta;
            const piece    p = {&s, 0, s.n};
            batch          b = batch_ragged(o, 1, &p);
            assert_int_equal(gdn_gates(all.each[c], &gates, NULL), GDN_OK);
            rule.A_log = rule.dt_bias = NULL;
            rule.recipe = 77; /* not read */
            rule.ab_type = 77;
            rule.batch = b.call.batch;
            rule.q = s.in[0];
            rule.k = s.in[1];
            rule.v = s.in[2];
            rule.g = g;
            rule.beta = beta;
            rule.y = b.call.y;
            rule.state_in = (gdn_slots){.base = s.start, .stride = o->state_bytes};
            rule.state_out = (gdn_slots){.base = state, .stride = o->state_bytes};
            assert_int_equal(gdn_delta_rule(all.each[c], &rule, NULL), GDN_OK);
            require(batch_outputs_hold(&b), o, all.each[c], "gates and rule apart differ from the fused call");
            assert_memory_equal(state, s.end, o->state_bytes);
            batch_close(&b);
        }
        free(g);
        free(beta);
        free(state);
        sequence_close(&s);
    }
}

/* Without a y (and so without a q) the state is the same; and every number of every sequence here is finite. */
static void state_without_outputs(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++) {
        sequence s = sequence_open(&ops[i], all.ref, &numbers, 60, 0);
        for (size_t k = 0; k < s.n * ops[i].y_width; k++) assert_true(isfinite(typed_get(ops[i].y_type, s.y, k)));
        for (size_t k = 0; k < state_count(&ops[i]); k++)
            assert_true(isfinite(typed_get(state_type(&ops[i]), s.end, k)));
        void *state = op_alloc(slot_stride(&ops[i]));
        for (int c = 0; c < all.n && ops[i].kind != OP_CONV; c++) {
            op_call call = {.batch = {.n_lanes = 1, .length = s.n}};
            for (int k = 1; k < OP_INPUTS; k++) call.in[k] = s.in[k];
            call.state_in = (gdn_slots){.base = s.start, .stride = slot_stride(&ops[i])};
            call.state_out = (gdn_slots){.base = state, .stride = slot_stride(&ops[i])};
            run(&ops[i], all.each[c], &call);
            assert_memory_equal(state, s.end, ops[i].state_bytes);
        }
        free(state);
        sequence_close(&s);
    }
}

/* The heads of a tiled layer, put into the order in which a grouped one reads the same key heads. */
static void permute_heads(void *dst, const void *src, int n_rows, int Hk, int Hv, size_t head_bytes)
{
    for (int row = 0; row < n_rows; row++)
        for (int n = 0; n < Hv; n++) {
            const int grouped = n % Hk * (Hv / Hk) + n / Hk;
            memcpy((char *)dst + ((size_t)row * Hv + grouped) * head_bytes,
                   (const char *)src + ((size_t)row * Hv + n) * head_bytes, head_bytes);
        }
}

static void tiled_is_grouped_permuted(void **unused)
{
    (void)unused;
    op           tiled = ops[OP_TILED], grouped;
    const int    Hk = tiled.delta.n_key_heads, Hv = tiled.delta.n_value_heads, Dv = tiled.delta.value_dim;
    const size_t head_state = (size_t)Dv * tiled.delta.key_dim * sizeof(float);
    sequence     s = sequence_open(&tiled, all.ref, &numbers, 12, 0), want = s;
    assert_int_equal(tiled.delta.head_map, GDN_HEADS_TILED);
    assert_true(Hk > 1 && Hv / Hk > 1 && Hv / Hk != Hk);
    grouped = tiled;
    grouped.delta.head_map = GDN_HEADS_GROUPED;
    grouped.held = op_alloc(2 * (size_t)Hv * sizeof(float));
    permute_heads(grouped.held, tiled.held, 2, Hk, Hv, sizeof(float));
    grouped.delta.A_log = grouped.held;
    grouped.delta.dt_bias = grouped.held + Hv;
    for (int i = 2; i < OP_INPUTS; i++) {
        const size_t head = tiled.in_width[i] / Hv * typed_bytes(tiled.in_type[i]);
        want.in[i] = op_alloc(s.n * Hv * head);
        permute_heads(want.in[i], s.in[i], s.n, Hk, Hv, head);
    }
    want.y = op_alloc(s.n * tiled.y_width * typed_bytes(tiled.y_type));
    want.start = op_alloc(tiled.state_bytes);
    want.end = op_alloc(tiled.state_bytes);
    permute_heads(want.y, s.y, s.n, Hk, Hv, Dv * typed_bytes(tiled.y_type));
    permute_heads(want.start, s.start, 1, Hk, Hv, head_state);
    permute_heads(want.end, s.end, 1, Hk, Hv, head_state);
    for (int c = 0; c < all.n; c++) in_pieces(&grouped, all.each[c], &want, 12);
    want.in[0] = want.in[1] = NULL; /* s has them */
    sequence_close(&want);
    sequence_close(&s);
    free(grouped.held);
}

/* A state in lane order and in natural order: the same numbers, moved as delta.h says; and the two conversions. */
static void lane_order_is_a_permutation(void **unused)
{
    (void)unused;
    for (int i = 0; i < OP_COUNT; i++) {
        const op *o = &ops[i];
        if (o->kind == OP_CONV) continue;
        op           other = *o;
        const int    Dk = o->delta.key_dim;
        const size_t rows = o->state_bytes / sizeof(float) / Dk;
        sequence     s = sequence_open(o, all.ref, &numbers, 8, 0), want = s;
        void (*turn)(float *, const float *, size_t, int) = o->delta.lane_order ? lanes_to_natural : lanes_from_natural;
        void (*public_turn)(float *, const float *, size_t, int) =
            o->delta.lane_order ? gdn_rows_from_lanes : gdn_rows_to_lanes;
        float *moved = op_alloc(o->state_bytes);
        other.delta.lane_order = !o->delta.lane_order;
        want.start = op_alloc(o->state_bytes);
        want.end = op_alloc(o->state_bytes);
        turn(want.start, s.start, rows, Dk);
        turn(want.end, s.end, rows, Dk);
        public_turn(moved, s.end, rows, Dk);
        assert_memory_equal(moved, want.end, o->state_bytes);
        memcpy(moved, s.start, o->state_bytes);
        public_turn(moved, moved, rows, Dk);
        assert_memory_equal(moved, want.start, o->state_bytes);
        for (int c = 0; c < all.n; c++) in_pieces(&other, all.each[c], &want, 8);
        free(moved);
        free(want.start);
        free(want.end);
        sequence_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_is_pieces),           cmocka_unit_test(batch_is_lanes_alone),
        cmocka_unit_test(masked_is_ragged),          cmocka_unit_test(nothing_but_padding),
        cmocka_unit_test(no_state_is_zeros),         cmocka_unit_test(floating_point_modes),
        cmocka_unit_test(opened_in_another_mode),    cmocka_unit_test(computes_are_independent),
        cmocka_unit_test(fused_is_gates_then_rule),  cmocka_unit_test(state_without_outputs),
        cmocka_unit_test(tiled_is_grouped_permuted), cmocka_unit_test(lane_order_is_a_permutation),
    };
    return cmocka_run_group_tests_name("operations", tests, open_all, close_all);
}
