/* Calls of the public API that are stopped, refused, or made in another floating-point mode. */
#include "law/engine.h"

/* ---- stopping ---------------------------------------------------------------------------------------------------------- */

typedef struct watcher {
    int stop_at, n_calls, done, total;
} watcher;

static int watch(void *arg, int done, int total)
{
    watcher *w = arg;
    assert_true(done > w->done && done <= total);
    assert_true(!w->n_calls || total == w->total);
    w->n_calls++;
    w->done = done;
    w->total = total;
    return w->n_calls == w->stop_at;
}

static void stopped_prompts(void **unused)
{
    (void)unused;
    gdn_engine   *engine = engine_of(&(gdn_engine_options){.n_sequences = 2, .reuse_bytes = -1});
    gdn_sequence *s = sequence_of(engine), *forked = NULL;
    int           computed = 0;
    for (int how = 0; how < 4; how++) {
        watcher w = {.stop_at = 1};
        set(s, 3, 20); /* so that there are logits of before */
        assert_refused(GDN_BAD_STATE, gdn_sequence_set(s, text[0], LENGTH, watch, &w, &computed, &ok_err));
        assert_int_equal(computed, LENGTH);
        assert_int_equal(w.done, 256);
        assert_int_equal(w.total, LENGTH);
        assert_int_equal(gdn_sequence_length(s), 256);
        assert_memory_equal(gdn_sequence_tokens(s), text[0], 256 * sizeof **text);
        assert_null(gdn_sequence_logits(s));
        w = (watcher){0};
        if (how == 0) { /* on from there */
            ACCEPTED(gdn_sequence_set(s, text[0], LENGTH, watch, &w, &computed, &err));
            assert_int_equal(computed, LENGTH - 256);
            assert_int_equal(w.n_calls, 1);
            expect(s, 0, 0, LENGTH, "stopped, then on");
        } else if (how == 1) { /* no more than that: its logits have never been computed */
            ACCEPTED(gdn_sequence_set(s, text[0], 256, watch, &w, &computed, &err));
            assert_int_equal(computed, 256);
            expect(s, 0, 0, 256, "stopped, then that");
        } else if (how == 2) {
            ACCEPTED(gdn_sequence_push(s, text[0][256], &err));
            expect(s, 0, 0, 257, "stopped, then a token");
        } else { /* a fork has no logits either */
            ACCEPTED(gdn_sequence_fork(&forked, s, &err));
            assert_null(gdn_sequence_logits(forked));
            ACCEPTED(gdn_sequence_push(forked, text[0][256], &err));
            expect(forked, 0, 0, 257, "a fork of what was stopped");
            gdn_sequence_close(forked);
        }
    }
    /* A stop after the last piece is none. */
    watcher w = {.stop_at = 2};
    ACCEPTED(gdn_sequence_set(s, text[3], LENGTH, watch, &w, &computed, &err));
    expect(s, 0, 3, LENGTH, "stopped at its end");
    gdn_sequence_close(s);
    gdn_engine_close(engine);
}

/* ---- refusals ------------------------------------------------------------------------------------------------------------ */

typedef struct load_watcher {
    size_t done, total;
    int    n_calls;
} load_watcher;

static void watch_loading(void *arg, size_t done, size_t total)
{
    load_watcher *w = arg;
    assert_true(done >= w->done && done <= total && (!w->n_calls || total == w->total));
    *w = (load_watcher){done, total, w->n_calls + 1};
}

