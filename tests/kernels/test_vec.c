/* Operations on rows: accuracy against the C library in double, equality of bits between CPU levels, special numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "kernels/fma.h"
#include "kernels/math_scalar.h"
#include "vec_levels.h"

enum { LONGEST = 70, GUARD = 16 };

/* ---- accuracy of the scalar specification ---- */

static void check_fma(float a, float b, float c) {
    float want = fmaf(a, b, c), got = clt_fma(a, b, c);
    if (first_difference(&want, &got, 1) >= 0)
        fail_msg("fma(%a, %a, %a) is %a, not %a", (double)a, (double)b, (double)c, (double)got, (double)want);
}

static void fma_is_rounded_once(void **state) {
    (void)state;
    static const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f,
        0x1.fffffep127f, -0x1.fffffep127f, INFINITY, -INFINITY, NAN, 0x1.000002p0f, 0x1.fffffep-1f, 0x1p-24f, 0x1p-25f,
        0x1p103f, 0x1p-75f, 0x1p-148f};
    enum { N = sizeof special / sizeof *special };
    for (int i = 0; i < N * N * N; i++)
        check_fma(special[i % N], special[i / N % N], special[i / N / N]);
    /* Beside a tie of floats below the normal ones, by less than a double can tell: (1 + e)(1 - e) = 1 - e^2. */
    for (int i = 12; i <= 22; i++)
        for (int odd = 0; odd < 4; odd++)
            for (int e = -126; e > -140; e--) {
                float a = ldexpf(1.0f + ldexpf(1.0f, -i), -75), b = ldexpf(1.0f - ldexpf(1.0f, -i), -75);
                float c = ldexpf(1.0f, e) + (float)odd * 0x1p-149f;
                check_fma(a, b, c);
                check_fma(-a, b, c);
                check_fma(a, -b, -c);
                check_fma(a, b, -c);
            }
    uint64_t seed = 1;
    for (int i = 0; i < 2000000; i++) {
        uint32_t bits = draw_bits(&seed);
        check_fma(float_from_bits(bits), float_from_bits(draw_bits(&seed)), float_from_bits(draw_bits(&seed)));
        /* Few bits each and close exponents: ties, and sums just beside ties, are common. */
        float a = ldexpf((float)(int)(draw_bits(&seed) % 8191), (int)(draw_bits(&seed) % 40) - 20);
        float b = ldexpf((float)(int)(draw_bits(&seed) % 8191) - 4095.0f, (int)(draw_bits(&seed) % 40) - 20);
        float c = ldexpf((float)(int)(draw_bits(&seed) % 0xffffff), (int)(draw_bits(&seed) % 80) - 40);
        check_fma(a, b, c);
        /* Results below the normal floats. */
        check_fma(ldexpf(a, -70), ldexpf(b, -70), ldexpf(draw_float(&seed, 1.0f), -126 - (int)(draw_bits(&seed) % 20)));
    }
}

/* Calls f over [from, to] in equal steps and fails where it is more than `limit` ulp from the library's answer. */
static void check_ulps(const char *name, float (*f)(float), double (*reference)(double), float from, float to,
                       double limit) {
    enum { STEPS = 400000 };
    for (int i = 0; i <= STEPS; i++) {
        float x = (float)(from + ((double)to - from) * i / STEPS);
        double want = reference((double)x), off = ulps(f(x), want);
        if (!(off <= limit))
            fail_msg("%s(%a = %g) is %a, not %a: %.2f ulp", name, (double)x, (double)x, (double)f(x), want, off);
    }
}

static double gelu_reference(double x) {
    double v = 2.0 * sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
    return x / (1.0 + exp(-v));
}

static void exp_is_accurate(void **state) {
    (void)state;
    check_ulps("exp", clt_exp, exp, -87.3365f, 88.0f, 1.0);
    check_ulps("exp", clt_exp, exp, -1.0f, 0.0f, 1.0);
    check_ulps("exp", clt_exp, exp, -1e-6f, 1e-6f, 1.0);
    assert_true(clt_exp(0.0f) == 1.0f && clt_exp(-0.0f) == 1.0f);
    assert_true(bits_from_float(clt_exp(-INFINITY)) == 0 && bits_from_float(clt_exp(-88.0f)) == 0);
    assert_true(bits_from_float(clt_exp(-3e38f)) == 0);
    assert_true(isnan(clt_exp(NAN)) && isnan(clt_exp(-NAN)));
}

