/* What leaves memory or outlives a process in cache_dir: the bits are those of computing it, and what is damaged, foreign or not there
 * is missed whole. */
#include "law/persist.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- the folder ------------------------------------------------------------------------------------------------------------------ */

typedef struct files {
    int       n;
    long long bytes;
    char      name[400][700];
} files;

static files files_in(const char *path)
{
    files f = {0};
    DIR  *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *entry; (entry = readdir(d));) {
        struct stat st;
        if (entry->d_name[0] == '.') continue;
        assert_true(f.n < 400);
        snprintf(f.name[f.n], sizeof f.name[0], "%s/%s", path, entry->d_name);
        assert_int_equal(stat(f.name[f.n++], &st), 0);
        f.bytes += st.st_size;
    }
    closedir(d);
    return f;
}

/* A conversation of three turns, each with an answer; what was computed for the prompts. */
static int converse(list *l)
{
    gdn_sequence *s = sequence_of(warm);
    int           computed = 0;
    *l = prompt_of(150, 2, 40);
    for (unsigned turn = 0; turn < 3; turn++) {
        computed += put(s, l, "a turn");
        answer(s, l, 10 + turn, 30);
        if (turn == 2) break;
        close_turn(l);
        add_turn(l, USER, 20 + turn, 70);
        open_turn(l, ASSISTANT);
    }
    gdn_sequence_close(s);
    return computed;
}

/* What an engine that has just been opened must compute of a list. */
static int computed_after_restart(int n_threads, const char *cache, const list *l)
{
    open_both(n_threads, GDN_F32, cache);
    gdn_sequence *s = sequence_of(warm);
    const int     computed = put(s, l, "after a restart");
    gdn_sequence_close(s);
    close_both();
    return computed;
}

static void restarts(void **unused)
{
    char cache[400];
    list l, edited;
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("cache")); /* it is made */
    open_both(1, GDN_F32, cache);
    const int cold_tokens = converse(&l);
    close_both();
    assert_true(cold_tokens < l.n); /* each token once at most */
    assert_int_equal(computed_after_restart(2, cache, &l), 0);
    edited = l;
    edited.id[edited.n - 1] = 299;
    assert_in_range(computed_after_restart(1, cache, &edited), 1, 30);
    edited = prompt_of(150, 99, 40);
    assert_int_equal(computed_after_restart(2, cache, &edited), edited.n - 150);

    /* A new conversation adds to what there is. */
    open_both(1, GDN_F32, cache);
    gdn_sequence *s = sequence_of(warm);
    edited = prompt_of(150, 98, 90);
    assert_int_equal(put(s, &edited, "another conversation"), edited.n - 150);
    gdn_sequence_close(s);
    close_both();
    assert_int_equal(computed_after_restart(1, cache, &edited), 0);

    /* Another type of keys and values finds nothing, and leaves what is there. */
    open_both(1, GDN_BF16, cache);
    s = sequence_of(warm);
    assert_int_equal(put(s, &l, "another type"), l.n);
    gdn_sequence_close(s);
    close_both();
    assert_int_equal(computed_after_restart(1, cache, &l), 0);
}

static void damaged_folders(void **unused)
{
    char cache[400];
    list l;
    rng  r = {8};
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("damaged"));
    for (int how = 0; how < 6; how++) {
        nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        open_both(1, GDN_F32, cache);
        converse(&l);
        close_both();
        const files f = files_in(cache);
        assert_true(f.n > 5);
        const int all = computed_after_restart(1, cache, &l);
        assert_int_equal(all, 0);
        for (int i = 0; i < f.n; i++) {
            unsigned char *bytes;
            const size_t   n = read_file(f.name[i], &bytes);
            if (how == 0) bytes[rng_below(&r, (int)n)] ^= 4; /* all of them */
            if (how == 1 && i % 2) bytes[rng_below(&r, (int)n)] ^= 4;
            if (how < 2) write_file(f.name[i], bytes, n);
            if (how == 2) write_file(f.name[i], bytes, (size_t)rng_below(&r, (int)n));
            if (how == 3) write_file(f.name[i], (const unsigned char *)"", 0);
            if (how == 4 && i % 3 == 0) assert_int_equal(remove(f.name[i]), 0);
            if (how == 5 && i) write_file(f.name[0], bytes, n); /* what another record has */
            free(bytes);
        }
        const int computed = computed_after_restart(1, cache, &l);
        assert_in_range(computed, how == 0 || how == 2 || how == 3 ? l.n : 0, l.n);
        const int again = computed_after_restart(2, cache, &l); /* it has been written again */
        if (again) fail_msg("damaged in way %d: %d computed, then %d", how, computed, again);
    }
}

