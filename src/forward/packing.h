/* From a bound model to packed weights: what is packed, where it comes to lie, and the doing of it. Only net.c and the
 * files of these steps include this. */
#ifndef CLT_FORWARD_PACKING_H
#define CLT_FORWARD_PACKING_H
#include "forward/internal.h"

/* ---- plan.c ---- */
typedef struct clt_pack_job { /* rows of one tensor become one matrix */
    clt_mat *mat;             /* filled in by clt_pack_place; NULL in a plan without a net */
    const clt_tensor *tensor;
    int64_t first_row, rows;
    size_t offset;            /* in the packed memory */
} clt_pack_job;

typedef struct clt_pack_plan {
    clt_pack_job *jobs; /* in the order of the forward pass; NULL: only counted */
    size_t n;
    size_t bytes;       /* of the packed memory */
    uint64_t digest;    /* of every job: two plans with one digest lay out the same bytes */
} clt_pack_plan;

/* Adds every matrix of the model. n NULL: no matrix is named. p->jobs, if not NULL, must have room. */
void clt_pack_plan_add(clt_pack_plan *p, const clt_model *m, clt_net *n);
/* Points the matrices of the plan into packed memory. */
void clt_pack_place(const clt_pack_plan *p, const uint8_t *packed);

/* ---- packing.c ---- */
/* Packs all jobs of the plan into `packed`, with all threads of the pool, in the order of the file; lets go of the file's
 * pages behind it. `progress` may be NULL; false cancels. Reorders p->jobs. */
clt_status clt_pack_all(clt_pack_plan *p, const clt_file *f, clt_pool *pool, uint8_t *packed,
                        bool (*progress)(void *user, double done), void *user, clt_err *err);

/* ---- vectors.c ---- */
/* Norms, scales and rotation frequencies, as floats in the net's arena. */
clt_status clt_net_vectors(clt_net *n, clt_err *err);

#endif
