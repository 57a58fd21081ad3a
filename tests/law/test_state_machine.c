/* Random sequences of cache operations against the naive model of machine.h: after every operation each lane's states,
 * tails, offset, padding and window, the free slots, and every output of a layer must be what its own tokens give.
 * An operation is data: a failing sequence is cut down to a short one, which is printed.
 *   test_state_machine [--sequences=N] [--seed=N]     --seed alone: run that one sequence and print its operations
 *   GDN_LAW_SEQUENCES, in the environment, is the number of sequences for slow builds */
#include "law/operations.h"
#include "support/random.h"
#include <setjmp.h>
#include <signal.h>
#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#endif
#ifdef SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

enum { MAX_OPS = 24, DEFAULT_SEQUENCES = 10000 };

/* name, weight among the random operations */
#define OP_LIST(X)  \
    X(open, 3)      \
    X(close, 2)     \
    X(add, 6)       \
    X(forward, 36)  \
    X(prepare, 3)   \
    X(finalize, 5)  \
    X(begin, 14)    \
    X(commit, 9)    \
    X(rollback, 18) \
    X(merge, 7)     \
    X(filter, 5)    \
    X(extract, 6)   \
    X(share, 5)     \
    X(clear, 3)     \
    X(take, 4)      \
    X(restore, 5)   \
    X(release, 1)   \
    X(reload, 1)    \
    X(wrong, 12)

enum {
#define X(name, weight) OP_##name,
    OP_LIST(X)
#undef X
        N_OPS
};

static long ran[N_OPS];
enum { LEVELS = 8 };
static gdn_compute *computes[LEVELS][2]; /* [level][threads - 1] */
static const char  *level_names[LEVELS];
static int          n_levels;
static uint64_t     running_seed;

/* ---- sequences --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int         weight;
    bool (*run)(world *w, const op *o);
} op_table[N_OPS] = {
#define X(name, weight) {#name, weight, do_##name},
    OP_LIST(X)
#undef X
};

static void make_setup(setup *s, uint64_t seed)
{
    rng               r = {seed};
    gdn_delta_config *c = &s->config;
    *s = (setup){.config = {.qk_eps = 1e-6f}};
    c->n_key_heads = rng_below(&r, 4) == 0 ? 2 : 1;
    c->n_value_heads = c->n_key_heads * (1 + rng_below(&r, 2));
    c->key_dim = rng_below(&r, 6) == 0 ? 64 : 32;
    c->value_dim = rng_below(&r, 6) == 0 ? 64 : 32;
    c->n_taps = 2 + rng_below(&r, 3);
    c->head_map = (gdn_head_map)rng_below(&r, 2);
    c->type = (gdn_type)rng_below(&r, 2);
    c->recipe = (gdn_recipe)rng_below(&r, 2);
    c->qk_norm = (gdn_qk_norm_form)rng_below(&r, 3);
    s->n_layers = 1 + rng_below(&r, LAW_MAX_LAYERS);
    s->n_slots = rng_below(&r, 3) == 0 ? 1 + rng_below(&r, 3) : 4 + rng_below(&r, MAX_SLOTS - 3);
    s->level = level_names[rng_below(&r, 3) ? n_levels - 1 : rng_below(&r, n_levels)];
    s->n_threads = 1 + (rng_below(&r, 8) == 0);
    s->rounding = rng_below(&r, 4) ? FPMODE_NEAREST : rng_below(&r, FPMODE_DIRECTIONS);
    s->flush = rng_below(&r, 4) == 0;
}

typedef struct trial {
    setup    setup;
    op       ops[MAX_OPS];
    int      n;
    uint64_t seed;
} trial;

/* Operation i of a sequence, attempt `attempt`: the first ones make a cache with lanes that hold something; after
 * that each follows the last one's cache mostly. */
static op random_op(const trial *t, int i, int attempt)
{
    static const int first[] = {OP_open, OP_add, OP_forward};
    const uint64_t   key = law_hash(law_hash(t->seed, 3), 1000u * (unsigned)i + (unsigned)attempt);
    op               o = {0};
    int              total = 0;
    for (int k = 0; k < N_OPS; k++) total += op_table[k].weight;
    for (int at = law_pick(key, 0, total); at >= op_table[o.kind].weight; o.kind++) at -= op_table[o.kind].weight;
    if (i < 3) o.kind = first[i];
    for (unsigned k = 0; k < 4; k++) o.word[k] = (uint32_t)law_hash(key, 1 + k);
    if (i && law_pick(key, 9, 4)) o.word[0] = t->ops[i - 1].word[0];
    return o;
}

