/* Packs matrices into panels, quickly: the same bytes as the plain packing of pack.c, which is the specification and takes
 * what is not here (panels that are not full). Moves bits only.
 *
 * Vectors of 16 bytes in the compiler's own notation: every x86-64 and AArch64 processor has them, so there is nothing to
 * choose at run time. A run of 32 codes of one row becomes a few 32-bit words, one for each line of 64 bytes; the words of
 * four rows are transposed and stored side by side. */
#include "base/hash.h"
#include "kernels/internal.h"
#include "kernels/matmul.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint16_t halves8 __attribute__((vector_size(16)));
typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint64_t longs2 __attribute__((vector_size(16)));

typedef struct codes { bytes16 first, second; } codes; /* of a run: numbers 0..15, 16..31 */

CLT_INLINE bytes16 load(const uint8_t *p) {
    bytes16 v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Each byte >> n, where `mask` keeps none of the bits that come in from the neighbour: 8 - n bits or fewer. */
CLT_INLINE bytes16 shifted(bytes16 v, int n, uint8_t mask) {
    return (bytes16)((halves8)v >> n) & mask;
}

/* Each byte << n, where none of its bits leaves it. */
CLT_INLINE bytes16 raised(bytes16 v, int n) {
    return (bytes16)((halves8)v << n);
}

/* ---- the codes of a run, by type (quant/run.c says where each bit of a block lies) ---- */

CLT_INLINE codes nibbles(const uint8_t *q) {
    bytes16 v = load(q);
    return (codes){v & 15, shifted(v, 4, 15)};
}

/* 16 where the bit of a mask is set, 0 elsewhere. */
CLT_INLINE bytes16 bits_to_sixteens(const uint8_t *mask) {
    const longs2 each = {UINT64_C(0x8040201008040201), UINT64_C(0x8040201008040201)};
    longs2 copies = {mask[0] * UINT64_C(0x0101010101010101), mask[1] * UINT64_C(0x0101010101010101)};
    return (bytes16)((bytes16)(copies & each) != 0) & 16;
}

CLT_INLINE codes nibbles_and_mask(const uint8_t *q, const uint8_t *mask) {
    codes c = nibbles(q);
    return (codes){c.first | bits_to_sixteens(mask), c.second | bits_to_sixteens(mask + 2)};
}

/* Two bits at `shift`, or others by `mask`, of 32 bytes. */
CLT_INLINE codes fields(const uint8_t *q, int shift, uint8_t mask) {
    return (codes){shifted(load(q), shift, mask), shifted(load(q + 16), shift, mask)};
}

CLT_INLINE codes joined(codes low, codes high, int shift) {
    return (codes){low.first | raised(high.first, shift), low.second | raised(high.second, shift)};
}

/* Run j of block b. */
CLT_INLINE codes codes_of(clt_type t, const uint8_t *b, int j) {
    switch (t) {
    case CLT_Q4_0: case CLT_IQ4_NL: return nibbles(b + 2);
    case CLT_Q4_1: return nibbles(b + 4);
    case CLT_Q5_0: return nibbles_and_mask(b + 6, b + 2);
    case CLT_Q5_1: return nibbles_and_mask(b + 8, b + 4);
    case CLT_Q8_0: return (codes){load(b + 2) ^ 0x80, load(b + 18) ^ 0x80};
    case CLT_Q2_K: return fields(b + 16 + 32 * (j / 4), 2 * (j % 4), 3);
    case CLT_Q3_K: return joined(fields(b + 32 + 32 * (j / 4), 2 * (j % 4), 3), fields(b, j, 1), 2);
    case CLT_Q4_K: return fields(b + 16 + 32 * (j / 2), 4 * (j % 2), 15);
    case CLT_Q5_K: return joined(fields(b + 48 + 32 * (j / 2), 4 * (j % 2), 15), fields(b + 16, j, 1), 4);
    case CLT_Q6_K:
        return joined(fields(b + 64 * (j / 4) + 32 * (j % 2), 4 * (j % 4 / 2), 15),
                      fields(b + 128 + 32 * (j / 4), 2 * (j % 4), 3), 4);
    case CLT_IQ4_XS: return nibbles(b + 8 + 16 * j);
    case CLT_F32: case CLT_F16: case CLT_BF16: break;
    }
    return (codes){{0}, {0}};
}

/* ---- the scales ---- */

/* Where a block keeps its half floats: d, and m behind it if the type has one. */
CLT_INLINE int place_of_d(clt_type t) {
    return t == CLT_Q2_K ? 80 : t == CLT_Q3_K ? 108 : t == CLT_Q6_K ? 208 : 0;
}

CLT_INLINE void put_six_bits(const uint8_t *s, int j, uint8_t *scales, int row) {
    int i = j % 4;
    scales[row] = (uint8_t)(j < 4 ? s[i] & 63 : (s[8 + i] & 15) | s[i] >> 6 << 4);
    scales[16 + row] = (uint8_t)(j < 4 ? s[4 + i] & 63 : s[8 + i] >> 4 | s[4 + i] >> 6 << 4);
}

/* The scales of run j of block b, for one row. */
CLT_INLINE void put_scales(clt_type t, const uint8_t *b, int j, uint8_t *scales, int row) {
    switch (t) {
    case CLT_Q2_K:
        for (int h = 0; h < 2; h++)
            scales[16 * h + row] = b[2 * j + h];
        break;
    case CLT_Q3_K:
        for (int h = 0; h < 2; h++) {
            int s = 2 * j + h, low = b[96 + s % 8] >> (4 * (s / 8)) & 15, high = b[104 + s % 4] >> (2 * (s / 4)) & 3;
            scales[16 * h + row] = (uint8_t)((low | high << 4) - 32);
        }
        break;
    case CLT_Q4_K: case CLT_Q5_K:
        put_six_bits(b + 4, j, scales, row);
        break;
    case CLT_Q6_K:
        for (int h = 0; h < 2; h++)
            scales[16 * h + row] = b[192 + 2 * j + h];
        break;
    case CLT_IQ4_XS:
        scales[row] = (uint8_t)(((b[4 + j / 2] >> (4 * (j % 2)) & 15) | ((b[2] | b[3] << 8) >> (2 * j) & 3) << 4) - 32);
        break;
    default:
        break;
    }
}

/* ---- codes -> words -> lines ---- */

/* Words 0 and 2 of each vector: four groups of nibbles in pairs. */
CLT_INLINE words4 nibble_words(codes c) {
    longs2 a = (longs2)(c.first & 15), b = (longs2)(c.second & 15);
    a |= a >> 28;
    b |= b >> 28;
    return __builtin_shufflevector((words4)a, (words4)b, 0, 2, 4, 6);
}

/* Four groups of `bits` bits each, the first one lowest. */
CLT_INLINE uint32_t narrow_word(bytes16 v, int bits) {
    longs2 pairs = (longs2)v;
    uint64_t a = pairs[0] | pairs[0] >> (32 - bits), b = pairs[1] | pairs[1] >> (32 - bits);
    return (uint32_t)a | (uint32_t)b << (2 * bits);
}

CLT_INLINE void put_word(uint32_t word, uint8_t *lines, int line, int row) {
    memcpy(lines + line * CLT_LINE + 4 * row, &word, sizeof word);
}

/* Word i of each of four rows, side by side, into line i. */
CLT_INLINE void put_four(const words4 w[4], uint8_t *lines, int row) {
    words4 a = __builtin_shufflevector(w[0], w[1], 0, 4, 1, 5), b = __builtin_shufflevector(w[2], w[3], 0, 4, 1, 5);
    words4 c = __builtin_shufflevector(w[0], w[1], 2, 6, 3, 7), d = __builtin_shufflevector(w[2], w[3], 2, 6, 3, 7);
    const words4 line[4] = {
        __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
        __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7),
    };
    CLT_UNROLL
    for (int i = 0; i < 4; i++)
        memcpy(lines + i * CLT_LINE + 4 * row, &line[i], sizeof line[i]);
}

