/* Blocks of packed weights in registers of eight lanes: takes codes and scales out of a panel, and multiplies one block with
 * rows of activations. For the quantised matmuls whose CPU level has AVX2 and no more; stores nothing, knows no loop over k.
 *
 * Everything is written once for all types: `t` and `l` are constants wherever these functions are inlined. Sixteen output
 * rows are two registers, called sides. */
#ifndef CLT_KERNELS_BLOCKS_AVX2_H
#define CLT_KERNELS_BLOCKS_AVX2_H
#include <immintrin.h>
#include "kernels/matmul.h"
#include "quant/run.h"

enum {
    SIDES = 2,
    ROWS_TILE = 4, /* rows of activations that meet a block together, at most */
    BLOCKS = 32    /* that are looked at together: a stretch */
};

/* ---- loads: eight halves, bytes, … that belong to one side ---- */

CLT_INLINE __m256 load_halves(const uint8_t *p, int side) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16 * side)));
}

CLT_INLINE __m256i load_unsigned(const uint8_t *p, int side) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8 * side)));
}

CLT_INLINE __m256i load_signed(const uint8_t *p, int side) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8 * side)));
}

CLT_INLINE __m256i broadcast32(const void *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}

/* ---- codes ---- */

CLT_INLINE bool has_signed_codes(clt_layout l) { return l.low_bits == 8 || l.has_table; }

CLT_INLINE __m256i high_bits_of(clt_layout l, const uint8_t *high, int group) {
    int per_line = 8 / l.high_bits, from = group % per_line * l.high_bits;
    __m256i v = _mm256_loadu_si256((const __m256i *)(high + group / per_line * CLT_LINE));
    v = from > l.low_bits ? _mm256_srli_epi16(v, from - l.low_bits) : _mm256_slli_epi16(v, l.low_bits - from);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)(((1 << l.high_bits) - 1) << l.low_bits)));
}

/* Group `group` of a packed block whose low bits start at `low`: codes without offset, or signed values. */
CLT_INLINE __m256i codes_of(clt_layout l, const uint8_t *low, int side, int group) {
    int per_line = 8 / l.low_bits;
    const uint8_t *at = low + 32 * side;
    __m256i v = _mm256_loadu_si256((const __m256i *)(at + group / per_line * CLT_LINE));

    if (l.low_bits == 8)
        return _mm256_xor_si256(v, _mm256_set1_epi8((char)0x80));
    v = _mm256_srli_epi16(v, group % per_line * l.low_bits);
    v = _mm256_and_si256(v, _mm256_set1_epi8((char)((1 << l.low_bits) - 1)));
    if (l.high_bits)
        v = _mm256_or_si256(v, high_bits_of(l, at + clt_layout_low(l), group));
    if (l.has_table)
        v = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)clt_iq4_values)), v);
    return v;
}

/* ---- scales ---- */

typedef struct scales {
    __m256 d[SIDES];            /* of the block, or of the super-block for types with halves */
    __m256 min[2][SIDES];       /* what multiplies dx * S; [half] */
    __m256i factor[2][SIDES];   /* types with halves: the scale twice, as 16-bit pairs; [half] */
    __m256i offset[SIDES];      /* types with halves: (offset * scale0, offset * scale1) as 16-bit pairs */
} scales;

/* What a block needs of its super-block. */
typedef struct head {
    __m256 d[SIDES], m[SIDES]; /* m negated where a block's minimum is subtracted */
} head;

CLT_INLINE head head_of(clt_type t, const uint8_t *super) {
    head h = {0};
    CLT_UNROLL
    for (int side = 0; side < SIDES; side++) {
        h.d[side] = load_halves(super, side);
        if (clt_layout_of(t).has_min)
            h.m[side] = load_halves(super + 32, side);
        if (clt_layout_of(t).has_min && clt_layout_of(t).scale_bytes)
            h.m[side] = _mm256_xor_ps(h.m[side], _mm256_set1_ps(-0.f));
    }
    return h;
}

CLT_INLINE __m256i twice16(__m256i v) {
    __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
    return _mm256_or_si256(low, _mm256_slli_epi32(low, 16));
}

CLT_INLINE void scales_of_halves(clt_type t, const head *h, const uint8_t *p, int side, scales *out) {
    __m256i s[2];

    CLT_UNROLL
    for (int half = 0; half < 2; half++) {
        if (t == CLT_Q2_K) {
            __m256i both = load_unsigned(p + 16 * half, side);
            out->min[half][side] = _mm256_mul_ps(h->m[side], _mm256_cvtepi32_ps(_mm256_srli_epi32(both, 4)));
            s[half] = _mm256_and_si256(both, _mm256_set1_epi32(15));
        } else {
            s[half] = load_signed(p + 16 * half, side);
        }
        out->factor[half][side] = twice16(s[half]);
    }
    __m256i pair = _mm256_blend_epi16(s[0], _mm256_slli_epi32(s[1], 16), 0xAA);
    out->offset[side] = _mm256_mullo_epi16(pair, _mm256_set1_epi16((short)clt_layout_of(t).offset));
    out->d[side] = h->d[side];
}

/* The scales of a block whose scale bytes start at p. */
CLT_INLINE void scales_of(clt_type t, const head *h, const uint8_t *p, scales *out) {
    CLT_UNROLL
    for (int side = 0; side < SIDES; side++) {
        __m256 d = h->d[side], m = h->m[side];
        if (clt_layout_of(t).has_halves) {
            scales_of_halves(t, h, p, side, out);
            continue;
        }
        if (t == CLT_Q4_K || t == CLT_Q5_K) {
            m = _mm256_mul_ps(m, _mm256_cvtepi32_ps(load_unsigned(p + 16, side)));
            d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(load_unsigned(p, side)));
        } else if (t == CLT_IQ4_XS) {
            d = _mm256_mul_ps(d, _mm256_cvtepi32_ps(load_signed(p, side)));
        }
        out->d[side] = d;
        out->min[0][side] = m;
    }
}

