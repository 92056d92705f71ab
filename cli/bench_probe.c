/* What a process does that bench started for one condition: opens the model, measures, writes one JSON object.
 *
 * The process is fresh, so its times of loading and its peak of memory are those of the condition alone. */
#include <stdio.h>
#include <sys/resource.h>
#include "base/json.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "bench.h"
#include "bench_image.h"
#include "bench_prompts.h"
#include "open.h"
#include "out.h"
#include "signals.h"

enum { PROBE_CONTEXT = 2048 };

typedef struct probe {
    const cli_args *args;
    culet_engine *engine;
    culet_session *session;
    clt_ids ids;
    bool is_chat;
    size_t n_prompt, n_reused, n_gen;
    double *ttft_ms, *prompt_ms, *predicted_ms; /* [repetitions] */
    size_t n;                                   /* of them */
    size_t prompt_n, predicted_n;               /* tokens evaluated and generated in each */
    clt_buf out;
    clt_jsonw w;
} probe;

/* ---- the object ---- */

static void put_num(probe *p, const char *key, double v) {
    clt_jsonw_key(&p->w, key);
    clt_jsonw_num(&p->w, v);
}

static void put_int(probe *p, const char *key, uint64_t v) {
    clt_jsonw_key(&p->w, key);
    clt_jsonw_int(&p->w, (int64_t)v);
}

static void put_nums(probe *p, const char *key, const double *v, size_t n) {
    clt_jsonw_key(&p->w, key);
    clt_jsonw_open(&p->w, '[');
    for (size_t i = 0; i < n; i++) {
        clt_jsonw_num(&p->w, v[i]);
    }
    clt_jsonw_close(&p->w, ']');
}

/* Milliseconds since bench started this process. */
static double since_start(const probe *p) {
    double start;
    return p->args->since && cli_read_real(p->args->since, &start) ? clt_now_ms() - start : 0;
}

/* Bytes that had to come from a disk for this process. */
static uint64_t bytes_from_disk(void) {
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) ? 0 : (uint64_t)use.ru_inblock * 512;
}

static void put_engine(probe *p) {
    const culet_model_info *info = culet_engine_info(p->engine);
    put_num(p, "load_ms", info->load_ms);
    put_int(p, "weight_bytes", info->weight_bytes);
    put_int(p, "threads", (uint64_t)info->threads);
    put_int(p, "rss_peak_bytes", clt_rss_peak_bytes());
}

/* ---- the work ---- */

static int open_all(probe *p, size_t wanted) {
    cli_args args = *p->args;
    args.threads = args.bench_threads.data[0];
    args.batch = args.bench_batch.data[0];
    args.ubatch = args.bench_ubatch.data[0];
    args.kv_k = args.bench_kv_k.data[0];
    args.kv_v = args.bench_kv_v.data[0];
    int code = cli_open_engine(&args, CULET_OPEN_FULL, args.threads, &p->engine);
    if (code) {
        return code;
    }
    int limit = culet_engine_info(p->engine)->context_limit;
    if (wanted > (size_t)limit) {
        return cli_failf(CLT_E_CONTEXT, "bench: %zu tokens are needed, the model's limit is %d", wanted, limit);
    }
    if (!args.context) {
        args.context = wanted > PROBE_CONTEXT ? (int)wanted : limit < PROBE_CONTEXT ? limit : PROBE_CONTEXT;
    }
    return cli_open_session(&args, p->engine, wanted, &p->session);
}

static int first_token(probe *p) {
    int code = open_all(p, 1);
    culet_error failure = {0};
    if (code) {
        return code;
    }
    int32_t bos = culet_engine_info(p->engine)->bos_id;
    if (culet_session_extend(p->session, &bos, 1, &failure)) {
        return cli_fail_engine(&failure);
    }
    put_num(p, "first_ms", since_start(p));
    put_int(p, "read_bytes", bytes_from_disk());
    put_engine(p);
    return 0;
}

static int open_text(probe *p) {
    int code = cli_open_engine(p->args, CULET_OPEN_TEXT, 1, &p->engine);
    if (!code) {
        put_num(p, "text_ms", since_start(p));
        put_num(p, "load_ms", culet_engine_info(p->engine)->load_ms);
    }
    return code;
}

/* One reply: the reused tokens are there before the clock starts. at < 0 = not kept. */
static culet_status reply_once(probe *p, int at, culet_error *err) {
    culet_generate_params g = {
        .prompt = p->ids.data,
        .n_prompt = p->n_prompt,
        .max_tokens = (int)p->n_gen,
        .sampling = culet_engine_info(p->engine)->sampling,
        .raw = true,
    };
    culet_reply reply = {0};
    g.sampling.temperature = 0;
    g.sampling.ignore_eos = true; /* every run has the same length */
    culet_status st = culet_session_rewind(p->session, 0, err);
    if (!st && p->n_reused) {
        st = culet_session_sync(p->session, p->ids.data, p->n_reused, NULL, err);
    }
    st = st ? st : culet_generate(p->session, &g, &reply, err);
    if (!st && at >= 0) {
        p->ttft_ms[at] = reply.timings.ttft_ms;
        p->prompt_ms[at] = reply.timings.prompt_ms;
        p->predicted_ms[at] = reply.timings.predicted_ms;
        p->prompt_n = reply.timings.prompt_n;
        p->predicted_n = reply.timings.predicted_n;
        p->n = (size_t)at + 1;
    }
    culet_reply_free(&reply);
    return st;
}

