/* Reading a tokenizer.json.  Its small parts go through jansson; the vocabulary and the merges, nearly all of its bytes, are
 * read where they are, after everything else was found to be supported. */
#include "base/status.h"
#include "text/scan_utf8.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_nfc.h"
#include "text/tokenizer_parts.h"
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    gdn_tokenizer *tokenizer;
    gdn_pull       json;
    json_t        *parts, *options;     /* the small members of the file and of its model */
    size_t         vocab_at, merges_at; /* where these values start; 0: not met yet */
    size_t         n_vocabulary;        /* tokens in it */
    bool           has_foreign;         /* of which some are not ORDINARY */
    gdn_text       bytes;               /* of the token in hand */
} reader;

/* Fail because of what the file asks for; its name is put before the sentence. */
__attribute__((format(printf, 3, 4))) static bool refuse(reader *r, gdn_status status, const char *format, ...)
{
    char    sentence[200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(sentence, sizeof sentence, format, ap);
    va_end(ap);
    r->json.status = gdn_fail(r->json.err, status, 0, "%.100s: %s", r->json.name, sentence);
    return false;
}

/* ---- the byte-level alphabet ------------------------------------------------------------------------------------- */

/* GPT-2's alphabet: each byte is written as a visible character, itself where it is one in Latin-1, and the other 68, in
 * their order, as the characters from U+0100. */
static int byte_of(uint32_t code)
{
    if ((code >= 0x21 && code <= 0x7e) || (code >= 0xa1 && code <= 0xff && code != 0xad)) return (int)code;
    if (code < 0x100 || code > 0x143) return -1;
    const int k = (int)code - 0x100;
    return k < 0x21 ? k : k < 0x43 ? 0x7f + (k - 0x21) : 0xad;
}

/* Append the bytes that the characters stand for.  *ordinary is false, and nothing appended, if one of them stands for none.
 * false without memory. */
static bool append_bytes(reader *r, gdn_pull_string s, bool *ordinary)
{
    gdn_text *out = &r->bytes;
    *ordinary = true;
    if (!gdn_text_reserve(out, s.n))
        return gdn_pull_fail(&r->json, GDN_NO_MEMORY, "no memory for a token of %zu bytes", s.n);
    size_t n = out->n;
    for (size_t at = 0; at < s.n;) {
        uint32_t code;
        at += gdn_utf8_next(s.text + at, s.n - at, &code);
        const int byte = byte_of(code);
        if (byte < 0) {
            *ordinary = false;
            return true;
        }
        out->bytes[n++] = (char)byte;
    }
    out->n = n;
    return true;
}

/* ---- the two long lists ------------------------------------------------------------------------------------------ */

static bool add_token(reader *r, uint32_t id, gdn_pull_string written, unsigned flags)
{
    bool ordinary;
    r->bytes.n = 0;
    if (!append_bytes(r, written, &ordinary)) return false;
    if (flags & GDN_TOKEN_VOCABULARY && ordinary) flags |= GDN_TOKEN_ORDINARY;
    else if (!ordinary) r->has_foreign |= flags & GDN_TOKEN_VOCABULARY;
    const char  *bytes = ordinary ? r->bytes.bytes : written.text;
    const size_t n = ordinary ? r->bytes.n : written.n;
    if (id >= GDN_BPE_MAX_TOKENS)
        return gdn_pull_fail(&r->json, GDN_BAD_FILE, "a token has the id %u; ids are below %d", id, GDN_BPE_MAX_TOKENS);
    if (n > r->tokenizer->longest) r->tokenizer->longest = n;
    const gdn_bpe_result result = gdn_bpe_add(&r->tokenizer->bpe, id, bytes, n, flags);
    if (result == GDN_BPE_TAKEN) return gdn_pull_fail(&r->json, GDN_BAD_FILE, "the id %u has two tokens", id);
    if (result) return gdn_pull_fail(&r->json, GDN_NO_MEMORY, "no memory for token %u", id);
    return true;
}

static bool read_vocabulary(reader *r)
{
    gdn_pull_string written;
    uint32_t        id = 0;
    r->json.at = r->vocab_at;
    gdn_pull_enter(&r->json, '{');
    while (gdn_pull_member(&r->json, &written)) { /* the id follows the text, which the id's reading leaves in place */
        if (!gdn_pull_count_read(&r->json, &id) || !add_token(r, id, written, GDN_TOKEN_VOCABULARY)) return false;
        r->n_vocabulary++;
    }
    if (r->json.status) return false;
    const gdn_bpe_result result = gdn_bpe_index(&r->tokenizer->bpe, &id);
    if (result == GDN_BPE_TAKEN) return refuse(r, GDN_BAD_FILE, "the token of id %u is in its vocabulary twice", id);
    if (result == GDN_BPE_ABSENT)
        return refuse(r, GDN_BAD_FILE, "its vocabulary has no token for the byte 0x%02x; all 256 are needed", id);
    if (result) return refuse(r, GDN_NO_MEMORY, "no memory for %zu tokens; free some", r->n_vocabulary);
    return true;
}

/* One side of a merge. */
static bool append_side(reader *r, gdn_pull_string written)
{
    bool ordinary;
    if (!append_bytes(r, written, &ordinary)) return false;
    return ordinary || gdn_pull_fail(&r->json, GDN_BAD_FILE, "a merge has characters that stand for no byte");
}

/* "left right" or ["left", "right"]: both sides in r->bytes, *n_left of them the left one's. */
static bool read_merge(reader *r, size_t *n_left)
{
    gdn_pull_string s;
    r->bytes.n = 0;
    if (gdn_pull_peek(&r->json) == '"') {
        if (!gdn_pull_string_read(&r->json, &s)) return false;
        const char *space = memchr(s.text, ' ', s.n);
        if (!space) return gdn_pull_fail(&r->json, GDN_BAD_FILE, "a merge has no space between its two sides");
        const size_t n = (size_t)(space - s.text);
        if (!append_side(r, (gdn_pull_string){s.text, n})) return false;
        *n_left = r->bytes.n;
        return append_side(r, (gdn_pull_string){space + 1, s.n - n - 1});
    }
    gdn_pull_enter(&r->json, '[');
    for (int side = 0; gdn_pull_element(&r->json); side++) {
        *n_left = r->bytes.n;
        if (side == 2) return gdn_pull_fail(&r->json, GDN_BAD_FILE, "a merge has more than two sides");
        if (!gdn_pull_string_read(&r->json, &s) || !append_side(r, s)) return false;
    }
    return !r->json.status;
}

static bool read_merges(reader *r)
{
    r->json.at = r->merges_at;
    gdn_pull_enter(&r->json, '[');
    while (gdn_pull_element(&r->json)) {
        size_t n_left = 0;
        if (!read_merge(r, &n_left)) return false;
        const gdn_bpe_result result = gdn_bpe_merge_add(&r->tokenizer->bpe, r->bytes.bytes, n_left, r->bytes.n);
        if (result == GDN_BPE_ABSENT)
            return gdn_pull_fail(&r->json, GDN_BAD_FILE,
                                 "a side of a merge, or what it makes, is not in the vocabulary");
        if (result) return gdn_pull_fail(&r->json, GDN_NO_MEMORY, "no memory for its merges; free some");
    }
    if (r->json.status) return false;
    if (gdn_bpe_finish(&r->tokenizer->bpe)) return refuse(r, GDN_NO_MEMORY, "no memory for its merges; free some");
    return true;
}

/* ---- the small parts --------------------------------------------------------------------------------------------- */

/* Keep the next value as member `name`. */
static bool keep(reader *r, json_t *object, const char *name)
{
    json_error_t error = {0}; /* jansson leaves its code alone where memory ends at once */
    gdn_pull_peek(&r->json);
    const size_t from = r->json.at;
    if (!gdn_pull_skip(&r->json)) return false;
    if (json_object_get(object, name)) return gdn_pull_fail(&r->json, GDN_BAD_FILE, "'%s' comes twice", name);
    json_t *value =
        json_loadb(r->json.text + from, r->json.at - from, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    const enum json_error_code code = json_error_code(&error);
    if (!value && code != json_error_out_of_memory && code != json_error_unknown)
        return gdn_pull_fail(&r->json, GDN_BAD_FILE, "'%s', which ends here, has an error: %.80s", name, error.text);
    if (json_object_set_new(object, name, value))
        return gdn_pull_fail(&r->json, GDN_NO_MEMORY, "no memory for '%s'", name);
    return true;
}

static bool is(gdn_pull_string string, const char *name)
{
    return string.n == strlen(name) && !memcmp(string.text, name, string.n);
}

/* Remember where a long list is. */
static bool mark(reader *r, size_t *at, const char *name)
{
    gdn_pull_peek(&r->json);
    if (*at) return gdn_pull_fail(&r->json, GDN_BAD_FILE, "'%s' comes twice", name);
    *at = r->json.at;
    return gdn_pull_skip(&r->json);
}

static bool read_model(reader *r)
{
    static const char *const options[] = {
        "type",          "dropout",      "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
        "byte_fallback", "ignore_merges"};
    gdn_pull_string name;
    gdn_pull_enter(&r->json, '{');
    while (gdn_pull_member(&r->json, &name)) {
        size_t i = 0;
        while (i < sizeof options / sizeof options[0] && !is(name, options[i])) i++;
        const bool ok = i < sizeof options / sizeof options[0] ? keep(r, r->options, options[i])
                        : is(name, "vocab")                    ? mark(r, &r->vocab_at, "vocab")
                        : is(name, "merges")                   ? mark(r, &r->merges_at, "merges")
                                                               : gdn_pull_skip(&r->json);
        if (!ok) return false;
    }
    return !r->json.status;
}

static bool read_file(reader *r)
{
    static const char *const parts[] = {"version",       "added_tokens",   "normalizer",
                                        "pre_tokenizer", "post_processor", "decoder"};
    gdn_pull_string          name;
    bool                     has_model = false;
    gdn_pull_enter(&r->json, '{');
    while (gdn_pull_member(&r->json, &name)) {
        size_t i = 0;
        bool   ok;
        while (i < sizeof parts / sizeof parts[0] && !is(name, parts[i])) i++;
        if (i < sizeof parts / sizeof parts[0]) ok = keep(r, r->parts, parts[i]);
        else if (!is(name, "model")) ok = gdn_pull_skip(&r->json);
        else if (has_model) ok = gdn_pull_fail(&r->json, GDN_BAD_FILE, "'model' comes twice");
        else ok = has_model = read_model(r);
        if (!ok) return false;
    }
    if (!gdn_pull_finish(&r->json)) return false;
    return has_model || refuse(r, GDN_BAD_FILE, "it has no 'model'; it is not a tokenizer.json");
}

/* ---- what is supported ------------------------------------------------------------------------------------------- */

static const char *type_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return json_is_null(part) || !part ? "null" : type ? type : "without a type";
}

static bool is_type(const json_t *part, const char *type) { return !strcmp(type_of(part), type); }

static bool check_model(reader *r)
{
    static const char *const absent[] = {
        "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "ignore_merges"};
    if (!is_type(r->options, "BPE"))
        return refuse(r, GDN_UNSUPPORTED, "its model is %.40s; only BPE is supported", type_of(r->options));
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        const json_t *value = json_object_get(r->options, absent[i]);
        const char   *text = json_string_value(value);
        if (value && !json_is_null(value) && !json_is_false(value) && !(text && !*text) &&
            !(json_is_number(value) && json_number_value(value) == 0))
            return refuse(r, GDN_UNSUPPORTED, "its model sets '%s', which is not supported", absent[i]);
    }
    if (!r->vocab_at || !r->merges_at)
        return refuse(r, GDN_BAD_FILE, "its model has no '%s'", r->vocab_at ? "merges" : "vocab");
    return true;
}

/* Sequence(Split(a known pattern, Isolated), ByteLevel). */
static bool check_pre_tokenizer(reader *r)
{
    const json_t *part = json_object_get(r->parts, "pre_tokenizer"), *list = json_object_get(part, "pretokenizers");
    const json_t *split = json_array_get(list, 0), *bytes = json_array_get(list, 1);
    if (!is_type(part, "Sequence") || json_array_size(list) != 2 || !is_type(split, "Split") ||
        !is_type(bytes, "ByteLevel"))
        return refuse(r, GDN_UNSUPPORTED,
                      "its pre-tokeniser is %.40s; only a Sequence of Split and ByteLevel is supported", type_of(part));
    const char *regex = json_string_value(json_object_get(json_object_get(split, "pattern"), "Regex"));
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    if (!regex || !gdn_scanner_open(&r->tokenizer->scanner, regex))
        return refuse(r, GDN_UNSUPPORTED,
                      "its pattern '%.60s' is not that of Qwen2 or Qwen3.5; others are not supported",
                      regex ? regex : "(not a regex)");
    if (!behavior || strcmp(behavior, "Isolated") != 0 || !json_is_false(json_object_get(split, "invert")))
        return refuse(r, GDN_UNSUPPORTED, "its Split is %.40s or inverted; only Isolated is supported",
                      behavior ? behavior : "without a behavior");
    if (!json_is_false(json_object_get(bytes, "add_prefix_space")) ||
        !json_is_false(json_object_get(bytes, "use_regex")))
        return refuse(r, GDN_UNSUPPORTED, "its ByteLevel adds a space or splits again, which is not supported");
    return true;
}

static bool check_parts(reader *r)
{
    const json_t *version = json_object_get(r->parts, "version"), *normalizer = json_object_get(r->parts, "normalizer");
    const json_t *post = json_object_get(r->parts, "post_processor"), *decoder = json_object_get(r->parts, "decoder");
    if (version && (!json_is_string(version) || strcmp(json_string_value(version), "1.0") != 0))
        return refuse(r, GDN_UNSUPPORTED, "its version is not 1.0");
    r->tokenizer->nfc = is_type(normalizer, "NFC");
    if (!r->tokenizer->nfc && !is_type(normalizer, "null"))
        return refuse(r, GDN_UNSUPPORTED, "its normalizer is %.40s; only NFC or none is supported",
                      type_of(normalizer));
    if (!check_pre_tokenizer(r)) return false;
    if (!is_type(post, "null") && !is_type(post, "ByteLevel"))
        return refuse(r, GDN_UNSUPPORTED, "its post-processor is %.40s; only ByteLevel or none is supported",
                      type_of(post));
    if (!is_type(decoder, "ByteLevel"))
        return refuse(r, GDN_UNSUPPORTED, "its decoder is %.40s; only ByteLevel is supported", type_of(decoder));
    return true;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

/* The id that the vocabulary has for what is written like this, or -1. */
static int64_t id_in_vocabulary(reader *r, gdn_pull_string written)
{
    const gdn_bpe *bpe = &r->tokenizer->bpe;
    bool           ordinary;
    r->bytes.n = 0;
    if (!append_bytes(r, written, &ordinary)) return -1;
    if (ordinary) return gdn_bpe_find(bpe, r->bytes.bytes, r->bytes.n);
    for (size_t id = 0; r->has_foreign && id < bpe->n_tokens; id++) {
        const gdn_bpe_token *token = &bpe->tokens[id];
        if (token->flags == GDN_TOKEN_VOCABULARY && token->n == written.n &&
            !memcmp(bpe->bytes + token->at, written.text, written.n))
            return (int64_t)id;
    }
    return -1;
}

/* *next_id is what the library gives to the next token that the vocabulary does not have. */
static bool read_added(reader *r, const json_t *entry, size_t *next_id)
{
    static const char *const rules[] = {"single_word", "lstrip", "rstrip", "normalized"};
    const json_t            *content = json_object_get(entry, "content"), *number = json_object_get(entry, "id");
    const json_t            *special = json_object_get(entry, "special");
    if (!json_string_length(content) || !json_is_integer(number) || !json_is_boolean(special))
        return refuse(r, GDN_BAD_FILE, "an added token has no id, no content or no 'special'");
    const gdn_pull_string written = {json_string_value(content), json_string_length(content)};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (!json_is_false(json_object_get(entry, rules[i])))
            return refuse(r, GDN_UNSUPPORTED, "'%s' of the added token '%.60s' is not false; only false is supported",
                          rules[i], written.text);
    const json_int_t id = json_integer_value(number);
    const int64_t    known = id_in_vocabulary(r, written);
    const int64_t    expected = known >= 0 ? known : (int64_t)*next_id;
    if (r->json.status) return false;
    if (id != expected)
        return refuse(r, GDN_BAD_FILE,
                      "the added token '%.60s' has the id %lld, but its place in the list makes it %lld", written.text,
                      (long long)id, (long long)expected);
    const unsigned flags = GDN_TOKEN_ADDED | (json_is_true(special) ? GDN_TOKEN_SPECIAL : 0u);
    if (known >= 0) r->tokenizer->bpe.tokens[known].flags |= flags;
    else if (!add_token(r, (uint32_t)(*next_id)++, written, flags)) return false;
    gdn_added *added = &r->tokenizer->added[r->tokenizer->n_added];
    *added = (gdn_added){malloc(written.n), written.n, (uint32_t)id};
    if (!added->text) return refuse(r, GDN_NO_MEMORY, "no memory for its added tokens; free some");
    memcpy(added->text, written.text, written.n);
    r->tokenizer->n_added++;
    r->tokenizer->starts[(unsigned char)*added->text] = true;
    return true;
}

static int compare_added(const void *a, const void *b)
{
    const gdn_added *x = a, *y = b;
    const int        order = memcmp(x->text, y->text, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static bool read_added_tokens(reader *r)
{
    gdn_tokenizer *t = r->tokenizer;
    const json_t  *list = json_object_get(r->parts, "added_tokens");
    const size_t   n = json_array_size(list);
    size_t         next_id = r->n_vocabulary;
    if (list && !json_is_array(list)) return refuse(r, GDN_BAD_FILE, "its 'added_tokens' is not a list");
    if (!n) return true;
    t->added = calloc(n, sizeof *t->added);
    if (!t->added) return refuse(r, GDN_NO_MEMORY, "no memory for its added tokens; free some");
    for (size_t i = 0; i < n; i++)
        if (!read_added(r, json_array_get(list, i), &next_id)) return false;
    qsort(t->added, n, sizeof *t->added, compare_added);
    for (size_t i = 1; i < n; i++)
        if (!compare_added(&t->added[i - 1], &t->added[i]))
            return refuse(r, GDN_BAD_FILE, "the added token of id %u is in the list twice", t->added[i].id);
    return true;
}

gdn_status gdn_tokenizer_read(gdn_tokenizer *tokenizer, const char *json, size_t n, const char *name, gdn_error *err)
{
    reader r = {.tokenizer = tokenizer,
                .json = {.name = name, .text = json, .n = n, .err = err},
                .parts = json_object(),
                .options = json_object()};
    if (!r.parts || !r.options) refuse(&r, GDN_NO_MEMORY, "no memory to read it; free some");
    else if (read_file(&r) && check_model(&r) && check_parts(&r) && read_vocabulary(&r) && read_merges(&r))
        read_added_tokens(&r);
    json_decref(r.parts);
    json_decref(r.options);
    free(r.bytes.bytes);
    gdn_pull_close(&r.json);
    return r.json.status;
}
