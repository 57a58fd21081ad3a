/* lanes.h - what the tests of the cache share: a small model whose rows follow from token numbers, the state that a list of
 * tokens must lead to (fed one by one to a lane that is alone), and refusals that must leave no trace. */
#ifndef UNIT_LANES_H
#define UNIT_LANES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "gdn/delta.h"
#include "support/random.h"
#include "support/typed.h"
#include <stdlib.h>

enum { LAB_LAYERS = 3, LAB_SLOTS = 8, LAB_WATCHED = 2 };

typedef struct lab {
    gdn_delta_config  config;
    int               n_layers;
    gdn_compute      *compute;
    gdn_pool         *pool;
    gdn_delta_weights weights[LAB_LAYERS];
    float            *numbers; /* of the weights */
    size_t            qkv_row, z_row, ab_row, state_bytes, tail_bytes;
} lab;

static gdn_error err; /* of the last call that was given it */

#define ACCEPTED(call)                                                                               \
    do {                                                                                             \
        if ((call) != GDN_OK) fail_msg("%s: %s: %s", #call, gdn_status_name(err.code), err.message); \
    } while (0)

/* ---- a model ----------------------------------------------------------------------------------------------------- */

static inline gdn_delta_config lab_config(gdn_type type)
{
    return (gdn_delta_config){.n_key_heads = 1,
                              .n_value_heads = 2,
                              .key_dim = 32,
                              .value_dim = 32,
                              .n_taps = 4,
                              .type = type,
                              .qk_eps = 1e-6f};
}

static inline void lab_close(lab *l)
{
    gdn_pool_close(l->pool);
    gdn_compute_close(l->compute);
    free(l->numbers);
}

static inline gdn_cache *lab_cache(const lab *l, int n_lanes, int max_lanes, int max_window)
{
    gdn_cache *cache = NULL;
    ACCEPTED(gdn_cache_open(&cache, l->pool, max_lanes, max_window, &err));
    ACCEPTED(gdn_cache_add(cache, n_lanes, 0, &err));
    return cache;
}

/* ---- forwards ---------------------------------------------------------------------------------------------------- */

static inline void *lab_rows(const lab *l, const int *tokens, size_t n_rows, int layer, int what, size_t row_bytes,
                             size_t apart)
{
    const size_t n = row_bytes / typed_bytes(l->config.type), stride = n + apart;
    void        *rows = calloc(n_rows * stride + 1, typed_bytes(l->config.type));
    assert_non_null(rows);
    for (size_t row = 0; row < n_rows; row++) {
        rng r = {.s = (uint64_t)tokens[row] * 1000 + (uint64_t)layer * 10 + (uint64_t)what};
        for (size_t i = 0; i < n; i++)
            typed_set(l->config.type, rows, row * stride + i, (double)rng_uniform(&r, -2, 2));
    }
    return rows;
}

static inline size_t lab_batch_rows(const gdn_batch *b)
{
    size_t n = b->n_tokens ? 0 : (size_t)b->n_lanes * (size_t)b->length;
    for (int i = 0; b->n_tokens && i < b->n_lanes; i++) n += b->n_tokens[i] > 0 ? (size_t)b->n_tokens[i] : 0;
    return n;
}

/* One layer; tokens has one number for every row, y [rows][Hv][Dv] may be NULL. */
static inline gdn_status lab_layer(lab *l, gdn_cache *cache, int layer, gdn_batch batch, const int *tokens, void *y)
{
    const size_t n_rows = lab_batch_rows(&batch);
    const size_t element = typed_bytes(l->config.type), C = l->qkv_row / element, Z = l->z_row / element;
    const size_t apart = layer % 2 ? 5 : 0; /* every other layer has rows with something in between */
    void        *qkv = lab_rows(l, tokens, n_rows, layer, 1, l->qkv_row, apart);
    void        *z = lab_rows(l, tokens, n_rows, layer, 2, l->z_row, 2 * apart);
    void        *a = lab_rows(l, tokens, n_rows, layer, 3, l->ab_row, 0);
    void        *b = lab_rows(l, tokens, n_rows, layer, 4, l->ab_row, 0);
    void        *out = malloc(n_rows * l->z_row + 1);
    assert_non_null(out);
    gdn_layer_args args = {.batch = batch, .qkv = qkv, .z = z, .a = a, .b = b, .y = out};
    if (apart) args.qkv_stride = C + apart, args.z_stride = Z + 2 * apart;
    const gdn_status status = gdn_delta_layer(l->compute, cache, layer, &l->weights[layer], &args, &err);
    if (y && !status) memcpy(y, out, n_rows * l->z_row);
    free(qkv);
    free(z);
    free(a);
    free(b);
    free(out);
    return status;
}

static inline gdn_batch ragged(const gdn_cache *cache, const int *n_tokens)
{
    return (gdn_batch){.n_lanes = gdn_cache_lanes(cache), .n_tokens = n_tokens};
}

static inline void lab_forward(lab *l, gdn_cache *cache, gdn_batch batch, const int *tokens)
{
    for (int layer = 0; layer < l->n_layers; layer++) ACCEPTED(lab_layer(l, cache, layer, batch, tokens, NULL));
}

/* All layers over ragged tokens, then the count. */
static inline void lab_run(lab *l, gdn_cache *cache, const int *n_tokens, const int *tokens)
{
    lab_forward(l, cache, ragged(cache, n_tokens), tokens);
    ACCEPTED(gdn_cache_advance_rows(cache, n_tokens, &err));
}

/* A pool whose slots have all been used: what they held must not show. */
static inline void lab_open(lab *l, gdn_type type, int n_layers, int n_slots)
{
    const gdn_delta_config c = lab_config(type);
    const size_t           n_channels = 2 * 32 + 2 * 32, n_conv = 4 * n_channels, n = n_conv + 2 + 2 + 32;
    rng                    r = {.s = 7};
    *l = (lab){.config = c, .n_layers = n_layers};
    l->qkv_row = n_channels * typed_bytes(type);
    l->z_row = 2 * 32 * typed_bytes(type);
    l->ab_row = 2 * typed_bytes(type);
    l->tail_bytes = 3 * l->qkv_row;
    l->state_bytes = (size_t)2 * 32 * 32 * sizeof(float);
    l->numbers = malloc((size_t)n_layers * n * sizeof(float));
    assert_non_null(l->numbers);
    for (size_t i = 0; i < (size_t)n_layers * n; i++) l->numbers[i] = rng_uniform(&r, -1, 1);
    for (int layer = 0; layer < n_layers; layer++) {
        const float *w = l->numbers + (size_t)layer * n;
        l->weights[layer] = (gdn_delta_weights){w, w + n_conv, w + n_conv + 2, w + n_conv + 4, 1e-6f};
    }
    ACCEPTED(gdn_compute_open(&l->compute, "ref", 1, &err));
    ACCEPTED(gdn_pool_open(&l->pool, &c, n_layers, n_slots, &err));
    const int tokens[LAB_SLOTS] = {0};
    int       n_tokens[LAB_SLOTS];
    assert_in_range(n_slots, 1, LAB_SLOTS);
    for (int i = 0; i < n_slots; i++) n_tokens[i] = 1;
    gdn_cache *cache = lab_cache(l, n_slots, n_slots, 0);
    lab_run(l, cache, n_tokens, tokens);
    gdn_cache_close(cache);
}

/* A lane with the given tokens in its state. */
static inline gdn_cache *lab_prefilled(lab *l, int max_lanes, int max_window, const int *tokens, int n)
{
    gdn_cache *cache = lab_cache(l, 1, max_lanes, max_window);
    lab_run(l, cache, &n, tokens);
    return cache;
}

/* ---- what must hold ---------------------------------------------------------------------------------------------- */

static inline const float *lane_state(const gdn_cache *cache, int lane, int layer)
{
    const float *state;
    gdn_cache_peek(cache, lane, layer, &state, NULL);
    return state;
}

/* The lane holds what these tokens make of no state, and this offset. */
static inline void lab_expect(lab *l, const gdn_cache *cache, int lane, const int *tokens, int n, int64_t offset)
{
    lab        alone = *l;
    const int  one = 1;
    gdn_cache *reference = NULL;
    assert_int_equal(gdn_cache_lane_offset(cache, lane), offset);
    assert_int_equal(gdn_cache_has_state(cache, lane), n > 0);
    ACCEPTED(gdn_pool_open(&alone.pool, &l->config, l->n_layers, 1, &err));
    reference = lab_cache(&alone, 1, 1, 0);
    for (int i = 0; i < n; i++) lab_run(&alone, reference, &one, tokens + i);
    for (int layer = 0; layer < l->n_layers; layer++) {
        const float *state, *expected_state;
        const void  *tail, *expected_tail;
        gdn_cache_peek(cache, lane, layer, &state, &tail);
        gdn_cache_peek(reference, 0, layer, &expected_state, &expected_tail);
        if (!n) {
            assert_null(state);
            assert_null(tail);
            continue;
        }
        assert_non_null(state);
        assert_memory_equal(state, expected_state, l->state_bytes);
        assert_memory_equal(tail, expected_tail, l->tail_bytes);
    }
    gdn_cache_close(reference);
    gdn_pool_close(alone.pool);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static const lab       *watched_lab;
static const gdn_cache *watched[LAB_WATCHED];

/* The caches (NULL or not) whose every visible bit must survive a refused call. */
static inline void watch(const lab *l, const gdn_cache *a, const gdn_cache *b)
{
    watched_lab = l;
    watched[0] = a;
    watched[1] = b;
}

static inline uint64_t blend(uint64_t sum, const void *p, size_t n)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++) sum = (sum ^ bytes[i]) * 0x100000001b3u;
    return sum;
}

