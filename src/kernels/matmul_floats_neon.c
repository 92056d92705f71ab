/* Matrix times rows of activations for AArch64, float types: one fma per element in ascending k, lane = output row.
 *
 * An fma takes four cycles and two start per cycle, so at least eight chains must run side by side. Few rows stream through
 * up to four panels at once. Many rows: K is cut into stretches whose activations and weights fit the first-level cache, and
 * tiles of eight rows by two registers take up the sums where the stretch before left them. */
#include <arm_neon.h>
#include <string.h>
#include "kernels/internal.h"

enum { K_STRETCH = 128, ROWS = 64, PANELS = 8, FEW = 4, R_MAX = 8, SUMS = 16, AHEAD_BYTES = 2048 };

/* Four output rows from register j on, number k. */
CLT_INLINE float32x4_t load_weights(clt_type t, const uint8_t *panel, int64_t k, int j) {
    int64_t i = k * CLT_PANEL + 4 * j;
    if (t == CLT_F32)
        return vreinterpretq_f32_u8(vld1q_u8(panel + 4 * i));
    uint8x8_t h = vld1_u8(panel + 2 * i);
    if (t == CLT_F16)
        return vcvt_f32_f16(vreinterpret_f16_u8(h));
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(h), 16));
}

/* Lanes are literals. */
CLT_INLINE float32x4_t fma_lane(float32x4_t sum, float32x4_t w, float32x4_t x, int lane) {
    switch (lane) {
    case 0: return vfmaq_laneq_f32(sum, w, x, 0);
    case 1: return vfmaq_laneq_f32(sum, w, x, 1);
    case 2: return vfmaq_laneq_f32(sum, w, x, 2);
    default: return vfmaq_laneq_f32(sum, w, x, 3);
    }
}

/* sum[r][n] over numbers [0, K), for R rows of x and registers [j0, j0 + W) of each of P panels: n = W * panel + j. */
CLT_INLINE void add_products(clt_type t, int P, int W, int R, int j0, const uint8_t *panel, size_t panel_bytes,
                             const float *x, int64_t ldx, int64_t K, float32x4_t (*sum)[SUMS]) {
    const int64_t bytes = t == CLT_F32 ? 4 : 2;
    int64_t k = 0;

    for (; k + 4 <= K; k += 4) {
        float32x4_t four[R_MAX];
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            four[r] = vld1q_f32(x + r * ldx + k);
        CLT_UNROLL
        for (int p = 0; p < P; p++)
            for (int line = 0; line < 4 * CLT_PANEL * bytes; line += 64)
                __builtin_prefetch(panel + (size_t)p * panel_bytes + k * CLT_PANEL * bytes + line + AHEAD_BYTES);
        CLT_UNROLL
        for (int lane = 0; lane < 4; lane++)
            CLT_UNROLL
            for (int n = 0; n < P * W; n++) {
                float32x4_t w = load_weights(t, panel + (size_t)(n / W) * panel_bytes, k + lane, j0 + n % W);
                CLT_UNROLL
                for (int r = 0; r < R; r++)
                    sum[r][n] = fma_lane(sum[r][n], w, four[r], lane);
            }
    }
    for (; k < K; k++)
        CLT_UNROLL
        for (int n = 0; n < P * W; n++) {
            float32x4_t w = load_weights(t, panel + (size_t)(n / W) * panel_bytes, k, j0 + n % W);
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                sum[r][n] = vfmaq_n_f32(sum[r][n], w, x[r * ldx + k]);
        }
}

static void store_panel(const clt_mat *m, int64_t p, float (*acc)[CLT_PANEL], int rows, float *y, int64_t ldy) {
    int64_t left = m->rows - p * CLT_PANEL, n = left < CLT_PANEL ? left : CLT_PANEL;
    for (int r = 0; r < rows; r++)
        memcpy(y + r * ldy + p * CLT_PANEL, acc[r], (size_t)n * sizeof *y);
}

/* ---- few rows ---- */

/* P panels from p on, R rows, whole. */
CLT_INLINE void multiply_whole(clt_type t, int P, int R, const clt_mat *m, const clt_acts *a, int64_t p, float *y,
                               int64_t ldy) {
    float32x4_t sum[FEW][SUMS];

    CLT_UNROLL
    for (int r = 0; r < R; r++)
        CLT_UNROLL
        for (int n = 0; n < P * CLT_PANEL / 4; n++)
            sum[r][n] = vdupq_n_f32(0);
    add_products(t, P, CLT_PANEL / 4, R, 0, m->data + (size_t)p * m->panel_bytes, m->panel_bytes, a->x, a->ldx, a->cols,
                 sum);
    CLT_UNROLL
    for (int i = 0; i < P; i++) {
        float acc[FEW][CLT_PANEL];
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            CLT_UNROLL
            for (int j = 0; j < CLT_PANEL / 4; j++)
                vst1q_f32(acc[r] + 4 * j, sum[r][CLT_PANEL / 4 * i + j]);
        store_panel(m, p + i, acc, R, y, ldy);
    }
}

