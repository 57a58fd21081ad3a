/* What transformers gives for the demo model on six prompts (see README.md here), recorded with float32 and with bf16
 * activations from the same weights.  gdn rounds what goes into a matrix product to bf16, for the logits and in the first
 * mixer to two parts, and nothing else, so its numbers stand between the two: nearer to the float32 run than the bf16 run is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "golden/recording.h"
#include "support/lanes.h"
#include "law/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPTS = 6, POSITIONS = 5, GREEDY = 64, TOKENS = 156 + 33 + 20 + 229 + 93 + 1489 };

static const char *const names[PROMPTS] = {"text", "chat", "think", "tool", "unicode", "recall_long"};

/* A linear layer of a lane after the prompt; state [Hv][Dv][Dk] in natural order. */
typedef struct layer_memory {
    float *state, *tail;
} layer_memory;

typedef struct prompt {
    const char    *name;
    gdn_tensors    f32, bf16;
    int            n;
    const int32_t *ids;
    int            has_states;      /* recorded for this prompt */
    float         *logits, *hidden; /* ours: [n][V], [n][h] */
    layer_memory   memory[2];       /* of layers 0 and 6, when has_states */
    int            greedy[GREEDY];  /* our choice where the recorded ones are fed */
    double         worst;           /* largest error of our logits at the recorded positions */
} prompt;

static gdn_model *model;
static prompt     prompts[PROMPTS];
static const int  state_layers[2] = {0, 6};

static void *allocate(size_t n_bytes)
{
    void *p = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(p);
    return p;
}

/* ---- recordings --------------------------------------------------------------------------------------------------- */

static void open_recording(prompt *p)
{
    static const char *const types[] = {"f32", "bf16"};
    for (int i = 0; i < 2; i++) {
        char      path[100];
        gdn_error err = {0};
        snprintf(path, sizeof path, "tests/golden/demo/%s.%s.safetensors", p->name, types[i]);
        if (gdn_tensors_open(i ? &p->bf16 : &p->f32, path, &err) != GDN_OK) fail_msg("%s", err.message);
    }
    const gdn_tensor *ids = gdn_tensors_find(&p->f32, "ids");
    assert_non_null(ids);
    p->n = (int)gdn_tensor_elements(ids);
    p->ids = integers(&p->f32, "ids", (size_t)p->n);
    assert_memory_equal(p->ids, integers(&p->bf16, "ids", (size_t)p->n), (size_t)p->n * sizeof *p->ids);
    assert_memory_equal(integers(&p->f32, "positions", POSITIONS), integers(&p->bf16, "positions", POSITIONS),
                        POSITIONS * sizeof(int32_t));
    p->has_states = gdn_tensors_find(&p->f32, "recurrent_0") != NULL;
}

/* ---- our own numbers: the prompt, then the recorded greedy tokens one by one ----------------------------------------- */

static void keep_memory(prompt *p, const session *s)
{
    for (int i = 0; i < 2; i++) {
        const gdn_layer_weights *const layer = &model->layers[state_layers[i]];
        const float                   *state;
        const void                    *tail;
        const size_t                   n = demo_state_size(model), n_tail = demo_tail_size(model);
        assert_int_equal(layer->mixer, GDN_MIXER_LINEAR);
        gdn_cache_peek(s->cache, 0, layer->number, &state, &tail);
        assert_non_null(state);
        assert_non_null(tail);
        p->memory[i] = (layer_memory){allocate(n * sizeof(float)), allocate(n_tail * sizeof(float))};
        lanes_to_natural(p->memory[i].state, state, n / model->delta.key_dim, model->delta.key_dim);
        memcpy(p->memory[i].tail, tail, n_tail * sizeof(float));
    }
}

static void run_prompt(prompt *p, gdn_compute *compute)
{
    const size_t         V = model->config.vocab_size, h = model->config.hidden_size;
    const session_config config = {.n_lanes = 1, .max_rows = p->n, .max_positions = p->n + GREEDY};
    session              s = session_open(model, compute, &config);
    gdn_error            err = {0};
    const int            one = 1;
    p->logits = allocate((size_t)p->n * V * sizeof *p->logits);
    p->hidden = allocate((size_t)p->n * h * sizeof *p->hidden);
    if (session_forward(&s, &p->n, p->ids, p->logits, p->hidden, &err) != GDN_OK) fail_msg("%s", err.message);
    if (p->has_states) keep_memory(p, &s);
    float *const   logits = allocate(V * sizeof *logits);
    const int32_t *greedy = integers(&p->f32, "greedy", GREEDY);
    p->greedy[0] = argmax_of(p->logits + (size_t)(p->n - 1) * V, (int)V);
    for (int i = 1; i < GREEDY; i++) {
        if (session_forward(&s, &one, &greedy[i - 1], logits, NULL, &err) != GDN_OK) fail_msg("%s", err.message);
        p->greedy[i] = argmax_of(logits, (int)V);
    }
    free(logits);
    session_close(&s);
}

