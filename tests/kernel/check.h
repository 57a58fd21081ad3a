/* check.h - a test of every kernel variant, found through the table of kernel/kernel.h; nothing is registered by hand.
 *
 * At level "ref" the definition of each operation is checked against the oracle (within the bound of its roundings) and
 * against its own contract; at every other level each pointer that differs from the level below must give the bits of the
 * definition, over many shapes and fills.  Buffers end at a page that cannot be touched (or begin after one), inputs are
 * read-only, and outputs start as a pattern that must survive wherever the contract writes nothing. */
#ifndef TESTS_KERNEL_CHECK_H
#define TESTS_KERNEL_CHECK_H
#include "kernel/kernel.h"
#include "oracle/interval.h"
#include "support/random.h"
#include "support/typed.h"
#include <stdbool.h>

typedef struct check {
    gdn_kernels ref, tst;   /* the definition, and the level under test */
    bool        definition; /* tst is ref: check it against the oracle */
    int         quick;      /* a fraction of the cases, for slow machines */
    rng         random;
    long        n_cases;
    int         n_failures; /* of the running check; the first is printed */
    char        what[240];  /* the running case */
} check;

/* The checks, one file an operation; `math` has only a definition. */
void check_math(check *c), check_conv_silu(check *c), check_qk_norm(check *c), check_gates(check *c),
    check_delta(check *c), check_gated_norm(check *c), check_matmul(check *c), check_rms_norm(check *c),
    check_rope(check *c), check_attention(check *c), check_gate(check *c);

/* Begin a case, described as by printf; buffers of earlier cases are gone. */
__attribute__((format(printf, 2, 3))) void check_case(check *c, const char *format, ...);

/* True for about one in n of the calls; always in full runs. */
bool check_sample(check *c, int n);

__attribute__((format(printf, 2, 3))) void check_fail(check *c, const char *format, ...);

/* What inputs are made of. */
typedef enum fill {
    FILL_RANDOM, /* [-2, 2], small and large digits */
    FILL_ZEROS,  /* +0 and -0 */
    FILL_TINY,   /* denormals and numbers near them */
    FILL_HUGE,   /* up to 1e4 */
    FILL_MIXED,  /* all of these, element by element */
    FILL_COUNT
} fill;
float check_pick(check *c, fill kind);

/* Buffers of n elements of `type`: filled and read-only; the bytes of another buffer, writable; PATTERN, writable. */
void *check_input(check *c, gdn_type type, size_t n, fill kind);
void *check_copy(check *c, const void *from, size_t bytes);
void *check_output(check *c, size_t bytes);
void  check_read_only(check *c, const void *buffer);
enum { CHECK_PATTERN = 0xA5 };

/* How many elements rows of `width`, `stride` apart, take: the last row has no padding. */
static inline size_t check_extent(int rows, int width, size_t stride) { return rows ? (rows - 1) * stride + width : 0; }

/* Equal bytes; the message speaks of elements of `type`. */
void check_equal(check *c, const char *name, gdn_type type, const void *got, const void *want, size_t n);
/* No NaN and no infinity in rows of `width`; the pattern between the rows. */
void check_rows(check *c, const char *name, gdn_type type, const void *p, int rows, int width, size_t stride);
/* got lies in the interval. */
void check_inside(check *c, const char *name, size_t at, double got, interval want);

/* Elements of `type` as doubles, to free with free. */
double *check_doubles(gdn_type type, const void *p, int rows, int width, size_t stride);

const char *check_type_name(gdn_type type);
const char *check_fill_name(fill kind);

#endif
