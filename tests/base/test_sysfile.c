/* Small system files: lines, numbers, labelled fields, and what is none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/fake_root.h"
#include "base/sysfile.h"

static void test_numbers(void **state) {
    (void)state;
    static const struct { const char *text; bool ok; uint64_t value; } cases[] = {
        {"123\n", true, 123}, {"123", true, 123}, {" 7\n8\n", true, 7}, {"18446744073709551615\n", true, UINT64_MAX},
        {"18446744073709551616\n", false, 0}, {"max\n", false, 0}, {"-1\n", false, 0}, {"", false, 0}, {"\n", false, 0},
        {"12x\n", false, 0}, {"100000 100000\n", true, 100000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t v = 42;
        fake_root_put("/sys/n", cases[i].text);
        if (clt_sysfile_number("/sys/n", &v) != cases[i].ok) fail_msg("case %zu", i);
        assert_int_equal(v, cases[i].ok ? cases[i].value : 42);
    }
    uint64_t v;
    assert_false(clt_sysfile_number("/sys/none", &v));
}

static void test_fields(void **state) {
    (void)state;
    uint64_t v;
    fake_root_put("/proc/f", "MemTotalish: 1 kB\nMemTotal:   24000 kB\nanon 5\nfile 6\nfile_dirty 7\nlast 8");
    assert_true(clt_sysfile_field("/proc/f", "MemTotal", &v) && v == 24000);
    assert_true(clt_sysfile_field("/proc/f", "file", &v) && v == 6);
    assert_true(clt_sysfile_field("/proc/f", "last", &v) && v == 8);
    assert_false(clt_sysfile_field("/proc/f", "dirty", &v));
    assert_false(clt_sysfile_field("/proc/none", "file", &v));
}

static void test_lines(void **state) {
    (void)state;
    char line[8];
    fake_root_put("/proc/l", "a longer line\nshort\n");
    assert_false(clt_sysfile_line("/proc/l", line, sizeof line));
    FILE *f = clt_sysfile_open("/proc/l");
    assert_non_null(f);
    assert_true(clt_sysfile_next(f, line, sizeof line));
    assert_string_equal(line, "a longe");
    assert_true(clt_sysfile_next(f, line, sizeof line));
    assert_string_equal(line, "short");
    assert_false(clt_sysfile_next(f, line, sizeof line));
    fclose(f);
    fake_root_put("/proc/l", "1234567");
    assert_false(clt_sysfile_line("/proc/l", line, sizeof line));
    fake_root_put("/proc/l", "123456\n");
    assert_true(clt_sysfile_line("/proc/l", line, sizeof line));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_fields, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_lines, fake_root_begin, fake_root_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
