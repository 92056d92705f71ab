/* exp, tanh, gelu and sigmoid of one float: the specification that the other math_*.h follow operation by operation. */
#ifndef CLT_KERNELS_MATH_SCALAR_H
#define CLT_KERNELS_MATH_SCALAR_H
#include "kernels/fma.h"
#include "kernels/math_coeffs.h"

/* exp(r) - 1 of the reduced argument; *power = 2^n. */
static inline float clt_exp_reduced(float x, float *power) {
    float shifted = clt_fma(x, CLT_LOG2E, CLT_ROUND_MAGIC);
    float n = shifted - CLT_ROUND_MAGIC;
    float r = clt_fma(n, -CLT_LN2_HI, x);
    r = clt_fma(n, -CLT_LN2_LO, r);
    float q = clt_fma(CLT_EXP_Q4, r, CLT_EXP_Q3);
    q = clt_fma(q, r, CLT_EXP_Q2);
    q = clt_fma(q, r, CLT_EXP_Q1);
    q = clt_fma(q, r, CLT_EXP_Q0);
    /* The low bits of shifted are n: moved into the exponent of 1.0 they make 2^n. */
    *power = clt_float_of_bits((clt_bits_of_float(shifted) << 23) + 0x3f800000u);
    return clt_fma(r * r, q, r);
}

/* exp(x) for x <= 88 within 1 ulp; 0 below -87.33654; NaN stays NaN. */
static inline float clt_exp(float x) {
    float power, e = clt_exp_reduced(x, &power);
    float y = (1.0f + e) * power;
    return x < CLT_EXP_MIN ? 0.0f : y;
}

/* tanh(x) within 2.5 ulp: -(e - 1) / (e + 1) with e = exp(-2|x|), and e - 1 computed without cancellation. */
static inline float clt_tanh(float x) {
    float a = clt_float_of_bits(clt_bits_of_float(x) & 0x7fffffffu);
    a = CLT_TANH_MAX < a ? CLT_TANH_MAX : a;
    float power, e = clt_exp_reduced(-2.0f * a, &power);
    float expm1 = clt_fma(power, e, power - 1.0f);
    float y = expm1 / (expm1 + 2.0f); /* -tanh(a), never positive */
    return clt_float_of_bits((clt_bits_of_float(y) & 0x7fffffffu) | (clt_bits_of_float(x) & 0x80000000u));
}

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) = x / (1 + exp(-v)), v twice the argument of tanh; for x < 0 the
 * fraction is expanded by exp(v), so that nothing cancels and nothing overflows. */
static inline float clt_gelu(float x) {
    x = x < CLT_GELU_MIN ? CLT_GELU_MIN : x;
    float v = x * clt_fma(x * x, CLT_GELU_C3, CLT_GELU_C1);
    float e = clt_exp(clt_float_of_bits(clt_bits_of_float(v) | 0x80000000u));
    float top = x < 0.0f ? x * e : x;
    return top / (1.0f + e);
}

/* 1 / (1 + exp(-x)), for x < 0 expanded by exp(x): nothing overflows. */
static inline float clt_sigmoid(float x) {
    float e = clt_exp(clt_float_of_bits(clt_bits_of_float(x) | 0x80000000u));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

#endif
