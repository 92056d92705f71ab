/* The working memory of the sound tower for one clip, and its matrices over it. */
#include "forward/audio_impl.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t clt_audio_flat(const clt_audio_config *c) {
    return ((int64_t)c->bands + 3) / 4 * c->channels[1]; /* ceil(ceil(bands / 2) / 2) */
}

/* Hands out parts of one block; with base NULL it only adds up. */
typedef struct cutter { uint8_t *base; size_t at; } cutter;

static void *cut(cutter *c, int64_t count, size_t size) {
    size_t at = c->at;
    c->at += ((size_t)count * size + 63) / 64 * 64;
    return c->base ? c->base + at : NULL;
}

static void lay_out(clt_audio_work *w, cutter *m) {
    const clt_audio_config *c = w->a->config;
    bool conformer = c->kind == CLT_AUDIO_CONFORMER;
    int64_t n = w->n, width = conformer ? c->width : c->bands, threads = clt_pool_threads(w->a->pool);
    int64_t fine = larger(width, conformer ? larger(clt_audio_flat(c), c->out_width) : 0);
    int64_t wide = larger(fine, larger(c->ffn, 2 * width)), inputs = larger(2 * n * clt_padded(fine), n * clt_padded(wide));
    w->s.acts.q = cut(m, inputs, 1);
    w->s.acts.d = cut(m, inputs / CLT_QBLOCK, sizeof(float));
    w->s.acts.sums = cut(m, inputs / 16, sizeof(int16_t));
    w->s.pair_tile = cut(m, threads * 2 * CLT_ROW_BLOCK * CLT_PAIR_PANELS * CLT_PANEL, sizeof(float));
    w->x = cut(m, n * width, sizeof(float));
    if (!conformer) return;
    w->h = cut(m, n * width, sizeof(float));
    w->q = cut(m, n * width, sizeof(float)), w->k = cut(m, n * width, sizeof(float));
    w->v = cut(m, n * width, sizeof(float)), w->att = cut(m, n * width, sizeof(float));
    w->wide = cut(m, n * wide, sizeof(float)), w->clamped = cut(m, n * wide, sizeof(float));
    w->subsample = cut(m, clt_audio_subsample_work(w->a), sizeof(float));
}

clt_status clt_audio_work_create(const clt_audio *a, int64_t n, clt_audio_work **out, clt_err *err) {
    enum { MOST_ROWS = 1 << 20 };
    clt_audio_work *w = clt_calloc(1, sizeof *w);
    cutter m = {0};
    *out = NULL;
    if (!w) return clt_fail_memory(err, "sound", sizeof *w);
    if (n > MOST_ROWS) {
        clt_free(w);
        return clt_fail(err, CLT_E_FAILED, "a sound of %lld tokens is too long: %d are the most", (long long)n, MOST_ROWS);
    }
    w->a = a, w->n = (int)n;
    w->net = (clt_net){.k = a->k, .pool = a->pool};
    w->s.net = &w->net;
    lay_out(w, &m);
    w->bytes = m.at;
    w->memory = clt_pages_alloc(w->bytes);
    if (!w->memory) {
        clt_status st = clt_fail_memory(err, "sound", w->bytes);
        clt_free(w);
        return st;
    }
    m = (cutter){w->memory, 0};
    lay_out(w, &m);
    *out = w;
    return CLT_OK;
}

void clt_audio_work_free(clt_audio_work *w) {
    if (!w) return;
    clt_pages_free(w->memory, w->bytes);
    clt_free(w);
}

void clt_audio_rows(clt_audio_work *w, clt_row_fn fn, void *ctx) { clt_rows_run(&w->s, CLT_STAGE_ROWS, fn, ctx, w->n); }

/* ---- matrices ---- */

typedef struct clamp_ctx { const clt_kernels *k; const float *x; float *y; int64_t d; float lo, hi; } clamp_ctx;

static void clamp_row(void *ctx, int row, int thread) {
    (void)thread;
    const clamp_ctx *c = ctx;
    c->k->clamp(c->x + row * c->d, c->lo, c->hi, c->y + row * c->d, c->d);
}

void clt_audio_multiply(clt_audio_work *w, clt_role role, const clt_audio_matrix *m, const float *x, float *y) {
    const clt_tower_matrix *b = m->bounds;
    int64_t cols = m->mat.cols, rows = m->mat.rows;
    clt_precision precision = role == CLT_ROLE_FFN ? CLT_COARSE : CLT_FINE;
    if (b->clipped) clt_audio_rows(w, clamp_row, &(clamp_ctx){w->a->k, x, w->clamped, cols, b->in_min, b->in_max});
    clt_linear_one(&w->s, role, &m->mat, b->clipped ? w->clamped : x, cols, w->n, precision, y, rows);
    if (b->clipped) clt_audio_rows(w, clamp_row, &(clamp_ctx){w->a->k, y, y, rows, b->out_min, b->out_max});
}
