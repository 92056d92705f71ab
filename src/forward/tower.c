/* Packing and multiplying for towers; knows no kind of tower. */
#include "forward/tower.h"

void *clt_cut(clt_cutter *c, int64_t count, size_t size) {
    size_t at = c->at;
    c->at += ((size_t)count * size + 63) / 64 * 64;
    return c->base ? c->base + at : NULL;
}

/* ---- weights ---- */

void clt_tower_plan(clt_pack_plan *p, clt_mat *mat, const clt_tensor *t) {
    if (!t) return;
    if (p->jobs) p->jobs[p->n] = (clt_pack_job){mat, t, 0, t->dims[1], p->bytes};
    p->n++;
    size_t bytes = clt_mat_panel_bytes(t->type, t->dims[0]) * (size_t)((t->dims[1] + CLT_PANEL - 1) / CLT_PANEL);
    p->bytes += (bytes + 63) / 64 * 64;
}

void clt_tower_plan_bounded(clt_pack_plan *p, clt_bounded *mat, const clt_tower_matrix *m) {
    mat->bounds = m;
    clt_tower_plan(p, &mat->mat, m->w);
}

clt_status clt_tower_pack(clt_tower_list_fn list, const void *model, void *tower, const clt_file *f, clt_pool *pool,
                          uint8_t **packed, size_t *bytes, const char *what, clt_err *err) {
    clt_pack_plan p = {0};
    list(&p, model, NULL);
    *bytes = p.bytes;
    *packed = clt_pages_alloc(p.bytes);
    p.jobs = clt_calloc(p.n, sizeof *p.jobs);
    clt_status st = *packed && p.jobs ? CLT_OK : clt_fail_memory(err, what, *bytes);
    p.n = 0, p.bytes = 0;
    if (st == CLT_OK) {
        list(&p, model, tower);
        clt_pack_place(&p, *packed);
        st = clt_pack_all(&p, f, pool, *packed, NULL, NULL, err);
    }
    clt_free(p.jobs);
    return st;
}

float *clt_tower_numbers(clt_arena *arena, const clt_file *f, const clt_tensor *t, clt_status *st) {
    if (!t) return NULL;
    int64_t rows = clt_tensor_rows(t), n = rows * t->dims[0];
    float *v = *st == CLT_OK ? CLT_ARENA_NEW(arena, float, n) : NULL;
    if (*st == CLT_OK && !v) *st = CLT_E_MEMORY;
    for (int64_t r = 0; r < rows && *st == CLT_OK; r++)
        if (!clt_file_decode_row(f, t, r, v + r * t->dims[0])) *st = CLT_E_FILE;
    return v;
}

/* ---- matrices over the pool ---- */

void clt_tower_scratch(clt_scratch *s, clt_net *net, int64_t n, int64_t fine, int64_t wide, clt_cutter *m) {
    int64_t inputs = 2 * n * clt_padded(fine), coarse = n * clt_padded(wide), threads = clt_pool_threads(net->pool);
    if (coarse > inputs) inputs = coarse;
    s->net = net;
    s->acts.q = clt_cut(m, inputs, 1);
    s->acts.d = clt_cut(m, inputs / CLT_QBLOCK, sizeof(float));
    s->acts.sums = clt_cut(m, inputs / 16, sizeof(int16_t));
    s->pair_tile = clt_cut(m, threads * 2 * CLT_ROW_BLOCK * CLT_PAIR_PANELS * CLT_PANEL, sizeof(float));
}

typedef struct clamp_ctx { const clt_kernels *k; const float *x; float *y; int64_t d; float lo, hi; } clamp_ctx;

static void clamp_row(void *ctx, int row, int thread) {
    (void)thread;
    const clamp_ctx *c = ctx;
    c->k->clamp(c->x + row * c->d, c->lo, c->hi, c->y + row * c->d, c->d);
}

static void clamp_rows(clt_scratch *s, clamp_ctx c, int n) {
    clt_rows_run(s, CLT_STAGE_ROWS, clamp_row, &c, n);
}

void clt_tower_multiply(clt_scratch *s, clt_role role, const clt_bounded *m, const float *x, int n, float *clamped,
                        float *y) {
    const clt_tower_matrix *b = m->bounds;
    const clt_kernels *k = s->net->k;
    int64_t cols = m->mat.cols, rows = m->mat.rows;
    clt_precision precision = role == CLT_ROLE_FFN ? CLT_COARSE : CLT_FINE;
    if (b->clipped) clamp_rows(s, (clamp_ctx){k, x, clamped, cols, b->in_min, b->in_max}, n);
    clt_linear_one(s, role, &m->mat, b->clipped ? clamped : x, cols, n, precision, y, rows);
    if (b->clipped) clamp_rows(s, (clamp_ctx){k, y, y, rows, b->out_min, b->out_max}, n);
}
