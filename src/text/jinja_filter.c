/* Filters of strings and numbers, and the table of all filters. */
#include "text/jinja.h"
#include <math.h>
#include <string.h>

#define FILTER(name)                                                                                          \
    static bool name(jinja_run *run, const jinja_value *v, const jinja_args *args, const jinja_value slots[], \
                     jinja_value *out)

static const jinja_value missing = {.kind = JINJA_MISSING};

/* str(v), where v stays what it is if it is a string. */
static bool text_of(jinja_run *run, const jinja_value *v, const jinja_string **s)
{
    jinja_value string;
    if (!gdn_jinja_to_string(run, v, &string)) return false;
    *s = string.as.string;
    return true;
}

/* str(v), where a Markup becomes a plain string. */
static bool plain_text_of(jinja_run *run, const jinja_value *v, const jinja_string **s)
{
    if (!text_of(run, v, s)) return false;
    if (!(*s)->markup) return true;
    jinja_string *plain = gdn_jinja_alloc(run, sizeof *plain);
    if (!plain) return false;
    *plain = **s;
    plain->markup = false;
    *s = plain;
    return true;
}

/* ---- strings ------------------------------------------------------------------------------------------------------------- */

FILTER(filter_string)
{
    (void)args, (void)slots;
    return gdn_jinja_to_string(run, v, out);
}

FILTER(filter_trim)
{
    const jinja_string *s, *chars = NULL;
    (void)args;
    if (!text_of(run, v, &s)) return false;
    if (slots[0].kind != JINJA_MISSING && slots[0].kind != JINJA_NONE &&
        !gdn_jinja_string_arg(run, "trim", &slots[0], &chars))
        return false;
    return gdn_jinja_strip(run, s, chars, true, true, out);
}

static bool change_case(jinja_run *run, const jinja_value *v, jinja_case how, jinja_value *out)
{
    const jinja_string *s;
    if (!text_of(run, v, &s)) return false;
    jinja_text text = {.markup = s->markup};
    return gdn_jinja_put_case(run, &text, s, 0, s->n, how) && gdn_jinja_take(run, &text, out);
}

FILTER(filter_upper)
{
    (void)args, (void)slots;
    return change_case(run, v, JINJA_UPPER, out);
}

FILTER(filter_lower)
{
    (void)args, (void)slots;
    return change_case(run, v, JINJA_LOWER, out);
}

FILTER(filter_capitalize)
{
    (void)args, (void)slots;
    return change_case(run, v, JINJA_CAPITALIZE, out);
}

static bool begins_word(uint32_t c) { return gdn_jinja_is_space(c) || (c < 0x80 && c && strchr("-({[<", (int)c)); }

/* Words begin behind spaces, - and opening brackets: their first character upper, the others lower. */
FILTER(filter_title)
{
    const jinja_string *s;
    jinja_text          text = {.bytes = NULL};
    (void)args, (void)slots;
    if (!text_of(run, v, &s)) return false;
    for (size_t from = 0, to = 0; from < s->n; from = to) {
        size_t     first = from;
        const bool between = begins_word(gdn_jinja_char(s->bytes, &first));
        for (size_t next = to = first; next < s->n; to = next)
            if (begins_word(gdn_jinja_char(s->bytes, &next)) != between) break;
        if (!gdn_jinja_put_case(run, &text, s, from, first, JINJA_UPPER) ||
            !gdn_jinja_put_case(run, &text, s, first, to, JINJA_LOWER))
            return false;
    }
    return gdn_jinja_take(run, &text, out);
}

FILTER(filter_replace)
{
    const jinja_string *s, *old, *by;
    int64_t             count;
    (void)args;
    return plain_text_of(run, v, &s) && plain_text_of(run, &slots[0], &old) && plain_text_of(run, &slots[1], &by) &&
           gdn_jinja_int_arg(run, "replace", slots[2].kind == JINJA_NONE ? &missing : &slots[2], -1, &count) &&
           gdn_jinja_replace(run, s, old, by, count, out);
}

FILTER(filter_center)
{
    static const jinja_string space = {.bytes = " ", .n = 1, .n_chars = 1};
    const jinja_string       *s;
    int64_t                   width;
    (void)args;
    return text_of(run, v, &s) && gdn_jinja_int_arg(run, "center", &slots[0], 80, &width) &&
           gdn_jinja_pad(run, s, width, '^', &space, out);
}

