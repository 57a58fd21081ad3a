/* What outlives the process: single sequences in files, and the prefix index in a folder. */
#include "base/checksum.h"
#include "engine/draft.h"
#include "state/cache.h"
#include "state/snapshot.h"
#include "text/tokenizer.h"
#include <stdlib.h>
#include <string.h>

enum { NUMERICS = 3 }; /* goes up whenever a forward gives other bits than before */

/* A fine-tuned model has the shapes and names of the one it comes from, so the weights themselves are read once. */
static uint64_t binding_of(const gdn_engine *e)
{
    const uint64_t sums[] = {NUMERICS,
                             (uint64_t)gdn_kv_type(e->kv),
                             e->by_mtp,
                             e->model->config.sum,
                             e->tokenizer ? gdn_tokenizer_sum(e->tokenizer) : 0,
                             gdn_checksum(e->model->weights,
                                          gdn_model_bytes(&e->model->config, !e->model->embed, e->model->has_mtp))};
    const uint64_t binding = gdn_checksum(sums, sizeof sums);
    return binding ? binding : 1;
}

gdn_record gdn_engine_record(gdn_engine *e)
{
    if (!e->binding) e->binding = binding_of(e);
    return (gdn_record){.binding = e->binding,
                        .kv = e->kv,
                        .slot_bytes = gdn_pool_slot_bytes(e->pool),
                        .hidden = e->hidden, /* where it is read to */
                        .n_logits = e->model->config.vocab_size,
                        .n_hidden = e->by_mtp ? e->model->config.hidden_size : 0};
}

/* ---- reading into the lanes that are there for it --------------------------------------------------------------------------- */

static void forget_read(gdn_engine *e)
{
    gdn_cache_clear(e->read, 0, NULL);
    gdn_kv_set_length(e->kv, e->n_sequences, 0);
}

/* Where records of a chain, or the one of a file, are read to. */
typedef struct reading {
    int    to;
    float *logits; /* [V] */
    bool   has_logits;
} reading;

static gdn_status read_state(gdn_engine *e, gdn_record_file *in, gdn_record *r, gdn_error *err)
{
    const gdn_status s = gdn_lane_fill(&r->slot, e->read, 0, in->to, err);
    return s ? s : gdn_record_read_state(in, r, err);
}

/* Read one record behind what the lane has; its tokens go to e->list, its state is read if logits have room.  After a failure the
 * lane is to be forgotten. */
static gdn_status read_record(gdn_engine *e, const char *path, reading *into, gdn_error *err)
{
    const int       lane = e->n_sequences;
    gdn_record      r = gdn_engine_record(e);
    gdn_record_file in;
    gdn_status      s = gdn_record_open(&in, &r, path, err);
    if (s) return s;
    const int kept = in.from / GDN_PAGE * GDN_PAGE;
    if (in.to > e->max_tokens)
        s = gdn_fail(err, GDN_BAD_ARGUMENT, in.to,
                     "state: %d tokens; a sequence has room for %d, open the engine for more", in.to, e->max_tokens);
    else if (gdn_kv_length(e->kv, lane) < kept)
        s = gdn_fail(err, GDN_BAD_FILE, 0, "state: the file continues another one; name a file of gdn_sequence_save");
    if (!s) {
        gdn_kv_set_length(e->kv, lane, kept);
        e->more[lane] = in.to - kept;
        s = gdn_prefix_reserve(e->prefix, e->more, lane + 1, err);
        e->more[lane] = 0;
    }
    r.from = in.from;
    r.to = in.to;
    r.tokens = e->list;
    r.pages = gdn_kv_list(e->kv, lane);
    r.logits = into->logits;
    if (!s) s = gdn_record_read_list(&in, &r, err);
    if (!s && into->logits) s = read_state(e, &in, &r, err);
    gdn_file_close(&in.file);
    if (s) return s;
    gdn_kv_set_length(e->kv, lane, in.to);
    into->to = in.to;
    into->has_logits = in.has_logits;
    return GDN_OK;
}

/* ---- a file ------------------------------------------------------------------------------------------------------------------ */

gdn_record gdn_sequence_record(const gdn_sequence *seq)
{
    gdn_engine *const e = seq->engine;
    gdn_record        r = gdn_engine_record(e);
    r.to = seq->length;
    r.tokens = seq->tokens;
    r.pages = gdn_kv_list(e->kv, seq->lane);
    r.slot = gdn_pool_slot(e->pool, e->cache->lanes[seq->lane].cur);
    r.logits = seq->has_logits ? seq->logits : NULL;
    r.hidden = gdn_draft_settle(seq);
    return r;
}

gdn_status gdn_sequence_save(const gdn_sequence *seq, const char *path, gdn_error *err)
{
    if (!seq || !path) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "save: sequence and path must not be NULL; pass both");
    if (!seq->length) return gdn_fail(err, GDN_BAD_STATE, 0, "save: the sequence is empty; set it first");
    const gdn_record r = gdn_sequence_record(seq);
    return gdn_record_write(&r, path, GDN_DURABLE, err);
}

gdn_status gdn_sequence_load(gdn_sequence *seq, const char *path, gdn_error *err)
{
    if (!seq || !path) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "load: sequence and path must not be NULL; pass both");
    gdn_engine *const e = seq->engine;
    const size_t      logits_bytes = (size_t)e->model->config.vocab_size * sizeof *seq->logits;
    reading           got = {.logits = malloc(logits_bytes)};
    gdn_status        s = GDN_OK;
    if (!got.logits) s = gdn_fail(err, GDN_NO_MEMORY, 0, "load: no memory for the logits");
    if (!s) s = read_record(e, path, &got, err);
    if (!s) {
        gdn_sequence_leave(seq);
        gdn_cache_share(e->cache, seq->lane, e->read, 0, NULL);
        gdn_kv_share(e->kv, seq->lane, e->n_sequences, got.to);
        memcpy(seq->tokens, e->list, (size_t)got.to * sizeof *seq->tokens);
        seq->length = got.to;
        gdn_draft_cut(seq, 0, e->hidden);
        seq->has_logits = got.has_logits;
        if (got.has_logits) memcpy(seq->logits, got.logits, logits_bytes);
    }
    forget_read(e);
    free(got.logits);
    return s;
}

