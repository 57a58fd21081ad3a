#include "engine/store.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gdn_store {
    char       *folder, *path; /* path: room for any in it */
    size_t      path_size;
    long long   budget, bytes, now;
    uint64_t    binding;
    gdn_stored *records; /* of every binding */
    int         n, capacity;
    gdn_stored  prepared;
    uint64_t   *hashes; /* [max_tokens + 1] of the list that is looked for */
    int         max_tokens, n_hashes;
};

enum { NAME = 80 }; /* bytes of a name, with room */

static uint64_t hash_on(uint64_t hash, int32_t id)
{
    hash = (hash ^ (uint32_t)id) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const int32_t *tokens, int n)
{
    uint64_t hash = 1;
    for (int i = 0; i < n; i++) hash = hash_on(hash, tokens[i]);
    return hash;
}

static const char *path_of(gdn_store *s, const gdn_stored *r)
{
    snprintf(s->path, s->path_size, "%s/gdn-%016llx-%08x-%08x-%d-%016llx", s->folder, (unsigned long long)r->binding,
             (unsigned)r->from, (unsigned)r->to, r->has_logits, (unsigned long long)r->hash);
    return s->path;
}

/* ---- opening -------------------------------------------------------------------------------------------------------- */

static bool append(gdn_store *s, const gdn_stored *record)
{
    if (s->n == s->capacity) {
        const int   capacity = s->capacity ? 2 * s->capacity : 64;
        gdn_stored *more = realloc(s->records, (size_t)capacity * sizeof *more);
        if (!more) return false;
        s->records = more;
        s->capacity = capacity;
    }
    s->records[s->n++] = *record;
    s->bytes += record->bytes;
    return true;
}

/* What a name says; false: it is not that of a record. */
static bool parse(gdn_stored *r, const char *name)
{
    unsigned long long binding, hash;
    unsigned           from, to;
    int                has_logits, n = 0;
    if (sscanf(name, "gdn-%16llx-%8x-%8x-%1d-%16llx%n", &binding, &from, &to, &has_logits, &hash, &n) != 5 || name[n] ||
        to > INT_MAX || from >= to)
        return false;
    *r = (gdn_stored){.binding = binding, .hash = hash, .from = (int)from, .to = (int)to, .has_logits = has_logits};
    char      again[NAME];
    const int length =
        snprintf(again, sizeof again, "gdn-%016llx-%08x-%08x-%d-%016llx", binding, from, to, has_logits, hash);
    return length == n && !memcmp(again, name, (size_t)length);
}

/* What a process that was killed was writing. */
static void remove_leftover(const gdn_store *s, const char *name)
{
    const char *const mark = strstr(name, ".tmp-");
    if (strncmp(name, "gdn-", 4) != 0 || !mark) return;
    const long pid = strtol(mark + 5, NULL, 10);
    if (pid <= 0 || !kill((pid_t)pid, 0) || errno != ESRCH) return;
    snprintf(s->path, s->path_size, "%s/%s", s->folder, name);
    unlink(s->path);
}

static gdn_status scan(gdn_store *s, gdn_error *err)
{
    DIR *folder = opendir(s->folder);
    if (!folder) return gdn_fail(err, GDN_IO, 0, "cache: %.120s cannot be listed: %m; check the folder", s->folder);
    gdn_status status = GDN_OK;
    for (const struct dirent *entry; !status && (entry = readdir(folder));) {
        gdn_stored  record;
        struct stat st;
        if (strlen(entry->d_name) >= NAME) continue;
        remove_leftover(s, entry->d_name);
        if (!parse(&record, entry->d_name) || stat(path_of(s, &record), &st) || !S_ISREG(st.st_mode)) continue;
        record.bytes = st.st_size;
        record.used = (long long)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        if (record.used > s->now) s->now = record.used;
        if (!append(s, &record)) status = gdn_fail(err, GDN_NO_MEMORY, 0, "cache: no memory for the list of its files");
    }
    closedir(folder);
    return status;
}

