/* The search for scales: the same bits on every level, within each type's bound of error, and exact on numbers that a type
 * already holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "kernels/fit.h"

static const clt_type all[] = {CLT_Q4_0, CLT_Q4_1, CLT_Q5_0, CLT_Q5_1, CLT_Q8_0, CLT_IQ4_NL,
                               CLT_Q2_K, CLT_Q3_K, CLT_Q4_K, CLT_Q5_K, CLT_Q6_K, CLT_IQ4_XS};
enum { N_TYPES = sizeof all / sizeof *all, MAX = CLT_FIT_MAX_LEN * CLT_FIT_LANES };

static uint64_t seed = 1;
static float uniform(void) { /* in (-1, 1) */
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}
static float bell(void) { return uniform() + uniform() + uniform() + uniform(); }

static int length_of(clt_type t) { return (int)clt_type_get((uint32_t)t)->block_len; }

/* Lane `lane` of a fit as a block of bytes, decoded. */
static void decode_lane(clt_type t, const clt_fit *f, int lane, float *y) {
    uint8_t block[512] = {0};
    int sub_len = clt_fit_sub_len(t);
    for (int run = 0; run < length_of(t) / CLT_RUN; run++) {
        clt_run r = {.d = f->d[lane], .m = f->m[lane]};
        for (int h = 0; h < 2; h++) {
            int sub = (run * CLT_RUN + 16 * h) / sub_len;
            r.scale[h] = (int8_t)f->scale[sub][lane];
            r.min[h] = (uint8_t)f->min[sub][lane];
        }
        for (int i = 0; i < CLT_RUN; i++) r.code[i] = f->code[run * CLT_RUN + i][lane];
        assert_true(clt_run_put(t, block, run, &r));
    }
    clt_type_get((uint32_t)t)->decode(block, y, length_of(t));
}

static void fill(int n, float *x, float *w, float size) {
    for (int i = 0; i < n * CLT_FIT_LANES; i++) {
        x[i] = bell() * size;
        w[i] = fabsf(bell()) + 0.01f;
    }
}

static void assert_equal_fits(clt_type t, const clt_fit *a, const clt_fit *b) {
    int subs = length_of(t) / clt_fit_sub_len(t);
    assert_memory_equal(a->d, b->d, sizeof a->d);
    assert_memory_equal(a->m, b->m, sizeof a->m);
    assert_memory_equal(a->code, b->code, (size_t)length_of(t) * CLT_FIT_LANES);
    assert_memory_equal(a->scale, b->scale, (size_t)subs * sizeof a->scale[0]);
    assert_memory_equal(a->min, b->min, (size_t)subs * sizeof a->min[0]);
}

static void test_levels_agree(void **state) {
    static float x[MAX], w[MAX];
    static clt_fit want, found;
    (void)state;
    for (int k = 0; k < N_TYPES; k++)
        for (int size = -30; size <= 30; size += 10) {
            fill(length_of(all[k]), x, w, ldexpf(1, size));
            memset(&want, 0, sizeof want);
            clt_fit_scalar(all[k], x, w, &want);
            for (int level = 0; level < CLT_CPU_LEVELS; level++) {
                if (!clt_cpu_has((clt_cpu_level)level)) continue;
                memset(&found, 0, sizeof found);
                clt_fit_get((clt_cpu_level)level)(all[k], x, w, &found);
                assert_equal_fits(all[k], &want, &found);
            }
        }
}

/* A block's result does not depend on its neighbours. */
static void test_lanes_are_alone(void **state) {
    static float x[MAX], w[MAX], other_x[MAX], other_w[MAX];
    static clt_fit a, b;
    (void)state;
    for (int k = 0; k < N_TYPES; k++) {
        int n = length_of(all[k]);
        float one[CLT_FIT_MAX_LEN], two[CLT_FIT_MAX_LEN];
        fill(n, x, w, 1);
        fill(n, other_x, other_w, 100);
        for (int i = 0; i < n; i++) {
            other_x[i * CLT_FIT_LANES + 11] = x[i * CLT_FIT_LANES + 3];
            other_w[i * CLT_FIT_LANES + 11] = w[i * CLT_FIT_LANES + 3];
        }
        clt_fit_scalar(all[k], x, w, &a);
        clt_fit_scalar(all[k], other_x, other_w, &b);
        decode_lane(all[k], &a, 3, one);
        decode_lane(all[k], &b, 11, two);
        assert_memory_equal(one, two, (size_t)n * sizeof *one);
    }
}

