/* Filters of sequences, apart from those in jinja_sort.c. */
#include "text/jinja.h"
#include <string.h>

#define FILTER(name)                                                                                          \
    static bool name(jinja_run *run, const jinja_value *v, const jinja_args *args, const jinja_value slots[], \
                     jinja_value *out)

static bool undefined(const jinja_string *hint, jinja_value *out)
{
    *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = hint};
    return true;
}

static const jinja_value missing = {.kind = JINJA_MISSING};

static bool none_given(const jinja_value *slot) { return slot->kind == JINJA_MISSING || slot->kind == JINJA_NONE; }

/* ---- attributes -------------------------------------------------------------------- */

/* item.a.b for "a.b"; parts that are numbers are indices.  `otherwise`, if it is neither MISSING nor None, replaces what is
 * undefined. */
static bool follow(jinja_run *run, const jinja_value *item, const jinja_string *path, const jinja_value *otherwise,
                   jinja_value *out)
{
    *out = *item;
    for (size_t from = 0; from <= path->n;) {
        size_t      to = from, digits = from;
        jinja_value key;
        int64_t     index;
        while (to < path->n && path->bytes[to] != '.') to++;
        while (digits < to && path->bytes[digits] >= '0' && path->bytes[digits] <= '9') digits++;
        if (!gdn_jinja_slice(run, path, from, to, &key)) return false;
        if (to > from && digits == to && gdn_jinja_parse_int(path->bytes + from, to - from, 10, &index) == 1)
            key = gdn_jinja_int(index);
        if (!gdn_jinja_getitem(run, out, &key, out)) return false;
        if (out->kind == JINJA_UNDEFINED && !none_given(otherwise)) *out = *otherwise;
        from = to + 1;
    }
    return true;
}

bool gdn_jinja_part_of(jinja_run *run, const jinja_value *item, const jinja_value *attribute,
                       const jinja_value *otherwise, jinja_value *out)
{
    *out = *item;
    if (none_given(attribute)) return true;
    if (attribute->kind == JINJA_STRING) return follow(run, item, attribute->as.string, otherwise, out);
    if (!gdn_jinja_getitem(run, item, attribute, out)) return false;
    if (out->kind == JINJA_UNDEFINED && !none_given(otherwise)) *out = *otherwise;
    return true;
}

/* ---- lazy ones: map, select, reject, batch, slice -------------------------------------------------------------------- */

static const jinja_value *named(const jinja_args *args, const char *name)
{
    for (int i = 0; i < args->n_named; i++)
        if (gdn_jinja_is(args->names[i], name)) return &args->named[i];
    return &missing;
}

/* The arguments behind the first n. */
static jinja_args rest_of(const jinja_args *args, int n)
{
    jinja_args rest = *args;
    if (n) rest.at += n;
    rest.n -= n;
    return rest;
}

static const jinja_string *name_of(jinja_run *run, const jinja_value *v, const char *what)
{
    if (v->kind == JINJA_STRING) return v->as.string;
    gdn_jinja_report(run, GDN_BAD_ARGUMENT, "there is no such %s; give its name as a string", what);
    return NULL;
}

static bool make_map(jinja_run *run, jinja_generator *g)
{
    const jinja_args *args = g->args;
    const bool        by_attribute = args->n == 0 && named(args, "attribute")->kind != JINJA_MISSING;
    const jinja_value otherwise = *named(args, "default");
    jinja_list        items;
    if (!gdn_jinja_truth(&g->source)) return true;
    if (by_attribute && args->n_named > 1 + (otherwise.kind != JINJA_MISSING))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "map takes 'attribute' and 'default' only");
    if (!by_attribute && args->n == 0)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "map needs a filter or an attribute");
    if (!gdn_jinja_items(run, &g->source, &items)) return false;
    jinja_value *at = gdn_jinja_array(run, items.n, sizeof *at);
    if (!at) return false;
    const jinja_string *name = by_attribute ? NULL : name_of(run, &args->at[0], "filter");
    const jinja_filter *filter = name ? gdn_jinja_find_filter(name) : NULL;
    const jinja_args    rest = by_attribute ? *args : rest_of(args, 1);
    if (!by_attribute && !filter && items.n)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "there is no such filter to map");
    for (size_t i = 0; i < items.n; i++)
        if (by_attribute ? !gdn_jinja_part_of(run, &items.at[i], named(args, "attribute"), &otherwise, &at[i])
                         : !gdn_jinja_apply_filter(run, filter, &items.at[i], &rest, &at[i]))
            return false;
    g->items = (jinja_list){at, items.n, false};
    return true;
}

