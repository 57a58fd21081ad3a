#include "text/tokenizer_json.h"
#include "base/status.h"
#include "text/scan_utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

void gdn_pull_close(gdn_pull *json)
{
    free(json->decoded);
    json->decoded = NULL;
    json->capacity = 0;
}

bool gdn_pull_fail(gdn_pull *json, gdn_status status, const char *format, ...)
{
    char    sentence[180];
    va_list ap;
    if (json->status) return false;
    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    json->status =
        gdn_fail(json->err, status, (long long)json->at, "%.100s, byte %zu: %s", json->name, json->at, sentence);
    return false;
}

static bool expected(gdn_pull *json, const char *what)
{
    return gdn_pull_fail(json, GDN_BAD_FILE, "%s is expected; the file is damaged or is not JSON", what);
}

char gdn_pull_peek(gdn_pull *json)
{
    if (json->status) return 0;
    while (json->at < json->n && (json->text[json->at] == ' ' || json->text[json->at] == '\n' ||
                                  json->text[json->at] == '\r' || json->text[json->at] == '\t'))
        json->at++;
    return json->at < json->n ? json->text[json->at] : (char)0;
}

bool gdn_pull_finish(gdn_pull *json)
{
    gdn_pull_peek(json);
    return !json->status && (json->at == json->n || expected(json, "the end of the file"));
}

/* ---- objects and lists ------------------------------------------------------------------------------------------- */

bool gdn_pull_enter(gdn_pull *json, char bracket)
{
    if (gdn_pull_peek(json) != bracket) return expected(json, bracket == '{' ? "an object" : "a list");
    json->at++;
    json->first = true;
    return true;
}

/* To the next element or member, over the comma before it; false at the closing bracket. */
static bool advance(gdn_pull *json, char bracket)
{
    const char next = gdn_pull_peek(json);
    if (next == bracket) {
        json->at++;
        json->first = false;
        return false;
    }
    if (!json->first) {
        if (next != ',') return expected(json, bracket == '}' ? "',' or '}'" : "',' or ']'");
        json->at++;
    }
    json->first = false;
    return !json->status;
}

bool gdn_pull_element(gdn_pull *json) { return advance(json, ']'); }

