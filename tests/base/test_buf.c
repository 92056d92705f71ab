/* Buffers: always terminated, failure sticks, no size overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"

static void test_append(void **state) {
    (void)state;
    clt_buf b = {0};
    clt_buf_put(&b, NULL, 0);
    assert_string_equal(b.data, "");
    clt_buf_puts(&b, "ab");
    clt_buf_putc(&b, 'c');
    clt_buf_printf(&b, "-%d-%s", 42, "xyz");
    clt_buf_put(&b, "\0!", 2);
    assert_int_equal(b.len, 12);
    assert_memory_equal(b.data, "abc-42-xyz\0!", 13);
    clt_buf_reset(&b);
    assert_int_equal(b.len, 0);
    assert_string_equal(b.data, "");
    clt_buf_free(&b);
    assert_null(b.data);
}

static void test_printf_longer_than_the_buffer(void **state) {
    (void)state;
    char word[1000];
    memset(word, 'w', sizeof word);
    word[sizeof word - 1] = 0;
    clt_buf b = {0};
    for (int i = 0; i < 20; i++) clt_buf_printf(&b, "%s", word);
    assert_int_equal(b.len, 20 * 999);
    assert_int_equal(strlen(b.data), b.len);
    clt_buf_free(&b);
}

static void test_failure_sticks_and_keeps_what_was_there(void **state) {
    (void)state;
    char word[300];
    memset(word, 'w', sizeof word);
    word[sizeof word - 1] = 0;
    for (int way = 0; way < 2; way++) {
        clt_buf b = {0};
        clt_buf_puts(&b, "kept");
        clt_mem_fail_after(1);
        if (way) clt_buf_printf(&b, "%s", word);
        else clt_buf_puts(&b, word);
        clt_mem_fail_after(0);
        assert_true(b.failed);
        clt_buf_puts(&b, "more");
        clt_buf_printf(&b, "%d", 1);
        assert_string_equal(b.data, "kept");
        assert_int_equal(b.len, 4);
        clt_buf_free(&b);
    }
}

static void test_size_overflow(void **state) {
    (void)state;
    volatile size_t huge = SIZE_MAX - 1;
    clt_buf b = {0};
    clt_buf_puts(&b, "x");
    clt_buf_put(&b, "y", huge);
    assert_true(b.failed);
    assert_string_equal(b.data, "x");
    clt_buf_free(&b);
    clt_ids a = {0};
    clt_ids_push(&a, 1);
    clt_ids_append(&a, &(int32_t){2}, huge / 2);
    assert_true(a.failed);
    assert_int_equal(a.len, 1);
    clt_ids_free(&a);
}

static void test_ids(void **state) {
    (void)state;
    clt_ids a = {0};
    for (int32_t i = 0; i < 1000; i++) clt_ids_push(&a, i * 3);
    clt_ids_append(&a, (int32_t[]){7, 8, 9}, 3);
    clt_ids_append(&a, NULL, 0);
    assert_int_equal(a.len, 1003);
    for (int32_t i = 0; i < 1000; i++) assert_int_equal(a.data[i], i * 3);
    assert_int_equal(a.data[1002], 9);
    clt_ids_free(&a);
    clt_mem_fail_after(1);
    clt_ids_push(&a, 5);
    clt_mem_fail_after(0);
    clt_ids_push(&a, 6);
    assert_true(a.failed);
    assert_int_equal(a.len, 0);
    clt_ids_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_printf_longer_than_the_buffer),
        cmocka_unit_test(test_failure_sticks_and_keeps_what_was_there),
        cmocka_unit_test(test_size_overflow),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
