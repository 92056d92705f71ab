/* Matrix times rows of activations for AVX-512 with VNNI, quantised types: the bits of matmul_scalar.c.
 *
 * A register holds the sixteen output rows of a panel; vpdpbusd adds four products to each lane, exactly, in 32 bits. As in
 * matmul_avx2.c, a stretch of blocks is unpacked once and then meets all rows of activations. Codes stay unsigned: an
 * accumulator starts at -offset * S instead of zero. Integers below 2^24 are exact floats, so the scales of halves multiply
 * as floats, which is cheaper here than 32-bit integer multiplication.
 *
 * Everything is written once for all types; `t` is a constant wherever these functions are inlined. */
#include <immintrin.h>
#include <string.h>
#include "kernels/matmul.h"
#include "quant/run.h"

enum { BLOCKS = CLT_STRETCH, ROWS_TILE = 8, TABLE_OFFSET = 128 };

typedef struct block {
    uint8_t code[CLT_GROUPS][CLT_LINE];
    float d[CLT_PANEL];            /* of the block, or of the super-block for types with halves */
    float min[2][CLT_PANEL];       /* what multiplies dx * S */
    float scale[2][CLT_PANEL];     /* types with halves */
} block;

typedef struct stretch {
    _Alignas(64) block block[BLOCKS];
} stretch;

/* What the unpacked, unsigned code exceeds the value by. */
CLT_INLINE int unsigned_offset(clt_layout l) { return l.has_table ? TABLE_OFFSET : l.offset; }

CLT_INLINE __m512 load_halves(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

CLT_INLINE __m512 load_unsigned(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

CLT_INLINE __m512 load_signed(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

CLT_INLINE __m512 negated(__m512 v) {
    return _mm512_xor_ps(v, _mm512_set1_ps(-0.f));
}

CLT_INLINE __m512i high_bits_of(clt_layout l, const uint8_t *high, int group) {
    int per_line = 8 / l.high_bits, from = group % per_line * l.high_bits;
    __m512i v = _mm512_loadu_si512(high + group / per_line * CLT_LINE);
    v = from > l.low_bits ? _mm512_srli_epi32(v, (unsigned)(from - l.low_bits))
                          : _mm512_slli_epi32(v, (unsigned)(l.low_bits - from));
    return _mm512_and_si512(v, _mm512_set1_epi8((char)(((1 << l.high_bits) - 1) << l.low_bits)));
}

CLT_INLINE __m512i codes_of(clt_layout l, const uint8_t *low, const uint8_t *high, int group) {
    int per_line = 8 / l.low_bits;
    __m512i v = _mm512_loadu_si512(low + group / per_line * CLT_LINE);

    if (l.low_bits == 8)
        return v;
    v = _mm512_srli_epi32(v, (unsigned)(group % per_line * l.low_bits));
    v = _mm512_and_si512(v, _mm512_set1_epi8((char)((1 << l.low_bits) - 1)));
    if (l.high_bits)
        v = _mm512_or_si512(v, high_bits_of(l, high, group));
    if (l.has_table) {
        __m128i table = _mm_xor_si128(_mm_loadu_si128((const __m128i *)clt_iq4_values), _mm_set1_epi8((char)TABLE_OFFSET));
        v = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), v);
    }
    return v;
}

CLT_INLINE void unpack_scales(clt_type t, const uint8_t *head, const uint8_t *scales, block *out) {
    __m512 d = load_halves(head);

    if (t == CLT_Q2_K) {
        const __m128i low = _mm_set1_epi8(15);
        __m512 m = negated(load_halves(head + 32));
        for (int h = 0; h < 2; h++) {
            __m128i both = _mm_loadu_si128((const __m128i *)(scales + 16 * h));
            __m128i min = _mm_and_si128(_mm_srli_epi16(both, 4), low);
            _mm512_store_ps(out->scale[h], _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_and_si128(both, low))));
            _mm512_store_ps(out->min[h], _mm512_mul_ps(m, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(min))));
        }
    } else if (t == CLT_Q3_K || t == CLT_Q6_K) {
        _mm512_store_ps(out->scale[0], load_signed(scales));
        _mm512_store_ps(out->scale[1], load_signed(scales + 16));
    } else if (t == CLT_Q4_K || t == CLT_Q5_K) {
        _mm512_store_ps(out->min[0], _mm512_mul_ps(negated(load_halves(head + 32)), load_unsigned(scales + 16)));
        d = _mm512_mul_ps(d, load_unsigned(scales));
    } else if (t == CLT_IQ4_XS) {
        d = _mm512_mul_ps(d, load_signed(scales));
    } else if (clt_layout_of(t).has_min) {
        _mm512_store_ps(out->min[0], load_halves(head + 32));
    }
    _mm512_store_ps(out->d, d);
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, stretch *out) {
    const clt_layout l = clt_layout_of(t);

    for (int i = 0; i < n; i++) {
        const uint8_t *head = panel + (b0 + i) / l.runs * clt_layout_super(l);
        const uint8_t *scales = head + clt_layout_head(l) + (b0 + i) % l.runs * clt_layout_block(l);
        const uint8_t *low = scales + l.scale_bytes, *high = low + clt_layout_low(l);
        for (int line = 0; line < clt_layout_block(l); line += CLT_LINE)
            _mm_prefetch((const char *)scales + CLT_AHEAD_BYTES + line, _MM_HINT_T0);
        unpack_scales(t, head, scales, &out->block[i]);
        CLT_UNROLL
        for (int g = 0; g < CLT_GROUPS; g++)
            _mm512_store_si512(out->block[i].code[g], codes_of(l, low, high, g));
    }
}

