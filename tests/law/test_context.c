/* What MTP drafts after some tokens depends on these tokens alone: not on whether a sequence computed them, found them in the prefix
 * index, in a file or in a folder, or was forked, nor on how it came to them.  So a hit is drafted for as well as a miss. */
#include "engine/draft.h"
#include "law/run.h"
#include "law/spec.h"
#include "support/folder.h"

/* Texts: chats that the model goes on with.  Three begin alike, up to different tokens of the third page. */
enum { TEXTS = 4, LONG = 420, MOST_DRAFTS = 4, OPEN = 3, SAVED = 2 };

typedef struct chat {
    int     n_prompt, n; /* tokens of the prompt; in all */
    int32_t tokens[LONG];
    int32_t drafts[LONG][MOST_DRAFTS]; /* [p]: those after token p */
} chat;

static chat chats[TEXTS];
static char file[100], cache[100];

static const gdn_engine_options mtp = {.n_threads = 1,
                                       .n_sequences = OPEN,
                                       .max_tokens = LONG,
                                       .drafter = GDN_DRAFTER_MTP,
                                       .n_drafts = MOST_DRAFTS};

/* ---- what must be drafted: every token alone, of a sequence that reused nothing ---------------------------------------------- */

static int32_t end(void *arg, const float *logits)
{
    (void)arg, (void)logits;
    return -1;
}

static void record_drafts(gdn_engine *engine, gdn_sequence *s, chat *c)
{
    ACCEPTED(gdn_sequence_set(s, c->tokens, 1, NULL, NULL, NULL, &err));
    for (int p = 1; p < c->n - MOST_DRAFTS; p++) {
        gdn_verify call = {.sequence = s, .token = c->tokens[p], .n_drafts = MOST_DRAFTS, .pick = end};
        ACCEPTED(gdn_engine_verify(engine, &call, 1, &err));
        assert_int_equal(call.n_drafted, MOST_DRAFTS);
        assert_int_equal(gdn_sequence_length(s), p + 1);
        memcpy(c->drafts[p], engine->drafts, sizeof c->drafts[p]);
    }
}

