#include "engine/draft.h"
#include "engine/places.h"
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------------------------------------------- */

/* A lane that no sequence owns, or -1. */
static int free_lane(const gdn_engine *e)
{
    for (int lane = 0; lane < e->n_sequences; lane++)
        if (!e->used[lane]) return lane;
    return -1;
}

gdn_status gdn_sequence_open(gdn_sequence **out, gdn_engine *e, gdn_error *err)
{
    if (!out || !e) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sequence: out and engine must not be NULL; pass both");
    const int lane = free_lane(e);
    if (lane < 0)
        return gdn_fail(err, GDN_NO_SLOT, 0,
                        "sequence: all %d of the engine are open; close one, or open the engine for more",
                        e->n_sequences);
    gdn_sequence *seq = calloc(1, sizeof *seq);
    const size_t  V = (size_t)e->model->config.vocab_size;
    if (seq) {
        seq->tokens = malloc((size_t)e->max_tokens * sizeof *seq->tokens);
        seq->logits = malloc(V * sizeof *seq->logits);
    }
    if (!seq || !seq->tokens || !seq->logits || !gdn_draft_open(seq, e)) {
        gdn_sequence_close(seq);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "sequence: no memory for %d tokens", e->max_tokens);
    }
    seq->engine = e;
    seq->lane = lane;
    e->used[lane] = true;
    *out = seq;
    return GDN_OK;
}

/* Back to the empty timeline.  These lanes exist and no round is armed, so that clearing them cannot fail. */
static void empty(gdn_sequence *seq)
{
    gdn_engine *const e = seq->engine;
    gdn_cache_clear(e->cache, seq->lane, NULL);
    gdn_kv_set_length(e->kv, seq->lane, 0);
    seq->length = 0;
    seq->has_logits = false;
}

/* Keep what it holds in the index. */
static void keep(const gdn_sequence *seq)
{
    const gdn_engine *const e = seq->engine;
    const float *const      hidden = gdn_draft_settle(seq);
    gdn_prefix_keep(e->prefix, seq->tokens, seq->length, gdn_kv_list(e->kv, seq->lane), e->cache, seq->lane, hidden,
                    seq->has_logits ? seq->logits : NULL);
}

void gdn_sequence_leave(gdn_sequence *seq)
{
    if (seq->length) keep(seq);
    empty(seq);
    gdn_draft_cut(seq, 0, NULL);
    gdn_prefix_trim(seq->engine->prefix);
}

void gdn_sequence_close(gdn_sequence *seq)
{
    if (!seq) return;
    if (seq->engine) {
        gdn_sequence_leave(seq);
        gdn_engine_store(seq->engine);
        seq->engine->used[seq->lane] = false;
    }
    gdn_draft_close(seq);
    free(seq->tokens);
    free(seq->logits);
    free(seq);
}

gdn_status gdn_sequence_fork(gdn_sequence **out, gdn_sequence *source, gdn_error *err)
{
    if (!out || !source) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "fork: out and source must not be NULL; pass both");
    gdn_engine *const e = source->engine;
    gdn_sequence     *seq = NULL;
    const size_t      logits_bytes = (size_t)e->model->config.vocab_size * sizeof *seq->logits;
    gdn_status        status = gdn_sequence_open(&seq, e, err);
    if (!seq) return status;
    status = gdn_cache_share(e->cache, seq->lane, e->cache, source->lane, err);
    if (status) {
        gdn_sequence_close(seq);
        return status;
    }
    gdn_draft_settle(source);
    gdn_kv_share(e->kv, seq->lane, source->lane, source->length);
    memcpy(seq->tokens, source->tokens, (size_t)source->length * sizeof *seq->tokens);
    seq->length = source->length;
    seq->has_logits = source->has_logits;
    if (seq->has_logits) memcpy(seq->logits, source->logits, logits_bytes);
    gdn_draft_share(seq, source);
    *out = seq;
    return GDN_OK;
}

int            gdn_sequence_length(const gdn_sequence *seq) { return seq->length; }
const int32_t *gdn_sequence_tokens(const gdn_sequence *seq) { return seq->tokens; }
const float   *gdn_sequence_logits(const gdn_sequence *seq) { return seq->has_logits ? seq->logits : NULL; }

/* ---- growing ------------------------------------------------------------------------------------------------------- */

gdn_status gdn_sequence_push(gdn_sequence *seq, int32_t token, gdn_error *err)
{
    if (!seq) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "push: the sequence is NULL; pass one");
    const gdn_step step = {seq, &token, 1};
    return gdn_engine_append(seq->engine, &step, 1, true, err);
}

