#include "base/alloc.h"
#include "state/cache.h"
#include <stdlib.h>
#include <string.h>

/* ---- records ----------------------------------------------------------------------------------------------------- */

/* The layout of the records; false when a size does not fit. */
static bool lay_out(const gdn_cache *cache, gdn_round *round)
{
    const gdn_delta_config *c = &cache->pool->config;
    const size_t            n_rows = (size_t)cache->max_lanes * (size_t)cache->max_window; /* at most 2^22 */
    size_t                  ab_bytes;
    round->qkv_row = (size_t)gdn_channels(c) * gdn_type_bytes(c->type);
    round->ab_row = (size_t)c->n_value_heads * gdn_type_bytes(c->type);
    return gdn_size_mul(&round->a_at, n_rows, round->qkv_row) && gdn_size_round(&round->a_at, round->a_at) &&
           gdn_size_mul(&ab_bytes, n_rows, round->ab_row) && gdn_size_round(&ab_bytes, ab_bytes) &&
           gdn_size_add(&round->b_at, round->a_at, ab_bytes) &&
           gdn_size_add(&round->layer_bytes, round->b_at, ab_bytes) &&
           gdn_size_mul(&round->n_bytes, round->layer_bytes, (size_t)cache->pool->n_layers) &&
           round->n_bytes <= PTRDIFF_MAX;
}

gdn_status gdn_round_open(gdn_cache *cache, gdn_error *err)
{
    gdn_round round = {0};
    if (lay_out(cache, &round)) {
        round.weights = calloc((size_t)cache->pool->n_layers, sizeof *round.weights);
        round.memory = gdn_alloc_aligned(round.n_bytes);
    }
    cache->round = round;
    if (round.weights && round.memory) return GDN_OK;
    return gdn_fail(err, GDN_NO_MEMORY, 0, "cache: no memory for the records of %d lanes of %d tokens; use fewer",
                    cache->max_lanes, cache->max_window);
}

void gdn_round_close(gdn_cache *cache)
{
    free(cache->round.weights);
    free(cache->round.memory);
}

/* Copy the valid rows of a lane, which are `stride` bytes apart, and return how many there were. */
static size_t record_lane(unsigned char *dst, const unsigned char *src, size_t row_bytes, size_t stride, int n_rows,
                          const uint8_t *mask)
{
    size_t n_valid = 0;
    for (size_t row = 0; row < (size_t)n_rows; row++)
        if (!mask || mask[row]) memcpy(dst + n_valid++ * row_bytes, src + row * stride, row_bytes);
    return n_valid;
}

void gdn_round_record(gdn_cache *cache, int layer, const gdn_delta_weights *weights, const gdn_layer_args *args)
{
    gdn_round     *round = &cache->round;
    unsigned char *memory = round->memory + (size_t)layer * round->layer_bytes;
    const size_t   element = gdn_type_bytes(cache->pool->config.type);
    const struct {
        unsigned char       *dst;
        const unsigned char *src;
        size_t               row_bytes, stride;
    } parts[] = {{memory, args->qkv, round->qkv_row, args->qkv_stride ? args->qkv_stride * element : round->qkv_row},
                 {memory + round->a_at, args->a, round->ab_row, round->ab_row},
                 {memory + round->b_at, args->b, round->ab_row, round->ab_row}};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        size_t first = 0, recorded = 0;
        for (int i = 0; i < cache->n_lanes; i++) {
            const int n_rows = gdn_batch_rows(&args->batch, i);
            if (!n_rows) continue;
            if (cache->lanes[i].in_round)
                recorded += record_lane(parts[p].dst + recorded * parts[p].row_bytes,
                                        parts[p].src + first * parts[p].stride, parts[p].row_bytes, parts[p].stride,
                                        n_rows, args->batch.mask ? args->batch.mask + first : NULL);
            first += (size_t)n_rows;
        }
    }
    round->weights[layer] = weights;
    round->n_layers_run++;
}

/* ---- begin and the forwards -------------------------------------------------------------------------------------- */

static void disarm(gdn_cache *cache)
{
    gdn_round *round = &cache->round;
    memset(round->weights, 0, (size_t)cache->pool->n_layers * sizeof *round->weights);
    round->n_layers_run = 0;
    round->armed = false;
}

