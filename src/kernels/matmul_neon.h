/* What the quantised matmuls of the AArch64 levels share: how panels and activations are read, and what happens to the
 * integer sums of a block. What a level adds is the sums themselves (clt_neon_sums_fn) and the sizes of its tiles.
 *
 * A register holds four output rows (16 codes: four k of each row), so a panel is four registers wide; W of them, from
 * register j0 on, are worked on with R rows of activations. Few rows: codes are taken out of the panel in registers, each
 * time. Many rows: a stretch of blocks is unpacked once, to signed values, and meets all rows (matmul_frame_neon.c).
 *
 * Everything is written once for all types; `t` is a constant wherever these functions are inlined. */
#ifndef CLT_KERNELS_MATMUL_NEON_H
#define CLT_KERNELS_MATMUL_NEON_H
#include <arm_neon.h>
#include "kernels/internal.h"
#include "kernels/matmul.h"
#include "quant/run.h"

enum {
    CLT_NEON_BLOCKS = 8,      /* blocks in a stretch: one super-block of a K type, or eight small ones */
    CLT_NEON_ROWS = 64,       /* rows of activations whose stretch is in the first-level cache */
    CLT_NEON_PANELS = 8,      /* panels that these rows meet in turn */
    CLT_NEON_R = 4, CLT_NEON_W = 4, /* the largest tile */
    CLT_NEON_AHEAD_BYTES = 2048     /* how far ahead of its reads a stream of weights is prefetched */
};

/* One unpacked block. A level may lay the numbers out in its own way. */
typedef struct clt_neon_block {
    _Alignas(64) int8_t code[CLT_GROUPS][CLT_LINE]; /* values: offsets are taken off */
    float d[2 * CLT_PANEL];                         /* of the block, or of the super-block for types with halves */
    float min[2][2 * CLT_PANEL];                    /* what multiplies dx * S */
    int32_t scale[2][2 * CLT_PANEL];                /* types with halves */
} clt_neon_block;

/* The activations of a stretch, close together. A level may lay the numbers out in its own way. */
typedef struct clt_neon_acts {
    _Alignas(64) int8_t q[CLT_NEON_ROWS * CLT_NEON_BLOCKS * CLT_QBLOCK];
    float d[CLT_NEON_ROWS * CLT_NEON_BLOCKS];
    float scaled[CLT_NEON_ROWS * 2 * CLT_NEON_BLOCKS]; /* dx * S of blocks, or of halves; types with a minimum */
} clt_neon_acts;

/* ---- the frame (matmul_frame_neon.c) ---- */

/* acc[r] = the sixteen outputs of one panel for row t0 + r of a. */
typedef void clt_neon_few_fn(const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]);
typedef struct clt_neon_many {
    void (*gather)(clt_type t, const clt_acts *a, int64_t t0, int rows, int64_t b0, int n, clt_neon_acts *out);
    void (*unpack)(const uint8_t *panel, int64_t b0, int n, clt_neon_block *out);
    void (*tiles)(clt_type t, const clt_neon_block *w, int n, const clt_neon_acts *x, int rows, float (*acc)[CLT_PANEL]);
} clt_neon_many;
void clt_neon_matmul_few(clt_neon_few_fn *few, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                         int64_t p0, int64_t p1);
void clt_neon_matmul_many(const clt_neon_many *f, const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,
                          int64_t p0, int64_t p1);
/* Copies row by row: q [rows][256], d [rows][8], scaled [rows][16]. The gather of levels without a layout of their own. */
void clt_neon_gather(clt_type t, const clt_acts *a, int64_t t0, int rows, int64_t b0, int n, clt_neon_acts *out);

/* ---- codes ---- */

/* Where the codes of one block begin, moved on to register j0: packed ones, or those of a clt_neon_block (high unused). */
typedef struct clt_neon_codes {
    clt_type t;
    bool packed;
    const uint8_t *low, *high;
} clt_neon_codes;

CLT_INLINE bool has_signed_codes(clt_layout l) { return l.low_bits == 8 || l.has_table; }

