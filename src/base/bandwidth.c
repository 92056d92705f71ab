/* The memory's read bandwidth: a number of threads in, bytes per second out. What bounds the generation of tokens is how
 * fast weights can be streamed; this measures the same thing with nothing but loads. It knows nothing of models.
 *
 * The buffer lies in huge pages as the packed weights do, and is written first: untouched pages are all one page of zeros,
 * which would be read from the cache. Two ways of reading alternate, because one stream per thread does not keep enough
 * lines in flight to fill the memory's pipe on every machine. */
#include "base/bandwidth.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/pool.h"

enum { PASSES = 7, PARTS_PER_THREAD = 8, LINE_WORDS = 8, AHEAD_LINES = 8 };
static const uint64_t USUAL_BYTES = UINT64_C(2) << 30, LEAST_BYTES = UINT64_C(16) << 20;

typedef struct reader {
    uint64_t *data;
    size_t part_words;       /* a multiple of 2 * LINE_WORDS */
    _Atomic uint64_t sum;    /* what was read must go somewhere, or the compiler drops the loads */
} reader;

static void write_part(void *ctx, int task, int thread) {
    reader *r = ctx;
    (void)thread;
    memset(r->data + (size_t)task * r->part_words, task + 1, r->part_words * sizeof(uint64_t));
}

static void keep(reader *r, const uint64_t sum[LINE_WORDS]) {
    uint64_t all = 0;
    for (size_t k = 0; k < LINE_WORDS; k++) all ^= sum[k];
    atomic_fetch_xor_explicit(&r->sum, all, memory_order_relaxed);
}

static void read_plainly(void *ctx, int task, int thread) {
    reader *r = ctx;
    (void)thread;
    const uint64_t *p = r->data + (size_t)task * r->part_words;
    uint64_t sum[LINE_WORDS] = {0};
    for (size_t i = 0; i < r->part_words; i += LINE_WORDS) {
        for (size_t k = 0; k < LINE_WORDS; k++) sum[k] ^= p[i + k];
    }
    keep(r, sum);
}

static void read_two_streams(void *ctx, int task, int thread) {
    reader *r = ctx;
    (void)thread;
    size_t words = r->part_words / 2;
    const uint64_t *p = r->data + (size_t)task * r->part_words, *q = p + words;
    uint64_t sum[LINE_WORDS] = {0};
    for (size_t i = 0; i < words; i += LINE_WORDS) {
        __builtin_prefetch(p + i + AHEAD_LINES * LINE_WORDS);
        __builtin_prefetch(q + i + AHEAD_LINES * LINE_WORDS);
        for (size_t k = 0; k < LINE_WORDS; k++) sum[k] ^= p[i + k] ^ q[i + k];
    }
    keep(r, sum);
}

static double time_pass(clt_pool *pool, clt_task_fn fn, reader *r, int parts, uint64_t bytes) {
    double start = clt_now_ms();
    clt_pool_run(pool, fn, r, parts);
    double ms = clt_now_ms() - start;
    return ms > 0 ? (double)bytes / ms * 1e-6 : 0;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_passes(clt_pool *pool, reader *r, int parts, clt_bandwidth *out) {
    double plain[PASSES], streams[PASSES];
    for (int i = 0; i < PASSES; i++) {
        plain[i] = time_pass(pool, read_plainly, r, parts, out->bytes);
        streams[i] = time_pass(pool, read_two_streams, r, parts, out->bytes);
    }
    qsort(plain, PASSES, sizeof *plain, ascending);
    qsort(streams, PASSES, sizeof *streams, ascending);
    out->plain_gb_s = plain[PASSES / 2];
    out->streams_gb_s = streams[PASSES / 2];
}

/* A multiple of two lines for every part. */
static size_t choose_part_words(uint64_t most_bytes, int parts) {
    uint64_t bytes = clt_memory_available_bytes() / 4;
    bytes = bytes < most_bytes ? bytes : most_bytes;
    bytes = bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
    size_t words = (size_t)(bytes / sizeof(uint64_t)) / (size_t)parts;
    return words - words % (2 * LINE_WORDS);
}

clt_status clt_bandwidth_measure(int threads, uint64_t most_bytes, clt_bandwidth *out, clt_err *err) {
    clt_pool *pool = NULL;
    *out = (clt_bandwidth){.passes = PASSES, .threads = threads};
    clt_status status = clt_pool_create(threads, &pool, err);
    if (status) return status;
    int parts = threads * PARTS_PER_THREAD;
    reader r = {.part_words = choose_part_words(most_bytes ? most_bytes : USUAL_BYTES, parts)};
    out->bytes = (uint64_t)r.part_words * sizeof(uint64_t) * (uint64_t)parts;
    r.data = clt_pages_alloc((size_t)out->bytes);
    if (!r.data) {
        status = clt_fail_memory(err, "measuring the memory's bandwidth", out->bytes);
    } else {
        clt_pool_run(pool, write_part, &r, parts);
        time_passes(pool, &r, parts, out);
        clt_pages_free(r.data, (size_t)out->bytes);
    }
    clt_pool_free(pool);
    return status;
}
