#include "state/cache.h"
#include <string.h>

bool gdn_cache_padded(const gdn_cache *cache)
{
    for (int i = 0; i < cache->n_lanes; i++)
        if (cache->lanes[i].padding_kind != GDN_PADDING_NONE) return true;
    return false;
}

gdn_status gdn_cache_prepare(gdn_cache *cache, const int *left_padding, const int *lengths, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "prepare: the cache is NULL; pass one");
    if (!left_padding == !lengths)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "prepare: give left_padding or lengths, exactly one of the two");
    const int *padding = left_padding ? left_padding : lengths;
    for (int i = 0; i < cache->n_lanes; i++)
        if (padding[i] < 0)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "prepare: %s of lane %d is %d; use 0 or more",
                            left_padding ? "left_padding" : "the length", i, padding[i]);
    const gdn_status status = gdn_cache_check_unarmed(cache, "prepare", err);
    if (status) return status;
    for (int i = 0; i < cache->n_lanes; i++) {
        cache->lanes[i].padding_kind = left_padding ? GDN_PADDING_LEFT : GDN_PADDING_LENGTH;
        cache->lanes[i].padding = padding[i];
    }
    return GDN_OK;
}

/* The valid ones of a lane's next n rows: [*first, *end). */
static void valid_rows(const gdn_lane *lane, int n, int *first, int *end)
{
    const int padding = lane->padding < n ? lane->padding : n;
    *first = lane->padding_kind == GDN_PADDING_LEFT ? padding : 0;
    *end = lane->padding_kind == GDN_PADDING_LENGTH ? padding : n;
}

int gdn_cache_make_mask(const gdn_cache *cache, int n, uint8_t *mask)
{
    if (!gdn_cache_padded(cache)) return 0;
    for (int i = 0; i < cache->n_lanes && n > 0; i++, mask += n) {
        int first, end;
        valid_rows(&cache->lanes[i], n, &first, &end);
        for (int row = 0; row < n; row++) mask[row] = row >= first && row < end;
    }
    return 1;
}

void gdn_cache_finalize(gdn_cache *cache)
{
    for (int i = 0; i < cache->n_lanes; i++) {
        cache->lanes[i].padding_kind = GDN_PADDING_NONE;
        cache->lanes[i].padding = 0;
    }
}

/* ---- counting tokens --------------------------------------------------------------------------------------------- */

static gdn_status check_offset(const gdn_lane *lane, int i, int n, gdn_error *err)
{
    if (lane->offset <= INT64_MAX - n) return GDN_OK;
    return gdn_fail(err, GDN_BAD_ARGUMENT, i, "advance: %d more tokens of lane %d pass the largest offset; use fewer",
                    n, i);
}

gdn_status gdn_cache_advance(gdn_cache *cache, int n, int *counts, gdn_error *err)
{
    if (!cache) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "advance: the cache is NULL; pass one");
    if (n < 0) return gdn_fail(err, GDN_BAD_ARGUMENT, n, "advance: %d rows; use 0 or more", n);
    for (int i = 0; i < cache->n_lanes; i++) {
        const gdn_status status = check_offset(&cache->lanes[i], i, n, err);
        if (status) return status;
    }
    for (int i = 0; i < cache->n_lanes; i++) {
        gdn_lane *lane = &cache->lanes[i];
        int       first, end;
        valid_rows(lane, n, &first, &end);
        lane->offset += end - first;
        lane->padding -= lane->padding < n ? lane->padding : n;
        if (counts) counts[i] = end - first;
    }
    return GDN_OK;
}

gdn_status gdn_cache_advance_rows(gdn_cache *cache, const int *counts, gdn_error *err)
{
    if (!cache || !counts)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "advance_rows: cache and counts must not be NULL; pass both");
    for (int i = 0; i < cache->n_lanes; i++) {
        if (counts[i] < 0)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "advance_rows: the count of lane %d is %d; use 0 or more", i,
                            counts[i]);
        const gdn_status status = check_offset(&cache->lanes[i], i, counts[i], err);
        if (status) return status;
    }
    if (gdn_cache_padded(cache))
        return gdn_fail(err, GDN_BAD_STATE, 0,
                        "advance_rows: padding is set; use gdn_cache_advance, or finalize the padding first");
    for (int i = 0; i < cache->n_lanes; i++) cache->lanes[i].offset += counts[i];
    return GDN_OK;
}
