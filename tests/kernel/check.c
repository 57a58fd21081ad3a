#include "kernel/check.h"
#include "base/cpu.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- cases and failures ------------------------------------------------------------------------------------------- */

void check_case(check *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(c->what, sizeof c->what, format, ap);
    va_end(ap);
    c->n_cases++;
}

bool check_sample(check *c, int n) { return !c->quick || rng_below(&c->random, n) == 0; }

void check_fail(check *c, const char *format, ...)
{
    if (c->n_failures++) return;
    va_list ap;
    printf("    %s: ", c->what);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf("\n");
}

/* ---- buffers ------------------------------------------------------------------------------------------------------ */

enum { SLOTS = 32, SLOT_BYTES = 2 << 20 };
static unsigned char *slots[SLOTS];
static int            next_slot;
static size_t         page;

static void slots_open(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < SLOTS; i++) {
        unsigned char *p = mmap(NULL, SLOT_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) {
            perror("mmap");
            exit(2);
        }
        slots[i] = p + page;
    }
}

static void protect(int slot, int how)
{
    if (mprotect(slots[slot], SLOT_BYTES, how)) {
        perror("mprotect");
        exit(2);
    }
}

/* Ends at the page after the slot, so that one element too far faults; one in four begins at its first byte instead. */
static void *take(check *c, size_t bytes)
{
    const int slot = next_slot++ % SLOTS;
    if (bytes > SLOT_BYTES) {
        fprintf(stderr, "a buffer of %zu bytes is too large for this test\n", bytes);
        exit(2);
    }
    protect(slot, PROT_READ | PROT_WRITE);
    return slots[slot] + (rng_below(&c->random, 4) ? SLOT_BYTES - bytes : 0);
}

void check_read_only(check *c, const void *buffer)
{
    (void)c;
    for (int i = 0; i < SLOTS; i++)
        if ((const unsigned char *)buffer >= slots[i] && (const unsigned char *)buffer <= slots[i] + SLOT_BYTES)
            protect(i, PROT_READ);
}

void *check_copy(check *c, const void *from, size_t bytes)
{
    void *p = take(c, bytes);
    memcpy(p, from, bytes);
    return p;
}

void *check_output(check *c, size_t bytes) { return memset(take(c, bytes), CHECK_PATTERN, bytes); }

float check_pick(check *c, fill kind)
{
    rng *r = &c->random;
    if (kind == FILL_MIXED) kind = rng_below(r, FILL_MIXED);
    switch (kind) {
    case FILL_ZEROS: return rng_below(r, 2) ? 0.0f : -0.0f;
    case FILL_TINY: return ldexpf(rng_uniform(r, -2.0f, 2.0f), -120 - rng_below(r, 30));
    case FILL_HUGE: return rng_below(r, 4) ? rng_uniform(r, -1e4f, 1e4f) : rng_below(r, 2) ? 1e4f : -1e4f;
    default:
        return rng_below(r, 8) ? rng_uniform(r, -2.0f, 2.0f) : ldexpf(rng_uniform(r, -2.0f, 2.0f), -rng_below(r, 20));
    }
}

void *check_input(check *c, gdn_type type, size_t n, fill kind)
{
    void *p = take(c, n * typed_bytes(type));
    for (size_t i = 0; i < n; i++) typed_set(type, p, i, check_pick(c, kind));
    check_read_only(c, p);
    return p;
}

double *check_doubles(gdn_type type, const void *p, int rows, int width, size_t stride)
{
    double *d = malloc(((size_t)rows * width + 1) * sizeof *d);
    if (!d) abort();
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < width; i++) d[(size_t)r * width + i] = typed_get(type, p, r * stride + i);
    return d;
}

/* ---- verdicts ----------------------------------------------------------------------------------------------------- */

const char *check_type_name(gdn_type type) { return type == GDN_BF16 ? "bf16" : "f32"; }

const char *check_fill_name(fill kind)
{
    static const char *const names[] = {"random", "zeros", "tiny", "huge", "mixed"};
    return names[kind];
}

void check_equal(check *c, const char *name, gdn_type type, const void *got, const void *want, size_t n)
{
    const size_t size = typed_bytes(type);
    if (!memcmp(got, want, n * size)) return;
    for (size_t i = 0; i < n; i++)
        if (memcmp((const char *)got + i * size, (const char *)want + i * size, size)) {
            check_fail(c, "%s[%zu] is %a, ref gives %a", name, i, (double)typed_get(type, got, i),
                       (double)typed_get(type, want, i));
            return;
        }
}

void check_rows(check *c, const char *name, gdn_type type, const void *p, int rows, int width, size_t stride)
{
    const unsigned char *bytes = p;
    const size_t         size = typed_bytes(type);
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < width; i++)
            if (!isfinite(typed_get(type, p, r * stride + i))) {
                check_fail(c, "%s row %d [%d] is %g", name, r, i, (double)typed_get(type, p, r * stride + i));
                return;
            }
        for (size_t i = width * size; r + 1 < rows && i < stride * size; i++)
            if (bytes[r * stride * size + i] != CHECK_PATTERN) {
                check_fail(c, "%s: a byte after row %d was written", name, r);
                return;
            }
    }
}

void check_inside(check *c, const char *name, size_t at, double got, interval want)
{
    if (!interval_has(want, got))
        check_fail(c, "%s[%zu] is %.9g, outside [%.9g, %.9g]", name, at, got, want.lo, want.hi);
}

