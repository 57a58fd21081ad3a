/* text/bpe_hash.h - the hash functions of the two tables of bpe.h. */
#ifndef GDN_TEXT_BPE_HASH_H
#define GDN_TEXT_BPE_HASH_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t gdn_bpe_mix(uint64_t x)
{
    x *= UINT64_C(0x9E3779B97F4A7C15);
    return x ^ x >> 32;
}

static inline size_t gdn_bpe_hash_pair(int32_t left, int32_t right)
{
    return (size_t)gdn_bpe_mix((uint64_t)(uint32_t)left << 32 | (uint32_t)right);
}

/* Of n >= 1 bytes.  Words may overlap, so that no length needs a loop over bytes. */
static inline uint64_t gdn_bpe_hash_text(const char *text, size_t n)
{
    uint64_t h = n, word = 0;
    if (n < 4) {
        const unsigned char *c = (const unsigned char *)text;
        return gdn_bpe_mix(h ^ (uint64_t)c[0] << 8 ^ (uint64_t)c[n / 2] << 16 ^ (uint64_t)c[n - 1] << 24);
    }
    if (n < 8) {
        uint32_t head, tail;
        memcpy(&head, text, 4);
        memcpy(&tail, text + n - 4, 4);
        return gdn_bpe_mix(gdn_bpe_mix(h ^ head) ^ (uint64_t)tail << 32);
    }
    for (size_t i = 0; i + 8 < n; i += 8) {
        memcpy(&word, text + i, 8);
        h = gdn_bpe_mix(h ^ word);
    }
    memcpy(&word, text + n - 8, 8);
    return gdn_bpe_mix(h ^ word);
}

#endif
