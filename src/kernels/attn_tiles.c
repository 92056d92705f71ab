/* Attention over one chunk in blocked form: cuts the work into tiles that fit the first-level cache and registers.
 *
 * The arithmetic is in the clt_attn_ops of a level; here is only its order. Keys and values are widened to float once per
 * tile and used for all queries of a batch. Every sum is still one chain in the written order, because a tile takes up the
 * sums where the one before left them. Slots that a query does not see are never multiplied, not even by 0: they may hold
 * NaN, and even a finite one could turn -0 into 0. */
#include <string.h>
#include "kernels/attn.h"
#include "kernels/attn_layout.h"

enum {
    S = CLT_ATTN_CHUNK,
    TILE = CLT_ATTN_TILE,
    GROUP = CLT_ATTN_GROUP,
    HALF = CLT_ATTN_HALF,
    BATCH = 30,               /* queries per batch; 5 full groups */
    SPANS = 2 * GROUP - 1     /* 2 * GROUP range ends cut a chunk into at most this many spans that somebody sees */
};

/* Slots [begin, end) are seen by the same n queries of a group: who[] are their places in the batch. */
typedef struct span {
    int begin, end, n;
    int who[GROUP];
} span;

typedef struct group {
    int first, n;      /* places in the batch */
    int c0, halves;    /* the columns of the key tile that somebody sees: 32 * halves from c0 on */
    int n_spans;
    span spans[SPANS];
} group;

typedef struct batch {
    const clt_attn_ops *ops;
    clt_kv_types type;
    int64_t head_dim;
    const clt_kv_chunk *chunk;
    int n, n_groups, lo, hi;  /* queries that see something; the union of their ranges */
    const float *q[BATCH];
    float *o[BATCH];
    int row_lo[BATCH], row_hi[BATCH];
    group groups[BATCH / GROUP];
    _Alignas(64) float s[BATCH][S];        /* scores, then exp(scores - m) */
    _Alignas(64) float weights[BATCH][S];  /* the same times the scales of values, for Q8_0 */
    _Alignas(64) float out[BATCH][TILE];
    _Alignas(64) float tile[TILE * TILE];
} batch;

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

static void group_cut_spans(const batch *b, group *g) {
    int cuts[2 * GROUP], n = 0;
    for (int i = g->first; i < g->first + g->n; i++) {
        for (int side = 0; side < 2; side++) {
            int cut = side ? b->row_hi[i] : b->row_lo[i], at = n;
            while (at > 0 && cuts[at - 1] > cut)
                at--;
            if (at > 0 && cuts[at - 1] == cut)
                continue;
            memmove(cuts + at + 1, cuts + at, (size_t)(n - at) * sizeof *cuts);
            cuts[at] = cut;
            n++;
        }
    }
    g->n_spans = 0;
    for (int i = 0; i + 1 < n; i++) {
        span *s = &g->spans[g->n_spans];
        *s = (span){.begin = cuts[i], .end = cuts[i + 1]};
        for (int r = g->first; r < g->first + g->n; r++)
            if (b->row_lo[r] <= s->begin && s->end <= b->row_hi[r])
                s->who[s->n++] = r;
        g->n_spans += s->n > 0;
    }
}

/* Groups of nearly equal size, so that none is left with one query. */
static void batch_cut_groups(batch *b) {
    b->n_groups = (b->n + GROUP - 1) / GROUP;
    b->lo = S;
    b->hi = 0;
    for (int i = 0, first = 0; i < b->n_groups; i++) {
        group *g = &b->groups[i];
        int next = b->n * (i + 1) / b->n_groups, lo = S, hi = 0;
        for (int r = first; r < next; r++) {
            lo = smaller(lo, b->row_lo[r]);
            hi = larger(hi, b->row_hi[r]);
        }
        g->first = first;
        g->n = next - first;
        g->c0 = lo / HALF * HALF;
        g->halves = (hi - g->c0 + HALF - 1) / HALF;
        group_cut_spans(b, g);
        b->lo = smaller(b->lo, lo);
        b->hi = larger(b->hi, hi);
        first = next;
    }
}

static void group_scores(batch *b, const group *g, int64_t d0, int nd, const float *keys, const float *k_scale) {
    const float *q[GROUP];
    float *s[GROUP];
    for (int i = 0; i < g->n; i++) {
        q[i] = b->q[g->first + i] + d0;
        s[i] = b->s[g->first + i] + g->c0;
    }
    b->ops->scores(g->n, nd, q, keys + g->c0, k_scale ? k_scale + g->c0 : NULL, g->halves, s);
}

/* Asks for bytes [from, from + n) of a side, as far as there are that many. */
static void batch_prefetch(const batch *b, clt_type t, const uint8_t *side, size_t from, size_t n) {
    size_t all = (size_t)b->head_dim * S * clt_kv_number_bytes(t), end = all - from < n ? all : from + n;
    for (size_t i = from; i < end; i += 64)
        __builtin_prefetch(side + i, 0, 2);
}

/* While a tile of keys is worked on, the next one is on its way, and so is the same share of the values: these are read
 * right after the keys, in short pieces far apart, which no hardware prefetcher guesses. */
