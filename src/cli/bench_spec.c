/* gdn bench --spec: what it costs to verify drafts, and what drafts of a given quality gain. */
#include "cli/bench_model.h"
#include "engine/parts.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, ROWS = 9, DEPTHS = 6, MOST_REPEATS = 100, PROMPT = 32, COMMON = 50000, MOST_SEQUENCES = 64 };

typedef struct options {
    const char *name, *shape, *level, *accept, *sequences;
    int         threads, tg, depth, repeats, json, help;
} options;

typedef struct bench bench;

/* A text that is being made. */
typedef struct maker {
    bench        *b;
    gdn_sequence *sequence;
    int32_t       token; /* the next */
    int           row;   /* picked so far of the pass */
} maker;

/* So many texts at once. */
typedef struct texts {
    double    made[DEPTHS + 1][MOST_REPEATS]; /* seconds a token with so many drafts; the last: as many as pay */
    long long accepted[DEPTHS + 1], passes[DEPTHS + 1];
} texts;

struct bench {
    options        o;
    gdn_engine    *engine;
    gdn_bench_list counts; /* of sequences */
    int            most;   /* of them */
    maker          makers[MOST_SEQUENCES];
    int32_t       *prompts; /* [most][depth] */
    double         rate[GDN_DRAFTS_MAX];
    uint64_t       random;
    int            right;                       /* drafts to accept in a pass, or -1: as the rates say */
    double         rows[2][ROWS][MOST_REPEATS]; /* seconds of passes of 1.. rows, all accepted, all but one rejected */
    texts          texts[GDN_BENCH_LIST];       /* of each count */
};

static int help(void)
{
    printf("gdn bench --spec - measure what drafts cost and gain\n\n"
           "usage: gdn bench --spec [MODEL | --shape NAME] [options]\n\n"
           "  MODEL          with an MTP part; without one the demo model\n"
           "  --shape NAME   no checkpoint, random weights: 0.8B, 2B, 4B, 9B, 27B or 35B-A3B\n"
           "  --accept LIST  chance that a first, second, ... draft is accepted when those before it\n"
           "                 were; the last stands for all that follow (0.994,0.98,0.874: the demo\n"
           "                 model's). What MTP drafts is computed, and then accepted by lot\n"
           "  --sequences LIST  of so many texts at once, 1 to 64 (1)\n"
           "  --tg N         tokens to generate in each (64)\n"
           "  --depth N      tokens of context before those (32)\n"
           "  --threads N    (all CPUs)\n"
           "  --cpu LEVEL    ref, avx2, avx512, amx or neon (the best)\n"
           "  --repeat N     timed runs of each, in turn, after one to warm up; medians (5)\n"
           "  --json         for programs\n");
    return GDN_EXIT_OK;
}

/* ---- passes ------------------------------------------------------------------------------------------------------------- */

static double chance(bench *b)
{
    b->random = b->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(b->random >> 11) * 0x1p-53;
}

/* A token as texts are made of: rare ones, of which drafts of MTP are made only where a text is, have high ids. */
static int32_t common_token(bench *b)
{
    const int V = gdn_engine_vocab_size(b->engine);
    return (int32_t)(chance(b) * (V < COMMON ? V : COMMON));
}

/* What the draft says, as long as it is to be accepted. */
static int32_t pick(void *arg, const float *logits)
{
    maker *const            m = arg;
    bench *const            b = m->b;
    const gdn_engine *const e = b->engine;
    const int               row = m->row++, lane = m->sequence->lane;
    (void)logits;
    if (row == e->n_drafted[lane]) return common_token(b);
    const int32_t draft = e->drafts[(size_t)lane * GDN_DRAFTS_MAX + row];
    const int     accept = b->right < 0 ? chance(b) < b->rate[row] : row < b->right;
    return accept ? draft : !draft;
}

