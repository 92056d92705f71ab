/* exp, tanh, gelu and sigmoid of 16 floats; each lane does what math_scalar.h does, operation by operation. */
#ifndef CLT_KERNELS_MATH_AVX512_H
#define CLT_KERNELS_MATH_AVX512_H
#include <immintrin.h>
#include "kernels/math_coeffs.h"

static inline __m512 exp_reduced16(__m512 x, __m512 *power) {
    const __m512 magic = _mm512_set1_ps(CLT_ROUND_MAGIC);
    __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(CLT_LOG2E), magic);
    __m512 n = _mm512_sub_ps(shifted, magic);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-CLT_LN2_HI), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-CLT_LN2_LO), r);
    __m512 q = _mm512_fmadd_ps(_mm512_set1_ps(CLT_EXP_Q4), r, _mm512_set1_ps(CLT_EXP_Q3));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(CLT_EXP_Q2));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(CLT_EXP_Q1));
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(CLT_EXP_Q0));
    *power = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                                  _mm512_set1_epi32(0x3f800000)));
    return _mm512_fmadd_ps(_mm512_mul_ps(r, r), q, r);
}

static inline __m512 exp16(__m512 x) {
    __m512 power, e = exp_reduced16(x, &power);
    __mmask16 kept = _mm512_cmp_ps_mask(x, _mm512_set1_ps(CLT_EXP_MIN), _CMP_NLT_UQ);
    return _mm512_maskz_mul_ps(kept, _mm512_add_ps(_mm512_set1_ps(1.0f), e), power);
}

static inline __m512 tanh16(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f), two = _mm512_set1_ps(2.0f), sign = _mm512_set1_ps(-0.0f);
    __m512 a = _mm512_min_ps(_mm512_set1_ps(CLT_TANH_MAX), _mm512_andnot_ps(sign, x)); /* NaN: the second operand */
    __m512 power, e = exp_reduced16(_mm512_mul_ps(_mm512_set1_ps(-2.0f), a), &power);
    __m512 expm1 = _mm512_fmadd_ps(power, e, _mm512_sub_ps(power, one));
    __m512 y = _mm512_div_ps(expm1, _mm512_add_ps(expm1, two));
    return _mm512_or_ps(_mm512_andnot_ps(sign, y), _mm512_and_ps(sign, x));
}

static inline __m512 gelu16(__m512 x) {
    x = _mm512_max_ps(_mm512_set1_ps(CLT_GELU_MIN), x); /* NaN: the second operand */
    __m512 cubic = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(CLT_GELU_C3), _mm512_set1_ps(CLT_GELU_C1));
    __m512 e = exp16(_mm512_or_ps(_mm512_mul_ps(x, cubic), _mm512_set1_ps(-0.0f)));
    __m512 top = _mm512_mask_mul_ps(x, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), x, e);
    return _mm512_div_ps(top, _mm512_add_ps(_mm512_set1_ps(1.0f), e));
}

static inline __m512 sigmoid16(__m512 x) {
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512 e = exp16(_mm512_or_ps(x, _mm512_set1_ps(-0.0f)));
    __m512 top = _mm512_mask_mov_ps(one, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), e);
    return _mm512_div_ps(top, _mm512_add_ps(one, e));
}

#endif
