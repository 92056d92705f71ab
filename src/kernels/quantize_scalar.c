/* Activations to 8 bits, the specification: rows of floats in, codes, scales and sums of codes out. */
#include <math.h>
#include "kernels/internal.h"

/* Adding and taking away 1.5 * 2^23 rounds |v| < 2^22 to the nearest integer, ties to even. NaN counts as zero. */
static int8_t code_of(float x, float inverse) {
    float v = x * inverse;
    if (isnan(v))
        return 0;
    v = v < -127 ? -127 : v > 127 ? 127 : v;
    return (int8_t)(v + 12582912.f - 12582912.f);
}

static void quantize_block(const float *x, int8_t *q, float *d, int16_t *sums) {
    float largest = 0;
    for (int i = 0; i < CLT_QBLOCK; i++)
        if (fabsf(x[i]) > largest)
            largest = fabsf(x[i]);
    float inverse = largest > 0 ? CLT_Q8_STEPS / largest : 0;
    *d = largest / CLT_Q8_STEPS;
    for (int h = 0; h < 2; h++) {
        int sum = 0;
        for (int i = 16 * h; i < 16 * h + 16; i++) {
            q[i] = code_of(x[i], inverse);
            sum += q[i];
        }
        sums[h] = (int16_t)sum;
    }
}

void clt_quantize_scalar(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 1, a, t0, t1);
}

void clt_quantize_pair_scalar(const clt_acts *a, int64_t t0, int64_t t1) {
    clt_quantize_rows(quantize_block, 2, a, t0, t1);
}
