/* base/float_mode.h - the floating-point mode that results depend on: nearest, no flush to zero, no traps. */
#ifndef GDN_BASE_FLOAT_MODE_H
#define GDN_BASE_FLOAT_MODE_H
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline unsigned long long gdn_float_mode_set(unsigned long long mode)
{
#if defined(__x86_64__)
    const unsigned old = _mm_getcsr();
    if (old != (unsigned)mode) _mm_setcsr((unsigned)mode);
    return old;
#elif defined(__aarch64__)
    unsigned long long old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    if (old != mode) __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
    return old;
#else
    return mode;
#endif
}

/* Set that mode for the calling thread; returns the one to put back with gdn_float_mode_leave. */
static inline unsigned long long gdn_float_mode_enter(void)
{
#if defined(__x86_64__)
    return gdn_float_mode_set(0x1f80);
#else
    return gdn_float_mode_set(0);
#endif
}

static inline void gdn_float_mode_leave(unsigned long long mode) { gdn_float_mode_set(mode); }

#endif
