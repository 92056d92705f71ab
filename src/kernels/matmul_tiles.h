/* The text of the quantised matmuls for levels with dot products of bytes or wide registers: the bits of matmul_scalar.c.
 *
 * A lane of a register is one output row, so a panel is PARTS registers. For a few rows of activations the codes of a panel
 * are taken apart in registers and used at once. For many rows, a stretch of BLOCKS blocks of one or two panels is unpacked
 * into the first-level cache first, to plain bytes and float scales, and then meets all rows. Either way a tile is P
 * registers of output rows times R rows of activations: P * R independent chains, so that no instruction waits for the one
 * before it.
 *
 * Codes may stay unsigned: then a sum starts at -unsigned_offset * S instead of zero. Integers below 2^24 are exact floats,
 * so the scales of halves multiply as floats, which is cheaper than 32-bit integer multiplication.
 *
 * A level includes this file after defining its registers (`vf` of floats, `vi` of integers, LANES lanes), the functions on
 * them that are used below, how products are added (add_group), and the sizes of its tiles. It is no header of its own:
 * everything is static, and written once for all types; `t` is a constant wherever these functions are inlined. */
#ifndef CLT_KERNELS_MATMUL_TILES_H
#define CLT_KERNELS_MATMUL_TILES_H
#include "kernels/matmul.h"
#include "quant/run.h"

enum {
    BLOCKS = CLT_STRETCH,
    PARTS = CLT_PANEL / LANES,
    STRIP_PANELS = TILE_PARTS / PARTS,  /* panels that are worked on together when there are many rows */
    GROUP_PANELS = 8, GROUP_ROWS = 128  /* outputs that are summed up together, in the second-level cache */
};

typedef struct block {
    uint8_t code[CLT_GROUPS][CLT_LINE];
    float d[CLT_PANEL];            /* of the block, or of the super-block for types with halves */
    float min[2][CLT_PANEL];       /* what multiplies dx * S */
    float scale[2][CLT_PANEL];     /* types with halves */
} block;

/* The scales of one block for the output rows of one register. */
typedef struct block_scales { vf d, min[2], scale[2]; } block_scales;

/* Where the parts of packed block b lie. */
typedef struct place { const uint8_t *head, *scales, *low, *high; } place;

CLT_INLINE place place_of(clt_layout l, const uint8_t *panel, int64_t b) {
    place p;
    p.head = panel + b / l.runs * clt_layout_super(l);
    p.scales = p.head + clt_layout_head(l) + b % l.runs * clt_layout_block(l);
    p.low = p.scales + l.scale_bytes;
    p.high = p.low + clt_layout_low(l);
    return p;
}

CLT_INLINE void prefetch_block(clt_layout l, place p) {
    for (int line = 0; line < clt_layout_block(l); line += CLT_LINE)
        __builtin_prefetch(p.scales + CLT_AHEAD_BYTES + line, 0, 3);
}

/* ---- taking a packed block apart, for the output rows of register `part` ---- */

CLT_INLINE vi high_bits_of(clt_layout l, const uint8_t *high, int group, int part) {
    int per_line = 8 / l.high_bits, from = group % per_line * l.high_bits;
    vi v = load_bytes(high + group / per_line * CLT_LINE + 4 * LANES * part);
    v = from > l.low_bits ? shift_right(v, from - l.low_bits) : shift_left(v, l.low_bits - from);
    return both(v, spread_byte(((1 << l.high_bits) - 1) << l.low_bits));
}

CLT_INLINE vi code_of(clt_layout l, place p, int group, int part) {
    int per_line = 8 / l.low_bits;
    vi v = load_bytes(p.low + group / per_line * CLT_LINE + 4 * LANES * part);

    if (l.low_bits == 8)
        return from_byte_code(v);
    v = both(shift_right(v, group % per_line * l.low_bits), spread_byte((1 << l.low_bits) - 1));
    if (l.high_bits)
        v = either(v, high_bits_of(l, p.high, group, part));
    return l.has_table ? from_table(v) : v;
}

CLT_INLINE block_scales scales_of(clt_type t, place p, int part) {
    const uint8_t *first = p.scales + LANES * part, *second = first + CLT_PANEL;
    block_scales s = {.d = load_halves(p.head + 2 * LANES * part)};

    if (clt_layout_of(t).has_min)
        s.min[0] = load_halves(p.head + 32 + 2 * LANES * part);
    if (t == CLT_Q2_K) {
        vf m = negated(s.min[0]);
        s.min[0] = times(m, load_nibbles(first, 4));
        s.min[1] = times(m, load_nibbles(second, 4));
        s.scale[0] = load_nibbles(first, 0);
        s.scale[1] = load_nibbles(second, 0);
    } else if (t == CLT_Q3_K || t == CLT_Q6_K) {
        s.scale[0] = load_signed(first);
        s.scale[1] = load_signed(second);
    } else if (t == CLT_Q4_K || t == CLT_Q5_K) {
        s.min[0] = times(negated(s.min[0]), load_unsigned(second));
        s.d = times(s.d, load_unsigned(first));
    } else if (t == CLT_IQ4_XS) {
        s.d = times(s.d, load_signed(first));
    }
    return s;
}

