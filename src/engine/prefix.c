#include "engine/prefix.h"
#include "base/alloc.h"
#include "state/cache.h"
#include <string.h>

/* Nodes are numbers, so that all of them can be allocated at once; the root, of no tokens, is number 0.  Runs of one page may
 * be cut into several nodes, each of which holds it.  Of nodes on one path that lie in the same page index the deepest one's page has
 * the positions of all of them, and they all hold that one.
 *
 * A node that has neither a snapshot nor two children ends where a page ends, and no two such nodes have the same page.  So there
 * are at most n_pages of them, n_snapshots with a snapshot, fewer with two children, and two that are being made. */
typedef struct node {
    int      parent, child, sibling; /* 0: none */
    int      begin, end;             /* positions of its run */
    int      page;
    int      snapshot; /* -1: none */
    bool     has_logits, stored;
    uint64_t used; /* when the snapshot was last */
} node;

struct gdn_prefix {
    gdn_pool  *pool;
    gdn_kv    *kv;
    gdn_cache *kept; /* [n_snapshots] lanes */
    int        n_snapshots, n_kept, n_with_logits;
    int       *free_snapshots;  /* [n_snapshots]: the first n_snapshots - n_kept are free */
    float     *logits, *hidden; /* [n_snapshots][n_logits], [n_snapshots][n_hidden] */
    int        n_logits, n_hidden;
    node      *nodes;
    int        n_nodes, first_free;        /* with the root; a list through `sibling` */
    int32_t   *ids;                        /* [n_pages][GDN_PAGE]: tokens of pages that nodes hold */
    int       *pages;                      /* [n_pages]: what gdn_prefix_pages returns */
    int        pinned, newest;             /* not to be evicted: by the caller's wish; what has just come; or -1 */
    size_t     snapshot_bytes, page_bytes; /* of one without logits */
    long long  budget;
    uint64_t   now;

    /* of files */
    int32_t             *tokens; /* [n_pages][GDN_PAGE]: what gdn_prefix_describe returns */
    gdn_prefix_leave_fn *leave;  /* or NULL */
    void                *leave_arg;
};

enum { MAX_SNAPSHOTS = 4096 }; /* lanes of a cache */

int gdn_prefix_slots(size_t slot_bytes, long long budget_bytes)
{
    const long long n = budget_bytes < 0 ? 0 : budget_bytes / (long long)slot_bytes;
    return n < MAX_SNAPSHOTS ? (int)n : MAX_SNAPSHOTS;
}

/* ---- opening -------------------------------------------------------------------------------------------------------- */

static void number_nodes(gdn_prefix *p, int n)
{
    p->n_nodes = p->first_free = 1;
    for (int i = 0; i < n; i++) p->nodes[i] = (node){.sibling = i && i + 1 < n ? i + 1 : 0, .snapshot = -1, .page = -1};
    for (int i = 0; i < p->n_snapshots; i++) p->free_snapshots[i] = p->n_snapshots - 1 - i;
}

gdn_status gdn_prefix_open(gdn_prefix **out, gdn_pool *pool, gdn_kv *kv, int n_snapshots, int n_logits, int n_hidden,
                           long long budget_bytes, gdn_error *err)
{
    gdn_prefix *p = calloc(1, sizeof *p);
    if (!p) return gdn_fail(err, GDN_NO_MEMORY, 0, "prefix: no memory for the index");
    const size_t n_pages = (size_t)gdn_kv_n_pages(kv), n_nodes = n_pages + 2 * (size_t)n_snapshots + 2;
    p->pool = pool;
    p->kv = kv;
    p->n_snapshots = n_snapshots;
    p->n_logits = n_logits;
    p->n_hidden = n_hidden;
    p->snapshot_bytes = gdn_pool_slot_bytes(pool) + (size_t)n_hidden * sizeof *p->hidden;
    p->page_bytes = gdn_kv_page_size(kv);
    p->budget = budget_bytes;
    p->pinned = p->newest = -1;
    gdn_status s = GDN_OK;
    if (n_snapshots) {
        s = gdn_cache_open(&p->kept, pool, n_snapshots, 0, err);
        if (!s) s = gdn_cache_add(p->kept, n_snapshots, 0, err);
        p->free_snapshots = malloc((size_t)n_snapshots * sizeof *p->free_snapshots);
        p->logits = gdn_alloc_aligned((size_t)n_snapshots * n_logits * sizeof *p->logits);
        p->hidden = malloc(((size_t)n_snapshots * n_hidden + 1) * sizeof *p->hidden);
        p->nodes = malloc(n_nodes * sizeof *p->nodes);
        p->ids = malloc(n_pages * GDN_PAGE * sizeof *p->ids);
        p->pages = malloc(n_pages * sizeof *p->pages);
        p->tokens = malloc(n_pages * GDN_PAGE * sizeof *p->tokens);
        if (!(p->free_snapshots && p->logits && p->hidden && p->nodes && p->ids && p->pages && p->tokens))
            s = gdn_fail(err, GDN_NO_MEMORY, 0, "prefix: no memory for %d snapshots; allow fewer bytes", n_snapshots);
        else number_nodes(p, (int)n_nodes);
    }
    if (s) {
        gdn_prefix_close(p);
        return s;
    }
    *out = p;
    return GDN_OK;
}

