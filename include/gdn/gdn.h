/* gdn/gdn.h - a loaded model, and texts made with it.
 *
 *     engine     a model, its tokenizer and its chat template, and room for a number of sequences
 *     sequence   one timeline of tokens, with the logits after its last
 *     sampler, stop strings, output parser    from logits to a token, and from tokens to an answer; independent of each other
 *
 * The law: the logits of a sequence depend on its tokens alone, bit for bit: not on how they were cut into calls, the other
 * sequences of a step, what the sequence held before, forks, the thread count or the CPU level.
 *
 * Letters   V  logits of a token (gdn_engine_vocab_size)
 * Strings   End with a NUL unless a length stands beside them; texts are bytes, UTF-8 where they are whole.
 * Threads   An engine and its sequences serve one call at a time.  What gdn_engine_tokenizer returns does not change, and
 *           neither does what gdn_engine_encode_chat reads: any threads may use both, also during other calls.  Samplers, stop
 *           strings, decoders and output parsers serve one call at a time each.
 * Memory    gdn_engine_step and what stands on it (push, set), gdn_engine_verify, gdn_sampler_pick, gdn_stops_put and
 *           gdn_decoder_put allocate nothing; of an engine with cache_dir only the last three.
 * Errors    A call that fails changes nothing, but where it is said.  *out is written on success only.
 * Floats    Results do not depend on the caller's floating-point mode, and calls put it back.
 * Structs   Whoever fills one sets the rest to zero, as C does with the fields that an initialiser leaves out: zero stands for
 *           the default, also in fields that later versions add at the end. */
#ifndef GDN_GDN_H
#define GDN_GDN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "gdn/delta.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the engine --------------------------------------------------------------------------------------------------- */

typedef struct gdn_engine gdn_engine;

/* So much of the weights has been read. */
typedef void gdn_load_progress_fn(void *arg, size_t done_bytes, size_t total_bytes);

/* How an engine guesses what comes next, so that one pass over the weights can make several tokens (gdn_engine_verify). */
typedef enum gdn_drafter {
    GDN_DRAFTER_OFF = 0,    /* not at all */
    GDN_DRAFTER_AUTO = 1,   /* in both ways, as far as the model has an MTP layer */
    GDN_DRAFTER_LOOKUP = 2, /* as the text went on where it stood like this before */
    GDN_DRAFTER_MTP = 3     /* as the model's MTP layer says */
} gdn_drafter;

enum { GDN_DRAFTS_MAX = 16 }; /* of a sequence in a pass */

typedef struct gdn_engine_options {
    const char *model;       /* a folder with config.json, safetensors and tokenizer.json */
    const char *level;       /* CPU level as in gdn_compute_open; NULL: the best */
    int         n_threads;   /* 1..256; 0: what affinity and the cgroup quota allow */
    int         n_sequences; /* that may be open at once: 1..4096; 0: 1 */
    int         max_tokens;  /* of a sequence; 0: what the model was made for, at most 32768 */
    gdn_type    kv_type;     /* of keys and values: GDN_F32 is 0 */
    long long   kv_tokens;   /* tokens of all sequences together that keys and values have room for, shared ones counted
                                   * once; 0: n_sequences * max_tokens */
    gdn_load_progress_fn *progress; /* NULL is allowed */
    void                 *progress_arg;
    long long             reuse_bytes; /* of the prefix index, see gdn_sequence_set; 0: 1 GiB; -1: nothing is kept */
    const char *cache_dir;   /* folder for what reuse_bytes has no room for, and for the next process; NULL: none */
    long long   cache_bytes; /* of cache_dir; 0: 8 GiB */
    gdn_drafter drafter;
    int         n_drafts; /* most drafts of a sequence in a pass that room is made for, 0..GDN_DRAFTS_MAX; 0: 8 with a
                                     * drafter, else none */
} gdn_engine_options;

/* Load everything, the weights last: what is wrong with options, JSON files, tokenizer or cache_dir is said before they are read.
 * All memory that steps need is taken here and in gdn_sequence_open; what is not used stays untouched.
 * IO, BAD_FILE, UNSUPPORTED: a file, the model or the CPU level, as the message says; BAD_ARGUMENT: an option out of its range;
 * NO_MEMORY.  Free with gdn_engine_close, after its sequences. */
gdn_status gdn_engine_open(gdn_engine **out, const gdn_engine_options *options, gdn_error *err);
void       gdn_engine_close(gdn_engine *engine); /* NULL is allowed */

