/* Numbers: text, arithmetic and comparison as in Python, integers of 64 bits. */
#include "text/jinja.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- to text --------------------------------------------------------------------------------------------------------- */

/* Add one to the last digit of "d.ddde..."; false if that would carry into a digit more. */
static bool next_decimal(char *text)
{
    for (char *c = strchr(text, 'e') - 1; c >= text; c--) {
        if (*c == '.') continue;
        if (*c != '9') {
            ++*c;
            return true;
        }
        *c = '0';
    }
    return false;
}

/* The shortest digits that give the same double back, and where their decimal point is.  At a power of two the nearest
 * decimal may lie below, where the doubles are denser, and give another; then the one above it may do. */
static int shortest(double d, char digits[20], int *point)
{
    char text[40];
    for (int n = 1; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, d);
        if (strtod(text, NULL) == d || (next_decimal(text) && strtod(text, NULL) == d)) break;
    }
    const char *exponent = strchr(text, 'e');
    int         n = 0;
    for (const char *c = text; c < exponent; c++)
        if (*c >= '0' && *c <= '9') digits[n++] = *c;
    while (n > 1 && digits[n - 1] == '0') n--;
    *point = atoi(exponent + 1) + 1;
    return n;
}

int gdn_jinja_repr_float(double d, char *text)
{
    if (isnan(d)) return sprintf(text, "nan");
    if (isinf(d)) return sprintf(text, d < 0 ? "-inf" : "inf");
    char      digits[20] = "0", *out = text;
    int       point;
    const int n = shortest(fabs(d), digits, &point);
    if (signbit(d)) *out++ = '-';
    if (point > 16 || point < -3) {
        *out++ = digits[0];
        if (n > 1) *out++ = '.';
        for (int i = 1; i < n; i++) *out++ = digits[i];
        return (int)(out - text) + sprintf(out, "e%+03d", point - 1);
    }
    if (point <= 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = point; i < 0; i++) *out++ = '0';
    }
    for (int i = 0; i < n || i < point; i++) {
        if (i == point && i > 0) *out++ = '.';
        *out++ = i < n ? digits[i] : '0';
    }
    if (point >= n) {
        *out++ = '.';
        *out++ = '0';
    }
    *out = 0;
    return (int)(out - text);
}

/* ---- from text ------------------------------------------------------------------------------------------------------- */

static size_t trim(const char **text, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t next = i;
        if (!gdn_jinja_is_space(gdn_jinja_char(*text, &next))) break;
        i = next;
    }
    while (n > i) {
        size_t start = gdn_jinja_char_before(*text, n), next = start;
        if (!gdn_jinja_is_space(gdn_jinja_char(*text, &next))) break;
        n = start;
    }
    *text += i;
    return n - i;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'z') return c - 'a' + 10;
    if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
    return 99;
}

