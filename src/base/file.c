#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Where a path leads: its folder, opened, and the names in it.  Everything happens relative to the folder, which is synced where
 * the file is, since a rename is safe on disk only with it. */
typedef struct target {
    int  folder;
    char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
} target;

static gdn_status target_open(target *t, const char *path, gdn_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char        folder[PATH_MAX] = ".";
    if (!*name) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "the path '%.100s' names no file; give it a file name", path);
    const size_t n_folder = slash ? (size_t)(slash - path) + (slash == path) : 0; /* the root keeps its slash */
    const int    n = snprintf(t->temporary, sizeof t->temporary, "%s.tmp-%ld", name, (long)getpid());
    if (n_folder >= sizeof folder || n < 0 || (size_t)n >= sizeof t->temporary)
        return gdn_fail(err, GDN_IO, 0, "the path %.100s... is too long for PATH.tmp-PID; use a shorter one", path);
    memcpy(t->name, name, strlen(name) + 1);
    if (n_folder) {
        memcpy(folder, path, n_folder);
        folder[n_folder] = 0;
    }
    t->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (t->folder < 0)
        return gdn_fail(err, GDN_IO, 0, "the folder of %.120s cannot be opened: %m; create it first", path);
    return GDN_OK;
}

/* The temporary, opened and locked.  Another thread that replaces the same path holds the lock until its rename, which takes
 * the file away from this name: then it is opened again.  A leftover of a dead process is used again.  Where the file system
 * has no locks we go on without. */
static int temporary_open(const target *t)
{
    for (;;) {
        const int fd = openat(t->folder, t->temporary, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (fd < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        while (flock(fd, LOCK_EX) && errno == EINTR) continue;
        struct stat opened, named;
        if (!fstat(fd, &opened) && !fstatat(t->folder, t->temporary, &named, AT_SYMLINK_NOFOLLOW) &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
            return fd;
        close(fd);
    }
}

static int write_all(int fd, const void *data, size_t n)
{
    const unsigned char *next = data;
    while (n) {
        const ssize_t wrote = write(fd, next, n);
        if (wrote < 0) {
            if (errno == EINTR) continue;
            return -1;
        }
        next += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

/* Write a part, and have the disk begin with each MiB of it, so that what has to be waited for at the end is little. */
static int write_early(int fd, const gdn_bytes *part, off_t at)
{
    enum { STRETCH = 1 << 20 };
    for (size_t done = 0, n; done < part->n; done += n) {
        n = part->n - done < STRETCH ? part->n - done : STRETCH;
        if (write_all(fd, (const unsigned char *)part->data + done, n)) return -1;
        sync_file_range(fd, at + (off_t)done, (off_t)n, SYNC_FILE_RANGE_WRITE); /* advice: it may fail */
    }
    return 0;
}

static int temporary_write(int fd, const gdn_bytes *parts, int n_parts, gdn_durability durability)
{
    off_t n = 0;
    if (ftruncate(fd, 0)) return -1;
    for (int i = 0; i < n_parts; i++) n += (off_t)parts[i].n;
    if (durability == GDN_DURABLE) fallocate(fd, 0, 0, n); /* not every file system can */
    n = 0;
    for (int i = 0; i < n_parts; n += (off_t)parts[i++].n)
        if (durability == GDN_DURABLE ? write_early(fd, &parts[i], n) : write_all(fd, parts[i].data, parts[i].n))
            return -1;
    return durability == GDN_DURABLE ? fdatasync(fd) : 0;
}

static int folder_sync(const target *t, gdn_durability durability)
{
    if (durability == GDN_LOSABLE || !fsync(t->folder)) return 0;
    return errno == EINVAL ? 0 : -1; /* a file system that does not sync folders */
}

gdn_status gdn_file_replace(const char *path, const gdn_bytes *parts, int n_parts, gdn_durability durability,
                            gdn_error *err)
{
    target     t;
    gdn_status status = target_open(&t, path, err);
    if (status) return status;
    const int fd = temporary_open(&t);
    if (fd < 0) {
        status =
            gdn_fail(err, GDN_IO, 0, "%.120s.tmp-%ld cannot be created: %m; check the folder", path, (long)getpid());
        goto close_folder;
    }
    if (temporary_write(fd, parts, n_parts, durability) || renameat(t.folder, t.temporary, t.folder, t.name)) {
        status = gdn_fail(err, GDN_IO, 0, "%.120s cannot be written: %m; it is as it was", path);
        unlinkat(t.folder, t.temporary, 0);
    } else if (folder_sync(&t, durability)) {
        status =
            gdn_fail(err, GDN_IO, 0, "%.120s was written, but its folder cannot be synced: %m; save it again", path);
    }
    close(fd);
close_folder:
    close(t.folder);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

gdn_status gdn_file_open(gdn_file *file, const char *path, gdn_error *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer; regular files do not heed it. */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return gdn_fail(err, GDN_IO, 0, "%.120s cannot be opened: %m; check the path", path);
    struct stat st;
    gdn_status  status = GDN_OK;
    if (fstat(fd, &st)) status = gdn_fail(err, GDN_IO, 0, "%.120s cannot be examined: %m; check the file", path);
    else if (!S_ISREG(st.st_mode)) status = gdn_fail(err, GDN_BAD_FILE, 0, "%.120s is not a file; name a file", path);
    if (status) {
        close(fd);
        return status;
    }
    *file = (gdn_file){.fd = fd, .n_bytes = (uint64_t)st.st_size, .path = path};
    return GDN_OK;
}

void gdn_file_close(gdn_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

gdn_status gdn_file_read(gdn_file *file, void *dst, size_t n, gdn_error *err)
{
    unsigned char *next = dst;
    for (size_t left = n; left;) {
        const ssize_t got = read(file->fd, next, left);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return gdn_fail(err, GDN_IO, 0, "%.120s cannot be read: %m; check the disk", file->path);
        if (!got)
            return gdn_fail(err, GDN_BAD_FILE, (long long)(n - left), "%.120s is truncated; make it again", file->path);
        next += got;
        left -= (size_t)got;
    }
    return GDN_OK;
}
