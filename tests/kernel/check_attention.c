#include "kernel/check.h"
#include "oracle/oracle.h"
#include <stdlib.h>

enum { MAX_PAGES = 8 };

typedef struct shape {
    int      n_tokens, n_heads, dim, first, from, head_major, uneven;
    int      q_padding, kv_padding, y_padding;
    gdn_type type;
    fill     q_kind, k_kind, v_kind;
} shape;

static size_t output_elements(const shape *s)
{
    return check_extent(s->n_tokens * s->n_heads, s->dim, s->dim + s->y_padding);
}

static void make_output(check *c, const shape *s, gdn_attention_job *j)
{
    j->y = check_output(c, output_elements(s) * sizeof *j->y);
}

/* Rows of tokens and heads evenly apart, heads or tokens running fastest. */
static void set_strides(const shape *s, int padding, size_t *token, size_t *head)
{
    const size_t row = (size_t)s->dim + padding;
    *token = s->head_major ? row : row * s->n_heads;
    *head = s->head_major ? row * s->n_tokens : row;
}

/* Every rounding between q, k, v and y, U each.  A score has dim/32 fmafs, five folds and the scale: (dim/32 +
 * 6)*terms.  An error of the maximum cancels.  The weight of a position is exp(s - M) times a factor a later block:
 * the differences are rounded, and add up to the distance from the last maximum; each of these B exps errs by
 * INTERVAL_EXP and each product by U.  A is a chain of n + B terms; L has in a block at most one sum of two exps,
 * five folds and an fmaf; then the quotient.  What exp and products lose below the smallest normal number is
 * absolute: 2^-146 of the largest value for each position; L >= 1 up to roundings, for the maximum's own e is 1.  And
 * however wrong the scores, y is a mean of the values. */
static void check_query(check *c, const shape *s, int n, const double *q, const double *k, const double *v,
                        const float *got, size_t at)
{
    static double want[GDN_MAX_DIM], score[MAX_PAGES * GDN_PAGE], weight[MAX_PAGES * GDN_PAGE],
        terms[MAX_PAGES * GDN_PAGE], error[MAX_PAGES * GDN_PAGE];
    const double scale = (double)(float)(1.0 / sqrt(s->dim)), blocks = (s->from + n + GDN_PAGE - 1) / GDN_PAGE;
    double       most = -HUGE_VAL, mean_error = 0.0;
    oracle_attention(n, s->dim, scale, q, k, v, want, score, weight, terms);
    for (int p = 0; p < n; p++) most = fmax(most, score[p]);
    for (int p = 0; p < n; p++) {
        const double in_score = (s->dim / 32 + 6) * INTERVAL_U * (1.0 + 1e-5) * terms[p] + s->dim * INTERVAL_TINY;
        const double distance = fmin(most - score[p] + 2.0 * in_score, 1e3); /* beyond, the weight is 0 */
        error[p] = expm1(in_score + INTERVAL_U * distance + (blocks + 1) * (INTERVAL_EXP + INTERVAL_U));
        mean_error += weight[p] * fmin(error[p], 1e30);
    }
    for (int d = 0; d < s->dim; d++) {
        double sum = 0.0, errors = 0.0, largest = 0.0;
        for (int p = 0; p < n; p++) {
            const double term = weight[p] * fabs(v[(size_t)p * s->dim + d]);
            sum += term;
            errors += term * fmin(error[p], 1e30);
            largest = fmax(largest, fabs(v[(size_t)p * s->dim + d]));
        }
        const double order = (n + 3.0 * blocks + 8.0) * INTERVAL_U, lost = n * 0x1p-146 * (largest + 1.0);
        double       bound = 2.0 * largest * (1.0 + order) + lost;
        if (mean_error + order < 0.5) {
            const double of_sum = order * sum + errors, of_length = fabs(want[d]) * (order + mean_error);
            bound = fmin(bound, (of_sum + of_length) / (1.0 - order - mean_error) + 2.0 * lost);
        }
        check_inside(c, "y", at + d, (double)got[d], interval_around(want[d], bound));
    }
}

