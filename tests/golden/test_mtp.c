/* The MTP layer.  Of the demo model: what the code that trained it recorded in float32 (see README.md here), and how many of
 * its drafts are the tokens that come, which models/demo/MODEL_CARD.md states.  Of the demo model and of tiny ones with experts, which
 * are lent a layer: what the double-precision oracle makes of the same hidden states when it rounds what a matrix multiplies, as
 * gdn does.
 *
 * A twelfth of the 1,504 recorded replies is drafted by default, all with --all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gdn/gdn.h"
#include "golden/oracle_checkpoint.h"
#include "golden/recording.h"
#include "law/model.h"
#include <jansson.h>
#include <math.h>

enum { PROMPTS = 6, GREEDY = 64, DEPTH = 4, CARD_DEPTH = 3 };

static const char *const names[PROMPTS] = {"text", "chat", "think", "tool", "unicode", "recall_long"};

static gdn_model   *model;
static gdn_compute *compute;
static size_t       stride = 12; /* of the replies that are taken */
static gdn_error    err;

static void *allocate(size_t n, size_t bytes)
{
    void *p = calloc(n + 1, bytes);
    assert_non_null(p);
    return p;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------- */

/* n+1 tokens, what the model puts out at the first n, and what the MTP layer makes of that: [n][V], [n][h]. */
typedef struct text {
    const gdn_model *model;
    int              n;
    const int32_t   *ids;
    float           *hidden, *logits, *m;
} text;

static text text_open(const gdn_model *of, int n, const int32_t *ids)
{
    const size_t         V = of->config.vocab_size, h = of->config.hidden_size;
    const session_config config = {.n_lanes = 1, .max_rows = n, .max_positions = n + 1};
    text                 t = {.model = of, .n = n, .ids = ids};
    session              s = session_open(of, compute, &config);
    gdn_kv *const        kv = mtp_kv_open(of, 1, n, GDN_F32);
    t.hidden = allocate(n * h, sizeof *t.hidden);
    t.logits = allocate(n * V, sizeof *t.logits);
    t.m = allocate(n * h, sizeof *t.m);
    must(session_forward(&s, &n, ids, NULL, t.hidden, &err), "forward", &err);
    must(session_mtp(&s, kv, &n, ids + 1, t.hidden, t.logits, t.m, &err), "mtp", &err);
    gdn_kv_close(kv);
    session_close(&s);
    return t;
}

static void text_close(text *t)
{
    free(t->hidden);
    free(t->logits);
    free(t->m);
}

/* ---- recordings ------------------------------------------------------------------------------------------------------ */

typedef struct prompt {
    gdn_tensors file, bf16;
    int         n;   /* of the prompt */
    int32_t    *ids; /* [n+GREEDY]: the prompt and what follows */
    text        text;
    double      worst; /* largest error of the logits at the last position */
} prompt;

static prompt prompts[PROMPTS];

static void prompt_open(prompt *p, const char *name)
{
    static const char *const types[] = {"f32", "bf16"};
    for (int i = 0; i < 2; i++) {
        char path[100];
        snprintf(path, sizeof path, "tests/golden/demo/%s.%s.safetensors", name, types[i]);
        must(gdn_tensors_open(i ? &p->bf16 : &p->file, path, &err), path, &err);
    }
    const gdn_tensor *ids = gdn_tensors_find(&p->file, "ids");
    assert_non_null(ids);
    p->n = (int)gdn_tensor_elements(ids);
    p->ids = allocate((size_t)p->n + GREEDY, sizeof *p->ids);
    memcpy(p->ids, integers(&p->file, "ids", (size_t)p->n), (size_t)p->n * sizeof *p->ids);
    memcpy(p->ids + p->n, integers(&p->file, "greedy", GREEDY), GREEDY * sizeof *p->ids);
    p->text = text_open(model, p->n + GREEDY - 1, p->ids);
    const size_t V = model->config.vocab_size;
    const float *got = p->text.logits + (size_t)(p->n - 1) * V, *want = floats(&p->file, "mtp_logits_last", V);
    for (size_t i = 0; i < V; i++) p->worst = fmax(p->worst, fabs((double)got[i] - (double)want[i]));
}

static int open_all(void **unused)
{
    (void)unused;
    compute = demo_compute(NULL, 1);
    model = demo_load();
    for (int i = 0; i < PROMPTS; i++) prompt_open(&prompts[i], names[i]);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    for (prompt *p = prompts; p < prompts + PROMPTS; p++) {
        text_close(&p->text);
        free(p->ids);
        gdn_tensors_close(&p->file);
        gdn_tensors_close(&p->bf16);
    }
    gdn_model_close(model);
    gdn_compute_close(compute);
    return 0;
}

/* |got - want| / |want| as lengths of vectors. */
static double distance(const float *got, const float *want, size_t n)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += pow((double)got[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    assert_true(isfinite(error) && size > 0);
    return sqrt(error / size);
}

/* Nobody recorded the layer in bf16; it would begin with what the model puts out in bf16, so what that is off by at the same
 * position is allowed.  Measured: at most 0.74 of it. */
static void last_rows(void **unused)
{
    (void)unused;
    const size_t V = model->config.vocab_size, h = model->config.hidden_size, L = model->config.n_layers;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const size_t last = (size_t)p->n - 1;
        const double m = distance(p->text.m + last * h, floats(&p->file, "mtp_hidden_last", h), h);
        const double logits = distance(p->text.logits + last * V, floats(&p->file, "mtp_logits_last", V), V);
        const double bf16 = distance(floats(&p->bf16, "hidden_last", (L + 1) * h) + L * h,
                                     floats(&p->file, "hidden_last", (L + 1) * h) + L * h, h);
        print_message("%-12s M is off by %.2e, logits by %.2e (a logit by %.3f at most); the model in bf16 by %.2e\n",
                      names[p - prompts], m, logits, p->worst, bf16);
        if (!(m <= bf16 && logits <= bf16))
            fail_msg("%s: M is off by %g, logits by %g; %g are allowed", names[p - prompts], m, logits, bf16);
    }
}

/* The draft at every position: the recorded one, or one whose logit is nearer to it than two errors of a logit. */
static void choices(void **unused)
{
    (void)unused;
    const int V = model->config.vocab_size;
    int       n = 0, n_equal = 0;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const int32_t *want = integers(&p->file, "mtp_argmax", (size_t)p->n);
        for (int t = 0; t < p->n; t++, n++) {
            const float *row = p->text.logits + (size_t)t * V;
            const int    got = argmax_of(row, V);
            const double apart = (double)row[got] - (double)row[want[t]];
            n_equal += got == want[t];
            if (apart > 2 * p->worst)
                fail_msg("%s: position %d: %d, recorded %d is %g behind", names[p - prompts], t, got, (int)want[t],
                         apart);
        }
    }
    print_message("drafts: %d of %d equal\n", n_equal, n);
    assert_true(n_equal >= n * 99 / 100);
}

