/* A header of 96 bytes, then the list: the ids of all tokens and the pages of keys and values from that of position `from` on; then
 * the state: the slot, n_hidden floats if MTP drafts (then the pages have its layer, too), and the logits if there are any.
 * Little-endian.  The checksum of the header covers those of the list and of the state, each of which is made of the checksums of
 * its parts. */
#include "engine/record.h"
#include "base/checksum.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian images of memory");

enum { VERSION = 2 };
static const char magic[8] = {'g', 'd', 'n', 'r', 'e', 'c', 'r', 'd'};

typedef struct header {
    char     magic[8];
    uint32_t version, header_bytes;
    uint64_t binding;
    int64_t  from, to;
    uint64_t slot_bytes, page_bytes;
    uint32_t n_logits, n_hidden;
    uint64_t body_bytes, list_sum, state_sum, header_sum;
} header;
_Static_assert(sizeof(header) == 96, "the header is written as it lies in memory, without gaps");

static uint64_t header_sum(const header *h) { return gdn_checksum(h, offsetof(header, header_sum)); }

/* The parts of the list, of the state; returns how many. */
static int list_parts(const gdn_record *r, gdn_bytes *parts)
{
    int n = 0;
    parts[n++] = (gdn_bytes){r->tokens, (size_t)r->to * sizeof *r->tokens};
    for (int i = r->from / GDN_PAGE; i * GDN_PAGE < r->to; i++)
        parts[n++] = (gdn_bytes){gdn_kv_page(r->kv, r->pages[i]), gdn_kv_page_size(r->kv)};
    return n;
}

static int state_parts(const gdn_record *r, bool has_logits, gdn_bytes *parts)
{
    int n = 0;
    parts[n++] = (gdn_bytes){r->slot, r->slot_bytes};
    if (r->n_hidden) parts[n++] = (gdn_bytes){r->hidden, (size_t)r->n_hidden * sizeof *r->hidden};
    if (has_logits) parts[n++] = (gdn_bytes){r->logits, (size_t)r->n_logits * sizeof *r->logits};
    return n;
}

long long gdn_record_bytes(const gdn_record *r)
{
    const size_t n_pages = (size_t)((r->to + GDN_PAGE - 1) / GDN_PAGE - r->from / GDN_PAGE);
    const size_t bytes = sizeof(header) + (size_t)r->to * sizeof *r->tokens + n_pages * gdn_kv_page_size(r->kv) +
                         r->slot_bytes + (size_t)r->n_hidden * sizeof *r->hidden +
                         (r->logits ? (size_t)r->n_logits * sizeof *r->logits : 0);
    return (long long)bytes;
}

static gdn_bytes *room_for(const gdn_record *r, gdn_error *err)
{
    gdn_bytes *parts = calloc((size_t)(r->to / GDN_PAGE - r->from / GDN_PAGE) + 6, sizeof *parts);
    if (!parts) gdn_fail(err, GDN_NO_MEMORY, 0, "record: no memory for the list of its pages");
    return parts;
}

static uint64_t add_sum(uint64_t sum, const gdn_bytes *part)
{
    const uint64_t both[2] = {sum, gdn_checksum(part->data, part->n)};
    return gdn_checksum(both, sizeof both);
}

gdn_status gdn_record_write(const gdn_record *r, const char *path, gdn_durability durability, gdn_error *err)
{
    gdn_bytes *parts = room_for(r, err);
    if (!parts) return GDN_NO_MEMORY;
    const int n_list = 1 + list_parts(r, parts + 1), n = n_list + state_parts(r, r->logits != NULL, parts + n_list);
    header    h = {.version = VERSION,
                   .header_bytes = sizeof h,
                   .binding = r->binding,
                   .from = r->from,
                   .to = r->to,
                   .slot_bytes = r->slot_bytes,
                   .page_bytes = gdn_kv_page_size(r->kv),
                   .n_logits = r->logits ? (uint32_t)r->n_logits : 0,
                   .n_hidden = (uint32_t)r->n_hidden};
    memcpy(h.magic, magic, sizeof magic);
    for (int i = 1; i < n; i++) {
        h.body_bytes += parts[i].n;
        uint64_t *const sum = i < n_list ? &h.list_sum : &h.state_sum;
        *sum = add_sum(*sum, &parts[i]);
    }
    h.header_sum = header_sum(&h);
    parts[0] = (gdn_bytes){&h, sizeof h};
    const gdn_status s = gdn_file_replace(path, parts, n, durability, err);
    free(parts);
    return s;
}