static gdn_verify call_of(maker *m, const int32_t *drafts, int n_drafts)
{
    m->row = 0;
    return (gdn_verify){
        .sequence = m->sequence, .token = m->token, .drafts = drafts, .n_drafts = n_drafts, .pick = pick, .arg = m};
}

static gdn_status rewind_to_prompt(bench *b, int n, gdn_error *err)
{
    gdn_status status = GDN_OK;
    for (int i = 0; i < n && !status; i++) {
        const int32_t *const prompt = b->prompts + (size_t)i * (size_t)b->o.depth;
        b->makers[i].token = 1;
        status = gdn_sequence_set(b->makers[i].sequence, prompt, b->o.depth, NULL, NULL, NULL, err);
    }
    return status;
}

/* A pass of each number of rows, all of them accepted or all but the first rejected. */
static gdn_status time_rows(bench *b, int repeat, gdn_error *err)
{
    const int32_t drafts[ROWS] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    gdn_status    status = GDN_OK;
    for (int n = 1; n <= ROWS && !status; n++)
        for (int rejected = 0; rejected < 2 && !status; rejected++) {
            status = rewind_to_prompt(b, 1, err);
            if (status) break;
            b->right = rejected ? 0 : ROWS;
            gdn_verify   call = call_of(&b->makers[0], drafts, n - 1);
            const double start = gdn_bench_now();
            status = gdn_engine_verify(b->engine, &call, 1, err);
            if (repeat >= 0) b->rows[rejected][n - 1][repeat] = gdn_bench_now() - start;
        }
    return status;
}

/* One pass of n texts.  Adds the tokens that it made to *made, those that were drafts to *accepted. */
static gdn_status step(bench *b, int n, int depth, int *made, long long *accepted, gdn_error *err)
{
    static const int32_t none = 0;
    gdn_verify           calls[MOST_SEQUENCES];
    for (int i = 0; i < n; i++) calls[i] = call_of(&b->makers[i], depth ? NULL : &none, depth < DEPTHS ? depth : 0);
    const gdn_status status = gdn_engine_verify(b->engine, calls, n, err);
    for (int i = 0; i < n && !status; i++) {
        b->makers[i].token = calls[i].next;
        *made += 1 + calls[i].n_accepted;
        *accepted += calls[i].n_accepted;
    }
    return status;
}

/* Generate n texts with 0 to DEPTHS-1 drafts, and with as many as pay, until they have as many tokens together as they should. */
static gdn_status time_texts(bench *b, texts *t, int n, int repeat, gdn_error *err)
{
    gdn_status status = GDN_OK;
    b->right = -1;
    for (int depth = 0; depth <= DEPTHS && !status; depth++) {
        long long accepted = 0, passes = 0;
        int       made = 0;
        status = rewind_to_prompt(b, n, err);
        const double start = gdn_bench_now();
        for (; made < n * b->o.tg && !status; passes += n) status = step(b, n, depth, &made, &accepted, err);
        if (repeat < 0) continue;
        t->made[depth][repeat] = (gdn_bench_now() - start) / made; /* a little more than tg each, perhaps */
        t->accepted[depth] += accepted;
        t->passes[depth] += passes;
    }
    return status;
}

static gdn_status time_all(bench *b, int repeat, gdn_error *err)
{
    gdn_status status = time_rows(b, repeat, err);
    for (int i = 0; i < b->counts.n && !status; i++)
        status = time_texts(b, &b->texts[i], b->counts.value[i], repeat, err);
    return status;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------ */

static int read_rates(bench *b)
{
    const char *at = b->o.accept;
    double      last = 0;
    int         n = 0;
    for (; n < GDN_DRAFTS_MAX && *at; n++) {
        char *end;
        last = strtod(at, &end);
        if (end == at || !strchr("0123456789.", *at) || last < 0 || last > 1 || (*end && *end != ',')) break;
        b->rate[n] = last;
        at = *end ? end + 1 : end;
        if (*end && !*at) break;
    }
    if (*at || !n || b->o.accept[strlen(b->o.accept) - 1] == ',')
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--accept takes numbers from 0 to 1 with commas between, not '%s'",
                            b->o.accept);
    while (n < GDN_DRAFTS_MAX) b->rate[n++] = last;
    return GDN_EXIT_OK;
}

