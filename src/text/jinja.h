/* text/jinja.h - values of the template interpreter, and what is done with them.  Names and meanings are Python's.
 *
 * Everything lives in the arena of one run and is freed with it; values are never changed, namespaces, cyclers, joiners
 * and loops aside.  Functions that return bool return false when the run failed, and then its error is written. */
#ifndef GDN_TEXT_JINJA_H
#define GDN_TEXT_JINJA_H
#include "text/template.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

typedef enum jinja_kind {
    JINJA_MISSING, /* no value: an argument that was not given, a variable that was not set */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_FLOAT,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_VIEW, /* keys(), values() or items() of a dict */
    JINJA_RANGE,
    JINJA_GENERATOR,
    JINJA_NAMESPACE,
    JINJA_MACRO,
    JINJA_LOOP,
    JINJA_FUNCTION,
    JINJA_METHOD,
    JINJA_CYCLER,
    JINJA_JOINER,
} jinja_kind;

enum { JINJA_TRUSTED, JINJA_UNTRUSTED }; /* marks: who wrote a byte */

/* Bytes up to `end`, counted from the start of the block that a string is cut from, have this mark. */
typedef struct jinja_span {
    size_t  end;
    uint8_t mark;
} jinja_span;

/* Valid UTF-8, not terminated.  Substrings share bytes and spans. */
typedef struct jinja_string {
    const char       *bytes;
    size_t            n, n_chars;
    const jinja_span *spans; /* NULL: every byte has `mark` */
    size_t            n_spans;
    size_t            base; /* where bytes[0] is, in the coordinates of the spans */
    uint8_t           mark;
    bool              markup; /* Python's Markup: `safe` and `escape` make it, and + escapes its other operand */
} jinja_string;

typedef struct jinja_value jinja_value;
typedef struct jinja_list {
    jinja_value *at;
    size_t       n;
    bool         grouped; /* a tuple of groupby: it has attributes grouper and list */
} jinja_list;

/* In order of insertion, keys unique. */
typedef struct jinja_dict {
    jinja_value *keys, *values;
    size_t       n, cap;
} jinja_dict;

typedef struct jinja_range {
    int64_t start, stop, step, n;
} jinja_range;

typedef struct jinja_generator jinja_generator;
typedef struct jinja_method    jinja_method;
typedef struct jinja_macro     jinja_macro;
typedef struct jinja_loop      jinja_loop;
typedef struct jinja_cycler    jinja_cycler;
typedef struct jinja_joiner    jinja_joiner;

enum { JINJA_KEYS, JINJA_VALUES, JINJA_ITEMS };         /* tag of a view */
enum { JINJA_NO_NAME, JINJA_NO_ATTRIBUTE, JINJA_HINT }; /* tag of an undefined: what its text is */

struct jinja_value {
    uint8_t kind;  /* jinja_kind */
    uint8_t tag;   /* of a view, an undefined, a function (jinja_function) */
    uint8_t owner; /* of an undefined attribute: the kind that does not have it */
    union {
        bool                flag;
        int64_t             integer;
        double              number;
        const jinja_string *string; /* of an undefined too */
        jinja_list         *list;
        jinja_dict         *dict; /* of a view and a namespace too */
        jinja_range        *range;
        jinja_generator    *generator;
        jinja_macro        *macro;
        jinja_loop         *loop;
        jinja_method       *method;
        jinja_cycler       *cycler;
        jinja_joiner       *joiner;
    } as;
};

struct jinja_joiner {
    jinja_value separator;
    bool        used;
};
struct jinja_cycler {
    jinja_list items;
    size_t     at;
};

/* A lazy sequence that can be walked once.  `make` fills items when they are first asked for. */
typedef struct jinja_run  jinja_run;
typedef struct jinja_args jinja_args;
typedef bool              jinja_generator_fn(jinja_run *run, jinja_generator *generator);
struct jinja_generator {
    jinja_generator_fn *make; /* NULL: items are there */
    jinja_value         source;
    const jinja_args   *args;
    int                 mode; /* what `make` makes of them */
    jinja_list          items;
    size_t              at;
};

enum { JINJA_MAX_PARAMS = 6 }; /* that a filter, method or function of ours takes */

