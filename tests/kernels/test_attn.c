/* Attention over chunks: the written order against a double-precision reference, equality of bits between CPU levels for
 * every type, width, number of queries and range, and memory that must not matter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "kernels/attn_layout.h"
#include "vec_levels.h"

enum { S = CLT_ATTN_CHUNK, WIDEST = 512, MOST = 70 };
enum { N_TYPES = 5 };
static const clt_kv_types types[N_TYPES] = {
    {CLT_F32, CLT_F32}, {CLT_F16, CLT_F16}, {CLT_Q8_0, CLT_Q8_0}, {CLT_F16, CLT_Q8_0}, {CLT_Q8_0, CLT_F32}};
static const char *const type_names[N_TYPES] = {"F32", "F16", "Q8_0", "F16 and Q8_0", "Q8_0 and F32"};

typedef struct problem {
    int64_t head_dim;
    clt_kv_chunk chunk;
    _Alignas(64) uint8_t k[S * WIDEST * 4], v[S * WIDEST * 4];
    float q[MOST * (WIDEST + 3)];
    int64_t ldq;
    int R, lo[MOST], hi[MOST];
    float scale;
} problem;

typedef struct answer {
    float m[MOST + 1], l[MOST + 1], o[MOST * (WIDEST + 5)];
} answer;

static problem p; /* too large for the stack */
static answer want, got;

static void fill_chunk(const clt_kernels *k, clt_kv_types t, int64_t head_dim, uint64_t *seed, float top) {
    float key[WIDEST], value[WIDEST];
    p.head_dim = head_dim;
    p.chunk = (clt_kv_chunk){p.k, p.v};
    for (int slot = 0; slot < S; slot++) {
        for (int64_t d = 0; d < head_dim; d++) {
            key[d] = draw_float(seed, top);
            value[d] = draw_float(seed, top);
        }
        k->kv_store(t, head_dim, p.k, p.v, slot, key, value);
    }
}

static void fill_queries(int R, uint64_t *seed, float top) {
    p.R = R;
    p.ldq = p.head_dim + 3;
    p.scale = 0.3f;
    for (int64_t i = 0; i < R * p.ldq; i++)
        p.q[i] = draw_float(seed, top);
}

static void run(const clt_kernels *k, clt_kv_types t, answer *a) {
    memset(a, 0x5a, sizeof *a);
    k->attn_chunk(t, p.head_dim, &p.chunk, p.q, p.ldq, p.R, p.lo, p.hi, p.scale, a->m, a->l, a->o, p.head_dim + 5);
}

static void expect_same(const char *what, const char *level) {
    int64_t at = first_difference((const float *)&got, (const float *)&want, sizeof got / sizeof(float));
    if (at >= 0)
        fail_msg("%s, Dh %d, R %d: %s gives %a at float %d, scalar %a", what, (int)p.head_dim, p.R, level,
                 (double)((const float *)&got)[at], (int)at, (double)((const float *)&want)[at]);
}

/* Number d of a slot as a value, by the layout that attn_layout.h states. */
static double stored(clt_type t, const uint8_t *side, bool keys, int64_t d, int slot) {
    int64_t at = keys ? d * S + slot : slot * p.head_dim + d;
    if (t == CLT_F32)
        return (double)((const float *)(const void *)side)[at];
    if (t == CLT_F16)
        return (double)clt_f16_to_f32(((const uint16_t *)(const void *)side)[at]);
    return ((const int8_t *)side)[at] * (double)clt_kv_scales(side, p.head_dim)[d / 32 * S + slot];
}

static void compare_with_double(clt_kv_types t, const answer *a, int r) {
    double s[S], top = -INFINITY, sum = 0;
    for (int j = p.lo[r]; j < p.hi[r]; j++) {
        s[j] = 0;
        for (int64_t d = 0; d < p.head_dim; d++)
            s[j] += (double)p.q[r * p.ldq + d] * stored(t.k, p.k, true, d, j);
        s[j] *= (double)p.scale;
        top = fmax(top, s[j]);
    }
    assert_true(fabs((double)a->m[r] - top) < 1e-4);
    for (int j = p.lo[r]; j < p.hi[r]; j++)
        sum += s[j] = exp(s[j] - top);
    assert_true(fabs((double)a->l[r] - sum) < 1e-4 * sum);
    for (int64_t d = 0; d < p.head_dim; d++) {
        double o = 0;
        for (int j = p.lo[r]; j < p.hi[r]; j++)
            o += s[j] * stored(t.v, p.v, false, d, j);
        assert_true(fabs((double)a->o[r * (p.head_dim + 5) + d] - o) < 3e-4);
    }
}