const gdn_compute *gdn_engine_compute(const gdn_engine *engine);    /* for gdn_compute_level and gdn_compute_threads */
int                gdn_engine_vocab_size(const gdn_engine *engine); /* V */
int gdn_engine_n_usable(const gdn_engine *engine); /* ids from here to V-1 are padding rows, not tokens */
int gdn_engine_n_sequences(const gdn_engine *engine);
int gdn_engine_max_tokens(const gdn_engine *engine);          /* of a sequence */
int gdn_engine_max_step(const gdn_engine *engine);            /* tokens of a gdn_engine_step */
int gdn_engine_n_drafts(const gdn_engine *engine);            /* most drafts of a sequence in a pass */
int gdn_engine_is_stop(const gdn_engine *engine, int32_t id); /* 1: the token ends a text */
int gdn_engine_has_template(const gdn_engine *engine);

/* ---- text to tokens ----------------------------------------------------------------------------------------------- */

/* Makes ids as the Hugging Face tokenizers library does.  Bytes that are not UTF-8 are taken as U+FFFD, one for each maximal
 * part that is not. */
typedef struct gdn_tokenizer gdn_tokenizer;

const gdn_tokenizer *gdn_engine_tokenizer(const gdn_engine *engine); /* borrowed */

/* One more than the highest id of a token. */
int32_t gdn_tokenizer_size(const gdn_tokenizer *tokenizer);

/* The added token that is written like this ("<|im_end|>"), else the ordinary token of these bytes, else -1. */
int32_t gdn_tokenizer_find(const gdn_tokenizer *tokenizer, const char *text, size_t n);

/* The bytes of a token, which need not be whole characters, and their count; NULL and 0 if no token has this id.  Borrowed
 * from the tokenizer and not terminated. */
const char *gdn_tokenizer_bytes(const gdn_tokenizer *tokenizer, int32_t id, size_t *n);

/* Whether the id is that of an added token; of one that is special, which decoding may leave out. */
bool gdn_tokenizer_is_added(const gdn_tokenizer *tokenizer, int32_t id);
bool gdn_tokenizer_is_special(const gdn_tokenizer *tokenizer, int32_t id);

/* A stretch of a text.  Only what is written in trusted stretches can be an added token: a chat template is trusted, what a
 * user wrote is not, and a "<|im_end|>" in it is encoded as those ten characters. */
typedef struct gdn_span {
    const char *text; /* NULL is allowed when n is 0 */
    size_t      n;
    bool        trusted;
} gdn_span;

/* Ids that grow in memory of malloc.  Zero it before first use; free with free(ids.id). */
typedef struct gdn_ids {
    int32_t *id;
    size_t   n, capacity;
} gdn_ids;

/* Append the ids of the text that the spans make together (less than 2 GiB).  Where a span ends has no other meaning: added
 * tokens are found in runs of trusted bytes, the longest that starts first; all text between two of them is normalised,
 * cut into pieces and merged as one, across the ends of spans.  No token is added at the ends.
 * Time is linear in the bytes but for merging, n log n in a piece (a word, a run of punctuation).
 * BAD_ARGUMENT: too long; NO_MEMORY; `ids` has what it had. */
gdn_status gdn_tokenizer_encode(const gdn_tokenizer *tokenizer, const gdn_span *spans, size_t n_spans, gdn_ids *ids,
                                gdn_error *err);

/* Append the ids of the chat that the model's template makes of `vars`: the JSON text of an object with "messages", and perhaps
 * "tools", "add_generation_prompt", "enable_thinking" and whatever else the template knows.  What the template wrote may hold
 * control tokens, what came out of the variables may not.
 *   now     what the template prints where it asks for the date; NULL: a template that does is refused
 *   thinks  when not NULL, whether the prompt ends inside a think block: what gdn_output_open wants to know
 * BAD_STATE: the model has no template; BAD_ARGUMENT: not a JSON object, or the template refuses its input, in its own words;
 * UNSUPPORTED, BAD_FILE: the template itself; NO_MEMORY; `ids` has what it had. */
gdn_status gdn_engine_encode_chat(const gdn_engine *engine, const char *vars, const struct tm *now, gdn_ids *ids,
                                  int *thinks, gdn_error *err);

/* ---- tokens to text ----------------------------------------------------------------------------------------------- */

