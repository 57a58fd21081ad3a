/* str % values and str.format(): what both share is how one value is written into a field. */
#include "text/jinja.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a value is written: format()'s [[fill]align][sign][#][0][width][,][.precision][type], which % is brought to. */
typedef struct spec {
    jinja_value fill; /* MISSING: a space */
    char        align, sign, type, grouping;
    bool        alternate, zero;
    int64_t     width, precision; /* precision -1: not given */
} spec;

enum { MAX_PRECISION = 60 };

static bool bad(jinja_run *run, const char *what) { return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "format: %s", what); }

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

static size_t octal_or_binary(uint64_t u, int bits, char *digits)
{
    size_t n = 0;
    for (int shift = bits == 1 ? 63 : 63 / bits * bits; shift >= 0; shift -= bits) {
        const int digit = (int)(u >> shift) & ((1 << bits) - 1);
        if (n || digit || shift == 0) digits[n++] = (char)('0' + digit);
    }
    digits[n] = 0;
    return n;
}

/* The digits of |i|, and before them what `#` writes. */
static const char *integer_digits(int64_t i, char type, char *digits)
{
    const uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    switch (type) {
    case 'x': sprintf(digits, "%" PRIx64, u); return "0x";
    case 'X': sprintf(digits, "%" PRIX64, u); return "0X";
    case 'o': octal_or_binary(u, 3, digits); return "0o";
    case 'b': octal_or_binary(u, 1, digits); return "0b";
    default: sprintf(digits, "%" PRIu64, u); return "";
    }
}

/* Without a type: repr() without a precision, else 'g' that keeps a digit behind the point, and for that turns to an exponent
 * one power of ten earlier. */
static void untyped_digits(double d, int64_t precision, char *digits)
{
    const int n = precision > 0 ? (int)precision : 1;
    if (precision < 0 || !isfinite(d)) {
        gdn_jinja_repr_float(d, digits);
        return;
    }
    sprintf(digits, "%.*e", n - 1, d);
    char *exponent = strchr(digits, 'e');
    if (atoi(exponent + 1) == n - 1) {
        char *end = exponent;
        while (end > digits + 1 && end[-1] == '0' && memchr(digits, '.', (size_t)(end - digits))) end--;
        if (end[-1] == '.') end--;
        memmove(end, exponent, strlen(exponent) + 1);
        return;
    }
    sprintf(digits, "%.*g", n, d);
    if (!strpbrk(digits, ".e")) strcat(digits, ".0");
}

static void float_digits(double d, const spec *s, char *digits)
{
    const int  precision = s->precision < 0 ? 6 : (int)s->precision;
    const bool percent = s->type == '%';
    const char how[] = {'%', s->alternate ? '#' : '-', '.', '*', percent ? 'f' : s->type, 0};
    if (!s->type) {
        untyped_digits(d, s->precision, digits);
        return;
    }
    sprintf(digits, how, precision, percent ? d * 100 : d);
    if (percent) strcat(digits, "%");
}

/* Put a separator between groups of three digits before the point. */
static void group(char *digits, char separator)
{
    size_t whole = strspn(digits, "0123456789");
    for (size_t i = whole; i > 3;) {
        i -= 3;
        memmove(digits + i + 1, digits + i, strlen(digits + i) + 1);
        digits[i] = separator;
    }
}

static bool put_repeated(jinja_run *run, jinja_text *text, const jinja_string *fill, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!gdn_jinja_put_string(run, text, fill)) return false;
    return true;
}

