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

static int add_registers(gdn_bench_group *group, const char *op, const char *level, gdn_fma_fn *fn, double ops)
{
    fma_call *call = gdn_bench_alloc(group, sizeof *call);
    *call = (fma_call){fn, 20000};
    gdn_bench_case *c = gdn_bench_add(group, run_fma, call);
    c->op = op;
    c->variant = "registers";
    c->level = level;
    c->lane_ops = (double)call->rounds * ops;
    c->flops = 2 * c->lane_ops;
    c->hidden = 1;
    return (int)(c - group->cases);
}

int gdn_bench_add_fma(gdn_bench_group *group, const gdn_bench_level *level)
{
    const gdn_limits *l = level->limits;
    return l && l->fma ? add_registers(group, "fma", level->name, l->fma, (double)l->chains * l->width) : -1;
}

int gdn_bench_add_matrix(gdn_bench_group *group, const gdn_bench_level *level)
{
    const gdn_limits *l = level->limits;
    if (!l || !l->matrix || l->matrix == l->fma) return gdn_bench_add_fma(group, level);
    return add_registers(group, "tiles", level->name, l->matrix, l->matrix_ops);
}

typedef struct sweep_call { /* through x in one of the ways of `limits` */
    const gdn_limits *limits;
    int               way;
    float            *x;
    size_t            n;
} sweep_call;

static void run_scale(void *arg)
{
    const sweep_call *call = arg;
    call->limits->scale[call->way](call->x, call->n, 1.0f); /* by one, so that what other cases keep there stays */
}

static void run_read(void *arg)
{
    const sweep_call *call = arg;
    call->limits->read[call->way](call->x, call->n);
}

static int add_sweeps(gdn_bench_group *group, void (*run)(void *), const char *op, float *x, size_t bytes)
{
    enum { WAYS = GDN_SCALE_WAYS }; /* as many as of reading */
    const gdn_bench_level *level = &group->bench->levels[group->bench->n_levels - 1];
    const int              first = group->n_cases;
    if (!level->limits || !level->limits->scale) return -1;
    for (int way = 0; way < WAYS; way++) {
        sweep_call *call = gdn_bench_alloc(group, sizeof *call);
        *call = (sweep_call){level->limits, way, x, bytes / sizeof *x / GDN_SCALE_BLOCK * GDN_SCALE_BLOCK};
        gdn_bench_case *c = gdn_bench_add(group, run, call);
        c->op = op;
        c->level = level->name;
        c->bytes = (double)(call->n * sizeof *x);
        c->hidden = 1;
    }
    return first;
}

int gdn_bench_add_scale(gdn_bench_group *group, float *x, size_t bytes)
{
    const int first = add_sweeps(group, run_scale, "scale", x, bytes);
    for (int i = first; i >= 0 && i < group->n_cases; i++) group->cases[i].bytes *= 2; /* to and fro */
    return first;
}

int gdn_bench_add_read(gdn_bench_group *group, const void *x, size_t bytes)
{
    return add_sweeps(group, run_read, "read", (float *)(uintptr_t)x, bytes);
}

/* Let the first of the cases that sweep through the same memory hold the fastest's times. */
static void choose_fastest_sweeps(gdn_bench_group *group)
{
    for (int i = 0, first = -1; i < group->n_cases; i++) {
        gdn_bench_case *c = &group->cases[i];
        if (c->run != run_scale && c->run != run_read) {
            first = -1;
        } else if (first < 0 || group->cases[first].run != c->run) {
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
    choose_fastest_sweeps(group);
    for (int i = 0; i < group->n_cases; i++) {
        if (!group->cases[i].hidden) gdn_bench_print_case(group, &group->cases[i]);
    }
    while (group->n_blocks) free(group->blocks[--group->n_blocks]);
    if (gdn_cli_flush()) exit(GDN_EXIT_FAILED);
}
