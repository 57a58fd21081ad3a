#include "state/cache.h"
#include <stdlib.h>
#include <string.h>

/* ---- checks ------------------------------------------------------------------------------------------------------ */

gdn_status gdn_cache_check_lane(const gdn_cache *cache, int lane, const char *what, gdn_error *err)
{
    if (gdn_cache_lane_valid(cache, lane)) return GDN_OK;
    if (!cache->n_lanes)
        return gdn_fail(err, GDN_BAD_ARGUMENT, lane, "%s: lane %d of a cache without lanes; add one", what, lane);
    return gdn_fail(err, GDN_BAD_ARGUMENT, lane, "%s: there is no lane %d; use 0 to %d", what, lane,
                    cache->n_lanes - 1);
}

gdn_status gdn_cache_check_unarmed(const gdn_cache *cache, const char *what, gdn_error *err)
{
    if (!cache->round.armed) return GDN_OK;
    return gdn_fail(err, GDN_BAD_STATE, 0, "%s: a speculative round is armed; commit it or roll it back first", what);
}

gdn_status gdn_cache_check_unrecorded(const gdn_cache *cache, const char *what, gdn_error *err)
{
    if (!gdn_cache_recorded(cache)) return GDN_OK;
    return gdn_fail(err, GDN_BAD_STATE, 0, "%s: a speculative round has run; commit it or roll it back first", what);
}

gdn_status gdn_cache_check_stepped(const gdn_cache *cache, int lane, const char *what, gdn_error *err)
{
    if (gdn_cache_recorded(cache)) return GDN_OK;
    const int first = lane < 0 ? 0 : lane, end = lane < 0 ? cache->n_lanes : lane + 1;
    for (int i = first; i < end; i++) {
        if (cache->lanes[i].prev < 0) continue;
        int layer = 0;
        while (gdn_pool_holds(cache->pool, cache->lanes[i].cur, layer)) layer++;
        return gdn_fail(err, GDN_BAD_STATE, i,
                        "%s: lane %d is in the middle of a step, layer %d has not run; run it first", what, i, layer);
    }
    return GDN_OK;
}

gdn_status gdn_cache_check_state(const gdn_cache *cache, int lane, const char *what, gdn_error *err)
{
    if (gdn_cache_has_state(cache, lane)) return GDN_OK;
    int layer = 0;
    while (gdn_lane_source(cache->pool, &cache->lanes[lane], layer) >= 0) layer++;
    return gdn_fail(err, GDN_BAD_STATE, lane, "%s: lane %d has no state in layer %d; prefill it in every layer first",
                    what, lane, layer);
}

/* ---- open and close ---------------------------------------------------------------------------------------------- */

gdn_status gdn_cache_open(gdn_cache **out, gdn_pool *pool, int max_lanes, int max_window, gdn_error *err)
{
    if (!out || !pool) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "cache: out and pool must not be NULL; pass both");
    if (max_lanes < 1 || max_lanes > 4096)
        return gdn_fail(err, GDN_BAD_ARGUMENT, max_lanes, "cache: max_lanes is %d; use 1 to 4096", max_lanes);
    if (max_window < 0 || max_window > 1024)
        return gdn_fail(err, GDN_BAD_ARGUMENT, max_window, "cache: max_window is %d; use 0 to 1024", max_window);
    gdn_cache *cache = calloc(1, sizeof *cache);
    if (!cache) return gdn_fail(err, GDN_NO_MEMORY, 0, "cache: no memory for the cache itself; free some");
    cache->pool = pool;
    cache->max_lanes = max_lanes;
    cache->max_window = max_window;
    cache->lanes = calloc((size_t)max_lanes, sizeof *cache->lanes);
    cache->counts = calloc((size_t)max_lanes, sizeof *cache->counts);
    cache->core = calloc((size_t)max_lanes, sizeof *cache->core);
    gdn_status status = GDN_OK;
    if (!cache->lanes || !cache->counts || !cache->core)
        status = gdn_fail(err, GDN_NO_MEMORY, 0, "cache: no memory for %d lanes; use fewer", max_lanes);
    if (!status && max_window) status = gdn_round_open(cache, err);
    if (status) {
        gdn_cache_close(cache);
        return status;
    }
    *out = cache;
    return GDN_OK;
}

void gdn_cache_close(gdn_cache *cache)
{
    if (!cache) return;
    for (int i = 0; i < cache->n_lanes; i++) gdn_lane_release(cache->pool, &cache->lanes[i]);
    gdn_round_close(cache);
    free(cache->lanes);
    free(cache->counts);
    free(cache->core);
    free(cache);
}

