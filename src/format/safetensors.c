/* A safetensors file: the length of the header (u64, little-endian), the header {name: {dtype, shape, data_offsets}, ...} in
 * JSON, the data.  Offsets count from the end of the header. */
#include "format/safetensors.h"
#include "base/alloc.h"
#include "format/image.h"
#include "format/scan.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "safetensors files are little-endian");

typedef struct image {
    gdn_tensors         *tensors;
    const char          *label;
    gdn_scan             scan; /* of the header */
    const unsigned char *data;
    size_t               n_data;
    char                *names; /* next free byte, and how many there are */
    size_t               n_names;
    gdn_error           *err;
} image;

static gdn_status bad_header(const image *im)
{
    return gdn_fail(im->err, GDN_BAD_FILE, (long long)im->scan.at + 8,
                    "%.80s: the header is damaged at byte %zu, where %s should stand; get the file again", im->label,
                    im->scan.at + 8, im->scan.expected);
}

/* ---- one tensor ---------------------------------------------------------------------------------------------------- */

static gdn_status read_type(image *im, gdn_tensor *t)
{
    char   name[24];
    size_t length;
    if (!gdn_scan_string(&im->scan, name, sizeof name, &length)) return bad_header(im);
    for (int type = 0; type < GDN_TENSOR_TYPES; type++)
        if (!strcmp(name, gdn_tensor_type_name((gdn_tensor_type)type))) {
            t->type = (gdn_tensor_type)type;
            return GDN_OK;
        }
    return gdn_fail(im->err, GDN_BAD_FILE, (long long)im->scan.at + 8,
                    "%.60s: tensor %.100s has type '%s', which the safetensors format does not have", im->label,
                    t->name, name);
}

static gdn_status read_shape(image *im, gdn_tensor *t)
{
    gdn_scan *s = &im->scan;
    for (bool more = gdn_scan_begin(s, '['); more; more = gdn_scan_more(s, ']')) {
        if (t->n_dims == GDN_TENSOR_DIMS)
            return gdn_fail(im->err, GDN_BAD_FILE, (long long)s->at + 8,
                            "%.60s: tensor %.100s has more than %d dimensions", im->label, t->name, GDN_TENSOR_DIMS);
        if (gdn_scan_whole(s, &t->shape[t->n_dims])) t->n_dims++;
    }
    return s->expected ? bad_header(im) : GDN_OK;
}

static gdn_status read_offsets(image *im, uint64_t offsets[2])
{
    gdn_scan *s = &im->scan;
    int       n = 0;
    for (bool more = gdn_scan_begin(s, '['); more; more = gdn_scan_more(s, ']')) {
        if (n == 2) s->expected = "the end of two offsets";
        else if (gdn_scan_whole(s, &offsets[n])) n++;
    }
    if (!s->expected && n < 2) s->expected = "two offsets";
    return s->expected ? bad_header(im) : GDN_OK;
}

/* The offsets lie in the data and are as far apart as type and shape say. */
static gdn_status check_extent(image *im, gdn_tensor *t, const uint64_t offsets[2])
{
    const unsigned long long from = offsets[0], to = offsets[1];
    char                     shape[80];
    size_t                   bits = (size_t)gdn_tensor_type_bits(t->type);
    bool                     fits = true;
    for (int i = 0; i < t->n_dims; i++) fits = fits && gdn_size_mul(&bits, bits, t->shape[i]);
    gdn_shape_text(shape, sizeof shape, t->shape, t->n_dims);
    if (!fits || bits % 8)
        return gdn_fail(im->err, GDN_BAD_FILE, 0, "%.60s: tensor %.80s cannot have the shape %s with type %s",
                        im->label, t->name, shape, gdn_tensor_type_name(t->type));
    if (from > to)
        return gdn_fail(im->err, GDN_BAD_FILE, 0, "%.60s: tensor %.80s ends at byte %llu before it begins at %llu",
                        im->label, t->name, to, from);
    if (to > im->n_data)
        return gdn_fail(
            im->err, GDN_BAD_FILE, 0,
            "%.60s is truncated: tensor %.80s ends at byte %llu of the data, which has %zu; get the file again",
            im->label, t->name, to, im->n_data);
    if (to - from != bits / 8)
        return gdn_fail(im->err, GDN_BAD_FILE, 0,
                        "%.50s: tensor %.70s has %llu bytes; its shape %.50s with %s takes %zu", im->label, t->name,
                        to - from, shape, gdn_tensor_type_name(t->type), bits / 8);
    t->data = im->data + from;
    t->n_bytes = (size_t)(to - from);
    return GDN_OK;
}