int gdn_jinja_parse_int(const char *text, size_t n, int base, int64_t *out)
{
    n = trim(&text, n);
    size_t     i = 0;
    const bool negative = n > 0 && text[0] == '-';
    if (n > 0 && (text[0] == '-' || text[0] == '+')) i++;
    bool any_zero = false; /* base 0: "00" is an integer, "01" is not */
    if (i + 1 < n && text[i] == '0') {
        const char letter = text[i + 1] | 0x20;
        const int  named = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 0;
        if (named && (base == 0 || base == named)) {
            base = named;
            i += 2;
            if (i < n && text[i] == '_') i++;
        } else if (base == 0) any_zero = true;
    }
    if (base == 0) base = 10;
    bool     overflow = false, after_digit = false;
    uint64_t value = 0;
    for (; i < n; i++) {
        if (text[i] == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        const int digit = digit_value(text[i]);
        if (digit >= base) return 0;
        overflow |= __builtin_mul_overflow(value, (uint64_t)base, &value);
        overflow |= __builtin_add_overflow(value, (uint64_t)digit, &value);
        after_digit = true;
    }
    if (!after_digit || (any_zero && (value || overflow))) return 0;
    if (overflow || value > (uint64_t)INT64_MAX + negative) return -1;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return 1;
}

/* Digits that single underscores may part. */
static size_t digits_end(const char *text, size_t n, size_t i)
{
    bool after_digit = false;
    for (; i < n; i++) {
        if (text[i] >= '0' && text[i] <= '9') after_digit = true;
        else if (text[i] == '_' && after_digit && i + 1 < n && text[i + 1] >= '0' && text[i + 1] <= '9')
            after_digit = false;
        else break;
    }
    return i;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    if (n != strlen(word)) return false;
    for (size_t i = 0; i < n; i++)
        if ((text[i] | 0x20) != word[i]) return false;
    return true;
}

bool gdn_jinja_parse_float(jinja_run *run, const char *text, size_t n, double *d)
{
    n = trim(&text, n);
    size_t       i = n > 0 && (text[0] == '-' || text[0] == '+');
    const double sign = n > 0 && text[0] == '-' ? -1 : 1;
    if (is_word(text + i, n - i, "inf") || is_word(text + i, n - i, "infinity"))
        return *d = sign * (double)INFINITY, true;
    if (is_word(text + i, n - i, "nan")) return *d = (double)NAN, true;
    const size_t start = i, whole = digits_end(text, n, i);
    size_t       end = whole, fraction = whole;
    if (end < n && text[end] == '.') fraction = end = digits_end(text, n, end + 1);
    if (whole == start && fraction <= whole + 1) return false;
    if (end < n && (text[end] | 0x20) == 'e') {
        const size_t digits = end + 1 + (end + 1 < n && (text[end + 1] == '-' || text[end + 1] == '+'));
        end = digits_end(text, n, digits);
        if (end == digits) return false;
    }
    if (end < n) return false;
    char *plain = gdn_jinja_alloc(run, n + 1), *to = plain;
    if (!plain) return false;
    for (i = 0; i < n; i++)
        if (text[i] != '_') *to++ = text[i];
    *to = 0;
    *d = strtod(plain, NULL);
    return true;
}

/* ---- conversion -------------------------------------------------------------------------------------------------------- */

bool gdn_jinja_to_float(jinja_run *run, const jinja_value *v, double *d)
{
    if (v->kind == JINJA_FLOAT) *d = v->as.number;
    else if (gdn_jinja_is_number(v)) *d = (double)gdn_jinja_integer(v);
    else return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a number is needed, not a %s", gdn_jinja_type(v));
    return true;
}

bool gdn_jinja_to_int(jinja_run *run, double d, int64_t *i)
{
    if (isnan(d) || isinf(d)) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "%g cannot be made an integer", d);
    const double limit = 9223372036854775808.0; /* 2^63 */
    if (d >= limit || d < -limit)
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the integer %g needs more than 64 bits", d);
    *i = (int64_t)d;
    return true;
}

/* ---- arithmetic ---------------------------------------------------------------------------------------------------------- */

static bool too_large(jinja_run *run)
{
    return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the result needs an integer of more than 64 bits");
}

static bool by_zero(jinja_run *run) { return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "division by zero"); }

static bool integer_power(jinja_run *run, int64_t base, int64_t exponent, int64_t *out)
{
    bool overflow = false; /* of the squares; it matters once they are used */
    for (*out = 1; exponent > 0; exponent >>= 1) {
        if (exponent & 1 && (overflow || __builtin_mul_overflow(*out, base, out))) return too_large(run);
        overflow |= __builtin_mul_overflow(base, base, &base);
    }
    return true;
}

static bool integers(jinja_run *run, char op, int64_t a, int64_t b, jinja_value *out)
{
    int64_t result = 0;
    bool    overflow = false;
    switch (op) {
    case '+': overflow = __builtin_add_overflow(a, b, &result); break;
    case '-': overflow = __builtin_sub_overflow(a, b, &result); break;
    case '*': overflow = __builtin_mul_overflow(a, b, &result); break;
    case 'P':
        if (!integer_power(run, a, b, &result)) return false;
        break;
    default: /* F and %: rounded towards minus infinity */
        if (b == 0) return by_zero(run);
        overflow = a == INT64_MIN && b == -1 && op == 'F';
        if (overflow || b == -1) {
            result = op == 'F' && !overflow ? -a : 0;
            break;
        }
        result = op == 'F' ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : a % b + (a % b && (a < 0) != (b < 0) ? b : 0);
    }
    if (overflow) return too_large(run);
    *out = gdn_jinja_int(result);
    return true;
}

