/* The JSON writer: commas, escapes, numbers that read back equal, repair of what is not UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"

static void test_commas_and_nesting(void **state) {
    (void)state;
    clt_buf b = {0};
    clt_jsonw w = {.out = &b};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "a");
    clt_jsonw_open(&w, '[');
    clt_jsonw_int(&w, 1);
    clt_jsonw_open(&w, '{');
    clt_jsonw_close(&w, '}');
    clt_jsonw_open(&w, '[');
    clt_jsonw_bool(&w, true);
    clt_jsonw_bool(&w, false);
    clt_jsonw_close(&w, ']');
    clt_jsonw_null(&w);
    clt_jsonw_close(&w, ']');
    clt_jsonw_key(&w, "b");
    clt_jsonw_raw(&w, "{\"x\":1}", 7);
    clt_jsonw_key(&w, "c");
    clt_jsonw_cstr(&w, NULL);
    clt_jsonw_key(&w, "d");
    clt_jsonw_cstr(&w, "s");
    clt_jsonw_close(&w, '}');
    assert_false(b.failed);
    assert_string_equal(b.data, "{\"a\":[1,{},[true,false],null],\"b\":{\"x\":1},\"c\":null,\"d\":\"s\"}");
    clt_buf_free(&b);
}

static void assert_written(const char *in, size_t len, const char *expected) {
    clt_buf b = {0};
    clt_jsonw w = {.out = &b};
    clt_jsonw_str(&w, in, len);
    assert_string_equal(b.data, expected);
    clt_buf_free(&b);
}

static void test_strings(void **state) {
    (void)state;
    assert_written(NULL, 0, "\"\"");
    assert_written("plain \xC3\xA9", 8, "\"plain \xC3\xA9\"");
    assert_written("\"\\/\b\f\n\r\t", 8, "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    assert_written("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
    assert_written("a\xFF\xE2\x82" "b", 5, "\"a\xEF\xBF\xBD\xEF\xBF\xBD" "b\"");
    clt_buf b = {0};
    clt_jsonw w = {.out = &b};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "k\"\n");
    clt_jsonw_int(&w, INT64_MIN);
    clt_jsonw_close(&w, '}');
    assert_string_equal(b.data, "{\"k\\\"\\n\":-9223372036854775808}");
    clt_buf_free(&b);
}

static void assert_number(double v, const char *expected) {
    clt_buf b = {0};
    clt_jsonw w = {.out = &b};
    clt_jsonw_num(&w, v);
    assert_string_equal(b.data, expected);
    clt_buf_free(&b);
}

static void test_numbers(void **state) {
    (void)state;
    assert_number(0, "0");
    assert_number(-0.0, "-0.0");
    assert_number(0.1, "0.1");
    assert_number(-2.5, "-2.5");
    assert_number(1.0 / 3, "0.3333333333333333");
    assert_number(5, "5");
    assert_number(1e300, "1e+300");
    assert_number(NAN, "null");
    assert_number(INFINITY, "null");
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = clt_random_u64(1, i, 0);
        double v;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v)) continue;
        clt_buf b = {0};
        clt_jsonw w = {.out = &b};
        clt_jsonw_num(&w, v);
        double back = strtod(b.data, NULL);
        assert_memory_equal(&back, &v, sizeof v);
        clt_buf_free(&b);
    }
}

static void test_too_deep_fails(void **state) {
    (void)state;
    clt_buf b = {0};
    clt_jsonw w = {.out = &b};
    for (int i = 0; i < 64; i++) clt_jsonw_open(&w, '[');
    assert_false(b.failed);
    clt_jsonw_open(&w, '[');
    assert_true(b.failed);
    clt_buf_free(&b);
}

static void test_failed_allocation_shows_in_the_buffer(void **state) {
    (void)state;
    for (long n = 1; n <= 2; n++) { /* 1: the buffer; 2: the copy that is repaired */
        clt_buf b = {0};
        clt_jsonw w = {.out = &b};
        if (n == 2) clt_buf_puts(&b, "[");
        clt_mem_fail_after(1);
        clt_jsonw_str(&w, "\xFF", 1);
        clt_mem_fail_after(0);
        assert_true(b.failed);
        clt_buf_free(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commas_and_nesting), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_numbers),            cmocka_unit_test(test_too_deep_fails),
        cmocka_unit_test(test_failed_allocation_shows_in_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
