/* A persistent thread pool. One job at a time; the caller works too, as thread 0.
 * Workers spin for a moment after a job (decode steps follow each other closely), then sleep. */
#ifndef CLT_BASE_POOL_H
#define CLT_BASE_POOL_H
#include "base/err.h"

typedef struct clt_pool clt_pool;
typedef void (*clt_task_fn)(void *ctx, int task, int thread); /* task in [0, n_tasks), thread in [0, n_threads) */

clt_status clt_pool_create(int n_threads /* >= 1, caller included */, clt_pool **out, clt_err *err);
int clt_pool_threads(const clt_pool *p);
/* Runs fn for every task and returns when all are done. Tasks are handed out in ascending order from one counter, so which
 * thread runs a task is not determined: results may not depend on it. Not reentrant; one caller at a time. */
void clt_pool_run(clt_pool *p, clt_task_fn fn, void *ctx, int n_tasks);
void clt_pool_free(clt_pool *p);

#endif
