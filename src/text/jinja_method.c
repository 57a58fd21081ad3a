/* The methods of strings, apart from those in jinja_split.c. */
#include "text/jinja.h"
#include <string.h>

#define METHOD(name)                                                                                             \
    static bool name(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[], \
                     jinja_value *out)

/* ---- parts of a string --------------------------------------------------------------------------------------------------- */

/* Characters start..end of a string, as optional arguments give them, in bytes.  false in *valid: start is behind the end. */
static bool read_range(jinja_run *run, const jinja_string *s, const jinja_value slots[2], size_t *from, size_t *to,
                       bool *valid)
{
    static const jinja_value missing = {.kind = JINJA_MISSING};
    const int64_t            n = (int64_t)s->n_chars;
    int64_t                  at[2];
    for (int i = 0; i < 2; i++) {
        const jinja_value *given = slots[i].kind == JINJA_NONE ? &missing : &slots[i];
        if (!gdn_jinja_int_arg(run, "a range of a string", given, i ? n : 0, &at[i])) return false;
        if (at[i] < 0) at[i] = at[i] < -n ? 0 : at[i] + n;
    }
    if (at[1] > n) at[1] = n;
    *valid = at[0] <= at[1];
    if (!*valid) return true;
    *from = gdn_jinja_offset(s, (size_t)at[0]);
    *to = gdn_jinja_offset(s, (size_t)at[1]);
    return gdn_jinja_charge(run, s->n / 16);
}

/* The place of slots[0] in characters, or -1. */
static bool find(jinja_run *run, const jinja_value *self, const jinja_value slots[], bool last, int64_t *at)
{
    const jinja_string *s = self->as.string, *what;
    size_t              from = 0, to = 0;
    bool                valid;
    *at = -1;
    if (!gdn_jinja_string_arg(run, "find", &slots[0], &what) || !read_range(run, s, &slots[1], &from, &to, &valid))
        return false;
    if (!valid) return true;
    const char *found = memmem(s->bytes + from, to - from, what->bytes, what->n);
    if (last && !gdn_jinja_find_last(run, s->bytes + from, to - from, what, &found)) return false;
    if (found) *at = (int64_t)gdn_jinja_count(s->bytes, (size_t)(found - s->bytes));
    return gdn_jinja_charge(run, s->n / 16);
}

METHOD(method_find)
{
    int64_t at;
    (void)args;
    if (!find(run, self, slots, false, &at)) return false;
    *out = gdn_jinja_int(at);
    return true;
}

METHOD(method_rfind)
{
    int64_t at;
    (void)args;
    if (!find(run, self, slots, true, &at)) return false;
    *out = gdn_jinja_int(at);
    return true;
}

static bool found_or_fail(jinja_run *run, const jinja_value *at)
{
    return at->as.integer >= 0 || gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "index: the substring is not there");
}

METHOD(method_index) { return method_find(run, self, args, slots, out) && found_or_fail(run, out); }
METHOD(method_rindex) { return method_rfind(run, self, args, slots, out) && found_or_fail(run, out); }

METHOD(method_count)
{
    const jinja_string *s = self->as.string, *what;
    size_t              from = 0, to = 0;
    bool                valid;
    int64_t             n = 0;
    (void)args;
    if (!gdn_jinja_string_arg(run, "count", &slots[0], &what) || !read_range(run, s, &slots[1], &from, &to, &valid))
        return false;
    if (valid && what->n == 0) n = (int64_t)gdn_jinja_count(s->bytes + from, to - from) + 1;
    while (valid && what->n) {
        const char *found = memmem(s->bytes + from, to - from, what->bytes, what->n);
        if (!found) break;
        from = (size_t)(found - s->bytes) + what->n;
        n++;
    }
    *out = gdn_jinja_int(n);
    return gdn_jinja_charge(run, s->n / 16);
}

/* startswith, endswith: slots[0] is a string or a tuple of them. */
static bool has_affix(jinja_run *run, const jinja_value *self, const jinja_value slots[], bool end, jinja_value *out)
{
    const jinja_string *s = self->as.string, *affix;
    const jinja_list    one = {(jinja_value *)&slots[0], 1, false};
    const jinja_list   *all = slots[0].kind == JINJA_TUPLE ? slots[0].as.list : &one;
    size_t              from = 0, to = 0;
    bool                valid, holds = false;
    if (!read_range(run, s, &slots[1], &from, &to, &valid)) return false;
    for (size_t i = 0; i < all->n && !holds; i++) {
        if (!gdn_jinja_string_arg(run, end ? "endswith" : "startswith", &all->at[i], &affix)) return false;
        holds =
            valid && affix->n <= to - from && !memcmp(s->bytes + (end ? to - affix->n : from), affix->bytes, affix->n);
    }
    *out = gdn_jinja_bool(holds);
    return true;
}

