/* Filters that compare items: sort, dictsort, groupby, min, max, unique. */
#include "text/jinja.h"
#include <string.h>

#define FILTER(name)                                                                                          \
    static bool name(jinja_run *run, const jinja_value *v, const jinja_args *args, const jinja_value slots[], \
                     jinja_value *out)

/* ---- keys ---- */

static bool ignore_case(jinja_run *run, jinja_value *key)
{
    jinja_text text = {.bytes = NULL};
    if (key->kind != JINJA_STRING) return true;
    return gdn_jinja_put_case(run, &text, key->as.string, 0, key->as.string->n, JINJA_LOWER) &&
           gdn_jinja_take(run, &text, key);
}

typedef struct key_style {
    const jinja_value *attribute, *otherwise;
    bool               case_sensitive;
} key_style;

static const jinja_value missing = {.kind = JINJA_MISSING};

static bool key_of(jinja_run *run, const jinja_value *item, const key_style *style, jinja_value *key)
{
    return gdn_jinja_part_of(run, item, style->attribute, style->otherwise ? style->otherwise : &missing, key) &&
           (style->case_sensitive || ignore_case(run, key));
}

/* ---- sorting ------------------------------------------------------------------------------------------------------------------ */

typedef struct keyed {
    jinja_value key, item;
} keyed;

enum { REVERSE = 1, LISTED = 2 };

/* Whether b, which stands behind a, must come before it.  LISTED: the keys are compared as the elements of lists are, that is
 * for equality first, which values without an order have too. */
static bool comes_first(jinja_run *run, const keyed *b, const keyed *a, int how, bool *result)
{
    bool equal = false;
    if (how & LISTED && !gdn_jinja_equal(run, &a->key, &b->key, &equal)) return false;
    *result = false;
    if (equal) return true;
    return how & REVERSE ? gdn_jinja_less(run, &a->key, &b->key, result)
                         : gdn_jinja_less(run, &b->key, &a->key, result);
}

static bool merge(jinja_run *run, keyed *at, keyed *spare, size_t n, int how)
{
    if (n < 2) return true;
    const size_t half = n / 2;
    size_t       a = 0, b = half;
    if (!merge(run, at, spare, half, how) || !merge(run, at + half, spare, n - half, how)) return false;
    for (size_t i = 0; i < n; i++) {
        bool second = a == half;
        if (a < half && b < n && !comes_first(run, &at[b], &at[a], how, &second)) return false;
        spare[i] = at[second ? b++ : a++];
    }
    memcpy(at, spare, n * sizeof *at);
    return true;
}

/* The items with their keys, sorted and stable. */
static bool sorted(jinja_run *run, const jinja_list *items, const jinja_value *keys, int how, keyed **out)
{
    keyed *at = gdn_jinja_array(run, items->n, sizeof *at), *spare = gdn_jinja_array(run, items->n, sizeof *spare);
    if (!at || !spare) return false;
    for (size_t i = 0; i < items->n; i++) at[i] = (keyed){keys[i], items->at[i]};
    *out = at;
    return merge(run, at, spare, items->n, how);
}

/* A list of the parts that a comma-separated list of attributes names. */
static bool multi_key(jinja_run *run, const jinja_value *item, const key_style *style, jinja_value *key)
{
    const jinja_value *attribute = style->attribute;
    if (attribute->kind != JINJA_STRING) return key_of(run, item, style, key);
    const jinja_string *all = attribute->as.string;
    size_t              n = 1;
    for (size_t i = 0; i < all->n; i++) n += all->bytes[i] == ',';
    if (!gdn_jinja_new_list(run, JINJA_LIST, n, key)) return false;
    for (size_t k = 0, from = 0; k < n; k++) {
        size_t      to = from;
        jinja_value one;
        while (to < all->n && all->bytes[to] != ',') to++;
        const key_style part = {&one, NULL, style->case_sensitive};
        if (!gdn_jinja_slice(run, all, from, to, &one) || !key_of(run, item, &part, &key->as.list->at[k])) return false;
        from = to + 1;
    }
    return true;
}

FILTER(filter_sort)
{
    const key_style style = {&slots[2], NULL, gdn_jinja_truth(&slots[1])};
    jinja_list      items;
    keyed          *order;
    (void)args;
    if (!gdn_jinja_items(run, v, &items)) return false;
    jinja_value *keys = gdn_jinja_array(run, items.n, sizeof *keys);
    for (size_t i = 0; keys && i < items.n; i++)
        if (!multi_key(run, &items.at[i], &style, &keys[i])) return false;
    if (!keys || !sorted(run, &items, keys, gdn_jinja_truth(&slots[0]) ? LISTED | REVERSE : LISTED, &order) ||
        !gdn_jinja_new_list(run, JINJA_LIST, items.n, out))
        return false;
    for (size_t i = 0; i < items.n; i++) out->as.list->at[i] = order[i].item;
    return true;
}