static void world_close(world *w)
{
    while (w->n_snapshots) snapshot_drop(w, 0);
    while (w->n_caches) cache_drop(w, 0);
    if (w->pool && gdn_pool_free_slots(w->pool) != w->setup->n_slots)
        failed(w, "slots are missing after the last cache closed");
    gdn_pool_close(w->pool);
    law_model_close(&w->model);
}

static void world_open(world *w, const trial *t, bool verbose)
{
    gdn_error err;
    *w = (world){.setup = &t->setup, .verbose = verbose};
    law_model_open(&w->model, &t->setup.config, t->setup.n_layers, t->seed);
    for (int i = 0; i < n_levels; i++)
        if (!strcmp(level_names[i], t->setup.level)) w->compute = computes[i][t->setup.n_threads - 1];
    must(w, "gdn_pool_open", gdn_pool_open(&w->pool, &t->setup.config, t->setup.n_layers, t->setup.n_slots, &err),
         &err);
}

/* Run an operation and check the world; false when it did not fit. */
static bool step(world *w, const op *o)
{
    const bool done = op_table[o->kind].run(w, o);
    if (!done || w->failed) return done || w->failed;
    ran[o->kind]++;
    check_world(w);
    for (int c = 0; c < w->n_caches && o->word[3] % 16 == 0; c++)
        for (int l = 0; l < w->caches[c]->n && !w->failed; l++) check_from_scratch(w, &w->caches[c]->lanes[l]->now);
    return true;
}

/* Make up a sequence while it runs, of operations that fit.  True when the library did as the model says. */
static bool run_random(trial *t, world *w)
{
    const int n = 12 + law_pick(t->seed, 4, MAX_OPS - 11);
    world_open(w, t, false);
    for (int attempt = 0; t->n < n && attempt < 50 * n && !w->failed; attempt++) {
        t->ops[t->n] = random_op(t, t->n, attempt);
        t->n += step(w, &t->ops[t->n]);
    }
    world_close(w);
    return !w->failed;
}

/* Run a list again. */
static bool run_list(const trial *t, bool verbose, world *w)
{
    world_open(w, t, verbose);
    for (int i = 0; i < t->n && !w->failed; i++) step(w, &t->ops[i]);
    world_close(w);
    return !w->failed;
}

/* ---- shrinking --------------------------------------------------------------------------------------------------- */

static bool adopt(trial *f, const trial *smaller)
{
    world w;
    if (run_list(smaller, false, &w)) return false;
    *f = *smaller;
    return true;
}

static bool shrink_ops(trial *f)
{
    bool any = false;
    for (int size = f->n / 2; size >= 1; size /= 2)
        for (int at = 0; at + size <= f->n;) {
            trial smaller = *f;
            memmove(smaller.ops + at, smaller.ops + at + size, (size_t)(f->n - at - size) * sizeof *f->ops);
            smaller.n -= size;
            if (adopt(f, &smaller)) any = true;
            else at += size;
        }
    for (int i = 0; i < f->n; i++)
        for (int k = 0; k < 4; k++) {
            trial smaller = *f;
            smaller.ops[i].word[k] = 0;
            if (f->ops[i].word[k] && adopt(f, &smaller)) any = true;
        }
    return any;
}

static void shrink_setup(trial *f)
{
    trial s = *f;
#define TRY(assignment) (s = *f, assignment, adopt(f, &s))
    TRY(s.setup.n_threads = 1);
    TRY(s.setup.level = "ref");
    TRY(s.setup.rounding = FPMODE_NEAREST);
    TRY(s.setup.flush = 0);
    TRY(s.setup.n_layers = 1);
    TRY(s.setup.n_slots = MAX_SLOTS);
    TRY(s.setup.config.type = GDN_F32);
    TRY(s.setup.config.recipe = GDN_RECIPE_HF);
    TRY(s.setup.config.qk_norm = GDN_QK_NORM_SUM);
    TRY(s.setup.config.head_map = GDN_HEADS_GROUPED);
    TRY(s.setup.config.n_value_heads = s.setup.config.n_key_heads);
    TRY(s.setup.config.n_key_heads = s.setup.config.n_value_heads = 1);
    TRY(s.setup.config.key_dim = 32);
    TRY(s.setup.config.value_dim = 32);
    TRY(s.setup.config.n_taps = 2);
#undef TRY
}

