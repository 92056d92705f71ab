/* Matmul of every type: the scalar level against the contract written out over the file's own blocks, every other level
 * against the scalar one, bit for bit, whatever the number of rows, the range of panels and the extremes of the codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include "kernels/matrices.h"
#include "quant/run.h"

enum { ROWS_MAX = 70, SENTINEL = 12345 };

static const char *level_name(int level) {
    return clt_cpu_level_name((clt_cpu_level)level);
}

/* One output of a quantised type, straight from the row of the file. */
static float expected_quantised(clt_type t, const uint8_t *row, const clt_acts *a, int64_t at) {
    bool table = t == CLT_IQ4_NL || t == CLT_IQ4_XS, halves = t == CLT_Q2_K || t == CLT_Q3_K || t == CLT_Q6_K;
    bool plus = t == CLT_Q4_1 || t == CLT_Q5_1, minus = t == CLT_Q2_K || t == CLT_Q4_K || t == CLT_Q5_K;
    float acc = 0;

    for (int64_t b = 0; b < a->cols / 32; b++) {
        int64_t block = at * (a->cols / 32) + b, i[2] = {0}, s[2] = {0};
        clt_run r;
        assert_true(clt_run_get(t, row, b, &r));
        for (int k = 0; k < 32; k++) {
            int value = table ? clt_iq4_values[r.code[k]] : r.code[k] - clt_run_offset(t);
            i[k / 16] += value * a->q[32 * block + k];
            s[k / 16] += a->q[32 * block + k];
        }
        float d = clt_f16_to_f32(r.d), m = clt_f16_to_f32(r.m), dx = a->d[block];
        if (halves)
            acc = fmaf(d * dx, (float)(r.scale[0] * i[0] + r.scale[1] * i[1]), acc);
        else
            acc = fmaf(d * (float)r.scale[0] * dx, (float)(i[0] + i[1]), acc);
        if (plus)
            acc = fmaf(m, dx * (float)(s[0] + s[1]), acc);
        if (minus && halves) {
            acc = fmaf(-(m * (float)r.min[0]), dx * (float)s[0], acc);
            acc = fmaf(-(m * (float)r.min[1]), dx * (float)s[1], acc);
        } else if (minus) {
            acc = fmaf(-(m * (float)r.min[0]), dx * (float)(s[0] + s[1]), acc);
        }
    }
    return acc;
}

static float expected_float(const clt_type_info *t, const uint8_t *row, const clt_acts *a, int64_t at) {
    float acc = 0;
    for (int64_t k = 0; k < a->cols; k++) {
        float w;
        t->decode(row + k * t->block_bytes, &w, 1);
        acc = fmaf(w, a->x[at * a->ldx + k], acc);
    }
    return acc;
}

/* y of one level over T rows, cut after `split` rows and after panel `cut`. Rows of y are N + 3 apart, and the gap stays. */
static void run_level(int level, const clt_mat *m, const clt_acts *a, int64_t T, int64_t split, int64_t cut, float *y) {
    const clt_kernels *k = clt_kernels_get((clt_cpu_level)level);
    int64_t ldy = m->rows + 3, panels = clt_mat_panels(m);
    clt_acts rest = acts_from(a, split);

    for (int64_t i = 0; i < T * ldy; i++)
        y[i] = SENTINEL;
    k->matmul(m, a, split, y, ldy, cut, panels);
    k->matmul(m, &rest, T - split, y + split * ldy, ldy, cut, panels);
    k->matmul(m, a, T, y, ldy, 0, cut);
    for (int64_t t = 0; t < T; t++)
        for (int64_t n = m->rows; n < ldy; n++)
            assert_true(y[t * ldy + n] == SENTINEL);
}

static void compare_levels(const clt_mat *m, const clt_acts *a, int64_t T, const float *expected) {
    size_t bytes = (size_t)(T * (m->rows + 3)) * sizeof(float);
    float *y = malloc(bytes + 1);

    for (int level = CLT_CPU_SCALAR; level < CLT_CPU_LEVELS; level++) {
        if (!clt_kernels_get((clt_cpu_level)level))
            continue;
        for (int64_t split = 0; split <= T; split += T > 9 ? 9 : 1) {
            run_level(level, m, a, T, split, split % (clt_mat_panels(m) + 1), y);
            if (memcmp(y, expected, bytes) != 0)
                fail_msg("%s %lldx%lld: level %s differs, T = %lld split at %lld", clt_type_name(m->type),
                         (long long)m->rows, (long long)m->cols, level_name(level), (long long)T, (long long)split);
        }
    }
    free(y);
}

