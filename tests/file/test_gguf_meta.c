/* GGUF metadata: every type, typed reads, and each kind of damage. */
#include <math.h>
#include "file/files.h"

static clt_file *open_entries(clt_buf *entries, uint64_t n) {
    clt_buf b = {0};
    gguf_header(&b, 3, 0, n);
    clt_buf_put(&b, entries->data, entries->len);
    clt_buf_free(entries);
    return open_ok(write_buf("meta.gguf", &b));
}

/* A file with one entry of which `entries` holds the bytes; then 8 bytes more, so that not everything runs past the end. */
static const char *damaged(clt_buf *entries, uint64_t n) {
    clt_buf b = {0};
    gguf_header(&b, 3, 0, n);
    clt_buf_put(&b, entries->data, entries->len);
    put_zeros(&b, 8);
    clt_buf_free(entries);
    return write_buf("damaged.gguf", &b);
}

static void test_numbers(void **state) {
    (void)state;
    static const struct { uint32_t type; uint64_t bits; int bytes; int64_t whole; } cases[] = {
        {CLT_META_U8, 0xFF, 1, 255},          {CLT_META_I8, 0xFF, 1, -1},
        {CLT_META_U16, 0xFFFE, 2, 65534},     {CLT_META_I16, 0xFFFE, 2, -2},
        {CLT_META_U32, 0xFFFFFFFD, 4, 4294967293}, {CLT_META_I32, 0xFFFFFFFD, 4, -3},
        {CLT_META_U64, INT64_MAX, 8, INT64_MAX},   {CLT_META_I64, UINT64_MAX - 3, 8, -4},
    };
    enum { N = sizeof cases / sizeof cases[0] };
    clt_buf b = {0};
    for (size_t i = 0; i < N; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%zu", i);
        gguf_key(&b, key, cases[i].type);
        put_le(&b, cases[i].bits, cases[i].bytes);
    }
    clt_file *f = open_entries(&b, N);
    assert_int_equal(clt_file_metas(f), N);
    assert_null(clt_file_meta(f, N));
    for (size_t i = 0; i < N; i++) {
        int64_t v = 0;
        double d = 0;
        bool flag;
        const clt_meta *m = clt_file_meta(f, i);
        assert_true(clt_meta_int(m, 0, &v));
        assert_true(v == cases[i].whole);
        assert_true(clt_meta_num(m, 0, &d));
        assert_true(d == (double)cases[i].whole);
        assert_false(clt_meta_int(m, 1, &v));
        assert_false(clt_meta_bool(m, 0, &flag));
        assert_int_equal(m->count, 1);
        assert_false(m->is_array);
    }
    clt_file_close(f);
}

static void test_other_scalars(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_key(&b, "f32", CLT_META_F32);
    put_u32(&b, 0x3FC00000);
    gguf_key(&b, "f64", CLT_META_F64);
    put_u64(&b, 0xC004000000000000);
    gguf_key(&b, "bool", CLT_META_BOOL);
    clt_buf_putc(&b, 1);
    gguf_key(&b, "big", CLT_META_U64);
    put_u64(&b, UINT64_MAX);
    put_str(&b, "text");
    put_u32(&b, CLT_META_STRING);
    put_str_n(&b, "a\0b", 3);
    clt_file *f = open_entries(&b, 5);
    int64_t v;
    double d = 0;
    bool flag = false;
    const char *s = NULL;
    uint64_t len = 0, pos = 0;
    assert_true(clt_meta_num(clt_file_meta_find(f, "f32"), 0, &d));
    assert_true(d == 1.5);
    assert_false(clt_meta_int(clt_file_meta_find(f, "f32"), 0, &v));
    assert_true(clt_meta_num(clt_file_meta_find(f, "f64"), 0, &d));
    assert_true(d == -2.5);
    assert_true(clt_meta_bool(clt_file_meta_find(f, "bool"), 0, &flag));
    assert_true(flag);
    assert_false(clt_meta_int(clt_file_meta_find(f, "bool"), 0, &v));
    assert_false(clt_meta_int(clt_file_meta_find(f, "big"), 0, &v));
    assert_true(clt_meta_num(clt_file_meta_find(f, "big"), 0, &d));
    assert_true(d == 0x1p64);
    assert_true(clt_meta_str(clt_file_meta_find(f, "text"), &s, &len));
    assert_int_equal(len, 3);
    assert_memory_equal(s, "a\0b", 3);
    assert_false(clt_meta_next_str(clt_file_meta_find(f, "text"), &pos, &s, &len));
    assert_false(clt_meta_num(clt_file_meta_find(f, "text"), 0, &d));
    assert_null(clt_file_meta_find(f, "absent"));
    assert_false(clt_meta_int(NULL, 0, &v));
    assert_false(clt_meta_num(NULL, 0, &d));
    assert_false(clt_meta_bool(NULL, 0, &flag));
    assert_false(clt_meta_str(NULL, &s, &len));
    assert_false(clt_meta_next_str(NULL, &pos, &s, &len));
    assert_string_equal(clt_meta_type_name(CLT_META_F64), "f64");
    assert_string_equal(clt_meta_type_name((clt_meta_type)13), "unknown");
    clt_file_close(f);
}

