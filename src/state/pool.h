/* state/pool.h - slots of recurrent memory, counted references, and what each slot holds.
 *
 * A slot is [layer]{ tail [K-1][C] of type, state [Hv][Dv][Dk] f32 } without gaps: key and value dims are multiples of 32,
 * which makes every part a multiple of 64 bytes and aligned to 64.  Slot -1 stands for none. */
#ifndef GDN_STATE_POOL_H
#define GDN_STATE_POOL_H
#include "base/status.h"
#include "gdn/delta.h"
#include <stdbool.h>

struct gdn_pool {
    gdn_delta_config config;
    int              n_layers, n_slots, n_free;
    size_t           tail_bytes, layer_bytes, slot_bytes;
    int32_t         *free_slots; /* [n_slots]; the first n_free are the free ones */
    int32_t         *refs;       /* [n_slots]; 0: free */
    int32_t         *n_held;     /* [n_slots]: layers that hold a state */
    uint64_t        *held;       /* [n_slots][n_words]: bit l is set when layer l holds a state */
    size_t           n_words;
    unsigned char   *memory; /* [n_slots][slot_bytes]; what no layer holds is undefined */
};

/* gdn_pool_slot_bytes of a pool that is yet to be opened; 0: more than there are addresses. */
size_t gdn_slot_bytes(const gdn_delta_config *config, int n_layers);

/* OK, or NO_SLOT with a sentence that begins with `what` when fewer than `n_needed` slots are free. */
gdn_status gdn_pool_check_free(const gdn_pool *pool, int n_needed, const char *what, gdn_error *err);

int  gdn_pool_take(gdn_pool *pool); /* a slot that holds nothing, with one reference; one must be free */
void gdn_pool_retain(gdn_pool *pool, int slot);
void gdn_pool_release(gdn_pool *pool, int slot); /* -1 is allowed; the last reference frees */
bool gdn_pool_shared(const gdn_pool *pool, int slot);

bool gdn_pool_holds(const gdn_pool *pool, int slot, int layer); /* false for -1 */
bool gdn_pool_whole(const gdn_pool *pool, int slot);            /* every layer holds a state; false for -1 */
void gdn_pool_mark(gdn_pool *pool, int slot, int layer);        /* the layer's tail and state have been written */

static inline unsigned char *gdn_pool_slot(const gdn_pool *pool, int slot)
{
    return pool->memory + (size_t)slot * pool->slot_bytes;
}
static inline void *gdn_pool_tail(const gdn_pool *pool, int slot, int layer)
{
    return gdn_pool_slot(pool, slot) + (size_t)layer * pool->layer_bytes;
}
static inline float *gdn_pool_state(const gdn_pool *pool, int slot, int layer)
{
    return (float *)(void *)(gdn_pool_slot(pool, slot) + (size_t)layer * pool->layer_bytes + pool->tail_bytes);
}

#endif
