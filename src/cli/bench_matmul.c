/* Matrix products at the shapes of a model's layers.  One row reads weights that lie in memory, MATRICES of them in
 * turn, and is compared with reading them; more rows use one matrix. */
#include "base/threads.h"
#include "cli/bench.h"
#include "kernel/kernel.h"
#include "model/forward.h"

enum { MATRICES = 16 };

typedef struct call {
    gdn_threads    *threads;
    gdn_matmul_fn  *matmul;
    gdn_matmul_job  job; /* of the whole; w is that of the first matrix */
    int             n_matrices, panels_a_task;
    size_t          work_floats; /* of each thread */
    const uint16_t *w;           /* of the running matrix */
} call;

typedef struct pools { /* what a group has opened */
    int          n;
    gdn_threads *pool[GDN_BENCH_LEVELS + 1];
} pools;

static void run_task(void *arg, int task, int thread)
{
    const call    *c = arg;
    const int      first = task * c->panels_a_task, left = c->job.n_panels - first;
    gdn_matmul_job j = c->job;
    j.n_panels = left < c->panels_a_task ? left : c->panels_a_task;
    j.n_outputs = j.n_panels * GDN_PANEL;
    j.w = c->w + (size_t)first * GDN_PANEL * j.n_inputs;
    j.y += first * GDN_PANEL;
    j.work += (size_t)thread * c->work_floats;
    c->matmul(&j);
}

static void run_matmul(void *arg)
{
    call *c = arg;
    for (int i = 0; i < c->n_matrices; i++) {
        c->w = c->job.w + (size_t)i * c->job.n_panels * GDN_PANEL * c->job.n_inputs;
        gdn_threads_run(c->threads, (c->job.n_panels + c->panels_a_task - 1) / c->panels_a_task, run_task, c);
    }
}

static int add_read(gdn_bench_group *group, const gdn_matmul_job *j, const char *shape)
{
    const int read = gdn_bench_add_read(group, j->w, sizeof *j->w * MATRICES * (size_t)j->n_outputs * j->n_inputs);
    if (read < 0) return -1;
    group->cases[read].variant = shape;
    group->cases[read].hidden = 0;
    return read;
}

static gdn_bench_case *add_matmul(gdn_bench_group *group, pools *opened, const gdn_matmul_job *j,
                                  const gdn_bench_level *level, int n_threads, const char *shape)
{
    gdn_error   err;
    gdn_kernels kernels;
    call       *c = gdn_bench_alloc(group, sizeof *c);
    unsigned    flags = 0;
    for (int i = 0; gdn_kernels_level(i); i++)
        if (gdn_kernels_level(i)->name == level->name) flags = gdn_kernels_level(i)->flags;
    gdn_kernels_fill(&kernels, flags);
    *c = (call){.matmul = kernels.matmul, .job = *j, .n_matrices = j->n_rows == 1 && flags ? MATRICES : 1};
    c->panels_a_task = n_threads == 1 ? j->n_panels : (j->n_panels / (4 * n_threads) + 4) / 4 * 4;
    c->work_floats = (size_t)GDN_MATMUL_ROWS * j->n_inputs;
    c->job.work = gdn_bench_alloc(group, (size_t)n_threads * c->work_floats * sizeof *c->job.work);
    gdn_bench_require(gdn_threads_open(&c->threads, n_threads, &err), &err);
    opened->pool[opened->n++] = c->threads;

    gdn_bench_case *line = gdn_bench_add(group, run_matmul, c);
    line->op = "matmul";
    line->variant = shape;
    line->level = level->name;
    line->threads = n_threads;
    line->tokens = j->n_rows;
    line->token_heads = (double)c->n_matrices * j->n_rows;
    line->lane_ops = line->token_heads * j->n_outputs * j->n_inputs;
    line->flops = 2 * line->lane_ops;
    if (j->n_rows == 1) line->bytes = 2.0 * c->n_matrices * j->n_outputs * j->n_inputs;
    return line;
}

static void compare(gdn_bench_case *c, int versus, const char *name, int is_cost)
{
    c->versus = versus;
    c->versus_name = name;
    c->is_cost = is_cost;
}

static void matmul_group(gdn_bench *bench, int n_rows, int n_inputs, int n_outputs, const char *shape)
{
    gdn_bench_group group = {.bench = bench};
    pools           opened = {0};
    const size_t    n_x = (size_t)n_rows * gdn_input_stride((size_t)n_inputs),
                 n_w = (size_t)n_outputs * n_inputs * (n_rows == 1 ? MATRICES : 1);
    gdn_matmul_job j = {.n_rows = n_rows,
                        .n_inputs = n_inputs,
                        .n_panels = n_outputs / GDN_PANEL,
                        .n_outputs = n_outputs,
                        .w = gdn_bench_bf16(&group, gdn_bench_f32(&group, n_w, -1, 1), n_w),
                        .x = gdn_bench_bf16(&group, gdn_bench_f32(&group, n_x, -1, 1), n_x),
                        .x_stride = gdn_input_stride((size_t)n_inputs),
                        .y = gdn_bench_alloc(&group,
                                             (size_t)n_rows * gdn_output_stride((size_t)n_outputs) * sizeof(float)),
                        .y_stride = gdn_output_stride((size_t)n_outputs)};
    const int      read = n_rows == 1 ? add_read(&group, &j, shape) : -1;
    int            highest = -1, fma = -1;
    for (int i = 0; i < bench->n_levels; i++) {
        const gdn_bench_level *level = &bench->levels[i];
        fma = gdn_bench_add_matrix(&group, level);
        if (fma < 0 && n_rows > 4) continue; /* the definition would take seconds */
        gdn_bench_case *c = add_matmul(&group, &opened, &j, level, bench->options.threads, shape);
        c->fma = fma;
        highest = (int)(c - group.cases);
        if (read >= 0 && fma >= 0 && c->threads == 1) compare(c, read, "read", 1);
    }
    if (bench->many && bench->options.threads == 1 && fma >= 0) {
        gdn_bench_case *c = add_matmul(&group, &opened, &j, &bench->levels[bench->n_levels - 1], bench->n_many, shape);
        c->fma = fma;
        compare(c, highest, "1 thread", 0);
    }
    gdn_bench_finish(&group);
    for (int i = 0; i < opened.n; i++) gdn_threads_close(opened.pool[i]);
}

void gdn_bench_matmul(gdn_bench *bench)
{
    static const int rows[] = {1, 4, 16, 64, 512};
    const int        asked = bench->options.tokens;
    for (int i = 0; i < (asked ? 1 : 5); i++) {
        matmul_group(bench, asked ? asked : rows[i], 1024, 3584, "1024>3584");
        matmul_group(bench, asked ? asked : rows[i], 3584, 1024, "3584>1024");
    }
}