/* Shifts take literals. */
CLT_INLINE uint8x16_t shifted_right(uint8x16_t v, int bits) {
    switch (bits) {
    case 1: return vshrq_n_u8(v, 1);
    case 2: return vshrq_n_u8(v, 2);
    case 3: return vshrq_n_u8(v, 3);
    case 4: return vshrq_n_u8(v, 4);
    case 5: return vshrq_n_u8(v, 5);
    case 6: return vshrq_n_u8(v, 6);
    default: return v;
    }
}

CLT_INLINE uint8x16_t shifted_left(uint8x16_t v, int bits) {
    switch (bits) {
    case 1: return vshlq_n_u8(v, 1);
    case 2: return vshlq_n_u8(v, 2);
    case 3: return vshlq_n_u8(v, 3);
    case 4: return vshlq_n_u8(v, 4);
    default: return v;
    }
}

/* v, with the high bits of its codes put in. */
CLT_INLINE uint8x16_t with_high_bits(clt_layout l, const uint8_t *high, int group, uint8x16_t v) {
    int per_line = 8 / l.high_bits, from = group % per_line * l.high_bits;
    uint8x16_t bits = vld1q_u8(high + group / per_line * CLT_LINE);
    bits = from > l.low_bits ? shifted_right(bits, from - l.low_bits) : shifted_left(bits, l.low_bits - from);
    return vbslq_u8(vdupq_n_u8((uint8_t)(((1 << l.high_bits) - 1) << l.low_bits)), bits, v);
}

/* Register j of a group: values if unpacked, or of a type with signed codes; else codes, all below 64. */
CLT_INLINE int8x16_t code_of(const clt_neon_codes *c, int group, int j) {
    const clt_layout l = clt_layout_of(c->t);
    if (!c->packed)
        return vld1q_s8((const int8_t *)c->low + CLT_LINE * group + 16 * j);

    int per_line = 8 / l.low_bits, from = group % per_line * l.low_bits;
    uint8x16_t v = vld1q_u8(c->low + group / per_line * CLT_LINE + 16 * j);
    if (l.low_bits == 8)
        return vreinterpretq_s8_u8(veorq_u8(v, vdupq_n_u8(0x80)));
    v = shifted_right(v, from);
    if (from + l.low_bits < 8)
        v = vandq_u8(v, vdupq_n_u8((uint8_t)((1 << l.low_bits) - 1)));
    if (l.high_bits)
        v = with_high_bits(l, c->high + 16 * j, group, v);
    return l.has_table ? vqtbl1q_s8(vld1q_s8(clt_iq4_values), v) : vreinterpretq_s8_u8(v);
}

/* ---- scales ---- */

typedef struct clt_neon_head { float32x4_t d[CLT_NEON_W], m[CLT_NEON_W]; } clt_neon_head; /* of a super-block */
typedef struct clt_neon_scales {
    float32x4_t d[CLT_NEON_W], min[2][CLT_NEON_W];
    int32x4_t scale[2][CLT_NEON_W];
} clt_neon_scales;

CLT_INLINE float32x4_t floats_of_halves(const uint8_t *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }

/* m has the sign with which it joins the sum. */
CLT_INLINE void load_head(clt_type t, int W, int j0, const uint8_t *head, clt_neon_head *out) {
    CLT_UNROLL
    for (int j = 0; j < W; j++) {
        out->d[j] = floats_of_halves(head + 8 * (j0 + j));
        if (!clt_layout_of(t).has_min)
            continue;
        out->m[j] = floats_of_halves(head + 32 + 8 * (j0 + j));
        if (clt_layout_of(t).scale_bytes)
            out->m[j] = vnegq_f32(out->m[j]);
    }
}

CLT_INLINE void widen_unsigned(uint8x8_t v, int32x4_t *out) {
    uint16x8_t wide = vmovl_u8(v);
    out[0] = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
    out[1] = vreinterpretq_s32_u32(vmovl_high_u16(wide));
}

