/* tokenize TOKENIZER.json: what tests/diff/tokenizer.py compares.  Reads requests from stdin until its end and answers each on
 * stdout; numbers are 32 bits, little-endian, and texts are a number of bytes and the bytes.
 *   E n (trusted text)*n   -> n, n ids               encode spans
 *   D skip n ids           -> text                   decode, whole and as a stream, which must be the same
 *   P text                 -> n, n ends              pre-tokenise text that is UTF-8
 *   N text                 -> text                   repair and normalise
 *   U                      -> 0x110000 bytes         1 for each code point that utf8proc does not know */
#include "text/tokenizer.h"
#include "text/scan.h"
#include "text/tokenizer_nfc.h"
#include "text/tokenizer_parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static void die(const char *why)
{
    fprintf(stderr, "tokenize: %s\n", why);
    exit(1);
}

static void *memory(size_t n)
{
    void *p = calloc(n + 1, 1);
    if (!p) die("no memory");
    return p;
}

static void get(void *p, size_t n)
{
    if (n && fread(p, 1, n, stdin) != n) die("the request is cut");
}

static uint32_t get_number(void)
{
    uint32_t n;
    get(&n, sizeof n);
    return n;
}

static char *get_text(size_t *n)
{
    *n = get_number();
    char *text = memory(*n);
    get(text, *n);
    return text;
}

static void put(const void *p, size_t n)
{
    if (n && fwrite(p, 1, n, stdout) != n) die("the answer cannot be written");
}

static void put_number(size_t n)
{
    const uint32_t number = (uint32_t)n;
    put(&number, sizeof number);
}

static void answer_encode(const gdn_tokenizer *t)
{
    gdn_ids      ids = {0};
    gdn_error    err;
    const size_t n = get_number();
    gdn_span    *spans = memory(n * sizeof *spans);
    char       **texts = memory(n * sizeof *texts);
    for (size_t i = 0; i < n; i++) {
        spans[i].trusted = get_number() != 0;
        spans[i].text = texts[i] = get_text(&spans[i].n);
    }
    if (gdn_tokenizer_encode(t, spans, n, &ids, &err)) die(err.message);
    put_number(ids.n);
    put(ids.id, ids.n * sizeof *ids.id);
    for (size_t i = 0; i < n; i++) free(texts[i]);
    free(texts);
    free(spans);
    free(ids.id);
}

static void answer_decode(const gdn_tokenizer *t)
{
    gdn_error    err;
    char        *whole;
    size_t       n_whole, n_stream = 0;
    const bool   skip = get_number() != 0;
    const size_t n = get_number();
    int32_t     *ids = memory(n * sizeof *ids);
    get(ids, n * sizeof *ids);
    if (gdn_decode(t, ids, n, skip, &whole, &n_whole, &err)) die(err.message);
    gdn_decoder decoder = {.tokenizer = t, .skip_special = skip};
    char       *stream = memory((n + 1) * gdn_decoder_room(t));
    for (size_t i = 0; i < n; i++) n_stream += gdn_decoder_put(&decoder, ids[i], stream + n_stream);
    n_stream += gdn_decoder_end(&decoder, stream + n_stream);
    if (n_stream != n_whole || memcmp(stream, whole, n_whole) != 0) die("the stream and the whole differ");
    put_number(n_whole);
    put(whole, n_whole);
    free(stream);
    free(whole);
    free(ids);
}

static void answer_pieces(const gdn_tokenizer *t)
{
    size_t    n, n_ends = 0;
    char     *text = get_text(&n);
    uint32_t *ends = memory(n * sizeof *ends);
    for (const char *at = text; at < text + n;) {
        at = gdn_scan(&t->scanner, at, text + n);
        ends[n_ends++] = (uint32_t)(at - text);
    }
    put_number(n_ends);
    put(ends, n_ends * sizeof *ends);
    free(ends);
    free(text);
}

static void answer_normal(void)
{
    size_t      n;
    bool        changed;
    char       *text = get_text(&n);
    const char *result = text;
    gdn_text    repaired = {0}, composed = {0};
    if (!gdn_text_repair(&repaired, result, n, &changed)) die("no memory");
    if (changed) result = repaired.bytes, n = repaired.n;
    if (!gdn_text_compose(&composed, result, n, &changed)) die("no memory");
    if (changed) result = composed.bytes, n = composed.n;
    put_number(n);
    put(result, n);
    free(text);
    free(repaired.bytes);
    free(composed.bytes);
}

static void answer_unknown(void)
{
    for (int code = 0; code < 0x110000; code++) {
        const char unknown = utf8proc_category(code) == UTF8PROC_CATEGORY_CN;
        put(&unknown, 1);
    }
}

int main(int argc, char **argv)
{
    gdn_tokenizer *t;
    gdn_error      err;
    if (argc != 2) die("usage: tokenize TOKENIZER.json");
    if (gdn_tokenizer_open(&t, argv[1], &err)) die(err.message);
    for (int request; (request = getchar()) != EOF;) switch (request) {
        case 'E': answer_encode(t); break;
        case 'D': answer_decode(t); break;
        case 'P': answer_pieces(t); break;
        case 'N': answer_normal(); break;
        case 'U': answer_unknown(); break;
        default: die("unknown request");
        }
    if (fflush(stdout)) die("the answers cannot be written");
    gdn_tokenizer_close(t);
    return 0;
}
