/* Matrix times rows of activations for AArch64 with 8-bit matrix products, quantised types: the bits of matmul_scalar.c.
 *
 * SMMLA multiplies two rows of weights by two rows of activations, eight k of each: 32 products, twice those of SDOT. So
 * unpacked codes are zipped to two output rows of eight k a register, activations to two rows of eight k, and everything
 * that meets their sums (w0x0 w0x1 w1x0 w1x1) is laid out to match: scales of weights twice each, those of activations in
 * pairs. Per block of 32 and 4 x 8 outputs: 32 SMMLA, 24 loads, 24 instructions that turn sums into floats. Few rows do not
 * repay the zipping and stay with dot products. */
#include "kernels/matmul_neon.h"

enum {
    FEW = 8,
    PAIR_Q = 2 * CLT_NEON_BLOCKS * CLT_QBLOCK, /* of clt_neon_acts, for each pair of rows: codes, */
    PAIR_D = 2 * CLT_NEON_BLOCKS,              /* scales, */
    PAIR_S = 4 * CLT_NEON_BLOCKS               /* scaled sums */
};

/* ---- layouts ---- */

static void zip_floats(const float *a, const float *b, int n, float *out) {
    for (int i = 0; i < n; i += 4) {
        vst1q_f32(out + 2 * i, vzip1q_f32(vld1q_f32(a + i), vld1q_f32(b + i)));
        vst1q_f32(out + 2 * i + 4, vzip2q_f32(vld1q_f32(a + i), vld1q_f32(b + i)));
    }
}

/* Two rows of activations, their numbers taking turns: codes by eight, scales and sums one by one. */
static void gather_pair(clt_layout l, const clt_acts *a, const int64_t at[2], int n, int8_t *q, float *d, float *scaled) {
    float dx[2][CLT_NEON_BLOCKS] = {{0}}, sums[2][2 * CLT_NEON_BLOCKS];
    for (int r = 0; r < 2; r++) {
        memcpy(dx[r], a->d + at[r], (size_t)n * sizeof *d);
        if (l.has_min)
            prepare_sums(l, a->d + at[r], a->sums + 2 * at[r], n, sums[r], NULL);
    }
    zip_floats(dx[0], dx[1], CLT_NEON_BLOCKS, d);
    if (l.has_min)
        zip_floats(sums[0], sums[1], l.has_halves ? 2 * CLT_NEON_BLOCKS : CLT_NEON_BLOCKS, scaled);
    for (int i = 0; i < 2 * n; i++) {
        int64x2_t first = vreinterpretq_s64_s8(vld1q_s8(a->q + at[0] * CLT_QBLOCK + 16 * i));
        int64x2_t second = vreinterpretq_s64_s8(vld1q_s8(a->q + at[1] * CLT_QBLOCK + 16 * i));
        vst1q_s8(q + 32 * i, vreinterpretq_s8_s64(vzip1q_s64(first, second)));
        vst1q_s8(q + 32 * i + 16, vreinterpretq_s8_s64(vzip2q_s64(first, second)));
    }
}

/* A last row without a partner stands in for it. */
static void gather(clt_type t, const clt_acts *a, int64_t t0, int rows, int64_t b0, int n, clt_neon_acts *out) {
    int64_t blocks = clt_acts_blocks(a);
    for (int r = 0; r < rows; r += 2) {
        int64_t at[2] = {(t0 + r) * blocks + b0, (t0 + (r + 1 < rows ? r + 1 : r)) * blocks + b0};
        gather_pair(clt_layout_of(t), a, at, n, out->q + r / 2 * PAIR_Q, out->d + r / 2 * PAIR_D,
                    out->scaled + r / 2 * PAIR_S);
    }
}

CLT_INLINE void store_twice(float32x4_t v, float *out) {
    vst1q_f32(out, vzip1q_f32(v, v));
    vst1q_f32(out + 4, vzip2q_f32(v, v));
}

