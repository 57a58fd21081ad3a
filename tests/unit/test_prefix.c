/* The prefix index, against lanes that remember everything they were given.  A lane's state and its keys and values are made up
 * here: numbers that name its whole history, so that whatever comes from another history is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "engine/prefix.c" /* to see its nodes */
#include "support/random.h"
#include <stdio.h>

enum { LANES = 4, MOST = 400, LOGITS = 3, HIDDEN = 2, HEAD_DIM = 4, OPERATIONS = 12000, OLD = 64 };

static gdn_error err;

#define ACCEPTED(call)                                                \
    do {                                                              \
        if ((call) != GDN_OK) fail_msg("%s: %s", #call, err.message); \
    } while (0)

typedef struct timeline {
    int     length;
    int32_t tokens[MOST];
} timeline;

typedef struct world {
    gdn_pool   *pool;
    gdn_cache  *cache;
    gdn_kv     *kv;
    gdn_prefix *prefix;
    timeline    lanes[LANES], old[OLD]; /* what they hold; what lanes have held */
    int         n_old;
    rng         r;
    long        n_hits, n_misses, n_evicted, n_full;
} world;

/* A number that stands for n tokens. */
static float name_of(const int32_t *tokens, int n)
{
    uint32_t h = 17;
    for (int i = 0; i < n; i++) h = (h ^ (uint32_t)tokens[i]) * 0x9e3779b1u, h ^= h >> 15;
    return (float)(h >> 9);
}

/* ---- lanes that forget nothing ------------------------------------------------------------------------------------------ */

static void write_state(world *w, int lane)
{
    const timeline *const t = &w->lanes[lane];
    gdn_lane *const       l = &w->cache->lanes[lane];
    if (l->cur < 0 || gdn_pool_shared(w->pool, l->cur)) { /* as a step does */
        ACCEPTED(gdn_pool_check_free(w->pool, 1, "test", &err));
        const int fresh = gdn_pool_take(w->pool);
        gdn_pool_release(w->pool, l->cur);
        l->cur = fresh;
    }
    gdn_pool_mark(w->pool, l->cur, 0);
    *gdn_pool_state(w->pool, l->cur, 0) = name_of(t->tokens, t->length);
    l->offset = t->length;
}

static gdn_status grow(world *w, int lane, const int32_t *tokens, int n)
{
    timeline *const t = &w->lanes[lane];
    int             more[LANES] = {0};
    more[lane] = n;
    const gdn_status s = gdn_prefix_reserve(w->prefix, more, LANES, &err);
    if (s) return s;
    memcpy(t->tokens + t->length, tokens, (size_t)n * sizeof *tokens);
    for (int i = t->length; i < t->length + n; i++) {
        float k[HEAD_DIM];
        for (int j = 0; j < HEAD_DIM; j++) k[j] = name_of(t->tokens, i + 1);
        gdn_kv_write(w->kv, lane, 0, i, k, k);
    }
    t->length += n;
    gdn_kv_set_length(w->kv, lane, t->length);
    write_state(w, lane);
    gdn_prefix_trim(w->prefix);
    return GDN_OK;
}

static void expect(world *w, int lane)
{
    const timeline *const t = &w->lanes[lane];
    const void           *keys[MOST / GDN_PAGE + 1], *values[MOST / GDN_PAGE + 1];
    const gdn_kv_view     view = {w->kv, 0};
    const float          *state = NULL;
    assert_int_equal(gdn_kv_length(w->kv, lane), t->length);
    gdn_cache_peek(w->cache, lane, 0, &state, NULL);
    if (!t->length) {
        assert_null(state);
        return;
    }
    assert_non_null(state);
    assert_true(*state == name_of(t->tokens, t->length));
    gdn_kv_pages(&view, lane, 0, (t->length + GDN_PAGE - 1) / GDN_PAGE, keys, values);
    for (int i = 0; i < t->length; i++) {
        const float got = ((const float *)values[i / GDN_PAGE])[i % GDN_PAGE * HEAD_DIM];
        if (got != name_of(t->tokens, i + 1)) fail_msg("lane %d: position %d is of another text", lane, i);
    }
}

static void empty(world *w, int lane)
{
    gdn_cache_clear(w->cache, lane, NULL);
    gdn_kv_set_length(w->kv, lane, 0);
    w->lanes[lane].length = 0;
    gdn_prefix_trim(w->prefix);
}

/* ---- the tree must be as its comment says --------------------------------------------------------------------------------- */

typedef struct tally {
    int nodes, kept, with_logits, held[64];
} tally;

static void walk(const world *w, int i, tally *t)
{
    const gdn_prefix *const p = w->prefix;
    const node *const       n = &p->nodes[i];
    int                     n_children = 0;
    for (int child = n->child; child; child = p->nodes[child].sibling) {
        const node *const c = &p->nodes[child];
        assert_int_equal(c->parent, i);
        assert_int_equal(c->begin, n->end);
        assert_true(c->end > c->begin && (c->end - 1) / GDN_PAGE == c->begin / GDN_PAGE);
        for (int other = c->sibling; other; other = p->nodes[other].sibling)
            assert_true(token_at(p, c, c->begin) != token_at(p, &p->nodes[other], c->begin));
        n_children++;
        t->nodes++;
        t->held[c->page]++;
        walk(w, child, t);
    }
    if (!i) return;
    assert_true(n->snapshot >= 0 || n_children > 1 || (n_children == 1 && n->end % GDN_PAGE == 0));
    assert_true(n->snapshot >= 0 || !n->has_logits);
    if (n->snapshot < 0) return;
    t->kept++;
    t->with_logits += n->has_logits;
    const int *const pages = gdn_prefix_pages(w->prefix, i);
    int32_t          tokens[MOST];
    for (int at = 0; at < n->end; at++) tokens[at] = p->ids[(size_t)pages[at / GDN_PAGE] * GDN_PAGE + at % GDN_PAGE];
    const float *state = NULL;
    gdn_cache_peek(p->kept, n->snapshot, 0, &state, NULL);
    assert_true(state && *state == name_of(tokens, n->end));
    assert_true(gdn_prefix_hidden(p, i)[0] == -name_of(tokens, n->end));
    if (n->has_logits) assert_true(p->logits[n->snapshot * LOGITS] == name_of(tokens, n->end));
    assert_int_equal(gdn_prefix_find(p, tokens, n->end) == i, n->has_logits);
}

static void check_tree(const world *w)
{
    const gdn_prefix *const p = w->prefix;
    tally                   t = {.nodes = 1};
    int                     n_alone = 0;
    walk(w, 0, &t);
    assert_int_equal(t.nodes, p->n_nodes);
    assert_int_equal(t.kept, gdn_prefix_n_snapshots(p));
    for (int page = 0; page < gdn_kv_n_pages(w->kv); page++) {
        int of_lanes = 0;
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < (w->lanes[lane].length + GDN_PAGE - 1) / GDN_PAGE; i++)
                of_lanes += gdn_kv_list(w->kv, lane)[i] == page;
        n_alone += t.held[page] && !of_lanes;
        assert_int_equal(gdn_kv_alone(w->kv, page), t.held[page] && !of_lanes);
    }
    const long long bytes = (long long)t.kept * (gdn_pool_slot_bytes(w->pool) + HIDDEN * 4LL) +
                            t.with_logits * LOGITS * 4LL + n_alone * (long long)gdn_kv_page_size(w->kv) +
                            t.nodes * (long long)sizeof(node);
    assert_int_equal(gdn_prefix_bytes(p), t.kept ? bytes : 0);
    assert_true(gdn_prefix_bytes(p) <= p->budget || !t.kept);
}