/* The value of a tensor's entry: each of the three keys once, and no other. */
static gdn_status read_entry(image *im, gdn_tensor *t)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    gdn_scan                *s = &im->scan;
    uint64_t                 offsets[2] = {0, 0};
    unsigned                 seen = 0;
    for (bool more = gdn_scan_begin(s, '{'); more; more = gdn_scan_more(s, '}')) {
        char   key[24];
        size_t length;
        int    k = 0;
        if (!gdn_scan_key(s, key, sizeof key, &length)) break;
        while (k < 3 && strcmp(key, keys[k])) k++;
        if (k == 3 || seen & 1u << k)
            return gdn_fail(
                im->err, GDN_BAD_FILE, (long long)s->at + 8,
                "%.60s: the entry of tensor %.80s has the key '%s' %s; it has dtype, shape and data_offsets, each once",
                im->label, t->name, key, k == 3 ? "of another format" : "twice");
        seen |= 1u << k;
        const gdn_status status = k == 0 ? read_type(im, t) : k == 1 ? read_shape(im, t) : read_offsets(im, offsets);
        if (status) return status;
    }
    if (s->expected) return bad_header(im);
    for (int k = 0; k < 3; k++)
        if (!(seen & 1u << k))
            return gdn_fail(im->err, GDN_BAD_FILE, (long long)s->at + 8, "%.60s: the entry of tensor %.100s has no %s",
                            im->label, t->name, keys[k]);
    return check_extent(im, t, offsets);
}

/* ---- one file ------------------------------------------------------------------------------------------------------ */

/* A fresh element behind the list, not counted yet; NULL without memory. */
static gdn_tensor *next_tensor(image *im)
{
    gdn_tensors *const set = im->tensors;
    if (set->n == set->n_room) {
        const size_t room = set->n_room ? 2 * set->n_room : 256;
        gdn_tensor  *all = realloc(set->all, room * sizeof *all);
        if (!all) return NULL;
        set->all = all;
        set->n_room = room;
    }
    gdn_tensor *const t = &set->all[set->n];
    *t = (gdn_tensor){.name = im->names, .file = im->label};
    return t;
}

static gdn_status read_header(image *im)
{
    gdn_scan *s = &im->scan;
    for (bool more = gdn_scan_begin(s, '{'); more; more = gdn_scan_more(s, '}')) {
        size_t length;
        if (!gdn_scan_key(s, im->names, im->n_names, &length)) break;
        if (!strcmp(im->names, "__metadata__")) {
            if (!gdn_scan_skip(s)) break;
            continue;
        }
        gdn_tensor *const t = next_tensor(im);
        if (!t) return gdn_fail(im->err, GDN_NO_MEMORY, 0, "%.80s: no memory for the list of tensors", im->label);
        const gdn_status status = read_entry(im, t);
        if (status) return status;
        im->names += length + 1;
        im->n_names -= length + 1;
        im->tensors->n++;
    }
    gdn_scan_end(s);
    return s->expected ? bad_header(im) : GDN_OK;
}

