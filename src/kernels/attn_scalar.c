/* Attention over one chunk of keys and values, in its plain form: the specification of the other levels.
 *
 * In: a chunk laid out as attn_layout.h says, and queries. Out: partial results, and their merging. Also stores keys and
 * values into chunks. Knows nothing of positions: callers turn masks and windows into ranges of slots. */

#include "kernels/attn.h"
#include "kernels/attn_layout.h"
#include "kernels/lanes_scalar.h"
#include "kernels/math_scalar.h"

#define HALF_MAX 65504.0f
#define Q8_SMALLEST 0x1p-100f

size_t clt_kv_chunk_bytes(clt_type t, int64_t head_dim) {
    size_t bytes = (size_t)head_dim * CLT_ATTN_CHUNK * clt_kv_number_bytes(t);
    if (t == CLT_Q8_0)
        bytes += (size_t)clt_kv_blocks(head_dim) * CLT_ATTN_CHUNK * sizeof(float);
    return bytes;
}

/* Values beyond the range of half floats become its largest, not infinity: one wild value must not end a conversation. */
static uint16_t half_of(float x) {
    x = x < -HALF_MAX ? -HALF_MAX : x;
    x = x > HALF_MAX ? HALF_MAX : x;
    return clt_f32_to_f16(x);
}

/* One block of n <= 32 numbers, stored with a stride. Returns its scale: max|x| / 127; 0 for a block that holds nothing but
 * (nearly) zeros; NaN if a number is not finite, so that the damage stays visible. */
static float store_q8(const float *x, int64_t n, int8_t *q, int64_t stride) {
    float top = 0.0f, check = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        float a = clt_float_of_bits(clt_bits_of_float(x[i]) & 0x7fffffffu);
        top = a > top ? a : top;
        check += x[i] - x[i]; /* 0, or NaN */
    }
    bool empty = !(check == 0.0f) || top < Q8_SMALLEST;
    float inverse = empty ? 0.0f : 127.0f / top;
    for (int64_t i = 0; i < n; i++) {
        float rounded = (empty ? 0.0f : x[i] * inverse) + CLT_ROUND_MAGIC;
        q[i * stride] = (int8_t)(int32_t)(clt_bits_of_float(rounded) - 0x4b400000u);
    }
    return !(check == 0.0f) ? check : empty ? 0.0f : top / 127.0f;
}

/* One side of one position: numbers `stride` apart, scales CLT_ATTN_CHUNK apart. */
static void store_side(clt_type t, int64_t head_dim, uint8_t *side, int64_t first, int64_t stride, int slot,
                       const float *x) {
    if (t == CLT_F32) {
        for (int64_t d = 0; d < head_dim; d++)
            ((float *)(void *)side)[first + d * stride] = x[d];
    } else if (t == CLT_F16) {
        for (int64_t d = 0; d < head_dim; d++)
            ((uint16_t *)(void *)side)[first + d * stride] = half_of(x[d]);
    } else {
        float *scale = (float *)(void *)(side + clt_kv_scales_at(head_dim)) + slot;
        for (int64_t d = 0; d < head_dim; d += CLT_QBLOCK) {
            int64_t n = head_dim - d < CLT_QBLOCK ? head_dim - d : CLT_QBLOCK;
            scale[d / CLT_QBLOCK * CLT_ATTN_CHUNK] = store_q8(x + d, n, (int8_t *)side + first + d * stride, stride);
        }
    }
}

void clt_kv_store_scalar(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                         const float *v) {
    store_side(t.k, head_dim, k_chunk, slot, CLT_ATTN_CHUNK, slot, k);
    store_side(t.v, head_dim, v_chunk, slot * head_dim, 1, slot, v);
}

/* n numbers of a chunk, from number `first` on, as floats (Q8_0 without its scale). */
static void load_numbers(clt_type t, const uint8_t *side, int64_t first, int64_t n, float *x) {
    for (int64_t i = 0; i < n; i++) {
        if (t == CLT_F32)
            x[i] = ((const float *)(const void *)side)[first + i];
        else if (t == CLT_F16)
            x[i] = clt_f16_to_f32(((const uint16_t *)(const void *)side)[first + i]);
        else
            x[i] = (float)((const int8_t *)side)[first + i];
    }
}

/* s[j] = scale * q . k[j] for slots [lo, hi). The sums of all slots grow side by side: each is one chain of fma over d. */
static void scores(clt_type t, int64_t head_dim, const uint8_t *k, const float *q, int lo, int hi, float scale, float *s) {
    enum { S = CLT_ATTN_CHUNK };
    float block[S], row[S];
    for (int j = lo; j < hi; j++)
        s[j] = block[j] = 0.0f;
    for (int64_t d = 0; d < head_dim; d++) {
        float *sum = t == CLT_Q8_0 ? block : s;
        load_numbers(t, k, d * S + lo, hi - lo, row + lo);
        for (int j = lo; j < hi; j++)
            sum[j] = clt_fma(q[d], row[j], sum[j]);
        bool ends_block = t == CLT_Q8_0 && ((d + 1) % CLT_QBLOCK == 0 || d + 1 == head_dim);
        const float *k_scale = clt_kv_scales(k, head_dim) + d / CLT_QBLOCK * S;
        for (int j = lo; ends_block && j < hi; j++) {
            s[j] = clt_fma(block[j], k_scale[j], s[j]);
            block[j] = 0.0f;
        }
    }
    for (int j = lo; j < hi; j++)
        s[j] *= scale;
}

