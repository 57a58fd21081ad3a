#include "engine/draft.h"
#include <string.h>

gdn_status gdn_engine_check_step(const gdn_engine *e, const gdn_step *step, int i, gdn_error *err)
{
    const gdn_sequence *seq = step->sequence;
    if (!seq || !step->tokens)
        return gdn_fail(err, GDN_BAD_ARGUMENT, i, "step %d: sequence and tokens must not be NULL; pass both", i);
    if (seq->engine != e)
        return gdn_fail(err, GDN_BAD_ARGUMENT, i, "step %d: the sequence is of another engine; step it there", i);
    if (step->n < 1 || step->n > e->max_tokens - seq->length)
        return gdn_fail(err, GDN_BAD_ARGUMENT, i,
                        "step %d: %d tokens; the sequence has %d and room for %d, open the engine for more", i, step->n,
                        seq->length, e->max_tokens);
    for (int t = 0; t < step->n; t++)
        if (step->tokens[t] < 0 || step->tokens[t] >= e->model->config.vocab_size)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "step %d: token %d is %d; ids go from 0 to %d", i, t,
                            (int)step->tokens[t], e->model->config.vocab_size - 1);
    return GDN_OK;
}

/* Find the step of each lane; its checks are done on the way. */
static gdn_status sort_steps(gdn_engine *e, const gdn_step *steps, int n_steps, gdn_error *err)
{
    long long n = 0;
    memset(e->step_of, 0, (size_t)e->n_sequences * sizeof *e->step_of);
    for (int i = 0; i < n_steps; i++) {
        const gdn_status status = gdn_engine_check_step(e, &steps[i], i, err);
        if (status) return status;
        const gdn_step **const of = &e->step_of[steps[i].sequence->lane];
        if (*of)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "step %d: its sequence is that of step %d too; join the two", i,
                            (int)(*of - steps));
        *of = &steps[i];
        n += steps[i].n;
    }
    if (n > e->max_step)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "step: %lld tokens; at most %d, give the rest in further steps", n,
                        e->max_step);
    return GDN_OK;
}

/* Lay the tokens out, lane after lane; the last row of each is wanted. */
static void gather(gdn_engine *e)
{
    int n_rows = 0, n_wanted = 0;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        const gdn_step *step = e->step_of[lane];
        e->n_tokens[lane] = step ? step->n : 0;
        if (!step) continue;
        memcpy(e->tokens + n_rows, step->tokens, (size_t)step->n * sizeof *e->tokens);
        n_rows += step->n;
        e->wanted[n_wanted++] = n_rows - 1;
    }
}

/* The sequences have their tokens, and row after row of `logits` unless that is NULL. */
static void append(gdn_engine *e, const float *logits)
{
    const size_t   V = (size_t)e->model->config.vocab_size;
    const int32_t *tokens = e->tokens;
    const float   *hidden = e->hidden;
    for (int lane = 0; lane < e->n_sequences; lane++) {
        if (!e->step_of[lane]) continue;
        gdn_sequence *seq = e->step_of[lane]->sequence;
        const int     n = e->n_tokens[lane];
        memcpy(seq->tokens + seq->length, tokens, (size_t)n * sizeof *tokens);
        tokens += n;
        seq->length += n;
        if (hidden) {
            gdn_draft_follow(seq, n, hidden);
            hidden += (size_t)n * (size_t)e->model->config.hidden_size;
        }
        seq->has_logits = logits != NULL;
        if (!logits) continue;
        if (logits != seq->logits) memcpy(seq->logits, logits, V * sizeof *logits);
        logits += V;
    }
}

gdn_status gdn_engine_append(gdn_engine *e, const gdn_step *steps, int n_steps, bool wanted, gdn_error *err)
{
    gdn_status status = sort_steps(e, steps, n_steps, err);
    if (status) return status;
    gather(e);
    status = gdn_prefix_reserve(e->prefix, e->n_tokens, e->n_sequences, err);
    if (status) return status;
    float *const           logits = n_steps == 1 ? steps[0].sequence->logits : e->logits;
    const gdn_forward_args args = {.n_lanes = e->n_sequences,
                                   .n_tokens = e->n_tokens,
                                   .tokens = e->tokens,
                                   .n_wanted = wanted ? n_steps : 0,
                                   .wanted = e->wanted,
                                   .logits = logits,
                                   .hidden = e->hidden};
    status = gdn_model_forward(e->model, e->compute, e->workspace, e->cache, e->kv, &args, err);
    if (!status) append(e, wanted ? logits : NULL);
    gdn_prefix_trim(e->prefix);
    return status;
}

gdn_status gdn_engine_step(gdn_engine *e, const gdn_step *steps, int n_steps, gdn_error *err)
{
    if (!e || !steps) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "step: engine and steps must not be NULL; pass both");
    if (n_steps < 1 || n_steps > e->n_sequences)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "step: %d sequences; use 1 to %d", n_steps, e->n_sequences);
    return gdn_engine_append(e, steps, n_steps, true, err);
}