CLT_INLINE void widen_signed(uint8x8_t v, int32x4_t *out) {
    int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(v));
    out[0] = vmovl_s16(vget_low_s16(wide));
    out[1] = vmovl_high_s16(wide);
}

/* Two registers of the scales of halves, and of their minima; `scales` already points at register j0. */
CLT_INLINE void half_scale_pair(clt_type t, const clt_neon_head *head, const uint8_t *scales, int j, clt_neon_scales *out) {
    CLT_UNROLL
    for (int h = 0; h < 2; h++) {
        uint8x8_t both = vld1_u8(scales + 16 * h + 4 * j);
        int32x4_t min[2];
        if (t != CLT_Q2_K) {
            widen_signed(both, out->scale[h] + j);
            continue;
        }
        widen_unsigned(vand_u8(both, vdup_n_u8(15)), out->scale[h] + j);
        widen_unsigned(vshr_n_u8(both, 4), min);
        out->min[h][j] = vmulq_f32(head->m[j], vcvtq_f32_s32(min[0]));
        out->min[h][j + 1] = vmulq_f32(head->m[j + 1], vcvtq_f32_s32(min[1]));
    }
    out->d[j] = head->d[j];
    out->d[j + 1] = head->d[j + 1];
}

/* Two registers of the scales of blocks, and of their minima. */
CLT_INLINE void scale_pair(clt_type t, const clt_neon_head *head, const uint8_t *scales, int j, clt_neon_scales *out) {
    const clt_layout l = clt_layout_of(t);
    int32x4_t scale[2], min[2];

    if (t == CLT_IQ4_XS) {
        widen_signed(vld1_u8(scales + 4 * j), scale);
    } else if (l.scale_bytes) {
        widen_unsigned(vld1_u8(scales + 4 * j), scale);
        widen_unsigned(vld1_u8(scales + 16 + 4 * j), min);
    }
    CLT_UNROLL
    for (int i = 0; i < 2; i++) {
        out->d[j + i] = l.scale_bytes ? vmulq_f32(head->d[j + i], vcvtq_f32_s32(scale[i])) : head->d[j + i];
        if (l.has_min)
            out->min[0][j + i] = l.scale_bytes ? vmulq_f32(head->m[j + i], vcvtq_f32_s32(min[i])) : head->m[j + i];
    }
}

CLT_INLINE void load_scales(clt_type t, int W, int j0, const clt_neon_head *head, const uint8_t *scales,
                            clt_neon_scales *out) {
    CLT_UNROLL
    for (int j = 0; j < W; j += 2) {
        if (clt_layout_of(t).has_halves)
            half_scale_pair(t, head, scales + 4 * j0, j, out);
        else
            scale_pair(t, head, scales + 4 * j0, j, out);
    }
}

/* ---- activations ---- */

/* R rows from some block on. Row r: q + r * q_stride, d + r * d_stride, scaled and start + r * 2 * CLT_NEON_BLOCKS. */
typedef struct clt_neon_rows {
    const int8_t *q;
    int64_t q_stride;
    const float *d;
    int64_t d_stride;
    const float *scaled;   /* dx * S */
    const int32_t *start;  /* -offset * S: where sums of codes start, so that they end as sums of values */
} clt_neon_rows;

/* dx * S and -offset * S of n blocks of one row, or of their halves for types with halves. */
CLT_INLINE void prepare_sums(clt_layout l, const float *d, const int16_t *sums, int n, float *scaled, int32_t *start) {
    float d_tail[CLT_NEON_BLOCKS] = {0};
    int16_t sums_tail[2 * CLT_NEON_BLOCKS] = {0};

    if (n < CLT_NEON_BLOCKS) {
        memcpy(d_tail, d, (size_t)n * sizeof *d);
        memcpy(sums_tail, sums, 2 * (size_t)n * sizeof *sums);
        d = d_tail;
        sums = sums_tail;
    }
    for (int i = 0; i < CLT_NEON_BLOCKS; i += 4) {
        int16x8_t s = vld1q_s16(sums + 2 * i);
        float32x4_t dx = vld1q_f32(d + i);
        int32x4_t S[2] = {vmovl_s16(vget_low_s16(s)), vmovl_high_s16(s)};
        float32x4_t factor[2] = {vzip1q_f32(dx, dx), vzip2q_f32(dx, dx)};
        if (!l.has_halves) {
            S[0] = vpaddlq_s16(s);
            factor[0] = dx;
        }
        for (int h = 0; h <= l.has_halves; h++) {
            int at = l.has_halves ? 2 * i + 4 * h : i;
            if (scaled)
                vst1q_f32(scaled + at, vmulq_f32(factor[h], vcvtq_f32_s32(S[h])));
            if (start)
                vst1q_s32(start + at, vmulq_n_s32(S[h], -l.offset));
        }
    }
}

