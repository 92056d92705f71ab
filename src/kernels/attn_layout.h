/* Where the numbers of a chunk of keys or values lie. One chunk is CLT_ATTN_CHUNK positions ("slots") of one KV head.
 *
 *   side       numbers                      Q8_0 only, after the numbers: scales
 *   keys       [Dh][64]  (slot is inner)    f32 [blocks][64]
 *   values     [64][Dh]  (slot is outer)    f32 [blocks][64]
 *
 * A number takes 4 (F32), 2 (F16) or 1 byte (Q8_0: value = int8 * scale of its block and slot). A block is 32 numbers of one
 * position; the last is shorter if Dh % 32. The sum of one key block is finished before its scale is applied. */
#ifndef CLT_KERNELS_ATTN_LAYOUT_H
#define CLT_KERNELS_ATTN_LAYOUT_H
#include "kernels/kernels.h"

static inline int64_t clt_kv_blocks(int64_t head_dim) { return (head_dim + CLT_QBLOCK - 1) / CLT_QBLOCK; }
static inline size_t clt_kv_number_bytes(clt_type t) { return t == CLT_F32 ? 4 : t == CLT_F16 ? 2 : 1; }
static inline size_t clt_kv_scales_at(int64_t head_dim) { return (size_t)head_dim * CLT_ATTN_CHUNK; } /* bytes */

static inline const float *clt_kv_scales(const uint8_t *side, int64_t head_dim) {
    return (const float *)(const void *)(side + clt_kv_scales_at(head_dim));
}

#endif
