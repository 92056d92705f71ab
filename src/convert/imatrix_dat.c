/* The older form of importance files; imatrix.h describes it. */
#include "convert/imatrix_dat.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MAX_ENTRIES = 1 << 20, MAX_NAME = 512 };

typedef struct cursor {
    const char *path;
    const uint8_t *data;
    uint64_t at, size;
    clt_err *err;
} cursor;

static clt_status fail_at(const cursor *c, const char *what) {
    clt_fail(c->err, CLT_E_FILE, "%s: not an imatrix, or damaged: %s at offset %" PRIu64, c->path, what, c->at);
    return clt_hint(c->err, "culet imatrix makes one");
}

static bool take_i32(cursor *c, int32_t *out) {
    if (c->size - c->at < 4) return false;
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) v |= (uint32_t)c->data[c->at + (uint64_t)i] << (8 * i);
    *out = (int32_t)v;
    c->at += 4;
    return true;
}

static clt_status read_entry(cursor *c, clt_imatrix *out) {
    int32_t len = 0, calls = 0, n = 0;
    if (!take_i32(c, &len) || len < 1 || len > MAX_NAME || (uint64_t)len > c->size - c->at)
        return fail_at(c, "a name's length");
    const char *name = (const char *)c->data + c->at;
    if (memchr(name, 0, (size_t)len)) return fail_at(c, "a name");
    c->at += (uint64_t)len;
    if (!take_i32(c, &calls) || calls < 0) return fail_at(c, "the calls");
    if (!take_i32(c, &n) || n < 1 || (uint64_t)n > (c->size - c->at) / 4) return fail_at(c, "the count of numbers");
    clt_imatrix_entry *e = clt_imatrix_add(out, name, (size_t)len, n, 1, c->err);
    if (!e) return c->err->code;
    e->counts[0] = (float)calls;
    memcpy(e->values, c->data + c->at, (size_t)n * sizeof *e->values);
    c->at += (uint64_t)n * 4;
    for (int32_t i = 0; i < n; i++) {
        e->values[i] = calls > 0 ? e->values[i] / (float)calls : 1.0f;
        if (!(isfinite(e->values[i]) && e->values[i] >= 0))
            return fail_at(c, "a number that is no mean square stands before the one");
    }
    return CLT_OK;
}

clt_status clt_imatrix_read_dat(const char *path, const uint8_t *data, uint64_t size, clt_imatrix *out, clt_err *err) {
    cursor c = {path, data, 0, size, err};
    int32_t n = 0, chunks = 0, len = 0;
    if (!take_i32(&c, &n) || n < 1 || n > MAX_ENTRIES) return fail_at(&c, "the count of entries");
    for (int32_t i = 0; i < n; i++) {
        clt_status status = read_entry(&c, out);
        if (status != CLT_OK) return status;
    }
    if (!take_i32(&c, &chunks)) return CLT_OK; /* files of the first years end here */
    out->chunks = chunks > 0 ? (uint32_t)chunks : 0;
    if (!take_i32(&c, &len) || len < 0 || (uint64_t)len > c.size - c.at) return CLT_OK;
    char *text = clt_arena_strndup(out->arena, (const char *)data + c.at, (size_t)len);
    if (!text) return clt_fail_memory(err, "importances", (unsigned long long)len);
    out->text = text;
    return CLT_OK;
}

static void put_i32(clt_buf *b, int64_t v) {
    for (int i = 0; i < 4; i++) clt_buf_putc(b, (char)((uint64_t)v >> (8 * i) & 0xff));
}

void clt_imatrix_make_dat(const clt_imatrix *m, clt_buf *out) {
    put_i32(out, (int64_t)m->n);
    for (size_t i = 0; i < m->n; i++) {
        const clt_imatrix_entry *e = &m->entries[i];
        int64_t n = e->cols * e->matrices;
        put_i32(out, (int64_t)strlen(e->name));
        clt_buf_puts(out, e->name);
        put_i32(out, 1);
        put_i32(out, n);
        clt_buf_put(out, e->values, (size_t)n * sizeof *e->values);
    }
    put_i32(out, m->chunks);
    put_i32(out, (int64_t)strlen(m->text));
    clt_buf_puts(out, m->text);
}
