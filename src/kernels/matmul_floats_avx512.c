/* Matrix times rows of activations for AVX-512, float types: one fma per element in ascending k, lane = output row.
 *
 * An fma takes four cycles and two start per cycle, so at least eight chains must run side by side: a tile is R rows of
 * activations times P panels (a register each). */
#include <immintrin.h>
#include "kernels/internal.h"

enum { PANELS_MAX = 4, ROWS_MAX = 8, AHEAD_K = 32 };

CLT_INLINE __m512 load_weights(clt_type t, const uint8_t *panel, int64_t k) {
    int64_t i = k * CLT_PANEL;
    if (t == CLT_F32)
        return _mm512_loadu_ps(panel + 4 * i);
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(panel + 2 * i));
    if (t == CLT_F16)
        return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* The outputs of P panels from p on for R rows from t0 on, whole, written to y. */
CLT_INLINE void multiply_tile(clt_type t, int P, int R, const clt_mat *m, const clt_acts *a, int64_t p, int64_t t0,
                              float *y, int64_t ldy) {
    const uint8_t *panel = m->data + (size_t)p * m->panel_bytes;
    const float *x = a->x + t0 * a->ldx;
    __m512 acc[PANELS_MAX][ROWS_MAX];

    CLT_UNROLL
    for (int j = 0; j < P; j++) {
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            acc[j][r] = _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < a->cols; k++) {
        CLT_UNROLL
        for (int j = 0; j < P; j++) {
            const uint8_t *from = panel + (size_t)j * m->panel_bytes;
            __m512 w = load_weights(t, from, k);
            _mm_prefetch((const char *)from + (size_t)(k + AHEAD_K) * CLT_PANEL * (t == CLT_F32 ? 4 : 2), _MM_HINT_T0);
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                acc[j][r] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r * a->ldx + k]), acc[j][r]);
        }
    }
    CLT_UNROLL
    for (int j = 0; j < P; j++) {
        int64_t left = m->rows - (p + j) * CLT_PANEL;
        __mmask16 whole = (__mmask16)(left >= CLT_PANEL ? 0xffff : (1 << left) - 1);
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            _mm512_mask_storeu_ps(y + (t0 + r) * ldy + (p + j) * CLT_PANEL, whole, acc[j][r]);
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

/* Rows in eights against two panels after another, which stay in cache; then the last few rows, all together. */
CLT_INLINE void multiply_range(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                               int64_t p0, int64_t p1) {
    int64_t eights = T - T % ROWS_MAX;

    for (int64_t p = p0; p < p1; p += 2)
        for (int64_t t0 = 0; t0 < eights; t0 += ROWS_MAX)
            multiply_rows(t, 2, ROWS_MAX, m, a, t0, y, ldy, p, p + 2 < p1 ? p + 2 : p1);
    switch (T - eights) {
    case 7: multiply_rows(t, 2, 7, m, a, eights, y, ldy, p0, p1); break;
    case 6: multiply_rows(t, 2, 6, m, a, eights, y, ldy, p0, p1); break;
    case 5: multiply_rows(t, 2, 5, m, a, eights, y, ldy, p0, p1); break;
    case 4: multiply_rows(t, 2, 4, m, a, eights, y, ldy, p0, p1); break;
    case 3: multiply_rows(t, 4, 3, m, a, eights, y, ldy, p0, p1); break;
    case 2: multiply_rows(t, 4, 2, m, a, eights, y, ldy, p0, p1); break;
    case 1: multiply_rows(t, 4, 1, m, a, eights, y, ldy, p0, p1); break;
    default: break;
    }
}

void clt_matmul_floats_avx512(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (m->type == CLT_F32)
        multiply_range(CLT_F32, m, a, T, y, ldy, p0, p1);
    else if (m->type == CLT_F16)
        multiply_range(CLT_F16, m, a, T, y, ldy, p0, p1);
    else
        multiply_range(CLT_BF16, m, a, T, y, ldy, p0, p1);
}
