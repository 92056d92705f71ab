/* Attention of the picture tower: every patch sees every patch of its picture.
 *
 * Keys and values lie in chunks, as for text. A task holds the scores of one tile of queries over all patches, never those
 * of all pairs; every sum is one chain, so the bits depend neither on threads nor on slabs. */
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

/* One head and a tile of queries over all patches. */
static void attend_tile(void *ctx, int task, int thread) {
    const attend *c = ctx;
    const clt_vision_work *w = c->w;
    const clt_kernels *k = w->v->k;
    int64_t dh = w->v->config->head_dim, width = w->v->config->width, lds = (int64_t)w->chunks * CLT_ATTN_CHUNK;
    int h = task % w->v->config->heads, r0 = task / w->v->config->heads * CLT_VISION_TILE;
    int n = c->n - r0 < CLT_VISION_TILE ? c->n - r0 : CLT_VISION_TILE;
    float *s = w->scores + thread * CLT_VISION_TILE * lds;
    k->attn_scores(dh, chunk_at(w, h, 0), w->n, w->q + r0 * width + h * dh, width, n, s, lds);
    for (int i = 0; i < n; i++) k->softmax(s + i * lds, w->n);
    k->attn_blend(dh, chunk_at(w, h, 0), w->n, s, lds, n, w->att + r0 * width + h * dh, width);
}

void clt_vision_attend(clt_vision_work *w, const clt_vision_net_layer *l, int first, int n) {
    attend c = {w, l, first, n};
    int tiles = (n + CLT_VISION_TILE - 1) / CLT_VISION_TILE;
    clt_vision_rows(w, query_row, &c, n);
    clt_run_job(&w->s, CLT_STAGE_ATTENTION, attend_tile, &c, tiles * w->v->config->heads);
}
