/* The frame around the quantised matmuls of the x86 levels: which rows meet which panels, in which order. */
#ifndef CLT_KERNELS_MATMUL_H
#define CLT_KERNELS_MATMUL_H
#include "kernels/internal.h"

enum {
    CLT_ROWS_GROUP = 64,   /* rows of activations that pass while a panel is unpacked */
    CLT_PANELS_GROUP = 8,  /* panels that pass while a group of rows is in the second-level cache */
    CLT_STRETCH = 16,      /* blocks of a panel that are unpacked at once, into the first-level cache */
    CLT_AHEAD_BYTES = 2048 /* how far ahead of its reads a stream of weights is prefetched */
};

/* acc[r] = the sixteen outputs of one panel for row t0 + r of a; rows <= CLT_ROWS_GROUP. */
typedef void clt_panel_fn(const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]);

/* All quantised types, for tables and definitions. */
#define CLT_QUANTISED_TYPES(X)                                                                                        \
    X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(IQ4_NL) X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_XS)
#define CLT_PANEL_DEFINE(type)                                                                                        \
    static void multiply_##type(const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]) \
    {                                                                                                                 \
        multiply_panel(CLT_##type, panel, a, t0, rows, acc);                                                          \
    }
#define CLT_PANEL_ENTRY(type) [CLT_##type] = multiply_##type,

/* Runs `multiply` over the panels [p0, p1) and T rows, and writes y as clt_kernels.matmul says. */
void clt_matmul_panels(clt_panel_fn *multiply, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                       int64_t p0, int64_t p1);

/* out = dx * S of n blocks (n pairs, of each half, if `halves`). */
CLT_INLINE void clt_scale_sums(bool halves, const float *d, const int16_t *sums, int n, float *out) {
    for (int i = 0; i < n; i++) {
        if (halves) {
            out[2 * i] = d[i] * (float)sums[2 * i];
            out[2 * i + 1] = d[i] * (float)sums[2 * i + 1];
        } else {
            out[i] = d[i] * (float)(sums[2 * i] + sums[2 * i + 1]);
        }
    }
}

#endif
