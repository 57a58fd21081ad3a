/* computes.h - every CPU level of this machine with 1, 2 and 5 threads. */
#ifndef TESTS_LAW_COMPUTES_H
#define TESTS_LAW_COMPUTES_H
#include "gdn/delta.h"
#include "kernel/kernel.h"
#include <stdio.h>
#include <stdlib.h>

enum { COMPUTES_MAX = 12 };

typedef struct computes {
    int          n;
    gdn_compute *each[COMPUTES_MAX], *ref; /* ref: level "ref", one thread; it is each[0] */
} computes;

static inline void computes_open(computes *c); /* aborts if one cannot be opened, or an aarch64 CPU has no NEON */
static inline void computes_close(computes *c);

static inline void computes_must(int holds, const char *what, const gdn_error *err)
{
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, err->message);
    abort();
}

static inline void computes_open(computes *c)
{
    static const int threads[] = {1, 2, 5};
    gdn_error        err = {.message = "there are more levels than COMPUTES_MAX has room for"};
    const gdn_level *level;
    *c = (computes){0};
    for (int l = 0; (level = gdn_kernels_level(l)); l++)
        for (int t = 0; t < 3; t++) {
            computes_must(c->n < COMPUTES_MAX, level->name, &err);
            const gdn_status status = gdn_compute_open(&c->each[c->n], level->name, threads[t], &err);
            if (status == GDN_UNSUPPORTED && l > 0) break;
            computes_must(status == GDN_OK, level->name, &err);
            c->n++;
        }
    c->ref = c->each[0];
#if defined(__aarch64__)
    computes_must(c->n == 6, "every aarch64 CPU has NEON", &err);
#endif
}

static inline void computes_close(computes *c)
{
    for (int i = 0; i < c->n; i++) gdn_compute_close(c->each[i]);
}

#endif
