/* The published systems' tables with ours beside them. Each condition is measured once, in a process of its own, and serves
 * every line that asks for it. What this version cannot do is said in its line, not left out. */
#include <math.h>
#include <stdio.h>
#include "base/mem.h"
#include "bench_files.h"
#include "bench_published.h"
#include "bench_spawn.h"
#include "open.h"
#include "out.h"

/* What was measured; NaN where it could not be. */
typedef struct ours {
    double generation, prefill, prefill_52;   /* tokens per second */
    double ttft_28, ttft_512, ttft_second;    /* ms */
    double load_cold, load_warm;              /* s */
    double memory, disk;                      /* GB */
    int threads;
    cli_bench_limit limit;
} ours;

/* ---- measuring ---- */

/* One reply's process; the medians that are wanted, or NULL. */
static int reply(cli_bench_run *b, cli_condition c, double *ttft_ms, double *prompt_ts, double *generation_ts, ours *o) {
    size_t n = (size_t)c.repetitions;
    double *v = clt_calloc(n, sizeof(*v));
    clt_json *doc = NULL;
    int code = v ? cli_bench_spawn(b, &c, &doc) : cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    if (!code) {
        double evaluated = cli_json_number(doc, "prompt_n"), made = cli_json_number(doc, "predicted_n");
        size_t got = cli_json_numbers(doc, "ttft_ms", v, n);
        *(ttft_ms ? ttft_ms : &(double){0}) = cli_median(v, got);
        got = cli_json_numbers(doc, "prompt_ms", v, n);
        *(prompt_ts ? prompt_ts : &(double){0}) = evaluated * 1000 / cli_median(v, got);
        got = cli_json_numbers(doc, "predicted_ms", v, n);
        *(generation_ts ? generation_ts : &(double){0}) = made * 1000 / cli_median(v, got);
        o->threads = (int)cli_json_number(doc, "threads");
    }
    clt_json_free(doc);
    clt_free(v);
    return code;
}

static cli_condition turn(const cli_bench_run *b, int n_prompt, int n_reused, int n_gen) {
    const cli_args *a = b->args;
    return (cli_condition){.probe = CLI_PROBE_REPLY, .threads = a->bench_threads.data[0], .n_prompt = n_prompt,
                           .n_reused = n_reused, .n_gen = n_gen, .repetitions = a->repetitions, .no_warmup = a->no_warmup};
}

/* Seconds from the start of a process to its first token. */
static int load_once(cli_bench_run *b, double *seconds) {
    clt_json *doc;
    cli_condition c = {.probe = CLI_PROBE_FIRST, .threads = b->args->bench_threads.data[0]};
    int code = cli_bench_spawn(b, &c, &doc);
    *seconds = cli_json_number(doc, "first_ms") / 1000;
    clt_json_free(doc);
    return code;
}

static int loads(cli_bench_run *b, ours *o) {
    size_t n = (size_t)b->args->repetitions, n_cold = 0;
    double *v = clt_calloc(n, 2 * sizeof(*v));
    cli_files files = {0};
    clt_err err;
    clt_err_clear(&err);
    int code = v ? 0 : cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    if (!code && cli_files_of_model(b->model.path, &files, &err)) {
        code = cli_fail(&err);
    }
    if (!code && !b->args->no_warmup) {
        code = load_once(b, &v[0]); /* brings the file into the page cache */
    }
    for (size_t i = 0; i < n && !code; i++) {
        code = load_once(b, &v[i]);
        if (!code && cli_files_make_cold(&files)) {
            code = load_once(b, &v[n + n_cold++]);
        }
    }
    if (!code) {
        o->load_warm = cli_median(v, n);
        o->load_cold = cli_median(v + n, n_cold);
    }
    cli_files_free(&files);
    clt_free(v);
    return code;
}

static int memory(cli_bench_run *b, ours *o) {
    cli_condition c = turn(b, 512, 0, 128);
    clt_json *doc;
    c.repetitions = 1;
    c.no_warmup = true;
    int code = cli_bench_spawn(b, &c, &doc);
    o->memory = cli_json_number(doc, "rss_peak_bytes") * 1e-9;
    clt_json_free(doc);
    return code;
}

static void step(const cli_bench_run *b, int done, const char *what) {
    enum { STEPS = 8 };
    if (b->args->show_tests) {
        cli_say("culet bench: %d of %d: %s", done + 1, STEPS, what);
    }
    cli_progress("suite", (double)done / STEPS);
}

