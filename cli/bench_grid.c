/* The grid of tests: evaluates prompts and single tokens of random ids in this process and times them. Sampling and text are
 * not part of it.
 *
 * A test is a point of the grid: depth tokens first (not timed), then n_prompt tokens at once, then n_gen tokens one by one.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "bench.h"
#include "bench_profile.h"
#include "open.h"
#include "out.h"
#include "signals.h"

typedef struct grid {
    cli_bench_run *b;
    cli_args args;           /* of the model at hand */
    culet_engine *engine;
    int engine_threads;      /* what it was opened with */
    double *ms, *ns, *ts;    /* [repetitions] */
    size_t done, total;      /* tests */
    cli_bench_limit limit;   /* of the last test; `after` serves as the next one's `before` */
    cli_bench_profile profile;
    clt_buf stages;          /* profiles as Markdown, written at the end */
} grid;

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

/* The whole prompt, but of the generation only enough to have touched every weight. */
static culet_status warm_up(culet_session *s, const cli_bench_test *t, const clt_ids *ids, culet_error *err) {
    cli_bench_test shorter = *t;
    double ms;
    shorter.n_gen = t->n_gen < 2 ? t->n_gen : 2;
    return run_once(s, &shorter, ids, &ms, err);
}

/* Generation with sampling, as users have it: n_gen passes of one token each. Without a prompt the first of them is the
 * first id's; behind one, the logits that are there already give one token more. */
static culet_status generate(culet_session *s, const cli_bench_test *t, const clt_ids *ids, const culet_sampling *sampling,
                             culet_error *err) {
    size_t before = (size_t)t->n_depth + (size_t)t->n_prompt;
    culet_generate_params p = {.prompt = ids->data, .n_prompt = before ? before : 1,
                               .max_tokens = t->n_gen + (before > 0), .sampling = *sampling, .raw = true};
    culet_reply reply = {0};
    p.sampling.ignore_eos = true;
    culet_status st = culet_generate(s, &p, &reply, err);
    culet_reply_free(&reply);
    return st;
}

/* One more run, watched stage by stage: watching costs a little, so it is none of the timed ones. */
static culet_status run_profiled(grid *g, culet_session *s, const cli_bench_test *t, const clt_ids *ids, culet_error *err) {
    size_t depth = (size_t)t->n_depth, n_prompt = (size_t)t->n_prompt;
    culet_error late = {0};
    culet_status st = depth ? culet_session_sync(s, ids->data, depth, NULL, err) : culet_session_rewind(s, 0, err);
    st = st ? st : cli_bench_profile_start(&g->profile, g->engine, err);
    if (st) {
        return st;
    }
    if (n_prompt) {
        st = culet_session_extend(s, ids->data + depth, n_prompt, err);
    }
    if (!st && t->n_gen) {
        st = generate(s, t, ids, &culet_engine_info(g->engine)->sampling, err);
    }
    culet_status stopped = cli_bench_profile_stop(&g->profile, g->engine, st ? &late : err);
    return st ? st : stopped;
}

static int run_all(grid *g, culet_session *s, const cli_bench_test *t, const clt_ids *ids) {
    const cli_args *args = g->b->args;
    culet_error failure = {0};
    cli_signals_hold(s);
    culet_status st = args->no_warmup ? CULET_OK : warm_up(s, t, ids, &failure);
    for (int i = 0; i < args->repetitions && !st; i++) {
        cli_progress("bench", (double)i / (double)args->repetitions);
        st = run_once(s, t, ids, &g->ms[i], &failure);
    }
    if (!st && args->profile) {
        st = run_profiled(g, s, t, ids, &failure);
    }
    cli_signals_release();
    cli_progress_end();
    if (cli_signals_caught()) {
        return cli_signals_exit();
    }
    return st ? cli_fail_engine(&failure) : 0;
}

/* ---- its record ---- */

