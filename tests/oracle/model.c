#include "oracle/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *oracle_allocate(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    if (!p) abort();
    return p;
}

/* To 8 significant bits, nearest even; a normal number of bf16 is meant. */
static double to_bf16(double x)
{
    int          exponent;
    const double part = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
}

/* The sum of as many numbers of bf16, each of what the ones before it leave; x itself for none. */
static double rounded(double x, int n)
{
    const double first = n ? to_bf16(x) : x;
    return n > 1 ? first + rounded(x - first, n - 1) : first;
}

/* y [n][rows] = x [n][cols] times the matrix.  Each sum is one chain, ascending; eight rows share a pass over the matrix
 * only because one alone would wait for its own additions. */
static void product(const oracle_matrix *m, int n, const double *x, double *y)
{
    enum { TOGETHER = 8 };
    double *columns = oracle_allocate((size_t)m->cols * TOGETHER, sizeof *columns);
    for (int t = 0; t < n; t += TOGETHER) {
        const int some = n - t < TOGETHER ? n - t : TOGETHER;
        for (int j = 0; j < some; j++)
            for (int i = 0; i < m->cols; i++) {
                const double from = x[(size_t)(t + j) * m->cols + i];
                columns[i * TOGETHER + j] = rounded(from, m->rounds);
            }
        for (int o = 0; o < m->rows; o++) {
            const double *w = m->w + (size_t)o * m->cols;
            double        sum[TOGETHER] = {0};
            for (int i = 0; i < m->cols; i++)
                for (int j = 0; j < TOGETHER; j++) sum[j] += w[i] * columns[i * TOGETHER + j];
            for (int j = 0; j < some; j++) y[(size_t)(t + j) * m->rows + o] = sum[j];
        }
    }
    free(columns);
}

static double *product_of(const oracle_matrix *m, int n, const double *x)
{
    double *y = oracle_allocate((size_t)n * m->rows, sizeof *y);
    product(m, n, x, y);
    return y;
}

/* y [n][dim] = x / rms(x) * (1 + w), row by row; y may be x. */
static void norm_rows(const double *w, int n, int dim, double eps, const double *x, double *y)
{
    for (int t = 0; t < n; t++, x += dim, y += dim) {
        oracle_norm(ORACLE_RMS, dim, eps, x, y);
        for (int i = 0; i < dim; i++) y[i] *= 1.0 + w[i];
    }
}

/* ---- the linear layer --------------------------------------------------------------------------------------------- */

typedef struct projections {
    double *qkv, *z, *b, *a; /* [T][C], [T][Hv][dv], [T][Hv], [T][Hv] */
} projections;

static double *take(double *to, const double **from, int n)
{
    memcpy(to, *from, (size_t)n * sizeof *to);
    *from += n;
    return to + n;
}

/* Qwen3-Next's rows, key head after key head: q, k, and v and z of its value heads; b and a of its value heads. */
static projections separate(const oracle_layer *l, int n, const double *qkvz, const double *ba)
{
    const int   group = l->n_value_heads / l->n_key_heads, Hk = l->n_key_heads, Hv = l->n_value_heads;
    const int   keys = Hk * l->key_dim, values = Hv * l->value_dim, C = 2 * keys + values;
    projections p = {oracle_allocate((size_t)n * C, sizeof(double)),
                     oracle_allocate((size_t)n * values, sizeof(double)),
                     oracle_allocate((size_t)n * Hv, sizeof(double)), oracle_allocate((size_t)n * Hv, sizeof(double))};
    for (int t = 0; t < n; t++) {
        double *q = p.qkv + (size_t)t * C, *k = q + keys, *v = k + keys, *z = p.z + (size_t)t * values;
        double *b = p.b + (size_t)t * Hv, *a = p.a + (size_t)t * Hv;
        for (int head = 0; head < Hk; head++) {
            q = take(q, &qkvz, l->key_dim);
            k = take(k, &qkvz, l->key_dim);
            v = take(v, &qkvz, group * l->value_dim);
            z = take(z, &qkvz, group * l->value_dim);
            b = take(b, &ba, group);
            a = take(a, &ba, group);
        }
    }
    return p;
}

static projections project(const oracle_block *b, int n, const double *u)
{
    if (!b->in_qkvz.w)
        return (projections){product_of(&b->in_qkv, n, u), product_of(&b->in_z, n, u), product_of(&b->in_b, n, u),
                             product_of(&b->in_a, n, u)};
    double     *qkvz = product_of(&b->in_qkvz, n, u), *ba = product_of(&b->in_ba, n, u);
    projections p = separate(&b->linear, n, qkvz, ba);
    free(qkvz);
    free(ba);
    return p;
}

