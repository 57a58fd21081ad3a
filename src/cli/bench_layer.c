/* The delta layer between its projections, through the cache; and what a speculative round costs. */
#include "cli/bench.h"

enum { HK = 16, DIM = 128, TAPS = 4, WINDOW = 16, ROUND_LAYERS = 3 };

/* A sequence of one lane and the inputs of its next tokens; every layer gets the same. */
typedef struct sequence {
    int               n_layers;
    gdn_compute      *compute;
    gdn_pool         *pool;
    gdn_cache        *cache;
    gdn_delta_weights weights;
    gdn_layer_args    args;
    int               keep;
} sequence;

static gdn_delta_config config_of(int heads)
{
    return (gdn_delta_config){
        .n_key_heads = heads % HK ? heads : HK,
        .n_value_heads = heads,
        .key_dim = DIM,
        .value_dim = DIM,
        .n_taps = TAPS,
        .type = GDN_BF16,
        .qk_eps = 1e-6f,
    };
}

static void open_sequence(gdn_bench_group *group, sequence *s, int heads, int tokens, int n_layers, int window)
{
    gdn_delta_config config = config_of(heads);
    gdn_error        err;
    size_t           channels = 2 * (size_t)config.n_key_heads * DIM + (size_t)heads * DIM;
    size_t           n_qkv = tokens * channels, n_v = (size_t)tokens * heads * DIM, n_gates = (size_t)tokens * heads;
    *s = (sequence){.n_layers = n_layers};
    s->weights = (gdn_delta_weights){
        .conv = gdn_bench_f32(group, TAPS * channels, -1, 1),
        .A_log = gdn_bench_f32(group, (size_t)heads, -2, 2),
        .dt_bias = gdn_bench_f32(group, (size_t)heads, -2, 2),
        .norm = gdn_bench_f32(group, DIM, 0.5f, 1.5f),
        .norm_eps = 1e-6f,
    };
    s->args = (gdn_layer_args){
        .batch = {.n_lanes = 1, .length = tokens},
        .qkv = gdn_bench_bf16(group, gdn_bench_f32(group, n_qkv, -3, 3), n_qkv),
        .z = gdn_bench_bf16(group, gdn_bench_f32(group, n_v, -3, 3), n_v),
        .a = gdn_bench_bf16(group, gdn_bench_f32(group, n_gates, -3, 3), n_gates),
        .b = gdn_bench_bf16(group, gdn_bench_f32(group, n_gates, -3, 3), n_gates),
        .y = gdn_bench_alloc(group, n_v * 2),
    };
    gdn_bench_require(gdn_pool_open(&s->pool, &config, n_layers, 2, &err), &err);
    gdn_bench_require(gdn_cache_open(&s->cache, s->pool, 1, window, &err), &err);
    gdn_bench_require(gdn_cache_add(s->cache, 1, 0, &err), &err);
}

static void close_sequence(sequence *s)
{
    gdn_cache_close(s->cache);
    gdn_pool_close(s->pool);
}

static void forward(const sequence *s)
{
    gdn_error err;
    for (int i = 0; i < s->n_layers; i++) {
        gdn_bench_require(gdn_delta_layer(s->compute, s->cache, i, &s->weights, &s->args, &err), &err);
    }
}

static void run_layer(void *arg)
{
    const sequence *s = arg;
    gdn_error       err;
    forward(s);
    gdn_bench_require(gdn_cache_advance(s->cache, s->args.batch.length, NULL, &err), &err);
}

static void describe(gdn_bench_case *c, const gdn_bench *bench, const sequence *s, int heads)
{
    c->level = gdn_compute_level(s->compute);
    c->threads = bench->options.threads;
    c->tokens = s->args.batch.length;
    c->heads = heads * s->n_layers;
    c->token_heads = (double)c->tokens * c->heads;
}

void gdn_bench_layer(gdn_bench *bench)
{
    int asked = bench->options.tokens, heads = bench->options.heads ? bench->options.heads : 48;
    for (int i = 0; i < (asked ? 1 : 2); i++) {
        gdn_bench_group group = {.bench = bench};
        sequence        s, of_level[GDN_BENCH_LEVELS];
        open_sequence(&group, &s, heads, asked ? asked : i ? 512 : 1, 1, 0);
        for (int j = 0; j < bench->n_levels; j++) {
            of_level[j] = s; /* the same lane, with another level's kernels */
            of_level[j].compute = bench->levels[j].compute;
            int             fma = gdn_bench_add_fma(&group, &bench->levels[j]);
            gdn_bench_case *c = gdn_bench_add(&group, run_layer, &of_level[j]);
            describe(c, bench, &of_level[j], heads);
            c->op = "layer";
            c->variant = c->tokens > 1 ? "sequence" : "hot";
            c->fma = fma;
            c->flops = 7.0 * DIM * DIM * c->token_heads; /* of the recurrence alone */
            c->lane_ops = 4.0 * DIM * DIM * c->token_heads;
            c->bytes = 2.0 * sizeof(float) * DIM * DIM * heads;
        }
        gdn_bench_finish(&group);
        close_sequence(&s);
    }
}

/* ---- rounds ---- */

static void resolve(void *arg)
{
    const sequence *s = arg;
    gdn_error       err;
    if (gdn_round_window(s->cache, 0) > 0) gdn_bench_require(gdn_round_commit(s->cache, &err), &err);
}

static void verify(void *arg)
{
    const sequence *s = arg;
    gdn_error       err;
    gdn_bench_require(gdn_round_begin(s->cache, &err), &err);
    forward(s);
}

static void resolve_and_verify(void *arg)
{
    resolve(arg);
    verify(arg);
}

static void commit(void *arg)
{
    const sequence *s = arg;
    gdn_error       err;
    gdn_bench_require(gdn_round_commit(s->cache, &err), &err);
}

static void rollback(void *arg)
{
    const sequence *s = arg;
    gdn_error       err;
    gdn_bench_require(gdn_round_rollback(s->compute, s->cache, &s->keep, 1, &err), &err);
}

void gdn_bench_round(gdn_bench *bench)
{
    static const struct {
        int         keep;
        const char *name;
    } depths[] = {{1, "keep 1"}, {4, "keep 4"}, {8, "keep 8"}, {15, "keep 15"}};
    enum { N_DEPTHS = sizeof depths / sizeof *depths };
    gdn_bench_group group = {.bench = bench};
    sequence        s, of_depth[N_DEPTHS];
    int             heads = bench->options.heads ? bench->options.heads : 48;
    open_sequence(&group, &s, heads, WINDOW, ROUND_LAYERS, WINDOW);
    s.compute = bench->levels[bench->n_levels - 1].compute;
    run_layer(&s); /* a state to go back to */

    gdn_bench_case *c = gdn_bench_add(&group, verify, &s);
    describe(c, bench, &s, heads);
    c->setup = resolve;
    c->op = "verify";
    c->variant = "16 tokens";
    c = gdn_bench_add(&group, commit, &s);
    describe(c, bench, &s, heads);
    c->setup = resolve_and_verify;
    c->op = "commit";
    c->variant = "16 tokens";
    for (int i = -1; i < N_DEPTHS; i++) {
        if (i >= 0) {
            of_depth[i] = s;
            of_depth[i].keep = depths[i].keep;
            c = gdn_bench_add(&group, rollback, &of_depth[i]);
            describe(c, bench, &s, heads);
            c->setup = resolve_and_verify;
            c->op = "rollback";
            c->variant = depths[i].name;
        }
        c->versus = 0;
        c->versus_name = "verify";
        c->is_cost = 1;
    }
    gdn_bench_finish(&group);
    close_sequence(&s);
}
