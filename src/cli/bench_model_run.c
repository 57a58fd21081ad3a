/* The passes of a model bench, taken in turn with samples of the limits. */
#include "cli/bench_model.h"
#include "base/status.h"
#include <math.h>
#include <stdlib.h>

enum { WARM_TOKENS = 8 };

/* One sequence with its own memory; prompts and generation have one each. */
typedef struct timeline {
    gdn_cache    *cache;
    gdn_kv       *kv;
    gdn_snapshot *start; /* where each repetition begins; NULL: empty */
    int           depth; /* tokens in it */
} timeline;

typedef struct session {
    const gdn_model_bench *bench;
    gdn_compute           *compute;
    gdn_workspace         *workspace;
    gdn_pool              *pool;
    timeline               prompts, generation;
    int32_t               *tokens;  /* [most tokens of a timeline] */
    float                 *logits;  /* [V] */
    float                 *reading; /* for the read limit; NULL without memory for it */
    gdn_model_limits       limits;
} session;

typedef struct pass {
    int               is_prompt, tokens, depth;
    double            flops, bytes; /* of one repetition: of the arithmetic; of what has to be read */
    gdn_bench_samples samples;
} pass;

static int larger(int a, int b) { return a > b ? a : b; }

/* ---- opening ---------------------------------------------------------------------------------------------------------- */

static gdn_status timeline_open(timeline *t, session *s, int n_positions, gdn_error *err)
{
    const gdn_model *const m = s->bench->model;
    const gdn_kv_config    kv = {.n_layers = m->n_attention_layers,
                                 .n_heads = m->config.n_kv_heads,
                                 .dim = m->config.head_dim,
                                 .type = GDN_BF16,
                                 .n_pages = (n_positions + GDN_PAGE - 1) / GDN_PAGE,
                                 .n_lanes = 1,
                                 .max_positions = n_positions};
    gdn_status             status = gdn_cache_open(&t->cache, s->pool, 1, 0, err);
    if (!status) status = gdn_cache_add(t->cache, 1, 0, err);
    return status ? status : gdn_kv_open(&t->kv, &kv, err);
}

static void timeline_close(timeline *t)
{
    gdn_snapshot_release(t->start);
    gdn_kv_close(t->kv);
    gdn_cache_close(t->cache);
}

static gdn_status session_open(session *s, gdn_model_bench *b, int n_threads, gdn_error *err)
{
    int prompt = 0;
    for (int i = 0; i < b->pp.n; i++) prompt = larger(prompt, b->pp.value[i]);
    const int generated = b->tg ? b->depth + b->tg : 0, most = larger(larger(prompt, generated), 1);
    *s = (session){.bench = b};
    s->tokens = malloc((size_t)most * sizeof *s->tokens);
    s->logits = malloc((size_t)b->model->config.vocab_size * sizeof *s->logits);
    if (!s->tokens || !s->logits) return gdn_fail(err, GDN_NO_MEMORY, 0, "no memory for %d tokens", most);
    uint64_t random = 1;
    for (int i = 0; i < most; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        s->tokens[i] = (int32_t)((random >> 33) % (uint64_t)b->model->config.vocab_size);
    }
    const int  longest = larger(larger(prompt, b->depth), 1), rows = longest < b->piece ? longest : b->piece;
    gdn_status status = gdn_compute_open(&s->compute, b->level, n_threads, err);
    if (!status) status = gdn_pool_open(&s->pool, &b->model->delta, b->model->n_delta_layers, 2, err);
    if (!status) status = gdn_workspace_open(&s->workspace, b->model, s->compute, rows, most, err);
    if (!status) status = timeline_open(&s->prompts, s, larger(prompt, 1), err);
    if (!status) status = timeline_open(&s->generation, s, larger(generated, 1), err);
    if (status) return status;
    b->buffers = gdn_workspace_bytes(s->workspace);
    b->states = (uint64_t)((prompt > 0) + (generated > 0)) * b->plan.state;
    b->kv = (uint64_t)(prompt + generated) * b->plan.kv_per_token;
    s->reading = gdn_reading_open();
    gdn_model_limits_open(&s->limits, s->compute, s->reading);
    return GDN_OK;
}