/* Sign, prefix and body, filled up to the width. */
static bool put_field(jinja_run *run, jinja_text *text, const spec *s, const char *head, const jinja_string *body,
                      char default_align)
{
    static const jinja_string space = {.bytes = " ", .n = 1, .n_chars = 1}, zero = {.bytes = "0", .n = 1, .n_chars = 1};
    const jinja_string       *fill = s->fill.kind == JINJA_STRING ? s->fill.as.string : s->zero ? &zero : &space;
    const char                align = s->align ? s->align : s->zero && default_align == '>' ? '=' : default_align;
    const int64_t             pad = s->width - (int64_t)(strlen(head) + body->n_chars);
    const int64_t             left = pad <= 0 || align == '<' ? 0 : align == '^' ? pad / 2 : pad;
    if (align != '=' && !put_repeated(run, text, fill, left)) return false;
    if (!gdn_jinja_put_ascii(run, text, head)) return false;
    if (align == '=' && !put_repeated(run, text, fill, left)) return false;
    return gdn_jinja_put_string(run, text, body) && put_repeated(run, text, fill, pad - left);
}

static bool put_number(jinja_run *run, jinja_text *text, const spec *s, const jinja_value *v)
{
    char        head[8] = "", digits[2 * JINJA_NUMBER_CAP];
    const bool  whole = v->kind != JINJA_FLOAT && (!s->type || strchr("dxXob", s->type));
    jinja_value body;
    double      d = 0;
    if (s->precision > MAX_PRECISION)
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: a precision above %d", MAX_PRECISION);
    if (!whole && s->alternate && (!s->type || strchr("gG", s->type))) /* C libraries do not agree about it */
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: '#' for a number of type g");
    if (!whole && !gdn_jinja_to_float(run, v, &d)) return false;
    const bool negative = whole ? gdn_jinja_integer(v) < 0 : signbit(d) && !isnan(d);
    if (negative) strcpy(head, "-");
    else if (s->sign == '+' || s->sign == ' ') head[0] = s->sign;
    if (whole) {
        const char *prefix = integer_digits(gdn_jinja_integer(v), s->type, digits);
        if (s->alternate) strcat(head, prefix);
    } else float_digits(fabs(d), s, digits);
    if (s->grouping) group(digits, s->grouping);
    if (s->grouping && s->zero && (!s->align || s->align == '='))
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: zeros in front of grouped digits");
    return gdn_jinja_string(run, digits, strlen(digits), JINJA_TRUSTED, &body) &&
           put_field(run, text, s, head, body.as.string, '>');
}

static bool put_text(jinja_run *run, jinja_text *text, const spec *s, const jinja_string *string)
{
    jinja_value cut = gdn_jinja_str(string);
    if (s->precision >= 0 && (uint64_t)s->precision < string->n_chars &&
        !gdn_jinja_slice(run, string, 0, gdn_jinja_offset(string, (size_t)s->precision), &cut))
        return false;
    return put_field(run, text, s, "", cut.as.string, '<');
}

/* ---- % --------------------------------------------------------------------------------------------------------------------- */

typedef struct percent {
    const jinja_string *format;
    size_t              at;
    const jinja_value  *values; /* the right operand */
    size_t              used;   /* of it, where it is a tuple */
    bool                by_name;
} percent;

static bool next_value(jinja_run *run, percent *p, const jinja_value **v)
{
    const bool tuple = p->values->kind == JINJA_TUPLE;
    if (p->used >= (tuple ? p->values->as.list->n : 1)) return bad(run, "there are fewer values than places for them");
    *v = tuple ? &p->values->as.list->at[p->used] : p->values;
    p->used++;
    return true;
}

static char peek(const percent *p) { return p->at < p->format->n ? p->format->bytes[p->at] : 0; }

/* A number, or * for one out of the values. */
static bool read_number(jinja_run *run, percent *p, int64_t *n)
{
    const jinja_value *v;
    *n = 0;
    if (peek(p) == '*') {
        p->at++;
        if (!next_value(run, p, &v)) return false;
        if (v->kind != JINJA_INT) return bad(run, "* needs an integer");
        *n = v->as.integer;
        return true;
    }
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        *n = *n * 10 + (peek(p) - '0');
        if (*n > 100000000) return bad(run, "a width is too large");
    }
    return true;
}

