/* attention.h - see gdn_attention_fn.
 *
 * Queries, the heads of a token and then those of the next one, are taken in groups.  A group walks the pages
 * together, so that a key or value row is fetched and converted once for all of them; y holds the accumulators on the
 * way.  What a query computes does not depend on its group: its scores past its own position, and those before `from`, become
 * -inf, of which exp is 0, before the sums. */
#ifndef GDN_KERNEL_SIMD_ATTENTION_H
#define GDN_KERNEL_SIMD_ATTENTION_H
#include "kernel/simd/vec.h"

/* The rows are queries that one pass over the keys or values takes: as many as the registers hold. */
enum { ATTENTION_GROUP = 16, ATTENTION_KEYS = 4, ATTENTION_VECS = GDN_LANES / VEC_WIDTH };
enum {
    ATTENTION_KEY_ROWS = VEC_WIDTH == 8 ? 3 : 4,
    ATTENTION_VALUE_ROWS = VEC_WIDTH == 16  ? 8
                           : VEC_WIDTH == 8 ? 3
                                            : 2
};

typedef struct attention_group {
    int          first, end;            /* the queries, of those below, that see the page */
    int          from;                  /* positions of the page before it are not seen */
    int          seen[ATTENTION_GROUP]; /* positions of the page: rising */
    const float *q[ATTENTION_GROUP];
    float       *y[ATTENTION_GROUP];
    float        max[ATTENTION_GROUP], sum[ATTENTION_GROUP], factor[ATTENTION_GROUP];
    float        e[ATTENTION_GROUP][GDN_PAGE];                                   /* scores, then their exponentials */
    float        keys[ATTENTION_KEYS][GDN_MAX_DIM], values[GDN_PAGE][GDN_LANES]; /* converted from bf16 */
} attention_group;

/* e[r][p..p+3] of `rows` queries from r. */
VEC_INLINE void attention_dots(attention_group *g, const float *const *k, int rows, int r, int p, int dim, float scale)
{
    vec lane[ATTENTION_VECS][ATTENTION_KEY_ROWS][ATTENTION_KEYS];
    VEC_UNROLL
    for (int b = 0; b < ATTENTION_VECS; b++) {
        vec acc[ATTENTION_KEY_ROWS][ATTENTION_KEYS];
        VEC_UNROLL
        for (int i = 0; i < rows; i++) {
            VEC_UNROLL
            for (int c = 0; c < ATTENTION_KEYS; c++) acc[i][c] = v_set1(0.0f);
        }
        for (int d = b * VEC_WIDTH; d < dim; d += GDN_LANES) {
            vec key[ATTENTION_KEYS];
            VEC_UNROLL
            for (int c = 0; c < ATTENTION_KEYS; c++) key[c] = v_load(k[c] + d);
            VEC_UNROLL
            for (int i = 0; i < rows; i++) {
                const vec q = v_load(g->q[r + i] + d);
                VEC_UNROLL
                for (int c = 0; c < ATTENTION_KEYS; c++) acc[i][c] = v_fma(q, key[c], acc[i][c]);
            }
        }
        VEC_UNROLL
        for (int i = 0; i < rows; i++) {
            VEC_UNROLL
            for (int c = 0; c < ATTENTION_KEYS; c++) lane[b][i][c] = acc[i][c];
        }
    }
    VEC_UNROLL
    for (int i = 0; i < rows; i++) {
        for (int half = ATTENTION_VECS / 2; half >= 1; half /= 2)
            for (int b = 0; b < half; b++) {
                VEC_UNROLL
                for (int c = 0; c < ATTENTION_KEYS; c++) lane[b][i][c] = v_add(lane[b][i][c], lane[b + half][i][c]);
            }
        const vec4 s = v_fold4(lane[0][i][0], lane[0][i][1], lane[0][i][2], lane[0][i][3]);
        v4_store(&g->e[r + i][p], v4_scale(s, scale));
    }
}

