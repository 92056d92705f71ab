/* What the attention files of this folder share. The contract of the entries themselves is in kernels.h. */
#ifndef CLT_KERNELS_ATTN_H
#define CLT_KERNELS_ATTN_H
#include "kernels/kernels.h"

/* ---- entries of each level, put into the table by vec_<level>.c ---- */
void clt_kv_store_scalar(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                         const float *v);
void clt_kv_store_avx2(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                       const float *v);
void clt_attn_chunk_scalar(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                           const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo);
void clt_attn_chunk_avx2(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                         const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo);
void clt_attn_chunk_avx512(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                           const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo);
void clt_attn_merge_scalar(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2);
void clt_attn_merge_avx2(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2);
void clt_attn_finish_scalar(int64_t head_dim, float l, float *o);
void clt_attn_finish_avx2(int64_t head_dim, float l, float *o);
void clt_attn_merge_avx512(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2);
void clt_attn_finish_avx512(int64_t head_dim, float l, float *o);
void clt_kv_store_neon(clt_kv_types t, int64_t head_dim, uint8_t *k_chunk, uint8_t *v_chunk, int slot, const float *k,
                       const float *v);
void clt_attn_chunk_neon(clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q, int64_t ldq, int R,
                         const int *lo, const int *hi, float scale, float *m, float *l, float *o, int64_t ldo);
void clt_attn_merge_neon(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2);
void clt_attn_finish_neon(int64_t head_dim, float l, float *o);

#define CLT_DECLARE_ATTN_ALL(level)                                                                                       \
    void clt_attn_scores_##level(int64_t head_dim, const uint8_t *chunks, int n, const float *q, int64_t ldq, int R,      \
                                 float *s, int64_t lds);                                                                  \
    void clt_attn_blend_##level(int64_t head_dim, const uint8_t *chunks, int n, const float *s, int64_t lds, int R,       \
                                float *o, int64_t ldo)
CLT_DECLARE_ATTN_ALL(scalar);
CLT_DECLARE_ATTN_ALL(avx2);
CLT_DECLARE_ATTN_ALL(avx512);
CLT_DECLARE_ATTN_ALL(neon);
#undef CLT_DECLARE_ATTN_ALL

/* What a merge is but for its long loop: updates m and l, and copies o2 if it is the first partial. True: what is left to do
 * is o = fma(o2, take, o * keep). */
bool clt_attn_merge_begin(int64_t head_dim, float *m, float *l, float *o, float m2, float l2, const float *o2, float *keep,
                          float *take);

/* ---- the blocked form: attn_tiles.c cuts a chunk into tiles and calls these, one set per level ---- */
enum {
    CLT_ATTN_TILE = 64,  /* floats in a row of a tile */
    CLT_ATTN_GROUP = 6,  /* queries in flight: 6 x 4 registers of 16 floats (6 x 2 of 8) leave room for operands */
    CLT_ATTN_ALL = 30,   /* queries whose results over all positions are summed side by side: 5 groups */
    CLT_ATTN_HALF = 32   /* columns are taken 32 or 64 at a time */
};
typedef struct clt_attn_ops {
    /* dst[i * CLT_ATTN_TILE + c] = number i * stride + c of src, as float (Q8_0: the bare int8), for c < n. */
    void (*widen)(clt_type t, const uint8_t *src, int64_t stride, int rows, int n, float *dst);
    /* For r < R and 32 * halves columns c: continues s[r][c] by fma(q[r][d], k[d][c], s[r][c]) over d < nd. With k_scale,
     * the sum over d starts at 0 and joins s as s[r][c] = fma(sum, k_scale[c], s[r][c]). Rows of k: CLT_ATTN_TILE floats. */
    void (*scores)(int R, int nd, const float *const *q, const float *k, const float *k_scale, int halves, float *const *s);
    /* s[j] = exp(s[j] * scale - m) for j in [lo, hi), m the largest s[j] * scale, l the sum (CLT_LANES rule). */
    void (*soften)(float *s, int lo, int hi, float scale, float *m, float *l);
    /* For r < R and 32 * halves columns c: continues o[r][c] by fma(p[r][j], v[j * ldv + c], o[r][c]), j in [j0, j1). */
    void (*blend)(int R, int j0, int j1, const float *const *p, const float *v, int64_t ldv, int halves, float *const *o);
} clt_attn_ops;
void clt_attn_tiles(const clt_attn_ops *ops, clt_kv_types t, int64_t head_dim, const clt_kv_chunk *c, const float *q,
                    int64_t ldq, int R, const int *lo, const int *hi, float scale, float *m, float *l, float *o,
                    int64_t ldo);

/* attn_all.c: clt_kernels.attn_scores and attn_blend. */
void clt_attn_scores_tiled(const clt_attn_ops *ops, int64_t head_dim, const uint8_t *chunks, int n, const float *q,
                           int64_t ldq, int R, float *s, int64_t lds);
void clt_attn_blend_tiled(const clt_attn_ops *ops, int64_t head_dim, const uint8_t *chunks, int n, const float *s,
                          int64_t lds, int R, float *o, int64_t ldo);

#endif