METHOD(method_startswith)
{
    (void)args;
    return has_affix(run, self, slots, false, out);
}

METHOD(method_endswith)
{
    (void)args;
    return has_affix(run, self, slots, true, out);
}

METHOD(method_removeprefix)
{
    const jinja_string *s = self->as.string, *affix;
    (void)args;
    if (!gdn_jinja_string_arg(run, "removeprefix", &slots[0], &affix)) return false;
    const bool has = affix->n <= s->n && !memcmp(s->bytes, affix->bytes, affix->n);
    return gdn_jinja_slice(run, s, has ? affix->n : 0, s->n, out);
}

METHOD(method_removesuffix)
{
    const jinja_string *s = self->as.string, *affix;
    (void)args;
    if (!gdn_jinja_string_arg(run, "removesuffix", &slots[0], &affix)) return false;
    const bool has = affix->n <= s->n && !memcmp(s->bytes + s->n - affix->n, affix->bytes, affix->n);
    return gdn_jinja_slice(run, s, 0, s->n - (has ? affix->n : 0), out);
}

/* ---- strip ----------------------------------------------------------------------------------------------------------------- */

static bool strips(uint32_t c, const jinja_string *chars)
{
    if (!chars) return gdn_jinja_is_space(c);
    for (size_t i = 0; i < chars->n;)
        if (gdn_jinja_char(chars->bytes, &i) == c) return true;
    return false;
}

bool gdn_jinja_strip(jinja_run *run, const jinja_string *s, const jinja_string *chars, bool left, bool right,
                     jinja_value *out)
{
    size_t from = 0, to = s->n;
    while (left && from < to) {
        size_t next = from;
        if (!strips(gdn_jinja_char(s->bytes, &next), chars)) break;
        from = next;
    }
    while (right && to > from) {
        size_t start = gdn_jinja_char_before(s->bytes, to), next = start;
        if (!strips(gdn_jinja_char(s->bytes, &next), chars)) break;
        to = start;
    }
    return gdn_jinja_charge(run, (s->n - (to - from)) * (chars ? chars->n + 1 : 1) / 4) &&
           gdn_jinja_slice(run, s, from, to, out);
}

static bool strip(jinja_run *run, const jinja_value *self, const jinja_value slots[], bool left, bool right,
                  jinja_value *out)
{
    const jinja_string *chars = NULL;
    if (slots[0].kind != JINJA_MISSING && slots[0].kind != JINJA_NONE &&
        !gdn_jinja_string_arg(run, "strip", &slots[0], &chars))
        return false;
    return gdn_jinja_strip(run, self->as.string, chars, left, right, out);
}

METHOD(method_strip)
{
    (void)args;
    return strip(run, self, slots, true, true, out);
}

METHOD(method_lstrip)
{
    (void)args;
    return strip(run, self, slots, true, false, out);
}

METHOD(method_rstrip)
{
    (void)args;
    return strip(run, self, slots, false, true, out);
}

/* ---- replace, pad ------------------------------------------------------------------------------------------------------------ */

bool gdn_jinja_replace(jinja_run *run, const jinja_string *s, const jinja_string *old, const jinja_string *by,
                       int64_t count, jinja_value *out)
{
    jinja_text text = {.markup = s->markup};
    size_t     from = 0;
    if (!gdn_jinja_charge(run, s->n / 16)) return false;
    if (old->n == 0) { /* between all characters, and around them */
        for (; count != 0; count--) {
            size_t next = from;
            if (!gdn_jinja_put_string(run, &text, by)) return false;
            if (from == s->n) break;
            gdn_jinja_char(s->bytes, &next);
            if (!gdn_jinja_put_slice(run, &text, s, from, next)) return false;
            from = next;
        }
    }
    for (; old->n && count != 0; count--) {
        const char *found = memmem(s->bytes + from, s->n - from, old->bytes, old->n);
        if (!found) break;
        const size_t at = (size_t)(found - s->bytes);
        if (!gdn_jinja_put_slice(run, &text, s, from, at) || !gdn_jinja_put_string(run, &text, by)) return false;
        from = at + old->n;
    }
    return gdn_jinja_put_slice(run, &text, s, from, s->n) && gdn_jinja_take(run, &text, out);
}

