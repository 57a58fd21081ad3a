/* Loading: from a list of tokens and a list of merges to the two tables. */
#include "base/alloc.h"
#include "text/bpe.h"
#include "text/bpe_hash.h"
#include <stdlib.h>
#include <string.h>

void gdn_bpe_close(gdn_bpe *bpe)
{
    free(bpe->bytes);
    free(bpe->tokens);
    free(bpe->slots);
    free(bpe->merges);
    free(bpe->whole);
    *bpe = (gdn_bpe){0};
}

/* *array has room for `n` elements, of which there may be up to `most`; new ones are cleared. */
static bool reserve(void **array, size_t *capacity, size_t n, size_t most, size_t element_bytes)
{
    if (n <= *capacity) return true;
    if (n > most) return false;
    size_t grown = *capacity + *capacity / 2 + 1024;
    if (grown < n) grown = n;
    char *bytes = realloc(*array, grown * element_bytes);
    if (!bytes) return false;
    memset(bytes + *capacity * element_bytes, 0, (grown - *capacity) * element_bytes);
    *array = bytes;
    *capacity = grown;
    return true;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

gdn_bpe_result gdn_bpe_add(gdn_bpe *bpe, uint32_t id, const char *text, size_t n, unsigned flags)
{
    void  *tokens = bpe->tokens, *bytes = bpe->bytes;
    size_t n_bytes;
    if (!gdn_size_add(&n_bytes, bpe->n_bytes, n)) return GDN_BPE_NO_MEMORY;
    if (!reserve(&tokens, &bpe->tokens_capacity, (size_t)id + 1, GDN_BPE_MAX_TOKENS, sizeof *bpe->tokens))
        return GDN_BPE_NO_MEMORY;
    bpe->tokens = tokens;
    if (!reserve(&bytes, &bpe->bytes_capacity, n_bytes, GDN_BPE_MAX_BYTES, 1)) return GDN_BPE_NO_MEMORY;
    bpe->bytes = bytes;
    if (id < bpe->n_tokens && bpe->tokens[id].flags) return GDN_BPE_TAKEN;
    if (n) memcpy(bpe->bytes + bpe->n_bytes, text, n);
    bpe->tokens[id] = (gdn_bpe_token){(uint32_t)bpe->n_bytes, (uint32_t)n, flags};
    bpe->n_bytes = n_bytes;
    if (id >= bpe->n_tokens) bpe->n_tokens = (size_t)id + 1;
    if (flags & GDN_TOKEN_ORDINARY && n > bpe->longest) bpe->longest = n;
    return GDN_BPE_OK;
}

/* Where the text is in the table, or the empty slot where it would be. */
static gdn_bpe_slot *slot_of(const gdn_bpe *bpe, const char *text, size_t n)
{
    const uint64_t hash = gdn_bpe_hash_text(text, n);
    const uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = hash & (bpe->n_slots - 1);; i = (i + 1) & (bpe->n_slots - 1)) {
        gdn_bpe_slot *slot = &bpe->slots[i];
        if (slot->id == UINT32_MAX) return slot;
        if (slot->tag != tag) continue;
        const gdn_bpe_token *token = &bpe->tokens[slot->id];
        if (token->n == n && !memcmp(bpe->bytes + token->at, text, n)) return slot;
    }
}

int32_t gdn_bpe_find(const gdn_bpe *bpe, const char *text, size_t n)
{
    return n ? (int32_t)slot_of(bpe, text, n)->id : -1;
}

gdn_bpe_result gdn_bpe_index(gdn_bpe *bpe, uint32_t *id)
{
    bpe->n_slots = 1024;
    while (bpe->n_slots < 2 * bpe->n_tokens) bpe->n_slots *= 2;
    bpe->slots = malloc(bpe->n_slots * sizeof *bpe->slots);
    if (!bpe->slots) return GDN_BPE_NO_MEMORY;
    memset(bpe->slots, 0xff, bpe->n_slots * sizeof *bpe->slots);
    for (*id = 0; *id < bpe->n_tokens; ++*id) {
        const gdn_bpe_token *token = &bpe->tokens[*id];
        if (!(token->flags & GDN_TOKEN_ORDINARY) || !token->n) continue;
        const char   *text = bpe->bytes + token->at;
        gdn_bpe_slot *slot = slot_of(bpe, text, token->n);
        if (slot->id != UINT32_MAX) return GDN_BPE_TAKEN;
        *slot = (gdn_bpe_slot){(uint32_t)(gdn_bpe_hash_text(text, token->n) >> 32), *id};
    }
    for (*id = 0; *id < 256; ++*id) {
        const char byte[] = {(char)*id};
        bpe->of_byte[*id] = gdn_bpe_find(bpe, byte, 1);
        if (bpe->of_byte[*id] < 0) return GDN_BPE_ABSENT;
    }
    return GDN_BPE_OK;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

gdn_bpe_result gdn_bpe_merge_add(gdn_bpe *bpe, const char *text, size_t n_left, size_t n)
{
    void *merges = bpe->merges;
    if (!reserve(&merges, &bpe->merges_capacity, bpe->n_merges + 1, UINT32_MAX / 4, sizeof *bpe->merges))
        return GDN_BPE_NO_MEMORY;
    bpe->merges = merges;
    gdn_bpe_merge merge = {gdn_bpe_find(bpe, text, n_left), gdn_bpe_find(bpe, text + n_left, n - n_left), -1,
                           (uint32_t)bpe->n_merges};
    /* Training numbers tokens as it makes them, so the id is nearly always the one after that of the merge before. */
    const size_t guess = bpe->n_merges ? (size_t)bpe->merges[bpe->n_merges - 1].made + 1 : 256;
    if (guess < bpe->n_tokens && bpe->tokens[guess].flags & GDN_TOKEN_ORDINARY && bpe->tokens[guess].n == n &&
        !memcmp(bpe->bytes + bpe->tokens[guess].at, text, n))
        merge.made = (int32_t)guess;
    else merge.made = gdn_bpe_find(bpe, text, n);
    if (merge.left < 0 || merge.right < 0 || merge.made < 0) return GDN_BPE_ABSENT;
    bpe->merges[bpe->n_merges++] = merge;
    return GDN_BPE_OK;
}

gdn_bpe_result gdn_bpe_finish(gdn_bpe *bpe)
{
    bpe->n_places = 1024;
    while (bpe->n_places < 2 * bpe->n_merges) bpe->n_places *= 2;
    gdn_bpe_merge *table = malloc(bpe->n_places * sizeof *table);
    bpe->whole = calloc(bpe->n_tokens, sizeof *bpe->whole);
    if (!table || !bpe->whole) {
        free(table);
        return GDN_BPE_NO_MEMORY;
    }
    memset(table, 0xff, bpe->n_places * sizeof *table);
    for (size_t i = 0; i < bpe->n_merges; i++) {
        const gdn_bpe_merge *merge = &bpe->merges[i];
        size_t               at = gdn_bpe_hash_pair(merge->left, merge->right) & (bpe->n_places - 1);
        while (table[at].rank != UINT32_MAX && (table[at].left != merge->left || table[at].right != merge->right))
            at = (at + 1) & (bpe->n_places - 1);
        table[at] = *merge;
    }
    free(bpe->merges);
    bpe->merges = table;
    return GDN_BPE_OK;
}
