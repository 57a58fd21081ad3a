/* machine.h - the world of the state-machine test: caches of the library, and beside each its naive model.  A lane of
 * the model is the list of its tokens, their states recomputed by law.h, its offset and its padding; nothing is
 * shared. */
#ifndef LAW_MACHINE_H
#define LAW_MACHINE_H
#include "law/law.h"
#include "support/fpmode.h"
#include <stdarg.h>
#include <stdio.h>

enum { MAX_CACHES = 5, MAX_LANES = 5, MAX_TOKENS = 160, MAX_COUNT = 5, MAX_SNAPSHOTS = 4, MAX_SLOTS = 16 };

typedef struct setup {
    gdn_delta_config config;
    int              n_layers, n_slots;
    const char      *level;
    int              n_threads;
    int              rounding, flush; /* the caller's floating-point mode during calls: see fpmode.h */
} setup;

typedef struct sequence {
    int            n;
    uint64_t       ids[MAX_TOKENS];
    int64_t        offset;
    unsigned char *memory; /* states and tails after the n tokens, when n > 0 */
} sequence;

typedef struct lane {
    sequence now, before; /* before: at the first forward of the armed round */
    int      slot, slot_before;
    int      skip, limit; /* padding: rows before the first token, rows until the last; limit -1: none */
} lane;

typedef struct cache {
    gdn_cache *real;
    int        max_lanes, max_window, n;
    size_t     record_bytes;
    lane      *lanes[MAX_LANES];
    bool       armed, recorded, padded;
} cache;

typedef struct snapshot {
    gdn_snapshot *real;
    sequence      copy;
} snapshot;

typedef struct world {
    const setup *setup;
    law_model    model;
    gdn_compute *compute;
    gdn_pool    *pool;
    cache       *caches[MAX_CACHES];
    snapshot     snapshots[MAX_SNAPSHOTS];
    int          n_caches, n_snapshots;
    int          refs[MAX_SLOTS + MAX_LANES]; /* holders of each of the model's slots */
    uint64_t     next_id;
    bool         verbose, failed;
    char         message[400];
} world;

/* ---- telling ----------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static inline void say(const world *w, const char *format, ...)
{
    va_list ap;
    if (!w->verbose) return;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
}

/* Keep the first failure; returns false so that a check can end its function. */
__attribute__((format(printf, 2, 3))) static inline bool failed(world *w, const char *format, ...)
{
    va_list ap;
    if (w->failed) return false;
    va_start(ap, format);
    vsnprintf(w->message, sizeof w->message, format, ap);
    va_end(ap);
    w->failed = true;
    return false;
}

/* A call that must succeed; `err` is what it left. */
static inline bool must(world *w, const char *call, gdn_status got, const gdn_error *err)
{
    return got == GDN_OK || failed(w, "%s: %s: %s", call, gdn_status_name(got), err->message);
}

/* A call that must fail with one status and a sentence. */
static inline bool refused(world *w, const char *call, gdn_status want, gdn_status got, const gdn_error *err)
{
    if (got != want) return failed(w, "%s: returned %s, not %s", call, gdn_status_name(got), gdn_status_name(want));
    if (err->code != want || !err->message[0] || !memchr(err->message, 0, sizeof err->message))
        return failed(w, "%s: the error says code %s, message '%.200s'", call, gdn_status_name(err->code),
                      err->message);
    return true;
}

/* ---- sequences, lanes, slots ------------------------------------------------------------------------------------- */

static inline void sequence_copy(const world *w, sequence *dst, const sequence *src)
{
    unsigned char *memory = dst->memory ? dst->memory : law_alloc(w->model.lane_bytes);
    dst->n = src->n;
    dst->offset = src->offset;
    memcpy(dst->ids, src->ids, (size_t)src->n * sizeof *src->ids);
    if (src->n) memcpy(memory, src->memory, w->model.lane_bytes);
    dst->memory = memory;
}

static inline lane *lane_new(const world *w, int64_t offset)
{
    lane *l = calloc(1, sizeof *l);
    l->now.offset = offset;
    l->now.memory = law_alloc(w->model.lane_bytes);
    l->slot = l->slot_before = l->limit = -1;
    return l;
}

static inline int slot_take(world *w)
{
    int slot = 0;
    while (w->refs[slot]) slot++;
    w->refs[slot] = 1;
    return slot;
}

static inline void slot_drop(world *w, int *slot)
{
    if (*slot >= 0) w->refs[*slot]--;
    *slot = -1;
}