static void budget_of_the_folder(void **unused)
{
    char cache[400];
    list l;
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("budget"));
    const long long          budget = 12 << 20;
    const gdn_engine_options options = {.max_tokens = MOST, .cache_dir = cache, .cache_bytes = budget};
    for (unsigned i = 0; i < 4; i++) {
        gdn_engine   *engine = engine_of(&options);
        gdn_sequence *s = sequence_of(engine);
        int           computed = -1;
        l = prompt_of(100, i, 200);
        ACCEPTED(gdn_sequence_set(s, l.id, l.n, NULL, NULL, &computed, &err));
        gdn_sequence_close(s);
        gdn_engine_close(engine);
        const files f = files_in(cache);
        assert_in_range(f.bytes, 1, budget);
        assert_true(f.n >= 2);
    }
    /* Less than one record has no room. */
    snprintf(cache, sizeof cache, "%s", in_folder("tiny"));
    gdn_engine   *engine = engine_of(&(gdn_engine_options){.cache_dir = cache, .cache_bytes = 1000});
    gdn_sequence *s = sequence_of(engine);
    set(s, 0, 100);
    gdn_sequence_close(s);
    gdn_engine_close(engine);
    assert_int_equal(files_in(cache).n, 0);
}

/* What leaves a small index goes to the folder and comes back when it is asked for, while the engine is open. */
static void spilled(void **unused)
{
    enum { PROMPTS = 9, SLOTS = 3 };
    const int system[PROMPTS] = {100, 150, 100, 70, 150, 100, 230, 40, 150};
    char      cache[400];
    (void)unused;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        snprintf(cache, sizeof cache, "%s/spilled-%d", folder, n_threads);
        open_both(n_threads, n_threads == 1 ? GDN_F32 : GDN_BF16, NULL);
        gdn_engine_close(warm);
        const gdn_engine_options options = {.n_threads = n_threads,
                                            .n_sequences = 2,
                                            .max_tokens = MOST,
                                            .kv_type = gdn_kv_type(cold->kv),
                                            .reuse_bytes = SLOTS * (long long)gdn_pool_slot_bytes(cold->pool) + 1000000,
                                            .drafter = GDN_DRAFTER_MTP,
                                            .cache_dir = cache,
                                            .cache_bytes = 1 << 30};
        warm = engine_of(&options);
        gdn_sequence *s = sequence_of(warm);
        int           n_tokens = 0, n_computed = 0, n_again = 0;
        for (unsigned round = 0; round < 3; round++)
            for (unsigned i = 0; i < PROMPTS; i++) {
                list l = prompt_of(system[i], i, 80 + (int)i);
                if (round == 2) l.id[l.n - 6] = 299; /* near its end */
                n_tokens += round ? 0 : l.n;
                *(round ? &n_again : &n_computed) += put(s, &l, "with a small index");
                assert_in_range(gdn_prefix_n_snapshots(warm->prefix), 1, SLOTS);
                if (round == 1) assert_int_equal(n_again, 0);
            }
        assert_true(n_computed > n_tokens / 2); /* what the prompts have in common is less */
        assert_in_range(n_again, PROMPTS, n_tokens - n_computed / 3);
        assert_true(files_in(cache).n > 2 * PROMPTS);
        gdn_sequence_close(s);
        close_both();
    }
}

/* Where the sequence begins the list, the folder may still go further. */
static void further_than_the_sequence(void **unused)
{
    char cache[400];
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("further"));
    list l = prompt_of(150, 7, 200);
    open_both(1, GDN_F32, cache);
    gdn_sequence *s = sequence_of(warm);
    put(s, &l, "what is stored");
    gdn_sequence_close(s);
    close_both();
    open_both(1, GDN_F32, cache);
    s = sequence_of(warm);
    list some = l;
    some.n = 20; /* shorter than all that is stored */
    assert_int_equal(put(s, &some, "its beginning"), 20);
    assert_int_equal(put(s, &l, "all of it"), 0);
    some.n = 180; /* what it has now is a part of the list: from memory */
    assert_in_range(put(s, &some, "a part"), 1, 179);
    add_text(&l, 9, 40);
    assert_int_equal(put(s, &l, "more than is stored"), 40);
    add_text(&l, 10, 5);
    assert_int_equal(put(s, &l, "the sequence goes on"), 5);

    /* A record that is damaged by then costs nothing of what the sequence has. */
    list other = prompt_of(150, 8, 200);
    some = other;
    some.n = 170;
    gdn_sequence_close(s);
    close_both();
    open_both(1, GDN_F32, cache);
    s = sequence_of(warm);
    put(s, &other, "stored as well");
    gdn_sequence_close(s);
    close_both();
    open_both(1, GDN_F32, cache);
    s = sequence_of(warm);
    put(s, &some, "its beginning");
    const files f = files_in(cache);
    for (int i = 0; i < f.n; i++) write_file(f.name[i], (const unsigned char *)"", 0);
    assert_in_range(put(s, &other, "all of it"), 1, other.n - some.n);
    gdn_sequence_close(s);
    close_both();
}

