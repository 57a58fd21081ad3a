/* Operators, with Python's meaning for every pair of types. */
#include "text/jinja.h"
#include <stdio.h>
#include <string.h>

const char *gdn_jinja_type(const jinja_value *v)
{
    static const char *const names[] = {
        [JINJA_MISSING] = "missing",
        [JINJA_UNDEFINED] = "Undefined",
        [JINJA_NONE] = "NoneType",
        [JINJA_BOOL] = "bool",
        [JINJA_INT] = "int",
        [JINJA_FLOAT] = "float",
        [JINJA_STRING] = "str",
        [JINJA_LIST] = "list",
        [JINJA_TUPLE] = "tuple",
        [JINJA_DICT] = "dict",
        [JINJA_VIEW] = "dict view",
        [JINJA_RANGE] = "range",
        [JINJA_GENERATOR] = "generator",
        [JINJA_NAMESPACE] = "Namespace",
        [JINJA_MACRO] = "Macro",
        [JINJA_LOOP] = "LoopContext",
        [JINJA_FUNCTION] = "function",
        [JINJA_METHOD] = "method",
        [JINJA_CYCLER] = "Cycler",
        [JINJA_JOINER] = "Joiner",
    };
    return names[v->kind];
}

void gdn_jinja_report_undefined(jinja_run *run, const jinja_value *v)
{
    const jinja_string *text = v->as.string;
    const int           n = text->n > 200 ? 200 : (int)text->n;
    if (v->tag == JINJA_HINT) gdn_jinja_report(run, GDN_BAD_ARGUMENT, "%.*s", n, text->bytes);
    else if (v->tag == JINJA_NO_NAME) gdn_jinja_report(run, GDN_BAD_ARGUMENT, "'%.*s' is undefined", n, text->bytes);
    else
        gdn_jinja_report(run, GDN_BAD_ARGUMENT, "a value of type %s has no '%.*s'",
                         gdn_jinja_type(&(jinja_value){.kind = v->owner}), n, text->bytes);
}

/* ---- truth, length ------------------------------------------------------------------------------------------------- */

bool gdn_jinja_has_length(const jinja_value *v) { return gdn_jinja_iterable(v) && v->kind != JINJA_GENERATOR; }

static int64_t length_of(const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_STRING: return (int64_t)v->as.string->n_chars;
    case JINJA_LIST:
    case JINJA_TUPLE: return (int64_t)v->as.list->n;
    case JINJA_DICT:
    case JINJA_VIEW: return (int64_t)v->as.dict->n;
    case JINJA_RANGE: return v->as.range->n;
    default: return 0;
    }
}

bool gdn_jinja_length(jinja_run *run, const jinja_value *v, int64_t *n)
{
    if (v->kind == JINJA_LOOP) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the length of a loop; use loop.length");
    if (!gdn_jinja_has_length(v))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s has no length", gdn_jinja_type(v));
    *n = length_of(v);
    return true;
}

bool gdn_jinja_truth(const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v->as.flag;
    case JINJA_INT: return v->as.integer != 0;
    case JINJA_FLOAT: return v->as.number != 0;
    case JINJA_STRING:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_RANGE: return length_of(v) != 0;
    default: return true;
    }
}

bool gdn_jinja_hashable(const jinja_value *v)
{
    if (v->kind == JINJA_LIST || v->kind == JINJA_DICT) return false;
    if (v->kind != JINJA_TUPLE) return true;
    for (size_t i = 0; i < v->as.list->n; i++) {
        const jinja_value *item = &v->as.list->at[i]; /* of any depth: tuples of tuples are written out in a template */
        if (item->kind == JINJA_LIST || item->kind == JINJA_DICT) return false;
        if (item->kind == JINJA_TUPLE && !gdn_jinja_hashable(item)) return false;
    }
    return true;
}

/* ---- equality, order ------------------------------------------------------------------------------------------------- */

static bool equal_lists(jinja_run *run, const jinja_list *a, const jinja_list *b, bool *equal)
{
    *equal = a->n == b->n;
    for (size_t i = 0; *equal && i < a->n; i++)
        if (!gdn_jinja_equal(run, &a->at[i], &b->at[i], equal)) return false;
    return true;
}

