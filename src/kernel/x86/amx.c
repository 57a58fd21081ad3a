/* Matrix products on AMX tiles: TDPBF16PS does a run of 32 in tile order, denormals and all, whatever the mode of
 * the CPU.
 *
 * Two panels and 32 rows at a time: outputs in tiles 0..3, x in 4 and 5, weights in 6 and 7.  Inputs are taken in parts, so that the
 * weights of a part stay in L1 for all rows.  What passes by, x above all, is loaded with the hint that it is not needed again
 * (TILELOADDT1), or it would drive them out: 1.3 times the time of a product of 512 rows. */
#include "kernel/kernel.h"
#include <immintrin.h>
#include <string.h>

enum {
    TILE_ROWS = 16,
    TILE_BYTES = 64,
    TILE_FLOATS = TILE_ROWS * GDN_PANEL,
    BLOCK_ROWS = 2 * TILE_ROWS,
    AWAKE_RUNS = 4,    /* of inputs between stores: see STAY_AWAKE */
    X_BYTES = 1 << 20, /* of x that stay in L2 beside weights and outputs */
    PART_RUNS = 16     /* of inputs, of which two panels of weights stay in L1: 32 KiB */
};

typedef struct tile_config {
    uint8_t  palette, start_row, reserved[14];
    uint16_t column_bytes[16];
    uint8_t  rows[16];
} tile_config;

