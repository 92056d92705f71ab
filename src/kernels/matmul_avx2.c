/* Matrix times rows of activations for AVX2, quantised types: the bits of matmul_scalar.c.
 *
 * A few rows meet each block of a panel while its codes are in registers; nothing is stored. For many rows a panel is cut
 * into stretches of blocks: a stretch is unpacked once, to plain 8-bit codes and float scales that stay in the first-level
 * cache, and then meets all rows, ROWS_TILE at a time.
 *
 * Everything is written once for all types; `t` is a constant wherever these functions are inlined. */
#include "kernels/blocks_avx2.h"

typedef struct block {
    uint8_t code[CLT_GROUPS][CLT_LINE];
    scales scales;
} block;

/* BLOCKS blocks of a panel. */
typedef struct stretch {
    _Alignas(64) block block[BLOCKS];
} stretch;

/* Where block b of a panel has its super-block, and its scales, which its codes follow. */
CLT_INLINE const uint8_t *super_of(clt_layout l, const uint8_t *panel, int64_t b) {
    return panel + b / l.runs * clt_layout_super(l);
}

CLT_INLINE const uint8_t *scales_at(clt_layout l, const uint8_t *panel, int64_t b) {
    return super_of(l, panel, b) + clt_layout_head(l) + b % l.runs * clt_layout_block(l);
}

CLT_INLINE void prefetch_block(clt_layout l, const uint8_t *at) {
    for (int line = 0; line < clt_layout_super(l) / l.runs; line += CLT_LINE)
        _mm_prefetch((const char *)at + CLT_AHEAD_BYTES + line, _MM_HINT_T0);
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, stretch *out) {
    const clt_layout l = clt_layout_of(t);
    head h;

    for (int i = 0; i < n; i++) {
        const uint8_t *at = scales_at(l, panel, b0 + i);
        block *b = &out->block[i];
        if (i == 0 || (b0 + i) % l.runs == 0)
            h = head_of(t, super_of(l, panel, b0 + i));
        prefetch_block(l, at);
        scales_of(t, &h, at, &b->scales);
        CLT_UNROLL
        for (int g = 0; g < CLT_GROUPS; g++)
            for (int side = 0; side < SIDES; side++)
                _mm256_store_si256((__m256i *)(b->code[g] + 32 * side), codes_of(l, at + l.scale_bytes, side, g));
    }
}

CLT_INLINE void load_sums(int R, float (*acc)[CLT_PANEL], __m256 (*f)[SIDES]) {
    CLT_UNROLL
    for (int i = 0; i < R * SIDES; i++)
        f[i / SIDES][i % SIDES] = _mm256_load_ps(acc[i / SIDES] + 8 * (i % SIDES));
}

CLT_INLINE void store_sums(int R, __m256 (*f)[SIDES], float (*acc)[CLT_PANEL]) {
    CLT_UNROLL
    for (int i = 0; i < R * SIDES; i++)
        _mm256_store_ps(acc[i / SIDES] + 8 * (i % SIDES), f[i / SIDES][i % SIDES]);
}

/* Rows [row, row + R) of acc go on over the n blocks of a stretch that starts at b0. */
CLT_INLINE void multiply_tile(clt_type t, int R, const stretch *s, int n, const clt_acts *a, int64_t row, int64_t b0,
                              float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    row_tile x;
    __m256 f[ROWS_TILE][SIDES];

    row_tile_start(l, R, a, row, b0, n, &x);
    load_sums(R, acc, f);
    for (int i = 0; i < n; i++)
        add_block(l, R, false, s->block[i].code[0], &s->block[i].scales, &x, i, f);
    store_sums(R, f, acc);
}

/* Rows [row, row + R) of acc go over all blocks, straight from the panel. */
CLT_INLINE void multiply_few(clt_type t, int R, const uint8_t *panel, const clt_acts *a, int64_t row,
                             float (*acc)[CLT_PANEL]) {
    const clt_layout l = clt_layout_of(t);
    int64_t blocks = clt_acts_blocks(a);
    __m256 f[ROWS_TILE][SIDES];
    head h;

    load_sums(R, acc, f);
    for (int64_t b0 = 0; b0 < blocks; b0 += BLOCKS) {
        int n = blocks - b0 < BLOCKS ? (int)(blocks - b0) : BLOCKS;
        row_tile x;
        row_tile_start(l, R, a, row, b0, n, &x);
        for (int i = 0; i < n; i++) {
            const uint8_t *at = scales_at(l, panel, b0 + i);
            scales s;
            if (i % l.runs == 0)
                h = head_of(t, super_of(l, panel, b0 + i));
            prefetch_block(l, at);
            scales_of(t, &h, at, &s);
            add_block(l, R, true, at + l.scale_bytes, &s, &x, i, f);
        }
    }
    store_sums(R, f, acc);
}

