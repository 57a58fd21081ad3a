/* Matrix products in tile order, for every vector width.  Denormals are flushed by the processor: the kernel sets
 * its floating-point mode for the call and puts the caller's back.
 *
 * Chains begin with fmaf(x, w, +0) as in the definition, not with x*w: a product of -0 would pass where C is -0,
 * which it is after a sum of -denormal. */
#ifndef GDN_KERNEL_SIMD_MATMUL_H
#define GDN_KERNEL_SIMD_MATMUL_H
#include "kernel/simd/vec.h"

/* Few rows: registers hold E, O and C of all of them, and weights go from memory to the products.  With 32 wide
 * registers that is best for many rows as well, a few at a time while two panels stay in L2 (measured: 91 % of the
 * FMA bound, against 70 % the other way).  Narrower ones unpack weights too often so: a run of them is first
 * expanded to f32 in L1, where all the blocks of rows find it, and registers hold E, then O, of one block. */
enum {
    MATMUL_VECS = GDN_PANEL / VEC_WIDTH,       /* of a panel */
    MATMUL_FEW = VEC_WIDTH == 16 ? 4 : 2,      /* rows */
    MATMUL_ALONE = 4 / MATMUL_VECS,            /* panels at a time of one row: 8 chains hide the latency */
    MATMUL_TOGETHER = VEC_WIDTH == 16 ? 2 : 1, /* panels at a time of several */
    MATMUL_AHEAD = 2048 /* bytes of weights to ask for ahead: the prefetchers of the CPU stop at the end of a page */
};

/* Pairs of bf16, as 32-bit numbers: the even k below, the odd one above. */
typedef uint32_t matmul_pairs __attribute__((vector_size(4 * VEC_WIDTH)));

VEC_INLINE matmul_pairs matmul_load(const uint16_t *w)
{
    matmul_pairs p;
    memcpy(&p, w, sizeof p);
    return p;
}

VEC_INLINE vec matmul_even(matmul_pairs p) { return (vec)(p << 16); }
VEC_INLINE vec matmul_odd(matmul_pairs p) { return (vec)(p & 0xffff0000u); }

/* Vec v of row m of the output, counted from `panel`. */
VEC_INLINE void matmul_store(const gdn_matmul_job *j, int m, int panel, int v, vec c)
{
    const int column = panel * GDN_PANEL + v * VEC_WIDTH, rest = j->n_outputs - column;
    if (rest > 0) v_store_part(GDN_F32, j->y, m * j->y_stride + column, rest < VEC_WIDTH ? rest : VEC_WIDTH, c);
}

/* ---- few rows ---------------------------------------------------------------------------------------------------- */

/* Rows m.. of some panels; x is [K/32][of][32], at the first of the rows. */
VEC_INLINE void matmul_direct(const gdn_matmul_job *j, const float *x, int of, int m, int panel, int rows, int panels)
{
    const int       vecs = panels * MATMUL_VECS;
    const uint16_t *w[4];
    vec             c[4][4];
    for (int p = 0; p < panels; p++) w[p] = j->w + (size_t)(panel + p) * GDN_PANEL * j->n_inputs;
    VEC_UNROLL
    for (int r = 0; r < rows; r++) {
        VEC_UNROLL
        for (int v = 0; v < vecs; v++) c[r][v] = v_set1(0.0f);
    }
    for (int k = 0; k < j->n_inputs; k += GDN_RUN, x += of * GDN_RUN) {
        vec even[4][4], odd[4][4];
        VEC_UNROLL
        for (int r = 0; r < rows; r++) {
            VEC_UNROLL
            for (int v = 0; v < vecs; v++) even[r][v] = odd[r][v] = v_set1(0.0f);
        }
        for (int s = 0; s < GDN_RUN; s += 2) {
            VEC_UNROLL
            for (int v = 0; v < vecs; v++) {
                const uint16_t *const at =
                    w[v / MATMUL_VECS] + (size_t)(k + s) * GDN_PANEL + v % MATMUL_VECS * 2 * VEC_WIDTH;
                __builtin_prefetch((const char *)at + MATMUL_AHEAD);
                const matmul_pairs pairs = matmul_load(at);
                VEC_UNROLL
                for (int r = 0; r < rows; r++) {
                    even[r][v] = v_fma(v_set1(x[r * GDN_RUN + s]), matmul_even(pairs), even[r][v]);
                    odd[r][v] = v_fma(v_set1(x[r * GDN_RUN + s + 1]), matmul_odd(pairs), odd[r][v]);
                }
            }
        }
        VEC_UNROLL
        for (int r = 0; r < rows; r++) {
            VEC_UNROLL
            for (int v = 0; v < vecs; v++) c[r][v] = v_add(c[r][v], v_add(even[r][v], odd[r][v]));
        }
    }
    VEC_UNROLL
    for (int r = 0; r < rows; r++) {
        VEC_UNROLL
        for (int v = 0; v < vecs; v++) matmul_store(j, m + r, panel, v, c[r][v]);
    }
}

