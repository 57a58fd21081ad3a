/* Numbers and strings written in a template. */
#include "text/jinja_node.h"
#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

static bool is_digit_of(char c, int base)
{
    if (base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return true;
    return c >= '0' && c < '0' + (base < 10 ? base : 10);
}

/* Digits that single underscores may part; returns where they end. */
static size_t skip_digits(const char *src, size_t n, size_t pos, int base)
{
    if (pos >= n || !is_digit_of(src[pos], base)) return pos;
    for (pos++; pos < n; pos++)
        if (!is_digit_of(src[pos], base) && !(src[pos] == '_' && pos + 1 < n && is_digit_of(src[pos + 1], base))) break;
    return pos;
}

/* Where the float at pos ends; pos if there is none. */
static size_t float_end(const char *src, size_t n, size_t pos)
{
    const size_t whole = skip_digits(src, n, pos, 10);
    if (whole == pos || (pos > 0 && src[pos - 1] == '.')) return pos;
    size_t end = whole;
    if (end < n && src[end] == '.') {
        const size_t fraction = skip_digits(src, n, end + 1, 10);
        if (fraction > end + 1) end = fraction;
    }
    if (end < n && (src[end] == 'e' || src[end] == 'E')) {
        const size_t digits = end + 1 + (end + 1 < n && (src[end + 1] == '+' || src[end + 1] == '-'));
        const size_t exponent = skip_digits(src, n, digits, 10);
        if (exponent > digits) end = exponent;
    }
    return end > whole ? end : pos;
}

/* Where the integer at pos ends, and what its base is. */
static size_t integer_end(const char *src, size_t n, size_t pos, int *base)
{
    *base = 10;
    if (src[pos] != '0') return skip_digits(src, n, pos, 10);
    if (pos + 1 < n) {
        const char letter = src[pos + 1] | 0x20;
        *base = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 10;
        const size_t digits = pos + 2 + (*base != 10 && pos + 2 < n && src[pos + 2] == '_');
        if (*base != 10 && skip_digits(src, n, digits, *base) > digits) return skip_digits(src, n, digits, *base);
        *base = 10;
    }
    for (pos++; pos < n; pos++)
        if (src[pos] != '0' && !(src[pos] == '_' && pos + 1 < n && src[pos + 1] == '0')) break;
    return pos;
}

bool gdn_jinja_lex_number(jinja_run *run, const char *src, size_t n, size_t *pos, jinja_value *out)
{
    if (!is_digit_of(src[*pos], 10)) return false;
    int        base = 0;
    size_t     end = float_end(src, n, *pos);
    const bool is_float = end > *pos;
    if (!is_float) end = integer_end(src, n, *pos, &base);
    char  *digits = gdn_jinja_alloc(run, end - *pos + 1);
    size_t n_digits = 0;
    if (!digits) return false;
    for (size_t i = *pos; i < end; i++)
        if (src[i] != '_') digits[n_digits++] = src[i];
    digits[n_digits] = 0;
    *pos = end;
    if (is_float) *out = gdn_jinja_float(strtod(digits, NULL));
    else {
        int64_t i = 0;
        if (gdn_jinja_parse_int(digits, n_digits, base, &i) != 1)
            return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the integer %s needs more than 64 bits", digits);
        *out = gdn_jinja_int(i);
    }
    return true;
}

/* ---- strings --------------------------------------------------------------------------------------------------------- */

static bool put_char(jinja_run *run, jinja_text *text, uint32_t c)
{
    char bytes[4];
    if (c >= 0xD800 && c < 0xE000)
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "a string has the surrogate \\u%04x; write the character itself",
                              (unsigned)c);
    if (c > 0x10FFFF) return gdn_jinja_fail(run, GDN_BAD_FILE, "a string has an escape beyond \\U0010ffff");
    return gdn_jinja_put(run, text, bytes, gdn_jinja_encode(c, bytes), JINJA_TRUSTED);
}

/* A backslash before a character outside ASCII stays, and Python's detour over ASCII shows: that character comes out as the
 * text of its escape. */
static bool put_escaped_foreign(jinja_run *run, jinja_text *text, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    char              escape[12] = "\\";
    const size_t      n_digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
    escape[1] = n_digits == 2 ? 'x' : n_digits == 4 ? 'u' : 'U';
    for (size_t i = 0; i < n_digits; i++) escape[2 + i] = hex[c >> 4 * (n_digits - 1 - i) & 15];
    return gdn_jinja_put(run, text, escape, 2 + n_digits, JINJA_TRUSTED);
}

static bool put_hex(jinja_run *run, jinja_text *text, const char *src, size_t end, size_t *pos, int n_digits)
{
    uint32_t c = 0;
    for (int i = 0; i < n_digits; i++, ++*pos) {
        if (*pos >= end || !is_digit_of(src[*pos], 16))
            return gdn_jinja_fail(run, GDN_BAD_FILE, "an escape in a string has fewer than %d digits", n_digits);
        const char digit = src[*pos];
        c = c << 4 | (uint32_t)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return put_char(run, text, c);
}

/* The escape whose backslash is before src[*pos]. */
static bool put_escape(jinja_run *run, jinja_text *text, const char *src, size_t end, size_t *pos)
{
    static const char letters[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
    const char        letter = src[*pos];
    if ((unsigned char)letter >= 0x80) return put_escaped_foreign(run, text, gdn_jinja_char(src, pos));
    ++*pos;
    if (letter == '\n') return true;
    for (size_t i = 0; i + 1 < sizeof letters; i += 2)
        if (letters[i] == letter) return gdn_jinja_put(run, text, &letters[i + 1], 1, JINJA_TRUSTED);
    if (letter >= '0' && letter <= '7') {
        uint32_t c = (uint32_t)(letter - '0');
        for (int i = 0; i < 2 && *pos < end && is_digit_of(src[*pos], 8); i++)
            c = c << 3 | (uint32_t)(src[(*pos)++] - '0');
        return put_char(run, text, c);
    }
    if (letter == 'x' || letter == 'u' || letter == 'U')
        return put_hex(run, text, src, end, pos, letter == 'x' ? 2 : letter == 'u' ? 4 : 8);
    if (letter == 'N') return gdn_jinja_fail(run, GDN_UNSUPPORTED, "\\N{...} in a string; write the character itself");
    return gdn_jinja_put(run, text, src + *pos - 2, 2, JINJA_TRUSTED);
}

bool gdn_jinja_lex_string(jinja_run *run, const char *src, size_t n, size_t *pos, jinja_value *out)
{
    const char quote = src[*pos];
    size_t     end = *pos + 1;
    while (end < n && src[end] != quote) end += src[end] == '\\' ? 2 : 1;
    if (end >= n) return gdn_jinja_fail(run, GDN_BAD_FILE, "a string that begins with %c is not closed", quote);
    jinja_text text = {.bytes = NULL};
    for (size_t i = *pos + 1; i < end;) {
        size_t plain = i;
        while (plain < end && src[plain] != '\\') plain++;
        if (!gdn_jinja_put(run, &text, src + i, plain - i, JINJA_TRUSTED)) return false;
        i = plain + 1;
        if (plain < end && !put_escape(run, &text, src, end, &i)) return false;
    }
    *pos = end + 1;
    return gdn_jinja_take(run, &text, out);
}
