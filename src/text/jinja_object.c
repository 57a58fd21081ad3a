/* Attributes and items of values, the methods of everything but strings, and the functions that a template finds. */
#include "text/jinja_node.h"
#include <string.h>

/* ---- methods ------------------------------------------------------------------------------------------------------------- */

static bool dict_get(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                     jinja_value *out)
{
    (void)args;
    if (!gdn_jinja_hashable(&slots[0]))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be a key", gdn_jinja_type(&slots[0]));
    if (!gdn_jinja_dict_get(run, self->as.dict, &slots[0], out)) return false;
    if (out->kind == JINJA_MISSING) *out = slots[1].kind == JINJA_MISSING ? gdn_jinja_none() : slots[1];
    return true;
}

static bool view(const jinja_value *self, uint8_t tag, jinja_value *out)
{
    *out = (jinja_value){.kind = JINJA_VIEW, .tag = tag, .as.dict = self->as.dict};
    return true;
}

static bool dict_keys(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                      jinja_value *out)
{
    (void)run, (void)args, (void)slots;
    return view(self, JINJA_KEYS, out);
}

static bool dict_values(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                        jinja_value *out)
{
    (void)run, (void)args, (void)slots;
    return view(self, JINJA_VALUES, out);
}

static bool dict_items(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                       jinja_value *out)
{
    (void)run, (void)args, (void)slots;
    return view(self, JINJA_ITEMS, out);
}

static bool copy(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                 jinja_value *out)
{
    (void)run, (void)args, (void)slots;
    *out = *self;
    return true;
}

static bool list_count(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                       jinja_value *out)
{
    int64_t n = 0;
    (void)args;
    for (size_t i = 0; i < self->as.list->n; i++) {
        bool equal;
        if (!gdn_jinja_equal(run, &self->as.list->at[i], &slots[0], &equal)) return false;
        n += equal;
    }
    *out = gdn_jinja_int(n);
    return true;
}

static bool list_index(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                       jinja_value *out)
{
    const int64_t n = (int64_t)self->as.list->n;
    int64_t       from, to;
    (void)args;
    if (!gdn_jinja_int_arg(run, "index", &slots[1], 0, &from) || !gdn_jinja_int_arg(run, "index", &slots[2], n, &to))
        return false;
    if (from < 0) from = from < -n ? 0 : from + n;
    if (to < 0) to += n;
    for (int64_t i = from; i < to && i < n; i++) {
        bool equal;
        if (!gdn_jinja_equal(run, &self->as.list->at[i], &slots[0], &equal)) return false;
        if (!equal) continue;
        *out = gdn_jinja_int(i);
        return true;
    }
    return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the value is not in the %s", gdn_jinja_type(self));
}