static inline int slots_free(const world *w)
{
    int used = 0;
    for (int i = 0; i < MAX_SLOTS + MAX_LANES; i++) used += w->refs[i] > 0;
    return w->setup->n_slots - used;
}

static inline void lane_free(world *w, lane *l)
{
    slot_drop(w, &l->slot);
    slot_drop(w, &l->slot_before);
    free(l->now.memory);
    free(l->before.memory);
    free(l);
}

static inline cache *cache_add(world *w, gdn_cache *real, int max_lanes, int max_window)
{
    cache *c = calloc(1, sizeof *c);
    c->real = real;
    c->max_lanes = max_lanes;
    c->max_window = max_window;
    c->record_bytes = gdn_cache_bytes(real) - (size_t)gdn_cache_lanes(real) * gdn_pool_slot_bytes(w->pool);
    return w->caches[w->n_caches++] = c;
}

static inline void cache_drop(world *w, int index)
{
    cache *c = w->caches[index];
    gdn_cache_close(c->real);
    for (int i = 0; i < c->n; i++) lane_free(w, c->lanes[i]);
    free(c);
    w->caches[index] = w->caches[--w->n_caches];
}

static inline void snapshot_drop(world *w, int index)
{
    gdn_snapshot_release(w->snapshots[index].real);
    free(w->snapshots[index].copy.memory);
    w->snapshots[index] = w->snapshots[--w->n_snapshots];
}

/* ---- rounds of the model ----------------------------------------------------------------------------------------- */

static inline int lane_window(const cache *c, int i)
{
    return c->armed ? (c->recorded ? c->lanes[i]->now.n - c->lanes[i]->before.n : 0) : -1;
}

/* Back to the state before the round, and `keep` of its tokens after that. */
static inline void lane_keep(world *w, lane *l, int keep)
{
    uint64_t       ids[MAX_COUNT];
    unsigned char *ignored = law_alloc(w->model.n_z * sizeof(float));
    memcpy(ids, l->now.ids + l->before.n, (size_t)keep * sizeof *ids);
    sequence_copy(w, &l->now, &l->before);
    for (int layer = 0; layer < w->model.n_layers; layer++)
        for (int t = 0; t < keep; t++) law_step(&w->model, layer, ids[t], l->now.n + t == 0, l->now.memory, ignored);
    memcpy(l->now.ids + l->now.n, ids, (size_t)keep * sizeof *ids);
    l->now.n += keep;
    l->now.offset += keep;
    if (keep == 0) {
        slot_drop(w, &l->slot);
        l->slot = l->slot_before;
        l->slot_before = -1;
    } else {
        slot_drop(w, &l->slot_before);
    }
    free(ignored);
}

/* ---- what must hold after every operation ------------------------------------------------------------------------ */

static inline bool check_memory(world *w, int ci, int li, int layer)
{
    const cache *c = w->caches[ci];
    lane        *l = c->lanes[li];
    const float *state;
    const void  *tail;
    gdn_cache_peek(c->real, li, layer, &state, &tail);
    if (!state != !tail || !state != (l->now.n == 0))
        return failed(w, "cache %d lane %d layer %d: %s a state after %d tokens", ci, li, layer,
                      state ? "holds" : "lacks", l->now.n);
    if (!state) return true;
    if (memcmp(state, law_state(&w->model, l->now.memory, layer), w->model.n_state * sizeof(float)))
        return failed(w, "cache %d lane %d layer %d: the state differs", ci, li, layer);
    if (memcmp(tail, law_tail(&w->model, l->now.memory, layer), w->model.n_tail * w->model.type_bytes))
        return failed(w, "cache %d lane %d layer %d: the conv tail differs", ci, li, layer);
    return true;
}

/* make_mask may call a padding that has been used up "no padding", since all rows are valid then. */
static inline bool check_mask(world *w, int ci)
{
    enum { N = 3 };
    const cache *c = w->caches[ci];
    uint8_t      want[MAX_LANES * N], got[MAX_LANES * N + 1];
    bool         all = true;
    memset(got, 7, sizeof got);
    for (int i = 0; i < c->n * N; i++) {
        const lane *l = c->lanes[i / N];
        want[i] = i % N >= l->skip && (l->limit < 0 || i % N < l->limit);
        all = all && want[i];
    }
    const int masked = gdn_cache_make_mask(c->real, N, got);
    if (masked ? !c->padded || memcmp(got, want, (size_t)(c->n * N)) != 0 : !all)
        return failed(w, "cache %d: make_mask returned %d, %s", ci, masked,
                      masked ? "a wrong mask" : "but rows are padding");
    if (got[masked ? c->n * N : 0] != 7) return failed(w, "cache %d: make_mask wrote past its mask", ci);
    return true;
}

