/* Lists, dicts, and walking whatever can be walked. */
#include "text/jinja.h"
#include <string.h>

bool gdn_jinja_new_list(jinja_run *run, jinja_kind kind, size_t n, jinja_value *out)
{
    jinja_list *list = gdn_jinja_alloc(run, sizeof *list);
    if (!list) return false;
    *list = (jinja_list){gdn_jinja_array(run, n, sizeof *list->at), n, false};
    *out = (jinja_value){.kind = (uint8_t)kind, .as.list = list};
    return list->at && gdn_jinja_charge(run, n);
}

/* ---- dicts --------------------------------------------------------------------------------------------------------- */

const jinja_value *gdn_jinja_dict_find(const jinja_dict *dict, const jinja_string *key)
{
    for (size_t i = 0; i < dict->n; i++)
        if (dict->keys[i].kind == JINJA_STRING && gdn_jinja_same(dict->keys[i].as.string, key)) return &dict->values[i];
    return NULL;
}

static bool find(jinja_run *run, const jinja_dict *dict, const jinja_value *key, size_t *at)
{
    bool equal = false;
    if (!gdn_jinja_charge(run, dict->n / 4)) return false;
    for (*at = 0; *at < dict->n; ++*at) {
        if (!gdn_jinja_equal(run, &dict->keys[*at], key, &equal)) return false;
        if (equal) break;
    }
    return true;
}

bool gdn_jinja_dict_get(jinja_run *run, const jinja_dict *dict, const jinja_value *key, jinja_value *out)
{
    size_t at;
    if (!find(run, dict, key, &at)) return false;
    *out = at < dict->n ? dict->values[at] : (jinja_value){.kind = JINJA_MISSING};
    return true;
}

bool gdn_jinja_dict_set(jinja_run *run, jinja_dict *dict, const jinja_value *key, const jinja_value *value)
{
    size_t at;
    if (!find(run, dict, key, &at)) return false;
    if (at == dict->cap) {
        const size_t cap = dict->cap ? 2 * dict->cap : 8, old = dict->n * sizeof *dict->keys;
        dict->keys = gdn_jinja_grow(run, dict->keys, old, cap * sizeof *dict->keys);
        dict->values = dict->keys ? gdn_jinja_grow(run, dict->values, old, cap * sizeof *dict->keys) : NULL;
        if (!dict->values) return false;
        dict->cap = cap;
    }
    if (at == dict->n) dict->keys[dict->n++] = *key;
    dict->values[at] = *value;
    return true;
}

/* ---- walking --------------------------------------------------------------------------------------------------------- */

bool gdn_jinja_iterable(const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_UNDEFINED:
    case JINJA_STRING:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_RANGE:
    case JINJA_GENERATOR:
    case JINJA_LOOP: return true;
    default: return false;
    }
}

static bool chars_of(jinja_run *run, const jinja_string *s, jinja_list *items)
{
    items->n = s->n_chars;
    items->at = gdn_jinja_array(run, items->n, sizeof *items->at);
    if (!items->at || !gdn_jinja_charge(run, items->n)) return false;
    jinja_string plain = *s; /* the characters of a Markup are none */
    plain.markup = false;
    for (size_t i = 0, start = 0, end = 0; i < items->n; i++, start = end) {
        gdn_jinja_char(s->bytes, &end);
        if (s->n_chars == 1) {
            jinja_string *copy = gdn_jinja_alloc(run, sizeof *copy);
            if (!copy) return false;
            *copy = plain;
            items->at[i] = gdn_jinja_str(copy);
        } else if (!gdn_jinja_slice(run, &plain, start, end, &items->at[i])) return false;
    }
    return true;
}

static bool numbers_of(jinja_run *run, const jinja_range *range, jinja_list *items)
{
    items->n = (size_t)range->n;
    items->at = gdn_jinja_array(run, items->n, sizeof *items->at);
    if (!items->at || !gdn_jinja_charge(run, items->n)) return false;
    for (int64_t i = 0; i < range->n; i++) items->at[i] = gdn_jinja_int(range->start + i * range->step);
    return true;
}