/* The tiles of blocks of n_rows rows, unless they are so already, for it takes about a thousand cycles; their contents are lost. */
static void configure(int n_rows, int *configured)
{
    if (n_rows == *configured) return;
    *configured = n_rows;
    const uint8_t whole = TILE_ROWS, above = (uint8_t)(n_rows < TILE_ROWS ? n_rows : TILE_ROWS);
    const uint8_t below = (uint8_t)(n_rows - above);
    const uint8_t rows[8] = {above, above, below, below, above, below, whole, whole};
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

/* One step: inputs k..end of a pair of panels (or of the last one alone), for all rows.  x_from..x_end of the inputs stay in L2. */
typedef struct step {
    int panel, k, end, x_from, x_end;
} step;

/* Where the tile of row m and side 0 or 1 of a pair of panels waits between two parts of inputs. */
static inline float *waiting(const gdn_matmul_job *j, int m, int side)
{
    return j->work + ((size_t)m / TILE_ROWS * 2 + (size_t)side) * TILE_FLOATS;
}

static inline float *outputs(const gdn_matmul_job *j, const step *s, int m, int side)
{
    return j->y + (size_t)m * j->y_stride + (size_t)(s->panel + side) * GDN_PANEL;
}

/* The sums so far: none, or what an earlier part left.  Macros: tiles are numbered by constants. */
#define BEGIN(tile, m, side)                                                                  \
    do {                                                                                      \
        if (s->k == 0) _tile_zero(tile);                                                      \
        else if (s->k > s->x_from) _tile_stream_loadd(tile, waiting(j, m, side), TILE_BYTES); \
        else _tile_stream_loadd(tile, outputs(j, s, m, side), j->y_stride * sizeof(float));   \
    } while (0)

/* To where they wait, or to y: by way of memory of our own where the panel is not whole. */
#define STORE(tile, m, side, n_rows)                                                 \
    do {                                                                             \
        float part[TILE_FLOATS];                                                     \
        if (s->end < s->x_end) {                                                     \
            _tile_stored(tile, waiting(j, m, side), TILE_BYTES);                     \
        } else if ((s->panel + (side) + 1) * GDN_PANEL <= j->n_outputs) {            \
            _tile_stored(tile, outputs(j, s, m, side), j->y_stride * sizeof(float)); \
        } else {                                                                     \
            _tile_stored(tile, part, TILE_BYTES);                                    \
            __asm__ volatile("" : : : "memory");                                     \
            copy_out(j, m, s->panel + (side), n_rows, part);                         \
        }                                                                            \
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

static inline const uint16_t *weights_of(const gdn_matmul_job *j, const step *s)
{
    return j->w + ((size_t)s->panel * j->n_inputs + (size_t)s->k) * GDN_PANEL;
}

/* Rows m.. in the tiles that are configured: n_rows 17..32 with `below`, 1..16 without. */
static inline __attribute__((always_inline)) void block(const gdn_matmul_job *j, const step *s, int m, int n_rows,
                                                        ahead next, int below, int second)
{
    const size_t    panel_size = (size_t)GDN_PANEL * j->n_inputs, x_bytes = j->x_stride * sizeof *j->x;
    const uint16_t *x = j->x + m * j->x_stride + s->k, *w = weights_of(j, s);
    const int       long_rows = s->end - s->k > PART_RUNS * GDN_RUN;
    BEGIN(0, m, 0);
    if (second) BEGIN(1, m, 1);
    if (below) BEGIN(2, m + TILE_ROWS, 0);
    if (below && second) BEGIN(3, m + TILE_ROWS, 1);
    for (int k = s->k; k < s->end; k += GDN_RUN, x += GDN_RUN, w += GDN_RUN * GDN_PANEL) {
        look_ahead(&next);
        _tile_stream_loadd(4, x, x_bytes);
        _tile_loadd(6, w, TILE_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        if (second) _tile_loadd(7, w + panel_size, TILE_BYTES);
        if (second) _tile_dpbf16ps(1, 4, 7);
        if (below) _tile_stream_loadd(5, x + TILE_ROWS * j->x_stride, x_bytes);
        if (below) _tile_dpbf16ps(2, 5, 6);
        if (below && second) _tile_dpbf16ps(3, 5, 7);
        if (long_rows && (k / GDN_RUN) % AWAKE_RUNS == 0) STAY_AWAKE(6);
    }
    const int above = below ? TILE_ROWS : n_rows;
    STORE(0, m, 0, above);
    if (second) STORE(1, m, 1, above);
    if (below) STORE(2, m + TILE_ROWS, 0, n_rows - TILE_ROWS);
    if (below && second) STORE(3, m + TILE_ROWS, 1, n_rows - TILE_ROWS);
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

/* n in equal parts of at most `most`: the size of one. */
static int part_of(int n, int most)
{
    const int n_parts = (n + most - 1) / most;
    return (n + n_parts - 1) / n_parts;
}

/* Inputs of which x stays in L2: all, or small parts, for then sums wait in y, which passes by as well; that needs whole panels. */
static int inputs_in_l2(const gdn_matmul_job *j)
{
    const int n_runs = j->n_inputs / GDN_RUN, most = X_BYTES / (GDN_RUN * (int)sizeof *j->x) / j->n_rows;
    if (n_runs <= most || most < 2 || j->n_outputs % GDN_PANEL) return j->n_inputs;
    return part_of(n_runs, least(PART_RUNS, most / 2)) * GDN_RUN;
}

/* Of these, those of which the weights stay in L1, if there is more than one block to need them, and room for the sums to wait. */
static int inputs_in_l1(const gdn_matmul_job *j, int in_l2)
{
    const int room = GDN_MATMUL_ROWS / (2 * GDN_PANEL) * j->n_inputs; /* rows of a pair of panels, in `work` */
    return j->n_rows <= BLOCK_ROWS || j->n_rows > room ? in_l2 : part_of(in_l2 / GDN_RUN, PART_RUNS) * GDN_RUN;
}

static step step_from(const gdn_matmul_job *j, int panel, int x_from, int k)
{
    const int in_l2 = inputs_in_l2(j), x_end = least(x_from + in_l2, j->n_inputs);
    return (step){panel, k, least(k + inputs_in_l1(j, in_l2), x_end), x_from, x_end};
}

/* The step after s; panel is past the last one at the end. */
static step after(const gdn_matmul_job *j, const step *s)
{
    if (s->end < s->x_end) return step_from(j, s->panel, s->x_from, s->end);
    if (s->panel + 2 < j->n_panels || s->x_end == j->n_inputs) return step_from(j, s->panel + 2, s->x_from, s->x_from);
    return step_from(j, 0, s->x_end, s->x_end);
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
    const int from_y = pair && s->k > 0 && s->k == s->x_from, to_y = pair && s->end == s->x_end;
    ahead     next = {.y_bytes = j->y_stride * sizeof *j->y, .rows_a_run = (BLOCK_ROWS + n_runs - 1) / n_runs};
    look_for(j, s, then, &next);
    for (int m = 0, n_rows; m < j->n_rows; m += n_rows) {
        n_rows = least(j->n_rows - m, BLOCK_ROWS);
        next.rows = from_y ? least(j->n_rows - m - n_rows, BLOCK_ROWS) : to_y ? n_rows : 0;
        next.y = (char *)outputs(j, s, from_y ? m + n_rows : m, 0);
        configure(n_rows, configured);
        any_block(j, s, m, n_rows, &next);
        const int asked = least(next.lines, n_runs * next.a_run);
        next.w += (size_t)asked * TILE_BYTES;
        next.second += (size_t)asked * TILE_BYTES;
        next.lines -= asked;
    }
}

void gdn_matmul_amx(const gdn_matmul_job *j)
{
    int configured = 0;
    for (step s = step_from(j, 0, 0, 0), then; s.panel < j->n_panels; s = then) {
        then = after(j, &s);
        all_rows(j, &s, &then, &configured);
    }
    _tile_release();
}