METHOD(method_replace)
{
    const jinja_string *s = self->as.string, *old, *by;
    jinja_value         with = slots[1];
    int64_t             count;
    (void)args;
    if (s->markup && !gdn_jinja_escape(run, &with, &with)) return false;
    return gdn_jinja_string_arg(run, "replace", &slots[0], &old) && gdn_jinja_string_arg(run, "replace", &with, &by) &&
           gdn_jinja_int_arg(run, "replace", &slots[2], -1, &count) && gdn_jinja_replace(run, s, old, by, count, out);
}

bool gdn_jinja_pad(jinja_run *run, const jinja_string *s, int64_t width, char side, const jinja_string *fill,
                   jinja_value *out)
{
    const int64_t pad = width - (int64_t)s->n_chars, left = side == '<'   ? 0
                                                            : side == '>' ? pad
                                                                          : pad / 2 + (pad & width & 1);
    jinja_text    text = {.markup = s->markup};
    *out = gdn_jinja_str(s);
    if (pad <= 0) return true;
    for (int64_t i = 0; i < pad; i++)
        if ((i == left && !gdn_jinja_put_string(run, &text, s)) || !gdn_jinja_put_string(run, &text, fill))
            return false;
    return (left < pad || gdn_jinja_put_string(run, &text, s)) && gdn_jinja_take(run, &text, out);
}

static bool pad(jinja_run *run, const jinja_value *self, const jinja_value slots[], char side, jinja_value *out)
{
    static const jinja_string space = {.bytes = " ", .n = 1, .n_chars = 1};
    const jinja_string       *fill = &space;
    int64_t                   width;
    if (!gdn_jinja_int_arg(run, "the width", &slots[0], 0, &width)) return false;
    if (slots[1].kind != JINJA_MISSING && !gdn_jinja_string_arg(run, "the fill character", &slots[1], &fill))
        return false;
    if (fill->n_chars != 1) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the fill character must be one character");
    return gdn_jinja_pad(run, self->as.string, width, side, fill, out);
}

METHOD(method_ljust)
{
    (void)args;
    return pad(run, self, slots, '<', out);
}

METHOD(method_rjust)
{
    (void)args;
    return pad(run, self, slots, '>', out);
}

METHOD(method_center)
{
    (void)args;
    return pad(run, self, slots, '^', out);
}

METHOD(method_zfill)
{
    static const jinja_string zero = {.bytes = "0", .n = 1, .n_chars = 1};
    const jinja_string       *s = self->as.string;
    jinja_text                text = {.markup = s->markup};
    jinja_value               rest;
    int64_t                   width;
    (void)args;
    if (!gdn_jinja_int_arg(run, "zfill", &slots[0], 0, &width)) return false;
    const size_t sign = s->n && (s->bytes[0] == '-' || s->bytes[0] == '+');
    return gdn_jinja_put_slice(run, &text, s, 0, sign) && gdn_jinja_slice(run, s, sign, s->n, &rest) &&
           gdn_jinja_pad(run, rest.as.string, width < (int64_t)sign ? 0 : width - (int64_t)sign, '>', &zero, &rest) &&
           gdn_jinja_put_string(run, &text, rest.as.string) && gdn_jinja_take(run, &text, out);
}

/* ---- case, classes ------------------------------------------------------------------------------------------------------------- */

static bool change_case(jinja_run *run, const jinja_value *self, jinja_case how, jinja_value *out)
{
    jinja_text text = {.markup = self->as.string->markup};
    return gdn_jinja_put_case(run, &text, self->as.string, 0, self->as.string->n, how) &&
           gdn_jinja_take(run, &text, out);
}

#define CASE_METHOD(name, how)                   \
    METHOD(name)                                 \
    {                                            \
        (void)args, (void)slots;                 \
        return change_case(run, self, how, out); \
    }
CASE_METHOD(method_upper, JINJA_UPPER)
CASE_METHOD(method_lower, JINJA_LOWER)
CASE_METHOD(method_capitalize, JINJA_CAPITALIZE)
CASE_METHOD(method_title, JINJA_TITLE)
CASE_METHOD(method_swapcase, JINJA_SWAPCASE)

/* Whether a string has characters, and all are of a class. */
static bool all_are(jinja_run *run, const jinja_value *self, bool (*is)(uint32_t), bool empty, jinja_value *out)
{
    const jinja_string *s = self->as.string;
    bool                holds = empty || s->n > 0;
    for (size_t i = 0; i < s->n && holds;) holds = is(gdn_jinja_char(s->bytes, &i));
    *out = gdn_jinja_bool(holds);
    return gdn_jinja_charge(run, s->n / 4);
}

static bool is_ascii(uint32_t c) { return c < 0x80; }

