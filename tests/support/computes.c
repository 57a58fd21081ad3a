#include "support/computes.h"
#include <stdio.h>
#include <stdlib.h>

static void must(int holds, const char *what, const gdn_error *err)
{
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, err->message);
    abort();
}

void computes_open(computes *c)
{
    static const char *const levels[] = {"ref", "avx2", "avx512", "neon"};
    static const int         threads[] = {1, 2, 5};
    gdn_error                err = {0};
    *c = (computes){0};
    for (int l = 0; l < 4; l++)
        for (int t = 0; t < 3; t++) {
            const gdn_status status = gdn_compute_open(&c->each[c->n], levels[l], threads[t], &err);
            if (status == GDN_UNSUPPORTED && l > 0) break;
            must(status == GDN_OK, levels[l], &err);
            c->n++;
        }
    c->ref = c->each[0];
#if defined(__aarch64__)
    must(c->n == 6, "every aarch64 CPU has NEON", &err);
#endif
}

void computes_close(computes *c)
{
    for (int i = 0; i < c->n; i++) gdn_compute_close(c->each[i]);
}