CLT_INLINE void unpack(clt_type t, const uint8_t *panel, int64_t b0, int n, block *out) {
    const clt_layout l = clt_layout_of(t);

    for (int i = 0; i < n; i++) {
        place p = place_of(l, panel, b0 + i);
        prefetch_block(l, p);
        CLT_UNROLL
        for (int part = 0; part < PARTS; part++) {
            block_scales s = scales_of(t, p, part);
            store_floats(out[i].d + LANES * part, s.d);
            for (int h = 0; h <= l.has_halves; h++) {
                if (l.has_min)
                    store_floats(out[i].min[h] + LANES * part, s.min[h]);
                if (l.has_halves)
                    store_floats(out[i].scale[h] + LANES * part, s.scale[h]);
            }
            CLT_UNROLL
            for (int g = 0; g < CLT_GROUPS; g++)
                store_bytes(out[i].code[g] + 4 * LANES * part, code_of(l, p, g, part));
        }
    }
}

CLT_INLINE block_scales load_scales(clt_layout l, const block *w, int part) {
    block_scales s = {.d = load_floats(w->d + LANES * part)};
    for (int h = 0; h <= l.has_halves; h++) {
        if (l.has_min)
            s.min[h] = load_floats(w->min[h] + LANES * part);
        if (l.has_halves)
            s.scale[h] = load_floats(w->scale[h] + LANES * part);
    }
    return s;
}

/* ---- rows of activations ---- */

/* What depends on a row and a block alone, for the blocks of a stretch (twice as many if a type has halves): dx * S for
 * types with a minimum, else where the integer sum starts, -offset * S. */
typedef union row_part { float scaled[2 * BLOCKS]; int32_t start[2 * BLOCKS]; } row_part;

typedef struct tile_rows {
    const int8_t *q;       /* row r: q + r * q_stride */
    const float *d;        /* row r: d + r * d_stride */
    int64_t q_stride, d_stride;
    const row_part *part;  /* row r: part[r] */
} tile_rows;

CLT_INLINE void prepare_row(clt_layout l, const float *d, const int16_t *sums, int n, row_part *out) {
    for (int i = 0; i < (l.has_halves ? 2 * n : n); i++) {
        int32_t sum, pair;
        if (l.has_halves) {
            sum = sums[i];
        } else { /* both halves in one load, as the vectoriser likes it */
            memcpy(&pair, sums + 2 * i, sizeof pair);
            sum = ((int32_t)((uint32_t)pair << 16) >> 16) + (pair >> 16);
        }
        if (l.has_min)
            out->scaled[i] = d[l.has_halves ? i / 2 : i] * (float)sum;
        else
            out->start[i] = -unsigned_offset(l) * sum;
    }
}

/* ---- a tile ---- */

/* The strip that a tile multiplies with: a panel from block b0 on, or unpacked blocks. */
typedef struct weights {
    const uint8_t *panel;
    int64_t b0;
    block (*s)[BLOCKS];    /* NULL, also to the compiler: take the panel apart */
} weights;

/* Adds one block to P x R registers of outputs. */
CLT_INLINE void add_block(clt_layout l, int P, int R, const block_scales *w, vi (*sum)[ROWS_MAX][2], const tile_rows *x,
                          int i, vf (*f)[ROWS_MAX]) {
    CLT_UNROLL
    for (int r = 0; r < R; r++) {
        vf dx = spread_float(x->d[r * x->d_stride + i]);
        CLT_UNROLL
        for (int p = 0; p < P; p++) {
            vf total = floats_of(sum[p][r][0]);
            if (l.has_halves)
                total = fused(w[p].scale[1], floats_of(sum[p][r][1]), times(w[p].scale[0], total));
            f[p][r] = fused(times(w[p].d, dx), total, f[p][r]);
        }
        for (int h = 0; l.has_min && h <= l.has_halves; h++) {
            vf scaled = spread_float(x->part[r].scaled[l.has_halves ? 2 * i + h : i]);
            CLT_UNROLL
            for (int p = 0; p < P; p++)
                f[p][r] = fused(w[p].min[h], scaled, f[p][r]);
        }
    }
}

