#include "format/scan.h"
#include <string.h>

enum { DEPTH = 32 };

static bool wrong(gdn_scan *s, const char *expected)
{
    if (!s->expected) s->expected = expected;
    return false;
}

/* The next character that is not white space, not consumed; 0 at the end (a 0 in the text fits no caller either). */
static char peek(gdn_scan *s)
{
    while (s->at < s->n && s->text[s->at] && strchr(" \n\r\t", s->text[s->at])) s->at++;
    return s->at < s->n ? s->text[s->at] : 0;
}

static bool take(gdn_scan *s, char c, const char *expected)
{
    if (s->expected || peek(s) != c) return wrong(s, expected);
    s->at++;
    return true;
}

bool gdn_scan_begin(gdn_scan *s, char open)
{
    const bool object = open == '{';
    if (!take(s, open, object ? "an object" : "a list")) return false;
    if (peek(s) != (object ? '}' : ']')) return true;
    s->at++;
    return false;
}

bool gdn_scan_more(gdn_scan *s, char close)
{
    if (s->expected) return false;
    if (peek(s) == ',') {
        s->at++;
        return true;
    }
    take(s, close, close == '}' ? "a comma or a closing brace" : "a comma or a closing bracket");
    return false;
}

/* The four digits of \uXXXX; -1 if they are not there. */
static int hex4(gdn_scan *s)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char       *digit = s->at < s->n && s->text[s->at] ? strchr(digits, s->text[s->at]) : NULL;
        if (!digit) return -1;
        value = value * 16 + (int)((digit - digits) % 16);
        s->at++;
    }
    return value;
}

/* The character behind a backslash; -1 if it is not one that a name may have. */
static int escaped(gdn_scan *s)
{
    const char c = s->at < s->n ? s->text[s->at++] : 0;
    if (c == '"' || c == '\\' || c == '/') return c;
    return c == 'u' ? hex4(s) : -1;
}

bool gdn_scan_string(gdn_scan *s, char *dst, size_t size, size_t *length)
{
    if (!take(s, '"', "a string")) return false;
    for (size_t n = 0; s->at < s->n; n++) {
        int c = (unsigned char)s->text[s->at++];
        if (c == '"') {
            dst[n] = 0;
            *length = n;
            return true;
        }
        if (c == '\\') c = escaped(s);
        if (c < 0x20 || c > 0x7e) return wrong(s, "a name of printable ASCII characters");
        if (n + 1 >= size) return wrong(s, "a shorter string");
        dst[n] = (char)c;
    }
    return wrong(s, "the end of a string");
}

bool gdn_scan_key(gdn_scan *s, char *dst, size_t size, size_t *length)
{
    return gdn_scan_string(s, dst, size, length) && take(s, ':', "a colon");
}

bool gdn_scan_whole(gdn_scan *s, uint64_t *value)
{
    if (s->expected) return false;
    const char first = peek(s);
    if (first < '0' || first > '9') return wrong(s, "a whole number, 0 or more");
    const size_t start = s->at;
    uint64_t     n = 0;
    while (s->at < s->n && s->text[s->at] >= '0' && s->text[s->at] <= '9') {
        const unsigned digit = (unsigned)(s->text[s->at] - '0');
        if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, digit, &n))
            return wrong(s, "a number below 2^64");
        s->at++;
    }
    if (first == '0' && s->at > start + 1) return wrong(s, "a number without leading zeros");
    if (s->at < s->n && s->text[s->at] && strchr(".eE", s->text[s->at])) return wrong(s, "a whole number");
    *value = n;
    return true;
}

static bool skip_string(gdn_scan *s)
{
    if (!take(s, '"', "a string")) return false;
    while (s->at < s->n) {
        const unsigned char c = (unsigned char)s->text[s->at++];
        if (c == '"') return true;
        if (c < 0x20) return wrong(s, "a string without control characters");
        if (c == '\\' && s->at < s->n) s->at++;
    }
    return wrong(s, "the end of a string");
}

/* A number, true, false or null: their letters only; nobody reads the value. */
static bool skip_word(gdn_scan *s)
{
    const size_t start = s->at;
    while (s->at < s->n && s->text[s->at] && strchr("+-.0123456789Eaeflnrstu", s->text[s->at])) s->at++;
    return s->at > start || wrong(s, "a value");
}

static bool skip_value(gdn_scan *s, int depth)
{
    if (s->expected) return false;
    if (depth == DEPTH) return wrong(s, "fewer values inside one another");
    const char open = peek(s), close = open == '{' ? '}' : ']';
    if (open == '"') return skip_string(s);
    if (open != '{' && open != '[') return skip_word(s);
    for (bool more = gdn_scan_begin(s, open); more; more = gdn_scan_more(s, close)) {
        if (open == '{' && !(skip_string(s) && take(s, ':', "a colon"))) return false;
        skip_value(s, depth + 1);
    }
    return !s->expected;
}

bool gdn_scan_skip(gdn_scan *s) { return skip_value(s, 0); }

bool gdn_scan_end(gdn_scan *s)
{
    if (s->expected) return false;
    peek(s);
    return s->at == s->n || wrong(s, "nothing more");
}
