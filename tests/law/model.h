/* model.h - the demo model or another one, and sequences running through it: a batch of lanes with their caches.
 *
 * Programs that use it run in the root of the repository.  What cannot fail in a test aborts with a message. */
#ifndef TESTS_LAW_MODEL_H
#define TESTS_LAW_MODEL_H
#include "format/config.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model/model.h"

#define DEMO_FOLDER "models/demo"

/* With an MTP part, its own or a lent one.  Free with gdn_model_close. */
static inline gdn_model *model_load(const char *folder);
static inline gdn_model *demo_load(void);

static inline gdn_compute *demo_compute(const char *level, int n_threads);

/* What a session has room for; zeros stand for what n_lanes lanes of max_positions tokens need. */
typedef struct session_config {
    int      n_lanes, max_rows, max_positions; /* 1 or more each */
    int      max_window;                       /* of a speculative round; 0: none */
    int      n_slots, n_pages;
    gdn_type kv_type;
} session_config;

typedef struct session {
    session_config   config;
    const gdn_model *model;   /* borrowed */
    gdn_compute     *compute; /* borrowed */
    gdn_pool        *pool;
    gdn_cache       *cache;
    gdn_kv          *kv;
    gdn_workspace   *workspace;
} session;

static inline session session_open(const gdn_model *model, gdn_compute *compute, const session_config *config);
static inline void    session_close(session *s);

/* One forward of n_tokens[lane] tokens each; logits [rows][V] of every row and hidden [rows][h], each NULL if not wanted. */
static inline gdn_status session_forward(session *s, const int *n_tokens, const int32_t *tokens, float *logits,
                                         float *hidden, gdn_error *err);

/* A kv for the MTP layer alone, with room for so many rows of it in each lane: they begin at position 1.  How many a lane has; to
 * drop those behind the first n. */
static inline gdn_kv *mtp_kv_open(const gdn_model *model, int n_lanes, int max_rows, gdn_type type);
static inline int     mtp_rows(const gdn_kv *kv, int lane);
static inline void    mtp_keep(gdn_kv *kv, int lane, int n);

/* gdn_mtp_forward with the session's workspace, of the next rows of each lane; logits of every row, and `m` [rows][h], each NULL if
 * not wanted. */
static inline gdn_status session_mtp(session *s, gdn_kv *kv, const int *n_tokens, const int32_t *tokens,
                                     const float *hidden, float *logits, float *m, gdn_error *err);

/* Elements of what a lane's linear layer keeps. */
static inline size_t demo_state_size(const gdn_model *model);
static inline size_t demo_tail_size(const gdn_model *model);

/* All states and tails of a lane, [layer]{state, tail}, into dst [session_memory_size]; 0 and nothing if it has none. */
static inline size_t session_memory_size(const session *s);
static inline int    session_memory(const session *s, int lane, float *dst);

/* The index of the largest; the first of equal ones. */
static inline int argmax_of(const float *x, int n);

static inline void must(gdn_status status, const char *what, const gdn_error *err)
{
    if (status == GDN_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, gdn_status_name(status), err->message);
    abort();
}

/* The tiny checkpoints have no MTP part: norms of the text model, its last layer with the experts of the first, and the matrix of
 * queries for fc, which has as many numbers there, stand for one. */
static inline void checkpoint_lend_mtp(gdn_checkpoint *c)
{
    const gdn_layer_tensors *const last = &c->layers[c->config.n_layers - 1];
    const gdn_tensor *const        fc = last->attention.q_proj;
    if (!fc || gdn_tensor_elements(fc) != 2 * (size_t)c->config.hidden_size * (size_t)c->config.hidden_size) abort();
    c->mtp = (gdn_mtp_tensors){c->layers[0].input_norm, c->layers[1].input_norm, last->input_norm, fc, *last};
    c->mtp.layer.moe = c->layers[0].moe;
    c->has_mtp = true;
}

