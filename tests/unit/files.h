/* Files in the folder of a test, and safetensors files that are taken apart, changed and written into it. */
#ifndef TESTS_UNIT_FILES_H
#define TESTS_UNIT_FILES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/status.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/folder.h"

static gdn_error err;

/* The call fails with this code and with this sentence. */
#define REFUSED(call, status, sentence)             \
    do {                                            \
        memset(&err, 0, sizeof err);                \
        assert_int_equal(call, status);             \
        assert_int_equal(err.code, status);         \
        assert_string_equal(err.message, sentence); \
    } while (0)

#define ACCEPTED(call)                            \
    do {                                          \
        memset(&err, 0, sizeof err);              \
        const int status_ = call;                 \
        if (status_) fail_msg("%s", err.message); \
    } while (0)

static inline void store(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline void store_text(const char *name, const char *text) { store(name, text, strlen(text)); }

static inline void forget(const char *name) { assert_int_equal(unlink(in_folder(name)), 0); }

/* The bytes of a file and a 0 behind them, to free. */
static inline char *load(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n, f), *n);
    fclose(f);
    bytes[*n] = 0;
    return bytes;
}

/* text with the first `old` replaced, to free; text must contain it. */
static inline char *replaced(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    if (!at) fail_msg("'%s' is not in the text", old);
    const size_t size = strlen(text) + strlen(new) + 1;
    char        *result = malloc(size);
    assert_non_null(result);
    snprintf(result, size, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    return result;
}

/* A safetensors file of a header and data. */
static inline void store_image(const char *name, const char *header, const void *data, size_t n_data)
{
    const uint64_t n_header = strlen(header);
    char          *bytes = malloc(sizeof n_header + n_header + n_data);
    assert_non_null(bytes);
    memcpy(bytes, &n_header, sizeof n_header);
    memcpy(bytes + sizeof n_header, header, n_header);
    if (n_data) memcpy(bytes + sizeof n_header + n_header, data, n_data);
    store(name, bytes, sizeof n_header + n_header + n_data);
    free(bytes);
}

#endif
