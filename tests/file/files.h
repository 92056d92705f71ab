/* For the tests of src/file: a temporary folder, builders of tiny GGUF and safetensors files, and the expectation that a
 * path is refused with given words. Header-only, one test executable each. */
#ifndef CLT_TESTS_FILE_FILES_H
#define CLT_TESTS_FILE_FILES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/os.h"
#include "file/file.h"

#define UNUSED __attribute__((unused))

static char folder[256]; /* of this test run; made by files_setup, removed by files_teardown */

static UNUSED const char *in_folder(const char *name) {
    static char paths[4][512];
    static int next;
    char *p = paths[next++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static UNUSED int files_setup(void **state) {
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/culet-file-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static UNUSED void remove_all(const char *dir) {
    clt_err err;
    char **names = NULL;
    size_t n = 0;
    if (clt_list_dir(dir, &names, &n, &err)) return;
    for (size_t i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        if (clt_is_dir(path)) remove_all(path);
        else unlink(path);
        clt_free(names[i]);
    }
    clt_free(names);
    rmdir(dir);
}

static UNUSED int files_teardown(void **state) {
    (void)state;
    remove_all(folder);
    return 0;
}

static UNUSED const char *write_bytes(const char *name, const void *bytes, size_t n) {
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static UNUSED const char *write_text(const char *name, const char *text) {
    return write_bytes(name, text, strlen(text));
}

/* ---- numbers into a buffer, little-endian ---- */

static UNUSED void put_le(clt_buf *b, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) clt_buf_putc(b, (char)(v >> (8 * i)));
}
static UNUSED void put_u32(clt_buf *b, uint32_t v) { put_le(b, v, 4); }
static UNUSED void put_u64(clt_buf *b, uint64_t v) { put_le(b, v, 8); }
static UNUSED void put_zeros(clt_buf *b, size_t n) {
    for (size_t i = 0; i < n; i++) clt_buf_putc(b, 0);
}
static UNUSED void put_str_n(clt_buf *b, const char *s, size_t n) {
    put_u64(b, n);
    clt_buf_put(b, s, n);
}
static UNUSED void put_str(clt_buf *b, const char *s) { put_str_n(b, s, strlen(s)); }

/* ---- GGUF ---- */

static UNUSED void gguf_header(clt_buf *b, uint32_t version, uint64_t tensors, uint64_t metas) {
    clt_buf_puts(b, "GGUF");
    put_u32(b, version);
    put_u64(b, tensors);
    put_u64(b, metas);
}
static UNUSED void gguf_key(clt_buf *b, const char *key, uint32_t type) {
    put_str(b, key);
    put_u32(b, type);
}
static UNUSED void gguf_u32(clt_buf *b, const char *key, uint32_t v) {
    gguf_key(b, key, CLT_META_U32);
    put_u32(b, v);
}
static UNUSED void gguf_u16(clt_buf *b, const char *key, uint16_t v) {
    gguf_key(b, key, CLT_META_U16);
    put_le(b, v, 2);
}
static UNUSED void gguf_string(clt_buf *b, const char *key, const char *v) {
    gguf_key(b, key, CLT_META_STRING);
    put_str(b, v);
}
static UNUSED void gguf_array(clt_buf *b, const char *key, uint32_t item, uint64_t count) {
    gguf_key(b, key, CLT_META_ARRAY);
    put_u32(b, item);
    put_u64(b, count);
}
static UNUSED void gguf_tensor(clt_buf *b, const char *name, int n_dims, const uint64_t *dims, uint32_t type,
                                uint64_t offset) {
    put_str(b, name);
    put_u32(b, (uint32_t)n_dims);
    for (int i = 0; i < n_dims; i++) put_u64(b, dims[i]);
    put_u32(b, type);
    put_u64(b, offset);
}
static UNUSED void gguf_align(clt_buf *b, size_t align) {
    while (b->len % align) clt_buf_putc(b, 0);
}

/* ---- safetensors ---- */

/* A file of a header text and so many bytes of data, which count up. */
static UNUSED void safetensors(clt_buf *b, const char *header, size_t data_bytes) {
    put_str(b, header);
    for (size_t i = 0; i < data_bytes; i++) clt_buf_putc(b, (char)i);
}

static UNUSED const char *write_buf(const char *name, clt_buf *b) {
    assert_false(b->failed);
    const char *path = write_bytes(name, b->data, b->len);
    clt_buf_free(b);
    return path;
}

/* ---- expectations ---- */

static UNUSED clt_file *open_ok(const char *path) {
    clt_err err;
    clt_file *f = NULL;
    if (clt_file_open(path, &f, &err)) fail_msg("%s (hint: %s)", err.text, err.hint);
    return f;
}

static UNUSED void assert_one_line(const char *text) {
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F) fail_msg("control byte %d in: %s", *p, text);
}

/* The path is refused with this code; the text or the hint holds each of the words (NULL-terminated). */
#define REFUSED(path, code, ...) refused(__FILE__, __LINE__, path, code, (const char *const[]){__VA_ARGS__, NULL})
static UNUSED void refused(const char *file, int line, const char *path, clt_status code, const char *const *words) {
    clt_err err;
    clt_file *f = NULL;
    long live = clt_mem_live();
    clt_status st = clt_file_open(path, &f, &err);
    if (st == CLT_OK) fail_msg("%s:%d: %s was opened", file, line, path);
    assert_null(f);
    if (st != code)
        fail_msg("%s:%d: expected %s, got %s: %s", file, line, clt_status_name(code), clt_status_name(st), err.text);
    assert_int_equal(clt_mem_live(), live);
    assert_int_equal(err.code, code);
    assert_one_line(err.text);
    assert_one_line(err.hint);
    for (; *words; words++)
        if (!strstr(err.text, *words) && !strstr(err.hint, *words))
            fail_msg("%s:%d: '%s' is not in: %s | %s", file, line, *words, err.text, err.hint);
}

/* Reads the first and last byte of every tensor and every row's address, and every metadata value. */
static UNUSED uint64_t touch_all(const clt_file *f) {
    uint64_t sum = 0, pos, len;
    int64_t whole;
    double num;
    bool flag;
    const char *s;
    for (size_t i = 0; i < clt_file_tensors(f); i++) {
        const clt_tensor *t = clt_file_tensor(f, i);
        assert_ptr_equal(clt_file_find(f, t->name), t);
        assert_non_null(clt_type_get((uint32_t)t->type));
        assert_true(t->bytes > 0);
        sum += (uint64_t)t->data[0] + t->data[t->bytes - 1] + *clt_tensor_row(t, clt_tensor_rows(t) - 1);
    }
    for (size_t i = 0; i < clt_file_metas(f); i++) {
        const clt_meta *m = clt_file_meta(f, i);
        assert_ptr_equal(clt_file_meta_find(f, m->key), m);
        for (uint64_t k = 0; k < m->count && k < 1000; k++) {
            sum += clt_meta_int(m, k, &whole) ? (uint64_t)whole : 0;
            sum += clt_meta_num(m, k, &num);
            sum += clt_meta_bool(m, k, &flag);
        }
        if (clt_meta_str(m, &s, &len) && len) sum += (unsigned char)s[len - 1];
        for (pos = 0; clt_meta_next_str(m, &pos, &s, &len);)
            if (len) sum += (unsigned char)s[len - 1];
    }
    return sum;
}

#endif