/* What lines are indented with: a number of spaces, 4 if not given, or a string. */
static bool indention(jinja_run *run, const jinja_value *width, jinja_value *out)
{
    jinja_value n = *width;
    if (width->kind == JINJA_STRING) *out = n;
    if (width->kind == JINJA_STRING) return true;
    if (n.kind == JINJA_MISSING) n = gdn_jinja_int(4);
    return gdn_jinja_string(run, " ", 1, JINJA_TRUSTED, out) && gdn_jinja_binary(run, '*', out, &n, out);
}

FILTER(filter_indent)
{
    const bool  first = gdn_jinja_truth(&slots[1]), blank = gdn_jinja_truth(&slots[2]);
    jinja_value newline, whole, lines, indent;
    jinja_text  text = {.markup = v->kind == JINJA_STRING && v->as.string->markup};
    (void)args;
    if (!indention(run, &slots[0], &indent) || !gdn_jinja_string(run, "\n", 1, JINJA_TRUSTED, &newline) ||
        !gdn_jinja_binary(run, '+', v, &newline, &whole) || !gdn_jinja_splitlines(run, whole.as.string, false, &lines))
        return false;
    for (size_t i = 0; i < lines.as.list->n; i++) {
        const jinja_string *line = lines.as.list->at[i].as.string;
        const bool          indented = i == 0 ? first : blank || line->n;
        if ((i && !gdn_jinja_put_string(run, &text, newline.as.string)) ||
            (indented && !gdn_jinja_put_string(run, &text, indent.as.string)) ||
            !gdn_jinja_put_string(run, &text, line))
            return false;
    }
    return gdn_jinja_take(run, &text, out);
}

/* Where the last word of the first n bytes begins with its space; n if there is no space. */
static size_t before_last_word(const jinja_string *s, size_t n)
{
    for (size_t i = n; i > 0; i--)
        if (s->bytes[i - 1] == ' ') return i - 1;
    return n;
}

FILTER(filter_truncate)
{
    static const jinja_string dots = {.bytes = "...", .n = 3, .n_chars = 3};
    const jinja_string       *s, *end = &dots;
    int64_t                   length, leeway, n_chars;
    jinja_text                text = {.bytes = NULL};
    (void)args;
    if (!gdn_jinja_int_arg(run, "truncate", &slots[0], 255, &length) ||
        (slots[2].kind != JINJA_MISSING && !gdn_jinja_string_arg(run, "truncate", &slots[2], &end)) ||
        !gdn_jinja_int_arg(run, "truncate", slots[3].kind == JINJA_NONE ? &missing : &slots[3], 5, &leeway) ||
        !gdn_jinja_length(run, v, &n_chars))
        return false;
    if (length < (int64_t)end->n_chars || leeway < 0)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "truncate: the length must be at least that of the end");
    *out = *v;
    if (n_chars - leeway <= length) return true;
    if (!gdn_jinja_string_arg(run, "truncate", v, &s)) return false;
    if (s->markup || end->markup) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "truncate on escaped text");
    size_t n = gdn_jinja_offset(s, (size_t)length - end->n_chars);
    if (!gdn_jinja_truth(&slots[1])) n = before_last_word(s, n);
    return gdn_jinja_put_slice(run, &text, s, 0, n) && gdn_jinja_put_string(run, &text, end) &&
           gdn_jinja_take(run, &text, out);
}

FILTER(filter_wordcount)
{
    const jinja_string *s;
    int64_t             n = 0;
    bool                inside = false;
    (void)args, (void)slots;
    if (!text_of(run, v, &s) || !gdn_jinja_charge(run, s->n / 4)) return false;
    for (size_t i = 0; i < s->n;) {
        const uint32_t c = gdn_jinja_char(s->bytes, &i);
        const bool     word = c == '_' || gdn_jinja_is_alnum(c);
        n += word && !inside;
        inside = word;
    }
    *out = gdn_jinja_int(n);
    return true;
}