/* Groups 2g and 2g + 1 become two registers for each one of the panel: rows 4j, 4j + 1 and rows 4j + 2, 4j + 3. */
CLT_INLINE void unpack_block_zipped(clt_type t, const clt_neon_head *head, const uint8_t *at, clt_neon_block *out) {
    const clt_layout l = clt_layout_of(t);
    const clt_neon_codes codes = {t, true, at + l.scale_bytes, at + l.scale_bytes + clt_layout_low(l)};
    const int8x16_t offset = vdupq_n_s8((int8_t)(has_signed_codes(l) ? 0 : l.offset));
    clt_neon_scales w;

    load_scales(t, CLT_NEON_W, 0, head, at, &w);
    CLT_UNROLL
    for (int j = 0; j < CLT_NEON_W; j++) {
        store_twice(w.d[j], out->d + 8 * j);
        CLT_UNROLL
        for (int h = 0; h <= l.has_halves; h++) {
            if (l.has_min)
                store_twice(w.min[h][j], out->min[h] + 8 * j);
            if (l.has_halves) {
                vst1q_s32(out->scale[h] + 8 * j, vzip1q_s32(w.scale[h][j], w.scale[h][j]));
                vst1q_s32(out->scale[h] + 8 * j + 4, vzip2q_s32(w.scale[h][j], w.scale[h][j]));
            }
        }
        CLT_UNROLL
        for (int g = 0; g < CLT_GROUPS; g += 2) {
            int32x4_t even = vreinterpretq_s32_s8(vsubq_s8(code_of(&codes, g, j), offset));
            int32x4_t odd = vreinterpretq_s32_s8(vsubq_s8(code_of(&codes, g + 1, j), offset));
            int8_t *to = out->code[0] + 2 * CLT_LINE * (g / 2) + 32 * j;
            vst1q_s8(to, vreinterpretq_s8_s32(vzip1q_s32(even, odd)));
            vst1q_s8(to + 16, vreinterpretq_s8_s32(vzip2q_s32(even, odd)));
        }
    }
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, clt_neon_block *out) {
    unpack_stretch(unpack_block_zipped, t, panel, b0, n, out);
}

/* ---- tiles: P pairs of rows times eight outputs, which are W registers ---- */

enum { W = 4, P_MAX = 2 };

/* Adds to sum[p][i] the products of eights [e0, e1) of k. */
CLT_INLINE void add_eights(int P, int e0, int e1, const int8_t *code, const int8_t *q, int32x4_t (*sum)[W]) {
    CLT_UNROLL
    for (int e = e0; e < e1; e++) {
        int8x16_t x[P_MAX];
        CLT_UNROLL
        for (int p = 0; p < P; p++)
            x[p] = vld1q_s8(q + p * PAIR_Q + 16 * e);
        CLT_UNROLL
        for (int i = 0; i < W; i++) {
            int8x16_t w = vld1q_s8(code + 2 * CLT_LINE * e + 16 * i);
            CLT_UNROLL
            for (int p = 0; p < P; p++)
                sum[p][i] = vmmlaq_s32(sum[p][i], w, x[p]);
        }
    }
}

CLT_INLINE float32x4_t broadcast_pair(const float *p) {
    return vreinterpretq_f32_f64(vdupq_lane_f64(vreinterpret_f64_f32(vld1_f32(p)), 0));
}

