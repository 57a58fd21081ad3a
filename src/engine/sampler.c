#include "gdn/gdn.h"
#include "base/alloc.h"
#include "base/float_mode.h"
#include "base/status.h"
#include "kernel/math.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

/* A candidate is its weight above ID_MASK - id, so that of two keys the greater is the heavier, or the lower id of equals. */
enum { WEIGHT_BITS = 40, ID_BITS = 22, DIGIT_BITS = 11, N_DIGITS = 6 };
#define ID_MASK ((UINT64_C(1) << ID_BITS) - 1)
#define P_ONE (UINT64_C(1) << 32) /* of top_p */

_Static_assert(GDN_SAMPLER_MAX_VOCAB == 1 << ID_BITS, "an id fits its bits");
_Static_assert(N_DIGITS *DIGIT_BITS >= WEIGHT_BITS + 1 + ID_BITS, "the digits cover a key");

typedef struct bias {
    int32_t id;
    float   value;
} bias;

struct gdn_sampler {
    int       vocab_size, n_usable, top_k; /* 0: all */
    float     temperature;                 /* 0: greedy */
    float     skip;                        /* what has a lower exponent cannot stay */
    uint64_t  top_p, min_p;                /* of P_ONE; the least weight that stays */
    float     repetition, presence, frequency;
    uint64_t  key, n_output; /* of the random numbers */
    int       n_bias, n_seen, n;
    bias     *bias;   /* [n_bias] */
    uint32_t *counts; /* [vocab_size]: 0 if not accepted yet, else 1 + times in the output; NULL without penalties */
    int32_t  *seen;   /* [vocab_size], n_seen of them: what counts has, in the order of coming */
    float    *logits; /* [vocab_size], with bias and penalties; NULL without any */
    uint64_t *list;   /* the n candidates */
    uint64_t  sums[1 << DIGIT_BITS];
};

/* splitmix64 */
#define STEP UINT64_C(0x9E3779B97F4A7C15)

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static gdn_status check_range(double x, double low, double high, const char *name, gdn_error *err)
{
    if (x >= low && x <= high) return GDN_OK;
    return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sampler: %s is %g; it must be between %g and %g", name, x, low, high);
}

static gdn_status check_bias(const gdn_sampler_options *o, int vocab_size, gdn_error *err)
{
    if (o->n_bias < 0 || (o->n_bias > 0 && !o->bias))
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sampler: n_bias is %d%s; pass as many biases as it says", o->n_bias,
                        o->n_bias > 0 ? " and bias is NULL" : "");
    for (int i = 0; i < o->n_bias; i++) {
        const gdn_token_bias *b = &o->bias[i];
        if (b->id < 0 || b->id >= vocab_size)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "sampler: bias %d is for token %d; ids go from 0 to %d", i, b->id,
                            vocab_size - 1);
        if (!(b->value >= -1e4 && b->value <= 1e4) && b->value != (double)-INFINITY)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i,
                            "sampler: the bias of token %d is %g; it must be between -10000 and 10000, or -inf", b->id,
                            b->value);
    }
    return GDN_OK;
}

static gdn_status check(int vocab_size, int n_usable, const gdn_sampler_options *o, gdn_error *err)
{
    gdn_status status = GDN_OK;
    if (vocab_size < 1 || vocab_size > GDN_SAMPLER_MAX_VOCAB)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sampler: a vocabulary of %d; it must have 1 to %d tokens",
                        vocab_size, (int)GDN_SAMPLER_MAX_VOCAB);
    if (n_usable < 1 || n_usable > vocab_size)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sampler: %d usable tokens; of %d at least 1 and at most all are",
                        n_usable, vocab_size);
    if (o->top_k < 0)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sampler: top_k is %d; it must be 0, for all tokens, or more",
                        o->top_k);
    if (!status) status = check_range(o->temperature, 0, 100, "temperature", err);
    if (!status) status = check_range(o->top_p, 0, 1, "top_p", err);
    if (!status) status = check_range(o->min_p, 0, 1, "min_p", err);
    if (!status) status = check_range(o->repetition_penalty, 0.01, 100, "repetition_penalty", err);
    if (!status) status = check_range(o->presence_penalty, -100, 100, "presence_penalty", err);
    if (!status) status = check_range(o->frequency_penalty, -100, 100, "frequency_penalty", err);
    if (!status) status = check_bias(o, vocab_size, err);
    return status;
}

