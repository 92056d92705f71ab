/* The order in which panels and rows of activations meet: cache blocking only, it cannot change a bit of any output. */
#include "kernels/matmul.h"
#include <string.h>

/* Whole panels, the rule, are copied with a length that the compiler knows. */
static void store_rows(float *y, int64_t ldy, float (*acc)[CLT_PANEL], int rows, int64_t n) {
    for (int r = 0; r < rows; r++) {
        if (n >= CLT_PANEL)
            memcpy(y + r * ldy, acc[r], sizeof acc[r]);
        else
            memcpy(y + r * ldy, acc[r], (size_t)n * sizeof *y);
    }
}

void clt_matmul_panels(clt_panel_fn *multiply, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                       int64_t p0, int64_t p1) {
    for (int64_t group = p0; group < p1; group += CLT_PANELS_GROUP)
        for (int64_t t0 = 0; t0 < T; t0 += CLT_ROWS_GROUP)
            for (int64_t p = group; p < p1 && p < group + CLT_PANELS_GROUP; p++) {
                int rows = T - t0 < CLT_ROWS_GROUP ? (int)(T - t0) : CLT_ROWS_GROUP;
                _Alignas(64) float acc[CLT_ROWS_GROUP][CLT_PANEL];
                multiply(m->data + (size_t)p * m->panel_bytes, a, t0, rows, acc);
                store_rows(y + t0 * ldy + p * CLT_PANEL, ldy, acc, rows, m->rows - p * CLT_PANEL);
            }
}
