/* Every allocation of every call that makes an object, failed in turn: an error, no leak, and success once none fails.  And
 * the calls of a step, which must not allocate at all. */
#include "fault/wrapped.h"
#include "unit/lanes.h"
#include <stdio.h>
#include <unistd.h>

/* ---- the calls that make an object -------------------------------------------------------------------------------- */

static lab        l;
static gdn_cache *cache; /* a lane with a state */
static char       path[64];

static gdn_status open_compute(void **out) { return gdn_compute_open((gdn_compute **)out, NULL, 4, &err); }
static void       close_compute(void *compute) { gdn_compute_close(compute); }
static gdn_status open_pool(void **out) { return gdn_pool_open((gdn_pool **)out, &l.config, 2, 3, &err); }
static void       close_pool(void *pool) { gdn_pool_close(pool); }
static gdn_status open_cache(void **out) { return gdn_cache_open((gdn_cache **)out, l.pool, 4, 3, &err); }
static gdn_status open_plain(void **out) { return gdn_cache_open((gdn_cache **)out, l.pool, 4, 0, &err); }
static gdn_status extract(void **out) { return gdn_cache_extract(cache, 0, (gdn_cache **)out, &err); }
static void       close_cache(void *opened) { gdn_cache_close(opened); }
static gdn_status take(void **out) { return gdn_snapshot_take((gdn_snapshot **)out, cache, 0, &err); }
static gdn_status load(void **out) { return gdn_snapshot_load((gdn_snapshot **)out, l.pool, path, &err); }
static void       release(void *snapshot) { gdn_snapshot_release(snapshot); }

static const struct {
    const char *name;
    gdn_status (*make)(void **out);
    void (*end)(void *made);
    long n_least; /* allocations that it must need at least */
} makers[] = {{"gdn_compute_open", open_compute, close_compute, 5},
              {"gdn_pool_open", open_pool, close_pool, 3},
              {"gdn_cache_open", open_cache, close_cache, 3},
              {"gdn_cache_open without rounds", open_plain, close_cache, 2},
              {"gdn_cache_extract", extract, close_cache, 2},
              {"gdn_snapshot_take", take, release, 1},
              {"gdn_snapshot_load", load, release, 1}};

static void every_allocation_fails(void **unused)
{
    (void)unused;
    watch(&l, cache, NULL);
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        for (fail_at = 1;; fail_at++) {
            const long     live = n_live;
            const int      fd = lowest_descriptor();
            const uint64_t before = picture();
            void          *made = NULL;
            err = (gdn_error){0};
            n_asked = 0;
            counting = 1;
            const gdn_status status = makers[i].make(&made);
            counting = 0;
            if (status == GDN_OK) {
                makers[i].end(made);
            } else {
                if (status != GDN_NO_MEMORY || err.code != status || !err.message[0] || made)
                    fail_msg("%s, allocation %ld: %s", makers[i].name, fail_at, gdn_status_name(status));
                if (picture() != before) fail_msg("%s, allocation %ld: something changed", makers[i].name, fail_at);
            }
            if (n_live != live) fail_msg("%s, allocation %ld: %ld leaked", makers[i].name, fail_at, n_live - live);
            assert_int_equal(lowest_descriptor(), fd);
            if (status == GDN_OK) break;
            if (n_asked < fail_at) fail_msg("%s fails without a failed allocation", makers[i].name);
        }
        if (n_asked >= fail_at || n_asked < makers[i].n_least)
            fail_msg("%s: %ld allocations seen", makers[i].name, n_asked);
        print_message("%s: %ld allocations\n", makers[i].name, n_asked);
    }
    watch(NULL, NULL, NULL);
}

/* ---- the calls of a step ------------------------------------------------------------------------------------------- */

static void run_layers(gdn_cache *c, const gdn_layer_args *args)
{
    for (int layer = 0; layer < l.n_layers; layer++)
        ACCEPTED(gdn_delta_layer(l.compute, c, layer, &l.weights[layer], args, &err));
}

