/* prefix.h - the prefix index: what lanes have computed, kept for whoever comes with the same tokens.
 *
 * A radix tree over token ids.  A node is a run of at most GDN_PAGE tokens that lie in one page of keys and values, which the node
 * holds; below it hang the runs that follow.  A node that ends where a state was kept owns a snapshot: a lane of `kept`, which
 * shares the slot of the lane that it was taken from; what the model put out there, if MTP drafts, whose keys and values are in the
 * pages; and perhaps the logits.  Taking a snapshot and going back to it copy nothing: whoever runs next writes to a slot and a page
 * of its own.
 *
 * What is kept never changes a result: it is what computing the same tokens would give, bit for bit. */
#ifndef GDN_ENGINE_PREFIX_H
#define GDN_ENGINE_PREFIX_H
#include "engine/record.h"

typedef struct gdn_prefix gdn_prefix;

/* Most snapshots that so many bytes have room for: slots that the pool must have besides those of the lanes. */
int gdn_prefix_slots(size_t slot_bytes, long long budget_bytes);

/* An index over what lanes of caches of `pool` and of `kv` compute, both borrowed; all memory is taken here: for each snapshot
 * n_logits and n_hidden floats, for each page 64 ids and two nodes.  n_snapshots 0: nothing is ever kept.
 * Free with gdn_prefix_close, before both. */
gdn_status gdn_prefix_open(gdn_prefix **out, gdn_pool *pool, gdn_kv *kv, int n_snapshots, int n_logits, int n_hidden,
                           long long budget_bytes, gdn_error *err);
void       gdn_prefix_close(gdn_prefix *prefix); /* NULL is allowed */

bool gdn_prefix_keeps(const gdn_prefix *prefix); /* false: nothing is ever kept */

/* A place in the index: the end of a node.  -1: none.  Valid until something is added or evicted. */

/* The deepest snapshot that begins the list; one at its very end only if it has logits. */
int gdn_prefix_find(const gdn_prefix *prefix, const int32_t *tokens, int n);
int gdn_prefix_depth(const gdn_prefix *prefix, int i); /* tokens up to it; 0 for -1 */

/* The pages of keys and values up to a node, borrowed until the next call. */
const int *gdn_prefix_pages(gdn_prefix *prefix, int i);

/* The lane of `cache` and of `kv` becomes what is kept at the node; returns its logits, or NULL.  Marks the node as used. */
const float *gdn_prefix_restore(gdn_prefix *prefix, int i, gdn_cache *cache, int lane);

/* What the model put out at the last token of the node, borrowed; NULL: for -1, and if n_hidden is 0. */
const float *gdn_prefix_hidden(const gdn_prefix *prefix, int i);

/* Keep what a lane holds: the state after these n >= 1 tokens, the pages of their keys and values, what the model put out at the last
 * (hidden [n_hidden]; NULL if that is 0), and the logits if not NULL.
 * Room is made by eviction.  What is there already is marked as used. */
void gdn_prefix_keep(gdn_prefix *prefix, const int32_t *tokens, int n, const int *pages, const gdn_cache *cache,
                     int lane, const float *hidden, const float *logits);

/* Do not evict the snapshot of this node until another one, or -1, is pinned; it stays the same number. */
void gdn_prefix_pin(gdn_prefix *prefix, int i);

/* Time goes on: what was used before is older now. */
void gdn_prefix_tick(gdn_prefix *prefix);

/* gdn_kv_reserve, with room made by eviction: what lanes need wins over what is kept. */
gdn_status gdn_prefix_reserve(gdn_prefix *prefix, const int *n_more, int n_lanes, gdn_error *err);

/* Evict until bytes are within the budget again: lanes may have left pages to the index alone. */
void gdn_prefix_trim(gdn_prefix *prefix);

/* Who is told of a snapshot before it is given up, and may describe and mark snapshots, but change nothing else here. */
typedef void gdn_prefix_leave_fn(void *arg, int i);
void         gdn_prefix_on_leave(gdn_prefix *prefix, gdn_prefix_leave_fn *leave, void *arg);

/* Give up the snapshot that is worth least; false: there is none, or only the pinned one. */
bool gdn_prefix_evict(gdn_prefix *prefix);

/* The shallowest snapshot that is not marked as stored, or -1; the last one before a snapshot, likewise if it is not; what a record
 * of a snapshot holds (from: the depth of the last one before it that is stored; all of it borrowed until the next call); the mark. */
int  gdn_prefix_unstored(const gdn_prefix *prefix);
int  gdn_prefix_unstored_before(const gdn_prefix *prefix, int i);
void gdn_prefix_describe(gdn_prefix *prefix, int i, gdn_record *r);
void gdn_prefix_set_stored(gdn_prefix *prefix, int i);

/* What it takes now: slots, outputs and logits of snapshots, pages that no lane owns, nodes. */
long long gdn_prefix_bytes(const gdn_prefix *prefix);
int       gdn_prefix_n_snapshots(const gdn_prefix *prefix);

#endif
