/* The search in registers of sixteen floats. */
#define FIT_WIDTH 16
#include "kernels/fit_lanes.h"

void clt_fit_avx512(clt_type t, const float *x, const float *w, clt_fit *out) { fit_blocks(t, x, w, out); }