enum { SELECT = 0, REJECT = 1, BY_ATTRIBUTE = 2 };

static bool make_select(jinja_run *run, jinja_generator *g)
{
    const int         off = g->mode & BY_ATTRIBUTE ? 1 : 0;
    const jinja_test *test = NULL;
    jinja_list        items;
    if (!gdn_jinja_truth(&g->source)) return true;
    if (g->args->n < off) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "selecting by attribute needs its name");
    if (!gdn_jinja_items(run, &g->source, &items)) return false;
    jinja_value *at = gdn_jinja_array(run, items.n, sizeof *at);
    size_t       n = 0;
    if (!at) return false;
    if (g->args->n > off && items.n) {
        const jinja_string *name = name_of(run, &g->args->at[off], "test");
        test = name ? gdn_jinja_find_test(name) : NULL;
        if (!test) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "there is no such test to select by");
    }
    const jinja_args rest = rest_of(g->args, test ? off + 1 : off);
    for (size_t i = 0; i < items.n; i++) {
        jinja_value part = items.at[i];
        if (off && !gdn_jinja_part_of(run, &items.at[i], &g->args->at[0], &missing, &part)) return false;
        bool holds = gdn_jinja_truth(&part);
        if (test && !gdn_jinja_apply_test(run, test, &part, &rest, &holds)) return false;
        if (holds != (g->mode & REJECT)) at[n++] = items.at[i];
    }
    g->items = (jinja_list){at, n, false};
    return true;
}

FILTER(filter_map)
{
    (void)slots;
    return gdn_jinja_lazy(run, v, args, make_map, 0, out);
}

FILTER(filter_select)
{
    (void)slots;
    return gdn_jinja_lazy(run, v, args, make_select, SELECT, out);
}

FILTER(filter_reject)
{
    (void)slots;
    return gdn_jinja_lazy(run, v, args, make_select, REJECT, out);
}

FILTER(filter_selectattr)
{
    (void)slots;
    return gdn_jinja_lazy(run, v, args, make_select, SELECT | BY_ATTRIBUTE, out);
}

FILTER(filter_rejectattr)
{
    (void)slots;
    return gdn_jinja_lazy(run, v, args, make_select, REJECT | BY_ATTRIBUTE, out);
}

/* items[from..to] and `fill` times `value`, as a list. */
static bool cut(jinja_run *run, const jinja_list *items, size_t from, size_t to, size_t fill, const jinja_value *value,
                jinja_value *out)
{
    if (!gdn_jinja_new_list(run, JINJA_LIST, to - from + fill, out)) return false;
    for (size_t i = from; i < to; i++) out->as.list->at[i - from] = items->at[i];
    for (size_t i = 0; i < fill; i++) out->as.list->at[to - from + i] = *value;
    return true;
}

static bool make_batch(jinja_run *run, jinja_generator *g)
{
    const jinja_value *fill = &g->args->at[1];
    jinja_list         items;
    int64_t            width;
    if (!gdn_jinja_int_arg(run, "batch", &g->args->at[0], 0, &width) || !gdn_jinja_items(run, &g->source, &items))
        return false;
    if (width < 1) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "batch into rows of fewer than 1");
    const size_t n = (items.n + (size_t)width - 1) / (size_t)width;
    jinja_value *at = gdn_jinja_array(run, n, sizeof *at);
    if (!at) return false;
    for (size_t i = 0; i < n; i++) {
        const size_t from = i * (size_t)width, to = items.n - from < (size_t)width ? items.n : from + (size_t)width;
        const size_t rest = none_given(fill) ? 0 : (size_t)width - (to - from);
        if (rest > 1000000) return gdn_jinja_fail(run, GDN_NO_MEMORY, "batch fills up more than a million items");
        if (!cut(run, &items, from, to, rest, fill, &at[i])) return false;
    }
    g->items = (jinja_list){at, n, false};
    return true;
}

