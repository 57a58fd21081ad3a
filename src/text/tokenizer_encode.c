/* From text to ids: added tokens first, then what is between them. */
#include "base/status.h"
#include "text/tokenizer_nfc.h"
#include "text/tokenizer_parts.h"
#include <stdlib.h>
#include <string.h>

/* One call's work, and its memory. */
typedef struct encoding {
    const gdn_tokenizer *tokenizer;
    gdn_ids             *ids;
    gdn_text             joined, repaired, composed;
    gdn_bpe_scratch      scratch;
} encoding;

static bool ids_reserve(gdn_ids *ids, size_t n)
{
    if (ids->capacity - ids->n >= n) return true;
    const size_t capacity = ids->n + n + ids->capacity + 64; /* each term is below 2^34 */
    int32_t     *id = realloc(ids->id, capacity * sizeof *id);
    if (!id) return false;
    ids->id = id;
    ids->capacity = capacity;
    return true;
}

/* Text without added tokens.  false without memory. */
static bool encode_ordinary(encoding *e, const char *text, size_t n)
{
    const gdn_tokenizer *t = e->tokenizer;
    bool                 changed;
    if (!gdn_text_repair(&e->repaired, text, n, &changed)) return false;
    if (changed) text = e->repaired.bytes, n = e->repaired.n;
    if (t->nfc && !gdn_text_compose(&e->composed, text, n, &changed)) return false;
    if (t->nfc && changed) text = e->composed.bytes, n = e->composed.n;
    for (const char *at = text, *end = text + n; at < end;) {
        const char  *next = gdn_scan(&t->scanner, at, end);
        const size_t n_piece = (size_t)(next - at);
        if (!ids_reserve(e->ids, n_piece)) return false;
        const size_t n_ids = gdn_bpe_encode(&t->bpe, at, n_piece, e->ids->id + e->ids->n, &e->scratch);
        if (!n_ids) return false;
        e->ids->n += n_ids;
        at = next;
    }
    return true;
}

/* Text whose bytes [from, to) are trusted; *done is where the text starts that is not encoded yet. */
static bool encode_trusted(encoding *e, const char *text, size_t from, size_t to, size_t *done)
{
    for (size_t at = from; at < to;) {
        const gdn_added *added = NULL;
        if (e->tokenizer->starts[(unsigned char)text[at]])
            added = gdn_tokenizer_match(e->tokenizer, text + at, to - at);
        if (!added) {
            at++;
            continue;
        }
        if (!encode_ordinary(e, text + *done, at - *done) || !ids_reserve(e->ids, 1)) return false;
        e->ids->id[e->ids->n++] = (int32_t)added->id;
        *done = at += added->n;
    }
    return true;
}

/* The spans as one text of n bytes: what the only one holds, or a copy. */
static const char *join(encoding *e, const gdn_span *spans, size_t n_spans, size_t n)
{
    if (n_spans == 1) return spans[0].text;
    if (!gdn_text_reserve(&e->joined, n)) return NULL;
    for (size_t i = 0; i < n_spans; i++) gdn_text_append(&e->joined, spans[i].text, spans[i].n);
    return e->joined.bytes;
}

static bool encode(encoding *e, const gdn_span *spans, size_t n_spans, size_t n)
{
    size_t      done = 0, at = 0;
    const char *text = join(e, spans, n_spans, n);
    if (!text) return false;
    for (size_t i = 0; i < n_spans;) { /* empty spans do not end a trusted run */
        const size_t from = at;
        while (i < n_spans && (spans[i].trusted || !spans[i].n)) at += spans[i++].n;
        if (!encode_trusted(e, text, from, at, &done)) return false;
        while (i < n_spans && (!spans[i].trusted || !spans[i].n)) at += spans[i++].n;
    }
    return encode_ordinary(e, text + done, n - done);
}

gdn_status gdn_tokenizer_encode(const gdn_tokenizer *tokenizer, const gdn_span *spans, size_t n_spans, gdn_ids *ids,
                                gdn_error *err)
{
    encoding     e = {.tokenizer = tokenizer, .ids = ids};
    const size_t n_before = ids->n;
    size_t       n = 0;
    for (size_t i = 0; i < n_spans; i++) {
        if (spans[i].n > INT32_MAX || (n += spans[i].n) > INT32_MAX)
            return gdn_fail(err, GDN_BAD_ARGUMENT, (long long)i,
                            "encode: the text has 2 GiB or more; encode it in parts");
        if (!spans[i].text && spans[i].n)
            return gdn_fail(err, GDN_BAD_ARGUMENT, (long long)i, "encode: span %zu has no text; pass its bytes", i);
    }
    if (!n) return GDN_OK;
    const bool ok = encode(&e, spans, n_spans, n);
    free(e.joined.bytes);
    free(e.repaired.bytes);
    free(e.composed.bytes);
    free(e.scratch.symbols);
    free(e.scratch.heap);
    if (ok) return GDN_OK;
    ids->n = n_before;
    return gdn_fail(err, GDN_NO_MEMORY, 0, "encode: no memory for a text of %zu bytes; encode less at once", n);
}