static bool read_key(jinja_run *run, percent *p, jinja_value *v)
{
    const size_t from = ++p->at;
    jinja_value  key;
    for (int depth = 1; depth > 0; p->at++) {
        if (p->at >= p->format->n) return bad(run, "a ( of the format is not closed");
        depth += (peek(p) == '(') - (peek(p) == ')');
    }
    if (p->values->kind != JINJA_DICT) return bad(run, "names in the format need a dict");
    if (!gdn_jinja_slice(run, p->format, from, p->at - 1, &key) ||
        !gdn_jinja_dict_get(run, p->values->as.dict, &key, v))
        return false;
    p->by_name = true;
    return v->kind != JINJA_MISSING || bad(run, "a name of the format is not in the dict");
}

static bool read_flags(jinja_run *run, percent *p, spec *s)
{
    bool left = false;
    for (; peek(p) && strchr("-+ #0", peek(p)); p->at++) {
        const char flag = peek(p);
        left |= flag == '-';
        s->alternate |= flag == '#';
        s->zero |= flag == '0';
        if (flag == '+' || (flag == ' ' && !s->sign)) s->sign = flag;
    }
    if (!read_number(run, p, &s->width)) return false;
    if (s->width < 0) left = true, s->width = -s->width;
    if (peek(p) == '.') {
        p->at++;
        if (!read_number(run, p, &s->precision)) return false;
        if (s->precision < 0) s->precision = 0;
    }
    if (left) s->align = '<', s->zero = false;
    while (peek(p) == 'l' || peek(p) == 'h' || peek(p) == 'L') p->at++;
    return true;
}

static bool put_percent_char(jinja_run *run, jinja_text *text, const spec *s, const jinja_value *v)
{
    char        bytes[4];
    jinja_value string = *v;
    if (v->kind == JINJA_INT || v->kind == JINJA_BOOL) {
        const int64_t c = gdn_jinja_integer(v);
        if (c < 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return bad(run, "%c needs a character");
        char *copy = gdn_jinja_alloc(run, 4);
        if (!copy) return false;
        const size_t n = gdn_jinja_encode((uint32_t)c, bytes);
        memcpy(copy, bytes, n);
        if (!gdn_jinja_string(run, copy, n, JINJA_UNTRUSTED, &string)) return false;
    } else if (v->kind != JINJA_STRING || v->as.string->n_chars != 1) return bad(run, "%c needs a character");
    spec whole = *s;
    whole.precision = -1;
    whole.zero = false;
    if (!whole.align) whole.align = '>';
    return put_text(run, text, &whole, string.as.string);
}

static bool put_percent_text(jinja_run *run, jinja_text *text, const spec *s, const jinja_value *v, char type)
{
    jinja_text  repr = {.bytes = NULL};
    jinja_value string;
    spec        plain = *s;
    plain.zero = false;
    if (!plain.align) plain.align = '>';
    if (type == 's') return gdn_jinja_to_string(run, v, &string) && put_text(run, text, &plain, string.as.string);
    if (type == 'a') return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: %%a");
    return gdn_jinja_put_repr(run, &repr, v) && gdn_jinja_take(run, &repr, &string) &&
           put_text(run, text, &plain, string.as.string);
}

/* An integer of at least `precision` digits. */
static bool put_percent_integer(jinja_run *run, jinja_text *text, const spec *s, const jinja_value *v)
{
    char        head[8] = "", digits[80], padded[200];
    int64_t     i = 0;
    jinja_value body;
    if (v->kind == JINJA_FLOAT && s->type != 'd') return bad(run, "%x and %o need an integer");
    if (v->kind == JINJA_FLOAT ? !gdn_jinja_to_int(run, v->as.number, &i) : !gdn_jinja_is_number(v))
        return run->status ? false : bad(run, "%d needs a number");
    if (v->kind != JINJA_FLOAT) i = gdn_jinja_integer(v);
    if (s->precision > 100) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: a precision above 100 for an integer");
    if (i < 0) strcpy(head, "-");
    else head[0] = s->sign;
    const char *prefix = integer_digits(i, s->type, digits);
    if (s->alternate) strcat(head, prefix);
    const size_t n = strlen(digits), zeros = s->precision > (int64_t)n ? (size_t)s->precision - n : 0;
    memset(padded, '0', zeros);
    memcpy(padded + zeros, digits, n + 1);
    return gdn_jinja_string(run, padded, zeros + n, JINJA_TRUSTED, &body) &&
           put_field(run, text, s, head, body.as.string, '>');
}

static bool put_conversion(jinja_run *run, percent *p, jinja_text *text)
{
    if (peek(p) == '%') {
        p->at++;
        return gdn_jinja_put(run, text, "%", 1, JINJA_TRUSTED);
    }
    spec               s = {.precision = -1};
    jinja_value        by_name;
    const jinja_value *v = &by_name;
    const bool         named = peek(p) == '(';
    if ((named && !read_key(run, p, &by_name)) || !read_flags(run, p, &s)) return false;
    const char type = peek(p);
    p->at++;
    if (!type || !strchr("diouxXeEfFgGcrsa", type)) return bad(run, "the format has an unknown conversion");
    if (!named && !next_value(run, p, &v)) return false;
    if (strchr("rsa", type)) return put_percent_text(run, text, &s, v, type);
    if (type == 'c') return put_percent_char(run, text, &s, v);
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    s.type = strchr("iu", type) ? 'd' : type;
    if (strchr("doxX", s.type)) return put_percent_integer(run, text, &s, v);
    if (!gdn_jinja_is_number(v)) return bad(run, "a number is needed");
    return put_number(run, text, &s, v);
}

bool gdn_jinja_percent(jinja_run *run, const jinja_string *format, const jinja_value *values, jinja_value *out)
{
    percent    p = {.format = format, .values = values};
    jinja_text text = {.bytes = NULL};
    if (format->markup) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "%% on escaped text");
    while (p.at < format->n) {
        const char  *found = memchr(format->bytes + p.at, '%', format->n - p.at);
        const size_t plain = found ? (size_t)(found - format->bytes) : format->n;
        if (!gdn_jinja_put_slice(run, &text, format, p.at, plain)) return false;
        p.at = plain + 1;
        if (found && !put_conversion(run, &p, &text)) return false;
    }
    const bool tuple = values->kind == JINJA_TUPLE;
    const bool mapping = values->kind == JINJA_DICT || values->kind == JINJA_LIST || values->kind == JINJA_UNDEFINED;
    if (tuple ? p.used < values->as.list->n : !mapping && !p.used && !p.by_name)
        return bad(run, "there are more values than places for them");
    return gdn_jinja_take(run, &text, out);
}