/* A slot that lanes share counts once. */
static inline bool check_bytes(world *w, int ci)
{
    const cache *c = w->caches[ci];
    bool         held[MAX_SLOTS + MAX_LANES] = {false};
    size_t       n_slots = 0;
    for (int i = 0; i < 2 * c->n; i++) {
        const int slot = i % 2 ? c->lanes[i / 2]->slot : c->lanes[i / 2]->slot_before;
        if (slot < 0) continue;
        n_slots += !held[slot];
        held[slot] = true;
    }
    if (gdn_cache_bytes(c->real) != n_slots * gdn_pool_slot_bytes(w->pool) + c->record_bytes)
        return failed(w, "cache %d: %zu bytes with %zu slots", ci, gdn_cache_bytes(c->real), n_slots);
    return gdn_cache_bytes_per_token(c->real) == 0 || failed(w, "cache %d: bytes per token", ci);
}

static inline bool check_cache(world *w, int ci)
{
    const cache *c = w->caches[ci];
    int64_t      offset = 0;
    int          n_states = 0;
    if (gdn_cache_lanes(c->real) != c->n)
        return failed(w, "cache %d: %d lanes, not %d", ci, gdn_cache_lanes(c->real), c->n);
    for (int i = 0; i < c->n; i++) {
        const lane *l = c->lanes[i];
        if (gdn_cache_lane_offset(c->real, i) != l->now.offset)
            return failed(w, "cache %d lane %d: offset %lld, not %lld", ci, i,
                          (long long)gdn_cache_lane_offset(c->real, i), (long long)l->now.offset);
        if (gdn_cache_has_state(c->real, i) != (l->now.n > 0)) return failed(w, "cache %d lane %d: has_state", ci, i);
        if (gdn_round_window(c->real, i) != lane_window(c, i))
            return failed(w, "cache %d lane %d: window %d, not %d", ci, i, gdn_round_window(c->real, i),
                          lane_window(c, i));
        for (int layer = 0; layer < w->model.n_layers; layer++)
            if (!check_memory(w, ci, i, layer)) return false;
        offset = l->now.offset > offset ? l->now.offset : offset;
        n_states += l->now.n > 0;
    }
    if (gdn_cache_lane_offset(c->real, c->n) != -1 || gdn_cache_lane_offset(c->real, -1) != -1 ||
        gdn_round_window(c->real, c->n) != -1)
        return failed(w, "cache %d: a lane beyond the last", ci);
    if (gdn_cache_offset(c->real) != offset) return failed(w, "cache %d: the shared offset is not the largest", ci);
    if (gdn_cache_is_empty(c->real) != (n_states == 0)) return failed(w, "cache %d: is_empty", ci);
    return check_bytes(w, ci) && (c->n == 0 || check_mask(w, ci));
}

static inline bool check_world(world *w)
{
    if (gdn_pool_free_slots(w->pool) != slots_free(w))
        return failed(w, "the pool has %d free slots, not %d", gdn_pool_free_slots(w->pool), slots_free(w));
    for (int i = 0; i < w->n_caches; i++)
        if (!check_cache(w, i)) return false;
    for (int i = 0; i < w->n_snapshots; i++)
        if (gdn_snapshot_offset(w->snapshots[i].real) != w->snapshots[i].copy.offset)
            return failed(w, "snapshot %d: offset", i);
    return true;
}