/* exp(-28) < 2^-40.  min_p drops more, but before top_p all must be weighed.  The 0.01 is more than log and gdn_expf err by. */
static float lowest_exponent(const gdn_sampler_options *o)
{
    const float lowest = -28.0f, of_min_p = o->min_p > 0 ? (float)log(o->min_p) - 0.01f : lowest;
    return o->top_p == 1 && of_min_p > lowest ? of_min_p : lowest;
}

/* False without memory. */
static bool allocate(gdn_sampler *s)
{
    const size_t vocab_size = (size_t)s->vocab_size;
    if (s->n_bias) {
        s->bias = calloc((size_t)s->n_bias, sizeof *s->bias);
        if (!s->bias) return false;
    }
    if (s->repetition != 1 || s->presence != 0 || s->frequency != 0) {
        s->counts = calloc(vocab_size, sizeof *s->counts);
        s->seen = malloc(vocab_size * sizeof *s->seen);
        if (!s->counts || !s->seen) return false;
    }
    if (s->temperature != 0) {
        s->list = malloc((size_t)(s->top_k ? s->top_k : s->n_usable) * sizeof *s->list);
        if (!s->list) return false;
    }
    if (s->bias || s->counts) {
        s->logits = malloc(vocab_size * sizeof *s->logits);
        if (!s->logits) return false;
    }
    return true;
}

__attribute__((noinline)) static gdn_status open_sampler(gdn_sampler **out, int vocab_size, int n_usable,
                                                         const gdn_sampler_options *options, gdn_error *err)
{
    if (!out || !options)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "sampler: out and options must not be NULL; pass both");
    const gdn_status status = check(vocab_size, n_usable, options, err);
    if (status) return status;
    gdn_sampler *s = calloc(1, sizeof *s);
    if (!s) goto fail;
    s->vocab_size = vocab_size;
    s->n_usable = n_usable;
    s->top_k = options->top_k < n_usable ? options->top_k : 0;
    s->temperature = (float)options->temperature;
    s->skip = lowest_exponent(options);
    s->top_p = (uint64_t)(options->top_p * (double)P_ONE + 0.5);
    s->min_p = (uint64_t)ceil(options->min_p * 0x1p40);
    s->repetition = (float)options->repetition_penalty;
    s->presence = (float)options->presence_penalty;
    s->frequency = (float)options->frequency_penalty;
    s->key = mix(options->seed + STEP);
    s->n_bias = options->n_bias;
    if (!allocate(s)) goto fail;
    for (int i = 0; i < s->n_bias; i++)
        s->bias[i] = (bias){.id = options->bias[i].id, .value = (float)options->bias[i].value};
    *out = s;
    return GDN_OK;
fail:
    gdn_sampler_close(s);
    return gdn_fail(err, GDN_NO_MEMORY, 0, "sampler: no memory for the candidates of a vocabulary of %d", vocab_size);
}

gdn_status gdn_sampler_open(gdn_sampler **out, int vocab_size, int n_usable, const gdn_sampler_options *options,
                            gdn_error *err)
{
    const unsigned long long mode = gdn_float_mode_enter();
    const gdn_status         status = open_sampler(out, vocab_size, n_usable, options, err);
    gdn_float_mode_leave(mode);
    return status;
}

void gdn_sampler_close(gdn_sampler *s)
{
    if (!s) return;
    free(s->bias);
    free(s->counts);
    free(s->seen);
    free(s->list);
    free(s->logits);
    free(s);
}

void gdn_sampler_accept(gdn_sampler *s, int32_t token, bool is_output)
{
    s->n_output += is_output;
    if (!s->counts || token < 0 || token >= s->vocab_size) return;
    if (!s->counts[token]) {
        s->counts[token] = 1;
        s->seen[s->n_seen++] = token;
    }
    s->counts[token] += is_output;
}

/* ---- bias and penalties ------------------------------------------------------------------------------------------ */

