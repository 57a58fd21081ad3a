/* Replies made with three MTP drafts a pass: they are the recorded ones, and as many drafts are accepted as models/demo/MODEL_CARD.md
 * says.  An eighth of the 1,504 recorded replies by default, all with --all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/items.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512, DEPTH = 3, LEAST = 6 };

static size_t    step = 8;
static gdn_error err;

#define ACCEPTED(call)                                                                               \
    do {                                                                                             \
        if ((call) != GDN_OK) fail_msg("%s: %s: %s", #call, gdn_status_name(err.code), err.message); \
    } while (0)

typedef struct writer {
    gdn_engine *engine;
    int32_t     made[MOST];
    int         n, ended;
} writer;

/* Greedy: the lowest of the greatest. */
static int32_t pick(void *arg, const float *logits)
{
    writer *w = arg;
    int     best = 0;
    for (int i = 1; i < gdn_engine_n_usable(w->engine); i++)
        if (logits[i] > logits[best]) best = i;
    w->ended = gdn_engine_is_stop(w->engine, best);
    if (!w->ended) w->made[w->n++] = best;
    return w->ended || w->n == MOST ? -1 : best;
}

/* Of a reply: passes whose drafts could all be judged, and in how many of them the first 1, 2, 3 were accepted. */
typedef struct count {
    double passes, first[DEPTH];
} count;

static count write_reply(writer *w, gdn_sequence *sequence, const gdn_ids *prompt)
{
    count c = {0};
    w->n = 0;
    ACCEPTED(gdn_sequence_set(sequence, prompt->id, (int)prompt->n, NULL, NULL, NULL, &err));
    int32_t token = pick(w, gdn_sequence_logits(sequence));
    while (token >= 0) {
        gdn_verify call = {.sequence = sequence, .token = token, .n_drafts = DEPTH, .pick = pick, .arg = w};
        ACCEPTED(gdn_engine_verify(w->engine, &call, 1, &err));
        token = call.next;
        if (token < 0) break;
        assert_int_equal(call.n_drafted, DEPTH);
        c.passes++;
        for (int i = 0; i < call.n_accepted; i++) c.first[i]++;
    }
    return c;
}

/* As test_mtp has it: replies differ, so the error of a share comes from how it differs between them. */
static void compare_with_card(const count *each, int n)
{
    static const double card[DEPTH] = {0.994, 0.974, 0.851};
    for (int k = 0; k < DEPTH; k++) {
        double passes = 0, accepted = 0, sum = 0;
        for (int i = 0; i < n; i++) passes += each[i].passes, accepted += each[i].first[k];
        const double share = accepted / passes;
        for (int i = 0; i < n; i++) sum += pow(each[i].first[k] - share * each[i].passes, 2);
        const double error = sqrt(sum) / passes;
        print_message("first %d: %.3f +- %.3f of %.0f passes, the card %.3f\n", k + 1, share, error, passes, card[k]);
        assert_true(fabs(share - card[k]) <= 5 * error);
        assert_true(5 * error < 0.1);
    }
}

static void replies(void **unused)
{
    const gdn_engine_options options = {.model = "models/demo", .drafter = GDN_DRAFTER_MTP, .n_drafts = DEPTH};
    writer                   w = {0};
    gdn_sequence            *sequence;
    count                   *each = calloc(ITEMS, sizeof *each);
    json_t                  *items = items_load();
    int                      n = 0, n_same = 0, n_counted = 0;
    (void)unused;
    assert_non_null(each);
    ACCEPTED(gdn_engine_open(&w.engine, &options, &err));
    ACCEPTED(gdn_sequence_open(&sequence, w.engine, &err));
    for (size_t i = 0; i < ITEMS; i += step, n++) {
        const json_t *item = json_array_get(items, i);
        gdn_ids       prompt = item_prompt(w.engine, item);
        char         *text;
        size_t        n_text;
        each[n_counted] = write_reply(&w, sequence, &prompt);
        n_counted += w.n > LEAST;
        ACCEPTED(gdn_decode(gdn_engine_tokenizer(w.engine), w.made, (size_t)w.n, false, &text, &n_text, &err));
        n_same += strcmp(text, json_string_value(json_object_get(item, "reply"))) == 0;
        free(text);
        free(prompt.id);
    }
    print_message("%d of %d replies are the recorded ones\n", n_same, n);
    assert_true(n_same >= n * 99 / 100);
    compare_with_card(each, n_counted);
    gdn_sequence_close(sequence);
    gdn_engine_close(w.engine);
    json_decref(items);
    free(each);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--all") == 0) step = 1;

    const struct CMUnitTest tests[] = {cmocka_unit_test(replies)};
    return cmocka_run_group_tests_name("drafts", tests, NULL, NULL);
}
