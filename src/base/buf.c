/* Growing buffers of bytes and of ids. A failed allocation sticks, so that writers check once at their end. */
#include "base/buf.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"

/* Makes room for n more bytes and the NUL. */
static bool reserve(clt_buf *b, size_t n) {
    if (b->failed) return false;
    if (n >= SIZE_MAX / 2 - b->len) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->cap) return true;
    size_t cap = b->cap < 32 ? 64 : b->cap + b->cap / 2;
    if (cap < need) cap = need;
    char *data = clt_realloc(b->data, cap);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->cap = cap;
    return true;
}

void clt_buf_put(clt_buf *b, const void *bytes, size_t n) {
    if (!reserve(b, n)) return;
    if (n) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
}

void clt_buf_puts(clt_buf *b, const char *s) {
    clt_buf_put(b, s, strlen(s));
}

void clt_buf_putc(clt_buf *b, char c) {
    clt_buf_put(b, &c, 1);
}

void clt_buf_printf(clt_buf *b, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    size_t room = b->cap > b->len && !b->failed ? b->cap - b->len : 0;
    int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
    } else if (reserve(b, (size_t)n)) {
        if ((size_t)n >= room) vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    } else if (b->data) {
        b->data[b->len] = 0; /* undo the part that vsnprintf wrote */
    }
    va_end(again);
}

void clt_buf_reset(clt_buf *b) {
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = 0;
}

void clt_buf_free(clt_buf *b) {
    clt_free(b->data);
    *b = (clt_buf){0};
}

static bool reserve_ids(clt_ids *a, size_t n) {
    if (a->failed) return false;
    if (n <= a->cap - a->len) return true;
    size_t cap = a->cap < 16 ? 32 : a->cap + a->cap / 2;
    if (cap - a->len < n) cap = n > SIZE_MAX / sizeof *a->data - a->len ? 0 : a->len + n;
    int32_t *data = cap && cap <= SIZE_MAX / sizeof *data ? clt_realloc(a->data, cap * sizeof *data) : NULL;
    if (!data) {
        a->failed = true;
        return false;
    }
    a->data = data;
    a->cap = cap;
    return true;
}

void clt_ids_push(clt_ids *a, int32_t id) {
    clt_ids_append(a, &id, 1);
}

void clt_ids_append(clt_ids *a, const int32_t *ids, size_t n) {
    if (!reserve_ids(a, n)) return;
    if (n) memcpy(a->data + a->len, ids, n * sizeof *ids);
    a->len += n;
}

void clt_ids_free(clt_ids *a) {
    clt_free(a->data);
    *a = (clt_ids){0};
}
