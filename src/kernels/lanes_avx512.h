/* Rows that are no multiple of 16 floats, and the tree that ends a reduction, for 16-lane registers. */
#ifndef CLT_KERNELS_LANES_AVX512_H
#define CLT_KERNELS_LANES_AVX512_H
#include <immintrin.h>
#include <stdint.h>

/* A mask of the first n lanes; all of them if n >= 16. */
static inline __mmask16 first_lanes16(int64_t n) { return (__mmask16)(n >= 16 ? 0xffffu : (1u << n) - 1); }

/* The tree of clt_sum_lanes. Not _mm512_reduce_add_ps: its order is the compiler's. */
static inline float sum_lanes16(__m512 v) {
    __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_add_ss(v2, _mm_shuffle_ps(v2, v2, 1)));
}

/* The largest lane; v holds no NaN. */
static inline float max_lanes16(__m512 v) {
    __m256 v8 = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
    __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
    return _mm_cvtss_f32(_mm_max_ss(v2, _mm_shuffle_ps(v2, v2, 1)));
}

#endif