static int replies(probe *p) {
    const cli_args *a = p->args;
    culet_error failure = {0};
    p->n_prompt = (size_t)a->bench_prompt.data[0];
    p->n_reused = (size_t)a->bench_depth.data[0];
    p->n_gen = (size_t)a->bench_gen.data[0];
    int code = open_all(p, p->n_prompt + p->n_gen);
    code = code ? code : cli_bench_prompt(p->engine, p->n_prompt, &p->ids, &p->is_chat);
    if (code) {
        return code;
    }
    cli_signals_hold(p->session);
    culet_status st = a->no_warmup ? CULET_OK : reply_once(p, -1, &failure);
    for (int i = 0; i < a->repetitions && !st; i++) {
        st = reply_once(p, i, &failure);
    }
    cli_signals_release();
    if (cli_signals_caught()) {
        return cli_signals_exit();
    }
    if (st) {
        return cli_fail_engine(&failure);
    }
    put_nums(p, "ttft_ms", p->ttft_ms, p->n);
    put_nums(p, "prompt_ms", p->prompt_ms, p->n);
    put_nums(p, "predicted_ms", p->predicted_ms, p->n);
    put_int(p, "prompt_n", p->prompt_n);
    put_int(p, "reused_n", p->n_reused);
    put_int(p, "predicted_n", p->predicted_n);
    put_int(p, "kv_bytes", culet_session_kv_bytes(p->session));
    clt_jsonw_key(&p->w, "chat");
    clt_jsonw_bool(&p->w, p->is_chat);
    put_engine(p);
    return 0;
}

/* Passes over n_prompt rows, logits of each. */
static int rows(probe *p) {
    const cli_args *a = p->args;
    culet_error failure = {0};
    size_t n = (size_t)a->bench_prompt.data[0];
    int code = open_all(p, n);
    for (size_t i = 0; i < n && !code; i++) {
        clt_ids_push(&p->ids, (int32_t)(clt_random_u64(1, i, 0) % (uint64_t)culet_engine_info(p->engine)->vocab));
    }
    if (!code && p->ids.failed) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu ids", n);
    }
    if (code) {
        return code;
    }
    culet_status st = CULET_OK;
    cli_signals_hold(p->session);
    for (int i = a->no_warmup ? 0 : -1; i < a->repetitions && !st; i++) {
        st = culet_session_rewind(p->session, 0, &failure);
        double start = clt_now_ms();
        st = st ? st : culet_session_extend_all(p->session, p->ids.data, n, NULL, NULL, &failure);
        p->prompt_ms[i < 0 ? 0 : i] = clt_now_ms() - start;
    }
    cli_signals_release();
    if (cli_signals_caught()) {
        return cli_signals_exit();
    }
    if (st) {
        return cli_fail_engine(&failure);
    }
    put_nums(p, "pass_ms", p->prompt_ms, (size_t)a->repetitions);
    put_engine(p);
    return 0;
}

int cli_bench_probe(const cli_args *args) {
    size_t n = (size_t)args->repetitions;
    double *samples = clt_calloc(n, 3 * sizeof(*samples));
    probe p = {.args = args, .ttft_ms = samples, .prompt_ms = samples + n, .predicted_ms = samples + 2 * n};
    if (!samples) {
        return cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    }
    p.w.out = &p.out;
    clt_jsonw_open(&p.w, '{');
    int code = 0;
    switch ((cli_probe)args->probe) {
    case CLI_PROBE_FIRST:
        code = first_token(&p);
        break;
    case CLI_PROBE_TEXT:
        code = open_text(&p);
        break;
    case CLI_PROBE_REPLY:
        code = replies(&p);
        break;
    case CLI_PROBE_ROWS:
        code = rows(&p);
        break;
    case CLI_PROBE_IMAGE:
        code = open_all(&p, 1);
        code = code ? code : cli_bench_image(args, p.engine, p.session, &p.w);
        break;
    }
    if (!code) {
        clt_jsonw_close(&p.w, '}');
        clt_buf_putc(&p.out, '\n');
        cli_out_buf(&p.out);
    }
    culet_session_close(p.session);
    culet_engine_close(p.engine);
    clt_ids_free(&p.ids);
    clt_buf_free(&p.out);
    clt_free(samples);
    return code;
}
