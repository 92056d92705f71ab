/* Fused multiply-add of floats, with one rounding, on machines that have the instruction and on those that do not.
 *
 * The bits are those of C's fmaf; the library's fmaf is not called because without the instruction it costs ~50 ns. */
#ifndef CLT_KERNELS_FMA_H
#define CLT_KERNELS_FMA_H
#include <stdint.h>
#include <string.h>

static inline float clt_float_of_bits(uint32_t u) { float f; memcpy(&f, &u, sizeof f); return f; }
static inline uint32_t clt_bits_of_float(float f) { uint32_t u; memcpy(&u, &f, sizeof u); return u; }

/* The rare half of clt_fma: sum is product + c, rounded to double. Rounds that sum to odd instead (the last bit set whenever
 * something was lost), so that the final rounding to float sees on which side of a tie the exact value lies. */
static inline float clt_fma_round_odd(double product, double c, double sum) {
    double c_kept = sum - product;
    double lost = (product - (sum - c_kept)) + (c - c_kept); /* exact: sum + lost = product + c */
    if (lost > 0 || lost < 0) { /* false for NaN, which infinities give */
        uint64_t u;
        memcpy(&u, &sum, sizeof u);
        if ((u & 1) == 0)
            u += (lost > 0) == (sum > 0) ? 1u : UINT64_MAX;
        memcpy(&sum, &u, sizeof sum);
    }
    return (float)sum;
}

/* a * b + c, rounded once. */
static inline float clt_fma(float a, float b, float c) {
#if defined(__FP_FAST_FMAF) || defined(__FMA__)
    return __builtin_fmaf(a, b, c);
#else
    /* A product of two floats is exact in double. Rounding the sum twice goes wrong only if the first rounding lands on the
     * midpoint of two floats; below the normal floats midpoints lie elsewhere, so these all take the slow road. */
    double product = (double)a * b, sum = product + c;
    uint64_t u;
    memcpy(&u, &sum, sizeof u);
    if ((u & 0x1fffffff) != 0x10000000 && (sum >= 0x1p-126 || sum <= -0x1p-126))
        return (float)sum;
    return clt_fma_round_odd(product, c, sum);
#endif
}

#endif