static inline uint64_t cache_picture(uint64_t sum, const lab *l, const gdn_cache *cache)
{
    const int     n = gdn_cache_lanes(cache);
    uint8_t       mask[8 * 8] = {0};
    const int64_t numbers[] = {n, gdn_cache_is_empty(cache), gdn_cache_offset(cache), (int64_t)gdn_cache_bytes(cache),
                               gdn_cache_make_mask(cache, 8, mask)};
    sum = blend(blend(sum, numbers, sizeof numbers), mask, sizeof mask);
    for (int i = 0; i < n; i++) {
        const int64_t lane[] = {gdn_cache_lane_offset(cache, i), gdn_cache_has_state(cache, i),
                                gdn_round_window(cache, i)};
        sum = blend(sum, lane, sizeof lane);
        for (int layer = 0; layer < l->n_layers; layer++) {
            const float *state;
            const void  *tail;
            gdn_cache_peek(cache, i, layer, &state, &tail);
            sum = blend(sum, &state, sizeof state);
            if (state) sum = blend(blend(sum, state, l->state_bytes), tail, l->tail_bytes);
        }
    }
    return sum;
}

static inline uint64_t picture(void)
{
    if (!watched_lab) return 0;
    const int n_free = gdn_pool_free_slots(watched_lab->pool);
    uint64_t  sum = blend(0xcbf29ce484222325u, &n_free, sizeof n_free);
    for (int i = 0; i < LAB_WATCHED; i++)
        if (watched[i]) sum = cache_picture(sum, watched_lab, watched[i]);
    return sum;
}

/* The call fails with this code and a sentence that contains `part`, and changes nothing that is watched. */
#define REFUSED(code_, part, call)                                                                        \
    do {                                                                                                  \
        const uint64_t before_ = picture();                                                               \
        err = (gdn_error){0};                                                                             \
        const gdn_status got_ = (call);                                                                   \
        if (got_ != (code_) || err.code != (code_) || !strstr(err.message, part))                         \
            fail_msg("%s: %s, the error %s: %s", #call, gdn_status_name(got_), gdn_status_name(err.code), \
                     err.message);                                                                        \
        if (picture() != before_) fail_msg("%s: refused, but something changed", #call);                  \
    } while (0)

#endif
