#include "cli/plan.h"
#include "model/model.h"
#include "state/pool.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int gdn_layers_with(const gdn_model_config *c, gdn_mixer mixer)
{
    int n = 0;
    for (int l = 0; l < c->n_layers; l++) n += c->layers[l].mixer == mixer;
    return n;
}

/* The number of kB that a file of the system has behind `key`; 0 if it has none. */
static uint64_t system_bytes(const char *path, const char *key)
{
    uint64_t     kib = 0;
    char         line[256];
    const size_t length = strlen(key);
    FILE        *f = fopen(path, "r");
    while (f && !kib && fgets(line, sizeof line, f))
        if (!strncmp(line, key, length)) kib = strtoull(line + length, NULL, 10);
    if (f) fclose(f);
    return 1024 * kib;
}

gdn_resident gdn_resident_now(void)
{
    const char *const rollup = "/proc/self/smaps_rollup";
    return (gdn_resident){system_bytes(rollup, "Rss:"), system_bytes(rollup, "AnonHugePages:")};
}

/* The ranges of a config keep every product below 2^63. */
gdn_plan gdn_plan_of(const gdn_model_config *c, bool tied, bool has_mtp)
{
    enum { BF16_BYTES = 2, F32_BYTES = 4, ROWS = 9 };
    const gdn_delta_config d = gdn_model_delta(c); /* of the linear layers, as they run */
    gdn_plan               p = {.available = system_bytes("/proc/meminfo", "MemAvailable:")};
    const uint64_t         kv = 2 * BF16_BYTES * (uint64_t)c->n_kv_heads * (uint64_t)c->head_dim;
    p.weights = gdn_model_bytes(c, tied, false);
    p.mtp_weights = gdn_model_bytes(c, tied, has_mtp) - p.weights;
    p.state = gdn_slot_bytes(&d, gdn_layers_with(c, GDN_MIXER_LINEAR));
    const uint64_t gates = (F32_BYTES * ROWS * (uint64_t)d.n_value_heads + 63) / 64 * 64; /* of a pass, twice */
    p.drafts =
        p.state + F32_BYTES * ROWS * (uint64_t)c->vocab_size +
        (F32_BYTES * ROWS * (uint64_t)gdn_channels(&d) + 2 * gates) * (uint64_t)gdn_layers_with(c, GDN_MIXER_LINEAR);
    p.kv_per_token = kv * (uint64_t)gdn_layers_with(c, GDN_MIXER_FULL);
    p.mtp_kv_per_token = has_mtp ? kv : 0;

    const uint64_t fixed = p.weights + p.mtp_weights + p.state + p.drafts, token = p.kv_per_token + p.mtp_kv_per_token;
    p.tokens = p.available > fixed && token ? (p.available - fixed) / token : 0;
    return p;
}

gdn_words gdn_number_words(uint64_t n)
{
    gdn_words w;
    char      digits[24];
    size_t    out = 0;
    int       length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0) w.text[out++] = ',';
        w.text[out++] = digits[i];
    }
    w.text[out] = 0;
    return w;
}

gdn_words gdn_size_words(uint64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    gdn_words                w;
    double                   value = (double)n;
    int                      unit = 0;
    for (; value >= 1024; unit++) value /= 1024;
    snprintf(w.text, sizeof w.text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return w;
}
