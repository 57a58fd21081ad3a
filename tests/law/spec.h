/* spec.h - answers of the demo model made token by token, and the same answers made with drafts, which must be equal in every bit
 * of every logit. */
#ifndef LAW_SPEC_H
#define LAW_SPEC_H
#include "law/run.h"
#include "gdn/gdn.h"
#include "support/random.h"
#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 6, MADE = 22, AFTER = 3, PROMPT = 80 };

typedef struct answer {
    gdn_sampler_options sampling;
    int                 n_prompt;
    int32_t             tokens[PROMPT + MADE + AFTER];
    float              *logits; /* [MADE + AFTER + 1][V]: those that each token after the prompt was picked from */
} answer;

static answer    answers[ANSWERS];
static int       V, n_usable;
static gdn_error err;

#define ACCEPTED(call)                                                                               \
    do {                                                                                             \
        if ((call) != GDN_OK) fail_msg("%s: %s: %s", #call, gdn_status_name(err.code), err.message); \
    } while (0)

static inline gdn_engine *open_engine(const gdn_engine_options *more)
{
    gdn_engine_options options = *more;
    gdn_engine        *engine = NULL;
    options.model = "models/demo";
    if (!options.max_tokens) options.max_tokens = 320;
    ACCEPTED(gdn_engine_open(&engine, &options, &err));
    return engine;
}

static inline gdn_sampler *sampler_of(const answer *a)
{
    gdn_sampler *sampler = NULL;
    ACCEPTED(gdn_sampler_open(&sampler, V, n_usable, &a->sampling, &err));
    for (int i = 0; i < a->n_prompt; i++) gdn_sampler_accept(sampler, a->tokens[i], false);
    return sampler;
}

static inline const float *logits_at(const answer *a, int made) { return a->logits + (size_t)made * V; }

/* The token by token run: no drafts anywhere near, and nothing is reused. */
static inline void record(gdn_engine *engine, answer *a, const char *chat)
{
    gdn_ids       ids = {0};
    gdn_sequence *s = NULL;
    ACCEPTED(gdn_engine_encode_chat(engine, chat, NULL, &ids, NULL, &err));
    assert_in_range(ids.n, 1, PROMPT);
    a->n_prompt = (int)ids.n;
    memcpy(a->tokens, ids.id, ids.n * sizeof *ids.id);
    free(ids.id);
    a->logits = malloc((MADE + AFTER + 1) * (size_t)V * sizeof *a->logits);
    assert_non_null(a->logits);
    gdn_sampler *sampler = sampler_of(a);
    ACCEPTED(gdn_sequence_open(&s, engine, &err));
    ACCEPTED(gdn_sequence_set(s, a->tokens, a->n_prompt, NULL, NULL, NULL, &err));
    for (int i = 0;; i++) {
        memcpy(a->logits + (size_t)i * V, gdn_sequence_logits(s), (size_t)V * sizeof *a->logits);
        if (i == MADE + AFTER) break;
        const int32_t token = gdn_sampler_pick(sampler, gdn_sequence_logits(s), NULL);
        gdn_sampler_accept(sampler, token, true);
        a->tokens[a->n_prompt + i] = token;
        ACCEPTED(gdn_sequence_push(s, token, &err));
    }
    gdn_sequence_close(s);
    gdn_sampler_close(sampler);
}

/* Answers 2*i and 2*i+1 are to one prompt.  The first repeats it and comes to a new page, the second ends before one, and the third
 * begins in the second page. */
static inline int record_all(void **unused)
{
    static const char *const chats[] = {
        ("{\"messages\": [{\"role\": \"user\", \"content\": \"Say this again: red blue green red blue green yellow red "
         "blue "
         "green red blue green yellow white red blue green black white red blue green\"}], "
         "\"add_generation_prompt\": true, \"enable_thinking\": false}"),
        ("{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story about a river.\"}], "
         "\"add_generation_prompt\": true, \"enable_thinking\": false}"),
        ("{\"messages\": [{\"role\": \"system\", \"content\": \"You are an old captain who has seen every sea and "
         "every "
         "harbour of the world, and who tells stories to whoever comes by. Speak slowly, and of storms.\"}, "
         "{\"role\": \"user\", \"content\": \"Tell me a joke.\"}], \"add_generation_prompt\": true}")};
    const gdn_sampler_options sampled[] = {
        {.temperature = 0.9, .top_p = 0.95, .top_k = 40, .repetition_penalty = 1.1, .seed = 7},
        {.temperature = 1.3, .top_p = 1, .repetition_penalty = 1, .presence_penalty = 0.5, .seed = 8},
        {.temperature = 0.5, .top_p = 1, .min_p = 0.05, .repetition_penalty = 1, .seed = 9}};
    gdn_engine *engine = open_engine(&(gdn_engine_options){.n_threads = 1, .reuse_bytes = -1});
    (void)unused;
    V = gdn_engine_vocab_size(engine);
    n_usable = gdn_engine_n_usable(engine);
    for (int i = 0; i < ANSWERS; i++) {
        answers[i].sampling = i % 2 ? sampled[i / 2] : GDN_SAMPLER_GREEDY;
        record(engine, &answers[i], chats[i / 2]);
    }
    gdn_engine_close(engine);
    return 0;
}

static inline int forget_all(void **unused)
{
    (void)unused;
    for (int i = 0; i < ANSWERS; i++) free(answers[i].logits);
    return 0;
}

/* ---- an answer in the making ------------------------------------------------------------------------------------------- */

typedef struct maker {
    const answer *a;
    gdn_sequence *s;
    gdn_sampler  *sampler;
    int           made, most; /* tokens picked; how many are to be */
    int           n_computed; /* tokens of the prompt that were not there yet */
    long          n_passes, n_drafted, n_accepted;
    bool          returned; /* for whoever interrupts it */
    int32_t       drafts[GDN_DRAFTS_MAX];
} maker;

static inline maker maker_open(gdn_engine *engine, const answer *a, int most)
{
    maker m = {.a = a, .most = most, .sampler = sampler_of(a)};
    ACCEPTED(gdn_sequence_open(&m.s, engine, &err));
    ACCEPTED(gdn_sequence_set(m.s, a->tokens, a->n_prompt, NULL, NULL, &m.n_computed, &err));
    return m;
}

static inline void maker_close(maker *m)
{
    gdn_sequence_close(m->s);
    gdn_sampler_close(m->sampler);
}

/* The logits must be those of the recorded run, and so the token. */
static inline int32_t pick(void *arg, const float *logits)
{
    maker        *m = arg;
    const answer *a = m->a;
    if (memcmp(logits, logits_at(a, m->made), (size_t)V * sizeof *logits) != 0)
        fail_msg("answer %d: other logits after %d tokens", (int)(a - answers), m->made);
    const int32_t token = gdn_sampler_pick(m->sampler, logits, NULL);
    assert_int_equal(token, a->tokens[a->n_prompt + m->made]);
    gdn_sampler_accept(m->sampler, token, true);
    return ++m->made == m->most ? -1 : token;
}

/* What the sequence holds is the recorded run, up to the last token picked or the one before. */
static inline void expect_made(const maker *m)
{
    const answer *a = m->a;
    const int     n = m->made ? m->made - 1 : 0;
    assert_int_equal(gdn_sequence_length(m->s), a->n_prompt + n);
    assert_memory_equal(gdn_sequence_tokens(m->s), a->tokens, (size_t)(a->n_prompt + n) * sizeof *a->tokens);
    assert_memory_equal(gdn_sequence_logits(m->s), logits_at(a, n), (size_t)V * sizeof(float));
}

typedef enum style { RIGHT, WRONG, RANDOM, PARTLY, STYLES } style;

/* Drafts for what follows the token that is about to be verified, number made-1. */
static inline const int32_t *drafts_of(maker *m, style how, int depth, rng *r)
{
    const int32_t *truth = m->a->tokens + m->a->n_prompt + m->made;
    int            right = how == RIGHT ? depth : how == PARTLY ? rng_below(r, depth + 1) : 0;
    for (int i = 0; i < depth; i++) {
        const int32_t next = m->made + i < MADE + AFTER ? truth[i] : 0;
        m->drafts[i] = i < right ? next : how == RANDOM ? rng_below(r, V) : (next + 1 + rng_below(r, 5)) % V;
    }
    return m->drafts;
}

static inline gdn_verify call_of(maker *m, const int32_t *drafts, int n_drafts)
{
    return (gdn_verify){.sequence = m->s,
                        .token = m->a->tokens[m->a->n_prompt + m->made - 1],
                        .drafts = drafts,
                        .n_drafts = n_drafts,
                        .pick = pick,
                        .arg = m};
}

/* How many of the drafts that a call brought say what was picked, before the last pick. */
static inline int n_right(const maker *m, const gdn_verify *call)
{
    const int      before = m->made - 1 - call->n_accepted;
    const int32_t *truth = m->a->tokens + m->a->n_prompt + before;
    int            n = 0;
    while (n < call->n_drafted && n < m->most - before - 1 && call->drafts[n] == truth[n]) n++;
    return n;
}

static inline void called(maker *m, const gdn_verify *call)
{
    if (call->drafts) assert_int_equal(call->n_accepted, n_right(m, call));
    assert_int_equal(call->next, m->made == m->most ? -1 : m->a->tokens[m->a->n_prompt + m->made - 1]);
    assert_in_range(call->n_drafted, 0, GDN_DRAFTS_MAX);
    assert_in_range(call->n_accepted, 0, call->n_drafted);
    m->n_passes++;
    m->n_drafted += call->n_drafted;
    m->n_accepted += call->n_accepted;
    expect_made(m);
}

/* Go on for a few tokens by pushing: the state is that of the recorded run too. */
static inline void go_on(maker *m)
{
    const answer *a = m->a;
    for (int i = m->made - 1; i < m->made - 1 + AFTER; i++) {
        ACCEPTED(gdn_sequence_push(m->s, a->tokens[a->n_prompt + i], &err));
        assert_memory_equal(gdn_sequence_logits(m->s), logits_at(a, i + 1), (size_t)V * sizeof(float));
    }
}

#endif
