/* base/checksum.h - the checksum of files. */
#ifndef GDN_BASE_CHECKSUM_H
#define GDN_BASE_CHECKSUM_H
#include <stddef.h>
#include <stdint.h>

/* 64 bits of n bytes, by this definition (all numbers little-endian, arithmetic modulo 2^64):
 *   step(x, w) = rotate_left((x ^ w) * P, 29)              P = 0x9e3779b97f4a7c15
 *   the bytes, filled up with zeros, are words w[0], w[1], ...; word i goes to lane i % 8, and lane j, which starts as
 *   (j + 1) * P, becomes step(lane, word) for each of its words in turn
 *   sum = n * P; then sum = step(sum, lane j) for j = 0..7; then sum ^= sum >> 32
 * Each step can be undone, so any damage inside one word is always found; other damage goes unseen with a chance of about
 * 2^-64.  It is no protection against a forger. */
uint64_t gdn_checksum(const void *bytes, size_t n);

#endif
