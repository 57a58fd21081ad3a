#include "cli/bench.h"
#include "cli/cli.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* The numbers of a line: those of the table are multiplied by `factor`. */
static const struct column {
    const char *csv, *title;
    int         width, decimals, csv_decimals;
    double      factor;
} columns[] = {
    {"tokens", "tokens", 6, 0, 0, 1},        {"heads", "heads", 6, 0, 0, 1},
    {"ns_median", "ns/tok/hd", 10, 1, 3, 1}, {"ns_least", "least", 10, 1, 3, 1},
    {"gflops", "GFLOP/s", 8, 1, 3, 1},       {"gbytes_per_s", "GB/s", 8, 2, 4, 1},
    {"fma_share", "% FMA", 7, 1, 4, 100},    {"scale_share", "% scale", 7, 1, 4, 100},
};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

gdn_processor gdn_bench_processor(void)
{
    char           line[256] = "", *name = NULL;
    struct utsname system;
    gdn_processor  p;
    FILE          *f = fopen("/proc/cpuinfo", "r");
    while (f && !name && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "model name", 10)) name = strchr(line, ':');
    }
    if (f) fclose(f);
    if (name) name[strcspn(name, "\n")] = 0;
    snprintf(p.text, sizeof p.text, "%s, %s", name ? name + 2 : "processor without a name",
             uname(&system) ? "-" : system.machine);
    return p;
}

void gdn_bench_print_head(const gdn_bench *bench)
{
    if (bench->options.csv) {
        printf("operation,variant,level,threads");
        for (int i = 0; i < N_COLUMNS; i++) printf(",%s", columns[i].csv);
        printf(",ratio,ratio_of\n");
        return;
    }
    printf("gdn %s, %s; levels", GDN_VERSION, gdn_bench_processor().text);
    for (int i = 0; i < bench->n_levels; i++) printf(" %s", bench->levels[i].name);
    printf("; medians of %g s a group\n\n", bench->options.seconds);
    printf("%-10s %-10s %-7s %3s", "operation", "variant", "level", "thr");
    for (int i = 0; i < N_COLUMNS; i++) printf(" %*s", columns[i].width, columns[i].title);
    printf("  ratio\n");
}

/* A value that could not be measured is NAN. */
static void print_csv(const gdn_bench_case *c, const double *values, double ratio)
{
    printf("%s,%s,%s,%d", c->op, c->variant, c->level, c->threads);
    for (int i = 0; i < N_COLUMNS; i++) {
        putchar(',');
        if (!isnan(values[i])) printf("%.*f", columns[i].csv_decimals, values[i]);
    }
    if (isnan(ratio)) {
        printf(",,\n");
    } else {
        printf(",%.4f,%s\n", ratio, c->versus_name);
    }
}

static void print_line(const gdn_bench_case *c, const double *values, double ratio)
{
    printf("%-10s %-10s %-7s %3d", c->op, c->variant, c->level, c->threads);
    for (int i = 0; i < N_COLUMNS; i++) {
        const struct column *column = &columns[i];
        if (isnan(values[i])) {
            printf(" %*s", column->width, "-");
        } else {
            printf(" %*.*f", column->width, column->decimals, column->factor * values[i]);
        }
    }
    if (isnan(ratio)) {
        printf("  -\n");
    } else {
        printf("  %.3f %s %s\n", ratio, c->is_cost ? "of" : "x", c->versus_name);
    }
}

void gdn_bench_print_case(const gdn_bench_group *group, const gdn_bench_case *c)
{
    const gdn_bench_case *fma = &group->cases[c->fma < 0 ? 0 : c->fma];
    const gdn_bench_case *scale = &group->cases[c->scale < 0 ? 0 : c->scale];
    const gdn_bench_case *versus = &group->cases[c->versus < 0 ? 0 : c->versus];

    double ns = c->token_heads > 0 ? 1e9 / c->token_heads : NAN;
    double ratio = c->is_cost ? c->median / versus->median : versus->median / c->median;
    double values[N_COLUMNS] = {
        c->tokens ? (double)c->tokens : NAN,
        c->heads ? (double)c->heads : NAN,
        ns * c->median,
        ns * c->least,
        c->flops > 0 ? c->flops / c->median * 1e-9 : NAN,
        c->bytes > 0 ? c->bytes / c->median * 1e-9 : NAN,
        c->fma < 0 ? NAN : c->lane_ops / c->median / (fma->lane_ops / fma->median * c->threads),
        c->scale < 0 ? NAN : c->bytes / c->median / (scale->bytes / scale->median),
    };
    if (c->versus < 0) ratio = NAN;
    (group->bench->options.csv ? print_csv : print_line)(c, values, ratio);
}
