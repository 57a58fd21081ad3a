/* cmocka.h - a stand-in for the part of cmocka that our tests use, for builds that cannot have the real one: another
 * architecture's (no such library here to link with) and MemorySanitizer's (which needs every library instrumented).
 * Names, meanings and the closing lines are cmocka's. */
#ifndef STANDIN_CMOCKA_H
#define STANDIN_CMOCKA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef void CMUnitTestFunction(void **state);
typedef int  CMFixtureFunction(void **state);

struct CMUnitTest {
    const char         *name;
    CMUnitTestFunction *test_func;
    CMFixtureFunction  *setup_func, *teardown_func;
    void               *initial_state;
};

#define cmocka_unit_test(f)     \
    {                           \
#f, f, NULL, NULL, NULL \
    }
#define cmocka_unit_test_setup(f, setup) \
    {                                    \
#f, f, setup, NULL, NULL         \
    }
#define cmocka_unit_test_teardown(f, teardown) \
    {                                          \
#f, f, NULL, teardown, NULL            \
    }
#define cmocka_unit_test_setup_teardown(f, setup, teardown) \
    {                                                       \
#f, f, setup, teardown, NULL                        \
    }
#define cmocka_unit_test_prestate(f, state) \
    {                                       \
#f, f, NULL, NULL, state            \
    }
#define cmocka_unit_test_prestate_setup_teardown(f, setup, teardown, state) \
    {                                                                       \
#f, f, setup, teardown, state                                       \
    }

#define cmocka_run_group_tests(tests, setup, teardown) cmocka_run_group_tests_name(#tests, tests, setup, teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown) \
    standin_run(name, tests, sizeof(tests) / sizeof *(tests), setup, teardown)

#define skip() standin_skip()
#define fail() standin_fail("fail()", __FILE__, __LINE__)
#define fail_msg(...) (print_error(__VA_ARGS__), fail())

#define assert_true(c) standin_check((c) != 0, #c, __FILE__, __LINE__)
#define assert_false(c) standin_check((c) == 0, "!(" #c ")", __FILE__, __LINE__)
#define assert_null(p) standin_check((p) == NULL, #p " is NULL", __FILE__, __LINE__)
#define assert_non_null(p) standin_check((p) != NULL, #p " is not NULL", __FILE__, __LINE__)
#define assert_ptr_equal(a, b) standin_equal((uintptr_t)(a), (uintptr_t)(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b) standin_equal((uintptr_t)(a), (uintptr_t)(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_int_equal(a, b) standin_equal((uintmax_t)(a), (uintmax_t)(b), 1, #a " == " #b, __FILE__, __LINE__)
#define assert_int_not_equal(a, b) standin_equal((uintmax_t)(a), (uintmax_t)(b), 0, #a " != " #b, __FILE__, __LINE__)
#define assert_in_range(x, lo, hi)                                                                                  \
    standin_check((uintmax_t)(x) >= (uintmax_t)(lo) && (uintmax_t)(x) <= (uintmax_t)(hi), #x " in range", __FILE__, \
                  __LINE__)
#define assert_string_equal(a, b) standin_check(!strcmp(a, b), #a " is " #b, __FILE__, __LINE__)
#define assert_string_not_equal(a, b) standin_check(strcmp(a, b) != 0, #a " is not " #b, __FILE__, __LINE__)
#define assert_memory_equal(a, b, n) standin_check(!memcmp(a, b, n), #a " holds " #b, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, n) standin_check(memcmp(a, b, n) != 0, #a " differs from " #b, __FILE__, __LINE__)

__attribute__((format(printf, 1, 2))) void print_message(const char *format, ...);
__attribute__((format(printf, 1, 2))) void print_error(const char *format, ...);

/* A failure ends the test that is running, and so does a skip. */
_Noreturn void standin_fail(const char *text, const char *file, int line);
void           standin_check(int holds, const char *text, const char *file, int line);
void           standin_equal(uintmax_t a, uintmax_t b, int wanted, const char *text, const char *file, int line);
_Noreturn void standin_skip(void);

/* Returns the number of failures, a failed group fixture included. */
int standin_run(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction *setup,
                CMFixtureFunction *teardown);

#endif
