/* engine.h - a loaded model with its tokenizer and chat template, and sequences: each one timeline of tokens. */
#ifndef GDN_ENGINE_ENGINE_H
#define GDN_ENGINE_ENGINE_H
#include "gdn/delta.h"
#include "text/decode.h"
#include "text/tokenizer.h"
#include <jansson.h>
#include <time.h>

typedef struct gdn_engine   gdn_engine;
typedef struct gdn_sequence gdn_sequence;

/* Thread rules: an engine and its sequences serve one call at a time. */

typedef struct gdn_engine_options {
    const char *model;       /* a folder with config.json, safetensors and tokenizer.json */
    const char *level;       /* CPU level, or NULL for the best */
    int         n_threads;   /* 0: what affinity and the cgroup allow */
    int         n_sequences; /* that may be open at once, 1 or more */
    int         max_tokens;  /* of a sequence; 0: what the model was made for, at most 32768 */
    gdn_type    kv_type;     /* of keys and values */
} gdn_engine_options;

/* Load everything.  Errors are those of the files' readers, named in the message.  Free with gdn_engine_close, after its
 * sequences. */
gdn_status gdn_engine_open(gdn_engine **out, const gdn_engine_options *options, gdn_error *err);
void       gdn_engine_close(gdn_engine *engine); /* NULL is allowed */

const gdn_tokenizer *gdn_engine_tokenizer(const gdn_engine *engine);
const gdn_compute   *gdn_engine_compute(const gdn_engine *engine);
int gdn_engine_vocab_size(const gdn_engine *engine); /* of the logits; ids past the tokenizer's are padding */
int gdn_engine_max_tokens(const gdn_engine *engine);
int gdn_engine_is_stop(const gdn_engine *engine, int32_t id);
int gdn_engine_has_template(const gdn_engine *engine);

/* Sampling defaults of the model's makers (generation_config.json). */
typedef struct gdn_engine_defaults {
    double temperature, top_p, min_p, repetition_penalty; /* temperature 0: greedy */
    int    top_k;
} gdn_engine_defaults;
gdn_engine_defaults gdn_engine_default_sampling(const gdn_engine *engine);

/* Append the ids of the chat that the model's template makes of `vars`: an object with messages, and perhaps tools,
 * add_generation_prompt, enable_thinking and whatever else the template knows.  What the template wrote may hold control tokens,
 * what came out of the variables may not.  *thinks, when not NULL, says whether the prompt ends inside a think block. */
gdn_status gdn_engine_encode_chat(const gdn_engine *engine, const json_t *vars, const struct tm *now, gdn_ids *ids,
                                  int *thinks, gdn_error *err);

/* ---- sequences ---------------------------------------------------------------------------------------------------- */

/* An empty timeline.  Free with gdn_sequence_close. */
gdn_status gdn_sequence_open(gdn_sequence **out, gdn_engine *engine, gdn_error *err);
void       gdn_sequence_close(gdn_sequence *sequence); /* NULL is allowed */

/* Called while a prompt is read: `done` of `total` new tokens; a non-zero return stops after this piece. */
typedef int gdn_progress_fn(void *arg, int done, int total);

/* Make the sequence hold these n >= 1 tokens; the caller gives the whole list.  When what it holds is the beginning of the list,
 * only the rest is computed (nothing when it is all of it), else all of it.  *n_computed, when not NULL, counts what was.
 * BAD_ARGUMENT: too many tokens, or an id out of range; the sequence is as it was.  BAD_STATE: stopped by progress; it holds what
 * was done. */
gdn_status gdn_sequence_set(gdn_sequence *sequence, const int32_t *tokens, int n, gdn_progress_fn *progress, void *arg,
                            int *n_computed, gdn_error *err);

/* Append one token. */
gdn_status gdn_sequence_push(gdn_sequence *sequence, int32_t token, gdn_error *err);

int            gdn_sequence_length(const gdn_sequence *sequence);
const int32_t *gdn_sequence_tokens(const gdn_sequence *sequence); /* borrowed until the next call on it */

/* Logits [vocab] after the last token, until the next call on the sequence; NULL when it is empty. */
const float *gdn_sequence_logits(const gdn_sequence *sequence);

#endif