static void put_limit(grid *g, const cli_bench_test *t, double avg_ts, cli_record *r) {
    bool bound = g->limit.known && t->n_gen && !t->n_prompt; /* only generation is bound by the memory */
    double gb = bound ? g->b->model.token_bytes * 1e-9 : NAN;
    double percent = 100 * avg_ts * gb / cli_bench_limit_gb_s(&g->limit);
    if (!g->b->args->bandwidth) {
        return;
    }
    cli_record_num(r, "bandwidth_before_gb_s", bound ? g->limit.before.plain_gb_s : NAN);
    cli_record_num(r, "bandwidth_after_gb_s", bound ? g->limit.after.plain_gb_s : NAN);
    cli_record_num(r, "bandwidth_streams_gb_s",
                   bound ? fmax(g->limit.before.streams_gb_s, g->limit.after.streams_gb_s) : NAN);
    cli_record_num(r, "gb_per_token", gb);
    cli_record_num(r, "limit_ts", cli_bench_limit_gb_s(&g->limit) / gb);
    cli_record_num(r, "limit_percent", percent);
    if (isfinite(percent)) {
        cli_record_cell(r, "GB/s before, after", -18, "%.1f, %.1f", g->limit.before.plain_gb_s, g->limit.after.plain_gb_s);
        cli_record_cell(r, "GB/token", -8, "%.3f", gb);
        cli_record_cell(r, "of limit", -8, "%.1f %%", percent);
    } else {
        cli_record_cell(r, "GB/s before, after", -18, "%s", "");
        cli_record_cell(r, "GB/token", -8, "%s", "");
        cli_record_cell(r, "of limit", -8, "%s", "");
    }
}

static void put_result(grid *g, const cli_bench_test *t, const char *started) {
    const cli_bench_run *b = g->b;
    size_t n = (size_t)b->args->repetitions;
    char name[64];
    cli_record r;
    for (size_t i = 0; i < n; i++) {
        g->ns[i] = round(g->ms[i] * 1e6);
        g->ts[i] = g->ms[i] > 0 ? (double)(t->n_prompt + t->n_gen) * 1000 / g->ms[i] : 0;
    }
    double avg_ts = cli_mean(g->ts, n), stddev_ts = cli_stddev(g->ts, n);
    cli_bench_test_name(t, name, sizeof(name));
    cli_bench_begin(b, "culet_bench", &r);
    cli_record_int(&r, "n_batch", t->batch);
    cli_record_int(&r, "n_ubatch", t->ubatch);
    cli_record_int(&r, "n_threads", b->model.threads);
    cli_record_text(&r, "type_k", cli_kv_name(t->kv_k));
    cli_record_text(&r, "type_v", cli_kv_name(t->kv_v));
    cli_record_int(&r, "n_prompt", t->n_prompt);
    cli_record_int(&r, "n_gen", t->n_gen);
    cli_record_int(&r, "n_depth", t->n_depth);
    cli_record_text(&r, "test", name);
    cli_record_text(&r, "test_time", started);
    cli_record_int(&r, "avg_ns", (int64_t)cli_mean(g->ns, n));
    cli_record_int(&r, "stddev_ns", (int64_t)cli_stddev(g->ns, n));
    cli_record_num(&r, "avg_ts", avg_ts);
    cli_record_num(&r, "stddev_ts", stddev_ts);
    cli_record_nums(&r, "samples_ns", g->ns, n);
    cli_record_nums(&r, "samples_ts", g->ts, n);
    cli_record_cell(&r, "model", 30, "%s", b->model.family);
    cli_record_cell(&r, "size", -10, "%.2f GiB", (double)b->model.file_bytes / (1 << 30));
    cli_record_cell(&r, "params", -10, "%.2f M", (double)b->model.parameters * 1e-6);
    cli_record_cell(&r, "level", 10, "%s", b->model.level);
    cli_record_cell(&r, "threads", -7, "%d", b->model.threads);
    cli_record_cell(&r, "k/v", 7, "%s/%s", cli_kv_name(t->kv_k), cli_kv_name(t->kv_v));
    cli_record_cell(&r, "batch", -8, "%d/%d", t->batch, t->ubatch);
    cli_record_cell(&r, "test", -15, "%s", name);
    cli_record_cell(&r, "t/s", -20, "%.2f ± %.2f", avg_ts, stddev_ts);
    put_limit(g, t, avg_ts, &r);
    if (b->args->profile) {
        cli_bench_profile_json(&g->profile, cli_record_json(&r, "profile"));
        cli_bench_profile_text(&g->profile, name, &g->stages);
    }
    cli_bench_put(g->b, &r);
}

