/* Upper and lower case: ASCII in every build, the rest with libutf8proc, and a refusal that names it without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include "text/casing.h"

static void ascii(void **state) {
    clt_err err;
    (void)state;
    for (uint32_t cp = 0; cp < 0x80; cp++) {
        assert_int_equal(clt_case_upper(cp), cp >= 'a' && cp <= 'z' ? cp - 32 : cp);
        assert_int_equal(clt_case_lower(cp), cp >= 'A' && cp <= 'Z' ? cp + 32 : cp);
    }
    assert_int_equal(clt_case_check("unit_2", 6, &err), CLT_OK);
    assert_int_equal(clt_case_check("", 0, &err), CLT_OK);
}

static void beyond_ascii(void **state) {
    clt_err err;
    (void)state;
#if CLT_HAVE_UTF8PROC
    assert_int_equal(clt_case_check("gr\xC3\xB6\xC3\x9F" "e", 7, &err), CLT_OK);
    assert_int_equal(clt_case_upper(0xF6), 0xD6);
    assert_int_equal(clt_case_lower(0xD6), 0xF6);
    assert_int_equal(clt_case_upper(0x436), 0x416);
    assert_int_equal(clt_case_lower(0x416), 0x436);
    assert_int_equal(clt_case_upper(0xDF), 0xDF); /* its capital form is two letters */
    assert_int_equal(clt_case_upper(0x4E2D), 0x4E2D);
#else
    assert_int_equal(clt_case_check("gr\xC3\xB6\xC3\x9F" "e", 7, &err), CLT_E_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "libutf8proc-dev"));
    assert_int_equal(clt_case_upper(0xF6), 0xF6);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ascii),
        cmocka_unit_test(beyond_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