static int32_t likeliest(const float *logits)
{
    int best = 0;
    for (int i = 1; i < n_usable; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

static void write_chat(gdn_engine *engine, gdn_sequence *s, chat *c)
{
    ACCEPTED(gdn_sequence_set(s, c->tokens, c->n_prompt, NULL, NULL, NULL, &err));
    for (c->n = c->n_prompt; c->n < LONG; c->n++) {
        c->tokens[c->n] = likeliest(gdn_sequence_logits(s));
        ACCEPTED(gdn_sequence_push(s, c->tokens[c->n], &err));
    }
    record_drafts(engine, s, c);
}

static int setup(void **unused)
{
    static const char  vars[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"You answer in few words. You "
                                "know sums, colours, names of "
                                "animals and the days of the week. If somebody asks for anything else, say so, and be "
                                "friendly about it. Never use "
                                "more words than are needed, and never fewer. Monday, Tuesday, Wednesday, Thursday, "
                                "Friday, Saturday, Sunday. Red, "
                                "blue, green, yellow, white, black. Cat, dog, horse, cow, sheep, pig, mouse. 1 + 1 = 2, "
                                "2 + 2 = 4, 3 + 3 = 6.\"}, "
                                "{\"role\": \"user\", \"content\": \"Say this again: red blue red blue red blue green. "
                                "Then say what 12 + 30 is.\"}], "
                                "\"add_generation_prompt\": true}";
    gdn_engine_options options = mtp;
    gdn_engine        *engine;
    gdn_sequence      *s;
    gdn_ids            ids = {0};
    (void)unused;
    options.reuse_bytes = -1;
    engine = open_engine(&options);
    V = gdn_engine_vocab_size(engine);
    n_usable = gdn_engine_n_usable(engine);
    ACCEPTED(gdn_sequence_open(&s, engine, &err));
    ACCEPTED(gdn_engine_encode_chat(engine, vars, NULL, &ids, NULL, &err));
    assert_in_range(ids.n, 150, 250);
    for (int i = 0; i < TEXTS; i++) {
        static const int edited[TEXTS] = {0, 128, 127, 40}; /* where a page begins, where one ends, and anywhere */
        chats[i].n_prompt = (int)ids.n;
        memcpy(chats[i].tokens, ids.id, ids.n * sizeof *ids.id);
        if (i) chats[i].tokens[edited[i]] = 1000 + i;
        write_chat(engine, s, &chats[i]);
    }
    free(ids.id);
    gdn_sequence_close(s);
    gdn_engine_close(engine);
    if (make_folder(NULL)) return -1;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    return 0;
}

static const char *file_of(int slot)
{
    snprintf(file, sizeof file, "%s/saved-%d", folder, slot);
    return file;
}

/* ---- drafts that are checked --------------------------------------------------------------------------------------------------- */

/* Picks what the text has. */
typedef struct reader {
    const chat *c;
    int         next;
} reader;

static int32_t read_on(void *arg, const float *logits)
{
    reader *r = arg;
    (void)logits;
    return r->c->tokens[r->next++];
}

typedef struct tally {
    long n_rounds, n_drafted, n_accepted;
} tally;

/* One round, from what the sequence holds of the text; the drafts must be those recorded.  `room`: there are none if pages lack. */
static void verify(gdn_engine *engine, gdn_sequence *s, const chat *c, int depth, bool room, tally *t)
{
    const int  p = gdn_sequence_length(s);
    reader     r = {c, p + 1};
    gdn_verify call = {.sequence = s, .token = c->tokens[p], .n_drafts = depth, .pick = read_on, .arg = &r};
    ACCEPTED(gdn_engine_verify(engine, &call, 1, &err));
    if (call.n_drafted != depth && (room || call.n_drafted)) fail_msg("%d of %d drafts", call.n_drafted, depth);
    const int32_t *const drafts = engine->drafts + (size_t)s->lane * GDN_DRAFTS_MAX;
    int                  right = 0;
    for (int i = 0; i < call.n_drafted; i++)
        if (drafts[i] != c->drafts[p][i])
            fail_msg("after token %d of text %d: draft %d is %d, alone it is %d", p, (int)(c - chats), i,
                     (int)drafts[i], (int)c->drafts[p][i]);
    while (right < call.n_drafted && c->drafts[p][right] == c->tokens[p + 1 + right]) right++;
    assert_int_equal(call.n_accepted, right);
    t->n_rounds++;
    t->n_drafted += call.n_drafted;
    t->n_accepted += call.n_accepted;
}

static tally read_to(gdn_engine *engine, gdn_sequence *s, const chat *c, int to)
{
    tally t = {0};
    while (gdn_sequence_length(s) < to) verify(engine, s, c, 3, true, &t);
    return t;
}

static void same_tally(const char *what, tally got, tally want)
{
    print_message("%s: %ld of %ld drafts accepted in %ld rounds\n", what, got.n_accepted, got.n_drafted, got.n_rounds);
    assert_int_equal(got.n_rounds, want.n_rounds);
    assert_int_equal(got.n_accepted, want.n_accepted);
}

static gdn_sequence *open_sequence(gdn_engine *engine, const chat *c, int n, int most)
{
    gdn_sequence *s = NULL;
    int           computed = -1;
    ACCEPTED(gdn_sequence_open(&s, engine, &err));
    if (!n) return s;
    ACCEPTED(gdn_sequence_set(s, c->tokens, n, NULL, NULL, &computed, &err));
    assert_in_range(computed, 0, most);
    return s;
}

/* ---- the ways to a prompt ---------------------------------------------------------------------------------------------------- */

static void ways(void **unused)
{
    enum { END = LONG - 20 };
    const chat *const  c = &chats[0];
    const int          n = c->n_prompt;
    gdn_engine_options options = mtp;
    (void)unused;
    options.cache_dir = cache;
    gdn_engine   *engine = open_engine(&options);
    gdn_sequence *s = open_sequence(engine, c, n, n);
    ACCEPTED(gdn_sequence_save(s, file_of(0), &err));
    const tally miss = read_to(engine, s, c, END);
    same_tally("miss", miss, miss);
    assert_true(miss.n_accepted > miss.n_drafted / 2);
    gdn_sequence *other = open_sequence(engine, c, n, 0);
    same_tally("hit, another sequence", read_to(engine, other, c, END), miss);
    gdn_sequence_close(s);
    s = open_sequence(engine, c, n, 0);
    gdn_sequence *forked;
    ACCEPTED(gdn_sequence_fork(&forked, s, &err));
    same_tally("fork", read_to(engine, forked, c, END), miss);
    same_tally("its source", read_to(engine, s, c, END), miss);
    ACCEPTED(gdn_sequence_load(s, file_of(0), &err));
    same_tally("file", read_to(engine, s, c, END), miss);
    gdn_sequence_close(forked);

    /* A prompt that parts from another one inside what both hold. */
    for (int i = 1; i < TEXTS; i++) {
        ACCEPTED(gdn_sequence_set(s, chats[i].tokens, n, NULL, NULL, NULL, &err));
        read_to(engine, s, &chats[i], END);
    }
    /* Pushed, not drafted, for longer than what waits for the layer; then it drafts. */
    ACCEPTED(gdn_sequence_set(s, c->tokens, 1, NULL, NULL, NULL, &err));
    for (int i = 1; i < n; i++) ACCEPTED(gdn_sequence_push(s, c->tokens[i], &err));
    same_tally("pushed", read_to(engine, s, c, END), miss);
    gdn_sequence_close(s);
    gdn_sequence_close(other);
    gdn_engine_close(engine);

    engine = open_engine(&options);
    s = open_sequence(engine, c, n, 0);
    same_tally("restarted", read_to(engine, s, c, END), miss);
    ACCEPTED(gdn_sequence_load(s, file_of(0), &err));
    same_tally("file, another engine", read_to(engine, s, c, END), miss);
    gdn_sequence_close(s);
    gdn_engine_close(engine);
}

/* ---- random calls -------------------------------------------------------------------------------------------------------------- */

typedef struct world {
    gdn_engine_options options;
    gdn_engine        *engine;
    gdn_sequence      *s[OPEN];
    const chat        *held[OPEN], *saved[SAVED];
    rng                r;
    bool               room;
    tally              t;
    long               n_computed, n_tokens, n_forks, n_loaded, n_full;
} world;

static bool may(const world *w, gdn_status s)
{
    if (s && (w->room || s != GDN_NO_SLOT)) fail_msg("%s", err.message);
    return !s;
}

static void set_one(world *w, int i)
{
    const chat *const c = &chats[rng_below(&w->r, TEXTS)];
    const int         n = 1 + rng_below(&w->r, LONG - 20);
    int               computed = 0;
    if (!may(w, gdn_sequence_set(w->s[i], c->tokens, n, NULL, NULL, &computed, &err))) {
        w->n_full++;
        return;
    }
    w->held[i] = c;
    w->n_computed += computed;
    w->n_tokens += n;
}

/* Several sequences draft in one pass; each is judged by itself. */
static void verify_some(world *w)
{
    gdn_verify calls[OPEN];
    reader     readers[OPEN];
    int        at[OPEN], depth[OPEN], n = 0;
    for (int i = 0; i < OPEN; i++) {
        const int p = gdn_sequence_length(w->s[i]);
        if (!p || p >= LONG - 12 || rng_below(&w->r, 3) == 0) continue;
        readers[n] = (reader){w->held[i], p + 1};
        at[n] = i;
        calls[n] = (gdn_verify){.sequence = w->s[i],
                                .token = w->held[i]->tokens[p],
                                .n_drafts = depth[n] = 1 + rng_below(&w->r, MOST_DRAFTS),
                                .pick = read_on,
                                .arg = &readers[n]};
        n++;
    }
    if (!n || !may(w, gdn_engine_verify(w->engine, calls, n, &err))) return;
    for (int k = 0; k < n; k++) {
        const chat *const    c = w->held[at[k]];
        const int            p = gdn_sequence_length(w->s[at[k]]) - 1 - calls[k].n_accepted;
        const int32_t *const drafts = w->engine->drafts + (size_t)w->s[at[k]]->lane * GDN_DRAFTS_MAX;
        if (calls[k].n_drafted || w->room) assert_int_equal(calls[k].n_drafted, depth[k]);
        assert_memory_equal(drafts, c->drafts[p], (size_t)calls[k].n_drafted * sizeof *drafts);
        w->t.n_rounds++;
        w->t.n_drafted += calls[k].n_drafted;
        w->t.n_accepted += calls[k].n_accepted;
    }
}

static void step_one(world *w, int i)
{
    const int p = gdn_sequence_length(w->s[i]), n = 1 + rng_below(&w->r, 150);
    if (!p || p + n > LONG - 12) return;
    const gdn_step step = {w->s[i], w->held[i]->tokens + p, n};
    may(w, gdn_engine_step(w->engine, &step, 1, &err));
}

static void fork_one(world *w, int i)
{
    const int to = (i + 1) % OPEN;
    gdn_sequence_close(w->s[to]);
    ACCEPTED(gdn_sequence_fork(&w->s[to], w->s[i], &err));
    w->held[to] = w->held[i];
    w->n_forks++;
}

static void use_file(world *w, int i)
{
    const int slot = rng_below(&w->r, SAVED);
    if (rng_below(&w->r, 2)) {
        if (!gdn_sequence_length(w->s[i])) return;
        ACCEPTED(gdn_sequence_save(w->s[i], file_of(slot), &err));
        w->saved[slot] = w->held[i];
    } else if (w->saved[slot] && may(w, gdn_sequence_load(w->s[i], file_of(slot), &err))) {
        w->held[i] = w->saved[slot];
        w->n_loaded++;
    }
}

static void open_world(world *w)
{
    w->engine = open_engine(&w->options);
    for (int i = 0; i < OPEN; i++) ACCEPTED(gdn_sequence_open(&w->s[i], w->engine, &err));
}

static void close_world(world *w)
{
    for (int i = 0; i < OPEN; i++) gdn_sequence_close(w->s[i]);
    gdn_engine_close(w->engine);
}

static void operate(world *w)
{
    const int i = rng_below(&w->r, OPEN), what = rng_below(&w->r, 40);
    if (what < 5) set_one(w, i);
    else if (what < 30) verify_some(w);
    else if (what < 33) step_one(w, i);
    else if (what < 35) fork_one(w, i);
    else if (what < 37) use_file(w, i);
    else if (what < 39) gdn_prefix_evict(w->engine->prefix);
    else if (rng_below(&w->r, 4) == 0) close_world(w), open_world(w);
}

static void random_calls(void **unused)
{
    (void)unused;
    for (int round = 0; round < 3; round++) { /* with room, without, and with a folder */
        nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        world w = {.options = mtp, .r = {5u + (unsigned)round}, .room = round != 1};
        w.options.n_threads = 1 + round % 2;
        w.options.kv_tokens = w.room ? 1 << 16 : 10 * 64;
        w.options.cache_dir = round == 2 ? cache : NULL;
        open_world(&w);
        for (int i = 0; i < 1000; i++) operate(&w);
        close_world(&w);
        print_message("%ld of %ld tokens computed, %ld rounds, %ld of %ld drafts accepted, %ld forks, %ld loaded, "
                      "%ld times full\n",
                      w.n_computed, w.n_tokens, w.t.n_rounds, w.t.n_accepted, w.t.n_drafted, w.n_forks, w.n_loaded,
                      w.n_full);
        assert_true(w.t.n_rounds > 600 && w.t.n_accepted > w.t.n_rounds && w.n_computed < w.n_tokens &&
                    w.n_forks > 20 && w.n_loaded > 10 && (w.room ? !w.n_full : w.n_full > 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ways), cmocka_unit_test(random_calls)};
    return cmocka_run_group_tests_name("context of MTP", tests, setup, remove_folder);
}