static bool cycler_next(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                        jinja_value *out)
{
    jinja_cycler *cycler = self->as.cycler;
    (void)run, (void)args, (void)slots;
    *out = cycler->items.at[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->items.n;
    return true;
}

static bool cycler_reset(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                         jinja_value *out)
{
    (void)run, (void)args, (void)slots;
    self->as.cycler->at = 0;
    *out = gdn_jinja_none();
    return true;
}

/* Methods by type.  Without fn: Python has it, we do not; where params are "unsafe", the sandbox hides it. */
static const jinja_filter dict_methods[] = {
    {"get", "key =default /", dict_get}, {"keys", "/", dict_keys},   {"values", "/", dict_values},
    {"items", "/", dict_items},          {"copy", "/", copy},        {"fromkeys", NULL, NULL},
    {"clear", "unsafe", NULL},           {"pop", "unsafe", NULL},    {"popitem", "unsafe", NULL},
    {"setdefault", "unsafe", NULL},      {"update", "unsafe", NULL}, {NULL, NULL, NULL},
};
static const jinja_filter list_methods[] = {
    {"index", "value =start stop /", list_index},
    {"count", "value /", list_count},
    {"copy", "/", copy},
    {"append", "unsafe", NULL},
    {"clear", "unsafe", NULL},
    {"pop", "unsafe", NULL},
    {"reverse", "unsafe", NULL},
    {"insert", "unsafe", NULL},
    {"sort", "unsafe", NULL},
    {"extend", "unsafe", NULL},
    {"remove", "unsafe", NULL},
    {NULL, NULL, NULL},
};
static const jinja_filter tuple_methods[] = {{"index", "value =start stop /", list_index},
                                             {"count", "value /", list_count},
                                             {NULL, NULL, NULL}};
static const jinja_filter cycler_methods[] = {{"next", "", cycler_next},
                                              {"reset", "", cycler_reset},
                                              {NULL, NULL, NULL}};
static const jinja_filter int_methods[] = {
    {"real", NULL, NULL},       {"imag", NULL, NULL},
    {"numerator", NULL, NULL},  {"denominator", NULL, NULL},
    {"conjugate", NULL, NULL},  {"bit_length", NULL, NULL},
    {"bit_count", NULL, NULL},  {"to_bytes", NULL, NULL},
    {"from_bytes", NULL, NULL}, {"as_integer_ratio", NULL, NULL},
    {NULL, NULL, NULL},
};
static const jinja_filter float_methods[] = {
    {"real", NULL, NULL},    {"imag", NULL, NULL},       {"conjugate", NULL, NULL},        {"hex", NULL, NULL},
    {"fromhex", NULL, NULL}, {"is_integer", NULL, NULL}, {"as_integer_ratio", NULL, NULL}, {NULL, NULL, NULL},
};
static const jinja_filter other_methods[] = {
    {"name", NULL, NULL},          {"arguments", NULL, NULL}, {"catch_kwargs", NULL, NULL},
    {"catch_varargs", NULL, NULL}, {"caller", NULL, NULL},    {"explicit_caller", NULL, NULL},
    {"start", NULL, NULL},         {"stop", NULL, NULL},      {"step", NULL, NULL},
    {"count", NULL, NULL},         {"index", NULL, NULL},     {"isdisjoint", NULL, NULL},
    {"mapping", NULL, NULL},       {"send", NULL, NULL},      {"throw", NULL, NULL},
    {"close", NULL, NULL},         {NULL, NULL, NULL},
};

static const jinja_filter *methods_of(const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_STRING: return gdn_jinja_string_methods;
    case JINJA_DICT: return dict_methods;
    case JINJA_LIST: return list_methods;
    case JINJA_TUPLE: return tuple_methods;
    case JINJA_CYCLER: return cycler_methods;
    case JINJA_BOOL:
    case JINJA_INT: return int_methods;
    case JINJA_FLOAT: return float_methods;
    case JINJA_VIEW:
    case JINJA_RANGE:
    case JINJA_GENERATOR:
    case JINJA_MACRO: return other_methods;
    default: return NULL;
    }
}

static bool bind_method(jinja_run *run, const jinja_value *v, const jinja_filter *fn, jinja_value *out)
{
    static const jinja_string unsafe = {.bytes = "the sandbox does not let templates change lists and dicts",
                                        .n = 57,
                                        .n_chars = 57};
    if (fn->fn) {
        jinja_method *method = gdn_jinja_alloc(run, sizeof *method);
        if (!method) return false;
        *method = (jinja_method){*v, fn};
        *out = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
        return true;
    }
    if (!fn->params)
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "'%s' of a value of type %s is not supported", fn->name,
                              gdn_jinja_type(v));
    *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &unsafe};
    return true;
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------ */

