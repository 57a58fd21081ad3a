/* The law through the public API: the logits of a sequence depend on its tokens alone, not on how they were cut into calls, the
 * level, the threads, strangers, forks or what the sequence held before. */
#include "law/engine.h"

/* ---- cuts ------------------------------------------------------------------------------------------------------------ */

static void cuts_of(gdn_engine *engine, int type, int n, const char *what)
{
    gdn_sequence *s = sequence_of(engine);
    rng           r = {5};
    set(s, 0, n); /* whole */
    expect(s, type, 0, n, what);
    gdn_sequence_close(s);
    s = sequence_of(engine); /* in pieces */
    for (int length = 0; length < n;) {
        const int most = n - length < 40 ? n - length : 40, piece = 1 + rng_below(&r, most);
        if (rng_below(&r, 2)) {
            set(s, 3, length + piece);
        } else {
            const gdn_step step = {s, text[3] + length, piece};
            ACCEPTED(gdn_engine_step(engine, &step, 1, &err));
        }
        expect(s, type, 3, length += piece, what);
    }
    gdn_sequence_close(s);
    s = sequence_of(engine); /* token by token */
    for (int i = 0; i < n; i++) {
        ACCEPTED(gdn_sequence_push(s, text[2][i], &err));
        expect(s, type, 2, i + 1, what);
    }
    gdn_sequence_close(s);
}

static void levels_threads_and_cuts(void **unused)
{
    static const char *const levels[] = {"ref", "avx2", "avx512", "amx", "neon", NULL};
    int                      n_levels = 0;
    (void)unused;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        for (int threads = 1; threads <= 3; threads++) {
            const int                type = threads == 2;
            const gdn_engine_options options = {.model = DEMO_FOLDER,
                                                .level = levels[i],
                                                .n_threads = threads,
                                                .max_tokens = LENGTH,
                                                .kv_type = type ? GDN_BF16 : GDN_F32};
            gdn_engine              *engine = NULL;
            char                     what[64];
            const gdn_status         status = gdn_engine_open(&engine, &options, &err);
            if (status == GDN_UNSUPPORTED && levels[i]) break;
            if (status) fail_msg("%s: %s", levels[i] ? levels[i] : "best", err.message);
            assert_int_equal(gdn_compute_threads(gdn_engine_compute(engine)), threads);
            if (levels[i]) assert_string_equal(gdn_compute_level(gdn_engine_compute(engine)), levels[i]);
            snprintf(what, sizeof what, "level %s, %d threads", levels[i] ? levels[i] : "best", threads);
            cuts_of(engine, type, i == 0 ? SHORT : LENGTH, what);
            gdn_engine_close(engine);
            n_levels += threads == 1;
        }
    print_message("%d levels\n", n_levels);
    assert_true(n_levels >= 2);
}

/* ---- strangers, forks and edits: random calls against the rule that the header states ---------------------------------- */

enum { LIVE = 4, STEPS = 800 };

typedef struct live {
    gdn_sequence *s;
    int           text, length, mark; /* tokens at the end of the last set; they are of the same text */
} live;

typedef struct play {
    gdn_engine *engine;
    live        live[LIVE];
    rng         r;
    int         type;
    bool        roomy; /* nothing is evicted */
    long        n_forks, n_regenerated, n_edited, n_full, n_batches, n_switched;
} play;

static int common(int a, int b)
{
    int n = 0;
    while (n < LENGTH && text[a][n] == text[b][n]) n++;
    return n;
}

/* A text that the sequence can go on as. */
static void choose_text(play *p, live *l)
{
    const int t = rng_below(&p->r, TEXTS);
    if (common(t, l->text) < l->length || t == l->text) return;
    l->text = t;
    p->n_switched++;
}

static void play_step(play *p)
{
    gdn_step steps[LIVE];
    int      which[LIVE], n_steps = 0, room = 1 + rng_below(&p->r, gdn_engine_max_step(p->engine));
    for (int i = 0; i < LIVE; i++) {
        live     *l = &p->live[i];
        const int most = LENGTH - l->length < room ? LENGTH - l->length : room;
        if (!l->s || !most || rng_below(&p->r, 3) == 0) continue;
        choose_text(p, l);
        const int n = rng_below(&p->r, 2) ? 1 : 1 + rng_below(&p->r, most);
        which[n_steps] = i;
        steps[n_steps++] = (gdn_step){l->s, text[l->text] + l->length, n};
        room -= n;
    }
    for (int i = n_steps - 1; i > 0; i--) { /* in any order */
        const int      j = rng_below(&p->r, i + 1), w = which[i];
        const gdn_step s = steps[i];
        which[i] = which[j], which[j] = w;
        steps[i] = steps[j], steps[j] = s;
    }
    if (!n_steps) return;
    const gdn_status status = gdn_engine_step(p->engine, steps, n_steps, &err);
    if (status && status != GDN_NO_SLOT) fail_msg("step: %s", err.message);
    p->n_full += status == GDN_NO_SLOT;
    p->n_batches += !status && n_steps > 1;
    for (int i = 0; i < n_steps && !status; i++) p->live[which[i]].length += steps[i].n;
}

