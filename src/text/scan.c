#include "text/scan.h"
#include <stddef.h>
#include <string.h>
#include <utf8proc.h>

/* What the alternatives ask of a character; one of the first four, and NEWLINE besides SPACE. */
enum { WORD = 1, NUMBER = 2, SPACE = 4, OTHER = 8, NEWLINE = 16 };

static bool is_white(uint32_t code) /* Unicode's White_Space */
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

static uint8_t kind_of(uint32_t code, bool marks_join)
{
    if (code == '\n' || code == '\r') return SPACE | NEWLINE;
    if (is_white(code)) return SPACE;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return WORD;
    if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME) return marks_join ? WORD : OTHER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return NUMBER;
    return OTHER;
}

bool gdn_scanner_open(gdn_scanner *scanner, const char *regex)
{
    static const char qwen2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                                " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    static const char qwen35[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
                                 " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    scanner->marks_join = !strcmp(regex, qwen35);
    if (!scanner->marks_join && strcmp(regex, qwen2) != 0) return false;
    for (uint32_t code = 0; code < sizeof scanner->kind_of; code++)
        scanner->kind_of[code] = kind_of(code, scanner->marks_join);
    return true;
}

/* ---- one character ----------------------------------------------------------------------------------------------- */

static unsigned kind_of_long(const gdn_scanner *scanner, const unsigned char *c, ptrdiff_t *n)
{
    uint32_t code;
    if (c[0] < 0xf0) {
        *n = 3;
        code = (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
    } else {
        *n = 4;
        code = (c[0] & 0x7u) << 18 | (c[1] & 0x3fu) << 12 | (c[2] & 0x3fu) << 6 | (c[3] & 0x3fu);
    }
    return kind_of(code, scanner->marks_join);
}

/* The kind of the character at `at`, and its length. */
static inline unsigned look(const gdn_scanner *scanner, const char *at, ptrdiff_t *n)
{
    const unsigned char *c = (const unsigned char *)at;
    if (c[0] < 0x80) {
        *n = 1;
        return scanner->kind_of[c[0]];
    }
    if (c[0] < 0xe0) {
        *n = 2;
        return scanner->kind_of[(c[0] & 0x1fu) << 6 | (c[1] & 0x3fu)];
    }
    return kind_of_long(scanner, c, n);
}

/* The end of the run of characters of these kinds. */
static inline const char *run(const gdn_scanner *scanner, const char *at, const char *end, unsigned kinds)
{
    for (ptrdiff_t n; at < end && look(scanner, at, &n) & kinds;) at += n;
    return at;
}

/* ---- the alternatives -------------------------------------------------------------------------------------------- */

/* Alternative 1 at an apostrophe: its end, or NULL.  In the pattern's case folding U+017F, the long s, is an s too. */
static const char *contraction(const char *at, const char *end)
{
    if (end - at < 2) return NULL;
    const int first = at[1] | 0x20;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if (end - at < 3) return NULL;
    if (!memcmp(at + 1, "\xc5\xbf", 2)) return at + 3;
    const int second = at[2] | 0x20;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
        return at + 3;
    return NULL;
}

/* Alternatives 5 to 7 at white space: up to the last line end of the run; without one, the run if the text ends there, else
 * without its last character, if that leaves any. */
static const char *white(const gdn_scanner *scanner, const char *at, const char *end)
{
    const char *after_newline = NULL, *last = at, *p = at;
    ptrdiff_t   n;
    for (unsigned kind; p < end && (kind = look(scanner, p, &n)) & SPACE; p += n) {
        last = p;
        if (kind & NEWLINE) after_newline = p + n;
    }
    if (after_newline) return after_newline;
    return p == end || last == at ? p : last;
}

const char *gdn_scan(const gdn_scanner *scanner, const char *at, const char *end)
{
    ptrdiff_t      n, n_next;
    const unsigned kind = look(scanner, at, &n);
    const char    *next = at + n;
    if (kind & WORD) return run(scanner, next, end, WORD);
    if (kind & NUMBER) return next;
    if (*at == '\'') {
        const char *after = contraction(at, end);
        if (after) return after;
    }
    const unsigned next_kind = next < end ? look(scanner, next, &n_next) : 0;
    if (next_kind & WORD && !(kind & NEWLINE)) return run(scanner, next, end, WORD);
    if (kind & OTHER || (*at == ' ' && next_kind & OTHER)) {
        const char *after = run(scanner, next, end, OTHER);
        return run(scanner, after, end, NEWLINE);
    }
    return white(scanner, at, end);
}