/* Arguments of a call. */
struct jinja_args {
    jinja_value         *at;
    int                  n;
    const jinja_string **names; /* of keyword arguments */
    jinja_value         *named;
    int                  n_named;
};

static inline jinja_value gdn_jinja_none(void) { return (jinja_value){.kind = JINJA_NONE}; }
static inline jinja_value gdn_jinja_bool(bool b) { return (jinja_value){.kind = JINJA_BOOL, .as.flag = b}; }
static inline jinja_value gdn_jinja_int(int64_t i) { return (jinja_value){.kind = JINJA_INT, .as.integer = i}; }
static inline jinja_value gdn_jinja_float(double d) { return (jinja_value){.kind = JINJA_FLOAT, .as.number = d}; }
static inline jinja_value gdn_jinja_str(const jinja_string *s)
{
    return (jinja_value){.kind = JINJA_STRING, .as.string = s};
}

/* ---- the run (jinja_memory.c) ------------------------------------------------------------------------------------ */

typedef struct jinja_frame jinja_frame;
typedef struct jinja_text  jinja_text;
typedef struct jinja_chunk jinja_chunk;

struct jinja_run {
    jinja_chunk        *chunks; /* the arena */
    size_t              n_bytes;
    gdn_template_limits limits; /* what is left of steps */
    int                 depth;
    int                 line; /* of the template, for messages */
    gdn_status          status;
    gdn_error          *err;
    jinja_frame        *frame; /* variables of the function that runs */
    jinja_text         *out;
    jinja_value         piped; /* what the first filter of a block is applied to */
    const jinja_dict   *vars;
    const struct tm    *now;
};

/* Fail with "chat template, line N: ...".  The first failure stays. */
__attribute__((format(printf, 3, 4))) void gdn_jinja_report(jinja_run *run, gdn_status status, const char *format, ...);
/* The same as a value, which analysers of one file at a time see is false. */
#define gdn_jinja_fail(run, ...) (gdn_jinja_report(run, __VA_ARGS__), false)

/* n bytes aligned for any type, not cleared; NULL when the run failed. */
void *gdn_jinja_alloc(jinja_run *run, size_t n);
/* For n elements of `size`, likewise. */
void *gdn_jinja_array(jinja_run *run, size_t n, size_t size);
/* A block of `wanted` bytes that begins with the first `old` ones of `block`, the block itself where it can grow. */
void *gdn_jinja_grow(jinja_run *run, void *block, size_t old, size_t wanted);
void  gdn_jinja_release(jinja_run *run); /* all of it */

bool gdn_jinja_charge(jinja_run *run, size_t n_steps);
bool gdn_jinja_enter(jinja_run *run); /* one level deeper; undo with gdn_jinja_leave */
void gdn_jinja_leave(jinja_run *run);

/* ---- text (jinja_memory.c) --------------------------------------------------------------------------------------- */

/* A text that grows, with the spans of its bytes. */
struct jinja_text {
    char       *bytes;
    size_t      n, cap;
    jinja_span *spans;
    size_t      n_spans, spans_cap;
    bool        markup; /* what the string will be */
};

bool gdn_jinja_put(jinja_run *run, jinja_text *text, const char *bytes, size_t n, uint8_t mark);
bool gdn_jinja_put_ascii(jinja_run *run, jinja_text *text, const char *terminated); /* trusted */
bool gdn_jinja_put_string(jinja_run *run, jinja_text *text, const jinja_string *string);
bool gdn_jinja_put_slice(jinja_run *run, jinja_text *text, const jinja_string *string, size_t from, size_t to);
/* The text as a string, which takes it. */
bool gdn_jinja_take(jinja_run *run, jinja_text *text, jinja_value *out);

/* Bytes `from` up to `to` of a string. */
bool gdn_jinja_slice(jinja_run *run, const jinja_string *string, size_t from, size_t to, jinja_value *out);
/* A string of n bytes that are in the arena or outlive it. */
bool gdn_jinja_string(jinja_run *run, const char *bytes, size_t n, uint8_t mark, jinja_value *out);
bool gdn_jinja_is(const jinja_string *string, const char *terminated);
bool gdn_jinja_same(const jinja_string *a, const jinja_string *b);
/* The mark of byte i. */
uint8_t gdn_jinja_mark_at(const jinja_string *string, size_t i);