static void chunk_matches_double(void **state) {
    (void)state;
    static const int64_t widths[] = {2, 16, 64, 70, 96, 256};
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 5;
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        for (int t = 0; t < N_TYPES; t++) {
            for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
                fill_chunk(&levels[l].k, types[t], widths[w], &seed, 1.0f);
                fill_queries(9, &seed, 1.0f);
                for (int r = 0; r < p.R; r++) {
                    p.lo[r] = (int)(draw_bits(&seed) % S);
                    p.hi[r] = p.lo[r] + 1 + (int)(draw_bits(&seed) % (uint32_t)(S - p.lo[r]));
                }
                run(&levels[l].k, types[t], &got);
                for (int r = 0; r < p.R; r++)
                    compare_with_double(types[t], &got, r);
            }
        }
    }
}

/* Ranges as callers have them: causal, windowed, whole, empty, and arbitrary. */
static void pick_ranges(int round, uint64_t *seed) {
    for (int r = 0; r < p.R; r++) {
        switch (round % 5) {
        case 0: p.lo[r] = 0; p.hi[r] = S; break;
        case 1: p.lo[r] = 0; p.hi[r] = 1 + (int)((unsigned)(round / 5 + r / 4) % S); break;
        case 2: p.lo[r] = (int)((unsigned)(round + r) % S); p.hi[r] = S; break;
        case 3: p.lo[r] = (int)(draw_bits(seed) % S); p.hi[r] = (int)(draw_bits(seed) % (S + 1)); break;
        default:
            p.lo[r] = (int)(draw_bits(seed) % S);
            p.hi[r] = p.lo[r] + (int)(draw_bits(seed) % (uint32_t)(S + 1 - p.lo[r]));
        }
    }
}

static void levels_agree(void **state) {
    (void)state;
    static const int64_t widths[] = {2, 4, 6, 16, 30, 32, 34, 62, 64, 66, 70, 96, 100, 128, 130, 256, 512};
    vec_level levels[MAX_LEVELS];
    int n_levels = vec_levels(levels), round = 0;
    uint64_t seed = 17;
    for (int t = 0; t < N_TYPES; t++) {
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            fill_chunk(&levels[0].k, types[t], widths[w], &seed, 3.0f);
            for (int i = 0; i < 14; i++, round++) {
                fill_queries(i < 9 ? i + 1 : i == 9 ? MOST : 12 + (i - 9) * 6, &seed, round % 7 ? 0.4f : 20.0f);
                pick_ranges(round, &seed);
                run(&levels[0].k, types[t], &want);
                for (int l = 1; l < n_levels; l++) {
                    run(&levels[l].k, types[t], &got);
                    expect_same(type_names[t], levels[l].name);
                }
            }
        }
    }
}

/* A row's bits do not depend on the rows beside it. */
static void rows_are_independent(void **state) {
    (void)state;
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 23;
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        for (int t = 0; t < N_TYPES; t++) {
            fill_chunk(&levels[l].k, types[t], 100, &seed, 2.0f);
            fill_queries(40, &seed, 1.0f);
            pick_ranges(4, &seed);
            run(&levels[l].k, types[t], &want);
            for (int r = 0; r < p.R; r++) {
                float m, sum, o[100];
                levels[l].k.attn_chunk(types[t], 100, &p.chunk, p.q + r * p.ldq, p.ldq, 1, p.lo + r, p.hi + r, p.scale, &m,
                                       &sum, o, 100);
                assert_memory_equal(&m, want.m + r, sizeof m);
                assert_memory_equal(&sum, want.l + r, sizeof sum);
                assert_memory_equal(o, want.o + r * 105, sizeof o);
            }
        }
    }
}

