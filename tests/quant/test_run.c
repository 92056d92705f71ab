/* Runs: what types.c does not already prove by its fixtures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include "quant/run.h"

static void test_float_types_have_no_runs(void **state) {
    (void)state;
    uint8_t row[128] = {0};
    clt_run r, before;
    memset(&r, 0x5a, sizeof r);
    before = r;
    assert_false(clt_run_get(CLT_F32, row, 0, &r));
    assert_false(clt_run_get(CLT_F16, row, 0, &r));
    assert_false(clt_run_get(CLT_BF16, row, 0, &r));
    assert_false(clt_run_get((clt_type)9, row, 0, &r));
    assert_memory_equal(&r, &before, sizeof r);
}

/* Blocks of all ones: the largest codes and scales of every type stay within what the kernels' integer sums allow. */
static void test_largest_fields(void **state) {
    static const struct { clt_type t; int scale, min, code; } expected[] = {
        {CLT_Q4_0, 1, 0, 15}, {CLT_Q4_1, 1, 0, 15}, {CLT_Q5_0, 1, 0, 31}, {CLT_Q5_1, 1, 0, 31}, {CLT_Q8_0, 1, 0, 127},
        {CLT_Q2_K, 15, 15, 3}, {CLT_Q3_K, 31, 0, 7}, {CLT_Q4_K, 63, 63, 15}, {CLT_Q5_K, 63, 63, 31},
        {CLT_Q6_K, -1, 0, 63}, {CLT_IQ4_NL, 1, 0, 15}, {CLT_IQ4_XS, 31, 0, 15},
    };
    uint8_t row[512];
    (void)state;
    memset(row, 0xff, sizeof row);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        for (int run = 0; run < 8; run++) {
            clt_run r;
            assert_true(clt_run_get(expected[i].t, row, run, &r));
            assert_int_equal(r.d, 0xffff);
            for (int h = 0; h < 2; h++) {
                assert_int_equal(r.scale[h], expected[i].scale);
                assert_int_equal(r.min[h], expected[i].min);
            }
            for (int k = 0; k < CLT_RUN; k++)
                assert_int_equal(r.code[k], expected[i].code);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_types_have_no_runs), cmocka_unit_test(test_largest_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