/* A stream of ids becoming valid UTF-8.  The bytes of tokens are put together first, then what is not UTF-8 among them
 * becomes U+FFFD as in encoding, so that it makes no difference how ids are handed over: what was written in all is the text
 * of all ids.  Bytes of a character that is not complete are held back.
 * Start with {.tokenizer = ..., .skip_special = ...}, the rest zero; there is nothing to close. */
typedef struct gdn_decoder {
    const gdn_tokenizer *tokenizer;
    bool                 skip_special; /* leave special tokens out */
    size_t               n_held;
    char                 held[4];
} gdn_decoder;

/* Bytes that `out` of gdn_decoder_put must hold. */
size_t gdn_decoder_room(const gdn_tokenizer *tokenizer);

/* Write the text that the next id completes, and return its bytes (not terminated; often 0).  An id that is no token, as a
 * padding row, has no text. */
size_t gdn_decoder_put(gdn_decoder *decoder, int32_t id, char *out);

/* The ids are over: write U+FFFD (3 bytes) if bytes are held, and return how many were written.  The decoder can be used
 * again. */
size_t gdn_decoder_end(gdn_decoder *decoder, char *out);

/* The text of n ids, terminated by a NUL that *n_text does not count; free it with free.  NO_MEMORY: *text is as it was. */
gdn_status gdn_decode(const gdn_tokenizer *tokenizer, const int32_t *ids, size_t n, bool skip_special, char **text,
                      size_t *n_text, gdn_error *err);

/* ---- sequences ---------------------------------------------------------------------------------------------------- */

/* One timeline of tokens: the list, the recurrent state, keys and values, and the logits after its last token move together. */
typedef struct gdn_sequence gdn_sequence;

/* An empty timeline.  NO_SLOT: n_sequences are open; NO_MEMORY.  Free with gdn_sequence_close, before the engine. */
gdn_status gdn_sequence_open(gdn_sequence **out, gdn_engine *engine, gdn_error *err);
void       gdn_sequence_close(gdn_sequence *sequence); /* NULL is allowed */

/* A second timeline that holds what `source` holds and goes its own way from there.  Memory is shared until one of the two
 * writes; nothing is computed.  Errors as above. */
gdn_status gdn_sequence_fork(gdn_sequence **out, gdn_sequence *source, gdn_error *err);

int            gdn_sequence_length(const gdn_sequence *sequence);
const int32_t *gdn_sequence_tokens(const gdn_sequence *sequence); /* [length]; borrowed until the next call on it */

/* Logits [V] after the last token; borrowed until the next call that changes the sequence.  NULL: it is empty, or a
 * gdn_sequence_set was stopped and the last token's have not been computed. */
const float *gdn_sequence_logits(const gdn_sequence *sequence);

/* Tokens to append to a sequence. */
typedef struct gdn_step {
    gdn_sequence  *sequence;
    const int32_t *tokens; /* [n], ids 0..V-1; may lie in what gdn_sequence_tokens returned */
    int            n;      /* 1 or more */
} gdn_step;

/* Append to n_steps sequences (1..n_sequences, no one twice) in one pass over the weights: pieces of prompts and single tokens
 * in any mixture, at most gdn_engine_max_step tokens in all.  Each of them has the logits of its last token afterwards.
 * `at` is the index of the step.  BAD_ARGUMENT: a list outside these limits, an id, or more tokens than a sequence has room
 * for; NO_SLOT: kv_tokens are used up. */
gdn_status gdn_engine_step(gdn_engine *engine, const gdn_step *steps, int n_steps, gdn_error *err);

/* Append one token: a step of it alone. */
gdn_status gdn_sequence_push(gdn_sequence *sequence, int32_t token, gdn_error *err);

/* The next token after these logits [V], or -1: the text ends here.  Must not call the engine or its sequences. */
typedef int32_t gdn_pick_fn(void *arg, const float *logits);

/* The next token of a sequence, and guesses of those that follow it. */
typedef struct gdn_verify {
    gdn_sequence  *sequence;
    int32_t        token;  /* appended, as by gdn_sequence_push */
    const int32_t *drafts; /* [n_drafts]; NULL: the engine's drafter guesses */
    int n_drafts; /* 0..gdn_engine_n_drafts.  With drafts NULL: most that are made, whether it pays or not; 0: as
                              * many as pay */
    gdn_pick_fn *pick;
    void        *arg;
    /* what comes back */
    int32_t next;                  /* what pick said last; it is not in the sequence */
    int     n_drafted, n_accepted; /* drafts that were computed, and those of them that were appended */
} gdn_verify;