/* ---- one block ---- */

/* Adds to sum[r][j] the products of groups [g0, g1) of a block, for R rows of activations, q those of its first group. */
typedef void clt_neon_sums_fn(const clt_neon_codes *c, int R, int W, int g0, int g1, const int8_t *q, int64_t q_stride,
                              int32x4_t (*sum)[CLT_NEON_W]);

/* Block i of a stretch: its integer sums, and what becomes of them in f[r][j]. */
CLT_INLINE void add_block(clt_neon_sums_fn *sums, int R, int W, const clt_neon_codes *c, const clt_neon_scales *w,
                          const clt_neon_rows *x, int i, float32x4_t (*f)[CLT_NEON_W]) {
    const clt_layout l = clt_layout_of(c->t);
    const bool has_start = c->packed && l.offset && !has_signed_codes(l);
    const int each = l.has_halves ? 2 : 1, stride = 2 * CLT_NEON_BLOCKS;
    int32x4_t sum[2][CLT_NEON_R][CLT_NEON_W];

    CLT_UNROLL
    for (int h = 0; h < each; h++) {
        CLT_UNROLL
        for (int n = 0; n < R * W; n++)
            sum[h][n / W][n % W] = vdupq_n_s32(has_start ? x->start[n / W * stride + each * i + h] : 0);
        sums(c, R, W, CLT_GROUPS / each * h, CLT_GROUPS / each * (h + 1), x->q + i * CLT_QBLOCK, x->q_stride, sum[h]);
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        float dx = x->d[r * x->d_stride + i];
        CLT_UNROLL
        for (int j = 0; j < W; j++) {
            int32x4_t total = sum[0][r][j];
            if (l.has_halves)
                total = vmlaq_s32(vmulq_s32(total, w->scale[0][j]), sum[1][r][j], w->scale[1][j]);
            f[r][j] = vfmaq_f32(f[r][j], vmulq_n_f32(w->d[j], dx), vcvtq_f32_s32(total));
            if (l.has_min)
                CLT_UNROLL
                for (int h = 0; h < each; h++)
                    f[r][j] = vfmaq_n_f32(f[r][j], w->min[h][j], x->scaled[r * stride + each * i + h]);
        }
    }
}

CLT_INLINE void load_sums(int R, int W, int j0, float (*acc)[CLT_PANEL], float32x4_t (*f)[CLT_NEON_W]) {
    CLT_UNROLL
    for (int n = 0; n < R * W; n++)
        f[n / W][n % W] = vld1q_f32(acc[n / W] + 4 * (j0 + n % W));
}

CLT_INLINE void store_sums(int R, int W, int j0, float32x4_t (*f)[CLT_NEON_W], float (*acc)[CLT_PANEL]) {
    CLT_UNROLL
    for (int n = 0; n < R * W; n++)
        vst1q_f32(acc[n / W] + 4 * (j0 + n % W), f[n / W][n % W]);
}

/* ---- few rows ---- */

