/* Takes runs of 32 numbers out of the block formats of GGUF. Each block format is described once, at its function; all
 * integers are little-endian. Knows bit positions only: the arithmetic is in types.c. */
#include "quant/run.h"

const int8_t clt_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

static uint16_t load_u16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

/* Number i of a block of 32 sits in the low nibble of byte i, number 16 + i in the high one. */
static void split_nibbles(const uint8_t *q, uint8_t *code) {
    for (int i = 0; i < 16; i++) {
        code[i] = q[i] & 15;
        code[16 + i] = q[i] >> 4;
    }
}

/* Adds bit i of a little-endian 32-bit mask to code i as its bit 4. Eight codes at a time: the multiplication copies a byte
 * eight times, each copy keeps its own bit, and adding 127 carries any bit into the top one. */
static void add_fifth_bits(const uint8_t *mask, uint8_t *code) {
    for (int i = 0; i < CLT_RUN / 8; i++) {
        uint64_t bits = mask[i] * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
        bits = ((bits & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7f7f7f7f7f7f7f7f)) | bits;
        bits = (bits & UINT64_C(0x8080808080808080)) >> 3;
        for (int j = 0; j < 8; j++)
            code[8 * i + j] = (uint8_t)(code[8 * i + j] | (bits >> (8 * j) & 0xff));
    }
}

/* Q4_0 and IQ4_NL: 0 d, 2 nibbles[16] */
static void get_q4_0(const uint8_t *b, clt_run *r) {
    r->d = load_u16(b);
    split_nibbles(b + 2, r->code);
}

/* 0 d, 2 m, 4 nibbles[16] */
static void get_q4_1(const uint8_t *b, clt_run *r) {
    r->d = load_u16(b);
    r->m = load_u16(b + 2);
    split_nibbles(b + 4, r->code);
}

/* 0 d, 2 fifth bits[4], 6 nibbles[16] */
static void get_q5_0(const uint8_t *b, clt_run *r) {
    r->d = load_u16(b);
    split_nibbles(b + 6, r->code);
    add_fifth_bits(b + 2, r->code);
}

/* 0 d, 2 m, 4 fifth bits[4], 8 nibbles[16] */
static void get_q5_1(const uint8_t *b, clt_run *r) {
    r->d = load_u16(b);
    r->m = load_u16(b + 2);
    split_nibbles(b + 8, r->code);
    add_fifth_bits(b + 4, r->code);
}

/* 0 d, 2 signed codes[32] */
static void get_q8_0(const uint8_t *b, clt_run *r) {
    r->d = load_u16(b);
    for (int i = 0; i < CLT_RUN; i++)
        r->code[i] = b[2 + i] ^ 0x80;
}

/* Four runs share 32 bytes; run j has bits 2j and 2j+1 of each. */
static void get_two_bits(const uint8_t *q, int run, uint8_t *code) {
    for (int i = 0; i < CLT_RUN; i++)
        code[i] = (q[32 * (run / 4) + i] >> (2 * (run % 4))) & 3;
}

/* 0 scales[16] (low nibble scale, high nibble minimum), 16 two-bit codes[64], 80 d, 82 m */
static void get_q2_k(const uint8_t *b, int run, clt_run *r) {
    r->d = load_u16(b + 80);
    r->m = load_u16(b + 82);
    for (int h = 0; h < 2; h++) {
        uint8_t s = b[2 * run + h];
        r->scale[h] = (int8_t)(s & 15);
        r->min[h] = s >> 4;
    }
    get_two_bits(b + 16, run, r->code);
}

/* 0 third bits[32] (run j has bit j), 32 two-bit codes[64], 96 scales[12], 108 d.
 * Scale s < 8 has its low four bits in the low nibble of byte s, s >= 8 in the high nibble of byte s - 8; its two high bits
 * are bits 2(s/4), 2(s/4)+1 of byte 8 + s%4. 32 is subtracted. */
static void get_q3_k(const uint8_t *b, int run, clt_run *r) {
    const uint8_t *scales = b + 96;

    r->d = load_u16(b + 108);
    for (int h = 0; h < 2; h++) {
        int s = 2 * run + h;
        int low = (scales[s % 8] >> (4 * (s / 8))) & 15, high = (scales[8 + s % 4] >> (2 * (s / 4))) & 3;
        r->scale[h] = (int8_t)((low | high << 4) - 32);
    }
    get_two_bits(b + 32, run, r->code);
    for (int i = 0; i < CLT_RUN; i++)
        r->code[i] = (uint8_t)(r->code[i] | ((b[i] >> run) & 1) << 2);
}

/* The twelve bytes of scales and minima of Q4_K and Q5_K, six bits each. Those of runs 0..3 are the low six bits of bytes
 * 0..3 and 4..7; those of runs 4..7 have their low four bits in the nibbles of bytes 8..11, the rest in bits left over. */
