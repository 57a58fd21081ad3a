/* gdn_delta_rule: the recurrence over a batch.  A task is a lane and a strip of its units; a unit is up to four value heads of
 * one key head. */
#include "device/check.h"
#include "device/compute.h"
#include <string.h>

#define REFUSE(at, ...) return gdn_fail(err, GDN_BAD_ARGUMENT, at, __VA_ARGS__)

typedef struct rule_call {
    const gdn_delta_args *args;
    const gdn_compute    *compute;
    int                   heads, n_groups, n_strips; /* value heads of a unit; units of a key head; strips of a lane */
} rule_call;

/* The value heads of one unit: n of them, the first and the step to the next. */
typedef struct rule_heads {
    int key, n, first, step;
} rule_heads;

static rule_heads heads_of_unit(const rule_call *call, int unit)
{
    const gdn_delta_args *const a = call->args;
    const int                   per_key = a->n_value_heads / a->n_key_heads, key = unit / call->n_groups;
    const int i = unit % call->n_groups * call->heads, n = per_key - i < call->heads ? per_key - i : call->heads;
    return (rule_heads){key, n, gdn_value_head(a->head_map, a->n_key_heads, a->n_value_heads, key, i),
                        a->head_map == GDN_HEADS_TILED ? a->n_key_heads : 1};
}

/* Point the job's gates at token `row`: the caller's, or ones made here. */
static void set_gates(const rule_call *call, gdn_scratch *scratch, gdn_delta_job *job, const rule_heads *h, size_t row)
{
    const gdn_delta_args *const a = call->args;
    const size_t                Hv = a->n_value_heads, at = row * Hv + h->first;
    if (a->g) {
        const size_t width = a->vector_gate ? a->key_dim : 1;
        job->g = a->g + at * width;
        job->g_stride = Hv * width;
        job->g_head = h->step * width;
        job->beta = a->beta + at;
        job->beta_stride = Hv;
        job->beta_head = h->step;
        return;
    }
    const gdn_gates_tile tile = {
        .type = a->ab_type,
        .recipe = a->recipe,
        .a = gdn_at(a->ab_type, a->a, row * Hv),
        .b = gdn_at(a->ab_type, a->b, row * Hv),
        .A_log = a->A_log,
        .dt_bias = a->dt_bias,
        .stride = Hv,
        .n_tokens = job->n_tokens,
        .n_heads = h->n,
        .head = h->first,
        .step = h->step,
    };
    gdn_gates_of_tile(call->compute, scratch, &tile);
    job->g = scratch->a;
    job->beta = scratch->b;
    job->g_stride = job->beta_stride = h->n;
    job->g_head = job->beta_head = 1;
}

/* A lane without tokens keeps its state: it moves from in to out. */
static void move_states(const gdn_delta_job *job)
{
    const size_t bytes = (size_t)job->value_dim * job->key_dim * sizeof(float);
    for (int i = 0; i < job->n_heads; i++) {
        float *const out = job->state_out + (size_t)i * job->state_head;
        if (!job->state_in) memset(out, 0, bytes);
        else if (job->state_in != job->state_out) memcpy(out, job->state_in + (size_t)i * job->state_head, bytes);
    }
}

/* A run of one lane's rows through one unit. */
static void unit_run(const rule_call *call, gdn_scratch *scratch, int lane, int unit, size_t row, int n,
                     const float *in)
{
    const gdn_delta_args *const a = call->args;
    const rule_heads            h = heads_of_unit(call, unit);
    const size_t                Hv = a->n_value_heads, Dk = a->key_dim, Dv = a->value_dim, state = h.first * Dv * Dk;

    gdn_delta_job job = {
        .n_tokens = n,
        .n_heads = h.n,
        .key_dim = a->key_dim,
        .value_dim = a->value_dim,
        .qk_type = a->qk_type,
        .v_type = a->v_type,
        .y_type = a->y_type,
        .q = a->q ? gdn_at(a->qk_type, a->q, (row * a->n_key_heads + h.key) * Dk) : NULL,
        .k = gdn_at(a->qk_type, a->k, (row * a->n_key_heads + h.key) * Dk),
        .qk_stride = a->n_key_heads * Dk,
        .v = gdn_at(a->v_type, a->v, (row * Hv + h.first) * Dv),
        .v_stride = Hv * Dv,
        .v_head = h.step * Dv,
        .vector_gate = a->vector_gate,
        .lane_order = a->lane_order,
        .state_in = in ? in + state : NULL,
        .state_out = (float *)gdn_slot_out(&a->state_out, lane) + state,
        .state_head = h.step * Dv * Dk,
        .y = a->y ? gdn_at_out(a->y_type, a->y, (row * Hv + h.first) * Dv) : NULL,
        .y_stride = Hv * Dv,
        .y_head = h.step * Dv,
        .work = scratch->delta,
    };
    if (n == 0) {
        move_states(&job);
        return;
    }
    set_gates(call, scratch, &job, &h, row);
    call->compute->kernels.delta(&job);
}