/* What lies in slots that no query sees, or that only others see, changes nothing: here every byte of it is 0xff (NaN in
 * floats, halves and scales) against 0. */
static void unseen_slots_do_not_matter(void **state) {
    (void)state;
    static const int64_t widths[] = {16, 70, 128};
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 29;
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        for (int t = 0; t < N_TYPES; t++) {
            for (int round = 0; round < 30; round++) {
                float key[WIDEST], value[WIDEST];
                int64_t width = widths[round % 3];
                p.head_dim = width;
                p.chunk = (clt_kv_chunk){p.k, p.v};
                fill_queries(9, &seed, 1.0f);
                int lo = (int)(draw_bits(&seed) % S), hi = lo + 1 + (int)(draw_bits(&seed) % (uint32_t)(S - lo));
                for (int stale = 0; stale < 2; stale++) {
                    uint64_t same = (uint64_t)round;
                    memset(p.k, stale ? 0xff : 0, sizeof p.k);
                    memset(p.v, stale ? 0xff : 0, sizeof p.v);
                    for (int slot = lo; slot < hi; slot++) {
                        for (int64_t d = 0; d < width; d++) {
                            key[d] = draw_float(&same, 2.0f);
                            value[d] = draw_float(&same, 2.0f);
                        }
                        levels[l].k.kv_store(types[t], width, p.k, p.v, slot, key, value);
                    }
                    for (int r = 0; r < p.R; r++) {
                        p.lo[r] = r % 2 ? lo : (lo + hi) / 2;
                        p.hi[r] = hi;
                    }
                    /* Row 0 sees the garbage: it may spoil row 0 only. */
                    p.lo[0] = 0;
                    p.hi[0] = S;
                    run(&levels[l].k, types[t], stale ? &got : &want);
                }
                for (int r = 1; r < p.R; r++) {
                    assert_true(got.m[r] == got.m[r]);
                    assert_memory_equal(&got.m[r], &want.m[r], sizeof(float));
                    assert_memory_equal(&got.l[r], &want.l[r], sizeof(float));
                    assert_memory_equal(got.o + r * (width + 5), want.o + r * (width + 5), (size_t)width * sizeof(float));
                }
            }
        }
    }
}

static void empty_ranges_give_nothing(void **state) {
    (void)state;
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 31;
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        fill_chunk(&levels[l].k, (clt_kv_types){CLT_F16, CLT_F16}, 64, &seed, 1.0f);
        fill_queries(3, &seed, 1.0f);
        memcpy(p.lo, (int[]){5, 64, 0}, 3 * sizeof(int));
        memcpy(p.hi, (int[]){5, 0, 0}, 3 * sizeof(int));
        run(&levels[l].k, (clt_kv_types){CLT_F16, CLT_F16}, &got);
        for (int r = 0; r < 3; r++) {
            assert_true(got.m[r] == -INFINITY && bits_from_float(got.l[r]) == 0);
            for (int d = 0; d < 64; d++)
                assert_true(bits_from_float(got.o[r * 69 + d]) == 0);
        }
    }
}

static void damage_stays_visible(void **state) {
    (void)state;
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 37;
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        for (int t = 0; t < N_TYPES; t++) {
            float key[64] = {1.0f}, value[64] = {1.0f};
            fill_chunk(&levels[l].k, types[t], 64, &seed, 1.0f);
            fill_queries(2, &seed, 1.0f);
            p.lo[0] = p.lo[1] = 0;
            p.hi[0] = S;
            p.hi[1] = 40;
            key[40] = NAN;
            levels[l].k.kv_store(types[t], 64, p.k, p.v, 40, key, value);
            run(&levels[l].k, types[t], &got);
            assert_true(isnan(got.m[0]) && isnan(got.l[0]) && isnan(got.o[0]) && isnan(got.o[63]));
            assert_false(isnan(got.m[1]) || isnan(got.l[1]) || isnan(got.o[69]));
            float m = got.m[1], sum = got.l[1], o[64];
            memcpy(o, got.o + 69, sizeof o);
            levels[l].k.attn_merge(64, &m, &sum, o, got.m[0], got.l[0], got.o);
            assert_true(isnan(sum) && isnan(o[5]));
        }
    }
}

