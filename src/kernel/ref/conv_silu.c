#include "kernel/kernel.h"
#include "kernel/math.h"

/* x[t] for t >= 0, the tail before it, zeros where there is none. */
static float input(const gdn_conv_job *j, int t, int c)
{
    if (t >= 0) return gdn_load(j->type, j->x, (size_t)t * j->x_stride + c);
    return j->tail_in ? gdn_load(j->type, j->tail_in, (size_t)(j->n_taps - 1 + t) * j->tail_stride + c) : 0.0f;
}

void gdn_conv_silu_ref(const gdn_conv_job *j)
{
    const int history = j->n_taps - 1;
    for (int c = 0; c < j->n_channels; c++) {
        for (int t = 0; t < j->n_tokens; t++) {
            float s = 0.0f;
            for (int k = 0; k < j->n_taps; k++)
                s = fmaf(j->w[(size_t)k * j->w_stride + c], input(j, t - history + k, c), s);
            float y;
            if (j->recipe == GDN_RECIPE_MLX) {
                s = gdn_round_to(j->type, s);
                y = s * gdn_sigmoid_rounded(j->type, s);
            } else {
                y = s * gdn_sigmoidf(s);
            }
            gdn_store(j->type, j->y, (size_t)t * j->y_stride + c, y);
        }
        for (int h = 0; h < history; h++) /* ascending: in place, a row is read before it is overwritten */
            gdn_store(j->type, j->tail_out, (size_t)h * j->tail_stride + c, input(j, j->n_tokens - history + h, c));
    }
}
