/* Rope angles against the C library's cos and sin over the whole range of positions, frequencies against its pow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "kernels/kernels.h"
#include "vec_levels.h"

enum { PAIRS = 256, LAST_POSITION = 262144 };

/* The limit is 1 ulp; near a zero of cos or sin the unit is that of the result, so the reduction must be exact too. */
static void check_angles(float pos, const float *inv_freq, int64_t n) {
    float cs[2 * PAIRS];
    clt_rope_angles(pos, inv_freq, n, cs);
    for (int64_t i = 0; i < n; i++) {
        float angle = pos * inv_freq[i];
        double c = ulps(cs[2 * i], cos((double)angle)), s = ulps(cs[2 * i + 1], sin((double)angle));
        if (!(c <= 0.51 && s <= 0.51))
            fail_msg("angle %a: %a %a is off by %.3f and %.3f ulp", (double)angle, (double)cs[2 * i],
                     (double)cs[2 * i + 1], c, s);
    }
}

static void angles_are_correctly_rounded_or_nearly(void **state) {
    (void)state;
    float local[128], global[PAIRS];
    clt_rope_frequencies(1e4, 256, 128, local);
    clt_rope_frequencies(1e6, 512, PAIRS, global);
    for (int pos = 0; pos <= LAST_POSITION; pos += pos < 2048 ? 1 : 997) {
        check_angles((float)pos, local, 128);
        check_angles((float)pos, global, PAIRS);
    }
    check_angles((float)LAST_POSITION, local, 128);
    /* Every whole angle, among them those closest to multiples of pi/2 (103993 / 33102 = pi to 5e-10). */
    const float one = 1.0f;
    for (int pos = -300000; pos <= 300000; pos++)
        check_angles((float)pos, &one, 1);
}

static void angle_of_nothing_is_the_identity(void **state) {
    (void)state;
    const float inv_freq[2] = {0.0f, 1.0f};
    float cs[4];
    clt_rope_angles(0.0f, inv_freq, 2, cs);
    assert_true(cs[0] == 1.0f && cs[1] == 0.0f && cs[2] == 1.0f && cs[3] == 0.0f);
    clt_rope_angles(77777.0f, inv_freq, 1, cs);
    assert_true(cs[0] == 1.0f && cs[1] == 0.0f);
}

static void frequencies_round_as_stated(void **state) {
    (void)state;
    static const struct { double theta; int64_t denominator; } cases[] = {
        {1e4, 256}, {1e6, 512}, {1e6, 256}, {100, 36}, {1e4, 16}, {1e4, 168}, {500000, 128}, {2, 64}, {1e6, 128}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        float inv_freq[PAIRS];
        int64_t n = cases[c].denominator / 2;
        clt_rope_frequencies(cases[c].theta, cases[c].denominator, n, inv_freq);
        assert_true(inv_freq[0] == 1.0f);
        for (int64_t i = 0; i < n; i++) {
            float exponent = (float)(2 * i) / (float)cases[c].denominator;
            float expected = 1.0f / (float)pow(cases[c].theta, (double)exponent);
            if (inv_freq[i] != expected)
                fail_msg("theta %g, 2 * %d / %d: %a, not %a", cases[c].theta, (int)i, (int)cases[c].denominator,
                         (double)inv_freq[i], (double)expected);
            /* An exponent that is no sum of few powers of two is itself rounded, which the power magnifies. */
            double exact = pow(cases[c].theta, -2.0 * (double)i / (double)cases[c].denominator);
            assert_true(ulps(inv_freq[i], exact) < 16.0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(angles_are_correctly_rounded_or_nearly),
        cmocka_unit_test(angle_of_nothing_is_the_identity),
        cmocka_unit_test(frequencies_round_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
