#include "base/alloc.h"
#include "base/file.h"
#include "format/folder.h"
#include "format/image.h"
#include "format/scan.h"
#include <string.h>
#include <sys/mman.h>

#define INDEX "model.safetensors.index.json"

/* ---- the index ----------------------------------------------------------------------------------------------------- */

/* A name without a folder that ends as all shards do: the index must not reach other files. */
static bool is_shard_name(const char *name)
{
    static const char end[] = ".safetensors";
    const size_t      n = strlen(name), n_end = sizeof end - 1;
    return n > n_end && !strcmp(name + n - n_end, end) && !strpbrk(name, "/\\") && name[0] != '.';
}

static gdn_status add_entry(gdn_index *index, const char *label, const char *tensor, const char *file, gdn_error *err)
{
    if (!is_shard_name(file))
        return gdn_fail(
            err, GDN_BAD_FILE, 0,
            "%.60s: tensor %.70s is said to be in '%.50s', which is not the name of a .safetensors file in this folder",
            label, tensor, file);
    if (index->n == index->n_room) {
        const size_t     room = index->n_room ? 2 * index->n_room : 1024;
        gdn_index_entry *entries = realloc(index->entries, room * sizeof *entries);
        if (!entries) return gdn_fail(err, GDN_NO_MEMORY, 0, "%.80s: no memory for its entries", label);
        index->entries = entries;
        index->n_room = room;
    }
    index->entries[index->n++] = (gdn_index_entry){tensor, file};
    return GDN_OK;
}

static int by_file(const void *a, const void *b)
{
    const gdn_index_entry *x = a, *y = b;
    const int              order = strcmp(x->file, y->file);
    return order ? order : strcmp(x->tensor, y->tensor);
}

static gdn_status read_map(gdn_index *index, gdn_scan *s, const char *label, size_t size, gdn_error *err)
{
    char *names = index->names;
    for (bool more = gdn_scan_begin(s, '{'); more; more = gdn_scan_more(s, '}')) {
        size_t n_tensor, n_file;
        if (!gdn_scan_key(s, names, size, &n_tensor)) break;
        char *file = names + n_tensor + 1;
        if (!gdn_scan_string(s, file, size - n_tensor - 1, &n_file)) break;
        const gdn_status status = add_entry(index, label, names, file, err);
        if (status) return status;
        names = file + n_file + 1;
        size -= n_tensor + n_file + 2;
    }
    return GDN_OK;
}

gdn_status gdn_index_parse(gdn_index *index, const char *label, const char *text, size_t n, gdn_error *err)
{
    gdn_scan s = {.text = text, .n = n};
    *index = (gdn_index){.names = malloc(n + 1)};
    if (!index->names) return gdn_fail(err, GDN_NO_MEMORY, 0, "%.80s: no memory for its names", label);
    for (bool more = gdn_scan_begin(&s, '{'); more; more = gdn_scan_more(&s, '}')) {
        char   key[64];
        size_t length;
        if (!gdn_scan_key(&s, key, sizeof key, &length)) break;
        if (strcmp(key, "weight_map")) {
            gdn_scan_skip(&s);
            continue;
        }
        if (index->n)
            return gdn_fail(err, GDN_BAD_FILE, (long long)s.at, "%.80s has two weight_maps; get it again", label);
        const gdn_status status = read_map(index, &s, label, n + 1, err);
        if (status) return status;
    }
    gdn_scan_end(&s);
    if (s.expected)
        return gdn_fail(err, GDN_BAD_FILE, (long long)s.at,
                        "%.80s is damaged at byte %zu, where %s should stand; get the file again", label, s.at,
                        s.expected);
    if (!index->n)
        return gdn_fail(err, GDN_BAD_FILE, 0, "%.80s has no tensor in its weight_map; get the file again", label);
    qsort(index->entries, index->n, sizeof *index->entries, by_file);
    return GDN_OK;
}