/* memory, where not NULL, receives what the layer remembers after n_remembered tokens. */
static double *linear_layer(const oracle_block *b, int n, const double *u, int n_remembered, oracle_memory *memory)
{
    const oracle_layer *l = &b->linear;
    const size_t        Hv = l->n_value_heads, values = Hv * l->value_dim, C = 2 * l->n_key_heads * l->key_dim + values;
    const size_t        n_tail = (l->n_taps - 1) * C, n_state = values * l->key_dim, r = n_remembered;
    projections         p = project(b, n, u);
    double             *tail = oracle_allocate(n_tail, sizeof *tail), *state = oracle_allocate(n_state, sizeof *state);
    double             *y = oracle_allocate((size_t)n * values, sizeof *y);
    oracle_layer_run(l, n_remembered, p.qkv, p.z, p.a, p.b, tail, state, y);
    memory->tail = oracle_allocate(n_tail, sizeof *tail);
    memory->state = oracle_allocate(n_state, sizeof *state);
    memcpy(memory->tail, tail, n_tail * sizeof *tail);
    memcpy(memory->state, state, n_state * sizeof *state);
    oracle_layer_run(l, n - n_remembered, p.qkv + r * C, p.z + r * values, p.a + r * Hv, p.b + r * Hv, tail, state,
                     y + r * values);
    double *out = product_of(&b->delta, n, y);
    free(p.qkv);
    free(p.z);
    free(p.b);
    free(p.a);
    free(tail);
    free(state);
    free(y);
    return out;
}

/* ---- full attention ------------------------------------------------------------------------------------------------- */

/* The first rope_dims of a head at `position`, i paired with i + half. */
static void rotate(const oracle_config *c, int position, double *head)
{
    double    cosines[128], sines[128]; /* of the largest head, 256 */
    const int half = c->rope_dims / 2;
    for (int i = 0; i < half; i++) {
        const double angle = position * pow(c->rope_theta, -2.0 * i / c->rope_dims);
        cosines[i] = cos(angle);
        sines[i] = sin(angle);
    }
    oracle_rope(half, cosines, sines, head);
}

/* Rows [T][heads][stride] of which the first D of a head are taken, as [heads][T][D]; with w, normalised and rotated. */
static double *heads_of(const oracle_config *c, int n, int n_heads, int stride, const double *rows, const double *w)
{
    const int D = c->head_dim;
    double   *y = oracle_allocate((size_t)n * n_heads * D, sizeof *y), *to = y;
    for (int head = 0; head < n_heads; head++)
        for (int t = 0; t < n; t++, to += D) {
            memcpy(to, rows + ((size_t)t * n_heads + head) * stride, (size_t)D * sizeof *to);
            if (!w) continue;
            norm_rows(w, 1, D, c->rms_eps, to, to);
            rotate(c, t, to);
        }
    return y;
}

static double *attention_layer(const oracle_config *c, const oracle_block *b, int n, const double *u)
{
    const int D = c->head_dim, H = c->n_heads, group = H / c->n_kv_heads;
    double   *both = product_of(&b->q, n, u), *k_rows = product_of(&b->k, n, u), *v_rows = product_of(&b->v, n, u);
    double   *q = heads_of(c, n, H, 2 * D, both, b->q_norm), *k = heads_of(c, n, c->n_kv_heads, D, k_rows, b->k_norm);
    double   *v = heads_of(c, n, c->n_kv_heads, D, v_rows, NULL);
    double   *y = oracle_allocate((size_t)n * H * D, sizeof *y), *scratch = oracle_allocate(3 * (size_t)n, sizeof *y);
    for (int head = 0; head < H; head++)
        for (int t = 0; t < n; t++) {
            const size_t  shared = (size_t)(head / group) * n * D;
            double       *to = y + ((size_t)t * H + head) * D;
            const double *gate = both + ((size_t)t * H + head) * 2 * D + D;
            oracle_attention(t + 1, D, 1.0 / sqrt(D), q + ((size_t)head * n + t) * D, k + shared, v + shared, to,
                             scratch, scratch + n, scratch + 2 * n);
            for (int d = 0; d < D; d++) to[d] *= oracle_sigmoid(gate[d]);
        }
    double *out = product_of(&b->o, n, y);
    free(both);
    free(k_rows);
    free(v_rows);
    free(q);
    free(k);
    free(v);
    free(y);
    free(scratch);
    return out;
}

/* ---- feed-forward ----------------------------------------------------------------------------------------------------- */

static double *swiglu(const oracle_swiglu *s, int n, const double *u)
{
    double *gate = product_of(&s->gate, n, u), *up = product_of(&s->up, n, u);
    for (size_t i = 0; i < (size_t)n * s->gate.rows; i++) gate[i] *= oracle_sigmoid(gate[i]) * up[i];
    double *y = product_of(&s->down, n, gate);
    free(gate);
    free(up);
    return y;
}

/* p [E], logits at first: the softmax, of which all but the largest `used` become 0. */
static void route(double *p, int n_experts, int n_used, int sum_to_1)
{
    double  most = -HUGE_VAL, sum = 0.0, kept = 0.0;
    double *all = oracle_allocate(n_experts, sizeof *all);
    for (int e = 0; e < n_experts; e++) most = fmax(most, p[e]);
    for (int e = 0; e < n_experts; e++) sum += all[e] = exp(p[e] - most);
    for (int e = 0; e < n_experts; e++) {
        all[e] /= sum;
        p[e] = 0.0;
    }
    for (int i = 0; i < n_used; i++) {
        int best = 0;
        for (int e = 1; e < n_experts; e++)
            if (all[e] > all[best]) best = e;
        kept += p[best] = all[best];
        all[best] = -1.0;
    }
    for (int e = 0; e < n_experts && sum_to_1; e++) p[e] /= kept;
    free(all);
}

