/* Snapshots in memory and in files: what they bring back, and everything that must be refused. */
#include "unit/lanes.h"
#include "base/checksum.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int A[] = {11, 12, 13, 14, 15, 16}, B[] = {21, 22, 23, 24};
static const int one = 1;
static char      folder[64], path[128];

/* ---- a disk that misbehaves: these take the place of the C library's, in this program ------------------------------ */

static enum { DISK_GOOD, DISK_SLOW, DISK_FULL, DISK_BROKEN } disk;
static size_t disk_space, slow_calls;

ssize_t write(int fd, const void *data, size_t n)
{
    if (disk == DISK_SLOW && slow_calls++ % 3 == 0) return errno = EINTR, -1;
    if (disk == DISK_SLOW && n > 100) n = 100;
    if (disk == DISK_FULL) {
        if (!disk_space) return errno = ENOSPC, -1;
        if (n > disk_space) n = disk_space;
        disk_space -= n;
    }
    return syscall(SYS_write, fd, data, n);
}

int fdatasync(int fd)
{
    if (disk == DISK_BROKEN) return errno = EIO, -1;
    return (int)syscall(SYS_fdatasync, fd);
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static unsigned char *load_bytes(const char *name, size_t *n)
{
    FILE *f = fopen(name, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    return bytes;
}

static void store_bytes(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(name, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int lowest_descriptor(void)
{
    const int fd = open("/dev/null", O_RDONLY);
    assert_true(fd >= 0 && !close(fd));
    return fd;
}

static int has_temporary(void)
{
    char name[160];
    snprintf(name, sizeof name, "%s.tmp-%ld", path, (long)getpid());
    return access(name, F_OK) == 0;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gdn-snapshot-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/lane", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails when anything is left in it */
}

/* A model, a lane with 3 tokens and its snapshot. */
typedef struct bench {
    lab           l;
    gdn_cache    *cache;
    gdn_snapshot *snapshot;
} bench;

static void bench_open(bench *b, gdn_type type)
{
    lab_open(&b->l, type, 2, 3);
    b->cache = lab_prefilled(&b->l, 2, 1, A, 3);
    ACCEPTED(gdn_snapshot_take(&b->snapshot, b->cache, 0, &err));
}

static void bench_close(bench *b)
{
    watch(NULL, NULL, NULL);
    gdn_snapshot_release(b->snapshot);
    gdn_cache_close(b->cache);
    lab_close(&b->l);
}

/* ---- in memory ----------------------------------------------------------------------------------------------------- */

static void restore_and_continue(void **unused)
{
    (void)unused;
    for (int type = 0; type < 2; type++) {
        bench b;
        lab   second;
        bench_open(&b, (gdn_type)type);
        assert_int_equal(gdn_snapshot_offset(b.snapshot), 3);
        assert_int_equal(gdn_snapshot_bytes(b.snapshot), 128 + gdn_pool_slot_bytes(b.l.pool));
        lab_run(&b.l, b.cache, &one, B); /* what happens to the lane does not reach the snapshot */
        for (int i = 0; i < 2; i++) {
            const float *const slot = lane_state(b.cache, 0, 0);
            ACCEPTED(gdn_snapshot_restore(b.cache, 0, b.snapshot, &err));
            assert_ptr_equal(lane_state(b.cache, 0, 0), slot);
            lab_expect(&b.l, b.cache, 0, A, 3, 3);
            lab_run(&b.l, b.cache, &one, A + 3);
            lab_expect(&b.l, b.cache, 0, A, 4, 4);
        }
        lab_open(&second, (gdn_type)type, 2, 1); /* another pool, of the same shape */
        gdn_cache *cache = lab_cache(&second, 1, 1, 0);
        ACCEPTED(gdn_snapshot_restore(cache, 0, b.snapshot, &err));
        lab_expect(&second, cache, 0, A, 3, 3);
        gdn_cache_close(cache);
        lab_close(&second);
        bench_close(&b);
    }
}

static void references(void **unused)
{
    bench b;
    (void)unused;
    bench_open(&b, GDN_BF16);
    assert_ptr_equal(gdn_snapshot_retain(b.snapshot), b.snapshot);
    gdn_snapshot_release(b.snapshot);
    gdn_snapshot_release(NULL);
    assert_int_equal(gdn_snapshot_offset(b.snapshot), 3); /* one reference is left */
    bench_close(&b);
}

static void restore_needs_a_slot(void **unused)
{
    bench      b;
    gdn_cache *alone;
    (void)unused;
    bench_open(&b, GDN_BF16);
    ACCEPTED(gdn_cache_add(b.cache, 1, 0, &err));
    ACCEPTED(gdn_cache_extract(b.cache, 0, &alone, &err));
    lab_run(&b.l, alone, &one, A + 3);
    gdn_cache *copy;
    ACCEPTED(gdn_cache_extract(alone, 0, &copy, &err));
    ACCEPTED(gdn_snapshot_restore(b.cache, 1, b.snapshot, &err)); /* a lane without a state takes the last slot */
    lab_expect(&b.l, b.cache, 1, A, 3, 3);
    assert_int_equal(gdn_pool_free_slots(b.l.pool), 0);
    watch(&b.l, alone, copy);
    REFUSED(GDN_NO_SLOT, "restore: 1 slots are needed",
            gdn_snapshot_restore(alone, 0, b.snapshot, &err)); /* it is shared */
    watch(NULL, NULL, NULL);
    const int first = 0;
    ACCEPTED(gdn_cache_filter(b.cache, &first, 1, &err));
    ACCEPTED(gdn_snapshot_restore(alone, 0, b.snapshot, &err));
    lab_expect(&b.l, alone, 0, A, 3, 3);
    lab_expect(&b.l, copy, 0, A, 4, 4);
    gdn_cache_close(alone);
    gdn_cache_close(copy);
    bench_close(&b);
}

static void memory_refusals(void **unused)
{
    bench         b;
    gdn_snapshot *out = NULL;
    (void)unused;
    bench_open(&b, GDN_BF16);
    ACCEPTED(gdn_cache_add(b.cache, 1, 0, &err));
    watch(&b.l, b.cache, NULL);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_take(NULL, b.cache, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_take(&out, NULL, 0, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane 2", gdn_snapshot_take(&out, b.cache, 2, &err));
    REFUSED(GDN_BAD_STATE, "lane 1 has no state in layer 0", gdn_snapshot_take(&out, b.cache, 1, &err));
    assert_null(out);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_restore(NULL, 0, b.snapshot, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_restore(b.cache, 0, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "there is no lane -1", gdn_snapshot_restore(b.cache, -1, b.snapshot, &err));
    watch(NULL, NULL, NULL);
    const int one_each[] = {0, 1};
    ACCEPTED(lab_layer(&b.l, b.cache, 0, ragged(b.cache, one_each), A, NULL)); /* half a prompt is no state */
    REFUSED(GDN_BAD_STATE, "lane 1 has no state in layer 1", gdn_snapshot_take(&out, b.cache, 1, &err));
    bench_close(&b);
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static void save_and_load(void **unused)
{
    (void)unused;
    for (int type = 0; type < 2; type++) {
        bench         b;
        gdn_snapshot *loaded, *parsed;
        size_t        n, n_again;
        bench_open(&b, (gdn_type)type);
        store_bytes(path, "an older file that is replaced", 30);
        ACCEPTED(gdn_snapshot_save(b.snapshot, path, &err));
        assert_false(has_temporary());
        unsigned char *image = load_bytes(path, &n);
        assert_int_equal(n, gdn_snapshot_bytes(b.snapshot));
        ACCEPTED(gdn_snapshot_load(&loaded, b.l.pool, path, &err));
        ACCEPTED(gdn_snapshot_parse(&parsed, b.l.pool, image, n, &err));
        gdn_snapshot *const both[] = {loaded, parsed};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(gdn_snapshot_offset(both[i]), 3);
            assert_int_equal(gdn_snapshot_bytes(both[i]), n);
            lab_run(&b.l, b.cache, &one, B);
            ACCEPTED(gdn_snapshot_restore(b.cache, 0, both[i], &err));
            lab_expect(&b.l, b.cache, 0, A, 3, 3);
            ACCEPTED(gdn_snapshot_save(both[i], path, &err));
            unsigned char *again = load_bytes(path, &n_again);
            assert_int_equal(n_again, n);
            assert_memory_equal(again, image, n);
            free(again);
            gdn_snapshot_release(both[i]);
        }
        free(image);
        bench_close(&b);
    }
}

/* An image that was made elsewhere, from the definition alone (tests/fuzz/corpus_snapshot.py). */
static void an_image_made_elsewhere(void **unused)
{
    gdn_delta_config c = {.n_key_heads = 1,
                          .n_value_heads = 1,
                          .key_dim = 32,
                          .value_dim = 32,
                          .n_taps = 2,
                          .type = GDN_BF16,
                          .qk_eps = 1e-6f};
    gdn_pool        *pool;
    gdn_cache       *cache;
    gdn_snapshot    *snapshot;
    const float     *state;
    const void      *tail;
    (void)unused;
    ACCEPTED(gdn_pool_open(&pool, &c, 1, 1, &err));
    ACCEPTED(gdn_cache_open(&cache, pool, 1, 0, &err));
    ACCEPTED(gdn_cache_add(cache, 1, 0, &err));
    ACCEPTED(gdn_snapshot_load(&snapshot, pool, "tests/fuzz/corpus/snapshot/valid", &err));
    ACCEPTED(gdn_snapshot_restore(cache, 0, snapshot, &err));
    gdn_cache_peek(cache, 0, 0, &state, &tail);
    assert_int_equal(gdn_cache_lane_offset(cache, 0), 5);
    for (size_t i = 0; i < 96; i++) assert_true(typed_get(GDN_BF16, tail, i) == (float)(i % 100 + 1));
    for (int i = 0; i < 1024; i++) assert_true(state[i] == (float)i / 8 - 1);
    ACCEPTED(gdn_snapshot_save(snapshot, path, &err));
    size_t         n, n_saved;
    unsigned char *image = load_bytes("tests/fuzz/corpus/snapshot/valid", &n), *saved = load_bytes(path, &n_saved);
    assert_int_equal(n, n_saved);
    assert_memory_equal(image, saved, n);
    free(image);
    free(saved);
    gdn_snapshot_release(snapshot);
    gdn_cache_close(cache);
    gdn_pool_close(pool);
}

/* Sums of bytes (7*i+3) % 256, computed by tests/fuzz/corpus_snapshot.py. */
static void checksums(void **unused)
{
    static const struct {
        size_t   n;
        uint64_t sum;
    } known[] = {{0, 0x217da67f298400af},   {1, 0xd5d10680d3357c26},  {8, 0xc8191d53ad4db033},
                 {63, 0x23d3383162339f3d},  {64, 0x2c45a03fe0a083df}, {65, 0x46093097b7afe3b8},
                 {1000, 0x67827b5a0fd28f8c}};
    unsigned char bytes[1001]; /* at an odd address */
    (void)unused;
    for (size_t i = 0; i < 1000; i++) bytes[i + 1] = (unsigned char)(7 * i + 3);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_true(gdn_checksum(bytes + 1, known[i].n) == known[i].sum);
}

/* Refused whole, from memory and from a file, and nothing is made. */
static void refuse_image(const bench *b, gdn_status code, const char *part, const unsigned char *bytes, size_t n)
{
    gdn_snapshot  *out = NULL;
    unsigned char *exact = malloc(n ? n : 1); /* a sanitizer sees its end */
    assert_non_null(exact);
    memcpy(exact, bytes, n);
    REFUSED(code, part, gdn_snapshot_parse(&out, b->l.pool, exact, n, &err));
    store_bytes(path, exact, n);
    REFUSED(code, part, gdn_snapshot_load(&out, b->l.pool, path, &err));
    assert_null(out);
    free(exact);
}

static void damaged_files(void **unused)
{
    bench  b;
    size_t n;
    (void)unused;
    bench_open(&b, GDN_BF16);
    ACCEPTED(gdn_snapshot_save(b.snapshot, path, &err));
    unsigned char *image = load_bytes(path, &n);
    for (size_t cut = 0; cut < n; cut += 97) refuse_image(&b, GDN_BAD_FILE, "load: ", image, cut);
    refuse_image(&b, GDN_BAD_FILE, "too few", image, 127);
    refuse_image(&b, GDN_BAD_FILE, "should have", image, 128);
    refuse_image(&b, GDN_BAD_FILE, "should have", image, n - 1);
    image[n] = 0;
    refuse_image(&b, GDN_BAD_FILE, "should have", image, n + 1);
    for (size_t byte = 0; byte < n; byte += byte < 128 ? 1 : 131) { /* every byte of the header */
        image[byte] ^= (unsigned char)(1 << byte % 8);
        refuse_image(&b, GDN_BAD_FILE, byte < 8 ? "not a gdn snapshot" : byte < 16 ? "version" : "damaged", image, n);
        image[byte] ^= (unsigned char)(1 << byte % 8);
    }
    const size_t layer = (n - 128) / 2; /* the states of two layers, swapped */
    for (size_t i = 0; i < layer; i++) {
        const unsigned char byte = image[128 + i];
        image[128 + i] = image[128 + layer + i];
        image[128 + layer + i] = byte;
    }
    refuse_image(&b, GDN_BAD_FILE, "damaged", image, n);
    free(image);
    static const char *const made_elsewhere[] = {"negative_offset", "contradiction", "huge_payload",
                                                 "other_version",   "foreign",       "empty"};
    for (size_t i = 0; i < sizeof made_elsewhere / sizeof *made_elsewhere; i++) {
        const gdn_delta_config c = {.n_key_heads = 1,
                                    .n_value_heads = 1,
                                    .key_dim = 32,
                                    .value_dim = 32,
                                    .n_taps = 2,
                                    .type = GDN_BF16,
                                    .qk_eps = 1e-6f};
        bench                  tiny = b;
        char                   name[80];
        snprintf(name, sizeof name, "tests/fuzz/corpus/snapshot/%s", made_elsewhere[i]);
        image = load_bytes(name, &n);
        ACCEPTED(gdn_pool_open(&tiny.l.pool, &c, 1, 1, &err));
        refuse_image(&tiny, GDN_BAD_FILE, "load: ", image, n);
        gdn_pool_close(tiny.l.pool);
        free(image);
    }
    bench_close(&b);
}

static void other_shapes(void **unused)
{
    bench  b;
    size_t n;
    (void)unused;
    bench_open(&b, GDN_BF16);
    ACCEPTED(gdn_snapshot_save(b.snapshot, path, &err));
    unsigned char *image = load_bytes(path, &n);
    for (int i = 0; i < 11; i++) {
        static const char *const names[] = {"n_layers 2, the pool 1",
                                            "n_key_heads 1, the pool 2",
                                            "n_value_heads 2, the pool 4",
                                            "key_dim 32, the pool 64",
                                            "value_dim 32, the pool 64",
                                            "n_taps 4, the pool 3",
                                            "head_map 0, the pool 1",
                                            "type 1, the pool 0",
                                            "recipe 0, the pool 1",
                                            "qk_norm 0, the pool 2",
                                            "qk_eps"};
        gdn_delta_config         c = lab_config(GDN_BF16);
        bench                    other = b;
        if (i == 1) c.n_key_heads = 2;
        if (i == 2) c.n_value_heads = 4;
        if (i == 3) c.key_dim = 64;
        if (i == 4) c.value_dim = 64;
        if (i == 5) c.n_taps = 3;
        if (i == 6) c.head_map = GDN_HEADS_TILED;
        if (i == 7) c.type = GDN_F32;
        if (i == 8) c.recipe = GDN_RECIPE_MLX;
        if (i == 9) c.qk_norm = GDN_QK_NORM_MAX;
        if (i == 10) c.qk_eps = 1e-5f;
        ACCEPTED(gdn_pool_open(&other.l.pool, &c, i == 0 ? 1 : 2, 1, &err));
        refuse_image(&other, GDN_MISMATCH, names[i], image, n);
        other.cache = lab_cache(&other.l, 1, 1, 0);
        REFUSED(GDN_MISMATCH, names[i], gdn_snapshot_restore(other.cache, 0, b.snapshot, &err));
        assert_int_equal(gdn_pool_free_slots(other.l.pool), 1);
        gdn_cache_close(other.cache);
        gdn_pool_close(other.l.pool);
    }
    free(image);
    bench_close(&b);
}

/* ---- paths and disks ----------------------------------------------------------------------------------------------- */

static void paths(void **unused)
{
    bench         b;
    gdn_snapshot *out = NULL;
    char          name[PATH_MAX + 400], here[PATH_MAX];
    const int     fd = lowest_descriptor();
    (void)unused;
    bench_open(&b, GDN_BF16);
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_save(NULL, path, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_save(b.snapshot, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "names no file", gdn_snapshot_save(b.snapshot, "", &err));
    REFUSED(GDN_BAD_ARGUMENT, "names no file", gdn_snapshot_save(b.snapshot, "/tmp/", &err));
    REFUSED(GDN_IO, "create it first", gdn_snapshot_save(b.snapshot, "/no such folder/lane", &err));
    memset(name, 'n', 250);
    name[250] = 0;
    REFUSED(GDN_IO, "too long", gdn_snapshot_save(b.snapshot, name, &err)); /* no room for .tmp-PID */
    memset(name, '/', PATH_MAX + 1);
    strcpy(name + PATH_MAX + 1, "lane");
    REFUSED(GDN_IO, "too long", gdn_snapshot_save(b.snapshot, name, &err));
    REFUSED(GDN_IO, "cannot be written", gdn_snapshot_save(b.snapshot, folder, &err)); /* a folder has that name */
    snprintf(name, sizeof name, "%s.tmp-%ld", folder, (long)getpid());
    assert_int_not_equal(access(name, F_OK), 0);
    snprintf(name, sizeof name, "%s.tmp-%ld", path, (long)getpid());
    assert_int_equal(mkdir(name, 0700), 0);
    REFUSED(GDN_IO, "cannot be created", gdn_snapshot_save(b.snapshot, path, &err));
    assert_int_equal(rmdir(name), 0);
    static const char leftover[100000]; /* of a process that died, and longer than an image */
    store_bytes(name, leftover, sizeof leftover);
    ACCEPTED(gdn_snapshot_save(b.snapshot, path, &err));
    assert_false(has_temporary());
    ACCEPTED(gdn_snapshot_load(&out, b.l.pool, path, &err));
    gdn_snapshot_release(out);

    out = NULL;
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_load(NULL, b.l.pool, path, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_load(&out, NULL, path, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_load(&out, b.l.pool, NULL, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_parse(NULL, b.l.pool, path, 1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_parse(&out, NULL, path, 1, &err));
    REFUSED(GDN_BAD_ARGUMENT, "NULL", gdn_snapshot_parse(&out, b.l.pool, NULL, 1, &err));
    REFUSED(GDN_IO, "No such file", gdn_snapshot_load(&out, b.l.pool, "/no such folder/lane", &err));
    REFUSED(GDN_BAD_FILE, "is not a file", gdn_snapshot_load(&out, b.l.pool, folder, &err));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    REFUSED(GDN_BAD_FILE, "is not a file",
            gdn_snapshot_load(&out, b.l.pool, path, &err)); /* and does not wait for a writer */

    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    ACCEPTED(gdn_snapshot_save(b.snapshot, "lane", &err));
    ACCEPTED(gdn_snapshot_load(&out, b.l.pool, "lane", &err));
    assert_int_equal(chdir(here), 0);
    assert_int_equal(lowest_descriptor(), fd);
    gdn_snapshot_release(out);
    bench_close(&b);
}

static void disks(void **unused)
{
    bench         b;
    gdn_snapshot *out = NULL;
    size_t        n, n_old;
    const int     fd = lowest_descriptor();
    (void)unused;
    bench_open(&b, GDN_BF16);
    disk = DISK_SLOW;
    ACCEPTED(gdn_snapshot_save(b.snapshot, path, &err));
    disk = DISK_GOOD;
    assert_true(slow_calls > 100);
    ACCEPTED(gdn_snapshot_load(&out, b.l.pool, path, &err));
    gdn_snapshot_release(out);

    unsigned char *old = load_bytes(path, &n_old);
    lab_run(&b.l, b.cache, &one, A + 3);
    ACCEPTED(gdn_snapshot_take(&out, b.cache, 0, &err));
    for (int kind = 0; kind < 4; kind++) {
        disk = kind == 3 ? DISK_BROKEN : DISK_FULL;
        disk_space = kind == 0 ? 0 : kind == 1 ? 50 : n_old - 1;
        REFUSED(GDN_IO, kind == 3 ? "Input/output error" : "No space left", gdn_snapshot_save(out, path, &err));
        disk = DISK_GOOD;
        assert_false(has_temporary());
        unsigned char *now = load_bytes(path, &n);
        assert_int_equal(n, n_old);
        assert_memory_equal(now, old, n);
        free(now);
    }
    assert_int_equal(lowest_descriptor(), fd);
    free(old);
    gdn_snapshot_release(out);
    bench_close(&b);
}

/* Threads that save to one path take turns: whoever loads it finds one of the images whole. */
static void *save_often(void *snapshot)
{
    intptr_t n_failed = 0;
    for (int i = 0; i < 40; i++) n_failed += gdn_snapshot_save(snapshot, path, NULL) != GDN_OK;
    return (void *)n_failed;
}

static void savers_take_turns(void **unused)
{
    bench         b;
    gdn_snapshot *second, *out;
    pthread_t     thread[2];
    (void)unused;
    bench_open(&b, GDN_BF16);
    lab_run(&b.l, b.cache, &one, A + 3);
    ACCEPTED(gdn_snapshot_take(&second, b.cache, 0, &err));
    ACCEPTED(gdn_snapshot_save(second, path, &err));
    gdn_snapshot *const both[] = {b.snapshot, second};
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, save_often, both[i]), 0);
    for (int i = 0; i < 60; i++) {
        ACCEPTED(gdn_snapshot_load(&out, b.l.pool, path, &err));
        const int64_t offset = gdn_snapshot_offset(out);
        assert_true(offset == 3 || offset == 4);
        gdn_snapshot_release(out);
    }
    for (int i = 0; i < 2; i++) {
        void *n_failed;
        assert_int_equal(pthread_join(thread[i], &n_failed), 0);
        assert_null(n_failed);
    }
    assert_false(has_temporary());
    gdn_snapshot_release(second);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restore_and_continue),
        cmocka_unit_test(references),
        cmocka_unit_test(restore_needs_a_slot),
        cmocka_unit_test(memory_refusals),
        cmocka_unit_test(save_and_load),
        cmocka_unit_test(checksums),
        cmocka_unit_test(an_image_made_elsewhere),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(other_shapes),
        cmocka_unit_test(paths),
        cmocka_unit_test(disks),
        cmocka_unit_test(savers_take_turns),
    };
    return cmocka_run_group_tests_name("snapshots", tests, make_folder, remove_folder);
}
