/* state/cache.h - lanes, and what the parts of state/ and the layer know of each other.
 *
 * A lane has a slot `cur` and perhaps a slot `prev`.  A forward of a layer writes into cur; it reads cur if cur holds a state
 * for that layer, else prev, else it starts from no state.  prev is there
 *   - in the middle of a step: cur was shared, the first layer took a fresh slot for it and the others have not yet run;
 *     once cur is whole, prev is released: a copy on write that copies nothing;
 *   - in a recorded round: prev is the state at its begin, cur the shadow that the round's forwards write.
 * Lanes without tokens in a round take no shadow.  Lanes that a round leaves out step as without it. */
#ifndef GDN_STATE_CACHE_H
#define GDN_STATE_CACHE_H
#include "device/device.h"
#include "state/pool.h"

typedef enum gdn_padding {
    GDN_PADDING_NONE = 0,
    GDN_PADDING_LEFT = 1,  /* `padding` rows to skip */
    GDN_PADDING_LENGTH = 2 /* `padding` rows that are valid */
} gdn_padding;

typedef struct gdn_lane {
    int         cur, prev; /* slots or -1 */
    int64_t     offset;
    gdn_padding padding_kind;
    int         padding;
    bool        in_round;     /* while a round is armed: it can be rolled back */
    int64_t     begin_offset; /* while it is in a round: the offset at its begin */
    int         window;       /* tokens of the lane in a recorded round; 0: it has no shadow */
    int         kept;         /* while a round ends: cur or prev, whichever will hold the lane */
} gdn_lane;

/* The recorded inputs: for each layer the valid rows of qkv, a and b, lane after lane. */
typedef struct gdn_round {
    bool armed;
    int  n_layers_run; /* recorded layers; above 0 the round is `recorded`: windows and shadows are set */
    const gdn_delta_weights **weights; /* [n_layers]; NULL: the layer has not run in this round */
    size_t                    qkv_row, ab_row, a_at, b_at, layer_bytes, n_bytes;
    unsigned char *memory; /* [n_layers]{ qkv [rows][C], a [rows][Hv], b [rows][Hv] }; NULL when max_window is 0 */
} gdn_round;

struct gdn_cache {
    gdn_pool      *pool;
    int            n_lanes, max_lanes, max_window;
    gdn_lane      *lanes;  /* [max_lanes] */
    int           *counts; /* [max_lanes]: valid rows of the forward that is running */
    gdn_core_lane *core;   /* [max_lanes]: the lanes given to the device */
    gdn_round      round;
};

static inline bool gdn_cache_recorded(const gdn_cache *cache) { return cache->round.n_layers_run > 0; }
static inline bool gdn_cache_lane_valid(const gdn_cache *cache, int lane) { return lane >= 0 && lane < cache->n_lanes; }

/* ---- checks: OK, or the error of function `what` -------------------------------------------------------------------- */

gdn_status gdn_cache_check_lane(const gdn_cache *cache, int lane, const char *what, gdn_error *err);
gdn_status gdn_cache_check_unarmed(const gdn_cache *cache, const char *what, gdn_error *err);
gdn_status gdn_cache_check_unrecorded(const gdn_cache *cache, const char *what, gdn_error *err);
/* No lane, or `lane` only when it is >= 0, is in the middle of a step. */
gdn_status gdn_cache_check_stepped(const gdn_cache *cache, int lane, const char *what, gdn_error *err);
gdn_status gdn_cache_check_state(const gdn_cache *cache, int lane, const char *what, gdn_error *err);

/* ---- lanes --------------------------------------------------------------------------------------------------------- */

/* The slot that a forward of `layer` reads for the lane, or -1. */
int  gdn_lane_source(const gdn_pool *pool, const gdn_lane *lane, int layer);
void gdn_lane_release(gdn_pool *pool, gdn_lane *lane);
/* Drop the shadow of a lane: it is again what it was before. */
void gdn_lane_revert(gdn_pool *pool, gdn_lane *lane);
bool gdn_cache_padded(const gdn_cache *cache);

/* ---- a forward: enter, compute, leave ------------------------------------------------------------------------------- */

/* Take the slots that layer `layer` writes, for the rows in cache->counts; in a round, check that it fits the round.  A
 * failure changes nothing. */
gdn_status gdn_step_enter(gdn_cache *cache, int layer, gdn_error *err);
/* The lanes with rows have written their slot. */
void gdn_step_leave(gdn_cache *cache, int layer);
/* Where layer `layer` of lane i reads and writes; rows and mask are the caller's. */
gdn_core_lane gdn_step_lane(const gdn_cache *cache, int i, int layer);

gdn_status gdn_round_open(gdn_cache *cache, gdn_error *err);
void       gdn_round_close(gdn_cache *cache);
/* Whether a forward with cache->counts rows fits the round. */
gdn_status gdn_round_check(const gdn_cache *cache, int layer, gdn_error *err);
/* Keep the inputs of the forward. */
void gdn_round_record(gdn_cache *cache, int layer, const gdn_delta_weights *weights, const gdn_layer_args *args);

/* As gdn_round_begin, for the lanes with drafts[i] > 0; NULL: for all.  The others step as without a round: of any length, in place,
 * for good; their keep is 0. */
gdn_status gdn_round_begin_some(gdn_cache *cache, const int *drafts, gdn_error *err);
/* Drop the round that is armed, if one is: its lanes go back to where they were before it. */
void gdn_round_drop(gdn_cache *cache);

#endif
