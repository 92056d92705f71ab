/* The order in which panels and rows of activations meet: cache blocking only, it cannot change a bit of any output. */
#include "kernels/matmul.h"
#include <string.h>

void clt_matmul_panels(clt_panel_fn *multiply, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                       int64_t p0, int64_t p1)
{
    for (int64_t group = p0; group < p1; group += CLT_PANELS_GROUP)
        for (int64_t t0 = 0; t0 < T; t0 += CLT_ROWS_GROUP)
            for (int64_t p = group; p < p1 && p < group + CLT_PANELS_GROUP; p++) {
                int rows = T - t0 < CLT_ROWS_GROUP ? (int)(T - t0) : CLT_ROWS_GROUP;
                int64_t left = m->rows - p * CLT_PANEL, n = left < CLT_PANEL ? left : CLT_PANEL;
                _Alignas(64) float acc[CLT_ROWS_GROUP][CLT_PANEL];
                multiply(m->data + (size_t)p * m->panel_bytes, a, t0, rows, acc);
                for (int r = 0; r < rows; r++)
                    memcpy(y + (t0 + r) * ldy + p * CLT_PANEL, acc[r], (size_t)n * sizeof *y);
            }
}