void gdn_prefix_close(gdn_prefix *p)
{
    if (!p) return;
    gdn_cache_close(p->kept);
    free(p->free_snapshots);
    free(p->logits);
    free(p->hidden);
    free(p->nodes);
    free(p->ids);
    free(p->pages);
    free(p->tokens);
    free(p);
}

bool gdn_prefix_keeps(const gdn_prefix *p) { return p->n_snapshots > 0; }

/* ---- the tree --------------------------------------------------------------------------------------------------------- */

static int32_t token_at(const gdn_prefix *p, const node *n, int position)
{
    return p->ids[(size_t)n->page * GDN_PAGE + (size_t)(position % GDN_PAGE)];
}

/* The child of `parent` that goes on with this token, or 0. */
static int child_with(const gdn_prefix *p, int parent, int32_t token)
{
    int i = p->nodes[parent].child;
    while (i && token_at(p, &p->nodes[i], p->nodes[i].begin) != token) i = p->nodes[i].sibling;
    return i;
}

/* Up to where the run of a node agrees with the list. */
static int agrees_to(const gdn_prefix *p, const node *n, const int32_t *tokens, int n_tokens)
{
    int at = n->begin;
    while (at < n->end && at < n_tokens && token_at(p, n, at) == tokens[at]) at++;
    return at;
}

/* A leaf below `parent` of tokens begin .. end-1, all in this page. */
static int add_child(gdn_prefix *p, int parent, int begin, int end, int page)
{
    const int i = p->first_free;
    p->first_free = p->nodes[i].sibling;
    p->nodes[i] = (node){
        .parent = parent, .sibling = p->nodes[parent].child, .begin = begin, .end = end, .page = page, .snapshot = -1};
    p->nodes[parent].child = i;
    p->n_nodes++;
    gdn_kv_hold(p->kv, page);
    return i;
}

/* Take a node out of the list of its parent's children, and give it back. */
static void remove_child(gdn_prefix *p, int i)
{
    int *at = &p->nodes[p->nodes[i].parent].child;
    while (*at != i) at = &p->nodes[*at].sibling;
    *at = p->nodes[i].sibling;
    gdn_kv_drop(p->kv, p->nodes[i].page);
    p->nodes[i].sibling = p->first_free;
    p->first_free = i;
    p->n_nodes--;
}

/* Cut the run of a node at a position inside it; returns the new node, which has the first part. */
static int split(gdn_prefix *p, int i, int at)
{
    const node old = p->nodes[i];
    const int  first = add_child(p, old.parent, old.begin, at, old.page);
    int       *link = &p->nodes[old.parent].child;
    while (*link != i) link = &p->nodes[*link].sibling;
    *link = p->nodes[i].sibling;
    p->nodes[i].parent = first;
    p->nodes[i].sibling = 0;
    p->nodes[i].begin = at;
    p->nodes[first].child = i;
    return first;
}

/* Nodes above `i` in the same page hold its page too: it has their positions. */
static void take_over(gdn_prefix *p, int i)
{
    const int page = p->nodes[i].page;
    for (; p->nodes[i].begin % GDN_PAGE; i = p->nodes[i].parent) {
        node *const above = &p->nodes[p->nodes[i].parent];
        if (above->page == page) continue;
        gdn_kv_hold(p->kv, page);
        gdn_kv_drop(p->kv, above->page);
        above->page = page;
    }
}

/* The node that ends after these tokens; runs that are missing are made, with the pages of a lane. */
static int node_for(gdn_prefix *p, const int32_t *tokens, int n, const int *pages)
{
    int at = 0, i = 0;
    while (at < n) {
        int next = child_with(p, i, tokens[at]);
        if (next) {
            const int to = agrees_to(p, &p->nodes[next], tokens, n);
            if (to < p->nodes[next].end) next = split(p, next, to);
            at = to;
        } else {
            const int first = at / GDN_PAGE * GDN_PAGE, end = first + GDN_PAGE < n ? first + GDN_PAGE : n;
            const int page = pages[at / GDN_PAGE];
            memcpy(p->ids + (size_t)page * GDN_PAGE, tokens + first, (size_t)(end - first) * sizeof *tokens);
            next = add_child(p, i, at, end, page);
            take_over(p, next);
            at = end;
        }
        i = next;
    }
    return i;
}

