#include "state/snapshot.h"
#include "base/alloc.h"
#include "state/cache.h"
#include <string.h>

/* ---- shape ------------------------------------------------------------------------------------------------------- */

static const char *const shape_names[GDN_SHAPE_FIELDS] = {"n_layers",  "n_key_heads", "n_value_heads",    "key_dim",
                                                          "value_dim", "n_taps",      "head_map",         "type",
                                                          "recipe",    "qk_norm",     "qk_eps (its bits)"};

gdn_shape gdn_shape_of(const gdn_pool *pool)
{
    const gdn_delta_config *c = &pool->config;
    int32_t                 eps_bits;
    memcpy(&eps_bits, &c->qk_eps, sizeof eps_bits);
    return (gdn_shape){{pool->n_layers, c->n_key_heads, c->n_value_heads, c->key_dim, c->value_dim, c->n_taps,
                        (int32_t)c->head_map, (int32_t)c->type, (int32_t)c->recipe, (int32_t)c->qk_norm, eps_bits}};
}

gdn_status gdn_shape_check(const gdn_shape *shape, const gdn_pool *pool, const char *what, gdn_error *err)
{
    const gdn_shape own = gdn_shape_of(pool);
    for (int i = 0; i < GDN_SHAPE_FIELDS; i++)
        if (shape->field[i] != own.field[i])
            return gdn_fail(err, GDN_MISMATCH, i,
                            "%s: the snapshot has %s %ld, the pool %ld; use the pool of the model that made it", what,
                            shape_names[i], (long)shape->field[i], (long)own.field[i]);
    return GDN_OK;
}

/* ---- the object -------------------------------------------------------------------------------------------------- */

gdn_snapshot *gdn_snapshot_alloc(const gdn_pool *pool, int64_t offset)
{
    gdn_snapshot *snapshot = gdn_alloc_aligned(GDN_IMAGE_HEADER + pool->slot_bytes);
    if (!snapshot) return NULL;
    atomic_init(&snapshot->refs, 1);
    snapshot->shape = gdn_shape_of(pool);
    snapshot->offset = offset;
    snapshot->payload_bytes = pool->slot_bytes;
    return snapshot;
}

gdn_snapshot *gdn_snapshot_retain(gdn_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
    return snapshot;
}

void gdn_snapshot_release(gdn_snapshot *snapshot)
{
    if (snapshot && atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) == 1) free(snapshot);
}

int64_t gdn_snapshot_offset(const gdn_snapshot *snapshot) { return snapshot->offset; }
size_t  gdn_snapshot_bytes(const gdn_snapshot *snapshot) { return GDN_IMAGE_HEADER + snapshot->payload_bytes; }

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

gdn_status gdn_snapshot_take(gdn_snapshot **out, const gdn_cache *cache, int lane, gdn_error *err)
{
    if (!out || !cache)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "snapshot: out and cache must not be NULL; pass both");
    gdn_status status = gdn_cache_check_lane(cache, lane, "snapshot", err);
    if (!status) status = gdn_cache_check_unrecorded(cache, "snapshot", err);
    if (!status) status = gdn_cache_check_stepped(cache, lane, "snapshot", err);
    if (!status) status = gdn_cache_check_state(cache, lane, "snapshot", err);
    if (status) return status;
    const gdn_pool *pool = cache->pool;
    gdn_snapshot   *snapshot = gdn_snapshot_alloc(pool, cache->lanes[lane].offset);
    if (!snapshot)
        return gdn_fail(err, GDN_NO_MEMORY, lane,
                        "snapshot: no memory for %zu bytes of lane %d; release other snapshots", pool->slot_bytes,
                        lane);
    memcpy(gdn_snapshot_payload(snapshot), gdn_pool_slot(pool, cache->lanes[lane].cur), pool->slot_bytes);
    *out = snapshot;
    return GDN_OK;
}

gdn_status gdn_lane_fill(unsigned char **slot, gdn_cache *cache, int lane, int64_t offset, gdn_error *err)
{
    gdn_pool  *pool = cache->pool;
    gdn_lane  *restored = &cache->lanes[lane];
    const bool fresh = restored->cur < 0 || gdn_pool_shared(pool, restored->cur);
    if (fresh) {
        const gdn_status status = gdn_pool_check_free(pool, 1, "restore", err);
        if (status) return status;
        gdn_lane_release(pool, restored);
        restored->cur = gdn_pool_take(pool);
    } else {
        gdn_pool_release(pool, restored->prev); /* of a step that the restored state replaces */
        restored->prev = -1;
    }
    for (int layer = 0; layer < pool->n_layers; layer++) gdn_pool_mark(pool, restored->cur, layer);
    restored->offset = restored->begin_offset = offset; /* of an armed round too: it begins here now */
    *slot = gdn_pool_slot(pool, restored->cur);
    return GDN_OK;
}

gdn_status gdn_snapshot_restore(gdn_cache *cache, int lane, const gdn_snapshot *snapshot, gdn_error *err)
{
    if (!cache || !snapshot)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "restore: cache and snapshot must not be NULL; pass both");
    unsigned char *slot;
    gdn_status     status = gdn_cache_check_lane(cache, lane, "restore", err);
    if (!status) status = gdn_shape_check(&snapshot->shape, cache->pool, "restore", err);
    if (!status) status = gdn_cache_check_unrecorded(cache, "restore", err);
    if (!status) status = gdn_lane_fill(&slot, cache, lane, snapshot->offset, err);
    if (status) return status;
    memcpy(slot, (const unsigned char *)snapshot + GDN_IMAGE_HEADER, cache->pool->slot_bytes);
    return GDN_OK;
}
