/* Where tensors lie: the end of the file, overlaps and holes, at the last byte. */
#include "file/files.h"
#include "file/impl.h"

static clt_err err;

static clt_status check(uint64_t begin, uint64_t size, bool packed, clt_span a, clt_span b, clt_span c) {
    clt_span spans[] = {a, b, c};
    clt_err_clear(&err);
    return clt_layout_check("F", spans, 3, begin, size, packed, &err);
}
#define S(name, begin, end) ((clt_span){name, begin, end})

static void test_sound_layouts(void **state) {
    (void)state;
    assert_int_equal(check(10, 40, true, S("a", 10, 20), S("b", 20, 30), S("c", 30, 40)), CLT_OK);
    assert_int_equal(check(10, 40, true, S("c", 30, 40), S("a", 10, 20), S("b", 20, 30)), CLT_OK);
    assert_int_equal(check(8, 64, false, S("a", 10, 20), S("b", 24, 30), S("c", 32, 40)), CLT_OK);
    assert_int_equal(clt_layout_check("F", NULL, 0, 5, 5, true, &err), CLT_OK);
}

static void test_past_the_end(void **state) {
    (void)state;
    assert_int_equal(check(0, 39, false, S("a", 0, 20), S("b", 20, 30), S("c", 30, 40)), CLT_E_FILE);
    assert_non_null(strstr(err.text, "F: truncated or damaged: tensor 'c' (offset 30, 10 bytes)"));
    assert_non_null(strstr(err.text, "expected 40 bytes in all, found 39 (1 of 3 tensors"));
    assert_int_equal(check(0, 5, false, S("c", 30, UINT64_MAX), S("a", 0, 20), S("b", 20, 30)), CLT_E_FILE);
    assert_non_null(strstr(err.text, "tensor 'c'")); /* the first in the file's order, not by offset */
    assert_non_null(strstr(err.text, "expected 18446744073709551615 bytes"));
}

static void test_overlaps(void **state) {
    (void)state;
    assert_int_equal(check(0, 40, false, S("a", 0, 21), S("b", 20, 30), S("c", 30, 40)), CLT_E_FILE);
    assert_non_null(strstr(err.text, "tensor 'b' at offset 20 overlaps 'a', which ends at 21"));
    assert_int_equal(check(0, 40, false, S("a", 30, 40), S("b", 0, 31), S("c", 40, 40)), CLT_E_FILE);
    assert_non_null(strstr(err.text, "tensor 'a' at offset 30 overlaps 'b'"));
    assert_int_equal(check(1, 40, false, S("a", 0, 20), S("b", 20, 30), S("c", 30, 40)), CLT_E_FILE);
    assert_non_null(strstr(err.text, "tensor 'a' at offset 0 overlaps 'the header', which ends at 1"));
}

static void test_holes(void **state) {
    (void)state;
    assert_int_equal(check(0, 40, true, S("a", 1, 20), S("b", 20, 30), S("c", 30, 40)), CLT_E_FILE);
    assert_string_equal(err.text, "F: damaged: bytes 0 to 1 belong to no tensor");
    assert_int_equal(check(0, 40, true, S("a", 0, 20), S("b", 21, 30), S("c", 30, 40)), CLT_E_FILE);
    assert_string_equal(err.text, "F: damaged: bytes 20 to 21 belong to no tensor");
    assert_int_equal(check(0, 41, true, S("a", 0, 20), S("b", 20, 30), S("c", 30, 40)), CLT_E_FILE);
    assert_string_equal(err.text, "F: damaged: bytes 40 to 41 belong to no tensor");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_layouts),
        cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_overlaps),
        cmocka_unit_test(test_holes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
