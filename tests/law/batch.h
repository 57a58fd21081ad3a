/* batch.h - lists of rows through a model, or through its MTP layer, in batches: what comes out of a row, and what a lane keeps, must
 * be what it is alone, in one call, at the best level with one thread.  What test_model and test_mtp share; each of them defines the
 * four functions below. */
#ifndef LAW_BATCH_H
#define LAW_BATCH_H
#include "law/model.h"
#include "law/run.h"
#include "support/fpmode.h"
#include "support/random.h"

enum { SEQUENCES = 4, LONG = 0, SHORT = 3, MAX_TOKENS = 150 };

static const int      lengths[SEQUENCES] = {MAX_TOKENS, 41, 90, 20}; /* of the last, few enough for the level "ref" */
static const gdn_type kv_types[] = {GDN_F32, GDN_BF16};
static const char *const folders[] = {DEMO_FOLDER, "tests/checkpoints/tiny-moe", "tests/checkpoints/tiny-next"};

/* Rows, and what must come out of them. */
typedef struct sequence {
    int      n;
    int32_t *tokens;
    float   *in;           /* [n][h]: what MTP takes besides; else NULL */
    float   *logits, *out; /* [n][V], [n][h] */
    float   *memory;       /* after all of it, see session_memory; NULL: nothing is kept */
} sequence;

/* A session whose lanes are sequences, and how far each has come. */
typedef struct batch {
    session         s;
    gdn_kv         *kv;                   /* of the layers that run */
    int             n_lanes, type, first; /* first: position of the first row */
    const sequence *lanes[MAX_RUN_LANES];
    int             done[MAX_RUN_LANES];
    const char     *what; /* for messages */
} batch;

static const char  *folder;
static gdn_model   *model;
static gdn_compute *best;                    /* one thread */
static sequence     sequences[2][SEQUENCES]; /* of each type of keys and values */
static int          V, h;

/* Sequence `number` alone: tokens, in, and all that comes out; `n` is lengths[number]. */
static void fill_sequence(sequence *q, int number, gdn_type kv_type);
/* Lanes for the sequences `which`, with room for all their rows at once. */
static batch batch_of(gdn_compute *compute, int type, const int *which, int n_lanes, const char *what);
static void  batch_close(batch *b);
/* Run the next n[lane] rows; `out` may be `in`, or NULL. */
static gdn_status run_rows(batch *b, const int *n, const int32_t *tokens, const float *in, float *logits, float *out,
                           gdn_error *err);

/* ---- references ---------------------------------------------------------------------------------------------------- */

static inline float *numbers(size_t n)
{
    float *p = malloc((n + 1) * sizeof *p);
    assert_non_null(p);
    return p;
}

static inline int open_all(void **unused)
{
    (void)unused;
    model = model_load(folder);
    best = demo_compute(NULL, 1);
    V = model->config.vocab_size;
    h = model->config.hidden_size;
    for (int i = 0; i < 2 * SEQUENCES; i++) {
        sequence *const q = &sequences[i / SEQUENCES][i % SEQUENCES];
        *q = (sequence){.n = lengths[i % SEQUENCES]};
        q->tokens = malloc((size_t)q->n * sizeof *q->tokens);
        assert_non_null(q->tokens);
        q->logits = numbers((size_t)q->n * V);
        q->out = numbers((size_t)q->n * h);
        fill_sequence(q, i % SEQUENCES, kv_types[i / SEQUENCES]);
    }
    return 0;
}

static inline int close_all(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2 * SEQUENCES; i++) {
        sequence *const q = &sequences[i / SEQUENCES][i % SEQUENCES];
        free(q->tokens);
        free(q->in);
        free(q->logits);
        free(q->out);
        free(q->memory);
    }
    gdn_compute_close(best);
    gdn_model_close(model);
    return 0;
}

static inline void same_row(const batch *b, int lane, int position, const char *what, const float *got,
                            const float *want, int n)
{
    for (int i = 0; i < n; i++)
        if (memcmp(&got[i], &want[i], sizeof *got) != 0)
            fail_msg(
                "%s: level %s, %d threads, kv %s: lane %d of %d (%d tokens), position %d: %s[%d] is %a, alone it is %a",
                b->what, gdn_compute_level(b->s.compute), gdn_compute_threads(b->s.compute), b->type ? "bf16" : "f32",
                lane, b->n_lanes, b->lanes[lane]->n, position, what, i, (double)got[i], (double)want[i]);
}

