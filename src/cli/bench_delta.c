/* The gated delta rule: steps on a state that was just used (hot) and on states visited in turn (cold), and sequences. */
#include "cli/bench.h"

enum { DIM = 128, COLD_LAYERS = 3 };

/* Data of one group.  The bf16 arrays hold the values of the f32 ones. */
typedef struct data {
    int       tokens, n_layers, key_heads, heads;
    float    *q, *k, *v, *g, *beta, *y;
    uint16_t *q16, *k16, *v16, *y16;
    float    *states;
} data;

typedef struct delta_call {
    gdn_compute   *compute;
    int            n_layers;
    gdn_delta_args layers[COLD_LAYERS];
} delta_call;

static void run_delta(void *arg)
{
    const delta_call *call = arg;
    gdn_error         err;
    for (int i = 0; i < call->n_layers; i++) {
        gdn_bench_require(gdn_delta_rule(call->compute, &call->layers[i], &err), &err);
    }
}

typedef struct plain_call {
    gdn_plain_fn *plain;
    int           n_layers;
    gdn_plain_job layers[COLD_LAYERS];
} plain_call;

static void run_plain(void *arg)
{
    const plain_call *call = arg;
    for (int i = 0; i < call->n_layers; i++) call->plain(&call->layers[i]);
}

static size_t state_floats(const data *d) { return (size_t)d->heads * DIM * DIM; }

static void fill(gdn_bench_group *group, data *d)
{
    size_t tokens = (size_t)d->tokens, n_qk = tokens * d->key_heads * DIM, n_v = tokens * d->heads * DIM;
    /* Keys of length near one, so that the states stay of ordinary size. */
    d->q = gdn_bench_f32(group, n_qk, -0.153f, 0.153f);
    d->k = gdn_bench_f32(group, n_qk, -0.153f, 0.153f);
    d->v = gdn_bench_f32(group, n_v, -1, 1);
    d->g = gdn_bench_f32(group, tokens * d->heads, 0.8f, 1);
    d->beta = gdn_bench_f32(group, tokens * d->heads, 0, 1);
    d->y = gdn_bench_alloc(group, n_v * sizeof *d->y);
    d->q16 = gdn_bench_bf16(group, d->q, n_qk);
    d->k16 = gdn_bench_bf16(group, d->k, n_qk);
    d->v16 = gdn_bench_bf16(group, d->v, n_v);
    d->y16 = gdn_bench_alloc(group, n_v * sizeof *d->y16);
    d->states = gdn_bench_f32(group, d->n_layers * state_floats(d), -1, 1);
}

static void describe(gdn_bench_case *c, const data *d, const char *op, const char *level)
{
    c->op = op;
    c->variant = d->tokens > 1 ? "sequence" : d->n_layers > 1 ? "cold" : "hot";
    c->level = level;
    c->tokens = d->tokens;
    c->heads = d->heads * d->n_layers;
    c->token_heads = (double)d->tokens * c->heads;
    c->flops = 7.0 * DIM * DIM * c->token_heads;
    c->lane_ops = 4.0 * DIM * DIM * c->token_heads;
    c->bytes = 2.0 * sizeof(float) * DIM * DIM * c->heads; /* of the states only, as in the scale */
}

static gdn_bench_case *add_delta(gdn_bench_group *group, const data *d, const char *level, gdn_compute *compute)
{
    delta_call *call = gdn_bench_alloc(group, sizeof *call);
    call->compute = compute;
    call->n_layers = d->n_layers;
    for (int i = 0; i < d->n_layers; i++) {
        float *state = d->states + (size_t)i * state_floats(d);
        call->layers[i] = (gdn_delta_args){
            .batch = {.n_lanes = 1, .length = d->tokens},
            .n_key_heads = d->key_heads,
            .n_value_heads = d->heads,
            .key_dim = DIM,
            .value_dim = DIM,
            .qk_type = GDN_BF16,
            .v_type = GDN_BF16,
            .y_type = GDN_BF16,
            .q = d->q16,
            .k = d->k16,
            .v = d->v16,
            .g = d->g,
            .beta = d->beta,
            .lane_order = 1, /* as a pool holds them */
            .state_in = {.base = state, .stride = state_floats(d) * sizeof *state},
            .state_out = {.base = state, .stride = state_floats(d) * sizeof *state},
            .y = d->y16,
        };
    }
    gdn_bench_case *c = gdn_bench_add(group, run_delta, call);
    describe(c, d, "delta", level);
    return c;
}

