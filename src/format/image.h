/* format/image.h - what safetensors.c (one file) and shards.c (folders, indexes) share. */
#ifndef GDN_FORMAT_IMAGE_H
#define GDN_FORMAT_IMAGE_H
#include "format/safetensors.h"

enum { GDN_HEADER_LIMIT = 100000000 }; /* bytes of a header or an index; the safetensors library has the same limit */

struct gdn_tensor_file {
    char  *label; /* name for messages, and what tensors point to */
    char  *names; /* memory of the tensors' names */
    void  *map;   /* NULL: the bytes are borrowed */
    size_t n_map;
};

/* Read the header of a file of n_bytes and append its tensors, unsorted.  label is without a folder; map is `bytes` if the
 * mapping shall be owned (it is then, whatever is returned). */
gdn_status gdn_image_add(gdn_tensors *tensors, const char *label, const void *bytes, size_t n_bytes, void *map,
                         gdn_error *err);

/* Sort by name, and refuse a name that stands there twice. */
gdn_status gdn_image_sort(gdn_tensors *tensors, gdn_error *err);

/* The index of shards: {"metadata": ..., "weight_map": {tensor: file, ...}}. */
typedef struct gdn_index_entry {
    const char *tensor, *file;
} gdn_index_entry;

typedef struct gdn_index {
    gdn_index_entry *entries; /* sorted by file, then tensor */
    size_t           n, n_room;
    char            *names;
} gdn_index;

/* `label` stands for the index in messages.  Files are names of .safetensors files in the index's own folder.
 * Free with gdn_index_close, also after an error. */
gdn_status gdn_index_parse(gdn_index *index, const char *label, const char *text, size_t n, gdn_error *err);
void       gdn_index_close(gdn_index *index);

#endif