/* Scores that are all zeros of either sign: the largest is +0 whatever the order of comparison. */
static void zero_scores_have_one_sign(void **state) {
    (void)state;
    vec_level levels[MAX_LEVELS];
    float key[4] = {0}, value[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    int n = vec_levels(levels);
    for (int i = 0; i < 3 * n; i++) {
        int l = i / 3, positive = i % 3; /* every third slot is +0, or none */
        p.head_dim = 4;
        for (int slot = 0; slot < S; slot++) {
            key[3] = slot % 3 == positive - 1 ? 0x1p-149f : -0x1p-149f;
            levels[l].k.kv_store((clt_kv_types){CLT_F32, CLT_F32}, 4, p.k, p.v, slot, key, value);
        }
        p.chunk = (clt_kv_chunk){p.k, p.v};
        p.R = 1;
        p.ldq = 4;
        p.scale = 1.0f;
        memcpy(p.q, (float[]){0, 0, 0, 0x1p-20f}, 4 * sizeof(float));
        p.lo[0] = 0;
        p.hi[0] = S;
        run(&levels[l].k, (clt_kv_types){CLT_F32, CLT_F32}, &got);
        assert_true(bits_from_float(got.m[0]) == 0 && got.l[0] == 64.0f && got.o[3] == 256.0f);
    }
}

static void store_rounds_and_clamps(void **state) {
    (void)state;
    enum { N = 12 };
    static const float x[N] = {1e6f, -1e6f, INFINITY, -INFINITY, 65519.0f, 65520.0f, 1.0004883f, 1.0014648f, 0x1p-24f,
                               0x1p-25f, 0x1.8p-24f, -0.0f};
    static const float expected[N] = {65504.0f, -65504.0f, 65504.0f, -65504.0f, 65504.0f, 65504.0f, 1.0f, 0x1.008p0f,
                                      0x1p-24f, 0.0f, 0x1p-23f, -0.0f};
    vec_level levels[MAX_LEVELS];
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        levels[l].k.kv_store((clt_kv_types){CLT_F16, CLT_F16}, N, p.k, p.v, 13, x, x);
        for (int d = 0; d < N; d++) {
            float k = clt_f16_to_f32(((uint16_t *)(void *)p.k)[d * S + 13]);
            float v = clt_f16_to_f32(((uint16_t *)(void *)p.v)[13 * N + d]);
            assert_int_equal(first_difference(&k, &expected[d], 1), -1);
            assert_int_equal(first_difference(&v, &expected[d], 1), -1);
        }
    }
}

static void store_quantizes_blocks(void **state) {
    (void)state;
    vec_level levels[MAX_LEVELS];
    float x[40] = {0};
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i - 20) * 0.1f; /* largest magnitude 2.0 */
    for (int i = 32; i < 40; i++)
        x[i] = 1e-38f;                 /* as good as zero */
    for (int l = 0, n = vec_levels(levels); l < n; l++) {
        p.head_dim = 40;
        levels[l].k.kv_store((clt_kv_types){CLT_Q8_0, CLT_Q8_0}, 40, p.k, p.v, 63, x, x);
        for (int d = 0; d < 40; d++) {
            double limit = d < 32 ? 1.0 / 127.0 + 1e-6 : 1e-30;
            assert_true(fabs(stored(CLT_Q8_0, p.k, true, d, 63) - (double)x[d]) < limit);
            assert_true(fabs(stored(CLT_Q8_0, p.v, false, d, 63) - (double)x[d]) < limit);
        }
        assert_int_equal(((int8_t *)p.k)[63], -127);
        x[33] = INFINITY;
        levels[l].k.kv_store((clt_kv_types){CLT_Q8_0, CLT_Q8_0}, 40, p.k, p.v, 63, x, x);
        assert_true(isnan(stored(CLT_Q8_0, p.v, false, 35, 63)) && !isnan(stored(CLT_Q8_0, p.v, false, 31, 63)));
        x[33] = 0.0f;
    }
}