/* Blocks [b0, b0 + n) of a packed panel. K types: b0 begins a super-block, n does not go beyond it. */
CLT_INLINE void add_packed(clt_neon_sums_fn *sums, clt_type t, int R, int W, int j0, const uint8_t *panel, int64_t b0, int n,
                           const clt_neon_rows *x, float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    const uint8_t *super = panel + b0 / l.runs * clt_layout_super(l), *at = super + clt_layout_head(l);
    float32x4_t f[CLT_NEON_R][CLT_NEON_W];
    clt_neon_head head;

    load_sums(R, W, j0, acc, f);
    if (l.runs > 1)
        load_head(t, W, j0, super, &head);
    for (int i = 0; i < n; i++) {
        const uint8_t *low = at + l.scale_bytes + 16 * j0;
        const clt_neon_codes codes = {t, true, low, low + clt_layout_low(l)};
        clt_neon_scales w;
        for (int line = 0; j0 == 0 && line < clt_layout_block(l); line += CLT_LINE)
            __builtin_prefetch(at + CLT_NEON_AHEAD_BYTES + line);
        if (l.runs == 1)
            load_head(t, W, j0, at - clt_layout_head(l), &head);
        load_scales(t, W, j0, &head, at, &w);
        add_block(sums, R, W, &codes, &w, x, i, f);
        at += l.runs == 1 ? clt_layout_super(l) : clt_layout_block(l);
    }
    store_sums(R, W, j0, f, acc);
}

/* All blocks of a panel for R rows from t0 on. */
CLT_INLINE void multiply_packed(clt_neon_sums_fn *sums, clt_type t, int R, int W, const uint8_t *panel, const clt_acts *a,
                                int64_t t0, float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    const bool has_start = l.offset && !has_signed_codes(l);
    int64_t blocks = clt_acts_blocks(a);
    float scaled[CLT_NEON_R][2 * CLT_NEON_BLOCKS];
    int32_t start[CLT_NEON_R][2 * CLT_NEON_BLOCKS];

    memset(acc, 0, (size_t)R * sizeof *acc);
    for (int64_t b0 = 0; b0 < blocks; b0 += CLT_NEON_BLOCKS) {
        int n = blocks - b0 < CLT_NEON_BLOCKS ? (int)(blocks - b0) : CLT_NEON_BLOCKS;
        int64_t at = t0 * blocks + b0;
        for (int r = 0; r < R && (l.has_min || has_start); r++)
            prepare_sums(l, a->d + at + r * blocks, a->sums + 2 * (at + r * blocks), n, l.has_min ? scaled[r] : NULL,
                         has_start ? start[r] : NULL);
        const clt_neon_rows x = {a->q + at * CLT_QBLOCK, blocks * CLT_QBLOCK, a->d + at, blocks, scaled[0], start[0]};
        for (int j0 = 0; j0 < CLT_NEON_W; j0 += W)
            add_packed(sums, t, R, W, j0, panel, b0, n, &x, acc);
    }
}

/* ---- many rows ---- */

CLT_INLINE void unpack_block(clt_type t, const clt_neon_head *head, const uint8_t *at, clt_neon_block *out) {
    const clt_layout l = clt_layout_of(t);
    const clt_neon_codes codes = {t, true, at + l.scale_bytes, at + l.scale_bytes + clt_layout_low(l)};
    const int8x16_t offset = vdupq_n_s8((int8_t)(has_signed_codes(l) ? 0 : l.offset));
    clt_neon_scales w;

    load_scales(t, CLT_NEON_W, 0, head, at, &w);
    CLT_UNROLL
    for (int j = 0; j < CLT_NEON_W; j++) {
        vst1q_f32(out->d + 4 * j, w.d[j]);
        CLT_UNROLL
        for (int h = 0; h <= l.has_halves; h++) {
            if (l.has_min)
                vst1q_f32(out->min[h] + 4 * j, w.min[h][j]);
            if (l.has_halves)
                vst1q_s32(out->scale[h] + 4 * j, w.scale[h][j]);
        }
        CLT_UNROLL
        for (int g = 0; g < CLT_GROUPS; g++)
            vst1q_s8(out->code[g] + 16 * j, vsubq_s8(code_of(&codes, g, j), offset));
    }
}

