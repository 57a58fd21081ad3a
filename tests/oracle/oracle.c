#include "oracle/oracle.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

double oracle_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

double oracle_softplus(double x) { return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

double oracle_beta(double b) { return oracle_sigmoid(b); }

double oracle_decay(double a, double A_log, double dt_bias) { return exp(-exp(A_log) * oracle_softplus(a + dt_bias)); }

void oracle_conv_silu(int n_tokens, int n_channels, int n_taps, const double *x, const double *w, double *tail,
                      double *y, double *sum, double *terms)
{
    const int history = n_taps - 1;
    for (int t = 0; t < n_tokens; t++) {
        const double *now = x + (size_t)t * n_channels;
        for (int c = 0; c < n_channels; c++) {
            double s = w[(size_t)history * n_channels + c] * now[c], m = fabs(s);
            for (int j = 0; j < history; j++) {
                const double term = w[(size_t)j * n_channels + c] * tail[(size_t)j * n_channels + c];
                s += term;
                m += fabs(term);
            }
            const size_t at = (size_t)t * n_channels + c;
            y[at] = s * oracle_sigmoid(s);
            if (sum) sum[at] = s;
            if (terms) terms[at] = m;
        }
        memmove(tail, tail + n_channels, (size_t)(history - 1) * n_channels * sizeof *tail);
        memcpy(tail + (size_t)(history - 1) * n_channels, now, (size_t)n_channels * sizeof *tail);
    }
}

static double sum_squares(int n, const double *x)
{
    double s = 0.0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}

void oracle_norm(oracle_form form, int dim, double eps, const double *x, double *y)
{
    const double ss = sum_squares(dim, x);
    double       length = sqrt(ss + eps);
    if (form == ORACLE_RMS) length = sqrt(ss / dim + eps);
    if (form == ORACLE_MAX) length = fmax(sqrt(ss), eps);
    for (int i = 0; i < dim; i++) y[i] = x[i] / length;
}

double oracle_qk_scale(oracle_form form, int dim, int is_query)
{
    if (form == ORACLE_RMS) return is_query ? 1.0 / dim : 1.0 / sqrt(dim);
    return is_query ? 1.0 / sqrt(dim) : 1.0;
}

/* Row dv of value head n at token t; `sign` is -1 for the rule and +1 for its terms, where every factor is >= 0. */
static void row_step(const oracle_delta *d, int t, int n, int dv, double sign, double *row, double *y)
{
    const int    group = d->n_value_heads / d->n_key_heads;
    const int    key_head = d->tiled ? n % d->n_key_heads : n / group;
    const size_t head = (size_t)t * d->n_value_heads + n, key = ((size_t)t * d->n_key_heads + key_head) * d->key_dim;
    const int    absolute = sign > 0.0;
    double       m = 0.0, o = 0.0;
    for (int i = 0; i < d->key_dim; i++) {
        row[i] *= d->vector_gate ? d->g[head * d->key_dim + i] : d->g[head];
        m += row[i] * (absolute ? fabs(d->k[key + i]) : d->k[key + i]);
    }
    const double v = d->v[head * d->value_dim + dv];
    const double delta = ((absolute ? fabs(v) : v) + sign * m) * d->beta[head];
    for (int i = 0; i < d->key_dim; i++) {
        row[i] += delta * (absolute ? fabs(d->k[key + i]) : d->k[key + i]);
        o += row[i] * (absolute ? fabs(d->q[key + i]) : d->q[key + i]);
    }
    y[head * d->value_dim + dv] = o;
}

static void all_steps(const oracle_delta *d, double sign, double *state, double *y)
{
    for (int t = 0; t < d->n_tokens; t++)
        for (int n = 0; n < d->n_value_heads; n++)
            for (int dv = 0; dv < d->value_dim; dv++)
                row_step(d, t, n, dv, sign, state + ((size_t)n * d->value_dim + dv) * d->key_dim, y);
}

void oracle_delta_rule(const oracle_delta *args, double *state, double *y) { all_steps(args, -1.0, state, y); }

void oracle_delta_terms(const oracle_delta *args, double *terms, double *y_terms)
{
    const size_t n = (size_t)args->n_value_heads * args->value_dim * args->key_dim;
    for (size_t i = 0; i < n; i++) terms[i] = fabs(terms[i]);
    all_steps(args, 1.0, terms, y_terms);
}

void oracle_gated_norm(int dim, double eps, const double *o, const double *z, const double *w, double *y)
{
    const double length = sqrt(sum_squares(dim, o) / dim + eps);
    for (int i = 0; i < dim; i++) y[i] = o[i] / length * w[i] * (z[i] * oracle_sigmoid(z[i]));
}

void oracle_rope(int n_pairs, const double *cos, const double *sin, double *x)
{
    for (int i = 0; i < n_pairs; i++) {
        const double a = x[i], b = x[i + n_pairs];
        x[i] = a * cos[i] - b * sin[i];
        x[i + n_pairs] = b * cos[i] + a * sin[i];
    }
}

double oracle_gate(int swiglu, double a, double b) { return b * oracle_sigmoid(a) * (swiglu ? a : 1.0); }

void oracle_attention(int n, int dim, double scale, const double *q, const double *k, const double *v, double *y,
                      double *s, double *w, double *terms)
{
    double most = -HUGE_VAL, sum = 0.0;
    for (int p = 0; p < n; p++) {
        s[p] = terms[p] = 0.0;
        for (int d = 0; d < dim; d++) {
            const double term = scale * q[d] * k[(size_t)p * dim + d];
            s[p] += term;
            terms[p] += fabs(term);
        }
        most = fmax(most, s[p]);
    }
    for (int p = 0; p < n; p++) sum += w[p] = exp(s[p] - most);
    memset(y, 0, (size_t)dim * sizeof *y);
    for (int p = 0; p < n; p++) {
        w[p] /= sum;
        for (int d = 0; d < dim; d++) y[d] += w[p] * v[(size_t)p * dim + d];
    }
}

void oracle_layer_run(const oracle_layer *l, int n_tokens, const double *qkv, const double *z, const double *a,
                      const double *b, double *tail, double *state, double *y)
{
    const int keys = l->n_key_heads * l->key_dim, values = l->n_value_heads * l->value_dim,
              channels = 2 * keys + values;
    double *conv = malloc((size_t)channels * sizeof *conv), *o = malloc((size_t)values * sizeof *o);
    double *g = malloc((size_t)l->n_value_heads * sizeof *g), *beta = malloc((size_t)l->n_value_heads * sizeof *beta);
    if (!conv || !o || !g || !beta) abort();
    for (int t = 0; t < n_tokens; t++) {
        oracle_conv_silu(1, channels, l->n_taps, qkv + (size_t)t * channels, l->conv, tail, conv, NULL, NULL);
        for (int h = 0; h < 2 * l->n_key_heads; h++) {
            double      *row = conv + (size_t)h * l->key_dim;
            const double scale = oracle_qk_scale(l->form, l->key_dim, h < l->n_key_heads);
            oracle_norm(l->form, l->key_dim, l->qk_eps, row, row);
            for (int i = 0; i < l->key_dim; i++) row[i] *= scale;
        }
        for (int n = 0; n < l->n_value_heads; n++) {
            g[n] = oracle_decay(a[(size_t)t * l->n_value_heads + n], l->A_log[n], l->dt_bias[n]);
            beta[n] = oracle_beta(b[(size_t)t * l->n_value_heads + n]);
        }
        const oracle_delta rule = {.n_tokens = 1,
                                   .n_key_heads = l->n_key_heads,
                                   .n_value_heads = l->n_value_heads,
                                   .key_dim = l->key_dim,
                                   .value_dim = l->value_dim,
                                   .tiled = l->tiled,
                                   .q = conv,
                                   .k = conv + keys,
                                   .v = conv + 2 * keys,
                                   .g = g,
                                   .beta = beta};
        oracle_delta_rule(&rule, state, o);
        for (int n = 0; n < l->n_value_heads; n++) {
            const size_t at = (size_t)t * values + (size_t)n * l->value_dim;
            oracle_gated_norm(l->value_dim, l->norm_eps, o + (size_t)n * l->value_dim, z + at, l->norm, y + at);
        }
    }
    free(conv);
    free(o);
    free(g);
    free(beta);
}
