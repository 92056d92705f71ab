/* Encoders of single types, for the table in types.c. Inside src/quant only. n is a multiple of the block length. */
#ifndef CLT_QUANT_ENCODE_H
#define CLT_QUANT_ENCODE_H
#include <stdint.h>

void clt_encode_f32(const float *src, void *dst, int64_t n);
void clt_encode_f16(const float *src, void *dst, int64_t n);
void clt_encode_bf16(const float *src, void *dst, int64_t n);
void clt_encode_q4_0(const float *src, void *dst, int64_t n);
void clt_encode_q8_0(const float *src, void *dst, int64_t n);

#endif