static void tanh_is_accurate(void **state) {
    (void)state;
    check_ulps("tanh", clt_tanh, tanh, -11.0f, 11.0f, 2.5);
    check_ulps("tanh", clt_tanh, tanh, -0.4f, 0.4f, 2.5);
    check_ulps("tanh", clt_tanh, tanh, -1e-5f, 1e-5f, 2.0);
    check_ulps("tanh", clt_tanh, tanh, -1e-38f, 1e-38f, 2.0);
    assert_true(clt_tanh(INFINITY) == 1.0f && clt_tanh(-INFINITY) == -1.0f && clt_tanh(1e38f) == 1.0f);
    assert_true(bits_from_float(clt_tanh(-0.0f)) == 0x80000000u && bits_from_float(clt_tanh(0.0f)) == 0);
    assert_true(isnan(clt_tanh(NAN)));
}

static void gelu_is_accurate(void **state) {
    (void)state;
    check_ulps("gelu", clt_gelu, gelu_reference, -1.0f, 100.0f, 5.0);
    /* Where the result vanishes, the error of the exponent, which is as large as 90, counts ever more. */
    check_ulps("gelu", clt_gelu, gelu_reference, -3.0f, -1.0f, 16.0);
    check_ulps("gelu", clt_gelu, gelu_reference, -9.5f, -3.0f, 160.0);
    check_ulps("gelu", clt_gelu, gelu_reference, -1e-30f, 1e-30f, 3.0);
    for (float x = -9.5f; x > -3e38f; x *= 1.5f)
        assert_true(clt_gelu(x) <= 0.0f && clt_gelu(x) > -1e-30f);
    assert_true(clt_gelu(-INFINITY) == 0.0f && clt_gelu(INFINITY) == INFINITY && clt_gelu(3e38f) == 3e38f);
    assert_true(isnan(clt_gelu(NAN)));
    assert_true(bits_from_float(clt_gelu(0.0f)) == 0 && bits_from_float(clt_gelu(-0.0f)) == 0x80000000u);
}

static double sigmoid_reference(double x) { return 1.0 / (1.0 + exp(-x)); }

static void sigmoid_is_accurate(void **state) {
    (void)state;
    check_ulps("sigmoid", clt_sigmoid, sigmoid_reference, -87.0f, 100.0f, 3.0);
    check_ulps("sigmoid", clt_sigmoid, sigmoid_reference, -1.0f, 1.0f, 3.0);
    assert_true(clt_sigmoid(0.0f) == 0.5f && clt_sigmoid(INFINITY) == 1.0f && clt_sigmoid(-INFINITY) == 0.0f);
    assert_true(clt_sigmoid(3e38f) == 1.0f && clt_sigmoid(-3e38f) == 0.0f && isnan(clt_sigmoid(NAN)));
}

/* ---- the row operations mean what the header says ---- */

static void rows_are_accurate(void **state) {
    (void)state;
    enum { N = 777 };
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 7;
    float x[N], w[N], y[N], cs[N];
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        const clt_kernels *k = &levels[l].k;
        double squares = 0, sum = 0, top = -1e9;
        for (int i = 0; i < N; i++) {
            x[i] = draw_float(&seed, 8.0f);
            w[i] = draw_float(&seed, 2.0f);
            squares += (double)x[i] * x[i];
            top = fmax(top, (double)x[i]);
        }
        k->rms_norm(x, w, 1e-6f, y, N);
        for (int i = 0; i < N; i++)
            assert_true(ulps(y[i], x[i] / sqrt(squares / N + (double)1e-6f) * w[i]) < 8);
        k->rms_norm(x, NULL, 1e-6f, y, N);
        for (int i = 0; i < N; i++)
            assert_true(ulps(y[i], x[i] / sqrt(squares / N + (double)1e-6f)) < 8);
        for (int i = 0; i < N; i++)
            sum += exp(x[i] - top);
        memcpy(y, x, sizeof y);
        k->softmax(y, N);
        for (int i = 0; i < N; i++)
            assert_true(ulps(y[i], exp(x[i] - top) / sum) < 16);
        memcpy(y, x, sizeof y);
        k->softcap(y, 3.0f, N);
        for (int i = 0; i < N; i++)
            assert_true(ulps(y[i], 3.0 * tanh(x[i] / 3.0)) < 5);
        k->gelu_mul(x, w, y, N);
        for (int i = 0; i < N; i++)
            assert_true(fabs(y[i] - gelu_reference((double)x[i]) * w[i]) < 1e-6);
        k->sigmoid_mul(x, w, y, N);
        for (int i = 0; i < N; i++)
            assert_true(ulps(y[i], sigmoid_reference((double)x[i]) * w[i]) < 4);
        k->clamp(x, -1.5f, 3.0f, y, N);
        for (int i = 0; i < N; i++)
            assert_true(y[i] == fminf(fmaxf(x[i], -1.5f), 3.0f));
        double product = 0;
        for (int i = 0; i < N; i++)
            product += (double)x[i] * w[i];
        assert_true(fabs(k->dot(x, w, N) - product) < 2e-3);
        /* 776 wide, 100 of 388 pairs turn. */
        memcpy(y, x, sizeof y);
        for (int i = 0; i < N; i++)
            cs[i] = draw_float(&seed, 1.0f);
        k->rope(y, cs, N - 1, 100);
        for (int i = 0; i < 388; i++) {
            double a = (double)x[i], b = (double)x[i + 388];
            double c = i < 100 ? (double)cs[2 * i] : 1.0, s = i < 100 ? (double)cs[2 * i + 1] : 0.0;
            assert_true(fabs(y[i] - (a * c - b * s)) < 2e-6 && fabs(y[i + 388] - (b * c + a * s)) < 2e-6);
        }
    }
}

