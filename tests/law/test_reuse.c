/* The prefix index: what is computed again, counted, and that a hit and a miss have the same bits. */
#include "law/reuse.h"

/* ---- the cases of a chat --------------------------------------------------------------------------------------------------- */

static void turns(gdn_sequence *s, gdn_sequence *other)
{
    enum { N_SYSTEM = 150, N_USER = 40, HEADER = 5 };
    const list first = prompt_of(N_SYSTEM, 2, N_USER);
    list       l = first;
    assert_int_equal(put(s, &first, "cold"), first.n);

    /* Exact repeats, by the same sequence and by another one. */
    assert_int_equal(put(s, &first, "again"), 0);
    assert_int_equal(put(other, &first, "again, another sequence"), 0);

    /* Regenerate. */
    answer(s, &l, 3, 30);
    assert_int_equal(put(s, &first, "regenerated"), 0);

    /* The next turn goes on where the answer ended. */
    l = first;
    answer(s, &l, 4, 30);
    list next = l;
    close_turn(&next);
    add_turn(&next, USER, 5, 25);
    open_turn(&next, ASSISTANT);
    assert_int_equal(put(s, &next, "the next turn"), next.n - l.n);

    /* The answer that was regenerated is there, too. */
    l = first;
    add_text(&l, 3, 30);
    close_turn(&l);
    assert_int_equal(put(other, &l, "the other answer"), 2);

    /* The thoughts are taken out of the answer: all but the assistant's turn is there. */
    list stripped = first;
    stripped.n -= 2;
    add_text(&stripped, 4, 10);
    close_turn(&stripped);
    add_turn(&stripped, USER, 5, 25);
    open_turn(&stripped, ASSISTANT);
    assert_int_equal(put(s, &stripped, "without thoughts"), stripped.n - (first.n - HEADER));

    /* The last message is edited. */
    const list edited = prompt_of(N_SYSTEM, 6, N_USER);
    assert_int_equal(put(s, &edited, "edited"), edited.n - N_SYSTEM);

    /* An empty sequence with the same system prompt. */
    gdn_sequence *third = sequence_of(warm);
    const list    question = prompt_of(N_SYSTEM, 7, 2 * N_USER);
    assert_int_equal(put(third, &question, "another conversation"), question.n - N_SYSTEM);

    /* What a closed sequence held. */
    l = question;
    answer(third, &l, 8, 12);
    gdn_sequence_close(third);
    assert_int_equal(put(other, &l, "what was closed"), 0);
}

/* Calls of tools: each result goes on where the answer before it ended. */
static void tool_loop(gdn_sequence *s)
{
    list l = prompt_of(200, 20, 30);
    put(s, &l, "before the tools");
    for (unsigned i = 0; i < 6; i++) {
        answer(s, &l, 21 + i, 17);
        const int held = l.n;
        close_turn(&l);
        add_turn(&l, USER, 31 + i, 40);
        open_turn(&l, ASSISTANT);
        assert_int_equal(put(s, &l, "a tool's result"), l.n - held);
    }
}

/* A date near the end of a long system prompt. */
static void timestamp(gdn_sequence *s)
{
    enum { N_SYSTEM = 1500, N_USER = 30 };
    list l = prompt_of(N_SYSTEM, 40, N_USER);
    put(s, &l, "a long system prompt");
    for (int d = 10; d <= 300; d += 58) { /* so far before its end */
        list      later = l;
        const int at = N_SYSTEM - d, worst = (d > 32 ? 2 * d : 64) + 63;
        later.id[at] = 299;
        const int computed = put(s, &later, "a later date");
        if (computed > worst + N_USER + 5) fail_msg("%d tokens before the end: %d computed", d, computed);
        assert_true(computed >= d);
    }
}

/* Choices of one prompt: forks, and sequences that are set to it. */
static void choices(gdn_sequence *s, gdn_sequence *other)
{
    list          l = prompt_of(100, 50, 30), as[3];
    gdn_sequence *forked = NULL;
    put(s, &l, "the prompt");
    assert_int_equal(put(other, &l, "a choice"), 0);
    ACCEPTED(gdn_sequence_fork(&forked, s, &err));
    gdn_sequence *const all[3] = {s, other, forked};
    for (int i = 0; i < 3; i++) {
        as[i] = l;
        add_text(&as[i], 60u + (unsigned)i, 70);
    }
    for (int at = l.n; at < l.n + 70; at++) {
        gdn_step steps[3];
        for (int i = 0; i < 3; i++) steps[i] = (gdn_step){all[i], as[i].id + at, 1};
        ACCEPTED(gdn_engine_step(warm, steps, 3, &err));
    }
    for (int i = 0; i < 3; i++) {
        ACCEPTED(gdn_sequence_set(plain, as[i].id, as[i].n, NULL, NULL, NULL, &err));
        expect_same(all[i], plain, "a choice");
    }
    gdn_sequence_close(forked);
}

