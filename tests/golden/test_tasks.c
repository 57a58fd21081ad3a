/* The shipped model at work: recorded conversations are rendered, answered greedily and marked.  The replies beside them are those
 * of the model's training code in float32; ours part from them only where two tokens are nearly as likely.  Keys and values are
 * bf16, as the program has them.  A quarter of the 1,504 by default, all with --all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden/items.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 400 };

static size_t step = 4; /* of the items that are taken */

static gdn_error err;

#define ACCEPTED(call)                                                \
    do {                                                              \
        if ((call) != GDN_OK) fail_msg("%s: %s", #call, err.message); \
    } while (0)

static int32_t lowest_best(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* The greedy reply, without the token that ended it; *ended says whether one did. */
static char *reply(gdn_engine *engine, gdn_sequence *sequence, const gdn_ids *prompt, bool *ended)
{
    int32_t made[MOST];
    int     n = 0;
    size_t  n_text;
    char   *text;
    *ended = false;
    ACCEPTED(gdn_sequence_set(sequence, prompt->id, (int)prompt->n, NULL, NULL, NULL, &err));
    while (n < MOST) {
        const int32_t token =
            lowest_best(gdn_sequence_logits(sequence), gdn_tokenizer_size(gdn_engine_tokenizer(engine)));
        if ((*ended = gdn_engine_is_stop(engine, token))) break;
        made[n++] = token;
        ACCEPTED(gdn_sequence_push(sequence, token, &err));
    }
    ACCEPTED(gdn_decode(gdn_engine_tokenizer(engine), made, (size_t)n, false, &text, &n_text, &err));
    return text;
}

/* What follows the thoughts, without white space around it. */
static void trim(char *text, char **start)
{
    char *const end_of_thoughts = strstr(text, "</think>");
    *start = end_of_thoughts ? end_of_thoughts + strlen("</think>") : text;
    *start += strspn(*start, " \t\r\n");
    size_t n = strlen(*start);
    while (n && strchr(" \t\r\n", (*start)[n - 1])) (*start)[--n] = '\0';
}

static void test_tasks(void **unused)
{
    const gdn_engine_options options = {.model = "models/demo", .kv_type = GDN_BF16, .n_sequences = 1};
    gdn_engine              *engine;
    gdn_sequence            *sequence;
    json_t                  *items = items_load();
    int                      n_right = 0, n_recorded = 0, n_same = 0, n = 0;
    (void)unused;
    ACCEPTED(gdn_engine_open(&engine, &options, &err));
    ACCEPTED(gdn_sequence_open(&sequence, engine, &err));
    for (size_t i = 0; i < ITEMS; i += step, n++) {
        const json_t *item = json_array_get(items, i);
        gdn_ids       prompt = item_prompt(engine, item);
        bool          ended;
        char         *text = reply(engine, sequence, &prompt, &ended), *answer, *expected, *want;
        n_same += strcmp(text, json_string_value(json_object_get(item, "reply"))) == 0;
        n_recorded += json_is_true(json_object_get(item, "ok"));
        want = strdup(json_string_value(json_object_get(item, "expected")));
        trim(want, &expected);
        trim(text, &answer);
        n_right += ended && strcmp(answer, expected) == 0;
        free(want);
        free(text);
        free(prompt.id);
    }
    print_message("%d of %d right, %d in the recording; %d replies the same as there\n", n_right, n, n_recorded,
                  n_same);
    assert_true(n_same >= n * 99 / 100);
    gdn_sequence_close(sequence);
    gdn_engine_close(engine);
    json_decref(items);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--all") == 0) step = 1;

    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tasks)};
    return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