static void against_oracle(check *c, const shape *s, const gdn_attention_job *j)
{
    const int n = s->first + s->n_tokens;
    double   *k = malloc(sizeof *k * n * s->dim), *v = malloc(sizeof *v * n * s->dim);
    double    q[GDN_MAX_DIM];
    if (!k || !v) abort();
    for (int p = 0; p < n; p++)
        for (int d = 0; d < s->dim; d++) {
            const size_t at = (size_t)(p % GDN_PAGE) * j->kv_stride + d;
            k[(size_t)p * s->dim + d] = typed_get(s->type, j->keys[p / GDN_PAGE], at);
            v[(size_t)p * s->dim + d] = typed_get(s->type, j->values[p / GDN_PAGE], at);
        }
    for (int t = 0; t < s->n_tokens; t++)
        for (int h = 0; h < s->n_heads; h++) {
            const size_t at = t * j->y_stride + h * j->y_head;
            for (int d = 0; d < s->dim; d++) q[d] = (double)j->q[t * j->q_stride + h * j->q_head + d];
            check_query(c, s, s->first + t + 1 - s->from, q, k + s->from * s->dim, v + s->from * s->dim, j->y + at, at);
        }
    check_rows(c, "y", GDN_F32, j->y, s->n_tokens * s->n_heads, s->dim, (size_t)s->dim + s->y_padding);
    free(k);
    free(v);
}

/* The same tokens in calls of `step`. */
static void in_steps(check *c, const shape *s, const gdn_attention_job *j, int step)
{
    gdn_attention_job part = *j;
    make_output(c, s, &part);
    float *const y = part.y;
    for (int t = 0; t < s->n_tokens; t += step) {
        part.n_tokens = s->n_tokens - t < step ? s->n_tokens - t : step;
        part.first_position = s->first + t;
        part.q = j->q + t * j->q_stride;
        part.y = y + t * j->y_stride;
        c->tst.attention(&part);
    }
    check_equal(c, "y in smaller calls", GDN_F32, y, j->y, output_elements(s));
}

/* Keys of which some are 0 and some large: scores that differ by up to 1e4 from one position to the next, and more. */
static void make_uneven(check *c, const shape *s, void *page, int rows, size_t stride)
{
    static const double factors[] = {0.0, 1.0, 10.0, 1e3, -1e3};
    for (int p = 0; p < rows; p++) {
        const double factor = factors[rng_below(&c->random, 5)];
        for (int d = 0; d < s->dim; d++)
            typed_set(s->type, page, p * stride + d, factor * (double)typed_get(s->type, page, p * stride + d));
    }
}

