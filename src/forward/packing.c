/* Packs the weights: a plan and an open file in, packed memory out.
 *
 * The work is cut into tasks of about a mebibyte. They run in the order of the file, and each one announces to the
 * system the part of the file that a later one will read: a cold file is read ahead in large pieces, in one direction,
 * while packing goes on. Each task is the first to touch its part of the packed memory, so that clearing it is shared
 * among the threads, and lets go of its part of the file: weights are never held twice. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "forward/packing.h"

enum {
    TASK_BYTES = 1 << 20,  /* of packed memory */
    AHEAD_BYTES = 96 << 20, /* how far the file is announced ahead: enough for the queue of a fast disk */
    BATCHES = 32           /* between two of them progress is reported and loading can be cancelled */
};

typedef struct task {
    const clt_pack_job *j;
    int64_t p0, p1; /* panels */
    size_t bytes;
} task;

typedef struct packing {
    const clt_file *file;
    uint8_t *packed;
    task *tasks;
    size_t n;
    size_t first;  /* of the running batch */
    size_t ahead;  /* tasks */
} packing;

static int by_place_in_file(const void *a, const void *b) {
    const clt_pack_job *x = a, *y = b;
    if (x->tensor->shard != y->tensor->shard) return x->tensor->shard < y->tensor->shard ? -1 : 1;
    if (x->tensor->offset != y->tensor->offset) return x->tensor->offset < y->tensor->offset ? -1 : 1;
    return x->first_row < y->first_row ? -1 : x->first_row > y->first_row;
}

static int64_t panels_of(const clt_pack_job *j) { return (j->rows + CLT_PANEL - 1) / CLT_PANEL; }

static size_t panel_bytes_of(const clt_pack_job *j) { return clt_mat_panel_bytes(j->tensor->type, j->tensor->dims[0]); }

static int64_t panels_per_task(const clt_pack_job *j) { return (int64_t)(TASK_BYTES / panel_bytes_of(j)) + 1; }

/* Counts, or with tasks lists, what the plan takes. */
static size_t cut(const clt_pack_plan *p, task *tasks) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const clt_pack_job *j = &p->jobs[i];
        int64_t panels = panels_of(j), step = panels_per_task(j);
        for (int64_t p0 = 0; p0 < panels; p0 += step, n++) {
            int64_t p1 = p0 + step < panels ? p0 + step : panels;
            if (tasks) tasks[n] = (task){j, p0, p1, (size_t)(p1 - p0) * panel_bytes_of(j)};
        }
    }
    return n;
}

/* The rows of its tensor that a task reads. */
static void rows_of(const task *t, int64_t *first, int64_t *n) {
    int64_t end = t->p1 * CLT_PANEL < t->j->rows ? t->p1 * CLT_PANEL : t->j->rows;
    *first = t->j->first_row + t->p0 * CLT_PANEL;
    *n = end - t->p0 * CLT_PANEL;
}

static void announce(const packing *c, size_t i) {
    int64_t first, n;
    if (i >= c->n) return;
    rows_of(&c->tasks[i], &first, &n);
    clt_file_expect(c->file, c->tasks[i].j->tensor, first, n);
}

static void pack_task(void *ctx, int number, int thread) {
    (void)thread;
    const packing *c = ctx;
    size_t i = c->first + (size_t)number;
    const task *t = &c->tasks[i];
    const clt_pack_job *j = t->j;
    int64_t first, n;
    announce(c, i + c->ahead);
    clt_mat_pack(j->tensor->type, j->rows, j->tensor->dims[0], clt_tensor_row(j->tensor, j->first_row),
                 c->packed + j->offset, t->p0, t->p1);
    rows_of(t, &first, &n);
    clt_file_release(c->file, j->tensor, first, n);
}

clt_status clt_pack_all(clt_pack_plan *p, const clt_file *f, clt_pool *pool, uint8_t *packed,
                        bool (*progress)(void *user, double done), void *user, clt_err *err) {
    clt_status st = CLT_OK;
    qsort(p->jobs, p->n, sizeof *p->jobs, by_place_in_file);
    packing c = {.file = f, .packed = packed, .n = cut(p, NULL), .ahead = AHEAD_BYTES / TASK_BYTES};
    c.tasks = clt_calloc(c.n, sizeof *c.tasks);
    if (!c.tasks) return clt_fail_memory(err, "the packing of weights", c.n * sizeof *c.tasks);
    cut(p, c.tasks);
    for (size_t i = 0; i < c.ahead; i++) announce(&c, i);
    for (size_t end, done = 0; c.first < c.n && st == CLT_OK; c.first = end) {
        size_t goal = done + p->bytes / BATCHES;
        for (end = c.first; end < c.n && (done < goal || end == c.first); end++) done += c.tasks[end].bytes;
        clt_pool_run(pool, pack_task, &c, (int)(end - c.first));
        if (progress && !progress(user, end == c.n ? 1.0 : (double)done / (double)p->bytes))
            st = clt_fail(err, CLT_E_CANCELLED, "loading was cancelled");
    }
    clt_free(c.tasks);
    return st;
}