FILTER(filter_dictsort)
{
    const bool        by_value = slots[1].kind == JINJA_STRING && gdn_jinja_is(slots[1].as.string, "value");
    const bool        by_key = slots[1].kind == JINJA_STRING && gdn_jinja_is(slots[1].as.string, "key");
    const jinja_value at = gdn_jinja_int(by_value);
    const key_style   style = {&at, NULL, gdn_jinja_truth(&slots[0])};
    jinja_list        items;
    keyed            *order;
    (void)args;
    if (!by_value && !by_key && slots[1].kind != JINJA_MISSING)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "dictsort sorts by \"key\" or by \"value\"");
    if (v->kind != JINJA_DICT)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "dictsort takes a dict, not a %s", gdn_jinja_type(v));
    if (!gdn_jinja_items(run, &(jinja_value){.kind = JINJA_VIEW, .tag = JINJA_ITEMS, .as.dict = v->as.dict}, &items))
        return false;
    jinja_value *keys = gdn_jinja_array(run, items.n, sizeof *keys);
    for (size_t i = 0; keys && i < items.n; i++)
        if (!key_of(run, &items.at[i], &style, &keys[i])) return false;
    if (!keys || !sorted(run, &items, keys, gdn_jinja_truth(&slots[2]) ? REVERSE : 0, &order) ||
        !gdn_jinja_new_list(run, JINJA_LIST, items.n, out))
        return false;
    for (size_t i = 0; i < items.n; i++) out->as.list->at[i] = order[i].item;
    return true;
}

static bool grouped(jinja_run *run, const keyed *order, size_t n, const jinja_value *grouper, jinja_value *out)
{
    jinja_value list;
    if (!gdn_jinja_new_list(run, JINJA_LIST, n, &list) || !gdn_jinja_new_list(run, JINJA_TUPLE, 2, out)) return false;
    for (size_t i = 0; i < n; i++) list.as.list->at[i] = order[i].item;
    out->as.list->grouped = true;
    out->as.list->at[0] = *grouper;
    out->as.list->at[1] = list;
    return true;
}

FILTER(filter_groupby)
{
    const key_style style = {&slots[0], &slots[1], gdn_jinja_truth(&slots[2])};
    jinja_list      items;
    keyed          *order;
    (void)args;
    if (!gdn_jinja_items(run, v, &items)) return false;
    jinja_value *keys = gdn_jinja_array(run, items.n, sizeof *keys);
    for (size_t i = 0; keys && i < items.n; i++)
        if (!key_of(run, &items.at[i], &style, &keys[i])) return false;
    if (!keys || !sorted(run, &items, keys, 0, &order) || !gdn_jinja_new_list(run, JINJA_LIST, items.n, out))
        return false;
    size_t n_groups = 0;
    for (size_t from = 0, to = 0; from < items.n; from = to) {
        bool        equal = true;
        jinja_value grouper = order[from].key;
        for (to = from + 1; to < items.n; to++) {
            if (!gdn_jinja_equal(run, &order[from].key, &order[to].key, &equal)) return false;
            if (!equal) break;
        }
        if (!style.case_sensitive && !gdn_jinja_part_of(run, &order[from].item, &slots[0], &slots[1], &grouper))
            return false;
        if (!grouped(run, order + from, to - from, &grouper, &out->as.list->at[n_groups++])) return false;
    }
    out->as.list->n = n_groups;
    return true;
}

static bool extreme(jinja_run *run, const jinja_value *v, const jinja_value slots[], char op, jinja_value *out)
{
    static const jinja_string hint = {.bytes = "an empty sequence has no least or greatest item",
                                      .n = 47,
                                      .n_chars = 47};
    const key_style           style = {&slots[1], NULL, gdn_jinja_truth(&slots[0])};
    jinja_list                items;
    jinja_value               best, key;
    if (!gdn_jinja_items(run, v, &items)) return false;
    if (items.n == 0) {
        *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &hint};
        return true;
    }
    for (size_t i = 0; i < items.n; i++) {
        bool better = i == 0;
        if (!key_of(run, &items.at[i], &style, &key)) return false;
        if (i && !gdn_jinja_order(run, op, &key, &best, &better)) return false;
        if (!better) continue;
        best = key;
        *out = items.at[i];
    }
    return true;
}

FILTER(filter_min)
{
    (void)args;
    return extreme(run, v, slots, '<', out);
}

FILTER(filter_max)
{
    (void)args;
    return extreme(run, v, slots, '>', out);
}

/* ---- unique ---- */

static bool make_unique(jinja_run *run, jinja_generator *g)
{
    const key_style style = {&g->args->at[1], NULL, gdn_jinja_truth(&g->args->at[0])};
    jinja_list      items;
    if (!gdn_jinja_items(run, &g->source, &items)) return false;
    jinja_value *at = gdn_jinja_array(run, items.n, sizeof *at), *keys = gdn_jinja_array(run, items.n, sizeof *keys);
    size_t       n = 0;
    if (!at || !keys) return false;
    for (size_t i = 0; i < items.n; i++) {
        bool seen = false;
        if (!key_of(run, &items.at[i], &style, &keys[n])) return false;
        if (!gdn_jinja_hashable(&keys[n]))
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "unique cannot compare values of type %s",
                                  gdn_jinja_type(&keys[n]));
        for (size_t k = 0; k < n && !seen; k++)
            if (!gdn_jinja_equal(run, &keys[k], &keys[n], &seen)) return false;
        if (!seen) at[n++] = items.at[i];
    }
    g->items = (jinja_list){at, n, false};
    return true;
}

FILTER(filter_unique)
{
    (void)args;
    return gdn_jinja_lazy_bound(run, v, slots, make_unique, out);
}

const jinja_filter gdn_jinja_order_filters[] = {
    {"dictsort", "=case_sensitive by reverse", filter_dictsort},
    {"groupby", "attribute =default case_sensitive", filter_groupby},
    {"max", "=case_sensitive attribute", filter_max},
    {"min", "=case_sensitive attribute", filter_min},
    {"sort", "=reverse case_sensitive attribute", filter_sort},
    {"unique", "=case_sensitive attribute", filter_unique},
    {NULL, NULL, NULL},
};
