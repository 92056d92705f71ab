/* Half and brain floats: every half value, and the corners of rounding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "quant/quant.h"

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

/* The definition of a half, in arithmetic of doubles. */
static double half_by_definition(uint16_t h) {
    int exponent = (h >> 10) & 31, fraction = h & 1023;
    double magnitude = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void test_f16_all(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = clt_f16_to_f32((uint16_t)h);
        if ((h & 0x7fff) > 0x7c00) {
            assert_true(isnan(f));
            assert_int_equal(clt_f32_to_f16(f), h | 0x200); /* payload kept, quiet */
        } else if ((h & 0x7fff) == 0x7c00) {
            assert_true(isinf(f) && !signbit(f) == !(h & 0x8000));
            assert_int_equal(clt_f32_to_f16(f), h);
        } else {
            assert_true((double)f == half_by_definition((uint16_t)h) && !signbit(f) == !(h & 0x8000));
            assert_int_equal(clt_f32_to_f16(f), h);
        }
    }
}

/* Between each two neighbours: the middle goes to the even one, the floats next to the middle to the nearer one. */
static void test_f16_rounding(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        float a = clt_f16_to_f32((uint16_t)h), b = clt_f16_to_f32((uint16_t)(h + 1));
        float middle = (float)(((double)a + (double)b) / 2);
        assert_int_equal(clt_f32_to_f16(middle), h + (h & 1));
        assert_int_equal(clt_f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(clt_f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(clt_f32_to_f16(-middle), 0x8000 | (h + (h & 1)));
    }
    assert_int_equal(clt_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(clt_f32_to_f16(65520.f), 0x7c00);
    assert_int_equal(clt_f32_to_f16(3e38f), 0x7c00);
    assert_int_equal(clt_f32_to_f16(-1e-45f), 0x8000);
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = clt_bf16_to_f32((uint16_t)h);
        assert_int_equal(bits_of(f), h << 16);
        assert_int_equal(clt_f32_to_bf16(f), (h & 0x7fff) > 0x7f80 ? h | 0x40 : h);
    }
    assert_int_equal(clt_f32_to_bf16(1.00390625f), 0x3f80);            /* tie to even */
    assert_int_equal(clt_f32_to_bf16(1.01171875f), 0x3f82);            /* tie to even, up */
    assert_int_equal(clt_f32_to_bf16(nextafterf(1.00390625f, 2)), 0x3f81);
    assert_int_equal(clt_f32_to_bf16(3.4028235e38f), 0x7f80);          /* rounds up to infinity */
    uint32_t low_payload = 0x7f800001;
    float nan;
    memcpy(&nan, &low_payload, sizeof nan);
    assert_true(isnan(clt_bf16_to_f32(clt_f32_to_bf16(nan))));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_all), cmocka_unit_test(test_f16_rounding), cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