bool gdn_pull_member(gdn_pull *json, gdn_pull_string *name)
{
    if (!advance(json, '}') || !gdn_pull_string_read(json, name)) return false;
    if (gdn_pull_peek(json) != ':') return expected(json, "':'");
    json->at++;
    return true;
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* The four hexadecimal digits at `at`, or -1. */
static int hex4(const gdn_pull *json, size_t at)
{
    int value = 0;
    if (json->n - at < 4) return -1;
    for (size_t i = at; i < at + 4; i++) {
        const char c = json->text[i];
        const int  digit = c >= '0' && c <= '9'                     ? c - '0'
                           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                    : -1;
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* Write the character of the escape whose 'u' is at *at, and move *at behind it; a pair of surrogates is one character.
 * Returns the bytes written (at most 4), 0 when it is none. */
static size_t unicode_escape(const gdn_pull *json, size_t *at, char *out)
{
    int code = hex4(json, *at + 1);
    *at += 5;
    if (code >= 0xd800 && code < 0xdc00) {
        const int low =
            json->n - *at >= 2 && json->text[*at] == '\\' && json->text[*at + 1] == 'u' ? hex4(json, *at + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff) return 0;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        *at += 6;
    } else if (code < 0 || (code >= 0xdc00 && code < 0xe000)) return 0;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(0xf00 >> n | code);
    return n;
}

/* The end of the run of bytes that stand for themselves.  They are checked to be UTF-8. */
static size_t plain_run(gdn_pull *json, size_t at)
{
    while (at < json->n) {
        const unsigned char c = (unsigned char)json->text[at];
        uint32_t            code;
        if (c == '"' || c == '\\' || c < 0x20) break;
        at += c < 0x80 ? 1 : gdn_utf8_next(json->text + at, json->n - at, &code);
        if (c >= 0x80 && code >= GDN_UTF8_BAD) {
            gdn_pull_fail(json, GDN_BAD_FILE, "the string that starts here is not UTF-8; the file is damaged");
            break;
        }
    }
    return at;
}

/* The rest of a string from the escape at `at`; what is before it has been read. */
static bool escaped(gdn_pull *json, size_t at, gdn_pull_string *string)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    const size_t      start = json->at + 1;
    size_t            n = at - start;
    /* The string ends where its first unescaped quote is, and does not grow. */
    size_t end = at;
    while (end < json->n && json->text[end] != '"') end += json->text[end] == '\\' ? 2 : 1;
    if (end >= json->n) return expected(json, "the end of the string that starts here");
    if (json->capacity < end - start) {
        char *decoded = realloc(json->decoded, 2 * (end - start));
        if (!decoded) return gdn_pull_fail(json, GDN_NO_MEMORY, "no memory for a string of %zu bytes", end - start);
        json->decoded = decoded;
        json->capacity = 2 * (end - start);
    }
    memcpy(json->decoded, json->text + start, n);
    while (at < end) {
        const size_t run = plain_run(json, at);
        memcpy(json->decoded + n, json->text + at, run - at);
        n += run - at;
        at = run;
        if (json->status) return false;
        if (at == end) break;
        if (json->text[at] != '\\') return expected(json, "a string without control characters");
        const char *name = strchr(names, json->text[++at]);
        if (name && *name) {
            json->decoded[n++] = bytes[name - names];
            at++;
            continue;
        }
        const size_t length = json->text[at] == 'u' ? unicode_escape(json, &at, json->decoded + n) : 0;
        if (!length) return expected(json, "a string whose escapes are JSON's");
        n += length;
    }
    *string = (gdn_pull_string){json->decoded, n};
    json->at = end + 1;
    return true;
}

bool gdn_pull_string_read(gdn_pull *json, gdn_pull_string *string)
{
    if (gdn_pull_peek(json) != '"') return expected(json, "a string");
    const size_t start = json->at + 1, end = plain_run(json, start);
    if (json->status) return false;
    if (end == json->n) return expected(json, "the end of the string that starts here");
    if (json->text[end] == '\\') return escaped(json, end, string);
    if (json->text[end] != '"') return expected(json, "a string without control characters");
    *string = (gdn_pull_string){json->text + start, end - start};
    json->at = end + 1;
    return true;
}

/* ---- other values ------------------------------------------------------------------------------------------------ */

static bool is_digit(const gdn_pull *json, size_t at)
{
    return at < json->n && json->text[at] >= '0' && json->text[at] <= '9';
}

bool gdn_pull_count_read(gdn_pull *json, uint32_t *count)
{
    uint64_t value = 0;
    gdn_pull_peek(json);
    if (json->status) return false;
    size_t end = json->at;
    for (; is_digit(json, end) && value <= UINT32_MAX; end++) value = 10 * value + (uint64_t)(json->text[end] - '0');
    const bool padded = end - json->at > 1 && json->text[json->at] == '0';
    const bool more = end < json->n && (json->text[end] == '.' || (json->text[end] | 0x20) == 'e');
    if (end == json->at || padded || more || value > UINT32_MAX) return expected(json, "a whole number below 2^32");
    json->at = end;
    *count = (uint32_t)value;
    return true;
}

static size_t digits(const gdn_pull *json, size_t at)
{
    while (is_digit(json, at)) at++;
    return at;
}

static bool skip_number(gdn_pull *json)
{
    size_t at = json->at, from;
    if (json->text[at] == '-') at++;
    at = digits(json, from = at);
    bool ok = at > from && (json->text[from] != '0' || at == from + 1);
    if (ok && at < json->n && json->text[at] == '.') {
        at = digits(json, from = at + 1);
        ok = at > from;
    }
    if (ok && at < json->n && (json->text[at] | 0x20) == 'e') {
        at++;
        if (at < json->n && (json->text[at] == '+' || json->text[at] == '-')) at++;
        const size_t exponent = at;
        at = digits(json, exponent);
        ok = at > exponent;
    }
    if (!ok) return expected(json, "a number");
    json->at = at;
    return true;
}

static bool skip_word(gdn_pull *json)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if (json->n - json->at < n || memcmp(json->text + json->at, words[i], n) != 0) continue;
        json->at += n;
        return true;
    }
    return expected(json, "a value");
}

static bool skip(gdn_pull *json, int depth)
{
    gdn_pull_string string;
    const char      next = gdn_pull_peek(json);
    if (json->status) return false;
    if (next == '"') return gdn_pull_string_read(json, &string);
    if (next == '-' || is_digit(json, json->at)) return skip_number(json);
    if (next != '{' && next != '[') return skip_word(json);
    if (depth == MAX_DEPTH)
        return gdn_pull_fail(json, GDN_BAD_FILE, "more than %d objects or lists inside each other; the file is damaged",
                             MAX_DEPTH);
    gdn_pull_enter(json, next);
    while (next == '{' ? gdn_pull_member(json, &string) : gdn_pull_element(json))
        if (!skip(json, depth + 1)) return false;
    return !json->status;
}

bool gdn_pull_skip(gdn_pull *json) { return skip(json, 0); }
