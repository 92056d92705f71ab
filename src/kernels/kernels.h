/* Hot loops: one signature per operation, one implementation per CPU level, the same bits from all of them.
 *
 * No model words, no allocation, no threads: callers cut the work into ranges. The scalar file is the specification.
 * Shapes: T rows (tokens), N output rows of a matrix, K columns, Dh head width.
 *
 * Why the bits are equal (the numerical contract):
 *  - Quantised weights times 8-bit activations: sums inside a block of 32 are integers, exact in any order; across blocks
 *    each output does a fixed sequence of float operations in ascending block order. A row of activations is quantised
 *    alone.
 *  - Float weights: one fma per element in ascending k.
 *  - Weights are packed in panels of CLT_PANEL output rows so that one lane owns one output row on every level.
 *  - Reductions over a row: CLT_LANES partial sums (lane = index % CLT_LANES, ascending), then the fixed tree
 *    (i += i+8, i+4, i+2, i+1).
 *  - exp, tanh, … are our own polynomials of add/mul/fma in a fixed order. Nothing here calls libm. */
#ifndef CLT_KERNELS_KERNELS_H
#define CLT_KERNELS_KERNELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cpu.h"
#include "quant/quant.h"

enum { CLT_PANEL = 16, CLT_LANES = 16, CLT_QBLOCK = 32, CLT_ATTN_CHUNK = 64 };

/* ---- weights: a matrix packed for the kernels ----
 * y[t][n] = sum_k W[n][k] * x[t][k]. Panels of CLT_PANEL rows; a last panel that is not full is padded with zero rows. */
typedef struct clt_mat {
    clt_type type;        /* of the file; decides layout and arithmetic */
    int64_t rows, cols;   /* N, K */
    const uint8_t *data;  /* packed panels, 64-byte aligned */
    size_t panel_bytes;
} clt_mat;

static inline int64_t clt_mat_panels(const clt_mat *m) { return (m->rows + CLT_PANEL - 1) / CLT_PANEL; }
bool clt_mat_wants_q8(clt_type t);                 /* true: kernels read clt_acts.q/d/sums; false: clt_acts.x */
size_t clt_mat_panel_bytes(clt_type t, int64_t cols);
/* Packs panels [p0, p1) of a matrix whose rows lie in file layout at src (row stride = clt_type_row_bytes). dst is the
 * start of the whole packed matrix. The packing is the same on every CPU level. */
void clt_mat_pack(clt_type t, int64_t rows, int64_t cols, const uint8_t *src, uint8_t *dst, int64_t p0, int64_t p1);

/* A digest of what clt_mat_pack makes of fixed matrices of every type: it changes whenever packed bytes change. */
uint64_t clt_mat_pack_digest(void);

/* Steps from 0 to the largest number of a block. A little above 127: the largest still rounds to code 127, with an error
 * below half a step like any other, and all steps are finer. */
#define CLT_Q8_STEPS 127.3f

/* ---- activations: T rows of K numbers, with their 8-bit form beside them ---- */
typedef struct clt_acts {
    int64_t cols;         /* K */
    const float *x;       /* [T][ldx] */
    int64_t ldx;
    int8_t *q;            /* [T][Kp]: rne(x * CLT_Q8_STEPS / max|x| of the block of 32); Kp = K rounded up to 32, tail
                             zero */
    float *d;             /* [T][Kp/32]: max|x| / CLT_Q8_STEPS; 0 for a block of zeros */
    int16_t *sums;        /* [T][Kp/16]: sums of q over halves of blocks */
} clt_acts;

/* ---- attention: one KV head's keys and values, in chunks of CLT_ATTN_CHUNK positions aligned to absolute position ----
 * Types: CLT_F32, CLT_F16, CLT_Q8_0 (blocks of 32 along Dh, the last one shorter if Dh % 32; one f32 scale per block).
 * Keys of a chunk lie transposed [Dh][64] (lane = key position), values [64][Dh]. */
typedef struct clt_kv_chunk {
    const uint8_t *k, *v;  /* clt_kv_chunk_bytes(type, Dh) each */
} clt_kv_chunk;
typedef struct clt_kv_types { clt_type k, v; } clt_kv_types;
size_t clt_kv_chunk_bytes(clt_type t, int64_t head_dim); /* of one side (K or V), a multiple of 64 */

