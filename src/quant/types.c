/* The table of all tensor types, and the decoders: bytes of a GGUF row in, floats out, one obvious way for all quantised
 * types. Where each bit of a block lies is in run.c. */
#include <string.h>
#include "quant/encode.h"
#include "quant/run.h"

static void decode_f32(const void *src, float *dst, int64_t n) {
    memcpy(dst, src, (size_t)n * sizeof *dst);
}

static uint16_t load_u16(const void *src, int64_t i) {
    const uint8_t *p = (const uint8_t *)src + 2 * i;
    return (uint16_t)(p[0] | p[1] << 8);
}

static void decode_f16(const void *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = clt_f16_to_f32(load_u16(src, i));
}

static void decode_bf16(const void *src, float *dst, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = clt_bf16_to_f32(load_u16(src, i));
}

/* d * scale and m * min are exact (11 + 8 bits of 24), so the products below round once each, in any grouping. */
static void decode_runs(clt_type t, const uint8_t *src, float *dst, int64_t n) {
    bool table = t == CLT_IQ4_NL || t == CLT_IQ4_XS;
    bool plus_min = t == CLT_Q4_1 || t == CLT_Q5_1, minus_min = t == CLT_Q2_K || t == CLT_Q4_K || t == CLT_Q5_K;
    int offset = clt_run_offset(t);

    for (int64_t run = 0; run < n / CLT_RUN; run++) {
        clt_run r;
        if (!clt_run_get(t, src, run, &r))
            return;
        float d = clt_f16_to_f32(r.d), m = clt_f16_to_f32(r.m);
        for (int i = 0; i < CLT_RUN; i++) {
            int value = table ? clt_iq4_values[r.code[i]] : r.code[i] - offset;
            float x = d * (float)r.scale[i / 16] * (float)value;
            if (plus_min)
                x += m;
            if (minus_min)
                x -= m * (float)r.min[i / 16];
            dst[run * CLT_RUN + i] = x;
        }
    }
}

static void decode_q4_0(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q4_0, src, dst, n); }
static void decode_q4_1(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q4_1, src, dst, n); }
static void decode_q5_0(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q5_0, src, dst, n); }
static void decode_q5_1(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q5_1, src, dst, n); }
static void decode_q8_0(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q8_0, src, dst, n); }
static void decode_q2_k(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q2_K, src, dst, n); }
static void decode_q3_k(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q3_K, src, dst, n); }
static void decode_q4_k(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q4_K, src, dst, n); }
static void decode_q5_k(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q5_K, src, dst, n); }
static void decode_q6_k(const void *src, float *dst, int64_t n) { decode_runs(CLT_Q6_K, src, dst, n); }
static void decode_iq4_nl(const void *src, float *dst, int64_t n) { decode_runs(CLT_IQ4_NL, src, dst, n); }
static void decode_iq4_xs(const void *src, float *dst, int64_t n) { decode_runs(CLT_IQ4_XS, src, dst, n); }

/* Indexed by type number. */
static const clt_type_info types[] = {
    [CLT_F32] = {CLT_F32, "F32", 1, 4, decode_f32, clt_encode_f32},
    [CLT_F16] = {CLT_F16, "F16", 1, 2, decode_f16, clt_encode_f16},
    [CLT_BF16] = {CLT_BF16, "BF16", 1, 2, decode_bf16, clt_encode_bf16},
    [CLT_Q4_0] = {CLT_Q4_0, "Q4_0", 32, 18, decode_q4_0, clt_encode_q4_0},
    [CLT_Q4_1] = {CLT_Q4_1, "Q4_1", 32, 20, decode_q4_1, NULL},
    [CLT_Q5_0] = {CLT_Q5_0, "Q5_0", 32, 22, decode_q5_0, NULL},
    [CLT_Q5_1] = {CLT_Q5_1, "Q5_1", 32, 24, decode_q5_1, NULL},
    [CLT_Q8_0] = {CLT_Q8_0, "Q8_0", 32, 34, decode_q8_0, clt_encode_q8_0},
    [CLT_Q2_K] = {CLT_Q2_K, "Q2_K", 256, 84, decode_q2_k, NULL},
    [CLT_Q3_K] = {CLT_Q3_K, "Q3_K", 256, 110, decode_q3_k, NULL},
    [CLT_Q4_K] = {CLT_Q4_K, "Q4_K", 256, 144, decode_q4_k, NULL},
    [CLT_Q5_K] = {CLT_Q5_K, "Q5_K", 256, 176, decode_q5_k, NULL},
    [CLT_Q6_K] = {CLT_Q6_K, "Q6_K", 256, 210, decode_q6_k, NULL},
    [CLT_IQ4_NL] = {CLT_IQ4_NL, "IQ4_NL", 32, 18, decode_iq4_nl, NULL},
    [CLT_IQ4_XS] = {CLT_IQ4_XS, "IQ4_XS", 256, 136, decode_iq4_xs, NULL},
};

const clt_type_info *clt_type_get(uint32_t ggml_type) {
    return ggml_type < sizeof types / sizeof types[0] && types[ggml_type].name ? &types[ggml_type] : NULL;
}

/* GGUF's numbering; the gaps were types that no longer exist. */
static const char *const type_names[] = {
    [0] = "F32", [1] = "F16", [2] = "Q4_0", [3] = "Q4_1", [6] = "Q5_0", [7] = "Q5_1", [8] = "Q8_0", [9] = "Q8_1",
    [10] = "Q2_K", [11] = "Q3_K", [12] = "Q4_K", [13] = "Q5_K", [14] = "Q6_K", [15] = "Q8_K", [16] = "IQ2_XXS",
    [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S", [20] = "IQ4_NL", [21] = "IQ3_S", [22] = "IQ2_S", [23] = "IQ4_XS",
    [24] = "I8", [25] = "I16", [26] = "I32", [27] = "I64", [28] = "F64", [29] = "IQ1_M", [30] = "BF16", [34] = "TQ1_0",
    [35] = "TQ2_0", [39] = "MXFP4", [40] = "NVFP4", [41] = "Q1_0",
};

const char *clt_type_name(uint32_t ggml_type) {
    return ggml_type < sizeof type_names / sizeof type_names[0] ? type_names[ggml_type] : NULL;
}

size_t clt_type_row_bytes(const clt_type_info *t, int64_t n) {
    return (size_t)(n / t->block_len) * t->block_bytes;
}
