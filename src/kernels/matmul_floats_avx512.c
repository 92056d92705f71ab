/* Matrix times rows of activations for AVX-512, float types: one fma per element in ascending k, lane = output row.
 *
 * An fma takes four cycles and two start per cycle, so at least eight chains must run side by side: a tile is R rows of
 * activations times P panels (a register each). Widening weights of two bytes takes the units that the products need;
 * with many rows it is done once for all. */
#include <immintrin.h>
#include "kernels/internal.h"

enum { PANELS_MAX = 4, ROWS_MAX = 8, AHEAD_K = 32, WIDEN_AHEAD_K = 128, WIDEN_ROWS = 48, STRETCH = 512 };

CLT_INLINE __m512 load_weights(clt_type t, const uint8_t *panel, int64_t k) {
    int64_t i = k * CLT_PANEL;
    if (t == CLT_F32)
        return _mm512_loadu_ps(panel + 4 * i);
    __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)(panel + 2 * i));
    if (t == CLT_F16)
        return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* P panels that follow one another, and R rows: y = products over K numbers, or with `resume` y += them, each sum one chain.
 * rows: of the matrix, from the first of these panels on. */
CLT_INLINE void multiply_tile(clt_type t, int P, int R, const uint8_t *panel, size_t panel_bytes, int64_t rows,
                              const float *x, int64_t ldx, int64_t K, bool resume, float *y, int64_t ldy) {
    __m512 acc[PANELS_MAX][ROWS_MAX];
    __mmask16 whole[PANELS_MAX];

    CLT_UNROLL
    for (int j = 0; j < P; j++) {
        int64_t left = rows - j * CLT_PANEL;
        whole[j] = (__mmask16)(left >= CLT_PANEL ? 0xffff : (1 << left) - 1);
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            acc[j][r] = resume ? _mm512_maskz_loadu_ps(whole[j], y + r * ldy + j * CLT_PANEL) : _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < K; k++) {
        CLT_UNROLL
        for (int j = 0; j < P; j++) {
            const uint8_t *from = panel + (size_t)j * panel_bytes;
            __m512 w = load_weights(t, from, k);
            _mm_prefetch((const char *)from + (size_t)(k + AHEAD_K) * CLT_PANEL * (t == CLT_F32 ? 4 : 2), _MM_HINT_T0);
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                acc[j][r] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r * ldx + k]), acc[j][r]);
        }
    }
    CLT_UNROLL
    for (int j = 0; j < P; j++) {
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            _mm512_mask_storeu_ps(y + r * ldy + j * CLT_PANEL, whole[j], acc[j][r]);
    }
}

/* R rows from t0 on against all panels of the range, P at a time; the last panels one at a time. */
CLT_INLINE void multiply_rows(clt_type t, int P, int R, const clt_mat *m, const clt_acts *a, int64_t t0, float *y,
                              int64_t ldy, int64_t p0, int64_t p1) {
    const float *x = a->x + t0 * a->ldx;
    for (int64_t p = p0; p < p1;) {
        const uint8_t *panel = m->data + (size_t)p * m->panel_bytes;
        int64_t first = p * CLT_PANEL, rows = m->rows - first;
        float *to = y + t0 * ldy + first;
        if (p + P <= p1) {
            multiply_tile(t, P, R, panel, m->panel_bytes, rows, x, a->ldx, a->cols, false, to, ldy);
            p += P;
        } else {
            multiply_tile(t, 1, R, panel, m->panel_bytes, rows, x, a->ldx, a->cols, false, to, ldy);
            p++;
        }
    }
}

static void widen(clt_type t, const uint8_t *src, int64_t n, float *dst) {
    for (int64_t k = 0; k < n; k++) {
        if (k % 2 == 0)
            _mm_prefetch((const char *)src + (k + WIDEN_AHEAD_K) * CLT_PANEL * 2, _MM_HINT_T0);
        _mm512_store_ps(dst + k * CLT_PANEL, load_weights(t, src, k));
    }
}

/* Rows in eights, T of them, against panels p and p + 1, or p alone. Weights of two bytes are widened once for all rows, a
 * stretch of K at a time, into the second-level cache. */
CLT_INLINE void multiply_eights(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                                int64_t p, int panels) {
    _Alignas(64) float wide[2][STRETCH * CLT_PANEL];
    const int64_t step = t == CLT_F32 ? a->cols : STRETCH, first = p * CLT_PANEL, rows = m->rows - first;
    const uint8_t *from = m->data + (size_t)p * m->panel_bytes;
    size_t stride = t == CLT_F32 ? m->panel_bytes : sizeof wide[0];

    for (int64_t k = 0; k < a->cols; k += step) {
        int64_t K = a->cols - k < step ? a->cols - k : step;
        for (int i = 0; t != CLT_F32 && i < panels; i++)
            widen(t, from + (size_t)i * m->panel_bytes + (size_t)k * CLT_PANEL * 2, K, wide[i]);
        const uint8_t *panel = t == CLT_F32 ? from : (const uint8_t *)wide;
        for (int64_t t0 = 0; t0 < T; t0 += ROWS_MAX) {
            const float *x = a->x + t0 * a->ldx + k;
            float *to = y + t0 * ldy + first;
            if (panels == 2)
                multiply_tile(CLT_F32, 2, ROWS_MAX, panel, stride, rows, x, a->ldx, K, k > 0, to, ldy);
            else
                multiply_tile(CLT_F32, 1, ROWS_MAX, panel, stride, rows, x, a->ldx, K, k > 0, to, ldy);
        }
    }
}

/* Rows in eights against two panels after another, which stay in cache; then the last few rows, all together. */
CLT_INLINE void multiply_range(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                               int64_t p0, int64_t p1) {
    int64_t eights = T - T % ROWS_MAX;

    for (int64_t p = p0; p < p1 && eights; p += 2) {
        int64_t end = p + 2 < p1 ? p + 2 : p1;
        if (eights >= WIDEN_ROWS)
            multiply_eights(t, m, a, eights, y, ldy, p, (int)(end - p));
        for (int64_t t0 = 0; t0 < eights && eights < WIDEN_ROWS; t0 += ROWS_MAX)
            multiply_rows(t, 2, ROWS_MAX, m, a, t0, y, ldy, p, end);
    }
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