/* The scores of a page; the last ones of an incomplete four repeat a key, and are dropped later. */
VEC_INLINE void attention_scores(const gdn_attention_job *j, gdn_type type, attention_group *g, int page)
{
    const int    n = g->seen[g->end - 1];
    const size_t size = type == GDN_BF16 ? 2 : 4;
    for (int p = 0; p < n; p += ATTENTION_KEYS) {
        const float *k[ATTENTION_KEYS];
        for (int c = 0; c < ATTENTION_KEYS; c++) {
            const size_t at = (size_t)(p + c < n ? p + c : n - 1) * j->kv_stride;
            const char  *value = (const char *)j->values[page] + at * size;
            for (size_t i = 0; i < (size_t)j->dim * size; i += 64) __builtin_prefetch(value + i); /* wanted soon */
            k[c] = type == GDN_BF16 ? g->keys[c] : (const float *)j->keys[page] + at;
            for (int d = 0; type == GDN_BF16 && d < j->dim; d += VEC_WIDTH)
                v_store(g->keys[c] + d, v_load_as(type, j->keys[page], at + d));
        }
        int r = g->first;
        for (; r + ATTENTION_KEY_ROWS <= g->end; r += ATTENTION_KEY_ROWS)
            attention_dots(g, k, ATTENTION_KEY_ROWS, r, p, j->dim, j->scale);
        for (; r + 2 <= g->end; r += 2) attention_dots(g, k, 2, r, p, j->dim, j->scale);
        for (; r < g->end; r++) attention_dots(g, k, 1, r, p, j->dim, j->scale);
    }
}

/* The new maximum and sum of query r, and its scores into exponentials. */
VEC_INLINE void attention_exp(attention_group *g, int r)
{
    float *e = g->e[r], most[VEC_WIDTH], m = g->max[r];
    for (int p = 0; p < g->from; p++) e[p] = -INFINITY;
    for (int p = g->seen[r]; p < GDN_PAGE; p++) e[p] = -INFINITY;
    vec max = v_load(e), lane[ATTENTION_VECS];
    for (int p = VEC_WIDTH; p < GDN_PAGE; p += VEC_WIDTH) max = v_max(v_load(e + p), max);
    v_store(most, max);
    for (int i = 0; i < VEC_WIDTH; i++) m = most[i] > m ? most[i] : m;
    for (int b = 0; b < ATTENTION_VECS; b++) {
        const vec low = v_exp(v_sub(v_load(e + b * VEC_WIDTH), v_set1(m)));
        const vec high = v_exp(v_sub(v_load(e + GDN_LANES + b * VEC_WIDTH), v_set1(m)));
        v_store(e + b * VEC_WIDTH, low);
        v_store(e + GDN_LANES + b * VEC_WIDTH, high);
        lane[b] = v_add(low, high);
    }
    for (int half = ATTENTION_VECS / 2; half >= 1; half /= 2)
        for (int b = 0; b < half; b++) lane[b] = v_add(lane[b], lane[b + half]);
    g->factor[r] = gdn_expf(g->max[r] - m);
    g->sum[r] = fmaf(g->sum[r], g->factor[r], v_fold(lane[0]));
    g->max[r] = m;
}

/* 32 elements, from d, of the accumulators of `rows` queries from r: times the factors, and positions from..to-1
 * added, those of them that are seen. */
VEC_INLINE void attention_add(attention_group *g, const float *factors, const float *v, size_t stride, int rows, int r,
                              int d, int from, int to)
{
    vec acc[ATTENTION_VALUE_ROWS][ATTENTION_VECS];
    VEC_UNROLL
    for (int i = 0; i < rows; i++) {
        VEC_UNROLL
        for (int b = 0; b < ATTENTION_VECS; b++)
            acc[i][b] = v_mul(v_load(g->y[r + i] + d + b * VEC_WIDTH), v_set1(factors[i]));
    }
    for (int p = from > g->from ? from : g->from; p < to; p++) {
        vec value[ATTENTION_VECS];
        VEC_UNROLL
        for (int b = 0; b < ATTENTION_VECS; b++) value[b] = v_load(v + (size_t)p * stride + b * VEC_WIDTH);
        VEC_UNROLL
        for (int i = 0; i < rows; i++) {
            const vec e = v_set1(g->e[r + i][p]);
            VEC_UNROLL
            for (int b = 0; b < ATTENTION_VECS; b++) acc[i][b] = v_fma(e, value[b], acc[i][b]);
        }
    }
    VEC_UNROLL
    for (int i = 0; i < rows; i++) {
        VEC_UNROLL
        for (int b = 0; b < ATTENTION_VECS; b++) v_store(g->y[r + i] + d + b * VEC_WIDTH, acc[i][b]);
    }
}