/* Of numbers with a bell-shaped distribution, the root mean square error relative to that of the numbers. */
static void test_error_bounds(void **state) {
    static const struct { clt_type t; double bound; } bounds[] = {
        {CLT_Q4_0, 0.082}, {CLT_Q4_1, 0.071}, {CLT_Q5_0, 0.041}, {CLT_Q5_1, 0.035}, {CLT_Q8_0, 0.0052}, {CLT_IQ4_NL, 0.077},
        {CLT_Q2_K, 0.27},  {CLT_Q3_K, 0.15},  {CLT_Q4_K, 0.072}, {CLT_Q5_K, 0.036}, {CLT_Q6_K, 0.0175}, {CLT_IQ4_XS, 0.077},
    };
    static float x[MAX], w[MAX];
    static clt_fit f;
    (void)state;
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        double error = 0, signal = 0;
        int n = length_of(bounds[k].t);
        for (int round = 0; round < 20; round++) {
            fill(n, x, w, 0.03f);
            for (int i = 0; i < n * CLT_FIT_LANES; i++) w[i] = 1;
            clt_fit_get(CLT_CPU_SCALAR)(bounds[k].t, x, w, &f);
            for (int lane = 0; lane < CLT_FIT_LANES; lane++) {
                float y[CLT_FIT_MAX_LEN];
                decode_lane(bounds[k].t, &f, lane, y);
                for (int i = 0; i < n; i++) {
                    double v = (double)x[i * CLT_FIT_LANES + lane], e = v - (double)y[i];
                    error += e * e;
                    signal += v * v;
                }
            }
        }
        double found = sqrt(error / signal);
        if (!(found < bounds[k].bound)) fail_msg("%s: error %g", clt_type_name((uint32_t)bounds[k].t), found);
    }
}

/* No number is further off than the widest gap between two values, or than what lies beyond the ends of the range. */
static void test_no_number_is_lost(void **state) {
    static float x[MAX], w[MAX];
    static clt_fit f;
    (void)state;
    for (int k = 0; k < N_TYPES; k++) {
        int n = length_of(all[k]);
        fill(n, x, w, 1);
        for (int i = 0; i < n * CLT_FIT_LANES; i++) w[i] = 1;
        clt_fit_scalar(all[k], x, w, &f);
        for (int lane = 0; lane < CLT_FIT_LANES; lane++) {
            float y[CLT_FIT_MAX_LEN], largest = 0;
            decode_lane(all[k], &f, lane, y);
            for (int i = 0; i < n; i++) largest = fmaxf(largest, fabsf(x[i * CLT_FIT_LANES + lane]));
            for (int i = 0; i < n; i++) assert_true(fabsf(x[i * CLT_FIT_LANES + lane] - y[i]) < 0.75f * largest);
        }
    }
}

/* Values of a plain quantisation, with the largest number on the end of the range, come out as they went in. */
static void test_finds_an_earlier_quantisation(void **state) {
    static const struct { clt_type t; int lo, hi; } plain[] = {{CLT_Q4_0, -8, 7}, {CLT_Q5_0, -16, 15}, {CLT_Q8_0, -127, 127},
                                                               {CLT_Q6_K, -32, 31}, {CLT_Q3_K, -4, 3}};
    static float x[MAX], w[MAX];
    static clt_fit f;
    (void)state;
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
        int n = length_of(plain[k].t), range = plain[k].hi - plain[k].lo + 1;
        for (int i = 0; i < n * CLT_FIT_LANES; i++) {
            int code = plain[k].lo + (int)((uniform() + 1) / 2 * (float)range) % range;
            if (i / CLT_FIT_LANES % clt_fit_sub_len(plain[k].t) == 0) code = plain[k].lo;
            x[i] = 0.0078125f * (float)code;
            w[i] = fabsf(uniform()) + 0.01f;
        }
        clt_fit_scalar(plain[k].t, x, w, &f);
        for (int lane = 0; lane < CLT_FIT_LANES; lane++) {
            float y[CLT_FIT_MAX_LEN];
            decode_lane(plain[k].t, &f, lane, y);
            for (int i = 0; i < n; i++)
                if (!(fabsf(x[i * CLT_FIT_LANES + lane] - y[i]) < 1e-6f))
                    fail_msg("%s: %g became %g", clt_type_name((uint32_t)plain[k].t),
                             (double)x[i * CLT_FIT_LANES + lane], (double)y[i]);
        }
    }
}

/* Zeros, one number alone, all the same number, no weight at all: nothing but finite numbers, and zeros stay zeros. */
static void test_odd_blocks(void **state) {
    static float x[MAX], w[MAX];
    static clt_fit f;
    (void)state;
    for (int k = 0; k < N_TYPES; k++) {
        int n = length_of(all[k]);
        for (int i = 0; i < n; i++)
            for (int lane = 0; lane < CLT_FIT_LANES; lane++) {
                float *v = &x[i * CLT_FIT_LANES + lane];
                *v = lane == 1 && i == 5 ? 3.0f : lane == 2 ? -0.25f : lane == 3 ? 1e-30f * uniform()
                     : lane == 4 ? 1e15f * uniform() : lane > 4 ? bell() : 0;
                w[i * CLT_FIT_LANES + lane] = lane == 5 ? 0 : lane == 6 ? (float)(i == 7) : lane == 7 ? 1e-30f : 1;
            }
        clt_fit_scalar(all[k], x, w, &f);
        for (int lane = 0; lane < CLT_FIT_LANES; lane++) {
            float y[CLT_FIT_MAX_LEN];
            decode_lane(all[k], &f, lane, y);
            for (int i = 0; i < n; i++) {
                assert_true(isfinite(y[i]));
                if (lane == 0) assert_true(y[i] == 0);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_agree), cmocka_unit_test(test_lanes_are_alone), cmocka_unit_test(test_error_bounds),
        cmocka_unit_test(test_no_number_is_lost), cmocka_unit_test(test_finds_an_earlier_quantisation),
        cmocka_unit_test(test_odd_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