static void engine_refusals(void **unused)
{
    const gdn_engine_options demo = {.model = DEMO_FOLDER};
    gdn_engine              *engine = NULL;
    load_watcher             loading = {0};
    (void)unused;
#define OPENED_WITH(status, ...)                                                 \
    do {                                                                         \
        const gdn_engine_options options_ = {.model = DEMO_FOLDER, __VA_ARGS__}; \
        assert_refused(status, gdn_engine_open(&engine, &options_, &ok_err));    \
        assert_null(engine);                                                     \
    } while (0)
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_open(NULL, &demo, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_open(&engine, NULL, &ok_err));
    assert_refused(GDN_BAD_ARGUMENT, gdn_engine_open(&engine, &(gdn_engine_options){0}, &ok_err));
    assert_refused(GDN_IO, gdn_engine_open(&engine, &(gdn_engine_options){.model = "tests/nowhere"}, &ok_err));
    OPENED_WITH(GDN_BAD_ARGUMENT, .n_sequences = -1);
    OPENED_WITH(GDN_BAD_ARGUMENT, .n_sequences = 4097);
    OPENED_WITH(GDN_BAD_ARGUMENT, .max_tokens = -1);
    OPENED_WITH(GDN_BAD_ARGUMENT, .max_tokens = 1 << 24);
    OPENED_WITH(GDN_BAD_ARGUMENT, .kv_type = (gdn_type)2);
    OPENED_WITH(GDN_BAD_ARGUMENT, .kv_tokens = -1);
    OPENED_WITH(GDN_BAD_ARGUMENT, .kv_tokens = INT64_MAX);
    OPENED_WITH(GDN_BAD_ARGUMENT, .n_threads = 257);
    OPENED_WITH(GDN_UNSUPPORTED, .level = "sse");
    /* What can be known without the weights is said before they are read: here the tokenizer is not there. */
#define WITHOUT_WEIGHTS .progress = watch_loading, .progress_arg = &loading
    const gdn_engine_options silent = {.model = "tests/checkpoints/tiny-moe-fused", WITHOUT_WEIGHTS};
    gdn_error                why = {0};
    assert_int_equal(gdn_engine_open(&engine, &silent, &why), GDN_IO);
    assert_non_null(strstr(why.message, "tokenizer.json"));
    OPENED_WITH(GDN_BAD_ARGUMENT, WITHOUT_WEIGHTS, .max_tokens = 1 << 24);
    OPENED_WITH(GDN_BAD_ARGUMENT, WITHOUT_WEIGHTS, .kv_tokens = INT64_MAX);
    OPENED_WITH(GDN_UNSUPPORTED, WITHOUT_WEIGHTS, .level = "sse");
    OPENED_WITH(GDN_IO, WITHOUT_WEIGHTS, .cache_dir = "/proc/nowhere/cache");
    assert_int_equal(loading.n_calls, 0);
    const gdn_engine_options watched = {.model = DEMO_FOLDER, .progress = watch_loading, .progress_arg = &loading};
    ACCEPTED(gdn_engine_open(&engine, &watched, &err));
    assert_true(loading.n_calls > 10);
    assert_int_equal(loading.done, loading.total);
    assert_int_equal(gdn_engine_n_sequences(engine), 1);
    assert_int_equal(gdn_engine_vocab_size(engine), V);
    gdn_engine_close(engine);
    gdn_engine_close(NULL);
}

