/* Tiny random checkpoints with experts: Qwen3.5 MoE in both layouts, and Qwen3-Next.  Their linear heads and their experts are 16
 * wide, so that all that can be padded is padded here.  A text is the recorded prompt and the 32 greedy tokens after it.
 *
 * Two questions.  Does gdn compute what docs/NUMERICS.md says?  The double-precision oracle rounds what a matrix multiplies,
 * as gdn does, and must agree in every choice of an expert and nearly in every number.  And is that near to what
 * transformers gives in float32 (see README.md here)?  Where two experts are nearly as good as each other these roundings
 * may prefer the other one, and from that row on the numbers are others; the rows before are compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "law/model.h"
#include "model/forward.h"
#include "golden/oracle_checkpoint.h"
#include "golden/recording.h"
#include "support/lanes.h"
#include <math.h>

enum { MODELS = 3, L = 3, LINEAR = 2, PROMPT = 75, GREEDY = 32, N = PROMPT + GREEDY, V = 256, USED = 2 };
enum {
    KEY_HEADS = 2,
    HEADS = 4,
    DIM = 16,
    PADDED = 32,
    C = (2 * KEY_HEADS + HEADS) * DIM,
    TAPS = 4
}; /* linear layers */

/* What a linear layer keeps, in its true size. */
typedef struct memory {
    double state[HEADS][DIM][DIM], tail[TAPS - 1][C]; /* [head][value][key]; oldest input first */
} memory;

typedef struct tiny {
    const char  *name;
    gdn_tensors  recorded;
    const float *want[N]; /* recorded logits; none after the last greedy token */
    float       *logits;  /* ours: [N][V] */
    int         *chosen;  /* [L][N][USED] */
    memory       memory[LINEAR];
    double      *definition; /* logits of the oracle that rounds */
    oracle_run   rounded, exact;
    int n_same[L + 1]; /* rows before the first at which layers 0..i-1 of the exact oracle choose another expert */
} tiny;

static tiny models[MODELS] = {{.name = "tiny-moe"}, {.name = "tiny-moe-fused"}, {.name = "tiny-next"}};

static void *allocate(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    assert_non_null(p);
    return p;
}

/* ---- computed once -------------------------------------------------------------------------------------------------- */

/* The true part of what a layer keeps; the rest must be zero. */
static void keep_memory(memory *to, const session *s, int layer)
{
    enum { PADDED_C = C / DIM * PADDED };
    static float state[HEADS][PADDED][PADDED];
    const float *in_lanes;
    const void  *tail;
    gdn_cache_peek(s->cache, 0, layer, &in_lanes, &tail);
    assert_non_null(in_lanes);
    lanes_to_natural(&state[0][0][0], in_lanes, HEADS * PADDED, PADDED);
    for (int i = 0; i < HEADS * PADDED * PADDED; i++) {
        const int    head = i / (PADDED * PADDED), v = i / PADDED % PADDED, k = i % PADDED;
        const double x = (double)state[head][v][k];
        if (v < DIM && k < DIM) to->state[head][v][k] = x;
        else assert_true(x == 0.0);
    }
    for (int i = 0; i < (TAPS - 1) * PADDED_C; i++) {
        const int    t = i / PADDED_C, head = i % PADDED_C / PADDED, at = i % PADDED;
        const double x = (double)((const float *)tail)[i];
        if (at < DIM) to->tail[t][head * DIM + at] = x;
        else assert_true(x == 0.0);
    }
}

