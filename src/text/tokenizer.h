/* text/tokenizer.h - opening a tokenizer; what it does is in gdn/gdn.h.  It does not change after it was opened: any threads
 * may use it at once. */
#ifndef GDN_TEXT_TOKENIZER_H
#define GDN_TEXT_TOKENIZER_H
#include "gdn/gdn.h"

/* From a tokenizer.json: byte-level BPE; NFC or no normaliser; the pre-tokeniser pattern of Qwen2 to Qwen3-Next or of
 * Qwen3.5; added tokens that match as they are written.  `truncation` and `padding` are not heeded, as transformers does not.
 * IO; BAD_FILE: damaged or contradicting itself; UNSUPPORTED: it asks for something else, which the message names;
 * NO_MEMORY.  *out is written on success only; end it with gdn_tokenizer_close. */
gdn_status gdn_tokenizer_open(gdn_tokenizer **out, const char *path, gdn_error *err);

/* The same from memory; `name` is for messages. */
gdn_status gdn_tokenizer_parse(gdn_tokenizer **out, const char *json, size_t n, const char *name, gdn_error *err);

/* gdn_checksum of the file. */
uint64_t gdn_tokenizer_sum(const gdn_tokenizer *tokenizer);

void gdn_tokenizer_close(gdn_tokenizer *tokenizer); /* NULL is allowed */

#endif
