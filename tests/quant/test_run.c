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

/* Whatever bytes a block has, its runs put together again are the same bytes: no bit of any format is unread. */
static void test_put_inverts_get(void **state) {
    static const clt_type all[] = {CLT_Q4_0, CLT_Q4_1, CLT_Q5_0, CLT_Q5_1, CLT_Q8_0, CLT_Q2_K, CLT_Q3_K,
                                   CLT_Q4_K, CLT_Q5_K, CLT_Q6_K, CLT_IQ4_NL, CLT_IQ4_XS};
    enum { BLOCKS = 16 };
    uint8_t from[BLOCKS * 256], to[BLOCKS * 256];
    uint32_t random = 12345;
    (void)state;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);
    for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
        const clt_type_info *info = clt_type_get((uint32_t)all[t]);
        memset(to, 0, sizeof to);
        for (int64_t run = BLOCKS * info->block_len / CLT_RUN - 1; run >= 0; run--) {
            clt_run r;
            assert_true(clt_run_get(all[t], from, run, &r));
            assert_true(clt_run_put(all[t], to, run, &r));
        }
        assert_memory_equal(from, to, BLOCKS * info->block_bytes);
    }
    assert_false(clt_run_put(CLT_F16, to, 0, &(clt_run){0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_types_have_no_runs), cmocka_unit_test(test_largest_fields),
        cmocka_unit_test(test_put_inverts_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
