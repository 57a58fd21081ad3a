/* fpmode.h - the thread's floating-point mode: rounding direction and the flushing of denormals. */
#ifndef TESTS_SUPPORT_FPMODE_H
#define TESTS_SUPPORT_FPMODE_H
#include <stdint.h>

/* Round to nearest, down, up, to zero; and flush (flush-to-zero, with denormals-are-zero where the CPU has it apart). */
enum { FPMODE_NEAREST, FPMODE_DOWN, FPMODE_UP, FPMODE_ZERO, FPMODE_DIRECTIONS };

#if defined(__x86_64__)
#include <xmmintrin.h>
typedef uint32_t fpmode;
/* Without the sticky exception flags, which any operation may raise. */
static inline fpmode fpmode_get(void) { return _mm_getcsr() & ~0x3fu; }
static inline void   fpmode_put(fpmode mode) { _mm_setcsr(mode); }
static inline fpmode fpmode_make(int direction, int flush)
{
    return 0x1f80u | (uint32_t)direction << 13 | (flush ? 0x8040u : 0u); /* exceptions masked; RC; FTZ and DAZ */
}
#elif defined(__aarch64__)
typedef uint64_t     fpmode;
static inline fpmode fpmode_get(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void   fpmode_put(fpmode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
static inline fpmode fpmode_make(int direction, int flush)
{
    static const uint64_t rmode[] = {0, 2, 1, 3};
    return rmode[direction] << 22 | (flush ? 1u << 24 : 0u);
}
#else
#error "x86-64 or aarch64"
#endif

#endif