/* The rows of activations of one tile, from block b0 on. */
typedef struct tile {
    const int8_t *q;       /* row r: q + r * q_stride */
    const float *d;        /* row r: d + r * d_stride */
    const int16_t *sums;   /* row r: sums + r * 2 * d_stride */
    int64_t q_stride, d_stride;
} tile;

/* Where integer sums start, so that offsets come out right: -offset * S, per block or per half. */
CLT_INLINE void offset_sums(clt_layout l, const int16_t *sums, int n, int32_t *out) {
    int offset = unsigned_offset(l);
    for (int i = 0; i < n; i++) {
        if (l.has_halves) {
            out[2 * i] = -offset * sums[2 * i];
            out[2 * i + 1] = -offset * sums[2 * i + 1];
        } else {
            out[i] = -offset * (sums[2 * i] + sums[2 * i + 1]);
        }
    }
}

/* sum + the products of groups [g0, g1) of one block and 32 activations at q. */
CLT_INLINE __m512i add_groups(__m512i sum, const __m512i *code, const int8_t *q, int g0, int g1) {
    CLT_UNROLL
    for (int g = g0; g < g1; g++) {
        int32_t four;
        memcpy(&four, q + 4 * g, sizeof four);
        sum = _mm512_dpbusd_epi32(sum, code[g], _mm512_set1_epi32(four));
    }
    return sum;
}

/* Adds n blocks to R rows of outputs. */
CLT_INLINE void multiply_tile(clt_type t, int R, const stretch *s, int n, const tile *x, float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    const bool has_offset = unsigned_offset(l) != 0;
    const int each = l.has_halves ? 2 : 1;
    float scaled[ROWS_TILE][2 * BLOCKS];
    int32_t start[ROWS_TILE][2 * BLOCKS];
    __m512 f[ROWS_TILE];

    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        f[r] = _mm512_load_ps(acc[r]);
        if (l.has_min)
            clt_scale_sums(l.has_halves, x->d + r * x->d_stride, x->sums + 2 * r * x->d_stride, n, scaled[r]);
        if (has_offset)
            offset_sums(l, x->sums + 2 * r * x->d_stride, n, start[r]);
    }
    for (int i = 0; i < n; i++) {
        const block *w = &s->block[i];
        __m512i code[CLT_GROUPS];
        CLT_UNROLL
        for (int g = 0; g < CLT_GROUPS; g++)
            code[g] = _mm512_load_si512(w->code[g]);
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            const int8_t *q = x->q + r * x->q_stride + i * CLT_QBLOCK;
            __m512 dx = _mm512_set1_ps(x->d[r * x->d_stride + i]), total;
            __m512i sum = has_offset ? _mm512_set1_epi32(start[r][each * i]) : _mm512_setzero_si512();
            if (l.has_halves) {
                __m512i second = has_offset ? _mm512_set1_epi32(start[r][2 * i + 1]) : _mm512_setzero_si512();
                sum = add_groups(sum, code, q, 0, 4);
                second = add_groups(second, code, q, 4, 8);
                total = _mm512_mul_ps(_mm512_load_ps(w->scale[0]), _mm512_cvtepi32_ps(sum));
                total = _mm512_fmadd_ps(_mm512_load_ps(w->scale[1]), _mm512_cvtepi32_ps(second), total);
            } else {
                total = _mm512_cvtepi32_ps(add_groups(sum, code, q, 0, 8));
            }
            f[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_load_ps(w->d), dx), total, f[r]);
            for (int h = 0; l.has_min && h < each; h++)
                f[r] = _mm512_fmadd_ps(_mm512_load_ps(w->min[h]), _mm512_set1_ps(scaled[r][each * i + h]), f[r]);
        }
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++)
        _mm512_store_ps(acc[r], f[r]);
}

CLT_INLINE void multiply_rows(clt_type t, int R, const stretch *s, int n, const clt_acts *a, int64_t row, int64_t b0,
                              float (*acc)[CLT_PANEL]) {
    int64_t blocks = clt_acts_blocks(a), at = row * blocks + b0;
    const tile x = {a->q + at * CLT_QBLOCK, a->d + at, a->sums + 2 * at, blocks * CLT_QBLOCK, blocks};
    multiply_tile(t, R, s, n, &x, acc);
}

CLT_INLINE void multiply_panel(clt_type t, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows,
                               float (*acc)[CLT_PANEL]) {
    int64_t blocks = clt_acts_blocks(a);
    stretch s;

    memset(acc, 0, (size_t)rows * sizeof *acc);
    for (int64_t b0 = 0; b0 < blocks; b0 += BLOCKS) {
        int n = blocks - b0 < BLOCKS ? (int)(blocks - b0) : BLOCKS, r = 0;
        unpack(t, panel, b0, n, &s);
        for (; r + 8 <= rows; r += 8)
            multiply_rows(t, 8, &s, n, a, t0 + r, b0, acc + r);
        if (rows & 4) {
            multiply_rows(t, 4, &s, n, a, t0 + r, b0, acc + r);
            r += 4;
        }
        if (rows & 2)
            multiply_rows(t, 2, &s, n, a, t0 + r, b0, acc + r);
        if (rows & 1)
            multiply_rows(t, 1, &s, n, a, t0 + rows - 1, b0, acc + rows - 1);
    }
}

CLT_QUANTISED_TYPES(CLT_PANEL_DEFINE)
static clt_panel_fn *const multiply[] = {CLT_QUANTISED_TYPES(CLT_PANEL_ENTRY)};

void clt_matmul_avx512vnni(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (clt_mat_wants_q8(m->type))
        clt_matmul_panels(multiply[m->type], m, a, T, y, ldy, p0, p1);
    else
        clt_matmul_floats_avx512(m, a, T, y, ldy, p0, p1);
}
