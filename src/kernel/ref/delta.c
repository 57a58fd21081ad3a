#include "kernel/kernel.h"
#include "kernel/math.h"

/* Lane l of 32 sums its n/32 consecutive elements; the lanes are added by the butterfly xor 1, 2, 8, 4, 16. */
static float lane_dot(const float *s, gdn_type type, const void *x, size_t at, int n)
{
    static const int order[] = {1, 2, 8, 4, 16};
    const int        per_lane = n / GDN_LANES;
    float            lane[GDN_LANES], sum[GDN_LANES];
    for (int l = 0; l < GDN_LANES; l++) {
        const int first = l * per_lane;
        lane[l] = s[first] * gdn_load(type, x, at + first);
        for (int i = first + 1; i < first + per_lane; i++) lane[l] = fmaf(s[i], gdn_load(type, x, at + i), lane[l]);
    }
    for (int step = 0; step < 5; step++) {
        for (int l = 0; l < GDN_LANES; l++) sum[l] = lane[l] + lane[l ^ order[step]];
        memcpy(lane, sum, sizeof lane);
    }
    return lane[0];
}

/* One token for one row of the state. */
static void row_step(const gdn_delta_job *j, float *row, int t, int h, int dv)
{
    const float *g = j->g + (size_t)t * j->g_stride + (size_t)h * j->g_head;
    const float  beta = j->beta[(size_t)t * j->beta_stride + (size_t)h * j->beta_head];
    const size_t qk = (size_t)t * j->qk_stride;
    const float  v = gdn_load(j->v_type, j->v, (size_t)t * j->v_stride + (size_t)h * j->v_head + dv);

    for (int i = 0; i < j->key_dim; i++) row[i] *= j->vector_gate ? g[i] : g[0];
    const float d = (v - lane_dot(row, j->qk_type, j->k, qk, j->key_dim)) * beta;
    for (int i = 0; i < j->key_dim; i++) row[i] = fmaf(gdn_load(j->qk_type, j->k, qk + i), d, row[i]);
    if (j->y)
        gdn_store(j->y_type, j->y, (size_t)t * j->y_stride + (size_t)h * j->y_head + dv,
                  lane_dot(row, j->qk_type, j->q, qk, j->key_dim));
}

void gdn_delta_ref(const gdn_delta_job *j)
{
    for (int h = 0; h < j->n_heads; h++)
        for (int dv = 0; dv < j->value_dim; dv++) {
            const size_t at = (size_t)h * j->state_head + (size_t)dv * j->key_dim;
            float        row[GDN_MAX_DIM] = {0};
            if (j->state_in && j->lane_order) gdn_row_from_lanes(row, j->state_in + at, j->key_dim);
            else if (j->state_in) memcpy(row, j->state_in + at, (size_t)j->key_dim * sizeof *row);
            for (int t = 0; t < j->n_tokens; t++) row_step(j, row, t, h, dv);
            if (j->lane_order) gdn_row_to_lanes(j->state_out + at, row, j->key_dim);
            else memcpy(j->state_out + at, row, (size_t)j->key_dim * sizeof *row);
        }
}