/* Four rows of one run. `block` is where the run's part of the super-block begins; b[i] the block of row + i. */
CLT_INLINE void pack_four_runs(clt_type t, const uint8_t *const b[4], int j, uint8_t *block, int row) {
    const clt_layout l = clt_layout_of(t);
    uint8_t *lines = block + l.scale_bytes, *high = lines + clt_layout_low(l);
    words4 first[4], second[4];

    CLT_UNROLL
    for (int i = 0; i < 4; i++) {
        codes c = codes_of(t, b[i], j);
        put_scales(t, b[i], j, block, row + i);
        first[i] = l.low_bits == 8 ? (words4)c.first : nibble_words(c);
        second[i] = (words4)c.second;
        if (l.low_bits == 2) {
            put_word(narrow_word(c.first & 3, 2), lines, 0, row + i);
            put_word(narrow_word(c.second & 3, 2), lines, 1, row + i);
        }
        bytes16 h0 = shifted(c.first, l.low_bits % 8, 3), h1 = shifted(c.second, l.low_bits % 8, 3);
        if (l.high_bits == 1)
            put_word(narrow_word(h0, 1) | narrow_word(h1, 1) << 4, high, 0, row + i);
        if (l.high_bits == 2) {
            put_word(narrow_word(h0, 2), high, 0, row + i);
            put_word(narrow_word(h1, 2), high, 1, row + i);
        }
    }
    if (l.low_bits >= 4)
        put_four(first, lines, row);
    if (l.low_bits == 8)
        put_four(second, lines + 4 * CLT_LINE, row);
}

/* A full panel. Its source is one stretch of memory: the next panel's lines are asked for while this one is packed. */
CLT_INLINE void pack_quantised(clt_type t, int64_t cols, const uint8_t *src, size_t row_bytes, uint8_t *panel) {
    const clt_layout l = clt_layout_of(t);
    const size_t block_bytes = row_bytes / (size_t)(cols / (CLT_QBLOCK * l.runs));

    for (int64_t n = 0; n < cols / (CLT_QBLOCK * l.runs); n++) {
        uint8_t *super = panel + n * clt_layout_super(l);
        for (int row = 0; row < CLT_PANEL; row += 4) {
            const uint8_t *b[4];
            for (int i = 0; i < 4; i++) {
                b[i] = src + (size_t)(row + i) * row_bytes + (size_t)n * block_bytes;
                memcpy(super + 2 * (row + i), b[i] + place_of_d(t), 2);
                if (l.has_min)
                    memcpy(super + 32 + 2 * (row + i), b[i] + place_of_d(t) + 2, 2);
            }
            for (int j = 0; j < l.runs; j++)
                pack_four_runs(t, b, j, super + clt_layout_head(l) + j * clt_layout_block(l), row);
        }
    }
}

