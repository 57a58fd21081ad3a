/* A mixture of experts.  Each row picks its own; rows of one expert are gathered, so that its matrices are read once, and what
 * comes out goes back to the rows.  Sums have one order, experts by ascending id, so that a row's bits do not depend on the rows
 * beside it. */
#include "device/compute.h"
#include "kernel/math.h"
#include "model/forward.h"
#include <string.h>

enum { TASK_ROWS = 16 };

typedef struct moe_call {
    const gdn_pass        *f;
    const gdn_moe_weights *moe;
    int                    n_slots; /* of routed experts; the shared one's follow */
} moe_call;

static int least(int a, int b) { return a < b ? a : b; }

/* Run `task` over n rows or slots, TASK_ROWS at a time. */
static void run(moe_call *call, int n, gdn_task_fn *task)
{
    gdn_threads_run(call->f->compute->threads, (n + TASK_ROWS - 1) / TASK_ROWS, task, call);
}

/* ---- routing ---- */

/* The k largest of s[n], the lower id of equal ones, ids ascending; returns the largest of s. */
static float choose(const float *s, int n, int k, int *ids)
{
    int n_chosen = 0;
    for (int e = 0; e < n; e++) {
        if (n_chosen == k && !(s[e] > s[ids[k - 1]])) continue;
        int at = n_chosen < k ? n_chosen++ : k - 1;
        for (; at > 0 && s[e] > s[ids[at - 1]]; at--) ids[at] = ids[at - 1];
        ids[at] = e;
    }
    const float top = s[ids[0]];
    for (int i = 1; i < k; i++) {
        const int id = ids[i];
        int       at = i;
        for (; at > 0 && ids[at - 1] > id; at--) ids[at] = ids[at - 1];
        ids[at] = id;
    }
    return top;
}

/* Softmax over all, of which the chosen are kept; or, which is the same when they are made to sum to 1, over the chosen. */
static void route_task(void *arg, int task, int thread)
{
    (void)thread;
    const moe_call *const         call = arg;
    const gdn_model_config *const c = &call->f->m->config;
    const gdn_moe_space *const    w = &call->f->w->moe;
    const int                     E = c->n_experts, k = c->n_experts_used;
    for (int row = task * TASK_ROWS; row < least(call->f->n_rows, (task + 1) * TASK_ROWS); row++) {
        const float *const s = call->f->w->p[0] + (size_t)row * gdn_output_stride((size_t)E);
        int *const         ids = w->chosen + (size_t)row * k;
        float *const       weight = w->weight + (size_t)row * k;
        const float        top = choose(s, E, k, ids);
        float              sum = 0;
        for (int i = 0; i < k; i++) {
            weight[i] = gdn_expf(s[ids[i]] - top);
            if (c->norm_topk_prob) sum += weight[i];
        }
        for (int e = 0; e < E && !c->norm_topk_prob; e++) sum += gdn_expf(s[e] - top);
        for (int i = 0; i < k; i++) weight[i] /= sum;
    }
}

/* A slot for each choice, the slots of an expert together and its rows ascending. */
static void group(const moe_call *call)
{
    const gdn_model_config *const c = &call->f->m->config;
    const gdn_moe_space *const    w = &call->f->w->moe;
    const int                     E = c->n_experts, k = c->n_experts_used;
    memset(w->first, 0, ((size_t)E + 1) * sizeof *w->first);
    for (int i = 0; i < call->n_slots; i++) w->first[w->chosen[i] + 1]++;
    for (int e = 0; e < E; e++) w->first[e + 1] += w->first[e];
    for (int i = 0; i < call->n_slots; i++) { /* first[e] moves to the end of e ... */
        w->slot[i] = w->first[w->chosen[i]]++;
        w->row[w->slot[i]] = i / k;
    }
    memmove(w->first + 1, w->first, (size_t)E * sizeof *w->first); /* ... which is where e + 1 begins */
    w->first[0] = 0;
}

/* ---- experts ---- */

