/* Rows that are no multiple of 8 floats, and the tree that ends a reduction, for 8-lane registers. */
#ifndef CLT_KERNELS_LANES_AVX2_H
#define CLT_KERNELS_LANES_AVX2_H
#include <immintrin.h>
#include <stdint.h>

/* A mask of the first n lanes, 0 <= n <= 8. */
static inline __m256i first_lanes8(int64_t n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), index);
}

/* Lanes 0-7 in lo, 8-15 in hi: the tree of clt_sum_lanes. */
static inline float sum_lanes8(__m256 lo, __m256 hi) {
    __m256 v8 = _mm256_add_ps(lo, hi);
    __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_add_ss(v2, _mm_shuffle_ps(v2, v2, 1)));
}

/* The largest lane; v holds no NaN. */
static inline float max_lanes8(__m256 v) {
    __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_max_ss(v2, _mm_shuffle_ps(v2, v2, 1)));
}

#endif
