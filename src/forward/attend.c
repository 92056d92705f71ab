/* softmax(q k) v over the chunks that a row sees: s->q [T][H*Dh] -> s->att [T][H*Dh].
 *
 * Each chunk gives a partial result that depends on its own keys only; partial results are merged in ascending order of
 * position. So the bits are the same whether one thread walks the chunks of a tile of rows (prefill), or many threads take
 * chunks of a few rows and the results are merged afterwards (decode). */
#include <math.h>
#include <string.h>

#include "forward/internal.h"

enum { CHUNK = CLT_ATTN_CHUNK };

typedef struct layer_ctx {
    clt_scratch *s;
    const clt_net *n;
    const clt_layer_config *lc;
    int donor, window;      /* whose keys; 0 = all positions are visible */
    int per_kv, tile_rows;  /* query heads per KV head; rows of a tile */
    int64_t q_dim;
    const clt_group *g;
    int first_chunk, n_chunks, wave_first; /* of the group, decode only */
} layer_ctx;

static int first_visible(const layer_ctx *c, int pos) {
    return c->window && pos - c->window + 1 > 0 ? pos - c->window + 1 : 0;
}

/* The first position that row r does not see: rows of a block see each other, but on sliding layers alone. */
static int seen_end(const layer_ctx *c, int r) {
    return c->window ? c->s->block_end[r] : c->s->pos[r] + 1;
}

/* Slots of a chunk that each query of rows [r0, r0 + rows) sees; queries of a row are neighbours. */
static bool visible(const layer_ctx *c, int chunk, int r0, int rows, int *lo, int *hi) {
    bool any = false;
    for (int i = 0; i < rows; i++) {
        int pos = c->s->pos[r0 + i], a = first_visible(c, pos) - chunk * CHUNK, b = seen_end(c, r0 + i) - chunk * CHUNK;
        a = a < 0 ? 0 : a > CHUNK ? CHUNK : a;
        b = b < a ? a : b > CHUNK ? CHUNK : b;
        for (int j = 0; j < c->per_kv; j++) lo[i * c->per_kv + j] = a, hi[i * c->per_kv + j] = b;
        any |= b > a;
    }
    return any;
}

/* Query heads of KV head h of some rows, as the kernel wants them: [rows * per_kv][Dh]. */
static void gather(const layer_ctx *c, int h, int r0, int rows, float *dst) {
    int64_t n = (int64_t)c->per_kv * c->lc->head_dim;
    for (int i = 0; i < rows; i++) memcpy(dst + i * n, c->s->q + (r0 + i) * c->q_dim + h * n, (size_t)n * sizeof *dst);
}

static void partial(const layer_ctx *c, int chunk, int h, const float *q, int n_q, const int *lo, const int *hi, float *m,
                    float *l, float *o) {
    const clt_kv *kv = c->g->kv;
    clt_kv_chunk data = clt_kv_chunk_at(kv, c->donor, chunk, h);
    c->n->k->attn_chunk(kv->types, c->lc->head_dim, &data, q, c->lc->head_dim, n_q, lo, hi, c->n->config->attn_scale, m,
                        l, o, c->lc->head_dim);
}

/* ---- prefill: one task walks the chunks of one tile and one KV head ---- */

static void tile_task(void *ctx, int task, int thread) {
    const layer_ctx *c = ctx;
    clt_scratch *s = c->s;
    int64_t dh = c->lc->head_dim, side = (int64_t)s->tile_queries * c->n->max_head_dim;
    int h = task % c->lc->kv_heads, r0 = c->g->first + task / c->lc->kv_heads * c->tile_rows, end = c->g->first + c->g->count;
    int rows = end - r0 < c->tile_rows ? end - r0 : c->tile_rows, n_q = rows * c->per_kv;
    float *q = s->tile + thread * 3 * side, *o = q + side, *o2 = o + side;
    int n_max = s->tile_queries, *lo = s->seen + (int64_t)thread * 2 * n_max, *hi = lo + n_max;
    float *m = s->softmax + (int64_t)thread * 4 * n_max, *l = m + n_max, *m2 = l + n_max, *l2 = m2 + n_max;
    gather(c, h, r0, rows, q);
    for (int i = 0; i < n_q; i++) m[i] = -INFINITY, l[i] = 0;
    for (int chunk = first_visible(c, s->pos[r0]) / CHUNK; chunk <= (seen_end(c, r0 + rows - 1) - 1) / CHUNK; chunk++) {
        if (!visible(c, chunk, r0, rows, lo, hi)) continue;
        partial(c, chunk, h, q, n_q, lo, hi, m2, l2, o2);
        for (int i = 0; i < n_q; i++) c->n->k->attn_merge(dh, &m[i], &l[i], o + i * dh, m2[i], l2[i], o2 + i * dh);
    }
    for (int i = 0; i < n_q; i++) {
        c->n->k->attn_finish(dh, l[i], o + i * dh);
        float *dst = s->att + (r0 + i / c->per_kv) * c->q_dim + ((int64_t)h * c->per_kv + i % c->per_kv) * dh;
        memcpy(dst, o + i * dh, (size_t)dh * sizeof *dst);
    }
}

