/* delta.h - see gdn_delta_fn.
 *
 * A row of the state is worked on in lane order (kernel.h): element i of the 32 lanes is 32/VEC_WIDTH vectors, and the
 * positions of the lanes are such that the butterfly xor 1, 2, 8, 4, 16 becomes folding the upper half of the positions onto
 * the lower, five times: first between vectors, then inside one.  k, q and a vector gate are packed in the same order, 16
 * tokens at a time.  A state in natural order is converted, in its place in state_out, before and after.
 *
 * One pass over a block of rows, small enough for the first-level cache, does for token t the update and the output and for
 * token t+1 the decay and the prediction: one load and one store of the state a token. */
#ifndef GDN_KERNEL_SIMD_DELTA_H
#define GDN_KERNEL_SIMD_DELTA_H
#include "kernel/simd/vec.h"

enum { DELTA_VECS = GDN_LANES / VEC_WIDTH, DELTA_BLOCK = 32, DELTA_PREFETCH = 16 /* rows */ };

/* What a pass does: the decay and prediction of a first token, both halves, or the update and output of a last one.  A token
 * that is first and last is looked at, and then decayed again, updated and output: that saves a store. */
typedef enum delta_part { DELTA_FIRST, DELTA_BOTH, DELTA_LAST, DELTA_LOOK, DELTA_WHOLE } delta_part;

VEC_INLINE int delta_predicts(delta_part part)
{
    return part == DELTA_FIRST || part == DELTA_BOTH || part == DELTA_LOOK;
}
VEC_INLINE int delta_updates(delta_part part)
{
    return part == DELTA_BOTH || part == DELTA_LAST || part == DELTA_WHOLE;
}

typedef struct delta_pass {
    const float *k, *q;  /* of the token that is updated, packed; q NULL: no output */
    const float *k_next; /* of the token that is decayed, packed */
    const float *g_next; /* its gate: one value, or packed */
    float        beta_next;
    const float *v_next; /* [rows] */
    float       *d;      /* [rows]: (v - m)*beta, read by the update and then written for the next token */
    float       *y;      /* [rows] */
} delta_pass;

static void delta_to_lanes(float *dst, const float *src, int key_dim)
{
    if (key_dim != 128) {
        gdn_row_to_lanes(dst, src, key_dim);
        return;
    }
    vec quads[DELTA_VECS][4];
    v_load_quads(quads, src);
    VEC_UNROLL
    for (int u = 0; u < DELTA_VECS; u++) {
        v_transpose4(quads[u]);
        VEC_UNROLL
        for (int i = 0; i < 4; i++) v_store(dst + i * GDN_LANES + u * VEC_WIDTH, quads[u][i]);
    }
}

static void delta_from_lanes(float *row, int key_dim)
{
    if (key_dim != 128) {
        gdn_row_from_lanes(row, row, key_dim);
        return;
    }
    vec quads[DELTA_VECS][4];
    VEC_UNROLL
    for (int u = 0; u < DELTA_VECS; u++) {
        VEC_UNROLL
        for (int i = 0; i < 4; i++) quads[u][i] = v_load(row + i * GDN_LANES + u * VEC_WIDTH);
        v_transpose4(quads[u]);
    }
    v_store_quads(row, quads);
}

/* Dot products of VEC_ROWS rows, so far as they fit one vec: of the output and of the prediction. */
typedef struct delta_sums {
    vec y[VEC_ROWS], m[VEC_ROWS];
} delta_sums;

/* Element i of the lanes in vector u, of VEC_ROWS rows: read at `in`, written at S. */
VEC_INLINE void delta_element(float *S, const float *in, int key_dim, const delta_pass *p, const vec *d,
                              delta_part part, int output, int vector_gate, int u, int i, vec g, delta_sums *sum)
{
    const int at = i * GDN_LANES + u * VEC_WIDTH;
    vec       k = g, q = g, k_next = g;
    if (delta_updates(part)) k = v_load(p->k + at);
    if (delta_updates(part) && output) q = v_load(p->q + at);
    if (delta_predicts(part)) k_next = v_load(p->k_next + at);
    if (part != DELTA_LAST && vector_gate) g = v_load(p->g_next + at);
    VEC_UNROLL
    for (int r = 0; r < VEC_ROWS; r++) {
        vec s = v_load(in + r * key_dim + at);
        if (part == DELTA_LOOK && at % 16 == 0) __builtin_prefetch(in + (r + DELTA_PREFETCH) * key_dim + at);
        if (part == DELTA_WHOLE) s = v_mul(s, g);
        if (delta_updates(part)) {
            s = v_fma(k, d[r], s);
            if (output) sum->y[r] = i ? v_fma(s, q, sum->y[r]) : v_mul(s, q);
        }
        if (delta_predicts(part)) {
            s = v_mul(s, g);
            sum->m[r] = i ? v_fma(s, k_next, sum->m[r]) : v_mul(s, k_next);
        }
        if (part != DELTA_LOOK) v_store(S + r * key_dim + at, s);
    }
}

