#include "gdn/gdn.h"
#include "base/status.h"
#include "text/scan_utf8.h"
#include "text/tokenizer_parts.h"
#include <stdlib.h>
#include <string.h>

static const char replacement[3] = "\xef\xbf\xbd";

size_t gdn_decoder_room(const gdn_tokenizer *tokenizer)
{
    return (tokenizer->longest + sizeof((gdn_decoder *)0)->held) * sizeof replacement;
}

/* One more byte.  Writes what is complete or cannot become a character. */
static size_t put_byte(gdn_decoder *decoder, char byte, char *out)
{
    size_t n_out = 0, length;
    decoder->held[decoder->n_held++] = byte;
    while (decoder->n_held) {
        uint32_t code;
        length = gdn_utf8_next(decoder->held, decoder->n_held, &code);
        if (code == GDN_UTF8_CUT) break;
        const char  *from = code == GDN_UTF8_BAD ? replacement : decoder->held;
        const size_t n = code == GDN_UTF8_BAD ? sizeof replacement : length;
        memcpy(out + n_out, from, n);
        n_out += n;
        decoder->n_held -= length;
        memmove(decoder->held, decoder->held + length, decoder->n_held);
    }
    return n_out;
}

size_t gdn_decoder_put(gdn_decoder *decoder, int32_t id, char *out)
{
    size_t n, n_out = 0;
    if (decoder->skip_special && gdn_tokenizer_is_special(decoder->tokenizer, id)) return 0;
    const char *bytes = gdn_tokenizer_bytes(decoder->tokenizer, id, &n);
    for (size_t i = 0; i < n; i++) n_out += put_byte(decoder, bytes[i], out + n_out);
    return n_out;
}

size_t gdn_decoder_end(gdn_decoder *decoder, char *out)
{
    if (!decoder->n_held) return 0;
    decoder->n_held = 0;
    memcpy(out, replacement, sizeof replacement);
    return sizeof replacement;
}

gdn_status gdn_decode(const gdn_tokenizer *tokenizer, const int32_t *ids, size_t n, bool skip_special, char **text,
                      size_t *n_text, gdn_error *err)
{
    gdn_decoder decoder = {.tokenizer = tokenizer, .skip_special = skip_special};
    size_t      capacity = sizeof replacement + 1, n_token, n_out = 0;
    for (size_t i = 0; i < n; i++) {
        gdn_tokenizer_bytes(tokenizer, ids[i], &n_token);
        capacity += n_token * sizeof replacement;
    }
    char *out = malloc(capacity);
    if (!out) return gdn_fail(err, GDN_NO_MEMORY, 0, "decode: no memory for the text of %zu ids; decode fewer", n);
    for (size_t i = 0; i < n; i++) n_out += gdn_decoder_put(&decoder, ids[i], out + n_out);
    n_out += gdn_decoder_end(&decoder, out + n_out);
    out[n_out] = 0;
    *text = out;
    *n_text = n_out;
    return GDN_OK;
}
