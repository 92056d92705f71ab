/* Matrix times rows of activations for AVX-512 with VNNI, quantised types: matmul_tiles.h with vpdpbusd, which adds four
 * products to each lane, exactly, in 32 bits. */
#include "kernels/matmul_avx512.h"

enum { ROWS_MAX = 8, FEW_TILE = 8, FEW_ROWS = 8, TILE_ROWS = 6, TABLE_OFFSET = 128 };

/* What the unpacked, unsigned code exceeds the value by. */
CLT_INLINE int unsigned_offset(clt_layout l) { return l.has_table ? TABLE_OFFSET : l.offset; }

CLT_INLINE vi from_byte_code(vi v) { return v; }

CLT_INLINE vi from_table(vi v) {
    __m128i table = _mm_xor_si128(_mm_loadu_si128((const __m128i *)clt_iq4_values), _mm_set1_epi8((char)TABLE_OFFSET));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), v);
}

/* Adds the products of group g; there is no need of sums of pairs. */
CLT_INLINE void add_group(clt_layout l, int g, vi code, vi x, vi *pairs, vi *sum) {
    (void)l, (void)g, (void)pairs;
    *sum = _mm512_dpbusd_epi32(*sum, code, x);
}

#include "kernels/matmul_tiles.h"

void clt_matmul_avx512vnni(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (clt_mat_wants_q8(m->type))
        multiply_quantised(m, a, T, y, ldy, p0, p1);
    else
        clt_matmul_floats_avx512(m, a, T, y, ldy, p0, p1);
}