static int measure(cli_bench_run *b, ours *o) {
    *o = (ours){.load_cold = NAN, .disk = (double)b->model.file_bytes * 1e-9};
    int given = b->args->bench_threads.data[0], threads = given ? given : b->model.threads;
    step(b, 0, "the memory's bandwidth");
    int code = cli_bench_measure_bandwidth(b->args, threads, &o->limit.before);
    step(b, 1, "loading");
    code = code ? code : loads(b, o);
    step(b, 2, "52 tokens, 256 generated");
    code = code ? code : reply(b, turn(b, 52, 0, 256), NULL, &o->prefill_52, &o->generation, o);
    step(b, 3, "28 tokens");
    code = code ? code : reply(b, turn(b, 28, 0, 1), &o->ttft_28, NULL, NULL, o);
    step(b, 4, "512 tokens");
    code = code ? code : reply(b, turn(b, 512, 0, 1), &o->ttft_512, &o->prefill, NULL, o);
    step(b, 5, "a second turn");
    code = code ? code : reply(b, turn(b, 53, 35, 1), &o->ttft_second, NULL, NULL, o);
    step(b, 6, "memory");
    code = code ? code : memory(b, o);
    step(b, 7, "the memory's bandwidth again");
    code = code ? code : cli_bench_measure_bandwidth(b->args, threads, &o->limit.after);
    o->limit.known = !code;
    cli_progress_end();
    return code;
}

/* ---- the first table ---- */

/* A cell with a number, or with a text where there is none. */
static void put_number(cli_record *r, const char *title, int width, double v, int digits, const char *unit,
                       const char *otherwise) {
    if (isfinite(v)) {
        cli_record_cell(r, title, width, "%.*f%s%s", digits, v, unit[0] ? " " : "", unit);
    } else {
        cli_record_cell(r, title, width, "%s", otherwise);
    }
}

/* A line of theirs (`p`), or ours. */
static void put_speed(cli_bench_run *b, const cli_published_speed *p, const char *status, double prefill,
                      double generation) {
    cli_record r;
    cli_bench_begin(b, "culet_bench_published_speed", &r);
    cli_record_text(&r, "measurement", "published A");
    cli_record_text(&r, "status", status);
    cli_record_text(&r, "runtime", p->runtime);
    cli_record_text(&r, "model", p->model);
    cli_record_text(&r, "published_prefill_ts", p->prefill);
    cli_record_text(&r, "published_generation_ts", p->generation);
    cli_record_num(&r, "prefill_ts", prefill);
    cli_record_num(&r, "generation_ts", generation);
    cli_record_cell(&r, "runtime", 49, "%s", p->runtime);
    cli_record_cell(&r, "model", 22, "%s", p->model);
    put_number(&r, "prompt", -8, prefill, 1, "", p->prefill);
    put_number(&r, "generation", -28, generation, 2, "", p->generation);
    cli_bench_put(b, &r);
}

static void put_speeds(cli_bench_run *b, const ours *o) {
    char runtime[96];
    cli_published_speed mine = {.runtime = runtime, .model = b->model.family, .prefill = "", .generation = ""};
    for (size_t i = 0; i < cli_n_published_speeds; i++) {
        put_speed(b, &cli_published_speeds[i], "published", NAN, NAN);
    }
    snprintf(runtime, sizeof(runtime), "culet " CULET_VERSION ", CPU (%s), %d threads", b->model.level, o->threads);
    put_speed(b, &mine, "measured", o->prefill_52, o->generation);
    snprintf(runtime, sizeof(runtime), "culet " CULET_VERSION ", with the MTP assistant");
    mine.generation = cli_published_not_yet;
    put_speed(b, &mine, cli_published_not_yet, NAN, NAN);
}

/* ---- the second table ---- */

typedef struct answer {
    double value;
    const char *unit;
    int digits;
} answer;

