/* Operations on one row of floats, in their plain form: the specification of vec_avx2.c and vec_avx512.c. */
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_scalar.h"
#include "kernels/math_scalar.h"

static void rms_norm(const float *x, const float *w, float eps, float *y, int64_t n) {
    float lanes[CLT_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lanes[i % CLT_LANES] = clt_fma(x[i], x[i], lanes[i % CLT_LANES]);
    float inverse = 1.0f / __builtin_sqrtf(clt_sum_lanes(lanes) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) {
        float scaled = x[i] * inverse;
        y[i] = w ? scaled * w[i] : scaled;
    }
}

static void add(const float *a, const float *b, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void scale(const float *x, float s, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * s;
}

static void clamp(const float *x, float lo, float hi, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];
}

static void axpy(float s, const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = clt_fma(s, x[i], y[i]);
}

static void gelu_mul(const float *g, const float *u, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = clt_gelu(g[i]) * u[i];
}

static void sigmoid_mul(const float *g, const float *u, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = clt_sigmoid(g[i]) * u[i];
}

static float dot(const float *a, const float *b, int64_t n) {
    float lanes[CLT_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lanes[i % CLT_LANES] = clt_fma(a[i], b[i], lanes[i % CLT_LANES]);
    return clt_sum_lanes(lanes);
}

/* The largest number of a row; NaN is passed over; -inf for a row of nothing else. */
static float largest(const float *x, int64_t n) {
    float top = -__builtin_inff();
    for (int64_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
    return top;
}

static void softmax(float *x, int64_t n) {
    float top = largest(x, n), lanes[CLT_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        x[i] = clt_exp(x[i] - top);
        lanes[i % CLT_LANES] += x[i];
    }
    float sum = clt_sum_lanes(lanes);
    for (int64_t i = 0; i < n; i++)
        x[i] /= sum;
}

static void softcap(float *x, float cap, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        x[i] = cap * clt_tanh(x[i] / cap);
}

static void rope(float *x, const float *cs, int64_t head_dim, int64_t n_rot) {
    float *low = x, *high = x + head_dim / 2;
    for (int64_t i = 0; i < n_rot; i++) {
        float a = low[i], b = high[i], c = cs[2 * i], s = cs[2 * i + 1];
        low[i] = clt_fma(a, c, -(b * s));
        high[i] = clt_fma(b, c, a * s);
    }
}

static int64_t argmax(const float *x, int64_t n) {
    float top = largest(x, n);
    for (int64_t i = 0; i < n; i++)
        if (x[i] == top)
            return i;
    return 0;
}

void clt_vec_fill_scalar(clt_kernels *k) {
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
    k->kv_store = clt_kv_store_scalar;
    k->attn_chunk = clt_attn_chunk_scalar;
    k->attn_scores = clt_attn_scores_scalar;
    k->attn_blend = clt_attn_blend_scalar;
    k->attn_merge = clt_attn_merge_scalar;
    k->attn_finish = clt_attn_finish_scalar;
}