/* The whole text in one forward.  The workspace keeps the choices of the last layer, so fewer layers run before all of them do. */
static void run(tiny *m, const char *folder, gdn_compute *compute, const int32_t *ids)
{
    const int            n = N;
    const session_config config = {.n_lanes = 1, .max_rows = N, .max_positions = N};
    gdn_model           *model = model_load(folder);
    gdn_error            err = {0};
    assert_int_equal(model->config.n_layers, L);
    assert_int_equal(model->n_delta_layers, LINEAR);
    for (int layers = 1; layers <= L; layers++) {
        model->config.n_layers = layers;
        model->n_delta_layers = layers < L ? layers : LINEAR;
        session s = session_open(model, compute, &config);
        must(session_forward(&s, &n, ids, layers == L ? m->logits : NULL, NULL, &err), "forward", &err);
        memcpy(m->chosen + (layers - 1) * N * USED, s.workspace->moe.chosen, N * USED * sizeof *m->chosen);
        for (int layer = 0; layer < LINEAR && layers == L; layer++) keep_memory(&m->memory[layer], &s, layer);
        session_close(&s);
    }
    gdn_model_close(model);
}

static void run_oracles(tiny *m, const char *folder, const int32_t *ids)
{
    oracle_model *const rounding = oracle_model_open_rounding(folder), *const exact = oracle_model_open(folder);
    m->rounded = oracle_model_run(rounding, N, ids, N);
    m->exact = oracle_model_run(exact, N, ids, N);
    oracle_model_logits(rounding, N, oracle_run_hidden(&m->rounded, rounding, L - 1, 0), m->definition);
    oracle_model_close(rounding);
    oracle_model_close(exact);
    m->n_same[0] = N;
    for (int l = 0; l < L; l++) {
        const int *const a = m->rounded.chosen + l * N * USED, *const b = m->exact.chosen + l * N * USED;
        int t = 0;
        while (t < m->n_same[l] && memcmp(a + t * USED, b + t * USED, USED * sizeof *a) == 0) t++;
        m->n_same[l + 1] = t;
    }
}

static void open_model(tiny *m, gdn_compute *compute)
{
    char      folder[100], path[100];
    gdn_error err = {0};
    int32_t   ids[N];
    snprintf(folder, sizeof folder, "tests/checkpoints/%s", m->name);
    snprintf(path, sizeof path, "tests/checkpoints/%s/goldens.safetensors", m == &models[1] ? "tiny-moe" : m->name);
    must(gdn_tensors_open(&m->recorded, path, &err), path, &err);
    memcpy(ids, integers(&m->recorded, "ids", PROMPT), PROMPT * sizeof *ids);
    memcpy(ids + PROMPT, integers(&m->recorded, "greedy", GREEDY), GREEDY * sizeof *ids);
    const float *const prompt = floats(&m->recorded, "logits", PROMPT * V);
    const float *const greedy = floats(&m->recorded, "greedy_logits", GREEDY * V);
    for (int t = 0; t < PROMPT - 1; t++) m->want[t] = prompt + t * V;
    for (int t = 0; t < GREEDY; t++) m->want[PROMPT - 1 + t] = greedy + t * V;
    m->logits = allocate(N * V, sizeof *m->logits);
    m->chosen = allocate(L * N * USED, sizeof *m->chosen);
    m->definition = allocate(N * V, sizeof *m->definition);
    run(m, folder, compute, ids);
    run_oracles(m, folder, ids);
}

static int open_all(void **unused)
{
    (void)unused;
    gdn_compute *const compute = demo_compute(NULL, 1);
    for (int i = 0; i < MODELS; i++) open_model(&models[i], compute);
    gdn_compute_close(compute);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    for (tiny *m = models; m < models + MODELS; m++) {
        gdn_tensors_close(&m->recorded);
        free(m->logits);
        free(m->chosen);
        free(m->definition);
        oracle_run_close(&m->rounded);
        oracle_run_close(&m->exact);
    }
    return 0;
}

/* ---- logits ----------------------------------------------------------------------------------------------------------- */

typedef struct distance {
    double sum, worst;
    int    n;
} distance;

/* |got - want| / |want| of a row, as lengths of vectors. */
static void add_row(distance *d, const float *got, const double *want)
{
    double error = 0, size = 0;
    for (int i = 0; i < V; i++) {
        error += pow((double)got[i] - want[i], 2);
        size += pow(want[i], 2);
    }
    assert_true(isfinite(error) && size > 0);
    d->sum += sqrt(error / size);
    d->worst = fmax(d->worst, sqrt(error / size));
    d->n++;
}