/* Attributes that are plain values. */
static void field_of(const jinja_value *v, const jinja_string *name, jinja_value *out)
{
    *out = (jinja_value){.kind = JINJA_MISSING};
    if (v->kind == JINJA_NAMESPACE) {
        const jinja_value *found = gdn_jinja_dict_find(v->as.dict, name);
        if (found) *out = *found;
    } else if (v->kind == JINJA_TUPLE && v->as.list->grouped) {
        if (gdn_jinja_is(name, "grouper")) *out = v->as.list->at[0];
        if (gdn_jinja_is(name, "list")) *out = v->as.list->at[1];
    } else if (v->kind == JINJA_CYCLER && gdn_jinja_is(name, "current"))
        *out = v->as.cycler->items.at[v->as.cycler->at];
    else if (v->kind == JINJA_JOINER && gdn_jinja_is(name, "sep")) *out = v->as.joiner->separator;
    else if (v->kind == JINJA_JOINER && gdn_jinja_is(name, "used")) *out = gdn_jinja_bool(v->as.joiner->used);
}

bool gdn_jinja_python_attr(jinja_run *run, const jinja_value *v, const jinja_string *name, jinja_value *out)
{
    static const jinja_string unsafe = {.bytes = "the sandbox hides names that begin with an underscore",
                                        .n = 53,
                                        .n_chars = 53};
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (v->kind == JINJA_LOOP) return gdn_jinja_loop_attr(run, v->as.loop, name, out);
    if (!gdn_jinja_charge(run, 1)) return false;
    field_of(v, name, out);
    if (out->kind != JINJA_MISSING && name->bytes[0] == '_')
        *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &unsafe};
    if (out->kind != JINJA_MISSING) return true;
    const jinja_filter *const tables[] = {methods_of(v), v->kind == JINJA_STRING ? gdn_jinja_split_methods : NULL};
    for (int i = 0; i < 2; i++)
        for (const jinja_filter *method = tables[i]; method && method->name; method++)
            if (gdn_jinja_is(name, method->name)) return bind_method(run, v, method, out);
    return true;
}

/* v[key] as Python has it; MISSING where that is a TypeError or a LookupError. */
static bool subscript(jinja_run *run, const jinja_value *v, const jinja_value *key, jinja_value *out)
{
    *out = (jinja_value){.kind = JINJA_MISSING};
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (v->kind == JINJA_DICT) return !gdn_jinja_hashable(key) || gdn_jinja_dict_get(run, v->as.dict, key, out);
    if (key->kind != JINJA_INT && key->kind != JINJA_BOOL) return true;
    if (v->kind != JINJA_STRING && v->kind != JINJA_LIST && v->kind != JINJA_TUPLE && v->kind != JINJA_RANGE)
        return true;
    int64_t n, i = gdn_jinja_integer(key);
    if (!gdn_jinja_length(run, v, &n)) return false;
    if (i < 0 && i >= -n) i += n;
    if (i < 0 || i >= n) return true;
    if (v->kind == JINJA_RANGE) *out = gdn_jinja_int(v->as.range->start + i * v->as.range->step);
    else if (v->kind != JINJA_STRING) *out = v->as.list->at[i];
    else {
        const jinja_string *s = v->as.string;
        const size_t        from = gdn_jinja_offset(s, (size_t)i);
        size_t              to = from;
        gdn_jinja_char(s->bytes, &to);
        return gdn_jinja_charge(run, s->n == s->n_chars ? 0 : from / 16) && gdn_jinja_slice(run, s, from, to, out);
    }
    return true;
}

static bool undefined_attribute(jinja_run *run, const jinja_value *v, const jinja_value *key, jinja_value *out)
{
    jinja_value text;
    if (!gdn_jinja_hashable(key) || key->kind > JINJA_STRING) { /* its text is not worth the effort */
        if (!gdn_jinja_string(run, "element", 7, JINJA_TRUSTED, &text)) return false;
    } else if (!gdn_jinja_to_string(run, key, &text)) return false;
    *out = (jinja_value){
        .kind = JINJA_UNDEFINED, .tag = JINJA_NO_ATTRIBUTE, .owner = v->kind, .as.string = text.as.string};
    return true;
}