/* ---- the oracle ------------------------------------------------------------------------------------------------------ */

typedef struct rows {
    int    n, n_exact; /* all; those of which every input is rounded as the oracle's */
    double worst;
} rows;

/* The output matrix multiplies M as the sum of two parts.  f32's errors alter the second one here and there, and what both leave
 * is off by 2^-16/sqrt(3) in the mean square at most; an input elsewhere that is rounded the other way nearly always does more. */
static const double exact = 0x1p-16 / 1.7320508;

/* The oracle's logits from our hidden states, row by row, and its choice wherever that leads by more than two errors of a logit. */
static rows against_oracle(const oracle_model *oracle, const text *t)
{
    const size_t  V = t->model->config.vocab_size, h = t->model->config.hidden_size, n = (size_t)t->n;
    double *const x = allocate(n * h, sizeof *x), *const y = allocate(n * h, sizeof *y);
    double *const want = allocate(n * V, sizeof *want);
    float *const  row = allocate(V, sizeof *row);
    rows          d = {.n = t->n};
    for (size_t i = 0; i < n * h; i++) x[i] = (double)t->hidden[i];
    oracle_model_mtp(oracle, t->n, x, t->ids + 1, y);
    oracle_model_logits(oracle, t->n, y, want);
    for (size_t r = 0; r < n; r++) {
        const float *const got = t->logits + r * V;
        double             error = 0;
        for (size_t i = 0; i < V; i++) {
            row[i] = (float)want[r * V + i];
            error = fmax(error, fabs((double)got[i] - want[r * V + i]));
        }
        const double off = distance(got, row, V);
        const int    choice = argmax_of(got, (int)V), theirs = argmax_of(row, (int)V);
        if ((double)row[theirs] - (double)row[choice] > 2 * error)
            fail_msg("row %zu: %d, the oracle's %d leads by %g", r, choice, theirs,
                     (double)row[theirs] - (double)row[choice]);
        d.n_exact += off <= exact;
        d.worst = fmax(d.worst, off);
    }
    free(x);
    free(y);
    free(want);
    free(row);
    return d;
}

