/* One GGUF file: the header, the versions and the alignment. */
#include "file/files.h"

static const uint64_t d4[] = {4};

static void test_a_small_file_opens(void **state) {
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        clt_buf b = {0};
        gguf_header(&b, version, 2, 2);
        gguf_string(&b, "general.architecture", "gemma4");
        gguf_u32(&b, "general.alignment", 64);
        gguf_tensor(&b, "a", 1, d4, CLT_F32, 0);
        gguf_tensor(&b, "b", 2, (const uint64_t[]){32, 3}, CLT_Q4_0, 64);
        gguf_align(&b, 64);
        size_t data = b.len;
        put_zeros(&b, 64 + 3 * 18);
        b.data[data] = 42;
        b.data[data + 64 + 36] = 43;
        size_t size = b.len;
        clt_file *f = open_ok(write_buf("small.gguf", &b));
        assert_int_equal(clt_file_get_kind(f), CLT_FILE_GGUF);
        assert_int_equal(clt_file_version(f), version);
        assert_int_equal(clt_file_shards(f), 1);
        assert_string_equal(clt_file_shard_path(f, 0), clt_file_path(f));
        assert_int_equal(clt_file_bytes(f), size);
        assert_int_equal(clt_file_shard_bytes(f, 0), size);
        assert_int_equal(clt_file_tensors(f), 2);
        assert_null(clt_file_tensor(f, 2));
        assert_null(clt_file_find(f, "c"));
        const clt_tensor *a = clt_file_tensor(f, 0), *q = clt_file_find(f, "b");
        assert_int_equal(a->data[0], 42);
        assert_int_equal(a->offset, data);
        assert_int_equal(a->bytes, 16);
        assert_int_equal(q->type, CLT_Q4_0);
        assert_int_equal(q->dims[0], 32);
        assert_int_equal(q->dims[1], 3);
        assert_int_equal(q->dims[3], 1);
        assert_int_equal(q->bytes, 54);
        assert_int_equal(clt_tensor_rows(q), 3);
        assert_int_equal(*clt_tensor_row(q, 2), 43);
        assert_null(clt_file_json(f, "config.json"));
        uint64_t len = 1;
        assert_null(clt_file_text(f, "tokenizer.json", &len));
        clt_file_expect(f, q, 1, 2);
        clt_file_release(f, a, 0, 1);
        clt_file_release(f, q, 2, 1);
        assert_int_equal(a->data[0], 42);
        touch_all(f);
        clt_file_close(f);
    }
}

static void test_a_vocabulary_alone_opens(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_header(&b, 3, 0, 1);
    gguf_string(&b, "general.architecture", "gemma4");
    clt_file *f = open_ok(write_buf("vocab.gguf", &b));
    assert_int_equal(clt_file_tensors(f), 0);
    assert_int_equal(clt_file_metas(f), 1);
    clt_file_close(f);
    clt_file_close(NULL);
}

static const char *with_version(uint32_t version) {
    clt_buf b = {0};
    gguf_header(&b, version, 0, 0);
    return write_buf("version.gguf", &b);
}

static void test_versions(void **state) {
    (void)state;
    REFUSED(with_version(0), CLT_E_FILE, "version 0", "expected 2 or 3");
    REFUSED(with_version(1), CLT_E_UNSUPPORTED, "version.gguf", "GGUF version 1 is not supported",
            "convert the model again");
    REFUSED(with_version(4), CLT_E_UNSUPPORTED, "GGUF version 4", "newer culet");
    REFUSED(with_version(0x03000000), CLT_E_UNSUPPORTED, "big-endian GGUF", "00 00 00 03", "little-endian");
}

static void test_short_headers(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_header(&b, 3, 0, 0);
    for (size_t n = 4; n < 24; n++) {
        char found[32];
        snprintf(found, sizeof found, "found %zu", n);
        REFUSED(write_bytes("short.gguf", b.data, n), CLT_E_FILE, "the header takes 24 bytes", found);
    }
    for (size_t n = 1; n < 4; n++) REFUSED(write_bytes("short.gguf", b.data, n), CLT_E_FILE, "not a GGUF file");
    clt_buf_free(&b);
}

