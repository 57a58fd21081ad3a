/* Any bytes as a snapshot: they are refused with a sentence, or they fill a lane.  The checksums keep a fuzzer outside, so
 * the same bytes are also tried with checksums that fit. */
#include "gdn/delta.h"
#include "base/checksum.h"
#include "state/snapshot.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static gdn_pool  *pool;
static gdn_cache *cache;

static void must(int holds)
{
    if (!holds) abort();
}

static void open_once(void)
{
    const gdn_delta_config config = {.n_key_heads = 1,
                                     .n_value_heads = 1,
                                     .key_dim = 32,
                                     .value_dim = 32,
                                     .n_taps = 2,
                                     .type = GDN_BF16,
                                     .qk_eps = 1e-6f};
    if (pool) return;
    must(gdn_pool_open(&pool, &config, 1, 1, NULL) == GDN_OK);
    must(gdn_cache_open(&cache, pool, 1, 0, NULL) == GDN_OK);
    must(gdn_cache_add(cache, 1, 0, NULL) == GDN_OK);
}

static void try_image(const uint8_t *data, size_t size)
{
    gdn_snapshot    *snapshot = NULL;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status status = gdn_snapshot_parse(&snapshot, pool, data, size, &err);
    if (status) {
        must((status == GDN_BAD_FILE || status == GDN_MISMATCH) && err.code == status && err.message[0] && !snapshot);
        return;
    }
    must(gdn_snapshot_bytes(snapshot) == size && gdn_snapshot_offset(snapshot) >= 0);
    must(gdn_snapshot_restore(cache, 0, snapshot, NULL) == GDN_OK);
    must(gdn_cache_lane_offset(cache, 0) == gdn_snapshot_offset(snapshot));
    const float *state;
    const void  *tail;
    gdn_cache_peek(cache, 0, 0, &state, &tail);
    must(!memcmp(tail, data + GDN_IMAGE_HEADER, 192) && !memcmp(state, data + GDN_IMAGE_HEADER + 192, 4096));
    gdn_snapshot_release(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_once();
    try_image(data, size);
    if (size < GDN_IMAGE_HEADER) return 0;
    gdn_image_header header;
    uint8_t         *fitted = malloc(size);
    must(fitted != NULL);
    memcpy(fitted, data, size);
    memcpy(&header, data, sizeof header);
    header.payload_sum = gdn_checksum(data + GDN_IMAGE_HEADER, size - GDN_IMAGE_HEADER);
    header.header_sum = gdn_checksum(&header, offsetof(gdn_image_header, header_sum));
    memcpy(fitted, &header, sizeof header);
    try_image(fitted, size);
    free(fitted);
    return 0;
}
