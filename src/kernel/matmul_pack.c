#include "kernel/kernel.h"

void gdn_matmul_pack(uint16_t *dst, const uint16_t *src, int n_outputs, int n_inputs)
{
    const int padded = (n_inputs + GDN_RUN - 1) / GDN_RUN * GDN_RUN;
    for (int n0 = 0; n0 < n_outputs; n0 += GDN_PANEL)
        for (int k0 = 0; k0 < padded; k0 += 2)
            for (int n = n0; n < n0 + GDN_PANEL; n++)
                for (int k = k0; k < k0 + 2; k++)
                    *dst++ = n < n_outputs && k < n_inputs ? src[(size_t)n * n_inputs + k] : 0;
}

void gdn_matmul_unpack_row(uint16_t *dst, const uint16_t *w, int output, int n_inputs)
{
    const int padded = (n_inputs + GDN_RUN - 1) / GDN_RUN * GDN_RUN;
    w += (size_t)(output / GDN_PANEL) * GDN_PANEL * padded + output % GDN_PANEL * 2;
    for (int k = 0; k < n_inputs; k++) dst[k] = w[(size_t)(k / 2) * GDN_PANEL * 2 + k % 2];
}