/* ---- characters (jinja_unicode.c) -------------------------------------------------------------------------------- */

/* The character at bytes[i], i < n of valid UTF-8, and *i moved behind it. */
uint32_t gdn_jinja_char(const char *bytes, size_t *i);
size_t   gdn_jinja_char_before(const char *bytes, size_t i);         /* where the character that ends at i begins */
size_t   gdn_jinja_encode(uint32_t c, char *bytes);                  /* 1..4 bytes */
size_t   gdn_jinja_count(const char *bytes, size_t n);               /* characters */
size_t gdn_jinja_offset(const jinja_string *string, size_t n_chars); /* bytes before character n_chars <= their count */
bool   gdn_jinja_is_utf8(const char *bytes, size_t n, size_t *at);   /* *at: the first wrong byte */

bool gdn_jinja_is_space(uint32_t c);
bool gdn_jinja_is_alpha(uint32_t c);
bool gdn_jinja_is_digit(uint32_t c); /* decimal */
bool gdn_jinja_is_any_digit(uint32_t c);
bool gdn_jinja_is_alnum(uint32_t c);
bool gdn_jinja_is_upper(uint32_t c);
bool gdn_jinja_is_lower(uint32_t c);
bool gdn_jinja_is_title(uint32_t c);
bool gdn_jinja_is_printable(uint32_t c);
bool gdn_jinja_is_mark(uint32_t c); /* joins names, but does not begin one */

typedef enum jinja_case { JINJA_UPPER, JINJA_LOWER, JINJA_CAPITALIZE, JINJA_TITLE, JINJA_SWAPCASE } jinja_case;
/* upper(), lower(), capitalize(), title(), swapcase() of bytes `from` up to `to`, appended. */
bool gdn_jinja_put_case(jinja_run *run, jinja_text *text, const jinja_string *s, size_t from, size_t to,
                        jinja_case how);

/* ---- numbers (jinja_number.c) ------------------------------------------------------------------------------------ */

enum { JINJA_NUMBER_CAP = 400 }; /* bytes that hold any number as text */

int gdn_jinja_repr_float(double d, char *text); /* repr(); returns its length */
/* float(str); false: it is not a number, or the run failed. */
bool gdn_jinja_parse_float(jinja_run *run, const char *text, size_t n, double *d);
/* int(str, base): 1 an integer, 0 not one, -1 one beyond 64 bits. */
int  gdn_jinja_parse_int(const char *text, size_t n, int base, int64_t *out);
bool gdn_jinja_to_float(jinja_run *run, const jinja_value *v, double *d); /* of an int, a bool or a float */
bool gdn_jinja_to_int(jinja_run *run, double d, int64_t *i);              /* truncates; fails beyond 64 bits */
/* a op b for numbers; op is one of + - * / % and, for // and **, F and P. */
bool gdn_jinja_arithmetic(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, jinja_value *out);
int  gdn_jinja_compare_numbers(const jinja_value *a, const jinja_value *b); /* -1, 0, 1; 2: a NaN is among them */
bool gdn_jinja_round(jinja_run *run, const jinja_value *v, int64_t digits, jinja_value *out);
static inline bool gdn_jinja_is_number(const jinja_value *v)
{
    return v->kind == JINJA_INT || v->kind == JINJA_BOOL || v->kind == JINJA_FLOAT;
}
static inline int64_t gdn_jinja_integer(const jinja_value *v) /* of an int or a bool */
{
    return v->kind == JINJA_BOOL ? v->as.flag : v->as.integer;
}

/* ---- operations (jinja_ops.c) ------------------------------------------------------------------------------------ */