static answer answer_to(cli_ours which, const ours *o) {
    switch (which) {
    case CLI_OURS_GENERATION:
        return (answer){o->generation, "tokens/s", 2};
    case CLI_OURS_PREFILL_512:
        return (answer){o->prefill, "tokens/s", 1};
    case CLI_OURS_TTFT_28:
        return (answer){o->ttft_28, "ms", 1};
    case CLI_OURS_TTFT_512:
        return (answer){o->ttft_512, "ms", 1};
    case CLI_OURS_TTFT_SECOND:
        return (answer){o->ttft_second, "ms", 1};
    case CLI_OURS_LOAD_COLD:
        return (answer){o->load_cold, "s", 2};
    case CLI_OURS_LOAD_WARM:
        return (answer){o->load_warm, "s", 2};
    case CLI_OURS_MEMORY:
        return (answer){o->memory, "GB", 2};
    case CLI_OURS_DISK:
        return (answer){o->disk, "GB", 2};
    case CLI_OURS_NONE:
        break;
    }
    return (answer){NAN, "", 0};
}

static void put_line(cli_bench_run *b, const cli_published_line *p, const ours *o) {
    cli_record r;
    answer a = answer_to(p->ours, o);
    const char *status = isfinite(a.value) ? "measured" : p->why ? p->why : "not measured: the file stays in the page cache";
    cli_bench_begin(b, "culet_bench_published_line", &r);
    cli_record_text(&r, "measurement", "published B");
    cli_record_text(&r, "item", p->item);
    cli_record_text(&r, "published", p->stated);
    cli_record_text(&r, "status", status);
    cli_record_int(&r, "n_threads", o->threads);
    cli_record_num(&r, "value", a.value);
    cli_record_text(&r, "unit", a.unit);
    cli_record_cell(&r, "item", 57, "%s", p->item);
    cli_record_cell(&r, "published", 32, "%s", p->stated);
    put_number(&r, "culet", 48, a.value, a.digits, a.unit, status);
    cli_bench_put(b, &r);
}

/* ---- how near to the limit ---- */

static void put_limit(cli_bench_run *b, const ours *o) {
    cli_record r;
    double gb_s = cli_bench_limit_gb_s(&o->limit), gb = b->model.token_bytes * 1e-9;
    double percent = 100 * o->generation * gb / gb_s;
    cli_bench_begin(b, "culet_bench_published_limit", &r);
    cli_record_text(&r, "measurement", "limit");
    cli_record_num(&r, "bandwidth_before_gb_s", o->limit.before.plain_gb_s);
    cli_record_num(&r, "bandwidth_after_gb_s", o->limit.after.plain_gb_s);
    cli_record_num(&r, "bandwidth_streams_gb_s", fmax(o->limit.before.streams_gb_s, o->limit.after.streams_gb_s));
    cli_record_num(&r, "gb_per_token", gb);
    cli_record_num(&r, "limit_ts", gb_s / gb);
    cli_record_num(&r, "limit_percent", percent);
    cli_record_cell(&r, "memory's bandwidth before, after", -32, "%.1f, %.1f GB/s", o->limit.before.plain_gb_s,
                    o->limit.after.plain_gb_s);
    put_number(&r, "read per token", -14, gb, 3, "GB", "");
    put_number(&r, "limit of generation", -19, gb_s / gb, 2, "tokens/s", "");
    put_number(&r, "reached", -8, percent, 1, "%", "");
    cli_bench_put(b, &r);
}

static void put_all(cli_bench_run *b, const ours *o) {
    cli_bench_header(b);
    cli_bench_sayf(b, "%d threads, keys and values %s and %s.", o->threads, cli_kv_name(b->args->bench_kv_k.data[0]),
                   cli_kv_name(b->args->bench_kv_v.data[0]));
    cli_bench_say(b, cli_published_speed_title);
    put_speeds(b, o);
    cli_bench_say(b, cli_published_line_title);
    for (size_t i = 0; i < cli_n_published_lines; i++) {
        put_line(b, &cli_published_lines[i], o);
    }
    cli_bench_say(b, "What the memory allows:");
    put_limit(b, o);
    cli_bench_say(b, cli_published_differs);
}

int cli_bench_suite(cli_bench_run *b) {
    const cli_args *a = b->args;
    int code = cli_bench_check_single(a, "--suite");
    if (!code && a->bench_threads.len > 1) {
        code = cli_failf(CLT_E_USAGE, "-t: --suite takes one value of it");
    }
    for (size_t i = 0; i < a->bench_models.n && !code; i++) {
        ours o;
        code = cli_bench_model_inspect(b, a->bench_models.items[i]);
        code = code ? code : measure(b, &o);
        if (!code) {
            put_all(b, &o);
        }
    }
    return code;
}
