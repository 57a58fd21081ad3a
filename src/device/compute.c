#include "device/compute.h"
#include "base/cpu.h"
#include "kernel/math.h"
#include <stdlib.h>

/* The level of that name, or the best one of this CPU. */
static const gdn_level *find_level(const char *name, gdn_error *err)
{
    const unsigned   have = gdn_cpu_flags();
    const gdn_level *best = gdn_kernels_level(0), *level;
    for (int i = 0; (level = gdn_kernels_level(i)) != NULL; i++) {
        const int runs = (level->flags & have) == level->flags;
        if (!name && runs) best = level;
        if (name && strcmp(name, level->name) == 0) {
            if (runs) return level;
            gdn_fail(err, GDN_UNSUPPORTED, 0,
                     "compute: this CPU cannot run level \"%s\"; leave the level out to get the best it has", name);
            return NULL;
        }
    }
    if (!name) return best;
    gdn_fail(err, GDN_UNSUPPORTED, 0,
             "compute: this build has no level \"%.40s\"; leave the level out to get the best one", name);
    return NULL;
}

gdn_status gdn_compute_open(gdn_compute **out, const char *level, int n_threads, gdn_error *err)
{
    if (!out) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "compute: out is NULL");
    gdn_error        why = {GDN_OK, 0, ""};
    const gdn_level *found = find_level(level, &why);
    if (!found) return gdn_fail(err, why.code, why.at, "%s", why.message);

    gdn_compute *c = calloc(1, sizeof *c);
    if (!c) return gdn_fail(err, GDN_NO_MEMORY, 0, "compute: no memory");
    c->level = found;
    gdn_kernels_fill(&c->kernels, found->flags);
    gdn_status status = gdn_threads_open(&c->threads, n_threads == 0 ? gdn_cpu_count() : n_threads, err);
    if (status != GDN_OK) goto fail;
    c->scratch = aligned_alloc(64, (size_t)gdn_threads_count(c->threads) * sizeof *c->scratch);
    if (!c->scratch) {
        status = gdn_fail(err, GDN_NO_MEMORY, 0, "compute: no memory for the scratch of %d threads",
                          gdn_threads_count(c->threads));
        goto fail;
    }
    *out = c;
    return GDN_OK;
fail:
    gdn_compute_close(c);
    return status;
}

void gdn_compute_close(gdn_compute *c)
{
    if (!c) return;
    gdn_threads_close(c->threads);
    free(c->scratch);
    free(c->dense);
    free(c);
}

const char *gdn_compute_level(const gdn_compute *c) { return c->level->name; }
int         gdn_compute_threads(const gdn_compute *c) { return gdn_threads_count(c->threads); }

void gdn_bf16_from_f32(uint16_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = gdn_bf16_of_f32(src[i]);
}

void gdn_f32_from_bf16(float *dst, const uint16_t *src, size_t n)
{
    for (size_t i = 0; i < n; i++) dst[i] = gdn_f32_of_bf16(src[i]);
}

void gdn_conv_pack(float *dst, const void *src, gdn_type type, int n_channels, int n_taps)
{
    for (int c = 0; c < n_channels; c++)
        for (int k = 0; k < n_taps; k++) dst[(size_t)k * n_channels + c] = gdn_load(type, src, (size_t)c * n_taps + k);
}

void gdn_rows_to_lanes(float *dst, const float *src, size_t n_rows, int key_dim)
{
    for (size_t r = 0; r < n_rows; r++) gdn_row_to_lanes(dst + r * key_dim, src + r * key_dim, key_dim);
}

void gdn_rows_from_lanes(float *dst, const float *src, size_t n_rows, int key_dim)
{
    for (size_t r = 0; r < n_rows; r++) gdn_row_from_lanes(dst + r * key_dim, src + r * key_dim, key_dim);
}