void gdn_index_close(gdn_index *index)
{
    free(index->entries);
    free(index->names);
    *index = (gdn_index){.n = 0};
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static gdn_status add_file(gdn_tensors *tensors, const char *path, gdn_error *err)
{
    gdn_file   file;
    gdn_status status = gdn_file_open(&file, path, err);
    if (status) return status;
    const char *label = gdn_path_name(path);
    if (!file.n_bytes) {
        gdn_file_close(&file);
        return gdn_fail(err, GDN_BAD_FILE, 0, "%.80s is empty; get the file again", label);
    }
    void *map = mmap(NULL, (size_t)file.n_bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
    gdn_file_close(&file);
    if (map == MAP_FAILED) return gdn_fail(err, GDN_IO, 0, "%.120s cannot be mapped: %m; check the file system", path);
    return gdn_image_add(tensors, label, map, (size_t)file.n_bytes, map, err);
}

/* Every tensor of the index is where it says. */
static gdn_status check_places(const gdn_tensors *tensors, const gdn_index *index, gdn_error *err)
{
    for (size_t i = 0; i < index->n; i++) {
        const gdn_index_entry *entry = &index->entries[i];
        const gdn_tensor      *t = gdn_tensors_find(tensors, entry->tensor);
        if (t && !strcmp(t->file, entry->file)) continue;
        if (t)
            return gdn_fail(err, GDN_BAD_FILE, (long long)i, INDEX ": tensor %.80s should be in %.50s but is in %.50s",
                            entry->tensor, entry->file, t->file);
        return gdn_fail(err, GDN_BAD_FILE, (long long)i,
                        INDEX ": tensor %.80s should be in %.60s, which does not have it", entry->tensor, entry->file);
    }
    return GDN_OK;
}

static gdn_status add_shards(gdn_tensors *tensors, const gdn_index *index, const char *folder, gdn_error *err)
{
    for (size_t i = 0; i < index->n; i++) {
        const gdn_index_entry *entry = &index->entries[i];
        gdn_path               path;
        if (i && !strcmp(entry[-1].file, entry->file)) {
            if (strcmp(entry[-1].tensor, entry->tensor)) continue;
            return gdn_fail(err, GDN_BAD_FILE, (long long)i, INDEX ": tensor %.100s stands there twice", entry->tensor);
        }
        gdn_status status = gdn_model_path(&path, folder, entry->file, err);
        if (status) return status;
        if (!gdn_path_exists(path.text))
            return gdn_fail(err, GDN_BAD_FILE, (long long)i,
                            INDEX
                            ": the shard %.60s, which should hold tensor %.80s, is not in the folder; download it",
                            entry->file, entry->tensor);
        status = add_file(tensors, path.text, err);
        if (status) return status;
    }
    return GDN_OK;
}

static gdn_status load_index(gdn_index *index, const char *path, gdn_error *err)
{
    gdn_file   file;
    gdn_status status = gdn_file_open(&file, path, err);
    if (status) return status;
    const size_t n = file.n_bytes <= GDN_HEADER_LIMIT ? (size_t)file.n_bytes : 0;
    char        *text = malloc(n + 1);
    if (file.n_bytes > GDN_HEADER_LIMIT)
        status = gdn_fail(err, GDN_BAD_FILE, 0, INDEX " has %llu bytes; at most %d are allowed",
                          (unsigned long long)file.n_bytes, GDN_HEADER_LIMIT);
    else if (!text) status = gdn_fail(err, GDN_NO_MEMORY, 0, INDEX ": no memory to read its %zu bytes", n);
    else status = gdn_file_read(&file, text, n, err);
    if (!status) status = gdn_index_parse(index, INDEX, text, n, err);
    free(text);
    gdn_file_close(&file);
    return status;
}

static gdn_status open_folder(gdn_tensors *tensors, const char *folder, gdn_error *err)
{
    gdn_path   path;
    gdn_index  index = {.n = 0};
    gdn_status status = gdn_model_path(&path, folder, "model.safetensors", err);
    if (status) return status;
    if (gdn_path_exists(path.text)) return add_file(tensors, path.text, err);
    status = gdn_model_path(&path, folder, INDEX, err);
    if (status) return status;
    if (!gdn_path_exists(path.text))
        return gdn_fail(err, GDN_IO, 0,
                        "%.120s has no model.safetensors and no " INDEX
                        "; name the folder of a Hugging Face checkpoint",
                        folder);
    status = load_index(&index, path.text, err);
    if (!status) status = add_shards(tensors, &index, folder, err);
    if (!status) status = gdn_image_sort(tensors, err);
    if (!status) status = check_places(tensors, &index, err);
    if (!status) tensors->source = INDEX;
    gdn_index_close(&index);
    return status;
}

gdn_status gdn_tensors_open(gdn_tensors *tensors, const char *path, gdn_error *err)
{
    *tensors = (gdn_tensors){.n = 0};
    gdn_status status = gdn_path_is_folder(path) ? open_folder(tensors, path, err) : add_file(tensors, path, err);
    if (!status && !tensors->source) {
        tensors->source = tensors->files[0].label;
        status = gdn_image_sort(tensors, err);
    }
    if (status) gdn_tensors_close(tensors);
    return status;
}