/* sum += the products of the eight groups of block i. */
CLT_INLINE void add_groups(clt_layout l, int P, int R, const weights *w, int i, const tile_rows *x, vi (*sum)[ROWS_MAX][2]) {
    vi pairs[TILE_PARTS][ROWS_MAX];

    CLT_UNROLL
    for (int g = 0; g < CLT_GROUPS; g++) {
        vi code[TILE_PARTS];
        CLT_UNROLL
        for (int p = 0; p < P; p++)
            code[p] = w->s == NULL ? code_of(l, place_of(l, w->panel, w->b0 + i), g, p)
                               : load_bytes(w->s[p / PARTS][i].code[g] + 4 * LANES * (p % PARTS));
        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            int32_t four;
            memcpy(&four, x->q + r * x->q_stride + i * CLT_QBLOCK + 4 * g, sizeof four);
            CLT_UNROLL
            for (int p = 0; p < P; p++)
                add_group(l, g, code[p], spread_int(four), &pairs[p][r], &sum[p][r][l.has_halves ? g / 4 : 0]);
        }
    }
}

/* n blocks for the P registers of a strip and R rows; outputs at acc [P][GROUP_ROWS][LANES]. */
CLT_INLINE void multiply_tile(clt_type t, int P, int R, const weights *w, int n, const tile_rows *x, float *acc) {
    const clt_layout l = clt_layout_of(t);
    const bool has_start = !l.has_min && unsigned_offset(l) != 0;
    vf f[TILE_PARTS][ROWS_MAX];

    CLT_UNROLL
    for (int p = 0; p < P; p++) {
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            f[p][r] = load_floats(acc + (p * GROUP_ROWS + r) * LANES);
    }
    for (int i = 0; i < n; i++) {
        vi sum[TILE_PARTS][ROWS_MAX][2];
        block_scales scales[TILE_PARTS];

        CLT_UNROLL
        for (int r = 0; r < R; r++) {
            for (int h = 0; h <= l.has_halves; h++) {
                vi start = spread_int(has_start ? x->part[r].start[l.has_halves ? 2 * i + h : i] : 0);
                CLT_UNROLL
                for (int p = 0; p < P; p++)
                    sum[p][r][h] = start;
            }
        }
        if (w->s == NULL)
            prefetch_block(l, place_of(l, w->panel, w->b0 + i));
        add_groups(l, P, R, w, i, x, sum);
        CLT_UNROLL
        for (int p = 0; p < P; p++)
            scales[p] = w->s == NULL ? scales_of(t, place_of(l, w->panel, w->b0 + i), p)
                                 : load_scales(l, &w->s[p / PARTS][i], p % PARTS);
        add_block(l, P, R, scales, sum, x, i, f);
    }
    CLT_UNROLL
    for (int p = 0; p < P; p++) {
        CLT_UNROLL
        for (int r = 0; r < R; r++)
            store_floats(acc + (p * GROUP_ROWS + r) * LANES, f[p][r]);
    }
}

/* ---- strips: a panel, or STRIP_PANELS of them ---- */

/* A stretch of the strip, and the rows that meet it. */
typedef struct meeting {
    const uint8_t *panel;
    const clt_acts *a;
    int64_t t0, b0;        /* first row, first block */
    int n;                 /* blocks */
    block (*s)[BLOCKS];    /* the strip's blocks, if they are unpacked */
    const row_part *part;  /* [rows] */
    float *acc;            /* [parts of the strip][GROUP_ROWS][LANES] */
} meeting;

/* Rows [r, r + R) of the meeting against the P registers of its strip. */
CLT_INLINE void meet(clt_type t, bool direct, int P, int R, const meeting *m, int r) {
    int64_t blocks = clt_acts_blocks(m->a), at = (m->t0 + r) * blocks + m->b0;
    const tile_rows x = {m->a->q + at * CLT_QBLOCK, m->a->d + at, blocks * CLT_QBLOCK, blocks, m->part + r};
    const weights w = {direct ? m->panel : NULL, m->b0, direct ? NULL : m->s};
    multiply_tile(t, P, R, &w, m->n, &x, m->acc + r * LANES);
}

CLT_INLINE void multiply_few(clt_type t, const meeting *m, int rows) {
    int r = 0;
    for (; r + FEW_TILE <= rows; r += FEW_TILE)
        meet(t, true, PARTS, FEW_TILE, m, r);
    if (FEW_TILE > 4 && r + 4 <= rows) {
        meet(t, true, PARTS, 4, m, r);
        r += 4;
    }
    switch (rows - r) {
    case 3: meet(t, true, PARTS, 3, m, r); break;
    case 2: meet(t, true, PARTS, 2, m, r); break;
    case 1: meet(t, true, PARTS, 1, m, r); break;
    default: break;
    }
}

/* Tiles of nearly equal height. */
CLT_INLINE void multiply_many(clt_type t, int P, const meeting *m, int rows) {
    int tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
    for (int i = 0, r = 0; i < tiles; i++) {
        int next = rows * (i + 1) / tiles;
        if (next - r == TILE_ROWS)
            meet(t, false, P, TILE_ROWS, m, r);
        else if (next - r == TILE_ROWS - 1)
            meet(t, false, P, TILE_ROWS - 1, m, r);
        else
            meet(t, false, P, TILE_ROWS - 2, m, r);
        r = next;
    }
}