/* The incremental model against one run over the whole list. */
static inline bool check_from_scratch(world *w, const sequence *s)
{
    if (s->n == 0) return true;
    unsigned char *memory = law_alloc(w->model.lane_bytes);
    law_run(&w->model, s->ids, s->n, memory, NULL);
    const bool same = memcmp(memory, s->memory, w->model.lane_bytes) == 0;
    free(memory);
    return same || failed(w, "the model of a lane differs from its tokens run from scratch");
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* One call of every layer: rows of lane i are row0[i] .. row0[i] + rows[i]; id 0 is a row that is masked. */
typedef struct piece {
    bool     rect, masked;
    int      length, rows[MAX_LANES], row0[MAX_LANES + 1];
    uint8_t  mask[MAX_LANES * MAX_COUNT];
    uint64_t ids[MAX_LANES * MAX_COUNT];
} piece;

/* Name the tokens of a piece whose rows (or length) and mask are set. */
static inline void piece_number(world *w, const cache *c, piece *p)
{
    p->row0[0] = 0;
    for (int i = 0; i < c->n; i++) {
        if (p->rect) p->rows[i] = p->length;
        p->row0[i + 1] = p->row0[i] + p->rows[i];
        for (int r = p->row0[i]; r < p->row0[i + 1]; r++) p->ids[r] = p->masked && !p->mask[r] ? 0 : ++w->next_id;
    }
}

static inline int piece_valid(const piece *p, int li)
{
    int n = 0;
    for (int r = p->row0[li]; r < p->row0[li + 1]; r++) n += p->ids[r] != 0;
    return n;
}

/* Rows of the piece for a layer; masked rows hold NaNs, as they may hold anything. */
static inline law_rows piece_rows(const world *w, const piece *p, int n_rows, int layer)
{
    const size_t hv = (size_t)w->model.config.n_value_heads, bytes = w->model.type_bytes;
    law_rows     rows = law_rows_alloc(&w->model, (size_t)n_rows);
    for (size_t r = 0; r < (size_t)n_rows; r++) {
        if (p->ids[r]) {
            law_token_row(&w->model, layer, p->ids[r], &rows, r);
            continue;
        }
        memset((char *)rows.qkv + r * w->model.n_channels * bytes, 0xff, w->model.n_channels * bytes);
        memset((char *)rows.z + r * w->model.n_z * bytes, 0xff, w->model.n_z * bytes);
        memset((char *)rows.a + r * hv * bytes, 0xff, hv * bytes);
        memset((char *)rows.b + r * hv * bytes, 0xff, hv * bytes);
    }
    return rows;
}

/* Calls that compute run between these two, in the caller's floating-point mode, and must leave it as it was. */
static inline fpmode mode_enter(const world *w)
{
    const fpmode mine = fpmode_get();
    fpmode_put(fpmode_make(w->setup->rounding, w->setup->flush));
    return mine;
}

static inline void mode_leave(world *w, fpmode mine)
{
    const fpmode now = fpmode_get();
    fpmode_put(mine);
    if (now != fpmode_make(w->setup->rounding, w->setup->flush)) failed(w, "a call changed the floating-point mode");
}

/* The model's side of one layer and piece: moves the lanes' memory; y is what the layer must return.  done[i]: tokens
 * of lane i that this layer has already seen in this forward. */
static inline void model_layer(world *w, cache *c, int layer, const piece *p, int *done, unsigned char *y)
{
    const size_t y_bytes = w->model.n_z * w->model.type_bytes;
    for (int i = 0; i < c->n; i++)
        for (int r = p->row0[i]; r < p->row0[i + 1]; r++) {
            lane *l = c->lanes[i];
            if (p->ids[r] == 0) memset(y + (size_t)r * y_bytes, 0, y_bytes);
            else
                law_step(&w->model, layer, p->ids[r], l->now.n + done[i]++ == 0, l->now.memory,
                         y + (size_t)r * y_bytes);
        }
}

/* Run one layer over one piece on both sides and compare.  A refusal is returned and has moved nothing. */
static inline gdn_status forward_piece(world *w, cache *c, int layer, const piece *p, int *done, gdn_error *err)
{
    const size_t   y_bytes = w->model.n_z * w->model.type_bytes;
    const int      n_rows = p->row0[c->n];
    law_rows       rows = piece_rows(w, p, n_rows, layer);
    unsigned char *got = law_alloc((size_t)n_rows * y_bytes), *want = law_alloc((size_t)n_rows * y_bytes);
    memset(got, 0xa5, (size_t)n_rows * y_bytes);
    const gdn_layer_args args = {.batch = {.n_lanes = c->n,
                                           .n_tokens = p->rect ? NULL : p->rows,
                                           .length = p->length,
                                           .mask = p->masked ? p->mask : NULL},
                                 .qkv = rows.qkv,
                                 .z = rows.z,
                                 .a = rows.a,
                                 .b = rows.b,
                                 .y = got};
    const fpmode         mine = mode_enter(w);
    const gdn_status     status = gdn_delta_layer(w->compute, c->real, layer, &w->model.weights[layer], &args, err);
    mode_leave(w, mine);
    if (status == GDN_OK) {
        model_layer(w, c, layer, p, done, want);
        for (int r = 0; r < n_rows && !w->failed; r++)
            if (memcmp(got + (size_t)r * y_bytes, want + (size_t)r * y_bytes, y_bytes) != 0)
                failed(w, "layer %d: the output of row %d differs (%s)", layer, r,
                       p->ids[r] ? "a token" : "masked: must be 0");
    }
    free(got);
    free(want);
    law_rows_free(&rows);
    return status;
}

#endif
