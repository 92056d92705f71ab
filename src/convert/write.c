/* Writes a manifest: each task reads some rows of a tensor, encodes them and writes them at their place, so that memory does
 * not grow with the model and no thread waits for another within a tensor. */
#include <inttypes.h>
#include <stdatomic.h>
#include <unistd.h>
#include <string.h>
#include "base/outfile.h"
#include "convert/convert.h"

enum { TASK_NUMBERS = 1 << 18 /* of one task: 1 MB of floats */, QUANTISATION_VERSION = 2 };

typedef enum failure { NONE, NOT_READ, NOT_WRITTEN, NOT_FINITE, CANCELLED } failure;

/* Buffers of one thread. */
typedef struct desk {
    float *x, *space;
    uint8_t *bytes;
} desk;

typedef struct job {
    const clt_manifest *manifest;
    const clt_convert_run *run;
    clt_outfile out;
    desk *desks;            /* [threads] */
    int threads;
    /* the tensor at work */
    const clt_manifest_tensor *t;
    uint64_t at;            /* of its data in the file */
    int64_t rows_per_task;
    uint64_t all, before;   /* numbers of all tensors, of those before this one */
    atomic_ullong done;     /* numbers of this one */
    atomic_int failed;      /* failure */
} job;

static int64_t source_rows(const clt_manifest_tensor *t) { return t->source.rows; }

/* Bytes of one row of the source in the type of the tensor: rows are whole blocks. */
static uint64_t row_bytes(const clt_manifest_tensor *t) {
    return clt_type_row_bytes(clt_type_get((uint32_t)t->type), t->source.cols);
}

static void fail_once(job *j, failure why) {
    int none = NONE;
    atomic_compare_exchange_strong(&j->failed, &none, (int)why);
}

static const float *importance_of(const clt_manifest_tensor *t, int64_t row) {
    return t->importance ? t->importance + row / t->dims[1] * t->dims[0] : NULL;
}

/* The rows behind `row` that share its importance and fit the task. */
static int64_t rows_together(const clt_manifest_tensor *t, int64_t row, int64_t end) {
    int64_t next = t->importance ? (row / t->dims[1] + 1) * t->dims[1] : end;
    return (next < end ? next : end) - row;
}

static bool same_bytes(const clt_manifest_tensor *t) {
    return t->source.tensor && t->source.change == CLT_AS_IS && t->source.tensor->type == t->type;
}

static failure encode_task(const job *j, desk *d, int64_t first, int64_t end) {
    const clt_manifest_tensor *t = j->t;
    const clt_source *s = &t->source;
    uint64_t bytes = row_bytes(t);
    if (same_bytes(t))
        return clt_file_read(s->file, s->tensor, (uint64_t)first * bytes, d->bytes, (size_t)(end - first) * bytes)
                   ? NONE : NOT_READ;
    for (int64_t row = first; row < end; row++)
        if (!clt_source_row(s, row, d->x + (row - first) * s->cols, d->space)) return NOT_READ;
    for (int64_t row = first, n; row < end; row += n) {
        n = rows_together(t, row, end);
        if (!clt_encode_rows(t->type, j->run->fit, d->x + (row - first) * s->cols, importance_of(t, row), s->cols, n,
                             d->bytes + (uint64_t)(row - first) * bytes))
            return NOT_FINITE;
    }
    return NONE;
}

static void run_task(void *ctx, int task, int thread) {
    job *j = ctx;
    int64_t rows = source_rows(j->t), first = task * j->rows_per_task, end = first + j->rows_per_task;
    uint64_t bytes = row_bytes(j->t);
    if (atomic_load(&j->failed)) return;
    if (end > rows) end = rows;
    failure why = encode_task(j, &j->desks[thread], first, end);
    if (!why && !clt_outfile_write(&j->out, j->desks[thread].bytes, (size_t)((uint64_t)(end - first) * bytes),
                                   j->at + (uint64_t)first * bytes))
        why = NOT_WRITTEN;
    if (why) fail_once(j, why);
    uint64_t done = atomic_fetch_add(&j->done, (uint64_t)((end - first) * j->t->source.cols)) + j->before;
    if (thread == 0 && j->run->progress && !j->run->progress(j->run->user, (double)done / (double)j->all))
        fail_once(j, CANCELLED);
}

