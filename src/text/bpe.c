/* Encoding: from a piece of text to tokens. */
#include "text/bpe.h"
#include "text/bpe_hash.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

enum { SHORT = 32 }; /* bytes; up to here a search of all pairs is quicker than a heap */

static const gdn_bpe_merge *merge_of(const gdn_bpe *bpe, int32_t left, int32_t right)
{
    size_t i = gdn_bpe_hash_pair(left, right) & (bpe->n_places - 1);
    while (bpe->merges[i].rank != UINT32_MAX && (bpe->merges[i].left != left || bpe->merges[i].right != right))
        i = (i + 1) & (bpe->n_places - 1);
    return &bpe->merges[i];
}

/* ---- short pieces ------------------------------------------------------------------------------------------------ */

/* next[i] is the merge of ids[i] with ids[i+1]. */
static size_t merge_short(const gdn_bpe *bpe, const unsigned char *bytes, size_t n, int32_t *ids)
{
    const gdn_bpe_merge *next[SHORT];
    for (size_t i = 0; i < n; i++) ids[i] = bpe->of_byte[bytes[i]];
    for (size_t i = 0; i + 1 < n; i++) next[i] = merge_of(bpe, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (next[i]->rank < next[best]->rank) best = i;
        if (next[best]->rank == UINT32_MAX) break;
        ids[best] = next[best]->made;
        n--;
        for (size_t i = best + 1; i < n; i++) ids[i] = ids[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) next[i] = next[i + 1];
        if (best > 0) next[best - 1] = merge_of(bpe, ids[best - 1], ids[best]);
        if (best + 1 < n) next[best] = merge_of(bpe, ids[best], ids[best + 1]);
    }
    return n;
}

/* ---- long pieces ------------------------------------------------------------------------------------------------- */

/* A list in an array: a symbol is where its first byte was.  `rank` is that of its merge with the next symbol. */
struct gdn_bpe_symbol {
    int32_t  id, made;
    uint32_t rank;
    uint32_t before, after; /* UINT32_MAX at the ends */
};
typedef struct gdn_bpe_symbol symbol;

static bool scratch_reserve(gdn_bpe_scratch *scratch, size_t n)
{
    size_t symbol_bytes, heap_bytes;
    if (n <= scratch->capacity) return true;
    /* A merge takes one entry from the heap and adds two at most. */
    if (!gdn_size_mul(&symbol_bytes, n, sizeof *scratch->symbols) ||
        !gdn_size_mul(&heap_bytes, n, 2 * sizeof *scratch->heap))
        return false;
    free(scratch->symbols);
    free(scratch->heap);
    scratch->symbols = malloc(symbol_bytes);
    scratch->heap = malloc(heap_bytes);
    scratch->capacity = scratch->symbols && scratch->heap ? n : 0;
    return scratch->capacity != 0;
}

static void heap_push(uint64_t *heap, size_t *n, uint64_t key)
{
    size_t i = (*n)++;
    for (; i > 0 && heap[(i - 1) / 2] > key; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = key;
}

static uint64_t heap_pop(uint64_t *heap, size_t *n)
{
    const uint64_t top = heap[0], key = heap[--*n];
    size_t         i = 0;
    for (size_t child; (child = 2 * i + 1) < *n; i = child) {
        if (child + 1 < *n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= key) break;
        heap[i] = heap[child];
    }
    heap[i] = key;
    return top;
}

/* Look up the merge of symbol i with the next one.  The heap has the lowest rank first, and of equals the leftmost. */
static void symbol_update(const gdn_bpe *bpe, gdn_bpe_scratch *scratch, size_t *n_heap, uint32_t i)
{
    symbol *s = &scratch->symbols[i];
    s->rank = UINT32_MAX;
    if (s->after == UINT32_MAX) return;
    const gdn_bpe_merge *merge = merge_of(bpe, s->id, scratch->symbols[s->after].id);
    s->rank = merge->rank;
    s->made = merge->made;
    if (s->rank != UINT32_MAX) heap_push(scratch->heap, n_heap, (uint64_t)s->rank << 32 | i);
}

static size_t merge_long(const gdn_bpe *bpe, const unsigned char *bytes, size_t n, int32_t *ids,
                         gdn_bpe_scratch *scratch)
{
    symbol *symbols = scratch->symbols;
    size_t  n_heap = 0, n_ids = 0;
    for (uint32_t i = 0; i < n; i++)
        symbols[i] = (symbol){bpe->of_byte[bytes[i]], 0, UINT32_MAX, i - 1, i + 1 < n ? i + 1 : UINT32_MAX};
    for (uint32_t i = 0; i < n; i++) symbol_update(bpe, scratch, &n_heap, i);
    while (n_heap) {
        const uint64_t top = heap_pop(scratch->heap, &n_heap);
        const uint32_t i = (uint32_t)top, right = symbols[i].after;
        if (symbols[i].rank != top >> 32) continue; /* one of the two has been merged with another */
        symbols[i].id = symbols[i].made;
        symbols[i].after = symbols[right].after;
        symbols[right].rank = UINT32_MAX;
        if (symbols[i].after != UINT32_MAX) symbols[symbols[i].after].before = i;
        symbol_update(bpe, scratch, &n_heap, i);
        if (symbols[i].before != UINT32_MAX) symbol_update(bpe, scratch, &n_heap, symbols[i].before);
    }
    for (uint32_t i = 0; i != UINT32_MAX; i = symbols[i].after) ids[n_ids++] = symbols[i].id;
    return n_ids;
}

/* ---- any piece --------------------------------------------------------------------------------------------------- */

static size_t merge(const gdn_bpe *bpe, const char *piece, size_t n, int32_t *ids, gdn_bpe_scratch *scratch)
{
    const unsigned char *bytes = (const unsigned char *)piece;
    if (n <= SHORT) return merge_short(bpe, bytes, n, ids);
    return scratch_reserve(scratch, n) ? merge_long(bpe, bytes, n, ids, scratch) : 0;
}

size_t gdn_bpe_encode(const gdn_bpe *bpe, const char *piece, size_t n, int32_t *ids, gdn_bpe_scratch *scratch)
{
    enum { UNKNOWN, YES, NO };
    const int32_t id = n <= bpe->longest ? gdn_bpe_find(bpe, piece, n) : -1;
    if (id < 0) return merge(bpe, piece, n, ids, scratch);
    const int whole = atomic_load_explicit(&bpe->whole[id], memory_order_relaxed);
    if (whole == YES) {
        ids[0] = id;
        return 1;
    }
    const size_t n_ids = merge(bpe, piece, n, ids, scratch);
    if (whole == UNKNOWN && n_ids) atomic_store_explicit(&bpe->whole[id], n_ids == 1 ? YES : NO, memory_order_relaxed);
    return n_ids;
}
