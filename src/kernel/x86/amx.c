/* Matrix products on AMX tiles: TDPBF16PS does a run of 32 in tile order, denormals and all, whatever the mode of
 * the CPU.
 *
 * Two panels at a time.  A block of 48 rows has its outputs in tiles 0..5 (rows 0.., 16.., 32.. of the first panel, then
 * of the second), 6 for rows of x and 7 for a run of weights: 7 loads for 6 products, two of which find their rows in
 * L1.  The rows that are left come in blocks of up to 32 and any number: outputs in 0..3, x in 4 and 5, weights in 6
 * and 7. */
#include "kernel/kernel.h"
#include <immintrin.h>
#include <string.h>

enum {
    TILE_ROWS = 16,
    TILE_BYTES = 64,
    BLOCK_ROWS = 3 * TILE_ROWS,
    REST_ROWS = 2 * TILE_ROWS,
    AWAKE_RUNS = 4,   /* of inputs between stores: see STAY_AWAKE */
    X_BYTES = 1 << 20 /* of x that stay in L2 beside weights and outputs */
};

typedef struct tile_config {
    uint8_t  palette, start_row, reserved[14];
    uint16_t column_bytes[16];
    uint8_t  rows[16];
} tile_config;

/* The tiles of blocks of n_rows rows, unless they are so already, for it takes about a thousand cycles; their contents are lost.
 * All tiles are whole in two kinds of blocks. */
