/* cli/bench_model.h - how fast a whole model reads prompts (pp) and generates (tg), beside the limits of the machine. */
#ifndef GDN_CLI_BENCH_MODEL_H
#define GDN_CLI_BENCH_MODEL_H
#include "cli/limits.h"
#include "cli/plan.h"
#include "model/model.h"

enum { GDN_BENCH_LIST = 16, GDN_BENCH_REPEATS = 100 };

typedef struct gdn_bench_list {
    int n, value[GDN_BENCH_LIST];
} gdn_bench_list;

typedef struct gdn_model_bench {
    const char    *shape, *level; /* shape: NULL for a model of the user's; level: the best when none is given */
    gdn_bench_list pp, threads;   /* tokens of the prompts; thread counts */
    int            tg, depth;     /* tokens generated (0: none), and tokens before them */
    int            piece;         /* tokens of a prompt that one forward takes */
    int            repeats, csv, json;

    gdn_path   path; /* of a model of the user's */
    gdn_model *model;
    gdn_plan   plan;
    uint64_t   parameters;
    uint64_t   program; /* resident bytes before anything was opened */

    /* Of the last thread count. */
    uint64_t states, kv,
        buffers;           /* bytes beside the weights: of the sequences and their tokens, and of the workspace */
    gdn_resident resident; /* with all of them in use */
} gdn_model_bench;

/* A line of the table; NAN where there is no such number. */
enum { GDN_BENCH_VALUES = 8 };
typedef struct gdn_bench_line {
    const char *test; /* pp, tg, read, matrix */
    int         threads, tokens, depth;
    double      value[GDN_BENCH_VALUES]; /* as bench_model_print.c names them */
} gdn_bench_line;

/* Seconds of the repetitions of one thing, which are sorted by gdn_bench_line_of. */
typedef struct gdn_bench_samples {
    int    n;
    double seconds[GDN_BENCH_REPEATS * (GDN_BENCH_LIST + 1)];
} gdn_bench_samples;

/* ---- bench_model_limits.c: the limits of the machine, with all threads of a compute ---- */

enum { GDN_READ_BYTES = 1 << 30 };

typedef struct gdn_model_limits {
    const gdn_limits *level,
        *best;                 /* of the compute's level, and of the highest of this machine; both may lack a limit */
    gdn_threads      *threads; /* borrowed */
    float            *x;       /* GDN_READ_BYTES, borrowed; NULL: there is no read limit */
    int               way;     /* of reading: the fastest */
    long              rounds;  /* of `matrix` that last 40 ms or more */
    gdn_bench_samples read, matrix;
} gdn_model_limits;

/* Memory for the read limit on huge pages where the system gives them; NULL without memory. */
float *gdn_reading_open(void);
/* Find the fastest way of reading and how long to multiply. */
void gdn_model_limits_open(gdn_model_limits *limits, gdn_compute *compute, float *x);
/* Take a sample of each. */
void   gdn_model_limits_sample(gdn_model_limits *limits);
double gdn_model_limits_flops(const gdn_model_limits *limits); /* of one sample; 0: no such limit */
double gdn_bench_now(void);                                    /* seconds */

/* ---- bench_model_run.c ---- */

/* Measure with so many threads.  Lines go to `lines`, *n_lines of them, at most GDN_BENCH_LIST + 3. */
gdn_status gdn_model_bench_run(gdn_model_bench *bench, int n_threads, gdn_bench_line *lines, int *n_lines,
                               gdn_error *err);

/* ---- bench_model.c ---- */

/* "64,512": whole numbers from `least` to `most` with commas between.  Returns an exit status. */
int gdn_bench_read_list(gdn_bench_list *list, const char *option, const char *text, int least, int most);

/* ---- bench_spec.c: `gdn bench --spec` ---- */

int gdn_bench_spec(int argc, char **argv);

/* ---- bench_model_print.c ---- */

void gdn_model_bench_print_head(const gdn_model_bench *bench);
void gdn_model_bench_print_line(const gdn_model_bench *bench, const gdn_bench_line *line);
/* What is resident now against the plan, or all of it as JSON; returns an exit status. */
int gdn_model_bench_print_end(const gdn_model_bench *bench, const gdn_bench_line *lines, int n_lines);

/* ---- bench_reuse.c ---- */

/* Play a conversation, print what it cost and close the model.  Returns an exit status. */
int gdn_bench_reuse(gdn_model_bench *bench, int n_threads);

/* ---- bench_snapshot.c ---- */

/* Keep the state of a sequence in memory and in a file of this folder, print what that takes and close the model.  Returns an exit
 * status. */
int gdn_bench_snapshot(gdn_model_bench *bench, int n_threads);

#endif
