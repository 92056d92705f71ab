/* A run: 32 neighbouring numbers of a quantised row, taken out of their block but not yet multiplied out.
 *
 * The value of number i, with h = i / 16, is
 *     f16(d) * scale[h] * (code[i] - clt_run_offset(t))                          for types without minimum,
 *     … + f16(m)                                                                 for Q4_1 and Q5_1,
 *     … - f16(m) * min[h]                                                        for Q2_K, Q4_K and Q5_K;
 * code indexes clt_iq4_values for IQ4_NL and IQ4_XS. Both the decoders and the packing of the kernels start from here. */
#ifndef CLT_QUANT_RUN_H
#define CLT_QUANT_RUN_H
#include "quant/quant.h"

enum { CLT_RUN = 32 };

typedef struct clt_run {
    uint16_t d, m;      /* half floats of the block; m = 0 where the type has no minimum */
    int8_t scale[2];    /* of each half of the run; 1 where the type has none */
    uint8_t min[2];
    uint8_t code[CLT_RUN]; /* Q8_0: the signed code plus 128 */
} clt_run;

/* Takes run number `run` (counted from the start of the row) of a row of type t apart. False, and nothing is written, for
 * F32, F16 and BF16, which have no runs. */
bool clt_run_get(clt_type t, const uint8_t *row, int64_t run, clt_run *r);
/* The inverse: puts a run into its block, whose bytes are zeros except for runs that were put before. d and m are those of the
 * whole block. False for types without runs. */
bool clt_run_put(clt_type t, uint8_t *row, int64_t run, const clt_run *r);
/* What is subtracted from a code: 8, 16, 32, … ; 0 for types with a minimum and for IQ4. */
int clt_run_offset(clt_type t);
/* The sixteen values of a 4-bit IQ4 code. */
extern const int8_t clt_iq4_values[16];

#endif