static __attribute__((noinline)) void matmul_group(const gdn_matmul_job *j, const float *x, int of, int m, int panel,
                                                   int rows, int panels)
{
    enum { TOGETHER = MATMUL_TOGETHER };
    if (rows == 1 && panels > TOGETHER) matmul_direct(j, x, of, m, panel, 1, MATMUL_ALONE);
    else if (rows == 1 && panels == TOGETHER) matmul_direct(j, x, of, m, panel, 1, TOGETHER);
    else if (rows == 2 && panels == TOGETHER) matmul_direct(j, x, of, m, panel, 2, TOGETHER);
#if defined(__AVX512F__)
    else if (rows == 3 && panels == TOGETHER) matmul_direct(j, x, of, m, panel, 3, TOGETHER);
    else if (rows == 4 && panels == TOGETHER) matmul_direct(j, x, of, m, panel, 4, TOGETHER);
    else if (rows == 1) matmul_direct(j, x, of, m, panel, 1, 1);
    else if (rows == 2) matmul_direct(j, x, of, m, panel, 2, 1);
    else if (rows == 3) matmul_direct(j, x, of, m, panel, 3, 1);
    else matmul_direct(j, x, of, m, panel, 4, 1);
#endif
}

/* x is [K/32][rows][32]. */
static void matmul_few(const gdn_matmul_job *j, const float *x, int m, int rows)
{
    for (int panel = 0, panels; panel < j->n_panels; panel += panels) {
        const int left = j->n_panels - panel;
        panels = rows == 1 && left >= MATMUL_ALONE ? MATMUL_ALONE : left >= MATMUL_TOGETHER ? MATMUL_TOGETHER : 1;
        for (int r = 0; r < rows; r += MATMUL_FEW)
            matmul_group(j, x + r * GDN_RUN, rows, m + r, panel, rows - r < MATMUL_FEW ? rows - r : MATMUL_FEW, panels);
    }
}

/* ---- more rows --------------------------------------------------------------------------------------------------- */

#if !defined(__AVX512F__)
enum { MATMUL_ROWS = 6 }; /* of a block, which is one panel wide */

/* One chain for each output of a block, of the even or the odd k of a run: x is at the first of them. */
VEC_INLINE void matmul_chains(vec sum[MATMUL_ROWS][MATMUL_VECS], const float *x, const float *w, int rows)
{
    VEC_UNROLL
    for (int r = 0; r < rows; r++) {
        VEC_UNROLL
        for (int v = 0; v < MATMUL_VECS; v++) sum[r][v] = v_set1(0.0f);
    }
    for (int s = 0; s < GDN_RUN / 2; s++, x += 2, w += GDN_PANEL) {
        vec weights[MATMUL_VECS];
        VEC_UNROLL
        for (int v = 0; v < MATMUL_VECS; v++) weights[v] = v_load(w + v * VEC_WIDTH);
        VEC_UNROLL
        for (int r = 0; r < rows; r++) {
            const vec one = v_set1(x[r * GDN_RUN]);
            VEC_UNROLL
            for (int v = 0; v < MATMUL_VECS; v++) sum[r][v] = v_fma(one, weights[v], sum[r][v]);
        }
    }
}

/* C <- C + (E + O) for a block: x [rows][32], w [2][16][16] (even k, odd k), c [rows][16]. */
VEC_INLINE void matmul_block(float *c, const float *x, const float *w, int rows)
{
    vec even[MATMUL_ROWS][MATMUL_VECS], odd[MATMUL_ROWS][MATMUL_VECS];
    matmul_chains(even, x, w, rows);
    matmul_chains(odd, x + 1, w + GDN_RUN / 2 * GDN_PANEL, rows);
    VEC_UNROLL
    for (int r = 0; r < rows; r++) {
        VEC_UNROLL
        for (int v = 0; v < MATMUL_VECS; v++) {
            float *const at = c + r * GDN_PANEL + v * VEC_WIDTH;
            v_store(at, v_add(v_load(at), v_add(even[r][v], odd[r][v])));
        }
    }
}