/* Vector u of VEC_ROWS rows, through all its elements. */
VEC_INLINE delta_sums delta_chain(float *S, const float *in, int key_dim, const delta_pass *p, const vec *d,
                                  delta_part part, int output, int vector_gate, int u)
{
    vec        g = v_set1(0.0f);
    delta_sums sum;
    VEC_UNROLL
    for (int r = 0; r < VEC_ROWS; r++) sum.y[r] = sum.m[r] = g;
    if (part != DELTA_LAST && !vector_gate) g = v_set1(p->g_next[0]);
#define ELEMENT(i) delta_element(S, in, key_dim, p, d, part, output, vector_gate, u, i, g, &sum)
    ELEMENT(0);
    if (key_dim == 128) {
        ELEMENT(1);
        ELEMENT(2);
        ELEMENT(3);
    } else {
        for (int i = 1; i < key_dim / GDN_LANES; i++) ELEMENT(i);
    }
#undef ELEMENT
    return sum;
}

VEC_INLINE delta_sums delta_add(delta_sums a, delta_sums b, delta_part part, int output)
{
    VEC_UNROLL
    for (int r = 0; r < VEC_ROWS; r++) {
        if (delta_updates(part) && output) a.y[r] = v_add(a.y[r], b.y[r]);
        if (delta_predicts(part)) a.m[r] = v_add(a.m[r], b.m[r]);
    }
    return a;
}

/* Four rows at S; `row` is the first one's index in d, v_next and y. */
VEC_INLINE void delta_four(float *S, const float *in, int row, int key_dim, const delta_pass *p, delta_part part,
                           int output, int vector_gate)
{
    vec y[4], m[4];
    for (int r = 0; r < 4; r += VEC_ROWS) {
        vec d[VEC_ROWS];
        VEC_UNROLL
        for (int i = 0; i < VEC_ROWS; i++) d[i] = v_set1(delta_updates(part) ? p->d[row + r + i] : 0.0f);
        float *const       rows = S + r * key_dim;
        const float *const rows_in = in + r * key_dim;
#define CHAIN(u) delta_chain(rows, rows_in, key_dim, p, d, part, output, vector_gate, u)
#define ADD(a, b) delta_add(a, b, part, output)
#if defined(__aarch64__)
        const delta_sums sum = ADD(ADD(ADD(CHAIN(0), CHAIN(4)), ADD(CHAIN(2), CHAIN(6))),
                                   ADD(ADD(CHAIN(1), CHAIN(5)), ADD(CHAIN(3), CHAIN(7))));
#else
        const delta_sums sum =
            DELTA_VECS == 2 ? ADD(CHAIN(0), CHAIN(1)) : ADD(ADD(CHAIN(0), CHAIN(2)), ADD(CHAIN(1), CHAIN(3)));
#endif
#undef CHAIN
#undef ADD
        VEC_UNROLL
        for (int i = 0; i < VEC_ROWS; i++) {
            if (delta_updates(part) && output) y[r + i] = sum.y[i];
            if (delta_predicts(part)) m[r + i] = sum.m[i];
        }
    }
    if (delta_updates(part) && output) v4_store(p->y + row, v_fold4(y[0], y[1], y[2], y[3]));
    if (delta_predicts(part))
        v4_store(p->d + row, v4_scale(v4_sub(v4_load(p->v_next + row), v_fold4(m[0], m[1], m[2], m[3])), p->beta_next));
}

/* What is constant over a call, and the packed chunk. */
typedef struct delta_work {
    float *k, *q; /* [CHUNK][Dk] */
    float *g;     /* [CHUNK][Dk], vector gate only */
    float *v, *y; /* [CHUNK][Dv] */
    float *d;     /* [Dv] */
} delta_work;

/* Make four rows of a head ready for its first token: returns where they stand, in lane order. */
static const float *delta_enter(const gdn_delta_job *j, const float *in, float *S, int key_dim)
{
    if (in && j->lane_order) return in;
    if (!in) memset(S, 0, (size_t)4 * key_dim * sizeof *S);
    for (int r = 0; in && r < 4; r++) delta_to_lanes(S + r * key_dim, in + r * key_dim, key_dim);
    return S;
}

/* Back to natural order after the last token, if that is what the caller has. */
static void delta_leave(const gdn_delta_job *j, float *S, int key_dim)
{
    for (int r = 0; !j->lane_order && r < 4; r++) delta_from_lanes(S + r * key_dim, key_dim);
}

