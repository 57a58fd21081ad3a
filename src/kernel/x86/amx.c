/* Matrix products on AMX tiles: TDPBF16PS does a run of 32 in tile order, denormals and all, whatever the mode of
 * the CPU.
 *
 * A block is up to 32 rows by 2 panels: tiles 0..3 are its outputs (rows 0.. of both panels, rows 16.. of both), 4
 * and 5 its rows of x, 6 and 7 a run of the two panels. */
#include "kernel/kernel.h"
#include <immintrin.h>
#include <string.h>

/* Up to so many rows the weights' way from memory decides, and vectors keep up with it. */
enum { FEW_ROWS = 4, TILE_ROWS = 16, TILE_BYTES = 64, BLOCK_ROWS = 2 * TILE_ROWS };

typedef struct tile_config {
    uint8_t  palette, start_row, reserved[14];
    uint16_t column_bytes[16];
    uint8_t  rows[16];
} tile_config;

/* The tiles of blocks of n_rows rows; their contents are lost. */
static void configure(int n_rows)
{
    const uint8_t above = (uint8_t)(n_rows < TILE_ROWS ? n_rows : TILE_ROWS), below = (uint8_t)(n_rows - above);
    const uint8_t rows[8] = {above, above, below, below, above, below, TILE_ROWS, TILE_ROWS};
    tile_config   config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.rows[i] = rows[i];
        config.column_bytes[i] = rows[i] ? TILE_BYTES : 0; /* a tile that is not there has neither */
    }
    __asm__ volatile("" : : "r"(&config) : "memory"); /* GCC 12 does not see that the instruction reads it */
    _tile_loadconfig(&config);
}

/* n_rows rows of a tile's outputs, from where the tile was stored. */
static void copy_out(const gdn_matmul_job *j, int m, int panel, int n_rows, const float *from)
{
    const int rest = j->n_outputs - panel * GDN_PANEL, n = rest < GDN_PANEL ? rest : GDN_PANEL;
    for (int r = 0; r < n_rows; r++)
        memcpy(j->y + (m + r) * j->y_stride + panel * GDN_PANEL, from + r * GDN_PANEL, (size_t)n * sizeof *from);
}

/* To y, or by way of memory of our own where the panel is not whole.  A macro: tiles are numbered by constants. */
#define STORE(tile, m, panel, n_rows)                                                                    \
    do {                                                                                                 \
        float part[TILE_ROWS * GDN_PANEL];                                                               \
        if (((panel) + 1) * GDN_PANEL <= j->n_outputs) {                                                 \
            _tile_stored(tile, j->y + (m)*j->y_stride + (panel)*GDN_PANEL, j->y_stride * sizeof(float)); \
        } else {                                                                                         \
            _tile_stored(tile, part, TILE_BYTES);                                                        \
            __asm__ volatile("" : : : "memory");                                                         \
            copy_out(j, m, panel, n_rows, part);                                                         \
        }                                                                                                \
    } while (0)

/* Rows m.. of the panels panel.. in the tiles that are configured: n_rows 17..32 with `below`, 1..16 without. */
static inline __attribute__((always_inline)) void block(const gdn_matmul_job *j, int m, int panel, int n_rows,
                                                        int below, int second)
{
    const size_t    panel_size = (size_t)GDN_PANEL * j->n_inputs, x_bytes = j->x_stride * sizeof *j->x;
    const uint16_t *x = j->x + m * j->x_stride, *w = j->w + panel * panel_size;
    _tile_zero(0);
    if (second) _tile_zero(1);
    if (below) _tile_zero(2);
    if (below && second) _tile_zero(3);
    for (int k = 0; k < j->n_inputs; k += GDN_RUN, x += GDN_RUN, w += GDN_RUN * GDN_PANEL) {
        _tile_loadd(4, x, x_bytes);
        _tile_loadd(6, w, TILE_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        if (second) _tile_loadd(7, w + panel_size, TILE_BYTES);
        if (second) _tile_dpbf16ps(1, 4, 7);
        if (below) _tile_loadd(5, x + TILE_ROWS * j->x_stride, x_bytes);
        if (below) _tile_dpbf16ps(2, 5, 6);
        if (below && second) _tile_dpbf16ps(3, 5, 7);
    }
    const int above = below ? TILE_ROWS : n_rows;
    STORE(0, m, panel, above);
    if (second) STORE(1, m, panel + 1, above);
    if (below) STORE(2, m + TILE_ROWS, panel, n_rows - TILE_ROWS);
    if (below && second) STORE(3, m + TILE_ROWS, panel + 1, n_rows - TILE_ROWS);
}

static void any_block(const gdn_matmul_job *j, int m, int panel, int n_rows, int second)
{
    const int below = n_rows > TILE_ROWS;
    if (below && second) block(j, m, panel, n_rows, 1, 1);
    else if (below) block(j, m, panel, n_rows, 1, 0);
    else if (second) block(j, m, panel, n_rows, 0, 1);
    else block(j, m, panel, n_rows, 0, 0);
}

/* Panels outside: two of them stay in L2 while all rows pass, and come from memory once. */
void gdn_matmul_amx(const gdn_matmul_job *j)
{
    if (j->n_rows <= FEW_ROWS) {
        gdn_matmul_avx512(j);
        return;
    }
    int configured = 0;
    for (int panel = 0; panel < j->n_panels; panel += 2)
        for (int m = 0; m < j->n_rows; m += BLOCK_ROWS) {
            const int n_rows = j->n_rows - m < BLOCK_ROWS ? j->n_rows - m : BLOCK_ROWS;
            if (n_rows != configured) configure(configured = n_rows);
            any_block(j, m, panel, n_rows, panel + 1 < j->n_panels);
        }
    _tile_release();
}