static gdn_bench_case *add_plain(gdn_bench_group *group, const data *d, const char *level, gdn_plain_fn *plain)
{
    plain_call *call = gdn_bench_alloc(group, sizeof *call);
    call->plain = plain;
    call->n_layers = d->n_layers;
    for (int i = 0; i < d->n_layers; i++) {
        float *state = d->states + (size_t)i * state_floats(d);
        call->layers[i] = (gdn_plain_job){
            d->tokens, d->key_heads, d->heads, DIM, DIM, d->q, d->k, d->v, d->g, d->beta, state, d->y,
        };
    }
    gdn_bench_case *c = gdn_bench_add(group, run_plain, call);
    describe(c, d, "plain_c", level);
    return c;
}

static void compare(gdn_bench_case *c, int versus, const char *name, int is_cost)
{
    c->versus = versus;
    c->versus_name = name;
    c->is_cost = is_cost;
}

static void delta_group(gdn_bench *bench, int heads, int tokens, int n_layers)
{
    gdn_bench_group group = {.bench = bench};
    data            d = {.tokens = tokens, .n_layers = n_layers, .key_heads = heads % 16 ? heads : 16, .heads = heads};
    fill(&group, &d);
    int scale = tokens > 1 ? -1 : gdn_bench_add_scale(&group, d.states, n_layers * state_floats(&d) * sizeof(float));
    if (scale >= 0 && n_layers > 1) { /* the line that cold steps are compared with */
        describe(&group.cases[scale], &d, "scale", bench->levels[bench->n_levels - 1].name);
        group.cases[scale].flops = group.cases[scale].lane_ops = 0;
        group.cases[scale].hidden = 0;
    }

    int highest = -1, many_fma = -1;
    for (int i = 0; i < bench->n_levels; i++) {
        const gdn_bench_level *level = &bench->levels[i];
        int                    fma = gdn_bench_add_fma(&group, level), plain = -1;
        if (level->limits) {
            gdn_bench_case *c = add_plain(&group, &d, level->name, level->limits->plain);
            plain = (int)(c - group.cases);
            c->fma = fma;
            c->scale = scale;
        }
        gdn_bench_case *c = add_delta(&group, &d, level->name, level->compute);
        c->threads = bench->options.threads;
        c->fma = many_fma = fma;
        c->scale = c->threads == 1 ? scale : -1;
        if (c->scale >= 0) {
            compare(c, scale, "scale", 1);
        } else {
            compare(c, plain, "plain_c", 0);
        }
        highest = (int)(c - group.cases);
    }
    if (tokens > 1 && (heads == 48 || bench->options.heads) && bench->many) {
        const char *level = bench->levels[bench->n_levels - 1].name;
        if (bench->options.threads > 1) {
            highest = (int)(add_delta(&group, &d, level, bench->one) - group.cases);
            group.cases[highest].fma = many_fma;
        }
        gdn_bench_case *c = add_delta(&group, &d, level, bench->many);
        c->variant = "threads";
        c->threads = bench->n_many;
        c->fma = many_fma;
        compare(c, highest, "1 thread", 0);
    }
    gdn_bench_finish(&group);
}

void gdn_bench_delta(gdn_bench *bench)
{
    static const int usual_heads[] = {16, 32, 48}, usual_tokens[] = {1, 16, 512};
    int              one_heads = bench->options.heads, one_tokens = bench->options.tokens;
    for (int i = 0; i < (one_heads ? 1 : 3); i++) {
        int heads = one_heads ? one_heads : usual_heads[i];
        for (int j = 0; j < (one_tokens ? 1 : 3); j++) {
            int tokens = one_tokens ? one_tokens : usual_tokens[j];
            delta_group(bench, heads, tokens, 1);
            if (tokens == 1 && (one_heads || heads == 48)) delta_group(bench, heads, tokens, COLD_LAYERS);
        }
    }
}