/* Many rows are the oracle's.  A number that lies within f32's error of the middle of two of bf16 may be rounded the other way,
 * and then others behind it; at worst all are, in the 5 inputs of products that are rounded once: fc, attention, its output
 * matrix, gate and up, down.  Each is off by 2^-8/sqrt(3) in the mean square (see test_moe.c). */
static void settle(const char *what, rows d, double share)
{
    print_message("%-15s %4d rows, %d exact, worst %.2e\n", what, d.n, d.n_exact, d.worst);
    if (!(d.n_exact >= share * d.n && d.worst <= 5 * 0x1p-8 / sqrt(3)))
        fail_msg("%s: %d of %d rows are exact, the worst is off by %g", what, d.n_exact, d.n, d.worst);
}

static void definition(void **unused)
{
    (void)unused;
    oracle_model *const oracle = oracle_model_open_rounding(DEMO_FOLDER);
    for (int i = 0; i < PROMPTS; i++) settle(names[i], against_oracle(oracle, &prompts[i].text), 0.2);
    oracle_model_close(oracle);
}

/* The oracle lends itself what law/model.h lends the models.  With these ids so small a layer has no number so
 * near to the middle. */
static void experts(void **unused)
{
    (void)unused;
    static const char *const folders[] = {"tests/checkpoints/tiny-moe", "tests/checkpoints/tiny-moe-fused",
                                          "tests/checkpoints/tiny-next"};
    enum { N = 100 };
    int32_t ids[N + 1];
    for (int i = 0; i <= N; i++) ids[i] = i * i * 45 % 256;
    for (int i = 0; i < 3; i++) {
        gdn_model *const    tiny = model_load(folders[i]);
        oracle_model *const oracle = oracle_model_open_rounding(folders[i]);
        const oracle_block *last = &oracle->blocks[oracle->config.n_layers - 1];
        const int           h = oracle->config.hidden_size;
        oracle->mtp_embedding_norm = oracle->blocks[0].input_norm;
        oracle->mtp_norm_of_hidden = oracle->blocks[1].input_norm;
        oracle->mtp_norm = last->input_norm;
        oracle->mtp_fc = (oracle_matrix){h, 2 * h, last->q.w, 1};
        oracle->mtp = *last;
        oracle->mtp.ffn = oracle->blocks[0].ffn;
        oracle->mtp.ffn.router.rounds = oracle->mtp.ffn.shared_gate.rounds = 1; /* here it is no first layer's */
        text t = text_open(tiny, N, ids);
        settle(folders[i] + strlen("tests/checkpoints/"), against_oracle(oracle, &t), 1);
        text_close(&t);
        oracle_model_close(oracle);
        gdn_model_close(tiny);
    }
}

/* ---- acceptance ------------------------------------------------------------------------------------------------------ */

/* Positions at which drafts were made, and how often the first 1 .. DEPTH of them were the tokens that came. */
typedef struct taken {
    int n, first[DEPTH];
} taken;

/* A sequence as an engine would draft: rows of true tokens and hidden states, and from each one on `depth` drafts, which are then
 * dropped.  As the model card counts: from the last token of the prompt, t = from, to where `depth` tokens are left to compare. */
static taken draft(const text *t, int from, int depth)
{
    const int            V = t->model->config.vocab_size, h = t->model->config.hidden_size, one = 1, before = from;
    const session_config config = {.n_lanes = 1, .max_rows = t->n, .max_positions = t->n + depth + 1};
    session              s = session_open(t->model, compute, &config);
    gdn_kv *const        kv = mtp_kv_open(t->model, 1, t->n + depth, GDN_F32);
    float *const logits = allocate(V, sizeof *logits), *const m = allocate(h, sizeof *m);
    taken count = {0};
    must(session_mtp(&s, kv, &before, t->ids + 1, t->hidden, NULL, NULL, &err), "mtp", &err);
    for (int at = from; at + 1 + depth <= t->n; at++, count.n++) {
        int32_t token = t->ids[at + 1];
        int     right = 1;
        memcpy(m, t->hidden + (size_t)at * h, h * sizeof *m);
        for (int j = 0; j < depth && right; j++) {
            must(session_mtp(&s, kv, &one, &token, m, logits, m, &err), "mtp", &err);
            if (j == 0) assert_memory_equal(logits, t->logits + (size_t)at * V, V * sizeof *logits);
            token = argmax_of(logits, V);
            right = token == t->ids[at + 2 + j];
            count.first[j] += right;
        }
        mtp_keep(kv, 0, at + 1);
    }
    free(logits);
    free(m);
    gdn_kv_close(kv);
    session_close(&s);
    return count;
}