/* Before it is closed, when it was lent one. */
static inline void checkpoint_take_mtp_back(gdn_checkpoint *c)
{
    c->mtp = (gdn_mtp_tensors){0};
    c->has_mtp = false;
}

static inline gdn_model *model_load(const char *folder)
{
    static gdn_model_config config; /* large */
    gdn_tensors             tensors = {0};
    gdn_checkpoint          checkpoint = {0};
    gdn_model              *model = NULL;
    gdn_error               err = {0};
    must(gdn_model_config_load(&config, folder, &err), "config", &err);
    must(gdn_tensors_open(&tensors, folder, &err), "tensors", &err);
    must(gdn_checkpoint_bind(&checkpoint, &config, &tensors, &err), "bind", &err);
    const bool lent = !checkpoint.has_mtp;
    if (lent) checkpoint_lend_mtp(&checkpoint);
    must(gdn_model_load(&model, &checkpoint, true, NULL, NULL, &err), "load", &err);
    if (lent) checkpoint_take_mtp_back(&checkpoint);
    gdn_checkpoint_close(&checkpoint); /* the model must not need them any more */
    gdn_tensors_close(&tensors);
    return model;
}

static inline gdn_model *demo_load(void) { return model_load(DEMO_FOLDER); }

static inline gdn_compute *demo_compute(const char *level, int n_threads)
{
    gdn_compute *compute = NULL;
    gdn_error    err = {0};
    must(gdn_compute_open(&compute, level, n_threads, &err), "compute", &err);
    return compute;
}

static inline session session_open(const gdn_model *model, gdn_compute *compute, const session_config *config)
{
    session   s = {.config = *config, .model = model, .compute = compute};
    gdn_error err = {0};
    const int n = config->n_lanes, lane_pages = (config->max_positions + GDN_PAGE - 1) / GDN_PAGE;
    if (!s.config.n_slots) s.config.n_slots = config->max_window ? 2 * n : n;
    if (!s.config.n_pages) s.config.n_pages = n * lane_pages;
    const gdn_kv_config kv = {.n_layers = model->n_attention_layers,
                              .n_heads = model->config.n_kv_heads,
                              .dim = model->config.head_dim,
                              .type = config->kv_type,
                              .n_pages = s.config.n_pages,
                              .n_lanes = n,
                              .max_positions = config->max_positions};
    must(gdn_pool_open(&s.pool, &model->delta, model->n_delta_layers, s.config.n_slots, &err), "pool", &err);
    must(gdn_cache_open(&s.cache, s.pool, n, config->max_window, &err), "cache", &err);
    must(gdn_cache_add(s.cache, n, 0, &err), "lanes", &err);
    must(gdn_kv_open(&s.kv, &kv, &err), "kv", &err);
    must(gdn_workspace_open(&s.workspace, model, compute, config->max_rows, config->max_positions, &err), "workspace",
         &err);
    return s;
}

static inline void session_close(session *s)
{
    gdn_workspace_close(s->workspace);
    gdn_kv_close(s->kv);
    gdn_cache_close(s->cache);
    gdn_pool_close(s->pool);
}

/* Numbers of all rows into args->wanted, when logits are; to free. */
static inline int *want_every(gdn_forward_args *args)
{
    if (!args->logits) return NULL;
    for (int i = 0; i < args->n_lanes; i++) args->n_wanted += args->n_tokens[i] > 0 ? args->n_tokens[i] : 0;
    int *const every = malloc(((size_t)args->n_wanted + 1) * sizeof *every);
    if (!every) abort();
    for (int row = 0; row < args->n_wanted; row++) every[row] = row;
    args->wanted = every;
    return every;
}

