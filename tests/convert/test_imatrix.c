/* Importances: both forms of their files, written, read and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/os.h"
#include "convert/imatrix.h"

static char folder[] = "/tmp/culet-imatrix-XXXXXX";
static char path[256];

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/im", folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static clt_imatrix made(void) {
    clt_imatrix m;
    clt_err err;
    assert_int_equal(clt_imatrix_init(&m, "", &err), CLT_OK);
    clt_imatrix_entry *a = clt_imatrix_add(&m, "blk.0.attn_q.weight", 19, 32, 1, &err);
    for (int i = 0; i < 32; i++) a->values[i] = 0.25f * (float)i;
    a->counts[0] = 512;
    a->sensitivity = 0.5f;
    clt_imatrix_entry *b = clt_imatrix_add(&m, "blk.0.ffn_down_exps.weight", 26, 8, 3, &err);
    for (int i = 0; i < 24; i++) b->values[i] = 1 + (float)i;
    b->counts[0] = 7, b->counts[1] = 0, b->counts[2] = 1;
    for (int i = 8; i < 16; i++) b->values[i] = 1; /* an expert that saw nothing */
    m.chunks = 2;
    m.chunk_tokens = 256;
    return m;
}

static void assert_near(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) assert_true(a[i] - b[i] < 1e-5f && b[i] - a[i] < 1e-5f);
}

static void test_both_forms(void **state) {
    clt_err err;
    (void)state;
    for (int old = 0; old < 2; old++) {
        clt_imatrix want = made(), found;
        assert_int_equal(clt_imatrix_write(&want, path, old, &err), CLT_OK);
        assert_int_equal(clt_imatrix_read(path, &found, &err), CLT_OK);
        assert_int_equal(found.n, 2);
        assert_int_equal(found.chunks, 2);
        const clt_imatrix_entry *a = clt_imatrix_find(&found, "blk.0.attn_q.weight"),
                                *b = clt_imatrix_find(&found, "blk.0.ffn_down_exps.weight");
        assert_non_null(a);
        assert_non_null(b);
        assert_null(clt_imatrix_find(&found, "blk.0.attn_q"));
        assert_int_equal(a->cols, 32);
        assert_int_equal(b->cols * b->matrices, 24); /* the old form does not tell matrices apart */
        assert_near(a->values, want.entries[0].values, 32);
        assert_near(b->values, want.entries[1].values, 24);
        if (!old) {
            assert_int_equal(b->matrices, 3);
            assert_true(a->sensitivity == 0.5f && b->sensitivity == 0);
            assert_int_equal(found.chunk_tokens, 256);
        }
        clt_imatrix_free(&want);
        clt_imatrix_free(&found);
    }
}

/* Every prefix of a file, and every file with one byte changed, is read or refused; nothing else happens. */
static void test_damage(void **state) {
    clt_err err;
    clt_buf bytes = {0};
    (void)state;
    for (int old = 0; old < 2; old++) {
        clt_imatrix m = made(), found;
        assert_int_equal(clt_imatrix_write(&m, path, old, &err), CLT_OK);
        clt_imatrix_free(&m);
        clt_buf_reset(&bytes);
        assert_int_equal(clt_read_file(path, 1 << 20, &bytes, &err), CLT_OK);
        for (size_t i = 0; i < bytes.len; i += old ? 1 : 7) {
            assert_int_equal(clt_write_file_atomic(path, bytes.data, i, false, &err), CLT_OK);
            if (clt_imatrix_read(path, &found, &err) == CLT_OK) clt_imatrix_free(&found);
            else assert_int_equal(err.code, CLT_E_FILE);
            bytes.data[i] = (char)(bytes.data[i] ^ 0x81);
            assert_int_equal(clt_write_file_atomic(path, bytes.data, bytes.len, false, &err), CLT_OK);
            if (clt_imatrix_read(path, &found, &err) == CLT_OK) clt_imatrix_free(&found);
            else assert_true(err.code == CLT_E_FILE || err.code == CLT_E_UNSUPPORTED);
            bytes.data[i] = (char)(bytes.data[i] ^ 0x81);
        }
    }
    clt_buf_free(&bytes);
}

static void test_what_is_no_imatrix(void **state) {
    clt_err err;
    clt_imatrix found;
    (void)state;
    assert_int_equal(clt_imatrix_read("/nonexistent/file", &found, &err), CLT_E_FILE);
    assert_int_equal(clt_write_file_atomic(path, "plain text, no numbers", 22, false, &err), CLT_OK);
    assert_int_equal(clt_imatrix_read(path, &found, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, path));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms), cmocka_unit_test(test_damage), cmocka_unit_test(test_what_is_no_imatrix),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
