/* Registers of sixteen lanes for matmul_tiles.h. */
#ifndef CLT_KERNELS_MATMUL_AVX512_H
#define CLT_KERNELS_MATMUL_AVX512_H
#include <immintrin.h>
#include "kernels/internal.h"
#include "quant/run.h"

enum { LANES = 16, TILE_PARTS = 2 };

typedef __m512 vf;
typedef __m512i vi;

CLT_INLINE vf load_floats(const float *p) { return _mm512_loadu_ps(p); }
CLT_INLINE void store_floats(float *p, vf v) { _mm512_storeu_ps(p, v); }
CLT_INLINE vf spread_float(float f) { return _mm512_set1_ps(f); }
CLT_INLINE vf floats_of(vi v) { return _mm512_cvtepi32_ps(v); }
CLT_INLINE vf times(vf a, vf b) { return _mm512_mul_ps(a, b); }
CLT_INLINE vf fused(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
CLT_INLINE vf negated(vf v) { return _mm512_xor_ps(v, _mm512_set1_ps(-0.f)); }

CLT_INLINE vi load_bytes(const uint8_t *p) { return _mm512_loadu_si512(p); }
CLT_INLINE void store_bytes(uint8_t *p, vi v) { _mm512_storeu_si512(p, v); }
CLT_INLINE vi spread_int(int32_t i) { return _mm512_set1_epi32(i); }
CLT_INLINE vi spread_byte(int b) { return _mm512_set1_epi8((char)b); }
CLT_INLINE vi shift_right(vi v, int n) { return n ? _mm512_srli_epi32(v, (unsigned)n) : v; }
CLT_INLINE vi shift_left(vi v, int n) { return n ? _mm512_slli_epi32(v, (unsigned)n) : v; }
CLT_INLINE vi both(vi a, vi b) { return _mm512_and_si512(a, b); }
CLT_INLINE vi either(vi a, vi b) { return _mm512_or_si512(a, b); }

/* Hides a sum from the compiler, which would otherwise regroup integer additions and run out of registers. */
CLT_INLINE vi in_order(vi v) {
    __asm__("" : "+v"(v));
    return v;
}

/* Sixteen half floats, signed bytes, unsigned bytes, halves of bytes. */
CLT_INLINE vf load_halves(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
CLT_INLINE __m128i load16(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }
CLT_INLINE vf load_signed(const uint8_t *p) { return floats_of(_mm512_cvtepi8_epi32(load16(p))); }
CLT_INLINE vf load_unsigned(const uint8_t *p) { return floats_of(_mm512_cvtepu8_epi32(load16(p))); }
CLT_INLINE vf load_nibbles(const uint8_t *p, int from) {
    __m128i v = _mm_and_si128(_mm_srli_epi16(load16(p), from), _mm_set1_epi8(15));
    return floats_of(_mm512_cvtepu8_epi32(v));
}

#endif
