#include "kernel/kernel.h"
#include <string.h>

static int position(int lane)
{
    return 16 * (lane & 1) + 8 * (lane >> 1 & 1) + 4 * (lane >> 3 & 1) + 2 * (lane >> 2 & 1) + (lane >> 4 & 1);
}

void gdn_row_to_lanes(float *dst, const float *src, int key_dim)
{
    const int n = key_dim / GDN_LANES;
    float     row[GDN_MAX_DIM];
    for (int l = 0; l < GDN_LANES; l++)
        for (int i = 0; i < n; i++) row[i * GDN_LANES + position(l)] = src[l * n + i];
    memcpy(dst, row, (size_t)key_dim * sizeof *row);
}

void gdn_row_from_lanes(float *dst, const float *src, int key_dim)
{
    const int n = key_dim / GDN_LANES;
    float     row[GDN_MAX_DIM];
    for (int l = 0; l < GDN_LANES; l++)
        for (int i = 0; i < n; i++) row[l * n + i] = src[i * GDN_LANES + position(l)];
    memcpy(dst, row, (size_t)key_dim * sizeof *row);
}
