#include "base/cpu.h"
#include <sched.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* XCR0: which register files the operating system saves. */
static uint64_t saved_registers(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* Linux enlarges the saved state of a process by the tiles only when asked; asking again is harmless. */
static int ask_for_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

unsigned gdn_cpu_flags(void)
{
    const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24; /* of leaf 7, edx */
    const uint64_t tiles = 3u << 17;
    unsigned       a, b, c, d, b7, c7, d7, flags = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return 0;
    const uint64_t saved = saved_registers();
    if ((saved & 0x06) == 0x06 && (c & bit_FMA) && (c & bit_F16C) && (b7 & bit_AVX2)) flags |= GDN_CPU_AVX2;
    if ((saved & 0xe6) == 0xe6 && (flags & GDN_CPU_AVX2) && (b7 & bit_AVX512F) && (b7 & bit_AVX512BW) &&
        (b7 & bit_AVX512VL) && (b7 & bit_AVX512DQ))
        flags |= GDN_CPU_AVX512;
    if ((saved & tiles) == tiles && (flags & GDN_CPU_AVX512) && (d7 & amx_bf16) && (d7 & amx_tile) && ask_for_tiles())
        flags |= GDN_CPU_AMX;
    return flags;
}
#elif defined(__aarch64__)
unsigned gdn_cpu_flags(void) { return GDN_CPU_NEON; }
#else
unsigned gdn_cpu_flags(void) { return 0; }
#endif

/* Whole CPUs of the cgroup's quota, rounded up; 0: none is set. */
static int quota_cpus(void)
{
    static const char *const        v2 = "/sys/fs/cgroup/cpu.max";
    static const char *const        v1_quota = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
                             *const v1_period = "/sys/fs/cgroup/cpu/cpu.cfs_period_us";
    long long                       quota = 0, period = 0;
    FILE                           *f = fopen(v2, "r");
    if (f) {
        const int n = fscanf(f, "%lld %lld", &quota, &period);
        fclose(f);
        if (n != 2) return 0; /* "max": no quota */
    } else {
        f = fopen(v1_quota, "r");
        if (!f) return 0;
        const int n = fscanf(f, "%lld", &quota);
        fclose(f);
        f = n == 1 ? fopen(v1_period, "r") : NULL;
        if (!f) return 0;
        if (fscanf(f, "%lld", &period) != 1) period = 0;
        fclose(f);
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int gdn_cpu_count(void)
{
    cpu_set_t set;
    int       n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const int quota = quota_cpus();
    if (quota > 0 && quota < n) n = quota;
    return n < 1 ? 1 : n > 256 ? 256 : n;
}