static clt_status report(const job *j, clt_err *err) {
    const clt_manifest_tensor *t = j->t;
    const char *file = t->source.file ? clt_file_path(t->source.file) : "";
    switch ((failure)atomic_load(&j->failed)) {
    case NOT_READ: return clt_fail(err, CLT_E_FILE, "%s: tensor %s can no longer be read", file, t->source.tensor->name);
    case NOT_WRITTEN: return clt_outfile_fail(&j->out, err);
    case NOT_FINITE:
        clt_fail(err, CLT_E_FILE, "%s: tensor %s holds a number that is not finite", file,
                 t->source.tensor ? t->source.tensor->name : t->name);
        return clt_hint(err, "the file is damaged: fetch it again");
    case CANCELLED: return clt_fail(err, CLT_E_CANCELLED, "interrupted: nothing was written");
    case NONE: break;
    }
    return CLT_OK;
}

static void free_desks(job *j) {
    for (int i = 0; j->desks && i < j->threads; i++) {
        clt_free(j->desks[i].x);
        clt_free(j->desks[i].space);
        clt_free(j->desks[i].bytes);
    }
    clt_free(j->desks);
}

static clt_status make_desks(job *j, clt_err *err) {
    int64_t cols = 1;
    for (size_t i = 0; i < j->manifest->n; i++)
        if (j->manifest->tensors[i].source.cols > cols) cols = j->manifest->tensors[i].source.cols;
    size_t numbers = (size_t)(cols > TASK_NUMBERS ? cols : TASK_NUMBERS);
    j->threads = clt_pool_threads(j->run->pool);
    j->desks = clt_calloc((size_t)j->threads, sizeof *j->desks);
    bool ok = j->desks != NULL;
    for (int i = 0; ok && i < j->threads; i++) {
        desk *d = &j->desks[i];
        d->x = clt_alloc(numbers * sizeof *d->x);
        d->space = clt_alloc((size_t)cols * sizeof *d->space);
        d->bytes = clt_alloc(numbers * sizeof(float));
        ok = d->x && d->space && d->bytes;
    }
    return ok ? CLT_OK : clt_fail_memory(err, "buffers", numbers * 2 * sizeof(float) * (size_t)j->threads);
}

static clt_status write_tensor(job *j, const clt_manifest_tensor *t, uint64_t at, clt_err *err) {
    j->t = t;
    j->at = at;
    j->rows_per_task = TASK_NUMBERS / t->source.cols > 0 ? TASK_NUMBERS / t->source.cols : 1;
    atomic_store(&j->done, 0);
    int64_t tasks = (source_rows(t) + j->rows_per_task - 1) / j->rows_per_task;
    if (tasks > INT32_MAX) return clt_fail(err, CLT_E_UNSUPPORTED, "tensor %s has too many rows", t->name);
    clt_pool_run(j->run->pool, run_task, j, (int)tasks);
    j->before += (uint64_t)(source_rows(t) * t->source.cols);
    return report(j, err);
}

static clt_status write_all(job *j, clt_manifest *p, const char *path, clt_err *err) {
    clt_buf head = {0};
    uint64_t *offsets = clt_calloc(p->n + 1, sizeof *offsets);
    clt_status status = offsets ? make_desks(j, err) : clt_fail_memory(err, "the list of tensors", p->n * sizeof *offsets);
    for (size_t i = 0; status == CLT_OK && i < p->n; i++) {
        const clt_manifest_tensor *t = &p->tensors[i];
        offsets[i] = clt_gguf_put_tensor(&p->head, t->name, t->type, t->n_dims, t->dims);
        j->all += (uint64_t)(source_rows(t) * t->source.cols);
    }
    clt_gguf_put_u32(&p->head, "general.quantization_version", QUANTISATION_VERSION);
    clt_gguf_put_u32(&p->head, "general.file_type", p->file_type);
    if (status == CLT_OK) status = clt_gguf_head_end(&p->head, &head, err);
    if (status == CLT_OK) status = clt_outfile_open(path, head.len + p->head.data_bytes, &j->out, err);
    if (status == CLT_OK && !clt_outfile_write(&j->out, head.data, head.len, 0)) status = clt_outfile_fail(&j->out, err);
    for (size_t i = 0; status == CLT_OK && i < p->n; i++)
        status = write_tensor(j, &p->tensors[i], head.len + offsets[i], err);
    /* The padding behind the last tensor. */
    if (status == CLT_OK && ftruncate(j->out.fd, (off_t)(head.len + p->head.data_bytes)) != 0)
        status = clt_outfile_fail(&j->out, err);
    if (status == CLT_OK) status = clt_outfile_commit(&j->out, err);
    else clt_outfile_abandon(&j->out);
    clt_buf_free(&head);
    clt_free(offsets);
    return status;
}

clt_status clt_manifest_write(clt_manifest *p, const char *path, const clt_convert_run *run, clt_err *err) {
    job j = {.manifest = p, .run = run, .out = {.fd = -1}};
    clt_status status = write_all(&j, p, path, err);
    free_desks(&j);
    return status;
}
