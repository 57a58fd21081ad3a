/* computes.h - every CPU level of this machine with 1, 2 and 5 threads. */
#ifndef TESTS_SUPPORT_COMPUTES_H
#define TESTS_SUPPORT_COMPUTES_H
#include "gdn/delta.h"

enum { COMPUTES_MAX = 12 };

typedef struct computes {
    int          n;
    gdn_compute *each[COMPUTES_MAX], *ref; /* ref: level "ref", one thread; it is each[0] */
} computes;

void computes_open(computes *c); /* aborts if one cannot be opened, or an aarch64 CPU has no NEON */
void computes_close(computes *c);

#endif