void gdn_round_drop(gdn_cache *cache)
{
    for (int i = 0; i < cache->n_lanes && cache->round.armed; i++) {
        gdn_lane *lane = &cache->lanes[i];
        if (!lane->in_round) continue;
        if (lane->window) gdn_lane_revert(cache->pool, lane);
        lane->offset = lane->begin_offset;
    }
    if (cache->round.armed) disarm(cache);
}

gdn_status gdn_round_begin_some(gdn_cache *cache, const int *drafts, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "begin: the cache is NULL; pass one");
    if (!cache->max_window)
        return gdn_fail(err, GDN_BAD_STATE, 0,
                        "begin: the cache was opened with max_window 0; open it with the largest window");
    if (!cache->n_lanes)
        return gdn_fail(err, GDN_BAD_STATE, 0, "begin: the cache has no lanes; add or merge one first");
    if (gdn_cache_padded(cache))
        return gdn_fail(err, GDN_BAD_STATE, 0, "begin: padding is set; finalize the padding first");
    const gdn_status status = gdn_cache_check_stepped(cache, -1, "begin", err);
    if (status) return status;
    gdn_round_drop(cache);
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        lane->in_round = !drafts || drafts[i] > 0;
        lane->begin_offset = lane->offset;
        lane->window = 0;
    }
    cache->round.armed = true;
    return GDN_OK;
}

gdn_status gdn_round_begin(gdn_cache *cache, gdn_error *err) { return gdn_round_begin_some(cache, NULL, err); }

static gdn_status check_window(const gdn_cache *cache, int layer, gdn_error *err)
{
    for (int i = 0; i < cache->n_lanes; i++) {
        const int n = cache->counts[i];
        if (!cache->lanes[i].in_round) continue;
        if (n > cache->max_window)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i,
                            "layer %d: lane %d has %d tokens in a round of at most %d; use fewer", layer, i, n,
                            cache->max_window);
        if (gdn_cache_recorded(cache) && n != cache->lanes[i].window)
            return gdn_fail(err, GDN_BAD_STATE, i,
                            "layer %d: lane %d has %d tokens, the round's first layer had %d; give it the same", layer,
                            i, n, cache->lanes[i].window);
        if (n > INT64_MAX - cache->lanes[i].begin_offset)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i,
                            "layer %d: %d more tokens of lane %d pass the largest offset; use fewer", layer, n, i);
    }
    return GDN_OK;
}

gdn_status gdn_round_check(const gdn_cache *cache, int layer, gdn_error *err)
{
    if (cache->round.weights[layer])
        return gdn_fail(err, GDN_BAD_STATE, layer,
                        "layer %d: it has already run in this round; commit it or roll it back first", layer);
    return check_window(cache, layer, err);
}

int gdn_round_window(const gdn_cache *cache, int lane)
{
    if (!cache->round.armed || !gdn_cache_lane_valid(cache, lane)) return -1;
    return gdn_cache_recorded(cache) ? cache->lanes[lane].window : 0;
}

/* ---- commit and rollback ----------------------------------------------------------------------------------------- */

static gdn_status check_complete(const gdn_cache *cache, const char *what, gdn_error *err)
{
    const gdn_round *round = &cache->round;
    if (!round->armed)
        return gdn_fail(err, GDN_BAD_STATE, 0, "%s: no round is armed; call gdn_round_begin before the forward", what);
    if (!gdn_cache_recorded(cache))
        return gdn_fail(err, GDN_BAD_STATE, 0, "%s: the round has recorded nothing to replay; run the layers first",
                        what);
    for (int layer = 0; layer < cache->pool->n_layers; layer++)
        if (!round->weights[layer])
            return gdn_fail(err, GDN_BAD_STATE, layer, "%s: layer %d has not run in this round; run it first", what,
                            layer);
    return GDN_OK;
}

/* The slot that will hold the lane once `keep` tokens are kept.  A replay runs in place on the old state, which costs half
 * the memory traffic of writing the shadow again, unless another lane sees it or there is none. */
static int kept_slot(const gdn_pool *pool, const gdn_lane *lane, int keep)
{
    if (keep == 0) return lane->prev;
    if (keep == lane->window) return lane->cur;
    return lane->prev >= 0 && !gdn_pool_shared(pool, lane->prev) ? lane->prev : lane->cur;
}

