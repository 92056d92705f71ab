/* Matrix times rows of activations for AVX2, float types: one fma per element in ascending k, lane = output row.
 *
 * An fma takes four cycles and two start per cycle, so at least eight chains must run side by side: a tile is R rows of
 * activations times P panels (2·P registers of eight output rows). */
#include <immintrin.h>
#include <string.h>
#include "kernels/internal.h"

enum { PANELS_MAX = 4, ROWS_MAX = 4, AHEAD_K = 32 };

CLT_INLINE __m256 load_weights(clt_type t, const uint8_t *panel, int64_t k, int half) {
    int64_t i = k * CLT_PANEL + 8 * half;
    if (t == CLT_F32)
        return _mm256_loadu_ps((const float *)(const void *)panel + i);
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(panel + 2 * i));
    if (t == CLT_F16)
        return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* The outputs of P panels from p on for R rows from t0 on, whole, written to y. */
CLT_INLINE void multiply_tile(clt_type t, int P, int R, const clt_mat *m, const clt_acts *a, int64_t p, int64_t t0,
                              float *y, int64_t ldy) {
    const uint8_t *panel = m->data + (size_t)p * m->panel_bytes;
    const float *x = a->x + t0 * a->ldx;
    __m256 acc[PANELS_MAX][2][ROWS_MAX];

    CLT_UNROLL
    for (int i = 0; i < 2 * P * R; i++)
        acc[i / 2 / R][i / R % 2][i % R] = _mm256_setzero_ps();
    for (int64_t k = 0; k < a->cols; k++) {
        CLT_UNROLL
        for (int j = 0; j < 2 * P; j++) {
            const uint8_t *from = panel + (size_t)(j / 2) * m->panel_bytes;
            __m256 w = load_weights(t, from, k, j % 2);
            if (j % 2 == 0)
                _mm_prefetch((const char *)from + (size_t)(k + AHEAD_K) * CLT_PANEL * (t == CLT_F32 ? 4 : 2), _MM_HINT_T0);
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                acc[j / 2][j % 2][r] = _mm256_fmadd_ps(w, _mm256_broadcast_ss(x + r * a->ldx + k), acc[j / 2][j % 2][r]);
        }
    }
    CLT_UNROLL
    for (int i = 0; i < P * R; i++) {
        int j = i / R, r = i % R;
        float out[CLT_PANEL];
        int64_t left = m->rows - (p + j) * CLT_PANEL, n = left < CLT_PANEL ? left : CLT_PANEL;
        _mm256_storeu_ps(out, acc[j][0][r]);
        _mm256_storeu_ps(out + 8, acc[j][1][r]);
        memcpy(y + (t0 + r) * ldy + (p + j) * CLT_PANEL, out, (size_t)n * sizeof *y);
    }
}

/* R rows from t0 on against all panels of the range, P at a time; the last panels one at a time. */
CLT_INLINE void multiply_rows(clt_type t, int P, int R, const clt_mat *m, const clt_acts *a, int64_t t0, float *y,
                              int64_t ldy, int64_t p0, int64_t p1) {
    int64_t p = p0;
    for (; p + P <= p1; p += P)
        multiply_tile(t, P, R, m, a, p, t0, y, ldy);
    for (; P > 1 && p < p1; p++)
        multiply_tile(t, 1, R, m, a, p, t0, y, ldy);
}

/* Rows in fours against one panel after another, each of which stays in cache; then the last few rows, all together. */
CLT_INLINE void multiply_range(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                               int64_t p0, int64_t p1) {
    int64_t fours = T - T % ROWS_MAX;

    for (int64_t p = p0; p < p1; p++)
        for (int64_t t0 = 0; t0 < fours; t0 += ROWS_MAX)
            multiply_tile(t, 1, ROWS_MAX, m, a, p, t0, y, ldy);
    switch (T - fours) {
    case 3: multiply_rows(t, 2, 3, m, a, fours, y, ldy, p0, p1); break;
    case 2: multiply_rows(t, 2, 2, m, a, fours, y, ldy, p0, p1); break;
    case 1: multiply_rows(t, 4, 1, m, a, fours, y, ldy, p0, p1); break;
    default: break;
    }
}

void clt_matmul_floats_avx2(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (m->type == CLT_F32)
        multiply_range(CLT_F32, m, a, T, y, ldy, p0, p1);
    else if (m->type == CLT_F16)
        multiply_range(CLT_F16, m, a, T, y, ldy, p0, p1);
    else
        multiply_range(CLT_BF16, m, a, T, y, ldy, p0, p1);
}
