#include "cli/bench.h"
#include "cli/cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

void gdn_bench_require(gdn_status status, const gdn_error *err)
{
    if (!status) return;
    exit(gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s; the table is incomplete",
                      err ? err->message : gdn_status_text(status)));
}

void *gdn_bench_alloc(gdn_bench_group *group, size_t bytes)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
    size_t rounded = (bytes + align - 1) / align * align;
    void  *block = group->n_blocks < GDN_BENCH_BLOCKS ? aligned_alloc(align, rounded ? rounded : align) : NULL;
    if (!block) {
        exit(gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory for a block of %zu bytes; use fewer --tokens or --heads",
                          bytes));
    }
    if (align == HUGE_PAGE) (void)madvise(block, rounded, MADV_HUGEPAGE); /* only a hint */
    memset(block, 0, rounded);
    group->blocks[group->n_blocks++] = block;
    return block;
}

float *gdn_bench_f32(gdn_bench_group *group, size_t n, float least, float most)
{
    float   *x = gdn_bench_alloc(group, n * sizeof *x);
    uint32_t state = 0x9e3779b9u + (uint32_t)group->n_blocks;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        x[i] = least + (most - least) * (float)(state >> 8) * 0x1p-24f;
    }
    return x;
}

uint16_t *gdn_bench_bf16(gdn_bench_group *group, const float *x, size_t n)
{
    uint16_t *y = gdn_bench_alloc(group, n * sizeof *y);
    gdn_bf16_from_f32(y, x, n);
    return y;
}

gdn_bench_case *gdn_bench_add(gdn_bench_group *group, void (*run)(void *), void *arg)
{
    gdn_bench_case *c = &group->cases[group->n_cases++];
    *c = (gdn_bench_case){.run = run, .arg = arg, .threads = 1, .fma = -1, .scale = -1, .versus = -1};
    return c;
}

typedef struct fma_call {
    gdn_fma_fn *fma;
    long        rounds;
} fma_call;

static void run_fma(void *arg)
{
    const fma_call *call = arg;
    call->fma(call->rounds);
}

int gdn_bench_add_fma(gdn_bench_group *group, const gdn_bench_level *level)
{
    const gdn_limits *limits = level->limits;
    if (!limits || !limits->fma) return -1;
    fma_call *call = gdn_bench_alloc(group, sizeof *call);
    *call = (fma_call){limits->fma, 20000};
    gdn_bench_case *c = gdn_bench_add(group, run_fma, call);
    c->op = "fma";
    c->variant = "registers";
    c->level = level->name;
    c->lane_ops = (double)call->rounds * limits->chains * limits->width;
    c->flops = 2 * c->lane_ops;
    c->hidden = 1;
    return (int)(c - group->cases);
}

typedef struct scale_call {
    gdn_scale_fn *scale;
    float        *x;
    size_t        n;
} scale_call;

static void run_scale(void *arg)
{
    const scale_call *call = arg;
    call->scale(call->x, call->n, 1.0f); /* by one, so that what other cases keep there stays */
}

int gdn_bench_add_scale(gdn_bench_group *group, float *x, size_t bytes)
{
    const gdn_bench_level *level = &group->bench->levels[group->bench->n_levels - 1];
    if (!level->limits || !level->limits->scale) return -1;
    int first = group->n_cases;
    for (int way = 0; way < GDN_SCALE_WAYS; way++) {
        scale_call *call = gdn_bench_alloc(group, sizeof *call);
        *call = (scale_call){level->limits->scale[way], x, bytes / sizeof *x / GDN_SCALE_BLOCK * GDN_SCALE_BLOCK};
        gdn_bench_case *c = gdn_bench_add(group, run_scale, call);
        c->op = "scale";
        c->level = level->name;
        c->bytes = 2.0 * (double)(call->n * sizeof *x);
        c->hidden = 1;
    }
    return first;
}

/* Let the first of the cases that scale the same memory hold the fastest's times. */
static void choose_fastest_scale(gdn_bench_group *group)
{
    for (int i = 0, first = -1; i < group->n_cases; i++) {
        gdn_bench_case *c = &group->cases[i];
        if (c->run != run_scale) {
            first = -1;
        } else if (first < 0) {
            first = i;
        } else if (c->median < group->cases[first].median) {
            group->cases[first].median = c->median;
            group->cases[first].least = c->least;
        }
    }
}

void gdn_bench_finish(gdn_bench_group *group)
{
    gdn_bench_measure(group->cases, group->n_cases, group->bench->options.seconds);
    choose_fastest_scale(group);
    for (int i = 0; i < group->n_cases; i++) {
        if (!group->cases[i].hidden) gdn_bench_print_case(group, &group->cases[i]);
    }
    while (group->n_blocks) free(group->blocks[--group->n_blocks]);
    if (gdn_cli_flush()) exit(GDN_EXIT_FAILED);
}