/* A disk that takes only so many bytes of a file. */
static void full_disk(void **unused)
{
    char          cache[400];
    list          l;
    struct rlimit old, small = {100000, 0};
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("full"));
    open_both(1, GDN_F32, cache);
    gdn_sequence *s = sequence_of(warm);
    set(s, 0, 100);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    converse(&l);
    const gdn_status status = gdn_sequence_save(s, in_folder("full-save"), &err);
    gdn_sequence_close(s);
    close_both();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, GDN_IO);
    assert_int_equal(access(in_folder("full-save"), F_OK), -1);
    assert_int_equal(files_in(cache).n, 0);
    assert_int_equal(computed_after_restart(1, cache, &l), l.n);
}

static void folders_that_cannot_be_used(void **unused)
{
    gdn_engine *engine = NULL;
    (void)unused;
    write_file(in_folder("a-file"), (const unsigned char *)"x", 1);
    const char *const bad[] = {in_folder("a-file"), "/proc/nowhere/cache"};
    char              path[400];
    snprintf(path, sizeof path, "%s", bad[0]);
    for (int i = 0; i < 2; i++) {
        const gdn_engine_options options = {.model = DEMO_FOLDER, .max_tokens = 100, .cache_dir = i ? bad[1] : path};
        assert_refused(GDN_IO, gdn_engine_open(&engine, &options, &ok_err));
        assert_null(engine);
    }
    /* One in which nothing can be written holds nothing, which is no error; neither when snapshots leave a small index. */
    engine = engine_of(&(gdn_engine_options){.cache_dir = "/proc", .reuse_bytes = 2000000});
    gdn_sequence *s = sequence_of(engine);
    for (int i = 0; i < 8; i++) {
        set(s, i % TEXTS, 100 + i);
        expect(s, 0, i % TEXTS, 100 + i, "a folder that takes nothing");
    }
    gdn_sequence_close(s);
    gdn_engine_close(engine);
}

/* A process that is killed while it writes leaves a folder that can be used, and what it had begun to write goes. */
static void killed(void **unused)
{
    char cache[400];
    rng  r = {4};
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("killed"));
    assert_int_equal(mkdir(cache, 0700), 0); /* a busy machine may kill the child before it does */
    long n_leftovers = 0, n_reused = 0;
    for (int i = 0; i < 8; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (!child) { /* computes, and writes as often as it can */
            gdn_engine              *engine = NULL;
            const gdn_engine_options options = {.model = DEMO_FOLDER,
                                                .max_tokens = LENGTH,
                                                .n_threads = 1,
                                                .drafter = GDN_DRAFTER_MTP,
                                                .cache_dir = cache,
                                                .cache_bytes = 200 << 20}; /* so that it removes files, too */
            if (gdn_engine_open(&engine, &options, NULL)) _exit(1);
            for (unsigned k = 0;; k++) {
                gdn_sequence *s = NULL;
                if (gdn_sequence_open(&s, engine, NULL)) _exit(1);
                gdn_sequence_set(s, text[k % TEXTS], 5 + (int)((k + 31 * (unsigned)i) * 37 % 200), NULL, NULL, NULL,
                                 NULL);
                gdn_sequence_close(s);
            }
        }
        usleep(120000 + (useconds_t)rng_below(&r, 150000));
        assert_int_equal(kill(child, SIGKILL), 0);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        files f = files_in(cache);
        for (int k = 0; k < f.n; k++) n_leftovers += strstr(f.name[k], ".tmp-") != NULL;
        gdn_engine   *engine = engine_of(&(gdn_engine_options){.cache_dir = cache, .n_sequences = TEXTS});
        gdn_sequence *s[TEXTS];
        for (int t = 0; t < TEXTS; t++) {
            int computed = -1;
            s[t] = sequence_of(engine);
            ACCEPTED(gdn_sequence_set(s[t], text[t], 250, NULL, NULL, &computed, &err));
            expect(s[t], 0, t, 250, "after a kill");
            n_reused += computed < 250;
        }
        for (int t = 0; t < TEXTS; t++) gdn_sequence_close(s[t]);
        gdn_engine_close(engine);
        f = files_in(cache);
        for (int k = 0; k < f.n; k++) assert_null(strstr(f.name[k], ".tmp-"));
    }
    print_message("%ld files were half written, %ld prompts reused what was whole\n", n_leftovers, n_reused);
    assert_true(n_reused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(restarts),
                                       cmocka_unit_test(damaged_folders),
                                       cmocka_unit_test(budget_of_the_folder),
                                       cmocka_unit_test(spilled),
                                       cmocka_unit_test(further_than_the_sequence),
                                       cmocka_unit_test(full_disk),
                                       cmocka_unit_test(folders_that_cannot_be_used),
                                       cmocka_unit_test(killed)};
    return cmocka_run_group_tests_name("the folder of what is kept", tests, open_folder, close_folder);
}
