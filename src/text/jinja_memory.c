#include "text/jinja.h"
#include "base/alloc.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- failure ----------------------------------------------------------------------------------------------------- */

/* The length of the longest start of n bytes that does not end inside a character. */
static size_t whole_chars(const char *bytes, size_t n)
{
    size_t start = n;
    while (start > 0 && ((unsigned char)bytes[start - 1] & 0xC0) == 0x80) start--;
    if (start == 0) return n;
    const unsigned char lead = (unsigned char)bytes[start - 1];
    const size_t        wanted = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    return n - (start - 1) < wanted ? start - 1 : n;
}

void gdn_jinja_report(jinja_run *run, gdn_status status, const char *format, ...)
{
    if (run->status) return;
    char    message[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(message, sizeof message, format, ap);
    va_end(ap);
    run->status = gdn_fail(run->err, status, run->line, "chat template, line %d: %s", run->line, message);
    if (run->err) run->err->message[whole_chars(run->err->message, strlen(run->err->message))] = 0;
}

bool gdn_jinja_charge(jinja_run *run, size_t n_steps)
{
    if (n_steps > run->limits.max_steps)
        return gdn_jinja_fail(run, GDN_BAD_FILE, "the template takes too many steps; it may never end");
    run->limits.max_steps -= n_steps;
    return true;
}

bool gdn_jinja_enter(jinja_run *run)
{
    if (run->depth >= run->limits.max_depth)
        return gdn_jinja_fail(run, GDN_BAD_FILE, "calls or values are nested more than %d deep", run->limits.max_depth);
    run->depth++;
    return true;
}

void gdn_jinja_leave(jinja_run *run) { run->depth--; }

/* ---- arena ------------------------------------------------------------------------------------------------------- */

enum { ARENA_ALIGN = 16, FIRST_CHUNK = 32 << 10, LARGEST_CHUNK = 8 << 20 };

struct jinja_chunk {
    jinja_chunk *next;
    size_t       used, cap;
    char        *bytes;
};

static size_t aligned(size_t n) { return (n + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN; }

static bool add_chunk(jinja_run *run, size_t n)
{
    size_t cap = run->n_bytes < FIRST_CHUNK ? (size_t)FIRST_CHUNK : run->n_bytes;
    if (cap > LARGEST_CHUNK) cap = LARGEST_CHUNK;
    if (cap < n) cap = n;
    if (n > run->limits.max_memory_bytes || cap > run->limits.max_memory_bytes - run->n_bytes)
        return gdn_jinja_fail(run, GDN_NO_MEMORY, "the template takes more than %zu bytes of memory",
                              run->limits.max_memory_bytes);
    const size_t head = aligned(sizeof(jinja_chunk));
    jinja_chunk *chunk = malloc(head + cap);
    if (!chunk) return gdn_jinja_fail(run, GDN_NO_MEMORY, "no memory for %zu more bytes", cap);
    *chunk = (jinja_chunk){run->chunks, 0, cap, (char *)chunk + head};
    run->chunks = chunk;
    run->n_bytes += cap;
    return true;
}

void *gdn_jinja_alloc(jinja_run *run, size_t n)
{
    if (n > SIZE_MAX / 2) {
        gdn_jinja_report(run, GDN_NO_MEMORY, "no memory for %zu more bytes", n);
        return NULL;
    }
    n = aligned(n ? n : 1);
    if ((!run->chunks || run->chunks->cap - run->chunks->used < n) && !add_chunk(run, n)) return NULL;
    void *block = run->chunks->bytes + run->chunks->used;
    run->chunks->used += n;
    return block;
}

void *gdn_jinja_array(jinja_run *run, size_t n, size_t size)
{
    size_t n_bytes;
    return gdn_jinja_alloc(run, gdn_size_mul(&n_bytes, n, size) ? n_bytes : SIZE_MAX);
}

void *gdn_jinja_grow(jinja_run *run, void *block, size_t old, size_t wanted)
{
    jinja_chunk *chunk = run->chunks;
    const size_t had = aligned(old ? old : 1), more = aligned(wanted);
    if (block && (char *)block + had == chunk->bytes + chunk->used && more - had <= chunk->cap - chunk->used) {
        chunk->used += more - had;
        return block;
    }
    void *grown = gdn_jinja_alloc(run, wanted);
    if (grown && old) memcpy(grown, block, old);
    return grown;
}

void gdn_jinja_release(jinja_run *run)
{
    while (run->chunks) {
        jinja_chunk *chunk = run->chunks;
        run->chunks = chunk->next;
        free(chunk);
    }
    run->n_bytes = 0;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static bool put_span(jinja_run *run, jinja_text *text, uint8_t mark)
{
    if (text->n_spans && text->spans[text->n_spans - 1].mark == mark) {
        text->spans[text->n_spans - 1].end = text->n;
        return true;
    }
    if (text->n_spans == text->spans_cap) {
        const size_t cap = text->spans_cap ? 2 * text->spans_cap : 4;
        jinja_span  *spans = gdn_jinja_grow(run, text->spans, text->n_spans * sizeof *spans, cap * sizeof *spans);
        if (!spans) return false;
        text->spans = spans;
        text->spans_cap = cap;
    }
    text->spans[text->n_spans++] = (jinja_span){text->n, mark};
    return true;
}

bool gdn_jinja_put(jinja_run *run, jinja_text *text, const char *bytes, size_t n, uint8_t mark)
{
    if (n == 0) return true;
    if (!gdn_jinja_charge(run, n / 16 + 1)) return false;
    if (n > run->limits.max_text_bytes - text->n)
        return gdn_jinja_fail(run, GDN_NO_MEMORY, "a text grows beyond %zu bytes", run->limits.max_text_bytes);
    if (n > text->cap - text->n) {
        size_t cap = text->cap ? 2 * text->cap : 64;
        if (cap < text->n + n) cap = text->n + n;
        char *grown = gdn_jinja_grow(run, text->bytes, text->n, cap);
        if (!grown) return false;
        text->bytes = grown;
        text->cap = cap;
    }
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
    return put_span(run, text, mark);
}

bool gdn_jinja_put_ascii(jinja_run *run, jinja_text *text, const char *terminated)
{
    return gdn_jinja_put(run, text, terminated, strlen(terminated), JINJA_TRUSTED);
}

/* The span that byte i of a string with spans lies in. */
static size_t span_of(const jinja_string *string, size_t i)
{
    size_t low = 0, high = string->n_spans - 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (string->spans[middle].end > string->base + i) high = middle;
        else low = middle + 1;
    }
    return low;
}

uint8_t gdn_jinja_mark_at(const jinja_string *string, size_t i)
{
    return string->spans ? string->spans[span_of(string, i)].mark : string->mark;
}

bool gdn_jinja_put_slice(jinja_run *run, jinja_text *text, const jinja_string *string, size_t from, size_t to)
{
    if (!string->spans) return gdn_jinja_put(run, text, string->bytes + from, to - from, string->mark);
    for (size_t span = span_of(string, from); from < to; span++) {
        size_t end = string->spans[span].end - string->base;
        if (end > to) end = to;
        if (!gdn_jinja_put(run, text, string->bytes + from, end - from, string->spans[span].mark)) return false;
        from = end;
    }
    return true;
}

bool gdn_jinja_put_string(jinja_run *run, jinja_text *text, const jinja_string *string)
{
    return gdn_jinja_put_slice(run, text, string, 0, string->n);
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

static bool new_string(jinja_run *run, const jinja_string *string, jinja_value *out)
{
    jinja_string *made = gdn_jinja_alloc(run, sizeof *made);
    if (!made || !gdn_jinja_charge(run, string->n / 64 + 1)) return false;
    *made = *string;
    made->n_chars = gdn_jinja_count(made->bytes, made->n);
    *out = gdn_jinja_str(made);
    return true;
}

bool gdn_jinja_string(jinja_run *run, const char *bytes, size_t n, uint8_t mark, jinja_value *out)
{
    if (n > run->limits.max_text_bytes)
        return gdn_jinja_fail(run, GDN_NO_MEMORY, "a text has more than %zu bytes", run->limits.max_text_bytes);
    return new_string(run, &(jinja_string){.bytes = bytes, .n = n, .mark = mark}, out);
}

bool gdn_jinja_take(jinja_run *run, jinja_text *text, jinja_value *out)
{
    jinja_string string = {.bytes = text->bytes ? text->bytes : "", .n = text->n, .markup = text->markup};
    if (text->n_spans == 1) string.mark = text->spans[0].mark;
    if (text->n_spans > 1) {
        string.spans = text->spans;
        string.n_spans = text->n_spans;
    }
    *text = (jinja_text){.bytes = NULL};
    return new_string(run, &string, out);
}

bool gdn_jinja_slice(jinja_run *run, const jinja_string *string, size_t from, size_t to, jinja_value *out)
{
    if (from >= to) from = to;
    if (from == 0 && to == string->n) {
        *out = gdn_jinja_str(string);
        return true;
    }
    jinja_string part = {.bytes = string->bytes + from, .n = to - from, .mark = string->mark, .markup = string->markup};
    if (string->spans && from < to) {
        const size_t first = span_of(string, from), last = span_of(string, to - 1);
        if (first == last) part.mark = string->spans[first].mark;
        else {
            part.spans = string->spans + first;
            part.n_spans = last - first + 1;
            part.base = string->base + from;
        }
    }
    return new_string(run, &part, out);
}

bool gdn_jinja_is(const jinja_string *string, const char *terminated)
{
    return string->n == strlen(terminated) && !memcmp(string->bytes, terminated, string->n);
}

bool gdn_jinja_same(const jinja_string *a, const jinja_string *b)
{
    return a->n == b->n && !memcmp(a->bytes, b->bytes, a->n);
}
