#include "format/tensor.h"
#include "base/half.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

const char *gdn_tensor_type_name(gdn_tensor_type type)
{
    switch (type) {
#define X(name, bits) \
    case GDN_TENSOR_##name: return #name;
        GDN_TENSOR_TYPE_LIST(X)
#undef X
    case GDN_TENSOR_TYPES: break;
    }
    return "unknown";
}

int gdn_tensor_type_bits(gdn_tensor_type type)
{
    static const unsigned char bits_of[] = {
#define X(name, bits) bits,
        GDN_TENSOR_TYPE_LIST(X)
#undef X
    };
    return bits_of[type];
}

size_t gdn_tensor_elements(const gdn_tensor *t)
{
    size_t n = 1;
    for (int i = 0; i < t->n_dims; i++) n *= t->shape[i];
    return n;
}

void gdn_shape_text(char *text, size_t size, const uint64_t *shape, int n_dims)
{
    size_t used = 0;
    for (int i = -1; i <= n_dims && used < size; i++) {
        const int n = i < 0 ? snprintf(text, size, "[")
                      : i == n_dims
                          ? snprintf(text + used, size - used, "]")
                          : snprintf(text + used, size - used, i ? ", %llu" : "%llu", (unsigned long long)shape[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Where elements first .. first+n-1 begin. */
static gdn_status elements_at(const unsigned char **src, const gdn_tensor *t, size_t first, size_t n, gdn_error *err)
{
    const size_t total = gdn_tensor_elements(t);
    if (t->type != GDN_TENSOR_BF16 && t->type != GDN_TENSOR_F16 && t->type != GDN_TENSOR_F32)
        return gdn_fail(err, GDN_UNSUPPORTED, 0,
                        "%.60s: tensor %.100s has type %s; gdn computes with BF16, F16 and F32", t->file, t->name,
                        gdn_tensor_type_name(t->type));
    if (first > total || n > total - first)
        return gdn_fail(err, GDN_BAD_ARGUMENT, (long long)first, "tensor %.100s has %zu elements; read within them",
                        t->name, total);
    *src = (const unsigned char *)t->data + first * (size_t)(gdn_tensor_type_bits(t->type) / 8);
    return GDN_OK;
}

static inline uint16_t load16(const unsigned char *src, size_t i)
{
    uint16_t half;
    memcpy(&half, src + i * sizeof half, sizeof half);
    return half;
}

static inline float load32(const unsigned char *src, size_t i)
{
    float value;
    memcpy(&value, src + i * sizeof value, sizeof value);
    return value;
}

gdn_status gdn_tensor_to_f32(float *dst, const gdn_tensor *t, size_t first, size_t n, gdn_error *err)
{
    const unsigned char *src;
    const gdn_status     status = elements_at(&src, t, first, n, err);
    if (status || !n) return status;
    if (t->type == GDN_TENSOR_F32) memcpy(dst, src, n * sizeof *dst);
    else if (t->type == GDN_TENSOR_BF16)
        for (size_t i = 0; i < n; i++) dst[i] = gdn_f32_of_bf16(load16(src, i));
    else
        for (size_t i = 0; i < n; i++) dst[i] = gdn_f32_of_f16(load16(src, i));
    return GDN_OK;
}

gdn_status gdn_tensor_to_bf16(uint16_t *dst, const gdn_tensor *t, size_t first, size_t n, gdn_error *err)
{
    const unsigned char *src;
    const gdn_status     status = elements_at(&src, t, first, n, err);
    if (status || !n) return status;
    if (t->type == GDN_TENSOR_BF16) memcpy(dst, src, n * sizeof *dst);
    else if (t->type == GDN_TENSOR_F32)
        for (size_t i = 0; i < n; i++) dst[i] = gdn_bf16_of_f32(load32(src, i));
    else
        for (size_t i = 0; i < n; i++) dst[i] = gdn_bf16_of_f32(gdn_f32_of_f16(load16(src, i)));
    return GDN_OK;
}

/* The advice goes to whole pages; `inner` leaves the pages alone that a neighbour shares. */
static void advise(const gdn_tensor *t, int advice, int inner)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)t->data, end = data + t->n_bytes;
    const uintptr_t from = (inner ? data + page - 1 : data) / page * page, to = inner ? end / page * page : end;
    if (to > from) madvise((char *)t->data + (ptrdiff_t)(from - data), to - from, advice);
}

void gdn_tensor_expect(const gdn_tensor *t) { advise(t, MADV_WILLNEED, 0); }
void gdn_tensor_release(const gdn_tensor *t) { advise(t, MADV_DONTNEED, 1); }
