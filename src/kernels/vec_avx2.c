/* Operations on one row of floats, 8 lanes; the same bits as vec_scalar.c. A last partial register is loaded and stored
 * under a mask, so nothing outside the row is read or written. */
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_avx2.h"
#include "kernels/math_avx2.h"

static void rms_norm(const float *x, const float *w, float eps, float *y, int64_t n) {
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        lo = _mm256_fmadd_ps(a, a, lo);
        hi = _mm256_fmadd_ps(b, b, hi);
    }
    if (n - i >= 8) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_maskload_ps(x + i + 8, first_lanes8(n - i - 8));
        lo = _mm256_fmadd_ps(a, a, lo);
        hi = _mm256_fmadd_ps(b, b, hi);
    } else {
        __m256 a = _mm256_maskload_ps(x + i, first_lanes8(n - i));
        lo = _mm256_fmadd_ps(a, a, lo);
    }
    float mean = sum_lanes8(lo, hi) / (float)n;
    __m256 inverse = _mm256_set1_ps(1.0f / __builtin_sqrtf(mean + eps));
    for (i = 0; i + 8 <= n; i += 8) {
        __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), inverse);
        _mm256_storeu_ps(y + i, w ? _mm256_mul_ps(scaled, _mm256_loadu_ps(w + i)) : scaled);
    }
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), inverse);
        _mm256_maskstore_ps(y + i, mask, w ? _mm256_mul_ps(scaled, _mm256_maskload_ps(w + i, mask)) : scaled);
    }
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        _mm256_maskstore_ps(y + i, mask, _mm256_add_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask)));
    }
}

static void scale(const float *x, float s, float *y, int64_t n) {
    const __m256 factor = _mm256_set1_ps(s);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), factor));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), factor));
    }
}

/* max and min give their second operand where a number is NaN. */
static inline __m256 clamp8(__m256 x, __m256 low, __m256 high) { return _mm256_min_ps(high, _mm256_max_ps(low, x)); }

static void clamp(const float *x, float lo, float hi, float *y, int64_t n) {
    const __m256 low = _mm256_set1_ps(lo), high = _mm256_set1_ps(hi);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, clamp8(_mm256_loadu_ps(x + i), low, high));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        _mm256_maskstore_ps(y + i, mask, clamp8(_mm256_maskload_ps(x + i, mask), low, high));
    }
}

static void axpy(float s, const float *x, float *y, int64_t n) {
    const __m256 factor = _mm256_set1_ps(s);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_fmadd_ps(factor, _mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        __m256 last = _mm256_fmadd_ps(factor, _mm256_maskload_ps(x + i, mask), _mm256_maskload_ps(y + i, mask));
        _mm256_maskstore_ps(y + i, mask, last);
    }
}

static void gelu_mul(const float *g, const float *u, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(gelu8(_mm256_loadu_ps(g + i)), _mm256_loadu_ps(u + i)));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        __m256 gate = gelu8(_mm256_maskload_ps(g + i, mask));
        _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(gate, _mm256_maskload_ps(u + i, mask)));
    }
}

static void sigmoid_mul(const float *g, const float *u, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(sigmoid8(_mm256_loadu_ps(g + i)), _mm256_loadu_ps(u + i)));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        __m256 gate = sigmoid8(_mm256_maskload_ps(g + i, mask));
        _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(gate, _mm256_maskload_ps(u + i, mask)));
    }
}

static float dot(const float *a, const float *b, int64_t n) {
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        lo = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), lo);
        hi = _mm256_fmadd_ps(_mm256_loadu_ps(a + i + 8), _mm256_loadu_ps(b + i + 8), hi);
    }
    if (n - i >= 8) {
        __m256i mask = first_lanes8(n - i - 8);
        lo = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), lo);
        hi = _mm256_fmadd_ps(_mm256_maskload_ps(a + i + 8, mask), _mm256_maskload_ps(b + i + 8, mask), hi);
    } else {
        __m256i mask = first_lanes8(n - i);
        lo = _mm256_fmadd_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask), lo);
    }
    return sum_lanes8(lo, hi);
}

/* max(x, top) gives top, its second operand, where x is NaN. */
static float largest(const float *x, int64_t n) {
    const __m256 none = _mm256_set1_ps(-__builtin_inff());
    __m256 top = none, top2 = none;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        top = _mm256_max_ps(_mm256_loadu_ps(x + i), top);
        top2 = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), top2);
    }
    for (; i < n; i += 8) {
        __m256i mask = first_lanes8(n - i < 8 ? n - i : 8);
        __m256 last = _mm256_blendv_ps(none, _mm256_maskload_ps(x + i, mask), _mm256_castsi256_ps(mask));
        top = _mm256_max_ps(last, top);
    }
    return max_lanes8(_mm256_max_ps(top2, top));
}