static bool equal_dicts(jinja_run *run, const jinja_dict *a, const jinja_dict *b, bool *equal)
{
    *equal = a->n == b->n;
    for (size_t i = 0; *equal && i < a->n; i++) {
        jinja_value other;
        if (!gdn_jinja_dict_get(run, b, &a->keys[i], &other)) return false;
        *equal = other.kind != JINJA_MISSING;
        if (*equal && !gdn_jinja_equal(run, &a->values[i], &other, equal)) return false;
    }
    return true;
}

static bool equal_ranges(const jinja_range *a, const jinja_range *b)
{
    return a->n == b->n && (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static bool equal_same_kind(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *equal)
{
    switch (a->kind) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: *equal = true; return true;
    case JINJA_STRING:
        *equal = gdn_jinja_same(a->as.string, b->as.string);
        return gdn_jinja_charge(run, *equal ? a->as.string->n / 16 : 0);
    case JINJA_LIST:
    case JINJA_TUPLE: return equal_lists(run, a->as.list, b->as.list, equal);
    case JINJA_DICT: return equal_dicts(run, a->as.dict, b->as.dict, equal);
    case JINJA_RANGE: *equal = equal_ranges(a->as.range, b->as.range); return true;
    case JINJA_FUNCTION: *equal = a->tag == b->tag; return true;
    default: *equal = a->as.list == b->as.list; return true; /* one object */
    }
}

bool gdn_jinja_equal(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *equal)
{
    *equal = false;
    if (!gdn_jinja_charge(run, 1)) return false;
    if (gdn_jinja_is_number(a) && gdn_jinja_is_number(b)) {
        *equal = gdn_jinja_compare_numbers(a, b) == 0;
        return true;
    }
    if (a->kind != b->kind) return true;
    if (!gdn_jinja_enter(run)) return false;
    const bool ok = equal_same_kind(run, a, b, equal);
    gdn_jinja_leave(run);
    return ok;
}

static int compare_strings(const jinja_string *a, const jinja_string *b)
{
    const int first = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);
    return first ? first : (a->n > b->n) - (a->n < b->n);
}

static bool holds(char op, int comparison)
{
    switch (op) {
    case '<': return comparison < 0;
    case '>': return comparison > 0;
    case 'l': return comparison <= 0;
    default: return comparison >= 0;
    }
}

static bool order_lists(jinja_run *run, char op, const jinja_list *a, const jinja_list *b, bool *result)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        if (!gdn_jinja_equal(run, &a->at[i], &b->at[i], &equal)) return false;
        if (!equal) return gdn_jinja_order(run, op, &a->at[i], &b->at[i], result);
    }
    *result = holds(op, (a->n > b->n) - (a->n < b->n));
    return true;
}

bool gdn_jinja_order(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, bool *result)
{
    *result = false;
    if (!gdn_jinja_charge(run, 1)) return false;
    if (gdn_jinja_is_number(a) && gdn_jinja_is_number(b)) {
        const int comparison = gdn_jinja_compare_numbers(a, b);
        *result = comparison != 2 && holds(op, comparison);
        return true;
    }
    if (a->kind == JINJA_STRING && b->kind == JINJA_STRING) {
        *result = holds(op, compare_strings(a->as.string, b->as.string));
        return gdn_jinja_charge(run, a->as.string->n / 16);
    }
    if (a->kind == b->kind && (a->kind == JINJA_LIST || a->kind == JINJA_TUPLE)) {
        if (!gdn_jinja_enter(run)) return false;
        const bool ok = order_lists(run, op, a->as.list, b->as.list, result);
        gdn_jinja_leave(run);
        return ok;
    }
    if (a->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, a);
    if (b->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, b);
    return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "values of types %s and %s have no order", gdn_jinja_type(a),
                          gdn_jinja_type(b));
}

bool gdn_jinja_less(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *less)
{
    return gdn_jinja_order(run, '<', a, b, less);
}

/* ---- in -------------------------------------------------------------------------------------------------------------- */

