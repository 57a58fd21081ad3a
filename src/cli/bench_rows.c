/* The operations that treat every row alike.  Their data is of a 32-head layer in bf16, as the models have it; the scale
 * share compares with the in-place scale of as many bytes as the operation reads and writes. */
#include "cli/bench.h"

enum { HK = 16, HV = 32, DIM = 128, TAPS = 4, CHANNELS = (2 * HK + HV) * DIM };

typedef struct call {
    gdn_compute *compute;
    const void  *args;
} call;

static const int usual_tokens[] = {1, 512};

/* Token count i of a table: the usual ones, or the one of --tokens; 0 past the last. */
static int tokens_of(const gdn_bench *bench, int i)
{
    int asked = bench->options.tokens;
    return i >= (asked ? 1 : 2) ? 0 : asked ? asked : usual_tokens[i];
}

static int heads_of(const gdn_bench *bench) { return bench->options.heads ? bench->options.heads : HV; }

/* One case a level, and the scale of a buffer that is half of `bytes`: it is read and written. */
static void finish(gdn_bench_group *group, const char *op, int tokens, int heads, double bytes, void (*run)(void *),
                   const void *args)
{
    gdn_bench *bench = group->bench;
    size_t     scaled = ((size_t)bytes / 2 / (4 * GDN_SCALE_BLOCK) + 1) * 4 * GDN_SCALE_BLOCK;
    int        scale = gdn_bench_add_scale(group, gdn_bench_f32(group, scaled / sizeof(float), 0.5f, 1), scaled);
    for (int i = 0; i < bench->n_levels; i++) {
        call *level_call = gdn_bench_alloc(group, sizeof *level_call);
        *level_call = (call){bench->levels[i].compute, args};
        gdn_bench_case *c = gdn_bench_add(group, run, level_call);
        c->op = op;
        c->variant = tokens == 1 ? "step" : "sequence";
        c->level = bench->levels[i].name;
        c->threads = bench->options.threads;
        c->tokens = tokens;
        c->heads = heads;
        c->token_heads = (double)tokens * heads;
        c->bytes = bytes;
        c->scale = c->threads == 1 ? scale : -1;
    }
    gdn_bench_finish(group);
}

static void run_conv(void *arg)
{
    const call *c = arg;
    gdn_error   err;
    gdn_bench_require(gdn_conv_silu(c->compute, c->args, &err), &err);
}

void gdn_bench_conv_silu(gdn_bench *bench)
{
    for (int i = 0, tokens; (tokens = tokens_of(bench, i)); i++) {
        gdn_bench_group group = {.bench = bench};
        size_t          n = (size_t)tokens * CHANNELS, tail_bytes = 2 * (TAPS - 1) * CHANNELS;
        void           *tail = gdn_bench_alloc(&group, tail_bytes);
        gdn_conv_args   args = {
              .batch = {.n_lanes = 1, .length = tokens},
              .n_channels = CHANNELS,
              .n_taps = TAPS,
              .type = GDN_BF16,
              .x = gdn_bench_bf16(&group, gdn_bench_f32(&group, n, -3, 3), n),
              .w = gdn_bench_f32(&group, (size_t)TAPS * CHANNELS, -1, 1),
              .tail_in = {.base = tail, .stride = tail_bytes},
              .tail_out = {.base = tail, .stride = tail_bytes},
              .y = gdn_bench_alloc(&group, 2 * n),
        };
        finish(&group, "conv_silu", tokens, CHANNELS / DIM, 4.0 * (double)n + 4.0 * TAPS * CHANNELS, run_conv, &args);
    }
}

static void run_qk_norm(void *arg)
{
    const call *c = arg;
    gdn_error   err;
    gdn_bench_require(gdn_qk_norm(c->compute, c->args, &err), &err);
}

void gdn_bench_qk_norm(gdn_bench *bench)
{
    for (int i = 0, tokens; (tokens = tokens_of(bench, i)); i++) {
        gdn_bench_group  group = {.bench = bench};
        size_t           n = (size_t)tokens * HK * DIM;
        gdn_qk_norm_args args = {
            .n_rows = tokens,
            .n_heads = HK,
            .dim = DIM,
            .x_type = GDN_BF16,
            .y_type = GDN_BF16,
            .eps = 1e-6f,
            .is_query = 1,
            .x = gdn_bench_bf16(&group, gdn_bench_f32(&group, n, -1, 1), n),
            .y = gdn_bench_alloc(&group, 2 * n),
        };
        finish(&group, "qk_norm", tokens, HK, 4.0 * (double)n, run_qk_norm, &args);
    }
}

static void run_gates(void *arg)
{
    const call *c = arg;
    gdn_error   err;
    gdn_bench_require(gdn_gates(c->compute, c->args, &err), &err);
}

void gdn_bench_gates(gdn_bench *bench)
{
    for (int i = 0, tokens; (tokens = tokens_of(bench, i)); i++) {
        gdn_bench_group group = {.bench = bench};
        int             heads = heads_of(bench);
        size_t          n = (size_t)tokens * heads;
        gdn_gates_args  args = {
             .n_rows = tokens,
             .n_value_heads = heads,
             .type = GDN_BF16,
             .a = gdn_bench_bf16(&group, gdn_bench_f32(&group, n, -3, 3), n),
             .b = gdn_bench_bf16(&group, gdn_bench_f32(&group, n, -3, 3), n),
             .A_log = gdn_bench_f32(&group, (size_t)heads, -2, 2),
             .dt_bias = gdn_bench_f32(&group, (size_t)heads, -2, 2),
             .g = gdn_bench_alloc(&group, 4 * n),
             .beta = gdn_bench_alloc(&group, 4 * n),
        };
        finish(&group, "gates", tokens, heads, 12.0 * (double)n, run_gates, &args);
    }
}

static void run_gated_norm(void *arg)
{
    const call *c = arg;
    gdn_error   err;
    gdn_bench_require(gdn_gated_norm(c->compute, c->args, &err), &err);
}

void gdn_bench_gated_norm(gdn_bench *bench)
{
    for (int i = 0, tokens; (tokens = tokens_of(bench, i)); i++) {
        gdn_bench_group     group = {.bench = bench};
        int                 heads = heads_of(bench);
        size_t              n = (size_t)tokens * heads * DIM;
        gdn_gated_norm_args args = {
            .n_rows = tokens * heads,
            .dim = DIM,
            .type = GDN_BF16,
            .eps = 1e-6f,
            .o = gdn_bench_bf16(&group, gdn_bench_f32(&group, n, -1, 1), n),
            .z = gdn_bench_bf16(&group, gdn_bench_f32(&group, n, -3, 3), n),
            .w = gdn_bench_f32(&group, DIM, 0.5f, 1.5f),
            .y = gdn_bench_alloc(&group, 2 * n),
        };
        finish(&group, "gated_norm", tokens, heads, 6.0 * (double)n, run_gated_norm, &args);
    }
}
