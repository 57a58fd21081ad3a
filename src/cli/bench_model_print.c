#include "cli/bench.h"
#include "cli/bench_model.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a line: those of the table are multiplied by `factor`. */
static const struct column {
    const char *name, *title; /* in CSV and JSON; in the table */
    int         width, decimals;
    double      factor;
} columns[GDN_BENCH_VALUES] = {
    {"tokens_per_s", "tokens/s", 9, 1, 1},  {"tokens_per_s_least", "least", 9, 1, 1},
    {"tokens_per_s_most", "most", 9, 1, 1}, {"ms_median", "ms", 10, 2, 1},
    {"gflops", "GFLOP/s", 8, 1, 1},         {"matrix_share", "% matrix", 8, 1, 100},
    {"gbytes_per_s", "GB/s", 7, 2, 1},      {"read_share", "% read", 7, 1, 100},
};

static gdn_words huge_pages(void)
{
    gdn_words w = {"unknown"};
    char      line[128] = "";
    FILE     *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    char     *chosen = f && fgets(line, sizeof line, f) ? strchr(line, '[') : NULL;
    if (chosen) snprintf(w.text, sizeof w.text, "%.*s", (int)strcspn(chosen + 1, "]"), chosen + 1);
    if (f) fclose(f);
    return w;
}

static void print_title(const gdn_model_bench *b)
{
    if (b->shape) printf("model %s shape with random weights", b->shape);
    else printf("model %s", b->path.text);
    printf(", %s parameters; prompts in pieces of %d\n\n", gdn_number_words(b->parameters).text, b->piece);
}

void gdn_model_bench_print_head(const gdn_model_bench *b)
{
    if (b->json) return;
    if (b->csv) {
        printf("test,level,threads,tokens,depth");
        for (int i = 0; i < GDN_BENCH_VALUES; i++) printf(",%s", columns[i].name);
        printf("\n");
        return;
    }
    printf("gdn %s (commit %s), %s; level %s; huge pages %s; medians of %d\n", GDN_VERSION, gdn_cli_commit(),
           gdn_bench_processor().text, b->level, huge_pages().text, b->repeats);
    print_title(b);
    printf("%-7s %3s %6s %6s", "test", "thr", "tokens", "depth");
    for (int i = 0; i < GDN_BENCH_VALUES; i++) printf(" %*s", columns[i].width, columns[i].title);
    printf("\n");
}

static void print_csv(const gdn_bench_line *l, const char *level)
{
    printf("%s,%s,%d,", l->test, level, l->threads);
    if (l->tokens) printf("%d,%d", l->tokens, l->depth);
    else putchar(',');
    for (int i = 0; i < GDN_BENCH_VALUES; i++) {
        putchar(',');
        if (!isnan(l->value[i])) printf("%.4f", l->value[i]);
    }
    printf("\n");
}

void gdn_model_bench_print_line(const gdn_model_bench *b, const gdn_bench_line *l)
{
    if (b->json) return;
    if (b->csv) {
        print_csv(l, b->level);
        return;
    }
    printf("%-7s %3d", l->test, l->threads);
    if (l->tokens) printf(" %6d %6d", l->tokens, l->depth);
    else printf(" %6s %6s", "-", "-");
    for (int i = 0; i < GDN_BENCH_VALUES; i++) {
        if (isnan(l->value[i])) printf(" %*s", columns[i].width, "-");
        else printf(" %*.*f", columns[i].width, columns[i].decimals, columns[i].factor * l->value[i]);
    }
    printf("\n");
}

/* ---- the end ---------------------------------------------------------------------------------------------------------- */

static uint64_t planned(const gdn_model_bench *b) { return b->plan.weights + b->states + b->kv + b->buffers; }

/* What the model has in memory: all that is resident, less what the program had before. */
static uint64_t held(const gdn_model_bench *b)
{
    return b->resident.bytes > b->program ? b->resident.bytes - b->program : 0;
}

static void print_memory(const gdn_model_bench *b)
{
    const double plan = (double)planned(b);
    printf("\nmemory  plan %s: weights %s, states %s, KV %s, buffers %s\n", gdn_size_words(planned(b)).text,
           gdn_size_words(b->plan.weights).text, gdn_size_words(b->states).text, gdn_size_words(b->kv).text,
           gdn_size_words(b->buffers).text);
    if (!b->resident.bytes) {
        printf("        resident: the system does not say\n");
        return;
    }
    printf("        resident %s beside the program's %s: %+.1f %% of the plan; %.0f %% on huge pages\n",
           gdn_size_words(held(b)).text, gdn_size_words(b->program).text, 100 * ((double)held(b) / plan - 1),
           100 * (double)b->resident.huge_bytes / (double)b->resident.bytes);
}

static json_t *json_line(const gdn_bench_line *l)
{
    json_t *line = json_pack("{s:s,s:i,s:o,s:o}", "test", l->test, "threads", l->threads, "tokens",
                             l->tokens ? json_integer(l->tokens) : json_null(), "depth",
                             l->tokens ? json_integer(l->depth) : json_null());
    for (int i = 0; i < GDN_BENCH_VALUES; i++)
        json_object_set_new(line, columns[i].name, isnan(l->value[i]) ? json_null() : json_real(l->value[i]));
    return line;
}

static int print_json(const gdn_model_bench *b, const gdn_bench_line *lines, int n_lines)
{
    json_t *results = json_array();
    for (int i = 0; i < n_lines; i++) json_array_append_new(results, json_line(&lines[i]));
    json_t *memory = json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "weight_bytes", (json_int_t)b->plan.weights,
                               "state_bytes", (json_int_t)b->states, "kv_bytes", (json_int_t)b->kv, "buffer_bytes",
                               (json_int_t)b->buffers, "program_bytes", (json_int_t)b->program, "resident_bytes",
                               (json_int_t)b->resident.bytes, "huge_bytes", (json_int_t)b->resident.huge_bytes);
    json_t *root = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:I,s:i,s:i,s:o,s:o}", "version", GDN_VERSION, "commit",
                             gdn_cli_commit(), "processor", gdn_bench_processor().text, "level", b->level, "huge_pages",
                             huge_pages().text, "model", b->shape ? b->shape : b->path.text, "random_weights",
                             b->shape != NULL, "parameters", (json_int_t)b->parameters, "piece", b->piece, "repeats",
                             b->repeats, "results", results, "memory", memory);
    char   *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(root);
    if (!text)
        return gdn_cli_fail(GDN_EXIT_FAILED, "bench",
                            "the results cannot be written as JSON: the model's path is not UTF-8, or memory is out");
    printf("%s\n", text);
    free(text);
    return GDN_EXIT_OK;
}

int gdn_model_bench_print_end(const gdn_model_bench *b, const gdn_bench_line *lines, int n_lines)
{
    if (b->json) return print_json(b, lines, n_lines);
    if (!b->csv) print_memory(b);
    return GDN_EXIT_OK;
}
