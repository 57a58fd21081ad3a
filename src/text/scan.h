/* text/scan.h - the pre-tokeniser: where the pieces of a text end, within which tokens are merged. */
#ifndef GDN_TEXT_SCAN_H
#define GDN_TEXT_SCAN_H
#include <stdbool.h>
#include <stdint.h>

/* The two patterns of the family, by hand.  Their alternatives, tried in this order where a piece starts:
 *   1 (?i:'s|'t|'re|'ve|'m|'ll|'d)      5 \s*[\r\n]+
 *   2 [^\r\n\p{L}\p{N}]?W+              6 \s+(?!\S)
 *   3 \p{N}                             7 \s+
 *   4  ?[^\s W\p{N}]+[\r\n]*
 * W is \p{L} for Qwen2 to Qwen3 and Qwen3-Next, and [\p{L}\p{M}] for Qwen3.5. */
typedef struct gdn_scanner {
    bool    marks_join;     /* W has \p{M} */
    uint8_t kind_of[0x800]; /* of the code points that UTF-8 writes in one or two bytes */
} gdn_scanner;

/* Set up for the pattern that is exactly `regex`; false if it is another one. */
bool gdn_scanner_open(gdn_scanner *scanner, const char *regex);

/* The end of the piece that starts at `at`, which is before `end`.  The text is valid UTF-8.  Reads to the end of the piece
 * and of the white space in or after it, so that a whole text costs time linear in its length. */
const char *gdn_scan(const gdn_scanner *scanner, const char *at, const char *end);

#endif
