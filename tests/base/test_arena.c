/* Arenas: aligned, zeroed, disjoint pieces; everything is given back; failure leaves the arena usable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/mem.h"

static void test_pieces_are_zeroed_aligned_and_disjoint(void **state) {
    (void)state;
    enum { N = 2000 };
    static unsigned char *pieces[N];
    static size_t sizes[N];
    long live = clt_mem_live();
    clt_arena *a = clt_arena_create(10000);
    for (size_t i = 0; i < N; i++) {
        size_t align = (size_t)1 << (i % 13);
        sizes[i] = i * 7919 % 3000;
        pieces[i] = clt_arena_alloc(a, sizes[i], align);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % align, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            if (pieces[i][k]) fail_msg("piece %zu is not zeroed", i);
        memset(pieces[i], (int)(i % 251) + 1, sizes[i]);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            if (pieces[i][k] != i % 251 + 1) fail_msg("piece %zu was overwritten", i);
    assert_true(clt_arena_bytes(a) > 2000000);
    clt_arena_free(a);
    assert_int_equal(clt_mem_live(), live);
}

static void test_a_piece_may_exceed_the_chunk(void **state) {
    (void)state;
    clt_arena *a = clt_arena_create(1);
    float *x = CLT_ARENA_NEW(a, float, 1000000);
    assert_non_null(x);
    x[999999] = 1;
    char *s = clt_arena_strndup(a, "hello", 3);
    assert_string_equal(s, "hel");
    clt_arena_free(a);
    clt_arena_free(NULL);
}

static void test_impossible_requests(void **state) {
    (void)state;
    volatile size_t huge = SIZE_MAX;
    clt_arena *a = clt_arena_create(4096);
    assert_null(clt_arena_alloc(a, huge, 8));
    assert_null(clt_arena_alloc(a, huge - 16, 4096));
    assert_null(CLT_ARENA_NEW(a, double, huge / 4));
    assert_null(clt_arena_alloc(a, 8, 0));
    assert_null(clt_arena_alloc(a, 8, 24));
    assert_null(clt_arena_alloc(a, 8, 8192));
    assert_null(clt_arena_strndup(a, "", huge));
    assert_non_null(clt_arena_alloc(a, 8, 8));
    clt_arena_free(a);
}

static void test_failed_allocation(void **state) {
    (void)state;
    long live = clt_mem_live();
    clt_mem_fail_after(1);
    assert_null(clt_arena_create(4096));
    clt_mem_fail_after(2);
    clt_arena *a = clt_arena_create(4096);
    assert_non_null(a);
    assert_null(clt_arena_alloc(a, 100, 8));
    clt_mem_fail_after(0);
    assert_non_null(clt_arena_alloc(a, 100, 8));
    clt_arena_free(a);
    assert_int_equal(clt_mem_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_zeroed_aligned_and_disjoint),
        cmocka_unit_test(test_a_piece_may_exceed_the_chunk),
        cmocka_unit_test(test_impossible_requests),
        cmocka_unit_test(test_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