static double worst_error(const prompt *p)
{
    const size_t   V = model->config.vocab_size;
    const int32_t *at = integers(&p->f32, "positions", POSITIONS);
    const float   *want = floats(&p->f32, "logits", POSITIONS * V);
    double         worst = 0;
    for (size_t i = 0; i < POSITIONS * V; i++)
        worst = fmax(worst, fabs((double)p->logits[(size_t)at[i / V] * V + i % V] - (double)want[i]));
    assert_true(worst > 0);
    return worst;
}

static int open_all(void **unused)
{
    (void)unused;
    int                n_tokens = 0;
    gdn_compute *const compute = demo_compute(NULL, 1);
    model = demo_load();
    assert_int_equal(model->config.n_layers, 8);
    for (int i = 0; i < PROMPTS; i++) {
        prompts[i].name = names[i];
        open_recording(&prompts[i]);
        run_prompt(&prompts[i], compute);
        prompts[i].worst = worst_error(&prompts[i]);
        n_tokens += prompts[i].n;
    }
    assert_int_equal(n_tokens, TOKENS);
    gdn_compute_close(compute);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    for (prompt *p = prompts; p < prompts + PROMPTS; p++) {
        for (int i = 0; i < 2; i++) {
            free(p->memory[i].state);
            free(p->memory[i].tail);
        }
        free(p->logits);
        free(p->hidden);
        gdn_tensors_close(&p->f32);
        gdn_tensors_close(&p->bf16);
    }
    gdn_model_close(model);
    return 0;
}

/* ---- distances ------------------------------------------------------------------------------------------------------ */

typedef struct distance {
    double sum, max;
    size_t n;
} distance;

static void measure(distance *d, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double error = fabs((double)got[i] - (double)want[i]);
        assert_true(isfinite(error));
        d->sum += error;
        d->max = error > d->max ? error : d->max;
    }
    d->n += n;
}

static double mean(distance d) { return d.sum / (double)d.n; }

/* Ours are at most `share` of theirs, the mean and the largest. */
static void assert_nearer(const prompt *p, const char *what, distance ours, distance theirs, double share)
{
    print_message("%-12s %-16s mean %.2e max %.2e   bf16 run: mean %.2e max %.2e\n", p->name, what, mean(ours),
                  ours.max, mean(theirs), theirs.max);
    if (mean(ours) > share * mean(theirs) || ours.max > share * theirs.max)
        fail_msg("%s: %s: mean %g and max %g; of the bf16 run's %g and %g, %g are allowed", p->name, what, mean(ours),
                 ours.max, mean(theirs), theirs.max, share);
}

/* ---- tests ---------------------------------------------------------------------------------------------------------- */

/* Measured: at most 0.34 of the bf16 run's mean, 0.38 of its largest. */
static void logits(void **unused)
{
    (void)unused;
    const size_t V = model->config.vocab_size;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const int32_t *at = integers(&p->f32, "positions", POSITIONS);
        const float *f32 = floats(&p->f32, "logits", POSITIONS * V), *bf16 = floats(&p->bf16, "logits", POSITIONS * V);
        distance     ours = {0}, theirs = {0};
        for (size_t i = 0; i < POSITIONS; i++) measure(&ours, p->logits + (size_t)at[i] * V, f32 + i * V, V);
        measure(&theirs, bf16, f32, POSITIONS * V);
        assert_nearer(p, "logits", ours, theirs, 0.5);
    }
}