static void rule_task(void *arg, int task, int thread)
{
    const rule_call *const      call = arg;
    const gdn_delta_args *const a = call->args;
    const int n_units = a->n_key_heads * call->n_groups, strip = task % call->n_strips, lane = task / call->n_strips;
    const int unit0 = strip * n_units / call->n_strips, unit1 = (strip + 1) * n_units / call->n_strips;
    const int n_rows = gdn_batch_rows(&a->batch, lane);
    const uint8_t *const mask = a->batch.mask ? a->batch.mask + (size_t)lane * a->batch.length : NULL;
    const float         *in = gdn_slot_in(&a->state_in, lane);
    const size_t         row0 = gdn_first_row(&a->batch, lane);

    gdn_run run = gdn_next_run(mask, n_rows, 0, GDN_TILE_TOKENS);
    do { /* once also for a lane without rows: its state moves from in to out */
        for (int unit = unit0; unit < unit1; unit++)
            unit_run(call, &call->compute->scratch[thread], lane, unit, row0 + run.first, run.n, in);
        in = gdn_slot_out(&a->state_out, lane);
        run = gdn_next_run(mask, n_rows, run.first + run.n, GDN_TILE_TOKENS);
    } while (run.n > 0);

    for (int t = 0; mask && a->y && t < n_rows; t++)
        for (int unit = unit0; unit < unit1 && !mask[t]; unit++) {
            const rule_heads h = heads_of_unit(call, unit);
            for (int i = 0; i < h.n; i++) {
                const size_t at = ((row0 + t) * a->n_value_heads + h.first + (size_t)i * h.step) * a->value_dim;
                memset(gdn_at_out(a->y_type, a->y, at), 0, a->value_dim * gdn_type_bytes(a->y_type));
            }
        }
}

static gdn_status rule_check(const gdn_delta_args *a, gdn_error *err)
{
    static const char who[] = "delta_rule";
    gdn_status        s;
    if ((s = gdn_batch_check(&a->batch, err)) != GDN_OK) return s;
    if ((s = gdn_heads_check(who, a->n_key_heads, a->n_value_heads, a->head_map, err)) != GDN_OK) return s;
    if ((s = gdn_dim_check(who, "key_dim", a->key_dim, err)) != GDN_OK) return s;
    if ((s = gdn_dim_check(who, "value_dim", a->value_dim, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->qk_type, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->v_type, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, a->y_type, err)) != GDN_OK) return s;
    if (!a->k || !a->v || (a->y && !a->q)) REFUSE(0, "delta_rule: k, v, or q with a y is NULL");
    if (a->g ? !a->beta : !a->a || !a->b || !a->A_log || !a->dt_bias)
        REFUSE(0, "delta_rule: give g and beta, or a, b, A_log and dt_bias");
    if (!a->g) {
        if (a->vector_gate) REFUSE(0, "delta_rule: a vector gate must be given as g");
        if ((s = gdn_type_check(who, a->ab_type, err)) != GDN_OK) return s;
        if ((s = gdn_recipe_check(who, a->recipe, err)) != GDN_OK) return s;
    }
    const size_t bytes = (size_t)a->n_value_heads * a->value_dim * a->key_dim * sizeof(float);
    return gdn_slots_check(who, &a->state_in, &a->state_out, a->batch.n_lanes, bytes, err);
}

gdn_status gdn_delta_rule(gdn_compute *compute, const gdn_delta_args *a, gdn_error *err)
{
    if (!compute || !a) REFUSE(0, "delta_rule: compute or args is NULL");
    const gdn_status s = rule_check(a, err);
    if (s != GDN_OK) return s;
    const int per_key = a->n_value_heads / a->n_key_heads, threads = gdn_threads_count(compute->threads);
    rule_call call = {a, compute, per_key < GDN_TILE_HEADS ? per_key : GDN_TILE_HEADS, 0, 0};
    if (a->batch.n_lanes * a->n_key_heads < threads) call.heads = 1; /* few key heads: split their value heads */
    call.n_groups = (per_key + call.heads - 1) / call.heads;
    call.n_strips = gdn_strips(compute, a->batch.n_lanes, a->n_key_heads * call.n_groups);
    gdn_threads_run(compute->threads, a->batch.n_lanes * call.n_strips, rule_task, &call);
    return GDN_OK;
}
