/* check.h - argument checks that the operations share.  Each returns OK, or BAD_ARGUMENT with a sentence that begins with
 * `who`. */
#ifndef GDN_DEVICE_CHECK_H
#define GDN_DEVICE_CHECK_H
#include "device/device.h"

gdn_status gdn_type_check(const char *who, gdn_type type, gdn_error *err);
gdn_status gdn_recipe_check(const char *who, gdn_recipe recipe, gdn_error *err);
gdn_status gdn_dim_check(const char *who, const char *name, int n, gdn_error *err);
gdn_status gdn_taps_check(const char *who, int n_taps, gdn_error *err);
gdn_status gdn_heads_check(const char *who, int n_key_heads, int n_value_heads, gdn_head_map map, gdn_error *err);
gdn_status gdn_norm_check(const char *who, gdn_qk_norm_form form, float eps, gdn_error *err);

/* Slots of `bytes` each. */
gdn_status gdn_slots_check(const char *who, const gdn_slots *in, const gdn_slots *out, int n_lanes, size_t bytes,
                           gdn_error *err);

static inline const void *gdn_slot_in(const gdn_slots *s, int lane)
{
    if (!s->base || (s->index && s->index[lane] < 0)) return NULL;
    return (const char *)s->base + (size_t)(s->index ? s->index[lane] : lane) * s->stride;
}
static inline void *gdn_slot_out(const gdn_slots *s, int lane)
{
    return (char *)s->base + (size_t)(s->index ? s->index[lane] : lane) * s->stride;
}

#endif
