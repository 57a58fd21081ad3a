/* gdn bench --reuse: two scripted conversations of an agent, and what of their prompts has to be computed.  The first finds an empty
 * index, the second what the first left there; they have the system prompt with its tools in common and nothing after it. */
#include "cli/bench_model.h"
#include "cli/json.h"
#include "engine/parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The script, in tokens.  Every TASK-th message is the user's, the others are results of tools; thoughts of answers before the last
 * of the user's messages are left out, as the templates of the family do. */
enum {
    TALKS = 2,
    TURNS = 40,
    TASK = 8,
    SYSTEM = 2400, /* with the tools */
    MESSAGE = 12,  /* of the user or of a tool */
    THOUGHT = 6,
    CALL = 10,
    FIRST_TOKEN = 4000, /* of the prompt whose first token is timed */
    CONTEXT = 8192
};

typedef struct script {
    int32_t *ids;
    int      n, most, n_ids; /* n_ids: ordinary ids are 0..n_ids-1 */
    int32_t  turn;
    unsigned talk; /* the first or the second conversation */
} script;

static void put(script *s, int32_t id)
{
    if (s->n < s->most) s->ids[s->n++] = id;
}

/* Text that follows from a seed. */
static void put_text(script *s, unsigned seed, int n)
{
    for (uint32_t x = seed * 2654435761u + 1; n > 0; n--) {
        x = x * 1664525u + 1013904223u;
        put(s, (int32_t)((x >> 8) % (uint32_t)s->n_ids));
    }
}

static void put_turn(script *s, int role, unsigned seed, int n)
{
    put(s, s->turn);
    put_text(s, (unsigned)role, 2);
    put_text(s, seed, n);
    put_text(s, 3, 2); /* the end of the turn */
}

static void put_header(script *s)
{
    put(s, s->turn);
    put_text(s, 2, 2);
    put_text(s, 4, 2); /* the beginning of its thoughts */
}

static void put_answer(script *s, unsigned turn, bool thoughts)
{
    if (thoughts) put_text(s, 2000 + TURNS * s->talk + turn, THOUGHT);
    put_text(s, 3000 + TURNS * s->talk + turn, CALL);
}

/* The prompt of a turn: all messages before it, thoughts only since the user's last. */
static void make_prompt(script *s, int turn)
{
    s->n = 0;
    put_turn(s, 0, 7, SYSTEM - 5);
    const int task = turn / TASK * TASK;
    for (int i = 0; i <= turn; i++) {
        put_turn(s, 1, 1000 + TURNS * s->talk + (unsigned)i, MESSAGE);
        if (i == turn) break;
        if (i >= task) put_header(s);
        else {
            put(s, s->turn);
            put_text(s, 2, 2);
        }
        put_answer(s, (unsigned)i, i >= task);
        put_text(s, 3, 2);
    }
    put_header(s);
}

/* Tokens of prompts; those of them that the engine computed; those that no list before had in this place. */
typedef struct count {
    long tokens, computed, least;
} count;

typedef struct result {
    count  all[TALKS], later;  /* of all prompts of a conversation; of the first one's without its first */
    double cold, warm, repeat; /* seconds to the first token */
    int    warm_computed;
} result;

static double since(double start) { return gdn_cli_seconds() - start; }

/* Tokens of the list that are not a prefix of what has been seen: the best that any engine can do. */
static int unseen(const script *s, const script *before, unsigned n_before)
{
    int best = 0;
    for (unsigned k = 0; k < n_before; k++) {
        int n = 0;
        while (n < s->n && n < before[k].n && s->ids[n] == before[k].ids[n]) n++;
        best = n > best ? n : best;
    }
    return s->n - best;
}

static void add(count *c, int tokens, int computed, int least)
{
    c->tokens += tokens;
    c->computed += computed;
    c->least += least;
}

/* One conversation, in a sequence of its own. */
static gdn_status converse(gdn_engine *engine, script *s, script *before, result *r, gdn_error *err)
{
    gdn_sequence *sequence = NULL;
    gdn_status    status = gdn_sequence_open(&sequence, engine, err);
    for (int turn = 0; turn < TURNS && !status; turn++) {
        const unsigned n_before = TURNS * s->talk + (unsigned)turn;
        int            computed = 0;
        make_prompt(s, turn);
        status = gdn_sequence_set(sequence, s->ids, s->n, NULL, NULL, &computed, err);
        const int least = unseen(s, before, n_before);
        add(&r->all[s->talk], s->n, computed, least);
        if (turn && !s->talk) add(&r->later, s->n, computed, least);
        put_answer(s, (unsigned)turn, true);
        for (int i = gdn_sequence_length(sequence); i < s->n && !status; i++)
            status = gdn_sequence_push(sequence, s->ids[i], err);
        memcpy(before[n_before].ids, s->ids, (size_t)s->n * sizeof *s->ids);
        before[n_before].n = s->n;
    }
    gdn_sequence_close(sequence);
    return status;
}

