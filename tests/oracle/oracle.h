/* oracle.h - the mathematics of a gated delta layer, in double and in plain loops.  It shares no code with src/ and rounds
 * nowhere on purpose; what it says is what the equations of the layer mean.  Letters and shapes as in gdn/delta.h. */
#ifndef TESTS_ORACLE_ORACLE_H
#define TESTS_ORACLE_ORACLE_H

/* y[t][c] = silu(s), s = sum_j w[j][c]*x[t-K+1+j][c]; x [T][C], w [K][C].  tail [K-1][C] holds the inputs before the first
 * token, and afterwards those before the next one.  sum and terms, where not NULL, receive s and sum |w*x|, [T][C]. */
void oracle_conv_silu(int n_tokens, int n_channels, int n_taps, const double *x, const double *w, double *tail,
                      double *y, double *sum, double *terms);

typedef enum oracle_form { ORACLE_SUM, ORACLE_RMS, ORACLE_MAX } oracle_form;

/* One row: y = x / sqrt(sum + eps), x / sqrt(mean + eps) or x / max(sqrt(sum), eps), sum and mean of x^2; y may be x. */
void oracle_norm(oracle_form form, int dim, double eps, const double *x, double *y);

/* What the form multiplies the normalised query or key by. */
double oracle_qk_scale(oracle_form form, int dim, int is_query);

double oracle_sigmoid(double x);
double oracle_softplus(double x);

/* beta = sigmoid(b), g = exp(-exp(A_log)*softplus(a + dt_bias)) of one token and head. */
double oracle_beta(double b);
double oracle_decay(double a, double A_log, double dt_bias);

/* The gated delta rule.  q, k [T][Hk][Dk] normalised and scaled; v, y [T][Hv][Dv]; beta [T][Hv]; g [T][Hv], or
 * [T][Hv][Dk] with vector_gate; value head n reads key head n % Hk when tiled, n / (Hv/Hk) otherwise. */
typedef struct oracle_delta {
    int           n_tokens, n_key_heads, n_value_heads, key_dim, value_dim, tiled, vector_gate;
    const double *q, *k, *v, *g, *beta;
} oracle_delta;

/* state [Hv][Dv][Dk], in and out. */
void oracle_delta_rule(const oracle_delta *args, double *state, double *y);

/* The same sums with every term made positive: what rounding errors are proportional to.  terms [Hv][Dv][Dk] comes in as
 * the state (signs do not matter) and goes out as the sum of |terms| of each element of the new state; y_terms as y. */
void oracle_delta_terms(const oracle_delta *args, double *terms, double *y_terms);

/* One row: y = (o / sqrt(mean o^2 + eps)) * w * silu(z). */
void oracle_gated_norm(int dim, double eps, const double *o, const double *z, const double *w, double *y);

/* Element pairs (x[i], x[i+n]), i < n, as points of the plane, turned by the angles of which cos and sin are given. */
void oracle_rope(int n_pairs, const double *cos, const double *sin, double *x);

/* a * sigmoid(a) * b, or b * sigmoid(a). */
double oracle_gate(int swiglu, double a, double b);

/* One query: y = sum_p w[p]*v[p], w = softmax of s[p] = scale * q.k[p]; q, y [dim], k, v [n][dim].  s, w and terms, the
 * sums scale*|q*k|, are [n]. */
void oracle_attention(int n, int dim, double scale, const double *q, const double *k, const double *v, double *y,
                      double *s, double *w, double *terms);

/* A whole layer between its projections. */
typedef struct oracle_layer {
    int           n_key_heads, n_value_heads, key_dim, value_dim, n_taps, tiled;
    oracle_form   form;
    double        qk_eps, norm_eps;
    const double *conv, *A_log, *dt_bias, *norm; /* [K][C], [Hv], [Hv], [Dv] */
} oracle_layer;

/* qkv [T][C]; z, y [T][Hv][Dv]; a, b [T][Hv]; tail [K-1][C] and state [Hv][Dv][Dk], in and out (zeros at a beginning). */
void oracle_layer_run(const oracle_layer *layer, int n_tokens, const double *qkv, const double *z, const double *a,
                      const double *b, double *tail, double *state, double *y);

#endif
