/* For tests of vector and attention kernels: the tables of every level that this CPU has, reproducible numbers, and
 * comparison of bits. */
#ifndef CLT_TESTS_KERNELS_VEC_LEVELS_H
#define CLT_TESTS_KERNELS_VEC_LEVELS_H
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "base/cpu.h"
#include "kernels/internal.h"

enum { MAX_LEVELS = 3 };
typedef struct vec_level {
    const char *name;
    clt_kernels k;
} vec_level;

/* levels[0] is scalar. Returns how many there are. */
static inline int vec_levels(vec_level levels[MAX_LEVELS]) {
    int n = 1;
    memset(levels, 0, MAX_LEVELS * sizeof *levels);
    levels[0].name = "scalar";
    clt_vec_fill_scalar(&levels[0].k);
#ifdef CLT_BUILD_X86
    if (clt_cpu_has(CLT_CPU_AVX2)) {
        levels[n].name = "avx2";
        clt_vec_fill_avx2(&levels[n++].k);
    }
    if (clt_cpu_has(CLT_CPU_AVX512)) {
        levels[n].name = "avx512";
        clt_vec_fill_avx512(&levels[n++].k);
    }
#endif
#ifdef CLT_BUILD_ARM
    if (clt_cpu_has(CLT_CPU_NEON)) {
        levels[n].name = "neon";
        clt_vec_fill_neon(&levels[n++].k);
    }
#endif
    return n;
}

static inline uint32_t draw_bits(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint32_t u = (uint32_t)(*state >> 33);
    return u ^ u << 15;
}

/* In [-top, top). */
static inline float draw_float(uint64_t *state, float top) {
    return top * ((float)(draw_bits(state) >> 8) * 0x1p-23f - 1.0f);
}

static inline float float_from_bits(uint32_t u) { float f; memcpy(&f, &u, sizeof f); return f; }
static inline uint32_t bits_from_float(float f) { uint32_t u; memcpy(&u, &f, sizeof u); return u; }

/* The place of the first number whose bits differ (any NaN equals any NaN), or -1. Which NaN an operation gives is not
 * promised. */
static inline int64_t first_difference(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (bits_from_float(a[i]) != bits_from_float(b[i]) && (a[i] == a[i] || b[i] == b[i]))
            return i;
    return -1;
}

/* |got - want| in units of the last place of want's float. */
static inline double ulps(float got, double want) {
    int e = 0;
    (void)__builtin_frexp(want, &e);
    double unit = __builtin_ldexp(1.0, (e < -125 ? -125 : e) - 24);
    return __builtin_fabs((double)got - want) / unit;
}

#endif
