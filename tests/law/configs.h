/* configs.h - shapes of real models (heads of 128) and odd ones, between them both types, both recipes, both head maps
 * and all forms of the q/k norm. */
#ifndef LAW_CONFIGS_H
#define LAW_CONFIGS_H
#include "gdn/delta.h"

#define SHAPE(hk, hv, dk, dv, k) .n_key_heads = hk, .n_value_heads = hv, .key_dim = dk, .value_dim = dv, .n_taps = k
static const gdn_delta_config configs[] = {
    {SHAPE(2, 4, 128, 128, 4), GDN_HEADS_GROUPED, GDN_BF16, GDN_RECIPE_MLX, GDN_QK_NORM_RMS, 1e-6f},
    {SHAPE(2, 6, 128, 128, 4), GDN_HEADS_TILED, GDN_BF16, GDN_RECIPE_HF, GDN_QK_NORM_SUM, 1e-6f},
    {SHAPE(2, 6, 128, 128, 4), GDN_HEADS_GROUPED, GDN_F32, GDN_RECIPE_HF, GDN_QK_NORM_SUM, 1e-6f},
    {SHAPE(2, 4, 128, 128, 4), GDN_HEADS_TILED, GDN_F32, GDN_RECIPE_MLX, GDN_QK_NORM_MAX, 1e-6f},
    {SHAPE(1, 3, 96, 64, 2), GDN_HEADS_TILED, GDN_BF16, GDN_RECIPE_HF, GDN_QK_NORM_MAX, 1e-6f},
    {SHAPE(3, 3, 256, 32, 8), GDN_HEADS_GROUPED, GDN_F32, GDN_RECIPE_MLX, GDN_QK_NORM_RMS, 1e-6f},
};
enum { N_CONFIGS = sizeof configs / sizeof *configs };

#endif
