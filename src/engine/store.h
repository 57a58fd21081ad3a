/* store.h - a folder of records: what of the prefix index leaves memory or outlives the process.
 *
 * The name of a file says all that looking for it needs: gdn-BINDING-FROM-TO-LOGITS-TOKENS, numbers in hexadecimal, TOKENS a hash of
 * the first TO ids.  A record with FROM > 0 is of use only together with one whose TO is that. Several processes may use one
 * folder: files are written whole or not at all, and one that is gone or damaged is a miss. */
#ifndef GDN_ENGINE_STORE_H
#define GDN_ENGINE_STORE_H
#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gdn_store gdn_store;

/* The folder is made if it is missing; its files are listed, nothing is read.  All files of records there together keep to the
 * budget, whatever their binding: the ones that were used longest ago are removed.
 * IO: it cannot be made or listed.  Free with gdn_store_close. */
gdn_status gdn_store_open(gdn_store **out, const char *folder, long long budget_bytes, int max_tokens, gdn_error *err);

/* Whose records are looked for and written from here on; until then there are none. */
void gdn_store_bind(gdn_store *store, uint64_t binding);
void gdn_store_close(gdn_store *store); /* NULL is allowed */

typedef struct gdn_stored {
    uint64_t  binding, hash;
    int       from, to;
    bool      has_logits;
    long long bytes, used;
} gdn_stored;

/* A number of a record is good until records are prepared or dropped. */

/* The first record of a chain that leads from `above` tokens or fewer, which the caller has, to the deepest record that begins the
 * list and goes beyond them; -1: none.  *is_last: it is that one; else look again from where it ends.  One at the very end of the
 * list counts only with logits. */
int               gdn_store_find(gdn_store *store, const int32_t *tokens, int n, int above, bool *is_last);
const gdn_stored *gdn_store_get(const gdn_store *store, int record);

/* The path of a record, borrowed until the next call; it is used now. */
const char *gdn_store_use(gdn_store *store, int record);

/* The record of exactly these tokens, or -1. */
int gdn_store_exact(const gdn_store *store, const int32_t *tokens, int n);

/* Room for a record of so many bytes is made, and its path returned, borrowed until the next call; NULL: it can have no room. */
const char *gdn_store_prepare(gdn_store *store, const int32_t *tokens, int from, int to, bool has_logits,
                              long long bytes);
/* What was prepared last is written. */
void gdn_store_written(gdn_store *store);

/* Forget a record; of the list that was looked for last, those that end at `to` tokens or later.  With `remove`, files go too. */
void gdn_store_drop(gdn_store *store, int record, bool remove);
void gdn_store_drop_from(gdn_store *store, int to, bool remove);

#endif