static void argmax_takes_the_first_of_equals(void **state) {
    (void)state;
    vec_level levels[MAX_LEVELS];
    float x[LONGEST];
    for (int l = 0, n_levels = vec_levels(levels); l < n_levels; l++) {
        const clt_kernels *k = &levels[l].k;
        for (int n = 1; n <= LONGEST; n++) {
            for (int at = 0; at < n; at++) {
                for (int i = 0; i < n; i++)
                    x[i] = i == at || i == (at + 9) % n ? -1.0f : i % 3 ? NAN : -2.0f;
                int first = at < (at + 9) % n ? at : (at + 9) % n;
                assert_int_equal(k->argmax(x, n), first);
                for (int i = 0; i < n; i++)
                    x[i] = i == at ? -INFINITY : NAN;
                assert_int_equal(k->argmax(x, n), at);
                for (int i = 0; i < n; i++)
                    x[i] = i < at ? -INFINITY : i == at ? -0.0f : 0.0f;
                assert_int_equal(k->argmax(x, n), at);
            }
            for (int i = 0; i < n; i++)
                x[i] = NAN;
            assert_int_equal(k->argmax(x, n), 0);
        }
    }
}

/* ---- all levels give the same bits and stay inside the row ---- */

static float pick(uint64_t *seed, bool special) {
    static const float odd[16] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-130f, 3e38f, -3e38f, -87.33654f,
                                  -87.33655f, 9.02f, -20.0f, 1e-20f, 65504.0f, 1.0f};
    uint32_t kind = draw_bits(seed);
    if (special && kind % 4 == 0)
        return odd[kind / 4 % 16];
    if (special && kind % 4 == 1)
        return float_from_bits(draw_bits(seed));
    return draw_float(seed, kind % 3 ? 6.0f : 60.0f);
}

typedef struct operands {
    float a[LONGEST + GUARD], b[LONGEST + GUARD], y[LONGEST + GUARD];
} operands;

static void do_rms_norm(const clt_kernels *k, operands *o, int64_t n) { k->rms_norm(o->a, o->b, 1e-6f, o->y, n); }
static void do_rms_norm_bare(const clt_kernels *k, operands *o, int64_t n) { k->rms_norm(o->a, NULL, 1e-6f, o->a, n); }
static void do_add(const clt_kernels *k, operands *o, int64_t n) { k->add(o->a, o->b, o->y, n); }
static void do_scale(const clt_kernels *k, operands *o, int64_t n) { k->scale(o->a, o->b[0], o->y, n); }
static void do_clamp(const clt_kernels *k, operands *o, int64_t n) { k->clamp(o->a, -2.5f, 4.0f, o->y, n); }
static void do_axpy(const clt_kernels *k, operands *o, int64_t n) { k->axpy(o->b[0], o->a, o->y, n); }
static void do_gelu_mul(const clt_kernels *k, operands *o, int64_t n) { k->gelu_mul(o->a, o->b, o->y, n); }
static void do_sigmoid_mul(const clt_kernels *k, operands *o, int64_t n) { k->sigmoid_mul(o->a, o->b, o->y, n); }
static void do_dot(const clt_kernels *k, operands *o, int64_t n) { o->y[0] = k->dot(o->a, o->b, n); }
static void do_softmax(const clt_kernels *k, operands *o, int64_t n) { k->softmax(o->a, n); }
static void do_softcap(const clt_kernels *k, operands *o, int64_t n) { k->softcap(o->a, 30.0f, n); }
/* n / 2 * 2 wide, of which only the first pairs turn; b holds cos and sin of them all. */
static void do_rope(const clt_kernels *k, operands *o, int64_t n) { k->rope(o->a, o->b, n / 2 * 2, n / 2 - n / 2 % 3); }
static void do_argmax(const clt_kernels *k, operands *o, int64_t n) { o->y[0] = (float)k->argmax(o->a, n); }

