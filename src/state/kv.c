#include "state/kv.h"
#include "base/alloc.h"
#include <string.h>

typedef struct kv_lane {
    int       n_pages;
    long long length;
    bool      parts; /* while room is made: it leaves its last page to the others that own it */
} kv_lane;

struct gdn_kv {
    gdn_kv_config  config;
    int            max_pages, n_free; /* of a lane; in all */
    size_t         head_bytes, page_bytes;
    int           *free_pages; /* [n_pages]; the first n_free are free */
    int           *refs;       /* [n_pages]: how often the page is owned, by lanes and the holder */
    int           *held;       /* [n_pages]: by the holder alone */
    int           *pages;      /* [n_lanes][max_pages] */
    kv_lane       *lanes;
    unsigned char *memory;
};

static size_t head_bytes(const gdn_kv_config *c) { return (size_t)GDN_PAGE * c->dim * gdn_type_bytes(c->type); }

size_t gdn_kv_page_bytes(const gdn_kv_config *c) { return head_bytes(c) * c->n_heads * 2 * c->n_layers; }

gdn_status gdn_kv_open(gdn_kv **out, const gdn_kv_config *c, gdn_error *err)
{
    if (!out || !c || c->n_layers < 1 || c->n_heads < 1 || c->dim < 1 || c->n_pages < 1 || c->n_lanes < 1 ||
        c->max_positions < 1)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "kv: a size is below 1; use 1 or more of each");
    gdn_kv *kv = calloc(1, sizeof *kv);
    if (!kv) return gdn_fail(err, GDN_NO_MEMORY, 0, "kv: no memory");
    kv->config = *c;
    kv->max_pages = (c->max_positions + GDN_PAGE - 1) / GDN_PAGE;
    kv->n_free = c->n_pages;
    kv->head_bytes = head_bytes(c);
    kv->page_bytes = gdn_kv_page_bytes(c);
    kv->free_pages = malloc((size_t)c->n_pages * sizeof *kv->free_pages);
    kv->refs = calloc((size_t)c->n_pages, sizeof *kv->refs);
    kv->held = calloc((size_t)c->n_pages, sizeof *kv->held);
    kv->pages = malloc((size_t)c->n_lanes * kv->max_pages * sizeof *kv->pages);
    kv->lanes = calloc((size_t)c->n_lanes, sizeof *kv->lanes);
    size_t n_bytes;
    if (gdn_size_mul(&n_bytes, kv->page_bytes, (size_t)c->n_pages)) kv->memory = gdn_alloc_aligned(n_bytes);
    if (!kv->free_pages || !kv->refs || !kv->held || !kv->pages || !kv->lanes || !kv->memory) {
        const size_t page_bytes = kv->page_bytes;
        gdn_kv_close(kv);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "kv: no memory for %d pages of %zu bytes; use fewer", c->n_pages,
                        page_bytes);
    }
    for (int i = 0; i < c->n_pages; i++) kv->free_pages[i] = c->n_pages - 1 - i; /* page 0 is taken first */
    *out = kv;
    return GDN_OK;
}

void gdn_kv_close(gdn_kv *kv)
{
    if (!kv) return;
    free(kv->free_pages);
    free(kv->refs);
    free(kv->held);
    free(kv->pages);
    free(kv->lanes);
    free(kv->memory);
    free(kv);
}

long long gdn_kv_length(const gdn_kv *kv, int lane) { return kv->lanes[lane].length; }

int gdn_kv_lanes(const gdn_kv *kv) { return kv->config.n_lanes; }

gdn_type gdn_kv_type(const gdn_kv *kv) { return kv->config.type; }

/* ---- pages --------------------------------------------------------------------------------------------------------- */

static int pages_for(long long length) { return (int)((length + GDN_PAGE - 1) / GDN_PAGE); }

/* Page number `i` of a lane. */
static int *page_at(const gdn_kv *kv, int lane, long long i) { return &kv->pages[(size_t)lane * kv->max_pages + i]; }