static void a_step_allocates_nothing(void **unused)
{
    static const int tokens[] = {1, 2, 3, 4, 5, 6, 7, 8}, counts[] = {2, 2}, keep[] = {1, 0}, rows[] = {1},
                     left[] = {1, 0};
    void *qkv = lab_rows(&l, tokens, 8, 0, 1, l.qkv_row, 0), *z = lab_rows(&l, tokens, 8, 0, 2, l.z_row, 0);
    void *a = lab_rows(&l, tokens, 8, 0, 3, l.ab_row, 0), *b = lab_rows(&l, tokens, 8, 0, 4, l.ab_row, 0);
    void *y = malloc(8 * l.z_row);
    const gdn_layer_args two = {.batch = {.n_lanes = 2, .length = 2}, .qkv = qkv, .z = z, .a = a, .b = b, .y = y};
    gdn_layer_args       masked = two;
    gdn_cache           *running = lab_cache(&l, 1, 4, 3), *joining = lab_prefilled(&l, 1, 0, tokens, 3), *shared;
    gdn_snapshot        *snapshot;
    uint8_t              mask[4];
    (void)unused;
    ACCEPTED(gdn_snapshot_take(&snapshot, joining, 0, &err));
    ACCEPTED(gdn_cache_extract(joining, 0, &shared, &err));
    masked.batch.mask = mask;

    const long live = n_live;
    n_asked = 0;
    fail_at = 1;
    counting = 1;
    ACCEPTED(gdn_snapshot_restore(running, 0, snapshot, &err));
    ACCEPTED(gdn_cache_merge(running, joining, &err));
    ACCEPTED(gdn_cache_merge(running, shared, &err));
    ACCEPTED(gdn_cache_filter(running, (const int[]){0, 1}, 2, &err));
    run_layers(running, &two);
    ACCEPTED(gdn_cache_advance_rows(running, counts, &err));
    ACCEPTED(gdn_cache_prepare(running, left, NULL, &err));
    assert_int_equal(gdn_cache_make_mask(running, 2, mask), 1);
    run_layers(running, &masked);
    ACCEPTED(gdn_cache_advance(running, 2, NULL, &err));
    gdn_cache_finalize(running);
    for (int i = 0; i < 3; i++) {
        ACCEPTED(gdn_round_begin(running, &err));
        run_layers(running, i == 1 ? &masked : &two);
        if (i == 0) ACCEPTED(gdn_round_rollback(l.compute, running, keep, 2, &err));
        if (i == 1) ACCEPTED(gdn_round_commit(running, &err));
    }
    ACCEPTED(gdn_round_begin(running, &err)); /* drops the last one */
    run_layers(running, &two);
    ACCEPTED(gdn_round_commit(running, &err));
    ACCEPTED(gdn_cache_filter(running, rows, 1, &err));
    ACCEPTED(gdn_cache_add(running, 2, 0, &err));
    ACCEPTED(gdn_snapshot_save(snapshot, path, &err));
    assert_int_equal(gdn_cache_trim(running, 1, &err), GDN_NOT_TRIMMABLE);
    counting = 0;
    assert_int_equal(n_asked, 0);
    assert_int_equal(n_live, live);

    gdn_snapshot_release(snapshot);
    gdn_cache_close(running);
    gdn_cache_close(joining);
    gdn_cache_close(shared);
    free(qkv);
    free(z);
    free(a);
    free(b);
    free(y);
}

/* ---- the bench ----------------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
    static const int tokens[] = {1, 2, 3};
    gdn_snapshot    *snapshot;
    (void)state;
    snprintf(path, sizeof path, "/tmp/gdn-alloc-%ld", (long)getpid());
    lab_open(&l, GDN_BF16, 2, 8);
    gdn_compute_close(l.compute);
    if (gdn_compute_open(&l.compute, NULL, 3, &err)) return -1;
    cache = lab_prefilled(&l, 1, 3, tokens, 3);
    if (gdn_snapshot_take(&snapshot, cache, 0, &err) || gdn_snapshot_save(snapshot, path, &err)) return -1;
    gdn_snapshot_release(snapshot);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gdn_cache_close(cache);
    lab_close(&l);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails),
                                       cmocka_unit_test(a_step_allocates_nothing)};
    return cmocka_run_group_tests_name("allocations", tests, setup, teardown);
}