/* ---- format() ---------------------------------------------------------------------------------------------------------------- */

typedef struct formatter {
    jinja_run        *run;
    const jinja_args *args;
    int               automatic; /* the next number of {}; -1 once numbers are written out */
} formatter;

static bool put_fields(formatter *f, jinja_text *text, const jinja_string *format, int depth);

static bool read_spec(jinja_run *run, const jinja_string *from, spec *s)
{
    size_t i = 0, second = 0;
    *s = (spec){.precision = -1};
    if (from->n) gdn_jinja_char(from->bytes, &second);
    if (second && second < from->n && strchr("<>=^", from->bytes[second])) {
        if (!gdn_jinja_slice(run, from, 0, second, &s->fill)) return false;
        i = second;
    }
    if (i < from->n && strchr("<>=^", from->bytes[i])) s->align = from->bytes[i++];
    if (i < from->n && strchr("+- ", from->bytes[i])) s->sign = from->bytes[i++];
    if (i < from->n && from->bytes[i] == '#') s->alternate = true, i++;
    if (i < from->n && from->bytes[i] == '0') s->zero = true, i++;
    percent p = {.format = from, .at = i};
    if (peek(&p) != '*' && !read_number(run, &p, &s->width)) return false;
    if (peek(&p) == ',' || peek(&p) == '_') s->grouping = from->bytes[p.at++];
    if (peek(&p) == '.') {
        p.at++;
        const size_t digits = p.at;
        if (peek(&p) == '*' || !read_number(run, &p, &s->precision))
            return run->status ? false : bad(run, "a precision is missing");
        if (p.at == digits) return bad(run, "a precision is missing");
    }
    if (p.at < from->n) s->type = from->bytes[p.at++];
    return p.at == from->n || bad(run, "a format specification is invalid");
}

