/* The checked position: reads up to the last byte, refusals with their place, names. */
#include "file/files.h"
#include "file/impl.h"

static clt_err err;

static clt_reader reader(const void *bytes, uint64_t n) {
    clt_err_clear(&err);
    return (clt_reader){.path = "F", .data = bytes, .size = n, .part = "entry", .index = 4, .err = &err};
}

static void test_numbers_to_the_last_byte(void **state) {
    (void)state;
    const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0xFF, 0};
    clt_reader r = reader(bytes, 12);
    uint32_t a = 0;
    uint64_t b = 0;
    assert_true(clt_reader_u32(&r, "a", &a));
    assert_int_equal(a, 0x04030201);
    assert_true(clt_reader_u64(&r, "b", &b));
    assert_true(b == 0xFF0B0A0908070605);
    assert_int_equal(clt_reader_left(&r), 0);
    assert_non_null(clt_reader_take(&r, 0, "nothing"));
    assert_false(clt_reader_u32(&r, "the type", &a));
    assert_string_equal(
        err.text, "F: truncated or damaged: entry 4: the type takes 4 bytes at offset 12, past the end of the file at 12");
    r.name = "n\n";
    assert_null(clt_reader_take(&r, UINT64_MAX, "all"));
    assert_non_null(strstr(err.text, "entry 4 ('n<0x0A>'): all takes 18446744073709551615 bytes"));
    assert_int_equal(r.pos, 12);
}

static void test_names(void **state) {
    (void)state;
    clt_arena *a = clt_arena_create(4096);
    const char *name = NULL;
    clt_buf b = {0};
    put_str(&b, "abc");
    put_str(&b, "toolong");
    clt_reader r = reader(b.data, b.len);
    assert_true(clt_reader_name(&r, "the name", 3, a, &name));
    assert_string_equal(name, "abc");
    assert_false(clt_reader_name(&r, "the name", 6, a, &name));
    assert_string_equal(err.text, "F: damaged: entry 4: the name has 7 bytes, more than 6: 'toolong'");
    r = reader(b.data, 10);
    assert_false(clt_reader_name(&r, "the name", 3, a, &name));
    assert_non_null(strstr(err.text, "the name takes 3 bytes at offset 8, past the end of the file at 10"));
    clt_buf_free(&b);
    clt_arena_free(a);
}

static void test_a_text_that_does_not_fit_is_cut(void **state) {
    (void)state;
    char longest[4000];
    memset(longest, 'x', sizeof longest);
    clt_reader r = reader("", 0);
    assert_false(clt_reader_fail(&r, "%.*s", (int)sizeof longest, longest));
    assert_true(strlen(err.text) > 900 && strlen(err.text) < 2000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_to_the_last_byte),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_text_that_does_not_fit_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
