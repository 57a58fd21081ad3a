#include "text/output_call.h"
#include "base/alloc.h"
#include <stdio.h>
#include <string.h>

/* ---- recognising ------------------------------------------------------------------------------------------------------------ */

enum { PHASE_FORM, PHASE_NAME, PHASE_BODY, PHASE_KEY, PHASE_VALUE, PHASE_CLOSE, PHASE_JSON };
enum { MAX_NAME = 256 };

static const char close_tag[] = "</tool_call>";
static const char function_tag[] = "<function=", function_end[] = "</function>";
static const char parameter_tag[] = "<parameter=", parameter_end[] = "</parameter>";

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static size_t skip_space(const char *bytes, size_t at, size_t n)
{
    while (at < n && is_space(bytes[at])) at++;
    return at;
}

/* WHOLE: the literal stands at `at`; MORE: as far as the bytes go. */
static gdn_call_state literal(const char *bytes, size_t at, size_t n, const char *text)
{
    const size_t length = strlen(text), there = n - at < length ? n - at : length;
    if (memcmp(bytes + at, text, there)) return GDN_CALL_WRONG;
    return there == length ? GDN_CALL_WHOLE : GDN_CALL_MORE;
}

/* A literal behind spaces, which are skipped with it. */
static gdn_call_state expect(gdn_call *call, const char *bytes, size_t n, const char *text)
{
    const size_t         at = skip_space(bytes, call->at, n);
    const gdn_call_state state = literal(bytes, at, n, text);
    if (state == GDN_CALL_WHOLE) call->at = at + strlen(text);
    return state;
}

/* A name up to its '>'. */
static gdn_call_state read_name(gdn_call *call, const char *bytes, size_t n, gdn_part *name)
{
    for (size_t i = call->at; i < n && i - call->at <= MAX_NAME; i++) {
        if (bytes[i] == '\n' || bytes[i] == '<' || bytes[i] == 0) return GDN_CALL_WRONG;
        if (bytes[i] != '>') continue;
        *name = (gdn_part){call->at, i};
        call->at = i + 1;
        return name->from < name->to ? GDN_CALL_WHOLE : GDN_CALL_WRONG;
    }
    return n - call->at > MAX_NAME ? GDN_CALL_WRONG : GDN_CALL_MORE;
}

static gdn_call_state add_parameter(gdn_call *call, gdn_part key)
{
    if (call->n_parameters == call->cap) {
        const size_t cap = call->cap ? 2 * call->cap : 8;
        size_t       n_bytes;
        if (!gdn_size_mul(&n_bytes, cap, sizeof *call->parameters)) return GDN_CALL_NO_MEMORY;
        gdn_parameter *grown = realloc(call->parameters, n_bytes);
        if (!grown) return GDN_CALL_NO_MEMORY;
        call->parameters = grown;
        call->cap = cap;
    }
    call->parameters[call->n_parameters++] = (gdn_parameter){key, {call->at, call->at}};
    return GDN_CALL_WHOLE;
}

/* A value ends with the first </parameter> that another parameter or the end of the function follows; others are its text. */
static gdn_call_state read_value(gdn_call *call, const char *bytes, size_t n)
{
    const size_t length = sizeof parameter_end - 1;
    for (;;) {
        const char *found = memmem(bytes + call->at, n - call->at, parameter_end, length);
        if (!found) {
            if (n - call->at >= length) call->at = n - (length - 1); /* the rest may be the start of one */
            return GDN_CALL_MORE;
        }
        const size_t         end = (size_t)(found - bytes), at = skip_space(bytes, end + length, n);
        const gdn_call_state next = literal(bytes, at, n, parameter_tag), last = literal(bytes, at, n, function_end);
        call->at = end;
        if (next == GDN_CALL_WHOLE || last == GDN_CALL_WHOLE) {
            call->parameters[call->n_parameters - 1].value.to = end;
            call->at = end + length;
            return GDN_CALL_WHOLE;
        }
        if (next == GDN_CALL_MORE || last == GDN_CALL_MORE) return GDN_CALL_MORE;
        call->at = end + 1;
    }
}

/* The other form: an object up to the first </tool_call> that is not inside one of its strings. */
static gdn_call_state read_json(gdn_call *call, const char *bytes, size_t n)
{
    const size_t length = sizeof close_tag - 1;
    for (;;) {
        json_error_t error;
        const char  *found = memmem(bytes + call->at, n - call->at, close_tag, length);
        if (!found) {
            if (n - call->at >= length) call->at = n - (length - 1);
            return GDN_CALL_MORE;
        }
        const size_t end = (size_t)(found - bytes);
        call->json = json_loadb(bytes + call->name.from, end - call->name.from, 0, &error);
        call->at = end + length;
        if (call->json) break;
        if (json_error_code(&error) != json_error_premature_end_of_input) return GDN_CALL_WRONG;
    }
    return json_is_string(json_object_get(call->json, "name")) &&
                   (json_is_object(json_object_get(call->json, "arguments")) ||
                    !json_object_get(call->json, "arguments"))
               ? GDN_CALL_WHOLE
               : GDN_CALL_WRONG;
}

