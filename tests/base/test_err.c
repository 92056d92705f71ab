/* Error texts: the map of codes, one line whatever goes in, cut at a code point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/err.h"

static void test_codes_map_to_exit_and_http(void **state) {
    (void)state;
    assert_int_equal(clt_status_exit(CLT_OK), 0);
    assert_int_equal(clt_status_exit(CLT_E_USAGE), 2);
    assert_int_equal(clt_status_exit(CLT_E_FILE), 3);
    assert_int_equal(clt_status_exit(CLT_E_MEMORY), 4);
    assert_int_equal(clt_status_exit(CLT_E_NETWORK), 5);
    assert_int_equal(clt_status_exit(CLT_E_UNSUPPORTED), 6);
    assert_int_equal(clt_status_exit(CLT_E_CANCELLED), 130);
    assert_int_equal(clt_status_http(CLT_E_REQUEST), 400);
    assert_string_equal(clt_status_name(CLT_E_CONTEXT), "context_exceeded");
    assert_int_equal(clt_status_exit((clt_status)999), 1);
    assert_string_equal(clt_status_name((clt_status)-1), "failed");
}

static void test_fail_fills_everything(void **state) {
    (void)state;
    clt_err err = {.hint = "old hint"};
    assert_int_equal(clt_fail(&err, CLT_E_FILE, "%s: tensor %d", "a.gguf", 7), CLT_E_FILE);
    assert_string_equal(err.text, "a.gguf: tensor 7");
    assert_string_equal(err.hint, "");
    assert_int_equal(clt_hint(&err, "try %s", "again"), CLT_E_FILE);
    assert_string_equal(err.hint, "try again");
    clt_err_clear(&err);
    assert_int_equal(err.code, CLT_OK);
    assert_string_equal(err.text, "");
    assert_string_equal(err.hint, "");
}

static void test_usual_texts(void **state) {
    (void)state;
    clt_err err;
    assert_int_equal(clt_fail_memory(&err, "kv cache", 123456789012ull), CLT_E_MEMORY);
    assert_string_equal(err.text, "kv cache: cannot allocate 123456789012 bytes");
    assert_int_equal(clt_fail_not_built(&err, "JSON", "libjansson-dev"), CLT_E_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "libjansson-dev"));
}

static void test_control_bytes_are_shown(void **state) {
    (void)state;
    clt_err err;
    clt_fail(&err, CLT_E_FILE, "name %s end", "a\nb\x1b[31m\x7f");
    assert_string_equal(err.text, "name a<0x0A>b<0x1B>[31m<0x7F> end");
}

static void test_long_text_is_cut_at_a_code_point(void **state) {
    (void)state;
    static char long_text[20000];
    clt_err err;
    for (size_t shift = 0; shift < 3; shift++) { /* every alignment of the euro sign against the end */
        memset(long_text, 'x', shift);
        for (size_t i = shift; i + 4 < sizeof long_text; i += 3) memcpy(long_text + i, "\xE2\x82\xAC", 4);
        clt_fail(&err, CLT_E_FAILED, "%s", long_text);
        size_t len = strlen(err.text);
        assert_in_range(len, sizeof err.text - 6, sizeof err.text - 1);
        assert_string_equal(err.text + len - 3, "\xE2\x80\xA6");
        assert_int_equal((len - 3 - shift) % 3, 0);
    }
}

static void test_long_text_of_control_bytes_is_cut(void **state) {
    (void)state;
    static char controls[5000];
    clt_err err;
    memset(controls, 1, sizeof controls - 1);
    clt_fail(&err, CLT_E_FAILED, "%s", controls);
    size_t len = strlen(err.text);
    assert_in_range(len, sizeof err.text - 9, sizeof err.text - 1);
    assert_memory_equal(err.text, "<0x01><0x01>", 12);
    assert_string_equal(err.text + len - 3, "\xE2\x80\xA6");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_map_to_exit_and_http), cmocka_unit_test(test_fail_fills_everything),
        cmocka_unit_test(test_usual_texts),                cmocka_unit_test(test_control_bytes_are_shown),
        cmocka_unit_test(test_long_text_is_cut_at_a_code_point),
        cmocka_unit_test(test_long_text_of_control_bytes_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
