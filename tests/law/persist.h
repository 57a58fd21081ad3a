/* persist.h - files of a test, in a folder beside the engines of reuse.h. */
#ifndef LAW_PERSIST_H
#define LAW_PERSIST_H
#include "law/reuse.h"
#include "support/folder.h"
#include <sys/stat.h>

static inline size_t read_file(const char *path, unsigned char **bytes)
{
    struct stat st;
    FILE       *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    *bytes = malloc((size_t)st.st_size + 1);
    assert_non_null(*bytes);
    assert_int_equal(fread(*bytes, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    return (size_t)st.st_size;
}

static inline void write_file(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static inline int open_folder(void **unused) { return make_folder(unused) || open_references(unused); }
static inline int close_folder(void **unused) { return close_references(unused) || remove_folder(unused); }

#endif
