/* exp2, log2, sin and cos by written operations: known bits, and agreement with the C library's to the last places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "base/exact.h"

static void test_against_libm(void **state) {
    (void)state;
    for (int i = -4000; i < 4000; i++) {
        double y = i * 0.0371, x = 1 + (i + 4000) * 0.731, s, c;
        assert_true(fabs(clt_exact_exp2(y) / exp2(y) - 1) < 2e-15);
        assert_true(fabs(clt_exact_log2(x) - log2(x)) < 4e-15);
        assert_true(fabs(clt_exact_log2(1 / x) - log2(1 / x)) < 4e-15);
        clt_exact_sincos(y * 7, &s, &c);
        assert_true(fabs(s - sin(y * 7)) < 1e-15 && fabs(c - cos(y * 7)) < 1e-15);
    }
}

/* The same on every machine and from every compiler: these were written down once. */
static void test_known_bits(void **state) {
    (void)state;
    double s, c;
    clt_exact_sincos(12345.678, &s, &c);
    assert_int_equal(clt_bits_of_double(s), 0xbfe687d5890974a5);
    assert_int_equal(clt_bits_of_double(c), 0x3fe6b94c3bbe24b8);
    assert_int_equal(clt_bits_of_double(clt_exact_exp2(-3.7)), 0x3fb3b2c47bff8328);
    assert_int_equal(clt_bits_of_double(clt_exact_log2(80.0 / 7.0)), 0x400c1dd88a259f45);
    assert_true(clt_exact_exp2(10) == 1024 && clt_exact_log2(0.125) == -3);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_libm), cmocka_unit_test(test_known_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
