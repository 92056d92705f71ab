/* UTF-8: every boundary of the well-formed table, the substitution of maximal subparts, holding back, trimming. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/mem.h"
#include "base/utf8.h"

static void test_round_trip_of_every_code_point(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char s[4];
        uint32_t back = 0;
        size_t len = clt_utf8_encode(cp, s);
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            assert_int_equal(len, 0);
            continue;
        }
        size_t expected = 1 + (size_t)(cp > 0x7F) + (size_t)(cp > 0x7FF) + (size_t)(cp > 0xFFFF);
        if (len != expected || clt_utf8_decode(s, len, &back) != len || back != cp) fail_msg("U+%04X", cp);
        for (size_t cut = 0; cut < len; cut++)
            if (clt_utf8_decode(s, cut, &back) != 0) fail_msg("U+%04X cut to %zu bytes", cp, cut);
    }
    char s[4];
    assert_int_equal(clt_utf8_encode(0x110000, s), 0);
}

static void test_ill_formed_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC2" "A", "\xE2\x82" "A",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t cp;
        assert_int_equal(clt_utf8_decode(bad[i], strlen(bad[i]), &cp), 0);
        assert_false(clt_utf8_valid(bad[i], strlen(bad[i])));
    }
    assert_true(clt_utf8_valid("", 0));
    assert_true(clt_utf8_valid("plain ASCII longer than eight \xE2\x82\xAC and \xF0\x9F\x98\x80 more ASCII", 54));
    for (size_t at = 0; at < 24; at++) { /* one bad byte at every offset against the steps of eight */
        char text[24];
        memset(text, 'a', sizeof text);
        text[at] = '\x80';
        assert_false(clt_utf8_valid(text, sizeof text));
    }
}

static void assert_repaired(const char *in, const char *expected) {
    clt_buf b = {0};
    clt_utf8_repair(&b, in, strlen(in));
    assert_string_equal(b.data, expected);
    clt_buf_free(&b);
}

#define R "\xEF\xBF\xBD"
static void test_repair_replaces_maximal_subparts(void **state) {
    (void)state;
    assert_repaired("", "");
    assert_repaired("fine \xE2\x82\xAC", "fine \xE2\x82\xAC");
    /* the examples of the Unicode standard, tables 3-8 to 3-11 */
    assert_repaired("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82" "A", R R R R R R R R "A");
    assert_repaired("\xED\xA0\x80\xED\xBF\xBF\xED\xAF" "A", R R R R R R R R "A");
    assert_repaired("\xF4\x91\x92\x93\xFF" "A\x80\xBF" "B", R R R R R "A" R R "B");
    assert_repaired("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF" "A", R R R R "A");
    assert_repaired("cut \xF0\x9F\x98", "cut " R);
}

static void test_complete_holds_back_only_what_can_still_become_valid(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t complete;
    } cases[] = {
        {"", 0},           {"abc", 3},
        {"a\xE2", 1},      {"a\xE2\x82", 1},
        {"a\xE2\x82\xAC", 4}, {"a\xF0\x9F\x98", 1},
        {"a\xF0\x9F\x98\x80", 5}, {"a\xF0", 1},
        {"a\xC2", 1},      {"a\xFF", 2},
        {"a\x80\x80\x80", 4}, {"a\xED\xA0", 3}, /* a surrogate: never valid */
        {"a\xE0\x80", 3},  {"\xF4\x90", 2},
        {"\xC2\xC2", 1},   {"\xE2\x82\xE2", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(clt_utf8_complete(cases[i].text, strlen(cases[i].text)), cases[i].complete);
}

static void test_white_space_is_that_of_python(void **state) {
    (void)state;
    /* [cp for cp in range(0x110000) if chr(cp).isspace()] */
    static const uint32_t spaces[] = {
        0x09,   0x0A,   0x0B,   0x0C,   0x0D,   0x1C,   0x1D,   0x1E,   0x1F,   0x20,
        0x85,   0xA0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
        0x2007, 0x2008, 0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000,
    };
    size_t next = 0;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        bool expected = next < sizeof spaces / sizeof spaces[0] && spaces[next] == cp;
        next += expected;
        if (clt_utf8_is_space(cp) != expected) fail_msg("U+%04X", cp);
    }
}

static void assert_trimmed(const char *in, const char *expected) {
    size_t n = strlen(in);
    clt_utf8_trim(&in, &n);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(in, expected, n);
}

static void test_trim(void **state) {
    (void)state;
    assert_trimmed("", "");
    assert_trimmed(" \t\n ", "");
    assert_trimmed("\xE3\x80\x80 a b \xC2\xA0\n", "a b");
    assert_trimmed("\xE2\x80\x8B a \xE2\x80\x8B", "\xE2\x80\x8B a \xE2\x80\x8B"); /* a zero-width space is none */
    assert_trimmed(" \x80 ", "\x80");
    assert_trimmed("a\xA0", "a\xA0"); /* a lone continuation byte, not U+00A0 */
}

static void test_repair_without_memory(void **state) {
    (void)state;
    clt_buf b = {0};
    clt_mem_fail_after(1);
    clt_utf8_repair(&b, "a\xFF", 2);
    clt_mem_fail_after(0);
    assert_true(b.failed);
    clt_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_of_every_code_point),
        cmocka_unit_test(test_ill_formed_is_refused),
        cmocka_unit_test(test_repair_replaces_maximal_subparts),
        cmocka_unit_test(test_complete_holds_back_only_what_can_still_become_valid),
        cmocka_unit_test(test_white_space_is_that_of_python),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_repair_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