/* One phase; on WHOLE call->phase is the next one, or call->at the end. */
static gdn_call_state read_form(gdn_call *call, const char *bytes, size_t n)
{
    const size_t at = skip_space(bytes, call->at, n);
    if (at == n) return GDN_CALL_MORE;
    if (bytes[at] == '{') {
        call->name.from = call->at = at;
        call->phase = PHASE_JSON;
        return GDN_CALL_WHOLE;
    }
    const gdn_call_state state = expect(call, bytes, n, function_tag);
    if (state == GDN_CALL_WHOLE) call->phase = PHASE_NAME;
    return state;
}

/* Another parameter, or the end of the function. */
static gdn_call_state read_body(gdn_call *call, const char *bytes, size_t n)
{
    const gdn_call_state parameter = expect(call, bytes, n, parameter_tag);
    if (parameter == GDN_CALL_WHOLE) call->phase = PHASE_KEY;
    if (parameter != GDN_CALL_WRONG) return parameter;
    const gdn_call_state end = expect(call, bytes, n, function_end);
    if (end == GDN_CALL_WHOLE) call->phase = PHASE_CLOSE;
    return end;
}

/* One phase; on WHOLE call->phase is the next one. */
static gdn_call_state read_phase(gdn_call *call, const char *bytes, size_t n)
{
    gdn_call_state state;
    gdn_part       key;
    switch (call->phase) {
    case PHASE_FORM: return read_form(call, bytes, n);
    case PHASE_BODY: return read_body(call, bytes, n);
    case PHASE_NAME:
        state = read_name(call, bytes, n, &call->name);
        if (state == GDN_CALL_WHOLE) call->phase = PHASE_BODY;
        return state;
    case PHASE_KEY:
        state = read_name(call, bytes, n, &key);
        if (state != GDN_CALL_WHOLE) return state;
        call->phase = PHASE_VALUE;
        return add_parameter(call, key);
    default:
        state = read_value(call, bytes, n);
        if (state == GDN_CALL_WHOLE) call->phase = PHASE_BODY;
        return state;
    }
}

gdn_call_state gdn_call_read(gdn_call *call, const char *bytes, size_t n)
{
    gdn_call_state state = GDN_CALL_WHOLE;
    if (call->at == 0) call->at = strlen("<tool_call>");
    while (state == GDN_CALL_WHOLE) {
        if (call->phase == PHASE_CLOSE) return expect(call, bytes, n, close_tag);
        if (call->phase == PHASE_JSON) return read_json(call, bytes, n);
        state = read_phase(call, bytes, n);
    }
    return state;
}

void gdn_call_clear(gdn_call *call)
{
    free(call->parameters);
    json_decref(call->json);
    *call = (gdn_call){.parameters = NULL};
}

/* ---- types --------------------------------------------------------------------------------------------------------------------- */

/* The schema of a parameter of a function; NULL: none is given. */
static const json_t *schema_of(const json_t *tools, const char *function, const char *parameter)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *inner = json_object_get(tool, "function");
        if (json_is_object(inner)) tool = inner;
        const char *name = json_string_value(json_object_get(tool, "name"));
        if (name && !strcmp(name, function))
            return json_object_get(json_object_get(json_object_get(tool, "parameters"), "properties"), parameter);
    }
    return NULL;
}

static bool equals(const char *text, size_t n, const char *word) /* in any case of letters */
{
    if (n != strlen(word)) return false;
    for (size_t i = 0; i < n; i++)
        if ((text[i] | 0x20) != word[i]) return false;
    return true;
}

/* Whether the trimmed text is JSON of this type: then it is its own JSON. */
static bool fits(const char *text, size_t n, const char *type)
{
    json_t    *json = memchr(text, 0, n) ? NULL : json_loadb(text, n, JSON_DECODE_ANY, NULL); /* it may end at a NUL */
    const bool fit = !strcmp(type, "integer")  ? json_is_integer(json)
                     : !strcmp(type, "number") ? json_is_number(json)
                     : !strcmp(type, "object") ? json_is_object(json)
                                               : !strcmp(type, "array") && json_is_array(json);
    json_decref(json);
    return fit;
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

/* A text that grows; once memory is missing it stays as it is. */
typedef struct writer {
    char  *bytes;
    size_t n, cap;
    bool   failed;
} writer;

static void put(writer *out, const char *bytes, size_t n)
{
    size_t wanted;
    if (out->failed || !gdn_size_add(&wanted, out->n, n)) {
        out->failed = true;
        return;
    }
    if (wanted > out->cap) {
        const size_t cap = wanted < 2 * out->cap ? 2 * out->cap : wanted < 128 ? 128 : wanted;
        char        *grown = realloc(out->bytes, cap);
        out->failed = !grown;
        if (!grown) return;
        out->bytes = grown;
        out->cap = cap;
    }
    memcpy(out->bytes + out->n, bytes, n);
    out->n = wanted;
}

static void put_text(writer *out, const char *text) { put(out, text, strlen(text)); }

static void put_string(writer *out, const char *text, size_t n)
{
    put_text(out, "\"");
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        char                escape[8] = {'\\', (char)c};
        if (c == '\n') escape[1] = 'n';
        else if (c < 0x20) snprintf(escape, sizeof escape, "\\u%04x", c);
        if (c < 0x20 || c == '"' || c == '\\') put_text(out, escape);
        else put(out, text + i, 1);
    }
    put_text(out, "\"");
}

