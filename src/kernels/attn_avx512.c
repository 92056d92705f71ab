/* Attention over one chunk, 16 lanes: the inner loops that attn_tiles.c calls. Same bits as attn_scalar.c. */
#include <immintrin.h>
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_avx512.h"
#include "kernels/math_avx512.h"

enum { S = CLT_ATTN_CHUNK, TILE = CLT_ATTN_TILE, GROUP = CLT_ATTN_GROUP };

/* ---- widening ---- */

static void widen_row(clt_type t, const uint8_t *src, int n, float *dst) {
    for (int i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 x;
        if (t == CLT_F16)
            x = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, src + 2 * i));
        else if (t == CLT_Q8_0)
            x = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask, src + i)));
        else
            x = _mm512_maskz_loadu_ps(mask, src + 4 * i);
        _mm512_mask_storeu_ps(dst + i, mask, x);
    }
}

static void widen(clt_type t, const uint8_t *src, int64_t stride, int rows, int n, float *dst) {
    int64_t stride_bytes = stride * (t == CLT_F32 ? 4 : t == CLT_F16 ? 2 : 1);
    for (int i = 0; i < rows; i++)
        widen_row(t, src + i * stride_bytes, n, dst + i * TILE);
}

/* ---- scores: R x 16 C sums in registers ---- */

CLT_INLINE void scores_fixed(const int R, const int C, int nd, const float *const *q, const float *k, const float *k_scale,
                             float *const *s) {
    __m512 sum[GROUP][4], key[4];
    const float *rows[GROUP];
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        rows[r] = q[r];
        CLT_UNROLL
        for (int c = 0; c < C; c++)
            sum[r][c] = k_scale ? _mm512_setzero_ps() : _mm512_loadu_ps(s[r] + 16 * c);
    }
    for (int d = 0; d < nd; d++) {
        CLT_UNROLL
        for (int c = 0; c < C; c++)
            key[c] = _mm512_loadu_ps(k + d * TILE + 16 * c);
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            __m512 x = _mm512_set1_ps(rows[r][d]);
            CLT_UNROLL
            for (int c = 0; c < C; c++)
                sum[r][c] = _mm512_fmadd_ps(x, key[c], sum[r][c]);
        }
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        CLT_UNROLL
        for (int c = 0; c < C; c++) {
            if (k_scale)
                sum[r][c] = _mm512_fmadd_ps(sum[r][c], _mm512_loadu_ps(k_scale + 16 * c), _mm512_loadu_ps(s[r] + 16 * c));
            _mm512_storeu_ps(s[r] + 16 * c, sum[r][c]);
        }
    }
}

CLT_INLINE void scores_columns(const int C, int R, int nd, const float *const *q, const float *k, const float *k_scale,
                               float *const *s) {
    switch (R) {
    case 1: scores_fixed(1, C, nd, q, k, k_scale, s); break;
    case 2: scores_fixed(2, C, nd, q, k, k_scale, s); break;
    case 3: scores_fixed(3, C, nd, q, k, k_scale, s); break;
    case 4: scores_fixed(4, C, nd, q, k, k_scale, s); break;
    case 5: scores_fixed(5, C, nd, q, k, k_scale, s); break;
    default: scores_fixed(6, C, nd, q, k, k_scale, s);
    }
}

static void scores(int R, int nd, const float *const *q, const float *k, const float *k_scale, int halves, float *const *s) {
    if (halves == 2)
        scores_columns(4, R, nd, q, k, k_scale, s);
    else
        scores_columns(2, R, nd, q, k, k_scale, s);
}

/* ---- softmax of one row ---- */

static void soften(float *s, int lo, int hi, float scale, float *m, float *l) {
    const __m512 none = _mm512_set1_ps(-__builtin_inff()), factor = _mm512_set1_ps(scale);
    const uint64_t seen = (~(uint64_t)0 >> (S - hi)) & (~(uint64_t)0 << lo);
    __m512 x[S / 16], top = none, sums = _mm512_setzero_ps();
    for (int i = 0; i < S / 16; i++) {
        x[i] = _mm512_mask_mul_ps(none, (__mmask16)(seen >> 16 * i), _mm512_loadu_ps(s + 16 * i), factor);
        top = _mm512_max_ps(x[i], top); /* NaN: the second operand */
    }
    const float largest = max_lanes16(top) + 0.0f; /* never -0 */
    top = _mm512_set1_ps(largest);
    for (int i = 0; i < S / 16; i++) {
        __m512 p = _mm512_maskz_mov_ps((__mmask16)(seen >> 16 * i), exp16(_mm512_sub_ps(x[i], top)));
        _mm512_storeu_ps(s + 16 * i, p);
        sums = _mm512_add_ps(sums, p);
    }
    *l = sum_lanes16(sums);
    *m = *l == *l ? largest : *l;
}