/* Turns scores into exp(s - m) in place. m + 0 turns -0 into +0: which zero wins must not depend on the order. */
static void soften(float *s, int lo, int hi, float *m, float *l) {
    float top = -__builtin_inff(), lanes[CLT_LANES] = {0};
    for (int j = lo; j < hi; j++)
        top = s[j] > top ? s[j] : top;
    top += 0.0f;
    for (int j = lo; j < hi; j++) {
        s[j] = clt_exp(s[j] - top);
        lanes[j % CLT_LANES] += s[j];
    }
    *l = clt_sum_lanes(lanes);
    *m = *l == *l ? top : *l;
}

static void blend(clt_type t, int64_t head_dim, const uint8_t *v, const float *p, int lo, int hi, float *o) {
    float row[CLT_QBLOCK];
    for (int64_t d = 0; d < head_dim; d += CLT_QBLOCK) {
        int64_t n = head_dim - d < CLT_QBLOCK ? head_dim - d : CLT_QBLOCK;
        const float *v_scale = clt_kv_scales(v, head_dim) + d / CLT_QBLOCK * CLT_ATTN_CHUNK;
        for (int64_t i = 0; i < n; i++)
            o[d + i] = 0.0f;
        for (int j = lo; j < hi; j++) {
            float weight = t == CLT_Q8_0 ? p[j] * v_scale[j] : p[j];
            load_numbers(t, v, j * head_dim + d, n, row);
            for (int64_t i = 0; i < n; i++)
                o[d + i] = clt_fma(weight, row[i], o[d + i]);
        }
    }
}

void clt_attn_chunk_scalar(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                           const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo) {
    float s[CLT_ATTN_CHUNK];
    for (int r = 0; r < R; r++) {
        if (hi[r] > lo[r]) {
            scores(t.k, head_dim, c->k, q + r * ldq, lo[r], hi[r], scale, s);
            soften(s, lo[r], hi[r], &m[r], &l[r]);
            blend(t.v, head_dim, c->v, s, lo[r], hi[r], o + r * ldo);
            continue;
        }
        m[r] = -__builtin_inff();
        l[r] = 0.0f;
        for (int64_t d = 0; d < head_dim; d++)
            o[r * ldo + d] = 0.0f;
    }
}

void clt_attn_scores_scalar(int64_t head_dim, const uint8_t *chunks, int n, const float *q, int64_t ldq, int R, float *s,
                            int64_t lds) {
    const size_t step = 2 * clt_kv_chunk_bytes(CLT_F32, head_dim);
    for (int r = 0; r < R; r++)
        for (int j = 0; j < n; j++) {
            const uint8_t *keys = chunks + (size_t)(j / CLT_ATTN_CHUNK) * step;
            const float *k = (const float *)(const void *)keys + j % CLT_ATTN_CHUNK;
            float sum = 0.0f;
            for (int64_t d = 0; d < head_dim; d++)
                sum = clt_fma(q[r * ldq + d], k[d * CLT_ATTN_CHUNK], sum);
            s[r * lds + j] = sum;
        }
}

void clt_attn_blend_scalar(int64_t head_dim, const uint8_t *chunks, int n, const float *s, int64_t lds, int R, float *o,
                           int64_t ldo) {
    const size_t side = clt_kv_chunk_bytes(CLT_F32, head_dim);
    for (int r = 0; r < R; r++) {
        memset(o + r * ldo, 0, (size_t)head_dim * sizeof *o);
        for (int j = 0; j < n; j++) {
            const uint8_t *values = chunks + (size_t)(j / CLT_ATTN_CHUNK) * 2 * side + side;
            const float *v = (const float *)(const void *)values + j % CLT_ATTN_CHUNK * head_dim;
            for (int64_t d = 0; d < head_dim; d++)
                o[r * ldo + d] = clt_fma(s[r * lds + j], v[d], o[r * ldo + d]);
        }
    }
}

bool clt_attn_merge_begin(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2, float *keep,
                          float *take) {
    const float none = -__builtin_inff();
    if (m2 == none)
        return false;
    if (*m == none) {
        *m = m2;
        *l = l2;
        memcpy(o, o2, (size_t)head_dim * sizeof *o);
        return false;
    }
    float top = m2 > *m ? m2 : *m;
    *keep = clt_exp(*m - top);
    *take = clt_exp(m2 - top);
    *l = clt_fma(l2, *take, *l * *keep);
    *m = top;
    return true;
}

void clt_attn_merge_scalar(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2) {
    float keep, take;
    if (!clt_attn_merge_begin(head_dim, m, l, o, m2, l2, o2, &keep, &take))
        return;
    for (int64_t d = 0; d < head_dim; d++)
        o[d] = clt_fma(o2[d], take, o[d] * keep);
}

void clt_attn_finish_scalar(int64_t head_dim, float l, float *o) {
    for (int64_t d = 0; d < head_dim; d++)
        o[d] /= l;
}
