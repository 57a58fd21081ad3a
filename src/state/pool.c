#include "state/pool.h"
#include "base/alloc.h"
#include "device/device.h"
#include <string.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The layout from a checked config; false when a size does not fit. */
static bool lay_out(gdn_pool *pool)
{
    const gdn_delta_config *c = &pool->config;
    const size_t            row_bytes = (size_t)gdn_channels(c) * gdn_type_bytes(c->type);
    const size_t            head_bytes = (size_t)c->value_dim * (size_t)c->key_dim * sizeof(float);
    size_t                  state_bytes, n_bytes;
    pool->n_words = ((size_t)pool->n_layers + 63) / 64;
    pool->tail_bytes = row_bytes * ((size_t)c->n_taps - 1);
    return gdn_size_mul(&state_bytes, head_bytes, (size_t)c->n_value_heads) &&
           gdn_size_add(&pool->layer_bytes, pool->tail_bytes, state_bytes) &&
           gdn_size_mul(&pool->slot_bytes, pool->layer_bytes, (size_t)pool->n_layers) &&
           gdn_size_mul(&n_bytes, pool->slot_bytes, (size_t)pool->n_slots) && n_bytes <= PTRDIFF_MAX;
}

size_t gdn_slot_bytes(const gdn_delta_config *config, int n_layers)
{
    gdn_pool pool = {.config = *config, .n_layers = n_layers, .n_slots = 1};
    return lay_out(&pool) ? pool.slot_bytes : 0;
}

gdn_status gdn_pool_open(gdn_pool **out, const gdn_delta_config *config, int n_layers, int n_slots, gdn_error *err)
{
    if (!out || !config) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "pool: out and config must not be NULL; pass both");
    const gdn_status status = gdn_config_check(config, err);
    if (status) return status;
    if (n_layers < 1 || n_layers > 1024)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n_layers, "pool: n_layers is %d; use 1 to 1024", n_layers);
    if (n_slots < 1 || n_slots > 65536)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n_slots, "pool: n_slots is %d; use 1 to 65536", n_slots);
    gdn_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return gdn_fail(err, GDN_NO_MEMORY, 0, "pool: no memory for the pool itself; free some");
    pool->config = *config;
    pool->n_layers = n_layers;
    pool->n_slots = pool->n_free = n_slots;
    if (!lay_out(pool)) {
        gdn_pool_close(pool);
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "pool: %d slots of %d layers of this shape exceed the address space; use less", n_slots,
                        n_layers);
    }
    const size_t n = (size_t)n_slots;
    pool->free_slots = malloc(n * sizeof *pool->free_slots);
    pool->refs = calloc(n, sizeof *pool->refs);
    pool->n_held = calloc(n, sizeof *pool->n_held);
    pool->held = calloc(n * pool->n_words, sizeof *pool->held);
    pool->memory = gdn_alloc_aligned(n * pool->slot_bytes);
    if (!pool->free_slots || !pool->refs || !pool->n_held || !pool->held || !pool->memory) {
        const size_t slot_bytes = pool->slot_bytes;
        gdn_pool_close(pool);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "pool: no memory for %d slots of %zu bytes; use fewer", n_slots,
                        slot_bytes);
    }
    for (int i = 0; i < n_slots; i++) pool->free_slots[i] = n_slots - 1 - i; /* slot 0 is taken first */
    *out = pool;
    return GDN_OK;
}

void gdn_pool_close(gdn_pool *pool)
{
    if (!pool) return;
    free(pool->free_slots);
    free(pool->refs);
    free(pool->n_held);
    free(pool->held);
    free(pool->memory);
    free(pool);
}

size_t gdn_pool_slot_bytes(const gdn_pool *pool) { return pool->slot_bytes; }
int    gdn_pool_free_slots(const gdn_pool *pool) { return pool->n_free; }

/* ---- references -------------------------------------------------------------------------------------------------- */

gdn_status gdn_pool_check_free(const gdn_pool *pool, int n_needed, const char *what, gdn_error *err)
{
    if (n_needed <= pool->n_free) return GDN_OK;
    return gdn_fail(
        err, GDN_NO_SLOT, 0,
        "%s: %d slots are needed and %d of the pool's %d are free; filter or close lanes, or open a larger pool", what,
        n_needed, pool->n_free, pool->n_slots);
}

int gdn_pool_take(gdn_pool *pool)
{
    const int slot = pool->free_slots[--pool->n_free];
    pool->refs[slot] = 1;
    pool->n_held[slot] = 0;
    memset(pool->held + (size_t)slot * pool->n_words, 0, pool->n_words * sizeof *pool->held);
    return slot;
}

void gdn_pool_retain(gdn_pool *pool, int slot) { pool->refs[slot]++; }

void gdn_pool_release(gdn_pool *pool, int slot)
{
    if (slot < 0 || --pool->refs[slot]) return;
#ifdef GDN_DEBUG
    memset(gdn_pool_slot(pool, slot), 0xff, pool->slot_bytes); /* NaN in both types */
#endif
    pool->free_slots[pool->n_free++] = slot;
}

bool gdn_pool_shared(const gdn_pool *pool, int slot) { return pool->refs[slot] > 1; }

/* ---- what a slot holds ------------------------------------------------------------------------------------------- */

bool gdn_pool_holds(const gdn_pool *pool, int slot, int layer)
{
    return slot >= 0 && (pool->held[(size_t)slot * pool->n_words + (size_t)layer / 64] >> layer % 64 & 1);
}

bool gdn_pool_whole(const gdn_pool *pool, int slot) { return slot >= 0 && pool->n_held[slot] == pool->n_layers; }

void gdn_pool_mark(gdn_pool *pool, int slot, int layer)
{
    if (gdn_pool_holds(pool, slot, layer)) return;
    pool->held[(size_t)slot * pool->n_words + (size_t)layer / 64] |= UINT64_C(1) << layer % 64;
    pool->n_held[slot]++;
}