/* The choice after every position: the recorded one, or one whose logit is nearer to it than two errors of a logit. */
static void choices(void **unused)
{
    (void)unused;
    const size_t V = model->config.vocab_size;
    int          n_equal = 0, n_theirs = 0;
    double       widest = 0;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const int32_t *f32 = integers(&p->f32, "argmax", (size_t)p->n);
        const int32_t *bf16 = integers(&p->bf16, "argmax", (size_t)p->n);
        for (int t = 0; t < p->n; t++) {
            const float *row = p->logits + (size_t)t * V;
            const int    got = argmax_of(row, (int)V);
            const double apart = (double)row[got] - (double)row[f32[t]];
            if (apart > 2 * p->worst)
                fail_msg("%s: position %d: %d, recorded %d is %g behind", p->name, t, got, (int)f32[t], apart);
            widest = fmax(widest, apart);
            n_equal += got == f32[t];
            n_theirs += bf16[t] == f32[t];
        }
    }
    print_message("choices: %d of %d equal, the bf16 run %d; the others are at most %.2e apart\n", n_equal, TOKENS,
                  n_theirs, widest);
    assert_true(n_equal >= n_theirs);
    assert_true(n_equal >= TOKENS * 99 / 100);
}

/* -ln p of token `id` */
static double loss_of(const float *x, int n, int id)
{
    const double top = (double)x[argmax_of(x, n)];
    double       sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - top);
    return log(sum) + top - (double)x[id];
}

/* Token by token, and the mean over all prompts (a prompt's own mean may be near by chance). */
static void losses(void **unused)
{
    (void)unused;
    const int V = model->config.vocab_size;
    double    all_ours = 0, all_theirs = 0;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const size_t n = (size_t)p->n - 1;
        const float *f32 = floats(&p->f32, "nll", n), *bf16 = floats(&p->bf16, "nll", n);
        distance     ours = {0}, theirs = {0};
        double       shift_ours = 0, shift_theirs = 0;
        for (size_t t = 0; t < n; t++) {
            const float loss = (float)loss_of(p->logits + t * V, V, p->ids[t + 1]);
            measure(&ours, &loss, &f32[t], 1);
            measure(&theirs, &bf16[t], &f32[t], 1);
            shift_ours += (double)loss - (double)f32[t];
            shift_theirs += (double)bf16[t] - (double)f32[t];
        }
        print_message("%-12s mean nll         ours %+.1e   bf16 run: %+.1e\n", p->name, shift_ours / (double)n,
                      shift_theirs / (double)n);
        assert_nearer(p, "nll of a token", ours, theirs, 1);
        all_ours += shift_ours;
        all_theirs += shift_theirs;
    }
    print_message("mean nll: ours %+.1e, the bf16 run %+.1e\n", all_ours / (TOKENS - PROMPTS),
                  all_theirs / (TOKENS - PROMPTS));
    assert_true(fabs(all_ours) <= fabs(all_theirs));
}

static double norm_of(const float *x, const float *minus, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += pow((double)x[i] - (minus ? (double)minus[i] : 0), 2);
    return sqrt(sum);
}

/* The output of the last layer after the final norm, recorded row 8: the vector at the last position (one number alone may be
 * off by its rounding to bf16), and the norm at every position. */
static void hidden(void **unused)
{
    (void)unused;
    const size_t h = model->config.hidden_size, L = model->config.n_layers;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const size_t n = (size_t)p->n, last = L * h;
        const float *f32 = floats(&p->f32, "hidden_last", last + h), *bf16 = floats(&p->bf16, "hidden_last", last + h);
        const double ours = norm_of(p->hidden + (n - 1) * h, f32 + last, h);
        const double theirs = norm_of(bf16 + last, f32 + last, h), whole = norm_of(f32 + last, NULL, h);
        print_message("%-12s hidden           off by %.2e of its norm   bf16 run: %.2e\n", p->name, ours / whole,
                      theirs / whole);
        if (ours > theirs) fail_msg("%s: hidden is off by %g, the bf16 run by %g", p->name, ours, theirs);
        distance     our_norms = {0}, their_norms = {0};
        const float *norms = floats(&p->f32, "hidden_norms", (L + 1) * n) + L * n;
        for (size_t t = 0; t < n; t++) {
            const float norm = (float)norm_of(p->hidden + t * h, NULL, h);
            measure(&our_norms, &norm, &norms[t], 1);
        }
        measure(&their_norms, floats(&p->bf16, "hidden_norms", (L + 1) * n) + L * n, norms, n);
        assert_nearer(p, "norm of hidden", our_norms, their_norms, 1);
    }
}

/* Fed with the recorded tokens, the choice is the recorded one wherever its margin is more than two errors of a logit can
 * take away. */
