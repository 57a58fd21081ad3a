/* state/snapshot.h - a snapshot in memory, and what its file must know of it. */
#ifndef GDN_STATE_SNAPSHOT_H
#define GDN_STATE_SNAPSHOT_H
#include "state/pool.h"
#include <stdatomic.h>

/* Everything that gives the bytes of a slot their meaning. */
enum { GDN_SHAPE_FIELDS = 11 };
typedef struct gdn_shape {
    int32_t field[GDN_SHAPE_FIELDS]; /* in the order of gdn_shape_of; qk_eps by its bits */
} gdn_shape;

enum { GDN_IMAGE_HEADER = 128 }; /* bytes before the payload, of the object in memory as of the file */

struct gdn_snapshot {
    atomic_int refs;
    gdn_shape  shape;
    int64_t    offset;
    size_t     payload_bytes; /* of a slot: see state/pool.h */
};
_Static_assert(sizeof(struct gdn_snapshot) <= GDN_IMAGE_HEADER, "the object takes the place of the file's header");

static inline unsigned char *gdn_snapshot_payload(gdn_snapshot *s) { return (unsigned char *)s + GDN_IMAGE_HEADER; }

gdn_shape gdn_shape_of(const gdn_pool *pool);
/* OK, or MISMATCH with what differs. */
gdn_status gdn_shape_check(const gdn_shape *shape, const gdn_pool *pool, const char *what, gdn_error *err);

/* One reference, payload not set; NULL without memory. */
gdn_snapshot *gdn_snapshot_alloc(const gdn_pool *pool, int64_t offset);

/* The lane gets a slot of its own, whose bytes (of a snapshot's payload) the caller is to write; nobody else sees it.  The cache
 * records no round.  NO_SLOT. */
gdn_status gdn_lane_fill(unsigned char **slot, gdn_cache *cache, int lane, int64_t offset, gdn_error *err);

/* The header of a file: see state/snapshot_file.c. */
typedef struct gdn_image_header {
    char      magic[8];
    uint32_t  version, header_bytes;
    gdn_shape shape;
    uint32_t  reserved;
    int64_t   offset;
    uint64_t  payload_bytes, payload_sum;
    uint8_t   unused[32];
    uint64_t  header_sum; /* of the bytes before it */
} gdn_image_header;
_Static_assert(sizeof(gdn_image_header) == GDN_IMAGE_HEADER,
               "the header is written as it lies in memory, without gaps");

#endif
