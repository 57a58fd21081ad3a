#include "cli/bench_model.h"
#include "base/cpu.h"
#include "cli/bench.h"
#include "device/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, MOST_TOKENS = 999999, MOST_PIECE = 8192 };

static int help(void)
{
    printf(
        "gdn bench - measure a model, or the operations, on this machine\n\n"
        "usage: gdn bench [MODEL | --shape NAME] [options]     gdn bench --ops [options] (gdn bench --ops --help)\n"
        "                                                      gdn bench --spec [options] (gdn bench --spec --help)\n\n"
        "  MODEL          as for 'gdn info'; without one the demo model\n"
        "  --shape NAME   no checkpoint, random weights: 0.8B, 2B, 4B, 9B, 27B or 35B-A3B\n"
        "  --pp LIST      tokens of the prompts to read, 0 for none (64,512,2048)\n"
        "  --tg N         tokens to generate one by one, 0 for none (128)\n"
        "  --depth N      tokens of context before those (0)\n"
        "  --piece N      tokens of a prompt that one pass takes, 1..%d (512)\n"
        "  --threads LIST (1 and all CPUs)\n"
        "  --cpu LEVEL    ref, avx2, avx512, amx or neon (the best)\n"
        "  --repeat N     timed passes of each, 1..%d, after one to warm up (3)\n"
        "  --reuse        instead: two conversations of an agent, and what of them is computed again\n"
        "  --snapshot     instead: a state taken, and as a file of this folder saved and loaded\n"
        "  --csv, --json  for programs\n\n"
        "%% matrix: of the products that the tiles or FMA ports of these threads reach; %% read: of the bandwidth at "
        "which\n"
        "they read 1 GiB; both measured between the passes.  bench/README.md says more.\n\n"
        "examples\n"
        "  gdn bench --shape 0.8B --pp 512 --threads 1,2\n"
        "  gdn bench Qwen/Qwen3.5-0.8B --tg 64 --depth 4096 --csv > tg.csv\n",
        MOST_PIECE, GDN_BENCH_REPEATS);
    return GDN_EXIT_OK;
}

/* ---- options ---------------------------------------------------------------------------------------------------------- */

int gdn_bench_read_list(gdn_bench_list *list, const char *option, const char *text, int least, int most)
{
    const char *at = text;
    list->n = 0;
    for (; *at && strspn(at, "0123456789") && list->n < GDN_BENCH_LIST; at += *at == ',') {
        char      *end;
        const long number = strtol(at, &end, 10);
        at = end;
        if (number < least || number > most || (*at && *at != ',') || (*at == ',' && !at[1])) break;
        list->value[list->n++] = (int)number;
        if (!*at) return GDN_EXIT_OK;
    }
    return gdn_cli_fail(
        GDN_EXIT_USAGE, "bench",
        "%s takes 1 to %d whole numbers from %d to %d with commas between, not '%s'; see 'gdn bench --help'", option,
        GDN_BENCH_LIST, least, most, text);
}

/* What is asked for must be something, and fit the model. */
static int check_options(gdn_model_bench *b, const char *name)
{
    int kept = 0;
    for (int i = 0; i < b->pp.n; i++)
        if (b->pp.value[i]) b->pp.value[kept++] = b->pp.value[i];
    b->pp.n = kept;
    if (b->csv && b->json)
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--csv and --json contradict each other; use one of them");
    if (b->shape && name)
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench",
                            "--shape %s and the model '%s' contradict each other; use one of them", b->shape, name);
    if (!b->pp.n && !b->tg) return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--pp 0 and --tg 0 leave nothing to measure");
    return GDN_EXIT_OK;
}

static int check_lengths(const gdn_model_bench *b, const gdn_model_config *c)
{
    long long most = b->tg ? (long long)b->depth + b->tg : 0;
    for (int i = 0; i < b->pp.n; i++) most = b->pp.value[i] > most ? b->pp.value[i] : most;
    if (most <= c->max_positions) return GDN_EXIT_OK;
    return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "%lld tokens in one sequence; this model was made for %d", most,
                        c->max_positions);
}

/* The level by its name, also when none was given: gdn_compute_open knows. */
static int find_level(gdn_model_bench *b)
{
    gdn_compute *compute;
    gdn_error    err;
    if (gdn_compute_open(&compute, b->level, 1, &err)) return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "%s", err.message);
    b->level = gdn_compute_level(compute);
    gdn_compute_close(compute);
    return GDN_EXIT_OK;
}

/* ---- the model -------------------------------------------------------------------------------------------------------- */

/* Before anything is allocated. */
static int check_memory(const gdn_model_bench *b, const gdn_model_config *c)
{
    uint64_t tokens = b->tg ? (uint64_t)b->depth + (uint64_t)b->tg : 0, prompt = 0;
    for (int i = 0; i < b->pp.n; i++) prompt = (uint64_t)b->pp.value[i] > prompt ? (uint64_t)b->pp.value[i] : prompt;
    const uint64_t need =
        b->plan.weights + 2 * b->plan.state + (tokens + prompt) * b->plan.kv_per_token + GDN_READ_BYTES;
    if (!b->plan.available || need <= b->plan.available) return GDN_EXIT_OK;
    return gdn_cli_fail(GDN_EXIT_FAILED, "bench",
                        "%s needs %s bytes (%s of them weights), and %s are available; take a smaller %s",
                        b->shape ? b->shape : c->model_type, gdn_number_words(need).text,
                        gdn_number_words(b->plan.weights).text, gdn_number_words(b->plan.available).text,
                        b->shape ? "shape" : "model");
}

