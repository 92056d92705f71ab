/* What the files of src/kernels share: the layout of packed panels, and the functions that each CPU level contributes.
 *
 * A packed matrix is a row of panels; a panel is CLT_PANEL output rows. Float types: [k][16 rows], in the width of the file.
 * Quantised types: super-blocks of `runs` blocks of 32 k (1, or 8 for K types), each super-block
 *
 *     d[16] half floats; then m[16] half floats, if the type has a minimum
 *     runs × { scales | low bits | high bits }                  (sizes: clt_layout)
 *
 * Scales, one byte for each row: Q2_K scale + 16·minimum of the first halves [16], of the second halves [16]; Q3_K and Q6_K
 * scales of the first and of the second halves, signed; Q4_K and Q5_K scales, minima; IQ4_XS scales, signed.
 * Low bits: group g is the four numbers k = 4g … 4g+3; four bytes for each row, rows side by side: 64 bytes a group, so one
 * 32-bit lane is one row. With 8 bits, eight groups follow one another. With 4, line j has group 2j in the low nibbles and
 * 2j+1 in the high ones. With 2, line j has groups 4j … 4j+3, from the lowest bits up.
 * High bits: with 1, bit g of each byte is that of group g (one line); with 2, like low bits of 2. */
#ifndef CLT_KERNELS_INTERNAL_H
#define CLT_KERNELS_INTERNAL_H
#include <string.h>
#include "kernels/kernels.h"

/* Loops over registers must vanish, or the registers become memory. Not under the sanitizers, whose checks at every access
 * would make the unrolled functions take minutes to compile. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CLT_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CLT_SANITIZED 1
#endif
#if defined(CLT_SANITIZED)
#define CLT_INLINE static inline
#define CLT_UNROLL
#elif defined(__clang__)
#define CLT_INLINE static inline __attribute__((always_inline))
#define CLT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CLT_INLINE static inline __attribute__((always_inline))
#define CLT_UNROLL _Pragma("GCC unroll 16")
#endif

enum { CLT_GROUPS = 8, CLT_LINE = 64 }; /* groups of 4 k in a block; bytes of one group of all rows */

typedef struct clt_layout {
    int runs;             /* blocks in a super-block */
    int low_bits, high_bits;
    int scale_bytes;      /* of all rows, per block */
    int offset;           /* value = code - offset */
    bool has_min;
    bool has_halves;      /* each half of a block has its own scale (and minimum) */
    bool has_table;       /* codes index clt_iq4_values */
} clt_layout;

/* A constant when t is one. */
CLT_INLINE clt_layout clt_layout_of(clt_type t) {
    switch (t) {
    case CLT_Q4_0: return (clt_layout){.runs = 1, .low_bits = 4, .offset = 8};
    case CLT_Q4_1: return (clt_layout){.runs = 1, .low_bits = 4, .has_min = true};
    case CLT_Q5_0: return (clt_layout){.runs = 1, .low_bits = 4, .high_bits = 1, .offset = 16};
    case CLT_Q5_1: return (clt_layout){.runs = 1, .low_bits = 4, .high_bits = 1, .has_min = true};
    case CLT_Q8_0: return (clt_layout){.runs = 1, .low_bits = 8, .offset = 128};
    case CLT_IQ4_NL: return (clt_layout){.runs = 1, .low_bits = 4, .has_table = true};
    case CLT_IQ4_XS: return (clt_layout){.runs = 8, .low_bits = 4, .scale_bytes = 16, .has_table = true};
    case CLT_Q2_K: return (clt_layout){.runs = 8, .low_bits = 2, .scale_bytes = 32, .has_min = true, .has_halves = true};
    case CLT_Q3_K:
        return (clt_layout){.runs = 8, .low_bits = 2, .high_bits = 1, .scale_bytes = 32, .offset = 4, .has_halves = true};
    case CLT_Q4_K: return (clt_layout){.runs = 8, .low_bits = 4, .scale_bytes = 32, .has_min = true};
    case CLT_Q5_K: return (clt_layout){.runs = 8, .low_bits = 4, .high_bits = 1, .scale_bytes = 32, .has_min = true};
    case CLT_Q6_K:
        return (clt_layout){.runs = 8, .low_bits = 4, .high_bits = 2, .scale_bytes = 32, .offset = 32, .has_halves = true};
    case CLT_F32: case CLT_F16: case CLT_BF16: break;
    }
    return (clt_layout){0};
}