/* ---- random operations ------------------------------------------------------------------------------------------------------ */

static world open_world(int n_pages, int n_snapshots, long long more_bytes, unsigned seed)
{
    const gdn_delta_config config = {1, 1, 32, 32, 2, .type = GDN_F32, .qk_eps = 1e-6f};
    const gdn_kv_config    kv = {
           .n_layers = 1, .n_heads = 1, .dim = HEAD_DIM, .n_pages = n_pages, .n_lanes = LANES, .max_positions = MOST};
    world w = {.r = {seed}};
    ACCEPTED(gdn_pool_open(&w.pool, &config, 1, 2 * LANES + n_snapshots, &err));
    ACCEPTED(gdn_cache_open(&w.cache, w.pool, LANES, 0, &err));
    ACCEPTED(gdn_cache_add(w.cache, LANES, 0, &err));
    ACCEPTED(gdn_kv_open(&w.kv, &kv, &err));
    const long long budget = n_snapshots * (long long)gdn_pool_slot_bytes(w.pool) + more_bytes;
    assert_int_equal(gdn_prefix_slots(gdn_pool_slot_bytes(w.pool), budget),
                     n_snapshots + more_bytes / (long long)gdn_pool_slot_bytes(w.pool));
    ACCEPTED(gdn_prefix_open(&w.prefix, w.pool, w.kv, n_snapshots, LOGITS, HIDDEN, budget, &err));
    return w;
}

static void close_world(world *w)
{
    for (int i = 0; i < LANES; i++) empty(w, i);
    gdn_prefix_close(w->prefix);
    assert_int_equal(gdn_pool_free_slots(w->pool), w->pool->n_slots);
    gdn_kv_close(w->kv);
    gdn_cache_close(w->cache);
    gdn_pool_close(w->pool);
}