static void sequence_refusals(void **unused)
{
    gdn_engine    *engine = engine_of(&(gdn_engine_options){.n_sequences = 2, .max_tokens = 270, .kv_tokens = 5 * 64});
    gdn_engine    *other = engine_of(&(gdn_engine_options){.n_sequences = 1});
    gdn_sequence  *a = sequence_of(engine), *b = sequence_of(engine), *c = NULL, *foreign = sequence_of(other);
    const int32_t *t = text[0], bad[] = {t[20], V}, negative[] = {-1};
    (void)unused;
    set(a, 0, 20);
    set(b, 3, 100);
#define REFUSED(status, call)         \
    do {                              \
        assert_refused(status, call); \
        expect(a, 0, 0, 20, #call);   \
        expect(b, 0, 3, 100, #call);  \
    } while (0)
#define STEPS_REFUSED(status, n, ...) \
    REFUSED(status, gdn_engine_step(engine, ((const gdn_step[]){__VA_ARGS__}), n, &ok_err))
#define STEP(...) ((gdn_step){__VA_ARGS__})
    REFUSED(GDN_NO_SLOT, gdn_sequence_open(&c, engine, &ok_err));
    REFUSED(GDN_NO_SLOT, gdn_sequence_fork(&c, a, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_open(&c, NULL, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_open(NULL, engine, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_fork(&c, NULL, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_push(a, V, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_push(a, -1, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_push(NULL, 0, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_set(a, t, 0, NULL, NULL, NULL, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_set(a, t, 271, NULL, NULL, NULL, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_set(a, NULL, 1, NULL, NULL, NULL, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_set(NULL, t, 1, NULL, NULL, NULL, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_sequence_set(a, bad, 2, NULL, NULL, NULL, &ok_err));
    REFUSED(GDN_NO_SLOT, gdn_sequence_set(b, text[1], 270, NULL, NULL, NULL,
                                          &ok_err)); /* 5 pages are needed, and a has one of the 5 */
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 0, STEP(a, t, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 3, STEP(a, t, 1), STEP(b, t, 1), STEP(a, t, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(a, t + 1, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(foreign, t, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(NULL, t, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(b, NULL, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(b, t, 0));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(b, t, -5));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(b, t, 171));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(b, bad, 2));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 1), STEP(b, negative, 1));
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 2, STEP(a, t, 200), STEP(b, t, 57)); /* 257 in all */
    STEPS_REFUSED(GDN_BAD_ARGUMENT, 1, STEP(a, t, INT32_MAX));
    STEPS_REFUSED(GDN_NO_SLOT, 2, STEP(a, t + 20, 180), STEP(b, text[3] + 100, 60)); /* 3 pages more, and 1 */
    REFUSED(GDN_BAD_ARGUMENT, gdn_engine_step(NULL, &STEP(a, t, 1), 1, &ok_err));
    REFUSED(GDN_BAD_ARGUMENT, gdn_engine_step(engine, NULL, 1, &ok_err));
    assert_null(c);
    assert_int_equal(gdn_sequence_push(a, V, NULL), GDN_BAD_ARGUMENT); /* an error is optional */
    gdn_sequence_close(b);

    set(a, 0, 270); /* to the brim, and one more */
    assert_refused(GDN_BAD_ARGUMENT, gdn_sequence_push(a, 0, &ok_err));
    expect(a, 0, 0, 270, "full");
    gdn_sequence_close(a);
    a = sequence_of(engine); /* its places are free again */
    b = sequence_of(engine);
    set(b, 3, 64);
    expect(b, 0, 3, 64, "opened again");
    expect(a, 0, 0, 0, "opened again");
    const gdn_step own = {b, gdn_sequence_tokens(b), 1}; /* tokens of its own */
    ACCEPTED(gdn_sequence_set(b, gdn_sequence_tokens(b), 10, NULL, NULL, NULL, &err));
    expect(b, 0, 3, 10, "set to a part of itself");
    ACCEPTED(gdn_engine_step(engine, &own, 1, &err));
    assert_int_equal(gdn_sequence_tokens(b)[10], text[3][0]);
    gdn_sequence_close(a);
    gdn_sequence_close(b);
    gdn_sequence_close(foreign);
    gdn_sequence_close(NULL);
    gdn_engine_close(engine);
    gdn_engine_close(other);
}

/* ---- the caller's floating-point mode -------------------------------------------------------------------------------------- */

static const char chat[] =
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi \\u0000 <|im_end|>\"}], \"tools\": [{\"type\": "
    "\"function\", \"function\": {\"name\": \"f\", \"description\": \"\", \"parameters\": {\"x\": "
    "0.1, \"y\": 1.7976931348623157e308, \"z\": 5e-324}}}], \"add_generation_prompt\": true}";

typedef struct outcome {
    int32_t picks[200];
    double  logprobs[200];
    gdn_ids ids;
    int     thinks;
} outcome;

static void note_call(void *arg, const gdn_output_event *event)
{
    if (event->kind == GDN_OUTPUT_CALL) snprintf(arg, 128, "%s", event->text);
}

static outcome outcome_in(fpmode mode, char *call)
{
    static const char stream[] =
        "<tool_call>\n<function=f>\n<parameter=x>\n0.30000000000000004\n</parameter>\n</function>\n</tool_call>";
    static const char tools[] =
        "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": {\"type\": \"number\"}}}}]";
    const fpmode              mine = fpmode_get();
    outcome                   o = {0};
    gdn_output               *output = NULL;
    gdn_engine               *engine = NULL;
    gdn_sequence             *s = NULL;
    gdn_sampler              *sampler = NULL;
    const gdn_engine_options  options = {.model = DEMO_FOLDER, .max_tokens = LENGTH};
    const gdn_token_bias      bias = {3, 0.1};
    const gdn_sampler_options sampling = {.temperature = 1.3,
                                          .top_p = 0.93,
                                          .min_p = 0.01,
                                          .repetition_penalty = 1.1,
                                          .presence_penalty = 0.3,
                                          .n_bias = 1,
                                          .bias = &bias,
                                          .seed = 4};
    fpmode_put(mode);
    gdn_status status = gdn_engine_open(&engine, &options, &err);
    if (!status) status = gdn_engine_encode_chat(engine, chat, NULL, &o.ids, &o.thinks, &err);
    if (!status) status = gdn_sequence_open(&s, engine, &err);
    if (!status) status = gdn_sequence_set(s, text[0], 90, NULL, NULL, NULL, &err);
    if (!status) status = gdn_sampler_open(&sampler, V, gdn_engine_n_usable(engine), &sampling, &err);
    for (int i = 0; i < 200 && !status; i++) {
        o.picks[i] = gdn_sampler_pick(sampler, gdn_sequence_logits(s), &o.logprobs[i]);
        gdn_sampler_accept(sampler, o.picks[i], true);
    }
    if (!status) status = gdn_output_open(&output, tools, false, note_call, call, &err);
    if (!status) status = gdn_output_feed(output, stream, sizeof stream - 1, &err);
    if (!status) status = gdn_output_end(output, &err);
    const fpmode after = fpmode_get();
    fpmode_put(mine);
    if (status) fail_msg("%s", err.message);
    assert_int_equal(after, mode);
    expect(s, 0, 0, 90, "another mode");
    gdn_output_close(output);
    gdn_sampler_close(sampler);
    gdn_sequence_close(s);
    gdn_engine_close(engine);
    return o;
}

static void the_callers_mode_changes_nothing(void **unused)
{
    (void)unused;
    char          call[128] = "", other_call[128];
    const outcome nearest = outcome_in(fpmode_make(FPMODE_NEAREST, 0), call);
    int           n_different = 0;
    assert_true(nearest.ids.n > 20);
    assert_string_equal(call, "{\"x\":0.30000000000000004}");
    for (int i = 1; i < 200; i++) n_different += nearest.picks[i] != nearest.picks[0];
    assert_true(n_different > 50); /* the draws do draw */
    for (int direction = 0; direction < FPMODE_DIRECTIONS; direction++) {
        const outcome o = outcome_in(fpmode_make(direction, 1), other_call);
        assert_memory_equal(o.picks, nearest.picks, sizeof o.picks);
        assert_memory_equal(o.logprobs, nearest.logprobs, sizeof o.logprobs);
        assert_int_equal(o.ids.n, nearest.ids.n);
        assert_memory_equal(o.ids.id, nearest.ids.id, o.ids.n * sizeof *o.ids.id);
        assert_int_equal(o.thinks, nearest.thinks);
        assert_string_equal(other_call, call);
        free(o.ids.id);
    }
    free(nearest.ids.id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stopped_prompts), cmocka_unit_test(engine_refusals),
                                       cmocka_unit_test(sequence_refusals),
                                       cmocka_unit_test(the_callers_mode_changes_nothing)};
    return cmocka_run_group_tests_name("engine calls", tests, open_references, close_references);
}
