/* A growing byte buffer. Zero-initialise, append, release. Always NUL-terminated after an append (the NUL is not counted).
 * A failed allocation sets `failed` and later appends do nothing, so a writer checks once at its end. */
#ifndef CLT_BASE_BUF_H
#define CLT_BASE_BUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct clt_buf {
    char *data;
    size_t len, cap;
    bool failed;
} clt_buf;

void clt_buf_put(clt_buf *b, const void *bytes, size_t n);
void clt_buf_puts(clt_buf *b, const char *s);
void clt_buf_putc(clt_buf *b, char c);
void clt_buf_printf(clt_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void clt_buf_reset(clt_buf *b); /* length 0, memory kept */
void clt_buf_free(clt_buf *b);

/* A growing array of 32-bit ids (tokens), same rules. */
typedef struct clt_ids {
    int32_t *data;
    size_t len, cap;
    bool failed;
} clt_ids;
void clt_ids_push(clt_ids *a, int32_t id);
void clt_ids_append(clt_ids *a, const int32_t *ids, size_t n);
void clt_ids_free(clt_ids *a);

#endif