/* Remove what is no longer needed, from a node upwards. */
static void prune(gdn_prefix *p, int i)
{
    while (i && p->nodes[i].snapshot < 0 && !p->nodes[i].child) {
        const int parent = p->nodes[i].parent;
        remove_child(p, i);
        i = parent;
    }
    /* One child, and not at the end of a page: the two become one run, in the page of the child. */
    const node n = p->nodes[i];
    if (!i || n.snapshot >= 0 || n.end % GDN_PAGE == 0 || p->nodes[n.child].sibling) return;
    const int child = n.child;
    remove_child(p, i);
    p->nodes[child].parent = n.parent;
    p->nodes[child].begin = n.begin;
    p->nodes[child].sibling = p->nodes[n.parent].child;
    p->nodes[n.parent].child = child;
}

/* ---- finding ---------------------------------------------------------------------------------------------------------- */

/* The deepest snapshot that begins the list, or -1; one at its end counts if it has logits or they are not asked for. */
static int deepest(const gdn_prefix *p, const int32_t *tokens, int n, bool with_logits)
{
    int found = -1;
    if (!p->n_kept) return found;
    for (int i = child_with(p, 0, tokens[0]); i;) {
        const node *const at = &p->nodes[i];
        if (agrees_to(p, at, tokens, n) < at->end) break;
        if (at->snapshot >= 0 && (at->end < n || at->has_logits || !with_logits)) found = i;
        i = at->end < n ? child_with(p, i, tokens[at->end]) : 0;
    }
    return found;
}

int gdn_prefix_find(const gdn_prefix *p, const int32_t *tokens, int n) { return deepest(p, tokens, n, true); }

int gdn_prefix_depth(const gdn_prefix *p, int i) { return i < 0 ? 0 : p->nodes[i].end; }

const int *gdn_prefix_pages(gdn_prefix *p, int i)
{
    for (int last = -1; i > 0; i = p->nodes[i].parent) {
        const int number = p->nodes[i].begin / GDN_PAGE;
        if (number != last) p->pages[number] = p->nodes[i].page; /* that of the deepest is the one to have */
        last = number;
    }
    return p->pages;
}

const float *gdn_prefix_hidden(const gdn_prefix *p, int i)
{
    return i < 0 || !p->n_hidden ? NULL : p->hidden + (size_t)p->nodes[i].snapshot * p->n_hidden;
}

const float *gdn_prefix_restore(gdn_prefix *p, int i, gdn_cache *cache, int lane)
{
    node *const n = &p->nodes[i];
    gdn_kv_attach(p->kv, lane, gdn_prefix_pages(p, i), n->end);
    gdn_cache_share(cache, lane, p->kept, n->snapshot, NULL);
    n->used = p->now;
    return n->has_logits ? p->logits + (size_t)n->snapshot * p->n_logits : NULL;
}

/* ---- keeping ---------------------------------------------------------------------------------------------------------- */

static void forget(gdn_prefix *p, int i)
{
    node *const n = &p->nodes[i];
    gdn_cache_clear(p->kept, n->snapshot, NULL);
    p->n_with_logits -= n->has_logits;
    n->has_logits = n->stored = false;
    p->free_snapshots[p->n_snapshots - p->n_kept--] = n->snapshot;
    n->snapshot = -1;
    prune(p, i);
}

void gdn_prefix_keep(gdn_prefix *p, const int32_t *tokens, int n, const int *pages, const gdn_cache *cache, int lane,
                     const float *hidden, const float *logits)
{
    if (!p->n_snapshots) return;
    const bool there = gdn_prefix_depth(p, deepest(p, tokens, n, false)) == n;
    if (!there && p->n_kept == p->n_snapshots && !gdn_prefix_evict(p)) return;
    const int   i = node_for(p, tokens, n, pages);
    node *const at = &p->nodes[i];
    if (at->snapshot < 0) {
        at->snapshot = p->free_snapshots[p->n_snapshots - ++p->n_kept];
        gdn_cache_share(p->kept, at->snapshot, cache, lane, NULL);
        if (hidden)
            memcpy(p->hidden + (size_t)at->snapshot * p->n_hidden, hidden, (size_t)p->n_hidden * sizeof *hidden);
    }
    if (logits && !at->has_logits) {
        memcpy(p->logits + (size_t)at->snapshot * p->n_logits, logits, (size_t)p->n_logits * sizeof *logits);
        at->has_logits = true;
        p->n_with_logits++;
    }
    at->used = p->now;
    p->newest = i;
    gdn_prefix_trim(p);
    p->newest = -1;
}

void gdn_prefix_pin(gdn_prefix *p, int i) { p->pinned = i; }