static int read_counts(bench *b)
{
    const int status = gdn_bench_read_list(&b->counts, "--sequences", b->o.sequences, 1, MOST_SEQUENCES);
    for (int i = 0; i < b->counts.n; i++)
        if (b->counts.value[i] > b->most) b->most = b->counts.value[i];
    return status;
}

static int open_engine(bench *b)
{
    const options *const o = &b->o;
    gdn_error            err;
    gdn_path             path;
    gdn_status           s = GDN_OK;
    gdn_engine_options   opening = {.level = o->level,
                                    .n_threads = o->threads,
                                    .n_sequences = b->most,
                                    .max_tokens = o->depth + 2 * (o->tg + GDN_DRAFTS_MAX), /* one may get ahead */
                                    .drafter = GDN_DRAFTER_MTP};
    if (o->shape) {
        static gdn_model_config config; /* large */
        gdn_model              *model = NULL;
        s = gdn_model_config_published(&config, o->shape, &err);
        if (!s) s = gdn_model_random(&model, &config, SEED, true, NULL, NULL, &err);
        if (!s) s = gdn_engine_open_model(&b->engine, model, &opening, &err);
    } else {
        const int status = gdn_cli_find_model(&path, "bench", o->name);
        if (status) return status;
        opening.model = path.text;
        s = gdn_engine_open(&b->engine, &opening, &err);
    }
    for (int i = 0; i < b->most && !s; i++) {
        b->makers[i].b = b;
        s = gdn_sequence_open(&b->makers[i].sequence, b->engine, &err);
    }
    if (s) return gdn_cli_fail(s == GDN_BAD_ARGUMENT ? GDN_EXIT_USAGE : GDN_EXIT_FAILED, "bench", "%s", err.message);
    const size_t n = (size_t)b->most * (size_t)o->depth;
    b->prompts = malloc(n * sizeof *b->prompts);
    if (!b->prompts) return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory for %zu tokens", n);
    for (size_t i = 0; i < n; i++) b->prompts[i] = common_token(b);
    return GDN_EXIT_OK;
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static void print_rows(bench *b)
{
    const int    n = b->o.repeats;
    const double one = median(b->rows[0][0], n);
    printf("rows  accepted ms  of one  rejected ms  of one\n");
    for (int i = 0; i < ROWS; i++) {
        const double accepted = median(b->rows[0][i], n), rejected = median(b->rows[1][i], n);
        printf("%4d  %11.2f  %6.2f  %11.2f  %6.2f\n", i + 1, 1e3 * accepted, accepted / one, 1e3 * rejected,
               rejected / one);
    }
}

static void print_texts(texts *t, int n_sequences, int n)
{
    const double plain = median(t->made[0], n);
    for (int i = 0; i <= DEPTHS; i++) {
        const double seconds = median(t->made[i], n);
        char         depth[16];
        snprintf(depth, sizeof depth, "%d", i);
        printf("%9d  %6s  %8.1f  %8.2f  %15.2f\n", n_sequences, i < DEPTHS ? depth : "auto", 1 / seconds,
               plain / seconds, (double)t->accepted[i] / (double)t->passes[i]);
    }
}

static void print_text(bench *b)
{
    print_rows(b);
    printf("\nsequences  drafts  tokens/s  speed-up  accepted a pass\n");
    for (int i = 0; i < b->counts.n; i++) print_texts(&b->texts[i], b->counts.value[i], b->o.repeats);
}

static void add_texts(json_t *list, texts *t, int n_sequences, int n)
{
    for (int i = 0; i <= DEPTHS; i++)
        json_array_append_new(list, json_pack("{s:i,s:o,s:f,s:f,s:f}", "sequences", n_sequences, "drafts",
                                              i < DEPTHS ? json_integer(i) : json_string("auto"), "tokens_per_second",
                                              1 / median(t->made[i], n), "speed_up",
                                              median(t->made[0], n) / median(t->made[i], n), "accepted_per_pass",
                                              (double)t->accepted[i] / (double)t->passes[i]));
}

static int print_json(bench *b)
{
    const int n = b->o.repeats;
    json_t   *rows = json_array(), *list = json_array();
    for (int i = 0; i < ROWS; i++)
        json_array_append_new(rows,
                              json_pack("{s:i,s:f,s:f}", "rows", i + 1, "accepted_ms", 1e3 * median(b->rows[0][i], n),
                                        "rejected_ms", 1e3 * median(b->rows[1][i], n)));
    for (int i = 0; i < b->counts.n; i++) add_texts(list, &b->texts[i], b->counts.value[i], n);
    json_t *root =
        json_pack("{s:s,s:i,s:o,s:o}", "cpu_level", gdn_compute_level(gdn_engine_compute(b->engine)), "threads",
                  gdn_compute_threads(gdn_engine_compute(b->engine)), "verify", rows, "texts", list);
    const int failed = !root || json_dumpf(root, stdout, 0);
    json_decref(root);
    putchar('\n');
    return failed ? gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory for the results") : GDN_EXIT_OK;
}

static int run(bench *b)
{
    gdn_error err;
    int       status = read_rates(b);
    if (!status) status = read_counts(b);
    if (!status) status = open_engine(b);
    if (status) return status;
    if (!b->o.json)
        printf("%s, %d threads, %d tokens of context, drafts of MTP accepted with chances %s\n\n",
               gdn_compute_level(gdn_engine_compute(b->engine)), gdn_compute_threads(gdn_engine_compute(b->engine)),
               b->o.depth, b->o.accept);
    for (int repeat = -1; repeat < b->o.repeats; repeat++)
        if (time_all(b, repeat, &err)) return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message);
    if (b->o.json) status = print_json(b);
    else print_text(b);
    return status ? status : gdn_cli_flush();
}