const char *gdn_jinja_type(const jinja_value *v); /* Python's name of its type */
bool        gdn_jinja_truth(const jinja_value *v);
bool        gdn_jinja_equal(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *equal);
bool        gdn_jinja_less(jinja_run *run, const jinja_value *a, const jinja_value *b, bool *less); /* a < b */
/* a op b for op one of < > and, for <= and >=, l and g. */
bool gdn_jinja_order(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, bool *holds);
bool gdn_jinja_contains(jinja_run *run, const jinja_value *container, const jinja_value *item, bool *found);
bool gdn_jinja_binary(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, jinja_value *out);
bool gdn_jinja_negate(jinja_run *run, const jinja_value *v, jinja_value *out);
bool gdn_jinja_length(jinja_run *run, const jinja_value *v, int64_t *n); /* len() */
bool gdn_jinja_has_length(const jinja_value *v);
/* Fail because an undefined value is used, and say which. */
void gdn_jinja_report_undefined(jinja_run *run, const jinja_value *v);
#define gdn_jinja_undefined_error(run, undefined) (gdn_jinja_report_undefined(run, undefined), false)
bool gdn_jinja_slice_of(jinja_run *run, const jinja_value *v, const jinja_value bounds[3], jinja_value *out);
bool gdn_jinja_hashable(const jinja_value *v);

/* ---- containers (jinja_container.c) ------------------------------------------------------------------------------ */

bool gdn_jinja_new_list(jinja_run *run, jinja_kind kind, size_t n, jinja_value *out); /* n elements to be filled */
bool gdn_jinja_dict_get(jinja_run *run, const jinja_dict *dict, const jinja_value *key,
                        jinja_value *out); /* or MISSING */
bool gdn_jinja_dict_set(jinja_run *run, jinja_dict *dict, const jinja_value *key, const jinja_value *value);
const jinja_value *gdn_jinja_dict_find(const jinja_dict *dict, const jinja_string *key); /* NULL: absent */

/* Walks any iterable. */
typedef struct jinja_iter {
    jinja_list items;
    size_t    *at; /* a generator's own position, or &own */
    size_t     own;
    bool       sized; /* it has a length of its own */
} jinja_iter;

bool                             gdn_jinja_iterable(const jinja_value *v);
bool                             gdn_jinja_iter_open(jinja_run *run, const jinja_value *v,
                                                     jinja_iter *iter); /* the iter does not move afterwards */
static inline const jinja_value *gdn_jinja_iter_next(jinja_iter *iter)  /* NULL at the end */
{
    return *iter->at < iter->items.n ? &iter->items.at[(*iter->at)++] : NULL;
}
/* What is left of an iterable, as an array that may be shared. */
bool gdn_jinja_items(jinja_run *run, const jinja_value *v, jinja_list *items);
/* A generator that `make` fills when it is asked for items; the arguments are copied.  The second takes bound ones, which
 * become g->args->at[0..JINJA_MAX_PARAMS-1]. */
bool gdn_jinja_lazy(jinja_run *run, const jinja_value *v, const jinja_args *args, jinja_generator_fn *make, int mode,
                    jinja_value *out);
bool gdn_jinja_lazy_bound(jinja_run *run, const jinja_value *v, const jinja_value slots[], jinja_generator_fn *make,
                          jinja_value *out);
/* A generator over the items. */
bool gdn_jinja_new_generator(jinja_run *run, jinja_list items, jinja_value *out);

/* ---- printing (jinja_print.c, jinja_json.c) ---------------------------------------------------------------------- */

bool gdn_jinja_put_value(jinja_run *run, jinja_text *text, const jinja_value *v); /* str() */
bool gdn_jinja_put_repr(jinja_run *run, jinja_text *text, const jinja_value *v);
bool gdn_jinja_to_string(jinja_run *run, const jinja_value *v, jinja_value *out); /* str(), a string as it is */
bool gdn_jinja_escape(jinja_run *run, const jinja_value *v, jinja_value *out);    /* HTML; a Markup */

bool gdn_jinja_tojson(jinja_run *run, const jinja_value *v, const jinja_args *args, jinja_value *out);
bool gdn_jinja_from_json(jinja_run *run, const json_t *json, uint8_t mark, jinja_value *out);

/* ---- attributes, calls, filters, tests --------------------------------------------------------------------------- */

bool gdn_jinja_getattr(jinja_run *run, const jinja_value *v, const jinja_string *name, jinja_value *out);
bool gdn_jinja_getitem(jinja_run *run, const jinja_value *v, const jinja_value *key, jinja_value *out);
/* Python's own attribute only; MISSING without one. */
bool gdn_jinja_python_attr(jinja_run *run, const jinja_value *v, const jinja_string *name, jinja_value *out);
bool gdn_jinja_call(jinja_run *run, const jinja_value *callee, const jinja_args *args, jinja_value *out);
bool gdn_jinja_global(const jinja_string *name, jinja_value *out); /* false: there is none */
bool gdn_jinja_call_function(jinja_run *run, int function, const jinja_args *args, jinja_value *out);

