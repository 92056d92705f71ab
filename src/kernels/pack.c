/* Packs matrices from file layout into panels (internal.h says how they look). Moves bits only; no arithmetic. */
#include <string.h>
#include "kernels/internal.h"
#include "quant/run.h"

static size_t float_bytes(clt_type t)
{
    return t == CLT_F32 ? 4 : t == CLT_F16 || t == CLT_BF16 ? 2 : 0;
}

bool clt_mat_wants_q8(clt_type t)
{
    return float_bytes(t) == 0;
}

size_t clt_mat_panel_bytes(clt_type t, int64_t cols)
{
    if (float_bytes(t))
        return (size_t)cols * CLT_PANEL * float_bytes(t);
    clt_layout l = clt_layout_of(t);
    return (size_t)(cols / (CLT_QBLOCK * l.runs)) * (size_t)clt_layout_super(l);
}

static void pack_float_row(size_t width, int64_t cols, const uint8_t *src, uint8_t *panel, int row)
{
    for (int64_t k = 0; k < cols; k++)
        memcpy(panel + ((size_t)k * CLT_PANEL + (size_t)row) * width, src + (size_t)k * width, width);
}

/* One line of 64 bytes holds 8 / bits groups; this puts the codes of one row, `bits` wide, into their lines. */
static void put_codes(const uint8_t *code, int bits, uint8_t *lines, int row)
{
    int per_line = 8 / bits;
    for (int line = 0; line < CLT_GROUPS / per_line; line++)
        for (int i = 0; i < 4; i++) {
            int byte = 0;
            for (int s = 0; s < per_line; s++)
                byte |= code[4 * (line * per_line + s) + i] << (s * bits);
            lines[line * CLT_LINE + 4 * row + i] = (uint8_t)byte;
        }
}

static void put_scales(clt_type t, const clt_run *r, uint8_t *scales, int row)
{
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

static void put_run(clt_type t, clt_layout l, const clt_run *r, uint8_t *block, int row)
{
    uint8_t low[CLT_RUN], high[CLT_RUN];
    for (int i = 0; i < CLT_RUN; i++) {
        low[i] = (uint8_t)(r->code[i] & ((1 << l.low_bits) - 1));
        high[i] = (uint8_t)(r->code[i] >> l.low_bits);
    }
    put_scales(t, r, block, row);
    put_codes(low, l.low_bits, block + l.scale_bytes, row);
    if (l.high_bits)
        put_codes(high, l.high_bits, block + l.scale_bytes + clt_layout_low(l), row);
}

static void put_half(uint8_t *p, uint16_t h)
{
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

static void pack_quantised_row(clt_type t, int64_t cols, const uint8_t *src, uint8_t *panel, int row)
{
    clt_layout l = clt_layout_of(t);
    for (int64_t run = 0; run < cols / CLT_RUN; run++) {
        uint8_t *super = panel + run / l.runs * clt_layout_super(l);
        clt_run r;
        if (!clt_run_get(t, src, run, &r))
            return;
        put_half(super + 2 * row, r.d);
        if (l.has_min)
            put_half(super + 32 + 2 * row, r.m);
        put_run(t, l, &r, super + clt_layout_head(l) + run % l.runs * clt_layout_block(l), row);
    }
}

void clt_mat_pack(clt_type t, int64_t rows, int64_t cols, const uint8_t *src, uint8_t *dst, int64_t p0, int64_t p1)
{
    size_t panel_bytes = clt_mat_panel_bytes(t, cols), row_bytes = clt_type_row_bytes(clt_type_get((uint32_t)t), cols);

    for (int64_t p = p0; p < p1; p++) {
        uint8_t *panel = dst + (size_t)p * panel_bytes;
        if ((p + 1) * CLT_PANEL > rows)
            memset(panel, 0, panel_bytes);
        for (int row = 0; row < CLT_PANEL && p * CLT_PANEL + row < rows; row++) {
            const uint8_t *from = src + (size_t)(p * CLT_PANEL + row) * row_bytes;
            if (float_bytes(t))
                pack_float_row(float_bytes(t), cols, from, panel, row);
            else
                pack_quantised_row(t, cols, from, panel, row);
        }
    }
}
