/* Matrix times rows of activations for AVX2, quantised types: the bits of matmul_scalar.c.
 *
 * A panel is cut into stretches of BLOCKS blocks. A stretch is unpacked once, to plain 8-bit codes and float scales that
 * stay in the first-level cache, and then meets all rows of activations, ROWS_TILE at a time with eight output rows in a
 * register. Products are summed in 16 bits by vpmaddubsw as long as they provably fit: a pair is at most 2·127·code, so
 * eight pairs of 4-bit codes, four of 5-bit and two of 6-bit ones stay below 2^15. Signed 8-bit values (Q8_0, IQ4) multiply
 * as |w| · (x with the sign of w), one pair at a time.
 *
 * Everything is written once for all types; `t` is a constant wherever these functions are inlined. */
#include <immintrin.h>
#include <string.h>
#include "kernels/matmul.h"
#include "quant/run.h"

enum { BLOCKS = CLT_STRETCH, ROWS_TILE = 4 };

typedef struct block {
    uint8_t code[CLT_GROUPS][CLT_LINE];
    float d[CLT_PANEL];            /* of the block, or of the super-block for types with halves */
    float min[2][CLT_PANEL];       /* what multiplies dx * S */
    int32_t scale[2][CLT_PANEL];   /* types with halves: the scale twice, as 16-bit pairs */
    int32_t offset[CLT_PANEL];     /* types with halves: (offset * scale0, offset * scale1) as 16-bit pairs */
} block;

typedef struct stretch {
    _Alignas(64) block block[BLOCKS];
} stretch;

/* Eight halves, bytes, … of register r (output rows 8r … 8r+7). */
CLT_INLINE __m256 load_halves(const uint8_t *p, int r) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16 * r)));
}

CLT_INLINE __m256i load_unsigned(const uint8_t *p, int r) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8 * r)));
}

CLT_INLINE __m256i load_signed(const uint8_t *p, int r) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8 * r)));
}

CLT_INLINE __m256i broadcast32(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

CLT_INLINE bool is_signed(clt_layout l) { return l.low_bits == 8 || l.has_table; }

/* Pairs of products that fit into 16 bits. */
CLT_INLINE int pairs_fit(clt_layout l) {
    int bits = l.low_bits + l.high_bits;
    return is_signed(l) ? 1 : bits == 6 ? 2 : bits == 5 ? 4 : 8;
}

CLT_INLINE __m256i high_bits_of(clt_layout l, const uint8_t *high, int group) {
    int per_line = 8 / l.high_bits, from = group % per_line * l.high_bits;
    __m256i v = _mm256_loadu_si256((const __m256i *)(high + group / per_line * CLT_LINE));
    v = from > l.low_bits ? _mm256_srli_epi16(v, from - l.low_bits) : _mm256_slli_epi16(v, l.low_bits - from);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)(((1 << l.high_bits) - 1) << l.low_bits)));
}

CLT_INLINE __m256i codes_of(clt_layout l, const uint8_t *low, const uint8_t *high, int group) {
    int per_line = 8 / l.low_bits;
    __m256i v = _mm256_loadu_si256((const __m256i *)(low + group / per_line * CLT_LINE));

    if (l.low_bits == 8)
        return _mm256_xor_si256(v, _mm256_set1_epi8((char)0x80));
    v = _mm256_srli_epi16(v, group % per_line * l.low_bits);
    v = _mm256_and_si256(v, _mm256_set1_epi8((char)((1 << l.low_bits) - 1)));
    if (l.high_bits)
        v = _mm256_or_si256(v, high_bits_of(l, high, group));
    if (l.has_table)
        v = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)clt_iq4_values)), v);
    return v;
}

/* Types with halves: integer scales for vpmaddwd. */
CLT_INLINE void unpack_half_scales(clt_type t, const uint8_t *head, const uint8_t *scales, int r, block *out) {
    const clt_layout l = clt_layout_of(t);
    __m256i s[2];

    CLT_UNROLL
    for (int h = 0; h < 2; h++) {
        if (t == CLT_Q2_K) {
            __m256i both = load_unsigned(scales + 16 * h, r);
            __m256 min = _mm256_cvtepi32_ps(_mm256_srli_epi32(both, 4));
            min = _mm256_mul_ps(load_halves(head + 32, r), min);
            _mm256_store_ps(out->min[h] + 8 * r, _mm256_xor_ps(min, _mm256_set1_ps(-0.f)));
            s[h] = _mm256_and_si256(both, _mm256_set1_epi32(15));
        } else {
            s[h] = load_signed(scales + 16 * h, r);
        }
        __m256i low = _mm256_and_si256(s[h], _mm256_set1_epi32(0xffff));
        _mm256_store_si256((__m256i *)(out->scale[h] + 8 * r), _mm256_or_si256(low, _mm256_slli_epi32(low, 16)));
    }
    __m256i pair = _mm256_blend_epi16(s[0], _mm256_slli_epi32(s[1], 16), 0xAA);
    pair = _mm256_mullo_epi16(pair, _mm256_set1_epi16((short)l.offset));
    _mm256_store_si256((__m256i *)(out->offset + 8 * r), pair);
    _mm256_store_ps(out->d + 8 * r, load_halves(head, r));
}

