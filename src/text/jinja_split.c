/* The methods of strings that take them apart, or put them together. */
#include "text/jinja.h"
#include <string.h>

#define METHOD(name)                                                                                             \
    static bool name(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[], \
                     jinja_value *out)

/* The last `what` in n bytes, or NULL. */
bool gdn_jinja_find_last(jinja_run *run, const char *bytes, size_t n, const jinja_string *what, const char **found)
{
    *found = NULL;
    for (size_t i = n >= what->n ? n - what->n + 1 : 0; i-- > 0 && !*found;) {
        if (what->n && bytes[i] != what->bytes[0]) continue;
        if (!gdn_jinja_charge(run, what->n / 16 + 1)) return false;
        if (!memcmp(bytes + i, what->bytes, what->n)) *found = bytes + i;
    }
    return gdn_jinja_charge(run, n / 16);
}

/* ---- split ---------------------------------------------------------------------------------------------------------- */

/* A list that grows. */
typedef struct parts {
    jinja_list *list;
    size_t      cap;
} parts;

static bool open_parts(jinja_run *run, parts *p, jinja_value *out)
{
    p->cap = 0;
    if (!gdn_jinja_new_list(run, JINJA_LIST, 0, out)) return false;
    p->list = out->as.list;
    return true;
}

static bool add_part(jinja_run *run, parts *p, const jinja_string *s, size_t from, size_t to)
{
    jinja_list *list = p->list;
    if (list->n == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 4;
        list->at = gdn_jinja_grow(run, list->at, list->n * sizeof *list->at, p->cap * sizeof *list->at);
        if (!list->at) return false;
    }
    return gdn_jinja_charge(run, 1) && gdn_jinja_slice(run, s, from, to, &list->at[list->n++]);
}

static bool split_at(jinja_run *run, const jinja_string *s, const jinja_string *at, int64_t max, parts *p)
{
    size_t from = 0;
    for (; max != 0; max--) {
        const char *found = memmem(s->bytes + from, s->n - from, at->bytes, at->n);
        if (!found) break;
        if (!add_part(run, p, s, from, (size_t)(found - s->bytes))) return false;
        from = (size_t)(found - s->bytes) + at->n;
    }
    return add_part(run, p, s, from, s->n);
}

static bool rsplit_at(jinja_run *run, const jinja_string *s, const jinja_string *at, int64_t max, parts *p)
{
    size_t to = s->n;
    for (; max != 0; max--) {
        const char *found;
        if (!gdn_jinja_find_last(run, s->bytes, to, at, &found)) return false;
        if (!found) break;
        if (!add_part(run, p, s, (size_t)(found - s->bytes) + at->n, to)) return false;
        to = (size_t)(found - s->bytes);
    }
    return add_part(run, p, s, 0, to);
}

static size_t skip(const jinja_string *s, size_t i, bool spaces)
{
    while (i < s->n) {
        size_t next = i;
        if (gdn_jinja_is_space(gdn_jinja_char(s->bytes, &next)) != spaces) break;
        i = next;
    }
    return i;
}

static size_t skip_back(const jinja_string *s, size_t i, bool spaces)
{
    while (i > 0) {
        size_t start = gdn_jinja_char_before(s->bytes, i), next = start;
        if (gdn_jinja_is_space(gdn_jinja_char(s->bytes, &next)) != spaces) break;
        i = start;
    }
    return i;
}

static bool split_words(jinja_run *run, const jinja_string *s, int64_t max, parts *p)
{
    for (size_t from = skip(s, 0, true); from < s->n;) {
        const size_t to = max-- == 0 ? s->n : skip(s, from, false);
        if (!add_part(run, p, s, from, to)) return false;
        from = skip(s, to, true);
    }
    return true;
}

static bool rsplit_words(jinja_run *run, const jinja_string *s, int64_t max, parts *p)
{
    for (size_t to = skip_back(s, s->n, true); to > 0;) {
        const size_t from = max-- == 0 ? 0 : skip_back(s, to, false);
        if (!add_part(run, p, s, from, to)) return false;
        to = skip_back(s, from, true);
    }
    return true;
}