static void gather_task(void *arg, int task, int thread)
{
    (void)thread;
    const moe_call *const      call = arg;
    const gdn_moe_space *const w = &call->f->w->moe;
    const size_t               h = (size_t)call->f->m->config.hidden_size;
    for (int s = task * TASK_ROWS; s < least(call->n_slots, (task + 1) * TASK_ROWS); s++)
        memcpy(w->in + (size_t)s * h, call->f->w->u + (size_t)w->row[s] * gdn_input_stride(h), h * sizeof *w->in);
}

/* Products of every expert that has rows: what it makes of gate and up, or with down. */
static void products(const moe_call *call, bool down)
{
    const gdn_pass *const      f = call->f;
    const gdn_moe_space *const w = &f->w->moe;
    const int                  E = f->m->config.n_experts;
    const size_t               h = (size_t)f->m->config.hidden_size, W = w->width;
    int                        n = 0;
    for (int e = 0; e <= E; e++) {
        const gdn_mlp_weights *const m = &call->moe->experts[e];
        const size_t                 slot = (size_t)(e < E ? w->first[e] : call->n_slots);
        const int                    n_rows = e < E ? w->first[e + 1] - w->first[e] : f->n_rows;
        if (n_rows == 0) continue;
        w->products[n++] = down ? (gdn_product){.linear = &m->down,
                                                .n_rows = n_rows,
                                                .x = w->act + slot * W,
                                                .x_stride = W,
                                                .y = w->out + slot * h,
                                                .y_stride = h}
                                : (gdn_product){.linear = &m->gate,
                                                .up = &m->up,
                                                .n_rows = n_rows,
                                                .x = e < E ? w->in + slot * h : f->w->u,
                                                .x_stride = e < E ? h : gdn_input_stride(h),
                                                .act = w->act + slot * W,
                                                .act_stride = W};
    }
    gdn_dense_products(f->compute, w->products, n);
}

/* x += y of one row:  y = 0, then y + weight*expert for each chosen one, ascending, then y + sigmoid(gate)*shared; every
 * product and every sum is rounded. */
static void add_row(const moe_call *call, size_t row)
{
    enum { RUN = 32 }; /* h is a multiple of it */
    const gdn_model_config *const c = &call->f->m->config;
    const gdn_moe_space *const    w = &call->f->w->moe;
    const size_t                  h = (size_t)c->hidden_size, k = (size_t)c->n_experts_used;
    const float                   shared = gdn_sigmoidf(call->f->w->p[1][row]);
    for (size_t from = 0; from < h; from += RUN) {
        float y[RUN] = {0}, *const x = call->f->w->x + row * h + from;
        for (size_t i = 0; i <= k; i++) {
            const size_t       slot = i < k ? (size_t)w->slot[row * k + i] : (size_t)call->n_slots + row;
            const float        weight = i < k ? w->weight[row * k + i] : shared;
            const float *const out = w->out + slot * h + from;
            for (int j = 0; j < RUN; j++) y[j] += weight * out[j];
        }
        for (int j = 0; j < RUN; j++) x[j] += y[j];
    }
}

static void add_task(void *arg, int task, int thread)
{
    (void)thread;
    const moe_call *const call = arg;
    for (int row = task * TASK_ROWS; row < least(call->f->n_rows, (task + 1) * TASK_ROWS); row++)
        add_row(call, (size_t)row);
}

void gdn_moe(const gdn_pass *f, const gdn_moe_weights *moe)
{
    const gdn_model_config *const c = &f->m->config;
    gdn_workspace *const          w = f->w;
    const size_t                  h = (size_t)c->hidden_size, E = (size_t)c->n_experts;
    moe_call                      call = {f, moe, f->n_rows * c->n_experts_used};
    const gdn_product u = {.n_rows = f->n_rows, .split = f->split, .x = w->u, .x_stride = gdn_input_stride(h)};
    gdn_product       scores[2] = {u, u};
    scores[0].linear = &moe->router;
    scores[0].y = w->p[0];
    scores[0].y_stride = gdn_output_stride(E);
    scores[1].linear = &moe->shared_gate;
    scores[1].y = w->p[1];
    scores[1].y_stride = 1;
    gdn_dense_products(f->compute, scores, 2);
    run(&call, f->n_rows, route_task);
    group(&call);
    run(&call, call.n_slots, gather_task);
    products(&call, false);
    products(&call, true);
    run(&call, f->n_rows, add_task);
}
