/* Activations to 8 bits for NEON: the bits of quantize_scalar.c. */
#include "kernels/internal.h"
#include "kernels/lanes_neon.h"

enum { REGISTERS = CLT_QBLOCK / 4 };

static float largest_of(const float32x4_t v[REGISTERS]) {
    float32x4_t tops[4];
    CLT_UNROLL
    for (int i = 0; i < 4; i++)
        tops[i] = larger4(vabsq_f32(v[i + 4]), larger4(vabsq_f32(v[i]), vdupq_n_f32(0)));
    return max_lanes4(tops);
}

/* Sixteen codes. The conversion rounds ties to even and turns NaN into 0; narrowing saturates, above at 127 already. */
static int8x16_t codes_of(const float32x4_t *v, float inverse) {
    int32x4_t code[4];
    CLT_UNROLL
    for (int i = 0; i < 4; i++)
        code[i] = vcvtnq_s32_f32(vmulq_n_f32(v[i], inverse));
    int16x8_t low = vqmovn_high_s32(vqmovn_s32(code[0]), code[1]), high = vqmovn_high_s32(vqmovn_s32(code[2]), code[3]);
    return vmaxq_s8(vqmovn_high_s16(vqmovn_s16(low), high), vdupq_n_s8(-127));
}

static void quantize_block(const float *x, int8_t *q, float *d, int16_t *sums) {
    float32x4_t v[REGISTERS];
    CLT_UNROLL
    for (int i = 0; i < REGISTERS; i++)
        v[i] = vld1q_f32(x + 4 * i);
    float largest = largest_of(v), inverse = largest > 0 ? CLT_Q8_STEPS / largest : 0;
    *d = largest / CLT_Q8_STEPS;
    CLT_UNROLL
    for (int h = 0; h < 2; h++) {
        int8x16_t code = codes_of(v + 4 * h, inverse);
        vst1q_s8(q + 16 * h, code);
        sums[h] = vaddlvq_s8(code);
    }
}

void clt_quantize_neon(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 1, a, t0, t1);
}

void clt_quantize_pair_neon(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 2, a, t0, t1);
}