FILTER(filter_format)
{
    const jinja_string *s;
    jinja_list          all = {args->at, (size_t)args->n, false};
    jinja_dict          named = {.keys = NULL};
    (void)slots;
    if (!text_of(run, v, &s)) return false;
    if (args->n && args->n_named)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "format takes values by position or by name, not both");
    for (int i = 0; i < args->n_named; i++) {
        const jinja_value key = gdn_jinja_str(args->names[i]);
        if (!gdn_jinja_dict_set(run, &named, &key, &args->named[i])) return false;
    }
    jinja_value values = {.kind = JINJA_TUPLE, .as.list = &all};
    if (args->n_named) values = (jinja_value){.kind = JINJA_DICT, .as.dict = &named};
    return gdn_jinja_percent(run, s, &values, out);
}

FILTER(filter_safe)
{
    const jinja_string *s;
    (void)args, (void)slots;
    if (!text_of(run, v, &s)) return false;
    jinja_string *markup = gdn_jinja_alloc(run, sizeof *markup);
    if (!markup) return false;
    *markup = *s;
    markup->markup = true;
    *out = gdn_jinja_str(markup);
    return true;
}

FILTER(filter_escape)
{
    (void)args, (void)slots;
    return gdn_jinja_escape(run, v, out);
}

FILTER(filter_forceescape)
{
    const jinja_string *s;
    jinja_value         plain;
    (void)args, (void)slots;
    if (!plain_text_of(run, v, &s)) return false;
    plain = gdn_jinja_str(s);
    return gdn_jinja_escape(run, &plain, out);
}

FILTER(filter_tojson)
{
    (void)slots;
    return gdn_jinja_tojson(run, v, args, out);
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

/* int(text, base); where that fails int(float(text)), and where that fails the default. */
static bool int_of_text(jinja_run *run, const jinja_string *s, const jinja_value *otherwise, int64_t base,
                        jinja_value *out)
{
    int64_t i = 0;
    double  d;
    if (base != 0 && (base < 2 || base > 36)) base = 0x7F; /* a ValueError in Python: nothing is an integer */
    const int kind = base == 0x7F ? 0 : gdn_jinja_parse_int(s->bytes, s->n, (int)base, &i);
    *out = kind == 1 ? gdn_jinja_int(i) : *otherwise;
    if (kind < 0) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "an integer needs more than 64 bits");
    if (kind == 1 || !gdn_jinja_parse_float(run, s->bytes, s->n, &d)) return !run->status;
    if (isnan(d) || isinf(d)) return true;
    if (!gdn_jinja_to_int(run, d, &i)) return false;
    *out = gdn_jinja_int(i);
    return true;
}

FILTER(filter_int)
{
    const jinja_value otherwise = slots[0].kind == JINJA_MISSING ? gdn_jinja_int(0) : slots[0];
    int64_t           base, i;
    (void)args;
    if (!gdn_jinja_int_arg(run, "int", &slots[1], 10, &base)) return false;
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (v->kind == JINJA_STRING) return int_of_text(run, v->as.string, &otherwise, base, out);
    *out = otherwise;
    if (v->kind == JINJA_INT || v->kind == JINJA_BOOL) *out = gdn_jinja_int(gdn_jinja_integer(v));
    if (v->kind != JINJA_FLOAT || isnan(v->as.number)) return true;
    if (!gdn_jinja_to_int(run, v->as.number, &i)) return false;
    *out = gdn_jinja_int(i);
    return true;
}

FILTER(filter_float)
{
    double d;
    (void)args;
    *out = slots[0].kind == JINJA_MISSING ? gdn_jinja_float(0) : slots[0];
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (v->kind == JINJA_STRING && gdn_jinja_parse_float(run, v->as.string->bytes, v->as.string->n, &d))
        *out = gdn_jinja_float(d);
    else if (gdn_jinja_is_number(v)) {
        if (!gdn_jinja_to_float(run, v, &d)) return false;
        *out = gdn_jinja_float(d);
    }
    return !run->status;
}

FILTER(filter_abs)
{
    (void)args, (void)slots;
    if (!gdn_jinja_is_number(v))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "abs takes a number, not a %s", gdn_jinja_type(v));
    if (v->kind == JINJA_FLOAT) *out = gdn_jinja_float(fabs(v->as.number));
    else if (gdn_jinja_integer(v) < 0) return gdn_jinja_negate(run, v, out);
    else *out = gdn_jinja_int(gdn_jinja_integer(v));
    return true;
}

