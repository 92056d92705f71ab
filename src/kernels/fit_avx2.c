/* The search in registers of eight floats. */
#define FIT_WIDTH 8
#include "kernels/fit_lanes.h"

void clt_fit_avx2(clt_type t, const float *x, const float *w, clt_fit *out) { fit_blocks(t, x, w, out); }
