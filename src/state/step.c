#include "state/cache.h"

/* Of the lanes with tokens, one without a slot needs one, and so does one whose slot others see (in the middle of a step nobody
 * else can see it: extract is refused), and in a round each one at its first layer. */
static bool wants_slot(const gdn_cache *cache, int i)
{
    const gdn_lane *lane = &cache->lanes[i];
    if (!cache->counts[i]) return false;
    if (cache->round.armed && lane->in_round) return !gdn_cache_recorded(cache);
    return lane->cur < 0 || gdn_pool_shared(cache->pool, lane->cur);
}

gdn_status gdn_step_enter(gdn_cache *cache, int layer, gdn_error *err)
{
    int        n_needed = 0;
    gdn_status status = cache->round.armed ? gdn_round_check(cache, layer, err) : GDN_OK;
    for (int i = 0; i < cache->n_lanes; i++) n_needed += wants_slot(cache, i);
    if (!status) status = gdn_pool_check_free(cache->pool, n_needed, "layer", err);
    if (status) return status;
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        if (!wants_slot(cache, i)) continue;
        lane->prev = lane->cur;
        lane->cur = gdn_pool_take(cache->pool);
        if (cache->round.armed && lane->in_round) lane->window = cache->counts[i];
    }
    return GDN_OK;
}

void gdn_step_leave(gdn_cache *cache, int layer)
{
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        if (!cache->counts[i]) continue;
        gdn_pool_mark(cache->pool, lane->cur, layer);
        if ((cache->round.armed && lane->in_round) || !gdn_pool_whole(cache->pool, lane->cur)) continue;
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
