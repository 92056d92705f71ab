/* Puts runs of 32 numbers into the block formats of GGUF: the inverse of run.c, where each format is described. Every field
 * is added to a block of zeros with "or", so that runs that share bytes may come in any order. */
#include "quant/run.h"

static void put_u16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static void add(uint8_t *p, int bits) { *p = (uint8_t)(*p | bits); }

static void put_nibbles(uint8_t *q, const uint8_t *code) {
    for (int i = 0; i < 16; i++) add(&q[i], (code[i] & 15) | (code[16 + i] & 15) << 4);
}

static void put_fifth_bits(uint8_t *mask, const uint8_t *code) {
    for (int i = 0; i < CLT_RUN; i++) add(&mask[i / 8], (code[i] >> 4 & 1) << (i % 8));
}

/* Bit `bit` of each code becomes bit `run` of its byte. */
static void put_bit_plane(uint8_t *plane, int run, int bit, const uint8_t *code) {
    for (int i = 0; i < CLT_RUN; i++) add(&plane[i], (code[i] >> bit & 1) << run);
}

static void put_two_bits(uint8_t *q, int run, int shift, const uint8_t *code) {
    for (int i = 0; i < CLT_RUN; i++) add(&q[32 * (run / 4) + i], (code[i] >> shift & 3) << (2 * (run % 4)));
}

static void put_q8_0(uint8_t *b, const clt_run *r) {
    for (int i = 0; i < CLT_RUN; i++) b[2 + i] = r->code[i] ^ 0x80;
}

static void put_q2_k(uint8_t *b, int run, const clt_run *r) {
    for (int h = 0; h < 2; h++) b[2 * run + h] = (uint8_t)(r->scale[h] | r->min[h] << 4);
    put_two_bits(b + 16, run, 0, r->code);
    put_u16(b + 80, r->d);
    put_u16(b + 82, r->m);
}

static void put_q3_k(uint8_t *b, int run, const clt_run *r) {
    uint8_t *scales = b + 96;
    for (int h = 0; h < 2; h++) {
        int s = 2 * run + h, v = r->scale[h] + 32;
        add(&scales[s % 8], (v & 15) << (4 * (s / 8)));
        add(&scales[8 + s % 4], v >> 4 << (2 * (s / 4)));
    }
    put_two_bits(b + 32, run, 0, r->code);
    put_bit_plane(b, run, 2, r->code);
    put_u16(b + 108, r->d);
}

static void put_six_bit_scales(uint8_t *s, int run, const clt_run *r) {
    int scale = r->scale[0], min = r->min[0], j = run % 4;
    if (run < 4) {
        add(&s[j], scale);
        add(&s[4 + j], min);
    } else {
        add(&s[8 + j], (scale & 15) | (min & 15) << 4);
        add(&s[j], scale >> 4 << 6);
        add(&s[4 + j], min >> 4 << 6);
    }
}

static void put_run_nibbles(uint8_t *q, int run, const uint8_t *code) {
    for (int i = 0; i < CLT_RUN; i++) add(&q[32 * (run / 2) + i], (code[i] & 15) << (4 * (run % 2)));
}

/* What Q4_K and Q5_K begin with. */
static void put_k_head(uint8_t *b, int run, const clt_run *r) {
    put_u16(b, r->d);
    put_u16(b + 2, r->m);
    put_six_bit_scales(b + 4, run, r);
}

static void put_q5_k(uint8_t *b, int run, const clt_run *r) {
    put_k_head(b, run, r);
    put_bit_plane(b + 16, run, 4, r->code);
    put_run_nibbles(b + 48, run, r->code);
}

static void put_q6_k(uint8_t *b, int run, const clt_run *r) {
    uint8_t *low = b + 64 * (run / 4) + 32 * (run % 2);
    int shift = 4 * (run % 4 / 2);
    for (int i = 0; i < CLT_RUN; i++) add(&low[i], (r->code[i] & 15) << shift);
    put_two_bits(b + 128, run, 4, r->code);
    for (int h = 0; h < 2; h++) b[192 + 2 * run + h] = (uint8_t)r->scale[h];
    put_u16(b + 208, r->d);
}

static void put_iq4_xs(uint8_t *b, int run, const clt_run *r) {
    int v = r->scale[0] + 32;
    put_u16(b, r->d);
    add(&b[2 + run / 4], v >> 4 << (2 * (run % 4)));
    add(&b[4 + run / 2], (v & 15) << (4 * (run % 2)));
    put_nibbles(b + 8 + 16 * run, r->code);
}

/* Types of one run per block: d, perhaps m, perhaps fifth bits, nibbles. */
static void put_plain(uint8_t *b, bool has_min, bool has_fifth, const clt_run *r) {
    put_u16(b, r->d);
    b += 2;
    if (has_min) {
        put_u16(b, r->m);
        b += 2;
    }
    if (has_fifth) {
        put_fifth_bits(b, r->code);
        b += 4;
    }
    put_nibbles(b, r->code);
}

bool clt_run_put(clt_type t, uint8_t *row, int64_t run, const clt_run *r) {
    const clt_type_info *info = clt_type_get((uint32_t)t);
    if (!info || info->block_len < CLT_RUN) return false;
    int64_t runs_per_block = info->block_len / CLT_RUN;
    uint8_t *b = row + run / runs_per_block * info->block_bytes;
    int j = (int)(run % runs_per_block);

    switch (t) {
    case CLT_Q4_0: case CLT_IQ4_NL: put_plain(b, false, false, r); return true;
    case CLT_Q4_1: put_plain(b, true, false, r); return true;
    case CLT_Q5_0: put_plain(b, false, true, r); return true;
    case CLT_Q5_1: put_plain(b, true, true, r); return true;
    case CLT_Q8_0: put_u16(b, r->d); put_q8_0(b, r); return true;
    case CLT_Q2_K: put_q2_k(b, j, r); return true;
    case CLT_Q3_K: put_q3_k(b, j, r); return true;
    case CLT_Q4_K: put_k_head(b, j, r); put_run_nibbles(b + 16, j, r->code); return true;
    case CLT_Q5_K: put_q5_k(b, j, r); return true;
    case CLT_Q6_K: put_q6_k(b, j, r); return true;
    case CLT_IQ4_XS: put_iq4_xs(b, j, r); return true;
    case CLT_F32: case CLT_F16: case CLT_BF16: break;
    }
    return false;
}
