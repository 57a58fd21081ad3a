/* engine.c - where an engine that uses gdn could start: two delta layers in a model that is otherwise made up.
 *
 * A model projects hidden states to qkv, z, a and b, and y back.  Here a hash of the token stands in for that, and the
 * next token is where the last layer's y is largest: enough for the text to depend on every state.
 * Build:  cc engine.c $(pkg-config --cflags --libs gdn) -o engine */
#include <gdn/delta.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, LANES = 3, ROWS = 16, HK = 2, HV = 4, DIM = 32, TAPS = 4 };
enum { VALUES = HV * DIM, CHANNELS = 2 * HK * DIM + VALUES };

static float             conv[TAPS * CHANNELS], A_log[HV], dt_bias[HV], norm[DIM];
static gdn_delta_weights weights = {conv, A_log, dt_bias, norm, 1e-6f}; /* of both layers; a round refers to them */
static gdn_error         err;

#define MUST(call) must(call, #call)
static void must(gdn_status status, const char *what)
{
    if (!status) return;
    fprintf(stderr, "engine: %s: %s: %s\n", what, gdn_status_name(status), err.message);
    exit(1);
}

static float noise(unsigned a, unsigned b, unsigned c)
{
    unsigned h = (a * 0x9e3779b1u ^ b * 0x85ebca77u ^ c * 0xc2b2ae3du) * 0x27d4eb2fu;
    return (float)((h ^ h >> 15) * 0x2c1b3c6du >> 8) * 0x1p-23f - 1;
}

/* Run n[lane] tokens of every lane, lane after lane in `tokens`; next[row] is the token that follows the row. */
static void forward(gdn_compute *compute, gdn_cache *cache, const int *n, const int *tokens, int *next)
{
    static float qkv[ROWS][CHANNELS], z[ROWS][VALUES], a[ROWS][HV], b[ROWS][HV], y[ROWS][VALUES];
    int          rows = 0, lanes = gdn_cache_lanes(cache);
    for (int i = 0; i < lanes; i++) rows += n[i];
    memset(y, 0, sizeof y);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < CHANNELS; c++) qkv[r][c] = noise(tokens[r], layer, c) + y[r][c % VALUES];
            for (int c = 0; c < VALUES; c++) z[r][c] = noise(tokens[r], layer + 10, c);
            for (int h = 0; h < HV; h++) a[r][h] = noise(tokens[r], layer + 20, h);
            for (int h = 0; h < HV; h++) b[r][h] = noise(tokens[r], layer + 30, h);
        }
        gdn_layer_args args = {.batch = {.n_lanes = lanes, .n_tokens = n}, .qkv = qkv, .z = z, .a = a, .b = b, .y = y};
        MUST(gdn_delta_layer(compute, cache, layer, &weights, &args, &err));
    }
    MUST(gdn_cache_advance_rows(cache, n, &err));
    for (int r = 0; r < rows; r++) {
        next[r] = 0;
        for (int c = 1; c < VALUES; c++) next[r] = y[r][c] > y[r][next[r]] ? c : next[r];
    }
}

/* Decode n more tokens of a one-lane cache into text; *token is the next to be fed, before and after. */
static void decode(gdn_compute *compute, gdn_cache *cache, int n, int *token, int *text)
{
    for (int i = 0; i < n; i++) {
        text[i] = *token;
        forward(compute, cache, &(int){1}, &text[i], token);
    }
}

int main(int argc, char **argv)
{
    const gdn_delta_config config = {HK, HV, DIM, DIM, TAPS, .type = GDN_F32, .qk_eps = 1e-6f}; /* HF's numerics */
    const char            *path = argc > 1 ? argv[1] : "engine.snapshot";
    gdn_compute           *compute;
    gdn_pool              *pool;
    gdn_cache             *batch, *late, *one;
    gdn_snapshot          *snapshot, *loaded;
    for (int i = 0; i < TAPS * CHANNELS; i++) conv[i] = noise(1, 2, i);
    for (int i = 0; i < DIM; i++) norm[i] = 1;
    MUST(gdn_compute_open(&compute, NULL, 0, &err));
    MUST(gdn_pool_open(&pool, &config, LAYERS, LANES + 2, &err));
    MUST(gdn_cache_open(&batch, pool, LANES, 4, &err));

    /* Two prompts of different lengths in one ragged call, then one more that joins the running batch. */
    int next[ROWS], token[LANES], ones[LANES] = {1, 1, 1};
    MUST(gdn_cache_add(batch, 2, 0, &err));
    forward(compute, batch, (int[]){5, 3}, (int[]){3, 1, 4, 1, 5, 9, 2, 6}, next);
    token[0] = next[4], token[1] = next[7];
    MUST(gdn_cache_open(&late, pool, 1, 0, &err));
    MUST(gdn_cache_add(late, 1, 0, &err));
    forward(compute, late, (int[]){2}, (int[]){7, 8}, next);
    token[2] = next[1];
    MUST(gdn_cache_merge(batch, late, &err));
    for (int i = 0; i < 3; i++) forward(compute, batch, ones, token, next), memcpy(token, next, sizeof token);
    printf("level %s, threads %d: batch at offsets", gdn_compute_level(compute), gdn_compute_threads(compute));
    for (int i = 0; i < LANES; i++) printf(" %lld", (long long)gdn_cache_lane_offset(batch, i));

    /* Take the first lane out, keep it in a file, and see how it goes on. */
    int text[8], again[8], here = token[0];
    MUST(gdn_cache_extract(batch, 0, &one, &err));
    MUST(gdn_snapshot_take(&snapshot, one, 0, &err));
    MUST(gdn_snapshot_save(snapshot, path, &err));
    decode(compute, one, 8, &token[0], text);

    /* Back to the snapshot, and a draft of four tokens whose last is wrong. */
    MUST(gdn_snapshot_load(&loaded, pool, path, &err));
    MUST(gdn_snapshot_restore(one, 0, loaded, &err));
    int draft[4] = {here, text[1], text[2], text[3] + 1}, keep = 1;
    MUST(gdn_round_begin(one, &err));
    forward(compute, one, (int[]){4}, draft, next);
    while (keep < 4 && draft[keep] == next[keep - 1]) keep++;
    MUST(keep == 4 ? gdn_round_commit(one, &err) : gdn_round_rollback(compute, one, &keep, 1, &err));
    memcpy(again, draft, sizeof draft);
    decode(compute, one, 8 - keep, &next[keep - 1], again + keep);
    int same = keep == 3 && !memcmp(text, again, sizeof text);
    printf("; of a draft of 4 kept %d; the text after it is %s\n", keep, same ? "the same" : "DIFFERENT");

    remove(path);
    gdn_snapshot_release(loaded), gdn_snapshot_release(snapshot);
    gdn_cache_close(one), gdn_cache_close(late), gdn_cache_close(batch);
    gdn_pool_close(pool), gdn_compute_close(compute);
    return !same;
}