/* acc = the outputs of `panels` panels from `panel` on for rows [t0, t0 + rows). */
CLT_INLINE void multiply_group(clt_type t, const uint8_t *panel, size_t panel_bytes, int panels, const clt_acts *a,
                               int64_t t0, int rows, float *acc) {
    const clt_layout l = clt_layout_of(t);
    const bool direct = rows <= FEW_ROWS;
    int64_t blocks = clt_acts_blocks(a);
    _Alignas(64) block s[STRIP_PANELS][BLOCKS];
    _Alignas(64) row_part part[GROUP_ROWS];
    meeting m = {.a = a, .t0 = t0, .s = s, .part = part};

    for (int i = 0; i < panels * PARTS; i++)
        memset(acc + i * GROUP_ROWS * LANES, 0, (size_t)rows * LANES * sizeof *acc);
    for (; m.b0 < blocks; m.b0 += BLOCKS) {
        m.n = blocks - m.b0 < BLOCKS ? (int)(blocks - m.b0) : BLOCKS;
        for (int r = 0; r < rows && (l.has_min || unsigned_offset(l)); r++) {
            int64_t at = (t0 + r) * blocks + m.b0;
            prepare_row(l, a->d + at, a->sums + 2 * at, m.n, &part[r]);
        }
        for (int p = 0, step; p < panels; p += step) {
            step = direct || panels - p < STRIP_PANELS ? 1 : STRIP_PANELS;
            m.panel = panel + (size_t)p * panel_bytes;
            m.acc = acc + p * PARTS * GROUP_ROWS * LANES;
            for (int i = 0; !direct && i < step; i++)
                unpack(t, m.panel + (size_t)i * panel_bytes, m.b0, m.n, s[i]);
            if (direct)
                multiply_few(t, &m, rows);
            else if (step * PARTS == TILE_PARTS)
                multiply_many(t, TILE_PARTS, &m, rows);
            else
                multiply_many(t, PARTS, &m, rows);
        }
    }
}

typedef void group_fn(const uint8_t *panel, size_t panel_bytes, int panels, const clt_acts *a, int64_t t0, int rows,
                      float *acc);
#define CLT_GROUP_DEFINE(type)                                                                                        \
    static void group_##type(const uint8_t *panel, size_t panel_bytes, int panels, const clt_acts *a, int64_t t0,     \
                             int rows, float *acc)                                                                    \
    {                                                                                                                 \
        multiply_group(CLT_##type, panel, panel_bytes, panels, a, t0, rows, acc);                                     \
    }
#define CLT_GROUP_ENTRY(type) [CLT_##type] = group_##type,
CLT_QUANTISED_TYPES(CLT_GROUP_DEFINE)
static group_fn *const groups[] = {CLT_QUANTISED_TYPES(CLT_GROUP_ENTRY)};

/* The outputs of one register for some rows, whole or up to the matrix's last row. */
CLT_INLINE void store_outputs(float *y, int64_t ldy, const float *acc, int rows, int64_t left) {
    for (int r = 0; r < rows; r++) {
        if (left >= LANES)
            store_floats(y + r * ldy, load_floats(acc + r * LANES));
        else if (left > 0)
            memcpy(y + r * ldy, acc + r * LANES, (size_t)left * sizeof *y);
    }
}

/* Panels [p0, p1) against T rows, as clt_kernels.matmul says, for quantised types. */
static void multiply_quantised(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0,
                               int64_t p1) {
    const int64_t most = T <= FEW_ROWS ? 1 : GROUP_PANELS;
    _Alignas(64) float acc[GROUP_PANELS * PARTS * GROUP_ROWS * LANES];

    for (int64_t p = p0, n; p < p1; p += n) {
        n = p1 - p < most ? p1 - p : most;
        for (int64_t t0 = 0; t0 < T; t0 += GROUP_ROWS) {
            int rows = T - t0 < GROUP_ROWS ? (int)(T - t0) : GROUP_ROWS;
            for (int r = 0; r < rows; r++)
                for (int i = 0; i < n; i++)
                    __builtin_prefetch(y + (t0 + r) * ldy + (p + i) * CLT_PANEL, 1, 2);
            groups[m->type](m->data + (size_t)p * m->panel_bytes, m->panel_bytes, (int)n, a, t0, rows, acc);
            for (int i = 0; i < n * PARTS; i++) {
                int64_t first = p * CLT_PANEL + i * LANES;
                store_outputs(y + t0 * ldy + first, ldy, acc + i * GROUP_ROWS * LANES, rows, m->rows - first);
            }
        }
    }
}

#endif
