/* Random draws: the published vectors of the generator, dependence on all three keys, the range of units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/random.h"

/* Known answers of Philox-4x32-10 (first two words): counter and key all zero, all ones, digits of pi. */
static void test_known_answers(void **state) {
    (void)state;
    assert_int_equal((uint32_t)clt_random_u64(0, 0, 0), 0x6627e8d5u);
    assert_int_equal((uint32_t)(clt_random_u64(0, 0, 0) >> 32), 0xe169c58du);
    assert_int_equal((uint32_t)clt_random_u64(UINT64_MAX, UINT64_MAX, UINT64_MAX), 0x408f276du);
    assert_int_equal((uint32_t)(clt_random_u64(UINT64_MAX, UINT64_MAX, UINT64_MAX) >> 32), 0x41c83b0eu);
    uint64_t seed = UINT64_C(0x299f31d0a4093822), position = UINT64_C(0x85a308d3243f6a88);
    uint64_t stream = UINT64_C(0x0370734413198a2e);
    assert_int_equal((uint32_t)clt_random_u64(seed, position, stream), 0xd16cfe09u);
    assert_int_equal((uint32_t)(clt_random_u64(seed, position, stream) >> 32), 0x94fdccebu);
}

static void test_every_key_counts(void **state) {
    (void)state;
    uint64_t base = clt_random_u64(1, 2, 3);
    for (int bit = 0; bit < 64; bit++) {
        uint64_t flip = UINT64_C(1) << bit;
        assert_true(clt_random_u64(1 ^ flip, 2, 3) != base);
        assert_true(clt_random_u64(1, 2 ^ flip, 3) != base);
        assert_true(clt_random_u64(1, 2, 3 ^ flip) != base);
    }
}

static void test_units_are_uniform(void **state) {
    (void)state;
    enum { N = 100000, BINS = 50 };
    int bins[BINS] = {0};
    double sum = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = clt_random_unit(42, i, 0);
        assert_true(u >= 0 && u < 1);
        sum += u;
        bins[(int)(u * BINS)]++;
    }
    assert_true(sum / N > 0.495 && sum / N < 0.505);
    double chi2 = 0, expected = (double)N / BINS;
    for (int i = 0; i < BINS; i++) chi2 += (bins[i] - expected) * (bins[i] - expected) / expected;
    assert_true(chi2 > 15 && chi2 < 100); /* 49 degrees of freedom: far outside only if broken */
}

static void test_entropy_differs(void **state) {
    (void)state;
    assert_true(clt_random_entropy() != clt_random_entropy());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_every_key_counts),
        cmocka_unit_test(test_units_are_uniform),
        cmocka_unit_test(test_entropy_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