/* ceil or floor to a number of decimal places, as (v * 10**places) made whole / 10**places. */
static bool round_to(jinja_run *run, const jinja_value *v, int64_t places, bool up, jinja_value *out)
{
    const jinja_value ten = gdn_jinja_int(10), power = gdn_jinja_int(places);
    jinja_value       scale, scaled;
    double            d;
    int64_t           whole;
    if (!gdn_jinja_arithmetic(run, 'P', &ten, &power, &scale) || !gdn_jinja_arithmetic(run, '*', v, &scale, &scaled) ||
        !gdn_jinja_to_float(run, &scaled, &d))
        return false;
    if (scaled.kind == JINJA_FLOAT) {
        if (!gdn_jinja_to_int(run, up ? ceil(d) : floor(d), &whole)) return false;
        scaled = gdn_jinja_int(whole);
    }
    return gdn_jinja_arithmetic(run, '/', &scaled, &scale, out);
}

FILTER(filter_round)
{
    int64_t    places;
    const bool given = slots[1].kind == JINJA_STRING;
    const bool ceiling = given && gdn_jinja_is(slots[1].as.string, "ceil");
    const bool flooring = given && gdn_jinja_is(slots[1].as.string, "floor");
    (void)args;
    if (!ceiling && !flooring && slots[1].kind != JINJA_MISSING &&
        !(given && gdn_jinja_is(slots[1].as.string, "common")))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "round: the method must be common, ceil or floor");
    if (!gdn_jinja_int_arg(run, "round", &slots[0], 0, &places)) return false;
    if (!gdn_jinja_is_number(v))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "round takes a number, not a %s", gdn_jinja_type(v));
    return ceiling || flooring ? round_to(run, v, places, ceiling, out) : gdn_jinja_round(run, v, places, out);
}

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static const jinja_filter filters[] = {
    {"abs", "/", filter_abs},
    {"capitalize", "", filter_capitalize},
    {"center", "=width", filter_center},
    {"e", "/", filter_escape},
    {"escape", "/", filter_escape},
    {"float", "=default", filter_float},
    {"forceescape", "", filter_forceescape},
    {"format", NULL, filter_format},
    {"indent", "=width first blank", filter_indent},
    {"int", "=default base", filter_int},
    {"lower", "", filter_lower},
    {"replace", "old new =count", filter_replace},
    {"round", "=precision method", filter_round},
    {"safe", "", filter_safe},
    {"string", "", filter_string},
    {"title", "", filter_title},
    {"tojson", NULL, filter_tojson},
    {"trim", "=chars", filter_trim},
    {"truncate", "=length killwords end leeway", filter_truncate},
    {"upper", "", filter_upper},
    {"wordcount", "", filter_wordcount},
    {"filesizeformat", NULL, NULL},
    {"pprint", NULL, NULL},
    {"random", NULL, NULL},
    {"striptags", NULL, NULL},
    {"urlencode", NULL, NULL},
    {"urlize", NULL, NULL},
    {"wordwrap", NULL, NULL},
    {"xmlattr", NULL, NULL},
    {NULL, NULL, NULL},
};

const jinja_filter *gdn_jinja_find_filter(const jinja_string *name)
{
    const jinja_filter *const tables[] = {filters, gdn_jinja_list_filters, gdn_jinja_order_filters};
    for (int i = 0; i < 3; i++)
        for (const jinja_filter *filter = tables[i]; filter->name; filter++)
            if (gdn_jinja_is(name, filter->name)) return filter;
    return NULL;
}

bool gdn_jinja_apply_filter(jinja_run *run, const jinja_filter *filter, const jinja_value *v, const jinja_args *args,
                            jinja_value *out)
{
    jinja_value slots[JINJA_MAX_PARAMS], result;
    if (!filter->fn) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the filter '%s' is not supported", filter->name);
    if (filter->params && !gdn_jinja_bind(run, filter->name, filter->params, args, slots)) return false;
    if (!filter->fn(run, v, args, slots, &result)) return false;
    *out = result;
    return true;
}
