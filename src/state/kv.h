/* kv.h - paged keys and values of the full-attention layers.
 *
 * A page holds GDN_PAGE positions of every layer: [layer][keys, values][head][GDN_PAGE][dim] of `type`.  A lane is a list of
 * pages and a length.  Lanes can own pages together, and a holder beside the lanes (the prefix index) can too; a page that
 * several own is never written: room is made by a copy of the last page where a lane's end lies inside such a page. */
#ifndef GDN_STATE_KV_H
#define GDN_STATE_KV_H
#include "device/dense.h"
#include <stdbool.h>

typedef struct gdn_kv_config {
    int      n_layers, n_heads, dim; /* of full attention; 1 or more */
    gdn_type type;
    int      n_pages, n_lanes; /* in all; lanes 0..n_lanes-1 exist from the start, empty */
    int      max_positions;    /* of a lane */
} gdn_kv_config;

typedef struct gdn_kv gdn_kv;

/* All memory is taken here: n_pages * gdn_kv_page_bytes.  Free with gdn_kv_close. */
gdn_status gdn_kv_open(gdn_kv **out, const gdn_kv_config *config, gdn_error *err);
void       gdn_kv_close(gdn_kv *kv); /* NULL is allowed */
size_t     gdn_kv_page_bytes(const gdn_kv_config *config);

long long gdn_kv_length(const gdn_kv *kv, int lane);
gdn_type  gdn_kv_type(const gdn_kv *kv);
int       gdn_kv_lanes(const gdn_kv *kv);

/* Make room for n more positions in each of lanes 0..n_lanes-1 (n_more[i]), all or nothing.
 * NO_SLOT: too few free pages; BAD_ARGUMENT: a lane would pass max_positions. */
gdn_status gdn_kv_reserve(gdn_kv *kv, const int *n_more, int n_lanes, gdn_error *err);

/* OK if the lane would find room for `length` (>= keep) positions in all once it has been made of the first `keep` positions of
 * these pages and the holder has dropped all that it holds; NO_SLOT if not. */
gdn_status gdn_kv_check_room(const gdn_kv *kv, int lane, const int *pages, long long keep, long long length,
                             gdn_error *err);

/* Store position `position` (reserved) of a layer: k and v [heads][dim] f32, rounded to the type. */
void gdn_kv_write(gdn_kv *kv, int lane, int layer, long long position, const float *k, const float *v);

/* The lane now has `length` positions, at most what is reserved; pages past it are given back. */
void gdn_kv_set_length(gdn_kv *kv, int lane, long long length);

/* Lane dst becomes the first `length` positions of lane src (another lane): it owns those pages too.  Nothing is copied. */
void gdn_kv_share(gdn_kv *kv, int dst, int src, long long length);

/* ---- pages by number: 0..n_pages-1 ---- */

int    gdn_kv_n_pages(const gdn_kv *kv);   /* in all */
size_t gdn_kv_page_size(const gdn_kv *kv); /* gdn_kv_page_bytes of its config */

/* The pages of a lane, in the order of its positions. */
const int *gdn_kv_list(const gdn_kv *kv, int lane);

/* The holder owns the page, which it or a lane owns already, once more; once less. */
void gdn_kv_hold(gdn_kv *kv, int page);
void gdn_kv_drop(gdn_kv *kv, int page);

/* Whether no lane owns a page that is held; how many such pages there are. */
bool gdn_kv_alone(const gdn_kv *kv, int page);
int  gdn_kv_n_alone(const gdn_kv *kv);

/* Lane dst becomes the first `length` positions of pages that are held or that lanes own. */
void gdn_kv_attach(gdn_kv *kv, int dst, const int *pages, long long length);

/* The bytes of a page. */
void *gdn_kv_page(const gdn_kv *kv, int page);

/* A layer's pages for gdn_dense_attention: pass a gdn_kv_view and gdn_kv_pages. */
typedef struct gdn_kv_view {
    const gdn_kv *kv;
    int           layer;
} gdn_kv_view;
void gdn_kv_pages(const void *arg, int lane, int head, int n_pages, const void **keys, const void **values);

#endif
