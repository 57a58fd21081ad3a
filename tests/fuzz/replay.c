/* Run one fuzz target over files and over the files of folders, without a fuzzer: every saved input is thereby a test
 * under any compiler.  A target that goes wrong ends the program, which the test runner counts as a failure. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void die(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

/* The input has its exact size on the heap, so that a sanitizer sees a read past its end. */
static void replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) die(path);
    if (fseek(f, 0, SEEK_END)) die(path);
    long size = ftell(f);
    if (size < 0) die(path);
    rewind(f);
    uint8_t *data = malloc((size_t)size);
    if (size > 0 && (!data || fread(data, 1, (size_t)size, f) != (size_t)size)) die(path);
    fclose(f);
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
}

static int not_hidden(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static int replay(const char *path)
{
    struct dirent **entries;
    int             n = scandir(path, &entries, not_hidden, alphasort);
    if (n < 0 && errno != ENOTDIR) die(path);
    if (n < 0) {
        replay_file(path);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        char file[4096];
        if (snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name) >= (int)sizeof file) {
            errno = ENAMETOOLONG;
            die(path);
        }
        replay_file(file);
        free(entries[i]);
    }
    free(entries);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) n += replay(argv[i]);
    printf("replay: %d passed, 0 failed, 0 skipped\n", n);
    return n == 0;
}
