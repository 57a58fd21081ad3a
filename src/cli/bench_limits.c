/* The bounds themselves: FMA and tile throughput of each level, and the in-place scale at three sizes. */
#include "cli/bench.h"

enum { STATE_BYTES = 128 * 128 * 4 };

static void show(gdn_bench_group *group, int number)
{
    if (number < 0) return;
    /* A token of a head takes four operations for each element of its state. */
    group->cases[number].hidden = 0;
    group->cases[number].token_heads = group->cases[number].lane_ops / (4.0 * 128 * 128);
}

static void register_limits(gdn_bench *bench)
{
    gdn_bench_group group = {.bench = bench};
    for (int i = 0; i < bench->n_levels; i++) {
        const gdn_limits *limits = bench->levels[i].limits;
        show(&group, gdn_bench_add_fma(&group, &bench->levels[i]));
        if (limits && limits->matrix != limits->fma) show(&group, gdn_bench_add_matrix(&group, &bench->levels[i]));
    }
    if (group.n_cases) gdn_bench_finish(&group);
}

static void scale_limit(gdn_bench *bench, const char *variant, size_t bytes)
{
    gdn_bench_group group = {.bench = bench};
    int             number = gdn_bench_add_scale(&group, gdn_bench_f32(&group, bytes / sizeof(float), 0.5f, 1), bytes);
    if (number >= 0) {
        gdn_bench_case *c = &group.cases[number];
        c->hidden = 0;
        c->variant = variant;
        c->heads = (int)(bytes / STATE_BYTES);
        c->token_heads = c->heads;
    }
    gdn_bench_finish(&group);
}

void gdn_bench_limits(gdn_bench *bench)
{
    register_limits(bench);
    scale_limit(bench, "L2", 8 * STATE_BYTES);
    scale_limit(bench, "states", 144 * STATE_BYTES);
    scale_limit(bench, "memory", 2048 * (size_t)STATE_BYTES);
}
