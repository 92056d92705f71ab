/* culet bench: evaluates prompts and single tokens of random ids and times them. Sampling and text are not part of it.
 *
 * A test is a point of the grid: depth tokens first (not timed), then n_prompt tokens at once, then n_gen tokens one by one.
 */
#include "bench.h"
#include <time.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "open.h"
#include "out.h"
#include "signals.h"
#include "verbs.h"

typedef struct bench {
    const cli_args *args;
    culet_engine *engine;
    int engine_threads;      /* what it was opened with */
    cli_bench_report report;
    double *ms;              /* [repetitions] */
} bench;

/* ---- one test ---- */

/* The same ids in every run and on every machine. */
static bool random_ids(const culet_model_info *info, size_t n, clt_ids *out) {
    clt_ids_push(out, info->bos_id);
    for (size_t i = 1; i < n; i++) {
        clt_ids_push(out, (int32_t)(clt_random_u64(1, i, 0) % (uint64_t)info->vocab));
    }
    return !out->failed;
}

/* One run; *ms = time of everything behind the depth. */
static culet_status run_once(culet_session *s, const cli_bench_test *t, const clt_ids *ids, double *ms, culet_error *err) {
    size_t depth = (size_t)t->n_depth, n_prompt = (size_t)t->n_prompt;
    culet_status st = depth ? culet_session_sync(s, ids->data, depth, NULL, err) : culet_session_rewind(s, 0, err);
    double start = clt_now_ms();
    if (!st && n_prompt) {
        st = culet_session_extend(s, ids->data + depth, n_prompt, err);
    }
    for (int i = 0; i < t->n_gen && !st; i++) {
        st = culet_session_extend(s, ids->data + depth + n_prompt + (size_t)i, 1, err);
    }
    *ms = clt_now_ms() - start;
    return st;
}

/* One warm-up, then the timed runs. */
static int run_all(bench *b, culet_session *s, const cli_bench_test *t, const clt_ids *ids) {
    culet_error failure = {0};
    cli_signals_hold(s);
    culet_status st = CULET_OK;
    for (int i = -1; i < b->args->repetitions && !st; i++) {
        double ms;
        st = run_once(s, t, ids, &ms, &failure);
        if (i >= 0) {
            b->ms[i] = ms;
        }
        cli_progress("bench", (double)(i + 2) / (double)(b->args->repetitions + 1));
    }
    cli_signals_release();
    cli_progress_end();
    if (cli_signals_caught()) {
        return cli_signals_exit();
    }
    return st ? cli_fail_engine(&failure) : 0;
}

static int open_engine(bench *b, int threads) {
    if (b->engine && b->engine_threads == threads) {
        return 0;
    }
    culet_engine_close(b->engine);
    b->engine = NULL;
    b->engine_threads = threads;
    return cli_open_engine(b->args, CULET_OPEN_FULL, threads, &b->engine);
}

static int run_test(bench *b, const cli_bench_test *t) {
    culet_session *s = NULL;
    clt_ids ids = {0};
    size_t wanted = (size_t)t->n_depth + (size_t)t->n_prompt + (size_t)t->n_gen;
    int code = open_engine(b, t->threads);
    if (code) {
        return code;
    }
    cli_args args = *b->args;
    args.context = args.context ? args.context : (int)(wanted < INT_MAX ? wanted : INT_MAX);
    args.batch = t->batch;
    args.ubatch = t->ubatch;
    args.kv_k = t->kv_k;
    args.kv_v = t->kv_v;
    cli_bench_result result = {.test = *t, .info = culet_engine_info(b->engine), .ms = b->ms, .n = b->args->repetitions};
    time_t now = time(NULL);
    struct tm utc;
    strftime(result.time, sizeof(result.time), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    code = cli_open_session(&args, b->engine, wanted, &s);
    if (!code && !random_ids(result.info, wanted, &ids)) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu ids", wanted);
    }
    if (!code) {
        code = run_all(b, s, t, &ids);
    }
    if (!code) {
        cli_bench_row(&b->report, &result);
    }
    clt_ids_free(&ids);
    culet_session_close(s);
    return code;
}