/* Make the next tokens of n sequences (1..n_sequences, no one twice) in one pass over the weights.  Each gets its token; then, row
 * after row, pick is asked for the next, and while it says what the draft says, that draft is appended too.  What was not is as if
 * it had never been: tokens, logits and all that follows are bit for bit those of pushing and picking one by one, and so are the
 * calls of pick, in number and in what they see.  Go on with `next` as the token.
 *
 * So drafts change the speed only.  When pick samples (gdn_sampler_pick), the chance that a draft is accepted is the probability of
 * that token, as in rejection sampling, and for a given seed the text is the one without drafts.
 *
 * Drafts that do not fit (the sequence, gdn_engine_max_step, kv_tokens) are left out.  Calls without drafts cost what a step costs.
 * How many pay is measured while the engine runs.  Errors as of gdn_engine_step; no pick has been called then. */
gdn_status gdn_engine_verify(gdn_engine *engine, gdn_verify *calls, int n, gdn_error *err);

/* What verifying did for a sequence since it was opened. */
typedef struct gdn_draft_stats {
    long long n_passes, n_tokens, n_drafted, n_accepted;
    double    seconds,
        plain_seconds; /* of its passes; what they would have taken without drafts, as far as that was measured */
} gdn_draft_stats;
gdn_draft_stats gdn_sequence_draft_stats(const gdn_sequence *sequence);

/* `done` of `total` tokens are computed; what comes back other than 0 stops it there. */
typedef int gdn_progress_fn(void *arg, int done, int total);

/* Make the sequence hold these n >= 1 tokens; the caller gives the whole list, and what need not be computed is not: the sequence goes
 * on from what it holds, if that begins the list, or from the deepest snapshot that does of the engine's prefix index or in
 * cache_dir, whatever goes furthest.
 *
 * All sequences of an engine share the index.  A snapshot is kept where lists part: at the end of each list (with logits: to set it
 * again computes nothing), where a sequence was when it was set to another list or closed, where turns of a chat begin
 * (<|im_start|>) and ever closer towards their ends (docs/API.md gives the rule).  It keeps within reuse_bytes by giving up what saves
 * the fewest tokens for its bytes and was not used for the longest time; keys and values that sequences need come first.  What is
 * given up goes to cache_dir.
 *
 * The list is computed in pieces of up to 512 tokens (256 of a small model), which end at those places; progress, when not NULL, is
 * called after each and must not call the engine or its sequences.  *n_computed, when not NULL, receives the tokens to do.
 * BAD_ARGUMENT: too many tokens, or an id out of range; NO_SLOT: kv_tokens are used up by other sequences.  BAD_STATE: stopped by
 * progress; the sequence holds what was done, and the same call goes on from there. */
gdn_status gdn_sequence_set(gdn_sequence *sequence, const int32_t *tokens, int n, gdn_progress_fn *progress, void *arg,
                            int *n_computed, gdn_error *err);

/* A file of what the sequence holds, which another process goes on from as if it had computed it: tokens, state, keys and
 * values, logits, and what MTP drafts from.  It is written whole or not at all (gdn_snapshot_save says how).  BAD_STATE: the
 * sequence is empty; IO; NO_MEMORY. */
gdn_status gdn_sequence_save(const gdn_sequence *sequence, const char *path, gdn_error *err);

/* Make the sequence hold what a file has, in place of what it held.  BAD_FILE: the file is damaged, or of another kind;
 * MISMATCH: it was made with another model, version or kv_type, or MTP drafts in one of the two engines only; BAD_ARGUMENT:
 * it has more tokens than fit; NO_SLOT: kv_tokens are used up; IO; NO_MEMORY. */
gdn_status gdn_sequence_load(gdn_sequence *sequence, const char *path, gdn_error *err);

/* ---- sampling ------------------------------------------------------------------------------------------------------ */

/* From logits to the next token.
 *
 * The token depends on the logits, the options, the tokens accepted so far and the seed, and on nothing else: the same on
 * every machine and from every compiler.  Probabilities are integer weights made with the project's own exp, sums of them are
 * exact, and random numbers are a function of the seed and the number of tokens accepted as output, so that a pick that is
 * repeated, or whose token is thrown away, changes nothing later. */

enum { GDN_SAMPLER_MAX_VOCAB = 1 << 22 };

typedef struct gdn_token_bias {
    int32_t id;
    double  value; /* -10000..10000, or -INFINITY: the token is never picked */
} gdn_token_bias;

