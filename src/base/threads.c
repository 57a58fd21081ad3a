#include "base/threads.h"
#include "base/float_mode.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { SPIN = 2000 }; /* pauses before a thread sleeps: long enough to bridge two calls of a decode loop */

struct gdn_threads {
    int             n; /* the caller and n-1 workers */
    gdn_task_fn    *fn;
    void           *arg;
    int             n_tasks;
    atomic_int      next;    /* first task nobody has taken */
    atomic_int      working; /* workers that have not finished this run */
    atomic_uint     run;     /* counts runs; a change is the starting signal */
    atomic_int      sleeping;
    int             stop; /* written before the last change of `run` */
    pthread_mutex_t mutex;
    pthread_cond_t  wake;
    struct worker {
        gdn_threads *threads;
        pthread_t    id;
        int          index;
    } worker[];
};

static void pause_cpu(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void work(gdn_threads *t, int thread)
{
    for (;;) {
        const int task = atomic_fetch_add_explicit(&t->next, 1, memory_order_relaxed);
        if (task >= t->n_tasks) return;
        t->fn(t->arg, task, thread);
    }
}

static void wait_for_run(gdn_threads *t, unsigned seen)
{
    for (int i = 0; i < SPIN; i++) {
        if (atomic_load_explicit(&t->run, memory_order_acquire) != seen) return;
        pause_cpu();
    }
    pthread_mutex_lock(&t->mutex);
    atomic_fetch_add(&t->sleeping, 1);
    while (atomic_load(&t->run) == seen) pthread_cond_wait(&t->wake, &t->mutex);
    atomic_fetch_sub(&t->sleeping, 1);
    pthread_mutex_unlock(&t->mutex);
}

static void *worker_main(void *arg)
{
    struct worker *const w = arg;
    gdn_threads *const   t = w->threads;
    gdn_float_mode_enter();
    for (unsigned seen = 0;;) {
        wait_for_run(t, seen);
        seen++;
        if (t->stop) return NULL;
        work(t, w->index);
        atomic_fetch_sub_explicit(&t->working, 1, memory_order_release);
    }
}

static void start_run(gdn_threads *t)
{
    atomic_fetch_add(&t->run, 1); /* sequentially consistent with `sleeping`: a sleeper is seen, or sees the new run */
    if (atomic_load(&t->sleeping) == 0) return;
    pthread_mutex_lock(&t->mutex);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);
}

gdn_status gdn_threads_open(gdn_threads **out, int n_threads, gdn_error *err)
{
    if (n_threads < 1 || n_threads > 256)
        return gdn_fail(err, GDN_BAD_ARGUMENT, n_threads, "threads: %d is not a thread count; use 1 to 256", n_threads);
    gdn_threads *t = calloc(1, sizeof *t + (size_t)n_threads * sizeof t->worker[0]);
    if (!t) return gdn_fail(err, GDN_NO_MEMORY, 0, "threads: no memory for a pool of %d", n_threads);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->wake, NULL);
    t->n = 1;
    for (int i = 1; i < n_threads; i++) {
        struct worker *const w = &t->worker[i];
        w->threads = t;
        w->index = i;
        if (pthread_create(&w->id, NULL, worker_main, w) != 0) {
            gdn_threads_close(t);
            return gdn_fail(err, GDN_NO_MEMORY, i, "threads: thread %d of %d could not be started; ask for fewer",
                            i + 1, n_threads);
        }
        t->n = i + 1;
    }
    *out = t;
    return GDN_OK;
}

void gdn_threads_close(gdn_threads *t)
{
    if (!t) return;
    t->stop = 1;
    start_run(t);
    for (int i = 1; i < t->n; i++) pthread_join(t->worker[i].id, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

int gdn_threads_count(const gdn_threads *t) { return t->n; }

void gdn_threads_run(gdn_threads *t, int n_tasks, gdn_task_fn *fn, void *arg)
{
    const unsigned long long mode = gdn_float_mode_enter();
    if (t->n == 1 || n_tasks <= 1) {
        for (int task = 0; task < n_tasks; task++) fn(arg, task, 0);
    } else {
        t->fn = fn;
        t->arg = arg;
        t->n_tasks = n_tasks;
        atomic_store_explicit(&t->next, 0, memory_order_relaxed);
        atomic_store_explicit(&t->working, t->n - 1, memory_order_relaxed);
        start_run(t);
        work(t, 0);
        for (int i = 0; atomic_load_explicit(&t->working, memory_order_acquire) != 0; i++) {
            if (i < SPIN) pause_cpu();
            else sched_yield();
        }
    }
    gdn_float_mode_leave(mode);
}
