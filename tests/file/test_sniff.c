/* Accidents of downloading are named; everything else passes. */
#include "file/files.h"
#include "file/impl.h"

static clt_err err;

static clt_status sniff(const char *bytes, size_t n) {
    clt_map map = {.data = (const uint8_t *)(n ? bytes : NULL), .size = n};
    clt_err_clear(&err);
    return clt_sniff("F", &map, &err);
}

static void test_accidents(void **state) {
    (void)state;
    static const struct { const char *text, *words; } cases[] = {
        {"", "F: the file is empty"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", "F: a Git LFS pointer, not model data"},
        {"<!DOCTYPE html>\n<html>", "F: an HTML page, not model data"},
        {"<!doctype HTML>", "an HTML page"},
        {"<html lang=en>", "an HTML page"},
        {"\xef\xbb\xbf\r\n \t<HTML>", "an HTML page"},
        {"<?xml version=\"1.0\"?><Error>AccessDenied</Error>", "an HTML page"},
        {"PK\x03\x04rest", "a ZIP archive"},
        {"\x1f\x8b\x08", "gzip-compressed data"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(sniff(cases[i].text, strlen(cases[i].text)), CLT_E_FILE);
        if (!strstr(err.text, cases[i].words)) fail_msg("'%s' is not in: %s", cases[i].words, err.text);
        assert_true(err.hint[0]);
    }
}

static void test_everything_else_passes(void **state) {
    (void)state;
    static const char *const cases[] = {"GGUF", "{}", "   ", "\xef\xbb\xbf", "<", "<htm", "version https://git", "PK",
                                        "\x1f", "{{ bos_token }}<start_of_turn>"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) assert_int_equal(sniff(cases[i], strlen(cases[i])), CLT_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accidents),
        cmocka_unit_test(test_everything_else_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
