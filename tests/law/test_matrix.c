/* The law for drafts, in every combination: answers made with them have the tokens and the logits of answers made token by token,
 * bit for bit, and so does all that follows:
 *     drafts off (the caller brings them), by look-up, by MTP; and by both
 *     0 to 8 of them in a pass; and the most there can be, and as many as pay
 *     a state that was computed, found in the index, read from files
 *     alone, and in a batch with others that have drafts of other kinds, or none
 *     on one thread and on two */
#include "law/spec.h"
#include "support/folder.h"

typedef enum way { MISS, HIT, RESTORED, WAYS } way;

enum { BATCH = 4, LIKE_CELL = 2, THREADS = 2, AS_MANY_AS_PAY = -1 };

/* The law's three drafters and depths come first. */
static const gdn_drafter drafters[] = {GDN_DRAFTER_OFF, GDN_DRAFTER_LOOKUP, GDN_DRAFTER_MTP, GDN_DRAFTER_AUTO};
static const int         depths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, GDN_DRAFTS_MAX, AS_MANY_AS_PAY};

enum { LAW_DRAFTERS = 3, LAW_DEPTHS = 9 };
enum { DRAFTERS = sizeof drafters / sizeof *drafters, DEPTHS = sizeof depths / sizeof *depths };

typedef struct cell {
    gdn_drafter drafter;
    int         depth;
    way         how;
    int         n_answers, n_threads;
    rng         r;
} cell;

static cell playing; /* for the message when it fails */

/* What happened; drafts are those that the cell is about, of its first LIKE_CELL answers. */
typedef struct tally {
    int  n_cells, deepest; /* most drafts of an answer in a pass */
    long n_together, n_mixed;
    long n_drafted, n_accepted;
} tally;

/* Tokens of an answer of a batch: more than one pass can make of the first two, whatever is accepted. */
static int most_of(int i) { return MADE - i * (i + 1); }

/* ---- where the state comes from ------------------------------------------------------------------------------------------ */

static gdn_engine *open_cold(const cell *c)
{
    return open_engine(&(gdn_engine_options){.n_threads = c->n_threads,
                                             .n_sequences = c->n_answers,
                                             .kv_tokens = 8192,
                                             .drafter = c->drafter,
                                             .n_drafts = GDN_DRAFTS_MAX,
                                             .reuse_bytes = c->how == MISS ? -1 : 0,
                                             .cache_dir = c->how == RESTORED ? folder : NULL});
}

static gdn_engine *open_again(gdn_engine *engine, const cell *c)
{
    gdn_engine_close(engine);
    return open_cold(c);
}

/* An engine that has seen the prompts, but for the last `n_new` tokens of each; or its files were left by one that has. */
static gdn_engine *open_warm(const cell *c, const answer *const *which, int n_new)
{
    gdn_engine *engine = open_cold(c);
    for (int i = 0; i < c->n_answers && c->how != MISS; i++) {
        gdn_sequence *s = NULL;
        ACCEPTED(gdn_sequence_open(&s, engine, &err));
        ACCEPTED(gdn_sequence_set(s, which[i]->tokens, which[i]->n_prompt - n_new, NULL, NULL, NULL, &err));
        gdn_sequence_close(s);
    }
    return c->how == RESTORED ? open_again(engine, c) : engine;
}

/* The prompt is there, and no more of it was computed than had to be. */
static void expect_reused(const maker *m, const cell *c, int n_new, bool seen)
{
    if (c->how == MISS) assert_int_equal(m->n_computed, m->a->n_prompt);
    else assert_int_equal(m->n_computed, seen ? 0 : n_new);
}

/* Set it to the recorded run up to there; returns how many tokens were computed. */
static int set_to(gdn_sequence *s, const answer *a, int n)
{
    int n_computed = -1;
    ACCEPTED(gdn_sequence_set(s, a->tokens, n, NULL, NULL, &n_computed, &err));
    assert_int_equal(gdn_sequence_length(s), n);
    assert_memory_equal(gdn_sequence_tokens(s), a->tokens, (size_t)n * sizeof *a->tokens);
    assert_memory_equal(gdn_sequence_logits(s), logits_at(a, n - a->n_prompt), (size_t)V * sizeof(float));
    return n_computed;
}

