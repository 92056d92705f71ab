/* Operations on one row of floats, 4 lanes; the same bits as vec_scalar.c. What is left of a row after its last whole
 * register goes through the scalar forms. */
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_neon.h"
#include "kernels/lanes_scalar.h"
#include "kernels/math_neon.h"
#include "kernels/math_scalar.h"

enum { QUARTERS = CLT_LANES / 4 }; /* registers that hold the partial sums of a reduction */

/* Adds the numbers of an unfinished round of CLT_LANES to their lanes by fma(a, b, lane), and ends the reduction. */
static float dot_tail(const float32x4_t sums[QUARTERS], const float *a, const float *b, int64_t n) {
    float lanes[CLT_LANES];
    for (int i = 0; i < QUARTERS; i++)
        vst1q_f32(lanes + 4 * i, sums[i]);
    for (int64_t i = 0; i < n; i++)
        lanes[i] = clt_fma(a[i], b[i], lanes[i]);
    return clt_sum_lanes(lanes);
}

static void rms_norm(const float *x, const float *w, float eps, float *y, int64_t n) {
    float32x4_t sums[QUARTERS] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    int64_t i = 0;
    for (; i + CLT_LANES <= n; i += CLT_LANES) {
        CLT_UNROLL
        for (int j = 0; j < QUARTERS; j++) {
            float32x4_t v = vld1q_f32(x + i + 4 * j);
            sums[j] = vfmaq_f32(sums[j], v, v);
        }
    }
    float mean = dot_tail(sums, x + i, x + i, n - i) / (float)n;
    float inverse = 1.0f / __builtin_sqrtf(mean + eps);
    for (i = 0; i + 4 <= n; i += 4) {
        float32x4_t scaled = vmulq_n_f32(vld1q_f32(x + i), inverse);
        vst1q_f32(y + i, w ? vmulq_f32(scaled, vld1q_f32(w + i)) : scaled);
    }
    for (; i < n; i++) {
        float scaled = x[i] * inverse;
        y[i] = w ? scaled * w[i] : scaled;
    }
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vaddq_f32(vld1q_f32(a + i), vld1q_f32(b + i)));
    for (; i < n; i++)
        y[i] = a[i] + b[i];
}

static void scale(const float *x, float s, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vmulq_n_f32(vld1q_f32(x + i), s));
    for (; i < n; i++)
        y[i] = x[i] * s;
}

static void clamp(const float *x, float lo, float hi, float *y, int64_t n) {
    const float32x4_t low = vdupq_n_f32(lo), high = vdupq_n_f32(hi);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t a = vld1q_f32(x + i), b = vbslq_f32(vcltq_f32(a, low), low, a);
        vst1q_f32(y + i, vbslq_f32(vcgtq_f32(b, high), high, b));
    }
    for (; i < n; i++)
        y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];
}

static void axpy(float s, const float *x, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vfmaq_n_f32(vld1q_f32(y + i), vld1q_f32(x + i), s));
    for (; i < n; i++)
        y[i] = clt_fma(s, x[i], y[i]);
}

static void gelu_mul(const float *g, const float *u, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vmulq_f32(gelu4(vld1q_f32(g + i)), vld1q_f32(u + i)));
    for (; i < n; i++)
        y[i] = clt_gelu(g[i]) * u[i];
}

static void sigmoid_mul(const float *g, const float *u, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vmulq_f32(sigmoid4(vld1q_f32(g + i)), vld1q_f32(u + i)));
    for (; i < n; i++)
        y[i] = clt_sigmoid(g[i]) * u[i];
}

static float dot(const float *a, const float *b, int64_t n) {
    float32x4_t sums[QUARTERS] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    int64_t i = 0;
    for (; i + CLT_LANES <= n; i += CLT_LANES) {
        CLT_UNROLL
        for (int j = 0; j < QUARTERS; j++)
            sums[j] = vfmaq_f32(sums[j], vld1q_f32(a + i + 4 * j), vld1q_f32(b + i + 4 * j));
    }
    return dot_tail(sums, a + i, b + i, n - i);
}

