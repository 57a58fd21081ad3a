/* run.h - token lists through a stack of layers of the library, with cmocka's assertions: what test_layer and
 * test_rounds share. */
#ifndef LAW_RUN_H
#define LAW_RUN_H
#include "law/law.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

enum { MAX_RUN_LANES = 8 };

typedef struct stack {
    law_model    model;
    gdn_compute *compute;
    gdn_pool    *pool;
} stack;

/* Tokens of one lane in one call: ids first, first + 1, ... */
typedef struct span {
    uint64_t first;
    int      n;
} span;

#define assert_ok(call)                                                                           \
    do {                                                                                          \
        gdn_error        ok_err = {0};                                                            \
        const gdn_status ok_status = call;                                                        \
        if (ok_status) fail_msg("%s: %s: %s", #call, gdn_status_name(ok_status), ok_err.message); \
    } while (0)

/* The call must be refused with this status, and the error must say the same and hold a sentence. */
#define assert_refused(status, call)                                                                       \
    do {                                                                                                   \
        gdn_error        ok_err = {0};                                                                     \
        const gdn_status ok_status = call;                                                                 \
        if (ok_status != (status)) fail_msg("%s: %s, not %s", #call, gdn_status_name(ok_status), #status); \
        assert_int_equal(ok_err.code, ok_status);                                                          \
        assert_true(strlen(ok_err.message) > 10);                                                          \
    } while (0)

static inline void stack_open(stack *s, const gdn_delta_config *config, int n_layers, int n_slots, const char *level,
                              int n_threads)
{
    law_model_open(&s->model, config, n_layers, 77);
    assert_ok(gdn_compute_open(&s->compute, level, n_threads, &ok_err));
    assert_ok(gdn_pool_open(&s->pool, config, n_layers, n_slots, &ok_err));
}

/* Every cache must be closed: a slot that is still held is an error. */
static inline void stack_close(stack *s, int n_slots)
{
    assert_int_equal(gdn_pool_free_slots(s->pool), n_slots);
    gdn_pool_close(s->pool);
    gdn_compute_close(s->compute);
    law_model_close(&s->model);
}

static inline gdn_cache *open_lanes(stack *s, int n_lanes, int max_window)
{
    gdn_cache *cache = NULL;
    assert_ok(gdn_cache_open(&cache, s->pool, n_lanes, max_window, &ok_err));
    assert_ok(gdn_cache_add(cache, n_lanes, 0, &ok_err));
    return cache;
}

static inline size_t row_bytes(const stack *s) { return s->model.n_z * s->model.type_bytes; }

/* One layer over the spans; y [rows][Hv][Dv].  The status is the layer's. */
static inline gdn_status feed_layer(stack *s, gdn_cache *cache, int layer, const span *spans, void *y, gdn_error *err)
{
    int    n_tokens[MAX_RUN_LANES];
    size_t n_rows = 0, row = 0;
    for (int i = 0; i < gdn_cache_lanes(cache); i++) n_rows += (size_t)(n_tokens[i] = spans[i].n);
    law_rows rows = law_rows_alloc(&s->model, n_rows);
    for (int i = 0; i < gdn_cache_lanes(cache); i++)
        for (int t = 0; t < spans[i].n; t++)
            law_token_row(&s->model, layer, spans[i].first + (unsigned)t, &rows, row++);
    const gdn_layer_args args = {.batch = {.n_lanes = gdn_cache_lanes(cache), .n_tokens = n_tokens},
                                 .qkv = rows.qkv,
                                 .z = rows.z,
                                 .a = rows.a,
                                 .b = rows.b,
                                 .y = y};
    const gdn_status     status = gdn_delta_layer(s->compute, cache, layer, &s->model.weights[layer], &args, err);
    law_rows_free(&rows);
    return status;
}

/* All layers, and the offsets.  Returns the outputs [layers][rows][Hv][Dv], to free. */
static inline unsigned char *feed(stack *s, gdn_cache *cache, const span *spans)
{
    int    counts[MAX_RUN_LANES];
    size_t n_rows = 0;
    for (int i = 0; i < gdn_cache_lanes(cache); i++) n_rows += (size_t)(counts[i] = spans[i].n);
    unsigned char *y = law_alloc((size_t)s->model.n_layers * n_rows * row_bytes(s));
    for (int layer = 0; layer < s->model.n_layers; layer++)
        assert_ok(feed_layer(s, cache, layer, spans, y + (size_t)layer * n_rows * row_bytes(s), &ok_err));
    assert_ok(gdn_cache_advance_rows(cache, counts, &ok_err));
    return y;
}

/* As feed, when the outputs are not looked at. */
static inline void run(stack *s, gdn_cache *cache, const span *spans) { free(feed(s, cache, spans)); }

/* Feed one lane on its own: the other lanes of the cache get no token. */
static inline void run_one(stack *s, gdn_cache *cache, int li, span tokens)
{
    span spans[MAX_RUN_LANES] = {{0}};
    spans[li] = tokens;
    run(s, cache, spans);
}

/* Two lanes hold the same: bits of every state and tail, or no state in both; and the same offset. */
static inline void assert_same_lane(const stack *s, const gdn_cache *a, int lane_a, const gdn_cache *b, int lane_b)
{
    for (int layer = 0; layer < s->model.n_layers; layer++) {
        const float *state_a, *state_b;
        const void  *tail_a, *tail_b;
        gdn_cache_peek(a, lane_a, layer, &state_a, &tail_a);
        gdn_cache_peek(b, lane_b, layer, &state_b, &tail_b);
        assert_int_equal(!state_a, !state_b);
        assert_int_equal(!state_a, !tail_a);
        assert_int_equal(!state_b, !tail_b);
        if (!state_a) continue;
        assert_memory_equal(state_a, state_b, s->model.n_state * sizeof(float));
        assert_memory_equal(tail_a, tail_b, s->model.n_tail * s->model.type_bytes);
    }
    assert_int_equal(gdn_cache_lane_offset(a, lane_a), gdn_cache_lane_offset(b, lane_b));
}

/* Both caches, of n lanes, go on with the same tokens, `n_more` a lane: same outputs, same end. */
static inline void assert_same_future(stack *s, gdn_cache *a, gdn_cache *b, int n_more)
{
    span   spans[MAX_RUN_LANES];
    size_t n_rows = 0;
    for (int i = 0; i < gdn_cache_lanes(a); i++) {
        spans[i] = (span){.first = 900000u + 1000u * (unsigned)i, .n = n_more};
        n_rows += (size_t)n_more;
    }
    unsigned char *y_a = feed(s, a, spans), *y_b = feed(s, b, spans);
    assert_memory_equal(y_a, y_b, (size_t)s->model.n_layers * n_rows * row_bytes(s));
    for (int i = 0; i < gdn_cache_lanes(a); i++) assert_same_lane(s, a, i, b, i);
    free(y_a);
    free(y_b);
}

#endif
