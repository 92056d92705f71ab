/* A look at every product of a pass: who wants to know which numbers the matrices meet, and what changes if a result is
 * not exact. */
#ifndef CLT_FORWARD_OBSERVE_H
#define CLT_FORWARD_OBSERVE_H
#include "kernels/kernels.h"

typedef struct clt_observed {
    char name[96];           /* of the matrix in GGUF: "blk.3.attn_q.weight" */
    int matrix, matrices;    /* which of an expert tensor's matrices; 0 of 1 elsewhere */
    int rows;                /* T */
    const float *x; int64_t ldx, cols;  /* [T][K]: what went in */
    float *y; int64_t ldy, outputs;     /* [T][N]: what came out; may be changed */
} clt_observed;
/* Called after each product, by the thread that runs the pass. */
typedef void (*clt_observe_fn)(void *user, const clt_observed *o);

#endif
