#include "cmocka.h"
#include <stdio.h>

enum { PASSED, FAILED, SKIPPED, N_OUTCOMES };

static jmp_buf here;

static void print(const char *format, va_list ap)
{
    vprintf(format, ap);
    fflush(stdout);
}

void print_message(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print(format, ap);
    va_end(ap);
}

void print_error(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    print(format, ap);
    va_end(ap);
}

void standin_fail(const char *text, const char *file, int line)
{
    print_message("[  ERROR   ] --- %s\n[   LINE   ] --- %s:%d: error: Failure!\n", text, file, line);
    longjmp(here, 1 + FAILED);
}

void standin_check(int holds, const char *text, const char *file, int line)
{
    if (!holds) standin_fail(text, file, line);
}

void standin_equal(uintmax_t a, uintmax_t b, int wanted, const char *text, const char *file, int line)
{
    if ((a == b) == wanted) return;
    print_message("[  ERROR   ] --- %#jx and %#jx\n", a, b);
    standin_fail(text, file, line);
}

void standin_skip(void) { longjmp(here, 1 + SKIPPED); }

/* A fixture may use the assertions as well. */
static int fixture(CMFixtureFunction *f, void **state)
{
    if (setjmp(here)) return 1;
    return f ? f(state) : 0;
}

static int run_one(const struct CMUnitTest *test, void *state)
{
    volatile int outcome = PASSED;
    if (test->initial_state) state = test->initial_state;
    if (fixture(test->setup_func, &state)) return FAILED;
    switch (setjmp(here)) {
    case 0: test->test_func(&state); break;
    case 1 + SKIPPED: outcome = SKIPPED; break;
    default: outcome = FAILED;
    }
    return fixture(test->teardown_func, &state) ? FAILED : outcome;
}

int standin_run(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction *setup,
                CMFixtureFunction *teardown)
{
    static const char *const words[N_OUTCOMES] = {"      OK ", "  FAILED ", "  SKIPPED"};
    int                      counts[N_OUTCOMES] = {0};
    void                    *state = NULL;
    int                      bad_fixtures = fixture(setup, &state) != 0;
    print_message("[==========] %s: %zu test(s)\n", group, n);
    for (size_t i = 0; i < n && !bad_fixtures; i++) {
        const int outcome = run_one(&tests[i], state);
        counts[outcome]++;
        print_message("[%s ] %s\n", words[outcome], tests[i].name);
    }
    bad_fixtures += fixture(teardown, &state) != 0;
    print_message("[  PASSED  ] %d test(s).\n", counts[PASSED]);
    if (counts[SKIPPED]) print_message("[  SKIPPED ] %d test(s), listed above:\n", counts[SKIPPED]);
    if (counts[FAILED] + bad_fixtures)
        print_message("[  FAILED  ] %d test(s), listed above:\n", counts[FAILED] + bad_fixtures);
    return counts[FAILED] + bad_fixtures;
}