/* ---- products ---- */

/* R rows of activations over a stretch of blocks, and their sums so far in the registers f. */
typedef struct row_tile {
    const int8_t *q;       /* row r: q + r * blocks * CLT_QBLOCK */
    const float *d;        /* row r: d + r * blocks */
    const int16_t *sums;   /* row r: sums + 2 * r * blocks */
    int64_t blocks;        /* of a whole row */
    float scaled[ROWS_TILE][2 * BLOCKS]; /* types with a minimum: dx * S, of each half if they have scales */
} row_tile;

/* Rows from `row` on, from block b0 on. */
CLT_INLINE void row_tile_start(clt_layout l, int R, const clt_acts *a, int64_t row, int64_t b0, int n, row_tile *x) {
    int64_t blocks = clt_acts_blocks(a), at = row * blocks + b0;
    x->q = a->q + at * CLT_QBLOCK;
    x->d = a->d + at;
    x->sums = a->sums + 2 * at;
    x->blocks = blocks;
    for (int r = 0; l.has_min && r < R; r++)
        clt_scale_sums(l.has_halves, x->d + r * blocks, x->sums + 2 * r * blocks, n, x->scaled[r]);
}

/* Pairs of products that fit into 16 bits: a pair is at most 2·127·code. */
CLT_INLINE int pairs_that_fit(clt_layout l) {
    int bits = l.low_bits + l.high_bits, pairs = has_signed_codes(l) ? 1 : bits == 6 ? 2 : bits == 5 ? 4 : 8;
    return l.has_halves && pairs > 4 ? 4 : pairs;
}

/* Hides a sum from the compiler, which would otherwise regroup integer additions and run out of registers. */
CLT_INLINE __m256i in_order(__m256i v) {
    __asm__("" : "+x"(v));
    return v;
}

/* sum = the integer sums of one block, before offsets, of R rows whose activations of this block are at q[r]. The block's
 * codes are unpacked (CLT_GROUPS lines) or as in the panel (low bits, high bits). */
CLT_INLINE void sum_block(clt_layout l, int R, bool packed, const uint8_t *codes, const scales *s, const int8_t *const *q,
                          __m256i (*sum)[SIDES]) {
    const int fold = pairs_that_fit(l);
    __m256i pairs[ROWS_TILE][SIDES];

    CLT_UNROLL
    for (int g = 0; g < CLT_GROUPS; g++) {
        __m256i code[SIDES];
        CLT_UNROLL
        for (int side = 0; side < SIDES; side++)
            code[side] = packed ? codes_of(l, codes, side, g)
                                : _mm256_load_si256((const __m256i *)(codes + g * CLT_LINE + 32 * side));
        CLT_UNROLL
        for (int i = 0; i < R * SIDES; i++) {
            int r = i / SIDES, side = i % SIDES;
            __m256i x = broadcast32(q[r] + 4 * g), p;
            if (has_signed_codes(l))
                p = _mm256_maddubs_epi16(_mm256_abs_epi8(code[side]), _mm256_sign_epi8(x, code[side]));
            else
                p = _mm256_maddubs_epi16(code[side], x);
            pairs[r][side] = in_order(g % fold ? _mm256_add_epi16(pairs[r][side], p) : p);
            if (g % fold < fold - 1)
                continue;
            p = _mm256_madd_epi16(pairs[r][side], l.has_halves ? s->factor[g / 4][side] : _mm256_set1_epi16(1));
            sum[r][side] = in_order(g < fold ? p : _mm256_add_epi32(sum[r][side], p));
        }
    }
}

/* Adds block i of the stretch to R rows of sums f. */
CLT_INLINE void add_block(clt_layout l, int R, bool packed, const uint8_t *codes, const scales *s, const row_tile *x, int i,
                          __m256 (*f)[SIDES]) {
    const bool has_offset = l.offset != 0 && !has_signed_codes(l);
    const int8_t *q[ROWS_TILE];
    __m256i sum[ROWS_TILE][SIDES];

    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        q[r] = x->q + (r * x->blocks + i) * CLT_QBLOCK;
        __asm__("" : "+r"(q[r])); /* one register a row, instead of one for each group of it */
    }
    sum_block(l, R, packed, codes, s, q, sum);
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        __m256 dx = _mm256_broadcast_ss(x->d + r * x->blocks + i);
        __m256i sums = broadcast32(x->sums + 2 * (r * x->blocks + i));
        CLT_UNROLL
        for (int side = 0; side < SIDES; side++) {
            if (has_offset) {
                __m256i offset = l.has_halves ? s->offset[side] : _mm256_set1_epi16((short)l.offset);
                sum[r][side] = _mm256_sub_epi32(sum[r][side], _mm256_madd_epi16(sums, offset));
            }
            __m256 d = _mm256_mul_ps(s->d[side], dx);
            f[r][side] = _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(sum[r][side]), f[r][side]);
            for (int h = 0; l.has_min && h <= l.has_halves; h++) {
                __m256 xs = _mm256_broadcast_ss(&x->scaled[r][l.has_halves ? 2 * i + h : i]);
                f[r][side] = _mm256_fmadd_ps(s->min[h][side], xs, f[r][side]);
            }
        }
    }
}

#endif
