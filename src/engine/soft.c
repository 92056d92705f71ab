/* Soft tokens: made once, counted, and kept for a while, so that asking again about the same picture encodes nothing. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include "base/mem.h"
#include "engine/media.h"

clt_soft *clt_soft_new(culet_media_kind kind, size_t tokens, int64_t width) {
    size_t rows = (size_t)width * sizeof(float);
    if (tokens > (SIZE_MAX / 2 - sizeof(clt_soft)) / rows) return NULL;
    clt_soft *s = clt_calloc(1, sizeof *s + tokens * rows);
    if (!s) return NULL;
    atomic_init(&s->holders, 1);
    s->kind = kind, s->tokens = tokens, s->width = width;
    s->info = (culet_media_info){.kind = kind, .tokens = tokens, .frames = 1};
    return s;
}

clt_soft *clt_soft_keep(clt_soft *s) {
    atomic_fetch_add(&s->holders, 1);
    return s;
}

void clt_soft_free(clt_soft *s) {
    if (s && atomic_fetch_sub(&s->holders, 1) == 1) clt_free(s);
}

size_t clt_soft_bytes(const clt_soft *s) {
    return sizeof *s + s->tokens * (size_t)s->width * sizeof *s->rows;
}

/* ---- the cache ---- */

enum { ENTRIES = 64 };

struct clt_soft_cache {
    pthread_mutex_t lock;
    clt_soft *entry[ENTRIES]; /* most recently used first */
    size_t n, bytes, max_bytes;
};

clt_soft_cache *clt_soft_cache_create(size_t max_bytes) {
    clt_soft_cache *c = clt_calloc(1, sizeof *c);
    if (c && pthread_mutex_init(&c->lock, NULL) != 0) {
        clt_free(c);
        return NULL;
    }
    if (c) c->max_bytes = max_bytes;
    return c;
}

static void drop_last(clt_soft_cache *c) {
    clt_soft *last = c->entry[--c->n];
    c->bytes -= clt_soft_bytes(last);
    clt_soft_free(last);
}

void clt_soft_cache_free(clt_soft_cache *c) {
    if (!c) return;
    while (c->n) drop_last(c);
    pthread_mutex_destroy(&c->lock);
    clt_free(c);
}

/* Makes entry i the first. */
static void raise(clt_soft_cache *c, size_t i) {
    clt_soft *s = c->entry[i];
    memmove(c->entry + 1, c->entry, i * sizeof *c->entry);
    c->entry[0] = s;
}

static size_t index_of(const clt_soft_cache *c, const char *key) {
    size_t i = 0;
    while (i < c->n && strcmp(c->entry[i]->key, key) != 0) i++;
    return i;
}

clt_soft *clt_soft_cache_find(clt_soft_cache *c, const char *key) {
    clt_soft *found = NULL;
    if (!*key) return NULL;
    pthread_mutex_lock(&c->lock);
    size_t i = index_of(c, key);
    if (i < c->n) {
        raise(c, i);
        found = clt_soft_keep(c->entry[0]);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

void clt_soft_cache_put(clt_soft_cache *c, clt_soft *s) {
    size_t bytes = clt_soft_bytes(s);
    if (!*s->key || bytes > c->max_bytes) return;
    pthread_mutex_lock(&c->lock);
    if (index_of(c, s->key) == c->n) { /* else another thread has just made the same */
        while (c->n && (c->n == ENTRIES || c->bytes > c->max_bytes - bytes)) drop_last(c);
        c->entry[c->n++] = clt_soft_keep(s);
        c->bytes += bytes;
        raise(c, c->n - 1);
    }
    pthread_mutex_unlock(&c->lock);
}