typedef struct gdn_sampler_options {
    double                temperature;        /* 0..100; what is 0 as a float: greedy */
    int                   top_k;              /* 0: all */
    double                top_p;              /* 0..1; 1: all, 0: the most likely */
    double                min_p;              /* 0..1; 0: all */
    double                repetition_penalty; /* 0.01..100; 1: none */
    double                presence_penalty;   /* -100..100; 0: none */
    double                frequency_penalty;  /* -100..100; 0: none */
    int                   n_bias;
    const gdn_token_bias *bias; /* [n_bias], copied; NULL is allowed when n_bias is 0; an id may come again */
    uint64_t              seed;
} gdn_sampler_options;

/* Greedy, and nothing else: where options start. */
#define GDN_SAMPLER_GREEDY ((gdn_sampler_options){.top_p = 1, .repetition_penalty = 1})

/* What the model's makers advise (generation_config.json): greedy where they do not say. */
gdn_sampler_options gdn_engine_default_sampling(const gdn_engine *engine);

typedef struct gdn_sampler gdn_sampler;

/* vocab_size 1..GDN_SAMPLER_MAX_VOCAB logits a pick; ids from n_usable (1..vocab_size) on are padding rows and are never
 * picked.  Memory: 16 KiB, 8 bytes for each token that can be a candidate (the lesser of top_k and n_usable; none if greedy)
 * and, with a penalty, 12 for each of the vocabulary, touched as far as it is used.
 * BAD_ARGUMENT: an option outside its range, which the message names (`at`: the entry of `bias`); NO_MEMORY.  *out is written
 * on success only; end it with gdn_sampler_close. */
gdn_status gdn_sampler_open(gdn_sampler **out, int vocab_size, int n_usable, const gdn_sampler_options *options,
                            gdn_error *err);
void       gdn_sampler_close(gdn_sampler *sampler); /* NULL is allowed */

/* The next token of the text, of its prompt or (is_output) of what was generated.  Repetition counts both, as Hugging Face
 * does; presence and frequency count the output, as OpenAI does.  Ids outside the vocabulary get no penalty. */
void gdn_sampler_accept(gdn_sampler *sampler, int32_t token, bool is_output);

/* The next token, from logits[vocab_size].  It is not accepted.
 * *logprob, unless logprob is NULL, gets what gdn_logprobs says of it.  In this order:
 *   1. bias: logit += value, for each entry;
 *   2. penalties, on each token that was accepted: repetition (logit < 0 ? logit * r : logit / r), then
 *      logit -= frequency * (times in the output), then logit -= presence if it is in the output;
 *   3. temperature 0: the greatest logit, the lowest id of equals.  The end;
 *   4. temperature: the weight of a token is the whole part of 2^40 * exp((logit - greatest) / temperature), computed in
 *      float: what is less likely than 2^-40 of the likeliest is never picked;
 *   5. top_k: the k greatest logits stay, the lower ids of equals;
 *   6. top_p: of these the heaviest stay, the lower ids of equals, as few as have together top_p of the weight;
 *   7. min_p: of these stay those that weigh at least min_p of the heaviest;
 *   8. the draw: the lowest id for which it and those below weigh together more than u * (the weight of all), with
 *      u = random / 2^64 and random = mix(mix(seed + G) + (n + 1) * G) where n counts the accepted output, and mix and G
 *      are those of splitmix64.
 * Steps 4 to 7 are those of Hugging Face transformers in its order; there ties at the cut of top_k all stay.  NaN is as -inf;
 * +inf is the greatest of all in 3 and 5 and as the greatest float in 4.  If no usable token is above -inf, the token is 0.
 * Time: a few passes over the logits, and an exp for each token that top_k left and that can weigh anything. */
int32_t gdn_sampler_pick(gdn_sampler *sampler, const float *logits, double *logprob);

typedef struct gdn_logprob {
    int32_t id;
    double  logprob;
} gdn_logprob;

/* The natural log of the softmax of logits[n], n >= 1: returns that of token `chosen` (0..n-1) and writes top[n_top] (0..n;
 * NULL is allowed when 0), the greatest first, the lowest id of equals first.  NaN is as -inf, whose logprob is -INFINITY;
 * +inf as the greatest float.  In double with libm: to be shown, not to decide anything. */
double gdn_logprobs(const float *logits, int n, int32_t chosen, gdn_logprob *top, int n_top);

/* ---- stop strings --------------------------------------------------------------------------------------------------- */

