/* str(), repr() and HTML escapes. */
#include "text/jinja.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- repr ---------------------------------------------------------------------------------------------------------- */

static bool put_quoted_char(jinja_run *run, jinja_text *text, uint32_t c, char quote, uint8_t mark)
{
    char       bytes[12];
    int        n;
    const char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
    if (c == '\\' || c == (uint32_t)quote || letter) n = sprintf(bytes, "\\%c", letter ? letter : (char)c);
    else if (gdn_jinja_is_printable(c)) n = (int)gdn_jinja_encode(c, bytes);
    else n = sprintf(bytes, c < 0x100 ? "\\x%02" PRIx32 : c < 0x10000 ? "\\u%04" PRIx32 : "\\U%08" PRIx32, c);
    return gdn_jinja_put(run, text, bytes, (size_t)n, mark);
}

static bool put_quoted(jinja_run *run, jinja_text *text, const jinja_string *s)
{
    const char *quote = memchr(s->bytes, '\'', s->n) && !memchr(s->bytes, '"', s->n) ? "\"" : "'";
    if (s->markup && !gdn_jinja_put_ascii(run, text, "Markup(")) return false;
    if (!gdn_jinja_put_ascii(run, text, quote)) return false;
    for (size_t i = 0; i < s->n;) {
        const uint8_t mark = gdn_jinja_mark_at(s, i);
        if (!put_quoted_char(run, text, gdn_jinja_char(s->bytes, &i), *quote, mark)) return false;
    }
    return gdn_jinja_put_ascii(run, text, quote) && (!s->markup || gdn_jinja_put_ascii(run, text, ")"));
}

static bool put_items(jinja_run *run, jinja_text *text, const jinja_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if ((i && !gdn_jinja_put_ascii(run, text, ", ")) || !gdn_jinja_put_repr(run, text, &list->at[i])) return false;
    return true;
}

static bool put_dict(jinja_run *run, jinja_text *text, const jinja_dict *dict)
{
    if (!gdn_jinja_put_ascii(run, text, "{")) return false;
    for (size_t i = 0; i < dict->n; i++)
        if ((i && !gdn_jinja_put_ascii(run, text, ", ")) || !gdn_jinja_put_repr(run, text, &dict->keys[i]) ||
            !gdn_jinja_put_ascii(run, text, ": ") || !gdn_jinja_put_repr(run, text, &dict->values[i]))
            return false;
    return gdn_jinja_put_ascii(run, text, "}");
}

static bool put_view(jinja_run *run, jinja_text *text, const jinja_value *v)
{
    static const char *const names[] = {"dict_keys([", "dict_values([", "dict_items(["};
    jinja_list               items;
    return gdn_jinja_items(run, v, &items) && gdn_jinja_put_ascii(run, text, names[v->tag]) &&
           put_items(run, text, &items) && gdn_jinja_put_ascii(run, text, "])");
}

static bool put_range(jinja_run *run, jinja_text *text, const jinja_range *r)
{
    char bytes[100];
    if (r->step == 1) sprintf(bytes, "range(%" PRId64 ", %" PRId64 ")", r->start, r->stop);
    else sprintf(bytes, "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")", r->start, r->stop, r->step);
    return gdn_jinja_put_ascii(run, text, bytes);
}

static bool put_number(jinja_run *run, jinja_text *text, const jinja_value *v)
{
    char bytes[JINJA_NUMBER_CAP];
    if (v->kind == JINJA_INT) sprintf(bytes, "%" PRId64, v->as.integer);
    else gdn_jinja_repr_float(v->as.number, bytes);
    return gdn_jinja_put_ascii(run, text, bytes);
}

static bool put_container(jinja_run *run, jinja_text *text, const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_LIST:
        return gdn_jinja_put_ascii(run, text, "[") && put_items(run, text, v->as.list) &&
               gdn_jinja_put_ascii(run, text, "]");
    case JINJA_TUPLE:
        return gdn_jinja_put_ascii(run, text, "(") && put_items(run, text, v->as.list) &&
               gdn_jinja_put_ascii(run, text, v->as.list->n == 1 ? ",)" : ")");
    case JINJA_DICT: return put_dict(run, text, v->as.dict);
    case JINJA_VIEW: return put_view(run, text, v);
    default:
        return gdn_jinja_put_ascii(run, text, "<Namespace ") && put_dict(run, text, v->as.dict) &&
               gdn_jinja_put_ascii(run, text, ">");
    }
}

bool gdn_jinja_put_repr(jinja_run *run, jinja_text *text, const jinja_value *v)
{
    switch (v->kind) {
    case JINJA_UNDEFINED: return gdn_jinja_put_ascii(run, text, "Undefined");
    case JINJA_NONE: return gdn_jinja_put_ascii(run, text, "None");
    case JINJA_BOOL: return gdn_jinja_put_ascii(run, text, v->as.flag ? "True" : "False");
    case JINJA_INT:
    case JINJA_FLOAT: return put_number(run, text, v);
    case JINJA_STRING: return put_quoted(run, text, v->as.string);
    case JINJA_RANGE: return put_range(run, text, v->as.range);
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_VIEW:
    case JINJA_NAMESPACE: break;
    default:
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "printing a value of type %s; call it or make it a list",
                              gdn_jinja_type(v));
    }
    if (!gdn_jinja_enter(run)) return false;
    const bool ok = put_container(run, text, v);
    gdn_jinja_leave(run);
    return ok;
}

bool gdn_jinja_put_value(jinja_run *run, jinja_text *text, const jinja_value *v)
{
    if (v->kind == JINJA_STRING) return gdn_jinja_put_string(run, text, v->as.string);
    return v->kind == JINJA_UNDEFINED || gdn_jinja_put_repr(run, text, v);
}

bool gdn_jinja_to_string(jinja_run *run, const jinja_value *v, jinja_value *out)
{
    jinja_text text = {.bytes = NULL};
    *out = *v;
    return v->kind == JINJA_STRING || (gdn_jinja_put_value(run, &text, v) && gdn_jinja_take(run, &text, out));
}

/* ---- HTML ------------------------------------------------------------------------------------------------------------ */

static const char *entity(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&#34;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

bool gdn_jinja_escape(jinja_run *run, const jinja_value *v, jinja_value *out)
{
    jinja_value string;
    jinja_text  text = {.markup = true};
    if (!gdn_jinja_to_string(run, v, &string)) return false;
    *out = string;
    const jinja_string *s = string.as.string;
    if (s->markup) return true;
    for (size_t i = 0; i < s->n;) {
        size_t plain = i;
        while (plain < s->n && !entity(s->bytes[plain])) plain++;
        if (!gdn_jinja_put_slice(run, &text, s, i, plain)) return false;
        i = plain + 1;
        if (plain == s->n) break;
        const char *named = entity(s->bytes[plain]);
        if (!gdn_jinja_put(run, &text, named, strlen(named), gdn_jinja_mark_at(s, plain))) return false;
    }
    return gdn_jinja_take(run, &text, out);
}