/* In the middle of its answer a sequence gives up what it holds, and gets it back. */
static void leave_and_return(maker *m, way how)
{
    static const int32_t other = 7;
    const int            n = gdn_sequence_length(m->s);
    char                 path[256];
    snprintf(path, sizeof path, "%s", in_folder("state"));
    if (how == RESTORED) ACCEPTED(gdn_sequence_save(m->s, path, &err));
    ACCEPTED(gdn_sequence_set(m->s, &other, 1, NULL, NULL, NULL, &err));
    if (how == MISS) assert_int_equal(set_to(m->s, m->a, n), n);
    if (how == HIT) {
        assert_in_range(set_to(m->s, m->a, n + 1), 0, 1); /* a token more than was left behind */
        assert_int_equal(set_to(m->s, m->a, n), 0);
    }
    if (how == RESTORED) ACCEPTED(gdn_sequence_load(m->s, path, &err));
    expect_made(m);
    m->returned = true;
}

/* What the answers left behind, in the index or in files, is what others go on from. */
static void expect_left(gdn_engine *engine, const answer *const *which, const cell *c)
{
    for (int i = 0; i < c->n_answers && c->how != MISS; i++) {
        gdn_sequence *s = NULL;
        ACCEPTED(gdn_sequence_open(&s, engine, &err));
        assert_in_range(set_to(s, which[i], which[i]->n_prompt + MADE + AFTER), 0, MADE - most_of(i) + 1);
        gdn_sequence_close(s);
    }
}

/* ---- answers ---------------------------------------------------------------------------------------------------------------- */

/* The first two answers of a batch draft as the cell says, the third has no drafts, the fourth brings some of its own. */
static gdn_verify next_call(cell *c, maker *m, int i)
{
    if (i == 2 || (i < LIKE_CELL && c->depth == 0)) return call_of(m, m->drafts, 0);
    if (i == 3) return call_of(m, drafts_of(m, PARTLY, 3, &c->r), 3);
    if (c->depth == AS_MANY_AS_PAY) return call_of(m, NULL, 0);
    if (c->drafter != GDN_DRAFTER_OFF) return call_of(m, NULL, c->depth);
    return call_of(m, drafts_of(m, (style)(m->n_passes % STYLES), c->depth, &c->r), c->depth);
}

/* One pass for those whose turn it is. */
static void pass(gdn_engine *engine, cell *c, maker *m, tally *t)
{
    gdn_verify calls[BATCH];
    int        of[BATCH], n = 0, n_with = 0;
    for (int i = c->n_answers - 1; i >= 0; i--) { /* not in the order of the lanes */
        if (m[i].made == m[i].most || (c->n_answers > 1 && rng_below(&c->r, 5) == 0)) continue;
        of[n] = i;
        calls[n++] = next_call(c, &m[i], i);
    }
    if (!n) return;
    ACCEPTED(gdn_engine_verify(engine, calls, n, &err));
    for (int k = 0; k < n; k++) {
        maker *const at = &m[of[k]];
        called(at, &calls[k]);
        if (calls[k].drafts) assert_int_equal(calls[k].n_drafted, calls[k].n_drafts);
        n_with += calls[k].n_drafted > 0;
        if (of[k] < LIKE_CELL && calls[k].n_drafted > t->deepest) t->deepest = calls[k].n_drafted;
        if (at->made < at->most && at->made >= at->most / 2 && !at->returned) leave_and_return(at, c->how);
    }
    t->n_together += n > 1;
    t->n_mixed += n_with > 0 && n_with < n;
}

static void finish(maker *m)
{
    const gdn_draft_stats s = gdn_sequence_draft_stats(m->s);
    assert_int_equal(s.n_passes, m->n_passes);
    assert_int_equal(s.n_drafted, m->n_drafted);
    assert_int_equal(s.n_accepted, m->n_accepted);
    assert_int_equal(s.n_tokens, m->most - 1);
    assert_true(m->returned);
    go_on(m);
    maker_close(m);
}

/* A cell is about what it says only if that happened. */
static void expect_premises(const cell *c, const tally *t)
{
    if (c->n_answers > 1) assert_true(t->n_together > 0 && t->n_mixed > 0);
    if (c->depth == 0) assert_int_equal(t->n_drafted, 0);
    if (c->depth > 0 && c->drafter != GDN_DRAFTER_LOOKUP) assert_int_equal(t->deepest, c->depth);
    if (c->depth == AS_MANY_AS_PAY && c->drafter == GDN_DRAFTER_OFF) assert_int_equal(t->n_drafted, 0);
}