/* ---- the folder ---------------------------------------------------------------------------------------------------------------- */

/* Read the next record on the way into the list.  Room for it may put others into the folder and out of it, so that nothing is known
 * of the folder afterwards.  Not OK: it is no good, and forgotten unless there was no room. */
static gdn_status read_next(gdn_engine *e, const int32_t *tokens, int record, reading *got)
{
    const int        to = gdn_store_get(e->store, record)->to;
    const gdn_status s = read_record(e, gdn_store_use(e->store, record), got, NULL);
    if (s == GDN_NO_SLOT || s == GDN_NO_MEMORY) return s;
    if (!s && got->to == to && !memcmp(e->list, tokens, (size_t)to * sizeof *tokens)) return GDN_OK;
    gdn_store_drop_from(e->store, to,
                        s != GDN_IO); /* what its name says is not what it holds, nor do others go on from it */
    return GDN_BAD_FILE;
}

/* Read what leads furthest into the list, and keep where it ends.  BAD_FILE: a record was no good, look again. */
static gdn_status fetch(gdn_engine *e, const int32_t *tokens, int n, float *logits)
{
    const int  node = gdn_prefix_find(e->prefix, tokens, n);
    reading    got = {.to = gdn_prefix_depth(e->prefix, node)};
    bool       is_last = false;
    gdn_status s = GDN_OK;
    gdn_kv_attach(e->kv, e->n_sequences, gdn_prefix_pages(e->prefix, node), got.to);
    while (!s && !is_last) {
        const int record = gdn_store_find(e->store, tokens, n, got.to, &is_last);
        if (record < 0) return GDN_OK;
        got.logits = is_last ? logits : NULL; /* of those before the last only keys and values are wanted */
        s = read_next(e, tokens, record, &got);
    }
    if (s) return s;
    gdn_prefix_pin(e->prefix, -1); /* this goes further */
    gdn_prefix_keep(e->prefix, tokens, got.to, gdn_kv_list(e->kv, e->n_sequences), e->read, 0, e->hidden,
                    got.has_logits ? logits : NULL);
    const int kept = gdn_prefix_find(e->prefix, tokens, n);
    gdn_prefix_pin(e->prefix, kept);
    if (gdn_prefix_depth(e->prefix, kept) == got.to) gdn_prefix_set_stored(e->prefix, kept);
    return GDN_OK;
}

bool gdn_engine_stores_more(gdn_engine *e, const int32_t *tokens, int n, int than)
{
    bool is_last;
    return e->store && gdn_prefix_keeps(e->prefix) && gdn_store_find(e->store, tokens, n, than, &is_last) >= 0;
}

void gdn_engine_fetch(gdn_engine *e, const int32_t *tokens, int n)
{
    if (!e->store || !gdn_prefix_keeps(e->prefix)) return;
    float     *logits = malloc((size_t)e->model->config.vocab_size * sizeof *logits);
    gdn_status s = logits ? GDN_BAD_FILE : GDN_NO_MEMORY;
    while (s == GDN_BAD_FILE) {
        s = fetch(e, tokens, n, logits);
        forget_read(e);
    }
    gdn_prefix_trim(e->prefix);
    free(logits);
}

/* Whether the records that lead to these tokens are all there; with `use` they are used now: they must not be removed before one
 * that goes on from there. */
static bool has_chain(gdn_engine *e, const int32_t *tokens, int to, bool use)
{
    while (to) {
        const int i = gdn_store_exact(e->store, tokens, to);
        if (i < 0) return false;
        if (use) gdn_store_use(e->store, i);
        to = gdn_store_get(e->store, i)->from;
    }
    return true;
}

/* Have a record of a snapshot in the folder, if there can be room for it.  Not OK: it cannot be written. */
static gdn_status store(gdn_engine *e, int node)
{
    gdn_record r = gdn_engine_record(e);
    gdn_prefix_describe(e->prefix, node, &r);
    if (!has_chain(e, r.tokens, r.to, false)) {
        const int orphan = gdn_store_exact(e->store, r.tokens, r.to);
        if (orphan >= 0) gdn_store_drop(e->store, orphan, true);
        if (!has_chain(e, r.tokens, r.from, true)) r.from = 0;
        const char *path = gdn_store_prepare(e->store, r.tokens, r.from, r.to, r.logits != NULL, gdn_record_bytes(&r));
        const gdn_status s = path ? gdn_record_write(&r, path, GDN_LOSABLE, NULL) : GDN_OK;
        if (s) return s;
        if (path) gdn_store_written(e->store);
    }
    gdn_prefix_set_stored(e->prefix, node);
    return GDN_OK;
}

/* The one before it goes first if it is not there, so that keys and values that many share are written once. */
void gdn_engine_spill(void *engine, int node)
{
    const gdn_engine *e = engine;
    const int         before = gdn_prefix_unstored_before(e->prefix, node);
    if (before < 0 || !store(engine, before)) store(engine, node);
}

void gdn_engine_store(gdn_engine *e)
{
    if (!e->store || !e->prefix) return;
    for (int node; (node = gdn_prefix_unstored(e->prefix)) >= 0;)
        if (store(e, node)) return;
}
