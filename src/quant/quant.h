/* Numbers in blocks: one table of all tensor types, and a plain decoder (and encoder, where there is one) for each.
 *
 * Type numbers, block layouts and names are those of GGUF. Everything here is scalar, slow and obvious: it is what the
 * kernels are tested against, and what reads single rows of embedding tables. Pure functions, thread-safe. */
#ifndef CLT_QUANT_QUANT_H
#define CLT_QUANT_QUANT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The values are GGUF's type numbers. */
typedef enum clt_type {
    CLT_F32 = 0, CLT_F16 = 1, CLT_Q4_0 = 2, CLT_Q4_1 = 3, CLT_Q5_0 = 6, CLT_Q5_1 = 7, CLT_Q8_0 = 8,
    CLT_Q2_K = 10, CLT_Q3_K = 11, CLT_Q4_K = 12, CLT_Q5_K = 13, CLT_Q6_K = 14,
    CLT_IQ4_NL = 20, CLT_IQ4_XS = 23, CLT_BF16 = 30
} clt_type;

typedef struct clt_type_info {
    clt_type type;
    const char *name;      /* "Q4_K" */
    uint32_t block_len;    /* numbers per block: 1, 32 or 256 */
    uint32_t block_bytes;
    /* Decodes n numbers (n % block_len == 0) from src to dst[n]. */
    void (*decode)(const void *src, float *dst, int64_t n);
    /* Encodes n numbers; NULL for types that only arrive in files. */
    void (*encode)(const float *src, void *dst, int64_t n);
} clt_type_info;

/* NULL for a type number that this program does not read. */
const clt_type_info *clt_type_get(uint32_t ggml_type);
/* The name that GGUF gives any type number, also of types that we lack ("IQ2_XXS"); NULL if unknown. */
const char *clt_type_name(uint32_t ggml_type);
/* Bytes of a row of n numbers; n must be a multiple of block_len. */
size_t clt_type_row_bytes(const clt_type_info *t, int64_t n);

/* Half and brain floats, bit-exact on every machine (round to nearest even, subnormals kept, NaN stays NaN). */
float clt_f16_to_f32(uint16_t h);
uint16_t clt_f32_to_f16(float f);
float clt_bf16_to_f32(uint16_t h);
uint16_t clt_f32_to_bf16(float f);

#endif