static void get_six_bit_scales(const uint8_t *s, int run, clt_run *r) {
    int scale, min, j = run % 4;

    if (run < 4) {
        scale = s[j] & 63;
        min = s[4 + j] & 63;
    } else {
        scale = (s[8 + j] & 15) | (s[j] >> 6) << 4;
        min = s[8 + j] >> 4 | (s[4 + j] >> 6) << 4;
    }
    r->scale[0] = r->scale[1] = (int8_t)scale;
    r->min[0] = r->min[1] = (uint8_t)min;
}

/* Two runs share 32 bytes: the even one has the low nibbles. */
static void get_run_nibbles(const uint8_t *q, int run, uint8_t *code) {
    for (int i = 0; i < CLT_RUN; i++)
        code[i] = (q[32 * (run / 2) + i] >> (4 * (run % 2))) & 15;
}

/* 0 d, 2 m, 4 scales[12], 16 nibbles[128] */
static void get_q4_k(const uint8_t *b, int run, clt_run *r) {
    r->d = load_u16(b);
    r->m = load_u16(b + 2);
    get_six_bit_scales(b + 4, run, r);
    get_run_nibbles(b + 16, run, r->code);
}

/* 0 d, 2 m, 4 scales[12], 16 fifth bits[32] (run j has bit j), 48 nibbles[128] */
static void get_q5_k(const uint8_t *b, int run, clt_run *r) {
    r->d = load_u16(b);
    r->m = load_u16(b + 2);
    get_six_bit_scales(b + 4, run, r);
    get_run_nibbles(b + 48, run, r->code);
    for (int i = 0; i < CLT_RUN; i++)
        r->code[i] = (uint8_t)(r->code[i] | ((b[16 + i] >> run) & 1) << 4);
}

/* 0 low nibbles[128], 128 high bit pairs[64], 192 signed scales[16], 208 d.
 * Four runs share 64 bytes of nibbles (runs 0 and 1 the low ones) and 32 bytes of bit pairs. */
static void get_q6_k(const uint8_t *b, int run, clt_run *r) {
    const uint8_t *low = b + 64 * (run / 4) + 32 * (run % 2);
    int shift = 4 * (run % 4 / 2);

    r->d = load_u16(b + 208);
    for (int h = 0; h < 2; h++)
        r->scale[h] = (int8_t)b[192 + 2 * run + h];
    get_two_bits(b + 128, run, r->code);
    for (int i = 0; i < CLT_RUN; i++)
        r->code[i] = (uint8_t)(r->code[i] << 4 | ((low[i] >> shift) & 15));
}

/* 0 d, 2 high scale bits (16 bits, two for each run), 4 low scale nibbles[4], 8 nibbles[8][16] */
static void get_iq4_xs(const uint8_t *b, int run, clt_run *r) {
    int low = (b[4 + run / 2] >> (4 * (run % 2))) & 15, high = (load_u16(b + 2) >> (2 * run)) & 3;

    r->d = load_u16(b);
    r->scale[0] = r->scale[1] = (int8_t)((low | high << 4) - 32);
    split_nibbles(b + 8 + 16 * run, r->code);
}

bool clt_run_get(clt_type t, const uint8_t *row, int64_t run, clt_run *r) {
    const clt_type_info *info = clt_type_get((uint32_t)t);
    if (!info || info->block_len < CLT_RUN)
        return false;
    int64_t runs_per_block = info->block_len / CLT_RUN;
    const uint8_t *b = row + run / runs_per_block * info->block_bytes;
    int j = (int)(run % runs_per_block);

    r->m = 0;
    r->scale[0] = r->scale[1] = 1;
    r->min[0] = r->min[1] = 0;
    switch (t) {
    case CLT_Q4_0: case CLT_IQ4_NL: get_q4_0(b, r); return true;
    case CLT_Q4_1: get_q4_1(b, r); return true;
    case CLT_Q5_0: get_q5_0(b, r); return true;
    case CLT_Q5_1: get_q5_1(b, r); return true;
    case CLT_Q8_0: get_q8_0(b, r); return true;
    case CLT_Q2_K: get_q2_k(b, j, r); return true;
    case CLT_Q3_K: get_q3_k(b, j, r); return true;
    case CLT_Q4_K: get_q4_k(b, j, r); return true;
    case CLT_Q5_K: get_q5_k(b, j, r); return true;
    case CLT_Q6_K: get_q6_k(b, j, r); return true;
    case CLT_IQ4_XS: get_iq4_xs(b, j, r); return true;
    case CLT_F32: case CLT_F16: case CLT_BF16: break;
    }
    return false;
}

int clt_run_offset(clt_type t) {
    switch (t) {
    case CLT_Q3_K: return 4;
    case CLT_Q4_0: return 8;
    case CLT_Q5_0: return 16;
    case CLT_Q6_K: return 32;
    case CLT_Q8_0: return 128;
    default: return 0;
    }
}
