/* Random calls on the sequences of an engine that keeps, evicts, saves, restores and restarts, against texts that were computed
 * once and alone.  `test_reuse_random 10000` makes so many of each round. */
#include "law/reuse.h"
#include "support/folder.h"
#include <sys/stat.h>

enum { TIMELINES = 24, LONG = 230, IDS = 256, OPEN = 4, SAVED = 3, TURN = 7 };

#define TINY "tests/checkpoints/tiny-next"

static int     n_operations = 1000;
static char    model_folder[128], cache[128];
static int32_t texts[TIMELINES][LONG];
static float  *logits_of[TIMELINES]; /* [LONG][IDS] */

typedef struct known { /* the first `length` tokens of a text */
    int  text, length;
    bool has_logits;
} known;

typedef struct world {
    gdn_engine_options options;
    gdn_engine        *engine;
    gdn_sequence      *s[OPEN];
    known              held[OPEN], saved[SAVED];
    rng                r;
    long n_set, n_tokens, n_computed, n_stopped, n_forks, n_saved, n_loaded, n_evicted, n_restarts, n_full, n_batches;
} world;

/* ---- the models: one that computes each text once, and one with the demo's tokenizer beside the weights ----------------- */

static int link_into(const char *from, const char *name)
{
    char path[300], target[4096], *const real = realpath(from, NULL);
    snprintf(path, sizeof path, "%s/%s", model_folder, name);
    snprintf(target, sizeof target, "%s/%s", real ? real : "", name);
    free(real);
    return symlink(target, path);
}