CLT_INLINE void multiply_few(clt_type t, int P, int R, const clt_mat *m, const clt_acts *a, float *y, int64_t ldy,
                             int64_t p0, int64_t p1) {
    int64_t p = p0;
    for (; p + P <= p1; p += P)
        multiply_whole(t, P, R, m, a, p, y, ldy);
    for (; p < p1; p++)
        multiply_whole(t, 1, R, m, a, p, y, ldy);
}

/* ---- many rows ---- */

/* Rows [0, R) of a stretch of activations, K_STRETCH apart. */
CLT_INLINE void multiply_tile(clt_type t, int W, int R, const uint8_t *panel, const float *x, int64_t K,
                              float (*acc)[CLT_PANEL]) {
    for (int j0 = 0; j0 < CLT_PANEL / 4; j0 += W) {
        float32x4_t sum[R_MAX][SUMS];
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            CLT_UNROLL
            for (int j = 0; j < W; j++)
                sum[r][j] = vld1q_f32(acc[r] + 4 * (j0 + j));
        add_products(t, 1, W, R, j0, panel, 0, x, K_STRETCH, K, sum);
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            CLT_UNROLL
            for (int j = 0; j < W; j++)
                vst1q_f32(acc[r] + 4 * (j0 + j), sum[r][j]);
    }
}

CLT_INLINE void multiply_stretch(clt_type t, const uint8_t *panel, const float *x, int rows, int64_t K,
                                 float (*acc)[CLT_PANEL]) {
    int r = 0;
    for (; r + 8 <= rows; r += 8)
        multiply_tile(t, 2, 8, panel, x + r * K_STRETCH, K, acc + r);
    if (rows & 4) {
        multiply_tile(t, 4, 4, panel, x + r * K_STRETCH, K, acc + r);
        r += 4;
    }
    if (rows & 2) {
        multiply_tile(t, 4, 2, panel, x + r * K_STRETCH, K, acc + r);
        r += 2;
    }
    if (rows & 1)
        multiply_tile(t, 4, 1, panel, x + r * K_STRETCH, K, acc + r);
}

/* A group of rows against a group of panels. */
CLT_INLINE void multiply_group(clt_type t, const clt_mat *m, const clt_acts *a, int64_t t0, int rows, int64_t p, int panels,
                               float *y, int64_t ldy) {
    const size_t k_bytes = CLT_PANEL * (t == CLT_F32 ? 4 : 2);
    float acc[PANELS][ROWS][CLT_PANEL], x[ROWS * K_STRETCH];

    for (int i = 0; i < panels; i++)
        memset(acc[i], 0, (size_t)rows * sizeof acc[i][0]);
    for (int64_t k = 0; k < a->cols; k += K_STRETCH) {
        int64_t K = a->cols - k < K_STRETCH ? a->cols - k : K_STRETCH;
        for (int r = 0; r < rows; r++)
            memcpy(x + r * K_STRETCH, a->x + (t0 + r) * a->ldx + k, (size_t)K * sizeof *x);
        for (int i = 0; i < panels; i++)
            multiply_stretch(t, m->data + (size_t)(p + i) * m->panel_bytes + (size_t)k * k_bytes, x, rows, K, acc[i]);
    }
    for (int i = 0; i < panels; i++)
        store_panel(m, p + i, acc[i], rows, y + t0 * ldy, ldy);
}

CLT_INLINE void multiply_range(clt_type t, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0,
                               int64_t p1) {
    switch (T) {
    case 0: return;
    case 1: multiply_few(t, 4, 1, m, a, y, ldy, p0, p1); return;
    case 2: multiply_few(t, 2, 2, m, a, y, ldy, p0, p1); return;
    case 3: multiply_few(t, 1, 3, m, a, y, ldy, p0, p1); return;
    case 4: multiply_few(t, 1, 4, m, a, y, ldy, p0, p1); return;
    default: break;
    }
    for (int64_t p = p0; p < p1; p += PANELS) {
        int panels = p1 - p < PANELS ? (int)(p1 - p) : PANELS;
        for (int64_t t0 = 0; t0 < T; t0 += ROWS)
            multiply_group(t, m, a, t0, T - t0 < ROWS ? (int)(T - t0) : ROWS, p, panels, y, ldy);
    }
}

void clt_matmul_floats_neon(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (m->type == CLT_F32)
        multiply_range(CLT_F32, m, a, T, y, ldy, p0, p1);
    else if (m->type == CLT_F16)
        multiply_range(CLT_F16, m, a, T, y, ldy, p0, p1);
    else
        multiply_range(CLT_BF16, m, a, T, y, ldy, p0, p1);
}
