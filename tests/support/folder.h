/* folder.h - a folder under /tmp that a test fills. */
#ifndef TESTS_SUPPORT_FOLDER_H
#define TESTS_SUPPORT_FOLDER_H
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64];

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

static inline int make_folder(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "/tmp/gdn-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* With all that is in it. */
static inline int remove_folder(void **unused)
{
    (void)unused;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; valid until the next call. */
static inline const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#endif