/* Stop strings over a stream of text.
 *
 * The text ends before the stop string that is completed first; of several that the same byte completes, before the longest.
 * That does not depend on how the stream was cut, and needs no look at what would follow.  What could become the start of a
 * stop string is held back until it is known not to.  Bytes are compared as they are; if the stop strings are whole characters
 * of UTF-8 and so is each piece that is put in, what comes out is whole characters too. */

enum { GDN_STOPS_MAX = 256, GDN_STOPS_MAX_BYTES = 4096 }; /* strings; bytes of one */

typedef struct gdn_stop {
    const char *text; /* may hold any bytes */
    size_t      n;    /* 1..GDN_STOPS_MAX_BYTES */
} gdn_stop;

typedef struct gdn_stops gdn_stops;

/* stops[n_stops], 0..GDN_STOPS_MAX, copied; without any, all text passes.  BAD_ARGUMENT: outside these limits (`at`: the
 * string); NO_MEMORY.  *out is written on success only; end it with gdn_stops_close. */
gdn_status gdn_stops_open(gdn_stops **out, const gdn_stop *stops, int n_stops, gdn_error *err);
void       gdn_stops_close(gdn_stops *stops); /* NULL is allowed */

/* The most bytes that can be held back. */
size_t gdn_stops_held_max(const gdn_stops *stops);

/* The next n bytes of the stream.  Writes to out, which holds n + gdn_stops_held_max bytes and must not overlap text, the
 * bytes that can be shown, and returns their count.  Once the text has ended, and until gdn_stops_end, what comes is dropped.
 * Time: bytes times stop strings. */
size_t gdn_stops_put(gdn_stops *stops, const char *text, size_t n, char *out);

/* The stop string that ended the text, or -1. */
int gdn_stops_matched(const gdn_stops *stops);

/* The stream is over: writes what was held back to out[gdn_stops_held_max] and returns its count, 0 if a stop string ended the
 * text.  The next put starts another stream. */
size_t gdn_stops_end(gdn_stops *stops, char *out);

/* ---- the output parser ------------------------------------------------------------------------------------------------ */

/* What a model writes, taken apart while it is written: thoughts, text and tool calls.
 *
 * Thoughts end with </think>.  A tool call is
 *     <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
 * with any number of parameters, or, as Qwen3-Next writes it, <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>.
 * The newlines that the chat template puts between these parts belong to none of them: one before </think>, up to two behind
 * it, before <tool_call> and behind </tool_call>.  Everything else is handed out, in order and once: what looks like a call
 * and is none, or is cut off by the end, is text. */

typedef enum gdn_output_kind { GDN_OUTPUT_REASONING = 0, GDN_OUTPUT_CONTENT = 1, GDN_OUTPUT_CALL = 2 } gdn_output_kind;

/* Valid during the callback.  Of thoughts and text, n_bytes >= 1 more; never a part of a tag that is yet to be completed.
 * A call comes whole: the name of its function, and its arguments as the JSON text of an object. */
typedef struct gdn_output_event {
    gdn_output_kind kind;
    const char     *text; /* of a call its arguments; ends with a NUL only there */
    size_t          n_bytes;
    const char     *name; /* of a call; ends with a NUL */
    int             call; /* of a call: 0, 1, ... */
} gdn_output_event;

/* Must not call the parser. */
typedef void gdn_output_fn(void *arg, const gdn_output_event *event);

typedef struct gdn_output gdn_output;

/* in_reasoning: the prompt ended inside a think block; otherwise the text may open one itself, at its very start.
 * tools: the JSON text of the tools of the request, an array as the chat template got it; NULL or an empty one: calls are text.
 * BAD_ARGUMENT: that is no array; NO_MEMORY.  Free with gdn_output_close. */
gdn_status gdn_output_open(gdn_output **out, const char *tools, bool in_reasoning, gdn_output_fn *fn, void *arg,
                           gdn_error *err);
void       gdn_output_close(gdn_output *output); /* NULL is allowed */

/* The next n bytes.  However the text is cut into calls, the same bytes come out, and the same calls between them.
 * NO_MEMORY: nothing of these bytes was taken, or not all of what they complete was handed out; close the parser. */
gdn_status gdn_output_feed(gdn_output *output, const char *bytes, size_t n, gdn_error *err);

/* The text is over: hand out what was held back.  Afterwards only gdn_output_close may follow. */
gdn_status gdn_output_end(gdn_output *output, gdn_error *err);

#ifdef __cplusplus
}
#endif
#endif