/* The first token of a long prompt: computed, after another last message, and again. */
static gdn_status first_token(gdn_engine *engine, script *s, result *r, gdn_error *err)
{
    gdn_sequence *sequence = NULL;
    gdn_status    status = gdn_sequence_open(&sequence, engine, err);
    for (int how = 0; how < 3 && !status; how++) {
        int computed = 0;
        s->n = 0;
        put_turn(s, 0, 99, FIRST_TOKEN - MESSAGE - 2 * 5 - 5);
        put_turn(s, 1, how ? 12 : 11, MESSAGE);
        put_header(s);
        const double start = gdn_cli_seconds();
        status = gdn_sequence_set(sequence, s->ids, s->n, NULL, NULL, &computed, err);
        *(how == 0 ? &r->cold : how == 1 ? &r->warm : &r->repeat) = since(start);
        if (how == 1) r->warm_computed = computed;
    }
    gdn_sequence_close(sequence);
    return status;
}

static gdn_status run(gdn_engine *engine, result *r, gdn_error *err)
{
    const int  most = gdn_engine_max_tokens(engine), V = gdn_engine_vocab_size(engine);
    script     s = {.most = most, .n_ids = V - 1, .turn = V - 1}, before[TALKS * TURNS] = {{0}};
    gdn_status status = GDN_OK;
    int32_t   *ids = malloc((size_t)(TALKS * TURNS + 1) * most * sizeof *ids);
    engine->turn = s.turn;
    if (!ids) return gdn_fail(err, GDN_NO_MEMORY, 0, "no memory for the lists of tokens");
    for (int i = 0; i < TALKS * TURNS; i++) before[i].ids = ids + (size_t)(i + 1) * most;
    s.ids = ids;
    for (; s.talk < TALKS && !status; s.talk++) status = converse(engine, &s, before, r, err);
    if (!status) status = first_token(engine, &s, r, err);
    free(ids);
    return status;
}

static double share(long missing, const count *c) { return 100 * (1 - (double)missing / (double)c->tokens); }

static json_t *count_json(const count *c)
{
    return json_pack("{s:I,s:I,s:f,s:f}", "prompt_tokens", (json_int_t)c->tokens, "computed_tokens",
                     (json_int_t)c->computed, "reused_percent", share(c->computed, c), "possible_percent",
                     share(c->least, c));
}

static void print_count(const char *what, const count *c)
{
    printf("%-38s %7ld %9ld %9.2f %10.2f\n", what, c->tokens, c->computed, share(c->computed, c), share(c->least, c));
}

static int print(const gdn_model_bench *b, const result *r, const gdn_engine *engine)
{
    if (b->json)
        return gdn_json_print(
            "bench",
            json_pack("{s:i,s:o,s:o,s:o,s:i,s:f,s:f,s:f,s:i,s:i,s:I}", "turns", TURNS, "cold", count_json(&r->all[0]),
                      "cold_later", count_json(&r->later), "second", count_json(&r->all[1]), "first_token_prompt",
                      FIRST_TOKEN, "cold_ms", 1e3 * r->cold, "warm_ms", 1e3 * r->warm, "repeat_ms", 1e3 * r->repeat,
                      "warm_tokens", r->warm_computed, "snapshots", gdn_prefix_n_snapshots(engine->prefix),
                      "index_bytes", (json_int_t)gdn_prefix_bytes(engine->prefix)),
            "\n");
    printf("an agent, 40 turns                      tokens  computed  reused %%  possible %%\n");
    print_count("cold: the index is empty", &r->all[0]);
    print_count("  of these, prompts 2 to 40", &r->later);
    print_count("second: another task, the same tools", &r->all[1]);
    printf("first token of %d tokens: cold %.1f ms; again %.2f ms;\n", FIRST_TOKEN, 1e3 * r->cold, 1e3 * r->repeat);
    printf("  with another last message %.1f ms (%.2f %% of cold, %d tokens computed)\n", 1e3 * r->warm,
           100 * r->warm / r->cold, r->warm_computed);
    printf("index: %d snapshots, %s; %s, %d threads\n", gdn_prefix_n_snapshots(engine->prefix),
           gdn_size_words((uint64_t)gdn_prefix_bytes(engine->prefix)).text,
           gdn_compute_level(gdn_engine_compute(engine)), gdn_compute_threads(gdn_engine_compute(engine)));
    return gdn_cli_flush();
}

int gdn_bench_reuse(gdn_model_bench *b, int n_threads)
{
    result                   r = {0};
    gdn_engine              *engine = NULL;
    gdn_error                err;
    const int                max = b->model->config.max_positions;
    const gdn_engine_options options = {.level = b->level,
                                        .n_threads = n_threads,
                                        .max_tokens = max < CONTEXT ? max : CONTEXT,
                                        .kv_type = GDN_BF16,
                                        .kv_tokens = 4LL * CONTEXT};
    if (max < FIRST_TOKEN)
        return gdn_cli_fail(GDN_EXIT_FAILED, "bench",
                            "--reuse plays prompts of up to %d tokens; this model was made for %d", FIRST_TOKEN, max);
    gdn_status status = gdn_engine_open_model(&engine, b->model, &options, &err);
    b->model = NULL; /* it is the engine's */
    if (!status) status = run(engine, &r, &err);
    const int shown = status ? gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message) : print(b, &r, engine);
    gdn_engine_close(engine);
    return shown;
}
