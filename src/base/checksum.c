#include "base/checksum.h"
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of files are little-endian");

enum { N_LANES = 8 }; /* independent chains hide the latency of the product */

static const uint64_t P = UINT64_C(0x9e3779b97f4a7c15);

static inline uint64_t step(uint64_t x, uint64_t w)
{
    x = (x ^ w) * P;
    return x << 29 | x >> 35;
}

uint64_t gdn_checksum(const void *bytes, size_t n)
{
    const unsigned char *next = bytes;
    uint64_t             lane[N_LANES], word[N_LANES];
    for (unsigned j = 0; j < N_LANES; j++) lane[j] = (j + 1) * P;
    size_t left = n;
    for (; left >= sizeof word; next += sizeof word, left -= sizeof word) {
        memcpy(word, next, sizeof word);
        for (int j = 0; j < N_LANES; j++) lane[j] = step(lane[j], word[j]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, next, left);
    for (size_t j = 0; j < (left + 7) / 8; j++) lane[j] = step(lane[j], word[j]);
    uint64_t sum = n * P;
    for (int j = 0; j < N_LANES; j++) sum = step(sum, lane[j]);
    return sum ^ sum >> 32;
}