/* ---- decode: tasks are chunks; a wave of them, then an ordered merge; CLT_TILE_QUERIES queries of all heads at most ---- */

/* Partial results of a wave: for chunk w and query j of all heads, Dh numbers, then m and l. */
static float *part_of(const layer_ctx *c, int w, int j) {
    int64_t n_q = (int64_t)c->g->count * c->lc->heads;
    return c->s->partial + (w * n_q + j) * (c->lc->head_dim + 2);
}

static void wave_task(void *ctx, int task, int thread) {
    const layer_ctx *c = ctx;
    clt_scratch *s = c->s;
    int64_t dh = c->lc->head_dim, side = (int64_t)s->tile_queries * c->n->max_head_dim;
    int h = task % c->lc->kv_heads, w = task / c->lc->kv_heads, rows = c->g->count, n_q = rows * c->per_kv;
    float *q = s->tile + thread * 3 * side, *o = q + side;
    int lo[CLT_TILE_QUERIES], hi[CLT_TILE_QUERIES];
    float m[CLT_TILE_QUERIES], l[CLT_TILE_QUERIES];
    gather(c, h, c->g->first, rows, q);
    visible(c, c->wave_first + w, c->g->first, rows, lo, hi);
    partial(c, c->wave_first + w, h, q, n_q, lo, hi, m, l, o);
    for (int i = 0; i < n_q; i++) {
        float *p = part_of(c, w, h * n_q + i);
        memcpy(p, o + i * dh, (size_t)dh * sizeof *p);
        p[dh] = m[i], p[dh + 1] = l[i];
    }
}

/* Takes over a wave into s->att. m and l [count * H]: largest score and sum of each query, kept from wave to wave. */
static void merge_wave(layer_ctx *c, int chunks, float *m, float *l) {
    int64_t dh = c->lc->head_dim;
    int n_q = c->g->count * c->lc->heads, per_head = c->g->count * c->per_kv;
    for (int j = 0; j < n_q; j++) {
        int h = j / per_head, row = c->g->first + j % per_head / c->per_kv, head = h * c->per_kv + j % c->per_kv;
        float *o = c->s->att + row * c->q_dim + head * dh;
        for (int w = 0; w < chunks; w++) {
            const float *p = part_of(c, w, j);
            c->n->k->attn_merge(dh, &m[j], &l[j], o, p[dh], p[dh + 1], p);
        }
        if (c->wave_first + chunks == c->first_chunk + c->n_chunks) c->n->k->attn_finish(dh, l[j], o);
    }
}

static void attend_waves(layer_ctx *c) {
    int n_q = c->g->count * c->lc->heads;
    float m[CLT_TILE_QUERIES], l[CLT_TILE_QUERIES];
    for (int j = 0; j < n_q; j++) m[j] = -INFINITY, l[j] = 0;
    for (int done = 0; done < c->n_chunks; done += CLT_WAVE_CHUNKS) {
        int n = c->n_chunks - done < CLT_WAVE_CHUNKS ? c->n_chunks - done : CLT_WAVE_CHUNKS;
        c->wave_first = c->first_chunk + done;
        clt_run_job(c->s, CLT_STAGE_ATTENTION, wave_task, c, n * c->lc->kv_heads);
        merge_wave(c, n, m, l);
    }
}

void clt_attend(clt_scratch *s, int l) {
    const clt_net *n = s->net;
    const clt_layer_config *lc = &n->config->layer[l];
    layer_ctx c = {.s = s, .n = n, .lc = lc, .donor = lc->kv_donor, .window = lc->sliding ? n->config->window : 0,
                   .per_kv = lc->heads / lc->kv_heads, .q_dim = (int64_t)lc->heads * lc->head_dim};
    c.tile_rows = s->tile_queries / c.per_kv;
    for (int g = 0; g < s->n_groups; g++) {
        c.g = &s->group[g];
        int last = c.g->first + c.g->count - 1, tiles = (c.g->count + c.tile_rows - 1) / c.tile_rows;
        c.first_chunk = first_visible(&c, s->pos[c.g->first]) / CHUNK;
        c.n_chunks = (seen_end(&c, last) - 1) / CHUNK - c.first_chunk + 1;
        bool few = tiles == 1 && c.g->count * lc->heads <= CLT_TILE_QUERIES && lc->kv_heads < 2 * clt_pool_threads(n->pool);
        if (few && c.n_chunks > 1) attend_waves(&c);
        else clt_run_job(s, CLT_STAGE_ATTENTION, tile_task, &c, tiles * lc->kv_heads);
    }
}