static void softmax(float *x, int64_t n) {
    const __m256 top = _mm256_set1_ps(largest(x, n));
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    for (int64_t i = 0; i < n; i += 8) {
        __m256i mask = first_lanes8(n - i < 8 ? n - i : 8);
        __m256 e = exp8(_mm256_sub_ps(_mm256_maskload_ps(x + i, mask), top));
        e = _mm256_and_ps(e, _mm256_castsi256_ps(mask));
        if (n - i >= 8)
            _mm256_storeu_ps(x + i, e);
        else
            _mm256_maskstore_ps(x + i, mask, e);
        if (i % 16 == 0)
            lo = _mm256_add_ps(lo, e);
        else
            hi = _mm256_add_ps(hi, e);
    }
    const __m256 sum = _mm256_set1_ps(sum_lanes8(lo, hi));
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_div_ps(_mm256_loadu_ps(x + i), sum));
    for (; i < n; i++)
        x[i] /= _mm256_cvtss_f32(sum);
}

static void softcap(float *x, float cap, int64_t n) {
    const __m256 factor = _mm256_set1_ps(cap);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(x + i, _mm256_mul_ps(factor, tanh8(_mm256_div_ps(_mm256_loadu_ps(x + i), factor))));
    if (i < n) {
        __m256i mask = first_lanes8(n - i);
        __m256 last = _mm256_mul_ps(factor, tanh8(_mm256_div_ps(_mm256_maskload_ps(x + i, mask), factor)));
        _mm256_maskstore_ps(x + i, mask, last);
    }
}

/* Turns 8 pairs, p and q their cos and sin as they lie in memory. */
static inline void rope8(__m256 *low, __m256 *high, __m256 p, __m256 q) {
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
    /* c0 c1 c4 c5 | c2 c3 c6 c7, then in order; sines likewise. */
    __m256 c = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(p, q, 0x88), order);
    __m256 s = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(p, q, 0xdd), order);
    __m256 a = *low, b = *high;
    *low = _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s));
    *high = _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s));
}

static void rope(float *x, const float *cs, int64_t head_dim, int64_t n_rot) {
    float *low = x, *high = x + head_dim / 2;
    int64_t i = 0;
    for (; i + 8 <= n_rot; i += 8) {
        __m256 a = _mm256_loadu_ps(low + i), b = _mm256_loadu_ps(high + i);
        rope8(&a, &b, _mm256_loadu_ps(cs + 2 * i), _mm256_loadu_ps(cs + 2 * i + 8));
        _mm256_storeu_ps(low + i, a);
        _mm256_storeu_ps(high + i, b);
    }
    int64_t left = n_rot - i;
    if (left > 0) {
        __m256i mask = first_lanes8(left);
        __m256 a = _mm256_maskload_ps(low + i, mask), b = _mm256_maskload_ps(high + i, mask);
        __m256 p = _mm256_maskload_ps(cs + 2 * i, first_lanes8(2 * left < 8 ? 2 * left : 8));
        rope8(&a, &b, p, left > 4 ? _mm256_maskload_ps(cs + 2 * i + 8, first_lanes8(2 * left - 8)) : p);
        _mm256_maskstore_ps(low + i, mask, a);
        _mm256_maskstore_ps(high + i, mask, b);
    }
}

static int64_t argmax(const float *x, int64_t n) {
    const __m256 top = _mm256_set1_ps(largest(x, n));
    for (int64_t i = 0; i < n; i += 8) {
        __m256i mask = first_lanes8(n - i < 8 ? n - i : 8);
        __m256 same = _mm256_cmp_ps(_mm256_maskload_ps(x + i, mask), top, _CMP_EQ_OQ);
        int found = _mm256_movemask_ps(_mm256_and_ps(same, _mm256_castsi256_ps(mask)));
        if (found)
            return i + __builtin_ctz((unsigned)found);
    }
    return 0;
}

void clt_vec_fill_avx2(clt_kernels *k) {
    k->rms_norm = rms_norm;
    k->add = add;
    k->scale = scale;
    k->clamp = clamp;
    k->axpy = axpy;
    k->gelu_mul = gelu_mul;
    k->sigmoid_mul = sigmoid_mul;
    k->dot = dot;
    k->softmax = softmax;
    k->softcap = softcap;
    k->rope = rope;
    k->argmax = argmax;
    k->kv_store = clt_kv_store_avx2;
    k->attn_chunk = clt_attn_chunk_avx2;
    k->attn_scores = clt_attn_scores_avx2;
    k->attn_blend = clt_attn_blend_avx2;
    k->attn_merge = clt_attn_merge_avx2;
    k->attn_finish = clt_attn_finish_avx2;
}