/* A position is written to its slot alone, and equal on all levels. */
static void store_touches_one_slot(void **state) {
    (void)state;
    static uint8_t k0[S * 70 * 4], v0[S * 70 * 4];
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 41;
    float x[70], y[70];
    int n_levels = vec_levels(levels);
    for (int t = 0; t < N_TYPES; t++) {
        for (int64_t width = 2; width <= 70; width += 2) {
            size_t k_bytes = clt_kv_chunk_bytes(types[t].k, width), v_bytes = clt_kv_chunk_bytes(types[t].v, width);
            assert_true(k_bytes % 64 == 0 && k_bytes <= sizeof p.k && v_bytes % 64 == 0);
            for (int64_t d = 0; d < width; d++) {
                x[d] = draw_float(&seed, 9.0f);
                y[d] = draw_float(&seed, 9.0f);
            }
            for (int l = 0; l < n_levels; l++) {
                memset(p.k, 0xa5, sizeof p.k);
                memset(p.v, 0xa5, sizeof p.v);
                levels[l].k.kv_store(types[t], width, p.k, p.v, (int)(width % S), x, y);
                if (l == 0) {
                    memcpy(k0, p.k, sizeof k0);
                    memcpy(v0, p.v, sizeof v0);
                }
                assert_memory_equal(p.k, k0, sizeof k0);
                assert_memory_equal(p.v, v0, sizeof v0);
            }
            size_t number = clt_kv_number_bytes(types[t].v), changed = 0;
            for (size_t i = 0; i < v_bytes; i++)
                if (p.v[i] != 0xa5 && i < (size_t)width * S * number) {
                    changed++;
                    assert_true(i / ((size_t)width * number) == (size_t)(width % S));
                }
            assert_true(changed > 0);
            number = clt_kv_number_bytes(types[t].k);
            for (size_t i = 0; i < (size_t)width * S * number; i++)
                if (p.k[i] != 0xa5)
                    assert_true(i / number % S == (size_t)(width % S));
        }
    }
}

static void merges_agree_and_are_right(void **state) {
    (void)state;
    enum { N = 70 };
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 43;
    int n_levels = vec_levels(levels);
    static const float tops[] = {-INFINITY, 0.0f, -3.0f, 5.0f, 200.0f, -200.0f};
    for (int round = 0; round < 36; round++) {
        for (int64_t n = 2; n <= N; n += 2) {
            float o1[N], o2[N], first[N], m1 = tops[round / 6], m2 = tops[round % 6];
            float l1 = m1 > -1e9f ? 2.5f : 0.0f, l2 = m2 > -1e9f ? 1.5f : 0.0f;
            for (int i = 0; i < N; i++) {
                o1[i] = draw_float(&seed, 1.0f);
                o2[i] = draw_float(&seed, 1.0f);
            }
            for (int l = 0; l < n_levels; l++) {
                float m = m1, sum = l1, o[N];
                memcpy(o, o1, sizeof o);
                levels[l].k.attn_merge(n, &m, &sum, o, m2, l2, o2);
                assert_true(m == (m1 > m2 ? m1 : m2));
                double keep = m2 < -1e9f ? 1 : m1 > -1e9f ? exp((double)m1 - (double)m) : 0;
                double take = m2 > -1e9f ? exp((double)m2 - (double)m) : 0;
                assert_true(fabs((double)sum - (keep * (double)l1 + take * (double)l2)) < 1e-6);
                for (int64_t i = 0; i < n; i++)
                    assert_true(fabs((double)o[i] - (keep * (double)o1[i] + take * (double)o2[i])) < 1e-6);
                assert_memory_equal(o + n, o1 + n, (size_t)(N - n) * sizeof *o);
                levels[l].k.attn_finish(n, 3.0f, o);
                if (l == 0)
                    memcpy(first, o, sizeof o);
                assert_memory_equal(o, first, sizeof o);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunk_matches_double),
        cmocka_unit_test(levels_agree),
        cmocka_unit_test(rows_are_independent),
        cmocka_unit_test(unseen_slots_do_not_matter),
        cmocka_unit_test(empty_ranges_give_nothing),
        cmocka_unit_test(damage_stays_visible),
        cmocka_unit_test(zero_scores_have_one_sign),
        cmocka_unit_test(store_rounds_and_clamps),
        cmocka_unit_test(store_quantizes_blocks),
        cmocka_unit_test(store_touches_one_slot),
        cmocka_unit_test(merges_agree_and_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
