/* Floats in, GGUF blocks out: the types that have a closed rule, which needs no search for good scales. A NaN counts as
 * zero in quantised blocks; any input is safe. */
#include "quant/encode.h"
#include <math.h>
#include <string.h>
#include "quant/run.h"

void clt_encode_f32(const float *src, void *dst, int64_t n) {
    memcpy(dst, src, (size_t)n * sizeof *src);
}

static void store_u16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

void clt_encode_f16(const float *src, void *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        store_u16((uint8_t *)dst + 2 * i, clt_f32_to_f16(src[i]));
}

void clt_encode_bf16(const float *src, void *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        store_u16((uint8_t *)dst + 2 * i, clt_f32_to_bf16(src[i]));
}

/* The number of largest magnitude, with its sign; the first of equals. */
static float extreme_of(const float *x) {
    float extreme = 0, magnitude = 0;
    for (int i = 0; i < CLT_RUN; i++)
        if (fabsf(x[i]) > magnitude) {
            magnitude = fabsf(x[i]);
            extreme = x[i];
        }
    return extreme;
}

/* x as an integer within [lo, hi], towards zero; a NaN gives zero or the nearer end. */
static int to_int_within(float x, int lo, int hi) {
    if (!(x > (float)lo))
        return x <= (float)lo ? lo : 0 < lo ? lo : 0;
    return x < (float)hi ? (int)x : hi;
}

/* The extreme number maps to code 0 (value -8), so that its sign decides the sign of the scale. */
void clt_encode_q4_0(const float *src, void *dst, int64_t n) {
    uint8_t *b = dst;
    for (int64_t i = 0; i < n; i += CLT_RUN, b += 18) {
        const float *x = src + i;
        float d = extreme_of(x) / -8, inverse = d != 0 ? 1 / d : 0;
        store_u16(b, clt_f32_to_f16(d));
        for (int j = 0; j < 16; j++) {
            int low = to_int_within(x[j] * inverse + 8.5f, 0, 15), high = to_int_within(x[16 + j] * inverse + 8.5f, 0, 15);
            b[2 + j] = (uint8_t)(low | high << 4);
        }
    }
}

/* Nearest integer, halves away from zero. */
static float round_away(float x) {
    float a = fabsf(x), whole = floorf(a);
    return copysignf(whole + floorf(2 * (a - whole)), x);
}

void clt_encode_q8_0(const float *src, void *dst, int64_t n) {
    uint8_t *b = dst;
    for (int64_t i = 0; i < n; i += CLT_RUN, b += 34) {
        const float *x = src + i;
        float d = fabsf(extreme_of(x)) / 127, inverse = d != 0 ? 1 / d : 0;
        store_u16(b, clt_f32_to_f16(d));
        for (int j = 0; j < CLT_RUN; j++)
            b[2 + j] = (uint8_t)to_int_within(round_away(x[j] * inverse), -128, 127);
    }
}
