#define WIDTH 4
#define LEVEL gdn_scale_neon
#define READ gdn_read_neon
#include "cli/limit_text.h"

#define FMA_12(a, b, c)                                                                                                \
    __asm__ volatile("fmla %0.4s, %12.4s, %13.4s\n\tfmla %1.4s, %12.4s, %13.4s\n\tfmla %2.4s, %12.4s, %13.4s\n\t"      \
                     "fmla %3.4s, %12.4s, %13.4s\n\tfmla %4.4s, %12.4s, %13.4s\n\tfmla %5.4s, %12.4s, %13.4s\n\t"      \
                     "fmla %6.4s, %12.4s, %13.4s\n\tfmla %7.4s, %12.4s, %13.4s\n\tfmla %8.4s, %12.4s, %13.4s\n\t"      \
                     "fmla %9.4s, %12.4s, %13.4s\n\tfmla %10.4s, %12.4s, %13.4s\n\tfmla %11.4s, %12.4s, %13.4s"        \
                     : "+w"(c##0), "+w"(c##1), "+w"(c##2), "+w"(c##3), "+w"(c##4), "+w"(c##5), "+w"(c##6), "+w"(c##7), \
                       "+w"(c##8), "+w"(c##9), "+w"(c##10), "+w"(c##11)                                                \
                     : "w"(a), "w"(b))

/* Twenty-four chains: cores with four pipes of latency four need sixteen. */
void gdn_fma_neon(long n)
{
    vec a = (vec){0} + 1e-3f, b = a;
    vec c0 = a, c1 = a, c2 = a, c3 = a, c4 = a, c5 = a, c6 = a, c7 = a, c8 = a, c9 = a, c10 = a, c11 = a;
    vec d0 = a, d1 = a, d2 = a, d3 = a, d4 = a, d5 = a, d6 = a, d7 = a, d8 = a, d9 = a, d10 = a, d11 = a;
    for (; n > 0; n--) {
        FMA_12(a, b, c);
        FMA_12(a, b, d);
    }
}