/* The last page ends, before what may not be read, with the last token's row. */
static void one_case(check *c, const shape *s)
{
    const void       *keys[MAX_PAGES], *values[MAX_PAGES];
    gdn_attention_job tst = {.n_tokens = s->n_tokens,
                             .n_heads = s->n_heads,
                             .dim = s->dim,
                             .first_position = s->first,
                             .from = s->from,
                             .scale = (float)(1.0 / sqrt(s->dim)),
                             .kv_type = s->type,
                             .keys = keys,
                             .values = values,
                             .kv_stride = (size_t)s->dim + s->kv_padding};
    check_case(
        c, "%d tokens from %d, positions from %d, %d heads, dim %d, %s, padding %d %d %d, %s major, q %s, k %s%s, v %s",
        s->n_tokens, s->first, s->from, s->n_heads, s->dim, check_type_name(s->type), s->q_padding, s->kv_padding,
        s->y_padding, s->head_major ? "head" : "token", check_fill_name(s->q_kind), check_fill_name(s->k_kind),
        s->uneven ? " uneven" : "", check_fill_name(s->v_kind));
    const int n = s->first + s->n_tokens;
    for (int at = 0, i = 0; at < n; at += GDN_PAGE, i++) {
        const int    rows = n - at < GDN_PAGE ? n - at : GDN_PAGE;
        const size_t elements = check_extent(rows, s->dim, tst.kv_stride);
        keys[i] = check_input(c, s->type, elements, s->k_kind);
        values[i] = check_input(c, s->type, elements, s->v_kind);
        if (!s->uneven) continue;
        void *page = check_copy(c, keys[i], elements * typed_bytes(s->type));
        make_uneven(c, s, page, rows, tst.kv_stride);
        check_read_only(c, page);
        keys[i] = page;
    }
    set_strides(s, s->q_padding, &tst.q_stride, &tst.q_head);
    set_strides(s, s->y_padding, &tst.y_stride, &tst.y_head);
    tst.q = check_input(c, GDN_F32, check_extent(s->n_tokens * s->n_heads, s->dim, s->dim + s->q_padding), s->q_kind);
    make_output(c, s, &tst);
    c->tst.attention(&tst);
    if (s->n_tokens > 1) {
        in_steps(c, s, &tst, 1);
        if (!c->definition) in_steps(c, s, &tst, 1 + rng_below(&c->random, s->n_tokens - 1));
    }
    if (c->definition) {
        against_oracle(c, s, &tst);
        return;
    }
    gdn_attention_job ref = tst;
    make_output(c, s, &ref);
    c->ref.attention(&ref);
    check_equal(c, "y", GDN_F32, tst.y, ref.y, output_elements(s));
}

static void vary(check *c, shape *s)
{
    rng *r = &c->random;
    s->q_kind = rng_below(r, 2) ? FILL_RANDOM : rng_below(r, FILL_COUNT);
    s->k_kind = rng_below(r, 2) ? FILL_RANDOM : rng_below(r, FILL_COUNT);
    s->v_kind = rng_below(r, 2) ? FILL_RANDOM : rng_below(r, FILL_COUNT);
    s->uneven = s->k_kind == FILL_RANDOM && rng_below(r, 3) == 0;
    s->head_major = rng_below(r, 3) == 0;
    s->q_padding = rng_below(r, 2) ? 1 + rng_below(r, 40) : 0;
    s->y_padding = rng_below(r, 2) ? 1 + rng_below(r, 40) : 0;
    s->kv_padding = rng_below(r, 2) ? 1 + rng_below(r, 300) : 0;
    s->type = rng_below(r, 2) ? GDN_BF16 : GDN_F32;
    s->from = rng_below(r, 3) ? 0 : rng_below(r, 3) ? s->first > 0 : rng_below(r, s->first < 64 ? s->first + 1 : 64);
}

void check_attention(check *c)
{
    static const int firsts[] = {0, 1, 63, 64, 65, 200}, tokens[] = {1, 2, 3, 4, 5, 8, 16, 33, 64, 70, 7};
    for (int dim = 32; dim <= GDN_MAX_DIM; dim += 32)
        for (int f = 0; f < 6; f++)
            for (int variant = 0; variant < 11; variant++) {
                shape s = {.dim = dim, .first = firsts[f], .n_tokens = tokens[variant]};
                s.n_heads = 1 + rng_below(&c->random, s.n_tokens > 16 ? 3 : 8);
                if (variant == 10) s.n_heads = 17; /* more than a group of the fast variants */
                vary(c, &s);
                if (check_sample(c, 32)) one_case(c, &s);
            }
    for (int n = 1; n <= 300; n++)
        for (int variant = 0; variant < 2; variant++) {
            shape s = {.dim = 32 + 32 * rng_below(&c->random, 8), .n_heads = 1 + rng_below(&c->random, 8)};
            s.n_tokens = variant ? 1 + rng_below(&c->random, n < 20 ? n : 20) : 1;
            s.first = n - s.n_tokens;
            vary(c, &s);
            if (check_sample(c, 32)) one_case(c, &s);
        }
}
