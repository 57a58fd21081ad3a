#include "engine/places.h"
#include "device/device.h"
#include <stdlib.h>

/* Lists are shorter than 2^31: at most 3 + 31 beginnings of turns and 25 places in each of three turns. */
_Static_assert(2 + 3 + 31 + 3 * 25 <= GDN_PLACES, "every place has room");

typedef struct places {
    int *at, n, from;
} places;

static void add(places *p, int position)
{
    if (position > p->from) p->at[p->n++] = position;
}

/* Ever closer towards the end of a turn.  At the end of a page a snapshot shares that page with whoever goes on. */
static void add_grid(places *p, int begin, int end)
{
    for (long long d = GDN_PAGE; d < end - begin; d *= 2) {
        const int position = (int)(end - d) / GDN_PAGE * GDN_PAGE;
        if (position > begin) add(p, position);
    }
}

static int by_position(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int gdn_places(int *at, const int32_t *tokens, int n, int from, int32_t turn)
{
    places p = {at, 0, from};
    int    n_turns = 0, last = n, first = n, end = n;
    add(&p, n);
    for (int i = n - 1; i > 0; i--) {
        if (tokens[i] != turn) continue;
        if (n_turns++ < 2) add_grid(&p, i, end);
        if (n_turns <= 3 || n - i >= 2LL * (n - last)) {
            add(&p, i);
            last = i;
        }
        first = end = i;
    }
    if (n_turns) add(&p, first);
    add_grid(&p, 0, first);
    qsort(p.at, (size_t)p.n, sizeof *p.at, by_position);
    int kept = 0;
    for (int i = 0, before = from; i < p.n; i++) {
        if (p.at[i] - before < (p.at[i] == n ? 1 : GDN_PLACE_GAIN)) continue;
        p.at[kept++] = before = p.at[i];
    }
    return kept;
}