/* ---- floats: transposed in squares ---- */

/* Eight numbers of each of eight rows, of two bytes. */
CLT_INLINE void put_square_of_halves(const uint8_t *src, size_t row_bytes, uint8_t *dst) {
    halves8 v[8], a[8], b[8];

    for (int i = 0; i < 8; i++)
        memcpy(&v[i], src + (size_t)i * row_bytes, sizeof v[i]);
    CLT_UNROLL
    for (int i = 0; i < 4; i++) {
        a[2 * i] = __builtin_shufflevector(v[i], v[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        a[2 * i + 1] = __builtin_shufflevector(v[i], v[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    CLT_UNROLL
    for (int i = 0; i < 4; i++) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    CLT_UNROLL
    for (int i = 0; i < 4; i++) {
        halves8 even = __builtin_shufflevector(b[i], b[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
        halves8 odd = __builtin_shufflevector(b[i], b[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        memcpy(dst + (size_t)(2 * i) * CLT_PANEL * 2, &even, sizeof even);
        memcpy(dst + (size_t)(2 * i + 1) * CLT_PANEL * 2, &odd, sizeof odd);
    }
}

/* Four numbers of each of four rows, of four bytes. */
CLT_INLINE void put_square_of_words(const uint8_t *src, size_t row_bytes, uint8_t *dst) {
    words4 v[4];

    for (int i = 0; i < 4; i++)
        memcpy(&v[i], src + (size_t)i * row_bytes, sizeof v[i]);
    put_four(v, dst, 0); /* a line is one k: 16 rows of four bytes */
}

static void pack_floats(size_t width, int64_t cols, const uint8_t *src, size_t row_bytes, uint8_t *panel) {
    int side = 16 / (int)width;
    int64_t whole = cols / side * side;

    for (int64_t k = 0; k < whole; k += side)
        for (int row = 0; row < CLT_PANEL; row += side) {
            const uint8_t *from = src + (size_t)row * row_bytes + (size_t)k * width;
            uint8_t *to = panel + ((size_t)k * CLT_PANEL + (size_t)row) * width;
            if (width == 2)
                put_square_of_halves(from, row_bytes, to);
            else
                put_square_of_words(from, row_bytes, to);
        }
    for (int64_t k = whole; k < cols; k++)
        for (int row = 0; row < CLT_PANEL; row++)
            memcpy(panel + ((size_t)k * CLT_PANEL + (size_t)row) * width, src + (size_t)row * row_bytes + (size_t)k * width,
                   width);
}

/* ---- */

static void pack_full_panel(clt_type t, int64_t cols, const uint8_t *src, size_t row_bytes, uint8_t *panel) {
    switch (t) {
#define CLT_CASE(type) case CLT_##type: pack_quantised(CLT_##type, cols, src, row_bytes, panel); break;
    CLT_QUANTISED_TYPES(CLT_CASE)
#undef CLT_CASE
    case CLT_F16: case CLT_BF16: pack_floats(2, cols, src, row_bytes, panel); break;
    case CLT_F32: pack_floats(4, cols, src, row_bytes, panel); break;
    }
}

void clt_mat_pack(clt_type t, int64_t rows, int64_t cols, const uint8_t *src, uint8_t *dst, int64_t p0, int64_t p1) {
    size_t panel_bytes = clt_mat_panel_bytes(t, cols), row_bytes = clt_type_row_bytes(clt_type_get((uint32_t)t), cols);
    int64_t full = rows / CLT_PANEL < p1 ? rows / CLT_PANEL : p1;

    for (int64_t p = p0; p < full; p++)
        pack_full_panel(t, cols, src + (size_t)(p * CLT_PANEL) * row_bytes, row_bytes, dst + (size_t)p * panel_bytes);
    if (p1 > full)
        clt_mat_pack_plain(t, rows, cols, src, dst, p0 > full ? p0 : full, p1);
}

uint64_t clt_mat_pack_digest(void) {
    enum { ROWS = CLT_PANEL + 1, COLS = 256 }; /* a full panel and a broken one; one block of any type */
    uint8_t src[ROWS * COLS * 4], dst[2 * CLT_PANEL * COLS * 4];
    uint64_t digest = 0;

    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 2654435761u >> 13);
    for (uint32_t t = 0; t <= CLT_BF16; t++) {
        if (!clt_type_get(t))
            continue;
        clt_mat_pack((clt_type)t, ROWS, COLS, src, dst, 0, 2);
        digest = clt_hash64(dst, 2 * clt_mat_panel_bytes((clt_type)t, COLS), digest);
    }
    return digest;
}
