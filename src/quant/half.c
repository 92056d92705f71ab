/* Half and brain floats to float32 and back: bits in, bits out, by integer arithmetic alone, so that every machine agrees.
 * Follows the conversions of the F16C instructions, which the kernels use: a signalling NaN comes out quiet. */
#include <string.h>
#include "quant/quant.h"

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

float clt_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = (h >> 10) & 31u, fraction = h & 0x3ffu;

    if (exponent == 31)
        return float_of(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0));
    if (exponent != 0)
        return float_of(sign | (exponent + 112) << 23 | fraction << 13);
    /* Subnormal: fraction * 2^-24, exact in float32. */
    float magnitude = (float)fraction * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
}

/* The low `shift` bits of v rounded away, nearest and ties to even. */
static uint32_t shift_round_even(uint32_t v, unsigned shift) {
    uint32_t half = 1u << (shift - 1), odd = (v >> shift) & 1u;
    return (v + half - 1 + odd) >> shift;
}

uint16_t clt_f32_to_f16(float f) {
    uint32_t u = bits_of(f), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x47800000u) /* 65536 and above, infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) /* normal: a carry out of the fraction rightly raises the exponent, up to infinity */
        return (uint16_t)(sign | shift_round_even(magnitude - (112u << 23), 13));
    if (magnitude < 0x33000000u) /* below half of the smallest subnormal */
        return (uint16_t)sign;
    uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    return (uint16_t)(sign | shift_round_even(significand, 126 - (magnitude >> 23)));
}

float clt_bf16_to_f32(uint16_t h) {
    return float_of((uint32_t)h << 16);
}

uint16_t clt_f32_to_bf16(float f) {
    uint32_t u = bits_of(f);

    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
