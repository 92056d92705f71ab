/* A stand-in for <cmocka.h> where that library is not installed, as for an architecture that is only emulated here: what the
 * tests of src/kernels use of it. A failed assertion ends the program; the library would go on with the next test. */
#ifndef CLT_TESTS_STANDIN_CMOCKA_H
#define CLT_TESTS_STANDIN_CMOCKA_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CMUnitTest {
    const char *name;
    void (*test)(void **state);
};

#define cmocka_unit_test(f) {#f, f}
#define cmocka_run_group_tests(tests, setup, teardown) \
    standin_run(tests, sizeof(tests) / sizeof(tests)[0], (const void *)(setup), (const void *)(teardown))

#define fail_msg(...) \
    (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define assert_true(c) ((c) ? (void)0 : fail_msg("not true: %s", #c))
#define assert_false(c) assert_true(!(c))
#define assert_int_equal(a, b) assert_true((long long)(a) == (long long)(b))
#define assert_memory_equal(a, b, n) assert_true(memcmp(a, b, n) == 0)
#define assert_memory_not_equal(a, b, n) assert_true(memcmp(a, b, n) != 0)
#define skip() exit(77)

/* Fixtures of groups are not known here. */
static inline int standin_run(const struct CMUnitTest *tests, size_t n, const void *setup, const void *teardown) {
    void *state = NULL;
    if (setup || teardown)
        return 1;
    for (size_t i = 0; i < n; i++) {
        printf("%s\n", tests[i].name);
        fflush(stdout);
        tests[i].test(&state);
    }
    return 0;
}

#endif