#define CLASS_METHOD(name, is, empty)              \
    METHOD(name)                                   \
    {                                              \
        (void)args, (void)slots;                   \
        return all_are(run, self, is, empty, out); \
    }
CLASS_METHOD(method_isalnum, gdn_jinja_is_alnum, false)
CLASS_METHOD(method_isalpha, gdn_jinja_is_alpha, false)
CLASS_METHOD(method_isascii, is_ascii, true)
CLASS_METHOD(method_isdecimal, gdn_jinja_is_digit, false)
CLASS_METHOD(method_isdigit, gdn_jinja_is_any_digit, false)
CLASS_METHOD(method_isprintable, gdn_jinja_is_printable, true)
CLASS_METHOD(method_isspace, gdn_jinja_is_space, false)

bool gdn_jinja_all_case(const jinja_string *s, bool upper)
{
    bool any = false;
    for (size_t i = 0; i < s->n;) {
        const uint32_t c = gdn_jinja_char(s->bytes, &i);
        if (gdn_jinja_is_title(c) || (upper ? gdn_jinja_is_lower(c) : gdn_jinja_is_upper(c))) return false;
        any |= upper ? gdn_jinja_is_upper(c) : gdn_jinja_is_lower(c);
    }
    return any;
}

METHOD(method_islower)
{
    (void)args, (void)slots;
    *out = gdn_jinja_bool(gdn_jinja_all_case(self->as.string, false));
    return gdn_jinja_charge(run, self->as.string->n / 4);
}

METHOD(method_isupper)
{
    (void)args, (void)slots;
    *out = gdn_jinja_bool(gdn_jinja_all_case(self->as.string, true));
    return gdn_jinja_charge(run, self->as.string->n / 4);
}

/* ---- format ---------------------------------------------------------------------------------------------------------------------- */

METHOD(method_format)
{
    (void)slots;
    return gdn_jinja_format(run, self->as.string, args, out);
}

METHOD(method_format_map)
{
    (void)args;
    if (slots[0].kind != JINJA_DICT) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "format_map takes a dict");
    const jinja_dict *dict = slots[0].as.dict;
    jinja_args        named = {.names = gdn_jinja_array(run, dict->n, sizeof *named.names), .named = dict->values};
    if (!named.names) return false;
    for (size_t i = 0; i < dict->n; i++) {
        if (dict->keys[i].kind != JINJA_STRING)
            return gdn_jinja_fail(run, GDN_UNSUPPORTED, "format_map with keys other than strings");
        named.names[named.n_named++] = dict->keys[i].as.string;
    }
    return gdn_jinja_format(run, self->as.string, &named, out);
}

const jinja_filter gdn_jinja_string_methods[] = {
    {"capitalize", "/", method_capitalize},
    {"casefold", NULL, NULL},
    {"center", "width =fillchar /", method_center},
    {"count", "sub =start end /", method_count},
    {"encode", NULL, NULL},
    {"endswith", "suffix =start end /", method_endswith},
    {"expandtabs", NULL, NULL},
    {"find", "sub =start end /", method_find},
    {"format", NULL, method_format},
    {"format_map", "mapping /", method_format_map},
    {"index", "sub =start end /", method_index},
    {"isalnum", "/", method_isalnum},
    {"isalpha", "/", method_isalpha},
    {"isascii", "/", method_isascii},
    {"isdecimal", "/", method_isdecimal},
    {"isdigit", "/", method_isdigit},
    {"isidentifier", NULL, NULL},
    {"islower", "/", method_islower},
    {"isnumeric", NULL, NULL},
    {"isprintable", "/", method_isprintable},
    {"isspace", "/", method_isspace},
    {"istitle", NULL, NULL},
    {"isupper", "/", method_isupper},
    {"ljust", "width =fillchar /", method_ljust},
    {"lower", "/", method_lower},
    {"lstrip", "=chars /", method_lstrip},
    {"maketrans", NULL, NULL},
    {"removeprefix", "prefix /", method_removeprefix},
    {"removesuffix", "suffix /", method_removesuffix},
    {"replace", "old new =count /", method_replace},
    {"rfind", "sub =start end /", method_rfind},
    {"rindex", "sub =start end /", method_rindex},
    {"rjust", "width =fillchar /", method_rjust},
    {"rstrip", "=chars /", method_rstrip},
    {"startswith", "prefix =start end /", method_startswith},
    {"strip", "=chars /", method_strip},
    {"swapcase", "/", method_swapcase},
    {"title", "/", method_title},
    {"translate", NULL, NULL},
    {"upper", "/", method_upper},
    {"zfill", "width /", method_zfill},
    {NULL, NULL, NULL},
};