/* ---- running ---- */

static int open_engine(grid *g, int threads) {
    if (g->engine && g->engine_threads == threads) {
        return 0;
    }
    culet_engine_close(g->engine);
    g->engine = NULL;
    g->engine_threads = threads;
    g->limit.known = false;
    int code = cli_open_engine(&g->args, CULET_OPEN_FULL, threads, &g->engine);
    if (!code) {
        code = cli_bench_model_take(g->b, g->engine);
    }
    if (!code) {
        cli_bench_header(g->b);
    }
    return code;
}

static void rest(int seconds) {
    struct timespec left = {.tv_sec = seconds};
    while (seconds && nanosleep(&left, &left)) {
    }
}

static void announce(grid *g, const cli_bench_test *t) {
    char name[64];
    cli_bench_test_name(t, name, sizeof(name));
    g->done++;
    if (g->b->args->show_tests) {
        cli_say("culet bench: test %zu of %zu: %s, %d threads, k/v %s/%s, batch %d/%d", g->done, g->total, name,
                g->b->model.threads, cli_kv_name(t->kv_k), cli_kv_name(t->kv_v), t->batch, t->ubatch);
    }
}

/* The bandwidth is measured right before and right after what it is the limit of. */
static int measure_around(grid *g, const cli_bench_test *t, bool after) {
    if (!g->b->args->bandwidth || !t->n_gen || t->n_prompt) {
        return 0;
    }
    if (!after && g->limit.known) {
        g->limit.before = g->limit.after;
        return 0;
    }
    int code = cli_bench_measure_bandwidth(g->b->args, g->b->model.threads, after ? &g->limit.after : &g->limit.before);
    g->limit.known |= after && !code;
    return code;
}

static int run_session(grid *g, culet_session *s, const cli_bench_test *t, size_t wanted) {
    char started[32];
    clt_ids ids = {0};
    cli_bench_now(started);
    int code = 0;
    if (!random_ids(culet_engine_info(g->engine), wanted, &ids)) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu ids", wanted);
    }
    code = code ? code : measure_around(g, t, false);
    code = code ? code : run_all(g, s, t, &ids);
    code = code ? code : measure_around(g, t, true);
    if (!code) {
        put_result(g, t, started);
    }
    clt_ids_free(&ids);
    return code;
}

static int run_test(void *user, const cli_bench_test *t) {
    grid *g = user;
    culet_session *s = NULL;
    size_t wanted = (size_t)t->n_depth + (size_t)t->n_prompt + (size_t)t->n_gen + g->b->args->profile;
    int code = open_engine(g, t->threads);
    if (code) {
        return code;
    }
    announce(g, t);
    rest(g->b->args->delay_s);
    cli_args args = g->args;
    args.context = args.context ? args.context : (int)(wanted < INT_MAX ? wanted : INT_MAX);
    args.batch = t->batch;
    args.ubatch = t->ubatch;
    args.kv_k = t->kv_k;
    args.kv_v = t->kv_v;
    code = cli_open_session(&args, g->engine, wanted, &s);
    if (!code) {
        code = run_session(g, s, t, wanted);
    }
    culet_session_close(s);
    return code;
}

static int count_test(void *user, const cli_bench_test *t) {
    (void)t;
    ++*(size_t *)user;
    return 0;
}

int cli_bench_grid(cli_bench_run *b) {
    const cli_args *args = b->args;
    size_t n = (size_t)args->repetitions, tests = 0;
    double *samples = clt_calloc(n, 3 * sizeof(*samples));
    if (!samples) {
        return cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    }
    cli_bench_each(args, count_test, &tests);
    grid g = {.b = b, .ms = samples, .ns = samples + n, .ts = samples + 2 * n, .total = tests * args->bench_models.n};
    int code = 0;
    for (size_t i = 0; i < args->bench_models.n && !code; i++) {
        g.args = *args;
        g.args.model = args->bench_models.items[i];
        code = cli_bench_each(args, run_test, &g);
        culet_engine_close(g.engine);
        g.engine = NULL;
    }
    if (!code && g.stages.len) {
        cli_bench_say(b, g.stages.data);
    }
    clt_buf_free(&g.stages);
    clt_free(samples);
    return code;
}
