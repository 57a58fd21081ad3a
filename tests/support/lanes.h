/* lanes.h - the lane order of a state row, from its statement in gdn/delta.h and apart from src/. */
#ifndef TESTS_SUPPORT_LANES_H
#define TESTS_SUPPORT_LANES_H
#include <stddef.h>

/* Where element `natural` of a row of key_dim floats stands in lane order. */
static inline int lanes_place(int natural, int key_dim)
{
    static const int weight[] = {16, 8, 2, 4, 1}; /* of bits 0 to 4 of the lane */
    const int        per_lane = key_dim / 32, lane = natural / per_lane;
    int              place = natural % per_lane * 32;
    for (int bit = 0; bit < 5; bit++)
        if (lane >> bit & 1) place += weight[bit];
    return place;
}

/* Rows of key_dim floats, dst apart from src. */
static inline void lanes_to_natural(float *dst, const float *src, size_t n_rows, int key_dim)
{
    for (size_t r = 0; r < n_rows; r++)
        for (int i = 0; i < key_dim; i++) dst[r * key_dim + i] = src[r * key_dim + lanes_place(i, key_dim)];
}

static inline void lanes_from_natural(float *dst, const float *src, size_t n_rows, int key_dim)
{
    for (size_t r = 0; r < n_rows; r++)
        for (int i = 0; i < key_dim; i++) dst[r * key_dim + lanes_place(i, key_dim)] = src[r * key_dim + i];
}

#endif