/* A single token t of head h.  Four rows are looked at just ahead of the four that are finished, so that a state that comes
 * from memory streams evenly. */
VEC_INLINE void delta_one(const gdn_delta_job *j, const delta_work *w, int h, int t, int key_dim, int output,
                          int vector_gate)
{
    enum { AHEAD = 4 };
    const size_t       at = (size_t)h * j->state_head;
    float *const       S = j->state_out + at;
    const float *const in = j->state_in ? j->state_in + at : NULL;
    const float *const g = j->g + (size_t)t * j->g_stride + (size_t)h * j->g_head;
    const delta_pass   p = {
          w->k, w->q, w->k, vector_gate ? w->g : g, j->beta[(size_t)t * j->beta_stride + (size_t)h * j->beta_head],
          w->v, w->d, w->y};
    for (int row = 0; row < j->value_dim + AHEAD; row += 4) {
        if (row < j->value_dim) {
            float *const rows = S + row * key_dim;
            const float *from = rows;
            if (t == 0) from = delta_enter(j, in ? in + row * key_dim : NULL, rows, key_dim);
            delta_four(rows, from, row, key_dim, &p, DELTA_LOOK, output, vector_gate);
        }
        if (row >= AHEAD) {
            float *const rows = S + (row - AHEAD) * key_dim;
            const float *from = t == 0 && in && j->lane_order ? in + (row - AHEAD) * key_dim : rows;
            delta_four(rows, from, row - AHEAD, key_dim, &p, DELTA_WHOLE, output, vector_gate);
            if (t == j->n_tokens - 1) delta_leave(j, rows, key_dim);
        }
    }
}

/* Tokens t0..t1, two or more, of head h over a block of rows: row0..row1 of its state. */
VEC_INLINE void delta_many(const gdn_delta_job *j, const delta_work *w, int h, int t0, int t1, int row0, int row1,
                           int key_dim, int output, int vector_gate)
{
    const size_t       at = (size_t)h * j->state_head;
    float *const       S = j->state_out + at;
    const float *const in = j->state_in ? j->state_in + at : NULL;
    const int          n = t1 - t0;
    const float *const g = j->g + (size_t)t0 * j->g_stride + (size_t)h * j->g_head;
    const float *const beta = j->beta + (size_t)t0 * j->beta_stride + (size_t)h * j->beta_head;
    delta_pass p = {.d = w->d, .k_next = w->k, .g_next = vector_gate ? w->g : g, .beta_next = beta[0], .v_next = w->v};

    for (int row = row0; row < row1; row += 4) {
        float *const rows = S + row * key_dim;
        const float *from = rows;
        if (t0 == 0) from = delta_enter(j, in ? in + row * key_dim : NULL, rows, key_dim);
        delta_four(rows, from, row, key_dim, &p, DELTA_FIRST, output, vector_gate);
    }
    for (int t = 0; t < n - 1; t++) {
        p = (delta_pass){
            .k = w->k + t * key_dim,
            .q = w->q + t * key_dim,
            .k_next = w->k + (t + 1) * key_dim,
            .g_next = vector_gate ? w->g + (t + 1) * key_dim : g + (size_t)(t + 1) * j->g_stride,
            .beta_next = beta[(size_t)(t + 1) * j->beta_stride],
            .v_next = w->v + (t + 1) * j->value_dim,
            .d = w->d,
            .y = w->y + t * j->value_dim,
        };
        for (int row = row0; row < row1; row += 4)
            delta_four(S + row * key_dim, S + row * key_dim, row, key_dim, &p, DELTA_BOTH, output, vector_gate);
    }
    p.k = w->k + (n - 1) * key_dim;
    p.q = w->q + (n - 1) * key_dim;
    p.y = w->y + (n - 1) * j->value_dim;
    for (int row = row0; row < row1; row += 4) {
        float *const rows = S + row * key_dim;
        delta_four(rows, rows, row, key_dim, &p, DELTA_LAST, output, vector_gate);
        if (t1 == j->n_tokens) delta_leave(j, rows, key_dim);
    }
}

/* n rows of q or k, from f32 or bf16 in natural order to f32 in lane order. */
static void delta_pack(float *dst, gdn_type type, const void *src, size_t at, size_t stride, int n, int key_dim)
{
    float natural[GDN_MAX_DIM];
    for (int t = 0; t < n; t++, at += stride) {
        for (int i = 0; i < key_dim; i += VEC_WIDTH) v_store(natural + i, v_load_as(type, src, at + i));
        delta_to_lanes(dst + t * key_dim, natural, key_dim);
    }
}