static void greedy(void **unused)
{
    (void)unused;
    int n_compared = 0, n_equal = 0;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++) {
        const int32_t *want = integers(&p->f32, "greedy", GREEDY);
        const float   *gap = floats(&p->f32, "greedy_gap", GREEDY);
        int            n = 0, first_other = GREEDY;
        for (int i = GREEDY - 1; i >= 0; i--) {
            n_equal += p->greedy[i] == want[i];
            if (p->greedy[i] != want[i]) first_other = i;
            if ((double)gap[i] <= 2 * p->worst) continue;
            n++;
            if (p->greedy[i] != want[i])
                fail_msg("%s: token %d: %d, recorded %d with a margin of %g", p->name, i, p->greedy[i], (int)want[i],
                         (double)gap[i]);
        }
        print_message("%-12s greedy           %d of %d compared; the first %d are equal\n", p->name, n, GREEDY,
                      first_other);
        n_compared += n;
    }
    print_message("greedy: %d of %d compared, %d equal\n", n_compared, PROMPTS * GREEDY, n_equal);
    assert_true(n_compared >= PROMPTS * GREEDY * 9 / 10);
}

/* ---- states --------------------------------------------------------------------------------------------------------- */

/* What a projection multiplies is rounded to bf16, by at most 2^-8 of itself, about half that in the mean; the projection of
 * it, here measured by the largest of its row, is off by at most 2^-9.  A state sums products k d of two such numbers: 2^-8 of the
 * largest of its head.  The first layer's projections multiply two parts, which leave 2^-8 of that.  Six layers further on the
 * residual stream brings the roundings of all products before: twice as much is allowed.
 * Measured: state 2.8e-6 and 2.4e-3, tail 2.6e-6 and 2.7e-3. */
static const double state_bounds[2] = {0x1p-16, 0x1p-7};

/* The largest difference over the largest magnitude, of the head where that is largest.  Recorded [Hv][Dk][Dv]. */
static double state_error(const prompt *p, int i)
{
    const int    Hv = model->delta.n_value_heads, Dk = model->delta.key_dim, Dv = model->delta.value_dim;
    const float *got = p->memory[i].state;
    double       worst = 0;
    char         name[32];
    snprintf(name, sizeof name, "recurrent_%d", state_layers[i]);
    const float *want = floats(&p->f32, name, demo_state_size(model));
    for (int head = 0; head < Hv; head++, got += Dv * Dk, want += Dk * Dv) {
        double error = 0, size = 0;
        for (int v = 0; v < Dv; v++)
            for (int k = 0; k < Dk; k++) {
                error = fmax(error, fabs((double)got[v * Dk + k] - (double)want[k * Dv + v]));
                size = fmax(size, fabs((double)want[k * Dv + v]));
            }
        worst = fmax(worst, error / size);
    }
    return worst;
}

/* Likewise of a row of C.  Recorded [C][4]: the last inputs, oldest first; ours are the last three, [3][C]. */
static double tail_error(const prompt *p, int i)
{
    const int    C = gdn_config_channels(&model->config), K = model->delta.n_taps;
    const float *got = p->memory[i].tail;
    double       worst = 0;
    char         name[32];
    snprintf(name, sizeof name, "conv_%d", state_layers[i]);
    const float *want = floats(&p->f32, name, (size_t)C * K);
    for (int t = 0; t < K - 1; t++, got += C) {
        double error = 0, size = 0;
        for (int c = 0; c < C; c++) {
            error = fmax(error, fabs((double)got[c] - (double)want[c * K + t + 1]));
            size = fmax(size, fabs((double)want[c * K + t + 1]));
        }
        worst = fmax(worst, error / size);
    }
    return worst;
}

static void states(void **unused)
{
    (void)unused;
    int n = 0;
    for (const prompt *p = prompts; p < prompts + PROMPTS; p++)
        for (int i = 0; i < 2 && p->has_states; i++, n++) {
            const double state = state_error(p, i), tail = tail_error(p, i);
            print_message("%-12s layer %d          state %.2e, tail %.2e\n", p->name, state_layers[i], state, tail);
            if (!(state <= state_bounds[i] && tail <= state_bounds[i]))
                fail_msg("%s, layer %d: the state is off by %g, the tail by %g", p->name, state_layers[i], state, tail);
        }
    assert_int_equal(n, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits), cmocka_unit_test(choices), cmocka_unit_test(losses),
        cmocka_unit_test(hidden), cmocka_unit_test(greedy),  cmocka_unit_test(states),
    };
    return cmocka_run_group_tests_name("model golden", tests, open_all, close_all);
}