CLT_INLINE void unpack_scales(clt_type t, const uint8_t *head, const uint8_t *scales, int r, block *out) {
    __m256 d = load_halves(head, r);

    if (t == CLT_Q4_K || t == CLT_Q5_K) {
        __m256 min = _mm256_mul_ps(load_halves(head + 32, r), _mm256_cvtepi32_ps(load_unsigned(scales + 16, r)));
        _mm256_store_ps(out->min[0] + 8 * r, _mm256_xor_ps(min, _mm256_set1_ps(-0.f)));
        d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(load_unsigned(scales, r)));
    } else if (t == CLT_IQ4_XS) {
        d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(load_signed(scales, r)));
    } else if (clt_layout_of(t).has_min) {
        _mm256_store_ps(out->min[0] + 8 * r, load_halves(head + 32, r));
    }
    _mm256_store_ps(out->d + 8 * r, d);
}

CLT_INLINE void unpack_block(clt_type t, const uint8_t *head, const uint8_t *scales, block *out) {
    const clt_layout l = clt_layout_of(t);
    const uint8_t *low = scales + l.scale_bytes, *high = low + clt_layout_low(l);

    CLT_UNROLL
    for (int r = 0; r < 2; r++) {
        if (l.has_halves)
            unpack_half_scales(t, head, scales, r, out);
        else
            unpack_scales(t, head, scales, r, out);
        CLT_UNROLL
        for (int g = 0; g < CLT_GROUPS; g++)
            _mm256_store_si256((__m256i *)(out->code[g] + 32 * r), codes_of(l, low + 32 * r, high + 32 * r, g));
    }
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, stretch *out) {
    const clt_layout l = clt_layout_of(t);

    for (int i = 0; i < n; i++) {
        const uint8_t *head = panel + (b0 + i) / l.runs * clt_layout_super(l);
        const uint8_t *scales = head + clt_layout_head(l) + (b0 + i) % l.runs * clt_layout_block(l);
        for (int line = 0; line < clt_layout_block(l); line += CLT_LINE)
            _mm_prefetch((const char *)scales + CLT_AHEAD_BYTES + line, _MM_HINT_T0);
        unpack_block(t, head, scales, &out->block[i]);
    }
}

/* The rows of activations of one tile, from block b0 on. */
typedef struct tile {
    const int8_t *q;       /* row r: q + r * q_stride */
    const float *d;        /* row r: d + r * d_stride */
    const int16_t *sums;   /* row r: sums + r * 2 * d_stride */
    int64_t q_stride, d_stride;
} tile;

/* Hides a sum from the compiler, which would otherwise regroup integer additions and run out of registers. */
CLT_INLINE __m256i in_order(__m256i v) {
    __asm__("" : "+x"(v));
    return v;
}

/* sum[r] = the integer sum of block w, before offsets, for R rows of activations and the eight output rows of `half`. */
CLT_INLINE void sum_block(clt_layout l, int R, const block *w, int half, const int8_t *q, int64_t q_stride, __m256i *sum) {
    const int fit = pairs_fit(l), fold = l.has_halves && fit > 4 ? 4 : fit;
    __m256i pairs[ROWS_TILE];

    CLT_UNROLL
    for (int g = 0; g < CLT_GROUPS; g++) {
        __m256i code = _mm256_load_si256((const __m256i *)(w->code[g] + 32 * half));
        __m256i magnitude = is_signed(l) ? _mm256_abs_epi8(code) : code, factor = _mm256_set1_epi16(1);
        if (l.has_halves)
            factor = _mm256_load_si256((const __m256i *)(w->scale[g / 4] + 8 * half));
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            __m256i x = broadcast32(q + r * q_stride + 4 * g);
            __m256i p = _mm256_maddubs_epi16(magnitude, is_signed(l) ? _mm256_sign_epi8(x, code) : x);
            pairs[r] = in_order(g % fold ? _mm256_add_epi16(pairs[r], p) : p);
            if (g % fold == fold - 1) {
                p = _mm256_madd_epi16(pairs[r], factor);
                sum[r] = in_order(g < fold ? p : _mm256_add_epi32(sum[r], p));
            }
        }
    }
}

