/* The whole-model oracle against what transformers recorded in float32 (see README.md here): the demo model on six prompts and 64
 * greedy tokens after each, and the tiny checkpoints with experts in both layouts and with Qwen3-Next's projections.  gdn
 * itself computes nothing here.
 *
 * Every number must be within 1e-4 of the recorded one, and within 1e-4 of its size where that is larger than 1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "golden/recording.h"
#include "golden/oracle_checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double bound = 1e-4;

static void *allocate(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    assert_non_null(p);
    return p;
}

/* ---- recordings --------------------------------------------------------------------------------------------------- */

static gdn_tensors open_recording(const char *path)
{
    gdn_tensors file = {0};
    gdn_error   err = {0};
    if (gdn_tensors_open(&file, path, &err) != GDN_OK) fail_msg("%s", err.message);
    return file;
}

static size_t length_of(const gdn_tensors *file, const char *name)
{
    const gdn_tensor *t = gdn_tensors_find(file, name);
    assert_non_null(t);
    return gdn_tensor_elements(t);
}

/* ---- differences ---------------------------------------------------------------------------------------------------- */

typedef struct difference {
    double worst;
    size_t n;
} difference;

static void compare(difference *d, double got, double want)
{
    const double error = fabs(got - want) / fmax(1.0, fabs(want));
    assert_true(isfinite(error));
    d->worst = fmax(d->worst, error);
    d->n++;
}

static void compare_all(difference *d, const double *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) compare(d, got[i], (double)want[i]);
}

static void settle(const char *text, const char *what, difference d)
{
    print_message("%-14s %-12s %8zu numbers, at most %.1e off\n", text, what, d.n, d.worst);
    assert_true(d.n > 0);
    if (d.worst > bound) fail_msg("%s: %s is off by %g", text, what, d.worst);
}

/* ---- a text and what the oracle makes of it ------------------------------------------------------------------------- */

typedef struct text {
    const char         *name;
    const oracle_model *model;
    gdn_tensors         file;
    int                 n, n_greedy; /* tokens of the prompt, and recorded after it */
    const int32_t      *ids, *greedy;
    oracle_run          run;    /* of the prompt and n_more greedy tokens */
    double             *logits; /* [n + n_more][V] */
} text;

/* The prompt and n_more of the greedy tokens; the states are recorded after the first n_before of these. */
static text open_text(const oracle_model *model, const char *name, const char *path, int n_more, int n_before)
{
    const oracle_config *c = &model->config;
    text                 t = {.name = name, .model = model, .file = open_recording(path)};
    t.n = (int)length_of(&t.file, "ids");
    t.n_greedy = (int)length_of(&t.file, "greedy");
    t.ids = integers(&t.file, "ids", t.n);
    t.greedy = integers(&t.file, "greedy", t.n_greedy);
    const int n = t.n + n_more;
    int32_t  *all = allocate(n, sizeof *all);
    for (int i = 0; i < n; i++) all[i] = i < t.n ? t.ids[i] : t.greedy[i - t.n];
    t.run = oracle_model_run(model, n, all, t.n + n_before);
    t.logits = allocate((size_t)n * c->vocab_size, sizeof *t.logits);
    oracle_model_logits(model, n, oracle_run_hidden(&t.run, model, c->n_layers - 1, 0), t.logits);
    free(all);
    return t;
}

static void close_text(text *t)
{
    free(t->logits);
    oracle_run_close(&t->run);
    gdn_tensors_close(&t->file);
}

static const double *row_of(const text *t, int position)
{
    return t->logits + (size_t)position * t->model->config.vocab_size;
}

/* The largest logit of a row but one. */
static double largest(const double *row, int n, int but)
{
    double most = -HUGE_VAL;
    for (int i = 0; i < n; i++)
        if (i != but) most = fmax(most, row[i]);
    return most;
}