bool gdn_jinja_getattr(jinja_run *run, const jinja_value *v, const jinja_string *name, jinja_value *out)
{
    const jinja_value from = *v, key = gdn_jinja_str(name); /* v may be out */
    if (!gdn_jinja_python_attr(run, &from, name, out)) return false;
    if (out->kind == JINJA_MISSING && !subscript(run, &from, &key, out)) return false;
    return out->kind != JINJA_MISSING || undefined_attribute(run, &from, &key, out);
}

bool gdn_jinja_getitem(jinja_run *run, const jinja_value *v, const jinja_value *key, jinja_value *out)
{
    const jinja_value from = *v; /* v may be out */
    if (!subscript(run, &from, key, out)) return false;
    if (out->kind == JINJA_MISSING && key->kind == JINJA_STRING &&
        !gdn_jinja_python_attr(run, &from, key->as.string, out))
        return false;
    return out->kind != JINJA_MISSING || undefined_attribute(run, &from, key, out);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------------- */

enum { FN_RANGE, FN_DICT, FN_NAMESPACE, FN_CYCLER, FN_JOINER, FN_RAISE, FN_NOW, FN_LIPSUM, N_FUNCTIONS };

bool gdn_jinja_global(const jinja_string *name, jinja_value *out)
{
    static const char *const names[N_FUNCTIONS] = {"range",           "dict",         "namespace", "cycler", "joiner",
                                                   "raise_exception", "strftime_now", "lipsum"};
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (gdn_jinja_is(name, names[i])) {
            *out = (jinja_value){.kind = JINJA_FUNCTION, .tag = (uint8_t)i};
            return true;
        }
    return false;
}

static bool make_range(jinja_run *run, const jinja_args *args, jinja_value *out)
{
    jinja_range *range = gdn_jinja_alloc(run, sizeof *range);
    int64_t      at[3] = {0, 0, 1};
    if (!range) return false;
    if (args->n < 1 || args->n > 3 || args->n_named)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "range takes one to three integers");
    for (int i = 0; i < args->n; i++)
        if (!gdn_jinja_int_arg(run, "range", &args->at[i], 0, &at[args->n == 1 ? 1 : i])) return false;
    if (at[2] == 0) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the step of a range cannot be zero");
    *range = (jinja_range){at[0], at[1], at[2], 0};
    const uint64_t width = at[2] > 0 ? (uint64_t)at[2] : 0 - (uint64_t)at[2];
    const bool     any = at[2] > 0 ? at[1] > at[0] : at[1] < at[0];
    const uint64_t distance = at[2] > 0 ? (uint64_t)at[1] - (uint64_t)at[0] : (uint64_t)at[0] - (uint64_t)at[1];
    const uint64_t n = any ? (distance - 1) / width + 1 : 0;
    if (n > 100000) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a range has more than 100000 items");
    range->n = (int64_t)n;
    *out = (jinja_value){.kind = JINJA_RANGE, .as.range = range};
    return true;
}

static bool set_pair(jinja_run *run, jinja_dict *dict, const jinja_value *pair)
{
    jinja_list both;
    if (!gdn_jinja_items(run, pair, &both)) return false;
    if (both.n != 2) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a dict is made of pairs, not of %zu values", both.n);
    if (!gdn_jinja_hashable(&both.at[0]))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be a key", gdn_jinja_type(&both.at[0]));
    return gdn_jinja_dict_set(run, dict, &both.at[0], &both.at[1]);
}

/* dict(x, name=value): of a dict, or of pairs. */
static bool make_dict(jinja_run *run, const jinja_args *args, jinja_kind kind, jinja_value *out)
{
    jinja_dict *dict = gdn_jinja_alloc(run, sizeof *dict);
    jinja_list  items;
    if (!dict) return false;
    *dict = (jinja_dict){.keys = NULL};
    if (args->n > 1) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "dict and namespace take one value and named ones");
    if (args->n == 1 && args->at[0].kind == JINJA_DICT) {
        const jinja_dict *from = args->at[0].as.dict;
        for (size_t i = 0; i < from->n; i++)
            if (!gdn_jinja_dict_set(run, dict, &from->keys[i], &from->values[i])) return false;
    } else if (args->n == 1) {
        if (!gdn_jinja_items(run, &args->at[0], &items)) return false;
        for (size_t i = 0; i < items.n; i++)
            if (!set_pair(run, dict, &items.at[i])) return false;
    }
    for (int i = 0; i < args->n_named; i++) {
        const jinja_value key = gdn_jinja_str(args->names[i]);
        if (!gdn_jinja_dict_set(run, dict, &key, &args->named[i])) return false;
    }
    *out = (jinja_value){.kind = (uint8_t)kind, .as.dict = dict};
    return true;
}

