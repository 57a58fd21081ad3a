/* format/safetensors.h - the tensors of a checkpoint: one safetensors file, or shards and their index. */
#ifndef GDN_FORMAT_SAFETENSORS_H
#define GDN_FORMAT_SAFETENSORS_H
#include "format/tensor.h"

/* An open checkpoint.  Tensors point into its files, which stay mapped, read-only, until it is closed; each byte is read when
 * it is first used.  A file that another program shortens meanwhile ends this one (SIGBUS), as with any mapped file. */
typedef struct gdn_tensors {
    gdn_tensor             *all; /* sorted by name, no name twice */
    size_t                  n;
    const char             *source; /* file that lists them: the index, or the only file; without its folder */
    struct gdn_tensor_file *files;  /* owned, with source's memory */
    size_t                  n_files, n_files_room, n_room;
} gdn_tensors;

/* Open a model folder (its model.safetensors, or else its model.safetensors.index.json and the shards that it names, which
 * must stand in the same folder) or one .safetensors file.  Every header is checked whole: names, types, shapes, and that the
 * data of the tensors fill each file without gap or overlap; and that every tensor of the index is in its shard.
 * BAD_FILE: damaged, truncated or incomplete; IO: cannot be opened or read; NO_MEMORY.  Free with gdn_tensors_close. */
gdn_status gdn_tensors_open(gdn_tensors *tensors, const char *path, gdn_error *err);

/* The same from a file's bytes, which are borrowed until the close (gdn_tensor_release must not be used on them). */
gdn_status gdn_tensors_parse(gdn_tensors *tensors, const char *file, const void *bytes, size_t n_bytes, gdn_error *err);

void gdn_tensors_close(gdn_tensors *tensors); /* idempotent; a zeroed struct is allowed */

/* NULL: there is none of this name. */
const gdn_tensor *gdn_tensors_find(const gdn_tensors *tensors, const char *name);

#endif
