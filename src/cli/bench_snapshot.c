/* gdn bench --snapshot: what keeping the state of a sequence costs, in memory and as a file. */
#include "cli/bench_model.h"
#include "cli/json.h"
#include "engine/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Taken in turn.  DURABLE is gdn_sequence_save, LOSABLE what cache_dir gets, LOAD gdn_sequence_load of a file that the system still
 * has in memory. */
enum { TAKE, DURABLE, LOSABLE, LOAD, N_WAYS };
static const char *const names[N_WAYS] = {"take a copy", "save, durable", "save, cache_dir", "load"};
static const char *const keys[N_WAYS] = {"take", "save", "save_cache_dir", "load"};

enum { ROUNDS = 21, TOKENS = 16 };

typedef struct samples {
    double    wall[N_WAYS][ROUNDS], cpu[N_WAYS][ROUNDS]; /* seconds */
    long long state_bytes, file_bytes;
} samples;

/* Seconds of this process on a CPU, its system calls included. */
static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static gdn_status once(gdn_sequence *seq, int way, const char *path, gdn_error *err)
{
    gdn_snapshot    *copy = NULL;
    const gdn_record r = gdn_sequence_record(seq);
    switch (way) {
    case TAKE: {
        const gdn_status status = gdn_snapshot_take(&copy, seq->engine->cache, seq->lane, err);
        gdn_snapshot_release(copy);
        return status;
    }
    case DURABLE: return gdn_record_write(&r, path, GDN_DURABLE, err);
    case LOSABLE: return gdn_record_write(&r, path, GDN_LOSABLE, err);
    default: return gdn_sequence_load(seq, path, err);
    }
}

static gdn_status run(gdn_engine *engine, samples *s, const char *path, gdn_error *err)
{
    gdn_sequence *seq = NULL;
    int32_t       ids[TOKENS];
    for (int i = 0; i < TOKENS; i++) ids[i] = i;
    gdn_status status = gdn_sequence_open(&seq, engine, err);
    if (!status) status = gdn_sequence_set(seq, ids, TOKENS, NULL, NULL, NULL, err);
    for (int round = -1; round < ROUNDS && !status; round++) /* the first warms up */
        for (int way = 0; way < N_WAYS && !status; way++) {
            if (way == DURABLE || way == LOSABLE) unlink(path); /* a new file each time, as records are */
            const double cpu = cpu_seconds(), start = gdn_bench_now();
            status = once(seq, way, path, err);
            if (round < 0) continue;
            s->wall[way][round] = gdn_bench_now() - start;
            s->cpu[way][round] = cpu_seconds() - cpu;
        }
    if (!status) {
        const gdn_record r = gdn_sequence_record(seq);
        s->state_bytes = (long long)r.slot_bytes;
        s->file_bytes = gdn_record_bytes(&r);
    }
    unlink(path);
    gdn_sequence_close(seq);
    return status;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int print(const gdn_model_bench *b, samples *s)
{
    json_t *object = json_pack("{s:I,s:I}", "state_bytes", s->state_bytes, "file_bytes", s->file_bytes);
    if (!b->json)
        printf("a state of %s, with %d tokens and logits a file of %s in this folder\n\n%-16s %10s %10s %10s\n",
               gdn_size_words((uint64_t)s->state_bytes).text, TOKENS, gdn_size_words((uint64_t)s->file_bytes).text,
               "ms", "median", "least", "CPU");
    for (int way = 0; way < N_WAYS; way++) {
        double *const wall = s->wall[way], *const cpu = s->cpu[way];
        qsort(wall, ROUNDS, sizeof *wall, ascending);
        qsort(cpu, ROUNDS, sizeof *cpu, ascending);
        json_object_set_new(object, keys[way],
                            json_pack("{s:f,s:f,s:f}", "median_ms", 1e3 * wall[ROUNDS / 2], "least_ms", 1e3 * wall[0],
                                      "cpu_ms", 1e3 * cpu[ROUNDS / 2]));
        if (!b->json)
            printf("%-16s %10.2f %10.2f %10.2f\n", names[way], 1e3 * wall[ROUNDS / 2], 1e3 * wall[0],
                   1e3 * cpu[ROUNDS / 2]);
    }
    if (b->json) return gdn_json_print("bench", object, "\n");
    json_decref(object);
    return gdn_cli_flush();
}

int gdn_bench_snapshot(gdn_model_bench *b, int n_threads)
{
    samples                  s = {.state_bytes = 0};
    gdn_engine              *engine = NULL;
    gdn_error                err;
    char                     path[48];
    const gdn_engine_options options = {.level = b->level,
                                        .n_threads = n_threads,
                                        .max_tokens = TOKENS,
                                        .kv_type = GDN_BF16,
                                        .kv_tokens = 2 * GDN_PAGE};
    gdn_status               status = gdn_engine_open_model(&engine, b->model, &options, &err);
    b->model = NULL; /* it is the engine's */
    snprintf(path, sizeof path, "gdn-bench-%ld", (long)getpid());
    if (!status) status = run(engine, &s, path, &err);
    const int shown = status ? gdn_cli_fail(GDN_EXIT_FAILED, "bench", "%s", err.message) : print(b, &s);
    gdn_engine_close(engine);
    return shown;
}
