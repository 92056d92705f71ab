/* A checked position in a mapped GGUF file: every read states what it is for, so that a file that ends too early is
 * reported with its place. Nothing is read twice. */
#include <stdarg.h>
#include <inttypes.h>
#include <stdio.h>
#include "file/impl.h"

static void fail(clt_reader *r, const char *kind, const char *fmt, va_list args) {
    char text[2 * CLT_SHOWN_BYTES], shown[CLT_SHOWN_BYTES];
    vsnprintf(text, sizeof text, fmt, args);
    if (r->name)
        clt_fail(r->err, CLT_E_FILE, "%s: %s: %s %" PRIu64 " ('%s'): %s", r->path, kind, r->part, r->index,
                 clt_shown(shown, r->name, strlen(r->name)), text);
    else
        clt_fail(r->err, CLT_E_FILE, "%s: %s: %s %" PRIu64 ": %s", r->path, kind, r->part, r->index, text);
}

bool clt_reader_fail(clt_reader *r, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail(r, "damaged", fmt, args);
    va_end(args);
    return false;
}

bool clt_reader_short(clt_reader *r, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fail(r, "truncated or damaged", fmt, args);
    va_end(args);
    clt_hint(r->err, "the download may be incomplete: fetch the file again");
    return false;
}

const uint8_t *clt_reader_take(clt_reader *r, uint64_t bytes, const char *what) {
    if (bytes > clt_reader_left(r)) {
        clt_reader_short(r, "%s takes %" PRIu64 " bytes at offset %" PRIu64 ", past the end of the file at %" PRIu64, what,
                         bytes, r->pos, r->size);
        return NULL;
    }
    const uint8_t *p = r->data + r->pos;
    r->pos += bytes;
    return p;
}

bool clt_reader_u32(clt_reader *r, const char *what, uint32_t *v) {
    const uint8_t *p = clt_reader_take(r, 4, what);
    if (p) *v = (uint32_t)clt_le(p, 4);
    return p != NULL;
}

bool clt_reader_u64(clt_reader *r, const char *what, uint64_t *v) {
    const uint8_t *p = clt_reader_take(r, 8, what);
    if (p) *v = clt_le64(p);
    return p != NULL;
}

bool clt_reader_name(clt_reader *r, const char *what, uint64_t max, clt_arena *a, const char **name) {
    uint64_t len = 0;
    if (!clt_reader_u64(r, what, &len)) return false;
    const uint8_t *p = clt_reader_take(r, len, what);
    if (!p) return false;
    char shown[CLT_SHOWN_BYTES];
    if (len == 0) return clt_reader_fail(r, "%s is empty", what);
    if (len > max)
        return clt_reader_fail(r, "%s has %" PRIu64 " bytes, more than %" PRIu64 ": '%s'", what, len,
                               max, clt_shown(shown, p, len));
    if (memchr(p, 0, (size_t)len)) return clt_reader_fail(r, "%s holds a NUL byte: '%s'", what, clt_shown(shown, p, len));
    char *copy = clt_arena_strndup(a, (const char *)p, (size_t)len);
    if (!copy) {
        clt_fail_memory(r->err, "names", len + 1);
        return false;
    }
    *name = copy;
    return true;
}