/* ---- the grid ---- */

/* Prompts alone, generation alone, then pairs, as llama-bench orders them. */
static int run_lengths(bench *b, cli_bench_test t) {
    const cli_args *args = b->args;
    int code = 0;
    for (size_t i = 0; i < args->bench_prompt.len && !code; i++) {
        t.n_prompt = args->bench_prompt.data[i];
        t.n_gen = 0;
        code = t.n_prompt ? run_test(b, &t) : 0;
    }
    for (size_t i = 0; i < args->bench_gen.len && !code; i++) {
        t.n_prompt = 0;
        t.n_gen = args->bench_gen.data[i];
        code = t.n_gen ? run_test(b, &t) : 0;
    }
    for (size_t i = 0; i + 1 < args->bench_pairs.len && !code; i += 2) {
        t.n_prompt = args->bench_pairs.data[i];
        t.n_gen = args->bench_pairs.data[i + 1];
        code = t.n_prompt || t.n_gen ? run_test(b, &t) : 0;
    }
    return code;
}

/* Every combination of the other lists: the digits of one running number, the last list fastest. */
static int run_grid(bench *b) {
    const cli_args *a = b->args;
    const clt_ids *lists[] = {&a->bench_threads, &a->bench_depth, &a->bench_batch,
                              &a->bench_ubatch,  &a->bench_kv_k,  &a->bench_kv_v};
    enum { LISTS = sizeof(lists) / sizeof(lists[0]) };
    size_t total = 1;
    int code = 0;
    for (size_t l = 0; l < LISTS; l++) {
        total *= lists[l]->len;
    }
    for (size_t i = 0; i < total && !code; i++) {
        int value[LISTS];
        size_t rest = i;
        for (size_t l = LISTS; l-- > 0; rest /= lists[l]->len) {
            value[l] = lists[l]->data[rest % lists[l]->len];
        }
        code = run_lengths(b, (cli_bench_test){.threads = value[0],
                                               .n_depth = value[1],
                                               .batch = value[2],
                                               .ubatch = value[3],
                                               .kv_k = value[4],
                                               .kv_v = value[5]});
    }
    return code;
}

static void default_to(clt_ids *list, int value) {
    if (!list->len) {
        clt_ids_push(list, value);
    }
}

int cli_bench(const cli_args *given) {
    cli_args args = *given;
    bench b = {.args = &args, .report = {.format = given->format}};
    int code = cli_check_operands(given, 0);
    if (code) {
        return code;
    }
    /* The lists belong to `given`, whose caller frees them: defaults are put into copies. */
    clt_ids *lists[] = {&args.bench_prompt, &args.bench_gen, &args.bench_threads, &args.bench_depth, &args.bench_batch,
                        &args.bench_ubatch, &args.bench_kv_k, &args.bench_kv_v};
    const int defaults[] = {512, 128, 0, 0, 2048, 512, CULET_KV_F16, CULET_KV_F16};
    enum { LISTS = sizeof(lists) / sizeof(lists[0]) };
    bool added[LISTS];
    for (size_t i = 0; i < LISTS; i++) {
        bool lengths = i < 2 && given->bench_pairs.len; /* only the pairs were asked for */
        added[i] = !lists[i]->len && !lengths;
        if (added[i]) {
            default_to(lists[i], defaults[i]);
            code = lists[i]->failed ? cli_failf(CLT_E_MEMORY, "bench: out of memory") : code;
        }
    }
    b.ms = clt_calloc((size_t)args.repetitions, sizeof(*b.ms));
    if (!code && !b.ms) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for %d times", args.repetitions);
    }
    if (!code) {
        code = run_grid(&b);
    }
    if (!code) {
        cli_bench_end(&b.report);
    }
    for (size_t i = 0; i < LISTS; i++) {
        if (added[i]) {
            clt_ids_free(lists[i]);
        }
    }
    clt_free(b.ms);
    culet_engine_close(b.engine);
    return code;
}
