/* Attention over one chunk, 8 lanes: the inner loops that attn_tiles.c calls. Same bits as attn_scalar.c. */
#include <immintrin.h>
#include <string.h>
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_avx2.h"
#include "kernels/math_avx2.h"

enum { S = CLT_ATTN_CHUNK, TILE = CLT_ATTN_TILE, GROUP = CLT_ATTN_GROUP, COLUMNS = 16 };

/* ---- storing ---- */

static __m128i halves_of(__m256 x) {
    const __m256 top = _mm256_set1_ps(65504.0f), bottom = _mm256_set1_ps(-65504.0f);
    x = _mm256_min_ps(top, _mm256_max_ps(bottom, x)); /* NaN: the second operand */
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

void clt_kv_store_avx2(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                       const float *v) {
    if (t.k != CLT_F16 || t.v != CLT_F16) {
        clt_kv_store_scalar(t, head_dim, k_chunk, v_chunk, slot, k, v);
        return;
    }
    uint16_t *ks = (uint16_t *)(void *)k_chunk + slot, *vs = (uint16_t *)(void *)v_chunk + slot * head_dim;
    for (int64_t d = 0; d < head_dim; d += 8) {
        int64_t n = head_dim - d < 8 ? head_dim - d : 8;
        __m256i mask = first_lanes8(n);
        uint16_t key[8], value[8];
        _mm_storeu_si128((__m128i *)(void *)key, halves_of(_mm256_maskload_ps(k + d, mask)));
        _mm_storeu_si128((__m128i *)(void *)value, halves_of(_mm256_maskload_ps(v + d, mask)));
        for (int64_t i = 0; i < n; i++)
            ks[(d + i) * S] = key[i];
        memcpy(vs + d, value, (size_t)n * sizeof *vs);
    }
}

/* ---- widening ---- */

static void widen_row(clt_type t, const uint8_t *src, int n, float *dst) {
    int i = 0;
    if (t == CLT_F16) {
        for (; i + 8 <= n; i += 8)
            _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(src + 2 * i))));
        for (; i < n; i++) {
            uint16_t half;
            memcpy(&half, src + 2 * i, sizeof half);
            dst[i] = _cvtsh_ss(half);
        }
    } else if (t == CLT_Q8_0) {
        for (; i + 8 <= n; i += 8) {
            __m256i q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(src + i)));
            _mm256_storeu_ps(dst + i, _mm256_cvtepi32_ps(q));
        }
        for (; i < n; i++)
            dst[i] = (float)(int8_t)src[i];
    } else {
        memcpy(dst, src, (size_t)n * sizeof *dst);
    }
}

static void widen(clt_type t, const uint8_t *src, int64_t stride, int rows, int n, float *dst) {
    int64_t stride_bytes = stride * (t == CLT_F32 ? 4 : t == CLT_F16 ? 2 : 1);
    for (int i = 0; i < rows; i++)
        widen_row(t, src + i * stride_bytes, n, dst + i * TILE);
}

/* ---- scores: R x 16 sums in registers ---- */

CLT_INLINE void scores_fixed(const int R, int nd, const float *const *q, const float *k, const float *k_scale,
                         float *const *s, int c) {
    __m256 sum[GROUP][2];
    const float *rows[GROUP];
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        rows[r] = q[r];
        sum[r][0] = k_scale ? _mm256_setzero_ps() : _mm256_loadu_ps(s[r] + c);
        sum[r][1] = k_scale ? _mm256_setzero_ps() : _mm256_loadu_ps(s[r] + c + 8);
    }
    for (int d = 0; d < nd; d++) {
        __m256 k0 = _mm256_loadu_ps(k + d * TILE + c), k1 = _mm256_loadu_ps(k + d * TILE + c + 8);
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            __m256 x = _mm256_broadcast_ss(rows[r] + d);
            sum[r][0] = _mm256_fmadd_ps(x, k0, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(x, k1, sum[r][1]);
        }
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        if (k_scale) {
            sum[r][0] = _mm256_fmadd_ps(sum[r][0], _mm256_loadu_ps(k_scale + c), _mm256_loadu_ps(s[r] + c));
            sum[r][1] = _mm256_fmadd_ps(sum[r][1], _mm256_loadu_ps(k_scale + c + 8), _mm256_loadu_ps(s[r] + c + 8));
        }
        _mm256_storeu_ps(s[r] + c, sum[r][0]);
        _mm256_storeu_ps(s[r] + c + 8, sum[r][1]);
    }
}

static void scores(int R, int nd, const float *const *q, const float *k, const float *k_scale, int halves, float *const *s) {
    for (int c = 0; c < CLT_ATTN_HALF * halves; c += COLUMNS) {
        switch (R) {
        case 1: scores_fixed(1, nd, q, k, k_scale, s, c); break;
        case 2: scores_fixed(2, nd, q, k, k_scale, s, c); break;
        case 3: scores_fixed(3, nd, q, k, k_scale, s, c); break;
        case 4: scores_fixed(4, nd, q, k, k_scale, s, c); break;
        case 5: scores_fixed(5, nd, q, k, k_scale, s, c); break;
        default: scores_fixed(6, nd, q, k, k_scale, s, c);
        }
    }
}

/* ---- softmax of one row ---- */

