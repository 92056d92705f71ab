/* The search in registers of four floats, which every machine of ours has; compilers lower them where one has not. */
#define FIT_WIDTH 4
#include "kernels/fit_lanes.h"

void clt_fit_scalar(clt_type t, const float *x, const float *w, clt_fit *out) { fit_blocks(t, x, w, out); }