static void keep(world *w, int lane, bool with_logits)
{
    const timeline *const t = &w->lanes[lane];
    const float           name = name_of(t->tokens, t->length), logits[LOGITS] = {name, name, name},
                hidden[HIDDEN] = {-name, name};
    if (!t->length) return;
    gdn_prefix_keep(w->prefix, t->tokens, t->length, gdn_kv_list(w->kv, lane), w->cache, lane, hidden,
                    with_logits ? logits : NULL);
    w->old[w->n_old++ % OLD] = *t;
}

/* A text that begins like one of before. */
static timeline wish(world *w)
{
    timeline t = {0};
    if (w->n_old) t = w->old[rng_below(&w->r, w->n_old < OLD ? w->n_old : OLD)];
    if (rng_below(&w->r, 3)) t.length = rng_below(&w->r, t.length + 1);
    const int more = rng_below(&w->r, 3) ? rng_below(&w->r, 20) : rng_below(&w->r, 2 * GDN_PAGE);
    for (int i = 0; i < more && t.length < MOST; i++) t.tokens[t.length++] = rng_below(&w->r, 3);
    if (!t.length) t.tokens[t.length++] = 1;
    return t;
}

static void set(world *w, int lane)
{
    const timeline   to = wish(w);
    const int        found = gdn_prefix_find(w->prefix, to.tokens, to.length);
    const int        depth = gdn_prefix_depth(w->prefix, found);
    const gdn_status room = gdn_kv_check_room(w->kv, lane, gdn_prefix_pages(w->prefix, found), depth, to.length, &err);
    w->n_full += room != GDN_OK;
    if (room) return;
    gdn_prefix_tick(w->prefix);
    gdn_prefix_pin(w->prefix, found);
    if (rng_below(&w->r, 2)) keep(w, lane, rng_below(&w->r, 2));
    empty(w, lane);
    gdn_prefix_pin(w->prefix, -1);
    if (found >= 0) {
        const float *logits = gdn_prefix_restore(w->prefix, found, w->cache, lane);
        if (logits) assert_true(logits[0] == name_of(to.tokens, depth));
        else assert_true(depth < to.length);
        w->lanes[lane] = to;
        w->lanes[lane].length = depth;
    }
    w->n_hits += depth > 0;
    w->n_misses += depth == 0;
    expect(w, lane);
    while (w->lanes[lane].length < to.length) { /* there was room */
        const int left = to.length - w->lanes[lane].length, n = 1 + rng_below(&w->r, left);
        ACCEPTED(grow(w, lane, to.tokens + w->lanes[lane].length, n));
        if (rng_below(&w->r, 2)) keep(w, lane, w->lanes[lane].length == to.length);
    }
}

static void share(world *w, int lane, int other)
{
    if (lane == other) return;
    ACCEPTED(gdn_cache_share(w->cache, lane, w->cache, other, &err));
    gdn_kv_share(w->kv, lane, other, w->lanes[other].length);
    w->lanes[lane] = w->lanes[other];
    gdn_prefix_trim(w->prefix);
}

static void operate(world *w)
{
    const int lane = rng_below(&w->r, LANES), what = rng_below(&w->r, 12);
    if (what < 5) {
        set(w, lane);
    } else if (what < 7) {
        const int32_t tokens[3] = {rng_below(&w->r, 3), rng_below(&w->r, 3), 0};
        const int     n = 1 + rng_below(&w->r, 3);
        if (w->lanes[lane].length + n > MOST) return;
        const gdn_status s = grow(w, lane, tokens, n);
        w->n_full += s == GDN_NO_SLOT;
        if (s) assert_int_equal(gdn_prefix_n_snapshots(w->prefix), 0); /* nothing was left to evict */
    } else if (what < 9) {
        keep(w, lane, rng_below(&w->r, 2));
    } else if (what == 9) {
        share(w, lane, rng_below(&w->r, LANES));
    } else if (what == 10) {
        empty(w, lane);
    } else {
        w->n_evicted += gdn_prefix_evict(w->prefix);
    }
}

