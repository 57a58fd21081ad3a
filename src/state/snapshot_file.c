/* The file of a snapshot: a header of 128 bytes (gdn_image_header), then the payload, the bytes of a slot: for each layer the
 * tail [K-1][C] and the state [Hv][Dv][Dk].  Little-endian.  The header's checksum covers the payload's, and is checked
 * before anything of the header is used. */
#include "base/checksum.h"
#include "base/file.h"
#include "state/snapshot.h"
#include <stddef.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "snapshots are little-endian images of memory");

enum { VERSION = 1 };
static const char magic[8] = {'g', 'd', 'n', 's', 't', 'a', 't', 'e'};

static uint64_t header_sum(const gdn_image_header *header)
{
    return gdn_checksum(header, offsetof(gdn_image_header, header_sum));
}

gdn_status gdn_snapshot_save(const gdn_snapshot *snapshot, const char *path, gdn_error *err)
{
    if (!snapshot || !path)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "save: snapshot and path must not be NULL; pass both");
    const unsigned char *payload = (const unsigned char *)snapshot + GDN_IMAGE_HEADER;
    gdn_image_header     header = {.version = VERSION,
                                   .header_bytes = sizeof header,
                                   .shape = snapshot->shape,
                                   .offset = snapshot->offset,
                                   .payload_bytes = snapshot->payload_bytes,
                                   .payload_sum = gdn_checksum(payload, snapshot->payload_bytes)};
    memcpy(header.magic, magic, sizeof magic);
    header.header_sum = header_sum(&header);
    const gdn_bytes parts[] = {{&header, sizeof header}, {payload, snapshot->payload_bytes}};
    return gdn_file_replace(path, parts, 2, GDN_DURABLE, err);
}

/* Whether the header of an image of n_bytes is whole and fits the pool. */
static gdn_status check_header(const gdn_image_header *header, uint64_t n_bytes, const gdn_pool *pool, gdn_error *err)
{
    if (memcmp(header->magic, magic, sizeof magic))
        return gdn_fail(err, GDN_BAD_FILE, 0,
                        "load: this is not a gdn snapshot; name a file that gdn_snapshot_save wrote");
    if (header->version != VERSION || header->header_bytes != sizeof *header)
        return gdn_fail(err, GDN_BAD_FILE, (long long)offsetof(gdn_image_header, version),
                        "load: the snapshot has version %lu, this library reads %d; make it again",
                        (unsigned long)header->version, VERSION);
    if (header->header_sum != header_sum(header))
        return gdn_fail(err, GDN_BAD_FILE, (long long)offsetof(gdn_image_header, header_sum),
                        "load: the header of the snapshot is damaged; make it again");
    if (header->payload_bytes != n_bytes - sizeof *header)
        return gdn_fail(err, GDN_BAD_FILE, (long long)n_bytes,
                        "load: the snapshot has %llu bytes after its header and should have %llu; make it again",
                        (unsigned long long)(n_bytes - sizeof *header), (unsigned long long)header->payload_bytes);
    const gdn_status status = gdn_shape_check(&header->shape, pool, "load", err);
    if (status) return status;
    if (header->payload_bytes != pool->slot_bytes || header->offset < 0)
        return gdn_fail(err, GDN_BAD_FILE, (long long)offsetof(gdn_image_header, offset),
                        "load: the header of the snapshot contradicts itself; make it again");
    return GDN_OK;
}

static gdn_status check_size(uint64_t n_bytes, gdn_error *err)
{
    if (n_bytes >= GDN_IMAGE_HEADER) return GDN_OK;
    return gdn_fail(err, GDN_BAD_FILE, (long long)n_bytes, "load: %llu bytes are too few for a snapshot; make it again",
                    (unsigned long long)n_bytes);
}

static gdn_status check_payload(const gdn_image_header *header, const void *payload, gdn_error *err)
{
    if (gdn_checksum(payload, (size_t)header->payload_bytes) == header->payload_sum) return GDN_OK;
    return gdn_fail(err, GDN_BAD_FILE, GDN_IMAGE_HEADER, "load: the states of the snapshot are damaged; make it again");
}

static gdn_snapshot *alloc_for(const gdn_image_header *header, const gdn_pool *pool, gdn_error *err)
{
    gdn_snapshot *snapshot = gdn_snapshot_alloc(pool, header->offset);
    if (!snapshot)
        gdn_fail(err, GDN_NO_MEMORY, 0, "load: no memory for a snapshot of %zu bytes; release others",
                 pool->slot_bytes);
    return snapshot;
}

gdn_status gdn_snapshot_parse(gdn_snapshot **out, const gdn_pool *pool, const void *bytes, size_t n_bytes,
                              gdn_error *err)
{
    if (!out || !pool || (!bytes && n_bytes))
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "parse: out, pool and bytes must not be NULL; pass all three");
    gdn_status status = check_size(n_bytes, err);
    if (status) return status;
    const unsigned char *payload = (const unsigned char *)bytes + GDN_IMAGE_HEADER;
    gdn_image_header     header;
    memcpy(&header, bytes, sizeof header);
    status = check_header(&header, n_bytes, pool, err);
    if (!status) status = check_payload(&header, payload, err);
    if (status) return status;
    gdn_snapshot *snapshot = alloc_for(&header, pool, err);
    if (!snapshot) return GDN_NO_MEMORY;
    memcpy(gdn_snapshot_payload(snapshot), payload, snapshot->payload_bytes);
    *out = snapshot;
    return GDN_OK;
}

static gdn_status read_snapshot(gdn_snapshot **out, const gdn_pool *pool, gdn_file *file, gdn_error *err)
{
    gdn_image_header header;
    gdn_status       status = check_size(file->n_bytes, err);
    if (!status) status = gdn_file_read(file, &header, sizeof header, err);
    if (!status) status = check_header(&header, file->n_bytes, pool, err);
    if (status) return status;
    gdn_snapshot *snapshot = alloc_for(&header, pool, err);
    if (!snapshot) return GDN_NO_MEMORY;
    status = gdn_file_read(file, gdn_snapshot_payload(snapshot), snapshot->payload_bytes, err);
    if (!status) status = check_payload(&header, gdn_snapshot_payload(snapshot), err);
    if (status) gdn_snapshot_release(snapshot);
    else *out = snapshot;
    return status;
}

gdn_status gdn_snapshot_load(gdn_snapshot **out, const gdn_pool *pool, const char *path, gdn_error *err)
{
    if (!out || !pool || !path)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "load: out, pool and path must not be NULL; pass all three");
    gdn_file   file;
    gdn_status status = gdn_file_open(&file, path, err);
    if (status) return status;
    status = read_snapshot(out, pool, &file, err);
    gdn_file_close(&file);
    return status;
}