static gdn_status check_list(const gdn_sequence *seq, const int32_t *tokens, int n, gdn_error *err)
{
    const gdn_engine *const e = seq->engine;
    if (n < 1 || n > e->max_tokens)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n, "sequence: %d tokens; it has room for 1 to %d", n, e->max_tokens);
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= e->model->config.vocab_size)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "sequence: token %d is %d; ids go from 0 to %d", i,
                            (int)tokens[i], e->model->config.vocab_size - 1);
    return GDN_OK;
}

/* Whether the sequence begins the list, and has the logits if that is all. */
static bool continues(const gdn_sequence *seq, const int32_t *tokens, int n)
{
    return seq->length && seq->length <= n && !memcmp(seq->tokens, tokens, (size_t)seq->length * sizeof *tokens) &&
           (seq->length < n || seq->has_logits);
}

/* Make the sequence hold the most of the list that it held itself, or that is kept, or in a file.  node: what is kept of it, to stay
 * so; -1: the sequence has more. */
static void go_to(gdn_sequence *seq, int node, const int32_t *tokens, int n)
{
    gdn_engine *const e = seq->engine;
    int               common = 0;
    while (common < n && common < seq->length && tokens[common] == seq->tokens[common]) common++;
    gdn_prefix_pin(e->prefix, node);
    if (seq->length) keep(seq);
    gdn_prefix_pin(e->prefix, gdn_prefix_find(e->prefix, tokens, n));
    empty(seq);
    gdn_prefix_trim(e->prefix);
    gdn_engine_fetch(e, tokens, n);
    gdn_prefix_pin(e->prefix, -1);
    node = gdn_prefix_find(e->prefix, tokens, n);
    seq->length = gdn_prefix_depth(e->prefix, node);
    gdn_draft_cut(seq, common < seq->length ? common : seq->length, gdn_prefix_hidden(e->prefix, node));
    if (node < 0) return;
    const float *logits = gdn_prefix_restore(e->prefix, node, e->cache, seq->lane);
    memmove(seq->tokens, tokens, (size_t)seq->length * sizeof *tokens); /* the list may be the sequence's own */
    seq->has_logits = logits != NULL;
    if (logits) memcpy(seq->logits, logits, (size_t)e->model->config.vocab_size * sizeof *logits);
}

/* Compute up to n tokens, with a snapshot at each place. */
static gdn_status compute(gdn_sequence *seq, const int32_t *tokens, int n, gdn_progress_fn *progress, void *arg,
                          gdn_error *err)
{
    gdn_engine *const e = seq->engine;
    const int         from = seq->length;
    int               at[GDN_PLACES] = {n}, place = 0, n_places = n > from;
    gdn_status        s = GDN_OK;
    if (gdn_prefix_keeps(e->prefix)) n_places = gdn_places(at, tokens, n, from, e->turn);
    while (!s && place < n_places) {
        const int      most = at[place] - seq->length < e->piece ? at[place] - seq->length : e->piece;
        const gdn_step step = {seq, tokens + seq->length, most};
        s = gdn_engine_append(e, &step, 1, seq->length + most == n, err);
        if (s) break;
        if (seq->length == at[place]) {
            place++;
            keep(seq);
        }
        if (progress && progress(arg, seq->length - from, n - from) && seq->length < n)
            s = gdn_fail(err, GDN_BAD_STATE, seq->length, "sequence: stopped after %d of %d tokens", seq->length, n);
    }
    return s;
}

gdn_status gdn_sequence_set(gdn_sequence *seq, const int32_t *tokens, int n, gdn_progress_fn *progress, void *arg,
                            int *n_computed, gdn_error *err)
{
    if (!seq || !tokens)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sequence: sequence and tokens must not be NULL; pass both");
    gdn_status s = check_list(seq, tokens, n, err);
    if (s) return s;
    gdn_engine *const e = seq->engine;
    const int         node = gdn_prefix_find(e->prefix, tokens, n);
    const bool        has_most = continues(seq, tokens, n) && seq->length >= gdn_prefix_depth(e->prefix, node);
    const bool        goes_on = has_most && !gdn_engine_stores_more(e, tokens, n, seq->length);
    s = gdn_kv_check_room(e->kv, seq->lane, goes_on ? gdn_kv_list(e->kv, seq->lane) : gdn_prefix_pages(e->prefix, node),
                          goes_on ? seq->length : gdn_prefix_depth(e->prefix, node), n, err);
    if (s) return s;
    gdn_prefix_tick(e->prefix);
    if (!goes_on) go_to(seq, has_most ? -1 : node, tokens, n);
    if (n_computed) *n_computed = n - seq->length;
    return compute(seq, tokens, n, progress, arg, err);
}
