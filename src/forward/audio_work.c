/* The working memory of the sound tower for one clip, and its matrices over it. */
#include "forward/audio_impl.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t clt_audio_flat(const clt_audio_config *c) {
    return ((int64_t)c->bands + 3) / 4 * c->channels[1]; /* ceil(ceil(bands / 2) / 2) */
}

static void lay_out(clt_audio_work *w, clt_cutter *m) {
    const clt_audio_config *c = w->a->config;
    bool conformer = c->kind == CLT_AUDIO_CONFORMER;
    int64_t n = w->n, width = conformer ? c->width : c->bands;
    int64_t fine = larger(width, conformer ? larger(clt_audio_flat(c), c->out_width) : 0);
    int64_t wide = larger(fine, larger(c->ffn, 2 * width));
    clt_tower_scratch(&w->s, &w->net, n, fine, wide, m);
    w->x = clt_cut(m, n * width, sizeof(float));
    if (!conformer) return;
    w->h = clt_cut(m, n * width, sizeof(float));
    w->q = clt_cut(m, n * width, sizeof(float)), w->k = clt_cut(m, n * width, sizeof(float));
    w->v = clt_cut(m, n * width, sizeof(float)), w->att = clt_cut(m, n * width, sizeof(float));
    w->wide = clt_cut(m, n * wide, sizeof(float)), w->clamped = clt_cut(m, n * wide, sizeof(float));
    w->subsample = clt_cut(m, clt_audio_subsample_work(w->a), sizeof(float));
}

clt_status clt_audio_work_create(const clt_audio *a, int64_t n, clt_audio_work **out, clt_err *err) {
    enum { MOST_ROWS = 1 << 20 };
    clt_audio_work *w = clt_calloc(1, sizeof *w);
    clt_cutter m = {0};
    *out = NULL;
    if (!w) return clt_fail_memory(err, "sound", sizeof *w);
    if (n > MOST_ROWS) {
        clt_free(w);
        return clt_fail(err, CLT_E_FAILED, "a sound of %lld tokens is too long: %d are the most", (long long)n, MOST_ROWS);
    }
    w->a = a, w->n = (int)n;
    w->net = (clt_net){.k = a->k, .pool = a->pool};
    lay_out(w, &m);
    w->bytes = m.at;
    w->memory = clt_pages_alloc(w->bytes);
    if (!w->memory) {
        clt_status st = clt_fail_memory(err, "sound", w->bytes);
        clt_free(w);
        return st;
    }
    m = (clt_cutter){w->memory, 0};
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

void clt_audio_multiply(clt_audio_work *w, clt_role role, const clt_bounded *m, const float *x, float *y) {
    clt_tower_multiply(&w->s, role, m, x, w->n, w->clamped, y);
}
