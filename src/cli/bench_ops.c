#include "base/cpu.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "kernel/kernel.h"
#include <stdio.h>
#include <string.h>

enum { MOST_HEADS = 256, MOST_TOKENS = 8192 };

static const struct operation {
    const char *name;
    void (*run)(gdn_bench *bench);
} operations[] = {
    {"conv_silu", gdn_bench_conv_silu}, {"qk_norm", gdn_bench_qk_norm},       {"gates", gdn_bench_gates},
    {"delta", gdn_bench_delta},         {"gated_norm", gdn_bench_gated_norm}, {"matmul", gdn_bench_matmul},
    {"layer", gdn_bench_layer},         {"round", gdn_bench_round},
};
enum { N_OPERATIONS = sizeof operations / sizeof *operations };

static int help(void)
{
    printf("gdn bench - measure the operations on this machine\n\n"
           "usage: gdn bench --ops [options]\n\n"
           "  --ops          every operation at every CPU level, with the bounds of this machine\n"
           "  --op NAME      one of");
    for (int i = 0; i < N_OPERATIONS; i++) printf(" %s", operations[i].name);
    printf("\n"
           "  --cpu LEVEL    one of ref avx2 avx512 amx neon, as far as this machine has it\n"
           "  --threads N    threads of every line, 1..256 (1)\n"
           "  --heads N      value heads, 1..%d (16, 32 and 48 for delta; 48 for layer and round; 32 else)\n"
           "  --tokens T     tokens of a call, 1..%d (1 and 512; for delta also 16)\n"
           "  --seconds S    time for one group of lines, 0.001..60 (0.8)\n"
           "  --csv          comma-separated values instead of a table\n\n"
           "bench/README.md says what the columns mean.\n\n"
           "examples\n"
           "  gdn bench --ops --op delta --heads 48 --tokens 512\n"
           "  gdn bench --ops --cpu avx2 --csv > avx2.csv\n",
           MOST_HEADS, MOST_TOKENS);
    return GDN_EXIT_OK;
}

static int check_operation(const char *name)
{
    char list[128] = "";
    for (int i = 0; i < N_OPERATIONS; i++) {
        if (!name || !strcmp(name, operations[i].name)) return GDN_EXIT_OK;
        strcat(strcat(list, i ? ", " : ""), operations[i].name);
    }
    return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--op '%s' is not an operation; choose one of %s", name, list);
}

/* Open the levels asked for that this machine has, and the pair that compares thread counts. */
static int open_levels(gdn_bench *bench)
{
    const gdn_bench_options *options = &bench->options;
    gdn_error                err;
    char                     list[64] = "";
    for (int i = 0; gdn_kernels_level(i); i++) {
        const char  *name = gdn_kernels_level(i)->name;
        gdn_compute *compute;
        gdn_status   status = gdn_compute_open(&compute, name, options->threads, &err);
        if (status == GDN_UNSUPPORTED) continue;
        if (status) return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message);
        strcat(strcat(list, *list ? ", " : ""), name);
        if (options->level && strcmp(options->level, name)) {
            gdn_compute_close(compute);
        } else {
            bench->levels[bench->n_levels++] = (gdn_bench_level){name, compute, gdn_limits_of(name)};
        }
    }
    if (!bench->n_levels) {
        return gdn_cli_fail(GDN_EXIT_USAGE, "bench", "--cpu '%s' is not a level of this machine; choose one of %s",
                            options->level, list);
    }
    if (gdn_cpu_count() < 2 && options->threads < 2) return GDN_EXIT_OK;
    const char *highest = bench->levels[bench->n_levels - 1].name;
    bench->n_many = options->threads < 2 ? 2 : options->threads;
    if (gdn_compute_open(&bench->one, highest, 1, &err) ||
        gdn_compute_open(&bench->many, highest, bench->n_many, &err)) {
        return gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message);
    }
    return GDN_EXIT_OK;
}

static void close_levels(gdn_bench *bench)
{
    for (int i = 0; i < bench->n_levels; i++) gdn_compute_close(bench->levels[i].compute);
    gdn_compute_close(bench->one);
    gdn_compute_close(bench->many);
}

int gdn_bench_ops(int argc, char **argv)
{
    gdn_bench          bench = {.options = {.threads = 1, .seconds = 0.8}};
    gdn_bench_options *o = &bench.options;
    int                ops = 0, want_help = 0;
    const gdn_option   options[] = {
          {"--ops", GDN_OPTION_FLAG, &ops, 0, 0},
          {"--op", GDN_OPTION_TEXT, &o->op, 0, 0},
          {"--cpu", GDN_OPTION_TEXT, &o->level, 0, 0},
          {"--threads", GDN_OPTION_INT, &o->threads, 1, 256},
          {"--heads", GDN_OPTION_INT, &o->heads, 1, MOST_HEADS},
          {"--tokens", GDN_OPTION_INT, &o->tokens, 1, MOST_TOKENS},
          {"--seconds", GDN_OPTION_NUMBER, &o->seconds, 0.001, 60},
          {"--csv", GDN_OPTION_FLAG, &o->csv, 0, 0},
          {"--help", GDN_OPTION_FLAG, &want_help, 0, 0},
    };
    int status = gdn_options_read("bench", argc, argv, options, sizeof options / sizeof *options);
    if (status) return status;
    if (want_help) return help();
    if ((status = check_operation(o->op))) return status;

    status = open_levels(&bench);
    if (!status) {
        gdn_bench_print_head(&bench);
        gdn_bench_limits(&bench);
        for (int i = 0; i < N_OPERATIONS; i++) {
            if (!o->op || !strcmp(o->op, operations[i].name)) operations[i].run(&bench);
        }
    }
    close_levels(&bench);
    return status;
}
