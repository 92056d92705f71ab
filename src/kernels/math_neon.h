/* exp, tanh, gelu and sigmoid of 4 floats; each lane does what math_scalar.h does, operation by operation. */
#ifndef CLT_KERNELS_MATH_NEON_H
#define CLT_KERNELS_MATH_NEON_H
#include <arm_neon.h>
#include "kernels/math_coeffs.h"

static inline float32x4_t exp_reduced4(float32x4_t x, float32x4_t *power) {
    const float32x4_t magic = vdupq_n_f32(CLT_ROUND_MAGIC);
    float32x4_t shifted = vfmaq_f32(magic, x, vdupq_n_f32(CLT_LOG2E));
    float32x4_t n = vsubq_f32(shifted, magic);
    float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-CLT_LN2_HI));
    r = vfmaq_f32(r, n, vdupq_n_f32(-CLT_LN2_LO));
    float32x4_t q = vfmaq_f32(vdupq_n_f32(CLT_EXP_Q3), vdupq_n_f32(CLT_EXP_Q4), r);
    q = vfmaq_f32(vdupq_n_f32(CLT_EXP_Q2), q, r);
    q = vfmaq_f32(vdupq_n_f32(CLT_EXP_Q1), q, r);
    q = vfmaq_f32(vdupq_n_f32(CLT_EXP_Q0), q, r);
    uint32x4_t bits = vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23);
    *power = vreinterpretq_f32_u32(vaddq_u32(bits, vdupq_n_u32(0x3f800000)));
    return vfmaq_f32(r, vmulq_f32(r, r), q);
}

static inline float32x4_t exp4(float32x4_t x) {
    float32x4_t power, e = exp_reduced4(x, &power);
    float32x4_t y = vmulq_f32(vaddq_f32(vdupq_n_f32(1.0f), e), power);
    uint32x4_t below = vcltq_f32(x, vdupq_n_f32(CLT_EXP_MIN));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(y), below));
}

static inline float32x4_t tanh4(float32x4_t x) {
    const float32x4_t one = vdupq_n_f32(1.0f), two = vdupq_n_f32(2.0f);
    float32x4_t a = vminq_f32(vabsq_f32(x), vdupq_n_f32(CLT_TANH_MAX)); /* NaN stays NaN */
    float32x4_t power, e = exp_reduced4(vmulq_f32(vdupq_n_f32(-2.0f), a), &power);
    float32x4_t expm1 = vfmaq_f32(vsubq_f32(power, one), power, e);
    float32x4_t y = vdivq_f32(expm1, vaddq_f32(expm1, two));
    return vbslq_f32(vdupq_n_u32(0x80000000u), x, y);
}

static inline float32x4_t gelu4(float32x4_t x) {
    x = vmaxq_f32(x, vdupq_n_f32(CLT_GELU_MIN)); /* NaN stays NaN */
    float32x4_t cubic = vfmaq_f32(vdupq_n_f32(CLT_GELU_C1), vmulq_f32(x, x), vdupq_n_f32(CLT_GELU_C3));
    uint32x4_t v = vorrq_u32(vreinterpretq_u32_f32(vmulq_f32(x, cubic)), vdupq_n_u32(0x80000000u));
    float32x4_t e = exp4(vreinterpretq_f32_u32(v));
    float32x4_t top = vbslq_f32(vcltq_f32(x, vdupq_n_f32(0.0f)), vmulq_f32(x, e), x);
    return vdivq_f32(top, vaddq_f32(vdupq_n_f32(1.0f), e));
}

static inline float32x4_t sigmoid4(float32x4_t x) {
    const float32x4_t one = vdupq_n_f32(1.0f);
    float32x4_t e = exp4(vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000u))));
    float32x4_t top = vbslq_f32(vcltq_f32(x, vdupq_n_f32(0.0f)), e, one);
    return vdivq_f32(top, vaddq_f32(one, e));
}

#endif