/* End the round of a lane whose slot `kept` covers `keep` tokens of its window. */
static void settle(gdn_pool *pool, gdn_lane *lane, int keep)
{
    if (!lane->in_round) return;
    lane->offset = lane->begin_offset + keep;
    if (!lane->window) return;
    if (lane->kept == lane->prev) {
        gdn_lane_revert(pool, lane);
    } else {
        gdn_pool_release(pool, lane->prev);
        lane->prev = -1;
    }
}

gdn_status gdn_round_commit(gdn_cache *cache, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "commit: the cache is NULL; pass one");
    const gdn_status status = check_complete(cache, "commit", err);
    if (status) return status;
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        lane->kept = kept_slot(cache->pool, lane, lane->window);
        settle(cache->pool, lane, lane->window);
    }
    disarm(cache);
    return GDN_OK;
}

static gdn_status check_keep(const gdn_cache *cache, const int *keep, int n_keep, gdn_error *err)
{
    if (!keep) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "rollback: keep is NULL; pass how many tokens to keep");
    if (n_keep != 1 && n_keep != cache->n_lanes)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n_keep, "rollback: %d counts for %d lanes; give 1 or %d", n_keep,
                        cache->n_lanes, cache->n_lanes);
    for (int i = 0; i < cache->n_lanes; i++) {
        const int n = keep[n_keep == 1 ? 0 : i], window = cache->lanes[i].window;
        if (n < 0 || n > window)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i,
                            "rollback: keep %d of lane %d is outside its window of %d tokens; use 0 to %d", n, i,
                            window, window);
    }
    return GDN_OK;
}

/* Make, in each lane's kept slot, what the first tokens of its window make of the state at begin.  Lanes whose kept part is
 * the whole window are there already. */
static void replay(gdn_compute *compute, gdn_cache *cache, int layer)
{
    const gdn_round *round = &cache->round;
    const gdn_pool  *pool = cache->pool;
    unsigned char   *memory = round->memory + (size_t)layer * round->layer_bytes;
    size_t           first_row = 0;
    int              n_lanes = 0;
    for (int i = 0; i < cache->n_lanes; first_row += (size_t)cache->lanes[i++].window) {
        const gdn_lane *lane = &cache->lanes[i];
        const int       keep = cache->counts[i];
        if (!keep || keep == lane->window) continue;
        const bool seen = gdn_pool_holds(pool, lane->prev, layer);
        cache->core[n_lanes++] = (gdn_core_lane){.first_row = first_row,
                                                 .n_rows = keep,
                                                 .tail_in = seen ? gdn_pool_tail(pool, lane->prev, layer) : NULL,
                                                 .tail_out = gdn_pool_tail(pool, lane->kept, layer),
                                                 .state_in = seen ? gdn_pool_state(pool, lane->prev, layer) : NULL,
                                                 .state_out = gdn_pool_state(pool, lane->kept, layer)};
        gdn_pool_mark(cache->pool, lane->kept, layer);
    }
    if (!n_lanes) return;
    const gdn_core_args args = {.config = &pool->config,
                                .weights = round->weights[layer],
                                .n_lanes = n_lanes,
                                .lanes = cache->core,
                                .qkv = memory,
                                .qkv_stride = (size_t)gdn_channels(&pool->config),
                                .a = memory + round->a_at,
                                .b = memory + round->b_at};
    gdn_core_delta(compute, &args);
}

gdn_status gdn_round_rollback(gdn_compute *compute, gdn_cache *cache, const int *keep, int n_keep, gdn_error *err)
{
    if (!compute || !cache)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "rollback: compute and cache must not be NULL; pass both");
    gdn_status status = check_complete(cache, "rollback", err);
    if (!status) status = check_keep(cache, keep, n_keep, err);
    if (status) return status;
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        cache->counts[i] = keep[n_keep == 1 ? 0 : i];
        lane->kept =
            kept_slot(cache->pool, lane, cache->counts[i]); /* chosen before any lane ends: that may unshare a slot */
    }
    for (int layer = 0; layer < cache->pool->n_layers; layer++) replay(compute, cache, layer);
    for (int i = 0; i < cache->n_lanes; i++) settle(cache->pool, &cache->lanes[i], cache->counts[i]);
    disarm(cache);
    return GDN_OK;
}