static inline gdn_status session_forward(session *s, const int *n_tokens, const int32_t *tokens, float *logits,
                                         float *hidden, gdn_error *err)
{
    gdn_forward_args args = {
        .n_lanes = s->config.n_lanes, .n_tokens = n_tokens, .tokens = tokens, .logits = logits, .hidden = hidden};
    int *const       every = want_every(&args);
    const gdn_status status = gdn_model_forward(s->model, s->compute, s->workspace, s->cache, s->kv, &args, err);
    free(every);
    return status;
}

static inline gdn_kv *mtp_kv_open(const gdn_model *model, int n_lanes, int max_rows, gdn_type type)
{
    gdn_kv             *kv = NULL;
    gdn_error           err = {0};
    const gdn_kv_config config = {.n_layers = model->n_attention_layers + 1,
                                  .n_heads = model->config.n_kv_heads,
                                  .dim = model->config.head_dim,
                                  .type = type,
                                  .n_pages = n_lanes * (max_rows / GDN_PAGE + 1),
                                  .n_lanes = n_lanes,
                                  .max_positions = max_rows + 1};
    must(gdn_kv_open(&kv, &config, &err), "kv of mtp", &err);
    int *const first = malloc((size_t)n_lanes * sizeof *first);
    if (!first) abort();
    for (int i = 0; i < n_lanes; i++) first[i] = 1;
    must(gdn_kv_reserve(kv, first, n_lanes, &err), "position 0", &err);
    for (int i = 0; i < n_lanes; i++) mtp_keep(kv, i, 0);
    free(first);
    return kv;
}

static inline int mtp_rows(const gdn_kv *kv, int lane) { return (int)gdn_kv_length(kv, lane) - 1; }

static inline void mtp_keep(gdn_kv *kv, int lane, int n) { gdn_kv_set_length(kv, lane, n + 1); }

static inline gdn_status session_mtp(session *s, gdn_kv *kv, const int *n_tokens, const int32_t *tokens,
                                     const float *hidden, float *logits, float *m, gdn_error *err)
{
    gdn_forward_args args = {
        .n_lanes = gdn_kv_lanes(kv), .n_tokens = n_tokens, .tokens = tokens, .logits = logits, .hidden = m};
    int *const every = want_every(&args);
    int *const positions = malloc((size_t)args.n_lanes * sizeof *positions);
    if (!positions) abort();
    for (int i = 0; i < args.n_lanes; i++) positions[i] = (int)gdn_kv_length(kv, i);
    gdn_status status = gdn_kv_reserve(kv, n_tokens, args.n_lanes, err);
    if (!status) status = gdn_mtp_forward(s->model, s->compute, s->workspace, kv, &args, positions, hidden, err);
    for (int i = 0; i < args.n_lanes; i++) gdn_kv_set_length(kv, i, positions[i] + (status ? 0 : n_tokens[i]));
    free(positions);
    free(every);
    return status;
}

static inline size_t demo_state_size(const gdn_model *m)
{
    return (size_t)m->delta.n_value_heads * m->delta.value_dim * m->delta.key_dim;
}

static inline size_t demo_tail_size(const gdn_model *m)
{
    return (size_t)(m->delta.n_taps - 1) * (size_t)gdn_channels(&m->delta);
}

static inline size_t session_memory_size(const session *s)
{
    return (size_t)s->model->n_delta_layers * (demo_state_size(s->model) + demo_tail_size(s->model));
}

static inline int session_memory(const session *s, int lane, float *dst)
{
    const size_t n_state = demo_state_size(s->model), n_tail = demo_tail_size(s->model);
    for (int layer = 0; layer < s->model->n_delta_layers; layer++) {
        const float *state = NULL;
        const void  *tail = NULL;
        gdn_cache_peek(s->cache, lane, layer, &state, &tail);
        if (!state || !tail) return 0;
        memcpy(dst, state, n_state * sizeof *dst);
        memcpy(dst + n_state, tail, n_tail * sizeof *dst);
        dst += n_state + n_tail;
    }
    return 1;
}

static inline int argmax_of(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

#endif