/* Every choice is a largest logit, up to two errors; the greedy ones lead by the recorded margin. */
static void check_choices(const text *t)
{
    const int    V = t->model->config.vocab_size;
    const float *gap = floats(&t->file, "greedy_gap", t->n_greedy);
    difference   margins = {0};
    for (int i = 0; i < t->n_greedy; i++) {
        const double *row = row_of(t, t->n - 1 + i);
        const double  lead = row[t->greedy[i]] - largest(row, V, t->greedy[i]);
        compare(&margins, lead, (double)gap[i]);
        if (lead < -2 * bound) fail_msg("%s: greedy token %d: the lead is %g", t->name, i, lead);
    }
    settle(t->name, "margins", margins);
    if (!gdn_tensors_find(&t->file, "argmax")) return;
    const int32_t *choice = integers(&t->file, "argmax", t->n);
    for (int i = 0; i < t->n; i++) {
        const double lead = row_of(t, i)[choice[i]] - largest(row_of(t, i), V, choice[i]);
        if (lead < -2 * bound) fail_msg("%s: position %d: the choice has %g less than another", t->name, i, lead);
    }
}

static void check_hidden(const text *t)
{
    const oracle_config *c = &t->model->config;
    const int            h = c->hidden_size, L = c->n_layers;
    const float         *norms = floats(&t->file, "hidden_norms", (size_t)(L + 1) * t->n),
                *last = floats(&t->file, "hidden_last", (size_t)(L + 1) * h);
    difference off_norms = {0}, off_last = {0};
    for (int l = 0; l <= L; l++) {
        for (int i = 0; i < t->n; i++) {
            const double *x = oracle_run_hidden(&t->run, t->model, l - 1, i);
            double        sum = 0;
            for (int j = 0; j < h; j++) sum += x[j] * x[j];
            compare(&off_norms, sqrt(sum), (double)norms[(size_t)l * t->n + i]);
        }
        compare_all(&off_last, oracle_run_hidden(&t->run, t->model, l - 1, t->n - 1), last + (size_t)l * h, h);
    }
    settle(t->name, "norms", off_norms);
    settle(t->name, "hidden", off_last);
}

/* Recorded [Hv][dk][dv], and the last K inputs of the convolution, [C][K], of which a step needs K-1. */
static void check_memory(const text *t, int layer)
{
    const oracle_layer  *c = &t->model->blocks[layer].linear;
    const int            Hv = c->n_value_heads, dk = c->key_dim, dv = c->value_dim, K = c->n_taps;
    const int            C = 2 * c->n_key_heads * dk + Hv * dv;
    const oracle_memory *memory = &t->run.memory[layer];
    char                 name[32];
    difference           state = {0}, tail = {0};
    assert_non_null(memory->state);
    snprintf(name, sizeof name, "recurrent_%d", layer);
    const float *want = floats(&t->file, name, (size_t)Hv * dk * dv);
    for (int n = 0; n < Hv; n++)
        for (int k = 0; k < dk; k++)
            for (int v = 0; v < dv; v++)
                compare(&state, memory->state[((size_t)n * dv + v) * dk + k],
                        (double)want[((size_t)n * dk + k) * dv + v]);
    settle(t->name, name, state);
    snprintf(name, sizeof name, "conv_%d", layer);
    want = floats(&t->file, name, (size_t)C * K);
    for (int i = 0; i < C; i++)
        for (int j = 0; j < K - 1; j++) compare(&tail, memory->tail[(size_t)j * C + i], (double)want[i * K + j + 1]);
    settle(t->name, name, tail);
}

/* ---- the demo model --------------------------------------------------------------------------------------------------- */

enum { POSITIONS = 5 };

static void check_demo_logits(const text *t)
{
    const int      V = t->model->config.vocab_size;
    const int32_t *at = integers(&t->file, "positions", POSITIONS);
    const float   *want = floats(&t->file, "logits", (size_t)POSITIONS * V), *nll = floats(&t->file, "nll", t->n - 1);
    difference     logits = {0}, losses = {0};
    for (int i = 0; i < POSITIONS; i++) compare_all(&logits, row_of(t, at[i]), want + (size_t)i * V, V);
    settle(t->name, "logits", logits);
    for (int i = 0; i < t->n - 1; i++) {
        const double *row = row_of(t, i);
        const double  most = largest(row, V, -1);
        double        sum = 0;
        for (int j = 0; j < V; j++) sum += exp(row[j] - most);
        compare(&losses, log(sum) + most - row[t->ids[i + 1]], (double)nll[i]);
    }
    settle(t->name, "nll", losses);
}

