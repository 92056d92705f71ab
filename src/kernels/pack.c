/* Packs matrices from file layout into panels (internal.h says how they look), in the obvious way: the specification of
 * pack_fast.c, and the way of what that leaves over. Moves bits only; no arithmetic. */
#include <string.h>
#include "kernels/internal.h"
#include "kernels/matmul.h"
#include "quant/run.h"

static size_t float_bytes(clt_type t) {
    return t == CLT_F32 ? 4 : t == CLT_F16 || t == CLT_BF16 ? 2 : 0;
}

bool clt_mat_wants_q8(clt_type t) {
    return float_bytes(t) == 0;
}

size_t clt_mat_panel_bytes(clt_type t, int64_t cols) {
    if (float_bytes(t))
        return (size_t)cols * CLT_PANEL * float_bytes(t);
    clt_layout l = clt_layout_of(t);
    return (size_t)(cols / (CLT_QBLOCK * l.runs)) * (size_t)clt_layout_super(l);
}

static void pack_float_row(size_t width, int64_t cols, const uint8_t *src, uint8_t *panel, int row) {
    for (int64_t k = 0; k < cols; k++)
        memcpy(panel + ((size_t)k * CLT_PANEL + (size_t)row) * width, src + (size_t)k * width, width);
}

/* One line of 64 bytes holds 8 / bits groups; this puts the groups of one row (four codes in a word, each `bits` wide) into
 * their lines. */
CLT_INLINE void put_groups(const uint32_t *group, int bits, uint8_t *lines, int row) {
    int per_line = 8 / bits;
    for (int line = 0; line < CLT_GROUPS / per_line; line++) {
        uint32_t word = 0;
        for (int s = 0; s < per_line; s++)
            word |= group[line * per_line + s] << (s * bits);
        memcpy(lines + line * CLT_LINE + 4 * row, &word, sizeof word);
    }
}

CLT_INLINE void put_scales(clt_type t, const clt_run *r, uint8_t *scales, int row) {
    switch (t) {
    case CLT_Q2_K:
        for (int h = 0; h < 2; h++)
            scales[16 * h + row] = (uint8_t)(r->scale[h] | r->min[h] << 4);
        break;
    case CLT_Q3_K: case CLT_Q6_K:
        for (int h = 0; h < 2; h++)
            scales[16 * h + row] = (uint8_t)r->scale[h];
        break;
    case CLT_Q4_K: case CLT_Q5_K:
        scales[row] = (uint8_t)r->scale[0];
        scales[16 + row] = r->min[0];
        break;
    case CLT_IQ4_XS:
        scales[row] = (uint8_t)r->scale[0];
        break;
    default:
        break;
    }
}

CLT_INLINE void put_run(clt_type t, const clt_run *r, uint8_t *block, int row) {
    const clt_layout l = clt_layout_of(t);
    const uint32_t low_mask = 0x01010101u * ((1u << l.low_bits) - 1), high_mask = 0x01010101u * ((1u << l.high_bits) - 1);
    uint32_t code[CLT_GROUPS], low[CLT_GROUPS], high[CLT_GROUPS];

    memcpy(code, r->code, sizeof code);
    for (int g = 0; g < CLT_GROUPS; g++) {
        low[g] = code[g] & low_mask;
        high[g] = code[g] >> l.low_bits & high_mask;
    }
    put_scales(t, r, block, row);
    put_groups(low, l.low_bits, block + l.scale_bytes, row);
    if (l.high_bits)
        put_groups(high, l.high_bits, block + l.scale_bytes + clt_layout_low(l), row);
}

static void put_half(uint8_t *p, uint16_t h) {
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* Sixteen rows side by side, so that each block is written whole before the next one. */
CLT_INLINE void pack_quantised(clt_type t, int rows, int64_t cols, const uint8_t *src, size_t row_bytes, uint8_t *panel) {
    const clt_layout l = clt_layout_of(t);

    for (int64_t run = 0; run < cols / CLT_RUN; run++) {
        uint8_t *super = panel + run / l.runs * clt_layout_super(l);
        for (int row = 0; row < rows; row++) {
            clt_run r;
            if (!clt_run_get(t, src + (size_t)row * row_bytes, run, &r))
                return;
            put_half(super + 2 * row, r.d);
            if (l.has_min)
                put_half(super + 32 + 2 * row, r.m);
            put_run(t, &r, super + clt_layout_head(l) + run % l.runs * clt_layout_block(l), row);
        }
    }
}

static void pack_panel(clt_type t, int rows, int64_t cols, const uint8_t *src, size_t row_bytes, uint8_t *panel) {
    switch (t) {
#define CLT_CASE(type) case CLT_##type: pack_quantised(CLT_##type, rows, cols, src, row_bytes, panel); break;
    CLT_QUANTISED_TYPES(CLT_CASE)
#undef CLT_CASE
    case CLT_F32: case CLT_F16: case CLT_BF16:
        for (int row = 0; row < rows; row++)
            pack_float_row(float_bytes(t), cols, src + (size_t)row * row_bytes, panel, row);
        break;
    }
}

void clt_mat_pack_plain(clt_type t, int64_t rows, int64_t cols, const uint8_t *src, uint8_t *dst, int64_t p0, int64_t p1) {
    size_t panel_bytes = clt_mat_panel_bytes(t, cols), row_bytes = clt_type_row_bytes(clt_type_get((uint32_t)t), cols);

    for (int64_t p = p0; p < p1; p++) {
        uint8_t *panel = dst + (size_t)p * panel_bytes;
        if ((p + 1) * CLT_PANEL > rows)
            memset(panel, 0, panel_bytes);
        int64_t left = rows - p * CLT_PANEL;
        const uint8_t *from = src + (size_t)(p * CLT_PANEL) * row_bytes;
        pack_panel(t, left < CLT_PANEL ? (int)left : CLT_PANEL, cols, from, row_bytes, panel);
    }
}