/* Every codes' worst case: activations at +127 and -127 with the signs that add up. */
static void push_to_extremes(clt_acts *a, int64_t T) {
    int64_t blocks = a->cols / 32;
    for (int64_t i = 0; i < T * blocks; i++)
        for (int h = 0; h < 2; h++) {
            int sum = 0;
            for (int64_t k = 32 * i + 16 * h; k < 32 * i + 16 * h + 16; k++) {
                a->q[k] = i / blocks % 3 == 0 ? 127 : i / blocks % 3 == 1 ? -127 : k % 2 ? 127 : -127;
                sum += a->q[k];
            }
            a->sums[2 * i + h] = (int16_t)sum;
        }
}

static void check_matrix(clt_type type, int64_t rows, int64_t cols, int64_t T, matrix_fill fill) {
    const clt_type_info *t = clt_type_get((uint32_t)type);
    int64_t ldy = rows + 3;
    uint8_t *file = matrix_make(type, rows, cols, fill, (uint64_t)(rows + cols + T));
    clt_mat m = matrix_pack(type, rows, cols, file);
    clt_acts a = acts_make(T, cols, 99);
    float *expected = malloc((size_t)(T * ldy) * sizeof *expected + 1);

    clt_kernels_get(CLT_CPU_SCALAR)->quantize(&a, 0, T);
    if (fill != FILL_RANDOM)
        push_to_extremes(&a, T);
    for (int64_t r = 0; r < T; r++)
        for (int64_t n = 0; n < ldy; n++) {
            const uint8_t *row = file + (size_t)n * clt_type_row_bytes(t, cols);
            expected[r * ldy + n] = n >= rows ? SENTINEL : t->block_len == 1 ? expected_float(t, row, &a, r)
                                                                            : expected_quantised(type, row, &a, r);
        }
    compare_levels(&m, &a, T, expected);
    free(expected);
    free(file);
    free((void *)(uintptr_t)m.data);
    acts_free(&a);
}

static void test_shapes(void **state) {
    static const struct { int64_t rows, blocks, T; } shapes[] = {
        {1, 1, 1}, {16, 1, 3}, {17, 2, 2}, {40, 3, 9}, {100, 5, 4}, {33, 17, 7}, {130, 2, 6}, {16, 40, 5}, {21, 3, 0},
        {19, 20, ROWS_MAX}, {150, 3, 14}, {33, 2, 131},
    };
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            uint32_t len = clt_type_get((uint32_t)matrix_types[i])->block_len;
            int64_t cols = len == 1 ? 32 * shapes[s].blocks - 5 * (int64_t)(s % 2) : len * shapes[s].blocks;
            check_matrix(matrix_types[i], shapes[s].rows, cols, shapes[s].T, FILL_RANDOM);
        }
}

/* Every number of rows that a level could cut into tiles in its own way. */
static void test_row_counts(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++) {
        uint32_t len = clt_type_get((uint32_t)matrix_types[i])->block_len;
        for (int64_t T = 1; T <= 34; T++)
            check_matrix(matrix_types[i], 52, len == 256 ? 768 : 32 * 18, T, FILL_RANDOM);
    }
}

/* So many rows that a level may widen weights first, in stretches; the last stretch and the last panel are not full. */
static void test_many_rows_of_floats(void **state) {
    static const clt_type floats[] = {CLT_F32, CLT_F16, CLT_BF16};
    (void)state;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        for (int64_t T = 46; T <= 62; T++)
            check_matrix(floats[i], T % 2 ? 37 : 19, 1061, T, FILL_RANDOM);
}

static void test_long_rows(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++)
        check_matrix(matrix_types[i], 18, 10240, 5, FILL_RANDOM);
}

static void test_extreme_codes(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++) {
        check_matrix(matrix_types[i], 20, 512, 7, FILL_ONES);
        check_matrix(matrix_types[i], 20, 512, 7, FILL_ZEROS);
    }
}

/* The packed form is at most 4 % larger than the file's. */
static void test_panel_bytes(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++) {
        const clt_type_info *t = clt_type_get((uint32_t)matrix_types[i]);
        size_t file = 16 * clt_type_row_bytes(t, 2560), packed = clt_mat_panel_bytes(t->type, 2560);
        assert_true(packed >= file && packed * 100 <= file * 104);
    }
}

/* Packing panel by panel, in any order, is packing at once; every byte is written. */
static void test_pack_ranges(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++) {
        clt_type t = matrix_types[i];
        uint8_t *file = matrix_make(t, 37, 512, FILL_RANDOM, 5);
        clt_mat m = matrix_pack(t, 37, 512, file);
        uint8_t *again = malloc(3 * m.panel_bytes);
        memset(again, 0x11, 3 * m.panel_bytes);
        clt_mat_pack(t, 37, 512, file, again, 2, 3);
        clt_mat_pack(t, 37, 512, file, again, 0, 2);
        assert_memory_equal(again, m.data, 3 * m.panel_bytes);
        free(again);
        free(file);
        free((void *)(uintptr_t)m.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_row_counts), cmocka_unit_test(test_many_rows_of_floats),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_extreme_codes), cmocka_unit_test(test_panel_bytes), cmocka_unit_test(test_pack_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
