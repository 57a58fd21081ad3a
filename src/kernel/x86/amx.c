/* Matrix products on AMX tiles: TDPBF16PS does a run of 32 in tile order, denormals and all, whatever the mode of
 * the CPU.
 *
 * A block is up to 32 rows by 2 panels: tiles 0..3 are its outputs (rows 0.. of both panels, rows 16.. of both), 4
 * and 5 its rows of x, 6 and 7 a run of the two panels. */
#include "kernel/kernel.h"
#include <immintrin.h>
#include <string.h>

/* Up to so many rows the weights' way from memory decides, and vectors keep up with it. */
enum { FEW_ROWS = 4, TILE_ROWS = 16, TILE_BYTES = 64, BLOCK_ROWS = 2 * TILE_ROWS, X_BYTES = 1 << 20 };

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

/* What comes after a block: its lines are asked for run by run while the block is computed, so that neither weights from
 * memory nor outputs are waited for. */
typedef struct ahead {
    const char *w, *second; /* the next lines of weights in two panels; NULL: none */
    int         lines, a_run;
    char       *y; /* where the next block's outputs go: 32 columns */
    size_t      y_bytes;
    int         rows, rows_a_run;
} ahead;

static inline __attribute__((always_inline)) void look_ahead(ahead *a)
{
    for (int i = 0; i < a->a_run && a->lines; i++, a->lines--) {
        _mm_prefetch(a->w, _MM_HINT_T1);
        _mm_prefetch(a->second, _MM_HINT_T1);
        a->w += TILE_BYTES;
        a->second += TILE_BYTES;
    }
    for (int i = 0; i < a->rows_a_run && a->rows; i++, a->rows--) {
        __builtin_prefetch(a->y, 1);
        __builtin_prefetch(a->y + TILE_BYTES, 1);
        a->y += a->y_bytes;
    }
}

/* One step: inputs k..end of a pair of panels (or of the last one alone), for all rows. */
typedef struct step {
    int panel, k, end;
} step;

/* Rows m.. in the tiles that are configured: n_rows 17..32 with `below`, 1..16 without. */
static inline __attribute__((always_inline)) void block(const gdn_matmul_job *j, const step *s, int m, int n_rows,
                                                        ahead next, int below, int second)
{
    const size_t    panel_size = (size_t)GDN_PANEL * j->n_inputs, x_bytes = j->x_stride * sizeof *j->x;
    const size_t    y_bytes = j->y_stride * sizeof *j->y;
    const uint16_t *x = j->x + m * j->x_stride + s->k;
    const uint16_t *w = j->w + s->panel * panel_size + (size_t)s->k * GDN_PANEL;
    float *const y = j->y + m * j->y_stride + s->panel * GDN_PANEL, *const y_below = y + TILE_ROWS * j->y_stride;
    if (s->k) {
        _tile_loadd(0, y, y_bytes);
        if (second) _tile_loadd(1, y + GDN_PANEL, y_bytes);
        if (below) _tile_loadd(2, y_below, y_bytes);
        if (below && second) _tile_loadd(3, y_below + GDN_PANEL, y_bytes);
    } else {
        _tile_zero(0);
        if (second) _tile_zero(1);
        if (below) _tile_zero(2);
        if (below && second) _tile_zero(3);
    }
    for (int k = s->k; k < s->end; k += GDN_RUN, x += GDN_RUN, w += GDN_RUN * GDN_PANEL) {
        look_ahead(&next);
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
    STORE(0, m, s->panel, above);
    if (second) STORE(1, m, s->panel + 1, above);
    if (below) STORE(2, m + TILE_ROWS, s->panel, n_rows - TILE_ROWS);
    if (below && second) STORE(3, m + TILE_ROWS, s->panel + 1, n_rows - TILE_ROWS);
}

static void any_block(const gdn_matmul_job *j, const step *s, int m, int n_rows, const ahead *next)
{
    const int below = n_rows > TILE_ROWS, second = s->panel + 1 < j->n_panels;
    if (below && second) block(j, s, m, n_rows, *next, 1, 1);
    else if (below) block(j, s, m, n_rows, *next, 1, 0);
    else if (second) block(j, s, m, n_rows, *next, 0, 1);
    else block(j, s, m, n_rows, *next, 0, 0);
}

static int least(int a, int b) { return a < b ? a : b; }

/* The step after s; panel is past the last one at the end.  Panels change fastest: x, which all of them need, stays in L2. */
static step after(const gdn_matmul_job *j, step s, int n_inputs)
{
    s.panel += 2;
    if (s.panel < j->n_panels || s.end == j->n_inputs) return s;
    return (step){0, s.end, least(s.end + n_inputs, j->n_inputs)};
}

/* All rows of a step, a block of them after the other. */
static void all_rows(const gdn_matmul_job *j, const step *s, step then, int *configured)
{
    const int    n_blocks = (j->n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS, n_runs = (s->end - s->k) / GDN_RUN;
    const size_t panel_size = (size_t)GDN_PANEL * j->n_inputs;
    const int    lines = then.panel + 1 < j->n_panels ? (then.end - then.k) / GDN_RUN * TILE_ROWS : 0;
    const int    a_block = (lines + n_blocks - 1) / n_blocks;
    ahead        next = {.a_run = (a_block + n_runs - 1) / n_runs,
                         .y_bytes = j->y_stride * sizeof *j->y,
                         .rows_a_run = (BLOCK_ROWS + n_runs - 1) / n_runs};
    for (int i = 0; i < n_blocks; i++) {
        const int m = i * BLOCK_ROWS, n_rows = least(BLOCK_ROWS, j->n_rows - m);
        const int down = i + 1 < n_blocks; /* the next block: further down, or at the top of the next panels */
        const int row = down ? m + BLOCK_ROWS : 0, panel = down ? s->panel : then.panel;
        next.lines = next.rows = 0;
        if (lines > i * a_block) {
            next.lines = least(a_block, lines - i * a_block);
            next.w = (const char *)(j->w + then.panel * panel_size + ((size_t)then.k + 2 * i * a_block) * GDN_PANEL);
            next.second = next.w + panel_size * sizeof *j->w;
        }
        if (panel + 1 < j->n_panels) {
            next.rows = least(BLOCK_ROWS, j->n_rows - row);
            next.y = (char *)(j->y + row * j->y_stride + panel * GDN_PANEL);
        }
        if (n_rows != *configured) configure(*configured = n_rows);
        any_block(j, s, m, n_rows, &next);
    }
}

/* Of x as many inputs at a time as stay in L2 beside the weights; C waits in y meanwhile, which needs whole panels. */
void gdn_matmul_amx(const gdn_matmul_job *j)
{
    if (j->n_rows <= FEW_ROWS) {
        gdn_matmul_avx512(j);
        return;
    }
    const int cached = X_BYTES / (int)sizeof *j->x / j->n_rows / GDN_RUN * GDN_RUN;
    const int n_inputs = j->n_outputs % GDN_PANEL || cached < GDN_RUN ? j->n_inputs : cached;
    int       configured = 0;
    for (step s = {0, 0, least(n_inputs, j->n_inputs)}; s.panel < j->n_panels;) {
        const step then = after(j, s, n_inputs);
        all_rows(j, &s, then, &configured);
        s = then;
    }
    _tile_release();
}
