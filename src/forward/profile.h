/* Where the time of passes goes, by stage. Off, it costs one comparison per job. */
#ifndef CLT_FORWARD_PROFILE_H
#define CLT_FORWARD_PROFILE_H
#include "base/err.h"
#include "base/pool.h"
#include "kernels/kernels.h"

/* What a job is; matrices are told apart further, by what they are for and by the type of their weights. */
typedef enum clt_stage {
    CLT_STAGE_EMBED,     /* rows of the embedding table, angles of rope */
    CLT_STAGE_ROWS,      /* norms, sums, rope, activations: whatever goes row by row */
    CLT_STAGE_QUANTISE,  /* inputs of quantised weights, to 8 bits */
    CLT_STAGE_STORE,     /* keys and values into the cache */
    CLT_STAGE_ATTENTION,
    CLT_STAGE_SOFTCAP,
    CLT_STAGE_SAMPLING,
    CLT_STAGE_SERIAL,    /* between the jobs, on one thread */
    CLT_STAGE_MATMUL
} clt_stage;

typedef enum clt_role {
    CLT_ROLE_ATTENTION, CLT_ROLE_FFN, CLT_ROLE_EXPERTS, CLT_ROLE_ROUTER, CLT_ROLE_PER_LAYER, CLT_ROLE_HEAD, CLT_ROLES
} clt_role;

typedef struct clt_profile_entry {
    const char *stage, *type; /* "ffn", "Q4_0"; type "" where there are no weights */
    double wall_ms;           /* of the thread that calls; the entries' sum is the time of all passes */
    double busy_ms;           /* of all threads at work; threads * wall_ms - busy_ms were spent waiting */
    uint64_t calls;           /* jobs */
    uint64_t macs;            /* multiply-accumulates of weights and inputs; a second 8-bit row of an input is not counted */
    uint64_t bytes;           /* packed weights read, each pass of rows over them counted once */
} clt_profile_entry;

typedef struct clt_profile clt_profile;
clt_status clt_profile_create(int threads, clt_profile **out, clt_err *err);
void clt_profile_free(clt_profile *p);
void clt_profile_clear(clt_profile *p);
/* Fills out with the stages that were met, in a fixed order, at most max of them; the number of all. */
size_t clt_profile_read(const clt_profile *p, clt_profile_entry *out, size_t max);

/* ---- for those who do the work; p may be NULL in all of them ---- */
void clt_profile_begin(clt_profile *p);   /* of a pass */
void clt_profile_end(clt_profile *p);
/* Time that was spent outside passes. */
void clt_profile_add(clt_profile *p, clt_stage stage, double ms);
/* clt_pool_run, timed. */
void clt_profile_run(clt_profile *p, clt_stage stage, clt_pool *pool, clt_task_fn fn, void *ctx, int n_tasks);

/* A product's share of a job of matrices: rows * N * K multiplications over the bytes of its weights. */
typedef struct clt_profile_product { clt_role role; clt_type type; uint64_t macs, bytes; } clt_profile_product;
/* The same for a job of n products; its time is divided in proportion to their multiplications. */
void clt_profile_run_products(clt_profile *p, const clt_profile_product *products, int n, clt_pool *pool, clt_task_fn fn,
                              void *ctx, int n_tasks);

#endif