/* Sort the arguments of `what` into slots: `params` names them, separated by spaces; those from the one that begins with
 * "=" on are optional; a "/" at the end says that none can be given by its name.  Slots that got nothing are MISSING. */
bool gdn_jinja_bind(jinja_run *run, const char *what, const char *params, const jinja_args *args,
                    jinja_value slots[JINJA_MAX_PARAMS]);
/* Checks of bound arguments; a MISSING one takes the default. */
bool gdn_jinja_int_arg(jinja_run *run, const char *what, const jinja_value *v, int64_t missing, int64_t *out);
bool gdn_jinja_string_arg(jinja_run *run, const char *what, const jinja_value *v, const jinja_string **out);

typedef bool jinja_filter_fn(jinja_run *run, const jinja_value *v, const jinja_args *args, const jinja_value slots[],
                             jinja_value *out);
typedef struct jinja_filter {
    const char      *name, *params; /* params NULL: it sorts its arguments itself */
    jinja_filter_fn *fn;            /* NULL: known to Jinja, not supported here */
} jinja_filter;

/* A method bound to its object; methods are written like filters. */
struct jinja_method {
    jinja_value         self;
    const jinja_filter *fn;
};
extern const jinja_filter gdn_jinja_string_methods[], gdn_jinja_split_methods[]; /* end with a NULL name */
const jinja_filter       *gdn_jinja_find_filter(const jinja_string *name);       /* NULL: there is none */
bool gdn_jinja_apply_filter(jinja_run *run, const jinja_filter *filter, const jinja_value *v, const jinja_args *args,
                            jinja_value *out);
extern const jinja_filter gdn_jinja_list_filters[], gdn_jinja_order_filters[]; /* of sequences; end with a NULL name */

/* What filters call `attribute`: the item itself for None, item.a.b for "a.b", where parts that are numbers are indices.
 * `otherwise`, if it is neither MISSING nor None, stands for what is undefined. */
bool gdn_jinja_part_of(jinja_run *run, const jinja_value *item, const jinja_value *attribute,
                       const jinja_value *otherwise, jinja_value *out);

typedef bool jinja_test_fn(jinja_run *run, const jinja_value *v, const jinja_value *arg, bool *holds);
typedef struct jinja_test {
    const char    *name;
    bool           takes_arg;
    jinja_test_fn *fn;
} jinja_test;
const jinja_test *gdn_jinja_find_test(const jinja_string *name);
bool gdn_jinja_apply_test(jinja_run *run, const jinja_test *test, const jinja_value *v, const jinja_args *args,
                          bool *holds);

/* str % values, str.format() */
bool gdn_jinja_percent(jinja_run *run, const jinja_string *format, const jinja_value *values, jinja_value *out);
bool gdn_jinja_format(jinja_run *run, const jinja_string *format, const jinja_args *args, jinja_value *out);

/* The last `what` in n bytes; *found is NULL without one. */
bool gdn_jinja_find_last(jinja_run *run, const char *bytes, size_t n, const jinja_string *what, const char **found);
/* str.splitlines(), str.replace() and str.strip(), which filters use too. */
bool gdn_jinja_splitlines(jinja_run *run, const jinja_string *s, bool keep_ends, jinja_value *out);
bool gdn_jinja_replace(jinja_run *run, const jinja_string *s, const jinja_string *old, const jinja_string *new_text,
                       int64_t count, jinja_value *out);
bool gdn_jinja_strip(jinja_run *run, const jinja_string *s, const jinja_string *chars, bool left, bool right,
                     jinja_value *out);
bool gdn_jinja_all_case(const jinja_string *s, bool upper); /* isupper(), islower() */
bool gdn_jinja_pad(jinja_run *run, const jinja_string *s, int64_t width, char side, const jinja_string *fill,
                   jinja_value *out); /* side: '<' '>' '^' for ljust, rjust, center */

#endif