static bool pairs_of(jinja_run *run, const jinja_dict *dict, jinja_list *items)
{
    items->n = dict->n;
    items->at = gdn_jinja_array(run, items->n, sizeof *items->at);
    if (!items->at) return false;
    for (size_t i = 0; i < dict->n; i++) {
        if (!gdn_jinja_new_list(run, JINJA_TUPLE, 2, &items->at[i])) return false;
        items->at[i].as.list->at[0] = dict->keys[i];
        items->at[i].as.list->at[1] = dict->values[i];
    }
    return true;
}

static bool force(jinja_run *run, jinja_generator *generator)
{
    jinja_generator_fn *make = generator->make;
    generator->make = NULL;
    return !make || make(run, generator);
}

bool gdn_jinja_iter_open(jinja_run *run, const jinja_value *v, jinja_iter *iter)
{
    *iter = (jinja_iter){.sized = true};
    iter->at = &iter->own;
    switch (v->kind) {
    case JINJA_UNDEFINED: return true;
    case JINJA_STRING: return chars_of(run, v->as.string, &iter->items);
    case JINJA_LIST:
    case JINJA_TUPLE: iter->items = *v->as.list; return true;
    case JINJA_DICT: iter->items = (jinja_list){v->as.dict->keys, v->as.dict->n, false}; return true;
    case JINJA_RANGE: return numbers_of(run, v->as.range, &iter->items);
    case JINJA_VIEW:
        if (v->tag == JINJA_ITEMS) return pairs_of(run, v->as.dict, &iter->items);
        iter->items.at = v->tag == JINJA_KEYS ? v->as.dict->keys : v->as.dict->values;
        iter->items.n = v->as.dict->n;
        return true;
    case JINJA_GENERATOR:
        if (!force(run, v->as.generator)) return false;
        iter->items = v->as.generator->items;
        iter->at = &v->as.generator->at;
        iter->sized = false;
        return true;
    case JINJA_LOOP: return gdn_jinja_fail(run, GDN_UNSUPPORTED, "walking a loop object");
    default: return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be iterated", gdn_jinja_type(v));
    }
}

bool gdn_jinja_items(jinja_run *run, const jinja_value *v, jinja_list *items)
{
    jinja_iter iter;
    if (!gdn_jinja_iter_open(run, v, &iter)) return false;
    const size_t left = iter.items.n - *iter.at;
    *items = (jinja_list){left ? iter.items.at + *iter.at : NULL, left, false};
    *iter.at = iter.items.n;
    return true;
}

bool gdn_jinja_new_generator(jinja_run *run, jinja_list items, jinja_value *out)
{
    jinja_generator *generator = gdn_jinja_alloc(run, sizeof *generator);
    if (!generator) return false;
    *generator = (jinja_generator){.items = items};
    *out = (jinja_value){.kind = JINJA_GENERATOR, .as.generator = generator};
    return true;
}

bool gdn_jinja_lazy(jinja_run *run, const jinja_value *v, const jinja_args *args, jinja_generator_fn *make, int mode,
                    jinja_value *out)
{
    jinja_args *copy = gdn_jinja_alloc(run, sizeof *copy);
    if (!copy || !gdn_jinja_new_generator(run, (jinja_list){.at = NULL}, out)) return false;
    *copy = *args;
    jinja_generator *g = out->as.generator;
    g->make = make;
    g->source = *v;
    g->args = copy;
    g->mode = mode;
    return true;
}

bool gdn_jinja_lazy_bound(jinja_run *run, const jinja_value *v, const jinja_value slots[], jinja_generator_fn *make,
                          jinja_value *out)
{
    jinja_args args = {.at = gdn_jinja_array(run, JINJA_MAX_PARAMS, sizeof *args.at), .n = JINJA_MAX_PARAMS};
    if (!args.at) return false;
    memcpy(args.at, slots, JINJA_MAX_PARAMS * sizeof *args.at);
    return gdn_jinja_lazy(run, v, &args, make, 0, out);
}