static void settle(const tiny *m, const char *what, distance d, double mean, double worst)
{
    print_message("%-15s %-12s %3d rows, mean %.2e, worst %.2e\n", m->name, what, d.n, d.sum / d.n, d.worst);
    if (!(d.sum / d.n <= mean && d.worst <= worst))
        fail_msg("%s: %s: mean %g, worst %g; allowed are %g and %g", m->name, what, d.sum / d.n, d.worst, mean, worst);
}

/* Every expert is the oracle's.  Both round to bf16; a number that lies within f32's error of the middle of two goes either way,
 * which moves one of the 64 inputs of a product by up to 2^-7 of itself, and what comes out by about 2^-7/sqrt(64) = 2^-10.  Most
 * rows have none such: half of it is allowed on average; some have several, and the norm of a small head makes much of little:
 * 2^-8 is allowed in a row. */
static void definition(void **unused)
{
    (void)unused;
    for (const tiny *m = models; m < models + MODELS; m++) {
        distance d = {0};
        for (int i = 0; i < L * N * USED; i++)
            if (m->chosen[i] != m->rounded.chosen[i])
                fail_msg("%s: layer %d, row %d: expert %d, the oracle takes %d", m->name, i / (N * USED), i / USED % N,
                         m->chosen[i], m->rounded.chosen[i]);
        for (int t = 0; t < N; t++) add_row(&d, m->logits + t * V, m->definition + t * V);
        settle(m, "definition", d, 0x1p-11, 0x1p-8);
    }
}

/* A number rounded to bf16 is off by at most 2^-8 of itself, 2^-8/sqrt(3) in the mean square.  Between an embedding and the
 * logits there are 10 such roundings: two in each of 6 blocks but the first, whose output is no larger than the stream that it is
 * added to; sqrt(10) times as much when they are independent, which is allowed on average, and 10 times when all point the same
 * way.  (What is left where two parts are multiplied, 2^-16, is nothing beside them.) */
static void logits(void **unused)
{
    (void)unused;
    int n = 0;
    for (const tiny *m = models; m < models + MODELS; m++) {
        distance d = {0};
        for (int t = 0; t < m->n_same[L] && m->want[t]; t++) {
            double want[V];
            for (int i = 0; i < V; i++) want[i] = (double)m->want[t][i];
            add_row(&d, m->logits + t * V, want);
        }
        settle(m, "transformers", d, sqrt(10) * 0x1p-8 / sqrt(3), 10 * 0x1p-8 / sqrt(3));
        n += d.n;
    }
    assert_true(n >= 100);
}

/* The choice after each of the last rows is the recorded token, wherever its margin is more than two errors of a logit, as large
 * as the largest in the rows before, can take away. */
static void greedy(void **unused)
{
    (void)unused;
    for (const tiny *m = models; m < models + MODELS; m++) {
        const int32_t *want = integers(&m->recorded, "greedy", GREEDY);
        const float   *gap = floats(&m->recorded, "greedy_gap", GREEDY);
        double         worst = 0;
        int            n = 0, n_equal = 0;
        for (int i = 0; i < (PROMPT - 1) * V; i++)
            worst = fmax(worst, fabs((double)m->logits[i] - (double)m->want[i / V][i % V]));
        for (int i = 0; i < GREEDY; i++) {
            const int got = argmax_of(m->logits + (PROMPT - 1 + i) * V, V);
            n_equal += got == want[i];
            if ((double)gap[i] <= 2 * worst) continue;
            n++;
            if (got != want[i])
                fail_msg("%s: token %d: %d, recorded %d with a margin of %g", m->name, i, got, (int)want[i],
                         (double)gap[i]);
        }
        print_message("%-15s greedy       %d of %d compared, %d equal; largest error of a logit %.3f\n", m->name, n,
                      GREEDY, n_equal, worst);
        assert_true(n >= GREEDY / 4);
    }
}