/* Set to a text.  What the sequence holds is not computed again, nor, while nothing is evicted, what it was set to last. */
static void play_set(play *p, live *l)
{
    const int n = 1 + rng_below(&p->r, LENGTH), style = rng_below(&p->r, 3);
    const int t = style ? l->text : rng_below(&p->r, TEXTS), length = style == 1 && l->mark ? l->mark : n;
    const int shared = common(t, l->text) < length ? common(t, l->text) : length;
    int       expected = length, computed = -1;
    if (shared >= l->length) expected = length - l->length;
    else if (p->roomy && l->mark && shared >= l->mark) expected = length - l->mark;
    p->n_regenerated += l->mark && length == l->mark && l->length > l->mark && !expected;
    p->n_edited += l->length > shared && l->mark && shared >= l->mark && expected;
    const gdn_status status = gdn_sequence_set(l->s, text[t], length, NULL, NULL, &computed, &err);
    if (status && status != GDN_NO_SLOT) fail_msg("set: %s", err.message);
    p->n_full += status == GDN_NO_SLOT;
    if (status) return;
    assert_in_range(computed, 0, expected);
    l->text = t;
    l->length = l->mark = length;
}

static void play_fork(play *p, const live *from)
{
    gdn_sequence *s = NULL;
    int           i = 0;
    while (i < LIVE && p->live[i].s) i++;
    if (i == LIVE) {
        assert_int_equal(gdn_sequence_fork(&s, from->s, &err), GDN_NO_SLOT);
        assert_null(s);
        return;
    }
    ACCEPTED(gdn_sequence_fork(&s, from->s, &err));
    p->live[i] = *from;
    p->live[i].s = s;
    p->n_forks++;
}

static void play_one(play *p)
{
    live     *l = &p->live[rng_below(&p->r, LIVE)];
    const int what = rng_below(&p->r, 16);
    if (!l->s) {
        if (what < 4) *l = (live){.s = sequence_of(p->engine), .text = rng_below(&p->r, TEXTS)};
    } else if (what == 0) {
        gdn_sequence_close(l->s);
        *l = (live){0};
    } else if (what < 4) {
        play_fork(p, l);
    } else if (what < 7) {
        play_set(p, l);
    } else {
        play_step(p);
    }
}

static void strangers(void **unused)
{
    (void)unused;
    for (int round = 0; round < 3; round++) {
        /* In the first, keys and values have room for all that is kept; in the last two for less than the sequences have. */
        const gdn_engine_options options = {.n_threads = 1 + round,
                                            .n_sequences = LIVE,
                                            .kv_type = round == 1 ? GDN_BF16 : GDN_F32,
                                            .kv_tokens = (round ? 10 : 1000) * 64};
        play p = {.engine = engine_of(&options), .r = {9u + (unsigned)round}, .type = round == 1, .roomy = !round};
        for (int i = 0; i < STEPS; i++) {
            char what[32];
            play_one(&p);
            snprintf(what, sizeof what, "round %d, call %d", round, i);
            for (int k = 0; k < LIVE; k++)
                if (p.live[k].s) expect(p.live[k].s, p.type, p.live[k].text, p.live[k].length, what);
        }
        print_message(
            "%ld forks, %ld answers made again, %ld edited, %ld batches, %ld went another way, %ld times full\n",
            p.n_forks, p.n_regenerated, p.n_edited, p.n_batches, p.n_switched, p.n_full);
        assert_true(p.n_forks > 10 && (round || p.n_regenerated > 5) && p.n_edited > 3 && p.n_batches > 50 &&
                    p.n_switched > 10);
        assert_true(round ? p.n_full > 20 : p.n_full == 0);
        for (int k = 0; k < LIVE; k++) gdn_sequence_close(p.live[k].s);

        /* Nothing was lost: all that there is room for is there again. */
        gdn_sequence *all[LIVE];
        for (int k = 0; k < LIVE; k++) {
            all[k] = sequence_of(p.engine);
            set(all[k], k % TEXTS, round ? 2 * 64 : LENGTH);
        }
        for (int k = 0; k < LIVE; k++) gdn_sequence_close(all[k]);
        gdn_engine_close(p.engine);
    }
}

/* Four choices from one prompt, in one batch, cost no page of the prompt more than once. */
static void choices_share_the_prompt(void **unused)
{
    (void)unused;
    const gdn_engine_options options = {.n_sequences = LIVE, .kv_tokens = 64 + LIVE * 64};
    gdn_engine              *engine = engine_of(&options);
    gdn_sequence            *s[LIVE] = {sequence_of(engine)};
    static const int         goes_on_as[LIVE] = {0, 2, 0, 2};
    set(s[0], 0, COMMON_2);
    for (int i = 1; i < LIVE; i++) {
        ACCEPTED(gdn_sequence_fork(&s[i], s[0], &err));
        expect(s[i], 0, 0, COMMON_2, "a fork");
    }
    for (int length = COMMON_2; length < 2 * 64; length++) {
        gdn_step steps[LIVE];
        for (int i = 0; i < LIVE; i++) steps[i] = (gdn_step){s[i], text[goes_on_as[i]] + length, 1};
        ACCEPTED(gdn_engine_step(engine, steps, LIVE, &err));
        for (int i = 0; i < LIVE; i++) expect(s[i], 0, goes_on_as[i], length + 1, "a choice");
    }
    assert_refused(GDN_NO_SLOT, gdn_sequence_push(s[1], text[2][128], &ok_err));
    gdn_sequence_close(s[0]); /* its own page is free, the prompt's is not */
    ACCEPTED(gdn_sequence_push(s[1], text[2][128], &err));
    expect(s[1], 0, 2, 129, "a choice");
    expect(s[2], 0, 0, 128, "a choice");
    for (int i = 1; i < LIVE; i++) gdn_sequence_close(s[i]);
    gdn_engine_close(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_threads_and_cuts), cmocka_unit_test(strangers),
                                       cmocka_unit_test(choices_share_the_prompt)};
    return cmocka_run_group_tests_name("engine", tests, open_references, close_references);
}