static int by_data(const void *a, const void *b)
{
    const gdn_tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

/* Every byte of the data belongs to one tensor.  Sorts the tensors of this file, which begin with number `first`. */
static gdn_status check_cover(const image *im, size_t first)
{
    const size_t      n = im->tensors->n - first;
    gdn_tensor *const all = n ? im->tensors->all + first : NULL;
    size_t            end = 0;
    if (n) qsort(all, n, sizeof *all, by_data);
    for (size_t i = 0; i < n; i++) {
        const size_t from = (size_t)((const unsigned char *)all[i].data - im->data);
        if (from < end)
            return gdn_fail(im->err, GDN_BAD_FILE, (long long)from,
                            "%.60s: the data of tensors %.70s and %.70s overlap at byte %zu", im->label,
                            all[i - 1].name, all[i].name, from);
        if (from > end)
            return gdn_fail(
                im->err, GDN_BAD_FILE, (long long)end,
                "%.60s: the data from byte %zu to %zu, before tensor %.80s, belongs to no tensor; get the file again",
                im->label, end, from, all[i].name);
        end += all[i].n_bytes;
    }
    if (end == im->n_data) return GDN_OK;
    return gdn_fail(im->err, GDN_BAD_FILE, (long long)end,
                    "%.60s: the data from byte %zu to its end at %zu belongs to no tensor; get the file again",
                    im->label, end, im->n_data);
}

static gdn_status read_image(gdn_tensors *tensors, struct gdn_tensor_file *file, const unsigned char *bytes,
                             size_t n_bytes, gdn_error *err)
{
    uint64_t n_header;
    if (n_bytes < sizeof n_header)
        return gdn_fail(err, GDN_BAD_FILE, 0, "%.80s has only %zu bytes; get the file again", file->label, n_bytes);
    memcpy(&n_header, bytes, sizeof n_header);
    if (n_header > n_bytes - sizeof n_header)
        return gdn_fail(
            err, GDN_BAD_FILE, 0,
            "%.80s has %zu bytes and a header of %llu: it is truncated or not a safetensors file; get it again",
            file->label, n_bytes, (unsigned long long)n_header);
    if (n_header > GDN_HEADER_LIMIT)
        return gdn_fail(err, GDN_BAD_FILE, 0, "%.80s has a header of %llu bytes; at most %d are allowed", file->label,
                        (unsigned long long)n_header, GDN_HEADER_LIMIT);
    file->names = malloc((size_t)n_header + 1); /* names are shorter than the text they stand in */
    if (!file->names)
        return gdn_fail(err, GDN_NO_MEMORY, 0, "%.80s: no memory for the names of its tensors", file->label);
    const unsigned char *const data = bytes + sizeof n_header + n_header;
    const size_t               first = tensors->n;
    image                      im = {.tensors = tensors,
                                     .label = file->label,
                                     .scan = {.text = (const char *)bytes + sizeof n_header, .n = (size_t)n_header},
                                     .data = data,
                                     .n_data = n_bytes - sizeof n_header - (size_t)n_header,
                                     .names = file->names,
                                     .n_names = (size_t)n_header + 1,
                                     .err = err};
    const gdn_status           status = read_header(&im);
    return status ? status : check_cover(&im, first);
}

gdn_status gdn_image_add(gdn_tensors *tensors, const char *label, const void *bytes, size_t n_bytes, void *map,
                         gdn_error *err)
{
    if (tensors->n_files == tensors->n_files_room) {
        const size_t            room = tensors->n_files_room ? 2 * tensors->n_files_room : 4;
        struct gdn_tensor_file *files = realloc(tensors->files, room * sizeof *files);
        if (!files) goto no_memory;
        tensors->files = files;
        tensors->n_files_room = room;
    }
    struct gdn_tensor_file *file = &tensors->files[tensors->n_files];
    *file = (struct gdn_tensor_file){.label = strdup(label)};
    if (!file->label) goto no_memory;
    file->map = map;
    file->n_map = map ? n_bytes : 0;
    tensors->n_files++;
    return read_image(tensors, file, bytes, n_bytes, err);
no_memory:
    if (map) munmap(map, n_bytes);
    return gdn_fail(err, GDN_NO_MEMORY, 0, "%.80s: no memory to open it", label);
}

/* ---- all of them --------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const gdn_tensor *)a)->name, ((const gdn_tensor *)b)->name);
}

gdn_status gdn_image_sort(gdn_tensors *tensors, gdn_error *err)
{
    const gdn_tensor *all = tensors->all;
    if (tensors->n) qsort(tensors->all, tensors->n, sizeof *all, by_name);
    for (size_t i = 1; i < tensors->n; i++) {
        if (strcmp(all[i - 1].name, all[i].name)) continue;
        if (all[i - 1].file == all[i].file)
            return gdn_fail(err, GDN_BAD_FILE, 0, "%.80s: the header has tensor %.100s twice", all[i].file,
                            all[i].name);
        return gdn_fail(err, GDN_BAD_FILE, 0, "tensor %.80s is in %.60s and again in %.60s; it must be in one file",
                        all[i].name, all[i - 1].file, all[i].file);
    }
    return GDN_OK;
}

const gdn_tensor *gdn_tensors_find(const gdn_tensors *tensors, const char *name)
{
    const gdn_tensor key = {.name = name};
    return tensors->n ? bsearch(&key, tensors->all, tensors->n, sizeof key, by_name) : NULL;
}

gdn_status gdn_tensors_parse(gdn_tensors *tensors, const char *file, const void *bytes, size_t n_bytes, gdn_error *err)
{
    *tensors = (gdn_tensors){.n = 0};
    gdn_status status = gdn_image_add(tensors, file, bytes, n_bytes, NULL, err);
    if (!status) status = gdn_image_sort(tensors, err);
    if (status) gdn_tensors_close(tensors);
    else tensors->source = tensors->files[0].label;
    return status;
}

void gdn_tensors_close(gdn_tensors *tensors)
{
    for (size_t i = 0; i < tensors->n_files; i++) {
        struct gdn_tensor_file *file = &tensors->files[i];
        if (file->map) munmap(file->map, file->n_map);
        free(file->names);
        free(file->label);
    }
    free(tensors->files);
    free(tensors->all);
    *tensors = (gdn_tensors){.n = 0};
}