gdn_status gdn_cache_add(gdn_cache *cache, int n, int64_t offset, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "add: the cache is NULL; pass one");
    if (n < 0) return gdn_fail(err, GDN_BAD_ARGUMENT, n, "add: %d lanes; add 0 or more", n);
    if (offset < 0) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "add: offset %lld; use 0 or more", (long long)offset);
    if (n > cache->max_lanes - cache->n_lanes)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n,
                        "add: %d lanes do not fit, %d of at most %d are in use; filter, or open a larger cache", n,
                        cache->n_lanes, cache->max_lanes);
    const gdn_status status = gdn_cache_check_unarmed(cache, "add", err);
    if (status) return status;
    for (int i = 0; i < n; i++) cache->lanes[cache->n_lanes++] = (gdn_lane){.cur = -1, .prev = -1, .offset = offset};
    return GDN_OK;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

int gdn_lane_source(const gdn_pool *pool, const gdn_lane *lane, int layer)
{
    if (layer >= pool->n_layers) return -1;
    if (gdn_pool_holds(pool, lane->cur, layer)) return lane->cur;
    return gdn_pool_holds(pool, lane->prev, layer) ? lane->prev : -1;
}

void gdn_lane_release(gdn_pool *pool, gdn_lane *lane)
{
    gdn_pool_release(pool, lane->cur);
    gdn_pool_release(pool, lane->prev);
    lane->cur = lane->prev = -1;
}

void gdn_lane_revert(gdn_pool *pool, gdn_lane *lane)
{
    gdn_pool_release(pool, lane->cur);
    lane->cur = lane->prev;
    lane->prev = -1;
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

int gdn_cache_lanes(const gdn_cache *cache) { return cache->n_lanes; }

int gdn_cache_is_empty(const gdn_cache *cache)
{
    for (int i = 0; i < cache->n_lanes; i++)
        for (int layer = 0; layer < cache->pool->n_layers; layer++)
            if (gdn_lane_source(cache->pool, &cache->lanes[i], layer) >= 0) return 0;
    return 1;
}

int gdn_cache_has_state(const gdn_cache *cache, int lane)
{
    if (!gdn_cache_lane_valid(cache, lane)) return 0;
    for (int layer = 0; layer < cache->pool->n_layers; layer++)
        if (gdn_lane_source(cache->pool, &cache->lanes[lane], layer) < 0) return 0;
    return 1;
}

int64_t gdn_cache_offset(const gdn_cache *cache)
{
    int64_t largest = 0;
    for (int i = 0; i < cache->n_lanes; i++)
        if (cache->lanes[i].offset > largest) largest = cache->lanes[i].offset;
    return largest;
}

int64_t gdn_cache_lane_offset(const gdn_cache *cache, int lane)
{
    return gdn_cache_lane_valid(cache, lane) ? cache->lanes[lane].offset : -1;
}

size_t gdn_cache_bytes_per_token(const gdn_cache *cache)
{
    (void)cache;
    return 0;
}

/* Whether a lane before `lane` holds the slot too. */
static bool counted(const gdn_cache *cache, int lane, int slot)
{
    if (!gdn_pool_shared(cache->pool, slot)) return false;
    for (int i = 0; i < lane; i++)
        if (cache->lanes[i].cur == slot || cache->lanes[i].prev == slot) return true;
    return false;
}

size_t gdn_cache_bytes(const gdn_cache *cache)
{
    size_t n_slots = 0;
    for (int i = 0; i < cache->n_lanes; i++) {
        const gdn_lane *lane = &cache->lanes[i];
        n_slots += lane->cur >= 0 && !counted(cache, i, lane->cur);
        n_slots += lane->prev >= 0 && !counted(cache, i, lane->prev);
    }
    return n_slots * cache->pool->slot_bytes + cache->round.n_bytes;
}

void gdn_cache_peek(const gdn_cache *cache, int lane, int layer, const float **state, const void **tail)
{
    int slot = -1;
    if (gdn_cache_lane_valid(cache, lane) && layer >= 0)
        slot = gdn_lane_source(cache->pool, &cache->lanes[lane], layer);
    if (state) *state = slot >= 0 ? gdn_pool_state(cache->pool, slot, layer) : NULL;
    if (tail) *tail = slot >= 0 ? gdn_pool_tail(cache->pool, slot, layer) : NULL;
}

gdn_status gdn_cache_trim(gdn_cache *cache, int64_t n, gdn_error *err)
{
    (void)cache;
    return gdn_fail(err, GDN_NOT_TRIMMABLE, 0,
                    "trim: a recurrent state cannot give %lld tokens back; arm gdn_round_begin before drafting and use "
                    "gdn_round_rollback",
                    (long long)n);
}