/* a / b rounded once, where a and b themselves may not be doubles. */
static double divide(int64_t a, int64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    if (x == 0) return b < 0 ? -0.0 : 0.0;
    const int  shift = 64 + __builtin_clzll(x);
    const wide scaled = (wide)x << shift,
               quotient = scaled / y | (scaled % y != 0); /* 63 bits or more, the last sticky */
    const double magnitude = ldexp((double)quotient, -shift);
    return (a < 0) != (b < 0) ? -magnitude : magnitude;
}

static double float_mod(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0) return copysign(0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}

static double float_floor_div(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysign(0, a / b);
    const double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static bool float_power(jinja_run *run, double a, double b, double *out)
{
    if (a == 0 && b < 0) return by_zero(run);
    if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b))
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the power of a negative number is complex");
    *out = pow(a, b);
    if (isinf(*out) && isfinite(a) && isfinite(b))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the result of ** is out of range");
    return true;
}

bool gdn_jinja_arithmetic(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    const bool whole = a->kind != JINJA_FLOAT && b->kind != JINJA_FLOAT;
    if (whole && op != '/' && (op != 'P' || gdn_jinja_integer(b) >= 0))
        return integers(run, op, gdn_jinja_integer(a), gdn_jinja_integer(b), out);
    double x, y, result = 0;
    if (!gdn_jinja_to_float(run, a, &x) || !gdn_jinja_to_float(run, b, &y)) return false;
    if (strchr("/F%", op) && y == 0) return by_zero(run);
    if (whole && op == '/') {
        *out = gdn_jinja_float(divide(gdn_jinja_integer(a), gdn_jinja_integer(b)));
        return true;
    }
    switch (op) {
    case '+': result = x + y; break;
    case '-': result = x - y; break;
    case '*': result = x * y; break;
    case '/': result = x / y; break;
    case '%': result = float_mod(x, y); break;
    case 'F': result = float_floor_div(x, y); break;
    default:
        if (!float_power(run, x, y, &result)) return false;
    }
    *out = gdn_jinja_float(result);
    return true;
}

/* An integer against a double, without rounding the integer. */
static int compare_mixed(int64_t i, double d)
{
    if (d >= 0x1p63) return -1;
    if (d < -0x1p63) return 1;
    const int64_t whole = (int64_t)d;
    if (i != whole) return i < whole ? -1 : 1;
    return d > (double)whole ? -1 : d < (double)whole;
}

int gdn_jinja_compare_numbers(const jinja_value *a, const jinja_value *b)
{
    if ((a->kind == JINJA_FLOAT && isnan(a->as.number)) || (b->kind == JINJA_FLOAT && isnan(b->as.number))) return 2;
    if (a->kind == JINJA_FLOAT && b->kind == JINJA_FLOAT)
        return a->as.number < b->as.number ? -1 : a->as.number > b->as.number;
    if (a->kind == JINJA_FLOAT) return -compare_mixed(gdn_jinja_integer(b), a->as.number);
    if (b->kind == JINJA_FLOAT) return compare_mixed(gdn_jinja_integer(a), b->as.number);
    const int64_t x = gdn_jinja_integer(a), y = gdn_jinja_integer(b);
    return x < y ? -1 : x > y;
}

/* round(): to the even neighbour of the exact decimal value, which is what printf rounds to. */
bool gdn_jinja_round(jinja_run *run, const jinja_value *v, int64_t digits, jinja_value *out)
{
    *out = *v;
    if (v->kind == JINJA_BOOL) *out = gdn_jinja_int(v->as.flag);
    if (v->kind != JINJA_FLOAT && digits >= 0) return true;
    if (v->kind == JINJA_FLOAT && (!isfinite(v->as.number) || digits > 60)) return true;
    if (v->kind == JINJA_FLOAT && digits >= 0) {
        char text[JINJA_NUMBER_CAP];
        snprintf(text, sizeof text, "%.*f", (int)digits, v->as.number);
        *out = gdn_jinja_float(strtod(text, NULL));
        return true;
    }
    return gdn_jinja_fail(run, GDN_UNSUPPORTED, "rounding to a negative number of digits");
}
