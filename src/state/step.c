#include "state/cache.h"

/* A lane without a slot needs one, and so does a lane whose slot others see.  (In the middle of a step nobody else can see
 * it: extract is refused.) */
static bool wants_slot(const gdn_cache *cache, int i)
{
    const int cur = cache->lanes[i].cur;
    return cache->counts[i] && (cur < 0 || gdn_pool_shared(cache->pool, cur));
}

gdn_status gdn_step_enter(gdn_cache *cache, int layer, gdn_error *err)
{
    if (cache->round.armed) return gdn_round_enter(cache, layer, err);
    int n_needed = 0;
    for (int i = 0; i < cache->n_lanes; i++) n_needed += wants_slot(cache, i);
    const gdn_status status = gdn_pool_check_free(cache->pool, n_needed, "layer", err);
    if (status) return status;
    for (int i = 0; i < cache->n_lanes; i++) {
        if (!wants_slot(cache, i)) continue;
        gdn_lane *lane = &cache->lanes[i];
        lane->prev = lane->cur;
        lane->cur = gdn_pool_take(cache->pool);
    }
    return GDN_OK;
}

void gdn_step_leave(gdn_cache *cache, int layer)
{
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        if (!cache->counts[i]) continue;
        gdn_pool_mark(cache->pool, lane->cur, layer);
        if (cache->round.armed || !gdn_pool_whole(cache->pool, lane->cur)) continue;
        gdn_pool_release(cache->pool, lane->prev);
        lane->prev = -1;
    }
}

gdn_core_lane gdn_step_lane(const gdn_cache *cache, int i, int layer)
{
    const gdn_pool *pool = cache->pool;
    const gdn_lane *lane = &cache->lanes[i];
    const int       source = gdn_lane_source(pool, lane, layer);
    return (gdn_core_lane){.tail_in = source >= 0 ? gdn_pool_tail(pool, source, layer) : NULL,
                           .state_in = source >= 0 ? gdn_pool_state(pool, source, layer) : NULL,
                           .tail_out = gdn_pool_tail(pool, lane->cur, layer),
                           .state_out = gdn_pool_state(pool, lane->cur, layer)};
}
