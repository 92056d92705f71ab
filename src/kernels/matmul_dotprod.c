/* Matrix times rows of activations for AArch64 with dot products, quantised types: the bits of matmul_scalar.c.
 *
 * SDOT adds to each of four lanes, which are output rows, four products of a register of weights with one 32-bit lane of
 * activations, exactly. Per block of 32 and 4 x 8 outputs: 64 SDOT, 24 loads, 24 instructions that turn sums into floats.
 * Few rows (matmul_neon.h) are as many as make unpacking in registers, over and over, cheaper than unpacking to memory. */
#include "kernels/matmul_neon.h"

enum { FEW = 8 };

/* Lanes are literals. */
CLT_INLINE int32x4_t dot_lane(int32x4_t sum, int8x16_t w, int8x16_t x, int lane) {
    switch (lane) {
    case 0: return vdotq_laneq_s32(sum, w, x, 0);
    case 1: return vdotq_laneq_s32(sum, w, x, 1);
    case 2: return vdotq_laneq_s32(sum, w, x, 2);
    default: return vdotq_laneq_s32(sum, w, x, 3);
    }
}

CLT_INLINE void sums(const clt_neon_codes *c, int R, int W, int g0, int g1, const int8_t *q, int64_t q_stride,
                     int32x4_t (*sum)[CLT_NEON_W]) {
    int8x16_t x[CLT_NEON_R];

    CLT_UNROLL
    for (int g = g0; g < g1; g++) {
        if (g % 4 == 0)
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                x[r] = vld1q_s8(q + r * q_stride + 4 * g);
        CLT_UNROLL
        for (int j = 0; j < W; j++) {
            int8x16_t w = code_of(c, g, j);
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                sum[r][j] = dot_lane(sum[r][j], w, x[r], g % 4);
        }
    }
}

/* One row meets the whole panel, three or four its halves in turn: what 32 registers hold. */
CLT_INLINE void few(clt_type t, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]) {
    const int W2 = clt_layout_of(t).has_halves ? 2 : 4;
    int r = 0;
    for (; r + 4 <= rows; r += 4)
        multiply_packed(sums, t, 4, 2, panel, a, t0 + r, acc + r);
    switch (rows - r) {
    case 3: multiply_packed(sums, t, 3, 2, panel, a, t0 + r, acc + r); break;
    case 2: multiply_packed(sums, t, 2, W2, panel, a, t0 + r, acc + r); break;
    case 1: multiply_packed(sums, t, 1, 4, panel, a, t0 + r, acc + r); break;
    default: break;
    }
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, clt_neon_block *out) {
    unpack_stretch(unpack_block, t, panel, b0, n, out);
}

CLT_INLINE void tiles_of(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows,
                         float (*acc)[CLT_PANEL]) {
    int r = 0;
    for (; r + 4 <= rows; r += 4)
        multiply_unpacked(sums, t, 4, 2, w, n, x, r, acc);
    if (rows & 2)
        multiply_unpacked(sums, t, 2, 4, w, n, x, r, acc);
    if (rows & 1)
        multiply_unpacked(sums, t, 1, 4, w, n, x, rows - 1, acc);
}

static void tiles(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows, float (*acc)[CLT_PANEL]) {
    switch (clt_neon_like(t)) {
    case CLT_Q2_K: tiles_of(CLT_Q2_K, w, n, x, rows, acc); break;
    case CLT_Q6_K: tiles_of(CLT_Q6_K, w, n, x, rows, acc); break;
    case CLT_Q4_1: tiles_of(CLT_Q4_1, w, n, x, rows, acc); break;
    default: tiles_of(CLT_Q4_0, w, n, x, rows, acc);
    }
}

CLT_QUANTISED_TYPES(CLT_NEON_FEW_DEFINE)
CLT_QUANTISED_TYPES(CLT_NEON_UNPACK_DEFINE)

void clt_matmul_dotprod(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    static clt_neon_few_fn *const few_of[] = {CLT_QUANTISED_TYPES(CLT_NEON_FEW_ENTRY)};
    static void (*const unpack_of[])(const uint8_t *, int64_t, int, clt_neon_block *) = {
        CLT_QUANTISED_TYPES(CLT_NEON_UNPACK_ENTRY)};

    if (!clt_mat_wants_q8(m->type))
        clt_matmul_floats_neon(m, a, T, y, ldy, p0, p1);
    else if (T <= FEW)
        clt_neon_matmul_few(few_of[m->type], m, a, T, y, ldy, p0, p1);
    else
        clt_neon_matmul_many(&(clt_neon_many){clt_neon_gather, unpack_of[m->type], tiles}, m, a, T, y, ldy, p0, p1);
}
