/* wrong_calls.h - calls outside their contract: each must return its documented error and leave the world as it is,
 * which the checks after every operation then see. */
#ifndef LAW_WRONG_CALLS_H
#define LAW_WRONG_CALLS_H
#include "law/machine.h"
#include <stdint.h>

/* ---- the layer --------------------------------------------------------------------------------------------------- */

typedef struct layer_call {
    int            layer, n_tokens[MAX_LANES + 1];
    uint8_t        mask[MAX_LANES + 1];
    gdn_layer_args args;
} layer_call;

/* One token for every lane; then something about it is made wrong. */
static inline bool refuse_layer(world *w, cache *c, gdn_status want, void (*spoil)(const world *, layer_call *))
{
    gdn_error  err;
    law_rows   rows = law_rows_alloc(&w->model, MAX_LANES + 1);
    void      *y = law_alloc((MAX_LANES + 1) * w->model.n_z * w->model.type_bytes);
    layer_call call = {.args = {.qkv = rows.qkv, .z = rows.z, .a = rows.a, .b = rows.b, .y = y}};
    for (size_t i = 0; i <= MAX_LANES; i++) {
        law_token_row(&w->model, 0, 1 + i, &rows, i);
        call.n_tokens[i] = 1;
        call.mask[i] = 1;
    }
    call.args.batch = (gdn_batch){.n_lanes = c->n, .n_tokens = call.n_tokens};
    spoil(w, &call);
    const gdn_delta_weights *weights = &w->model.weights[0];
    refused(w, "a wrong layer call", want, gdn_delta_layer(w->compute, c->real, call.layer, weights, &call.args, &err),
            &err);
    law_rows_free(&rows);
    free(y);
    return true;
}

static inline void spoil_lanes(const world *w, layer_call *call) { (void)w, call->args.batch.n_lanes++; }
static inline void spoil_layer(const world *w, layer_call *call) { call->layer = w->model.n_layers; }
static inline void spoil_count(const world *w, layer_call *call) { (void)w, call->n_tokens[0] = -1; }
static inline void spoil_mask(const world *w, layer_call *call) { (void)w, call->args.batch.mask = call->mask; }
static inline void spoil_qkv(const world *w, layer_call *call) { (void)w, call->args.qkv = NULL; }
static inline void spoil_y(const world *w, layer_call *call) { (void)w, call->args.y = NULL; }
static inline void spoil_length(const world *w, layer_call *call)
{
    (void)w;
    call->args.batch.n_tokens = NULL;
    call->args.batch.length = -1;
}

static inline void spoil_nothing(const world *w, layer_call *call) { (void)w, (void)call; }