/* Lanes of the 8 slots from `at` on that lie in [lo, hi). */
static __m256 seen8(int at, int lo, int hi) {
    __m256i slot = _mm256_add_epi32(_mm256_set1_epi32(at), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i seen = _mm256_and_si256(_mm256_cmpgt_epi32(slot, _mm256_set1_epi32(lo - 1)),
                                    _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), slot));
    return _mm256_castsi256_ps(seen);
}

static void soften(float *s, int lo, int hi, float scale, float *m, float *l) {
    const __m256 none = _mm256_set1_ps(-__builtin_inff()), factor = _mm256_set1_ps(scale);
    __m256 x[S / 8], top = none, sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int i = 0; i < S / 8; i++) {
        x[i] = _mm256_blendv_ps(none, _mm256_mul_ps(_mm256_loadu_ps(s + 8 * i), factor), seen8(8 * i, lo, hi));
        top = _mm256_max_ps(x[i], top); /* NaN: the second operand */
    }
    const float largest = max_lanes8(top) + 0.0f; /* never -0 */
    top = _mm256_set1_ps(largest);
    for (int i = 0; i < S / 8; i++) {
        __m256 p = _mm256_and_ps(exp8(_mm256_sub_ps(x[i], top)), seen8(8 * i, lo, hi));
        _mm256_storeu_ps(s + 8 * i, p);
        sums[i % 2] = _mm256_add_ps(sums[i % 2], p);
    }
    *l = sum_lanes8(sums[0], sums[1]);
    *m = *l == *l ? largest : *l;
}

/* ---- weighted sums of values: R x 16 sums in registers ---- */

CLT_INLINE void blend_fixed(const int R, int j0, int j1, const float *const *p, const float *v, int64_t ldv, float *const *o,
                        int c) {
    __m256 sum[GROUP][2];
    const float *rows[GROUP];
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        rows[r] = p[r];
        sum[r][0] = _mm256_loadu_ps(o[r] + c);
        sum[r][1] = _mm256_loadu_ps(o[r] + c + 8);
    }
    for (int j = j0; j < j1; j++) {
        __m256 v0 = _mm256_loadu_ps(v + j * ldv + c), v1 = _mm256_loadu_ps(v + j * ldv + c + 8);
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            __m256 x = _mm256_broadcast_ss(rows[r] + j);
            sum[r][0] = _mm256_fmadd_ps(x, v0, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(x, v1, sum[r][1]);
        }
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        _mm256_storeu_ps(o[r] + c, sum[r][0]);
        _mm256_storeu_ps(o[r] + c + 8, sum[r][1]);
    }
}

static void blend(int R, int j0, int j1, const float *const *p, const float *v, int64_t ldv, int halves, float *const *o) {
    for (int c = 0; c < CLT_ATTN_HALF * halves; c += COLUMNS) {
        switch (R) {
        case 1: blend_fixed(1, j0, j1, p, v, ldv, o, c); break;
        case 2: blend_fixed(2, j0, j1, p, v, ldv, o, c); break;
        case 3: blend_fixed(3, j0, j1, p, v, ldv, o, c); break;
        case 4: blend_fixed(4, j0, j1, p, v, ldv, o, c); break;
        case 5: blend_fixed(5, j0, j1, p, v, ldv, o, c); break;
        default: blend_fixed(6, j0, j1, p, v, ldv, o, c);
        }
    }
}

/* ---- entries ---- */

static const clt_attn_ops ops = {widen, scores, soften, blend};

void clt_attn_chunk_avx2(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                         const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo) {
    clt_attn_tiles(&ops, t, head_dim, c, q, ldq, R, lo, hi, scale, m, l, o, ldo);
}

void clt_attn_scores_avx2(int64_t head_dim, const uint8_t *chunks, int n, const float *q, int64_t ldq, int R, float *s,
                        int64_t lds) {
    clt_attn_scores_tiled(&ops, head_dim, chunks, n, q, ldq, R, s, lds);
}

void clt_attn_blend_avx2(int64_t head_dim, const uint8_t *chunks, int n, const float *s, int64_t lds, int R, float *o,
                       int64_t ldo) {
    clt_attn_blend_tiled(&ops, head_dim, chunks, n, s, lds, R, o, ldo);
}

void clt_attn_merge_avx2(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2) {
    float keep, take;
    if (!clt_attn_merge_begin(head_dim, m, l, o, m2, l2, o2, &keep, &take))
        return;
    const __m256 kept = _mm256_set1_ps(keep), taken = _mm256_set1_ps(take);
    int64_t d = 0;
    for (; d + 8 <= head_dim; d += 8) {
        __m256 old = _mm256_mul_ps(_mm256_loadu_ps(o + d), kept);
        _mm256_storeu_ps(o + d, _mm256_fmadd_ps(_mm256_loadu_ps(o2 + d), taken, old));
    }
    for (; d < head_dim; d++)
        o[d] = __builtin_fmaf(o2[d], take, o[d] * keep);
}

void clt_attn_finish_avx2(int64_t head_dim, float l, float *o) {
    const __m256 sum = _mm256_set1_ps(l);
    int64_t d = 0;
    for (; d + 8 <= head_dim; d += 8)
        _mm256_storeu_ps(o + d, _mm256_div_ps(_mm256_loadu_ps(o + d), sum));
    for (; d < head_dim; d++)
        o[d] /= l;
}
