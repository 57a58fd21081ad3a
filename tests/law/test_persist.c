/* What outlives a process in a file that is named: restored sequences have the bits of computed ones, files that are damaged or
 * foreign are refused whole, and what they are bound to is read once. */
#include "law/persist.h"
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

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
    gdn_engine   *bf16 = engine_of(&(gdn_engine_options){.kv_type = GDN_BF16, .drafter = GDN_DRAFTER_MTP});
    gdn_engine   *no_mtp = engine_of(&(gdn_engine_options){.drafter = GDN_DRAFTER_LOOKUP});
    gdn_engine   *small = engine_of(&(gdn_engine_options){.max_tokens = 50, .drafter = GDN_DRAFTER_MTP});
    gdn_engine   *full =
        engine_of(&(gdn_engine_options){.n_sequences = 2, .kv_tokens = 2 * 64, .drafter = GDN_DRAFTER_MTP});
    gdn_sequence *of_no_mtp = sequence_of(no_mtp), *of_bf16 = sequence_of(bf16), *of_small = sequence_of(small),
                 *of_full = sequence_of(full);
    set(s, 0, 100);
    set(of_full, 3, 10);
    ACCEPTED(gdn_sequence_save(s, in_folder("good"), &err));
    assert_refused(GDN_MISMATCH, gdn_sequence_load(of_bf16, in_folder("good"), &ok_err));
    assert_refused(GDN_MISMATCH, gdn_sequence_load(of_no_mtp, in_folder("good"), &ok_err));
    set(of_no_mtp, 0, 100);
    ACCEPTED(gdn_sequence_save(of_no_mtp, in_folder("no-mtp"), &err));
    assert_refused(GDN_MISMATCH, gdn_sequence_load(s, in_folder("no-mtp"), &ok_err));
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
    gdn_sequence_close(of_no_mtp);
    gdn_sequence_close(of_small);
    gdn_sequence_close(of_full);
    gdn_engine_close(bf16);
    gdn_engine_close(no_mtp);
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
    const gdn_engine_options options = {.model = model, .max_tokens = LENGTH, .drafter = GDN_DRAFTER_MTP};
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(saved_and_loaded),   cmocka_unit_test(synced),
                                       cmocka_unit_test(stopped_and_loaded), cmocka_unit_test(refusals),
                                       cmocka_unit_test(bound_to_the_files), cmocka_unit_test(read_once)};
    return cmocka_run_group_tests_name("persist", tests, open_folder, close_folder);
}
