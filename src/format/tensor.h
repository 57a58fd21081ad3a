/* format/tensor.h - a tensor as a file holds it. */
#ifndef GDN_FORMAT_TENSOR_H
#define GDN_FORMAT_TENSOR_H
#include "base/status.h"
#include <stddef.h>
#include <stdint.h>

/* The types of the safetensors format and the bits of an element.  gdn computes with the first three; the others are known so
 * that they can be refused by name. */
#define GDN_TENSOR_TYPE_LIST(X) \
    X(BF16, 16)                 \
    X(F16, 16)                  \
    X(F32, 32)                  \
    X(F64, 64)                  \
    X(F8_E4M3, 8)               \
    X(F8_E5M2, 8)               \
    X(F8_E8M0, 8)               \
    X(F8_E4M3FNUZ, 8)           \
    X(F8_E5M2FNUZ, 8)           \
    X(F6_E2M3, 6)               \
    X(F6_E3M2, 6)               \
    X(F4, 4)                    \
    X(C64, 64)                  \
    X(BOOL, 8)                  \
    X(U8, 8)                    \
    X(I8, 8)                    \
    X(U16, 16)                  \
    X(I16, 16)                  \
    X(U32, 32)                  \
    X(I32, 32)                  \
    X(U64, 64)                  \
    X(I64, 64)

typedef enum gdn_tensor_type {
#define X(name, bits) GDN_TENSOR_##name,
    GDN_TENSOR_TYPE_LIST(X)
#undef X
        GDN_TENSOR_TYPES
} gdn_tensor_type;

enum { GDN_TENSOR_DIMS = 8 };

typedef struct gdn_tensor {
    const char     *name, *file; /* file: without its folder */
    gdn_tensor_type type;
    int             n_dims;
    uint64_t        shape[GDN_TENSOR_DIMS]; /* outermost first, the last contiguous; their product fits n_bytes */
    const void     *data;                   /* in the mapped file, of any alignment */
    size_t          n_bytes;
} gdn_tensor;

const char *gdn_tensor_type_name(gdn_tensor_type type); /* "BF16"; static */
int         gdn_tensor_type_bits(gdn_tensor_type type);

size_t gdn_tensor_elements(const gdn_tensor *tensor);

/* "[4096, 256]" into text, cut to size. */
void gdn_shape_text(char *text, size_t size, const uint64_t *shape, int n_dims);

/* Elements first .. first+n-1, of BF16, F16 or F32, as f32 (exact) or as bf16 (nearest even; BF16 is copied).
 * BAD_ARGUMENT: the tensor has fewer; UNSUPPORTED: another type. */
gdn_status gdn_tensor_to_f32(float *dst, const gdn_tensor *tensor, size_t first, size_t n, gdn_error *err);
gdn_status gdn_tensor_to_bf16(uint16_t *dst, const gdn_tensor *tensor, size_t first, size_t n, gdn_error *err);

/* Advice to the system, never an error: the pages of the tensor will be read soon; they will not be read again, and need not
 * stay in memory (reading them again is correct and slow). */
void gdn_tensor_expect(const gdn_tensor *tensor);
void gdn_tensor_release(const gdn_tensor *tensor);

#endif