/* Blocks of about equal numbers of rows. */
static __attribute__((noinline)) void matmul_blocks(float *c, const float *x, const float *w, int n_rows)
{
    for (int left = n_rows, blocks = (n_rows + MATMUL_ROWS - 1) / MATMUL_ROWS; blocks; blocks--) {
        const int rows = (left + blocks - 1) / blocks;
        switch (rows) {
        case 1: matmul_block(c, x, w, 1); break;
        case 2: matmul_block(c, x, w, 2); break;
        case 3: matmul_block(c, x, w, 3); break;
        case 4: matmul_block(c, x, w, 4); break;
        case 5: matmul_block(c, x, w, 5); break;
        default: matmul_block(c, x, w, 6);
        }
        c += rows * GDN_PANEL;
        x += rows * GDN_RUN;
        left -= rows;
    }
}

static void matmul_expand(float *dst, const uint16_t *w)
{
    for (int i = 0; i < GDN_RUN / 2 * GDN_PANEL; i += VEC_WIDTH) {
        const matmul_pairs pairs = matmul_load(w + 2 * i);
        v_store(dst + i, matmul_even(pairs));
        v_store(dst + GDN_RUN / 2 * GDN_PANEL + i, matmul_odd(pairs));
    }
}

/* x is [K/32][rows][32]. */
static void matmul_many(const gdn_matmul_job *j, const float *x, int m, int rows)
{
    _Alignas(64) float w[GDN_RUN * GDN_PANEL], c[GDN_MATMUL_ROWS * GDN_PANEL];
    for (int panel = 0; panel < j->n_panels; panel++) {
        memset(c, 0, (size_t)rows * GDN_PANEL * sizeof *c);
        for (int k = 0; k < j->n_inputs; k += GDN_RUN) {
            matmul_expand(w, j->w + ((size_t)panel * j->n_inputs + k) * GDN_PANEL);
            matmul_blocks(c, x + (size_t)k * rows, w, rows);
        }
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < MATMUL_VECS; v++)
                matmul_store(j, m + r, panel, v, v_load(c + r * GDN_PANEL + v * VEC_WIDTH));
    }
}
#else /* a few at a time */
static void matmul_many(const gdn_matmul_job *j, const float *x, int m, int rows) { matmul_few(j, x, m, rows); }
#endif

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void matmul_all(const gdn_matmul_job *j)
{
    for (int m = 0; m < j->n_rows; m += GDN_MATMUL_ROWS) {
        const int rows = j->n_rows - m < GDN_MATMUL_ROWS ? j->n_rows - m : GDN_MATMUL_ROWS;
        for (int r = 0; r < rows; r++) {
            const uint16_t *const x = j->x + (size_t)(m + r) * j->x_stride;
            for (int k = 0; k < j->n_inputs; k += GDN_RUN)
                for (int i = 0; i < GDN_RUN; i += VEC_WIDTH)
                    v_store(j->work + (size_t)k * rows + r * GDN_RUN + i, v_load_bf16(x + k + i));
        }
        if (rows <= MATMUL_FEW) matmul_few(j, j->work, m, rows);
        else matmul_many(j, j->work, m, rows);
    }
}

#if defined(__x86_64__)
void VEC_NAME(gdn_matmul)(const gdn_matmul_job *j)
{
    const unsigned flush_to_zero = 1u << 15, denormals_are_zero = 1u << 6, mode = _mm_getcsr();
    _mm_setcsr(mode | flush_to_zero | denormals_are_zero);
    matmul_all(j);
    _mm_setcsr(mode);
}
#elif defined(__aarch64__)
/* This architecture looks at a result before it is rounded at all, the definition after: what rounds up to FLT_MIN
 * would be lost.  Underflow raises a flag; as it is of no concern to real data, the definition itself then does the
 * work. */
void VEC_NAME(gdn_matmul)(const gdn_matmul_job *j)
{
    const uint64_t flush_to_zero = 1u << 24, underflow = 1u << 3;
    uint64_t       mode, old_flags, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("mrs %0, fpsr" : "=r"(old_flags));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | flush_to_zero) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(old_flags & ~underflow) : "memory");
    matmul_all(j);
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(old_flags) : "memory");
    if (flags & underflow) gdn_matmul_ref(j);
}
#endif

#endif