static void report(trial *f)
{
    const gdn_delta_config *c = &f->setup.config;
    const int               n = f->n;
    world                   w;
    shrink_setup(f);
    while (shrink_ops(f)) {}
    fprintf(stderr, "\nsequence --seed=%llu fails; cut from %d operations to %d:\n", (unsigned long long)f->seed, n,
            f->n);
    fprintf(stderr,
            "Hk %d, Hv %d, Dk %d, Dv %d, K %d, map %d, type %d, recipe %d, qk norm %d, %d layers, %d slots, %s, %d "
            "threads, "
            "rounding %d, flush %d\n",
            c->n_key_heads, c->n_value_heads, c->key_dim, c->value_dim, c->n_taps, c->head_map, c->type, c->recipe,
            c->qk_norm, f->setup.n_layers, f->setup.n_slots, f->setup.level, f->setup.n_threads, f->setup.rounding,
            f->setup.flush);
    run_list(f, true, &w);
    fprintf(stderr, "=> %s\n", w.message);
}

/* ---- the test ---------------------------------------------------------------------------------------------------- */

static long first_seed = 1, n_sequences = DEFAULT_SEQUENCES;
static long failed_at = -1;
static bool replay;

/* A crash cannot be cut down here, but its sequence can be named.  A sanitizer has its own handlers, and a hook for
 * this. */
static void name_the_sequence(void) { fprintf(stderr, "in the sequence --seed=%lu\n", (unsigned long)running_seed); }

#ifdef SANITIZED
static void watch_for_crashes(void) { __sanitizer_set_death_callback(name_the_sequence); }
#else
static void on_crash(int sig)
{
    name_the_sequence();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void watch_for_crashes(void)
{
    signal(SIGSEGV, on_crash);
    signal(SIGFPE, on_crash);
    signal(SIGABRT, on_crash);
}
#endif

static void test_sequences(void **state)
{
    (void)state;
    for (long i = 0; i < n_sequences; i++) {
        trial t = {.seed = (uint64_t)(first_seed + i)};
        world w;
        running_seed = t.seed;
        make_setup(&t.setup, law_hash(t.seed, 1));
        const bool fine = run_random(&t, &w);
        if (replay) run_list(&t, true, &w);
        if (fine) continue;
        failed_at = i;
        report(&t);
        fail_msg("sequence %lld: %s", (long long)t.seed, w.message);
    }
}

/* Ten thousand sequences must have done everything, or the test says less than it seems to. */
static void test_everything_ran(void **state)
{
    (void)state;
    for (int k = 0; k < N_OPS; k++) print_message("%s %ld, ", op_table[k].name, ran[k]);
    print_message("no slot %ld\n", no_slot);
    if (n_sequences < DEFAULT_SEQUENCES || failed_at >= 0) skip();
    for (int k = 0; k < N_OPS; k++)
        if (ran[k] < 100) fail_msg("%s ran %ld times only", op_table[k].name, ran[k]);
    for (int k = 0; k < N_WRONG_CALLS; k++)
        if (refusals[k] < 20) fail_msg("wrong call '%s' was made %ld times only", wrong_calls[k].name, refusals[k]);
    assert_true(no_slot >= 100);
}

static int setup_computes(void **state)
{
    for (int i = 0; gdn_kernels_level(i) && n_levels < LEVELS; i++)
        for (int t = 0; t < 2; t++) {
            const char *name = gdn_kernels_level(i)->name;
            if (gdn_compute_open(&computes[n_levels][t], name, t + 1, NULL)) continue;
            level_names[n_levels] = name;
            n_levels += t;
        }
    return n_levels == 0 || make_folder(state);
}

static int teardown_computes(void **state)
{
    (void)state;
    for (int i = 0; i < n_levels; i++) gdn_compute_close(computes[i][0]), gdn_compute_close(computes[i][1]);
    unlink(in_folder("snapshot"));
    return rmdir(folder); /* fails when anything else is left in it */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sequences), cmocka_unit_test(test_everything_ran)};
    const char             *count = getenv("GDN_LAW_SEQUENCES");
    if (count) n_sequences = atol(count);
    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "--sequences=%ld", &n_sequences) == 1) replay = false;
        else if (sscanf(argv[i], "--seed=%ld", &first_seed) == 1) replay = true;
        else return fprintf(stderr, "usage: %s [--sequences=N] [--seed=N]\n", argv[0]), 2;
    }
    if (replay) n_sequences = 1;
    watch_for_crashes();
    return cmocka_run_group_tests(tests, setup_computes, teardown_computes);
}
