/* Makes the head of a GGUF file: keys, values and tensors come in, bytes go out. gguf*.c describe the layout and read it. */
#include "file/gguf_write.h"
#include <string.h>

enum { GGUF_VERSION = 3, DEFAULT_ALIGNMENT = 32 };

static void put_le(clt_buf *b, uint64_t v, unsigned bytes) {
    uint8_t p[8];
    for (unsigned i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> (8 * i));
    clt_buf_put(b, p, bytes);
}

static void put_text(clt_buf *b, const char *s, size_t len) {
    put_le(b, len, 8);
    clt_buf_put(b, s, len);
}

static void put_key(clt_gguf_head *h, const char *key, clt_meta_type type) {
    put_text(&h->metas, key, strlen(key));
    put_le(&h->metas, type, 4);
    h->n_metas++;
}

void clt_gguf_put_u32(clt_gguf_head *h, const char *key, uint32_t v) {
    put_key(h, key, CLT_META_U32);
    put_le(&h->metas, v, 4);
}

void clt_gguf_put_i32(clt_gguf_head *h, const char *key, int32_t v) {
    put_key(h, key, CLT_META_I32);
    put_le(&h->metas, (uint32_t)v, 4);
}

void clt_gguf_put_f32(clt_gguf_head *h, const char *key, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_key(h, key, CLT_META_F32);
    put_le(&h->metas, bits, 4);
}

void clt_gguf_put_bool(clt_gguf_head *h, const char *key, bool v) {
    put_key(h, key, CLT_META_BOOL);
    put_le(&h->metas, v, 1);
}

void clt_gguf_put_str(clt_gguf_head *h, const char *key, const char *s, size_t len) {
    put_key(h, key, CLT_META_STRING);
    put_text(&h->metas, s, len);
}

void clt_gguf_put_array(clt_gguf_head *h, const char *key, clt_meta_type item, uint64_t count, const void *bytes, size_t n) {
    put_key(h, key, CLT_META_ARRAY);
    put_le(&h->metas, item, 4);
    put_le(&h->metas, count, 8);
    if (n) clt_buf_put(&h->metas, bytes, n);
}

void clt_gguf_begin_strings(clt_gguf_head *h, const char *key, uint64_t count) {
    clt_gguf_put_array(h, key, CLT_META_STRING, count, NULL, 0);
}

void clt_gguf_put_item(clt_gguf_head *h, const char *s, size_t len) { put_text(&h->metas, s, len); }

void clt_gguf_put_meta(clt_gguf_head *h, const clt_meta *m) {
    if (m->is_array) {
        clt_gguf_put_array(h, m->key, m->type, m->count, m->data, (size_t)m->bytes);
    } else {
        put_key(h, m->key, m->type);
        clt_buf_put(&h->metas, m->data, (size_t)m->bytes);
    }
}

void clt_gguf_append(clt_gguf_head *h, const clt_gguf_head *from) {
    if (from->metas.len) clt_buf_put(&h->metas, from->metas.data, from->metas.len);
    h->metas.failed |= from->metas.failed;
    h->n_metas += from->n_metas;
}

static uint64_t align_up(const clt_gguf_head *h, uint64_t at) {
    uint64_t a = h->alignment ? h->alignment : DEFAULT_ALIGNMENT;
    return (at + a - 1) / a * a;
}

uint64_t clt_gguf_put_tensor(clt_gguf_head *h, const char *name, clt_type type, int n_dims, const int64_t *dims) {
    const clt_type_info *info = clt_type_get((uint32_t)type);
    uint64_t offset = h->data_bytes;
    int64_t rows = 1;
    put_text(&h->tensors, name, strlen(name));
    put_le(&h->tensors, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims; i++) {
        put_le(&h->tensors, (uint64_t)dims[i], 8);
        if (i) rows *= dims[i];
    }
    put_le(&h->tensors, type, 4);
    put_le(&h->tensors, offset, 8);
    h->n_tensors++;
    h->data_bytes = align_up(h, offset + (uint64_t)rows * clt_type_row_bytes(info, dims[0]));
    return offset;
}

clt_status clt_gguf_head_end(const clt_gguf_head *h, clt_buf *out, clt_err *err) {
    size_t begin = out->len;
    clt_buf_put(out, "GGUF", 4);
    put_le(out, GGUF_VERSION, 4);
    put_le(out, h->n_tensors, 8);
    put_le(out, h->n_metas, 8);
    if (h->metas.len) clt_buf_put(out, h->metas.data, h->metas.len);
    if (h->tensors.len) clt_buf_put(out, h->tensors.data, h->tensors.len);
    while ((out->len - begin) != align_up(h, out->len - begin) && !out->failed) clt_buf_putc(out, 0);
    if (out->failed || h->metas.failed || h->tensors.failed)
        return clt_fail_memory(err, "the head of a GGUF file", h->metas.len + h->tensors.len);
    return CLT_OK;
}

void clt_gguf_head_free(clt_gguf_head *h) {
    clt_buf_free(&h->metas);
    clt_buf_free(&h->tensors);
    *h = (clt_gguf_head){0};
}
