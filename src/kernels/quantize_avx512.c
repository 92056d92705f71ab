/* Activations to 8 bits for AVX-512: the bits of quantize_scalar.c. */
#include "kernels/internal.h"
#include "kernels/lanes_avx512.h"

/* Codes of sixteen numbers; NaN counts as zero. */
CLT_INLINE __m128i codes_of(__m512 x, __m512 inverse) {
    __m512 y = _mm512_mul_ps(x, inverse);
    y = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), y);
    y = _mm512_min_ps(_mm512_max_ps(y, _mm512_set1_ps(-127)), _mm512_set1_ps(127));
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(y));
}

/* vpsadbw adds unsigned bytes: codes plus 128. */
CLT_INLINE int16_t sum_of(__m128i codes) {
    __m128i s = _mm_sad_epu8(_mm_xor_si128(codes, _mm_set1_epi8((char)0x80)), _mm_setzero_si128());
    return (int16_t)(_mm_cvtsi128_si32(_mm_add_epi32(s, _mm_unpackhi_epi64(s, s))) - 128 * 16);
}

static void quantize_block(const float *x, int8_t *q, float *d, int16_t *sums) {
    __m512 v[2] = {_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16)};
    __m512 m = _mm512_max_ps(_mm512_abs_ps(v[0]), _mm512_setzero_ps()); /* the second operand wins against NaN */
    float largest = max_lanes16(_mm512_max_ps(_mm512_abs_ps(v[1]), m)), inverse = largest > 0 ? CLT_Q8_STEPS / largest : 0;

    *d = largest / CLT_Q8_STEPS;
    for (int h = 0; h < 2; h++) {
        __m128i codes = codes_of(v[h], _mm512_set1_ps(inverse));
        _mm_storeu_si128((__m128i *)(q + 16 * h), codes);
        sums[h] = sum_of(codes);
    }
}

void clt_quantize_avx512(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 1, a, t0, t1);
}

void clt_quantize_pair_avx512(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 2, a, t0, t1);
}
