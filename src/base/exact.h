/* exp2, log2, sin and cos of doubles, the same bits on every machine: add, mul, div in a written order, no libm. For
 * tables (angles, windows, filters) and for steps that are few; hot loops have the kernels' float functions. */
#ifndef CLT_BASE_EXACT_H
#define CLT_BASE_EXACT_H
#include <stdint.h>
#include <string.h>

#define CLT_LN2 0.69314718055994531

static inline double clt_double_of_bits(uint64_t u) { double d; memcpy(&d, &u, sizeof d); return d; }
static inline uint64_t clt_bits_of_double(double d) { uint64_t u; memcpy(&u, &d, sizeof u); return u; }

/* log2(x) of a positive normal x, within 1e-15 absolute where x is not huge: x = 2^e * f with f in [sqrt(1/2), sqrt(2));
 * log f = 2 atanh(t), t = (f - 1) / (f + 1), |t| < 0.172: 13 terms of its series end below 2^-60. */
static inline double clt_exact_log2(double x) {
    uint64_t u = clt_bits_of_double(x);
    int e = (int)(u >> 52) - 1023;
    double f = clt_double_of_bits((u & 0x000fffffffffffff) | 0x3ff0000000000000);
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
static inline double clt_exact_exp2(double y) {
    double n = y + 0x1.8p52 - 0x1.8p52; /* rounded to an integer */
    double r = (y - n) * CLT_LN2, sum = 1.0;
    for (int k = 14; k >= 1; k--)
        sum = 1.0 + sum * r / k;
    return sum * clt_double_of_bits((uint64_t)(int64_t)(n + 1023.0) << 52);
}

/* sin and cos of r, |r| <= pi/4, by their Taylor series: the terms left out are below 2^-57. */
static inline double clt_exact_sin_reduced(double r) {
    double r2 = r * r, sum = 0.0;
    for (int k = 8; k >= 1; k--)
        sum = -(1.0 + sum) * r2 / (2 * k * (2 * k + 1));
    return r + r * sum;
}

static inline double clt_exact_cos_reduced(double r) {
    double r2 = r * r, sum = 0.0;
    for (int k = 8; k >= 1; k--)
        sum = -(1.0 + sum) * r2 / (2 * k * (2 * k - 1));
    return 1.0 + sum;
}

/* sin and cos of an angle of at most a million. */
static inline void clt_exact_sincos(double angle, double *sin_out, double *cos_out) {
    /* pi/2 in two parts; the first has 33 bits, so that its product with a quarter count below 2^20 is exact. */
    const double high = 0x1.921fb544p+0, low = 0x1.0b4611a626331p-34;
    double quarters = angle * 0.63661977236758134 + 0x1.8p52 - 0x1.8p52;
    double r = (angle - quarters * high) - quarters * low;
    double s = clt_exact_sin_reduced(r), c = clt_exact_cos_reduced(r);
    switch ((int)((int64_t)quarters & 3)) {
    case 0: *cos_out = c; *sin_out = s; break;
    case 1: *cos_out = -s; *sin_out = c; break;
    case 2: *cos_out = -c; *sin_out = -s; break;
    default: *cos_out = s; *sin_out = -c;
    }
}

#endif
