/* text/decode.h - token ids to text, whole or as they come. */
#ifndef GDN_TEXT_DECODE_H
#define GDN_TEXT_DECODE_H
#include "text/tokenizer.h"

/* A stream of ids becoming valid UTF-8.  The bytes of tokens are put together first, then what is not UTF-8 among them
 * becomes U+FFFD as in encoding, so that it makes no difference how ids are handed over: what was written in all is the text
 * of all ids.  Bytes of a character that is not complete are held back.
 * Start with {.tokenizer = ..., .skip_special = ...}, the rest zero; there is nothing to close.  Allocates nothing. */
typedef struct gdn_decoder {
    const gdn_tokenizer *tokenizer;
    bool                 skip_special; /* leave special tokens out */
    size_t               n_held;
    char                 held[4];
} gdn_decoder;

/* Bytes that `out` of gdn_decoder_put must hold. */
size_t gdn_decoder_room(const gdn_tokenizer *tokenizer);

/* Write the text that the next id completes, and return its bytes (not terminated; often 0).  An id that is no token, as a
 * padding row, has no text. */
size_t gdn_decoder_put(gdn_decoder *decoder, int32_t id, char *out);

/* The ids are over: write U+FFFD (3 bytes) if bytes are held, and return how many were written.  The decoder can be used
 * again. */
size_t gdn_decoder_end(gdn_decoder *decoder, char *out);

/* The text of n ids, terminated by a NUL that *n_text does not count; free it with free.  NO_MEMORY: *text is as it was. */
gdn_status gdn_decode(const gdn_tokenizer *tokenizer, const int32_t *ids, size_t n, bool skip_special, char **text,
                      size_t *n_text, gdn_error *err);

#endif
