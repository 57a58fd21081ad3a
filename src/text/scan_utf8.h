/* text/scan_utf8.h - UTF-8, one character at a time. */
#ifndef GDN_TEXT_SCAN_UTF8_H
#define GDN_TEXT_SCAN_UTF8_H
#include <stddef.h>
#include <stdint.h>

enum {
    GDN_UTF8_BAD = 0x110000, /* no character starts here */
    GDN_UTF8_CUT = 0x110001, /* the bytes end inside a character */
};

/* The character at s, of which n >= 1 bytes may be read: *code is its code point and the result its length.  *code is
 * GDN_UTF8_BAD where there is none: the result is then the length of what one U+FFFD stands for (the "maximal subpart" of the
 * Unicode standard, as Rust and Python replace it).  *code is GDN_UTF8_CUT, and the result n, where more bytes could
 * complete a character. */
size_t gdn_utf8_next(const char *s, size_t n, uint32_t *code);

#endif
