/* Operations on one row of floats, 16 lanes; the same bits as vec_scalar.c. A last partial register is loaded and stored
 * under a mask, so nothing outside the row is read or written. */
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_avx512.h"
#include "kernels/math_avx512.h"

static void rms_norm(const float *x, const float *w, float eps, float *y, int64_t n) {
    __m512 sums = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        __m512 a = _mm512_maskz_loadu_ps(first_lanes16(n - i), x + i);
        sums = _mm512_fmadd_ps(a, a, sums);
    }
    float mean = sum_lanes16(sums) / (float)n;
    __m512 inverse = _mm512_set1_ps(1.0f / __builtin_sqrtf(mean + eps));
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 scaled = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), inverse);
        _mm512_mask_storeu_ps(y + i, mask, w ? _mm512_mul_ps(scaled, _mm512_maskz_loadu_ps(mask, w + i)) : scaled);
    }
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, a + i), _mm512_maskz_loadu_ps(mask, b + i));
        _mm512_mask_storeu_ps(y + i, mask, sum);
    }
}

static void scale(const float *x, float s, float *y, int64_t n) {
    const __m512 factor = _mm512_set1_ps(s);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, x + i), factor));
    }
}

/* max and min give their second operand where a number is NaN. */
static void clamp(const float *x, float lo, float hi, float *y, int64_t n) {
    const __m512 low = _mm512_set1_ps(lo), high = _mm512_set1_ps(hi);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 a = _mm512_max_ps(low, _mm512_maskz_loadu_ps(mask, x + i));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_min_ps(high, a));
    }
}

static void axpy(float s, const float *x, float *y, int64_t n) {
    const __m512 factor = _mm512_set1_ps(s);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 a = _mm512_maskz_loadu_ps(mask, x + i), b = _mm512_maskz_loadu_ps(mask, y + i);
        _mm512_mask_storeu_ps(y + i, mask, _mm512_fmadd_ps(factor, a, b));
    }
}

static void gelu_mul(const float *g, const float *u, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 gate = gelu16(_mm512_maskz_loadu_ps(mask, g + i));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(gate, _mm512_maskz_loadu_ps(mask, u + i)));
    }
}

static void sigmoid_mul(const float *g, const float *u, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 gate = sigmoid16(_mm512_maskz_loadu_ps(mask, g + i));
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(gate, _mm512_maskz_loadu_ps(mask, u + i)));
    }
}

static float dot(const float *a, const float *b, int64_t n) {
    __m512 sums = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        sums = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, a + i), _mm512_maskz_loadu_ps(mask, b + i), sums);
    }
    return sum_lanes16(sums);
}

/* max(x, top) gives top, its second operand, where x is NaN. */
static float largest(const float *x, int64_t n) {
    const __m512 none = _mm512_set1_ps(-__builtin_inff());
    __m512 top = none, top2 = none;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        top = _mm512_max_ps(_mm512_loadu_ps(x + i), top);
        top2 = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), top2);
    }
    for (; i < n; i += 16)
        top = _mm512_max_ps(_mm512_mask_loadu_ps(none, first_lanes16(n - i), x + i), top);
    return max_lanes16(_mm512_max_ps(top2, top));
}

static void softmax(float *x, int64_t n) {
    const __m512 top = _mm512_set1_ps(largest(x, n));
    __m512 sums = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 e = exp16(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), top));
        _mm512_mask_storeu_ps(x + i, mask, e);
        sums = _mm512_mask_add_ps(sums, mask, sums, e);
    }
    const __m512 sum = _mm512_set1_ps(sum_lanes16(sums));
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        _mm512_mask_storeu_ps(x + i, mask, _mm512_div_ps(_mm512_maskz_loadu_ps(mask, x + i), sum));
    }
}

static void softcap(float *x, float cap, int64_t n) {
    const __m512 factor = _mm512_set1_ps(cap);
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __m512 ratio = _mm512_div_ps(_mm512_maskz_loadu_ps(mask, x + i), factor);
        _mm512_mask_storeu_ps(x + i, mask, _mm512_mul_ps(factor, tanh16(ratio)));
    }
}

static void rope(float *x, const float *cs, int64_t head_dim, int64_t n_rot) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    float *low = x, *high = x + head_dim / 2;
    for (int64_t i = 0; i < n_rot; i += 16) {
        int64_t left = n_rot - i;
        __mmask16 mask = first_lanes16(left);
        __m512 p = _mm512_maskz_loadu_ps(first_lanes16(2 * left), cs + 2 * i);
        __m512 q = _mm512_maskz_loadu_ps(first_lanes16(left > 8 ? 2 * left - 16 : 0), cs + 2 * i + 16);
        __m512 c = _mm512_permutex2var_ps(p, even, q), s = _mm512_permutex2var_ps(p, odd, q);
        __m512 a = _mm512_maskz_loadu_ps(mask, low + i), b = _mm512_maskz_loadu_ps(mask, high + i);
        _mm512_mask_storeu_ps(low + i, mask, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(high + i, mask, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
    }
}

static int64_t argmax(const float *x, int64_t n) {
    const __m512 top = _mm512_set1_ps(largest(x, n));
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 mask = first_lanes16(n - i);
        __mmask16 found = _mm512_mask_cmp_ps_mask(mask, _mm512_maskz_loadu_ps(mask, x + i), top, _CMP_EQ_OQ);
        if (found)
            return i + __builtin_ctz(found);
    }
    return 0;
}

void clt_vec_fill_avx512(clt_kernels *k) {
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
    k->attn_chunk = clt_attn_chunk_avx512;
    k->attn_scores = clt_attn_scores_avx512;
    k->attn_blend = clt_attn_blend_avx512;
    k->attn_merge = clt_attn_merge_avx512;
    k->attn_finish = clt_attn_finish_avx512;
}