static int prepare(gdn_model_bench *b, const gdn_model_config *c, bool tied)
{
    b->plan = gdn_plan_of(c, tied, false);
    b->parameters = gdn_text_parameters(c, tied);
    const int status = check_lengths(b, c);
    return status ? status : check_memory(b, c);
}

static int open_shape(gdn_model_bench *b, gdn_model_config *c)
{
    gdn_error err;
    if (gdn_model_config_published(c, b->shape, &err))
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--shape %s", err.message);
    const int status = prepare(b, c, c->tie == GDN_TIE_YES);
    if (status) return status;
    if (gdn_model_random(&b->model, c, SEED, false, NULL, NULL, &err))
        return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message);
    return GDN_EXIT_OK;
}

static int open_checkpoint(gdn_model_bench *b, gdn_model_config *c, const char *name)
{
    gdn_tensors    tensors = {0};
    gdn_checkpoint checkpoint = {0};
    gdn_error      err;
    int            status = gdn_cli_find_model(&b->path, "bench", name);
    if (status) return status;
    gdn_status failed = gdn_model_config_load(c, b->path.text, &err);
    if (!failed) failed = gdn_tensors_open(&tensors, b->path.text, &err);
    if (!failed) failed = gdn_checkpoint_bind(&checkpoint, c, &tensors, &err);
    if (!failed) status = prepare(b, c, checkpoint.tied);
    if (!failed && !status) failed = gdn_model_load(&b->model, &checkpoint, false, NULL, NULL, &err);
    if (failed) status = gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message);
    gdn_checkpoint_close(&checkpoint);
    gdn_tensors_close(&tensors);
    return status;
}

static int open_model(gdn_model_bench *b, const char *name)
{
    gdn_model_config *c = malloc(sizeof *c);
    if (!c) return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory for a model");
    const int status = b->shape ? open_shape(b, c) : open_checkpoint(b, c, name);
    free(c);
    return status;
}

/* ---- the verb --------------------------------------------------------------------------------------------------------- */

static int measure(gdn_model_bench *b)
{
    enum { MOST = GDN_BENCH_LIST + 3 };
    gdn_error       err;
    int             n_lines = 0, status = GDN_EXIT_OK;
    gdn_bench_line *lines = malloc((size_t)b->threads.n * MOST * sizeof *lines);
    if (!lines) return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory for the lines");
    gdn_model_bench_print_head(b);
    for (int i = 0; i < b->threads.n && !status; i++) {
        const int before = n_lines;
        if (gdn_model_bench_run(b, b->threads.value[i], lines, &n_lines, &err))
            status = gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s; the table is incomplete", err.message);
        for (int line = before; line < n_lines; line++) gdn_model_bench_print_line(b, &lines[line]);
        if (!status) status = gdn_cli_flush();
    }
    if (!status) status = gdn_model_bench_print_end(b, lines, n_lines);
    free(lines);
    return status;
}

static int bench_model(int argc, char **argv)
{
    gdn_model_bench  b = {.tg = 128, .piece = 512, .repeats = 3, .program = gdn_resident_now().bytes};
    const char      *name = NULL, *pp = "64,512,2048", *threads = NULL;
    char             all[16];
    int              want_help = 0, reuse = 0, snapshot = 0;
    const gdn_option options[] = {
        {"MODEL", GDN_OPTION_ARGUMENT, &name, 0, 0},
        {"--shape", GDN_OPTION_TEXT, &b.shape, 0, 0},
        {"--pp", GDN_OPTION_TEXT, &pp, 0, 0},
        {"--tg", GDN_OPTION_INT, &b.tg, 0, MOST_TOKENS},
        {"--depth", GDN_OPTION_INT, &b.depth, 0, MOST_TOKENS},
        {"--piece", GDN_OPTION_INT, &b.piece, 1, MOST_PIECE},
        {"--threads", GDN_OPTION_TEXT, &threads, 0, 0},
        {"--cpu", GDN_OPTION_TEXT, &b.level, 0, 0},
        {"--repeat", GDN_OPTION_INT, &b.repeats, 1, GDN_BENCH_REPEATS},
        {"--csv", GDN_OPTION_FLAG, &b.csv, 0, 0},
        {"--json", GDN_OPTION_FLAG, &b.json, 0, 0},
        {"--reuse", GDN_OPTION_FLAG, &reuse, 0, 0},
        {"--snapshot", GDN_OPTION_FLAG, &snapshot, 0, 0},
        {"--help", GDN_OPTION_FLAG, &want_help, 0, 0},
    };
    const int n_cpus = gdn_cpu_count();
    snprintf(all, sizeof all, n_cpus > 1 ? "1,%d" : "%d", n_cpus);
    int status = gdn_options_read("bench", argc, argv, options, sizeof options / sizeof *options);
    if (status) return status;
    if (want_help) return help();
    if (reuse && snapshot)
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--reuse and --snapshot contradict each other; use one of them");
    if ((reuse || snapshot) && b.csv)
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "%s has no --csv; use --json", reuse ? "--reuse" : "--snapshot");
    if ((status = gdn_bench_read_list(&b.pp, "--pp", pp, 0, MOST_TOKENS))) return status;
    if ((status = gdn_bench_read_list(&b.threads, "--threads", threads ? threads : all, 1, 256))) return status;
    if ((status = check_options(&b, name)) || (status = find_level(&b))) return status;
    status = open_model(&b, name);
    const int most = b.threads.value[b.threads.n - 1];
    if (!status) status = reuse ? gdn_bench_reuse(&b, most) : snapshot ? gdn_bench_snapshot(&b, most) : measure(&b);
    gdn_model_close(b.model);
    return status;
}

int gdn_verb_bench(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--ops")) return gdn_bench_ops(argc, argv);
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], "--spec")) return gdn_bench_spec(argc, argv);
    return bench_model(argc, argv);
}
