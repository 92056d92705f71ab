/* A persistent thread pool. One job at a time; the caller works too, as thread 0.
 * Workers spin for a moment after a job (decode steps follow each other closely), then sleep. */
#ifndef CLT_BASE_POOL_H
#define CLT_BASE_POOL_H
#include "base/cores.h"

typedef struct clt_pool clt_pool;
typedef void (*clt_task_fn)(void *ctx, int task, int thread); /* task in [0, n_tasks), thread in [0, n_threads) */

enum { CLT_POLL_USUAL = 50, CLT_POOL_STACK_BYTES = 1 << 20 /* of each worker */ };
typedef struct clt_pool_params {
    int threads;    /* >= 1, caller included */
    int poll;       /* 0..100: how long a thread looks for work before it sleeps; 0 = it sleeps at once */
    clt_cpus cpus;  /* where the threads may run, the caller included; empty = where the caller runs */
    bool strict;    /* each thread on one CPU of its own, in ascending order; an empty set then means all that are allowed */
    int nice;       /* of all threads, the caller included; 0 = as it is */
} clt_pool_params;

/* The usual polling, no placement, no priority. */
clt_status clt_pool_create(int n_threads /* >= 1, caller included */, clt_pool **out, clt_err *err);
/* Placement and priority are set for the calling thread as well; the placement is taken back by clt_pool_free in the same
 * thread. What the system refuses of them is no failure: clt_pool_refusal tells, NULL if nothing was refused. */
clt_status clt_pool_create_with(const clt_pool_params *params, clt_pool **out, clt_err *err);
const char *clt_pool_refusal(const clt_pool *p);
int clt_pool_threads(const clt_pool *p);
/* How many of the threads take part in the jobs to come, 1 to all (what lies outside is cut). Between jobs only. */
void clt_pool_limit(clt_pool *p, int n_threads);
/* Runs fn for every task and returns when all are done. Tasks are handed out in ascending order from one counter, so which
 * thread runs a task is not determined: results may not depend on it. Not reentrant; one caller at a time. */
void clt_pool_run(clt_pool *p, clt_task_fn fn, void *ctx, int n_tasks);
void clt_pool_free(clt_pool *p);

#endif