static void test_other_files_are_named(void **state) {
    (void)state;
    REFUSED(write_text("other.gguf", "tjgg\1\0\0\0 and so on"), CLT_E_UNSUPPORTED, "older than GGUF");
    REFUSED(write_text("other.gguf", "root\n:x:0"), CLT_E_FILE, "begins with 'root'", "expected 'GGUF'");
    REFUSED(write_text("other.gguf", "a\n\x7f\xff:x:0"), CLT_E_FILE, "'a<0x0A><0x7F><0xFF>'");
    clt_buf b = {0};
    safetensors(&b, "{}", 8);
    REFUSED(write_buf("blob", &b), CLT_E_FILE, "single safetensors file", "give the folder that holds config.json");
}

/* One tensor of 4 floats at this offset after a general.alignment of this type and value. */
static const char *with_alignment(uint32_t type, uint64_t v, uint64_t offset) {
    static const int bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    clt_buf b = {0};
    gguf_header(&b, 3, 1, 1);
    gguf_key(&b, "general.alignment", type);
    put_le(&b, v, bytes[type]);
    gguf_tensor(&b, "a", 1, d4, CLT_F32, offset);
    gguf_align(&b, 256);
    put_zeros(&b, 256);
    return write_buf("align.gguf", &b);
}

static void test_alignment(void **state) {
    (void)state;
    clt_file *f = open_ok(with_alignment(CLT_META_U32, 1, 3));
    assert_int_equal(clt_file_tensor(f, 0)->offset, 24 + 33 + 33 + 3); /* header, metadata, table, offset */
    clt_file_close(f);
    REFUSED(with_alignment(CLT_META_U32, 0, 0), CLT_E_FILE, "general.alignment is 0", "power of two");
    REFUSED(with_alignment(CLT_META_U32, 48, 0), CLT_E_FILE, "general.alignment is 48", "power of two");
    REFUSED(with_alignment(CLT_META_U64, 32, 0), CLT_E_FILE, "general.alignment is of type u64", "expected u32");
    REFUSED(with_alignment(CLT_META_BOOL, 1, 0), CLT_E_FILE, "general.alignment is of type bool");
    REFUSED(with_alignment(CLT_META_U32, 32, 16), CLT_E_FILE, "'a'", "offset 16", "alignment 32");
    REFUSED(with_alignment(CLT_META_U32, 0x80000000u, 0), CLT_E_FILE, "'a'", "runs past the end");
}

static void test_absurd_counts(void **state) {
    (void)state;
    static const uint64_t counts[] = {1, 1000, 1ull << 32, 1ull << 60, UINT64_MAX / 13, UINT64_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        clt_buf b = {0};
        gguf_header(&b, 3, counts[i], 0);
        REFUSED(write_buf("count.gguf", &b), CLT_E_FILE, "announces", "tensors", "hold at most 0");
        gguf_header(&b, 3, 0, counts[i]);
        REFUSED(write_buf("count.gguf", &b), CLT_E_FILE, "announces", "metadata entries", "hold at most 0");
    }
    clt_buf b = {0};
    gguf_header(&b, 3, 131073, 0);
    put_zeros(&b, 131073 * 25);
    REFUSED(write_buf("count.gguf", &b), CLT_E_FILE, "announces 131073 tensors", "131072 is the limit");
    gguf_header(&b, 3, 0, 65537);
    put_zeros(&b, 65537 * 14);
    REFUSED(write_buf("count.gguf", &b), CLT_E_FILE, "announces 65537 metadata entries", "65536 is the limit");
}

static void test_every_failed_allocation_is_reported(void **state) {
    (void)state;
    clt_buf b = {0};
    gguf_header(&b, 3, 1, 1);
    gguf_string(&b, "general.architecture", "gemma4");
    gguf_tensor(&b, "a", 1, d4, CLT_F32, 0);
    gguf_align(&b, 32);
    put_zeros(&b, 16);
    const char *path = write_buf("memory.gguf", &b);
    long live = clt_mem_live();
    int refusals = 0;
    for (long n = 1;; n++) {
        clt_err err;
        clt_file *f = NULL;
        clt_mem_fail_after(n);
        clt_status st = clt_file_open(path, &f, &err);
        clt_mem_fail_after(0);
        clt_file_close(f);
        assert_int_equal(clt_mem_live(), live);
        if (!st) break;
        assert_int_equal(st, CLT_E_MEMORY);
        refusals++;
    }
    assert_true(refusals >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_file_opens),
        cmocka_unit_test(test_a_vocabulary_alone_opens),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_short_headers),
        cmocka_unit_test(test_other_files_are_named),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_absurd_counts),
        cmocka_unit_test(test_every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
