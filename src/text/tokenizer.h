/* text/tokenizer.h - text to token ids, as the Hugging Face tokenizers library makes them from the same tokenizer.json.
 *
 * A gdn_tokenizer does not change after it was opened: any threads may use it at once.  Texts are bytes with a length; they
 * may hold any bytes, NUL among them.  Bytes that are not UTF-8 are taken as U+FFFD, one for each maximal part that is not
 * (what Python's and Rust's lossy decoding hands to that library). */
#ifndef GDN_TEXT_TOKENIZER_H
#define GDN_TEXT_TOKENIZER_H
#include "gdn/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gdn_tokenizer gdn_tokenizer;

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* From a tokenizer.json: byte-level BPE; NFC or no normaliser; the pre-tokeniser pattern of Qwen2 to Qwen3-Next or of
 * Qwen3.5; added tokens that match as they are written.  `truncation` and `padding` are not heeded, as transformers does not.
 * IO; BAD_FILE: damaged or contradicting itself; UNSUPPORTED: it asks for something else, which the message names;
 * NO_MEMORY.  *out is written on success only; end it with gdn_tokenizer_close. */
gdn_status gdn_tokenizer_open(gdn_tokenizer **out, const char *path, gdn_error *err);

/* The same from memory; `name` is for messages. */
gdn_status gdn_tokenizer_parse(gdn_tokenizer **out, const char *json, size_t n, const char *name, gdn_error *err);

void gdn_tokenizer_close(gdn_tokenizer *tokenizer); /* NULL is allowed */

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* One more than the highest id.  Ids from there on, to which a model may have padding rows, are no tokens. */
int32_t gdn_tokenizer_size(const gdn_tokenizer *tokenizer);

/* The added token that is written like this ("<|im_end|>"), else the ordinary token of these bytes, else -1. */
int32_t gdn_tokenizer_find(const gdn_tokenizer *tokenizer, const char *text, size_t n);

/* The bytes of a token, which need not be whole characters, and their count; NULL and 0 if no token has this id.  Borrowed
 * from the tokenizer and not terminated. */
const char *gdn_tokenizer_bytes(const gdn_tokenizer *tokenizer, int32_t id, size_t *n);

/* Whether the id is that of an added token; of one that is special, which decoding may leave out. */
bool gdn_tokenizer_is_added(const gdn_tokenizer *tokenizer, int32_t id);
bool gdn_tokenizer_is_special(const gdn_tokenizer *tokenizer, int32_t id);

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

/* A stretch of a text.  Only what is written in trusted stretches can be an added token: a chat template is trusted, what a
 * user wrote is not, and a "<|im_end|>" in it is encoded as those ten characters. */
typedef struct gdn_span {
    const char *text; /* NULL is allowed when n is 0 */
    size_t      n;
    bool        trusted;
} gdn_span;

/* Ids that grow in memory of malloc.  Zero it before first use; free with free(ids.id). */
typedef struct gdn_ids {
    int32_t *id;
    size_t   n, capacity;
} gdn_ids;

/* Append the ids of the text that the spans make together (less than 2 GiB).  Where a span ends has no other meaning: added
 * tokens are found in runs of trusted bytes, the longest that starts first; all text between two of them is normalised,
 * cut into pieces and merged as one, across the ends of spans.  No token is added at the ends.
 * Time is linear in the bytes but for merging, n log n in a piece (a word, a run of punctuation).
 * BAD_ARGUMENT: too long; NO_MEMORY; `ids` has what it had. */
gdn_status gdn_tokenizer_encode(const gdn_tokenizer *tokenizer, const gdn_span *spans, size_t n_spans, gdn_ids *ids,
                                gdn_error *err);

/* The way back is in text/decode.h. */

#endif