static bool make_slice(jinja_run *run, jinja_generator *g)
{
    const jinja_value *fill = &g->args->at[1];
    jinja_list         items;
    int64_t            n;
    if (!gdn_jinja_int_arg(run, "slice", &g->args->at[0], 0, &n) || !gdn_jinja_items(run, &g->source, &items))
        return false;
    if (n == 0) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "slice into 0 parts");
    if (n < 0) return true;
    if (n > 1000000) return gdn_jinja_fail(run, GDN_NO_MEMORY, "slice into more than a million parts");
    jinja_value *at = gdn_jinja_array(run, (size_t)n, sizeof *at);
    if (!at) return false;
    const size_t each = items.n / (size_t)n, longer = items.n % (size_t)n;
    for (size_t i = 0, from = 0, to; i < (size_t)n; i++, from = to) {
        to = from + each + (i < longer);
        if (!cut(run, &items, from, to, !none_given(fill) && i >= longer, fill, &at[i])) return false;
    }
    g->items = (jinja_list){at, (size_t)n, false};
    return true;
}

FILTER(filter_batch)
{
    (void)args;
    return gdn_jinja_lazy_bound(run, v, slots, make_batch, out);
}

FILTER(filter_slice)
{
    (void)args;
    return gdn_jinja_lazy_bound(run, v, slots, make_slice, out);
}

static bool make_items(jinja_run *run, jinja_generator *g)
{
    if (g->source.kind == JINJA_UNDEFINED) return true;
    if (g->source.kind != JINJA_DICT)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "items takes a dict, not a %s", gdn_jinja_type(&g->source));
    const jinja_value view = {.kind = JINJA_VIEW, .tag = JINJA_ITEMS, .as.dict = g->source.as.dict};
    return gdn_jinja_items(run, &view, &g->items);
}

FILTER(filter_items)
{
    (void)slots;
    return gdn_jinja_lazy(run, v, args, make_items, 0, out);
}

/* ---- whole sequences --------------------------------------------------------------------------------------------------------- */

FILTER(filter_length)
{
    int64_t n;
    (void)args, (void)slots;
    if (!gdn_jinja_length(run, v, &n)) return false;
    *out = gdn_jinja_int(n);
    return true;
}

FILTER(filter_default)
{
    (void)args;
    *out = *v;
    if (v->kind != JINJA_UNDEFINED && !(gdn_jinja_truth(&slots[1]) && !gdn_jinja_truth(v))) return true;
    if (slots[0].kind == JINJA_MISSING) return gdn_jinja_string(run, "", 0, JINJA_TRUSTED, out);
    *out = slots[0];
    return true;
}

FILTER(filter_attr)
{
    static const jinja_string hint = {.bytes = "there is no such attribute", .n = 26, .n_chars = 26};
    const jinja_string       *name;
    (void)args;
    if (!gdn_jinja_string_arg(run, "attr", &slots[0], &name) || !gdn_jinja_python_attr(run, v, name, out)) return false;
    return out->kind != JINJA_MISSING || undefined(&hint, out);
}

FILTER(filter_list)
{
    jinja_list items;
    (void)args, (void)slots;
    if (!gdn_jinja_items(run, v, &items)) return false;
    return cut(run, &items, 0, items.n, 0, NULL, out);
}

