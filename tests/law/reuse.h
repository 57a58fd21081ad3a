/* reuse.h - chats as lists of tokens, and sequences that must hold the bits of a sequence that never reused anything. */
#ifndef LAW_REUSE_H
#define LAW_REUSE_H
#include "engine/draft.h"
#include "engine/places.h"
#include "law/engine.h"

/* Ids of the demo model's tokenizer. */
enum { IM_START = 4080, IM_END = 4081, NEWLINE = 201, ORDINARY = 4000, MOST = 2400 };

typedef struct list {
    int     n;
    int32_t id[MOST];
} list;

static inline void add(list *l, int32_t id)
{
    assert_true(l->n < MOST);
    l->id[l->n++] = id;
}

/* n ordinary tokens that `seed` decides. */
static inline void add_text(list *l, unsigned seed, int n)
{
    rng r = {seed};
    for (int i = 0; i < n; i++) add(l, 300 + rng_below(&r, ORDINARY - 300));
}

static inline void open_turn(list *l, int32_t role)
{
    add(l, IM_START);
    add(l, role);
    add(l, NEWLINE);
}

static inline void close_turn(list *l)
{
    add(l, IM_END);
    add(l, NEWLINE);
}

static inline void add_turn(list *l, int32_t role, unsigned seed, int n)
{
    open_turn(l, role);
    add_text(l, seed, n);
    close_turn(l);
}

/* ---- the same bits ------------------------------------------------------------------------------------------------------ */

/* Logits, states and tails, keys and values of two sequences, which may be of two engines, and of both what MTP drafts from. */
static inline void expect_same(const gdn_sequence *a, const gdn_sequence *b, const char *what)
{
    const gdn_model *const m = a->engine->model;
    const gdn_kv_config    kv = {.n_heads = m->config.n_kv_heads, .dim = m->config.head_dim};
    assert_int_equal(a->length, b->length);
    assert_memory_equal(a->tokens, b->tokens, (size_t)a->length * sizeof *a->tokens);
    if (!gdn_sequence_logits(a) || !gdn_sequence_logits(b)) fail_msg("%s: no logits", what);
    if (memcmp(a->logits, b->logits, (size_t)m->config.vocab_size * sizeof *a->logits) != 0)
        fail_msg("%s: other logits after %d tokens", what, a->length);
    for (int layer = 0; layer < m->n_delta_layers; layer++) {
        const float *state_a, *state_b;
        const void  *tail_a, *tail_b;
        gdn_cache_peek(a->engine->cache, a->lane, layer, &state_a, &tail_a);
        gdn_cache_peek(b->engine->cache, b->lane, layer, &state_b, &tail_b);
        assert_true(state_a && state_b && tail_a && tail_b);
        if (memcmp(state_a, state_b, demo_state_size(m) * sizeof *state_a) != 0 ||
            memcmp(tail_a, tail_b, demo_tail_size(m) * sizeof(float)) != 0)
            fail_msg("%s: another state of layer %d after %d tokens", what, layer, a->length);
    }
    assert_int_equal(a->engine->by_mtp, b->engine->by_mtp);
    const float *const hidden_a = gdn_draft_settle(a), *const hidden_b = gdn_draft_settle(b);
    if (a->engine->by_mtp && memcmp(hidden_a, hidden_b, (size_t)m->config.hidden_size * sizeof *hidden_a) != 0)
        fail_msg("%s: MTP goes on from something else after %d tokens", what, a->length);
    enum { PAGES = MOST / GDN_PAGE + 1 };
    const size_t bytes = (size_t)kv.dim * gdn_type_bytes(gdn_kv_type(a->engine->kv));
    for (int layer = 0; layer < m->n_attention_layers + a->engine->by_mtp; layer++)
        for (int head = 0; head < kv.n_heads; head++) {
            const void       *keys_a[PAGES], *values_a[PAGES], *keys_b[PAGES], *values_b[PAGES];
            const gdn_kv_view view_a = {a->engine->kv, layer}, view_b = {b->engine->kv, layer};
            const int         n_pages = (a->length + GDN_PAGE - 1) / GDN_PAGE;
            gdn_kv_pages(&view_a, a->lane, head, n_pages, keys_a, values_a);
            gdn_kv_pages(&view_b, b->lane, head, n_pages, keys_b, values_b);
            for (int i = 0; i < n_pages; i++) {
                const size_t n = (size_t)(i + 1 < n_pages ? GDN_PAGE : a->length - i * GDN_PAGE) * bytes;
                const size_t from = i || layer < m->n_attention_layers ? 0 : bytes; /* MTP has no row at 0 */
                if (memcmp((const char *)keys_a[i] + from, (const char *)keys_b[i] + from, n - from) != 0 ||
                    memcmp((const char *)values_a[i] + from, (const char *)values_b[i] + from, n - from) != 0)
                    fail_msg("%s: other keys or values of layer %d in page %d", what, layer, i);
            }
        }
}

/* ---- an engine that reuses, and one that does not ---------------------------------------------------------------------------- */

static gdn_engine   *warm, *cold; /* the cold one keeps nothing */
static gdn_sequence *plain;

static inline void open_both(int n_threads, gdn_type kv_type, const char *cache_dir)
{
    const gdn_engine_options options = {.n_threads = n_threads,
                                        .n_sequences = 4,
                                        .max_tokens = MOST,
                                        .kv_type = kv_type,
                                        .kv_tokens = 10 * MOST,
                                        .drafter = GDN_DRAFTER_MTP};
    gdn_engine_options       keeps_nothing = options;
    keeps_nothing.reuse_bytes = -1;
    gdn_engine_options reuses = options;
    reuses.cache_dir = cache_dir;
    warm = engine_of(&reuses);
    cold = engine_of(&keeps_nothing);
    plain = sequence_of(cold);
}

static inline void close_both(void)
{
    gdn_sequence_close(plain);
    gdn_engine_close(cold);
    gdn_engine_close(warm);
}

/* Set the sequence to a list; it must have the bits of one that computes all of it.  Returns the tokens it computed. */
static inline int put(gdn_sequence *s, const list *l, const char *what)
{
    int computed = -1, all = -1;
    ACCEPTED(gdn_sequence_set(s, l->id, l->n, NULL, NULL, &computed, &err));
    const list nothing = {1, {7}};
    ACCEPTED(gdn_sequence_set(plain, nothing.id, 1, NULL, NULL, NULL, &err));
    ACCEPTED(gdn_sequence_set(plain, l->id, l->n, NULL, NULL, &all, &err));
    assert_true(all >= l->n - 1);
    expect_same(s, plain, what);
    return computed;
}

/* An answer of n tokens goes into the sequence, one by one, and to the end of the list. */
static inline void answer(gdn_sequence *s, list *l, unsigned seed, int n)
{
    const int first = l->n;
    add_text(l, seed, n);
    for (int i = first; i < l->n; i++) ACCEPTED(gdn_sequence_push(s, l->id[i], &err));
}

enum { SYSTEM = 500, USER = 501, ASSISTANT = 502, THINK = 503 };

/* A system turn of n_system tokens in all, a message, and the assistant's turn opened. */
static inline list prompt_of(int n_system, unsigned seed, int n_user)
{
    list l = {0};
    add_turn(&l, SYSTEM, 1, n_system - 5);
    add_turn(&l, USER, seed, n_user - 5);
    open_turn(&l, ASSISTANT);
    add(&l, THINK);
    add(&l, NEWLINE);
    return l;
}

#endif
