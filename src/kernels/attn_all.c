/* Attention over whole pictures: every query sees every position. All scores of some queries are held at once, so that the
 * softmax is one pass and nothing is merged. The sums are a level's own clt_attn_ops; each is one chain. */
#include <string.h>
#include "kernels/attn.h"

enum { S = CLT_ATTN_CHUNK, TILE = CLT_ATTN_TILE, GROUP = CLT_ATTN_GROUP, HALF = CLT_ATTN_HALF, BATCH = CLT_ATTN_ALL };

static int smaller(int a, int b) { return a < b ? a : b; }

void clt_attn_scores_tiled(const clt_attn_ops *ops, int64_t head_dim, const uint8_t *chunks, int n, const float *q,
                           int64_t ldq, int R, float *s, int64_t lds) {
    const size_t step = 2 * clt_kv_chunk_bytes(CLT_F32, head_dim);
    for (int j = 0; j < n; j += S) {
        const float *keys = (const float *)(const void *)(chunks + (size_t)(j / S) * step);
        for (int r = 0; r < R; r += GROUP) {
            const float *from[GROUP];
            float *to[GROUP];
            int some = smaller(R - r, GROUP);
            for (int i = 0; i < some; i++) {
                from[i] = q + (r + i) * ldq;
                to[i] = s + (r + i) * lds + j;
                memset(to[i], 0, S * sizeof *s);
            }
            ops->scores(some, (int)head_dim, from, keys, NULL, S / HALF, to);
        }
    }
}

/* w columns from d on of the values of a chunk, as they lie or filled up to whole halves in `tile`. */
static const float *columns(const float *values, int64_t head_dim, int64_t d, int w, float *tile, int64_t *ldv) {
    *ldv = head_dim;
    if (w % HALF == 0) return values + d;
    *ldv = TILE;
    for (int j = 0; j < S; j++)
        memcpy(tile + j * TILE, values + j * head_dim + d, (size_t)w * sizeof *tile);
    return tile;
}

/* R <= BATCH queries, columns [d, d + w). */
static void blend_columns(const clt_attn_ops *ops, int64_t head_dim, const uint8_t *chunks, int n, const float *s,
                          int64_t lds, int R, int64_t d, int w, float *o, int64_t ldo) {
    _Alignas(64) float out[BATCH][TILE] = {0}, tile[S * TILE] = {0};
    const size_t side = clt_kv_chunk_bytes(CLT_F32, head_dim);
    for (int j = 0; j < n; j += S) {
        int64_t ldv;
        const float *chunk = (const float *)(const void *)(chunks + (size_t)(j / S) * 2 * side + side);
        const float *values = columns(chunk, head_dim, d, w, tile, &ldv);
        for (int r = 0; r < R; r += GROUP) {
            const float *from[GROUP];
            float *to[GROUP];
            int some = smaller(R - r, GROUP);
            for (int i = 0; i < some; i++) {
                from[i] = s + (r + i) * lds + j;
                to[i] = out[r + i];
            }
            ops->blend(some, 0, smaller(n - j, S), from, values, ldv, (w + HALF - 1) / HALF, to);
        }
    }
    for (int r = 0; r < R; r++)
        memcpy(o + r * ldo + d, out[r], (size_t)w * sizeof *o);
}

void clt_attn_blend_tiled(const clt_attn_ops *ops, int64_t head_dim, const uint8_t *chunks, int n, const float *s,
                          int64_t lds, int R, float *o, int64_t ldo) {
    for (int r = 0; r < R; r += BATCH)
        for (int64_t d = 0; d < head_dim; d += TILE) {
            int w = head_dim - d < TILE ? (int)(head_dim - d) : TILE;
            blend_columns(ops, head_dim, chunks, n, s + r * lds, lds, smaller(R - r, BATCH), d, w, o + r * ldo, ldo);
        }
}
