/* golden/recording.h - arrays of a recorded safetensors file; one that is missing or of another type or size fails the test. */
#ifndef GDN_TESTS_GOLDEN_RECORDING_H
#define GDN_TESTS_GOLDEN_RECORDING_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "format/safetensors.h"

static inline const void *recorded(const gdn_tensors *file, const char *name, gdn_tensor_type type, size_t n)
{
    const gdn_tensor *t = gdn_tensors_find(file, name);
    if (!t) fail_msg("%s: there is no %s", file->source, name);
    if (t->type != type || gdn_tensor_elements(t) != n)
        fail_msg("%s: %s has %zu elements of type %s", file->source, name, gdn_tensor_elements(t),
                 gdn_tensor_type_name(t->type));
    assert_int_equal((uintptr_t)t->data % 4, 0);
    return t->data;
}

static inline const float *floats(const gdn_tensors *file, const char *name, size_t n)
{
    return recorded(file, name, GDN_TENSOR_F32, n);
}

static inline const int32_t *integers(const gdn_tensors *file, const char *name, size_t n)
{
    return recorded(file, name, GDN_TENSOR_I32, n);
}

#endif