void gdn_prefix_tick(gdn_prefix *p) { p->now++; }

/* ---- for files -------------------------------------------------------------------------------------------------------- */

int gdn_prefix_unstored(const gdn_prefix *p)
{
    int found = -1;
    for (int i = 1, seen = 0; seen < p->n_kept; i++) {
        const node *const n = &p->nodes[i];
        if (n->snapshot < 0) continue;
        seen++;
        if (!n->stored && (found < 0 || n->end < p->nodes[found].end)) found = i;
    }
    return found;
}

int gdn_prefix_unstored_before(const gdn_prefix *p, int i)
{
    do i = p->nodes[i].parent;
    while (i && p->nodes[i].snapshot < 0);
    return i && !p->nodes[i].stored ? i : -1;
}

void gdn_prefix_describe(gdn_prefix *p, int i, gdn_record *r)
{
    const node *const n = &p->nodes[i];
    int               before = n->parent;
    while (before && !p->nodes[before].stored) before = p->nodes[before].parent;
    r->from = p->nodes[before].end;
    r->to = n->end;
    r->tokens = p->tokens;
    r->pages = gdn_prefix_pages(p, i);
    for (int at = 0; at < n->end; at++)
        r->tokens[at] = p->ids[(size_t)r->pages[at / GDN_PAGE] * GDN_PAGE + (size_t)(at % GDN_PAGE)];
    r->slot = gdn_pool_slot(p->pool, p->kept->lanes[n->snapshot].cur);
    r->hidden = p->n_hidden ? p->hidden + (size_t)n->snapshot * p->n_hidden : NULL;
    r->logits = n->has_logits ? p->logits + (size_t)n->snapshot * p->n_logits : NULL;
}

void gdn_prefix_set_stored(gdn_prefix *p, int i) { p->nodes[i].stored = true; }

/* ---- bytes, and what they are worth ------------------------------------------------------------------------------------- */

long long gdn_prefix_bytes(const gdn_prefix *p)
{
    if (!p->n_kept) return 0;
    return (long long)p->n_kept * (long long)p->snapshot_bytes +
           (long long)p->n_with_logits * p->n_logits * (long long)sizeof *p->logits +
           (long long)gdn_kv_n_alone(p->kv) * (long long)p->page_bytes +
           (long long)p->n_nodes * (long long)sizeof(node);
}

int gdn_prefix_n_snapshots(const gdn_prefix *p) { return p->n_kept; }

/* What a snapshot is worth: the tokens that would have to be computed again from the one before it, for each byte that would
 * be free without it, and less the longer ago it was used. */
static double worth(const gdn_prefix *p, int i)
{
    const node *const n = &p->nodes[i];
    size_t            bytes = p->snapshot_bytes + (n->has_logits ? (size_t)p->n_logits * sizeof *p->logits : 0);
    bool              goes = !n->child; /* nodes up to the next fork or snapshot go with a leaf */
    int               above = i, last = -1;
    do {
        const node *const a = &p->nodes[above];
        const int         number = a->begin / GDN_PAGE;
        if (goes && number != last && gdn_kv_alone(p->kv, a->page)) bytes += p->page_bytes;
        last = number;
        above = a->parent;
        goes = goes && !p->nodes[p->nodes[above].child].sibling;
    } while (above && p->nodes[above].snapshot < 0);
    return (double)(n->end - p->nodes[above].end) / ((double)bytes * (double)(p->now - n->used + 1));
}

void gdn_prefix_on_leave(gdn_prefix *p, gdn_prefix_leave_fn *leave, void *arg)
{
    p->leave = leave;
    p->leave_arg = arg;
}

bool gdn_prefix_evict(gdn_prefix *p)
{
    int    least = -1;
    double least_worth = 0;
    for (int i = 1, seen = 0; seen < p->n_kept; i++) {
        if (p->nodes[i].snapshot < 0) continue;
        seen++;
        if (i == p->pinned || i == p->newest) continue;
        const double w = worth(p, i);
        if (least < 0 || w < least_worth) {
            least = i;
            least_worth = w;
        }
    }
    if (least < 0) return false;
    if (p->leave) p->leave(p->leave_arg, least);
    forget(p, least);
    return true;
}

void gdn_prefix_trim(gdn_prefix *p)
{
    while (gdn_prefix_bytes(p) > p->budget && gdn_prefix_evict(p)) continue;
}

gdn_status gdn_prefix_reserve(gdn_prefix *p, const int *n_more, int n_lanes, gdn_error *err)
{
    gdn_status s;
    do s = gdn_kv_reserve(p->kv, n_more, n_lanes, err);
    while (s == GDN_NO_SLOT && gdn_prefix_evict(p));
    return s;
}