static int take(gdn_kv *kv)
{
    const int page = kv->free_pages[--kv->n_free];
    kv->refs[page] = 1;
    return page;
}

static void release(gdn_kv *kv, int page)
{
    if (--kv->refs[page] == 0) kv->free_pages[kv->n_free++] = page;
}

/* Whether positions from `length` on begin inside a page that other lanes own too. */
static bool cuts_shared(const gdn_kv *kv, int lane, long long length)
{
    return length % GDN_PAGE && kv->refs[*page_at(kv, lane, length / GDN_PAGE)] > 1;
}

static gdn_status check_free(const gdn_kv *kv, long long n_needed, gdn_error *err)
{
    if (n_needed <= kv->n_free) return GDN_OK;
    return gdn_fail(err, GDN_NO_SLOT, 0,
                    "kv: %lld pages of %d tokens are needed and %d are free; use shorter texts or more memory",
                    n_needed, GDN_PAGE, kv->n_free);
}

/* The lane's last page, which it parts with, is copied for it alone. */
static void copy_last(gdn_kv *kv, int lane)
{
    int *const last = page_at(kv, lane, kv->lanes[lane].length / GDN_PAGE);
    const int  page = take(kv);
    memcpy(kv->memory + (size_t)page * kv->page_bytes, kv->memory + (size_t)*last * kv->page_bytes, kv->page_bytes);
    *last = page;
    kv->lanes[lane].parts = false;
}

gdn_status gdn_kv_reserve(gdn_kv *kv, const int *n_more, int n_lanes, gdn_error *err)
{
    long long needed = 0;
    for (int i = 0; i < n_lanes; i++)
        if (kv->lanes[i].length + n_more[i] > kv->config.max_positions)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "kv: lane %d would have %lld tokens; at most %d fit", i,
                            kv->lanes[i].length + n_more[i], kv->config.max_positions);
    for (int i = 0; i < n_lanes; i++) {
        kv_lane  *lane = &kv->lanes[i];
        const int n = pages_for(lane->length + n_more[i]);
        needed += n > lane->n_pages ? n - lane->n_pages : 0;
        lane->parts = n_more[i] > 0 && cuts_shared(kv, i, lane->length);
        if (!lane->parts) continue;
        needed++;
        kv->refs[*page_at(kv, i, lane->length / GDN_PAGE)]--; /* the last of its owners needs no copy */
    }
    const gdn_status status = check_free(kv, needed, err);
    for (int i = 0; i < n_lanes; i++) {
        kv_lane *lane = &kv->lanes[i];
        if (status) {
            if (lane->parts) kv->refs[*page_at(kv, i, lane->length / GDN_PAGE)]++;
            lane->parts = false;
            continue;
        }
        if (lane->parts) copy_last(kv, i);
        while (lane->n_pages < pages_for(lane->length + n_more[i])) *page_at(kv, i, lane->n_pages++) = take(kv);
    }
    return status;
}

/* Whether lanes own the page, apart from `lane`, which would have it as number `i`. */
static bool strangers_own(const gdn_kv *kv, int lane, long long i, int page)
{
    const bool mine = i < kv->lanes[lane].n_pages && *page_at(kv, lane, i) == page;
    return kv->refs[page] - kv->held[page] > mine;
}

gdn_status gdn_kv_check_room(const gdn_kv *kv, int lane, const int *pages, long long keep, long long length,
                             gdn_error *err)
{
    const int n_kept = pages_for(keep);
    long long needed = pages_for(length) - n_kept, n_free = kv->n_free + gdn_kv_n_alone(kv);
    if (length > keep && keep % GDN_PAGE) needed += strangers_own(kv, lane, n_kept - 1, pages[n_kept - 1]);
    for (int i = 0; i < kv->lanes[lane].n_pages; i++)
        n_free += !strangers_own(kv, lane, i, *page_at(kv, lane, i)); /* given back first */
    for (int i = 0; i < n_kept; i++) n_free -= !strangers_own(kv, lane, i, pages[i]);
    if (needed <= n_free) return GDN_OK;
    return gdn_fail(err, GDN_NO_SLOT, 0,
                    "kv: %lld pages of %d tokens are needed and %lld can be had; use shorter texts or more memory",
                    needed, GDN_PAGE, n_free);
}