/* ---- weighted sums of values: R x 16 C sums in registers ---- */

CLT_INLINE void blend_fixed(const int R, const int C, int j0, int j1, const float *const *p, const float *v, int64_t ldv,
                            float *const *o) {
    __m512 sum[GROUP][4], value[4];
    const float *rows[GROUP];
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        rows[r] = p[r];
        CLT_UNROLL
        for (int c = 0; c < C; c++)
            sum[r][c] = _mm512_loadu_ps(o[r] + 16 * c);
    }
    for (int j = j0; j < j1; j++) {
        CLT_UNROLL
        for (int c = 0; c < C; c++)
            value[c] = _mm512_loadu_ps(v + j * ldv + 16 * c);
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            __m512 x = _mm512_set1_ps(rows[r][j]);
            CLT_UNROLL
            for (int c = 0; c < C; c++)
                sum[r][c] = _mm512_fmadd_ps(x, value[c], sum[r][c]);
        }
    }
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        CLT_UNROLL
        for (int c = 0; c < C; c++)
            _mm512_storeu_ps(o[r] + 16 * c, sum[r][c]);
    }
}

CLT_INLINE void blend_columns(const int C, int R, int j0, int j1, const float *const *p, const float *v, int64_t ldv,
                              float *const *o) {
    switch (R) {
    case 1: blend_fixed(1, C, j0, j1, p, v, ldv, o); break;
    case 2: blend_fixed(2, C, j0, j1, p, v, ldv, o); break;
    case 3: blend_fixed(3, C, j0, j1, p, v, ldv, o); break;
    case 4: blend_fixed(4, C, j0, j1, p, v, ldv, o); break;
    case 5: blend_fixed(5, C, j0, j1, p, v, ldv, o); break;
    default: blend_fixed(6, C, j0, j1, p, v, ldv, o);
    }
}

static void blend(int R, int j0, int j1, const float *const *p, const float *v, int64_t ldv, int halves, float *const *o) {
    if (halves == 2)
        blend_columns(4, R, j0, j1, p, v, ldv, o);
    else
        blend_columns(2, R, j0, j1, p, v, ldv, o);
}

/* ---- entries ---- */

static const clt_attn_ops ops = {widen, scores, soften, blend};

void clt_attn_chunk_avx512(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                           const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo) {
    clt_attn_tiles(&ops, t, head_dim, c, q, ldq, R, lo, hi, scale, m, l, o, ldo);
}

void clt_attn_scores_avx512(int64_t head_dim, const uint8_t *chunks, int n, const float *q, int64_t ldq, int R, float *s,
                        int64_t lds) {
    clt_attn_scores_tiled(&ops, head_dim, chunks, n, q, ldq, R, s, lds);
}

void clt_attn_blend_avx512(int64_t head_dim, const uint8_t *chunks, int n, const float *s, int64_t lds, int R, float *o,
                       int64_t ldo) {
    clt_attn_blend_tiled(&ops, head_dim, chunks, n, s, lds, R, o, ldo);
}

void clt_attn_merge_avx512(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2) {
    float keep, take;
    if (!clt_attn_merge_begin(head_dim, m, l, o, m2, l2, o2, &keep, &take))
        return;
    const __m512 kept = _mm512_set1_ps(keep), taken = _mm512_set1_ps(take);
    for (int64_t d = 0; d < head_dim; d += 16) {
        __mmask16 mask = first_lanes16(head_dim - d);
        __m512 old = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, o + d), kept);
        _mm512_mask_storeu_ps(o + d, mask, _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, o2 + d), taken, old));
    }
}

void clt_attn_finish_avx512(int64_t head_dim, float l, float *o) {
    const __m512 sum = _mm512_set1_ps(l);
    for (int64_t d = 0; d < head_dim; d += 16) {
        __mmask16 mask = first_lanes16(head_dim - d);
        _mm512_mask_storeu_ps(o + d, mask, _mm512_div_ps(_mm512_maskz_loadu_ps(mask, o + d), sum));
    }
}