/* format(v, spec) */
static bool put_formatted(jinja_run *run, jinja_text *text, const jinja_value *v, const jinja_string *from)
{
    spec s;
    if (from->n == 0) return gdn_jinja_put_value(run, text, v);
    if (v->kind == JINJA_UNDEFINED || !read_spec(run, from, &s))
        return run->status ? false : bad(run, "an undefined value takes no specification");
    if (v->kind == JINJA_STRING) {
        if ((s.type && s.type != 's') || s.sign || s.alternate || s.grouping || s.align == '=')
            return bad(run, "a string does not take this specification");
        return put_text(run, text, &s, v->as.string);
    }
    if (v->kind == JINJA_BOOL && !s.type)
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: a specification for a bool");
    if (!gdn_jinja_is_number(v)) return bad(run, "a value of this type takes no specification");
    if (s.type == 'c') return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: the type c");
    if (s.type == 'n' && s.grouping) return bad(run, "the type n takes no separator");
    if (s.type == 'n') s.type = v->kind == JINJA_FLOAT ? 'g' : 'd';
    const bool for_int = s.type && strchr("dxXob", s.type), for_float = s.type && strchr("eEfFgG%", s.type);
    if (s.type && !for_int && !for_float) return bad(run, "a number does not take this type");
    if ((for_int && v->kind == JINJA_FLOAT) || (!for_float && v->kind != JINJA_FLOAT && s.precision >= 0))
        return bad(run, "a number does not take this specification");
    if (s.grouping == ',' && s.type && strchr("xXob", s.type)) return bad(run, "',' is for decimal numbers");
    if (s.grouping && for_int && s.type != 'd')
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format: groups of digits that are not decimal");
    return put_number(run, text, &s, v);
}

/* The value that the start of a field's name means: a position or a name. */
static bool first_value(formatter *f, const jinja_string *name, jinja_value *v)
{
    jinja_run *run = f->run;
    int64_t    i = 0;
    bool       number = true;
    for (size_t k = 0; k < name->n; k++) number &= name->bytes[k] >= '0' && name->bytes[k] <= '9';
    if (!number) {
        for (int k = 0; k < f->args->n_named; k++)
            if (gdn_jinja_same(f->args->names[k], name)) return *v = f->args->named[k], true;
        return bad(run, "a name of the format is not among the arguments");
    }
    if (name->n && f->automatic > 0) return bad(run, "{} and {0} cannot be mixed");
    if (!name->n && f->automatic < 0) return bad(run, "{} and {0} cannot be mixed");
    if (name->n && gdn_jinja_parse_int(name->bytes, name->n, 10, &i) != 1) return bad(run, "a position is not valid");
    if (name->n) f->automatic = -1;
    else i = f->automatic++;
    if (i >= f->args->n) return bad(run, "there are fewer values than places for them");
    *v = f->args->at[i];
    return true;
}

/* name.attribute[key]... */
static bool field_value(formatter *f, const jinja_string *name, jinja_value *v)
{
    size_t      i = 0;
    jinja_value part;
    while (i < name->n && name->bytes[i] != '.' && name->bytes[i] != '[') i++;
    if (!gdn_jinja_slice(f->run, name, 0, i, &part) || !first_value(f, part.as.string, v)) return false;
    while (i < name->n) {
        const bool   attribute = name->bytes[i] == '.';
        const size_t from = ++i;
        int64_t      index;
        while (i < name->n && (attribute ? name->bytes[i] != '.' && name->bytes[i] != '[' : name->bytes[i] != ']')) i++;
        if (i == from || (!attribute && i == name->n)) return bad(f->run, "a field's name is not valid");
        if (!gdn_jinja_slice(f->run, name, from, i, &part)) return false;
        if (!attribute) i++;
        if (!attribute && i < name->n && name->bytes[i] != '.' && name->bytes[i] != '[')
            return bad(f->run, "a field's name is not valid");
        if (!attribute && part.as.string->bytes[0] != '-' && part.as.string->bytes[0] != '+' &&
            gdn_jinja_parse_int(part.as.string->bytes, part.as.string->n, 10, &index) == 1)
            part = gdn_jinja_int(index);
        if (!(attribute ? gdn_jinja_getattr(f->run, v, part.as.string, v) : gdn_jinja_getitem(f->run, v, &part, v)))
            return false;
    }
    return true;
}

