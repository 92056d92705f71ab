/* Matrix times rows of activations for AVX-512 without VNNI, quantised types: matmul_tiles.h with vpmaddubsw.
 *
 * Products are summed in 16 bits as long as they provably fit: a pair is at most 2·127·code, so eight pairs of 4-bit codes,
 * four of 5-bit and two of 6-bit ones stay below 2^15. Signed 8-bit values (Q8_0, IQ4) multiply as |w| · (x with the sign of
 * w), one pair at a time. */
#include "kernels/matmul_avx512.h"

enum { ROWS_MAX = 8, FEW_TILE = 8, FEW_ROWS = 8, TILE_ROWS = 4 };

CLT_INLINE bool is_signed(clt_layout l) { return l.low_bits == 8 || l.has_table; }

CLT_INLINE int unsigned_offset(clt_layout l) { return is_signed(l) ? 0 : l.offset; }

CLT_INLINE vi from_byte_code(vi v) { return _mm512_xor_si512(v, spread_byte(0x80)); }

CLT_INLINE vi from_table(vi v) {
    __m128i table = _mm_loadu_si128((const __m128i *)clt_iq4_values);
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), v);
}

/* Pairs of products that fit into 16 bits, and into the half of a block if it has its own scale. */
CLT_INLINE int pairs_fit(clt_layout l) {
    int bits = l.low_bits + l.high_bits, fit = is_signed(l) ? 1 : bits == 6 ? 2 : bits == 5 ? 4 : 8;
    return l.has_halves && fit > 4 ? 4 : fit;
}

/* Adds the products of group g to the sums of pairs, and these to the sum before they overflow. */
CLT_INLINE void add_group(clt_layout l, int g, vi code, vi x, vi *pairs, vi *sum) {
    const int fit = pairs_fit(l);
    vi p;

    if (is_signed(l))
        p = _mm512_maddubs_epi16(_mm512_abs_epi8(code),
                                 _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(code), _mm512_setzero_si512(), x));
    else
        p = _mm512_maddubs_epi16(code, x);
    *pairs = in_order(g % fit ? _mm512_add_epi16(*pairs, p) : p);
    if (g % fit == fit - 1)
        *sum = in_order(_mm512_add_epi32(*sum, _mm512_madd_epi16(*pairs, _mm512_set1_epi16(1))));
}

#include "kernels/matmul_tiles.h"

void clt_matmul_avx512(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (clt_mat_wants_q8(m->type))
        multiply_quantised(m, a, T, y, ldy, p0, p1);
    else
        clt_matmul_floats_avx512(m, a, T, y, ldy, p0, p1);
}
