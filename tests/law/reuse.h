/* reuse.h - chats as lists of tokens, and sequences that must hold the bits of a sequence that never reused anything. */
#ifndef LAW_REUSE_H
#define LAW_REUSE_H
#include "engine/parts.h"
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

/* Logits, states and tails, keys and values of two sequences, which may be of two engines. */
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
    enum { PAGES = MOST / GDN_PAGE + 1 };
    const size_t bytes = (size_t)kv.dim * gdn_type_bytes(gdn_kv_type(a->engine->kv));
    for (int layer = 0; layer < m->n_attention_layers; layer++)
        for (int head = 0; head < kv.n_heads; head++) {
            const void       *keys_a[PAGES], *values_a[PAGES], *keys_b[PAGES], *values_b[PAGES];
            const gdn_kv_view view_a = {a->engine->kv, layer}, view_b = {b->engine->kv, layer};
            const int         n_pages = (a->length + GDN_PAGE - 1) / GDN_PAGE;
            gdn_kv_pages(&view_a, a->lane, head, n_pages, keys_a, values_a);
            gdn_kv_pages(&view_b, b->lane, head, n_pages, keys_b, values_b);
            for (int i = 0; i < n_pages; i++) {
                const size_t n = (size_t)(i + 1 < n_pages ? GDN_PAGE : a->length - i * GDN_PAGE) * bytes;
                if (memcmp(keys_a[i], keys_b[i], n) != 0 || memcmp(values_a[i], values_b[i], n) != 0)
                    fail_msg("%s: other keys or values in page %d", what, i);
            }
        }
}

#endif
