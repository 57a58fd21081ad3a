#include "state/cache.h"

gdn_status gdn_cache_merge(gdn_cache *dst, gdn_cache *src, gdn_error *err)
{
    if (!dst || !src) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "merge: dst and src must not be NULL; pass both");
    if (dst == src) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "merge: dst and src are the same cache; pass two");
    if (dst->pool != src->pool)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "merge: dst and src are caches of different pools; move the lane by a snapshot");
    gdn_status status = gdn_cache_check_unarmed(dst, "merge: dst", err);
    if (!status) status = gdn_cache_check_unarmed(src, "merge: src", err);
    if (!status) status = gdn_cache_check_stepped(dst, -1, "merge: dst", err);
    if (!status) status = gdn_cache_check_stepped(src, -1, "merge: src", err);
    if (status) return status;
    if (src->n_lanes > dst->max_lanes - dst->n_lanes)
        return gdn_fail(err, GDN_BAD_ARGUMENT, src->n_lanes,
                        "merge: %d lanes do not fit, %d of at most %d are in use; filter dst, or open a larger cache",
                        src->n_lanes, dst->n_lanes, dst->max_lanes);
    for (int i = 0; i < src->n_lanes && !status; i++) status = gdn_cache_check_state(src, i, "merge: src", err);
    if (status) return status;
    for (int i = 0; i < src->n_lanes; i++) dst->lanes[dst->n_lanes++] = src->lanes[i];
    src->n_lanes = 0;
    return GDN_OK;
}

static gdn_status check_rows(const gdn_cache *cache, const int *rows, int n, gdn_error *err)
{
    if (n < 0 || n > cache->n_lanes)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n, "filter: %d rows of %d lanes; keep 0 to %d", n, cache->n_lanes,
                        cache->n_lanes);
    if (n && !rows) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "filter: rows is NULL; pass the %d rows to keep", n);
    for (int i = 0; i < n; i++) {
        const gdn_status status = gdn_cache_check_lane(cache, rows[i], "filter", err);
        if (status) return status;
        if (i && rows[i] <= rows[i - 1])
            return gdn_fail(err, GDN_BAD_ARGUMENT, i,
                            "filter: rows[%d] is %d after %d; give the rows ascending, each once", i, rows[i],
                            rows[i - 1]);
    }
    return GDN_OK;
}

gdn_status gdn_cache_filter(gdn_cache *cache, const int *rows, int n, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "filter: the cache is NULL; pass one");
    gdn_status status = check_rows(cache, rows, n, err);
    if (!status) status = gdn_cache_check_unarmed(cache, "filter", err);
    if (!status) status = gdn_cache_check_stepped(cache, -1, "filter", err);
    if (status) return status;
    int kept = 0;
    for (int i = 0; i < cache->n_lanes; i++) {
        if (kept < n && rows[kept] == i) cache->lanes[kept++] = cache->lanes[i];
        else gdn_lane_release(cache->pool, &cache->lanes[i]);
    }
    cache->n_lanes = n;
    return GDN_OK;
}

gdn_status gdn_cache_extract(gdn_cache *cache, int lane, gdn_cache **out, gdn_error *err)
{
    if (!cache || !out) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "extract: cache and out must not be NULL; pass both");
    gdn_status status = gdn_cache_check_lane(cache, lane, "extract", err);
    if (!status) status = gdn_cache_check_unarmed(cache, "extract", err);
    if (!status) status = gdn_cache_check_stepped(cache, lane, "extract", err);
    if (!status) status = gdn_cache_check_state(cache, lane, "extract", err);
    if (status) return status;
    gdn_cache *alone;
    status = gdn_cache_open(&alone, cache->pool, 1, cache->max_window, err);
    if (status) return status;
    const gdn_lane *source = &cache->lanes[lane];
    gdn_pool_retain(cache->pool, source->cur);
    alone->lanes[alone->n_lanes++] = (gdn_lane){.cur = source->cur, .prev = -1, .offset = source->offset};
    *out = alone;
    return GDN_OK;
}

gdn_status gdn_cache_share(gdn_cache *dst, int dst_lane, const gdn_cache *src, int src_lane, gdn_error *err)
{
    if (!dst || !src) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "share: dst and src must not be NULL; pass both");
    if (dst->pool != src->pool)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "share: dst and src are caches of different pools; move the lane by a snapshot");
    gdn_status status = gdn_cache_check_lane(dst, dst_lane, "share: dst", err);
    if (!status) status = gdn_cache_check_lane(src, src_lane, "share: src", err);
    if (!status) status = gdn_cache_check_unarmed(dst, "share: dst", err);
    if (!status) status = gdn_cache_check_unarmed(src, "share: src", err);
    if (!status) status = gdn_cache_check_stepped(src, src_lane, "share: src", err);
    if (status) return status;
    const gdn_lane *source = &src->lanes[src_lane];
    const gdn_lane  shared = {.cur = source->cur, .prev = -1, .offset = source->offset};
    if (shared.cur >= 0) {
        status = gdn_cache_check_state(src, src_lane, "share: src", err);
        if (status) return status;
        gdn_pool_retain(dst->pool, shared.cur);
    }
    gdn_lane_release(dst->pool, &dst->lanes[dst_lane]);
    dst->lanes[dst_lane] = shared;
    return GDN_OK;
}

gdn_status gdn_cache_clear(gdn_cache *cache, int lane, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "clear: the cache is NULL; pass one");
    gdn_status status = gdn_cache_check_lane(cache, lane, "clear", err);
    if (!status) status = gdn_cache_check_unarmed(cache, "clear", err);
    if (status) return status;
    gdn_lane_release(cache->pool, &cache->lanes[lane]);
    cache->lanes[lane] = (gdn_lane){.cur = -1, .prev = -1};
    return GDN_OK;
}
