/* Random matrices and activations for the tests and the benchmark of matmul. */
#ifndef CLT_TESTS_KERNELS_MATRICES_H
#define CLT_TESTS_KERNELS_MATRICES_H
#include <stdlib.h>
#include <string.h>
#include "kernels/kernels.h"

static const clt_type matrix_types[] = {CLT_F32, CLT_F16, CLT_BF16, CLT_Q4_0, CLT_Q4_1, CLT_Q5_0, CLT_Q5_1, CLT_Q8_0,
                                        CLT_Q2_K, CLT_Q3_K, CLT_Q4_K, CLT_Q5_K, CLT_Q6_K, CLT_IQ4_NL, CLT_IQ4_XS};
enum { MATRIX_TYPES = sizeof matrix_types / sizeof matrix_types[0] };

static inline uint32_t random_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

/* Uniform in [-1, 1). */
static inline float random_float(uint64_t *state) {
    return (float)(int32_t)random_bits(state) * 0x1p-31f;
}

/* What the bits of blocks hold: anything, or all ones, or all zeros (the ends of every integer sum). */
typedef enum matrix_fill { FILL_RANDOM, FILL_ONES, FILL_ZEROS } matrix_fill;

static inline void put_random_half(uint8_t *p, uint64_t *state) {
    uint16_t h = clt_f32_to_f16(random_float(state) * 0.05f);
    memcpy(p, &h, sizeof h);
}

/* rows × cols in file layout, with finite scales. The caller frees. */
static inline uint8_t *matrix_make(clt_type type, int64_t rows, int64_t cols, matrix_fill fill, uint64_t seed) {
    const clt_type_info *t = clt_type_get((uint32_t)type);
    size_t n = clt_type_row_bytes(t, cols) * (size_t)rows;
    uint8_t *data = malloc(n ? n : 1);
    bool two = type == CLT_Q4_1 || type == CLT_Q5_1 || type == CLT_Q2_K || type == CLT_Q4_K || type == CLT_Q5_K;
    size_t half = type == CLT_Q2_K ? 80 : type == CLT_Q3_K ? 108 : type == CLT_Q6_K ? 208 : 0;

    for (size_t i = 0; i < n; i++)
        data[i] = fill == FILL_RANDOM ? (uint8_t)random_bits(&seed) : fill == FILL_ONES ? 0xff : 0;
    if (t->block_len == 1) {
        for (size_t i = 0; i < n; i += t->block_bytes) {
            float f = random_float(&seed);
            t->encode(&f, data + i, 1);
        }
        return data;
    }
    for (size_t b = 0; b < n; b += t->block_bytes) {
        put_random_half(data + b + half, &seed);
        if (two)
            put_random_half(data + b + half + 2, &seed);
    }
    return data;
}

/* Packs a matrix of file layout. The caller frees m->data. */
static inline clt_mat matrix_pack(clt_type type, int64_t rows, int64_t cols, const uint8_t *file) {
    clt_mat m = {type, rows, cols, NULL, clt_mat_panel_bytes(type, cols)};
    size_t n = m.panel_bytes * (size_t)clt_mat_panels(&m);
    uint8_t *packed = aligned_alloc(64, (n + 63) / 64 * 64 + 64);
    memset(packed, 0xA5, n);
    clt_mat_pack(type, rows, cols, file, packed, 0, clt_mat_panels(&m));
    m.data = packed;
    return m;
}

/* T rows of activations with room for their 8-bit form; x as the caller wishes. The caller calls acts_free. */
static inline clt_acts acts_make(int64_t T, int64_t cols, uint64_t seed) {
    int64_t blocks = (cols + 31) / 32, room = T ? T : 1;
    float *x = malloc((size_t)(room * cols) * sizeof *x);
    for (int64_t i = 0; i < T * cols; i++)
        x[i] = random_float(&seed) * (float)(1 + random_bits(&seed) % 7);
    clt_acts a = {cols, x, cols, malloc((size_t)(room * blocks * 32)), malloc((size_t)(room * blocks) * sizeof(float)),
                  malloc((size_t)(room * blocks * 2) * sizeof(int16_t))};
    return a;
}

static inline void acts_free(clt_acts *a) {
    free((void *)(uintptr_t)a->x);
    free(a->q);
    free(a->d);
    free(a->sums);
}

/* The same activations from row t on. */
static inline clt_acts acts_from(const clt_acts *a, int64_t t) {
    int64_t blocks = (a->cols + 31) / 32;
    clt_acts b = *a;
    b.x += t * a->ldx;
    b.q += t * blocks * 32;
    b.d += t * blocks;
    b.sums += t * blocks * 2;
    return b;
}

#endif
