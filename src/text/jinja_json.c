/* JSON: the variables of a rendering as values, and json.dumps(value, ensure_ascii=False, ...). */
#include "text/jinja.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- in -------------------------------------------------------------------------------------------------------------- */

static bool string_in(jinja_run *run, const char *bytes, size_t n, uint8_t mark, jinja_value *out)
{
    size_t wrong;
    if (!gdn_jinja_is_utf8(bytes, n, &wrong))
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a string of the variables is not UTF-8");
    return gdn_jinja_string(run, bytes, n, mark, out);
}

static bool array_in(jinja_run *run, const json_t *json, uint8_t mark, jinja_value *out)
{
    const size_t n = json_array_size(json);
    if (!gdn_jinja_new_list(run, JINJA_LIST, n, out)) return false;
    for (size_t i = 0; i < n; i++)
        if (!gdn_jinja_from_json(run, json_array_get(json, i), mark, &out->as.list->at[i])) return false;
    return true;
}

static bool object_in(jinja_run *run, const json_t *json, uint8_t mark, jinja_value *out)
{
    const size_t n = json_object_size(json);
    jinja_dict  *dict = gdn_jinja_alloc(run, sizeof *dict);
    if (!dict || !gdn_jinja_charge(run, n)) return false;
    *dict =
        (jinja_dict){gdn_jinja_array(run, n, sizeof *dict->keys), gdn_jinja_array(run, n, sizeof *dict->keys), 0, n};
    *out = (jinja_value){.kind = JINJA_DICT, .as.dict = dict};
    if (!dict->keys || !dict->values) return false;
    json_t *object = (json_t *)json; /* jansson walks objects through pointers that could write */
    for (void *at = json_object_iter(object); at && dict->n < n; at = json_object_iter_next(object, at), dict->n++) {
        const char *key = json_object_iter_key(at);
        if (!string_in(run, key, strlen(key), mark, &dict->keys[dict->n]) ||
            !gdn_jinja_from_json(run, json_object_iter_value(at), mark, &dict->values[dict->n]))
            return false;
    }
    return true;
}

bool gdn_jinja_from_json(jinja_run *run, const json_t *json, uint8_t mark, jinja_value *out)
{
    *out = gdn_jinja_none();
    switch (json_typeof(json)) {
    case JSON_NULL: return true;
    case JSON_TRUE: *out = gdn_jinja_bool(true); return true;
    case JSON_FALSE: *out = gdn_jinja_bool(false); return true;
    case JSON_INTEGER: *out = gdn_jinja_int(json_integer_value(json)); return true;
    case JSON_REAL: *out = gdn_jinja_float(json_real_value(json)); return true;
    case JSON_STRING: return string_in(run, json_string_value(json), json_string_length(json), mark, out);
    default: break;
    }
    if (!gdn_jinja_enter(run)) return false;
    const bool ok = json_is_array(json) ? array_in(run, json, mark, out) : object_in(run, json, mark, out);
    gdn_jinja_leave(run);
    return ok;
}

/* ---- out ------------------------------------------------------------------------------------------------------------- */

typedef struct json_style {
    const jinja_string *item, *key; /* separators */
    const jinja_string *indent;     /* of one level; NULL: all on one line */
    bool                ascii, sorted;
} json_style;

static bool put_dump(jinja_run *run, jinja_text *text, const jinja_value *v, const json_style *style, int level);

static char letter_of(uint32_t c)
{
    switch (c) {
    case '"':
    case '\\': return (char)c;
    case '\n': return 'n';
    case '\r': return 'r';
    case '\t': return 't';
    case '\b': return 'b';
    case '\f': return 'f';
    default: return 0;
    }
}

static bool put_escaped(jinja_run *run, jinja_text *text, uint32_t c, uint8_t mark)
{
    char bytes[16];
    int  n;
    if (letter_of(c)) n = sprintf(bytes, "\\%c", letter_of(c));
    else if (c < 0x10000) n = sprintf(bytes, "\\u%04" PRIx32, c);
    else n = sprintf(bytes, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
    return gdn_jinja_put(run, text, bytes, (size_t)n, mark);
}

static bool is_plain(char c, bool ascii)
{
    return (unsigned char)c >= 0x20 && c != '"' && c != '\\' && (!ascii || (unsigned char)c < 0x7F);
}

static bool put_json_string(jinja_run *run, jinja_text *text, const jinja_string *s, bool ascii)
{
    if (!gdn_jinja_put_ascii(run, text, "\"")) return false;
    for (size_t i = 0; i < s->n;) {
        size_t plain = i;
        while (plain < s->n && is_plain(s->bytes[plain], ascii)) plain++;
        if (!gdn_jinja_put_slice(run, text, s, i, plain)) return false;
        i = plain;
        const uint8_t mark = i < s->n ? gdn_jinja_mark_at(s, i) : 0;
        if (i < s->n && !put_escaped(run, text, gdn_jinja_char(s->bytes, &i), mark)) return false;
    }
    return gdn_jinja_put_ascii(run, text, "\"");
}

static bool put_scalar(jinja_run *run, jinja_text *text, const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_NONE: return gdn_jinja_put_ascii(run, text, "null");
    case JINJA_BOOL: return gdn_jinja_put_ascii(run, text, v->as.flag ? "true" : "false");
    case JINJA_INT: return gdn_jinja_put_value(run, text, v);
    case JINJA_FLOAT:
        if (isnan(v->as.number)) return gdn_jinja_put_ascii(run, text, "NaN");
        if (isinf(v->as.number)) return gdn_jinja_put_ascii(run, text, v->as.number < 0 ? "-Infinity" : "Infinity");
        return gdn_jinja_put_value(run, text, v);
    default: return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "tojson does not take a value of type %s", gdn_jinja_type(v));
    }
}

