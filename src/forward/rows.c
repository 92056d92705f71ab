/* Steps that are taken for every active row by itself, over the thread pool, and the two that every block of a layer takes:
 * the norm in front of it, and the norm and sum behind it. */
#include "forward/internal.h"

typedef struct rows_ctx { clt_row_fn fn; void *ctx; int n, per_task; } rows_ctx;

static void rows_task(void *ctx, int task, int thread) {
    const rows_ctx *c = ctx;
    int end = (task + 1) * c->per_task < c->n ? (task + 1) * c->per_task : c->n;
    for (int r = task * c->per_task; r < end; r++) c->fn(c->ctx, r, thread);
}

void clt_rows_run(clt_scratch *s, clt_stage stage, clt_row_fn fn, void *ctx, int n) {
    int threads = clt_pool_threads(s->net->pool);
    rows_ctx c = {fn, ctx, n, n < 4 || threads == 1 ? n : (n + 4 * threads - 1) / (4 * threads)};
    if (n < 1) return;
    clt_run_job(s, stage, rows_task, &c, (n + c.per_task - 1) / c.per_task);
}

typedef struct norm_ctx { clt_scratch *s; const float *w; } norm_ctx;

static void norm_row(void *ctx, int r, int thread) {
    (void)thread;
    const norm_ctx *c = ctx;
    const clt_net *n = c->s->net;
    int64_t d = n->config->width;
    n->k->rms_norm(c->s->x + r * d, c->w, n->config->rms_eps, c->s->h + r * d, d);
}

void clt_norm_rows(clt_scratch *s, const float *w) {
    clt_rows_run(s, CLT_STAGE_ROWS, norm_row, &(norm_ctx){s, w}, s->n);
}

static void join_row(void *ctx, int r, int thread) {
    (void)thread;
    const norm_ctx *c = ctx;
    const clt_net *n = c->s->net;
    int64_t d = n->config->width;
    float *h = c->s->h + r * d, *x = c->s->x + r * d;
    n->k->rms_norm(h, c->w, n->config->rms_eps, h, d);
    n->k->add(x, h, x, d);
}

void clt_join_rows(clt_scratch *s, const float *w) {
    clt_rows_run(s, CLT_STAGE_ROWS, join_row, &(norm_ctx){s, w}, s->n);
}