/* Block i of a stretch; `half` says which eight of the panel's outputs. */
CLT_INLINE void add_zipped(clt_layout l, int P, int half, const clt_neon_block *w, int i, const int8_t *q, const float *d,
                           const float *scaled, float32x4_t (*f)[W]) {
    const int each = l.has_halves ? 2 : 1, from = 4 * W * half;
    int32x4_t sum[2][P_MAX][W];

    CLT_UNROLL
    for (int h = 0; h < each; h++) {
        CLT_UNROLL
        for (int n = 0; n < P * W; n++)
            sum[h][n / W][n % W] = vdupq_n_s32(0);
        add_eights(P, 4 / each * h, 4 / each * (h + 1), w->code[0] + 16 * W * half, q + i * 2 * CLT_QBLOCK, sum[h]);
    }
    CLT_UNROLL
    for (int n = 0; n < P * W; n++) {
        const int p = n / W, j = n % W;
        int32x4_t total = sum[0][p][j];
        if (l.has_halves) {
            total = vmulq_s32(total, vld1q_s32(w->scale[0] + from + 4 * j));
            total = vmlaq_s32(total, sum[1][p][j], vld1q_s32(w->scale[1] + from + 4 * j));
        }
        float32x4_t dx = vmulq_f32(vld1q_f32(w->d + from + 4 * j), broadcast_pair(d + p * PAIR_D + 2 * i));
        f[p][j] = vfmaq_f32(f[p][j], dx, vcvtq_f32_s32(total));
        if (l.has_min)
            CLT_UNROLL
            for (int h = 0; h < each; h++)
                f[p][j] = vfmaq_f32(f[p][j], vld1q_f32(w->min[h] + from + 4 * j),
                                    broadcast_pair(scaled + p * PAIR_S + 2 * (each * i + h)));
    }
}

/* Rows [r, r + 2 P) of acc, r even, from their own order to pairs and back. */
CLT_INLINE void multiply_zipped(clt_type t, int P, int half, const clt_neon_block *w, int n, const clt_neon_acts *x, int r,
                                float (*acc)[CLT_PANEL]) {
    const int8_t *q = x->q + r / 2 * PAIR_Q;
    const float *d = x->d + r / 2 * PAIR_D, *scaled = x->scaled + r / 2 * PAIR_S;
    float32x4_t f[P_MAX][W];

    CLT_UNROLL
    for (int i = 0; i < P * W; i += 2) {
        const float *at = acc[r + i / W * 2] + 8 * half + 2 * (i % W);
        float32x4_t even = vld1q_f32(at), odd = vld1q_f32(at + CLT_PANEL);
        f[i / W][i % W] = vzip1q_f32(even, odd);
        f[i / W][i % W + 1] = vzip2q_f32(even, odd);
    }
    for (int i = 0; i < n; i++)
        add_zipped(clt_layout_of(t), P, half, w + i, i, q, d, scaled, f);
    CLT_UNROLL
    for (int i = 0; i < P * W; i += 2) {
        float *at = acc[r + i / W * 2] + 8 * half + 2 * (i % W);
        vst1q_f32(at, vuzp1q_f32(f[i / W][i % W], f[i / W][i % W + 1]));
        vst1q_f32(at + CLT_PANEL, vuzp2q_f32(f[i / W][i % W], f[i / W][i % W + 1]));
    }
}

CLT_INLINE void tiles_of(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows,
                         float (*acc)[CLT_PANEL]) {
    for (int half = 0; half < 2; half++) {
        int r = 0;
        for (; r + 3 <= rows; r += 4)
            multiply_zipped(t, 2, half, w, n, x, r, acc);
        if (r < rows)
            multiply_zipped(t, 1, half, w, n, x, r, acc);
    }
}

static void tiles(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows, float (*acc)[CLT_PANEL]) {
    switch (clt_neon_like(t)) {
    case CLT_Q2_K: tiles_of(CLT_Q2_K, w, n, x, rows, acc); break;
    case CLT_Q6_K: tiles_of(CLT_Q6_K, w, n, x, rows, acc); break;
    case CLT_Q4_1: tiles_of(CLT_Q4_1, w, n, x, rows, acc); break;
    default: tiles_of(CLT_Q4_0, w, n, x, rows, acc);
    }
}

CLT_QUANTISED_TYPES(CLT_NEON_UNPACK_DEFINE)

void clt_matmul_i8mm(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    static void (*const unpack_of[])(const uint8_t *, int64_t, int, clt_neon_block *) = {
        CLT_QUANTISED_TYPES(CLT_NEON_UNPACK_ENTRY)};

    if (T <= FEW || !clt_mat_wants_q8(m->type))
        clt_matmul_dotprod(m, a, T, y, ldy, p0, p1);
    else
        clt_neon_matmul_many(&(clt_neon_many){gather, unpack_of[m->type], tiles}, m, a, T, y, ldy, p0, p1);
}