static void test_arrays(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_array(&b, "heads", CLT_META_I32, 3);
    for (uint32_t i = 0; i < 3; i++) put_u32(&b, i * 2);
    gguf_array(&b, "tokens", CLT_META_STRING, 3);
    put_str(&b, "ab");
    put_str(&b, "");
    put_str(&b, "xyz");
    gguf_array(&b, "empty", CLT_META_STRING, 0);
    gguf_array(&b, "nested", CLT_META_ARRAY, 2);
    for (int i = 0; i < 2; i++) {
        put_u32(&b, CLT_META_U8);
        put_u64(&b, 1);
        clt_buf_putc(&b, 7);
    }
    gguf_u32(&b, "after", 5);
    clt_file *f = open_entries(&b, 5);
    int64_t v = 0;
    double d;
    const char *s = NULL;
    uint64_t len = 0, pos = 0;
    const clt_meta *heads = clt_file_meta_find(f, "heads"), *tokens = clt_file_meta_find(f, "tokens");
    assert_true(heads->is_array && heads->count == 3 && heads->bytes == 12);
    assert_true(clt_meta_int(heads, 2, &v));
    assert_int_equal(v, 4);
    assert_false(clt_meta_int(heads, 3, &v));
    static const char *const want[] = {"ab", "", "xyz"};
    for (int i = 0; i < 3; i++) {
        assert_true(clt_meta_next_str(tokens, &pos, &s, &len));
        assert_int_equal(len, strlen(want[i]));
        assert_memory_equal(s, want[i], len);
    }
    assert_false(clt_meta_next_str(tokens, &pos, &s, &len));
    assert_false(clt_meta_str(tokens, &s, &len));
    assert_false(clt_meta_num(tokens, 0, &d));
    pos = 0;
    assert_false(clt_meta_next_str(clt_file_meta_find(f, "empty"), &pos, &s, &len));
    pos = UINT64_MAX;
    assert_false(clt_meta_next_str(tokens, &pos, &s, &len));
    const clt_meta *nested = clt_file_meta_find(f, "nested");
    assert_int_equal(nested->type, CLT_META_ARRAY);
    assert_false(clt_meta_int(nested, 0, &v));
    assert_true(clt_meta_int(clt_file_meta_find(f, "after"), 0, &v));
    assert_int_equal(v, 5);
    clt_file_close(f);
}

static void test_damaged_keys(void **state) {
    (void)state;
    clt_buf b = {0};
    put_u64(&b, UINT64_MAX);
    put_zeros(&b, 20);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "metadata entry 0", "the key takes 18446744073709551615 bytes at offset 32");
    put_zeros(&b, 20);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "metadata entry 0", "the key is empty");
    put_str_n(&b, "a\0b", 3);
    put_zeros(&b, 20);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "the key holds a NUL byte: 'a<0x00>b'");
    put_u64(&b, 65536);
    put_zeros(&b, 65600);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "the key has 65536 bytes, more than 65535");
    gguf_u32(&b, "twice", 1);
    gguf_u32(&b, "other", 1);
    gguf_u32(&b, "twice", 2);
    REFUSED(damaged(&b, 3), CLT_E_FILE, "metadata entry 2 ('twice')", "appears twice", "entry 0");
}

static void test_damaged_values(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_key(&b, "evil\nkey", 13);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "'evil<0x0A>key'", "value type 13 at offset 40 is unknown");
    gguf_key(&b, "s", CLT_META_STRING);
    put_u64(&b, 1ull << 63);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('s')", "9223372036854775808 bytes", "past the end of the file");
    gguf_key(&b, "b", CLT_META_BOOL);
    clt_buf_putc(&b, 2);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('b')", "a bool at offset 37 is 2");
    gguf_array(&b, "bs", CLT_META_BOOL, 2);
    clt_buf_putc(&b, 1);
    clt_buf_putc(&b, 9);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('bs')", "is 9");
    gguf_array(&b, "a", CLT_META_F64, UINT64_MAX / 8 + 2); /* the byte count would overflow to 8 */
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('a')", "values of type f64", "past the end of the file");
    gguf_array(&b, "a", CLT_META_STRING, 1ull << 61);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('a')", "values of type string", "past the end of the file");
    gguf_array(&b, "a", CLT_META_STRING, 2);
    put_str(&b, "fine");
    put_u64(&b, 100);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('a')", "string 1 of 2 takes 100 bytes");
    gguf_array(&b, "a", 99, 0);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('a')", "value type 99");
}

static void nest(clt_buf *b, int depth) {
    gguf_key(b, "deep", CLT_META_ARRAY);
    for (int i = 1; i < depth; i++) {
        put_u32(b, CLT_META_ARRAY);
        put_u64(b, 1);
    }
    put_u32(b, CLT_META_U8);
    put_u64(b, 0);
}

static void test_nesting_is_bounded(void **state) {
    (void)state;
    clt_buf b = {0};
    nest(&b, 4);
    clt_file_close(open_ok(damaged(&b, 1)));
    nest(&b, 5);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('deep')", "nested more than 4 deep");
    nest(&b, 100000);
    REFUSED(damaged(&b, 1), CLT_E_FILE, "('deep')", "nested more than 4 deep");
}

/* Every prefix of a header with every type is refused, and the whole is not. */
static void test_every_truncation(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_header(&b, 3, 0, 4);
    gguf_string(&b, "s", "text");
    gguf_array(&b, "a", CLT_META_STRING, 2);
    put_str(&b, "x");
    put_str(&b, "yy");
    gguf_array(&b, "n", CLT_META_U16, 2);
    put_u32(&b, 7);
    gguf_key(&b, "d", CLT_META_F64);
    put_u64(&b, 0);
    for (size_t n = 24; n < b.len; n++) REFUSED(write_bytes("cut.gguf", b.data, n), CLT_E_FILE, "cut.gguf", "damaged");
    clt_file_close(open_ok(write_buf("cut.gguf", &b)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_other_scalars),
        cmocka_unit_test(test_arrays),          cmocka_unit_test(test_damaged_keys),
        cmocka_unit_test(test_damaged_values),  cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_every_truncation),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
