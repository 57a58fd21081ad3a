#include "kernel/kernel.h"
#include "base/cpu.h"

static const gdn_level levels[] = {
    {"ref", 0},
#if defined(__x86_64__)
    {"avx2", GDN_CPU_AVX2},
    {"avx512", GDN_CPU_AVX2 | GDN_CPU_AVX512},
    {"amx", GDN_CPU_AVX2 | GDN_CPU_AVX512 | GDN_CPU_AMX},
#elif defined(__aarch64__)
    {"neon", GDN_CPU_NEON},
#endif
};

const gdn_level *gdn_kernels_level(int i)
{
    return i >= 0 && i < (int)(sizeof levels / sizeof levels[0]) ? &levels[i] : NULL;
}

/* Reference first, then each level overwrites what it has. */
void gdn_kernels_fill(gdn_kernels *k, unsigned flags)
{
    k->conv_silu = gdn_conv_silu_ref;
    k->qk_norm = gdn_qk_norm_ref;
    k->gates = gdn_gates_ref;
    k->delta = gdn_delta_ref;
    k->gated_norm = gdn_gated_norm_ref;
    k->matmul = gdn_matmul_ref;
    k->rms_norm = gdn_rms_norm_ref;
    k->rope = gdn_rope_ref;
    k->attention = gdn_attention_ref;
    k->gate = gdn_gate_ref;
#if defined(__x86_64__)
    if (flags & GDN_CPU_AVX2) {
        k->conv_silu = gdn_conv_silu_avx2;
        k->qk_norm = gdn_qk_norm_avx2;
        k->gates = gdn_gates_avx2;
        k->delta = gdn_delta_avx2;
        k->gated_norm = gdn_gated_norm_avx2;
        k->rms_norm = gdn_rms_norm_avx2;
        k->rope = gdn_rope_avx2;
        k->attention = gdn_attention_avx2;
        k->gate = gdn_gate_avx2;
        k->matmul = gdn_matmul_avx2;
    }
    if (flags & GDN_CPU_AVX512) {
        k->conv_silu = gdn_conv_silu_avx512;
        k->qk_norm = gdn_qk_norm_avx512;
        k->gates = gdn_gates_avx512;
        k->delta = gdn_delta_avx512;
        k->gated_norm = gdn_gated_norm_avx512;
        k->rms_norm = gdn_rms_norm_avx512;
        k->rope = gdn_rope_avx512;
        k->attention = gdn_attention_avx512;
        k->gate = gdn_gate_avx512;
        k->matmul = gdn_matmul_avx512;
    }
    if (flags & GDN_CPU_AMX) k->matmul = gdn_matmul_amx;
#elif defined(__aarch64__)
    if (flags & GDN_CPU_NEON) {
        k->conv_silu = gdn_conv_silu_neon;
        k->qk_norm = gdn_qk_norm_neon;
        k->gates = gdn_gates_neon;
        k->delta = gdn_delta_neon;
        k->gated_norm = gdn_gated_norm_neon;
        k->rms_norm = gdn_rms_norm_neon;
        k->rope = gdn_rope_neon;
        k->attention = gdn_attention_neon;
        k->gate = gdn_gate_neon;
        k->matmul = gdn_matmul_neon;
    }
#else
    (void)flags;
#endif
}
