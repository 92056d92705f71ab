/* Stop strings: what is safe to show, where the first one begins, and the same answer however the text arrives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "engine/stops.h"

static clt_stops init(const char *const *strings, size_t n) {
    clt_err err;
    clt_stops st;
    assert_int_equal(clt_stops_init(&st, strings, n, &err), CLT_OK);
    return st;
}

/* Feeds text in pieces of `step` bytes: offset of the stop string, or -1. What was called safe may not reach beyond it. */
static long find(const char *const *strings, size_t n, const char *text, size_t step) {
    clt_stops st = init(strings, n);
    size_t len = strlen(text), at = 0, safe = 0;
    for (size_t end = step < len ? step : len;; end = end + step < len ? end + step : len) {
        if (clt_stops_find(&st, text, end, &at)) {
            assert_true(safe <= at);
            return (long)at;
        }
        assert_true(at <= end && at >= safe);
        safe = at;
        if (end == len) return -1;
    }
}

static void assert_found(const char *const *strings, size_t n, const char *text, long want) {
    for (size_t step = 1; step <= strlen(text); step++) assert_int_equal(find(strings, n, text, step), want);
}

static void test_finds_the_first_that_is_complete(void **state) {
    (void)state;
    assert_found((const char *[]){"END"}, 1, "the END of ENDs", 4);
    assert_found((const char *[]){"END"}, 1, "the EN", -1);
    assert_found((const char *[]){"aab"}, 1, "aaaab", 2);
    assert_found((const char *[]){"abcX", "b"}, 2, "abcX", 1);   /* "b" is complete first */
    assert_found((const char *[]){"c", "abc"}, 2, "xabc", 1);    /* complete together: the longer one */
    assert_found((const char *[]){"\n\n", "###"}, 2, "one\ntwo\n\nthree", 7);
    assert_found((const char *[]){"é"}, 1, "caf\xc3\xa9", 3);
    assert_found(NULL, 0, "anything", -1);
}

static void test_holds_back_beginnings_only(void **state) {
    (void)state;
    const char *strings[] = {"STOP", "\n\nUser:"};
    clt_stops st = init(strings, 2);
    size_t at;
    assert_false(clt_stops_find(&st, "Hello", 5, &at));
    assert_int_equal(at, 5);
    assert_false(clt_stops_find(&st, "Hello S", 7, &at));
    assert_int_equal(at, 6);
    assert_false(clt_stops_find(&st, "Hello STO", 9, &at));
    assert_int_equal(at, 6);
    assert_false(clt_stops_find(&st, "Hello STO\n\nU", 12, &at));
    assert_int_equal(at, 9);
    assert_false(clt_stops_find(&st, "Hello STO\n\nUnd", 14, &at));
    assert_int_equal(at, 14);
}

static void test_refuses_empty_strings(void **state) {
    (void)state;
    clt_err err;
    clt_stops st;
    assert_int_equal(clt_stops_init(&st, (const char *[]){"a", ""}, 2, &err), CLT_E_USAGE);
    assert_int_equal(clt_stops_init(&st, (const char *[]){NULL}, 1, &err), CLT_E_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_first_that_is_complete),
        cmocka_unit_test(test_holds_back_beginnings_only),
        cmocka_unit_test(test_refuses_empty_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
