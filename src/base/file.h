/* base/file.h - whole files: replaced atomically, read with an exact length. */
#ifndef GDN_BASE_FILE_H
#define GDN_BASE_FILE_H
#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

typedef struct gdn_bytes {
    const void *data;
    size_t      n;
} gdn_bytes;

/* Whether a file must outlive a failure of power or of the system.  LOSABLE costs no waiting for the disk, and then may leave any
 * bytes: for what is checked when it is read and can be made again. */
typedef enum gdn_durability { GDN_DURABLE, GDN_LOSABLE } gdn_durability;

/* Make `path` a file of these parts, one after the other.  They are written to PATH.tmp-PID, synced if it is to be durable, and
 * renamed, so that `path` is the old file or the whole new one whatever happens to the process, and a durable one whatever happens
 * to the machine; on failure the temporary is removed.  Threads that replace the same path take turns.
 * IO; BAD_ARGUMENT: the path names no file. */
gdn_status gdn_file_replace(const char *path, const gdn_bytes *parts, int n_parts, gdn_durability durability,
                            gdn_error *err);

typedef struct gdn_file {
    int         fd;
    uint64_t    n_bytes;
    const char *path; /* the caller's, for messages */
} gdn_file;

/* Open a regular file for reading.  IO: it cannot be opened; BAD_FILE: it is a folder or a device. */
gdn_status gdn_file_open(gdn_file *file, const char *path, gdn_error *err);
void       gdn_file_close(gdn_file *file);

/* The next n bytes.  IO: the system reports an error; BAD_FILE: the file ends before. */
gdn_status gdn_file_read(gdn_file *file, void *dst, size_t n, gdn_error *err);

#endif
