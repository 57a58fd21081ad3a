/* base/threads.h - a pool of threads that runs independent tasks. */
#ifndef GDN_BASE_THREADS_H
#define GDN_BASE_THREADS_H
#include "base/status.h"
#include <stddef.h>

typedef struct gdn_threads gdn_threads;

/* Task `task` of a run, on thread `thread` (0 is the caller; below n_threads). */
typedef void gdn_task_fn(void *arg, int task, int thread);

/* n_threads 1..256, the caller among them.  Free with gdn_threads_close. */
gdn_status gdn_threads_open(gdn_threads **out, int n_threads, gdn_error *err);
void       gdn_threads_close(gdn_threads *threads); /* NULL is allowed */
int        gdn_threads_count(const gdn_threads *threads);

/* Run tasks 0..n_tasks-1, each once, in any order, and return when all are done.  All of them compute with denormals on and
 * rounding to nearest; the caller's own floating-point mode is put back.  One run at a time. */
void gdn_threads_run(gdn_threads *threads, int n_tasks, gdn_task_fn *fn, void *arg);

#endif
