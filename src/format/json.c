#include "format/json.h"
#include "base/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gdn_status gdn_text_load(char **text, size_t *n, const char *path, gdn_error *err)
{
    gdn_file   file;
    gdn_status status = gdn_file_open(&file, path, err);
    if (status) return status;
    if (file.n_bytes > GDN_JSON_LIMIT) {
        gdn_file_close(&file);
        return gdn_fail(err, GDN_BAD_FILE, 0, "%.120s has %llu bytes; at most %d are allowed", path,
                        (unsigned long long)file.n_bytes, GDN_JSON_LIMIT);
    }
    const size_t length = (size_t)file.n_bytes;
    char        *bytes = malloc(length + 1);
    if (!bytes) {
        gdn_file_close(&file);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "%.120s: no memory to read it", path);
    }
    status = gdn_file_read(&file, bytes, length, err);
    gdn_file_close(&file);
    if (status) {
        free(bytes);
        return status;
    }
    bytes[length] = 0;
    *n = length;
    *text = bytes;
    return GDN_OK;
}

gdn_status gdn_json_parse(json_t **root, const char *file, const void *text, size_t n, gdn_error *err)
{
    json_error_t               problem = {0}; /* jansson leaves its code alone where memory ends at once */
    json_t                    *value = json_loadb(text, n, JSON_REJECT_DUPLICATES, &problem);
    const enum json_error_code code = value ? json_error_unknown : json_error_code(&problem);
    if (!value && (code == json_error_out_of_memory || code == json_error_unknown)) /* unnamed: no memory for a table */
        return gdn_fail(err, GDN_NO_MEMORY, 0, "%.80s: no memory to read it", file);
    if (!value)
        return gdn_fail(err, GDN_BAD_FILE, problem.position,
                        "%.80s is not valid JSON: line %d, column %d%s; mend it or get it again", file, problem.line,
                        problem.column, code == json_error_duplicate_key ? ": a key stands there twice" : "");
    if (!json_is_object(value)) {
        json_decref(value);
        return gdn_fail(err, GDN_BAD_FILE, 0, "%.80s holds no JSON object; get it again", file);
    }
    *root = value;
    return GDN_OK;
}

gdn_json_words gdn_json_describe(const json_t *value)
{
    gdn_json_words words;
    size_t         used;
    switch (json_typeof(value)) {
    case JSON_OBJECT: snprintf(words.text, sizeof words.text, "an object"); break;
    case JSON_ARRAY: snprintf(words.text, sizeof words.text, "a list"); break;
    case JSON_INTEGER: snprintf(words.text, sizeof words.text, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL:
        used = (size_t)snprintf(words.text, sizeof words.text, "%g", json_real_value(value));
        if (!strpbrk(words.text, ".e")) snprintf(words.text + used, sizeof words.text - used, ".0");
        break;
    case JSON_TRUE: snprintf(words.text, sizeof words.text, "true"); break;
    case JSON_FALSE: snprintf(words.text, sizeof words.text, "false"); break;
    case JSON_NULL: snprintf(words.text, sizeof words.text, "null"); break;
    case JSON_STRING: /* what is not printable ASCII must not reach a terminal */
        used = (size_t)snprintf(words.text, sizeof words.text, "'%.40s'", json_string_value(value));
        for (size_t i = 0; i < used; i++)
            if (words.text[i] < 0x20 || words.text[i] > 0x7e) words.text[i] = '?';
        break;
    }
    return words;
}

void gdn_json_refuse(gdn_json_reader *r, gdn_status status, const char *key, const json_t *value, const char *expected)
{
    if (*r->status) return;
    *r->status = gdn_fail(r->err, status, 0, "%.60s: %s%s is %s; %s", r->file, r->scope, key,
                          gdn_json_describe(value).text, expected);
}

void gdn_json_missing(gdn_json_reader *r, const char *key)
{
    if (*r->status) return;
    *r->status = gdn_fail(r->err, GDN_BAD_FILE, 0, "%.60s: %s%s is missing", r->file, r->scope, key);
}

const json_t *gdn_json_get(const gdn_json_reader *r, const char *key)
{
    const json_t *value = json_object_get(r->object, key);
    return json_is_null(value) ? NULL : value;
}

long long gdn_json_int(gdn_json_reader *r, const char *key, long long lo, long long hi, long long fallback)
{
    const json_t *value = gdn_json_get(r, key);
    if (!value && fallback == GDN_JSON_NEEDED) gdn_json_missing(r, key);
    if (!value) return fallback == GDN_JSON_NEEDED ? lo : fallback;
    if (json_is_integer(value) && json_integer_value(value) >= lo && json_integer_value(value) <= hi)
        return json_integer_value(value);
    char expected[80];
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld was expected", lo, hi);
    gdn_json_refuse(r, GDN_BAD_FILE, key, value, expected);
    return lo;
}

double gdn_json_number(gdn_json_reader *r, const char *key, double lo, double hi, double fallback)
{
    const json_t *value = gdn_json_get(r, key);
    if (!value && isnan(fallback)) gdn_json_missing(r, key);
    if (!value) return isnan(fallback) ? lo : fallback;
    const double number = json_number_value(value);
    if (json_is_number(value) && number >= lo && number <= hi) return number;
    char expected[80];
    snprintf(expected, sizeof expected, "a number from %g to %g was expected", lo, hi);
    gdn_json_refuse(r, GDN_BAD_FILE, key, value, expected);
    return lo;
}

bool gdn_json_bool(gdn_json_reader *r, const char *key, bool fallback)
{
    const json_t *value = gdn_json_get(r, key);
    if (!value) return fallback;
    if (!json_is_boolean(value)) gdn_json_refuse(r, GDN_BAD_FILE, key, value, "true or false was expected");
    return json_is_true(value);
}

const char *gdn_json_string(gdn_json_reader *r, const char *key)
{
    const json_t *value = gdn_json_get(r, key);
    if (value && !json_is_string(value)) gdn_json_refuse(r, GDN_BAD_FILE, key, value, "a string was expected");
    return json_string_value(value); /* NULL for what is none */
}

static void add_id(gdn_json_reader *r, const char *key, const json_t *value, long long limit, int *ids, int *n,
                   int room)
{
    const long long id = json_integer_value(value);
    char            expected[80];
    snprintf(expected, sizeof expected, "token ids from 0 to %lld were expected", limit - 1);
    if (!json_is_integer(value) || id < 0 || id >= limit) {
        gdn_json_refuse(r, GDN_BAD_FILE, key, value, expected);
        return;
    }
    for (int i = 0; i < *n; i++)
        if (ids[i] == id) return;
    snprintf(expected, sizeof expected, "at most %d different ids are supported", room);
    if (*n == room) gdn_json_refuse(r, GDN_UNSUPPORTED, key, value, expected);
    else ids[(*n)++] = (int)id;
}

void gdn_json_ids(gdn_json_reader *r, const char *key, long long limit, int *ids, int *n, int room)
{
    const json_t *value = gdn_json_get(r, key);
    if (!value) return;
    if (!json_is_array(value)) add_id(r, key, value, limit, ids, n, room);
    for (size_t i = 0; i < json_array_size(value); i++) add_id(r, key, json_array_get(value, i), limit, ids, n, room);
}