static const float *adjust(gdn_sampler *s, const float *logits)
{
    if (!s->logits) return logits;
    memcpy(s->logits, logits, (size_t)s->vocab_size * sizeof *logits);
    for (int i = 0; i < s->n_bias; i++) s->logits[s->bias[i].id] += s->bias[i].value;
    for (int i = 0; i < s->n_seen; i++) {
        float         *x = &s->logits[s->seen[i]];
        const uint32_t n_output = s->counts[s->seen[i]] - 1;
        *x = *x < 0 ? *x * s->repetition : *x / s->repetition;
        *x -= s->frequency * (float)n_output;
        if (n_output > 0) *x -= s->presence;
    }
    return s->logits;
}

/* ---- the greatest logits ----------------------------------------------------------------------------------------- */

/* The greatest of x[n], -INFINITY if there is none.  In lanes, which compilers make vectors of. */
static float greatest(const float *x, int n)
{
    enum { N_LANES = 16 };
    float lane[N_LANES], most = -INFINITY;
    int   i = 0;
    for (int j = 0; j < N_LANES; j++) lane[j] = -INFINITY;
    for (; i + N_LANES <= n; i += N_LANES)
        for (int j = 0; j < N_LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (int j = 0; i + j < n; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (int j = 0; j < N_LANES; j++) most = lane[j] > most ? lane[j] : most;
    return most;
}

static float capped(float x) { return x > FLT_MAX ? FLT_MAX : x; }

/* Greater for greater logits, and for lower ids of equal ones; -0 equals 0. */
static uint64_t rank(const float *logits, int id)
{
    const uint32_t u = gdn_bits(logits[id] + 0.0f), ordered = u >> 31 ? ~u : u | UINT32_C(1) << 31;
    return (uint64_t)ordered << 32 | (UINT32_MAX - (uint32_t)id);
}

static int id_of_rank(uint64_t r) { return (int)(UINT32_MAX - (uint32_t)r); }

/* heap[i] sinks until none of heap[n] is above its children in a heap with the least at the top. */
static void sink(uint64_t *heap, int n, int i)
{
    const uint64_t x = heap[i];
    for (int child = 2 * i + 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= x) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = x;
}

/* The last token that top_k lets stay; -1 if all do.  Uses the list as a heap of ranks. */
static int last_of_top_k(gdn_sampler *s, const float *logits)
{
    const int k = s->top_k;
    int       n = 0, id = 0;
    if (!k) return -1;
    for (; id < s->n_usable && n < k; id++)
        if (logits[id] > -INFINITY) s->list[n++] = rank(logits, id);
    if (n < k) return -1;
    for (int i = k / 2 - 1; i >= 0; i--) sink(s->list, k, i);
    float least = logits[id_of_rank(s->list[0])];
    for (; id < s->n_usable; id++) {
        if (!(logits[id] > least)) continue;
        s->list[0] = rank(logits, id);
        sink(s->list, k, 0);
        least = logits[id_of_rank(s->list[0])];
    }
    return id_of_rank(s->list[0]);
}

/* ---- candidates and their weights -------------------------------------------------------------------------------- */

static uint64_t weight(uint64_t candidate) { return candidate >> ID_BITS; }
static int32_t  id_of(uint64_t candidate) { return (int32_t)(ID_MASK - (candidate & ID_MASK)); }

/* List what top_k lets stay and weighs anything, ids ascending. */
static void list_candidates(gdn_sampler *s, const float *logits, float most)
{
    const int   last = last_of_top_k(s, logits);
    const float least = last < 0 ? -INFINITY : logits[last];
    most = capped(most);
    s->n = 0;
    for (int id = 0; id < s->n_usable; id++) {
        if (!(logits[id] > least) && (id > last || logits[id] != least)) continue;
        const float x = (capped(logits[id]) - most) / s->temperature;
        if (x < s->skip) continue;
        const uint64_t w = (uint64_t)(int64_t)(gdn_expf(x) * 0x1p40f);
        if (w) s->list[s->n++] = w << ID_BITS | (ID_MASK - (uint64_t)id);
    }
}

/* Leave those that are at least `cut`, in their order. */
static void keep(gdn_sampler *s, uint64_t cut)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        s->list[n] = s->list[i];
        n += s->list[i] >= cut;
    }
    s->n = n;
}

static uint64_t weight_of_all(const gdn_sampler *s)
{
    uint64_t sum = 0; /* at most 2^22 * 2^40 */
    for (int i = 0; i < s->n; i++) sum += weight(s->list[i]);
    return sum;
}

