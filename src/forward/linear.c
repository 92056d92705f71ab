/* Matrices and rows over the thread pool. Which thread computes what never changes a bit: outputs are disjoint. */
#include "forward/internal.h"

enum {
    ROW_BLOCK_BYTES = 256 << 10, /* activations of one row block stay in the second-level cache while panels pass */
    MAX_LINEAR = 3
};

clt_acts clt_acts_from(const clt_acts *a, int64_t r) {
    int64_t kp = (a->cols + CLT_QBLOCK - 1) / CLT_QBLOCK * CLT_QBLOCK;
    return (clt_acts){a->cols, a->x + r * a->ldx, a->ldx, a->q + r * kp, a->d + r * (kp / CLT_QBLOCK), a->sums + r * (kp / 16)};
}

typedef struct rows_ctx { clt_row_fn fn; void *ctx; int n, per_task; } rows_ctx;

static void rows_task(void *ctx, int task, int thread) {
    (void)thread;
    const rows_ctx *c = ctx;
    int end = (task + 1) * c->per_task < c->n ? (task + 1) * c->per_task : c->n;
    for (int r = task * c->per_task; r < end; r++) c->fn(c->ctx, r);
}

void clt_rows_run(clt_scratch *s, clt_row_fn fn, void *ctx, int n) {
    int threads = clt_pool_threads(s->net->pool);
    rows_ctx c = {fn, ctx, n, n < 4 || threads == 1 ? n : (n + 4 * threads - 1) / (4 * threads)};
    if (n < 1) return;
    if (c.per_task == n) rows_task(&c, 0, 0);
    else clt_pool_run(s->net->pool, rows_task, &c, (n + c.per_task - 1) / c.per_task);
}

static void quantize_row(void *ctx, int row) {
    clt_scratch *s = ctx;
    s->net->k->quantize(&s->acts, row, row + 1);
}

void clt_linear_input(clt_scratch *s, const float *x, int64_t ldx, int64_t cols, int n, bool q8) {
    s->acts.x = x, s->acts.ldx = ldx, s->acts.cols = cols;
    if (q8) clt_rows_run(s, quantize_row, s, n);
}

typedef struct run_ctx {
    clt_scratch *s;
    const clt_linear *lin;
    int n, row_block, row_blocks;
    int64_t panels_per_task;
    int first_task[MAX_LINEAR + 1]; /* of each matrix, within one row block */
} run_ctx;

static void run_task(void *ctx, int task, int thread) {
    (void)thread;
    const run_ctx *c = ctx;
    int per_block = c->first_task[MAX_LINEAR], block = task / per_block, t = task % per_block, i = 0;
    while (t >= c->first_task[i + 1]) i++;
    const clt_linear *lin = &c->lin[i];
    int64_t p0 = (t - c->first_task[i]) * c->panels_per_task, p1 = p0 + c->panels_per_task, all = clt_mat_panels(lin->w);
    int r0 = block * c->row_block, rows = c->n - r0 < c->row_block ? c->n - r0 : c->row_block;
    clt_acts a = clt_acts_from(&c->s->acts, r0);
    c->s->net->k->matmul(lin->w, &a, rows, lin->y + r0 * lin->ldy, lin->ldy, p0, p1 < all ? p1 : all);
}

/* Rows that share a pass over the weights: as many as keep their activations in cache, at least 32. */
static int rows_per_block(const clt_scratch *s, int n) {
    int64_t per_row = s->acts.cols * (int64_t)sizeof(float), block = ROW_BLOCK_BYTES / per_row;
    if (block < 32) block = 32;
    return n < block ? n : (int)(block / 4 * 4);
}

void clt_linear_run(clt_scratch *s, const clt_linear *lin, int n_lin, int n) {
    if (n < 1) return;
    int threads = clt_pool_threads(s->net->pool);
    run_ctx c = {.s = s, .lin = lin, .n = n, .row_block = rows_per_block(s, n)};
    c.row_blocks = (n + c.row_block - 1) / c.row_block;
    int64_t panels = 0;
    for (int i = 0; i < n_lin; i++) panels += clt_mat_panels(lin[i].w);
    int64_t tasks = 8 * threads;
    c.panels_per_task = (panels + tasks - 1) / tasks;
    for (int i = 0; i < MAX_LINEAR; i++) {
        int64_t own = i < n_lin ? (clt_mat_panels(lin[i].w) + c.panels_per_task - 1) / c.panels_per_task : 0;
        c.first_task[i + 1] = c.first_task[i] + (int)own;
    }
    clt_pool_run(s->net->pool, run_task, &c, c.first_task[MAX_LINEAR] * c.row_blocks);
}

void clt_linear_one(clt_scratch *s, const clt_mat *w, const float *x, int64_t ldx, int n, float *y, int64_t ldy) {
    clt_linear_input(s, x, ldx, w->cols, n, clt_mat_wants_q8(w->type));
    clt_linear_run(s, &(clt_linear){w, y, ldy}, 1, n);
}
