/* Matrix times rows of activations for AVX2, float types: one fma per element in ascending k, lane = output row.
 *
 * An fma takes four cycles and two start per cycle, so at least eight chains must run side by side: a tile is R rows of
 * activations times P panels (2·P registers of eight output rows). Widening weights of two bytes takes the units that the
 * products need; with many rows it is done once for all. */
#include <immintrin.h>
#include <string.h>
#include "kernels/internal.h"

enum { PANELS_MAX = 4, ROWS_MAX = 6, AHEAD_K = 32, WIDEN_AHEAD_K = 128, WIDEN_ROWS = 48, STRETCH = 256 };

CLT_INLINE __m256 load_weights(clt_type t, const uint8_t *panel, int64_t k, int half) {
    int64_t i = k * CLT_PANEL + 8 * half;
    if (t == CLT_F32)
        return _mm256_loadu_ps((const float *)(const void *)panel + i);
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(panel + 2 * i));
    if (t == CLT_F16)
        return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

/* Outputs of a panel in y, as far as the matrix has `rows` of them. */
CLT_INLINE void load_sums(const float *y, int64_t rows, __m256 *low, __m256 *high) {
    float some[CLT_PANEL] = {0};
    if (rows < CLT_PANEL)
        y = memcpy(some, y, (size_t)rows * sizeof *y);
    *low = _mm256_loadu_ps(y);
    *high = _mm256_loadu_ps(y + 8);
}

CLT_INLINE void store_sums(__m256 low, __m256 high, float *y, int64_t rows) {
    float some[CLT_PANEL], *to = rows < CLT_PANEL ? some : y;
    _mm256_storeu_ps(to, low);
    _mm256_storeu_ps(to + 8, high);
    if (rows < CLT_PANEL)
        memcpy(y, some, (size_t)rows * sizeof *y);
}

/* P panels that follow one another, and R rows: y = products over K numbers, or with `resume` y += them, each sum one chain.
 * rows: of the matrix, from the first of these panels on. */
CLT_INLINE void multiply_tile(clt_type t, int P, int R, const uint8_t *panel, size_t panel_bytes, int64_t rows,
                              const float *x, int64_t ldx, int64_t K, bool resume, float *y, int64_t ldy) {
    __m256 acc[PANELS_MAX][2][ROWS_MAX];

    CLT_UNROLL
    for (int i = 0; i < P * R; i++) {
        int j = i / R, r = i % R;
        acc[j][0][r] = acc[j][1][r] = _mm256_setzero_ps();
        if (resume)
            load_sums(y + r * ldy + j * CLT_PANEL, rows - j * CLT_PANEL, &acc[j][0][r], &acc[j][1][r]);
    }
    for (int64_t k = 0; k < K; k++) {
        CLT_UNROLL
        for (int j = 0; j < P; j++) {
            const uint8_t *from = panel + (size_t)j * panel_bytes;
            const __m256 low = load_weights(t, from, k, 0), high = load_weights(t, from, k, 1);
            _mm_prefetch((const char *)from + (size_t)(k + AHEAD_K) * CLT_PANEL * (t == CLT_F32 ? 4 : 2), _MM_HINT_T0);
            CLT_UNROLL
            for (int r = 0; r < R; r++) {
                const __m256 value = _mm256_broadcast_ss(x + r * ldx + k);
                acc[j][0][r] = _mm256_fmadd_ps(low, value, acc[j][0][r]);
                acc[j][1][r] = _mm256_fmadd_ps(high, value, acc[j][1][r]);
            }
        }
    }
    CLT_UNROLL
    for (int i = 0; i < P * R; i++) {
        int j = i / R, r = i % R;
        store_sums(acc[j][0][r], acc[j][1][r], y + r * ldy + j * CLT_PANEL, rows - j * CLT_PANEL);
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
        _mm256_store_ps(dst + k * CLT_PANEL, load_weights(t, src, k, 0));
        _mm256_store_ps(dst + k * CLT_PANEL + 8, load_weights(t, src, k, 1));
    }
}

/* Rows in sixes, T of them, against panel p. Weights of two bytes are widened once for all rows, a stretch of K at a time,
 * into the first-level cache. */
CLT_INLINE void multiply_sixes(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                               int64_t p) {
    _Alignas(64) float wide[STRETCH * CLT_PANEL];
    const int64_t step = t == CLT_F32 || T < WIDEN_ROWS ? a->cols : STRETCH, first = p * CLT_PANEL;
    const uint8_t *from = m->data + (size_t)p * m->panel_bytes;

    for (int64_t k = 0; k < a->cols; k += step) {
        int64_t K = a->cols - k < step ? a->cols - k : step;
        if (t != CLT_F32 && T >= WIDEN_ROWS)
            widen(t, from + (size_t)k * CLT_PANEL * 2, K, wide);
        for (int64_t t0 = 0; t0 < T; t0 += ROWS_MAX) {
            const float *x = a->x + t0 * a->ldx + k;
            float *to = y + t0 * ldy + first;
            if (t == CLT_F32 || T < WIDEN_ROWS)
                multiply_tile(t, 1, ROWS_MAX, from, 0, m->rows - first, x, a->ldx, K, false, to, ldy);
            else
                multiply_tile(CLT_F32, 1, ROWS_MAX, (const uint8_t *)wide, 0, m->rows - first, x, a->ldx, K, k > 0, to, ldy);
        }
    }
}

/* Rows in sixes against one panel after another, each of which stays in cache; then the last few rows, all together. */
CLT_INLINE void multiply_range(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                               int64_t p0, int64_t p1) {
    int64_t sixes = T - T % ROWS_MAX;

    for (int64_t p = p0; p < p1 && sixes; p++)
        multiply_sixes(t, m, a, sixes, y, ldy, p);
    switch (T - sixes) {
    case 5: multiply_rows(t, 1, 5, m, a, sixes, y, ldy, p0, p1); break;
    case 4: multiply_rows(t, 1, 4, m, a, sixes, y, ldy, p0, p1); break;
    case 3: multiply_rows(t, 2, 3, m, a, sixes, y, ldy, p0, p1); break;
    case 2: multiply_rows(t, 2, 2, m, a, sixes, y, ldy, p0, p1); break;
    case 1: multiply_rows(t, 4, 1, m, a, sixes, y, ldy, p0, p1); break;
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
