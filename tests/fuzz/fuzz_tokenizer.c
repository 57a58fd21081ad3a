/* A tokenizer.json, then after the first NUL a text.  The file is refused with a sentence, or makes a tokenizer that encodes
 * the text: as one span and in pieces to the same ids, and to ids that decode to the text's normal form. */
#include "text/tokenizer.h"
#include "text/tokenizer_nfc.h"
#include "text/tokenizer_parts.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) abort();
}

static void must_decode_to(const gdn_tokenizer *t, const gdn_ids *ids, const char *want, size_t n_want)
{
    char       *text, *out = malloc(gdn_decoder_room(t));
    size_t      n, at = 0;
    gdn_decoder decoder = {.tokenizer = t};
    must(out != NULL);
    must(gdn_decode(t, ids->id, ids->n, false, &text, &n, NULL) == GDN_OK);
    must(n == n_want && !memcmp(text, want, n));
    for (size_t i = 0; i <= ids->n; i++) {
        const size_t put = i < ids->n ? gdn_decoder_put(&decoder, ids->id[i], out) : gdn_decoder_end(&decoder, out);
        must(put <= n - at && !memcmp(text + at, out, put));
        at += put;
    }
    must(at == n);
    free(out);
    free(text);
}

/* All of it untrusted, so that the ids are ordinary and their bytes are the text's. */
static void encode_plain(const gdn_tokenizer *t, const char *text, size_t n)
{
    const gdn_span whole = {text, n, false};
    gdn_ids        ids = {0};
    gdn_text       repaired = {0}, composed = {0};
    bool           changed;
    must(gdn_tokenizer_encode(t, &whole, 1, &ids, NULL) == GDN_OK);
    must(gdn_text_repair(&repaired, text, n, &changed));
    if (changed) text = repaired.bytes, n = repaired.n;
    if (t->nfc) must(gdn_text_compose(&composed, text, n, &changed));
    if (t->nfc && changed) text = composed.bytes, n = composed.n;
    must_decode_to(t, &ids, text, n);
    free(ids.id);
    free(repaired.bytes);
    free(composed.bytes);
}

static void encode_trusted(const gdn_tokenizer *t, const char *text, size_t n)
{
    const size_t   third = n / 3;
    const gdn_span whole = {text, n, true};
    const gdn_span parts[] = {{text, third, true},
                              {text + third, third, true},
                              {text + 2 * third, n - 2 * third, true}};
    gdn_ids        ids = {0}, same = {0};
    must(gdn_tokenizer_encode(t, &whole, 1, &ids, NULL) == GDN_OK);
    must(gdn_tokenizer_encode(t, parts, 3, &same, NULL) == GDN_OK);
    must(ids.n == same.n && (!ids.n || !memcmp(ids.id, same.id, ids.n * sizeof *ids.id)));
    for (size_t i = 0; i < ids.n; i++) must(ids.id[i] >= 0 && ids.id[i] < gdn_tokenizer_size(t));
    free(ids.id);
    free(same.id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gdn_tokenizer   *t = NULL;
    gdn_error        err = {GDN_OK, 0, ""};
    const char      *text = (const char *)data;
    const size_t     n_file = strnlen(text, size);
    const gdn_status status = gdn_tokenizer_parse(&t, text, n_file, "fuzz", &err);
    if (status) {
        must((status == GDN_BAD_FILE || status == GDN_UNSUPPORTED) && err.code == status &&
             !strncmp(err.message, "fuzz", 4) && !t);
        return 0;
    }
    if (n_file < size) {
        encode_plain(t, text + n_file + 1, size - n_file - 1);
        encode_trusted(t, text + n_file + 1, size - n_file - 1);
    }
    gdn_tokenizer_close(t);
    return 0;
}
