/* The order in which panels and rows of activations meet on AArch64, quantised types: cache blocking only, it cannot change
 * a bit of any output. */
#include "kernels/matmul_neon.h"

static void store_panel(const clt_mat *m, int64_t p, float (*acc)[CLT_PANEL], int rows, float *y, int64_t ldy) {
    int64_t n = m->rows - p * CLT_PANEL;
    for (int r = 0; r < rows; r++) {
        if (n >= CLT_PANEL)
            memcpy(y + r * ldy + p * CLT_PANEL, acc[r], sizeof acc[r]);
        else
            memcpy(y + r * ldy + p * CLT_PANEL, acc[r], (size_t)n * sizeof *y);
    }
}

void clt_neon_matmul_few(clt_neon_few_fn *few, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                         int64_t p0, int64_t p1) {
    for (int64_t p = p0; p < p1; p++) {
        float acc[CLT_NEON_ROWS][CLT_PANEL];
        few(m->data + (size_t)p * m->panel_bytes, a, 0, (int)T, acc);
        store_panel(m, p, acc, (int)T, y, ldy);
    }
}

void clt_neon_gather(clt_type t, const clt_acts *a, int64_t t0, int rows, int64_t b0, int n, clt_neon_acts *out) {
    clt_layout l = clt_layout_of(t);
    int64_t blocks = clt_acts_blocks(a);

    for (int r = 0; r < rows; r++) {
        int64_t at = (t0 + r) * blocks + b0;
        memcpy(out->q + r * CLT_NEON_BLOCKS * CLT_QBLOCK, a->q + at * CLT_QBLOCK, (size_t)n * CLT_QBLOCK);
        memcpy(out->d + r * CLT_NEON_BLOCKS, a->d + at, (size_t)n * sizeof *a->d);
        if (l.has_min)
            prepare_sums(l, a->d + at, a->sums + 2 * at, n, out->scaled + r * 2 * CLT_NEON_BLOCKS, NULL);
    }
}

/* A group of rows against a group of panels. */
static void multiply_group(const clt_neon_many *f, const clt_mat *m, const clt_acts *a, int64_t t0, int rows, int64_t p,
                           int panels, float *y, int64_t ldy) {
    int64_t blocks = clt_acts_blocks(a);
    float acc[CLT_NEON_PANELS][CLT_NEON_ROWS][CLT_PANEL];
    clt_neon_block w[CLT_NEON_BLOCKS];
    clt_neon_acts x;

    for (int i = 0; i < panels; i++)
        memset(acc[i], 0, (size_t)(rows + rows % 2) * sizeof acc[i][0]); /* some levels take rows in pairs */
    for (int64_t b0 = 0; b0 < blocks; b0 += CLT_NEON_BLOCKS) {
        int n = blocks - b0 < CLT_NEON_BLOCKS ? (int)(blocks - b0) : CLT_NEON_BLOCKS;
        f->gather(m->type, a, t0, rows, b0, n, &x);
        for (int i = 0; i < panels; i++) {
            f->unpack(m->data + (size_t)(p + i) * m->panel_bytes, b0, n, w);
            f->tiles(m->type, w, n, &x, rows, acc[i]);
        }
    }
    for (int i = 0; i < panels; i++)
        store_panel(m, p + i, acc[i], rows, y + t0 * ldy, ldy);
}

void clt_neon_matmul_many(const clt_neon_many *f, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                          int64_t p0, int64_t p1) {
    for (int64_t p = p0; p < p1; p += CLT_NEON_PANELS) {
        int panels = p1 - p < CLT_NEON_PANELS ? (int)(p1 - p) : CLT_NEON_PANELS;
        for (int64_t t0 = 0; t0 < T; t0 += CLT_NEON_ROWS)
            multiply_group(f, m, a, t0, T - t0 < CLT_NEON_ROWS ? (int)(T - t0) : CLT_NEON_ROWS, p, panels, y, ldy);
    }
}
