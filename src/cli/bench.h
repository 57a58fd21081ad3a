/* cli/bench.h - a benchmark is groups of cases; the cases of a group are measured in alternation and share its data. */
#ifndef GDN_CLI_BENCH_H
#define GDN_CLI_BENCH_H
#include "cli/limits.h"
#include "gdn/delta.h"

enum { GDN_BENCH_CASES = 40, GDN_BENCH_BLOCKS = 48, GDN_BENCH_LEVELS = 4 };

typedef struct gdn_bench_options {
    const char *op, *level;    /* NULL: all */
    int         threads;       /* of every line that does not compare thread counts */
    int         heads, tokens; /* 0: the usual ones */
    double      seconds;       /* for one group */
    int         csv;
} gdn_bench_options;

typedef struct gdn_bench_level {
    const char       *name;
    gdn_compute      *compute;
    const gdn_limits *limits;
} gdn_bench_level;

typedef struct gdn_bench {
    gdn_bench_options options;
    int               n_levels;
    gdn_bench_level   levels[GDN_BENCH_LEVELS]; /* lowest first */
    gdn_compute      *one, *many; /* the highest level with 1 and with n_many threads; many is NULL on one CPU */
    int               n_many;
} gdn_bench;

/* One thing to time.  Amounts are those of one run. */
typedef struct gdn_bench_case {
    void (*setup)(void *arg); /* NULL, or what each run needs before it; not timed */
    void (*run)(void *arg);
    void       *arg;
    const char *op, *variant, *level; /* as printed */
    int         threads, tokens, heads;
    double      token_heads; /* tokens times heads: what "ns per token and head" divides by */
    double      flops, bytes;
    double      lane_ops; /* single-lane operations of the FMA ports: a vector of W floats does W at once */
    int         hidden;   /* measured for others to compare with, not printed */
    int         fma;      /* the case that measured this level's FMA rate (of matrix products: the tiles'), or -1 */
    int         scale;    /* one of the cases that scaled the same amount of memory, or -1: see gdn_bench_add_scale */
    int         versus;   /* the case that the ratio compares with, or -1 */
    int         is_cost;  /* ratio: 1: this time / that time, 0: that time / this time */
    const char *versus_name;
    double      median, least; /* seconds a run, by gdn_bench_measure */
} gdn_bench_case;

typedef struct gdn_bench_group {
    gdn_bench     *bench;
    int            n_cases, n_blocks;
    gdn_bench_case cases[GDN_BENCH_CASES];
    void          *blocks[GDN_BENCH_BLOCKS];
} gdn_bench_group;

/* ---- building a group (bench_group.c); these end the program when memory is short or a call fails ---- */

/* Zeroed memory aligned to 64 bytes, on huge pages where the system gives them; freed with the group. */
void *gdn_bench_alloc(gdn_bench_group *group, size_t bytes);
/* n values between least and most, the same in every run; and the same values as bf16. */
float    *gdn_bench_f32(gdn_bench_group *group, size_t n, float least, float most);
uint16_t *gdn_bench_bf16(gdn_bench_group *group, const float *x, size_t n);
/* Append a case with fma, scale and versus -1; returns it, to be filled. */
gdn_bench_case *gdn_bench_add(gdn_bench_group *group, void (*run)(void *), void *arg);
/* The FMA rate of a level, hidden; returns its number, or -1 for a level without one. */
int gdn_bench_add_fma(gdn_bench_group *group, const gdn_bench_level *level);
/* What bounds the matrix products of a level, hidden: its tiles where it has them, else as above. */
int gdn_bench_add_matrix(gdn_bench_group *group, const gdn_bench_level *level);
/* The in-place scale of x[0..bytes) in every way the highest level has, hidden; after the measurement the case whose number
 * is returned holds the fastest.  -1 for a level without one. */
int gdn_bench_add_scale(gdn_bench_group *group, float *x, size_t bytes);
/* Likewise the reading of x[0..bytes). */
int gdn_bench_add_read(gdn_bench_group *group, const void *x, size_t bytes);
/* End the program unless `status` is OK. */
void gdn_bench_require(gdn_status status, const gdn_error *err);
/* Measure, print and free the group; ends the program when the results cannot be written. */
void gdn_bench_finish(gdn_bench_group *group);

/* ---- timing.c ---- */

/* Sample the cases in alternation for about `seconds` in all, each for an equal share of the time and at least three times;
 * sets median and least. */
void gdn_bench_measure(gdn_bench_case *cases, int n_cases, double seconds);

/* `gdn bench --ops` (bench_ops.c): a verb. */
int gdn_bench_ops(int argc, char **argv);

/* ---- bench_table.c ---- */

typedef struct gdn_processor {
    char text[300];
} gdn_processor;
gdn_processor gdn_bench_processor(void); /* its name and architecture */

void gdn_bench_print_head(const gdn_bench *bench);
void gdn_bench_print_case(const gdn_bench_group *group, const gdn_bench_case *c);

/* ---- the groups ---- */

void gdn_bench_limits(gdn_bench *bench);     /* bench_limits.c */
void gdn_bench_conv_silu(gdn_bench *bench);  /* bench_rows.c */
void gdn_bench_qk_norm(gdn_bench *bench);    /* bench_rows.c */
void gdn_bench_gates(gdn_bench *bench);      /* bench_rows.c */
void gdn_bench_gated_norm(gdn_bench *bench); /* bench_rows.c */
void gdn_bench_delta(gdn_bench *bench);      /* bench_delta.c */
void gdn_bench_matmul(gdn_bench *bench);     /* bench_matmul.c */
void gdn_bench_layer(gdn_bench *bench);      /* bench_layer.c */
void gdn_bench_round(gdn_bench *bench);      /* bench_layer.c */

#endif
