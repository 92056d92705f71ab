/* Angles of rotary position embedding: frequencies, and cos and sin of position times frequency.
 *
 * In: base, widths, positions. Out: floats, the same bits on every machine. Does not turn anything (kernels' rope does) and
 * knows no model. */
#include <stdint.h>
#include "base/exact.h"
#include "kernels/kernels.h"

void clt_rope_frequencies(double theta, int64_t denominator, int64_t n, float *inv_freq) {
    double bits = clt_exact_log2(theta);
    for (int64_t i = 0; i < n; i++) {
        float exponent = (float)(2 * i) / (float)denominator;
        float power = (float)clt_exact_exp2(bits * (double)exponent);
        inv_freq[i] = 1.0f / power;
    }
}

void clt_rope_angles(float pos, const float *inv_freq, int64_t n, float *cs) {
    for (int64_t i = 0; i < n; i++) {
        double s, c;
        clt_exact_sincos((double)(pos * inv_freq[i]), &s, &c);
        cs[2 * i] = (float)c, cs[2 * i + 1] = (float)s;
    }
}