/* ---- what layers keep ------------------------------------------------------------------------------------------------- */

static double larger_error(double so_far, double got, double want, double size)
{
    return fmax(so_far, fabs(got - want) / size);
}

static double most_of(const double *x, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* The largest difference over the largest magnitude, of a head's state or of a row of the tail. */
static double memory_error(const memory *got, const memory *want)
{
    double worst = 0;
    for (int head = 0; head < HEADS; head++) {
        const double *const x = &want->state[head][0][0], *const y = &got->state[head][0][0];
        for (int i = 0; i < DIM * DIM; i++) worst = larger_error(worst, y[i], x[i], most_of(x, DIM * DIM));
    }
    for (int t = 0; t < TAPS - 1; t++)
        for (int c = 0; c < C; c++)
            worst = larger_error(worst, got->tail[t][c], want->tail[t][c], most_of(want->tail[t], C));
    return worst;
}

static memory memory_of_oracle(const oracle_memory *from)
{
    memory m;
    memcpy(m.state, from->state, sizeof m.state);
    memcpy(m.tail, from->tail, sizeof m.tail);
    return m;
}

/* Recorded as [head][key][value] and [C][TAPS], the last inputs; after the prompt and all greedy tokens. */
static memory memory_of_recording(const tiny *m, int layer)
{
    memory r;
    char   name[32];
    snprintf(name, sizeof name, "recurrent_%d", layer);
    const float *state = floats(&m->recorded, name, HEADS * DIM * DIM);
    snprintf(name, sizeof name, "conv_%d", layer);
    const float *tail = floats(&m->recorded, name, C * TAPS);
    for (int i = 0; i < HEADS * DIM * DIM; i++) r.state[i / (DIM * DIM)][i % DIM][i / DIM % DIM] = (double)state[i];
    for (int i = 0; i < (TAPS - 1) * C; i++) r.tail[i / C][i % C] = (double)tail[i % C * TAPS + i / C + 1];
    return r;
}

/* The oracle's within 2^-10, what an input of a product moves when it is rounded the other way (see above).  Transformers',
 * where no layer before has had another expert, within 2^-8 for each rounding: the input of the projections, and two in each of
 * the two blocks of a layer before, but none in the first block, which leaves 2^-16; all of them in k and again in d, whose
 * products a state sums. */
static void states(void **unused)
{
    (void)unused;
    int n = 0;
    for (const tiny *m = models; m < models + MODELS; m++)
        for (int layer = 0; layer < LINEAR; layer++) {
            const memory rounded = memory_of_oracle(&m->rounded.memory[layer]);
            const memory theirs = memory_of_recording(m, layer);
            const double defined = memory_error(&m->memory[layer], &rounded),
                         far = memory_error(&m->memory[layer], &theirs);
            const double roundings = layer ? (4 * layer - 1) * 0x1p-8 : 0x1p-16;
            const int    same = m->n_same[layer] == N;
            print_message("%-15s layer %d      definition %.2e, transformers %.2e%s\n", m->name, layer, defined, far,
                          same ? "" : " (other experts)");
            n += same;
            if (!(defined <= 0x1p-10)) fail_msg("%s: layer %d is off by %g", m->name, layer, defined);
            if (same && !(far <= 2 * roundings))
                fail_msg("%s: layer %d is off by %g of transformers", m->name, layer, far);
        }
    assert_true(n >= 5);
}

/* The same weights, in the other layout. */
static void layouts(void **unused)
{
    (void)unused;
    assert_memory_equal(models[0].logits, models[1].logits, N * V * sizeof(float));
    assert_memory_equal(models[0].memory, models[1].memory, sizeof models[0].memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(definition), cmocka_unit_test(logits), cmocka_unit_test(greedy),
                                       cmocka_unit_test(states), cmocka_unit_test(layouts)};
    return cmocka_run_group_tests_name("experts golden", tests, open_all, close_all);
}
