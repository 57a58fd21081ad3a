/* Drafts from the text itself: what followed when these tokens stood here before. */
#include "engine/draft.h"
#include <stdlib.h>

enum {
    TRIES = 32,  /* places that are looked at, the latest first */
    LONGEST = 64 /* a longer match promises no more */
};

bool gdn_lookup_open(gdn_lookup *l, int max_tokens)
{
    const size_t n = (size_t)max_tokens;
    l->bits = 8;
    while (1 << l->bits < max_tokens && l->bits < 20) l->bits++;
    l->last = malloc(sizeof *l->last << l->bits);
    l->before = malloc(n * sizeof *l->before);
    l->hash = malloc(n * sizeof *l->hash);
    if (!l->last || !l->before || !l->hash) return false;
    for (int i = 0; i < 1 << l->bits; i++) l->last[i] = -1;
    return true;
}

void gdn_lookup_close(gdn_lookup *l)
{
    free(l->last);
    free(l->before);
    free(l->hash);
}

static int32_t hash_of(const gdn_lookup *l, int32_t a, int32_t b)
{
    const uint32_t mixed = ((uint32_t)a * UINT32_C(0x9e3779b1) ^ (uint32_t)b) * UINT32_C(0x85ebca6b);
    return (int32_t)(mixed >> (32 - l->bits));
}

void gdn_lookup_cut(gdn_lookup *l, int length)
{
    while (l->n > length) {
        l->n--;
        if (l->n > 0) l->last[l->hash[l->n]] = l->before[l->n]; /* it is the latest */
    }
}

static void put(gdn_lookup *l, const int32_t *tokens, int n)
{
    for (; l->n < n; l->n++) {
        if (l->n == 0) continue;
        const int32_t h = hash_of(l, tokens[l->n - 1], tokens[l->n]);
        l->hash[l->n] = h;
        l->before[l->n] = l->last[h];
        l->last[h] = l->n;
    }
}

/* How many tokens up to position `at` are those before `next`, and `next`. */
static int match(const int32_t *tokens, int n, int32_t next, int at)
{
    int length = 0;
    if (tokens[at] != next) return 0;
    for (length = 1; length <= at && length < LONGEST && tokens[at - length] == tokens[n - length];) length++;
    return length;
}

int gdn_lookup_find(gdn_lookup *l, const int32_t *tokens, int n, int32_t next, int most, int32_t *out, int *matched)
{
    int at = -1, longest = 1;
    *matched = 0;
    put(l, tokens, n);
    if (n < 2 || most < 1) return 0;
    int32_t place = l->last[hash_of(l, tokens[n - 1], next)];
    for (int i = 0; i < TRIES && place >= 0 && longest < LONGEST; i++, place = l->before[place]) {
        const int length = match(tokens, n, next, place);
        if (length <= longest) continue;
        longest = length;
        at = place;
    }
    if (at < 0) return 0;
    *matched = longest;
    for (int i = 0; i < most; i++) { /* what it runs into at the end is `next`, and its own drafts */
        const int from = at + 1 + i;
        out[i] = from < n ? tokens[from] : from == n ? next : out[from - n - 1];
    }
    return most;
}