/* The draft at each position, from the model's output there and the token that follows. */
static void check_mtp(const text *t)
{
    const oracle_config *c = &t->model->config;
    const int            h = c->hidden_size, V = c->vocab_size;
    int32_t             *next = allocate(t->n, sizeof *next);
    double *y = allocate((size_t)t->n * h, sizeof *y), *logits = allocate((size_t)t->n * V, sizeof *logits);
    for (int i = 0; i < t->n; i++) next[i] = i + 1 < t->n ? t->ids[i + 1] : t->greedy[0];
    oracle_model_mtp(t->model, t->n, oracle_run_hidden(&t->run, t->model, c->n_layers - 1, 0), next, y);
    oracle_model_logits(t->model, t->n, y, logits);
    difference hidden = {0}, last = {0};
    compare_all(&hidden, y + (size_t)(t->n - 1) * h, floats(&t->file, "mtp_hidden_last", h), h);
    compare_all(&last, logits + (size_t)(t->n - 1) * V, floats(&t->file, "mtp_logits_last", V), V);
    settle(t->name, "mtp hidden", hidden);
    settle(t->name, "mtp logits", last);
    const int32_t *choice = integers(&t->file, "mtp_argmax", t->n);
    for (int i = 0; i < t->n; i++) {
        const double *row = logits + (size_t)i * V;
        const double  lead = row[choice[i]] - largest(row, V, choice[i]);
        if (lead < -2 * bound) fail_msg("%s: the draft at %d has %g less than another", t->name, i, lead);
    }
    free(next);
    free(y);
    free(logits);
}

static void demo(void **unused)
{
    (void)unused;
    static const char *const names[] = {"text", "chat", "think", "tool", "unicode", "recall_long"};
    oracle_model            *model = oracle_model_open("models/demo");
    int                      n_states = 0;
    for (int i = 0; i < 6; i++) {
        char path[100];
        snprintf(path, sizeof path, "tests/golden/demo/%s.f32.safetensors", names[i]);
        text t = open_text(model, names[i], path, 63, 0);
        check_demo_logits(&t);
        check_choices(&t);
        check_hidden(&t);
        check_mtp(&t);
        for (int layer = 0; layer <= 6 && gdn_tensors_find(&t.file, "recurrent_0"); layer += 6, n_states++)
            check_memory(&t, layer);
        close_text(&t);
    }
    assert_int_equal(n_states, 6);
    oracle_model_close(model);
}

/* ---- experts and Qwen3-Next ------------------------------------------------------------------------------------------- */

/* Their states are those after the prompt and all 32 greedy tokens: the recording script kept transformers' own tensors, which
 * the steps that followed wrote on.  (After the prompt alone the oracle's are elsewhere by 0.6, after all by 5e-7.) */
static void check_tiny(const char *folder, const char *goldens)
{
    char          path[100];
    oracle_model *model;
    snprintf(path, sizeof path, "tests/checkpoints/%s", folder);
    model = oracle_model_open(path);
    snprintf(path, sizeof path, "tests/checkpoints/%s/goldens.safetensors", goldens);
    const size_t V = model->config.vocab_size;
    text         t = open_text(model, folder, path, 32, 32);
    difference   logits = {0}, steps = {0};
    compare_all(&logits, t.logits, floats(&t.file, "logits", t.n * V), t.n * V);
    settle(folder, "logits", logits);
    compare_all(&steps, row_of(&t, t.n), floats(&t.file, "greedy_logits", t.n_greedy * V), t.n_greedy * V);
    settle(folder, "steps", steps);
    check_choices(&t);
    check_hidden(&t);
    check_memory(&t, 0);
    check_memory(&t, 1);
    close_text(&t);
    oracle_model_close(model);
}

static void experts_one_by_one(void **unused)
{
    (void)unused;
    check_tiny("tiny-moe", "tiny-moe");
}

static void experts_packed(void **unused)
{
    (void)unused;
    check_tiny("tiny-moe-fused", "tiny-moe");
}

static void next(void **unused)
{
    (void)unused;
    check_tiny("tiny-next", "tiny-next");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(demo), cmocka_unit_test(experts_one_by_one),
                                       cmocka_unit_test(experts_packed), cmocka_unit_test(next)};
    return cmocka_run_group_tests_name("oracle model", tests, NULL, NULL);
}
