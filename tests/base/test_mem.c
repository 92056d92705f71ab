/* Blocks and pages: counted, made to fail on demand, overflow refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/mem.h"

static void test_blocks_are_counted(void **state) {
    (void)state;
    long live = clt_mem_live(), count = clt_mem_count();
    char *a = clt_alloc(10), *b = clt_calloc(3, 5), *c = clt_strdup("text"), *d = clt_strndup("text", 2);
    assert_int_equal(clt_mem_live(), live + 4);
    assert_int_equal(clt_mem_count(), count + 4);
    for (int i = 0; i < 15; i++) assert_int_equal(b[i], 0);
    assert_string_equal(c, "text");
    assert_string_equal(d, "te");
    a = clt_realloc(a, 1000);
    assert_int_equal(clt_mem_live(), live + 4);
    clt_free(a);
    clt_free(b);
    clt_free(c);
    clt_free(d);
    clt_free(NULL);
    assert_int_equal(clt_mem_live(), live);
}

static void test_zero_bytes_is_a_block(void **state) {
    (void)state;
    void *a = clt_alloc(0), *b = clt_calloc(0, 8), *c = clt_realloc(NULL, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    clt_free(a);
    clt_free(b);
    clt_free(c);
}

static void test_overflow_is_refused(void **state) {
    (void)state;
    volatile size_t half = SIZE_MAX / 2 + 1; /* volatile, or the compiler warns of the very call that is tested */
    assert_null(clt_calloc(half, 2));
    assert_null(clt_pages_alloc(half * 2 - 1));
    assert_null(clt_pages_alloc(half));
}

static void test_fails_from_the_nth_on(void **state) {
    (void)state;
    long live = clt_mem_live();
    clt_mem_fail_after(2);
    void *first = clt_alloc(1);
    assert_non_null(first);
    assert_null(clt_alloc(1));
    assert_null(clt_calloc(1, 1));
    assert_null(clt_strdup("x"));
    assert_null(clt_pages_alloc(1));
    assert_null(clt_realloc(first, 2)); /* first stays */
    clt_mem_fail_after(0);
    clt_free(first);
    assert_int_equal(clt_mem_live(), live);
}

static void test_pages_are_zero_aligned_and_counted(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, 4097, 2 << 20, (2 << 20) + 1, 5000000};
    long live = clt_mem_live();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *p = clt_pages_alloc(sizes[i]);
        assert_non_null(p);
        size_t align = sizes[i] >= 2 << 20 ? 2 << 20 : 4096;
        assert_int_equal((uintptr_t)p % align, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            if (p[k]) fail_msg("byte %zu of %zu is not zero", k, sizes[i]);
        if (sizes[i]) memset(p, 0xAB, sizes[i]);
        assert_int_equal(clt_mem_live(), live + 1);
        clt_pages_free(p, sizes[i]);
    }
    clt_pages_free(NULL, 10);
    assert_int_equal(clt_mem_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_counted),    cmocka_unit_test(test_zero_bytes_is_a_block),
        cmocka_unit_test(test_overflow_is_refused),   cmocka_unit_test(test_fails_from_the_nth_on),
        cmocka_unit_test(test_pages_are_zero_aligned_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
