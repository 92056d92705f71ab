/* Matrix times rows of activations for AArch64 without dot products, quantised types: the bits of matmul_scalar.c.
 *
 * Products are summed in 16 bits as long as they provably fit: with activations of at most 127, eight groups of codes below
 * 32 or of six-bit values, four of six-bit codes, two of eight-bit values. Per group and register of weights, SMLAL and
 * SMLAL2 do eight products each; four 16-bit lanes are one output row, which SADDLP and ADDP bring together. Two rows of
 * activations share a register of weights, and one broadcast of four activations serves the panel's width. */
#include "kernels/matmul_neon.h"

enum { FEW = 4 };

/* Groups whose products fit into 16 bits. */
CLT_INLINE int groups_fit(clt_layout l) {
    return has_signed_codes(l) ? 2 : l.low_bits + l.high_bits > 5 ? 4 : 8;
}

CLT_INLINE int8x16_t broadcast4(const int8_t *q) {
    int32_t four;
    memcpy(&four, q, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

/* Widens the 16-bit sums of four output rows, two in each of p[0] and p[1], into pairs: the first ones, or on top of others.
 * After the last, pairs come together in the sum. */
CLT_INLINE void fold(bool first, bool last, const int16x8_t p[2], int32x4_t pairs[2], int32x4_t *sum) {
    CLT_UNROLL
    for (int i = 0; i < 2; i++)
        pairs[i] = first ? vpaddlq_s16(p[i]) : vpadalq_s16(pairs[i], p[i]);
    if (last)
        *sum = vaddq_s32(*sum, vpaddq_s32(pairs[0], pairs[1]));
}

CLT_INLINE void sums(const clt_neon_codes *c, int R, int W, int g0, int g1, const int8_t *q, int64_t q_stride,
                     int32x4_t (*sum)[CLT_NEON_W]) {
    const int fit = groups_fit(clt_layout_of(c->t));
    int16x8_t p[CLT_NEON_R][CLT_NEON_W][2];
    int32x4_t pairs[CLT_NEON_R][CLT_NEON_W][2];
    int8x16_t x[CLT_NEON_R];

    CLT_UNROLL
    for (int g = g0; g < g1; g++) {
        const bool first = (g - g0) % fit == 0, last = (g - g0) % fit == fit - 1 || g == g1 - 1;
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            x[r] = broadcast4(q + r * q_stride + 4 * g);
        CLT_UNROLL
        for (int j = 0; j < W; j++) {
            int8x16_t w = code_of(c, g, j);
            CLT_UNROLL
            for (int r = 0; r < R; r++) {
                int16x8_t *s = p[r][j];
                s[0] = first ? vmull_s8(vget_low_s8(w), vget_low_s8(x[r]))
                             : vmlal_s8(s[0], vget_low_s8(w), vget_low_s8(x[r]));
                s[1] = first ? vmull_high_s8(w, x[r]) : vmlal_high_s8(s[1], w, x[r]);
                if (last)
                    fold(g - g0 < fit, g == g1 - 1, s, pairs[r][j], &sum[r][j]);
            }
        }
    }
}

/* Types that need more registers than a whole panel leaves: sums of halves side by side, or of 16 and of 32 bits. */
CLT_INLINE int width_of_two(clt_type t) {
    return clt_layout_of(t).has_halves || groups_fit(clt_layout_of(t)) < CLT_GROUPS ? 2 : 4;
}

CLT_INLINE void few(clt_type t, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]) {
    int r = 0;
    for (; r + 2 <= rows; r += 2)
        multiply_packed(sums, t, 2, width_of_two(t), panel, a, t0 + r, acc + r);
    if (r < rows)
        multiply_packed(sums, t, 1, 4, panel, a, t0 + r, acc + r);
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, clt_neon_block *out) {
    unpack_stretch(unpack_block, t, panel, b0, n, out);
}

CLT_INLINE void tiles_of(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows,
                         float (*acc)[CLT_PANEL]) {
    int r = 0;
    for (; r + 2 <= rows; r += 2)
        multiply_unpacked(sums, t, 2, width_of_two(t), w, n, x, r, acc);
    if (r < rows)
        multiply_unpacked(sums, t, 1, 4, w, n, x, r, acc);
}

static void tiles(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows, float (*acc)[CLT_PANEL]) {
    switch (clt_neon_like(t)) {
    case CLT_Q2_K: tiles_of(CLT_Q2_K, w, n, x, rows, acc); break;
    case CLT_Q6_K: tiles_of(CLT_Q6_K, w, n, x, rows, acc); break;
    case CLT_Q4_1: tiles_of(CLT_Q4_1, w, n, x, rows, acc); break;
    case CLT_Q8_0: tiles_of(CLT_Q8_0, w, n, x, rows, acc); break;
    default: tiles_of(CLT_Q4_0, w, n, x, rows, acc);
    }
}

CLT_QUANTISED_TYPES(CLT_NEON_FEW_DEFINE)
CLT_QUANTISED_TYPES(CLT_NEON_UNPACK_DEFINE)

void clt_matmul_neon(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
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