/* Adds n blocks to R rows of outputs, eight columns of acc from 8 * half on. */
CLT_INLINE void multiply_tile(clt_type t, int R, const stretch *s, int n, const tile *x, int half, float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    const bool has_offset = l.offset != 0 && !is_signed(l);
    float scaled[ROWS_TILE][2 * BLOCKS];
    __m256 f[ROWS_TILE];

    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        f[r] = _mm256_loadu_ps(acc[r] + 8 * half);
        if (l.has_min)
            clt_scale_sums(l.has_halves, x->d + r * x->d_stride, x->sums + 2 * r * x->d_stride, n, scaled[r]);
    }
    for (int i = 0; i < n; i++) {
        const block *w = &s->block[i];
        __m256 d = _mm256_load_ps(w->d + 8 * half);
        __m256i offset = l.has_halves ? _mm256_load_si256((const __m256i *)(w->offset + 8 * half))
                                      : _mm256_set1_epi16((short)l.offset);
        __m256i sum[ROWS_TILE];
        sum_block(l, R, w, half, x->q + i * CLT_QBLOCK, x->q_stride, sum);
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            if (has_offset) {
                __m256i sums = broadcast32(x->sums + 2 * (r * x->d_stride + i));
                sum[r] = _mm256_sub_epi32(sum[r], _mm256_madd_epi16(sums, offset));
            }
            __m256 dx = _mm256_broadcast_ss(x->d + r * x->d_stride + i);
            f[r] = _mm256_fmadd_ps(_mm256_mul_ps(d, dx), _mm256_cvtepi32_ps(sum[r]), f[r]);
            for (int h = 0; l.has_min && h <= l.has_halves; h++) {
                __m256 xs = _mm256_broadcast_ss(&scaled[r][l.has_halves ? 2 * i + h : i]);
                f[r] = _mm256_fmadd_ps(_mm256_load_ps(w->min[h] + 8 * half), xs, f[r]);
            }
        }
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++)
        _mm256_storeu_ps(acc[r] + 8 * half, f[r]);
}

CLT_INLINE void multiply_rows(clt_type t, int R, const stretch *s, int n, const clt_acts *a, int64_t row, int64_t b0,
                              float (*acc)[CLT_PANEL]) {
    int64_t blocks = clt_acts_blocks(a), at = row * blocks + b0;
    const tile x = {a->q + at * CLT_QBLOCK, a->d + at, a->sums + 2 * at, blocks * CLT_QBLOCK, blocks};
    multiply_tile(t, R, s, n, &x, 0, acc);
    multiply_tile(t, R, s, n, &x, 1, acc);
}

/* acc[r] = sixteen outputs of one panel for row t0 + r; rows <= CLT_ROWS_GROUP. */
CLT_INLINE void multiply_panel(clt_type t, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows,
                               float (*acc)[CLT_PANEL]) {
    int64_t blocks = clt_acts_blocks(a);
    stretch s;

    memset(acc, 0, (size_t)rows * sizeof *acc);
    for (int64_t b0 = 0; b0 < blocks; b0 += BLOCKS) {
        int n = blocks - b0 < BLOCKS ? (int)(blocks - b0) : BLOCKS, r = 0;
        unpack(t, panel, b0, n, &s);
        for (; r + 4 <= rows; r += 4)
            multiply_rows(t, 4, &s, n, a, t0 + r, b0, acc + r);
        if (rows & 2)
            multiply_rows(t, 2, &s, n, a, t0 + r, b0, acc + r);
        if (rows & 1)
            multiply_rows(t, 1, &s, n, a, t0 + rows - 1, b0, acc + rows - 1);
    }
}

CLT_QUANTISED_TYPES(CLT_PANEL_DEFINE)
static clt_panel_fn *const multiply[] = {CLT_QUANTISED_TYPES(CLT_PANEL_ENTRY)};

void clt_matmul_avx2(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (clt_mat_wants_q8(m->type))
        clt_matmul_panels(multiply[m->type], m, a, T, y, ldy, p0, p1);
    else
        clt_matmul_floats_avx2(m, a, T, y, ldy, p0, p1);
}