static void random_operations(void **unused)
{
    static const struct {
        int       n_pages, n_snapshots;
        long long more_bytes;
    } sizes[] = {{60, 40, 1 << 16}, {60, 40, 1 << 12}, {12, 20, 1 << 16}, {9, 3, 1 << 15}, {40, 1, 1 << 14}};
    (void)unused;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        static world w;
        w = open_world(sizes[k].n_pages, sizes[k].n_snapshots, sizes[k].more_bytes % 4096, 5u + (unsigned)k);
        w.prefix->budget += sizes[k].more_bytes;
        for (int i = 0; i < OPERATIONS; i++) {
            operate(&w);
            for (int lane = 0; lane < LANES; lane++) expect(&w, lane);
            if (i % 7 == 0) check_tree(&w);
        }
        check_tree(&w);
        print_message("%d pages, %d snapshots: %ld hits, %ld misses, %ld evicted on request, %ld times full\n",
                      sizes[k].n_pages, sizes[k].n_snapshots, w.n_hits, w.n_misses, w.n_evicted, w.n_full);
        assert_true(w.n_hits > OPERATIONS / 200 && w.n_misses > 20 && w.n_evicted > OPERATIONS / 30);
        while (gdn_prefix_evict(w.prefix)) continue;
        check_tree(&w);
        assert_int_equal(w.prefix->n_nodes, 1);
        close_world(&w);
    }
}

/* ---- what is given up first --------------------------------------------------------------------------------------------------- */

static void put(world *w, int lane, int first, int n, bool with_logits)
{
    int32_t tokens[MOST];
    for (int i = 0; i < n; i++) tokens[i] = i ? i : first;
    empty(w, lane);
    ACCEPTED(grow(w, lane, tokens, n));
    keep(w, lane, with_logits);
}

static int depth_of(const world *w, int first, int n)
{
    int32_t tokens[MOST];
    for (int i = 0; i < n; i++) tokens[i] = i ? i : first;
    return gdn_prefix_depth(w->prefix, gdn_prefix_find(w->prefix, tokens, n));
}

static void worth_of_snapshots(void **unused)
{
    (void)unused;
    world w = open_world(60, 8, 1 << 11, 1);
    w.prefix->budget += 1 << 18;
    put(&w, 0, 1000, 300, true); /* long, then two short ones, then one that is little further than the long one */
    put(&w, 0, 2000, 20, true);
    put(&w, 0, 3000, 10, true);
    put(&w, 0, 1000, 305, true);
    empty(&w, 0);
    assert_int_equal(gdn_prefix_n_snapshots(w.prefix), 4);
    assert_true(gdn_prefix_evict(w.prefix));
    assert_int_equal(depth_of(&w, 1000, 320), 300); /* 305 saved 5 tokens */
    assert_true(gdn_prefix_evict(w.prefix));
    assert_int_equal(depth_of(&w, 3000, 20), 0);
    assert_true(gdn_prefix_evict(w.prefix));
    assert_int_equal(depth_of(&w, 2000, 30), 0);
    put(&w, 0, 2000, 200, true);
    for (int i = 0; i < 10; i++) gdn_prefix_tick(w.prefix);
    assert_int_equal(depth_of(&w, 2000, 300), 200);
    int32_t tokens[200];
    for (int i = 0; i < 200; i++) tokens[i] = i ? i : 2000;
    gdn_prefix_restore(w.prefix, gdn_prefix_find(w.prefix, tokens, 200), w.cache, 0); /* used now, the other long ago */
    assert_true(gdn_prefix_evict(w.prefix));
    assert_int_equal(depth_of(&w, 1000, 300), 0);
    assert_int_equal(depth_of(&w, 2000, 300), 200);
    /* Pinned, it stays; then it goes. */
    gdn_prefix_pin(w.prefix, gdn_prefix_find(w.prefix, tokens, 200));
    assert_false(gdn_prefix_evict(w.prefix));
    gdn_prefix_pin(w.prefix, -1);
    assert_true(gdn_prefix_evict(w.prefix));
    assert_false(gdn_prefix_evict(w.prefix));
    assert_int_equal(gdn_prefix_bytes(w.prefix), 0);
    w.lanes[0] = (timeline){.length = 0};
    close_world(&w);
}

/* Without a budget nothing is kept, and nothing fails. */
static void nothing_kept(void **unused)
{
    (void)unused;
    world w = open_world(8, 0, 0, 1);
    put(&w, 0, 1, 100, true);
    expect(&w, 0);
    assert_false(gdn_prefix_keeps(w.prefix));
    assert_int_equal(depth_of(&w, 1, 200), 0);
    assert_int_equal(gdn_prefix_bytes(w.prefix), 0);
    assert_int_equal(gdn_prefix_slots(100, -1), 0);
    assert_int_equal(gdn_prefix_slots(100, 99), 0);
    assert_int_equal(gdn_prefix_slots(1, 1LL << 40), 4096);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_operations), cmocka_unit_test(worth_of_snapshots),
                                       cmocka_unit_test(nothing_kept)};
    return cmocka_run_group_tests_name("prefix", tests, NULL, NULL);
}