static int setup(void **unused)
{
    gdn_model           *model = model_load(TINY);
    gdn_compute         *compute = demo_compute(NULL, 1);
    const session_config config = {.n_lanes = 1, .max_rows = LONG, .max_positions = LONG};
    rng                  r = {6};
    const int            n = LONG;
    (void)unused;
    if (model->config.vocab_size != IDS) return -1;
    if (make_folder(NULL)) return -1;
    snprintf(model_folder, sizeof model_folder, "%s/model", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    if (mkdir(model_folder, 0700) || link_into(TINY, "config.json") || link_into(TINY, "model.safetensors") ||
        link_into(TINY, "generation_config.json") || link_into(DEMO_FOLDER, "tokenizer.json"))
        return -1;
    for (int t = 0; t < TIMELINES; t++) { /* each leaves an earlier one somewhere */
        const int common = t ? rng_below(&r, LONG) : 0;
        if (t) memcpy(texts[t], texts[rng_below(&r, t)], (size_t)common * sizeof **texts);
        for (int i = common; i < LONG; i++) texts[t][i] = rng_below(&r, 12) ? rng_below(&r, IDS) : TURN;
        logits_of[t] = malloc((size_t)LONG * IDS * sizeof(float));
        session s = session_open(model, compute, &config);
        must(session_forward(&s, &n, texts[t], logits_of[t], NULL, &err), "forward", &err);
        session_close(&s);
    }
    gdn_compute_close(compute);
    gdn_model_close(model);
    return 0;
}

static int teardown(void **unused)
{
    for (int t = 0; t < TIMELINES; t++) free(logits_of[t]);
    return remove_folder(unused);
}

static void open_engine(world *w)
{
    ACCEPTED(gdn_engine_open(&w->engine, &w->options, &err));
    w->engine->turn = TURN;
}

/* ---- what must hold ------------------------------------------------------------------------------------------------------ */

static void expect_known(const gdn_sequence *s, const known *k)
{
    const float *logits = gdn_sequence_logits(s);
    assert_int_equal(gdn_sequence_length(s), k->length);
    assert_memory_equal(gdn_sequence_tokens(s), texts[k->text], (size_t)k->length * sizeof **texts);
    assert_int_equal(logits != NULL, k->has_logits);
    if (logits) assert_memory_equal(logits, logits_of[k->text] + (size_t)(k->length - 1) * IDS, IDS * sizeof *logits);
}

static void expect_all(const world *w)
{
    const gdn_prefix *const p = w->engine->prefix;
    for (int i = 0; i < OPEN; i++)
        if (w->s[i]) expect_known(w->s[i], &w->held[i]);
    assert_in_range(gdn_prefix_bytes(p), 0, w->options.reuse_bytes);
    const long long least = (long long)gdn_prefix_n_snapshots(p) * (long long)gdn_pool_slot_bytes(w->engine->pool) +
                            (long long)gdn_kv_n_alone(w->engine->kv) * (long long)gdn_kv_page_size(w->engine->kv);
    assert_true(gdn_prefix_bytes(p) >= least);
}

/* The states of a sequence, against a sequence that computes them from nothing. */
static void expect_states(const world *w, int i)
{
    if (!w->s[i] || !w->held[i].has_logits) return;
    ACCEPTED(gdn_sequence_set(plain, texts[(w->held[i].text + 1) % TIMELINES], 1, NULL, NULL, NULL, &err));
    ACCEPTED(gdn_sequence_set(plain, texts[w->held[i].text], w->held[i].length, NULL, NULL, NULL, &err));
    expect_same(w->s[i], plain, "random calls");
}

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

static int stop_soon(void *arg, int done, int total)
{
    rng *r = arg;
    (void)done, (void)total;
    return rng_below(r, 3) == 0;
}

static void op_set(world *w, int i)
{
    const int how = rng_below(&w->r, 5);
    known     to = {rng_below(&w->r, TIMELINES), 1 + rng_below(&w->r, LONG), true};
    int       computed = -1;
    if (how == 1 && w->held[i].length) to = w->held[i];               /* again, or the end of a stop */
    if (how == 2 && w->held[i].length) to.text = w->held[i].text;     /* shorter or longer */
    if (how == 3 && w->held[i].length) to.length = w->held[i].length; /* edited */
    to.has_logits = true;
    const bool       stops = how == 4;
    const gdn_status s =
        gdn_sequence_set(w->s[i], texts[to.text], to.length, stops ? stop_soon : NULL, &w->r, &computed, &err);
    if (s == GDN_NO_SLOT) {
        w->n_full++;
        return;
    }
    w->n_set++;
    w->n_tokens += to.length;
    w->n_computed += computed;
    if (s == GDN_BAD_STATE && stops) {
        to.length = gdn_sequence_length(w->s[i]);
        to.has_logits = false;
        w->n_stopped++;
    } else if (s) {
        fail_msg("set: %s", err.message);
    }
    w->held[i] = to;
}

static void op_step(world *w)
{
    gdn_step  steps[OPEN];
    int       n_steps = 0, which[OPEN];
    const int batch = rng_below(&w->r, 2);
    for (int i = 0; i < OPEN; i++) {
        const known *const k = &w->held[i];
        if (!w->s[i] || k->length == LONG || rng_below(&w->r, 3) == 0) continue;
        const int left = LONG - k->length, n = rng_below(&w->r, 2) ? 1 : 1 + rng_below(&w->r, left < 20 ? left : 20);
        which[n_steps] = i;
        steps[n_steps++] = (gdn_step){w->s[i], texts[k->text] + k->length, n};
        if (!batch) break;
    }
    if (!n_steps) return;
    const gdn_status s = gdn_engine_step(w->engine, steps, n_steps, &err);
    if (s && s != GDN_NO_SLOT) fail_msg("step: %s", err.message);
    w->n_full += s == GDN_NO_SLOT;
    w->n_batches += !s && n_steps > 1;
    for (int k = 0; k < n_steps && !s; k++) {
        w->held[which[k]].length += steps[k].n;
        w->held[which[k]].has_logits = true;
    }
}

static void close_one(world *w, int i)
{
    gdn_sequence_close(w->s[i]);
    w->s[i] = NULL;
    w->held[i] = (known){0};
}

static void op_fork(world *w, int i)
{
    const int to = rng_below(&w->r, OPEN);
    if (to == i) return;
    if (w->s[to]) close_one(w, to);
    ACCEPTED(gdn_sequence_fork(&w->s[to], w->s[i], &err));
    w->held[to] = w->held[i];
    w->n_forks++;
}

static void op_file(world *w, int i)
{
    const int slot = rng_below(&w->r, SAVED);
    char      path[128];
    snprintf(path, sizeof path, "%s/saved-%d", folder, slot);
    if (rng_below(&w->r, 2)) {
        if (!w->held[i].length) return;
        ACCEPTED(gdn_sequence_save(w->s[i], path, &err));
        w->saved[slot] = w->held[i];
        w->n_saved++;
    } else if (w->saved[slot].length) {
        const gdn_status s = gdn_sequence_load(w->s[i], path, &err);
        if (s && s != GDN_NO_SLOT) fail_msg("load: %s", err.message);
        w->n_full += s == GDN_NO_SLOT;
        if (s) return;
        w->held[i] = w->saved[slot];
        w->n_loaded++;
    }
}

static void op_restart(world *w)
{
    for (int i = 0; i < OPEN; i++) close_one(w, i);
    gdn_engine_close(w->engine);
    open_engine(w);
    w->n_restarts++;
}

static void operate(world *w)
{
    const int i = rng_below(&w->r, OPEN), what = rng_below(&w->r, 40);
    if (!w->s[i]) {
        w->s[i] = sequence_of(w->engine);
        op_set(w, i);
    } else if (what < 16) {
        op_set(w, i);
    } else if (what < 26) {
        op_step(w);
    } else if (what < 29) {
        op_fork(w, i);
    } else if (what < 32) {
        close_one(w, i);
    } else if (what < 35) {
        op_file(w, i);
    } else if (what < 39) {
        w->n_evicted += gdn_prefix_evict(w->engine->prefix);
    } else if (rng_below(&w->r, 5) == 0) {
        op_restart(w);
    }
}

static void random_calls(void **unused)
{
    (void)unused;
    static const struct {
        int       n_threads, kv_pages;
        long long reuse_slots;
        bool      disk;
    } rounds[] = {{1, 64, 300, false}, {2, 13, 20, false}, {1, 18, 8, true}, {2, 64, 100, true}};
    for (int round = 0; round < 4; round++) {
        gdn_pool *pool = NULL;
        nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        world      w = {.options = {.model = model_folder,
                                    .n_threads = rounds[round].n_threads,
                                    .n_sequences = OPEN,
                                    .max_tokens = LONG,
                                    .kv_tokens = rounds[round].kv_pages * 64,
                                    .cache_dir = rounds[round].disk ? cache : NULL,
                                    .cache_bytes = 4 << 20},
                        .r = {3u + (unsigned)round}};
        gdn_model *model = model_load(TINY);
        ACCEPTED(gdn_pool_open(&pool, &model->delta, model->n_delta_layers, 1, &err));
        w.options.reuse_bytes = rounds[round].reuse_slots * (long long)gdn_pool_slot_bytes(pool);
        gdn_pool_close(pool);
        gdn_model_close(model);
        gdn_engine_options alone = {.model = model_folder, .max_tokens = LONG, .reuse_bytes = -1};
        ACCEPTED(gdn_engine_open(&cold, &alone, &err));
        plain = sequence_of(cold);
        open_engine(&w);
        for (int i = 0; i < n_operations; i++) {
            operate(&w);
            expect_all(&w);
            if (i % 20 == 0) expect_states(&w, rng_below(&w.r, OPEN));
        }
        print_message(
            "%d operations: %ld sets of %ld tokens, %ld computed; %ld stopped, %ld forks, %ld batches, %ld saved, "
            "%ld loaded, %ld evicted, %ld restarts, %ld times full\n",
            n_operations, w.n_set, w.n_tokens, w.n_computed, w.n_stopped, w.n_forks, w.n_batches, w.n_saved, w.n_loaded,
            w.n_evicted, w.n_restarts, w.n_full);
        assert_true(w.n_set > 100 && w.n_computed < w.n_tokens && w.n_stopped > 3 && w.n_forks > 3 &&
                    w.n_batches > 20 && w.n_saved > 3 && w.n_loaded > 3 && w.n_evicted > 10 && w.n_restarts > 0);
        for (int i = 0; i < OPEN; i++) close_one(&w, i);
        gdn_engine_close(w.engine);
        gdn_sequence_close(plain);
        gdn_engine_close(cold);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_calls)};
    if (argc > 1) n_operations = atoi(argv[1]);
    return cmocka_run_group_tests_name("reuse, random calls", tests, setup, teardown);
}