/* ---- batches of sequences --------------------------------------------------------------------------------------------- */

/* Feed the next n[lane] rows; of lane i only the first right[i] have the tokens of its sequence, others are wrong (right NULL: all
 * are right).  Every row up to the first wrong token must be as alone.  `done` does not move. */
static inline void feed_batch(batch *b, const int *n, const int *right)
{
    int n_rows = 0, row = 0;
    for (int i = 0; i < b->n_lanes; i++) n_rows += n[i];
    int32_t *const tokens = malloc(((size_t)n_rows + 1) * sizeof *tokens);
    float *const logits = numbers((size_t)n_rows * V), *const hidden = numbers((size_t)n_rows * h);
    assert_non_null(tokens);
    for (int i = 0; i < b->n_lanes; i++)
        for (int t = 0; t < n[i]; t++, row++) {
            const sequence *const q = b->lanes[i];
            const int             at = b->done[i] + t;
            tokens[row] = right && t >= right[i] ? (int32_t)((at * 37 + 5) % V) : q->tokens[at];
            if (q->in) memcpy(hidden + (size_t)row * h, q->in + (size_t)at * h, h * sizeof *hidden);
        }
    assert_ok(run_rows(b, n, tokens, hidden, logits, hidden, &ok_err)); /* in place */
    row = 0;
    for (int i = 0; i < b->n_lanes; row += n[i++])
        for (int t = 0; t < (right ? right[i] : n[i]); t++) {
            const size_t at = (size_t)(b->done[i] + t), r = (size_t)(row + t);
            same_row(b, i, (int)at, "hidden", hidden + r * h, b->lanes[i]->out + at * h, h);
            same_row(b, i, (int)at, "logits", logits + r * V, b->lanes[i]->logits + at * V, V);
        }
    free(tokens);
    free(logits);
    free(hidden);
}

static inline void move(batch *b, const int *n)
{
    for (int i = 0; i < b->n_lanes; i++) {
        b->done[i] += n[i];
        assert_int_equal(gdn_kv_length(b->kv, i), b->first + b->done[i]);
        if (b->lanes[i]->memory) assert_int_equal(gdn_cache_lane_offset(b->s.cache, i), b->done[i]);
    }
}

static inline void step(batch *b, const int *n)
{
    feed_batch(b, n, NULL);
    move(b, n);
}

/* The sequence of a lane is done: the lane holds what it holds alone. */
static inline void assert_end(const batch *b, int lane)
{
    assert_int_equal(b->done[lane], b->lanes[lane]->n);
    if (!b->lanes[lane]->memory) return;
    const size_t n = session_memory_size(&b->s);
    float *const memory = numbers(n);
    assert_true(session_memory(&b->s, lane, memory));
    same_row(b, lane, b->done[lane], "memory", memory, b->lanes[lane]->memory, (int)n);
    free(memory);
}

static inline void assert_ends(const batch *b)
{
    for (int i = 0; i < b->n_lanes; i++) assert_end(b, i);
}

/* Sizes of the next pieces, each at most `most`, some 0 when there are several lanes; false when all is done. */
static inline bool next_pieces(const batch *b, rng *r, int most, int *n)
{
    int left = 0, n_rows = 0;
    for (int i = 0; i < b->n_lanes; i++) left += b->lanes[i]->n - b->done[i];
    if (!left) return false;
    while (n_rows == 0)
        for (int i = 0; i < b->n_lanes; i++) {
            const int rest = b->lanes[i]->n - b->done[i],
                      piece = b->n_lanes > 1 ? rng_below(r, most + 1) : 1 + rng_below(r, most);
            n[i] = piece < rest ? piece : rest;
            n_rows += n[i];
        }
    return true;
}

static inline void finish(batch *b, rng *r, int most)
{
    int n[MAX_RUN_LANES];
    while (next_pieces(b, r, most, n)) step(b, n);
    assert_ends(b);
}

