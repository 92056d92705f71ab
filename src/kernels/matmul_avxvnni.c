/* Matrix times rows of activations for AVX2 with VNNI, quantised types: matmul_tiles.h with vpdpbusd and eight lanes, two
 * registers a panel. There are sixteen registers: a tile of two times three fills them. */
#include <immintrin.h>
#include "kernels/internal.h"
#include "quant/run.h"

enum { LANES = 8, TILE_PARTS = 2, ROWS_MAX = 3, FEW_TILE = 3, FEW_ROWS = 6, TILE_ROWS = 3, TABLE_OFFSET = 128 };

typedef __m256 vf;
typedef __m256i vi;

CLT_INLINE vf load_floats(const float *p) { return _mm256_loadu_ps(p); }
CLT_INLINE void store_floats(float *p, vf v) { _mm256_storeu_ps(p, v); }
CLT_INLINE vf spread_float(float f) { return _mm256_set1_ps(f); }
CLT_INLINE vf floats_of(vi v) { return _mm256_cvtepi32_ps(v); }
CLT_INLINE vf times(vf a, vf b) { return _mm256_mul_ps(a, b); }
CLT_INLINE vf fused(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
CLT_INLINE vf negated(vf v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.f)); }

CLT_INLINE vi load_bytes(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
CLT_INLINE void store_bytes(uint8_t *p, vi v) { _mm256_storeu_si256((__m256i *)p, v); }
CLT_INLINE vi spread_int(int32_t i) { return _mm256_set1_epi32(i); }
CLT_INLINE vi spread_byte(int b) { return _mm256_set1_epi8((char)b); }
CLT_INLINE vi shift_right(vi v, int n) { return n ? _mm256_srli_epi32(v, n) : v; }
CLT_INLINE vi shift_left(vi v, int n) { return n ? _mm256_slli_epi32(v, n) : v; }
CLT_INLINE vi both(vi a, vi b) { return _mm256_and_si256(a, b); }
CLT_INLINE vi either(vi a, vi b) { return _mm256_or_si256(a, b); }

/* Eight half floats, signed bytes, unsigned bytes, halves of bytes. */
CLT_INLINE vf load_halves(const uint8_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
CLT_INLINE __m128i load8(const uint8_t *p) { return _mm_loadl_epi64((const __m128i *)p); }
CLT_INLINE vf load_signed(const uint8_t *p) { return floats_of(_mm256_cvtepi8_epi32(load8(p))); }
CLT_INLINE vf load_unsigned(const uint8_t *p) { return floats_of(_mm256_cvtepu8_epi32(load8(p))); }
CLT_INLINE vf load_nibbles(const uint8_t *p, int from) {
    __m128i v = _mm_and_si128(_mm_srli_epi16(load8(p), from), _mm_set1_epi8(15));
    return floats_of(_mm256_cvtepu8_epi32(v));
}

/* What the unpacked, unsigned code exceeds the value by. */
CLT_INLINE int unsigned_offset(clt_layout l) { return l.has_table ? TABLE_OFFSET : l.offset; }

CLT_INLINE vi from_byte_code(vi v) { return v; }

CLT_INLINE vi from_table(vi v) {
    __m128i table = _mm_xor_si128(_mm_loadu_si128((const __m128i *)clt_iq4_values), _mm_set1_epi8((char)TABLE_OFFSET));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), v);
}

/* Adds the products of group g; there is no need of sums of pairs. */
CLT_INLINE void add_group(clt_layout l, int g, vi code, vi x, vi *pairs, vi *sum) {
    (void)l, (void)g, (void)pairs;
    *sum = _mm256_dpbusd_avx_epi32(*sum, code, x);
}

#include "kernels/matmul_tiles.h"

void clt_matmul_avxvnni(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (clt_mat_wants_q8(m->type))
        multiply_quantised(m, a, T, y, ldy, p0, p1);
    else
        clt_matmul_floats_avx2(m, a, T, y, ldy, p0, p1);
}
