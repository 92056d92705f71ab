/* The tensor table of GGUF: shapes, types, places, and each kind of damage. */
#include "file/files.h"

typedef struct row {
    const char *name;
    int n_dims;
    uint64_t dims[5];
    uint32_t type;
    uint64_t offset;
} row;

/* A file of these tensors and so many bytes of data. */
static const char *table(const row *rows, size_t n, size_t data_bytes) {
    clt_buf b = {0};
    gguf_header(&b, 3, n, 0);
    for (size_t i = 0; i < n; i++) gguf_tensor(&b, rows[i].name, rows[i].n_dims, rows[i].dims, rows[i].type, rows[i].offset);
    gguf_align(&b, 32);
    put_zeros(&b, data_bytes);
    return write_buf("table.gguf", &b);
}
#define TABLE(bytes, ...) table((const row[]){__VA_ARGS__}, sizeof((const row[]){__VA_ARGS__}) / sizeof(row), bytes)

static void test_shapes(void **state) {
    (void)state;
    clt_file *f = open_ok(TABLE(4096, {"scalar", 0, {0}, CLT_F32, 0}, {"four", 4, {2, 3, 4, 5}, CLT_F16, 32},
                                {"k", 2, {256, 2}, CLT_Q6_K, 288}));
    assert_int_equal(clt_file_find(f, "scalar")->n_dims, 1);
    assert_int_equal(clt_file_find(f, "scalar")->bytes, 4);
    assert_int_equal(clt_tensor_rows(clt_file_find(f, "four")), 60);
    assert_int_equal(clt_file_find(f, "four")->bytes, 240);
    assert_int_equal(clt_file_find(f, "k")->bytes, 420);
    touch_all(f);
    clt_file_close(f);
}

static void test_damaged_shapes(void **state) {
    (void)state;
    REFUSED(TABLE(64, {"x", 1, {0}, CLT_F32, 0}), CLT_E_FILE, "('x')", "dimension 0 is 0");
    REFUSED(TABLE(64, {"x", 2, {4, UINT64_MAX}, CLT_F32, 0}), CLT_E_FILE, "('x')", "dimension 1 is -1");
    REFUSED(TABLE(64, {"x", 5, {1, 1, 1, 1, 1}, CLT_F32, 0}), CLT_E_FILE, "('x')", "5 dimensions");
    REFUSED(TABLE(64, {"x", 2, {1ull << 62, 4}, CLT_F32, 0}), CLT_E_FILE, "('x')", "too large");
    REFUSED(TABLE(64, {"x", 4, {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16}, CLT_F32, 0}), CLT_E_FILE, "too large");
    REFUSED(TABLE(64, {"x", 2, {1ull << 62, 2}, 77, 0}), CLT_E_FILE, "too large");
    REFUSED(TABLE(64, {"x", 2, {33, 2}, CLT_Q4_0, 0}), CLT_E_FILE, "('x')", "rows of 33 numbers", "blocks of 32", "Q4_0");
    REFUSED(TABLE(512, {"x", 1, {128}, CLT_Q4_K, 0}), CLT_E_FILE, "blocks of 256", "Q4_K");
}

static void test_damaged_names(void **state) {
    (void)state;
    char longest[66];
    memset(longest, 'n', 65);
    longest[64] = 0;
    clt_file_close(open_ok(TABLE(64, {longest, 1, {4}, CLT_F32, 0})));
    longest[64] = 'n';
    longest[65] = 0;
    REFUSED(TABLE(64, {longest, 1, {4}, CLT_F32, 0}), CLT_E_FILE, "tensor entry 0", "the name has 65 bytes, more than 64");
    REFUSED(TABLE(64, {"", 1, {4}, CLT_F32, 0}), CLT_E_FILE, "tensor entry 0", "the name is empty");
    REFUSED(TABLE(64, {"a", 1, {4}, CLT_F32, 0}, {"a", 1, {4}, CLT_F32, 32}), CLT_E_FILE, "'a' appears twice");
    clt_buf b = {0};
    gguf_header(&b, 3, 1, 0);
    put_str_n(&b, "a\0b", 3);
    put_zeros(&b, 64);
    REFUSED(write_buf("nul.gguf", &b), CLT_E_FILE, "the name holds a NUL byte: 'a<0x00>b'");
}

static void test_damaged_places(void **state) {
    (void)state;
    REFUSED(TABLE(64, {"x", 1, {8}, CLT_F32, 33}), CLT_E_FILE, "('x')", "offset 33", "alignment 32");
    REFUSED(TABLE(64, {"x", 1, {8}, CLT_F32, UINT64_MAX - 31}), CLT_E_FILE, "('x')", "do not fit into any file");
    REFUSED(TABLE(64, {"x", 1, {16}, CLT_F32, 0}, {"y", 1, {4}, CLT_F32, 32}), CLT_E_FILE, "'y'", "overlaps 'x'");
    REFUSED(TABLE(96, {"y", 1, {4}, CLT_F32, 32}, {"z", 1, {4}, CLT_F32, 64}, {"x", 1, {16}, CLT_F32, 0}), CLT_E_FILE, "'y'",
            "overlaps 'x'");
    REFUSED(TABLE(64, {"x", 1, {4}, CLT_F32, 0}, {"y", 1, {4}, CLT_F32, 0}), CLT_E_FILE, "overlaps");
    clt_file_close(open_ok(TABLE(64, {"y", 1, {4}, CLT_F32, 32}, {"x", 1, {8}, CLT_F32, 0})));
}