static bool split(jinja_run *run, const jinja_value *self, const jinja_value slots[], bool right, jinja_value *out)
{
    const jinja_string *s = self->as.string, *at = NULL;
    const bool          words = slots[0].kind == JINJA_MISSING || slots[0].kind == JINJA_NONE;
    int64_t             max;
    parts               p;
    if (!words && !gdn_jinja_string_arg(run, "split", &slots[0], &at)) return false;
    if (!gdn_jinja_int_arg(run, "split", &slots[1], -1, &max) || !open_parts(run, &p, out)) return false;
    if (at && at->n == 0) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "split: the separator is empty");
    if (!gdn_jinja_charge(run, s->n / 8)) return false;
    if (!right) return at ? split_at(run, s, at, max, &p) : split_words(run, s, max, &p);
    if (!(at ? rsplit_at(run, s, at, max, &p) : rsplit_words(run, s, max, &p))) return false;
    for (size_t i = 0, k = p.list->n; i + 1 < k; i++) { /* they were found from the right */
        const jinja_value part = p.list->at[i];
        p.list->at[i] = p.list->at[--k];
        p.list->at[k] = part;
    }
    return true;
}

METHOD(method_split)
{
    (void)args;
    return split(run, self, slots, false, out);
}

METHOD(method_rsplit)
{
    (void)args;
    return split(run, self, slots, true, out);
}

static bool partition(jinja_run *run, const jinja_value *self, const jinja_value slots[], bool last, jinja_value *out)
{
    const jinja_string *s = self->as.string, *at;
    if (!gdn_jinja_string_arg(run, "partition", &slots[0], &at)) return false;
    if (at->n == 0) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "partition: the separator is empty");
    if (!gdn_jinja_new_list(run, JINJA_TUPLE, 3, out) || !gdn_jinja_charge(run, s->n / 8)) return false;
    jinja_value *part = out->as.list->at;
    const char  *found = memmem(s->bytes, s->n, at->bytes, at->n);
    if (last && !gdn_jinja_find_last(run, s->bytes, s->n, at, &found)) return false;
    size_t from = last ? 0 : s->n, to = from; /* of the separator; not found: the whole is first, or last */
    if (found) {
        from = (size_t)(found - s->bytes);
        to = from + at->n;
    }
    return gdn_jinja_slice(run, s, 0, from, &part[0]) && gdn_jinja_slice(run, s, from, to, &part[1]) &&
           gdn_jinja_slice(run, s, to, s->n, &part[2]);
}

METHOD(method_partition)
{
    (void)args;
    return partition(run, self, slots, false, out);
}

METHOD(method_rpartition)
{
    (void)args;
    return partition(run, self, slots, true, out);
}

static bool ends_line(uint32_t c)
{
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool gdn_jinja_splitlines(jinja_run *run, const jinja_string *s, bool keep_ends, jinja_value *out)
{
    parts p;
    if (!open_parts(run, &p, out) || !gdn_jinja_charge(run, s->n / 4)) return false;
    for (size_t from = 0, i = 0; i < s->n;) {
        const size_t end = i;
        const bool   ends = ends_line(gdn_jinja_char(s->bytes, &i));
        if (ends && s->bytes[end] == '\r' && i < s->n && s->bytes[i] == '\n') i++;
        if (!ends && i < s->n) continue;
        if (!add_part(run, &p, s, from, ends && !keep_ends ? end : i)) return false;
        from = i;
    }
    return true;
}

METHOD(method_splitlines)
{
    (void)args;
    return gdn_jinja_splitlines(run, self->as.string, gdn_jinja_truth(&slots[0]), out);
}

METHOD(method_join)
{
    const jinja_string *s = self->as.string;
    jinja_text          text = {.markup = s->markup};
    jinja_list          items;
    (void)args;
    if (!gdn_jinja_items(run, &slots[0], &items)) return false;
    for (size_t i = 0; i < items.n; i++) {
        jinja_value item = items.at[i];
        if (s->markup ? !gdn_jinja_escape(run, &item, &item) : item.kind != JINJA_STRING)
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "join: item %zu is a %s, not a string", i,
                                  gdn_jinja_type(&item));
        if ((i && !gdn_jinja_put_string(run, &text, s)) || !gdn_jinja_put_string(run, &text, item.as.string))
            return false;
    }
    return gdn_jinja_take(run, &text, out);
}

const jinja_filter gdn_jinja_split_methods[] = {
    {"partition", "sep /", method_partition},
    {"rpartition", "sep /", method_rpartition},
    {"rsplit", "=sep maxsplit", method_rsplit},
    {"split", "=sep maxsplit", method_split},
    {"splitlines", "=keepends", method_splitlines},
    {"join", "iterable /", method_join},
    {NULL, NULL, NULL},
};
