#include "text/scan_utf8.h"

/* What may follow a lead byte: how many bytes, and the range of the first of them, which keeps out overlong forms, surrogates
 * and what is above U+10FFFF. */
typedef struct lead {
    unsigned n_more, low, high;
} lead;

static lead lead_of(unsigned byte)
{
    if (byte < 0xc2 || byte > 0xf4) return (lead){0, 0, 0};
    if (byte < 0xe0) return (lead){1, 0x80, 0xbf};
    if (byte < 0xf0) return (lead){2, byte == 0xe0 ? 0xa0 : 0x80, byte == 0xed ? 0x9f : 0xbf};
    return (lead){3, byte == 0xf0 ? 0x90 : 0x80, byte == 0xf4 ? 0x8f : 0xbf};
}

size_t gdn_utf8_next(const char *s, size_t n, uint32_t *code)
{
    const unsigned char *byte = (const unsigned char *)s;
    if (byte[0] < 0x80) {
        *code = byte[0];
        return 1;
    }
    const lead l = lead_of(byte[0]);
    *code = GDN_UTF8_BAD;
    if (!l.n_more) return 1;
    uint32_t value = byte[0] & 0x3fu >> l.n_more;
    for (size_t i = 1; i <= l.n_more; i++) {
        if (i == n) {
            *code = GDN_UTF8_CUT;
            return n;
        }
        if (byte[i] < (i == 1 ? l.low : 0x80) || byte[i] > (i == 1 ? l.high : 0xbf)) return i;
        value = value << 6 | (byte[i] & 0x3f);
    }
    *code = value;
    return l.n_more + 1;
}
