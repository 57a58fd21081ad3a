/* base/cpu.h - what this processor can do and how much of it we may use. */
#ifndef GDN_BASE_CPU_H
#define GDN_BASE_CPU_H

enum {
    GDN_CPU_AVX2 = 1u << 0,   /* AVX2, FMA and F16C, and an operating system that saves ymm */
    GDN_CPU_AVX512 = 1u << 1, /* AVX-512 F, BW, VL, DQ, and an operating system that saves zmm */
    GDN_CPU_NEON = 1u << 2,
    GDN_CPU_AMX = 1u << 3, /* AMX tiles of bf16, and a kernel that lets this process have them */
};

unsigned gdn_cpu_flags(void);

/* Threads this process should use: the smaller of its affinity mask and its cgroup's quota, at least 1. */
int gdn_cpu_count(void);

#endif
