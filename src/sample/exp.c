/* exp for weights: a number at most 0 in, e to its power out, by additions and multiplications in one written order. Needs
 * no accuracy at the very edges: what is smaller than e^-700 has no chance of being drawn. */
#include "sample/exp.h"
#include <stdint.h>
#include <string.h>

/* x = k ln2 + r with |r| <= ln2 / 2; e^x = 2^k e^r. ln2 in two parts, the first with trailing zeros so that k * LN2_HIGH is
 * exact. e^r by its series up to r^13 / 13!, whose remainder is below 2^-56. */
#define LOG2_E 1.4426950408889634
#define LN2_HIGH 0.69314718036912382
#define LN2_LOW 1.9082149292705877e-10

double clt_sample_exp(double x) {
    static const double inverse_factorial[] = {
        1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
        1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
    if (!(x >= -700)) return 0;
    if (x >= 0) return 1;
    int64_t k = (int64_t)(x * LOG2_E - 0.5); /* truncates towards zero: the nearest integer, as x is negative */
    double r = (x - (double)k * LN2_HIGH) - (double)k * LN2_LOW;
    double sum = inverse_factorial[13];
    for (int i = 12; i >= 0; i--) sum = sum * r + inverse_factorial[i];
    uint64_t power_bits = (uint64_t)(1023 + k) << 52;
    double power;
    memcpy(&power, &power_bits, sizeof power);
    return sum * power;
}
