/* conv_silu.h - see gdn_conv_silu_fn.  Channels are vectorised; a block of them is carried through all tokens, so that the
 * inputs of the last K tokens stay in the first-level cache. */
#ifndef GDN_KERNEL_SIMD_CONV_SILU_H
#define GDN_KERNEL_SIMD_CONV_SILU_H
#include "kernel/simd/vec.h"

enum {
    CONV_BLOCK = 512,
    CONV_AHEAD = 4
}; /* channels; tokens: rows may be pages apart, out of sight of the prefetcher */

/* Row t of the input as a pointer and an element offset; NULL where it is zero. */
VEC_INLINE const void *conv_row(const gdn_conv_job *j, int t, size_t *at)
{
    if (t >= 0) {
        *at = (size_t)t * j->x_stride;
        return j->x;
    }
    *at = (size_t)(j->n_taps - 1 + t) * j->tail_stride;
    return j->tail_in;
}

/* Outputs c..c+n of a token, from its rows first..n_taps. */
VEC_INLINE void conv_vec(const gdn_conv_job *j, gdn_type type, gdn_recipe recipe, int n_taps, const void *const *row,
                         const size_t *at, int first, size_t y_at, int c, int n)
{
    vec s = v_set1(0.0f), y;
    for (int k = first; k < n_taps; k++) {
        const vec w = v_load_part(GDN_F32, j->w, (size_t)k * j->w_stride + c, n);
        s = v_fma(w, v_load_part(type, row[k], at[k] + c, n), s);
    }
    if (recipe == GDN_RECIPE_MLX) {
        s = v_round_to(type, s);
        y = v_mul(s, v_sigmoid_rounded(type, s));
    } else {
        y = v_mul(s, v_sigmoid(s));
    }
    v_store_part(type, j->y, y_at + c, n, y);
}

VEC_INLINE void conv_token(const gdn_conv_job *j, gdn_type type, gdn_recipe recipe, int n_taps, int t, int c0, int c1)
{
    const size_t size = type == GDN_BF16 ? 2 : 4, y_at = (size_t)t * j->y_stride;
    const char  *ahead = (const char *)j->x + (size_t)(t + CONV_AHEAD) * j->x_stride * size;
    const void  *row[GDN_MAX_TAPS];
    size_t       at[GDN_MAX_TAPS];
    int first = 0, c = c0; /* rows of zeros come first, and fmaf of a zero leaves the 0 that the sum starts from */
    for (int k = 0; k < n_taps; k++) {
        row[k] = conv_row(j, t - n_taps + 1 + k, &at[k]);
        if (!row[k]) first = k + 1;
    }
    for (; c + VEC_WIDTH <= c1; c += VEC_WIDTH) {
        __builtin_prefetch(ahead + (size_t)c * size);
        if (first == 0) conv_vec(j, type, recipe, n_taps, row, at, 0, y_at, c, VEC_WIDTH);
        else conv_vec(j, type, recipe, n_taps, row, at, first, y_at, c, VEC_WIDTH);
    }
    if (c < c1) conv_vec(j, type, recipe, n_taps, row, at, first, y_at, c, c1 - c);
}

VEC_INLINE void conv_tail(const gdn_conv_job *j, int c0, int c1)
{
    const size_t size = j->type == GDN_BF16 ? 2 : 4;
    for (int h = 0; h < j->n_taps - 1; h++) { /* ascending: in place, a row is read before it is overwritten */
        size_t      at;
        const void *src = conv_row(j, j->n_tokens - j->n_taps + 1 + h, &at);
        char       *dst = (char *)j->tail_out + ((size_t)h * j->tail_stride + c0) * size;
        if (src) memmove(dst, (const char *)src + (at + c0) * size, (size_t)(c1 - c0) * size);
        else memset(dst, 0, (size_t)(c1 - c0) * size);
    }
}

VEC_INLINE void conv_run(const gdn_conv_job *j, gdn_type type, gdn_recipe recipe, int n_taps)
{
    for (int c0 = 0; c0 < j->n_channels; c0 += CONV_BLOCK) {
        const int c1 = j->n_channels - c0 < CONV_BLOCK ? j->n_channels : c0 + CONV_BLOCK;
        for (int t = 0; t < j->n_tokens; t++) conv_token(j, type, recipe, n_taps, t, c0, c1);
        conv_tail(j, c0, c1);
    }
}

void VEC_NAME(gdn_conv_silu)(const gdn_conv_job *j)
{
    const int four = j->n_taps == 4, bf16 = j->type == GDN_BF16;
    if (j->recipe == GDN_RECIPE_MLX) conv_run(j, j->type, GDN_RECIPE_MLX, j->n_taps);
    else if (four && bf16) conv_run(j, GDN_BF16, GDN_RECIPE_HF, 4);
    else if (four) conv_run(j, GDN_F32, GDN_RECIPE_HF, 4);
    else conv_run(j, j->type, GDN_RECIPE_HF, j->n_taps);
}

#endif