static void chats(void **unused)
{
    (void)unused;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        open_both(n_threads, n_threads == 1 ? GDN_F32 : GDN_BF16, NULL);
        gdn_sequence *s = sequence_of(warm), *other = sequence_of(warm);
        turns(s, other);
        tool_loop(s);
        choices(s, other);
        timestamp(s);
        gdn_sequence_close(s);
        gdn_sequence_close(other);
        close_both();
    }
}

/* ---- bits of tails ------------------------------------------------------------------------------------------------------------ */

/* After a hit, tails of 1 to 130 tokens, alone and beside another sequence. */
static void tails(void **unused)
{
    (void)unused;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        const int     type = n_threads == 2;
        gdn_engine   *engine = engine_of(&(gdn_engine_options){
              .n_threads = n_threads, .n_sequences = 2, .kv_type = type ? GDN_BF16 : GDN_F32, .kv_tokens = 1 << 16});
        gdn_sequence *s = sequence_of(engine), *other = sequence_of(engine);
        set(s, 0, COMMON_2);
        set(s, 3, 50);
        for (int tail = 1; tail <= 130; tail++) {
            int computed = -1;
            ACCEPTED(gdn_sequence_set(s, text[0], COMMON_2, NULL, NULL, &computed, &err));
            assert_int_equal(computed, 0);
            ACCEPTED(gdn_sequence_set(other, text[3], 50, NULL, NULL, &computed, &err));
            assert_int_equal(computed, 0);
            expect(s, type, 0, COMMON_2, "a hit");
            const gdn_step steps[] = {{s, text[tail % 2 ? 0 : 2] + COMMON_2, tail},
                                      {other, text[3] + 50, 1 + tail % 90}};
            ACCEPTED(gdn_engine_step(engine, steps, 1 + tail % 3 % 2, &err));
            expect(s, type, tail % 2 ? 0 : 2, COMMON_2 + tail, "a tail");
            if (tail % 3 == 1) expect(other, type, 3, 51 + tail % 90, "beside a tail");
        }
        gdn_sequence_close(s);
        gdn_sequence_close(other);
        gdn_engine_close(engine);
    }
}

/* ---- places ---------------------------------------------------------------------------------------------------------------------- */

static void places(void **unused)
{
    (void)unused;
    int  at[GDN_PLACES];
    list l = {0};
    add_text(&l, 1, 1000);                         /* no turns */
    const int grid[] = {448, 704, 832, 896, 1000}; /* 512, 256, 128, 64 before the end, rounded down; the end */
    assert_int_equal(gdn_places(at, l.id, l.n, 0, IM_START), 5);
    assert_memory_equal(at, grid, sizeof grid);
    assert_int_equal(gdn_places(at, l.id, l.n, 704, IM_START), 3);
    assert_memory_equal(at, grid + 2, 3 * sizeof *grid);
    assert_int_equal(gdn_places(at, l.id, l.n, 0, -1), 5);
    assert_int_equal(gdn_places(at, l.id, 1000, 1000, -1), 0);

    /* Turns of 20 tokens: the last three begin 20, 40 and 60 before the end, others 120 and 240; the first ends at 20.  What
     * would save 20 tokens only, at 20 and at 360, is none. */
    l.n = 0;
    for (unsigned i = 0; i < 20; i++) add_turn(&l, USER, i, 15);
    const int turns_at[] = {160, 280, 340, 380, 400};
    assert_int_equal(gdn_places(at, l.id, l.n, 0, IM_START), 5);
    assert_memory_equal(at, turns_at, sizeof turns_at);

    /* As many as there can be: they have room. */
    static int32_t long_list[1 << 20];
    for (int i = 0; i < 1 << 20; i += 2) long_list[i] = IM_START;
    const int n = gdn_places(at, long_list, 1 << 20, 0, IM_START);
    assert_in_range(n, 16, GDN_PLACES); /* 32, 64, ... before the end, and the end */
    for (int i = 1; i < n; i++) assert_true(at[i] > at[i - 1]);
    assert_int_equal(at[n - 1], 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chats), cmocka_unit_test(tails), cmocka_unit_test(places)};
    return cmocka_run_group_tests_name("reuse", tests, open_references, close_references);
}