void gdn_kv_set_length(gdn_kv *kv, int lane, long long length)
{
    kv_lane *l = &kv->lanes[lane];
    l->length = length;
    while (l->n_pages > pages_for(length)) release(kv, *page_at(kv, lane, --l->n_pages));
}

void gdn_kv_attach(gdn_kv *kv, int dst, const int *pages, long long length)
{
    const int n_pages = pages_for(length);
    for (int i = 0; i < n_pages; i++) kv->refs[pages[i]]++;
    gdn_kv_set_length(kv, dst, 0);
    for (int i = 0; i < n_pages; i++) *page_at(kv, dst, i) = pages[i];
    kv->lanes[dst].n_pages = n_pages;
    kv->lanes[dst].length = length;
}

void gdn_kv_share(gdn_kv *kv, int dst, int src, long long length)
{
    gdn_kv_attach(kv, dst, gdn_kv_list(kv, src), length);
}

/* ---- pages by number ------------------------------------------------------------------------------------------------ */

int gdn_kv_n_pages(const gdn_kv *kv) { return kv->config.n_pages; }

size_t gdn_kv_page_size(const gdn_kv *kv) { return kv->page_bytes; }

const int *gdn_kv_list(const gdn_kv *kv, int lane) { return page_at(kv, lane, 0); }

void gdn_kv_hold(gdn_kv *kv, int page)
{
    kv->refs[page]++;
    kv->held[page]++;
}

void gdn_kv_drop(gdn_kv *kv, int page)
{
    kv->held[page]--;
    release(kv, page);
}

bool gdn_kv_alone(const gdn_kv *kv, int page) { return kv->held[page] && kv->refs[page] == kv->held[page]; }

int gdn_kv_n_alone(const gdn_kv *kv)
{
    int n = 0;
    for (int i = 0; i < kv->config.n_pages; i++) n += gdn_kv_alone(kv, i);
    return n;
}

void *gdn_kv_page(const gdn_kv *kv, int page) { return kv->memory + (size_t)page * kv->page_bytes; }

/* ---- keys and values ------------------------------------------------------------------------------------------------ */

/* Keys of a layer and head in page number `i` of a lane; its values stand n_heads heads further. */
static unsigned char *keys_of(const gdn_kv *kv, int lane, int layer, int head, long long i)
{
    const size_t page = (size_t)*page_at(kv, lane, i);
    return kv->memory + page * kv->page_bytes + ((size_t)layer * 2 * kv->config.n_heads + head) * kv->head_bytes;
}

static void store(gdn_type type, unsigned char *dst, const float *src, int n)
{
    if (type == GDN_BF16) gdn_bf16_from_f32((uint16_t *)(void *)dst, src, (size_t)n);
    else memcpy(dst, src, (size_t)n * sizeof *src);
}

void gdn_kv_write(gdn_kv *kv, int lane, int layer, long long position, const float *k, const float *v)
{
    const gdn_kv_config *const c = &kv->config;
    const size_t               at = (size_t)(position % GDN_PAGE) * c->dim * gdn_type_bytes(c->type);
    for (int head = 0; head < c->n_heads; head++) {
        unsigned char *const keys = keys_of(kv, lane, layer, head, position / GDN_PAGE);
        store(c->type, keys + at, k + (size_t)head * c->dim, c->dim);
        store(c->type, keys + (size_t)c->n_heads * kv->head_bytes + at, v + (size_t)head * c->dim, c->dim);
    }
}

void gdn_kv_pages(const void *arg, int lane, int head, int n_pages, const void **keys, const void **values)
{
    const gdn_kv_view *const view = arg;
    for (int i = 0; i < n_pages; i++) {
        keys[i] = keys_of(view->kv, lane, view->layer, head, i);
        values[i] = (const unsigned char *)keys[i] + (size_t)view->kv->config.n_heads * view->kv->head_bytes;
    }
}
