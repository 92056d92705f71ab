/* exp, tanh, gelu and sigmoid of 8 floats; each lane does what math_scalar.h does, operation by operation. */
#ifndef CLT_KERNELS_MATH_AVX2_H
#define CLT_KERNELS_MATH_AVX2_H
#include <immintrin.h>
#include "kernels/math_coeffs.h"

static inline __m256 exp_reduced8(__m256 x, __m256 *power) {
    const __m256 magic = _mm256_set1_ps(CLT_ROUND_MAGIC);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(CLT_LOG2E), magic);
    __m256 n = _mm256_sub_ps(shifted, magic);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-CLT_LN2_HI), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-CLT_LN2_LO), r);
    __m256 q = _mm256_fmadd_ps(_mm256_set1_ps(CLT_EXP_Q4), r, _mm256_set1_ps(CLT_EXP_Q3));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(CLT_EXP_Q2));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(CLT_EXP_Q1));
    q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(CLT_EXP_Q0));
    *power = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23),
                                                  _mm256_set1_epi32(0x3f800000)));
    return _mm256_fmadd_ps(_mm256_mul_ps(r, r), q, r);
}

static inline __m256 exp8(__m256 x) {
    __m256 power, e = exp_reduced8(x, &power);
    __m256 y = _mm256_mul_ps(_mm256_add_ps(_mm256_set1_ps(1.0f), e), power);
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(CLT_EXP_MIN), _CMP_LT_OQ), y);
}

static inline __m256 tanh8(__m256 x) {
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f), two = _mm256_set1_ps(2.0f);
    __m256 a = _mm256_min_ps(_mm256_set1_ps(CLT_TANH_MAX), _mm256_andnot_ps(sign, x)); /* NaN: the second operand */
    __m256 power, e = exp_reduced8(_mm256_mul_ps(_mm256_set1_ps(-2.0f), a), &power);
    __m256 expm1 = _mm256_fmadd_ps(power, e, _mm256_sub_ps(power, one));
    __m256 y = _mm256_div_ps(expm1, _mm256_add_ps(expm1, two));
    return _mm256_or_ps(_mm256_andnot_ps(sign, y), _mm256_and_ps(sign, x));
}

static inline __m256 gelu8(__m256 x) {
    x = _mm256_max_ps(_mm256_set1_ps(CLT_GELU_MIN), x); /* NaN: the second operand */
    __m256 cubic = _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(CLT_GELU_C3), _mm256_set1_ps(CLT_GELU_C1));
    __m256 e = exp8(_mm256_or_ps(_mm256_mul_ps(x, cubic), _mm256_set1_ps(-0.0f)));
    __m256 top = _mm256_blendv_ps(x, _mm256_mul_ps(x, e), _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
    return _mm256_div_ps(top, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

static inline __m256 sigmoid8(__m256 x) {
    const __m256 one = _mm256_set1_ps(1.0f);
    __m256 e = exp8(_mm256_or_ps(x, _mm256_set1_ps(-0.0f)));
    __m256 top = _mm256_blendv_ps(one, e, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
    return _mm256_div_ps(top, _mm256_add_ps(one, e));
}

#endif
