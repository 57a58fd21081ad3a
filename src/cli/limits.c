#include "cli/limits.h"
#include <string.h>

static const gdn_limits limits[] = {
    {"ref", 1, 0, NULL, NULL, NULL, NULL, 0, gdn_plain_base},
#if defined(__x86_64__)
    {"avx2", 8, 12, gdn_fma_avx2, gdn_scale_avx2, gdn_read_avx2, gdn_fma_avx2, 12 * 8, gdn_plain_avx2},
    {"avx512", 16, 12, gdn_fma_avx512, gdn_scale_avx512, gdn_read_avx512, gdn_fma_avx512, 12 * 16, gdn_plain_avx512},
    {"amx", 16, 12, gdn_fma_avx512, gdn_scale_avx512, gdn_read_avx512, gdn_tiles_amx, 4 * 16 * 16 * 32,
     gdn_plain_avx512},
#elif defined(__aarch64__)
    {"neon", 4, 24, gdn_fma_neon, gdn_scale_neon, gdn_read_neon, gdn_fma_neon, 24 * 4, gdn_plain_neon},
#endif
};

const gdn_limits *gdn_limits_of(const char *level)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!strcmp(limits[i].level, level)) return &limits[i];
    }
    return NULL;
}
