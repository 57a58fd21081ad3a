#include "engine/parts.h"
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
        seq->mark_logits = malloc(V * sizeof *seq->mark_logits);
    }
    if (!seq || !seq->tokens || !seq->logits || !seq->mark_logits) {
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
    gdn_cache_clear(e->marks, seq->lane, NULL);
    gdn_kv_set_length(e->kv, seq->lane, 0);
    seq->length = seq->mark = 0;
    seq->has_logits = false;
}

void gdn_sequence_close(gdn_sequence *seq)
{
    if (!seq) return;
    if (seq->engine) {
        empty(seq);
        seq->engine->used[seq->lane] = false;
    }
    free(seq->tokens);
    free(seq->logits);
    free(seq->mark_logits);
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
    if (!status) status = gdn_cache_share(e->marks, seq->lane, e->marks, source->lane, err);
    if (status) {
        gdn_sequence_close(seq);
        return status;
    }
    gdn_kv_share(e->kv, seq->lane, source->lane, source->length);
    memcpy(seq->tokens, source->tokens, (size_t)source->length * sizeof *seq->tokens);
    seq->length = source->length;
    seq->has_logits = source->has_logits;
    if (seq->has_logits) memcpy(seq->logits, source->logits, logits_bytes);
    seq->mark = source->mark;
    if (seq->mark) memcpy(seq->mark_logits, source->mark_logits, logits_bytes);
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

/* How many of the tokens need not be computed: a length at which the sequence has the state, and the logits if the list ends
 * there.  The mark has both. */
static int reusable(const gdn_sequence *seq, const int32_t *tokens, int n)
{
    int common = 0;
    while (common < n && common < seq->length && tokens[common] == seq->tokens[common]) common++;
    if (common == seq->length && (common < n || seq->has_logits)) return common;
    return seq->mark <= common ? seq->mark : 0;
}

/* Go back to a length that `reusable` found. */
static void rewind_to(gdn_sequence *seq, int length)
{
    gdn_engine *const e = seq->engine;
    if (length == seq->length) return;
    if (length == 0) {
        empty(seq);
        return;
    }
    gdn_cache_share(e->cache, seq->lane, e->marks, seq->lane, NULL);
    gdn_kv_set_length(e->kv, seq->lane, length);
    memcpy(seq->logits, seq->mark_logits, (size_t)e->model->config.vocab_size * sizeof *seq->logits);
    seq->has_logits = true;
    seq->length = length;
}

static void mark(gdn_sequence *seq)
{
    gdn_engine *const e = seq->engine;
    gdn_cache_share(e->marks, seq->lane, e->cache, seq->lane, NULL);
    memcpy(seq->mark_logits, seq->logits, (size_t)e->model->config.vocab_size * sizeof *seq->logits);
    seq->mark = seq->length;
}

gdn_status gdn_sequence_set(gdn_sequence *seq, const int32_t *tokens, int n, gdn_progress_fn *progress, void *arg,
                            int *n_computed, gdn_error *err)
{
    if (!seq || !tokens)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sequence: sequence and tokens must not be NULL; pass both");
    gdn_status s = check_list(seq, tokens, n, err);
    if (s) return s;
    const int from = reusable(seq, tokens, n), total = n - from;
    s = gdn_kv_check_room(seq->engine->kv, seq->lane, from, n, err);
    if (s) return s;
    if (n_computed) *n_computed = total;
    rewind_to(seq, from);
    while (!s && seq->length < n) {
        const int      piece = seq->engine->piece, most = n - seq->length < piece ? n - seq->length : piece;
        const gdn_step step = {seq, tokens + seq->length, most};
        s = gdn_engine_append(seq->engine, &step, 1, seq->length + most == n, err);
        if (!s && progress && progress(arg, seq->length - from, total) && seq->length < n)
            s = gdn_fail(err, GDN_BAD_STATE, seq->length, "sequence: stopped after %d of %d tokens", seq->length, n);
    }
    if (!s) mark(seq);
    return s;
}