/* Hands the blocks [b0, b0 + n) of a panel to `one`, a constant. */
typedef void clt_neon_unpack_block_fn(clt_type t, const clt_neon_head *head, const uint8_t *at, clt_neon_block *out);
CLT_INLINE void unpack_stretch(clt_neon_unpack_block_fn *one, clt_type t, const uint8_t *panel, int64_t b0, int n,
                               clt_neon_block *out) {
    const clt_layout l = clt_layout_of(t);
    for (int i = 0; i < n; i++) {
        const uint8_t *super = panel + (b0 + i) / l.runs * clt_layout_super(l);
        const uint8_t *at = super + clt_layout_head(l) + (b0 + i) % l.runs * clt_layout_block(l);
        clt_neon_head head;
        for (int line = 0; line < clt_layout_block(l); line += CLT_LINE)
            __builtin_prefetch(at + CLT_NEON_AHEAD_BYTES + line);
        load_head(t, CLT_NEON_W, 0, super, &head);
        one(t, &head, at, out + i);
    }
}

/* n unpacked blocks, R rows, W registers from j0 on. */
CLT_INLINE void add_unpacked(clt_neon_sums_fn *sums, clt_type t, int R, int W, int j0, const clt_neon_block *w, int n,
                             const clt_neon_rows *x, float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    float32x4_t f[CLT_NEON_R][CLT_NEON_W];

    load_sums(R, W, j0, acc, f);
    for (int i = 0; i < n; i++, w++) {
        const clt_neon_codes codes = {t, false, (const uint8_t *)w->code[0] + 16 * j0, NULL};
        clt_neon_scales s;
        CLT_UNROLL
        for (int j = 0; j < W; j++) {
            s.d[j] = vld1q_f32(w->d + 4 * (j0 + j));
            CLT_UNROLL
            for (int h = 0; h <= l.has_halves; h++) {
                if (l.has_min)
                    s.min[h][j] = vld1q_f32(w->min[h] + 4 * (j0 + j));
                if (l.has_halves)
                    s.scale[h][j] = vld1q_s32(w->scale[h] + 4 * (j0 + j));
            }
        }
        add_block(sums, R, W, &codes, &s, x, i, f);
    }
    store_sums(R, W, j0, f, acc);
}

/* Rows [r, r + R) of what clt_neon_gather gathered. */
CLT_INLINE void multiply_unpacked(clt_neon_sums_fn *sums, clt_type t, int R, int W, const clt_neon_block *w, int n,
                                  const clt_neon_acts *a, int r, float (*acc)[CLT_PANEL]) {
    enum { K = CLT_NEON_BLOCKS * CLT_QBLOCK };
    const clt_neon_rows x = {a->q + r * K, K, a->d + r * CLT_NEON_BLOCKS, CLT_NEON_BLOCKS,
                             a->scaled + r * 2 * CLT_NEON_BLOCKS, NULL};
    for (int j0 = 0; j0 < CLT_NEON_W; j0 += W)
        add_unpacked(sums, t, R, W, j0, w, n, &x, acc + r);
}

/* For what happens to unpacked blocks, many types are alike; this is the one that stands for t. */
static inline clt_type clt_neon_like(clt_type t) {
    clt_layout l = clt_layout_of(t);
    if (has_signed_codes(l))
        return CLT_Q8_0;
    return l.has_halves ? (l.has_min ? CLT_Q2_K : CLT_Q6_K) : l.has_min ? CLT_Q4_1 : CLT_Q4_0;
}

/* The functions of one type, and their places in tables. */
#define CLT_NEON_FEW_DEFINE(type)                                                                                       \
    static void few_##type(const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]) {    \
        few(CLT_##type, panel, a, t0, rows, acc);                                                                       \
    }
#define CLT_NEON_UNPACK_DEFINE(type)                                                                                    \
    static void unpack_##type(const uint8_t *panel, int64_t b0, int n, clt_neon_block *out) {                           \
        unpack(CLT_##type, panel, b0, n, out);                                                                          \
    }
#define CLT_NEON_FEW_ENTRY(type) [CLT_##type] = few_##type,
#define CLT_NEON_UNPACK_ENTRY(type) [CLT_##type] = unpack_##type,

#endif
