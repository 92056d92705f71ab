/* Counts time per stage. The calling thread takes part in every job, so its time alone adds up to that of the pass; what
 * each thread really worked is measured task by task. */
#include "forward/profile.h"
#include "base/mem.h"
#include "base/os.h"

enum { TYPES = CLT_BF16 + 1, PAD = 16 }; /* PAD: doubles between the counters of two threads: they must not share a cache line */

typedef struct counter { double wall_ms, busy_ms; uint64_t calls, macs, bytes; } counter;

struct clt_profile {
    counter stage[CLT_STAGE_MATMUL];
    counter product[CLT_ROLES][TYPES];
    int threads;
    double *busy_ms;     /* [threads][PAD]: of the running job */
    double since_ms;     /* when the last job or the beginning of the pass ended */
};

static const char *const stage_names[CLT_STAGE_MATMUL] = {"embeddings", "norms and rows", "quantise", "store keys",
                                                          "attention",  "softcap",        "sampling", "serial"};
static const char *const role_names[CLT_ROLES] = {"attention projections", "ffn", "experts", "router", "per-layer",
                                                  "lm_head"};

clt_status clt_profile_create(int threads, clt_profile **out, clt_err *err) {
    clt_profile *p = clt_calloc(1, sizeof *p);
    *out = NULL;
    if (!p) return clt_fail_memory(err, "the profile", sizeof *p);
    p->threads = threads;
    p->busy_ms = clt_calloc((size_t)threads * PAD, sizeof *p->busy_ms);
    if (!p->busy_ms) {
        clt_free(p);
        return clt_fail_memory(err, "the profile", (size_t)threads * PAD * sizeof(double));
    }
    *out = p;
    return CLT_OK;
}

void clt_profile_free(clt_profile *p) {
    if (p) clt_free(p->busy_ms);
    clt_free(p);
}

void clt_profile_clear(clt_profile *p) {
    for (int i = 0; i < CLT_STAGE_MATMUL; i++) p->stage[i] = (counter){0};
    for (int r = 0; r < CLT_ROLES; r++)
        for (int t = 0; t < TYPES; t++) p->product[r][t] = (counter){0};
}

static void put(const counter *c, const char *stage, const char *type, clt_profile_entry *out, size_t max, size_t *n) {
    if (!c->calls) return;
    if (*n < max)
        out[*n] = (clt_profile_entry){stage, type, c->wall_ms, c->busy_ms, c->calls, c->macs, c->bytes};
    (*n)++;
}

size_t clt_profile_read(const clt_profile *p, clt_profile_entry *out, size_t max) {
    size_t n = 0;
    for (int r = 0; r < CLT_ROLES; r++)
        for (int t = 0; t < TYPES; t++)
            put(&p->product[r][t], role_names[r], p->product[r][t].calls ? clt_type_get((uint32_t)t)->name : "", out, max, &n);
    for (int i = 0; i < CLT_STAGE_MATMUL; i++) put(&p->stage[i], stage_names[i], "", out, max, &n);
    return n;
}

static void count(counter *c, double wall_ms, double busy_ms, uint64_t calls) {
    c->wall_ms += wall_ms, c->busy_ms += busy_ms, c->calls += calls;
}

void clt_profile_begin(clt_profile *p) {
    if (p) p->since_ms = clt_now_ms();
}

/* Closes the stretch between two jobs. */
static double leave_serial(clt_profile *p) {
    double now = clt_now_ms();
    count(&p->stage[CLT_STAGE_SERIAL], now - p->since_ms, now - p->since_ms, 1);
    return now;
}

void clt_profile_end(clt_profile *p) {
    if (p) leave_serial(p);
}

void clt_profile_add(clt_profile *p, clt_stage stage, double ms) {
    if (p) count(&p->stage[stage], ms, ms, 1);
}

typedef struct timed { clt_task_fn fn; void *ctx; double *busy_ms; } timed;

static void timed_task(void *ctx, int task, int thread) {
    const timed *t = ctx;
    double start = clt_now_ms();
    t->fn(t->ctx, task, thread);
    t->busy_ms[(size_t)thread * PAD] += clt_now_ms() - start;
}

/* Runs a job; what it took on the clock, and on all threads together. */
static double run(clt_profile *p, clt_pool *pool, clt_task_fn fn, void *ctx, int n_tasks, double *busy_ms) {
    double start = leave_serial(p);
    for (int t = 0; t < p->threads; t++) p->busy_ms[(size_t)t * PAD] = 0;
    clt_pool_run(pool, timed_task, &(timed){fn, ctx, p->busy_ms}, n_tasks);
    p->since_ms = clt_now_ms();
    *busy_ms = 0;
    for (int t = 0; t < p->threads; t++) *busy_ms += p->busy_ms[(size_t)t * PAD];
    return p->since_ms - start;
}

void clt_profile_run(clt_profile *p, clt_stage stage, clt_pool *pool, clt_task_fn fn, void *ctx, int n_tasks) {
    if (!p) {
        clt_pool_run(pool, fn, ctx, n_tasks);
        return;
    }
    double busy, wall = run(p, pool, fn, ctx, n_tasks, &busy);
    count(&p->stage[stage], wall, busy, 1);
}

void clt_profile_run_products(clt_profile *p, const clt_profile_product *products, int n, clt_pool *pool, clt_task_fn fn,
                              void *ctx, int n_tasks) {
    if (!p) {
        clt_pool_run(pool, fn, ctx, n_tasks);
        return;
    }
    double busy, wall = run(p, pool, fn, ctx, n_tasks, &busy), all = 0;
    for (int i = 0; i < n; i++) all += (double)products[i].macs;
    for (int i = 0; i < n; i++) {
        counter *c = &p->product[products[i].role][products[i].type];
        double share = all > 0 ? (double)products[i].macs / all : 1.0 / n;
        count(c, wall * share, busy * share, 1);
        c->macs += products[i].macs, c->bytes += products[i].bytes;
    }
}