static void add(taken *to, taken more)
{
    to->n += more.n;
    for (int j = 0; j < DEPTH; j++) to->first[j] += more.first[j];
}

static double share(taken t, int j) { return (double)t.first[j] / t.n; }

/* The ids of a recorded conversation with its reply; *from is where the reply begins. */
static gdn_ids conversation(const gdn_engine *engine, const json_t *item, size_t *from)
{
    json_t *const     vars = json_pack("{s:O,s:O,s:O,s:b}", "messages", json_object_get(item, "messages"), "tools",
                                       json_object_get(item, "tools"), "enable_thinking",
                                       json_object_get(item, "enable_thinking"), "add_generation_prompt", 1);
    char *const       chat = json_dumps(vars, 0);
    const char *const reply = json_string_value(json_object_get(item, "reply"));
    const gdn_span    spans[] = {{reply, strlen(reply), true},
                                 {"<|im_end|>", json_is_true(json_object_get(item, "ended")) ? 10 : 0, true}};
    gdn_ids           ids = {0};
    must(gdn_engine_encode_chat(engine, chat, NULL, &ids, NULL, &err), "chat", &err);
    *from = ids.n;
    must(gdn_tokenizer_encode(gdn_engine_tokenizer(engine), spans, 2, &ids, &err), "reply", &err);
    json_decref(vars);
    free(chat);
    return ids;
}

/* The card: of 28,072 positions in up to 1,200 replies of more than 6 tokens to prompts of fewer than 700, of the kinds that
 * eval.json has.  Positions of one reply depend on each other, so the error of a share is estimated from the replies: both shares
 * are from draws of the same, and lie within five errors of ours. */
static void replies(void **unused)
{
    (void)unused;
    static const double      card[CARD_DEPTH] = {0.994, 0.974, 0.851};
    const gdn_engine_options options = {.model = DEMO_FOLDER};
    json_t *const            items = json_load_file("tests/golden/eval.json", 0, NULL);
    const size_t             n_items = json_array_size(items);
    gdn_engine              *engine;
    taken all = {0}, *const each = allocate(n_items, sizeof *each);
    int n = 0;
    assert_int_equal(n_items, 1504);
    must(gdn_engine_open(&engine, &options, &err), "engine", &err);
    for (size_t i = 0; i < n_items; i += stride) {
        size_t  from;
        gdn_ids ids = conversation(engine, json_array_get(items, i), &from);
        if (from < 700 && ids.n - from > 6) {
            text t = text_open(model, (int)ids.n - 1, ids.id);
            each[n] = draft(&t, (int)from - 1, CARD_DEPTH);
            add(&all, each[n++]);
            text_close(&t);
        }
        free(ids.id);
    }
    print_message("%d replies, %d positions:", n, all.n);
    for (int j = 0; j < CARD_DEPTH; j++) {
        double squares = 0;
        for (int i = 0; i < n; i++) squares += pow(each[i].first[j] - share(all, j) * each[i].n, 2);
        const double error = sqrt(squares) / all.n;
        print_message(" first %d %.3f +- %.3f (card %.3f)%s", j + 1, share(all, j), error, card[j],
                      j + 1 < CARD_DEPTH ? "," : "\n");
        if (fabs(share(all, j) - card[j]) > 5 * error) fail_msg("the card has %g of the first %d", card[j], j + 1);
    }
    assert_true(all.n > 1000);
    free(each);
    json_decref(items);
    gdn_engine_close(engine);
}

/* The recorded greedy continuations, 64 tokens each, past where a reply ends. */
static void continuations(void **unused)
{
    (void)unused;
    taken all = {0};
    for (int i = 0; i <= PROMPTS; i++) {
        const prompt *p = &prompts[i];
        const taken   t = i < PROMPTS ? draft(&p->text, p->n - 1, DEPTH) : all;
        print_message("%-12s %3d positions: first %.3f, 2 %.3f, 3 %.3f, 4 %.3f\n", i < PROMPTS ? names[i] : "all", t.n,
                      share(t, 0), share(t, 1), share(t, 2), share(t, 3));
        if (i < PROMPTS) add(&all, t);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--all") == 0) stride = 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(last_rows),  cmocka_unit_test(choices),
                                       cmocka_unit_test(definition), cmocka_unit_test(experts),
                                       cmocka_unit_test(replies),    cmocka_unit_test(continuations)};
    return cmocka_run_group_tests_name("mtp golden", tests, open_all, close_all);
}