typedef struct clt_kernels {
    clt_cpu_level level;

    /* Fills a->q, a->d, a->sums of rows [t0, t1) from a->x. */
    void (*quantize)(const clt_acts *a, int64_t t0, int64_t t1);
    /* The same with two rows of codes for each row of a->x: rows 2t and 2t + 1 are row t, and what the rounding of row 2t
     * left of it: x - d * q, product and difference each rounded. */
    void (*quantize_pair)(const clt_acts *a, int64_t t0, int64_t t1);
    /* y[t*ldy + n] for t in [0,T) and the rows n of panels [p0,p1) (never beyond m->rows). Any T >= 0. */
    void (*matmul)(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1);

    /* y = x / sqrt(mean(x^2) + eps) * w (w NULL: no weight); y may be x. n numbers. */
    void (*rms_norm)(const float *x, const float *w, float eps, float *y, int64_t n);
    void (*add)(const float *a, const float *b, float *y, int64_t n);        /* y = a + b */
    void (*scale)(const float *x, float s, float *y, int64_t n);             /* y = x * s */
    void (*clamp)(const float *x, float lo, float hi, float *y, int64_t n);  /* y = x between lo and hi; NaN stays NaN */
    void (*axpy)(float s, const float *x, float *y, int64_t n);              /* y = fma(s, x, y) */
    void (*gelu_mul)(const float *g, const float *u, float *y, int64_t n);   /* y = gelu_tanh(g) * u */
    void (*sigmoid_mul)(const float *g, const float *u, float *y, int64_t n); /* y = u / (1 + exp(-g)) */
    float (*dot)(const float *a, const float *b, int64_t n);                 /* sum of a * b: fma into CLT_LANES sums */
    void (*softmax)(float *x, int64_t n);                                    /* in place, f32, max subtracted */
    void (*softcap)(float *x, float cap, int64_t n);                         /* x = cap * tanh(x / cap) */
    /* In place on one head of width Dh: pairs (i, i + Dh/2) for i < n_rot turn by cs[2i] = cos, cs[2i+1] = sin. */
    void (*rope)(float *x, const float *cs, int64_t head_dim, int64_t n_rot);
    /* Index of the largest number, the first of equals; NaN never wins (all NaN: 0). */
    int64_t (*argmax)(const float *x, int64_t n);

    /* Stores one position's key and value (Dh numbers each) at slot (0..63) of a chunk. F16 clamps to +-65504 where others
     * give infinity; NaN stays NaN (in Q8_0, a block with a number that is not finite becomes NaN). */
    void (*kv_store)(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                     const float *v);
    /* Partial attention of R queries over one chunk. Query r sees slots [lo[r], hi[r]) (empty allowed). For each r with a
     * nonempty range: s_j = scale * sum_d q[r][d] k[j][d] (ascending d, fma); m[r] = max s; p_j = exp(s_j - m);
     * l[r] = sum p_j (CLT_LANES rule over slot index, unseen slots count as 0); o[r][d] = sum_j p_j v[j][d] (ascending j,
     * fma). Q8_0: the sum over d is finished block by block of 32, each from 0, s_j = fma(sum, scale of the key block, s_j);
     * values count as (p_j * scale of the value block) times int8. Empty range: m = -inf, l = 0, o = 0. A NaN among the
     * scores a query sees makes m, l and o NaN. What lies in slots outside [lo, hi) never matters, be it NaN. q [R][ldq], o
     * [R][ldo]; any R; many queries per call are cheaper than many calls. Uses 45 kB of stack. */
    void (*attn_chunk)(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                       const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo);
    /* The two halves of attention over positions [0, n), all of which every query sees; a softmax over n numbers comes
     * between them. chunks: float32 keys and values of one head by turns, clt_kv_chunk_bytes(CLT_F32, Dh) each.
     * s[r][j] = sum_d q[r][d] k[j][d] (ascending d, fma); s [R][lds] has room for whole chunks, [n, …) is undefined. */
    void (*attn_scores)(int64_t head_dim, const uint8_t *chunks, int n, const float *q, int64_t ldq, int R, float *s,
                        int64_t lds);
    /* o[r][d] = sum_j s[r][j] v[j][d] (ascending j, fma). Uses 24 kB of stack. */
    void (*attn_blend)(int64_t head_dim, const uint8_t *chunks, int n, const float *s, int64_t lds, int R, float *o,
                       int64_t ldo);
    /* Merges a later partial result (m2, l2, o2) into (m, l, o); a partial with m2 = -inf changes nothing and a first
     * partial (m = -inf) is taken over as it is. */
    void (*attn_merge)(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2);
    /* o[d] = o[d] / l */
    void (*attn_finish)(int64_t head_dim, float l, float *o);
} clt_kernels;

/* The table of a level; NULL if this build or CPU lacks it. */
const clt_kernels *clt_kernels_get(clt_cpu_level level);

/* cos and sin for rope, computed in double by our own polynomials and rounded to float: cs[2i], cs[2i+1] for angle
 * (float)pos * inv_freq[i], the product rounded to float as the reference implementation rounds it. */
void clt_rope_angles(float pos, const float *inv_freq, int64_t n, float *cs);
/* inv_freq[i] = 1 / theta^(2i/denominator) for i < n, by our own exp/log in double. Exponent, power and quotient are each
 * rounded to float, as the reference implementation rounds them: at position 1e5 one ulp of a frequency is 0.006 rad. */
void clt_rope_frequencies(double theta, int64_t denominator, int64_t n, float *inv_freq);

#endif