static void session_close(session *s)
{
    timeline_close(&s->prompts);
    timeline_close(&s->generation);
    gdn_workspace_close(s->workspace);
    gdn_pool_close(s->pool);
    gdn_compute_close(s->compute);
    free(s->tokens);
    free(s->logits);
    free(s->reading);
}

/* ---- passes ----------------------------------------------------------------------------------------------------------- */

/* n tokens after those that the timeline has, in pieces; the logits of the last piece's last token. */
static gdn_status feed(session *s, timeline *t, int n, int piece, gdn_error *err)
{
    gdn_status status = GDN_OK;
    while (n && !status) {
        const int              rows = n < piece ? n : piece, last = rows - 1;
        const int32_t *const   tokens = s->tokens + gdn_kv_length(t->kv, 0);
        const gdn_forward_args args = {.n_lanes = 1,
                                       .n_tokens = &rows,
                                       .tokens = tokens,
                                       .n_wanted = rows == n || piece == 1,
                                       .wanted = &last,
                                       .logits = s->logits};
        status = gdn_model_forward(s->bench->model, s->compute, s->workspace, t->cache, t->kv, &args, err);
        n -= rows;
    }
    return status;
}

/* Back to where repetitions begin. */
static gdn_status rewind_timeline(timeline *t, gdn_error *err)
{
    gdn_kv_set_length(t->kv, 0, t->depth);
    if (t->start) return gdn_snapshot_restore(t->cache, 0, t->start, err);
    const gdn_status status = gdn_cache_filter(t->cache, NULL, 0, err);
    return status ? status : gdn_cache_add(t->cache, 1, 0, err);
}

/* Fill the timeline of the generation to its depth. */
static gdn_status dive(session *s, gdn_error *err)
{
    timeline *const t = &s->generation;
    t->depth = s->bench->depth;
    gdn_status status = feed(s, t, t->depth, s->bench->piece, err);
    if (!status && t->depth) status = gdn_snapshot_take(&t->start, t->cache, 0, err);
    return status;
}

/* One repetition, of at most `most` tokens. */
static gdn_status once(session *s, const pass *p, int most, double *seconds, gdn_error *err)
{
    timeline *const t = p->is_prompt ? &s->prompts : &s->generation;
    gdn_status      status = rewind_timeline(t, err);
    const double    start = gdn_bench_now();
    if (!status) status = feed(s, t, p->tokens < most ? p->tokens : most, p->is_prompt ? s->bench->piece : 1, err);
    *seconds = gdn_bench_now() - start;
    return status;
}

/* ---- what a pass amounts to ------------------------------------------------------------------------------------------- */

/* Parameters that a token of a prompt meets: all but the embedding, the output matrix and the experts that it does not use. */
static double active_parameters(const gdn_model_config *c)
{
    double idle = 0;
    for (int l = 0; l < c->n_layers; l++)
        if (c->layers[l].ffn == GDN_FFN_MOE)
            idle += 3.0 * (c->n_experts - c->n_experts_used) * c->expert_size * c->hidden_size;
    return (double)gdn_text_parameters(c, true) - (double)c->vocab_size * c->hidden_size - idle;
}

/* A multiplication and an addition count 2.  The delta rule has 7 an element of S; attention 4 an element of a query head and
 * position that it sees. */
static void measure_out(pass *p, const session *s)
{
    const gdn_model_config *const c = &s->bench->model->config;
    const double n = p->tokens, active = active_parameters(c), head = (double)c->vocab_size * c->hidden_size,
                 seen = n * p->depth + n * (n + 1) / 2; /* positions that all tokens see */
    const double S = 7.0 * c->n_value_heads * c->value_dim * c->key_dim * s->bench->model->n_delta_layers;
    const double attention = 4.0 * c->n_heads * c->head_dim * s->bench->model->n_attention_layers;
    p->flops = n * (2 * active + S) + seen * attention + 2 * head * (p->is_prompt ? 1 : n);
    p->bytes =
        n * (2 * (active + head) + (double)gdn_pool_slot_bytes(s->pool)) + seen * (double)s->bench->plan.kv_per_token;
}