static void configure(int n_rows, int *configured)
{
    if (n_rows == REST_ROWS) n_rows = BLOCK_ROWS;
    if (n_rows == *configured) return;
    *configured = n_rows;
    const uint8_t whole = TILE_ROWS, above = (uint8_t)(n_rows < TILE_ROWS ? n_rows : TILE_ROWS);
    const uint8_t below = (uint8_t)(n_rows - above);
    const uint8_t rest[8] = {above, above, below, below, above, below, whole, whole};
    tile_config   config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.rows[i] = n_rows == BLOCK_ROWS ? whole : rest[i];
        config.column_bytes[i] = config.rows[i] ? TILE_BYTES : 0; /* a tile that is not there has neither */
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

/* Zero, or what an earlier step left in y. */
#define BEGIN(tile, m, panel)                                                                            \
    do {                                                                                                 \
        if (s->k == 0) _tile_zero(tile);                                                                 \
        else _tile_loadd(tile, j->y + (m)*j->y_stride + (panel)*GDN_PANEL, j->y_stride * sizeof(float)); \
    } while (0)

/* What is asked for run by run while a block is computed, so that neither weights from memory nor outputs are waited for. */
typedef struct ahead {
    const char *w, *second; /* the next lines of weights in two panels */
    int         lines, a_run;
    char       *y; /* where the block's outputs go: 32 columns */
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

/* Some processors put the way from tiles to memory to sleep when it was not used for 0.65 us, less than a long row takes, and
 * need 0.25 us to wake it.  So store a tile now and then, to nowhere. */
#define STAY_AWAKE(tile)                                  \
    do {                                                  \
        char nowhere[TILE_ROWS * TILE_BYTES];             \
        _tile_stored(tile, nowhere, TILE_BYTES);          \
        __asm__ volatile("" : : "r"(nowhere) : "memory"); \
    } while (0)

/* One step: inputs k..end of a pair of panels (or of the last one alone), for all rows. */
typedef struct step {
    int panel, k, end;
} step;

static inline const uint16_t *weights_of(const gdn_matmul_job *j, const step *s)
{
    return j->w + ((size_t)s->panel * j->n_inputs + (size_t)s->k) * GDN_PANEL;
}

/* Rows m..m+47 of two panels. */
static void whole_block(const gdn_matmul_job *j, const step *s, int m, ahead next)
{
    const size_t    panel_size = (size_t)GDN_PANEL * j->n_inputs, x_bytes = j->x_stride * sizeof *j->x;
    const size_t    below = TILE_ROWS * j->x_stride;
    const uint16_t *x = j->x + m * j->x_stride + s->k, *w = weights_of(j, s);
    BEGIN(0, m, s->panel);
    BEGIN(1, m + TILE_ROWS, s->panel);
    BEGIN(2, m + 2 * TILE_ROWS, s->panel);
    BEGIN(3, m, s->panel + 1);
    BEGIN(4, m + TILE_ROWS, s->panel + 1);
    BEGIN(5, m + 2 * TILE_ROWS, s->panel + 1);
    for (int k = s->k; k < s->end; k += GDN_RUN, x += GDN_RUN, w += GDN_RUN * GDN_PANEL) {
        look_ahead(&next);
        _tile_loadd(7, w, TILE_BYTES);
        _tile_loadd(6, x, x_bytes);
        _tile_dpbf16ps(0, 6, 7);
        _tile_loadd(6, x + below, x_bytes);
        _tile_dpbf16ps(1, 6, 7);
        _tile_loadd(6, x + 2 * below, x_bytes);
        _tile_dpbf16ps(2, 6, 7);
        _tile_loadd(7, w + panel_size, TILE_BYTES);
        _tile_dpbf16ps(5, 6, 7);
        _tile_loadd(6, x + below, x_bytes);
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(6, x, x_bytes);
        _tile_dpbf16ps(3, 6, 7);
        if ((k / GDN_RUN) % AWAKE_RUNS == 0) STAY_AWAKE(7);
    }
    STORE(0, m, s->panel, TILE_ROWS);
    STORE(3, m, s->panel + 1, TILE_ROWS);
    STORE(1, m + TILE_ROWS, s->panel, TILE_ROWS);
    STORE(4, m + TILE_ROWS, s->panel + 1, TILE_ROWS);
    STORE(2, m + 2 * TILE_ROWS, s->panel, TILE_ROWS);
    STORE(5, m + 2 * TILE_ROWS, s->panel + 1, TILE_ROWS);
}

/* Rows m.. in the tiles that are configured: n_rows 17..32 with `below`, 1..16 without. */
static inline __attribute__((always_inline)) void block(const gdn_matmul_job *j, const step *s, int m, int n_rows,
                                                        ahead next, int below, int second)
{
    const size_t    panel_size = (size_t)GDN_PANEL * j->n_inputs, x_bytes = j->x_stride * sizeof *j->x;
    const uint16_t *x = j->x + m * j->x_stride + s->k, *w = weights_of(j, s);
    BEGIN(0, m, s->panel);
    if (second) BEGIN(1, m, s->panel + 1);
    if (below) BEGIN(2, m + TILE_ROWS, s->panel);
    if (below && second) BEGIN(3, m + TILE_ROWS, s->panel + 1);
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
        if ((k / GDN_RUN) % AWAKE_RUNS == 0) STAY_AWAKE(6);
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
    if (n_rows == BLOCK_ROWS) whole_block(j, s, m, *next);
    else if (below && second) block(j, s, m, n_rows, *next, 1, 1);
    else if (below) block(j, s, m, n_rows, *next, 1, 0);
    else if (second) block(j, s, m, n_rows, *next, 0, 1);
    else block(j, s, m, n_rows, *next, 0, 0);
}

static int least(int a, int b) { return a < b ? a : b; }

/* Rows of the next block when `left` are left of a pair, or of one panel. */
static int block_rows(int left, int pair) { return left >= BLOCK_ROWS && pair ? BLOCK_ROWS : least(left, REST_ROWS); }

/* The step after s; panel is past the last one at the end.  Panels change fastest: x, which all of them need, stays in
 * L2. */
static step after(const gdn_matmul_job *j, step s, int n_inputs)
{
    s.panel += 2;
    if (s.panel < j->n_panels || s.end == j->n_inputs) return s;
    return (step){0, s.end, least(s.end + n_inputs, j->n_inputs)};
}

/* The weights to ask for during step s: those of the step after it, or what the caller is going to want. */
static void look_for(const gdn_matmul_job *j, const step *s, const step *then, ahead *next)
{
    const int       last = then->panel >= j->n_panels, n_inputs = last ? j->n_inputs : then->end - then->k;
    const uint16_t *w = last ? j->soon : weights_of(j, then);
    if (!w || (!last && then->panel + 1 == j->n_panels)) return;
    const int n_runs = (j->n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS * ((s->end - s->k) / GDN_RUN); /* or a few more */
    next->w = (const char *)w;
    next->second = (const char *)(w + (size_t)GDN_PANEL * j->n_inputs);
    next->lines = n_inputs / GDN_RUN * TILE_ROWS;
    next->a_run = (next->lines + n_runs - 1) / n_runs;
}

/* All rows of a step, a block of them after the other. */
static void all_rows(const gdn_matmul_job *j, const step *s, const step *then, int *configured)
{
    const int pair = s->panel + 1 < j->n_panels, n_runs = (s->end - s->k) / GDN_RUN;
    ahead     next = {.y_bytes = j->y_stride * sizeof *j->y, .rows_a_run = (BLOCK_ROWS + n_runs - 1) / n_runs};
    look_for(j, s, then, &next);
    for (int m = 0, n_rows; m < j->n_rows; m += n_rows) {
        n_rows = block_rows(j->n_rows - m, pair);
        next.rows = pair ? n_rows : 0;
        next.y = (char *)(j->y + m * j->y_stride + s->panel * GDN_PANEL);
        configure(n_rows, configured);
        any_block(j, s, m, n_rows, &next);
        const int asked = least(next.lines, n_runs * next.a_run);
        next.w += (size_t)asked * TILE_BYTES;
        next.second += (size_t)asked * TILE_BYTES;
        next.lines -= asked;
    }
}

/* Inputs of a step: of x as many as stay in L2, in equal parts; C waits in y meanwhile, which needs whole panels. */
static int inputs_of_step(const gdn_matmul_job *j)
{
    const int n_runs = j->n_inputs / GDN_RUN, cached = X_BYTES / (GDN_RUN * (int)sizeof *j->x) / j->n_rows;
    if (j->n_outputs % GDN_PANEL || cached == 0) return j->n_inputs;
    const int n_steps = (n_runs + cached - 1) / cached;
    return (n_runs + n_steps - 1) / n_steps * GDN_RUN;
}

void gdn_matmul_amx(const gdn_matmul_job *j)
{
    const int n_inputs = inputs_of_step(j);
    int       configured = 0;
    for (step s = {0, 0, least(n_inputs, j->n_inputs)}; s.panel < j->n_panels;) {
        const step then = after(j, s, n_inputs);
        all_rows(j, &s, &then, &configured);
        s = then;
    }
    _tile_release();
}
