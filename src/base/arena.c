/* Arenas: zeroed memory handed out piece by piece and freed whole. Chunks come from the system's pages, so that an
 * engine's or a session's memory sits in huge pages where there are any. Pieces are never given back singly. */
#include "base/mem.h"
#include <string.h>

typedef struct chunk {
    struct chunk *older;
    size_t bytes, used; /* of the whole mapping, this header included */
} chunk;

struct clt_arena {
    chunk *newest;
    size_t chunk_bytes, total_bytes;
};

clt_arena *clt_arena_create(size_t chunk_bytes) {
    clt_arena *a = clt_calloc(1, sizeof *a);
    if (a) a->chunk_bytes = chunk_bytes < 4096 ? 4096 : chunk_bytes;
    return a;
}

/* Offset of the next piece in `c`, or SIZE_MAX if it does not fit. */
static size_t place(const chunk *c, size_t bytes, size_t align) {
    if (!c || c->used > SIZE_MAX - align) return SIZE_MAX;
    size_t at = (c->used + align - 1) & ~(align - 1);
    return at <= c->bytes && bytes <= c->bytes - at ? at : SIZE_MAX;
}

static chunk *add_chunk(clt_arena *a, size_t bytes, size_t align) {
    size_t header = sizeof(chunk) > align ? sizeof(chunk) : align;
    if (bytes > SIZE_MAX - header) return NULL;
    size_t need = bytes + header < a->chunk_bytes ? a->chunk_bytes : bytes + header;
    chunk *c = clt_pages_alloc(need);
    if (!c) return NULL;
    c->bytes = need;
    c->used = sizeof *c;
    c->older = a->newest;
    a->newest = c;
    a->total_bytes += need;
    return c;
}

void *clt_arena_alloc(clt_arena *a, size_t bytes, size_t align) {
    if (align == 0 || (align & (align - 1)) || align > 4096) return NULL;
    chunk *c = a->newest;
    size_t at = place(c, bytes, align);
    if (at == SIZE_MAX) {
        c = add_chunk(a, bytes, align);
        at = place(c, bytes, align);
        if (at == SIZE_MAX) return NULL;
    }
    c->used = at + bytes;
    return (char *)c + at; /* pages arrive zeroed */
}

char *clt_arena_strndup(clt_arena *a, const char *s, size_t n) {
    if (n == SIZE_MAX) return NULL;
    char *copy = clt_arena_alloc(a, n + 1, 1);
    if (copy && n) memcpy(copy, s, n);
    return copy;
}

size_t clt_arena_bytes(const clt_arena *a) {
    return a->total_bytes;
}

void clt_arena_free(clt_arena *a) {
    if (!a) return;
    for (chunk *c = a->newest, *older; c; c = older) {
        older = c->older;
        clt_pages_free(c, c->bytes);
    }
    clt_free(a);
}