/* 24 header + 2 * 33 entry = 90, data from 96: x at 96 (32 bytes), y at 128 (16 bytes), so the file needs 144 bytes. */
static void test_truncated_data(void **state) {
    (void)state;
    static const row rows[] = {{"x", 1, {8}, CLT_F32, 0}, {"y", 1, {4}, CLT_F32, 32}};
    clt_file_close(open_ok(table(rows, 2, 48)));
    REFUSED(table(rows, 2, 47), CLT_E_FILE, "table.gguf", "tensor 'y' (offset 128, 16 bytes)", "expected 144 bytes",
            "found 143", "1 of 2 tensors", "fetch the file again");
    REFUSED(table(rows, 2, 0), CLT_E_FILE, "tensor 'x' (offset 96, 32 bytes)", "expected 144 bytes", "found 96",
            "2 of 2 tensors");
}

static void test_types_that_we_lack_are_named(void **state) {
    (void)state;
    REFUSED(TABLE(64, {"ok", 1, {8}, CLT_F32, 0}, {"q", 1, {256}, 16, 32}, {"r", 1, {32}, 39, 128}), CLT_E_FILE, "'q'",
            "runs past the end");
    REFUSED(TABLE(256, {"ok", 1, {8}, CLT_F32, 0}, {"q", 1, {256}, 16, 32}, {"r", 1, {32}, 39, 128}), CLT_E_UNSUPPORTED,
            "tensor 'q' is of type IQ2_XXS", "2 such tensors");
    REFUSED(TABLE(64, {"m", 1, {32}, 39, 0}), CLT_E_UNSUPPORTED, "tensor 'm' is of type MXFP4");
    REFUSED(TABLE(64, {"m", 1, {64}, 40, 0}), CLT_E_UNSUPPORTED, "tensor 'm' is of type NVFP4");
    REFUSED(TABLE(64, {"m", 1, {4}, 26, 0}), CLT_E_UNSUPPORTED, "tensor 'm' is of type I32");
    REFUSED(TABLE(64, {"m", 1, {4}, 777, 0}), CLT_E_UNSUPPORTED, "tensor 'm'", "unknown type number 777");
}

static void test_damage_comes_before_support(void **state) {
    (void)state;
    REFUSED(TABLE(64, {"m", 1, {31}, 39, 0}), CLT_E_FILE, "blocks of 32", "MXFP4");
    REFUSED(TABLE(64, {"m", 1, {4}, 777, 1024}), CLT_E_FILE, "'m'", "runs past the end");
    REFUSED(TABLE(64, {"m", 1, {4}, 777, 0}, {"x", 1, {0}, CLT_F32, 32}), CLT_E_FILE, "('x')", "dimension 0 is 0");
    REFUSED(TABLE(64, {"m", 1, {4}, 777, 0}, {"m", 1, {4}, CLT_F32, 32}), CLT_E_FILE, "'m' appears twice");
}

static void test_every_truncation(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_header(&b, 3, 2, 1);
    gguf_u32(&b, "k", 1);
    gguf_tensor(&b, "x", 1, (const uint64_t[]){8}, CLT_F32, 0);
    gguf_tensor(&b, "y", 2, (const uint64_t[]){4, 2}, CLT_F16, 32);
    gguf_align(&b, 32);
    put_zeros(&b, 48);
    for (size_t n = 0; n < b.len; n++) REFUSED(write_bytes("cut.gguf", b.data, n), CLT_E_FILE, "cut.gguf");
    clt_file_close(open_ok(write_buf("cut.gguf", &b)));
}

/* Many tensors in the reverse order of their data: sorting and the table of names stay fast. */
static void test_many_tensors(void **state) {
    (void)state;
    enum { N = 100000 };
    clt_buf b = {0};
    gguf_header(&b, 3, N, 0);
    for (uint64_t i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "t%llu", (unsigned long long)i);
        gguf_tensor(&b, name, 1, (const uint64_t[]){1}, CLT_F32, (N - 1 - i) * 32);
    }
    gguf_align(&b, 32);
    put_zeros(&b, N * 32);
    clt_file *f = open_ok(write_buf("many.gguf", &b));
    assert_int_equal(clt_file_tensors(f), N);
    touch_all(f);
    clt_file_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_damaged_shapes),
        cmocka_unit_test(test_damaged_names),
        cmocka_unit_test(test_damaged_places),
        cmocka_unit_test(test_truncated_data),
        cmocka_unit_test(test_types_that_we_lack_are_named),
        cmocka_unit_test(test_damage_comes_before_support),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_many_tensors),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
