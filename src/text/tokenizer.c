/* Opening, closing, and looking up tokens. */
#include "text/tokenizer.h"
#include "base/checksum.h"
#include "base/file.h"
#include "base/status.h"
#include "text/tokenizer_parts.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE_BYTES = 1 << 28 };

gdn_status gdn_tokenizer_parse(gdn_tokenizer **out, const char *json, size_t n, const char *name, gdn_error *err)
{
    gdn_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer) return gdn_fail(err, GDN_NO_MEMORY, 0, "%.120s: no memory for a tokenizer; free some", name);
    tokenizer->sum = gdn_checksum(json, n);
    const gdn_status status = gdn_tokenizer_read(tokenizer, json, n, name, err);
    if (status) gdn_tokenizer_close(tokenizer);
    else *out = tokenizer;
    return status;
}

gdn_status gdn_tokenizer_open(gdn_tokenizer **out, const char *path, gdn_error *err)
{
    gdn_file   file;
    char      *json = NULL;
    gdn_status status = gdn_file_open(&file, path, err);
    if (status) return status;
    if (file.n_bytes > MAX_FILE_BYTES) {
        status = gdn_fail(err, GDN_BAD_FILE, 0, "%.120s has %llu bytes, more than any tokenizer.json; check the path",
                          path, (unsigned long long)file.n_bytes);
        goto close;
    }
    const size_t n = (size_t)file.n_bytes;
    json = malloc(n + 1);
    if (!json) {
        status = gdn_fail(err, GDN_NO_MEMORY, 0, "%.120s: no memory for its %zu bytes; free some", path, n);
        goto close;
    }
    status = gdn_file_read(&file, json, n, err);
    if (!status) status = gdn_tokenizer_parse(out, json, n, path, err);
close:
    free(json);
    gdn_file_close(&file);
    return status;
}

void gdn_tokenizer_close(gdn_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    gdn_bpe_close(&tokenizer->bpe);
    for (size_t i = 0; i < tokenizer->n_added; i++) free(tokenizer->added[i].text);
    free(tokenizer->added);
    free(tokenizer);
}

uint64_t gdn_tokenizer_sum(const gdn_tokenizer *tokenizer) { return tokenizer->sum; }

int32_t gdn_tokenizer_size(const gdn_tokenizer *tokenizer) { return (int32_t)tokenizer->bpe.n_tokens; }

int32_t gdn_tokenizer_find(const gdn_tokenizer *tokenizer, const char *text, size_t n)
{
    const gdn_added *added = n ? gdn_tokenizer_match(tokenizer, text, n) : NULL;
    return added && added->n == n ? (int32_t)added->id : gdn_bpe_find(&tokenizer->bpe, text, n);
}

static unsigned flags_of(const gdn_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && (size_t)id < tokenizer->bpe.n_tokens ? tokenizer->bpe.tokens[id].flags : 0;
}

const char *gdn_tokenizer_bytes(const gdn_tokenizer *tokenizer, int32_t id, size_t *n)
{
    *n = 0;
    if (!flags_of(tokenizer, id)) return NULL;
    *n = tokenizer->bpe.tokens[id].n;
    return tokenizer->bpe.bytes + tokenizer->bpe.tokens[id].at;
}

bool gdn_tokenizer_is_added(const gdn_tokenizer *tokenizer, int32_t id)
{
    return flags_of(tokenizer, id) & GDN_TOKEN_ADDED;
}

bool gdn_tokenizer_is_special(const gdn_tokenizer *tokenizer, int32_t id)
{
    return flags_of(tokenizer, id) & GDN_TOKEN_SPECIAL;
}

/* The first of [first, end) whose byte `at` is `byte` or higher. */
static const gdn_added *bound(const gdn_added *first, const gdn_added *end, size_t at, int byte)
{
    while (first < end) {
        const gdn_added *middle = first + (end - first) / 2;
        if ((unsigned char)middle->text[at] < byte) first = middle + 1;
        else end = middle;
    }
    return first;
}

/* The added tokens that agree with the first `at` bytes are a stretch of the sorted list, the shortest first. */
const gdn_added *gdn_tokenizer_match(const gdn_tokenizer *tokenizer, const char *text, size_t n)
{
    const gdn_added *first = tokenizer->added, *end = first + tokenizer->n_added, *found = NULL;
    for (size_t at = 0; first < end; at++) {
        if (first->n == at) found = first++;
        if (at == n) break;
        const int byte = (unsigned char)text[at];
        first = bound(first, end, at, byte);
        end = bound(first, end, at, byte + 1);
    }
    return found;
}