static void batch_scores(batch *b) {
    size_t number = clt_kv_number_bytes(b->type.k), v_number = clt_kv_number_bytes(b->type.v);
    int step = b->type.k == CLT_Q8_0 ? CLT_QBLOCK : TILE;
    size_t tile_bytes = (size_t)step * S * number;
    int c0 = b->lo / HALF * HALF, columns = (b->hi - c0 + HALF - 1) / HALF * HALF;
    memset(b->s, 0, (size_t)b->n * sizeof b->s[0]);
    if (b->type.k == CLT_F32)
        batch_prefetch(b, b->type.k, b->chunk->k, 0, tile_bytes);
    for (int64_t d0 = 0; d0 < b->head_dim; d0 += step) {
        int nd = (int)(b->head_dim - d0 < step ? b->head_dim - d0 : step);
        size_t at = (size_t)d0 * S * number;
        const float *keys = (const float *)(const void *)(b->chunk->k + at), *k_scale = NULL;
        if (d0 + step < b->head_dim)
            batch_prefetch(b, b->type.k, b->chunk->k, at + tile_bytes, tile_bytes);
        batch_prefetch(b, b->type.v, b->chunk->v, (size_t)d0 * S * v_number, (size_t)step * S * v_number);
        if (b->type.k != CLT_F32) {
            b->ops->widen(b->type.k, b->chunk->k + at + (size_t)c0 * number, S, nd, columns, b->tile + c0);
            keys = b->tile;
        }
        if (b->type.k == CLT_Q8_0)
            k_scale = clt_kv_scales(b->chunk->k, b->head_dim) + d0 / CLT_QBLOCK * S;
        for (int i = 0; i < b->n_groups; i++)
            group_scores(b, &b->groups[i], d0, nd, keys, k_scale);
    }
}

static void group_blend(batch *b, const group *g, const float *values, int64_t ldv, int halves) {
    for (int i = 0; i < g->n_spans; i++) {
        const span *s = &g->spans[i];
        const float *p[GROUP];
        float *o[GROUP];
        for (int r = 0; r < s->n; r++) {
            p[r] = b->type.v == CLT_Q8_0 ? b->weights[s->who[r]] : b->s[s->who[r]];
            o[r] = b->out[s->who[r]];
        }
        b->ops->blend(s->n, s->begin, s->end, p, values, ldv, halves, o);
    }
}

/* Rows lo … hi of the values in columns [d0, d0 + w) as floats; row 0 is where the result points, *ldv apart. */
static const float *batch_values(batch *b, int64_t d0, int w, int64_t *ldv) {
    size_t number = clt_kv_number_bytes(b->type.v);
    if (b->type.v == CLT_F32 && w % HALF == 0) {
        *ldv = b->head_dim;
        return (const float *)(const void *)b->chunk->v + d0;
    }
    if (w % HALF != 0)
        memset(b->tile, 0, sizeof b->tile);
    const uint8_t *src = b->chunk->v + (size_t)(b->lo * b->head_dim + d0) * number;
    b->ops->widen(b->type.v, src, b->head_dim, b->hi - b->lo, w, b->tile + b->lo * TILE);
    *ldv = TILE;
    return b->tile;
}

static void batch_blend(batch *b) {
    int step = b->type.v == CLT_Q8_0 ? CLT_QBLOCK : TILE;
    for (int64_t d0 = 0; d0 < b->head_dim; d0 += step) {
        int w = (int)(b->head_dim - d0 < step ? b->head_dim - d0 : step);
        int64_t ldv;
        const float *values = batch_values(b, d0, w, &ldv);
        const float *v_scale = clt_kv_scales(b->chunk->v, b->head_dim) + d0 / CLT_QBLOCK * S;
        for (int r = 0; b->type.v == CLT_Q8_0 && r < b->n; r++)
            for (int j = 0; j < S; j++)
                b->weights[r][j] = b->s[r][j] * v_scale[j];
        memset(b->out, 0, (size_t)b->n * sizeof b->out[0]);
        for (int i = 0; i < b->n_groups; i++)
            group_blend(b, &b->groups[i], values, ldv, (w + HALF - 1) / HALF);
        for (int r = 0; r < b->n; r++)
            memcpy(b->o[r] + d0, b->out[r], (size_t)w * sizeof(float));
    }
}

void clt_attn_tiles(const clt_attn_ops *ops, clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q,
                    int64_t ldq, int R, const int *lo, const int *hi, float scale, float *m, float *l, float *o,
                    int64_t ldo) {
    batch b; /* 40 kB: not worth clearing */
    b.ops = ops;
    b.type = t;
    b.head_dim = head_dim;
    b.chunk = c;
    for (int r = 0; r < R;) {
        int place[BATCH];
        for (b.n = 0; r < R && b.n < BATCH; r++) {
            if (hi[r] <= lo[r]) {
                m[r] = -__builtin_inff();
                l[r] = 0.0f;
                memset(o + r * ldo, 0, (size_t)head_dim * sizeof *o);
                continue;
            }
            b.q[b.n] = q + r * ldq;
            b.o[b.n] = o + r * ldo;
            b.row_lo[b.n] = lo[r];
            b.row_hi[b.n] = hi[r];
            place[b.n++] = r;
        }
        batch_cut_groups(&b);
        batch_scores(&b);
        for (int i = 0; i < b.n; i++)
            ops->soften(b.s[i], b.row_lo[i], b.row_hi[i], scale, &m[place[i]], &l[place[i]]);
        batch_blend(&b);
    }
}