FILTER(filter_first)
{
    static const jinja_string hint = {.bytes = "an empty sequence has no first item", .n = 35, .n_chars = 35};
    jinja_iter                iter;
    (void)args, (void)slots;
    if (!gdn_jinja_iter_open(run, v, &iter)) return false;
    const jinja_value *first = gdn_jinja_iter_next(&iter);
    if (!first) return undefined(&hint, out);
    *out = *first;
    return true;
}

FILTER(filter_last)
{
    static const jinja_string hint = {.bytes = "an empty sequence has no last item", .n = 34, .n_chars = 34};
    jinja_list                items;
    (void)args, (void)slots;
    if (v->kind == JINJA_GENERATOR)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a generator has no last item; make it a list");
    if (!gdn_jinja_items(run, v, &items)) return false;
    if (items.n == 0) return undefined(&hint, out);
    *out = items.at[items.n - 1];
    return true;
}

FILTER(filter_reverse)
{
    jinja_list items;
    (void)args, (void)slots;
    if (v->kind == JINJA_STRING) {
        const jinja_value bounds[3] = {{.kind = JINJA_NONE}, {.kind = JINJA_NONE}, gdn_jinja_int(-1)};
        return gdn_jinja_slice_of(run, v, bounds, out);
    }
    if (!gdn_jinja_items(run, v, &items)) return false;
    jinja_list turned = {gdn_jinja_array(run, items.n, sizeof *turned.at), items.n, false};
    if (!turned.at || !gdn_jinja_charge(run, items.n)) return false;
    for (size_t i = 0; i < items.n; i++) turned.at[i] = items.at[items.n - 1 - i];
    if (v->kind != JINJA_GENERATOR) return gdn_jinja_new_generator(run, turned, out);
    return cut(run, &turned, 0, turned.n, 0, NULL, out);
}

FILTER(filter_join)
{
    jinja_text  text = {.bytes = NULL};
    jinja_value separator = slots[0], part;
    jinja_list  items;
    (void)args;
    if (separator.kind == JINJA_MISSING && !gdn_jinja_string(run, "", 0, JINJA_TRUSTED, &separator)) return false;
    if (!gdn_jinja_to_string(run, &separator, &separator) || !gdn_jinja_items(run, v, &items)) return false;
    for (size_t i = 0; i < items.n; i++)
        if (!gdn_jinja_part_of(run, &items.at[i], &slots[1], &missing, &part) ||
            (i && !gdn_jinja_put_string(run, &text, separator.as.string)) || !gdn_jinja_put_value(run, &text, &part))
            return false;
    return gdn_jinja_take(run, &text, out);
}

FILTER(filter_sum)
{
    jinja_value sum = slots[1].kind == JINJA_MISSING ? gdn_jinja_int(0) : slots[1], part;
    jinja_list  items;
    (void)args;
    if (sum.kind == JINJA_STRING) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "sum does not take strings; use join");
    if (!gdn_jinja_items(run, v, &items)) return false;
    for (size_t i = 0; i < items.n; i++)
        if (!gdn_jinja_part_of(run, &items.at[i], &slots[0], &missing, &part) ||
            !gdn_jinja_binary(run, '+', &sum, &part, &sum))
            return false;
    *out = sum;
    return true;
}

const jinja_filter gdn_jinja_list_filters[] = {
    {"attr", "name", filter_attr},
    {"batch", "linecount =fill_with", filter_batch},
    {"count", "/", filter_length},
    {"d", "=default_value boolean", filter_default},
    {"default", "=default_value boolean", filter_default},
    {"first", "", filter_first},
    {"items", "", filter_items},
    {"join", "=d attribute", filter_join},
    {"last", "", filter_last},
    {"length", "/", filter_length},
    {"list", "", filter_list},
    {"map", NULL, filter_map},
    {"reject", NULL, filter_reject},
    {"rejectattr", NULL, filter_rejectattr},
    {"reverse", "", filter_reverse},
    {"select", NULL, filter_select},
    {"selectattr", NULL, filter_selectattr},
    {"slice", "slices =fill_with", filter_slice},
    {"sum", "=attribute start", filter_sum},
    {NULL, NULL, NULL},
};