bool gdn_record_is(const char *path)
{
    gdn_file file;
    char     first[sizeof magic];
    if (gdn_file_open(&file, path, NULL)) return false;
    const bool is =
        !file.n_bytes || (!gdn_file_read(&file, first, sizeof first, NULL) && !memcmp(first, magic, sizeof magic));
    gdn_file_close(&file);
    return is;
}

static gdn_status check_header(const header *h, uint64_t n_bytes, const gdn_record *like, gdn_error *err)
{
    if (memcmp(h->magic, magic, sizeof magic) != 0)
        return gdn_fail(err, GDN_BAD_FILE, 0, "state: this is not a saved sequence; name a file that gdn wrote");
    if (h->version != VERSION || h->header_bytes != sizeof *h)
        return gdn_fail(err, GDN_BAD_FILE, 8, "state: the file has version %lu, this library reads %d; make it again",
                        (unsigned long)h->version, VERSION);
    if (h->header_sum != header_sum(h))
        return gdn_fail(err, GDN_BAD_FILE, (long long)offsetof(header, header_sum),
                        "state: the header of the file is damaged; make it again");
    if (h->binding != like->binding || h->slot_bytes != like->slot_bytes ||
        h->page_bytes != gdn_kv_page_size(like->kv) || h->n_hidden != (uint32_t)like->n_hidden ||
        (h->n_logits && h->n_logits != (uint32_t)like->n_logits))
        return gdn_fail(
            err, GDN_MISMATCH, 0,
            "state: the file was made with another model, version, drafter or type of keys and values; use that one");
    if (h->from < 0 || h->to <= h->from || h->to > INT32_MAX / 2)
        return gdn_fail(err, GDN_BAD_FILE, 24, "state: the header of the file contradicts itself; make it again");
    const uint64_t n_pages = (uint64_t)((h->to + GDN_PAGE - 1) / GDN_PAGE - h->from / GDN_PAGE);
    const uint64_t body = (uint64_t)h->to * sizeof(int32_t) + n_pages * h->page_bytes + h->slot_bytes +
                          ((uint64_t)h->n_hidden + h->n_logits) * sizeof(float);
    const uint64_t wanted = sizeof *h + body;
    if (h->body_bytes != body || n_bytes != wanted)
        return gdn_fail(err, GDN_BAD_FILE, (long long)n_bytes,
                        "state: the file has %llu bytes and should have %llu; make it again",
                        (unsigned long long)n_bytes, (unsigned long long)wanted);
    return GDN_OK;
}

gdn_status gdn_record_open(gdn_record_file *in, const gdn_record *like, const char *path, gdn_error *err)
{
    header     h;
    gdn_status s = gdn_file_open(&in->file, path, err);
    if (s) return s;
    if (in->file.n_bytes < sizeof h)
        s = gdn_fail(err, GDN_BAD_FILE, (long long)in->file.n_bytes,
                     "state: %llu bytes are too few for a saved sequence; make it again",
                     (unsigned long long)in->file.n_bytes);
    if (!s) s = gdn_file_read(&in->file, &h, sizeof h, err);
    if (!s) s = check_header(&h, in->file.n_bytes, like, err);
    if (s) {
        gdn_file_close(&in->file);
        return s;
    }
    in->from = (int)h.from;
    in->to = (int)h.to;
    in->has_logits = h.n_logits > 0;
    in->list_sum = h.list_sum;
    in->state_sum = h.state_sum;
    return GDN_OK;
}

static gdn_status read_parts(gdn_record_file *in, const gdn_bytes *parts, int n, uint64_t wanted, gdn_error *err)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++) {
        const gdn_status s = gdn_file_read(&in->file, (void *)(uintptr_t)parts[i].data, parts[i].n, err);
        if (s) return s;
        sum = add_sum(sum, &parts[i]);
    }
    if (sum == wanted) return GDN_OK;
    return gdn_fail(err, GDN_BAD_FILE, (long long)sizeof(header), "state: the file is damaged; make it again");
}

gdn_status gdn_record_read_list(gdn_record_file *in, const gdn_record *into, gdn_error *err)
{
    gdn_bytes *parts = room_for(into, err);
    if (!parts) return GDN_NO_MEMORY;
    const gdn_status s = read_parts(in, parts, list_parts(into, parts), in->list_sum, err);
    free(parts);
    return s;
}

gdn_status gdn_record_read_state(gdn_record_file *in, const gdn_record *into, gdn_error *err)
{
    gdn_bytes parts[3];
    return read_parts(in, parts, state_parts(into, in->has_logits, parts), in->state_sum, err);
}
