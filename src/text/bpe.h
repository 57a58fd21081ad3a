/* text/bpe.h - byte-pair encoding: the ordinary tokens, their merges, and a piece of text as tokens. */
#ifndef GDN_TEXT_BPE_H
#define GDN_TEXT_BPE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GDN_BPE_MAX_TOKENS = 1 << 21, /* ids are below it */
    GDN_BPE_MAX_BYTES = 1 << 28,  /* of the texts of all tokens */
};

enum {                           /* flags of a token; none: no token has this id */
       GDN_TOKEN_VOCABULARY = 1, /* of the vocabulary */
       GDN_TOKEN_ORDINARY = 2,   /* and written in characters that stand for bytes, so that merges can make it */
       GDN_TOKEN_ADDED = 4,      /* stands for its whole text, outside the merges */
       GDN_TOKEN_SPECIAL = 8,    /* added, and a control token */
};

typedef struct gdn_bpe_token {
    uint32_t at, n; /* its bytes, bpe.bytes[at .. at+n) */
    uint32_t flags;
} gdn_bpe_token;

typedef struct gdn_bpe_slot { /* of the table of texts */
    uint32_t tag, id;         /* bits of the text's hash; UINT32_MAX: empty */
} gdn_bpe_slot;

typedef struct gdn_bpe_merge {
    int32_t  left, right, made;
    uint32_t rank; /* lower ranks merge first; UINT32_MAX: an empty place of the table */
} gdn_bpe_merge;

typedef struct gdn_bpe {
    char          *bytes;
    gdn_bpe_token *tokens; /* [n_tokens], by id */
    gdn_bpe_slot  *slots;  /* [n_slots] */
    gdn_bpe_merge *merges; /* while loading a list, then a table of n_places */
    atomic_uchar  *whole;  /* [n_tokens]: see gdn_bpe_encode */
    size_t         n_bytes, bytes_capacity, n_tokens, tokens_capacity, n_slots, n_merges, merges_capacity, n_places;
    size_t         longest; /* bytes of the longest ordinary token */
    int32_t        of_byte[256];
} gdn_bpe;

/* ---- loading: all tokens, gdn_bpe_index, all merges, gdn_bpe_finish ---------------------------------------------- */

typedef enum gdn_bpe_result {
    GDN_BPE_OK,
    GDN_BPE_NO_MEMORY, /* or more than the limits above */
    GDN_BPE_TAKEN,     /* the id, or the text, is another token's */
    GDN_BPE_ABSENT,    /* a part of a merge, or what it makes, is no ordinary token */
} gdn_bpe_result;

/* Zeroes start a gdn_bpe; gdn_bpe_close ends it in any state. */
void gdn_bpe_close(gdn_bpe *bpe);

/* Token `id` (below GDN_BPE_MAX_TOKENS) has this text.  TAKEN: the id has one already. */
gdn_bpe_result gdn_bpe_add(gdn_bpe *bpe, uint32_t id, const char *text, size_t n, unsigned flags);

/* Make the ordinary tokens findable.  TAKEN: two have the same text, *id being one; ABSENT: byte *id is no token. */
gdn_bpe_result gdn_bpe_index(gdn_bpe *bpe, uint32_t *id);

/* The ordinary token with this text, or -1. */
int32_t gdn_bpe_find(const gdn_bpe *bpe, const char *text, size_t n);

/* The next merge, of the first n_left bytes of `text` with the other n - n_left.  The rank is the count of merges before it;
 * a pair that comes again takes the later rank. */
gdn_bpe_result gdn_bpe_merge_add(gdn_bpe *bpe, const char *text, size_t n_left, size_t n);
gdn_bpe_result gdn_bpe_finish(gdn_bpe *bpe);

/* ---- use --------------------------------------------------------------------------------------------------------- */

/* Memory for pieces of any length; zero it before first use, and free with free(scratch.symbols), free(scratch.heap). */
typedef struct gdn_bpe_scratch {
    struct gdn_bpe_symbol *symbols;
    uint64_t              *heap;
    size_t                 capacity;
} gdn_bpe_scratch;

/* Write the tokens of a piece of n >= 1 bytes to ids[n] and return their count, 0 without memory.  The merge of lowest rank
 * goes first, the leftmost of equals; n log n.  Whether a token's own text encodes as that token is remembered when it is
 * first met, in `whole`: 0 not known, 1 yes, 2 no; threads that find out together write the same. */
size_t gdn_bpe_encode(const gdn_bpe *bpe, const char *piece, size_t n, int32_t *ids, gdn_bpe_scratch *scratch);

#endif
