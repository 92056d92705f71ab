/* Decoders and encoders against fixtures of the reference implementation, bit for bit (tests/golden/quant/make.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "quant/quant.h"

enum { COUNT = 2048 };

static const uint32_t all_types[] = {CLT_F32, CLT_F16, CLT_BF16, CLT_Q4_0, CLT_Q4_1, CLT_Q5_0, CLT_Q5_1, CLT_Q8_0,
                                     CLT_Q2_K, CLT_Q3_K, CLT_Q4_K, CLT_Q5_K, CLT_Q6_K, CLT_IQ4_NL, CLT_IQ4_XS};
enum { TYPES = sizeof all_types / sizeof all_types[0] };

static void read_fixture(const char *kind, const char *type, void *first, size_t n1, void *second, size_t n2) {
    char path[512];
    snprintf(path, sizeof path, "%s/golden/quant/%s_%s.bin", CLT_TEST_DIR, kind, type);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(first, 1, n1, f), n1);
    assert_int_equal(fread(second, 1, n2, f), n2);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

static void test_decode(void **state) {
    (void)state;
    for (int i = 1; i < TYPES; i++) {
        const clt_type_info *t = clt_type_get(all_types[i]);
        static uint8_t blocks[COUNT * 2];
        static float expected[COUNT], got[COUNT + 1];
        read_fixture("decode", t->name, blocks, clt_type_row_bytes(t, COUNT), expected, sizeof expected);
        got[COUNT] = 77;
        t->decode(blocks, got, COUNT);
        assert_memory_equal(got, expected, sizeof expected);
        assert_true(got[COUNT] == 77);
        memset(got, 0xff, sizeof got); /* a part of a row */
        t->decode(blocks, got, 256);
        assert_memory_equal(got, expected, 256 * sizeof(float));
        assert_true(isnan(got[256]));
    }
}

static void test_encode(void **state) {
    static const uint32_t with_encoder[] = {CLT_F16, CLT_BF16, CLT_Q4_0, CLT_Q8_0};
    (void)state;
    for (size_t i = 0; i < sizeof with_encoder / sizeof with_encoder[0]; i++) {
        const clt_type_info *t = clt_type_get(with_encoder[i]);
        static float numbers[COUNT];
        static uint8_t expected[COUNT * 2], got[COUNT * 2];
        size_t n = clt_type_row_bytes(t, COUNT);
        read_fixture("encode", t->name, numbers, sizeof numbers, expected, n);
        memset(got, 0xAA, sizeof got);
        t->encode(numbers, got, COUNT);
        assert_memory_equal(got, expected, n);
    }
}

static void test_f32_is_a_copy(void **state) {
    (void)state;
    const float x[3] = {1.5f, -0.0f, INFINITY};
    float a[3], b[3];
    const clt_type_info *t = clt_type_get(CLT_F32);
    t->encode(x, a, 3);
    t->decode(a, b, 3);
    assert_memory_equal(b, x, sizeof x);
}

/* NaN and infinity in blocks must be harmless; what they become is only asked to be the same each time. */
static void test_encode_hostile(void **state) {
    (void)state;
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-45f, -0.0f, 1};
    float x[32];
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        for (size_t j = 0; j < sizeof odd / sizeof odd[0]; j++) {
            for (size_t k = 0; k < 32; k++)
                x[k] = k % 3 ? odd[i] : odd[j];
            uint8_t a[34], b[34];
            clt_type_get(CLT_Q8_0)->encode(x, a, 32);
            clt_type_get(CLT_Q8_0)->encode(x, b, 32);
            assert_memory_equal(a, b, 34);
            clt_type_get(CLT_Q4_0)->encode(x, a, 32);
            clt_type_get(CLT_Q4_0)->encode(x, b, 32);
            assert_memory_equal(a, b, 18);
        }
    for (int k = 0; k < 32; k++)
        x[k] = k == 5 ? NAN : 1;
    uint8_t a[34];
    clt_type_get(CLT_Q8_0)->encode(x, a, 32);
    assert_int_equal(a[2 + 5], 0);
    assert_int_equal(a[2 + 6], 127);
}

static void test_table(void **state) {
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        const clt_type_info *t = clt_type_get(all_types[i]);
        assert_non_null(t);
        assert_int_equal(t->type, all_types[i]);
        assert_string_equal(t->name, clt_type_name(all_types[i]));
        assert_non_null(t->decode);
        assert_int_equal(clt_type_row_bytes(t, 512), 512 / t->block_len * t->block_bytes);
    }
    assert_null(clt_type_get(9));
    assert_null(clt_type_get(77));
    assert_null(clt_type_get(UINT32_MAX));
    assert_string_equal(clt_type_name(16), "IQ2_XXS");
    assert_null(clt_type_name(4));
    assert_null(clt_type_name(77));
    assert_null(clt_type_name(UINT32_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode), cmocka_unit_test(test_encode), cmocka_unit_test(test_f32_is_a_copy),
        cmocka_unit_test(test_encode_hostile), cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
