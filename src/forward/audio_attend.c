/* Attention of the sound tower: every row sees the last few rows, itself included, and how far away they are.
 *
 * logit = cap tanh((q . k + q . r(distance)) / cap), then softmax over what is seen. Few rows are seen, so each row and head
 * is computed by itself: two dot products and one sum per row seen. */
#include "forward/audio_impl.h"

typedef struct attend { clt_audio_work *w; const clt_audio_net_layer *l; } attend;

static void attend_row(void *ctx, int row, int thread) {
    (void)thread;
    const attend *c = ctx;
    const clt_audio_work *w = c->w;
    const clt_kernels *k = w->a->k;
    const clt_audio_config *g = w->a->config;
    float p[CLT_AUDIO_WINDOW_MOST];
    int64_t width = g->width, dh = g->head_dim;
    int seen = row + 1 < g->window ? row + 1 : g->window, first = row + 1 - seen;
    for (int64_t at = 0; at < width; at += dh) { /* of a head in its row */
        const float *q = w->q + row * width + at, *keys = w->k + first * width + at, *values = w->v + first * width + at;
        float *o = w->att + row * width + at;
        for (int j = 0; j < seen; j++)
            p[j] = k->dot(q, keys + j * width, dh) + k->dot(q, c->l->rel + (seen - 1 - j) * width + at, dh);
        k->softcap(p, g->logit_cap, seen);
        k->softmax(p, seen);
        k->scale(values, p[0], o, dh);
        for (int j = 1; j < seen; j++) k->axpy(p[j], values + j * width, o, dh);
    }
}

/* q *= a factor for each number of a head, k *= one factor. */
static void scale_row(void *ctx, int row, int thread) {
    (void)thread;
    const attend *c = ctx;
    const clt_audio_config *g = c->w->a->config;
    float *q = c->w->q + (int64_t)row * g->width, *k = c->w->k + (int64_t)row * g->width;
    for (int64_t at = 0; at < g->width; at += g->head_dim)
        for (int64_t d = 0; d < g->head_dim; d++) q[at + d] *= c->l->per_dim[d];
    c->w->a->k->scale(k, c->w->a->key_scale, k, g->width);
}

void clt_audio_attend(clt_audio_work *w, const clt_audio_net_layer *l) {
    attend c = {w, l};
    clt_audio_rows(w, scale_row, &c);
    clt_audio_rows(w, attend_row, &c);
}
