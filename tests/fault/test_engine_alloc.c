/* Every allocation of the public API's opening calls, failed in turn: NO_MEMORY, no leak, and success once none fails.  And the
 * calls that make a text, which must not allocate at all.
 *
 * Those of jansson do not fail, but are counted: jansson 2.14 does not bear it (lex_save loses a byte, and an assertion ends the
 * program). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "gdn/gdn.h"
#include "fault/wrapped.h"
#include "support/folder.h"
#include <jansson.h>

static gdn_error err;

static void *json_alloc(size_t n)
{
    const int mine = counting;
    counting = 0;
    void *p = __wrap_malloc(n);
    counting = mine;
    return p;
}

#define ACCEPTED(call)                                                \
    do {                                                              \
        if ((call) != GDN_OK) fail_msg("%s: %s", #call, err.message); \
    } while (0)

/* ---- the calls that make an object -------------------------------------------------------------------------------- */

static const char chat[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"What is 12 + 30?\"}], \"tools\": "
                           "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"g\"}}], "
                           "\"add_generation_prompt\": true}";
static const char tools[] = "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": {\"type\": \"number\"}}}}]";

static gdn_engine   *engine;
static gdn_sequence *source;

static void show(void *arg, const gdn_output_event *event)
{
    (void)arg;
    (void)event;
}

static gdn_status open_engine(void **out)
{
    const gdn_engine_options options = {.model = "models/demo",
                                        .n_threads = 2,
                                        .n_sequences = 3,
                                        .max_tokens = 512,
                                        .drafter = GDN_DRAFTER_AUTO,
                                        .n_drafts = 4};
    return gdn_engine_open((gdn_engine **)out, &options, &err);
}
static void       close_engine(void *made) { gdn_engine_close(made); }
static gdn_status open_sequence(void **out) { return gdn_sequence_open((gdn_sequence **)out, engine, &err); }
static gdn_status fork_sequence(void **out) { return gdn_sequence_fork((gdn_sequence **)out, source, &err); }
static void       close_sequence(void *made) { gdn_sequence_close(made); }

static gdn_status encode(void **out)
{
    gdn_ids          ids = {0};
    const gdn_status status = gdn_engine_encode_chat(engine, chat, NULL, &ids, NULL, &err);
    if (status) free(ids.id); /* it may have room now, but no ids */
    else *out = ids.id;
    assert_true(!status || ids.n == 0);
    return status;
}

static gdn_status open_sampler(void **out)
{
    const gdn_token_bias      bias = {1, 1.0};
    const gdn_sampler_options options = {
        .temperature = 1, .top_p = 0.9, .repetition_penalty = 1.1, .n_bias = 1, .bias = &bias};
    const int V = gdn_engine_vocab_size(engine);
    return gdn_sampler_open((gdn_sampler **)out, V, gdn_engine_n_usable(engine), &options, &err);
}
static void close_sampler(void *made) { gdn_sampler_close(made); }

static gdn_status open_stops(void **out) { return gdn_stops_open((gdn_stops **)out, &(gdn_stop){"stop", 4}, 1, &err); }
static void       close_stops(void *made) { gdn_stops_close(made); }

static gdn_status open_output(void **out)
{
    return gdn_output_open((gdn_output **)out, tools, false, show, NULL, &err);
}
static void close_output(void *made) { gdn_output_close(made); }

static char saved[80], cache[80];

static gdn_status save(void **out)
{
    (void)out;
    return gdn_sequence_save(source, saved, &err);
}

/* Of the file that setup saved; a failure leaves what the sequence holds. */
static gdn_status load(void **out)
{
    const int length = gdn_sequence_length(source);
    (void)out;
    const gdn_status status = gdn_sequence_load(source, saved, &err);
    assert_int_equal(gdn_sequence_length(source), length);
    return status;
}
static void nothing(void *made) { assert_null(made); }

/* An engine with a folder in which setup left records: opening it, and what it does without memory afterwards. */
static gdn_status open_cached(void **out)
{
    const gdn_engine_options options = {.model = "models/demo", .max_tokens = 400, .n_threads = 1, .cache_dir = cache};
    return gdn_engine_open((gdn_engine **)out, &options, &err);
}
static void close_engine_of(void *made) { gdn_engine_close(made); }

static const int32_t stored[] = {9, 8, 7, 6, 5};

/* Set a prompt that the folder has, in an engine that has just been opened; the allocation fail_at of it fails.  A miss, never an
 * error.  Returns the tokens that were computed. */
static int set_cached(void)
{
    const int     fd = lowest_descriptor();
    int           computed = -1;
    gdn_engine   *cached = NULL;
    gdn_sequence *s = NULL;
    ACCEPTED(open_cached((void **)&cached));
    ACCEPTED(gdn_sequence_open(&s, cached, &err));
    const long live = n_live;
    n_asked = 0;
    counting = 1;
    ACCEPTED(gdn_sequence_set(s, stored, 5, NULL, NULL, &computed, &err));
    counting = 0;
    assert_int_equal(n_live, live);
    gdn_sequence_close(s);
    gdn_engine_close(cached);
    assert_int_equal(lowest_descriptor(), fd);
    return computed;
}

static void a_folder_without_memory(void **unused)
{
    (void)unused;
    int n_missed = 0;
    for (fail_at = 1;; fail_at++) {
        const int computed = set_cached();
        if (n_asked < fail_at) break;
        n_missed += computed == 5;
    }
    assert_int_equal(set_cached(), 0);
    assert_true(n_missed > 1);
}

enum { PROMPTS = 3, PROMPT = 70 };

/* Prompts through an engine that has room for one snapshot, and a folder: `logits` receives those after each; the allocation fail_at
 * fails.  Returns the tokens that a second round computes. */
static int spill(float *logits)
{
    const gdn_engine_options options = {
        .model = "models/demo", .max_tokens = 100, .n_threads = 1, .cache_dir = cache, .reuse_bytes = 1800000};
    gdn_engine   *small = NULL;
    gdn_sequence *s = NULL;
    int           computed, again = 0;
    nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    ACCEPTED(gdn_engine_open(&small, &options, &err));
    ACCEPTED(gdn_sequence_open(&s, small, &err));
    const size_t V = (size_t)gdn_engine_vocab_size(small);
    n_asked = 0;
    counting = 1;
    for (int i = 0; i < 2 * PROMPTS; i++) {
        int32_t ids[PROMPT];
        for (int at = 0; at < PROMPT; at++) ids[at] = 10 + i % PROMPTS + 3 * at;
        ACCEPTED(gdn_sequence_set(s, ids, PROMPT, NULL, NULL, &computed, &err));
        if (i < PROMPTS) memcpy(logits + i * V, gdn_sequence_logits(s), V * sizeof *logits);
        else assert_memory_equal(logits + (i - PROMPTS) * V, gdn_sequence_logits(s), V * sizeof *logits);
        again += i < PROMPTS ? 0 : computed;
    }
    counting = 0;
    gdn_sequence_close(s);
    gdn_engine_close(small);
    return again;
}

/* What leaves the index without memory to write or to read it is computed again, and has the same bits. */
static void spilled_without_memory(void **unused)
{
    const size_t n = (size_t)PROMPTS * gdn_engine_vocab_size(engine);
    float *const want = malloc(n * sizeof *want), *const got = malloc(n * sizeof *got);
    int n_missed = 0;
    (void)unused;
    assert_true(want && got);
    fail_at = 0;
    const long live = n_live;
    const int  fd = lowest_descriptor();
    assert_int_equal(spill(want), 0);
    for (fail_at = 1;; fail_at++) {
        n_missed += spill(got) > 0;
        assert_int_equal(n_live, live);
        assert_int_equal(lowest_descriptor(), fd);
        assert_memory_equal(got, want, n * sizeof *want);
        if (n_asked < fail_at) break;
    }
    print_message("%ld allocations, %d of them missed\n", fail_at - 1, n_missed);
    assert_true(n_missed > PROMPTS);
    free(want);
    free(got);
}

static const struct {
    const char *name;
    gdn_status (*make)(void **out);
    void (*end)(void *made);
    long n_least; /* allocations that it must need at least */
} makers[] = {{"gdn_engine_open", open_engine, close_engine, 100},
              {"gdn_sequence_open", open_sequence, close_sequence, 3},
              {"gdn_sequence_fork", fork_sequence, close_sequence, 3},
              {"gdn_engine_encode_chat", encode, free, 5},
              {"gdn_sampler_open", open_sampler, close_sampler, 6},
              {"gdn_stops_open", open_stops, close_stops, 3},
              {"gdn_output_open", open_output, close_output, 1},
              {"gdn_sequence_save", save, nothing, 1},
              {"gdn_sequence_load", load, nothing, 2},
              {"gdn_engine_open, cache_dir", open_cached, close_engine_of, 100}};

static void fail_each(const char *name, gdn_status (*make)(void **out), void (*end)(void *made), long n_least)
{
    for (fail_at = 1;; fail_at++) {
        const long live = n_live;
        const int  fd = lowest_descriptor();
        void      *made = NULL;
        err = (gdn_error){0};
        n_asked = 0;
        counting = 1;
        const gdn_status status = make(&made);
        counting = 0;
        if (status == GDN_OK) end(made);
        else if (status != GDN_NO_MEMORY || err.code != status || !err.message[0] || made)
            fail_msg("%s, allocation %ld: %s: %s", name, fail_at, gdn_status_name(status), err.message);
        if (n_live != live) fail_msg("%s, allocation %ld: %ld leaked", name, fail_at, n_live - live);
        assert_int_equal(lowest_descriptor(), fd);
        if (status == GDN_OK) break;
        if (n_asked < fail_at) fail_msg("%s fails without a failed allocation", name);
    }
    if (n_asked >= fail_at || n_asked < n_least) fail_msg("%s: %ld allocations seen", name, n_asked);
    print_message("%s: %ld allocations\n", name, n_asked);
}

static void every_allocation_fails(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        fail_each(makers[i].name, makers[i].make, makers[i].end, makers[i].n_least);
}

/* ---- the calls that make a text ------------------------------------------------------------------------------------- */

static int32_t first_of_row(void *arg, const float *logits)
{
    (void)arg;
    return logits[5] > logits[6] ? 5 : 6;
}

static void a_step_allocates_nothing(void **unused)
{
    enum { N = 300 };
    gdn_sequence *forked = NULL;
    gdn_sampler  *sampler = NULL;
    gdn_stops    *stops = NULL;
    int32_t       tokens[N];
    int           computed;
    gdn_decoder   decoder = {.tokenizer = gdn_engine_tokenizer(engine)};
    char         *piece = malloc(gdn_decoder_room(decoder.tokenizer)), shown[4096];
    (void)unused;
    assert_non_null(piece);
    for (int i = 0; i < N; i++) tokens[i] = 5 + i % 90;
    ACCEPTED(gdn_sequence_fork(&forked, source, &err));
    ACCEPTED(open_sampler((void **)&sampler));
    ACCEPTED(open_stops((void **)&stops));
    const gdn_step steps[] = {{source, tokens, 30}, {forked, tokens + 30, 1}};
    const long     live = n_live;
    fail_at = 0;
    n_asked = 0;
    counting = 1;
    ACCEPTED(gdn_engine_step(engine, steps, 2, &err)); /* the two part here */
    ACCEPTED(gdn_sequence_set(source, tokens, N, NULL, NULL, &computed, &err));
    for (int i = 0; i < 5; i++) {
        const int32_t token = gdn_sampler_pick(sampler, gdn_sequence_logits(source), NULL);
        gdn_sampler_accept(sampler, token, true);
        ACCEPTED(gdn_sequence_push(source, token, &err));
        const size_t n = gdn_decoder_put(&decoder, token, piece);
        assert_true(n + gdn_stops_held_max(stops) <= sizeof shown);
        gdn_stops_put(stops, piece, n, shown);
    }
    for (int i = 0; i < 12; i++) { /* drafts of the caller, of look-up and MTP; rejected ones and accepted ones */
        gdn_verify both[] = {{.sequence = source, .token = 5, .pick = first_of_row, .n_drafts = i % 5},
                             {.sequence = forked, .token = 6, .pick = first_of_row, .n_drafts = 4}};
        both[1].drafts = i % 2 ? tokens : NULL;
        ACCEPTED(gdn_engine_verify(engine, both, 2, &err));
    }
    ACCEPTED(gdn_sequence_set(source, tokens, N, NULL, NULL, &computed, &err)); /* made again */
    assert_int_equal(computed, 0);
    assert_int_equal(gdn_sequence_push(source, -1, &err), GDN_BAD_ARGUMENT);
    counting = 0;
    assert_int_equal(n_asked, 0);
    assert_int_equal(n_live, live);
    gdn_sequence_close(forked);
    gdn_sampler_close(sampler);
    gdn_stops_close(stops);
    free(piece);
}

static int setup(void **unused)
{
    const int32_t prompt[] = {1, 2, 3, 4, 5, 6, 7};
    json_set_alloc_funcs(json_alloc, __wrap_free);
    if (make_folder(unused)) return -1;
    snprintf(saved, sizeof saved, "%s/saved", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    fail_at = 0;
    return open_engine((void **)&engine) || gdn_sequence_open(&source, engine, &err) ||
           gdn_sequence_set(source, prompt, 7, NULL, NULL, NULL, &err) || gdn_sequence_save(source, saved, &err) ||
           set_cached() != 5;
}

static int teardown(void **unused)
{
    gdn_sequence_close(source);
    gdn_engine_close(engine);
    return remove_folder(unused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails),
                                       cmocka_unit_test(a_folder_without_memory),
                                       cmocka_unit_test(spilled_without_memory),
                                       cmocka_unit_test(a_step_allocates_nothing)};
    return cmocka_run_group_tests_name("allocations of the engine", tests, setup, teardown);
}