static float largest(const float *x, int64_t n) {
    const float32x4_t none = vdupq_n_f32(-__builtin_inff());
    float32x4_t tops[QUARTERS] = {none, none, none, none};
    int64_t i = 0;
    for (; i + CLT_LANES <= n; i += CLT_LANES) {
        CLT_UNROLL
        for (int j = 0; j < QUARTERS; j++)
            tops[j] = larger4(vld1q_f32(x + i + 4 * j), tops[j]);
    }
    float top = max_lanes4(tops);
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

static void softmax(float *x, int64_t n) {
    const float top = largest(x, n);
    float32x4_t sums[QUARTERS] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)};
    float lanes[CLT_LANES];
    int64_t i = 0;
    for (; i + CLT_LANES <= n; i += CLT_LANES) {
        CLT_UNROLL
        for (int j = 0; j < QUARTERS; j++) {
            float32x4_t e = exp4(vsubq_f32(vld1q_f32(x + i + 4 * j), vdupq_n_f32(top)));
            vst1q_f32(x + i + 4 * j, e);
            sums[j] = vaddq_f32(sums[j], e);
        }
    }
    for (int j = 0; j < QUARTERS; j++)
        vst1q_f32(lanes + 4 * j, sums[j]);
    for (; i < n; i++) {
        x[i] = clt_exp(x[i] - top);
        lanes[i % CLT_LANES] += x[i];
    }
    const float sum = clt_sum_lanes(lanes);
    for (i = 0; i + 4 <= n; i += 4)
        vst1q_f32(x + i, vdivq_f32(vld1q_f32(x + i), vdupq_n_f32(sum)));
    for (; i < n; i++)
        x[i] /= sum;
}

static void softcap(float *x, float cap, int64_t n) {
    const float32x4_t factor = vdupq_n_f32(cap);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, vmulq_f32(factor, tanh4(vdivq_f32(vld1q_f32(x + i), factor))));
    for (; i < n; i++)
        x[i] = cap * clt_tanh(x[i] / cap);
}

static void rope(float *x, const float *cs, int64_t head_dim, int64_t n_rot) {
    float *low = x, *high = x + head_dim / 2;
    int64_t i = 0;
    for (; i + 4 <= n_rot; i += 4) {
        float32x4x2_t turn = vld2q_f32(cs + 2 * i); /* four cosines, four sines */
        float32x4_t a = vld1q_f32(low + i), b = vld1q_f32(high + i);
        vst1q_f32(low + i, vfmaq_f32(vnegq_f32(vmulq_f32(b, turn.val[1])), a, turn.val[0]));
        vst1q_f32(high + i, vfmaq_f32(vmulq_f32(a, turn.val[1]), b, turn.val[0]));
    }
    for (; i < n_rot; i++) {
        float a = low[i], b = high[i], c = cs[2 * i], s = cs[2 * i + 1];
        low[i] = clt_fma(a, c, -(b * s));
        high[i] = clt_fma(b, c, a * s);
    }
}

static int64_t argmax(const float *x, int64_t n) {
    const float top = largest(x, n);
    int64_t i = 0;
    for (; i + CLT_LANES <= n; i += CLT_LANES) {
        uint32x4_t same = vdupq_n_u32(0);
        CLT_UNROLL
        for (int j = 0; j < QUARTERS; j++)
            same = vorrq_u32(same, vceqq_f32(vld1q_f32(x + i + 4 * j), vdupq_n_f32(top)));
        if (vmaxvq_u32(same))
            break;
    }
    for (; i < n; i++)
        if (x[i] == top)
            return i;
    return 0;
}

void clt_vec_fill_neon(clt_kernels *k) {
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
    k->kv_store = clt_kv_store_neon;
    k->attn_chunk = clt_attn_chunk_neon;
    k->attn_scores = clt_attn_scores_neon;
    k->attn_blend = clt_attn_blend_neon;
    k->attn_merge = clt_attn_merge_neon;
    k->attn_finish = clt_attn_finish_neon;
}