/* Lanes `which` from nothing to their ends: whole when most is 0. */
static inline void run_batch(gdn_compute *compute, int type, const int *which, int n_lanes, rng *r, int most,
                             const char *what)
{
    batch b = batch_of(compute, type, which, n_lanes, what);
    if (most == 0) {
        int n[MAX_RUN_LANES];
        for (int i = 0; i < n_lanes; i++) n[i] = b.lanes[i]->n;
        step(&b, n);
    }
    finish(&b, r, most);
    batch_close(&b);
}

/* ---- tests: pieces, strangers, threads, levels, floating-point modes ------------------------------------------------- */

static inline void pieces(void **unused)
{
    (void)unused;
    static const int sizes[] = {0, 1, 5, 33, 64, 100};
    rng              r = {11};
    for (int type = 0; type < 2; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            run_batch(best, type, &(int){LONG}, 1, &r, sizes[i], "pieces");
}

static inline void strangers(void **unused)
{
    (void)unused;
    static const int sizes[] = {0, 1, 4, 40, 70};
    rng              r = {12};
    for (int type = 0; type < 2; type++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            int which[] = {0, 1, 2, 3, 1}; /* one of them twice */
            rng_shuffle(&r, which, 5);
            run_batch(best, type, which, 2 + rng_below(&r, 4), &r, sizes[i], "strangers");
        }
}

static inline void threads(void **unused)
{
    (void)unused;
    rng r = {13};
    for (int n = 1; n <= 3; n++) {
        gdn_compute *const compute = demo_compute(NULL, n);
        for (int type = 0; type < 2; type++) {
            run_batch(compute, type, &(int){LONG}, 1, &r, 0, "threads");
            run_batch(compute, type, (const int[]){2, 0, 1}, 3, &r, 40, "threads");
            run_batch(compute, type, &(int){1}, 1, &r, 1, "threads");
        }
        gdn_compute_close(compute);
    }
}

static inline void levels(void **unused)
{
    (void)unused;
    rng r = {14};
    int n_levels = 0;
    for (int i = 0; gdn_kernels_level(i); i++) {
        gdn_compute *compute = NULL;
        gdn_error    err = {0};
        const char  *name = gdn_kernels_level(i)->name;
        if (gdn_compute_open(&compute, name, 1, &err) == GDN_UNSUPPORTED && i > 0) continue;
        assert_non_null(compute);
        n_levels++;
        for (int type = 0; type < 2; type++) {
            run_batch(compute, type, &(int){SHORT}, 1, &r, 9, "levels");
            if (i == 0) continue; /* slow */
            run_batch(compute, type, &(int){LONG}, 1, &r, 0, "levels");
            run_batch(compute, type, (const int[]){1, 0, 2}, 3, &r, 50, "levels");
            run_batch(compute, type, &(int){2}, 1, &r, 1, "levels");
        }
        gdn_compute_close(compute);
    }
    print_message("levels: %d\n", n_levels);
    assert_true(n_levels >= 1);
}

/* The caller's rounding and flushing have no part in it, and are left alone. */
static inline void floating_point_mode(void **unused)
{
    (void)unused;
    const fpmode    before = fpmode_get();
    const sequence *q = &sequences[0][1];
    float *const    logits = numbers((size_t)q->n * V);
    for (int direction = 0; direction < FPMODE_DIRECTIONS; direction++)
        for (int flush = 0; flush < 2; flush++) {
            batch     b = batch_of(best, 0, &(int){1}, 1, "floating-point mode");
            gdn_error err;
            fpmode_put(fpmode_make(direction, flush));
            const gdn_status status = run_rows(&b, &q->n, q->tokens, q->in, logits, NULL, &err);
            const fpmode     after = fpmode_get();
            fpmode_put(before);
            assert_int_equal(status, GDN_OK);
            assert_int_equal(after, fpmode_make(direction, flush));
            for (int t = 0; t < q->n; t++)
                same_row(&b, 0, t, "logits", logits + (size_t)t * V, q->logits + (size_t)t * V, V);
            batch_close(&b);
        }
    free(logits);
}

#endif