/* Write a value as this type; false: it cannot be read so. */
static bool put_typed(writer *out, const char *text, size_t n, const char *type)
{
    size_t from = skip_space(text, 0, n), to = n;
    while (to > from && is_space(text[to - 1])) to--;
    const bool boolean = !strcmp(type, "boolean");
    if (!strcmp(type, "string")) put_string(out, text, n);
    else if (boolean && equals(text + from, to - from, "true")) put_text(out, "true");
    else if (boolean && equals(text + from, to - from, "false")) put_text(out, "false");
    else if (!boolean && fits(text + from, to - from, type)) put(out, text + from, to - from);
    else return false;
    return true;
}

/* Write a value as the first type of the schema that fits. */
static bool put_by_schema(writer *out, const char *text, size_t n, const json_t *schema)
{
    static const char *const unions[] = {"anyOf", "oneOf"};
    const json_t            *type = json_object_get(schema, "type");
    if (json_is_string(type)) return put_typed(out, text, n, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *one = json_string_value(json_array_get(type, i));
        if (one && put_typed(out, text, n, one)) return true;
    }
    for (size_t k = 0; k < 2; k++) {
        const json_t *all = json_object_get(schema, unions[k]);
        for (size_t i = 0; i < json_array_size(all); i++) {
            const char *one = json_string_value(json_object_get(json_array_get(all, i), "type"));
            if (one && put_typed(out, text, n, one)) return true;
        }
    }
    return false;
}

static void put_value(writer *out, const char *text, size_t n, const json_t *schema)
{
    if (n && text[0] == '\n') text++, n--;
    if (n && text[n - 1] == '\n') n--;
    if (equals(text, n, "null")) put_text(out, "null");
    else if (!put_by_schema(out, text, n, schema)) put_string(out, text, n);
}

/* Whether a later parameter has the same key: that one counts, as in JSON. */
static bool is_overwritten(const gdn_call *call, size_t i, const char *bytes)
{
    const gdn_part key = call->parameters[i].key;
    for (size_t k = i + 1; k < call->n_parameters; k++) {
        const gdn_part other = call->parameters[k].key;
        if (other.to - other.from == key.to - key.from &&
            !memcmp(bytes + other.from, bytes + key.from, key.to - key.from))
            return true;
    }
    return false;
}

static void put_arguments(writer *out, const gdn_call *call, const char *bytes, const json_t *tools,
                          const char *function)
{
    const char *comma = "";
    put_text(out, "{");
    for (size_t i = 0; i < call->n_parameters; i++) {
        const gdn_parameter *p = &call->parameters[i];
        char                 key[MAX_NAME + 1];
        if (is_overwritten(call, i, bytes)) continue;
        memcpy(key, bytes + p->key.from, p->key.to - p->key.from);
        key[p->key.to - p->key.from] = 0;
        put_text(out, comma);
        put_string(out, key, strlen(key));
        put_text(out, ":");
        put_value(out, bytes + p->value.from, p->value.to - p->value.from, schema_of(tools, function, key));
        comma = ",";
    }
    put_text(out, "}");
}

bool gdn_call_finish(const gdn_call *call, const char *bytes, const json_t *tools, char **name, char **arguments)
{
    *arguments = NULL;
    if (call->json) {
        const json_t *given = json_object_get(call->json, "arguments");
        *name = strdup(json_string_value(json_object_get(call->json, "name")));
        *arguments = given ? json_dumps(given, JSON_COMPACT) : strdup("{}");
    } else {
        writer out = {.bytes = NULL};
        *name = strndup(bytes + call->name.from, call->name.to - call->name.from);
        if (*name) put_arguments(&out, call, bytes, tools, *name);
        put(&out, "", 1);
        if (!out.failed) *arguments = out.bytes;
        else free(out.bytes);
    }
    if (*name && *arguments) return true;
    free(*name);
    free(*arguments);
    return false;
}