/* The field whose text, without its braces, is `field`: name[!conversion][:spec]. */
static bool put_one_field(formatter *f, jinja_text *text, const jinja_string *field, int depth)
{
    jinja_run  *run = f->run;
    jinja_value name, spec_format, spec_value, v;
    jinja_text  spec_text = {.bytes = NULL}, repr = {.bytes = NULL};
    size_t      i = 0, end;
    for (bool inside = false; i < field->n && (inside || (field->bytes[i] != '!' && field->bytes[i] != ':')); i++)
        inside = field->bytes[i] == '[' || (inside && field->bytes[i] != ']');
    end = i;
    const char conversion = i + 1 < field->n && field->bytes[i] == '!' ? field->bytes[i + 1] : 0;
    if (i < field->n && field->bytes[i] == '!') i += 2;
    if (i > field->n || (i < field->n && field->bytes[i] != ':')) return bad(run, "a conversion is not valid");
    if (!gdn_jinja_slice(run, field, 0, end, &name) || !field_value(f, name.as.string, &v)) return false;
    if (!gdn_jinja_slice(run, field, i < field->n ? i + 1 : i, field->n, &spec_format) ||
        !put_fields(f, &spec_text, spec_format.as.string, depth + 1) || !gdn_jinja_take(run, &spec_text, &spec_value))
        return false;
    if (conversion == 's' && !gdn_jinja_to_string(run, &v, &v)) return false;
    if (conversion == 'r' && (!gdn_jinja_put_repr(run, &repr, &v) || !gdn_jinja_take(run, &repr, &v))) return false;
    if (conversion && conversion != 's' && conversion != 'r') return bad(run, "a conversion is not valid");
    return put_formatted(run, text, &v, spec_value.as.string);
}

static bool put_fields(formatter *f, jinja_text *text, const jinja_string *format, int depth)
{
    const char *bytes = format->bytes;
    if (depth > 1 && memchr(bytes, '{', format->n)) return bad(f->run, "fields are nested too deep");
    for (size_t i = 0; i < format->n;) {
        size_t plain = i;
        while (plain < format->n && bytes[plain] != '{' && bytes[plain] != '}') plain++;
        if (!gdn_jinja_put_slice(f->run, text, format, i, plain)) return false;
        i = plain;
        if (i == format->n) break;
        if (i + 1 < format->n && bytes[i + 1] == bytes[i]) {
            if (!gdn_jinja_put_slice(f->run, text, format, i, i + 1)) return false;
            i += 2;
            continue;
        }
        if (bytes[i] == '}') return bad(f->run, "a '}' stands alone");
        const size_t from = ++i;
        jinja_value  field;
        for (int open = 1; open > 0; i++) {
            if (i >= format->n) return bad(f->run, "a '{' is not closed");
            open += (bytes[i] == '{') - (bytes[i] == '}');
        }
        if (!gdn_jinja_slice(f->run, format, from, i - 1, &field) || !put_one_field(f, text, field.as.string, depth))
            return false;
    }
    return true;
}

bool gdn_jinja_format(jinja_run *run, const jinja_string *format, const jinja_args *args, jinja_value *out)
{
    formatter  f = {run, args, 0};
    jinja_text text = {.bytes = NULL};
    if (format->markup) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format() of escaped text");
    return put_fields(&f, &text, format, 0) && gdn_jinja_take(run, &text, out);
}
