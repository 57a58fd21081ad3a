/* base/half.h - one number between the 16-bit float types and f32. */
#ifndef GDN_BASE_HALF_H
#define GDN_BASE_HALF_H
#include <stdint.h>
#include <string.h>

/* Exact.  A NaN becomes quiet. */
static inline float gdn_f32_of_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    uint32_t       bits;
    if (magnitude < 0x400u) { /* zero and denormals: a whole number of 2^-24 */
        const float value = (float)magnitude * 0x1p-24f;
        memcpy(&bits, &value, sizeof bits);
    } else if (magnitude < 0x7c00u) {
        bits = (magnitude << 13) + ((127u - 15u) << 23);
    } else {
        bits = 0x7f800000u | (magnitude & 0x3ffu) << 13 | (magnitude > 0x7c00u ? 0x400000u : 0);
    }
    bits |= sign;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Exact: bf16 is the upper half of an f32. */
static inline float gdn_f32_of_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float          value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nearest even; a NaN stays a NaN and becomes quiet. */
static inline uint16_t gdn_bf16_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)(bits >> 16);
}

#endif
