/* The matrix products of a linear layer of the 0.8B shape, as the forward pass runs them.  LAYERS of them take turns, so that
 * weights come from beyond the second-level cache. */
#include "cli/bench.h"
#include "device/dense.h"
#include "model/forward.h"
#include <string.h>

enum { LAYERS = 8, PARTS = 5, LAYER = 4 }; /* a layer: the first four */

static const struct part {
    const char *name;
    int         n_inputs, n_outputs[2]; /* of two products of the same rows, or of one and 0 */
    int         swiglu;                 /* of both, which is no product but takes time */
} parts[PARTS] = {{"qkv, z", 1024, {6144, 2048}, 0},
                  {"out", 2048, {1024, 0}, 0},
                  {"SwiGLU", 1024, {3584, 3584}, 1},
                  {"down", 3584, {1024, 0}, 0},
                  {"gate, up", 1024, {3584, 3584}, 0}};
enum { WIDEST_IN = 3584, WIDEST_OUT = 6144 };

/* Parts first..first+n-1 of a layer, or of all that take turns. */
typedef struct call {
    gdn_compute *compute;
    int          n_rows, first, n, n_layers_a_run, layer; /* layer: the next one */
    gdn_linear (*weights)[PARTS][2];                      /* [LAYERS] */
    uint16_t *x, *act;
    float    *y[2];
} call;

static void run_part(const call *c, const gdn_linear *weights, const struct part *p)
{
    gdn_product products[2];
    for (int i = 0; i < 2; i++)
        products[i] = (gdn_product){.linear = &weights[i],
                                    .n_rows = c->n_rows,
                                    .x = c->x,
                                    .x_stride = gdn_input_stride((size_t)p->n_inputs),
                                    .y = c->y[i],
                                    .y_stride = gdn_output_stride((size_t)p->n_outputs[i])};
    if (p->swiglu) {
        products[0].up = &weights[1];
        products[0].act = c->act;
        products[0].act_stride = gdn_input_stride((size_t)p->n_outputs[0]);
    }
    gdn_dense_products(c->compute, products, p->n_outputs[1] && !p->swiglu ? 2 : 1);
}

static void run_matmul(void *arg)
{
    call *c = arg;
    for (int i = 0; i < c->n_layers_a_run; i++) {
        for (int part = c->first; part < c->first + c->n; part++) run_part(c, c->weights[c->layer][part], &parts[part]);
        c->layer = (c->layer + 1) % LAYERS;
    }
}

static size_t weights_of(int part)
{
    return (size_t)parts[part].n_inputs * (size_t)(parts[part].n_outputs[0] + parts[part].n_outputs[1]);
}

static size_t weights_of_layer(const call *c)
{
    size_t n = 0;
    for (int part = c->first; part < c->first + c->n; part++) n += weights_of(part);
    return n;
}

/* Matrices of random numbers, the same for all, one after the other; returns where they begin. */
static uint16_t *fill_weights(gdn_bench_group *group, call *c)
{
    const size_t    one = (size_t)WIDEST_IN * WIDEST_OUT;
    uint16_t *const w = gdn_bench_alloc(group, LAYERS * weights_of_layer(c) * sizeof *w);
    uint16_t *const random = gdn_bench_bf16(group, gdn_bench_f32(group, one, -1, 1), one);
    uint16_t       *at = w;
    c->weights = gdn_bench_alloc(group, LAYERS * sizeof *c->weights);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int part = c->first; part < c->first + c->n; part++)
            for (int i = 0; i < 2; i++) {
                const int    K = parts[part].n_inputs, N = parts[part].n_outputs[i];
                const size_t n = (size_t)K * (size_t)N;
                c->weights[layer][part][i] = (gdn_linear){.w = at, .n_outputs = N, .n_inputs = K, .k = K};
                memcpy(at, random, n * sizeof *at);
                at += n;
            }
    return w;
}

static gdn_bench_case *add_matmul(gdn_bench_group *group, const call *like, gdn_compute *compute, int n_threads)
{
    gdn_error err;
    call     *c = gdn_bench_alloc(group, sizeof *c);
    *c = *like;
    c->compute = compute;
    gdn_bench_require(gdn_compute_reserve(compute, gdn_dense_scratch_bytes(c->n_rows, WIDEST_IN, 0), &err), &err);
    gdn_bench_case *line = gdn_bench_add(group, run_matmul, c);
    const double    n_weights = (double)c->n_layers_a_run * (double)weights_of_layer(c);
    line->op = "matmul";
    line->variant = c->n == LAYER ? "layer" : parts[c->first].name;
    line->level = gdn_compute_level(compute);
    line->threads = n_threads;
    line->tokens = c->n_rows;
    line->token_heads = (double)c->n_layers_a_run * c->n_rows;
    line->lane_ops = n_weights * c->n_rows;
    line->flops = 2 * line->lane_ops;
    if (c->n_rows == 1) line->bytes = sizeof(uint16_t) * n_weights;
    return line;
}

static void compare(gdn_bench_case *c, int versus, const char *name, int is_cost)
{
    c->versus = versus;
    c->versus_name = name;
    c->is_cost = is_cost;
}

static void matmul_group(gdn_bench *bench, int n_rows, int first, int n)
{
    gdn_bench_group group = {.bench = bench};
    const size_t    n_x = (size_t)n_rows * gdn_input_stride(WIDEST_IN);
    const size_t    n_y = (size_t)n_rows * gdn_output_stride(WIDEST_OUT);
    call            c = {.n_rows = n_rows, .first = first, .n = n, .n_layers_a_run = n_rows == 1 ? LAYERS : 1};
    const uint16_t *w = fill_weights(&group, &c);
    c.x = gdn_bench_bf16(&group, gdn_bench_f32(&group, n_x, -1, 1), n_x);
    c.act = gdn_bench_alloc(&group, n_x * sizeof *c.act);
    for (int i = 0; i < 2; i++) c.y[i] = gdn_bench_alloc(&group, n_y * sizeof *c.y[i]);
    const int read = n_rows == 1 ? gdn_bench_add_read(&group, w, LAYERS * weights_of_layer(&c) * sizeof *w) : -1;
    int       highest = -1, bound = -1;
    for (int i = 0; i < bench->n_levels; i++) {
        bound = gdn_bench_add_matrix(&group, &bench->levels[i]);
        if (bound < 0) continue; /* the definition would take seconds */
        gdn_bench_case *line = add_matmul(&group, &c, bench->levels[i].compute, bench->options.threads);
        line->fma = bound;
        highest = (int)(line - group.cases);
        if (read >= 0 && line->threads == 1) compare(line, read, "read", 1);
    }
    if (bench->many && bench->options.threads == 1 && bound >= 0) {
        gdn_bench_case *line = add_matmul(&group, &c, bench->many, bench->n_many);
        line->fma = bound;
        compare(line, highest, "1 thread", 0);
    }
    gdn_bench_finish(&group);
}

void gdn_bench_matmul(gdn_bench *bench)
{
    static const int rows[] = {1, 4, 16, 64, 512};
    const int        asked = bench->options.tokens;
    for (int i = 0; i < (asked ? 1 : 5); i++) {
        const int n_rows = asked ? asked : rows[i];
        for (int part = 0; part < PARTS; part++) matmul_group(bench, n_rows, part, 1);
        matmul_group(bench, n_rows, 0, LAYER);
    }
}