static void play(cell *c, tally *sum)
{
    const answer *which[BATCH];
    maker         m[BATCH];
    tally         t = {0};
    const int     first = rng_below(&c->r, ANSWERS), n_new = rng_below(&c->r, 12);
    for (int i = 0; i < c->n_answers; i++) which[i] = &answers[(first + i) % ANSWERS];
    assert_int_equal(make_folder(NULL), 0);
    gdn_engine *engine = open_warm(c, which, n_new);
    assert_int_equal(gdn_compute_threads(gdn_engine_compute(engine)), c->n_threads);
    for (int i = 0; i < c->n_answers; i++) {
        bool seen = false; /* the prompt, for the answer before */
        for (int k = 0; k < i; k++) seen = seen || (which[k] - answers) / 2 == (which[i] - answers) / 2;
        m[i] = maker_open(engine, which[i], most_of(i));
        expect_reused(&m[i], c, n_new, seen);
        pick(&m[i], gdn_sequence_logits(m[i].s));
    }
    for (bool busy = true; busy;) {
        pass(engine, c, m, &t);
        busy = false;
        for (int i = 0; i < c->n_answers; i++) busy = busy || m[i].made < m[i].most;
    }
    for (int i = 0; i < c->n_answers; i++) {
        if (i < LIKE_CELL) t.n_drafted += m[i].n_drafted, t.n_accepted += m[i].n_accepted;
        finish(&m[i]);
    }
    if (c->how == RESTORED) engine = open_again(engine, c);
    expect_left(engine, which, c);
    gdn_engine_close(engine);
    assert_int_equal(remove_folder(NULL), 0);
    expect_premises(c, &t);
    sum->n_cells++;
    sum->n_drafted += t.n_drafted;
    sum->n_accepted += t.n_accepted;
    if (t.deepest > sum->deepest) sum->deepest = t.deepest;
}

/* ---- all of them --------------------------------------------------------------------------------------------------------------- */

static const char *name_of(gdn_drafter drafter)
{
    return drafter == GDN_DRAFTER_OFF      ? "off"
           : drafter == GDN_DRAFTER_LOOKUP ? "look-up"
           : drafter == GDN_DRAFTER_MTP    ? "mtp"
                                           : "auto";
}

static void report(gdn_drafter drafter, const tally *of_depth)
{
    print_message("%-7s", name_of(drafter));
    for (int i = 0; i < DEPTHS; i++)
        if (of_depth[i].n_cells)
            print_message("  %d: %ld/%ld", depths[i], of_depth[i].n_accepted, of_depth[i].n_drafted);
    print_message("\n");
}

/* Where drafts are made for sure, some are right, some are not, and there are as many as were asked for. */
static void expect_drafts(int depth, const tally *t)
{
    if (depth <= 0) return;
    assert_int_equal(t->deepest, depth);
    assert_in_range(t->n_accepted, 1, t->n_drafted - 1);
}

/* Returns how many were played. */
static int play_depth(gdn_drafter drafter, int depth, rng *r, tally *t)
{
    for (way how = MISS; how < WAYS; how++)
        for (int n_answers = 1; n_answers <= BATCH; n_answers += BATCH - 1)
            for (int n_threads = 1; n_threads <= THREADS; n_threads++) {
                playing = (cell){drafter, depth, how, n_answers, n_threads, {rng_u32(r)}};
                play(&playing, t);
            }
    expect_drafts(depth, t);
    return t->n_cells;
}

static void matrix(void **unused)
{
    int n_law = 0, n_more = 0;
    rng r = {31};
    (void)unused;
    print_message("drafts, depth: accepted/drafted; depth %d: as many as pay\n", (int)AS_MANY_AS_PAY);
    for (int d = 0; d < DRAFTERS; d++) {
        tally of_depth[DEPTHS] = {{0}};
        for (int i = 0; i < DEPTHS; i++) {
            const bool law = d < LAW_DRAFTERS && i < LAW_DEPTHS;
            if (!law && i < LAW_DEPTHS && depths[i] != 3)
                continue; /* one of them is enough for both drafters at once */
            *(law ? &n_law : &n_more) += play_depth(drafters[d], depths[i], &r, &of_depth[i]);
        }
        report(drafters[d], of_depth);
    }
    playing.n_answers = 0;
    print_message("%d cells of the law, %d more\n", n_law, n_more);
    assert_int_equal(n_law, 3 * 9 * 3 * 2 * 2);
    assert_int_equal(n_more, (4 * 2 + 1) * 3 * 2 * 2);
}

static int say_where(void **unused)
{
    static const char *const ways[] = {"computed", "hit", "restored"};
    (void)unused;
    if (playing.n_answers)
        print_message("the last cell: drafts %s, depth %d, %s, %d at once, %d threads\n", name_of(playing.drafter),
                      playing.depth, ways[playing.how], playing.n_answers, playing.n_threads);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(matrix, say_where)};
    return cmocka_run_group_tests_name("the matrix of drafts", tests, record_all, forget_all);
}