int gdn_bench_spec(int argc, char **argv)
{
    int     spec = 0;
    options o = {.accept = "0.994,0.98,0.874", .sequences = "1", .tg = 64, .depth = PROMPT, .repeats = 5};

    const gdn_option table[] = {
        {"MODEL", GDN_OPTION_ARGUMENT, &o.name, 0, 0},        {"--spec", GDN_OPTION_FLAG, &spec, 0, 0},
        {"--shape", GDN_OPTION_TEXT, &o.shape, 0, 0},         {"--accept", GDN_OPTION_TEXT, &o.accept, 0, 0},
        {"--sequences", GDN_OPTION_TEXT, &o.sequences, 0, 0}, {"--tg", GDN_OPTION_INT, &o.tg, 1, 100000},
        {"--depth", GDN_OPTION_INT, &o.depth, 1, 100000},     {"--threads", GDN_OPTION_INT, &o.threads, 1, 256},
        {"--cpu", GDN_OPTION_TEXT, &o.level, 0, 0},           {"--repeat", GDN_OPTION_INT, &o.repeats, 1, MOST_REPEATS},
        {"--json", GDN_OPTION_FLAG, &o.json, 0, 0},           {"--help", GDN_OPTION_FLAG, &o.help, 0, 0},
    };
    int status = gdn_options_read("bench", argc, argv, table, sizeof table / sizeof *table);
    if (status) return status;
    if (o.help) return help();
    if (o.shape && o.name)
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench",
                            "--shape %s and the model '%s' contradict each other; use one of them", o.shape, o.name);
    bench *b = calloc(1, sizeof *b);
    if (!b) return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory");
    b->o = o;
    status = run(b);
    for (int i = 0; i < b->most; i++) gdn_sequence_close(b->makers[i].sequence);
    gdn_engine_close(b->engine);
    free(b->prompts);
    free(b);
    return status;
}