/* ---- the walk ----------------------------------------------------------------------------------------------------- */

typedef void kernel_fn(void);
static const struct operation {
    const char *name;
    void (*run)(check *c);
    int offset; /* of its pointer in gdn_kernels; -1: it has none, and so only a definition */
} operations[] = {{"math", check_math, -1},
                  {"conv_silu", check_conv_silu, offsetof(gdn_kernels, conv_silu)},
                  {"qk_norm", check_qk_norm, offsetof(gdn_kernels, qk_norm)},
                  {"gates", check_gates, offsetof(gdn_kernels, gates)},
                  {"delta", check_delta, offsetof(gdn_kernels, delta)},
                  {"gated_norm", check_gated_norm, offsetof(gdn_kernels, gated_norm)},
                  {"matmul", check_matmul, offsetof(gdn_kernels, matmul)},
                  {"rms_norm", check_rms_norm, offsetof(gdn_kernels, rms_norm)},
                  {"rope", check_rope, offsetof(gdn_kernels, rope)},
                  {"attention", check_attention, offsetof(gdn_kernels, attention)},
                  {"gate", check_gate, offsetof(gdn_kernels, gate)}};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static kernel_fn *pointer_of(const gdn_kernels *k, int offset)
{
    kernel_fn *fn;
    memcpy(&fn, (const char *)k + offset, sizeof fn);
    return fn;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sigjmp_buf jump;
static void       on_signal(int sig) { siglongjmp(jump, sig); }

/* What a sanitizer takes for errors. */
#if defined __has_feature
#if __has_feature(memory_sanitizer)
enum { UNSEEN = GDN_CPU_AMX };
#else
enum { UNSEEN = 0 };
#endif
#else
enum { UNSEEN = 0 };
#endif

/* 1 passed, 0 failed. */
static int run(check *c, const char *level, const struct operation *o)
{
    const double start = now();
    const int    sig = sigsetjmp(jump, 1);
    if (sig == 0) {
        c->n_cases = c->n_failures = 0;
        snprintf(c->what, sizeof c->what, "before the first case");
        o->run(c);
    } else {
        check_fail(c, "%s (touched what is not its own?)", strsignal(sig));
    }
    printf("%-7s %-11s %s  %ld cases, %.1f s\n", level, o->name, c->n_failures ? "FAILED" : "ok", c->n_cases,
           now() - start);
    return c->n_failures == 0;
}

/* Where the definition of the rule takes long (an emulator, a sanitizer), a sample of the cases must do. */
static int machine_is_slow(void)
{
    enum { DIM = 128, TOKENS = 16, TURNS = 5 };
    static float  rows[TOKENS * DIM], state[DIM * DIM];
    gdn_delta_job job = {.n_tokens = TOKENS, .n_heads = 1, .key_dim = DIM, .value_dim = DIM};
    job.q = job.k = job.v = job.g = job.beta = rows;
    job.qk_stride = job.v_stride = DIM;
    job.state_out = state;
    const clock_t start = clock();
    for (int i = 0; i < TURNS; i++) gdn_delta_ref(&job);
    return (double)(clock() - start) / CLOCKS_PER_SEC > 8e-9 * TURNS * TOKENS * DIM * DIM;
}

int main(int argc, char **argv)
{
    uint64_t seed = 20260801;
    check    c = {.quick = -1};
    int      n_passed = 0, n_failed = 0, n_skipped = 0;
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--seed=", 7)) {
            seed = strtoull(argv[i] + 7, NULL, 0);
        } else if (!strcmp(argv[i], "--quick") || !strcmp(argv[i], "--full")) {
            c.quick = argv[i][2] == 'q';
        } else {
            fprintf(stderr, "usage: %s [--seed=N] [--quick | --full]\n", argv[0]);
            return 2;
        }
    }
    if (c.quick < 0) c.quick = machine_is_slow();
    printf("seed %llu, %s\n", (unsigned long long)seed, c.quick ? "quick: a sample of the cases" : "all cases");
    setvbuf(stdout, NULL, _IOLBF, 0);
    slots_open();
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) signal(signals[i], on_signal);

    const unsigned   have = gdn_cpu_flags() & ~UNSEEN;
    const gdn_level *level;
    gdn_kernels      below;
    gdn_kernels_fill(&c.ref, 0);
    below = c.ref;
    for (int l = 0; (level = gdn_kernels_level(l)); l++) {
        if ((have & level->flags) != level->flags) {
            printf("%-7s skipped: %s\n", level->name,
                   level->flags & UNSEEN ? "MemorySanitizer does not see what tiles write"
                                         : "this CPU does not have it");
            n_skipped += OPERATIONS - 1;
            continue;
        }
        c.definition = l == 0;
        gdn_kernels_fill(&c.tst, level->flags);
        for (int o = 0; o < OPERATIONS; o++) {
            const int offset = operations[o].offset;
            if (!c.definition && (offset < 0 || pointer_of(&c.tst, offset) == pointer_of(&below, offset))) continue;
            c.random.s = seed + 1000u * (unsigned)l + (unsigned)o;
            if (run(&c, level->name, &operations[o])) n_passed++;
            else n_failed++;
        }
        below = c.tst;
    }
    printf("kernels: %d passed, %d failed, %d skipped\n", n_passed, n_failed, n_skipped);
    return n_failed != 0;
}