static bool put_key(jinja_run *run, jinja_text *text, const jinja_value *key, bool ascii)
{
    if (key->kind == JINJA_STRING) return put_json_string(run, text, key->as.string, ascii);
    return gdn_jinja_put_ascii(run, text, "\"") && put_scalar(run, text, key) && gdn_jinja_put_ascii(run, text, "\"");
}

static bool put_line(jinja_run *run, jinja_text *text, const json_style *style, int level)
{
    if (!style->indent) return true;
    if (!gdn_jinja_put_ascii(run, text, "\n")) return false;
    for (int i = 0; i < level; i++)
        if (!gdn_jinja_put_string(run, text, style->indent)) return false;
    return true;
}

/* The order in which to write a dict. */
static bool sort_keys(jinja_run *run, const jinja_dict *dict, size_t *order)
{
    for (size_t i = 0; i < dict->n; i++) {
        size_t at = i;
        for (; at > 0; at--) {
            bool less;
            if (!gdn_jinja_less(run, &dict->keys[i], &dict->keys[order[at - 1]], &less)) return false;
            if (!less) break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return true;
}

static bool put_object(jinja_run *run, jinja_text *text, const jinja_dict *dict, const json_style *style, int level)
{
    size_t *order = style->sorted ? gdn_jinja_array(run, dict->n, sizeof *order) : NULL;
    if (style->sorted && (!order || !sort_keys(run, dict, order))) return false;
    if (!gdn_jinja_put_ascii(run, text, "{")) return false;
    for (size_t k = 0; k < dict->n; k++) {
        const size_t i = order ? order[k] : k;
        if ((k && !gdn_jinja_put_string(run, text, style->item)) || !put_line(run, text, style, level + 1) ||
            !put_key(run, text, &dict->keys[i], style->ascii) || !gdn_jinja_put_string(run, text, style->key) ||
            !put_dump(run, text, &dict->values[i], style, level + 1))
            return false;
    }
    return (dict->n == 0 || put_line(run, text, style, level)) && gdn_jinja_put_ascii(run, text, "}");
}

static bool put_array(jinja_run *run, jinja_text *text, const jinja_list *list, const json_style *style, int level)
{
    if (!gdn_jinja_put_ascii(run, text, "[")) return false;
    for (size_t i = 0; i < list->n; i++)
        if ((i && !gdn_jinja_put_string(run, text, style->item)) || !put_line(run, text, style, level + 1) ||
            !put_dump(run, text, &list->at[i], style, level + 1))
            return false;
    return (list->n == 0 || put_line(run, text, style, level)) && gdn_jinja_put_ascii(run, text, "]");
}

static bool put_dump(jinja_run *run, jinja_text *text, const jinja_value *v, const json_style *style, int level)
{
    if (v->kind == JINJA_STRING) return put_json_string(run, text, v->as.string, style->ascii);
    if (v->kind != JINJA_LIST && v->kind != JINJA_TUPLE && v->kind != JINJA_DICT) return put_scalar(run, text, v);
    if (!gdn_jinja_enter(run)) return false;
    const bool ok = v->kind == JINJA_DICT ? put_object(run, text, v->as.dict, style, level)
                                          : put_array(run, text, v->as.list, style, level);
    gdn_jinja_leave(run);
    return ok;
}

/* indent: None, a number of spaces, or a string. */
static bool read_indent(jinja_run *run, const jinja_value *v, json_style *style)
{
    jinja_value spaces;
    int64_t     n;
    if (v->kind == JINJA_MISSING || v->kind == JINJA_NONE) return true;
    if (v->kind == JINJA_STRING) {
        style->indent = v->as.string;
        return true;
    }
    if (!gdn_jinja_int_arg(run, "the indent of tojson", v, 0, &n) ||
        !gdn_jinja_string(run, " ", 1, JINJA_TRUSTED, &spaces) ||
        !gdn_jinja_binary(run, '*', &spaces, &(jinja_value){.kind = JINJA_INT, .as.integer = n}, &spaces))
        return false;
    style->indent = spaces.as.string;
    return true;
}

static bool read_separators(jinja_run *run, const jinja_value *v, json_style *style)
{
    jinja_value item, key;
    jinja_list  both;
    if (v->kind == JINJA_MISSING || v->kind == JINJA_NONE) {
        const char *comma = style->indent ? "," : ", ";
        if (!gdn_jinja_string(run, comma, strlen(comma), JINJA_TRUSTED, &item) ||
            !gdn_jinja_string(run, ": ", 2, JINJA_TRUSTED, &key))
            return false;
    } else {
        if (!gdn_jinja_items(run, v, &both)) return false;
        if (both.n != 2 || both.at[0].kind != JINJA_STRING || both.at[1].kind != JINJA_STRING)
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the separators of tojson must be two strings");
        item = both.at[0];
        key = both.at[1];
    }
    style->item = item.as.string;
    style->key = key.as.string;
    return true;
}

bool gdn_jinja_tojson(jinja_run *run, const jinja_value *v, const jinja_args *args, jinja_value *out)
{
    jinja_value slots[JINJA_MAX_PARAMS];
    json_style  style = {.indent = NULL};
    jinja_text  text = {.bytes = NULL};
    if (!gdn_jinja_bind(run, "tojson", "=ensure_ascii indent separators sort_keys", args, slots) ||
        !read_indent(run, &slots[1], &style) || !read_separators(run, &slots[2], &style))
        return false;
    style.ascii = gdn_jinja_truth(&slots[0]);
    style.sorted = gdn_jinja_truth(&slots[3]);
    return put_dump(run, &text, v, &style, 0) && gdn_jinja_take(run, &text, out);
}