/* n rows of `width` values from one type and stride to another. */
static void delta_copy(gdn_type to, void *dst, size_t dst_at, size_t dst_stride, gdn_type from, const void *src,
                       size_t src_at, size_t src_stride, int n, int width)
{
    for (int t = 0; t < n; t++, dst_at += dst_stride, src_at += src_stride)
        for (int i = 0; i < width; i += VEC_WIDTH) {
            const int part = width - i < VEC_WIDTH ? width - i : VEC_WIDTH;
            v_store_part(to, dst, dst_at + i, part, v_load_part(from, src, src_at + i, part));
        }
}

/* Ask for n rows of `width` values: rows of a wide activation lie pages apart, out of sight of the prefetcher. */
static void delta_fetch(gdn_type type, const void *src, size_t at, size_t stride, int n, int width)
{
    const size_t size = type == GDN_BF16 ? 2 : 4;
    for (int t = 0; t < n; t++, at += stride)
        for (size_t byte = 0; byte < width * size; byte += 64)
            __builtin_prefetch((const char *)src + at * size + byte, 0, 2);
}

/* `output` 0 leaves the output out; 1 computes it, and where there is no y it is dropped. */
VEC_INLINE void delta_run(const gdn_delta_job *j, int key_dim, int output, int vector_gate)
{
    const size_t     area = (size_t)GDN_DELTA_CHUNK * GDN_MAX_DIM;
    const delta_work w = {j->work,           j->work + area, j->work + 2 * area, j->work + 3 * area, j->work + 4 * area,
                          j->work + 5 * area};
    const int        Dv = j->value_dim;
    for (int t0 = 0; t0 < j->n_tokens; t0 += GDN_DELTA_CHUNK) {
        const int n = j->n_tokens - t0 < GDN_DELTA_CHUNK ? j->n_tokens - t0 : GDN_DELTA_CHUNK;
        delta_pack(w.k, j->qk_type, j->k, (size_t)t0 * j->qk_stride, j->qk_stride, n, key_dim);
        if (output)
            delta_pack(w.q, j->qk_type, j->y ? j->q : j->k, (size_t)t0 * j->qk_stride, j->qk_stride, n, key_dim);
        const size_t ahead = (size_t)t0 + GDN_DELTA_CHUNK;
        delta_fetch(j->qk_type, j->k, ahead * j->qk_stride, j->qk_stride, GDN_DELTA_CHUNK, key_dim);
        if (output) delta_fetch(j->qk_type, j->q, ahead * j->qk_stride, j->qk_stride, GDN_DELTA_CHUNK, key_dim);
        for (int h = 0; h < j->n_heads; h++) {
            delta_fetch(j->v_type, j->v, ahead * j->v_stride + h * j->v_head, j->v_stride, GDN_DELTA_CHUNK, Dv);
            delta_copy(GDN_F32, w.v, 0, Dv, j->v_type, j->v, (size_t)t0 * j->v_stride + (size_t)h * j->v_head,
                       j->v_stride, n, Dv);
            if (vector_gate)
                delta_pack(w.g, GDN_F32, j->g, (size_t)t0 * j->g_stride + (size_t)h * j->g_head, j->g_stride, n,
                           key_dim);
            if (n == 1) delta_one(j, &w, h, t0, key_dim, output, vector_gate);
            for (int row = 0; n > 1 && row < Dv; row += DELTA_BLOCK)
                delta_many(j, &w, h, t0, t0 + n, row, Dv - row < DELTA_BLOCK ? Dv : row + DELTA_BLOCK, key_dim, output,
                           vector_gate);
            if (output && j->y)
                delta_copy(j->y_type, j->y, (size_t)t0 * j->y_stride + (size_t)h * j->y_head, j->y_stride, GDN_F32, w.y,
                           0, Dv, n, Dv);
        }
    }
}

/* One function each, so that compilers see pieces of a size they are good at. */
static __attribute__((noinline)) void delta_128(const gdn_delta_job *j) { delta_run(j, 128, 1, 0); }
static __attribute__((noinline)) void delta_128_state(const gdn_delta_job *j) { delta_run(j, 128, 0, 0); }
static __attribute__((noinline)) void delta_any(const gdn_delta_job *j) { delta_run(j, j->key_dim, 1, 0); }
static __attribute__((noinline)) void delta_vector(const gdn_delta_job *j) { delta_run(j, j->key_dim, 1, 1); }

void VEC_NAME(gdn_delta)(const gdn_delta_job *j)
{
    if (j->vector_gate) delta_vector(j);
    else if (j->key_dim != 128) delta_any(j);
    else if (j->y) delta_128(j);
    else delta_128_state(j);
}

#endif
