#define WIDTH 16
#define LEVEL gdn_scale_avx512
#define READ gdn_read_avx512
#include "cli/limit_text.h"

/* Twelve chains: more than latency times ports on every x86 so far, and they fit the sixteen registers of AVX2. */
void gdn_fma_avx512(long n)
{
    vec a = (vec){0} + 1e-3f, b = a;
    vec c0 = a, c1 = a, c2 = a, c3 = a, c4 = a, c5 = a, c6 = a, c7 = a, c8 = a, c9 = a, c10 = a, c11 = a;
    for (; n > 0; n--) {
        __asm__ volatile("vfmadd231ps %12, %13, %0\n\tvfmadd231ps %12, %13, %1\n\tvfmadd231ps %12, %13, %2\n\t"
                         "vfmadd231ps %12, %13, %3\n\tvfmadd231ps %12, %13, %4\n\tvfmadd231ps %12, %13, %5\n\t"
                         "vfmadd231ps %12, %13, %6\n\tvfmadd231ps %12, %13, %7\n\tvfmadd231ps %12, %13, %8\n\t"
                         "vfmadd231ps %12, %13, %9\n\tvfmadd231ps %12, %13, %10\n\tvfmadd231ps %12, %13, %11"
                         : "+v"(c0), "+v"(c1), "+v"(c2), "+v"(c3), "+v"(c4), "+v"(c5), "+v"(c6), "+v"(c7), "+v"(c8),
                           "+v"(c9), "+v"(c10), "+v"(c11)
                         : "v"(a), "v"(b));
    }
}