/* In a recorded round every layer has run, and runs once only. */
static bool wrong_layer(world *w, cache *c, uint32_t word)
{
    static void (*const spoils[])(const world *, layer_call *) = {spoil_lanes, spoil_layer, spoil_count, spoil_mask,
                                                                  spoil_qkv,   spoil_y,     spoil_length};
    if (c->n == 0) return false;
    if (c->recorded && word % 2) return refuse_layer(w, c, GDN_BAD_STATE, spoil_nothing);
    return refuse_layer(w, c, GDN_BAD_ARGUMENT, spoils[word / 2 % 7]);
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

static bool wrong_add(world *w, cache *c, uint32_t word)
{
    gdn_error     err;
    const int     n = word % 3 == 0 ? -1 : word % 3 == 1 ? c->max_lanes - c->n + 1 : 1;
    const int64_t offset = word % 3 == 2 ? -1 : 0;
    if (c->armed && c->n < c->max_lanes)
        refused(w, "add in a round", GDN_BAD_STATE, gdn_cache_add(c->real, 1, 0, &err), &err);
    refused(w, "add: a wrong count or offset", GDN_BAD_ARGUMENT, gdn_cache_add(c->real, n, offset, &err), &err);
    return true;
}

static bool wrong_filter(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    const int last = c->n - 1, wrong[][2] = {{0, c->n}, {-1, 0}, {last, last}, {last, 0}};
    const int first[] = {0};
    if (c->n == 0) return false;
    if (c->armed) refused(w, "filter in a round", GDN_BAD_STATE, gdn_cache_filter(c->real, first, 1, &err), &err);
    else refused(w, "filter: wrong rows", GDN_BAD_ARGUMENT, gdn_cache_filter(c->real, wrong[word % 4], 2, &err), &err);
    return true;
}

static bool wrong_extract(world *w, cache *c, uint32_t word)
{
    gdn_error  err;
    gdn_cache *out = NULL;
    const int  li = c->n ? (int)(word % (unsigned)c->n) : 0;
    if (c->armed) {
        refused(w, "extract in a round", GDN_BAD_STATE, gdn_cache_extract(c->real, li, &out, &err), &err);
    } else {
        if (c->n && c->lanes[li]->now.n == 0)
            refused(w, "extract without a state", GDN_BAD_STATE, gdn_cache_extract(c->real, li, &out, &err), &err);
        refused(w, "extract: no such lane", GDN_BAD_ARGUMENT, gdn_cache_extract(c->real, c->n, &out, &err), &err);
        refused(w, "extract: no such lane", GDN_BAD_ARGUMENT, gdn_cache_extract(c->real, -1, &out, &err), &err);
    }
    if (out) failed(w, "a refused extract made a cache");
    return true;
}

static bool wrong_merge(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    cache    *src = w->caches[word % (unsigned)w->n_caches];
    bool      bad_state = c->armed || src->armed;
    for (int i = 0; i < src->n; i++) bad_state = bad_state || src->lanes[i]->now.n == 0;
    const bool argument = src == c || c->n + src->n > c->max_lanes;
    if (src != c && argument == bad_state) return false; /* nothing is wrong, or two things are */
    refused(w, "a wrong merge", argument ? GDN_BAD_ARGUMENT : GDN_BAD_STATE, gdn_cache_merge(c->real, src->real, &err),
            &err);
    return true;
}

static bool wrong_trim(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    refused(w, "trim", GDN_NOT_TRIMMABLE, gdn_cache_trim(c->real, (int64_t)(word % 5), &err), &err);
    if (!strstr(err.message, "gdn_round")) failed(w, "trim does not name the round operations: %.200s", err.message);
    return true;
}

/* ---- padding and counting ---------------------------------------------------------------------------------------- */

static bool wrong_prepare(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    int       values[MAX_LANES] = {0};
    if (c->n == 0) return false;
    const int *good = word % 3 == 0 ? values : NULL;
    if (word % 3 == 2) values[c->n - 1] = -1;
    refused(w, "prepare: both, none or negative", GDN_BAD_ARGUMENT,
            gdn_cache_prepare(c->real, word % 3 == 2 ? values : good, good, &err), &err);
    return true;
}

static bool wrong_advance(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    int       counts[MAX_LANES] = {0};
    if (c->n == 0) return false;
    if (word % 2) {
        refused(w, "advance by -1", GDN_BAD_ARGUMENT, gdn_cache_advance(c->real, -1, NULL, &err), &err);
    } else if (c->padded) {
        bool used_up = true; /* a padding that has been used up may count as none */
        for (int i = 0; i < c->n; i++) used_up = used_up && c->lanes[i]->skip == 0 && c->lanes[i]->limit < 0;
        if (used_up) return false;
        refused(w, "advance_rows with padding", GDN_BAD_STATE, gdn_cache_advance_rows(c->real, counts, &err), &err);
    } else {
        counts[c->n - 1] = -1;
        refused(w, "advance_rows by -1", GDN_BAD_ARGUMENT, gdn_cache_advance_rows(c->real, counts, &err), &err);
    }
    return true;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static bool wrong_begin(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    bool      padding = false; /* still ahead: one that has been used up may count as none */
    (void)word;
    for (int i = 0; i < c->n; i++) padding = padding || c->lanes[i]->skip || c->lanes[i]->limit >= 0;
    if (c->max_window && c->n && !padding) return false;
    refused(w, "begin without rounds or lanes, or with padding", GDN_BAD_STATE, gdn_round_begin(c->real, &err), &err);
    return true;
}

static bool wrong_resolve(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    const int keep[MAX_LANES] = {0};
    if (c->recorded) return false;
    const gdn_status status =
        word % 2 ? gdn_round_commit(c->real, &err) : gdn_round_rollback(w->compute, c->real, keep, 1, &err);
    refused(w, c->armed ? "resolve before a forward" : "resolve without a round", GDN_BAD_STATE, status, &err);
    return true;
}

static bool wrong_keep(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    int       keep[MAX_LANES + 1] = {0}, n = c->n;
    if (!c->recorded) return false;
    const int li = (int)(word / 8 % (unsigned)c->n);
    if (word % 4 == 0) keep[li] = -1;
    else if (word % 4 == 1) keep[li] = lane_window(c, li) + 1;
    else if (word % 4 == 2) n = c->n + 1;
    else n = 0;
    refused(w, "rollback: a wrong keep", GDN_BAD_ARGUMENT, gdn_round_rollback(w->compute, c->real, keep, n, &err),
            &err);
    return true;
}

/* ---- snapshots and other pools ----------------------------------------------------------------------------------- */

static bool wrong_take(world *w, cache *c, uint32_t word)
{
    gdn_error     err;
    gdn_snapshot *out = NULL;
    const int     li = c->n ? (int)(word % (unsigned)c->n) : 0;
    if (c->n && (c->lanes[li]->now.n == 0 || c->recorded))
        refused(w, "take without a state, or in a round", GDN_BAD_STATE, gdn_snapshot_take(&out, c->real, li, &err),
                &err);
    else refused(w, "take: no such lane", GDN_BAD_ARGUMENT, gdn_snapshot_take(&out, c->real, c->n, &err), &err);
    if (out) failed(w, "a refused take made a snapshot");
    return true;
}

static bool wrong_restore(world *w, cache *c, uint32_t word)
{
    gdn_error err;
    if (w->n_snapshots == 0) return false;
    const int li = word % 2 ? -1 : c->n;
    if (c->recorded)
        refused(w, "restore in a round", GDN_BAD_STATE, gdn_snapshot_restore(c->real, 0, w->snapshots[0].real, &err),
                &err);
    refused(w, "restore: no such lane", GDN_BAD_ARGUMENT, gdn_snapshot_restore(c->real, li, w->snapshots[0].real, &err),
            &err);
    return true;
}

/* A pool of another shape and one of the same: a snapshot of this world fits the second, a cache fits neither. */
static bool wrong_pool(world *w, cache *c, uint32_t word)
{
    gdn_error        err;
    gdn_pool        *pool = NULL;
    gdn_cache       *other = NULL;
    const bool       same_shape = word % 2;
    gdn_delta_config config = w->setup->config;
    if (!same_shape) config.n_taps++;
    if (!must(w, "gdn_pool_open", gdn_pool_open(&pool, &config, w->setup->n_layers, 1, &err), &err)) return true;
    if (must(w, "gdn_cache_open", gdn_cache_open(&other, pool, 1, 1, &err), &err) &&
        must(w, "gdn_cache_add", gdn_cache_add(other, 1, 0, &err), &err)) {
        if (!c->armed)
            refused(w, "merge of another pool", GDN_BAD_ARGUMENT, gdn_cache_merge(other, c->real, &err), &err);
        if (w->n_snapshots && !same_shape)
            refused(w, "restore into another shape", GDN_MISMATCH,
                    gdn_snapshot_restore(other, 0, w->snapshots[0].real, &err), &err);
        else if (w->n_snapshots)
            must(w, "restore into another pool", gdn_snapshot_restore(other, 0, w->snapshots[0].real, &err), &err);
    }
    gdn_cache_close(other);
    gdn_pool_close(pool);
    return true;
}

#define WRONG_LIST(X) \
    X(layer)          \
    X(add)            \
    X(filter)         \
    X(extract)        \
    X(merge)          \
    X(trim)           \
    X(prepare)        \
    X(advance)        \
    X(begin)          \
    X(resolve)        \
    X(keep)           \
    X(take)           \
    X(restore)        \
    X(pool)

enum {
#define X(name) WRONG_##name,
    WRONG_LIST(X)
#undef X
        N_WRONG_CALLS
};

/* Each returns false when it does not apply to the cache. */
static const struct {
    const char *name;
    bool (*call)(world *w, cache *c, uint32_t word);
} wrong_calls[N_WRONG_CALLS] = {
#define X(name) {#name, wrong_##name},
    WRONG_LIST(X)
#undef X
};

#endif
