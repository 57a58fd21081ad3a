/* tokenizer_json.h - a small tokenizer.json to edit: 256 bytes (the id is the byte), some merges, some added tokens. */
#ifndef TESTS_UNIT_TOKENIZER_JSON_H
#define TESTS_UNIT_TOKENIZER_JSON_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/tokenizer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QWEN2_REGEX                                                                  \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}|" \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define QWEN35_REGEX                                                                           \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}|" \
    " ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define ADDED(id, content, special)                                                                       \
    "{\"id\":" id ",\"content\":\"" content "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false," \
    "\"normalized\":false,\"special\":" special "}"

typedef struct parts {
    const char *regex, *added, *vocab, *merges; /* vocab: more entries, each with a comma before it */
} parts;

/* The character that a byte is written as: itself, or the next of those from U+0100. */
static inline int written_byte(char *out, int byte)
{
    int code = byte, n_before = 0;
    if (!((byte > 32 && byte < 127) || (byte > 160 && byte != 173))) {
        for (int b = 0; b < byte; b++) n_before += !((b > 32 && b < 127) || (b > 160 && b != 173));
        code = 256 + n_before;
    }
    if (code == '"' || code == '\\') return sprintf(out, "\\%c", code);
    if (code < 128) return sprintf(out, "%c", code);
    return sprintf(out, "%c%c", 0xc0 | code >> 6, 0x80 | (code & 63));
}

static inline char *json_of(parts p)
{
    const size_t room = 16384 + strlen(p.added) + strlen(p.vocab) + strlen(p.merges);
    char        *json = malloc(room), *at = json;
    assert_non_null(json);
    at += sprintf(at, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[%s],", p.added);
    at += sprintf(at, "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
    at += sprintf(at, "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\",", p.regex);
    at += sprintf(at, "\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":false,");
    at += sprintf(at, "\"use_regex\":false}]},\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\"},");
    at +=
        sprintf(at,
                "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"byte_fallback\":false,\"vocab\":{");
    for (int byte = 0; byte < 256; byte++) {
        *at++ = '"';
        at += written_byte(at, byte);
        at += sprintf(at, "\":%d%s", byte, byte < 255 ? "," : "");
    }
    at += sprintf(at, "%s},\"merges\":[%s]}}", p.vocab, p.merges);
    assert_true((size_t)(at - json) < room);
    return json;
}

/* Tokens 256 " t" 257 "he" 258 " the", two merges of them, and three added tokens. */
static const parts common = {
    .regex = QWEN35_REGEX,
    .added =
        ADDED("259", "<|im_end|>", "true") "," ADDED("260", "<think>", "false") "," ADDED("261", "<think>!", "false"),
    .vocab = ",\"\xc4\xa0t\":256,\"he\":257,\"\xc4\xa0the\":258",
    .merges = "\"\xc4\xa0 t\",\"h e\",\"\xc4\xa0t he\"",
};

static inline gdn_tokenizer *opened(parts p)
{
    gdn_tokenizer *tokenizer = NULL;
    gdn_error      err = {GDN_OK, 0, ""};
    char          *json = json_of(p);
    if (gdn_tokenizer_parse(&tokenizer, json, strlen(json), "test.json", &err)) fail_msg("%s", err.message);
    free(json);
    return tokenizer;
}

/* The ids of one text are these. */
static inline void assert_encodes(const gdn_tokenizer *t, const char *text, size_t n, bool trusted, const int *want,
                                  size_t n_want)
{
    const gdn_span span = {text, n, trusted};
    gdn_ids        ids = {0};
    assert_int_equal(gdn_tokenizer_encode(t, &span, 1, &ids, NULL), GDN_OK);
    assert_int_equal(ids.n, n_want);
    for (size_t i = 0; i < n_want; i++) assert_int_equal(ids.id[i], want[i]);
    free(ids.id);
}
#define ASSERT_ENCODES(t, text, trusted, ...)                                     \
    assert_encodes(t, text, sizeof text - 1, trusted, (const int[]){__VA_ARGS__}, \
                   sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

#endif
