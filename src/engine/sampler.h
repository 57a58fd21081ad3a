/* engine/sampler.h - from logits to the next token.
 *
 * The token depends on the logits, the options, the tokens accepted so far and the seed, and on nothing else: the same on
 * every machine and from every compiler.  Probabilities are integer weights made with the project's own exp, sums of them are
 * exact, and random numbers are a function of the seed and the number of tokens accepted as output, so that a pick that is
 * repeated, or whose token is thrown away, changes nothing later.  Callers compute with rounding to nearest. */
#ifndef GDN_ENGINE_SAMPLER_H
#define GDN_ENGINE_SAMPLER_H
#include "gdn/status.h"
#include <stdbool.h>
#include <stdint.h>

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

/* The next token, from logits[vocab_size], which are changed meanwhile and have their bits back on return.  It is not accepted.
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
 * Time: a few passes over the logits, and an exp for each token that top_k left and that can weigh anything.  Allocates
 * nothing. */
int32_t gdn_sampler_pick(gdn_sampler *sampler, float *logits, double *logprob);

typedef struct gdn_logprob {
    int32_t id;
    double  logprob;
} gdn_logprob;

/* The natural log of the softmax of logits[n], n >= 1: returns that of token `chosen` (0..n-1) and writes top[n_top] (0..n;
 * NULL is allowed when 0), the greatest first, the lowest id of equals first.  NaN is as -inf, whose logprob is -INFINITY;
 * +inf as the greatest float.  In double with libm: to be shown, not to decide anything. */
double gdn_logprobs(const float *logits, int n, int32_t chosen, gdn_logprob *top, int n_top);

#endif
