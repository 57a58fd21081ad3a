#include "state/cache.h"
#include <string.h>

static gdn_status check_args(const gdn_compute *compute, const gdn_cache *cache, int layer,
                             const gdn_delta_weights *weights, const gdn_layer_args *args, gdn_error *err)
{
    if (!compute || !cache || !weights || !args)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "layer: compute, cache, weights and args must not be NULL; pass all four");
    if (layer < 0 || layer >= cache->pool->n_layers)
        return gdn_fail(err, GDN_BAD_ARGUMENT, layer, "layer: there is no layer %d; use 0 to %d", layer,
                        cache->pool->n_layers - 1);
    if (!weights->conv || !weights->A_log || !weights->dt_bias || !weights->norm)
        return gdn_fail(err, GDN_BAD_ARGUMENT, layer,
                        "layer %d: conv, A_log, dt_bias and norm must not be NULL; set all four", layer);
    if (!(weights->norm_eps > 0 && weights->norm_eps <= 1))
        return gdn_fail(err, GDN_BAD_ARGUMENT, layer, "layer %d: norm_eps is %g; use a number above 0 and at most 1",
                        layer, (double)weights->norm_eps);
    const gdn_status status = gdn_batch_check(&args->batch, err);
    if (status) return status;
    if (args->batch.n_lanes != cache->n_lanes)
        return gdn_fail(err, GDN_BAD_ARGUMENT, args->batch.n_lanes,
                        "layer %d: the batch has %d lanes, the cache %d; give it the same", layer, args->batch.n_lanes,
                        cache->n_lanes);
    size_t n_rows = 0;
    for (int i = 0; i < cache->n_lanes; i++) n_rows += (size_t)gdn_batch_rows(&args->batch, i);
    if (n_rows && (!args->qkv || !args->z || !args->a || !args->b || !args->y))
        return gdn_fail(err, GDN_BAD_ARGUMENT, layer, "layer %d: qkv, z, a, b and y must not be NULL; set all five",
                        layer);
    const size_t C = (size_t)gdn_channels(&cache->pool->config), Z = gdn_values(&cache->pool->config);
    if ((args->qkv_stride && args->qkv_stride < C) || (args->z_stride && args->z_stride < Z))
        return gdn_fail(err, GDN_BAD_ARGUMENT, layer,
                        "layer %d: rows of qkv and z are %zu and %zu apart; use at least %zu and %zu, or 0", layer,
                        args->qkv_stride, args->z_stride, C, Z);
    return GDN_OK;
}

static void count_valid(gdn_cache *cache, const gdn_batch *batch)
{
    const uint8_t *mask = batch->mask;
    for (int i = 0; i < cache->n_lanes; i++) {
        cache->counts[i] = gdn_batch_rows(batch, i);
        if (!mask) continue;
        int n_valid = 0;
        for (int row = 0; row < batch->length; row++) n_valid += mask[row] != 0;
        cache->counts[i] = n_valid;
        mask += batch->length;
    }
}

/* Fill cache->core with the lanes that have tokens and return their number.  A lane without any is not touched: its rows,
 * all masked, are cleared here. */
static int gather_lanes(gdn_cache *cache, int layer, const gdn_layer_args *args)
{
    const gdn_delta_config *c = &cache->pool->config;
    const size_t            y_row = (size_t)c->n_value_heads * (size_t)c->value_dim * gdn_type_bytes(c->type);
    size_t                  first_row = 0;
    int                     n_lanes = 0;
    for (int i = 0; i < cache->n_lanes; i++) {
        const int n_rows = gdn_batch_rows(&args->batch, i);
        if (cache->counts[i]) {
            gdn_core_lane *lane = &cache->core[n_lanes++];
            *lane = gdn_step_lane(cache, i, layer);
            lane->first_row = first_row;
            lane->n_rows = n_rows;
            lane->mask = args->batch.mask ? args->batch.mask + first_row : NULL;
        } else if (n_rows) {
            memset((unsigned char *)args->y + first_row * y_row, 0, (size_t)n_rows * y_row);
        }
        first_row += (size_t)n_rows;
    }
    return n_lanes;
}

gdn_status gdn_delta_layer(gdn_compute *compute, gdn_cache *cache, int layer, const gdn_delta_weights *weights,
                           const gdn_layer_args *args, gdn_error *err)
{
    gdn_status status = check_args(compute, cache, layer, weights, args, err);
    if (status) return status;
    count_valid(cache, &args->batch);
    status = gdn_step_enter(cache, layer, err);
    if (status) return status;
    if (cache->round.armed) gdn_round_record(cache, layer, weights, args);
    const gdn_delta_config *const c = &cache->pool->config;
    const gdn_core_args           core = {.config = c,
                                          .weights = weights,
                                          .n_lanes = gather_lanes(cache, layer, args),
                                          .lanes = cache->core,
                                          .qkv = args->qkv,
                                          .z = args->z,
                                          .qkv_stride = args->qkv_stride ? args->qkv_stride : (size_t)gdn_channels(c),
                                          .z_stride = args->z_stride ? args->z_stride : gdn_values(c),
                                          .a = args->a,
                                          .b = args->b,
                                          .y = args->y};
    if (core.n_lanes) gdn_core_delta(compute, &core);
    gdn_step_leave(cache, layer);
    return GDN_OK;
}
