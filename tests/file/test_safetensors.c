/* One safetensors file inside a folder: entries, layout, and each kind of damage. */
#include "file/files.h"

/* A folder "st" whose model.safetensors has this header text and so many bytes of data. */
static const char *model(const char *header, size_t data_bytes) {
    clt_buf b = {0};
    mkdir(in_folder("st"), 0700);
    write_text("st/config.json", "{}");
    safetensors(&b, header, data_bytes);
    write_buf("st/model.safetensors", &b);
    return in_folder("st");
}

#define ENTRY(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE(dtype, shape, offsets) "{" ENTRY("x", dtype, shape, offsets) "}"

static void test_entries(void **state) {
    (void)state;
    clt_file *f = open_ok(model("{\"__metadata__\":{\"format\":\"pt\"}," ENTRY("b", "BF16", "[2,3]", "[4,16]") ","
                                ENTRY("a", "F32", "[]", "[0,4]") "," ENTRY("c", "F16", "[1,2,3,4]", "[16,64]") "}   ", 64));
    assert_int_equal(clt_file_get_kind(f), CLT_FILE_HF);
    assert_int_equal(clt_file_version(f), 0);
    assert_int_equal(clt_file_metas(f), 0);
    assert_null(clt_file_meta_find(f, "general.architecture"));
    assert_int_equal(clt_file_tensors(f), 3);
    assert_null(clt_file_find(f, "__metadata__"));
    const clt_tensor *a = clt_file_find(f, "a"), *b = clt_file_find(f, "b"), *c = clt_file_find(f, "c");
    assert_string_equal(clt_file_tensor(f, 0)->name, "b");
    assert_true(a->type == CLT_F32 && a->n_dims == 1 && a->dims[0] == 1 && a->bytes == 4);
    assert_true(b->type == CLT_BF16 && b->n_dims == 2 && b->dims[0] == 3 && b->dims[1] == 2 && b->bytes == 12);
    assert_true(c->type == CLT_F16 && c->n_dims == 4 && c->dims[0] == 4 && c->dims[3] == 1 && clt_tensor_rows(c) == 6);
    assert_int_equal(a->data[3], 3);
    assert_int_equal(b->data[0], 4);
    assert_int_equal(*clt_tensor_row(b, 1), 10);
    assert_int_equal(b->offset, clt_file_bytes(f) - 60);
    touch_all(f);
    clt_file_close(f);
}

static void test_the_token_order_is_skipped(void **state) {
    (void)state;
    clt_file *f = open_ok(model("{" ENTRY("m.token_ordering", "I64", "[1]", "[0,8]") ","
                                ENTRY("a", "F32", "[1]", "[8,12]") "}", 12));
    assert_int_equal(clt_file_tensors(f), 1);
    assert_null(clt_file_find(f, "m.token_ordering"));
    clt_file_close(f);
    REFUSED(model(ONE("I64", "[1]", "[0,8]"), 8), CLT_E_UNSUPPORTED, "model.safetensors", "tensor 'x' is of dtype I64");
    REFUSED(model("{" ENTRY("m.token_ordering", "I32", "[2]", "[0,8]") "}", 8), CLT_E_UNSUPPORTED, "dtype I32");
}

static void test_dtypes_that_we_lack_are_named(void **state) {
    (void)state;
    static const struct { const char *dtype, *shape; size_t bytes; } cases[] = {
        {"F64", "[2]", 16},   {"I64", "[2]", 16},  {"U64", "[2]", 16},     {"I32", "[2]", 8},     {"U32", "[2]", 8},
        {"I16", "[2]", 4},    {"U16", "[2]", 4},   {"I8", "[2]", 2},       {"U8", "[2]", 2},      {"BOOL", "[2]", 2},
        {"F8_E4M3", "[2]", 2}, {"F8_E5M2", "[2]", 2}, {"F8_E8M0", "[2]", 2}, {"F6_E2M3", "[4]", 3}, {"F4", "[4]", 2},
        {"C64", "[2]", 16},   {"NEW9", "[2]", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char header[200], words[64];
        snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[0,%zu]}}", cases[i].dtype,
                 cases[i].shape, cases[i].bytes);
        snprintf(words, sizeof words, "tensor 'x' is of dtype %s, which is not supported", cases[i].dtype);
        REFUSED(model(header, cases[i].bytes), CLT_E_UNSUPPORTED, words, "1 such tensors");
        REFUSED(model(header, cases[i].bytes - 1), CLT_E_FILE, "'x'", "runs past the end");
    }
    REFUSED(model(ONE("F32", "[1,1,1,1,2]", "[0,8]"), 8), CLT_E_UNSUPPORTED, "tensor 'x' is of 5 dimensions");
    char header[900], dtype[601];
    for (size_t i = 0; i < 600; i += 2) memcpy(dtype + i, "\xC3\xA9", 3);
    snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,8]}}", dtype);
    REFUSED(model(header, 8), CLT_E_UNSUPPORTED, "\xC3\xA9\xe2\x80\xa6, which is not supported");
    REFUSED(model(ONE("I64", "[1]", "[0,7]"), 7), CLT_E_FILE, "'x'", "take 8 bytes", "data_offsets say 7");
}

