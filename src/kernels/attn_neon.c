/* Attention over one chunk, 4 lanes: the inner loops that attn_tiles.c calls. Same bits as attn_scalar.c.
 *
 * Scores and weighted sums are one operation: rows of sums grow by a number of each row times a row of a matrix. R rows of W
 * registers are worked on at once, 8 to 12 chains of fma; four numbers of a row are loaded at once and multiply as lanes. */
#include <string.h>
#include "kernels/attn.h"
#include "kernels/internal.h"
#include "kernels/lanes_neon.h"
#include "kernels/math_neon.h"

enum { S = CLT_ATTN_CHUNK, TILE = CLT_ATTN_TILE, GROUP = CLT_ATTN_GROUP, W_MAX = 8, QUARTERS = CLT_LANES / 4 };

/* ---- storing ---- */

static uint16x4_t halves_of(float32x4_t x) {
    x = vminq_f32(vmaxq_f32(x, vdupq_n_f32(-65504.0f)), vdupq_n_f32(65504.0f)); /* NaN stays NaN */
    return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

void clt_kv_store_neon(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                       const float *v) {
    if (t.k != CLT_F16 || t.v != CLT_F16) {
        clt_kv_store_scalar(t, head_dim, k_chunk, v_chunk, slot, k, v);
        return;
    }
    uint16_t *ks = (uint16_t *)(void *)k_chunk + slot, *vs = (uint16_t *)(void *)v_chunk + slot * head_dim;
    for (int64_t d = 0; d < head_dim; d += 4) {
        int64_t n = head_dim - d < 4 ? head_dim - d : 4;
        float key4[4] = {0}, value4[4] = {0};
        uint16_t key[4], value[4];
        memcpy(key4, k + d, (size_t)n * sizeof *k);
        memcpy(value4, v + d, (size_t)n * sizeof *v);
        vst1_u16(key, halves_of(vld1q_f32(key4)));
        vst1_u16(value, halves_of(vld1q_f32(value4)));
        for (int64_t i = 0; i < n; i++)
            ks[(d + i) * S] = key[i];
        memcpy(vs + d, value, (size_t)n * sizeof *vs);
    }
}

/* ---- widening ---- */

static float32x4_t floats_of_halves(const uint8_t *src) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(src)));
}

