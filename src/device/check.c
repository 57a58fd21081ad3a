/* The ranges that delta.h states, each with a sentence. */
#include "device/check.h"
#include <limits.h>

#define REFUSE(at, ...) return gdn_fail(err, GDN_BAD_ARGUMENT, at, __VA_ARGS__)

static int is_dim(int n) { return n >= 32 && n <= GDN_MAX_DIM && n % 32 == 0; }

static int is_type(gdn_type type) { return type == GDN_F32 || type == GDN_BF16; }

gdn_status gdn_type_check(const char *who, gdn_type type, gdn_error *err)
{
    if (!is_type(type)) REFUSE(type, "%s: %d is not a type; use GDN_F32 or GDN_BF16", who, (int)type);
    return GDN_OK;
}

gdn_status gdn_recipe_check(const char *who, gdn_recipe recipe, gdn_error *err)
{
    if (recipe != GDN_RECIPE_HF && recipe != GDN_RECIPE_MLX)
        REFUSE(recipe, "%s: %d is not a recipe; use GDN_RECIPE_HF or GDN_RECIPE_MLX", who, (int)recipe);
    return GDN_OK;
}

gdn_status gdn_dim_check(const char *who, const char *name, int n, gdn_error *err)
{
    if (!is_dim(n)) REFUSE(n, "%s: %s is %d; it must be a multiple of 32 from 32 to %d", who, name, n, GDN_MAX_DIM);
    return GDN_OK;
}

gdn_status gdn_heads_check(const char *who, int n_key_heads, int n_value_heads, gdn_head_map map, gdn_error *err)
{
    if (n_key_heads < 1 || n_key_heads > 4096 || n_value_heads < 1 || n_value_heads > 4096)
        REFUSE(0, "%s: %d key heads and %d value heads; each must be 1 to 4096", who, n_key_heads, n_value_heads);
    if (n_value_heads % n_key_heads != 0)
        REFUSE(0, "%s: %d key heads do not divide %d value heads", who, n_key_heads, n_value_heads);
    if (map != GDN_HEADS_GROUPED && map != GDN_HEADS_TILED)
        REFUSE(map, "%s: %d is not a head map; use GDN_HEADS_GROUPED or GDN_HEADS_TILED", who, (int)map);
    return GDN_OK;
}

gdn_status gdn_norm_check(const char *who, gdn_qk_norm_form form, float eps, gdn_error *err)
{
    if (form != GDN_QK_NORM_SUM && form != GDN_QK_NORM_RMS && form != GDN_QK_NORM_MAX)
        REFUSE(form, "%s: %d is not a q/k norm form; use GDN_QK_NORM_SUM, _RMS or _MAX", who, (int)form);
    if (!(eps > 0.0f && eps <= 1.0f)) REFUSE(0, "%s: eps is %g; it must be above 0 and at most 1", who, (double)eps);
    return GDN_OK;
}

gdn_status gdn_taps_check(const char *who, int n_taps, gdn_error *err)
{
    if (n_taps < 2 || n_taps > GDN_MAX_TAPS) REFUSE(n_taps, "%s: %d taps; use 2 to %d", who, n_taps, GDN_MAX_TAPS);
    return GDN_OK;
}

gdn_status gdn_config_check(const gdn_delta_config *c, gdn_error *err)
{
    static const char who[] = "config";
    gdn_status        s;
    if (!c) REFUSE(0, "config: is NULL");
    if ((s = gdn_heads_check(who, c->n_key_heads, c->n_value_heads, c->head_map, err)) != GDN_OK) return s;
    if ((s = gdn_dim_check(who, "key_dim", c->key_dim, err)) != GDN_OK) return s;
    if ((s = gdn_dim_check(who, "value_dim", c->value_dim, err)) != GDN_OK) return s;
    if ((s = gdn_taps_check(who, c->n_taps, err)) != GDN_OK) return s;
    if ((s = gdn_type_check(who, c->type, err)) != GDN_OK) return s;
    if ((s = gdn_recipe_check(who, c->recipe, err)) != GDN_OK) return s;
    return gdn_norm_check(who, c->qk_norm, c->qk_eps, err);
}

gdn_status gdn_batch_check(const gdn_batch *b, gdn_error *err)
{
    if (!b) REFUSE(0, "batch: is NULL");
    if (b->n_lanes < 1 || b->n_lanes > 4096) REFUSE(b->n_lanes, "batch: %d lanes; use 1 to 4096", b->n_lanes);
    if (b->n_tokens && b->mask) REFUSE(0, "batch: a ragged batch (n_tokens) takes no mask; leave one of them NULL");
    long long rows = 0;
    for (int i = 0; i < b->n_lanes; i++) {
        if (gdn_batch_rows(b, i) < 0)
            REFUSE(i, "batch: lane %d has %d tokens; a count cannot be negative", i, gdn_batch_rows(b, i));
        rows += gdn_batch_rows(b, i);
    }
    if (rows > INT_MAX) REFUSE(0, "batch: %lld rows; use at most %d", rows, INT_MAX);
    return GDN_OK;
}

static gdn_status slots_range(const char *who, const gdn_slots *s, size_t bytes, gdn_error *err)
{
    if (s->stride % 4 != 0 || s->stride < bytes)
        REFUSE(0, "%s: stride %zu must be a multiple of 4 and at least the %zu bytes of a lane", who, s->stride, bytes);
    return GDN_OK;
}

gdn_status gdn_slots_check(const char *who, const gdn_slots *in, const gdn_slots *out, int n_lanes, size_t bytes,
                           gdn_error *err)
{
    gdn_status s;
    if (in->base && (s = slots_range(who, in, bytes, err)) != GDN_OK) return s;
    if (!out->base) REFUSE(0, "%s: the output has no memory (base is NULL)", who);
    if ((s = slots_range(who, out, bytes, err)) != GDN_OK) return s;
    for (int i = 0; i < n_lanes; i++)
        if (out->index && out->index[i] < 0)
            REFUSE(i, "%s: lane %d's output slot is %d; it must be 0 or more", who, i, (int)out->index[i]);
    for (int i = 0; i < n_lanes; i++) /* lanes run side by side: none may write what another one reads or writes */
        for (int k = 0; k < n_lanes; k++) {
            if (k == i) continue;
            if (gdn_slot_out(out, i) == gdn_slot_out(out, k))
                REFUSE(i, "%s: lanes %d and %d have the same output slot", who, i, k);
            if (gdn_slot_out(out, i) == gdn_slot_in(in, k))
                REFUSE(i, "%s: lane %d's output slot is lane %d's input", who, i, k);
        }
    return GDN_OK;
}