/* The greatest candidate that weighs, with those above it, at least `wanted`, which all
 * together do: found digit by digit
 * from the top, without sorting. */
static uint64_t cut_at_weight(gdn_sampler *s, uint64_t wanted)
{
    uint64_t found = 0; /* the digits above */
    for (int shift = (N_DIGITS - 1) * DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        uint64_t digit = (1 << DIGIT_BITS) - 1;
        memset(s->sums, 0, sizeof s->sums);
        for (int i = 0; i < s->n; i++) {
            const uint64_t high = s->list[i] >> shift;
            if (high >> DIGIT_BITS == found) s->sums[high & digit] += weight(s->list[i]);
        }
        while (s->sums[digit] < wanted) wanted -= s->sums[digit--];
        found = found << DIGIT_BITS | digit;
    }
    return found;
}

static void keep_top_p(gdn_sampler *s)
{
    const uint64_t all = weight_of_all(s);
    uint64_t       wanted = (uint64_t)(((wide)s->top_p * all + (P_ONE - 1)) >> 32);
    if (!wanted) wanted = 1;
    if (s->n < 2) return;
    /* Those below the n-th part of what is not wanted are, together, less than that: they go, so that fewer are searched. */
    keep(s, (all - wanted) / (uint64_t)s->n << ID_BITS);
    keep(s, cut_at_weight(s, wanted));
}

static int32_t draw(const gdn_sampler *s)
{
    const uint64_t random = mix(s->key + (s->n_output + 1) * STEP);
    uint64_t       below = (uint64_t)((wide)random * weight_of_all(s) >> 64);
    int            i = 0;
    while (weight(s->list[i]) <= below) below -= weight(s->list[i++]);
    return id_of(s->list[i]);
}

/* Out of line, so that no operation leaves the mode that its caller sets. */
__attribute__((noinline)) static int32_t pick(gdn_sampler *s, const float *raw)
{
    const float *logits = adjust(s, raw);
    const float  most = greatest(logits, s->n_usable);
    int32_t      id = 0;
    if (most == -INFINITY) return 0;
    if (s->temperature == 0) {
        while (logits[id] != most) id++;
        return id;
    }
    list_candidates(s, logits, most);
    if (s->top_p < P_ONE) keep_top_p(s);
    if (s->min_p) keep(s, s->min_p << ID_BITS);
    return draw(s);
}

int32_t gdn_sampler_pick(gdn_sampler *s, const float *logits, double *logprob)
{
    const unsigned long long mode = gdn_float_mode_enter();
    const int32_t            id = pick(s, logits);
    gdn_float_mode_leave(mode);
    if (logprob) *logprob = gdn_logprobs(logits, s->vocab_size, id, NULL, 0);
    return id;
}

/* ---- logprobs ---------------------------------------------------------------------------------------------------- */

static double clean(float x) { return isnan(x) ? (double)-INFINITY : (double)capped(x); }

__attribute__((noinline)) static double logprobs(const float *logits, int n, int32_t chosen, gdn_logprob *top,
                                                 int n_top)
{
    const double most = (double)capped(greatest(logits, n));
    double       sum = 0;
    int          n_found = 0;
    if (most != (double)-INFINITY)
        for (int id = 0; id < n; id++) sum += exp(clean(logits[id]) - most);
    /* Two subtractions: most + log(sum) would round where most is large. */
    const double base = sum > 0 ? most : 0, rest = sum > 0 ? log(sum) : 0;
    for (int id = 0; id < n && n_top > 0; id++) {
        const double x = clean(logits[id]);
        if (n_found && n_found == n_top && !(x > top[n_found - 1].logprob)) continue;
        int at = n_found < n_top ? n_found++ : n_top - 1;
        for (; at > 0 && x > top[at - 1].logprob; at--) top[at] = top[at - 1];
        top[at] = (gdn_logprob){id, x};
    }
    for (int i = 0; top && i < n_found; i++) top[i].logprob = top[i].logprob - base - rest;
    return clean(logits[chosen]) - base - rest;
}

double gdn_logprobs(const float *logits, int n, int32_t chosen, gdn_logprob *top, int n_top)
{
    const unsigned long long mode = gdn_float_mode_enter();
    const double             logprob = logprobs(logits, n, chosen, top, n_top);
    gdn_float_mode_leave(mode);
    return logprob;
}
