/* record.h - the file of one snapshot: tokens, keys and values, the state, what MTP starts from, and perhaps the logits. */
#ifndef GDN_ENGINE_RECORD_H
#define GDN_ENGINE_RECORD_H
#include "base/file.h"
#include "state/kv.h"

typedef struct gdn_record {
    uint64_t       binding;  /* names the model and how it computes: what others wrote is of no use */
    int            from, to; /* 0 <= from < to: a record has all tokens, but only the pages from that of `from` on */
    int32_t       *tokens;   /* [to] */
    gdn_kv        *kv;
    const int     *pages; /* of positions 0..to-1 */
    unsigned char *slot;
    size_t         slot_bytes;
    float         *logits, *hidden; /* [n_logits], or NULL; [n_hidden]: what the model put out at the last token */
    int            n_logits, n_hidden;
} gdn_record;

/* Write it as gdn_file_replace does: the old file, or the new one whole.  IO; NO_MEMORY. */
gdn_status gdn_record_write(const gdn_record *record, const char *path, gdn_durability durability, gdn_error *err);

long long gdn_record_bytes(const gdn_record *record); /* of its file */

/* Whether a file may be replaced by a record: it begins like one, or holds nothing. */
bool gdn_record_is(const char *path);

typedef struct gdn_record_file {
    gdn_file file;
    int      from, to;
    bool     has_logits;
    uint64_t list_sum, state_sum;
} gdn_record_file;

/* Open a file and check its header, its length, and that it goes with `like` (binding, kv, slot_bytes, n_hidden and n_logits of
 * it).  IO; BAD_FILE: damaged, or no record; MISMATCH: of another model or setting.  Close with gdn_file_close(&in->file). */
gdn_status gdn_record_open(gdn_record_file *in, const gdn_record *like, const char *path, gdn_error *err);

/* Read the tokens and the pages, and then the state, hidden and the logits, into what `into` points to (logits: room for them if
 * the file has any).  IO, BAD_FILE: what was written there is not to be used. */
gdn_status gdn_record_read_list(gdn_record_file *in, const gdn_record *into, gdn_error *err);
gdn_status gdn_record_read_state(gdn_record_file *in, const gdn_record *into, gdn_error *err);

#endif
