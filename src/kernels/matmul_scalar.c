/* Matrix times rows of activations, the specification: packed panels and activations in, y out. Slow and plain.
 *
 * For every output, over blocks b of 32 in ascending order, with integer sums i (per half: i0, i1) of value * q and S of q:
 *     types with one scale a block:     acc = fma(w * dx, i, acc)                w = d * scale (exact)
 *     types with a scale for each half: acc = fma(d * dx, scale0 * i0 + scale1 * i1, acc)
 *     then, for types with a minimum:   acc = fma(mw, dx * S, acc)               mw = m, or -(m * min) (exact)
 *                                       (with halves: the first half's, then the second's)
 * All integers stay below 2^24, so they are exact floats too: a level may multiply by scales in either form. */
#include <string.h>
#include "kernels/fma.h"
#include "kernels/internal.h"
#include "quant/run.h"

enum { TILE = 8 }; /* rows of activations that share an unpacked block */

typedef struct block {
    int16_t value[CLT_QBLOCK][CLT_PANEL];
    float d[CLT_PANEL];                         /* f32 of the half d, times the scale if there is one for the block */
    int scale[2][CLT_PANEL];                    /* used by types with halves */
    float min[2][CLT_PANEL];                    /* what multiplies dx * S */
} block;

static float half_at(const uint8_t *p, int row) {
    return clt_f16_to_f32((uint16_t)(p[2 * row] | p[2 * row + 1] << 8));
}

static int bits_at(const uint8_t *lines, int bits, int k, int row) {
    int group = k / 4, per_line = 8 / bits;
    return (lines[group / per_line * CLT_LINE + 4 * row + k % 4] >> (group % per_line * bits)) & ((1 << bits) - 1);
}

static void unpack_values(clt_layout l, const uint8_t *low, block *out) {
    const uint8_t *high = low + clt_layout_low(l);
    for (int k = 0; k < CLT_QBLOCK; k++)
        for (int row = 0; row < CLT_PANEL; row++) {
            int code = bits_at(low, l.low_bits, k, row);
            if (l.high_bits)
                code |= bits_at(high, l.high_bits, k, row) << l.low_bits;
            out->value[k][row] = (int16_t)(l.has_table ? clt_iq4_values[code] : code - l.offset);
        }
}

static void unpack_scales(clt_type t, const uint8_t *head, const uint8_t *scales, block *out) {
    for (int row = 0; row < CLT_PANEL; row++) {
        float d = half_at(head, row), m = clt_layout_of(t).has_min ? half_at(head + 32, row) : 0;
        int first = scales[row], second = scales[16 + row];
        out->d[row] = d;
        out->min[0][row] = m;
        switch (t) {
        case CLT_Q2_K:
            out->scale[0][row] = first & 15;
            out->scale[1][row] = second & 15;
            out->min[0][row] = -(m * (float)(first >> 4));
            out->min[1][row] = -(m * (float)(second >> 4));
            break;
        case CLT_Q3_K: case CLT_Q6_K:
            out->scale[0][row] = (int8_t)first;
            out->scale[1][row] = (int8_t)second;
            break;
        case CLT_Q4_K: case CLT_Q5_K:
            out->d[row] = d * (float)first;
            out->min[0][row] = -(m * (float)second);
            break;
        case CLT_IQ4_XS:
            out->d[row] = d * (float)(int8_t)first;
            break;
        default:
            break;
        }
    }
}

/* Adds one block to the sixteen outputs of one row of activations. */
static void add_block(clt_layout l, const block *w, const int8_t *q, float dx, const int16_t *sums, float *acc) {
    int sum[2][CLT_PANEL] = {{0}};

    for (int k = 0; k < CLT_QBLOCK; k++)
        for (int row = 0; row < CLT_PANEL; row++)
            sum[k / 16][row] += w->value[k][row] * q[k];
    for (int row = 0; row < CLT_PANEL; row++) {
        int i0 = sum[0][row], i1 = sum[1][row];
        int total = l.has_halves ? w->scale[0][row] * i0 + w->scale[1][row] * i1 : i0 + i1;
        acc[row] = clt_fma(w->d[row] * dx, (float)total, acc[row]);
    }
    for (int row = 0; l.has_min && row < CLT_PANEL; row++) {
        if (l.has_halves) {
            acc[row] = clt_fma(w->min[0][row], dx * (float)sums[0], acc[row]);
            acc[row] = clt_fma(w->min[1][row], dx * (float)sums[1], acc[row]);
        } else {
            acc[row] = clt_fma(w->min[0][row], dx * (float)(sums[0] + sums[1]), acc[row]);
        }
    }
}

static void multiply_quantised(clt_type t, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows,
                               float acc[][CLT_PANEL]) {
    clt_layout l = clt_layout_of(t);
    int64_t blocks = clt_acts_blocks(a);

    for (int64_t b = 0; b < blocks; b++) {
        const uint8_t *head = panel + b / l.runs * clt_layout_super(l);
        const uint8_t *at = head + clt_layout_head(l) + b % l.runs * clt_layout_block(l);
        block w;
        unpack_scales(t, head, at, &w);
        unpack_values(l, at + l.scale_bytes, &w);
        for (int r = 0; r < rows; r++) {
            int64_t i = (t0 + r) * blocks + b;
            add_block(l, &w, a->q + i * CLT_QBLOCK, a->d[i], a->sums + 2 * i, acc[r]);
        }
    }
}

static float float_at(clt_type t, const uint8_t *panel, int64_t i) {
    float f;
    uint16_t h;
    if (t == CLT_F32) {
        memcpy(&f, panel + 4 * i, sizeof f);
        return f;
    }
    memcpy(&h, panel + 2 * i, sizeof h);
    return t == CLT_F16 ? clt_f16_to_f32(h) : clt_bf16_to_f32(h);
}

static void multiply_floats(clt_type t, const uint8_t *panel, const clt_acts *a, int64_t t0, int rows,
                            float acc[][CLT_PANEL]) {
    for (int64_t k = 0; k < a->cols; k++)
        for (int row = 0; row < CLT_PANEL; row++) {
            float w = float_at(t, panel, k * CLT_PANEL + row);
            for (int r = 0; r < rows; r++)
                acc[r][row] = clt_fma(w, a->x[(t0 + r) * a->ldx + k], acc[r][row]);
        }
}

void clt_matmul_scalar(const clt_mat *m, const clt_acts *a, int64_t T, float *y, int64_t ldy, int64_t p0, int64_t p1) {
    for (int64_t p = p0; p < p1; p++) {
        const uint8_t *panel = m->data + (size_t)p * m->panel_bytes;
        int64_t left = m->rows - p * CLT_PANEL, n = left < CLT_PANEL ? left : CLT_PANEL;
        for (int64_t t0 = 0; t0 < T; t0 += TILE) {
            int rows = T - t0 < TILE ? (int)(T - t0) : TILE;
            float acc[TILE][CLT_PANEL] = {{0}};
            if (clt_mat_wants_q8(m->type))
                multiply_quantised(m->type, panel, a, t0, rows, acc);
            else
                multiply_floats(m->type, panel, a, t0, rows, acc);
            for (int r = 0; r < rows; r++)
                memcpy(y + (t0 + r) * ldy + p * CLT_PANEL, acc[r], (size_t)n * sizeof *y);
        }
    }
}
