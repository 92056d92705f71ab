/* Angles of rotary position embedding: frequencies, and cos and sin of position times frequency.
 *
 * In: base, widths, positions. Out: floats, the same bits on every machine: double add, mul, div in a written order, no
 * libm. Does not turn anything (kernels' rope does) and knows no model. */
#include <stdint.h>
#include <string.h>
#include "kernels/kernels.h"

static double double_of_bits(uint64_t u) { double d; memcpy(&d, &u, sizeof d); return d; }
static uint64_t bits_of_double(double d) { uint64_t u; memcpy(&u, &d, sizeof u); return u; }

/* log2(x) of a positive normal x, within 1e-15 absolute for the bases in use: x = 2^e * f with f in [sqrt(1/2), sqrt(2));
 * log f = 2 atanh(t), t = (f - 1) / (f + 1), |t| < 0.172: 13 terms of its series end below 2^-60. */
static double log2_of(double x) {
    uint64_t u = bits_of_double(x);
    int e = (int)(u >> 52) - 1023;
    double f = double_of_bits((u & 0x000fffffffffffff) | 0x3ff0000000000000);
    if (f > 1.4142135623730951) {
        f *= 0.5;
        e++;
    }
    double t = (f - 1.0) / (f + 1.0), t2 = t * t, sum = 0.0;
    for (int k = 12; k >= 1; k--)
        sum = (sum + 1.0 / (2 * k + 1)) * t2;
    return e + 2.8853900817779268 * (t + t * sum); /* 2 / ln 2 */
}

/* 2^y for |y| < 1000, relative error below 1e-15: whole part into the exponent, series of exp for the rest. */
static double exp2_of(double y) {
    double n = y + 0x1.8p52 - 0x1.8p52; /* rounded to an integer */
    double r = (y - n) * 0.69314718055994531, sum = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * r / k;
    return sum * double_of_bits((uint64_t)(int64_t)(n + 1023.0) << 52);
}

void clt_rope_frequencies(double theta, int64_t denominator, int64_t n, float *inv_freq) {
    double bits = log2_of(theta);
    for (int64_t i = 0; i < n; i++) {
        float exponent = (float)(2 * i) / (float)denominator;
        float power = (float)exp2_of(bits * (double)exponent);
        inv_freq[i] = 1.0f / power;
    }
}

/* sin and cos of r, |r| <= pi/4, by their Taylor series: the terms left out are below 2^-57. */
static double sin_of(double r) {
    double r2 = r * r, sum = 0.0;
    for (int k = 8; k >= 1; k--)
        sum = -(1.0 + sum) * r2 / (2 * k * (2 * k + 1));
    return r + r * sum;
}

static double cos_of(double r) {
    double r2 = r * r, sum = 0.0;
    for (int k = 8; k >= 1; k--)
        sum = -(1.0 + sum) * r2 / (2 * k * (2 * k - 1));
    return 1.0 + sum;
}

void clt_rope_angles(float pos, const float *inv_freq, int64_t n, float *cs) {
    /* pi/2 in two parts; the first has 33 bits, so that its product with a quarter count below 2^20 is exact. */
    const double high = 0x1.921fb544p+0, low = 0x1.0b4611a626331p-34;
    for (int64_t i = 0; i < n; i++) {
        double angle = (double)(pos * inv_freq[i]);
        double quarters = angle * 0.63661977236758134 + 0x1.8p52 - 0x1.8p52;
        double r = (angle - quarters * high) - quarters * low;
        double s = sin_of(r), c = cos_of(r);
        switch ((int)((int64_t)quarters & 3)) {
        case 0: cs[2 * i] = (float)c; cs[2 * i + 1] = (float)s; break;
        case 1: cs[2 * i] = (float)-s; cs[2 * i + 1] = (float)c; break;
        case 2: cs[2 * i] = (float)-c; cs[2 * i + 1] = (float)-s; break;
        default: cs[2 * i] = (float)s; cs[2 * i + 1] = (float)-c;
        }
    }
}