/* ---- lines ------------------------------------------------------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(gdn_bench_samples *s)
{
    if (!s->n) return NAN;
    qsort(s->seconds, (size_t)s->n, sizeof *s->seconds, ascending);
    return s->n % 2 ? s->seconds[s->n / 2] : (s->seconds[s->n / 2 - 1] + s->seconds[s->n / 2]) / 2;
}

/* Rates of what is not asked for are NAN; shares are of the two limits, NAN among themselves. */
static gdn_bench_line line_of(const char *test, int threads, gdn_bench_samples *s, double flops, double bytes,
                              double matrix, double read)
{
    const double seconds = median(s);
    return (gdn_bench_line){test,
                            threads,
                            0,
                            0,
                            {NAN, NAN, NAN, 1e3 * seconds, flops / seconds * 1e-9, flops / seconds / matrix,
                             bytes / seconds * 1e-9, bytes / seconds / read}};
}

static void take_lines(session *s, pass *passes, int n_passes, int threads, gdn_bench_line *lines, int *n_lines)
{
    gdn_model_limits *const l = &s->limits;
    const double            flops = gdn_model_limits_flops(l), bytes = GDN_READ_BYTES;
    const double            matrix = flops / median(&l->matrix), read = bytes / median(&l->read);
    for (pass *p = passes; p < passes + n_passes; p++) {
        gdn_bench_line line = line_of(p->is_prompt ? "pp" : "tg", threads, &p->samples, p->is_prompt ? p->flops : NAN,
                                      p->is_prompt ? NAN : p->bytes, matrix, read);
        line.tokens = p->tokens;
        line.depth = p->depth;
        line.value[0] = p->tokens / median(&p->samples);
        line.value[1] = p->tokens / p->samples.seconds[p->samples.n - 1];
        line.value[2] = p->tokens / p->samples.seconds[0];
        lines[(*n_lines)++] = line;
    }
    if (l->rounds) lines[(*n_lines)++] = line_of("matrix", threads, &l->matrix, flops, NAN, NAN, NAN);
    if (l->x) lines[(*n_lines)++] = line_of("read", threads, &l->read, NAN, bytes, NAN, NAN);
}

/* Limits and passes in turn, so that a drift of the machine meets all of them alike. */
static gdn_status measure(session *s, pass *passes, int n_passes, gdn_error *err)
{
    double     seconds;
    gdn_status status = dive(s, err);
    for (int i = 0; i < n_passes && !status; i++)
        status = once(s, &passes[i], passes[i].is_prompt ? s->bench->piece : WARM_TOKENS, &seconds, err);
    for (int repeat = 0; repeat < s->bench->repeats; repeat++)
        for (pass *p = passes; p < passes + n_passes && !status; p++) {
            gdn_model_limits_sample(&s->limits);
            status = once(s, p, p->tokens, &seconds, err);
            p->samples.seconds[p->samples.n++] = seconds;
        }
    return status;
}

/* Everything is measured with the session open, and its memory last. */
static gdn_status run(session *s, pass *passes, gdn_model_bench *b, int n_threads, gdn_bench_line *lines, int *n_lines,
                      gdn_error *err)
{
    int        n_passes = 0;
    gdn_status status = session_open(s, b, n_threads, err);
    if (status) return status;
    for (int i = 0; i < b->pp.n; i++) passes[n_passes++] = (pass){.is_prompt = 1, .tokens = b->pp.value[i]};
    if (b->tg) passes[n_passes++] = (pass){.tokens = b->tg, .depth = b->depth};
    for (int i = 0; i < n_passes; i++) measure_out(&passes[i], s);
    status = measure(s, passes, n_passes, err);
    if (status) return status;
    take_lines(s, passes, n_passes, n_threads, lines, n_lines);
    free(s->reading); /* no part of what the model needs */
    s->reading = NULL;
    b->resident = gdn_resident_now();
    return GDN_OK;
}

gdn_status gdn_model_bench_run(gdn_model_bench *b, int n_threads, gdn_bench_line *lines, int *n_lines, gdn_error *err)
{
    session *const s = calloc(1, sizeof *s);
    pass *const    passes = calloc(GDN_BENCH_LIST + 1, sizeof *passes);
    gdn_status     status = GDN_NO_MEMORY;
    if (s && passes) {
        status = run(s, passes, b, n_threads, lines, n_lines, err);
        session_close(s);
    } else {
        gdn_fail(err, status, 0, "no memory for the samples");
    }
    free(s);
    free(passes);
    return status;
}
