/* What outlives a process: restored sequences have the bits of computed ones, and files that are damaged, foreign or not there
 * are refused, or missed, whole. */
#include "law/reuse.h"
#include "support/folder.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what is asked of the disk: these take the place of the C library's, in this program ------------------------------------------ */

static char asked[64]; /* D: a file's bytes are synced, R: renamed, F: a folder is synced; the last ones of them */

static void note(char what)
{
    size_t n = strlen(asked);
    if (n + 1 == sizeof asked) memmove(asked, asked + 1, n--);
    asked[n] = what;
    asked[n + 1] = 0;
}

int fdatasync(int fd) { return note('D'), (int)syscall(SYS_fdatasync, fd); }
int fsync(int fd) { return note('F'), (int)syscall(SYS_fsync, fd); }
int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return note('R'), (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

static size_t read_file(const char *path, unsigned char **bytes)
{
    struct stat st;
    FILE       *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(*bytes);
    assert_int_equal(fread(*bytes, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    return (size_t)st.st_size;
}

static void write_file(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* ---- one sequence ------------------------------------------------------------------------------------------------------------ */

static void saved_and_loaded(void **unused)
{
    (void)unused;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        open_both(n_threads, n_threads == 1 ? GDN_F32 : GDN_BF16, NULL);
        gdn_sequence *s = sequence_of(warm), *other = sequence_of(warm);
        list          l = prompt_of(100, 2, 30);
        put(s, &l, "before it is saved");
        for (unsigned round = 0; round < 5; round++) { /* at the end of a prompt, and of answers */
            ACCEPTED(gdn_sequence_save(s, in_folder("saved"), &err));
            ACCEPTED(gdn_sequence_set(other, text[3], 10, NULL, NULL, NULL, &err));
            ACCEPTED(gdn_sequence_load(other, in_folder("saved"), &err));
            expect_same(other, s, "loaded");
            ACCEPTED(gdn_sequence_load(plain, in_folder("saved"), &err)); /* in another engine */
            expect_same(plain, s, "loaded by another engine");
            list as = l;
            answer(plain, &as, 9, 1 + 40 * (int)round); /* both go on in the same way */
            for (int i = l.n; i < as.n; i++) ACCEPTED(gdn_sequence_push(s, as.id[i], &err));
            expect_same(plain, s, "further");
            l = as;
        }
        assert_int_equal(put(other, &l, "the list"), l.n - gdn_sequence_length(other) > 0 ? 161 : 0);
        gdn_sequence_close(s);
        gdn_sequence_close(other);
        close_both();
    }
}

/* A file that the user names is on the disk before it takes the place of an older one; what is in cache_dir can be made again, and
 * nobody waits for the disk there. */
static void synced(void **unused)
{
    char cache[400];
    list l;
    (void)unused;
    snprintf(cache, sizeof cache, "%s", in_folder("not-synced"));
    open_both(1, GDN_F32, cache);
    asked[0] = 0;
    gdn_sequence *s = sequence_of(warm);
    l = prompt_of(100, 5, 30);
    put(s, &l, "a prompt");
    ACCEPTED(gdn_sequence_save(s, in_folder("synced"), &err));
    assert_string_equal(asked, "DRF");
    asked[0] = 0;
    gdn_sequence_close(s);
    assert_true(strlen(asked) >= 2); /* records */
    assert_int_equal(strspn(asked, "R"), strlen(asked));
    close_both();
}

/* A sequence whose prompt was stopped has no logits in its file either. */
static int stop(void *arg, int done, int total)
{
    (void)arg, (void)done, (void)total;
    return 1;
}

static void stopped_and_loaded(void **unused)
{
    (void)unused;
    open_both(1, GDN_F32, NULL);
    gdn_sequence *s = sequence_of(warm);
    assert_refused(GDN_BAD_STATE, gdn_sequence_set(s, text[0], LENGTH, stop, NULL, NULL, &ok_err));
    const int length = gdn_sequence_length(s);
    assert_in_range(length, 1, LENGTH - 1);
    ACCEPTED(gdn_sequence_save(s, in_folder("stopped"), &err));
    ACCEPTED(gdn_sequence_load(plain, in_folder("stopped"), &err));
    assert_int_equal(gdn_sequence_length(plain), length);
    assert_null(gdn_sequence_logits(plain));
    ACCEPTED(gdn_sequence_push(plain, text[0][length], &err));
    expect(plain, 0, 0, length + 1, "stopped, saved, loaded, pushed");
    gdn_sequence_close(s);
    close_both();
}

static void refusals(void **unused)
{
    (void)unused;
    open_both(1, GDN_F32, NULL);
    gdn_sequence *s = sequence_of(warm), *empty = sequence_of(warm);
    gdn_engine   *bf16 = engine_of(&(gdn_engine_options){.kv_type = GDN_BF16});
    gdn_engine   *small = engine_of(&(gdn_engine_options){.max_tokens = 50});
    gdn_engine   *full = engine_of(&(gdn_engine_options){.n_sequences = 2, .kv_tokens = 2 * 64});
    gdn_sequence *of_bf16 = sequence_of(bf16), *of_small = sequence_of(small), *of_full = sequence_of(full);
    set(s, 0, 100);
    set(of_full, 3, 10);
    ACCEPTED(gdn_sequence_save(s, in_folder("good"), &err));
    assert_refused(GDN_MISMATCH, gdn_sequence_load(of_bf16, in_folder("good"), &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_sequence_load(of_small, in_folder("good"), &ok_err));
    assert_refused(GDN_NO_SLOT, gdn_sequence_load(of_full, in_folder("good"), &ok_err));
    expect(of_full, 0, 3, 10, "refused");
    set(of_full, 0, 120); /* and what was tried has left no page behind */
    assert_refused(GDN_BAD_STATE, gdn_sequence_save(empty, in_folder("good"), &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_sequence_save(NULL, in_folder("good"), &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_sequence_save(s, NULL, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_sequence_load(NULL, in_folder("good"), &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_sequence_load(s, NULL, &ok_err));
    assert_refused(GDN_IO, gdn_sequence_load(s, in_folder("nowhere"), &ok_err));
    assert_refused(GDN_IO, gdn_sequence_save(s, in_folder("nowhere/good"), &ok_err));
    assert_refused(GDN_BAD_FILE, gdn_sequence_load(s, folder, &ok_err));
    assert_refused(GDN_BAD_FILE, gdn_sequence_load(s, "/dev/null", &ok_err));
    assert_refused(GDN_BAD_FILE, gdn_sequence_load(s, DEMO_FOLDER "/model.safetensors", &ok_err));
    expect(s, 0, 0, 100, "refused");

    unsigned char *bytes;
    const size_t   n = read_file(in_folder("good"), &bytes);
    rng            r = {3};
    for (int i = 0; i < 300; i++) { /* one bit, anywhere and in each byte of the header */
        const size_t at = i < 96 ? (size_t)i : (size_t)rng_below(&r, (int)n);
        bytes[at] ^= (unsigned char)(1 << rng_below(&r, 8));
        write_file(in_folder("bad"), bytes, n);
        gdn_error        e = {0};
        const gdn_status status = gdn_sequence_load(s, in_folder("bad"), &e);
        if (status != GDN_BAD_FILE) fail_msg("byte %zu damaged: %s", at, gdn_status_name(status));
        expect(s, 0, 0, 100, "damaged");
        write_file(in_folder("bad"), bytes, 0);
        unsigned char *good;
        assert_int_equal(read_file(in_folder("good"), &good), n);
        bytes[at] = good[at];
        free(good);
    }
    for (int i = 0; i < 60; i++) {
        const size_t length = i < 20 ? (size_t)i * 7 : (size_t)rng_below(&r, (int)n);
        write_file(in_folder("bad"), bytes, length);
        assert_refused(GDN_BAD_FILE, gdn_sequence_load(s, in_folder("bad"), &ok_err));
    }
    write_file(in_folder("bad"), bytes, n + 1);
    assert_refused(GDN_BAD_FILE, gdn_sequence_load(s, in_folder("bad"), &ok_err));
    expect(s, 0, 0, 100, "truncated");
    free(bytes);
    gdn_sequence_close(s);
    gdn_sequence_close(empty);
    gdn_sequence_close(of_bf16);
    gdn_sequence_close(of_small);
    gdn_sequence_close(of_full);
    gdn_engine_close(bf16);
    gdn_engine_close(small);
    gdn_engine_close(full);
    close_both();
}

/* ---- the model that a file is of ------------------------------------------------------------------------------------------------- */

static const char *const small_files[] = {"config.json", "generation_config.json", "tokenizer.json",
                                          "tokenizer_config.json", "chat_template.jinja"};
enum { N_SMALL = sizeof small_files / sizeof *small_files };

/* The demo model in a folder of its own; `grown` (or NULL) is a file that has a space more at its end, which says nothing else. */
static void make_model(const char *name, const char *grown)
{
    char path[700], source[700], here[400];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir(in_folder(name), 0777), 0);
    for (int i = 0; i < N_SMALL; i++) {
        unsigned char *bytes;
        snprintf(source, sizeof source, DEMO_FOLDER "/%s", small_files[i]);
        const size_t n = read_file(source, &bytes);
        const bool   grows = grown && !strcmp(grown, small_files[i]);
        bytes[n] = ' '; /* read_file has room */
        snprintf(path, sizeof path, "%s/%s", in_folder(name), small_files[i]);
        write_file(path, bytes, n + grows);
        free(bytes);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder(name));
    snprintf(source, sizeof source, "%s/" DEMO_FOLDER "/model.safetensors", here);
    assert_int_equal(symlink(source, path), 0);
}

/* Load the file in an engine of the model in this folder. */
static gdn_status load_in(const char *name, const char *file)
{
    char model[400], path[400];
    snprintf(model, sizeof model, "%s", in_folder(name));
    snprintf(path, sizeof path, "%s", in_folder(file));
    gdn_engine              *engine = NULL;
    gdn_error                why;
    const gdn_engine_options options = {.model = model, .max_tokens = LENGTH};
    ACCEPTED(gdn_engine_open(&engine, &options, &err));
    gdn_sequence    *s = sequence_of(engine);
    const gdn_status status = gdn_sequence_load(s, path, &why);
    gdn_sequence_close(s);
    gdn_engine_close(engine);
    return status;
}

/* Each byte of config.json and of tokenizer.json belongs to the model; those of the other small files do not. */
static void bound_to_the_files(void **unused)
{
    (void)unused;
    open_both(1, GDN_F32, NULL);
    gdn_sequence *s = sequence_of(warm);
    set(s, 0, 50);
    ACCEPTED(gdn_sequence_save(s, in_folder("of-demo"), &err));
    gdn_sequence_close(s);
    close_both();
    make_model("same", NULL);
    assert_int_equal(load_in("same", "of-demo"), GDN_OK);
    for (int i = 0; i < N_SMALL; i++) {
        make_model(small_files[i], small_files[i]);
        assert_int_equal(load_in(small_files[i], "of-demo"), i == 0 || i == 2 ? GDN_MISMATCH : GDN_OK);
    }
}

/* Opening an engine opens each file of the model once, also where records are bound to them. */
static void read_once(void **unused)
{
    const char    *names[N_SMALL + 1];
    char           path[700], cache[400];
    int            watch[N_SMALL + 1], n_opened[N_SMALL + 1] = {0};
    unsigned char *weights;
    (void)unused;
    make_model("once", NULL);
    memcpy(names, small_files, sizeof small_files);
    names[N_SMALL] = "model.safetensors";
    const size_t n = read_file(in_folder("once/model.safetensors"), &weights);
    assert_int_equal(unlink(in_folder("once/model.safetensors")), 0);
    write_file(in_folder("once/model.safetensors"), weights, n); /* which nobody else opens */
    free(weights);
    snprintf(cache, sizeof cache, "%s", in_folder("once-cache"));
    const int fd = inotify_init1(IN_NONBLOCK);
    assert_true(fd >= 0);
    for (int i = 0; i <= N_SMALL; i++) {
        snprintf(path, sizeof path, "%s/%s", in_folder("once"), names[i]);
        watch[i] = inotify_add_watch(fd, path, IN_OPEN | IN_CLOSE); /* opening alone, twice in a row, is one event */
        assert_true(watch[i] >= 0);
    }
    snprintf(path, sizeof path, "%s", in_folder("once"));
    gdn_engine              *engine = NULL;
    const gdn_engine_options options = {.model = path, .max_tokens = LENGTH, .cache_dir = cache};
    ACCEPTED(gdn_engine_open(&engine, &options, &err));
    gdn_engine_close(engine);
    struct inotify_event event; /* without a name: files are watched, no folder */
    while (read(fd, &event, sizeof event) == (ssize_t)sizeof event)
        for (int i = 0; i <= N_SMALL; i++) n_opened[i] += event.wd == watch[i] && event.mask & IN_OPEN;
    close(fd);
    for (int i = 0; i <= N_SMALL; i++)
        if (n_opened[i] != 1) fail_msg("%s was opened %d times", names[i], n_opened[i]);
}

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
    /* One in which nothing can be written holds nothing, which is no error. */
    engine = engine_of(&(gdn_engine_options){.cache_dir = "/proc"});
    gdn_sequence *s = sequence_of(engine);
    set(s, 0, 100);
    expect(s, 0, 0, 100, "a folder that takes nothing");
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
            const gdn_engine_options options = {
                .model = DEMO_FOLDER, .max_tokens = LENGTH, .n_threads = 1, .cache_dir = cache};
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

static int setup(void **unused) { return make_folder(unused) || open_references(unused); }
static int teardown(void **unused) { return close_references(unused) || remove_folder(unused); }

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(saved_and_loaded),
                                       cmocka_unit_test(synced),
                                       cmocka_unit_test(stopped_and_loaded),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(bound_to_the_files),
                                       cmocka_unit_test(read_once),
                                       cmocka_unit_test(restarts),
                                       cmocka_unit_test(damaged_folders),
                                       cmocka_unit_test(budget_of_the_folder),
                                       cmocka_unit_test(spilled),
                                       cmocka_unit_test(further_than_the_sequence),
                                       cmocka_unit_test(full_disk),
                                       cmocka_unit_test(folders_that_cannot_be_used),
                                       cmocka_unit_test(killed)};
    return cmocka_run_group_tests_name("persist", tests, setup, teardown);
}
