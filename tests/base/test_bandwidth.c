/* The bandwidth probe: plausible numbers, its whole buffer read, and nothing left behind when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/bandwidth.h"
#include "base/mem.h"

enum { SMALL = 32 << 20 };

static void test_plausible(void **state) {
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        clt_bandwidth b;
        clt_err err;
        assert_int_equal(clt_bandwidth_measure(threads, SMALL, &b, &err), CLT_OK);
        assert_true(b.plain_gb_s > 0.001 && b.plain_gb_s < 1e5);
        assert_true(b.streams_gb_s > 0.001 && b.streams_gb_s < 1e5);
        assert_int_equal(b.threads, threads);
        /* Parts are cut to whole lines, never grown. */
        assert_true(b.bytes <= SMALL && b.bytes > SMALL / 2 && b.bytes % 128 == 0);
    }
}

static void test_refusals(void **state) {
    (void)state;
    clt_bandwidth b;
    clt_err err;
    assert_int_equal(clt_bandwidth_measure(0, SMALL, &b, &err), CLT_E_USAGE);
    long live = clt_mem_live();
    for (long n = 1; n <= 3; n++) {
        clt_mem_fail_after(n);
        clt_status st = clt_bandwidth_measure(2, SMALL, &b, &err);
        clt_mem_fail_after(0);
        assert_int_equal(st, CLT_E_MEMORY);
        assert_int_equal(clt_mem_live(), live);
    }
    assert_int_equal(clt_bandwidth_measure(2, SMALL, &b, &err), CLT_OK);
    assert_int_equal(clt_mem_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plausible), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