static bool make_cycler(jinja_run *run, const jinja_args *args, jinja_value *out)
{
    jinja_cycler *cycler = gdn_jinja_alloc(run, sizeof *cycler);
    if (!cycler) return false;
    if (args->n == 0 || args->n_named)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a cycler needs values to cycle through");
    *cycler = (jinja_cycler){{args->at, (size_t)args->n, false}, 0};
    *out = (jinja_value){.kind = JINJA_CYCLER, .as.cycler = cycler};
    return true;
}

static bool make_joiner(jinja_run *run, const jinja_args *args, jinja_value *out)
{
    jinja_joiner *joiner = gdn_jinja_alloc(run, sizeof *joiner);
    jinja_value   slots[JINJA_MAX_PARAMS];
    if (!joiner || !gdn_jinja_bind(run, "joiner", "=sep", args, slots)) return false;
    *joiner = (jinja_joiner){slots[0], false};
    *out = (jinja_value){.kind = JINJA_JOINER, .as.joiner = joiner};
    return slots[0].kind != JINJA_MISSING || gdn_jinja_string(run, ", ", 2, JINJA_TRUSTED, &joiner->separator);
}

static bool raise_exception(jinja_run *run, const jinja_args *args)
{
    jinja_value slots[JINJA_MAX_PARAMS], text;
    if (!gdn_jinja_bind(run, "raise_exception", "message", args, slots) || !gdn_jinja_to_string(run, &slots[0], &text))
        return false;
    return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "%.*s", (int)(text.as.string->n > 400 ? 400 : text.as.string->n),
                          text.as.string->bytes);
}

static bool strftime_now(jinja_run *run, const jinja_args *args, jinja_value *out)
{
    enum { CAP = 1024 };
    const jinja_string *format;
    jinja_value         slots[JINJA_MAX_PARAMS];
    if (!gdn_jinja_bind(run, "strftime_now", "format", args, slots) ||
        !gdn_jinja_string_arg(run, "strftime_now", &slots[0], &format))
        return false;
    if (!run->now) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "strftime_now is called, but the caller gave no date");
    char *bytes = gdn_jinja_alloc(run, CAP), *copy_of = gdn_jinja_alloc(run, format->n + 2);
    if (!bytes || !copy_of) return false;
    copy_of[0] = '.'; /* so that an empty result is not taken for one that does not fit */
    memcpy(copy_of + 1, format->bytes, format->n);
    copy_of[format->n + 1] = 0;
    const size_t n = strftime(bytes, CAP, copy_of, run->now);
    if (n == 0 || memchr(format->bytes, 0, format->n))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the format of strftime_now is too long");
    return gdn_jinja_string(run, bytes + 1, n - 1, format->spans ? JINJA_UNTRUSTED : format->mark, out);
}

bool gdn_jinja_call_function(jinja_run *run, int function, const jinja_args *args, jinja_value *out)
{
    switch (function) {
    case FN_RANGE: return make_range(run, args, out);
    case FN_DICT: return make_dict(run, args, JINJA_DICT, out);
    case FN_NAMESPACE: return make_dict(run, args, JINJA_NAMESPACE, out);
    case FN_CYCLER: return make_cycler(run, args, out);
    case FN_JOINER: return make_joiner(run, args, out);
    case FN_RAISE: return raise_exception(run, args);
    case FN_NOW: return strftime_now(run, args, out);
    default: return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the function lipsum is not supported");
    }
}