gdn_status gdn_store_open(gdn_store **out, const char *folder, long long budget_bytes, int max_tokens, gdn_error *err)
{
    if (mkdir(folder, 0777) && errno != EEXIST)
        return gdn_fail(err, GDN_IO, 0, "cache: %.120s cannot be made: %m; name another folder", folder);
    gdn_store *s = calloc(1, sizeof *s);
    if (!s) return gdn_fail(err, GDN_NO_MEMORY, 0, "cache: no memory");
    s->path_size = strlen(folder) + NAME + 2;
    s->folder = strdup(folder);
    s->path = malloc(s->path_size);
    s->hashes = malloc(((size_t)max_tokens + 1) * sizeof *s->hashes);
    s->max_tokens = max_tokens;
    s->budget = budget_bytes;
    gdn_status status = GDN_OK;
    if (!s->folder || !s->path || !s->hashes) status = gdn_fail(err, GDN_NO_MEMORY, 0, "cache: no memory");
    if (!status) status = scan(s, err);
    if (status) {
        gdn_store_close(s);
        return status;
    }
    *out = s;
    return GDN_OK;
}

void gdn_store_bind(gdn_store *s, uint64_t binding) { s->binding = binding; }

void gdn_store_close(gdn_store *s)
{
    if (!s) return;
    free(s->folder);
    free(s->path);
    free(s->hashes);
    free(s->records);
    free(s);
}

/* ---- finding ---------------------------------------------------------------------------------------------------------- */

/* The record of this binding with these tokens; -1: none. */
static int record_of(const gdn_store *s, int to, uint64_t hash)
{
    for (int i = 0; i < s->n; i++) {
        const gdn_stored *const r = &s->records[i];
        if (r->binding == s->binding && r->to == to && r->hash == hash) return i;
    }
    return -1;
}

/* The first of the records that lead from `above` tokens to `last`, or -1 if one is missing. */
static int first_of(const gdn_store *s, int last, int above)
{
    int i = last;
    while (i >= 0 && s->records[i].from > above) i = record_of(s, s->records[i].from, s->hashes[s->records[i].from]);
    return i;
}

int gdn_store_find(gdn_store *s, const int32_t *tokens, int n, int above, bool *is_last)
{
    if (!s->n || n > s->max_tokens) return -1;
    s->n_hashes = n;
    s->hashes[0] = 1;
    for (int i = 0; i < n; i++) s->hashes[i + 1] = hash_on(s->hashes[i], tokens[i]);
    for (int below = n;;) {
        int best = -1;
        for (int i = 0; i < s->n; i++) {
            const gdn_stored *const r = &s->records[i];
            if (r->binding != s->binding || r->to <= above || r->to > below || r->hash != s->hashes[r->to]) continue;
            if ((r->to < n || r->has_logits) && (best < 0 || r->to > s->records[best].to)) best = i;
        }
        if (best < 0) return -1;
        const int first = first_of(s, best, above);
        *is_last = first == best;
        if (first >= 0) return first;
        below = s->records[best].to - 1;
    }
}

const gdn_stored *gdn_store_get(const gdn_store *s, int record) { return &s->records[record]; }

const char *gdn_store_use(gdn_store *s, int record)
{
    s->records[record].used = ++s->now;
    utimensat(AT_FDCWD, path_of(s, &s->records[record]), NULL, 0);
    return s->path;
}

int gdn_store_exact(const gdn_store *s, const int32_t *tokens, int n) { return record_of(s, n, hash_of(tokens, n)); }

/* ---- writing ---------------------------------------------------------------------------------------------------------- */

void gdn_store_drop(gdn_store *s, int record, bool remove)
{
    if (remove) unlink(path_of(s, &s->records[record]));
    s->bytes -= s->records[record].bytes;
    s->records[record] = s->records[--s->n];
}

void gdn_store_drop_from(gdn_store *s, int to, bool remove)
{
    for (int i = s->n - 1; i >= 0; i--) { /* what takes the place of one has been seen */
        const gdn_stored *const r = &s->records[i];
        if (r->binding == s->binding && r->to >= to && r->to <= s->n_hashes && r->hash == s->hashes[r->to])
            gdn_store_drop(s, i, remove);
    }
}

static void drop_oldest(gdn_store *s)
{
    int oldest = 0;
    for (int i = 1; i < s->n; i++)
        if (s->records[i].used < s->records[oldest].used) oldest = i;
    gdn_store_drop(s, oldest, true);
}

const char *gdn_store_prepare(gdn_store *s, const int32_t *tokens, int from, int to, bool has_logits, long long bytes)
{
    if (bytes > s->budget) return NULL;
    while (s->n && s->bytes + bytes > s->budget) drop_oldest(s);
    s->prepared = (gdn_stored){.binding = s->binding,
                               .hash = hash_of(tokens, to),
                               .from = from,
                               .to = to,
                               .has_logits = has_logits,
                               .bytes = bytes,
                               .used = ++s->now};
    return path_of(s, &s->prepared);
}

void gdn_store_written(gdn_store *s) { append(s, &s->prepared); }