/* Bytes in front of the blocks of a super-block; of one block; of a super-block. */
CLT_INLINE int clt_layout_head(clt_layout l) { return l.has_min ? 64 : 32; }
CLT_INLINE int clt_layout_low(clt_layout l) { return CLT_GROUPS * CLT_LINE * l.low_bits / 8; }
CLT_INLINE int clt_layout_block(clt_layout l) {
    return l.scale_bytes + clt_layout_low(l) + CLT_GROUPS * CLT_LINE * l.high_bits / 8;
}
CLT_INLINE int clt_layout_super(clt_layout l) { return clt_layout_head(l) + l.runs * clt_layout_block(l); }

/* K rounded up to whole blocks: the row stride of clt_acts.q. */
CLT_INLINE int64_t clt_acts_blocks(const clt_acts *a) { return (a->cols + CLT_QBLOCK - 1) / CLT_QBLOCK; }

/* The frame of clt_kernels.quantize and quantize_pair: hands every block of 32 numbers, the last one of a row filled up
 * with zeros, to the level's own `block`, inlined if constant. Makes `rows` rows of codes, 1 or 2, for each row of x. */
typedef void clt_quantize_block_fn(const float *x, int8_t *q, float *d, int16_t *sums);
CLT_INLINE void clt_quantize_rows(clt_quantize_block_fn *block, int rows, const clt_acts *a, int64_t t0, int64_t t1) {
    int64_t blocks = clt_acts_blocks(a), whole = a->cols / CLT_QBLOCK;

    for (int64_t t = t0; t < t1; t++) {
        for (int64_t b = 0; b < blocks; b++) {
            int64_t at = rows * t * blocks + b, rest_at = at + blocks;
            const float *x = a->x + t * a->ldx + b * CLT_QBLOCK;
            float tail[CLT_QBLOCK] = {0}, rest[CLT_QBLOCK];
            if (b == whole)
                x = memcpy(tail, x, (size_t)(a->cols % CLT_QBLOCK) * sizeof *x);
            block(x, a->q + at * CLT_QBLOCK, a->d + at, a->sums + 2 * at);
            if (rows < 2)
                continue;
            const float d = a->d[at];
            for (int i = 0; i < CLT_QBLOCK; i++)
                rest[i] = x[i] - d * (float)a->q[at * CLT_QBLOCK + i];
            block(rest, a->q + rest_at * CLT_QBLOCK, a->d + rest_at, a->sums + 2 * rest_at);
        }
    }
}

/* pack.c: what clt_mat_pack does, row by row and number by number. */
void clt_mat_pack_plain(clt_type t, int64_t rows, int64_t cols, const uint8_t *src, uint8_t *dst, int64_t p0, int64_t p1);

/* Each level's share of the table. A level without its own function uses the one of the level below. */
#define CLT_DECLARE_LEVEL(level)                                                                          \
    void clt_quantize_##level(const clt_acts *a, int64_t t0, int64_t t1);                                 \
    void clt_quantize_pair_##level(const clt_acts *a, int64_t t0, int64_t t1);                            \
    void clt_matmul_##level(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy,        \
                            int64_t p0, int64_t p1);                                                      \
    void clt_vec_fill_##level(clt_kernels *k) /* every entry but level, quantize, … and matmul */
CLT_DECLARE_LEVEL(scalar);
CLT_DECLARE_LEVEL(avx2);
CLT_DECLARE_LEVEL(avxvnni);
CLT_DECLARE_LEVEL(avx512);
CLT_DECLARE_LEVEL(avx512vnni);
CLT_DECLARE_LEVEL(neon);
CLT_DECLARE_LEVEL(dotprod);
CLT_DECLARE_LEVEL(i8mm);
#undef CLT_DECLARE_LEVEL
/* The float types of a level's clt_matmul. */
void clt_matmul_floats_avx2(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1);
void clt_matmul_floats_avx512(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1);
void clt_matmul_floats_neon(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1);

#endif
