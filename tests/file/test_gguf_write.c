/* Heads of GGUF files: what was put is what the reader finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/os.h"
#include "file/gguf_write.h"

static void put_all(clt_gguf_head *h) {
    const int32_t numbers[] = {1, -2, 3};
    clt_gguf_put_str(h, "general.architecture", "gemma4", 6);
    clt_gguf_put_u32(h, "a.u32", 4000000000u);
    clt_gguf_put_i32(h, "a.i32", -5);
    clt_gguf_put_f32(h, "a.f32", 0.5f);
    clt_gguf_put_bool(h, "a.bool", true);
    clt_gguf_put_array(h, "a.numbers", CLT_META_I32, 3, numbers, sizeof numbers);
    clt_gguf_begin_strings(h, "a.texts", 2);
    clt_gguf_put_item(h, "", 0);
    clt_gguf_put_item(h, "two", 3);
    assert_int_equal(clt_gguf_put_tensor(h, "first", CLT_F32, 1, (const int64_t[]){3}), 0);
    assert_int_equal(clt_gguf_put_tensor(h, "second", CLT_Q4_0, 2, (const int64_t[]){64, 3}), 32);
    assert_int_equal(h->data_bytes, 32 + 128); /* 108 bytes, padded */
}

static void check_all(const clt_file *f) {
    int64_t v;
    double d;
    bool b;
    uint64_t pos = 0, len;
    const char *s;
    assert_int_equal(clt_file_version(f), 3);
    assert_true(clt_meta_int(clt_file_meta_find(f, "a.u32"), 0, &v) && v == 4000000000);
    assert_true(clt_meta_int(clt_file_meta_find(f, "a.i32"), 0, &v) && v == -5);
    assert_true(clt_meta_num(clt_file_meta_find(f, "a.f32"), 0, &d) && d == 0.5);
    assert_true(clt_meta_bool(clt_file_meta_find(f, "a.bool"), 0, &b) && b);
    assert_true(clt_meta_int(clt_file_meta_find(f, "a.numbers"), 1, &v) && v == -2);
    const clt_meta *texts = clt_file_meta_find(f, "a.texts");
    assert_true(clt_meta_next_str(texts, &pos, &s, &len) && len == 0);
    assert_true(clt_meta_next_str(texts, &pos, &s, &len) && len == 3 && !memcmp(s, "two", 3));
    assert_false(clt_meta_next_str(texts, &pos, &s, &len));
    const clt_tensor *t = clt_file_find(f, "second");
    assert_true(t && t->type == CLT_Q4_0 && t->dims[0] == 64 && t->dims[1] == 3 && t->bytes == 108);
    assert_int_equal(clt_file_tensors(f), 2);
}

/* The file, and a copy made of its entries. */
static void test_round_trip(void **state) {
    char folder[] = "/tmp/culet-write-XXXXXX", path[64];
    clt_err err;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.gguf", folder);
    clt_buf first = {0};
    for (int round = 0; round < 2; round++) {
        clt_gguf_head h = {0}, half = {0};
        clt_buf bytes = {0};
        clt_file *f = NULL;
        if (round == 0) {
            put_all(&h);
        } else { /* half of the entries by way of another head */
            assert_int_equal(clt_file_open(path, &f, &err), CLT_OK);
            for (size_t i = 0; i < clt_file_metas(f); i++) clt_gguf_put_meta(i < 3 ? &h : &half, clt_file_meta(f, i));
            clt_gguf_append(&h, &half);
            for (size_t i = 0; i < 2; i++) {
                const clt_tensor *t = clt_file_tensor(f, i);
                clt_gguf_put_tensor(&h, t->name, t->type, t->n_dims, t->dims);
            }
            clt_file_close(f);
        }
        assert_int_equal(clt_gguf_head_end(&h, &bytes, &err), CLT_OK);
        assert_int_equal(bytes.len % 32, 0);
        for (uint64_t i = 0; i < h.data_bytes; i++) clt_buf_putc(&bytes, 0);
        if (round == 0) clt_buf_put(&first, bytes.data, bytes.len);
        else assert_true(first.len == bytes.len && !memcmp(first.data, bytes.data, bytes.len));
        assert_int_equal(clt_write_file_atomic(path, bytes.data, bytes.len, false, &err), CLT_OK);
        assert_int_equal(clt_file_open(path, &f, &err), CLT_OK);
        check_all(f);
        clt_file_close(f);
        clt_gguf_head_free(&h);
        clt_gguf_head_free(&half);
        clt_buf_free(&bytes);
    }
    clt_buf_free(&first);
    unlink(path);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