static bool contains_item(jinja_run *run, const jinja_value *container, const jinja_value *item, bool *found)
{
    jinja_iter iter;
    if (!gdn_jinja_iter_open(run, container, &iter)) return false;
    for (const jinja_value *next; !*found && (next = gdn_jinja_iter_next(&iter));)
        if (!gdn_jinja_equal(run, next, item, found)) return false;
    return true;
}

bool gdn_jinja_contains(jinja_run *run, const jinja_value *container, const jinja_value *item, bool *found)
{
    *found = false;
    if (container->kind == JINJA_STRING) {
        const jinja_string *s = container->as.string;
        if (item->kind != JINJA_STRING)
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be in a string; compare strings",
                                  gdn_jinja_type(item));
        *found = memmem(s->bytes, s->n, item->as.string->bytes, item->as.string->n) != NULL;
        return gdn_jinja_charge(run, s->n / 16);
    }
    const bool by_key =
        container->kind == JINJA_DICT || (container->kind == JINJA_VIEW && container->tag == JINJA_KEYS);
    if (by_key && !gdn_jinja_hashable(item))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be a key", gdn_jinja_type(item));
    return contains_item(run, container, item, found);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------------- */

static bool add_strings(jinja_run *run, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    const bool  markup = a->as.string->markup || b->as.string->markup;
    jinja_value left = *a, right = *b;
    jinja_text  text = {.markup = markup};
    if (markup && (!gdn_jinja_escape(run, a, &left) || !gdn_jinja_escape(run, b, &right))) return false;
    return gdn_jinja_put_string(run, &text, left.as.string) && gdn_jinja_put_string(run, &text, right.as.string) &&
           gdn_jinja_take(run, &text, out);
}

static bool add_lists(jinja_run *run, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    const jinja_list *left = a->as.list, *right = b->as.list;
    if (!gdn_jinja_new_list(run, a->kind, left->n + right->n, out)) return false;
    if (left->n) memcpy(out->as.list->at, left->at, left->n * sizeof *left->at);
    if (right->n) memcpy(out->as.list->at + left->n, right->at, right->n * sizeof *right->at);
    return true;
}

static bool repeat(jinja_run *run, const jinja_value *v, int64_t times, jinja_value *out)
{
    if (times < 0) times = 0;
    if (v->kind == JINJA_STRING) {
        jinja_text text = {.markup = v->as.string->markup};
        for (int64_t i = 0; i < times && v->as.string->n; i++)
            if (!gdn_jinja_put_string(run, &text, v->as.string)) return false;
        return gdn_jinja_take(run, &text, out);
    }
    const jinja_list *list = v->as.list;
    if (list->n && (uint64_t)times > SIZE_MAX / 2 / sizeof *list->at / list->n)
        return gdn_jinja_fail(run, GDN_NO_MEMORY, "a list is repeated %lld times", (long long)times);
    if (!gdn_jinja_new_list(run, v->kind, list->n * (size_t)times, out)) return false;
    for (size_t i = 0; i < out->as.list->n; i += list->n)
        memcpy(out->as.list->at + i, list->at, list->n * sizeof *list->at);
    return true;
}

static bool is_repeatable(const jinja_value *v)
{
    return v->kind == JINJA_STRING || v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
}

static bool is_whole(const jinja_value *v) { return v->kind == JINJA_INT || v->kind == JINJA_BOOL; }

bool gdn_jinja_binary(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, jinja_value *out)
{
    if (gdn_jinja_is_number(a) && gdn_jinja_is_number(b)) return gdn_jinja_arithmetic(run, op, a, b, out);
    if (op == '%' && a->kind == JINJA_STRING) return gdn_jinja_percent(run, a->as.string, b, out);
    if (a->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, a);
    if (b->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, b);
    if (op == '+' && a->kind == b->kind && is_repeatable(a))
        return a->kind == JINJA_STRING ? add_strings(run, a, b, out) : add_lists(run, a, b, out);
    if (op == '*' && is_repeatable(a) && is_whole(b)) return repeat(run, a, gdn_jinja_integer(b), out);
    if (op == '*' && is_whole(a) && is_repeatable(b)) return repeat(run, b, gdn_jinja_integer(a), out);
    return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "'%s' does not take values of types %s and %s",
                          op == 'F'   ? "//"
                          : op == 'P' ? "**"
                                      : (char[]){op, 0},
                          gdn_jinja_type(a), gdn_jinja_type(b));
}

