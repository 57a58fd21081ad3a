/* text/tokenizer_parts.h - what a tokenizer is made of. */
#ifndef GDN_TEXT_TOKENIZER_PARTS_H
#define GDN_TEXT_TOKENIZER_PARTS_H
#include "text/bpe.h"
#include "text/scan.h"
#include "text/tokenizer.h"

typedef struct gdn_added {
    char    *text; /* as it is written, which for odd texts is not what it decodes to */
    size_t   n;
    uint32_t id;
} gdn_added;

struct gdn_tokenizer {
    uint64_t    sum; /* of the file */
    gdn_bpe     bpe; /* all tokens by id, and the merges */
    gdn_scanner scanner;
    bool        nfc;
    gdn_added  *added; /* [n_added], in the order of their bytes */
    size_t      n_added;
    size_t      longest;     /* bytes of the longest token of all */
    bool        starts[256]; /* whether an added token starts with this byte */
};

/* Fill a zeroed tokenizer from a tokenizer.json.  On failure it is partly filled. */
gdn_status gdn_tokenizer_read(gdn_tokenizer *tokenizer, const char *json, size_t n, const char *name, gdn_error *err);

/* The added token at the start of `text`, the longest of several; NULL if there is none. */
const gdn_added *gdn_tokenizer_match(const gdn_tokenizer *tokenizer, const char *text, size_t n);

#endif