/* As many positions as the first of the rows sees together, what the others see beyond it one by one. */
VEC_INLINE void attention_rows(attention_group *g, const float *v, size_t stride, int rows, int r, int d)
{
    static const float unit = 1.0f;
    attention_add(g, g->factor + r, v, stride, rows, r, d, 0, g->seen[r]);
    for (int i = 1; i < rows; i++)
        if (g->seen[r + i] > g->seen[r]) attention_add(g, &unit, v, stride, 1, r + i, d, g->seen[r], g->seen[r + i]);
}

VEC_INLINE void attention_values(const gdn_attention_job *j, gdn_type type, attention_group *g, int page, int more)
{
    const int    n = g->seen[g->end - 1];
    const size_t size = type == GDN_BF16 ? 2 : 4;
    for (int d = 0, next = 0; d < j->dim; d += GDN_LANES) {
        /* The keys of the next page are wanted soon: a part of its rows each time. */
        for (; more && next * j->dim < (d + GDN_LANES) * GDN_PAGE; next++)
            for (size_t i = 0; i < (size_t)j->dim * size; i += 64)
                __builtin_prefetch((const char *)j->keys[page + 1] + (size_t)next * j->kv_stride * size + i);
        const float *v = type == GDN_BF16 ? g->values[0] : (const float *)j->values[page] + d;
        const size_t stride = type == GDN_BF16 ? GDN_LANES : j->kv_stride;
        for (int p = 0; type == GDN_BF16 && p < n; p++)
            for (int b = 0; b < ATTENTION_VECS; b++)
                v_store(g->values[p] + b * VEC_WIDTH,
                        v_load_as(type, j->values[page], (size_t)p * j->kv_stride + d + b * VEC_WIDTH));
        int r = g->first;
        for (; r + ATTENTION_VALUE_ROWS <= g->end; r += ATTENTION_VALUE_ROWS)
            attention_rows(g, v, stride, ATTENTION_VALUE_ROWS, r, d);
        for (; ATTENTION_VALUE_ROWS > 4 && r + 4 <= g->end; r += 4) attention_rows(g, v, stride, 4, r, d);
        for (; ATTENTION_VALUE_ROWS > 2 && r + 2 <= g->end; r += 2) attention_rows(g, v, stride, 2, r, d);
        for (; r < g->end; r++) attention_rows(g, v, stride, 1, r, d);
    }
}

/* The n queries from number `at`, counted through the heads of a token and then those of the next one. */
VEC_INLINE void attention_run(const gdn_attention_job *j, gdn_type type, attention_group *g, long long at, int n)
{
    for (int r = 0; r < n; r++) {
        const size_t t = (size_t)((at + r) / j->n_heads), h = (size_t)((at + r) % j->n_heads);
        g->q[r] = j->q + t * j->q_stride + h * j->q_head;
        g->y[r] = j->y + t * j->y_stride + h * j->y_head;
        g->max[r] = -INFINITY;
        g->sum[r] = 0.0f;
        memset(g->y[r], 0, (size_t)j->dim * sizeof *g->y[r]);
    }
    const long long last = j->first_position + (at + n - 1) / j->n_heads;
    g->first = 0;
    g->end = n;
    for (long long base = 0; base <= last; base += GDN_PAGE) {
        g->from = base ? 0 : j->from;
        for (int r = 0; r < n; r++) {
            const long long seen = j->first_position + (at + r) / j->n_heads + 1 - base;
            g->seen[r] = seen > GDN_PAGE ? GDN_PAGE : (int)seen;
            if (seen <= 0) g->first = r + 1;
        }
        attention_scores(j, type, g, (int)(base / GDN_PAGE));
        for (int r = g->first; r < n; r++) attention_exp(g, r);
        attention_values(j, type, g, (int)(base / GDN_PAGE), base + GDN_PAGE <= last);
    }
    for (int r = 0; r < n; r++)
        for (int d = 0; d < j->dim; d += VEC_WIDTH) v_store(g->y[r] + d, v_div(v_load(g->y[r] + d), v_set1(g->sum[r])));
}

void VEC_NAME(gdn_attention)(const gdn_attention_job *j)
{
    const long long n = (long long)j->n_tokens * j->n_heads;
    attention_group g;
    for (long long at = 0; at < n; at += ATTENTION_GROUP) {
        const int these = n - at < ATTENTION_GROUP ? (int)(n - at) : ATTENTION_GROUP;
        if (j->kv_type == GDN_BF16) attention_run(j, GDN_BF16, &g, at, these);
        else attention_run(j, GDN_F32, &g, at, these);
    }
}

#endif
