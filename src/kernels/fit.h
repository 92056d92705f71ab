/* Weights to codes: the search for the scales (and minima) that lose least of 16 blocks, which lie side by side.
 *
 * One lane owns one block on every level and every sum runs in ascending order within it, so the bits of a block depend
 * neither on the level nor on its neighbours. What is minimised is sum_i w_i (x_i - y_i)^2, y being what the type's decoder
 * makes of the result. */
#ifndef CLT_KERNELS_FIT_H
#define CLT_KERNELS_FIT_H
#include "base/cpu.h"
#include "quant/run.h"

enum { CLT_FIT_LANES = 16, CLT_FIT_MAX_LEN = 256, CLT_FIT_MAX_SUBS = 16 };

/* The fields of 16 blocks, as clt_run holds them, lane by lane. A sub-block is what has a scale of its own. */
typedef struct clt_fit {
    uint16_t d[CLT_FIT_LANES], m[CLT_FIT_LANES];
    int16_t scale[CLT_FIT_MAX_SUBS][CLT_FIT_LANES], min[CLT_FIT_MAX_SUBS][CLT_FIT_LANES];
    uint8_t code[CLT_FIT_MAX_LEN][CLT_FIT_LANES];
} clt_fit;

/* x, w: [block_len][16], all finite, w >= 0, below 1e18 in magnitude. t: a type with blocks. */
typedef void (*clt_fit_fn)(clt_type t, const float *x, const float *w, clt_fit *out);
/* The fastest implementation that a level allows; never NULL. */
clt_fit_fn clt_fit_get(clt_cpu_level level);
/* How many numbers of a block of this type share a scale. */
int clt_fit_sub_len(clt_type t);

void clt_fit_scalar(clt_type t, const float *x, const float *w, clt_fit *out);
void clt_fit_avx2(clt_type t, const float *x, const float *w, clt_fit *out);
void clt_fit_avx512(clt_type t, const float *x, const float *w, clt_fit *out);

#endif
