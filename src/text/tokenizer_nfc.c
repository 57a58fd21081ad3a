#include "text/tokenizer_nfc.h"
#include "base/alloc.h"
#include "text/scan_utf8.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---- growing ----------------------------------------------------------------------------------------------------- */

bool gdn_text_reserve(gdn_text *text, size_t n)
{
    size_t needed, doubled;
    if (text->capacity - text->n >= n) return true;
    if (!gdn_size_add(&needed, text->n, n) || !gdn_size_mul(&doubled, text->capacity, 2)) return false;
    const size_t capacity = needed > doubled ? needed : doubled;
    char        *bytes = realloc(text->bytes, capacity);
    if (!bytes) return false;
    text->bytes = bytes;
    text->capacity = capacity;
    return true;
}

bool gdn_text_append(gdn_text *text, const char *bytes, size_t n)
{
    if (!n) return true;
    if (!gdn_text_reserve(text, n)) return false;
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
    return true;
}

/* ---- repair ------------------------------------------------------------------------------------------------------ */

/* How many bytes from the start are valid. */
static size_t valid_run(const char *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t code;
        uint64_t word;
        while (n - at >= sizeof word) {
            memcpy(&word, bytes + at, sizeof word);
            if (word & UINT64_C(0x8080808080808080)) break;
            at += sizeof word;
        }
        if (at == n) break;
        const size_t length = gdn_utf8_next(bytes + at, n - at, &code);
        if (code >= GDN_UTF8_BAD) return at;
        at += length;
    }
    return n;
}

bool gdn_text_repair(gdn_text *text, const char *bytes, size_t n, bool *needed)
{
    size_t at = valid_run(bytes, n);
    *needed = at < n;
    if (!*needed) return true;
    text->n = 0;
    if (!gdn_text_append(text, bytes, at)) return false;
    while (at < n) {
        uint32_t code;
        at += gdn_utf8_next(bytes + at, n - at, &code);
        if (!gdn_text_append(text, "\xef\xbf\xbd", 3)) return false;
        const size_t valid = valid_run(bytes + at, n - at);
        if (!gdn_text_append(text, bytes + at, valid)) return false;
        at += valid;
    }
    return true;
}

/* ---- composition ------------------------------------------------------------------------------------------------- */

/* Whether NFC leaves the character as it is and never joins it to what is before it, so that a text may be cut there.  Marks
 * are taken to join, which is more than do; jamo and the vowel signs of Kirat Rai are letters that do. */
static bool is_safe(uint32_t code)
{
    if (code < 0x300) return true;
    if ((code >= 0x1100 && code <= 0x11ff) || (code >= 0x16d40 && code <= 0x16d7f)) return false;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)code);
    const bool                 canonical = p->decomp_type == 0 && p->decomp_seqindex != UINT16_MAX;
    return !canonical && !p->combining_class && p->category != UTF8PROC_CATEGORY_MN &&
           p->category != UTF8PROC_CATEGORY_MC && p->category != UTF8PROC_CATEGORY_ME;
}

/* The end of the run of safe characters from `at`, and in *last where its last one starts. */
static size_t safe_run(const char *bytes, size_t at, size_t n, size_t *last)
{
    *last = at;
    while (at < n) {
        uint32_t     code;
        const size_t length = gdn_utf8_next(bytes + at, n - at, &code);
        if (!is_safe(code)) break;
        *last = at;
        at += length;
    }
    return at;
}

/* Code points being composed. */
typedef struct window {
    utf8proc_int32_t *codes;
    size_t            n, capacity;
} window;

static bool window_add(window *w, uint32_t code)
{
    enum { MOST = 32 }; /* more than any code point decomposes into */
    if (w->capacity - w->n < MOST) {
        const size_t      capacity = w->capacity * 2 + MOST;
        utf8proc_int32_t *codes = realloc(w->codes, capacity * sizeof *codes);
        if (!codes) return false;
        w->codes = codes;
        w->capacity = capacity;
    }
    int boundary = 0;
    w->n +=
        (size_t)utf8proc_decompose_char((utf8proc_int32_t)code, w->codes + w->n, MOST, UTF8PROC_DECOMPOSE, &boundary);
    return true;
}

static unsigned class_of(utf8proc_int32_t code)
{
    return (unsigned)utf8proc_get_property(code)->combining_class & 0xff;
}

/* Sort n marks by combining class, marks of a class in the order that they have.  Counted, since a text may be all marks. */
static bool sort_marks(utf8proc_int32_t *codes, size_t n)
{
    size_t i = 1, start[257] = {0};
    while (i < n && class_of(codes[i - 1]) <= class_of(codes[i])) i++;
    if (i >= n) return true;
    utf8proc_int32_t *copy = malloc(n * sizeof *copy);
    if (!copy) return false;
    memcpy(copy, codes, n * sizeof *copy);
    for (i = 0; i < n; i++) start[class_of(copy[i]) + 1]++;
    for (i = 0; i < 256; i++) start[i + 1] += start[i];
    for (i = 0; i < n; i++) codes[start[class_of(copy[i])]++] = copy[i];
    free(copy);
    return true;
}

static bool window_write(window *w, gdn_text *text)
{
    for (size_t i = 0; i < w->n;) {
        size_t end = i;
        while (end < w->n && class_of(w->codes[end])) end++;
        if (!sort_marks(w->codes + i, end - i)) return false;
        i = end + 1;
    }
    const utf8proc_ssize_t n =
        utf8proc_normalize_utf32(w->codes, (utf8proc_ssize_t)w->n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    if (!gdn_text_reserve(text, (size_t)n * 4)) return false;
    for (utf8proc_ssize_t i = 0; i < n; i++)
        text->n += (size_t)utf8proc_encode_char(w->codes[i], (utf8proc_uint8_t *)text->bytes + text->n);
    return true;
}

bool gdn_text_compose(gdn_text *text, const char *bytes, size_t n, bool *needed)
{
    size_t last, from = 0, at = safe_run(bytes, 0, n, &last);
    window w = {0};
    bool   ok = true;
    *needed = at < n;
    if (!*needed) return true;
    text->n = 0;
    while (ok && at < n) { /* [from, at) is safe; its last character may join what follows */
        ok = gdn_text_append(text, bytes + from, last - from);
        uint32_t code;
        w.n = 0;
        for (at = last; ok && at < n;) {
            const size_t length = gdn_utf8_next(bytes + at, n - at, &code);
            if (at > last && is_safe(code)) break;
            ok = window_add(&w, code);
            at += length;
        }
        ok = ok && window_write(&w, text);
        from = at;
        at = safe_run(bytes, from, n, &last);
    }
    ok = ok && gdn_text_append(text, bytes + from, at - from);
    free(w.codes);
    return ok;
}
