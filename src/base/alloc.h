/* base/alloc.h - sizes that cannot wrap, and memory for vectors. */
#ifndef GDN_BASE_ALLOC_H
#define GDN_BASE_ALLOC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { GDN_ALIGN = 64 }; /* a cache line and the widest vector */

/* *product = a*b; false if that does not fit. */
static inline bool gdn_size_mul(size_t *product, size_t a, size_t b) { return !__builtin_mul_overflow(a, b, product); }

/* *sum = a+b; likewise. */
static inline bool gdn_size_add(size_t *sum, size_t a, size_t b) { return !__builtin_add_overflow(a, b, sum); }

/* *rounded = the next multiple of GDN_ALIGN from n; false if that does not fit. */
static inline bool gdn_size_round(size_t *rounded, size_t n)
{
    if (!gdn_size_add(rounded, n, GDN_ALIGN - 1)) return false;
    *rounded -= *rounded % GDN_ALIGN;
    return true;
}

/* n >= 1 bytes, aligned to GDN_ALIGN and not cleared; large blocks cost no memory until they are touched.  NULL without
 * memory; free with free. */
void *gdn_alloc_aligned(size_t n);

#endif