/* ---- one function for each type and number of rows: more in one function, and registers are dealt out badly ---- */

typedef void few_fn(const uint8_t *panel, const clt_acts *a, int64_t row, float (*acc)[CLT_PANEL]);
typedef void unpack_fn(const uint8_t *panel, int64_t b0, int n, stretch *out);
typedef void tile_fn(const stretch *s, int n, const clt_acts *a, int64_t row, int64_t b0, float (*acc)[CLT_PANEL]);

typedef struct type_fns {
    few_fn *few[ROWS_TILE];    /* for 1 … ROWS_TILE rows */
    unpack_fn *unpack;
    tile_fn *tile[ROWS_TILE];
} type_fns;

#define DEFINE_FEW(type, R)                                                                                            \
    __attribute__((noinline)) static void few##R##_##type(const uint8_t *panel, const clt_acts *a, int64_t row,        \
                                                          float (*acc)[CLT_PANEL]) {                                   \
        multiply_few(CLT_##type, R, panel, a, row, acc);                                                               \
    }
#define DEFINE_TILE(type, R)                                                                                           \
    __attribute__((noinline)) static void tile##R##_##type(const stretch *s, int n, const clt_acts *a, int64_t row,    \
                                                           int64_t b0, float (*acc)[CLT_PANEL]) {                      \
        multiply_tile(CLT_##type, R, s, n, a, row, b0, acc);                                                           \
    }
#define DEFINE_TYPE(type)                                                                                              \
    DEFINE_FEW(type, 1) DEFINE_FEW(type, 2) DEFINE_FEW(type, 3) DEFINE_FEW(type, 4)                                    \
    DEFINE_TILE(type, 1) DEFINE_TILE(type, 2) DEFINE_TILE(type, 3) DEFINE_TILE(type, 4)                                \
    __attribute__((noinline)) static void unpack_##type(const uint8_t *panel, int64_t b0, int n, stretch *out) {       \
        unpack(CLT_##type, panel, b0, n, out);                                                                         \
    }                                                                                                                  \
    static void multiply_##type(const uint8_t *panel, const clt_acts *a, int64_t t0, int rows, float (*acc)[CLT_PANEL]) \
    {                                                                                                                  \
        static const type_fns fns = {{few1_##type, few2_##type, few3_##type, few4_##type}, unpack_##type,              \
                                     {tile1_##type, tile2_##type, tile3_##type, tile4_##type}};                        \
        multiply_panel(&fns, panel, a, t0, rows, acc);                                                                 \
    }

/* acc[r] = sixteen outputs of one panel for row t0 + r; rows <= CLT_ROWS_GROUP. */
static void multiply_panel(const type_fns *fns, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows,
                           float (*acc)[CLT_PANEL]) {
    enum { FEW = 2 * ROWS_TILE };
    int64_t blocks = clt_acts_blocks(a);
    stretch s;

    memset(acc, 0, (size_t)rows * sizeof *acc);
    for (int r = 0, R; rows <= FEW && r < rows; r += R) {
        R = rows - r < ROWS_TILE ? rows - r : ROWS_TILE;
        fns->few[R - 1](panel, a, t0 + r, acc + r);
    }
    for (int64_t b0 = 0; rows > FEW && b0 < blocks; b0 += BLOCKS) {
        int n = blocks - b0 < BLOCKS ? (int)(blocks - b0) : BLOCKS;
        fns->unpack(panel, b0, n, &s);
        for (int r = 0, R; r < rows; r += R) {
            R = rows - r < ROWS_TILE ? rows - r : ROWS_TILE;
            fns->tile[R - 1](&s, n, a, t0 + r, b0, acc + r);
        }
    }
}

CLT_QUANTISED_TYPES(DEFINE_TYPE)
static clt_panel_fn *const multiply[] = {CLT_QUANTISED_TYPES(CLT_PANEL_ENTRY)};

void clt_matmul_avx2(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    if (clt_mat_wants_q8(m->type))
        clt_matmul_panels(multiply[m->type], m, a, T, y, ldy, p0, p1);
    else
        clt_matmul_floats_avx2(m, a, T, y, ldy, p0, p1);
}
