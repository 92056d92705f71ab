/* Attention of the picture tower: every patch sees every patch of its picture.
 *
 * The same kernel as for text: keys in chunks, each chunk gives a partial result, partial results are merged in ascending
 * order. So no matrix of all pairs is ever held, and the bits depend neither on threads nor on slabs. */
#include <math.h>
#include <string.h>
#include "forward/vision_impl.h"

static const clt_kv_types types = {CLT_F32, CLT_F32};

typedef struct attend {
    clt_vision_work *w;
    const clt_vision_net_layer *l;
    int first, n; /* patches of the slab */
} attend;

static uint8_t *chunk_at(const clt_vision_work *w, int head, int chunk) {
    return w->keys + ((size_t)head * (size_t)w->chunks + (size_t)chunk) * 2 * w->chunk_bytes;
}

/* Norm and turn of every head of row r of the slab: its first half by the column, its second half by the line. */
static void turn(const attend *c, float *x, const float *norm, int r) {
    const clt_vision_work *w = c->w;
    const clt_vision_config *g = w->v->config;
    int64_t dh = g->head_dim, half = dh / 2;
    int patch = c->first + r;
    const float *column = w->turns[0] + patch % w->columns * half, *line = w->turns[1] + patch / w->columns * half;
    for (int h = 0; h < g->heads; h++, x += dh) {
        w->v->k->rms_norm(x, norm, g->rms_eps, x, dh);
        w->v->k->rope(x, column, half, half / 2);
        w->v->k->rope(x + half, line, half, half / 2);
    }
}

static void query_row(void *ctx, int r, int thread) {
    (void)thread;
    const attend *c = ctx;
    turn(c, c->w->q + (int64_t)r * c->w->v->config->width, c->l->q_norm, r);
}

static void key_row(void *ctx, int r, int thread) {
    (void)thread;
    const attend *c = ctx;
    const clt_vision_config *g = c->w->v->config;
    float *v = c->w->att + (int64_t)r * g->width;
    turn(c, c->w->k + (int64_t)r * g->width, c->l->k_norm, r);
    for (int h = 0; h < g->heads; h++)
        c->w->v->k->rms_norm(v + h * g->head_dim, NULL, g->rms_eps, v + h * g->head_dim, g->head_dim);
}

/* One head of all rows: writers of a chunk stay apart. */
static void store_head(void *ctx, int h, int thread) {
    (void)thread;
    const attend *c = ctx;
    const clt_vision_work *w = c->w;
    int64_t dh = w->v->config->head_dim, width = w->v->config->width;
    for (int r = 0; r < c->n; r++) {
        int patch = c->first + r;
        uint8_t *chunk = chunk_at(w, h, patch / CLT_ATTN_CHUNK);
        w->v->k->kv_store(types, dh, chunk, chunk + w->chunk_bytes, patch % CLT_ATTN_CHUNK, w->k + r * width + h * dh,
                          w->att + r * width + h * dh);
    }
}

void clt_vision_store(clt_vision_work *w, const clt_vision_net_layer *l, int first, int n) {
    attend c = {w, l, first, n};
    clt_vision_rows(w, key_row, &c, n);
    clt_run_job(&w->s, CLT_STAGE_STORE, store_head, &c, w->v->config->heads);
}

/* One head and a tile of queries over all chunks. */
static void attend_tile(void *ctx, int task, int thread) {
    const attend *c = ctx;
    const clt_vision_work *w = c->w;
    const clt_kernels *k = w->v->k;
    int64_t dh = w->v->config->head_dim, width = w->v->config->width;
    int h = task % w->v->config->heads, r0 = task / w->v->config->heads * CLT_VISION_TILE;
    int n = c->n - r0 < CLT_VISION_TILE ? c->n - r0 : CLT_VISION_TILE;
    float *o = w->tile + (int64_t)thread * 2 * CLT_VISION_TILE * dh, *part = o + CLT_VISION_TILE * dh;
    float m[CLT_VISION_TILE], l[CLT_VISION_TILE], m2[CLT_VISION_TILE], l2[CLT_VISION_TILE];
    int lo[CLT_VISION_TILE], hi[CLT_VISION_TILE];
    for (int i = 0; i < n; i++) m[i] = -INFINITY, l[i] = 0, lo[i] = 0;
    for (int chunk = 0; chunk < w->chunks; chunk++) {
        int left = w->n - chunk * CLT_ATTN_CHUNK, seen = left < CLT_ATTN_CHUNK ? left : CLT_ATTN_CHUNK;
        const uint8_t *keys = chunk_at(w, h, chunk);
        clt_kv_chunk data = {keys, keys + w->chunk_bytes};
        for (int i = 0; i < n; i++) hi[i] = seen;
        k->attn_chunk(types, dh, &data, w->q + r0 * width + h * dh, width, n, lo, hi, 1, m2, l2, part, dh);
        for (int i = 0; i < n; i++) k->attn_merge(dh, &m[i], &l[i], o + i * dh, m2[i], l2[i], part + i * dh);
    }
    for (int i = 0; i < n; i++) {
        k->attn_finish(dh, l[i], o + i * dh);
        memcpy(w->att + (r0 + i) * width + h * dh, o + i * dh, (size_t)dh * sizeof *o);
    }
}

void clt_vision_attend(clt_vision_work *w, const clt_vision_net_layer *l, int first, int n) {
    attend c = {w, l, first, n};
    int tiles = (n + CLT_VISION_TILE - 1) / CLT_VISION_TILE;
    clt_vision_rows(w, query_row, &c, n);
    clt_run_job(&w->s, CLT_STAGE_ATTENTION, attend_tile, &c, tiles * w->v->config->heads);
}
