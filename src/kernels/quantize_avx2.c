/* Activations to 8 bits for AVX2: the bits of quantize_scalar.c. */
#include <immintrin.h>
#include "kernels/internal.h"

static float largest_of(__m256 m) {
    __m128 v = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)));
}

static void quantize_block(const float *x, int8_t *q, float *d, int16_t *sums) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    const __m256 low = _mm256_set1_ps(-127), high = _mm256_set1_ps(127);
    __m256 v[4], m = _mm256_setzero_ps();
    __m256i code[4];

    CLT_UNROLL
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_loadu_ps(x + 8 * i);
        m = _mm256_max_ps(_mm256_and_ps(v[i], magnitude), m); /* the second operand wins against NaN */
    }
    float largest = largest_of(m), inverse = largest > 0 ? CLT_Q8_STEPS / largest : 0;
    *d = largest / CLT_Q8_STEPS;
    CLT_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256 y = _mm256_mul_ps(v[i], _mm256_set1_ps(inverse));
        y = _mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q));
        code[i] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(y, low), high));
    }
    /* Packing works within halves of registers; the permutation puts the eight groups of four in order again. */
    __m256i first = _mm256_packs_epi32(code[0], code[1]), second = _mm256_packs_epi32(code[2], code[3]);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(first, second), order);
    _mm256_storeu_si256((__m256i *)q, bytes);

    __m256i four = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes), _mm256_set1_epi16(1));
    __m128i s = _mm_hadd_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    s = _mm_hadd_epi32(s, s);
    sums[0] = (int16_t)_mm_extract_epi32(s, 0);
    sums[1] = (int16_t)_mm_extract_epi32(s, 1);
}

void clt_quantize_avx2(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 1, a, t0, t1);
}

void clt_quantize_pair_avx2(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 2, a, t0, t1);
}