bool gdn_jinja_negate(jinja_run *run, const jinja_value *v, jinja_value *out)
{
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (!gdn_jinja_is_number(v))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "'-' does not take a value of type %s", gdn_jinja_type(v));
    if (v->kind != JINJA_FLOAT) return gdn_jinja_arithmetic(run, '-', &(jinja_value){.kind = JINJA_INT}, v, out);
    *out = gdn_jinja_float(-v->as.number);
    return true;
}

/* ---- slices ------------------------------------------------------------------------------------------------------------ */

static bool slice_part(jinja_run *run, const jinja_value *v, int64_t none, int64_t *out)
{
    if (v->kind != JINJA_NONE && !is_whole(v))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a slice takes integers, not a %s", gdn_jinja_type(v));
    *out = v->kind == JINJA_NONE ? none : gdn_jinja_integer(v);
    return true;
}

/* A bound of a slice of n elements, brought into low..high; negative ones count from the end. */
static bool slice_bound(jinja_run *run, const jinja_value *v, int64_t n, int64_t none, int64_t low, int64_t *out)
{
    const int64_t high = low + n;
    int64_t       i;
    if (!slice_part(run, v, 0, &i)) return false;
    if (i < 0) i = i < -n ? -1 : i + n;
    *out = v->kind == JINJA_NONE ? none : i < low ? low : i > high ? high : i;
    return true;
}

static bool slice_string(jinja_run *run, const jinja_string *s, int64_t start, int64_t n, int64_t step,
                         jinja_value *out)
{
    if (n == 0) return gdn_jinja_slice(run, s, 0, 0, out);
    if (step == 1) {
        const size_t from = gdn_jinja_offset(s, (size_t)start), to = gdn_jinja_offset(s, (size_t)(start + n));
        return gdn_jinja_charge(run, s->n / 16) && gdn_jinja_slice(run, s, from, to, out);
    }
    jinja_text text = {.markup = s->markup};
    jinja_list chars;
    if (!gdn_jinja_items(run, &(jinja_value){.kind = JINJA_STRING, .as.string = s}, &chars)) return false;
    for (int64_t i = 0; i < n; i++)
        if (!gdn_jinja_put_string(run, &text, chars.at[start + i * step].as.string)) return false;
    return gdn_jinja_take(run, &text, out);
}

bool gdn_jinja_slice_of(jinja_run *run, const jinja_value *v, const jinja_value bounds[3], jinja_value *out)
{
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (v->kind == JINJA_RANGE) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "a slice of a range; make it a list");
    if (!is_repeatable(v))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be sliced", gdn_jinja_type(v));
    const int64_t n = length_of(v);
    int64_t       step, start, stop;
    if (!slice_part(run, &bounds[2], 1, &step)) return false;
    if (step == 0) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the step of a slice cannot be zero");
    const int64_t low = step > 0 ? 0 : -1; /* forwards bounds are 0..n, backwards -1..n-1 */
    if (!slice_bound(run, &bounds[0], n, step > 0 ? 0 : n - 1, low, &start) ||
        !slice_bound(run, &bounds[1], n, step > 0 ? n : -1, low, &stop))
        return false;
    const uint64_t width = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const int64_t  distance = step > 0 ? stop - start : start - stop;
    const int64_t  count = distance > 0 ? (int64_t)(((uint64_t)distance - 1) / width) + 1 : 0;
    if (v->kind == JINJA_STRING) return slice_string(run, v->as.string, start, count, step, out);
    if (!gdn_jinja_new_list(run, v->kind, (size_t)count, out)) return false;
    for (int64_t i = 0; i < count; i++) out->as.list->at[i] = v->as.list->at[start + i * step];
    return true;
}
