/* Activations to 8 bits: every level against the definition, bit for bit, with ties, tails, infinities and NaN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "kernels/matrices.h"

enum { T = 3 };

static void check_rows(const clt_acts *a, const float *x, int64_t t) {
    int64_t blocks = (a->cols + 31) / 32;
    for (int64_t b = 0; b < blocks; b++) {
        float largest = 0, v[32];
        for (int i = 0; i < 32; i++) {
            v[i] = b * 32 + i < a->cols ? x[t * a->ldx + b * 32 + i] : 0;
            largest = fmaxf(largest, fabsf(v[i])); /* fmaxf passes over NaN */
        }
        float inverse = largest > 0 ? CLT_Q8_STEPS / largest : 0, d = largest / CLT_Q8_STEPS;
        assert_memory_equal(&d, &a->d[t * blocks + b], sizeof d);
        int sums[2] = {0};
        for (int i = 0; i < 32; i++) {
            double y = (double)(v[i] * inverse);
            int q = isnan(y) ? 0 : (int)nearbyint(fmin(127, fmax(-127, y)));
            assert_int_equal(a->q[(t * blocks + b) * 32 + i], q);
            sums[i / 16] += q;
        }
        assert_int_equal(a->sums[(t * blocks + b) * 2], sums[0]);
        assert_int_equal(a->sums[(t * blocks + b) * 2 + 1], sums[1]);
    }
}

static void check_all_levels(int64_t cols, const float *x, int64_t ldx) {
    for (int level = 0; level < CLT_CPU_LEVELS; level++) {
        const clt_kernels *k = clt_kernels_get((clt_cpu_level)level);
        if (!k)
            continue;
        clt_acts a = acts_make(T, cols, 1);
        free((void *)(uintptr_t)a.x);
        a.x = x;
        a.ldx = ldx;
        k->quantize(&a, 1, T);
        k->quantize(&a, 0, 1);
        for (int64_t t = 0; t < T; t++)
            check_rows(&a, x, t);
        a.x = NULL;
        acts_free(&a);
    }
}

/* Pairs of every level: the row quantised by itself, then its remainder quantised by itself. */
static void check_pairs(int64_t cols, const float *x, int64_t ldx) {
    int64_t blocks = (cols + 31) / 32;
    for (int level = 0; level < CLT_CPU_LEVELS; level++) {
        const clt_kernels *k = clt_kernels_get((clt_cpu_level)level);
        if (!k)
            continue;
        clt_acts pairs = acts_make(2 * T, cols, 1), one = acts_make(1, cols, 1);
        float *rest = malloc((size_t)cols * sizeof *rest);
        const float *own = pairs.x;
        pairs.x = x;
        pairs.ldx = ldx;
        k->quantize_pair(&pairs, 1, T);
        k->quantize_pair(&pairs, 0, 1);
        pairs.x = own;
        for (int64_t row = 0; row < 2 * T; row++) {
            clt_acts a = one, got = acts_from(&pairs, row);
            a.x = row % 2 ? rest : x + row / 2 * ldx;
            clt_kernels_get(CLT_CPU_SCALAR)->quantize(&a, 0, 1);
            assert_memory_equal(got.q, a.q, (size_t)blocks * 32);
            assert_memory_equal(got.d, a.d, (size_t)blocks * sizeof *a.d);
            assert_memory_equal(got.sums, a.sums, (size_t)blocks * 2 * sizeof *a.sums);
            for (int64_t i = 0; row % 2 == 0 && i < cols; i++) {
                volatile float product = a.d[i / 32] * (float)a.q[i];
                rest[i] = a.x[i] - product;
            }
        }
        free(rest);
        acts_free(&pairs);
        acts_free(&one);
    }
}

static void test_pairs(void **state) {
    static float x[T * 1000];
    static const float odd[] = {NAN, INFINITY, 3.4e38f, 1e-45f, -1e-40f, -0.f};
    uint64_t seed = 4;
    (void)state;
    for (int64_t cols = 1; cols <= 200; cols += 1 + cols / 7)
        for (int hostile = 0; hostile < 2; hostile++) {
            for (int64_t i = 0; i < T * 1000; i++)
                x[i] = hostile && i % 5 == 0 ? odd[i / 5 % 6] : random_float(&seed);
            check_pairs(cols, x, cols + 5);
        }
}

static void test_random(void **state) {
    static float x[T * 1000];
    uint64_t seed = 3;
    (void)state;
    for (int64_t cols = 1; cols <= 200; cols += 1 + cols / 7)
        for (int scale = -30; scale <= 30; scale += 20) {
            for (int64_t i = 0; i < T * 1000; i++)
                x[i] = ldexpf(random_float(&seed), scale);
            check_all_levels(cols, x, cols + 5);
        }
}

/* With a largest of CLT_Q8_STEPS every half is a tie. */
static void test_ties(void **state) {
    static float x[T * 256];
    (void)state;
    for (int i = 0; i < T * 256; i++)
        x[i] = i % 32 == 0 ? CLT_Q8_STEPS : (float)(i % 254) * 0.5f - 63.5f;
    check_all_levels(256, x, 256);
}

static void test_hostile(void **state) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3.4e38f, 1e-45f, -1e-40f, 1e-37f, -0.f, 0, -NAN};
    enum { ODD = sizeof odd / sizeof odd[0] };
    static float x[T * 64];
    (void)state;
    for (int a = 0; a < ODD; a++)
        for (int b = 0; b < ODD; b++)
            for (int period = 1; period < 34; period += 4) {
                for (int i = 0; i < T * 64; i++)
                    x[i] = i % period ? odd[a] : odd[b];
                check_all_levels(64, x, 64);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_pairs), cmocka_unit_test(test_ties),
        cmocka_unit_test(test_hostile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