static void widen_row(clt_type t, const uint8_t *src, int n, float *dst) {
    int i = 0;
    if (t == CLT_F16) {
        for (; i + 4 <= n; i += 4)
            vst1q_f32(dst + i, floats_of_halves(src + 2 * i));
        if (i < n) {
            uint8_t last[8] = {0};
            float four[4];
            memcpy(last, src + 2 * i, 2 * (size_t)(n - i));
            vst1q_f32(four, floats_of_halves(last));
            memcpy(dst + i, four, (size_t)(n - i) * sizeof *dst);
        }
    } else if (t == CLT_Q8_0) {
        for (; i + 8 <= n; i += 8) {
            int16x8_t q = vmovl_s8(vreinterpret_s8_u8(vld1_u8(src + i)));
            vst1q_f32(dst + i, vcvtq_f32_s32(vmovl_s16(vget_low_s16(q))));
            vst1q_f32(dst + i + 4, vcvtq_f32_s32(vmovl_high_s16(q)));
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

/* ---- R rows of W registers of sums: sum[r] = fma(x[r][i], m[i * ldm + …], sum[r]) for i in [i0, i1) ascending ---- */

CLT_INLINE float32x4_t fma_lane(float32x4_t sum, float32x4_t m, float32x4_t x, int lane) {
    switch (lane) {
    case 0: return vfmaq_laneq_f32(sum, m, x, 0);
    case 1: return vfmaq_laneq_f32(sum, m, x, 1);
    case 2: return vfmaq_laneq_f32(sum, m, x, 2);
    default: return vfmaq_laneq_f32(sum, m, x, 3);
    }
}

CLT_INLINE void add_products(int R, int W, int i0, int i1, const float *const *x, const float *m, int64_t ldm,
                             float32x4_t (*sum)[W_MAX]) {
    const float *row[GROUP];
    int i = i0;
    CLT_UNROLL
    for (int r = 0; r < R; r++)
        row[r] = x[r];
    for (; i + 4 <= i1; i += 4) {
        float32x4_t four[GROUP];
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            four[r] = vld1q_f32(row[r] + i);
        CLT_UNROLL
        for (int lane = 0; lane < 4; lane++)
            CLT_UNROLL
            for (int j = 0; j < W; j++) {
                float32x4_t numbers = vld1q_f32(m + (i + lane) * ldm + 4 * j);
                CLT_UNROLL
                for (int r = 0; r < R; r++)
                    sum[r][j] = fma_lane(sum[r][j], numbers, four[r], lane);
            }
    }
    for (; i < i1; i++)
        CLT_UNROLL
        for (int j = 0; j < W; j++) {
            float32x4_t numbers = vld1q_f32(m + i * ldm + 4 * j);
            CLT_UNROLL
            for (int r = 0; r < R; r++)
                sum[r][j] = vfmaq_n_f32(sum[r][j], numbers, row[r][i]);
        }
}

/* ---- scores ---- */

CLT_INLINE void scores_fixed(int R, int W, int nd, const float *const *q, const float *k, const float *k_scale, int columns,
                             float *const *s) {
    for (int c = 0; c < columns; c += 4 * W) {
        float32x4_t sum[GROUP][W_MAX];
        CLT_UNROLL
        for (int i = 0; i < W * R; i++)
            sum[i / W][i % W] = k_scale ? vdupq_n_f32(0) : vld1q_f32(s[i / W] + c + 4 * (i % W));
        add_products(R, W, 0, nd, q, k + c, TILE, sum);
        CLT_UNROLL
        for (int i = 0; i < W * R; i++) {
            float *at = s[i / W] + c + 4 * (i % W);
            float32x4_t v = sum[i / W][i % W];
            vst1q_f32(at, k_scale ? vfmaq_f32(vld1q_f32(at), v, vld1q_f32(k_scale + c + 4 * (i % W))) : v);
        }
    }
}

static void scores(int R, int nd, const float *const *q, const float *k, const float *k_scale, int halves, float *const *s) {
    const int columns = CLT_ATTN_HALF * halves;
    switch (R) {
    case 1: scores_fixed(1, 8, nd, q, k, k_scale, columns, s); break;
    case 2: scores_fixed(2, 4, nd, q, k, k_scale, columns, s); break;
    case 3: scores_fixed(3, 4, nd, q, k, k_scale, columns, s); break;
    case 4: scores_fixed(4, 2, nd, q, k, k_scale, columns, s); break;
    case 5: scores_fixed(5, 2, nd, q, k, k_scale, columns, s); break;
    default: scores_fixed(6, 2, nd, q, k, k_scale, columns, s);
    }
}

/* ---- softmax of one row ---- */

/* Lanes of the 4 slots from `at` on that lie in [lo, hi). */
static inline uint32x4_t seen4(int at, int lo, int hi) {
    static const int32_t first[4] = {0, 1, 2, 3};
    int32x4_t slot = vaddq_s32(vdupq_n_s32(at), vld1q_s32(first));
    return vandq_u32(vcgeq_s32(slot, vdupq_n_s32(lo)), vcltq_s32(slot, vdupq_n_s32(hi)));
}

static void soften(float *s, int lo, int hi, float scale, float *m, float *l) {
    const float32x4_t none = vdupq_n_f32(-__builtin_inff()), zero = vdupq_n_f32(0);
    float32x4_t tops[QUARTERS] = {none, none, none, none}, sums[QUARTERS] = {zero, zero, zero, zero};
    for (int i = 0; i < S / 4; i++) {
        float32x4_t x = vbslq_f32(seen4(4 * i, lo, hi), vmulq_n_f32(vld1q_f32(s + 4 * i), scale), none);
        tops[i % QUARTERS] = larger4(x, tops[i % QUARTERS]);
        vst1q_f32(s + 4 * i, x);
    }
    const float largest = max_lanes4(tops) + 0.0f; /* never -0 */
    for (int i = 0; i < S / 4; i++) {
        float32x4_t p = exp4(vsubq_f32(vld1q_f32(s + 4 * i), vdupq_n_f32(largest)));
        p = vbslq_f32(seen4(4 * i, lo, hi), p, zero);
        vst1q_f32(s + 4 * i, p);
        sums[i % QUARTERS] = vaddq_f32(sums[i % QUARTERS], p);
    }
    *l = sum_lanes4(sums);
    *m = *l == *l ? largest : *l;
}

/* ---- weighted sums of values ---- */

CLT_INLINE void blend_fixed(int R, int W, int j0, int j1, const float *const *p, const float *v, int64_t ldv, int columns,
                            float *const *o) {
    for (int c = 0; c < columns; c += 4 * W) {
        float32x4_t sum[GROUP][W_MAX];
        CLT_UNROLL
        for (int i = 0; i < W * R; i++)
            sum[i / W][i % W] = vld1q_f32(o[i / W] + c + 4 * (i % W));
        add_products(R, W, j0, j1, p, v + c, ldv, sum);
        CLT_UNROLL
        for (int i = 0; i < W * R; i++)
            vst1q_f32(o[i / W] + c + 4 * (i % W), sum[i / W][i % W]);
    }
}

static void blend(int R, int j0, int j1, const float *const *p, const float *v, int64_t ldv, int halves, float *const *o) {
    const int columns = CLT_ATTN_HALF * halves;
    switch (R) {
    case 1: blend_fixed(1, 8, j0, j1, p, v, ldv, columns, o); break;
    case 2: blend_fixed(2, 4, j0, j1, p, v, ldv, columns, o); break;
    case 3: blend_fixed(3, 4, j0, j1, p, v, ldv, columns, o); break;
    case 4: blend_fixed(4, 2, j0, j1, p, v, ldv, columns, o); break;
    case 5: blend_fixed(5, 2, j0, j1, p, v, ldv, columns, o); break;
    default: blend_fixed(6, 2, j0, j1, p, v, ldv, columns, o);
    }
}

/* ---- entries ---- */

static const clt_attn_ops ops = {widen, scores, soften, blend};

void clt_attn_chunk_neon(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                         const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo) {
    clt_attn_tiles(&ops, t, head_dim, c, q, ldq, R, lo, hi, scale, m, l, o, ldo);
}

void clt_attn_scores_neon(int64_t head_dim, const uint8_t *chunks, int n, const float *q, int64_t ldq, int R, float *s,
                        int64_t lds) {
    clt_attn_scores_tiled(&ops, head_dim, chunks, n, q, ldq, R, s, lds);
}

void clt_attn_blend_neon(int64_t head_dim, const uint8_t *chunks, int n, const float *s, int64_t lds, int R, float *o,
                       int64_t ldo) {
    clt_attn_blend_tiled(&ops, head_dim, chunks, n, s, lds, R, o, ldo);
}

void clt_attn_merge_neon(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2) {
    float keep, take;
    if (!clt_attn_merge_begin(head_dim, m, l, o, m2, l2, o2, &keep, &take))
        return;
    int64_t d = 0;
    for (; d + 4 <= head_dim; d += 4)
        vst1q_f32(o + d, vfmaq_n_f32(vmulq_n_f32(vld1q_f32(o + d), keep), vld1q_f32(o2 + d), take));
    for (; d < head_dim; d++)
        o[d] = __builtin_fmaf(o2[d], take, o[d] * keep);
}

void clt_attn_finish_neon(int64_t head_dim, float l, float *o) {
    int64_t d = 0;
    for (; d + 4 <= head_dim; d += 4)
        vst1q_f32(o + d, vdivq_f32(vld1q_f32(o + d), vdupq_n_f32(l)));
    for (; d < head_dim; d++)
        o[d] /= l;
}