static void levels_agree(void **state) {
    (void)state;
    static const struct { const char *name; void (*run)(const clt_kernels *, operands *, int64_t); } ops[] = {
        {"rms_norm", do_rms_norm}, {"rms_norm without weight", do_rms_norm_bare}, {"add", do_add}, {"scale", do_scale},
        {"clamp", do_clamp}, {"axpy", do_axpy}, {"gelu_mul", do_gelu_mul}, {"sigmoid_mul", do_sigmoid_mul},
        {"dot", do_dot}, {"softmax", do_softmax}, {"softcap", do_softcap},
        {"rope", do_rope}, {"argmax", do_argmax}};
    enum { N = (int)(sizeof(operands) / sizeof(float)) };
    vec_level levels[MAX_LEVELS];
    int n_levels = vec_levels(levels);
    uint64_t seed = 3;
    for (int round = 0; round < 40; round++) {
        for (int n = 1; n <= LONGEST; n++) {
            operands start;
            float *all = (float *)&start;
            for (int i = 0; i < N; i++)
                all[i] = pick(&seed, round % 2);
            for (size_t op = 0; op < sizeof ops / sizeof *ops; op++) {
                operands want = start;
                ops[op].run(&levels[0].k, &want, n);
                assert_int_equal(first_difference(want.y + n, start.y + n, LONGEST + GUARD - n), -1);
                assert_int_equal(first_difference(want.a + n, start.a + n, LONGEST + GUARD - n), -1);
                for (int l = 1; l < n_levels; l++) {
                    operands got = start;
                    ops[op].run(&levels[l].k, &got, n);
                    int64_t at = first_difference((float *)&got, (float *)&want, N);
                    if (at >= 0)
                        fail_msg("%s of %d numbers: %s gives %a at %d, scalar %a", ops[op].name, n, levels[l].name,
                                 (double)((float *)&got)[at], (int)at, (double)((float *)&want)[at]);
                }
            }
        }
    }
}

/* Every binade and sign, through the functions that take one number. */
static void levels_agree_on_all_binades(void **state) {
    (void)state;
    enum { N = 4096 };
    vec_level levels[MAX_LEVELS];
    static float x[N], ones[N], want[N], got[N];
    uint64_t seed = 11;
    int n_levels = vec_levels(levels);
    for (int round = 0; round < 64; round++) {
        for (int i = 0; i < N; i++) {
            x[i] = float_from_bits((uint32_t)(i % 512) << 23 | (draw_bits(&seed) & 0x7fffff));
            ones[i] = 1.0f;
        }
        for (int l = 1; l < n_levels; l++) {
            levels[0].k.gelu_mul(x, ones, want, N);
            levels[l].k.gelu_mul(x, ones, got, N);
            assert_int_equal(first_difference(got, want, N), -1);
            levels[0].k.sigmoid_mul(x, ones, want, N);
            levels[l].k.sigmoid_mul(x, ones, got, N);
            assert_int_equal(first_difference(got, want, N), -1);
            memcpy(want, x, sizeof want);
            memcpy(got, x, sizeof got);
            levels[0].k.softcap(want, 1.0f, N);
            levels[l].k.softcap(got, 1.0f, N);
            assert_int_equal(first_difference(got, want, N), -1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fma_is_rounded_once),
        cmocka_unit_test(exp_is_accurate),
        cmocka_unit_test(tanh_is_accurate),
        cmocka_unit_test(gelu_is_accurate),
        cmocka_unit_test(sigmoid_is_accurate),
        cmocka_unit_test(rows_are_accurate),
        cmocka_unit_test(argmax_takes_the_first_of_equals),
        cmocka_unit_test(levels_agree),
        cmocka_unit_test(levels_agree_on_all_binades),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