static void add_scaled(double *to, double scale, const double *x, int n)
{
    for (int i = 0; i < n; i++) to[i] += scale * x[i];
}

/* chosen [n][used], or NULL */
static double *experts(const oracle_config *c, const oracle_ffn *f, int n, const double *u, int *chosen)
{
    const int h = c->hidden_size, E = c->n_experts;
    double   *weights = product_of(&f->router, n, u), *gates = product_of(&f->shared_gate, n, u);
    double   *shared = swiglu(&f->shared, n, u), *y = oracle_allocate((size_t)n * h, sizeof *y);
    for (int t = 0; t < n; t++) {
        const size_t row = (size_t)t * h;
        double      *w = weights + (size_t)t * E;
        route(w, E, c->n_experts_used, c->sum_to_1);
        for (int e = 0; e < E; e++) {
            if (w[e] == 0.0) continue;
            if (chosen) *chosen++ = e;
            double *one = swiglu(&f->experts[e], 1, u + row);
            add_scaled(y + row, w[e], one, h);
            free(one);
        }
        add_scaled(y + row, oracle_sigmoid(gates[t]), shared + row, h);
    }
    free(weights);
    free(gates);
    free(shared);
    return y;
}

/* ---- the model -------------------------------------------------------------------------------------------------------- */

/* x [n][h], in and out. */
static void run_block(const oracle_config *c, const oracle_block *b, int n, double *x, int n_remembered,
                      oracle_memory *memory, int *chosen)
{
    const size_t h = c->hidden_size;
    double      *u = oracle_allocate(n * h, sizeof *u);
    norm_rows(b->input_norm, n, (int)h, c->rms_eps, x, u);
    double *y = b->q.w ? attention_layer(c, b, n, u) : linear_layer(b, n, u, n_remembered, memory);
    add_scaled(x, 1.0, y, n * (int)h);
    free(y);
    norm_rows(b->post_norm, n, (int)h, c->rms_eps, x, u);
    y = b->ffn.router.w ? experts(c, &b->ffn, n, u, chosen) : swiglu(&b->ffn.dense, n, u);
    add_scaled(x, 1.0, y, n * (int)h);
    free(y);
    free(u);
}

oracle_run oracle_model_run(const oracle_model *m, int n, const int32_t *ids, int n_remembered)
{
    const oracle_config *c = &m->config;
    const size_t         h = c->hidden_size, L = c->n_layers, rows = n * h;
    oracle_run           run = {n, c->n_layers, oracle_allocate((L + 1) * rows, sizeof(double)),
                                oracle_allocate(L, sizeof(oracle_memory)),
                                oracle_allocate(L * n * c->n_experts_used, sizeof(int))};
    for (int t = 0; t < n; t++) memcpy(run.hidden + t * h, m->embed.w + ids[t] * h, h * sizeof(double));
    for (size_t l = 0; l < L; l++) {
        double *x = run.hidden + (l + 1) * rows;
        memcpy(x, x - rows, rows * sizeof *x);
        run_block(c, &m->blocks[l], n, x, n_remembered, &run.memory[l], run.chosen + l * n * c->n_experts_used);
    }
    norm_rows(m->norm, n, (int)h, c->rms_eps, run.hidden + L * rows, run.hidden + L * rows);
    return run;
}

void oracle_run_close(oracle_run *run)
{
    for (int l = 0; l < run->n_layers; l++) {
        free(run->memory[l].tail);
        free(run->memory[l].state);
    }
    free(run->memory);
    free(run->chosen);
    free(run->hidden);
}

const double *oracle_run_hidden(const oracle_run *run, const oracle_model *m, int layer, int t)
{
    return run->hidden + ((size_t)(layer + 1) * run->n_tokens + t) * m->config.hidden_size;
}

void oracle_model_logits(const oracle_model *m, int n, const double *x, double *logits)
{
    product(&m->lm_head, n, x, logits);
}

void oracle_model_mtp(const oracle_model *m, int n, const double *x, const int32_t *next_ids, double *y)
{
    const oracle_config *c = &m->config;
    const size_t         h = c->hidden_size;
    double              *both = oracle_allocate(2 * n * h, sizeof *both);
    for (int t = 0; t < n; t++) {
        norm_rows(m->mtp_embedding_norm, 1, (int)h, c->rms_eps, m->embed.w + next_ids[t] * h, both + 2 * t * h);
        norm_rows(m->mtp_norm_of_hidden, 1, (int)h, c->rms_eps, x + t * h, both + (2 * t + 1) * h);
    }
    product(&m->mtp_fc, n, both, y);
    free(both);
    run_block(c, &m->mtp, n, y, 0, NULL, NULL);
    norm_rows(m->mtp_norm, n, (int)h, c->rms_eps, y, y);
}
