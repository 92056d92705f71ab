/* Matrices over the thread pool. Which thread computes what never changes a bit: outputs are disjoint.
 *
 * Quantised weights meet activations of 8 bits. Where a rounding error hurts most for its cost (attention, per-layer
 * embeddings, the output head) the input is taken as a sum of two such rows, x = d q + d' q', q' being the rounded
 * remainder: about 15 bits. Both rows pass in the same call, as neighbours, and their results are added. In feed-forward
 * blocks, two thirds of all multiplications, one row must do. */
#include "forward/internal.h"

enum {
    ROW_BLOCK_BYTES = 256 << 10, /* activations of one row block stay in the second-level cache while panels pass */
    MAX_LINEAR = 3
};

clt_acts clt_acts_from(const clt_acts *a, int64_t r) {
    int64_t kp = clt_padded(a->cols);
    return (clt_acts){
        a->cols, a->x + r * a->ldx, a->ldx, a->q + r * kp, a->d + r * (kp / CLT_QBLOCK), a->sums + r * (kp / 16)};
}

/* ---- inputs ---- */

static void quantize_row(void *ctx, int row, int thread) {
    (void)thread;
    clt_scratch *s = ctx;
    s->net->k->quantize(&s->acts, row, row + 1);
}

/* Rows 2r and 2r + 1 of the 8-bit form: row r, and what its rounding left. */
static void quantize_pair(void *ctx, int row, int thread) {
    (void)thread;
    clt_scratch *s = ctx;
    s->net->k->quantize_pair(&s->acts, row, row + 1);
}

void clt_linear_input(clt_scratch *s, const float *x, int64_t ldx, int64_t cols, int n, clt_precision precision) {
    s->acts.x = x, s->acts.ldx = ldx, s->acts.cols = cols;
    s->precision = precision;
    if (precision != CLT_FLOATS) clt_rows_run(s, CLT_STAGE_QUANTISE, precision == CLT_FINE ? quantize_pair : quantize_row, s, n);
}

clt_precision clt_precision_for(const clt_mat *const *mats, int n, clt_precision wanted) {
    for (int i = 0; i < n; i++)
        if (mats[i]->rows && clt_mat_wants_q8(mats[i]->type)) return wanted;
    return CLT_FLOATS;
}

/* ---- products ---- */

typedef struct run_ctx {
    clt_scratch *s;
    const clt_linear *lin;
    int n, row_block, row_blocks;
    int64_t panels_per_task;
    int first_task[MAX_LINEAR + 1]; /* of each matrix, within one row block */
} run_ctx;

/* rows [r0, r0 + rows) times panels [p0, p1) by pairs, through a tile that fits the second-level cache. */
static void multiply_pairs(clt_scratch *s, const clt_linear *lin, int r0, int rows, int64_t p0, int64_t p1, int thread) {
    enum { LD = CLT_PAIR_PANELS * CLT_PANEL };
    float *tile = s->pair_tile + (int64_t)thread * 2 * CLT_ROW_BLOCK * LD;
    clt_acts a = clt_acts_from(&s->acts, 2 * r0);
    a.x = NULL;
    for (int64_t p = p0; p < p1; p += CLT_PAIR_PANELS) {
        int64_t end = p + CLT_PAIR_PANELS < p1 ? p + CLT_PAIR_PANELS : p1, first = p * CLT_PANEL;
        clt_mat part = *lin->w;
        part.data += (size_t)p * part.panel_bytes;
        part.rows -= first;
        int64_t width = part.rows < (end - p) * CLT_PANEL ? part.rows : (end - p) * CLT_PANEL;
        s->net->k->matmul(&part, &a, 2 * rows, tile, LD, 0, end - p);
        for (int r = 0; r < rows; r++)
            s->net->k->add(tile + 2 * r * LD, tile + (2 * r + 1) * LD, lin->y + (r0 + r) * lin->ldy + first, width);
    }
}

static void run_task(void *ctx, int task, int thread) {
    const run_ctx *c = ctx;
    int per_block = c->first_task[MAX_LINEAR], block = task / per_block, t = task % per_block, i = 0;
    while (t >= c->first_task[i + 1]) i++;
    const clt_linear *lin = &c->lin[i];
    int64_t p0 = (t - c->first_task[i]) * c->panels_per_task, p1 = p0 + c->panels_per_task, all = clt_mat_panels(lin->w);
    int r0 = block * c->row_block, rows = c->n - r0 < c->row_block ? c->n - r0 : c->row_block;
    if (p1 > all) p1 = all;
    if (c->s->precision == CLT_FINE && clt_mat_wants_q8(lin->w->type)) {
        multiply_pairs(c->s, lin, r0, rows, p0, p1, thread);
        return;
    }
    clt_acts a = clt_acts_from(&c->s->acts, r0);
    c->s->net->k->matmul(lin->w, &a, rows, lin->y + r0 * lin->ldy, lin->ldy, p0, p1);
}

/* Rows that share a pass over the weights: as many as keep their activations in cache, 32 to CLT_ROW_BLOCK. Float kernels
 * cut K themselves. */
static int rows_per_block(const clt_scratch *s, int n) {
    if (s->precision == CLT_FLOATS) return n < CLT_ROW_BLOCK ? n : CLT_ROW_BLOCK;
    int64_t per_row = s->acts.cols * (int64_t)sizeof(float), block = ROW_BLOCK_BYTES / per_row / 4 * 4;
    if (block < 32) block = 32;
    if (block > CLT_ROW_BLOCK) block = CLT_ROW_BLOCK;
    return n < block ? n : (int)block;
}

void clt_linear_run(clt_scratch *s, clt_role role, const clt_linear *lin, int n_lin, int n) {
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
    clt_profile_product products[MAX_LINEAR];
    for (int i = 0; i < n_lin; i++) {
        const clt_mat *w = lin[i].w;
        products[i] = (clt_profile_product){role, w->type, (uint64_t)n * (uint64_t)w->rows * (uint64_t)w->cols,
                                            (uint64_t)c.row_blocks * (uint64_t)clt_mat_panels(w) * w->panel_bytes};
    }
    clt_profile_run_products(s->profile, products, n_lin, s->net->pool, run_task, &c,
                             c.first_task[MAX_LINEAR] * c.row_blocks);
    for (int i = 0; s->observe && i < n_lin; i++)
        clt_observe_product(s, lin[i].w, s->acts.x, s->acts.ldx, lin[i].y, lin[i].ldy, n);
}

void clt_linear_one(clt_scratch *s, clt_role role, const clt_mat *w, const float *x, int64_t ldx, int n, clt_precision precision, float *y,
                    int64_t ldy) {
    clt_linear_input(s, x, ldx, w->cols, n, clt_precision_for(&w, 1, precision));
    clt_linear_run(s, role, &(clt_linear){w, y, ldy}, 1, n);
}