static void test_damaged_entries(void **state) {
    (void)state;
    static const struct { const char *header, *words; } cases[] = {
        {"{\"x\":3}", "tensor 'x': its header entry is no object"},
        {"{\"x\":{}}", "its dtype is missing or no string"},
        {"{\"x\":{\"dtype\":4}}", "its dtype is missing or no string"},
        {"{\"x\":{\"dtype\":\"F32\"}}", "its shape is missing or no array"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}", "its data_offsets are not [begin, end]"},
        {ONE("F32", "[1]", "[0]"), "its data_offsets are not [begin, end]"},
        {ONE("F32", "[1]", "[0,4,8]"), "its data_offsets are not [begin, end]"},
        {ONE("F32", "[1]", "[-4,0]"), "its data_offsets are not [begin, end]"},
        {ONE("F32", "[1]", "[4,0]"), "its data_offsets are not [begin, end]"},
        {ONE("F32", "[1]", "[0,4.0]"), "its data_offsets are not [begin, end]"},
        {ONE("F32", "[1]", "[0,99999999999999999999]"), "its shape is no whole number"},
        {ONE("F32", "[0]", "[0,0]"), "dimension 0 of its shape is 0"},
        {ONE("F32", "[2,-1]", "[0,4]"), "dimension 1 of its shape is -1"},
        {ONE("F32", "[1.5]", "[0,4]"), "dimension 0 of its shape is no whole number"},
        {ONE("F32", "[\"1\"]", "[0,4]"), "dimension 0 of its shape is no whole number"},
        {ONE("F32", "[NaN]", "[0,4]"), "not valid JSON"},
        {ONE("F32", "[4611686018427387904,4]", "[0,4]"), "its shape is too large"},
        {ONE("F32", "[3]", "[0,8]"), "3 numbers of dtype F32 take 12 bytes, its data_offsets say 8"},
        {ONE("F6_E2M3", "[3]", "[0,2]"), "3 numbers of dtype F6_E2M3 take 3 bytes, its data_offsets say 2"},
        {"{\"\":{}}", "the name is empty"},
        {"{\"a\\nb\":3}", "'a<0x0A>b'"},
        {"[1]", "the header is no JSON object"},
        {"{\"x\":", "not valid JSON"},
        {"{}", "holds no tensors"},
        {"{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "not valid JSON"},
        {"{" ENTRY("x", "F32", "[1]", "[0,4]") "," ENTRY("x", "F32", "[1]", "[4,8]") "}", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        REFUSED(model(cases[i].header, 8), CLT_E_FILE, "model.safetensors", cases[i].words);
}

static void test_damaged_layout(void **state) {
    (void)state;
    REFUSED(model(ONE("F32", "[2]", "[0,8]"), 7), CLT_E_FILE, "tensor 'x'", "8 bytes) runs past the end", "expected",
            "found");
    REFUSED(model(ONE("F32", "[2]", "[0,8]"), 9), CLT_E_FILE, "belong to no tensor");
    REFUSED(model(ONE("F32", "[1]", "[4,8]"), 8), CLT_E_FILE, "belong to no tensor");
    REFUSED(model("{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F32", "[1]", "[8,12]") "}", 12), CLT_E_FILE,
            "belong to no tensor");
    REFUSED(model("{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[2]", "[4,12]") "}", 12), CLT_E_FILE,
            "tensor 'b'", "overlaps 'a'");
}

static const char *raw(const void *bytes, size_t n) {
    mkdir(in_folder("st"), 0700);
    write_text("st/config.json", "{}");
    write_bytes("st/model.safetensors", bytes, n);
    return in_folder("st");
}

static void test_damaged_headers(void **state) {
    (void)state;
    REFUSED(raw("", 0), CLT_E_FILE, "model.safetensors", "the file is empty");
    REFUSED(raw("\2\0\0", 3), CLT_E_FILE, "truncated", "ends at 3");
    REFUSED(raw("\x40\0\0\0\0\0\0\0{}", 10), CLT_E_FILE, "truncated", "takes 64 bytes from offset 8, the file ends at 10");
    REFUSED(raw("\1\0\0\0\0\0\0\0{}", 10), CLT_E_FILE, "a header of 1 bytes cannot be");
    REFUSED(raw("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), CLT_E_FILE, "a header of 18446744073709551615 bytes cannot be");
    REFUSED(raw("version https://git-lfs.github.com/spec/v1\noid", 46), CLT_E_FILE, "a Git LFS pointer", "git lfs pull");
    REFUSED(raw("<html>", 6), CLT_E_FILE, "an HTML page");
}

static void test_an_absurd_header_is_not_parsed(void **state) {
    (void)state;
    enum { N = 3000000 };
    char *text = malloc(N + 1);
    assert_non_null(text);
    memset(text, '[', N);
    text[N] = 0;
    REFUSED(model(text, 0), CLT_E_FILE, "3000000 brackets and commas");
    free(text);
}

static void test_every_truncation(void **state) {
    (void)state;
    clt_buf b = {0};
    safetensors(&b, "{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "BF16", "[2,2]", "[8,16]") "}", 16);
    for (size_t n = 0; n < b.len; n++) REFUSED(raw(b.data, n), CLT_E_FILE, "model.safetensors");
    clt_file_close(open_ok(raw(b.data, b.len)));
    clt_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_the_token_order_is_skipped),
        cmocka_unit_test(test_dtypes_that_we_lack_are_named),
        cmocka_unit_test(test_damaged_entries),
        cmocka_unit_test(test_damaged_layout),
        cmocka_unit_test(test_damaged_headers),
        cmocka_unit_test(test_an_absurd_header_is_not_parsed),
        cmocka_unit_test(test_every_truncation),
    };
#if CLT_HAVE_JANSSON
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
#else
    (void)tests;
    return 77;
#endif
}
