#include "base/alloc.h"
#include "base/cpu.h"
#include "cli/bench_model.h"
#include "device/compute.h"
#include <string.h>
#include <time.h>

enum { PARTS = 16 }; /* of the memory, a thread: whoever is faster reads more */

double gdn_bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

float *gdn_reading_open(void)
{
    float *x = gdn_alloc_aligned(GDN_READ_BYTES);
    if (x) memset(x, 1, GDN_READ_BYTES);
    return x;
}

static void read_task(void *arg, int task, int thread)
{
    const gdn_model_limits *const l = arg;
    const size_t n = GDN_READ_BYTES / sizeof *l->x / (size_t)(PARTS * gdn_threads_count(l->threads)) / GDN_SCALE_BLOCK *
                     GDN_SCALE_BLOCK;
    (void)thread;
    l->best->read[l->way](l->x + (size_t)task * n, n);
}

/* Seconds in which all of the memory is read. */
static double read_once(gdn_model_limits *l)
{
    const double start = gdn_bench_now();
    gdn_threads_run(l->threads, PARTS * gdn_threads_count(l->threads), read_task, l);
    return gdn_bench_now() - start;
}

static void matrix_task(void *arg, int task, int thread)
{
    const gdn_model_limits *const l = arg;
    (void)task;
    (void)thread;
    l->level->matrix(l->rounds);
}

static double multiply_once(gdn_model_limits *l)
{
    const double start = gdn_bench_now();
    gdn_threads_run(l->threads, gdn_threads_count(l->threads), matrix_task, l);
    return gdn_bench_now() - start;
}

double gdn_model_limits_flops(const gdn_model_limits *l)
{
    return l->rounds ? 2 * l->level->matrix_ops * (double)l->rounds * gdn_threads_count(l->threads) : 0;
}

static const gdn_limits *highest_limits(void)
{
    const gdn_limits *best = NULL;
    const unsigned    flags = gdn_cpu_flags();
    for (int i = 0; gdn_kernels_level(i); i++)
        if ((flags & gdn_kernels_level(i)->flags) == gdn_kernels_level(i)->flags)
            best = gdn_limits_of(gdn_kernels_level(i)->name);
    return best;
}

void gdn_model_limits_open(gdn_model_limits *l, gdn_compute *compute, float *x)
{
    enum { TRIES = 3 };
    double fastest = 1e9;
    *l = (gdn_model_limits){.level = gdn_limits_of(gdn_compute_level(compute)),
                            .best = highest_limits(),
                            .threads = compute->threads,
                            .x = x};
    if (!l->best || !l->best->read) l->x = NULL;
    for (int try = 0, best = 0; l->x && try <= TRIES * GDN_READ_WAYS; try++) {
        l->way = try % GDN_READ_WAYS;
        const double seconds = read_once(l);
        if (try >= GDN_READ_WAYS && seconds < fastest) { /* the first round wakes the threads */
            fastest = seconds;
            best = l->way;
        }
        if (try == TRIES * GDN_READ_WAYS) l->way = best;
    }
    if (!l->level || !l->level->matrix) return;
    for (l->rounds = 1000; multiply_once(l) < 0.04; l->rounds *= 2) {}
}

void gdn_model_limits_sample(gdn_model_limits *l)
{
    if (l->x) l->read.seconds[l->read.n++] = read_once(l);
    if (l->rounds) l->matrix.seconds[l->matrix.n++] = multiply_once(l);
}
