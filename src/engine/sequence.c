#include "engine/engine.h"
#include "engine/parts.h"
#include <string.h>

struct gdn_sequence {
    gdn_engine *engine;
    gdn_cache  *cache; /* one lane: the recurrent state */
    gdn_kv     *kv;    /* one lane: keys and values; both move together */
    int32_t    *tokens;
    int         length;
    float      *logits; /* [V], of the last token */
};

gdn_status gdn_sequence_open(gdn_sequence **out, gdn_engine *e, gdn_error *err)
{
    gdn_sequence *seq = calloc(1, sizeof *seq);
    if (!seq) return gdn_fail(err, GDN_NO_MEMORY, 0, "sequence: no memory");
    const gdn_model_config *c = &e->model->config;
    const gdn_kv_config     kv = {.n_layers = e->model->n_attention_layers,
                                  .n_heads = c->n_kv_heads,
                                  .dim = c->head_dim,
                                  .type = e->kv_type,
                                  .n_pages = (e->max_tokens + GDN_PAGE - 1) / GDN_PAGE,
                                  .n_lanes = 1,
                                  .max_positions = e->max_tokens};
    seq->engine = e;
    seq->tokens = malloc((size_t)e->max_tokens * sizeof *seq->tokens);
    seq->logits = malloc((size_t)c->vocab_size * sizeof *seq->logits);
    gdn_status s = GDN_OK;
    if (!seq->tokens || !seq->logits)
        s = gdn_fail(err, GDN_NO_MEMORY, 0, "sequence: no memory for %d tokens", e->max_tokens);
    if (!s) s = gdn_cache_open(&seq->cache, e->pool, 1, 0, err);
    if (!s) s = gdn_cache_add(seq->cache, 1, 0, err);
    if (!s) s = gdn_kv_open(&seq->kv, &kv, err);
    if (s) {
        gdn_sequence_close(seq);
        return s;
    }
    *out = seq;
    return GDN_OK;
}

void gdn_sequence_close(gdn_sequence *seq)
{
    if (!seq) return;
    gdn_kv_close(seq->kv);
    gdn_cache_close(seq->cache);
    free(seq->tokens);
    free(seq->logits);
    free(seq);
}

int            gdn_sequence_length(const gdn_sequence *seq) { return seq->length; }
const int32_t *gdn_sequence_tokens(const gdn_sequence *seq) { return seq->tokens; }
const float   *gdn_sequence_logits(const gdn_sequence *seq) { return seq->length ? seq->logits : NULL; }

/* Back to the empty timeline. */
static gdn_status restart(gdn_sequence *seq, gdn_error *err)
{
    gdn_status s = gdn_cache_filter(seq->cache, NULL, 0, err);
    if (!s) s = gdn_cache_add(seq->cache, 1, 0, err);
    if (s) return s;
    gdn_kv_set_length(seq->kv, 0, 0);
    seq->length = 0;
    return GDN_OK;
}

/* Compute n <= GDN_PIECE tokens; the logits are those after the last. */
static gdn_status compute(gdn_sequence *seq, const int32_t *tokens, int n, bool logits, gdn_error *err)
{
    const int              last = n - 1;
    const gdn_forward_args args = {
        .n_lanes = 1, .n_tokens = &n, .tokens = tokens, .n_wanted = logits, .wanted = &last, .logits = seq->logits};
    gdn_engine *const e = seq->engine;
    const gdn_status  s = gdn_model_forward(e->model, e->compute, e->workspace, seq->cache, seq->kv, &args, err);
    if (s) return s;
    memmove(seq->tokens + seq->length, tokens, (size_t)n * sizeof *tokens);
    seq->length += n;
    return GDN_OK;
}

static gdn_status check(const gdn_sequence *seq, const int32_t *tokens, int n, gdn_error *err)
{
    if (n < 1 || n > seq->engine->max_tokens)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n, "sequence: %d tokens; it has room for 1 to %d", n,
                        seq->engine->max_tokens);
    for (int i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= seq->engine->model->config.vocab_size)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "sequence: token %d is %d; ids go from 0 to %d", i,
                            (int)tokens[i], seq->engine->model->config.vocab_size - 1);
    return GDN_OK;
}

gdn_status gdn_sequence_set(gdn_sequence *seq, const int32_t *tokens, int n, gdn_progress_fn *progress, void *arg,
                            int *n_computed, gdn_error *err)
{
    gdn_status s = check(seq, tokens, n, err);
    if (s) return s;
    const bool begins = seq->length <= n && memcmp(seq->tokens, tokens, (size_t)seq->length * sizeof *tokens) == 0;
    if (!begins) s = restart(seq, err);
    const int from = seq->length, total = n - from;
    if (n_computed) *n_computed = total;
    while (!s && seq->length < n) {
        const int piece = n - seq->length < GDN_PIECE ? n - seq->length : GDN_PIECE;
        s = compute(seq, tokens + seq->length, piece, seq->length + piece == n, err);
        if (!s && progress && progress(arg, seq->length - from, total) && seq->length < n)
            s = gdn_fail(err, GDN_BAD_STATE, seq->length, "sequence: stopped after %d of %d tokens", seq->length, n);
    }
    return s;
}

gdn_status gdn_sequence_push(gdn_sequence *seq, int32_t token, gdn_error *err)
{
    if (seq->length == seq->engine->max_tokens)
        return gdn_fail(err, GDN_BAD_ARGUMENT, seq->length,
                        "sequence: it is full with %d tokens; open the engine for more", seq->length);
    return compute(seq, &token, 1, true, err);
}
