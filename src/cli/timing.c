#include "cli/bench.h"
#include "cli/cli.h"
#include <stdlib.h>
#include <time.h>

enum { LEAST_SAMPLES = 3, MOST_SAMPLES = 4096 };

typedef struct record {
    long   repeats; /* runs a sample, so that a sample is long compared with the clock's grain */
    int    n_samples, is_done;
    double spent; /* seconds, setup included */
} record;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double sample(const gdn_bench_case *c, long repeats)
{
    if (c->setup) c->setup(c->arg);
    double start = now();
    for (long i = 0; i < repeats; i++) c->run(c->arg);
    return (now() - start) / (double)repeats;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The case that has had the least time so far and may have another sample; -1 when all are done.  Equal shares of time
 * spread the samples of every case over the whole measurement, so that a drift of the machine meets all of them alike. */
static int next_case(const record *records, int n, int over)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        if (records[i].is_done || records[i].n_samples >= (over ? LEAST_SAMPLES : MOST_SAMPLES)) continue;
        if (best < 0 || records[i].spent < records[best].spent) best = i;
    }
    return best;
}

void gdn_bench_measure(gdn_bench_case *cases, int n_cases, double seconds)
{
    if (n_cases < 1) return;
    record records[GDN_BENCH_CASES] = {0};
    double(*samples)[MOST_SAMPLES] = malloc((size_t)n_cases * sizeof *samples);
    if (!samples) exit(gdn_cli_fail(GDN_EXIT_FAILED, "bench", "no memory for the samples"));

    double least = seconds / n_cases / 16 < 100e-6 ? seconds / n_cases / 16 : 100e-6;
    for (int i = 0; i < n_cases; i++) {
        double once = sample(&cases[i], 1); /* the first run touches the memory and wakes the threads */
        if (once > seconds) {               /* it was long enough not to notice, and too long to repeat */
            samples[i][0] = once;
            records[i].n_samples = records[i].is_done = 1;
            continue;
        }
        if (once < least) once = sample(&cases[i], 1);
        records[i].repeats = !cases[i].setup && once < least ? (long)(least / (once > 1e-8 ? once : 1e-8)) + 1 : 1;
    }
    double end = now() + seconds;
    for (int i; (i = next_case(records, n_cases, now() >= end)) >= 0;) {
        record *r = &records[i];
        double  start = now();
        samples[i][r->n_samples++] = sample(&cases[i], r->repeats);
        r->spent += now() - start;
    }
    for (int i = 0; i < n_cases; i++) {
        qsort(samples[i], (size_t)records[i].n_samples, sizeof(double), ascending);
        cases[i].median = samples[i][records[i].n_samples / 2];
        cases[i].least = samples[i][0];
    }
    free(samples);
}
