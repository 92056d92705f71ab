/* Measurements that each take a process of their own: loading, the first token, memory, a picture, passes over several rows. */
#include <math.h>
#include <stdio.h>
#include "base/mem.h"
#include "bench_files.h"
#include "bench_image.h"
#include "bench_spawn.h"
#include "out.h"

enum { MANY = 4, SHORT_TOKENS = 100 }; /* short prompts are timed four times as often: single ones vary most */

/* One line of results. */
typedef struct measured {
    const char *name, *unit;     /* unit: ms or GB */
    const char *condition;
    const char *beside;          /* what `reference` is, or "" */
    char note[256];
    int threads;
    const cli_condition *reply;  /* NULL where there is none */
    double *v;                   /* [n]; sorted by put */
    size_t n;
    double reference;
} measured;

static void put(cli_bench_run *b, measured *m) {
    cli_record r;
    const char *unit = m->unit;
    int digits = unit[0] == 'm' ? 1 : 3;
    cli_bench_begin(b, "culet_bench_measure", &r);
    cli_record_text(&r, "measurement", m->name);
    cli_record_text(&r, "condition", m->condition);
    cli_record_int(&r, "n_threads", m->threads);
    cli_record_int(&r, "prompt_tokens", m->reply ? m->reply->n_prompt : 0);
    cli_record_int(&r, "reused_tokens", m->reply ? m->reply->n_reused : 0);
    cli_record_int(&r, "generated_tokens", m->reply ? m->reply->n_gen : 0);
    cli_record_text(&r, "unit", unit);
    cli_record_nums(&r, "samples", m->v, m->n);
    double median = cli_median(m->v, m->n), p95 = cli_percentile(m->v, m->n, 0.95), ratio = median / m->reference;
    double least = m->n ? m->v[0] : NAN, most = m->n ? m->v[m->n - 1] : NAN;
    cli_record_num(&r, "p50", median);
    cli_record_num(&r, "p95", p95);
    cli_record_num(&r, "min", least);
    cli_record_num(&r, "max", most);
    cli_record_text(&r, "reference_name", m->beside);
    cli_record_num(&r, "reference", m->reference);
    cli_record_num(&r, "ratio", ratio);
    cli_record_text(&r, "note", m->note);
    cli_record_cell(&r, "measurement", 20, "%s", m->name);
    cli_record_cell(&r, "condition", 38, "%s", m->condition);
    cli_record_cell(&r, "threads", -7, "%d", m->threads);
    if (m->n) {
        cli_record_cell(&r, "median", -12, "%.*f %s", digits, median, unit);
        cli_record_cell(&r, "95 %", -12, "%.*f %s", digits, p95, unit);
        cli_record_cell(&r, "range", -17, "%.*f–%.*f", digits, least, digits, most);
    } else {
        cli_record_cell(&r, "median", -12, "%s", "");
        cli_record_cell(&r, "95 %", -12, "%s", "");
        cli_record_cell(&r, "range", -17, "%s", "");
    }
    if (isfinite(ratio)) {
        cli_record_cell(&r, "beside", 44, "%.2f × %s (%.*f %s)", ratio, m->beside, digits, m->reference, unit);
    } else {
        cli_record_cell(&r, "beside", 44, "%s", m->note);
    }
    cli_bench_put(b, &r);
}

/* ---- loading ---- */

/* One process up to its first token; *ms and, if wanted, the bytes that came from the disk. */
static int load_once(const cli_bench_run *b, int threads, double *ms, double *read_bytes, int *used_threads) {
    clt_json *doc;
    int code = cli_bench_spawn(b, &(cli_condition){.probe = CLI_PROBE_FIRST, .threads = threads}, &doc);
    if (!code) {
        *ms = cli_json_number(doc, "first_ms");
        *read_bytes = cli_json_number(doc, "read_bytes");
        *used_threads = (int)cli_json_number(doc, "threads");
    }
    clt_json_free(doc);
    return code;
}

static int load_warm(cli_bench_run *b, int threads, double *v) {
    size_t n = (size_t)b->args->repetitions;
    double read_bytes;
    int used = threads, code = 0;
    for (int i = b->args->no_warmup ? 0 : -1; i < (int)n && !code; i++) {
        double ms;
        cli_progress("load warm", (double)(i + 1) / (double)(n + 1));
        code = load_once(b, threads, &ms, &read_bytes, &used);
        if (i >= 0) {
            v[i] = ms;
        }
    }
    cli_progress_end();
    if (!code) {
        put(b, &(measured){.name = "load", .unit = "ms", .condition = "to the first token, page cache warm", .beside = "",
                           .threads = used, .v = v, .n = n, .reference = NAN});
    }
    return code;
}

static int load_text(cli_bench_run *b, double *v) {
    size_t n = (size_t)b->args->repetitions;
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        clt_json *doc;
        code = cli_bench_spawn(b, &(cli_condition){.probe = CLI_PROBE_TEXT, .threads = 1}, &doc);
        v[i] = cli_json_number(doc, "load_ms");
        clt_json_free(doc);
    }
    if (!code) {
        put(b, &(measured){.name = "load", .unit = "ms", .condition = "vocabulary and merges alone", .beside = "",
                           .threads = 1, .v = v, .n = n, .reference = NAN});
    }
    return code;
}

static int load_cold(cli_bench_run *b, int threads, const cli_files *files, double *v, double *disk) {
    size_t n = (size_t)b->args->repetitions;
    double read_bytes = 0, last_read;
    clt_err err;
    clt_err_clear(&err);
    int used = threads, code = 0;
    char beside[64];
    bool cold = true;
    for (size_t i = 0; i < n && !code && cold; i++) {
        cli_progress("load cold", (double)i / (double)n);
        cold = cli_files_make_cold(files);
        code = cold ? load_once(b, threads, &v[i], &last_read, &used) : 0;
        read_bytes = fmax(read_bytes, last_read = cold && !code ? last_read : 0);
        if (!code && cold && (cold = cli_files_make_cold(files))) {
            uint64_t bytes = last_read > 0 ? (uint64_t)last_read : files->bytes;
            code = cli_files_read(files, bytes, &disk[i], &err) ? cli_fail(&err) : 0;
        }
    }
    cli_progress_end();
    measured m = {.name = "load", .unit = "ms", .condition = "to the first token, from the disk", .threads = used,
                  .beside = beside, .v = v, .n = cold ? n : 0};
    m.reference = cold ? cli_median(disk, n) : NAN;
    if (cold) {
        snprintf(m.note, sizeof(m.note), "%.0f MB came from the disk", read_bytes * 1e-6);
        snprintf(beside, sizeof(beside), "reading %.2f GB", (read_bytes > 0 ? read_bytes : (double)files->bytes) * 1e-9);
    } else {
        snprintf(m.note, sizeof(m.note), "not measured: the file stays in the page cache");
        beside[0] = 0;
    }
    if (!code) {
        put(b, &m);
    }
    return code;
}

static int measure_load(cli_bench_run *b, int threads) {
    size_t n = (size_t)b->args->repetitions;
    double *v = clt_calloc(n, 2 * sizeof(*v));
    cli_files files = {0};
    clt_err err;
    clt_err_clear(&err);
    int code = v ? 0 : cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    if (!code && cli_files_of_model(b->model.path, &files, &err)) {
        code = cli_fail(&err);
    }
    code = code ? code : load_warm(b, threads, v);
    code = code ? code : load_text(b, v);
    code = code ? code : load_cold(b, threads, &files, v, v + n);
    cli_files_free(&files);
    clt_free(v);
    return code;
}

/* ---- replies ---- */

static int measure_reply(cli_bench_run *b, const char *name, const char *condition, cli_condition *c, double *v) {
    clt_json *doc;
    int code = cli_bench_spawn(b, c, &doc);
    if (!code) {
        measured m = {.name = name, .unit = "ms", .condition = condition, .beside = "", .reply = c,
                      .threads = (int)cli_json_number(doc, "threads"), .v = v, .reference = NAN};
        m.n = cli_json_numbers(doc, "ttft_ms", v, (size_t)c->repetitions);
        snprintf(m.note, sizeof(m.note), "%s", clt_json_is_true(clt_json_get(doc, "chat")) ? "a chat" : "bare text");
        put(b, &m);
    }
    clt_json_free(doc);
    return code;
}

static int measure_ttft(cli_bench_run *b, int threads) {
    static const struct {
        const char *condition;
        int n_prompt, n_reused;
    } conditions[] = {
        {"28 tokens", 28, 0},
        {"512 tokens", 512, 0},
        {"second turn: 53 tokens, 35 reused", 53, 35},
        {"second turn: 512 + reply 64 + new 32", 608, 576},
    };
    enum { CONDITIONS = sizeof(conditions) / sizeof(conditions[0]) };
    size_t most = (size_t)b->args->repetitions * MANY;
    double *v = clt_calloc(most, sizeof(*v));
    int code = v ? 0 : cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", most);
    for (size_t i = 0; i < CONDITIONS && !code; i++) {
        cli_condition c = {.probe = CLI_PROBE_REPLY, .threads = threads, .n_prompt = conditions[i].n_prompt,
                           .n_reused = conditions[i].n_reused, .n_gen = 1, .repetitions = b->args->repetitions,
                           .no_warmup = b->args->no_warmup};
        c.repetitions *= c.n_prompt - c.n_reused <= SHORT_TOKENS ? MANY : 1;
        cli_progress("ttft", (double)i / CONDITIONS);
        code = measure_reply(b, "time to first token", conditions[i].condition, &c, v);
    }
    cli_progress_end();
    clt_free(v);
    return code;
}

static int measure_memory(cli_bench_run *b, int threads) {
    cli_condition c = {.probe = CLI_PROBE_REPLY, .threads = threads, .n_prompt = 512, .n_gen = 128, .repetitions = 1,
                       .no_warmup = true};
    clt_json *doc;
    int code = cli_bench_spawn(b, &c, &doc);
    if (!code) {
        double gb = cli_json_number(doc, "rss_peak_bytes") * 1e-9;
        measured m = {.name = "peak resident memory", .unit = "GB", .condition = "512-token prompt, 128 tokens", .reply = &c,
                      .beside = "the model's files", .threads = (int)cli_json_number(doc, "threads"), .v = &gb, .n = 1,
                      .reference = (double)b->model.file_bytes * 1e-9};
        snprintf(m.note, sizeof(m.note), "of which packed weights %.3f GB, keys and values %.3f GB",
                 cli_json_number(doc, "weight_bytes") * 1e-9, cli_json_number(doc, "kv_bytes") * 1e-9);
        put(b, &m);
    }
    clt_json_free(doc);
    return code;
}

/* ---- passes over several rows ---- */

/* The bandwidth is measured around the passes. */
static int measure_rows(cli_bench_run *b, int threads, int n_rows, cli_bench_limit *limit, double *v) {
    cli_condition c = {.probe = CLI_PROBE_ROWS, .threads = threads, .n_prompt = n_rows, .repetitions = b->args->repetitions,
                       .no_warmup = b->args->no_warmup};
    char condition[64];
    clt_json *doc;
    int code = cli_bench_spawn(b, &c, &doc);
    limit->before = limit->after;
    if (!code) {
        code = cli_bench_measure_bandwidth(b->args, (int)cli_json_number(doc, "threads"), &limit->after);
    }
    if (!code) {
        double gb_s = cli_bench_limit_gb_s(limit);
        measured m = {.name = "pass over rows", .unit = "ms", .condition = condition, .reply = &c, .v = v,
                      .beside = "the memory's time for one", .threads = (int)cli_json_number(doc, "threads"),
                      .reference = b->model.token_bytes / gb_s * 1e-6};
        m.n = cli_json_numbers(doc, "pass_ms", v, (size_t)c.repetitions);
        snprintf(condition, sizeof(condition), "%d row%s, logits of each", n_rows, n_rows == 1 ? "" : "s");
        snprintf(m.note, sizeof(m.note), "%.3f GB a row, %.1f and %.1f GB/s before and after", b->model.token_bytes * 1e-9,
                 limit->before.plain_gb_s, limit->after.plain_gb_s);
        put(b, &m);
    }
    clt_json_free(doc);
    return code;
}

static int measure_all_rows(cli_bench_run *b, int threads) {
    const clt_ids *list = &b->args->bench_rows;
    size_t n = (size_t)b->args->repetitions;
    int used = threads ? threads : b->model.threads;
    cli_bench_limit limit = {.known = true};
    double *v = clt_calloc(n, sizeof(*v));
    int code = v ? 0 : cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    code = code ? code : cli_bench_measure_bandwidth(b->args, used, &limit.after);
    for (size_t i = 0; i < list->len && !code; i++) {
        code = measure_rows(b, threads, list->data[i], &limit, v);
    }
    clt_free(v);
    return code;
}

/* ---- a picture ---- */

/* One line of the process's times; key of a list that it is laid beside, or NULL. */
static void put_picture(cli_bench_run *b, const clt_json *doc, const char *name, const char *condition, const char *key,
                        const char *beside, const char *beside_key, double *v) {
    size_t most = (size_t)b->args->repetitions;
    measured m = {.name = name, .unit = "ms", .condition = condition, .beside = beside,
                  .threads = (int)cli_json_number(doc, "threads"), .v = v, .reference = NAN};
    if (beside_key) {
        m.reference = cli_median(v, cli_json_numbers(doc, beside_key, v, most));
    }
    m.n = cli_json_numbers(doc, key, v, most);
    put(b, &m);
}

static int measure_image(cli_bench_run *b, int threads) {
    cli_condition c = {.probe = CLI_PROBE_IMAGE, .threads = threads, .repetitions = b->args->repetitions,
                       .no_warmup = b->args->no_warmup};
    double *v = clt_calloc((size_t)c.repetitions, sizeof(*v));
    char size[64], captioned[64];
    clt_json *doc = NULL;
    int code = v ? cli_bench_spawn(b, &c, &doc) : cli_failf(CLT_E_MEMORY, "bench: out of memory for %d times", c.repetitions);
    if (!code) {
        snprintf(size, sizeof(size), "%.0f x %.0f as %.0f x %.0f, %.0f tokens", cli_json_number(doc, "width"),
                 cli_json_number(doc, "height"), cli_json_number(doc, "resized_width"), cli_json_number(doc, "resized_height"),
                 cli_json_number(doc, "image_tokens"));
        snprintf(captioned, sizeof(captioned), "encoded before; %d tokens", CLI_CAPTION_TOKENS);
        put_picture(b, doc, "picture decoded", size, "decode_ms", "", NULL, v);
        put_picture(b, doc, "picture encoded", size, "encode_ms", "", NULL, v);
        put_picture(b, doc, "time to first token", "picture and question", "ttft_ms", "", NULL, v);
        put_picture(b, doc, "picture fed", "its soft tokens", "feed_ms", "as many tokens of text", "text_ms", v);
        put_picture(b, doc, "caption cycle", captioned, "cycle_ms", "feed and generate", "parts_ms", v);
    }
    clt_json_free(doc);
    clt_free(v);
    return code;
}

/* ---- all of them ---- */

static int measure_with(cli_bench_run *b, int threads) {
    const cli_args *a = b->args;
    int code = a->load ? measure_load(b, threads) : 0;
    code = !code && a->ttft ? measure_ttft(b, threads) : code;
    code = !code && a->memory ? measure_memory(b, threads) : code;
    code = !code && a->n_media ? measure_image(b, threads) : code;
    return !code && a->bench_rows.len ? measure_all_rows(b, threads) : code;
}

int cli_bench_measure(cli_bench_run *b) {
    const cli_args *a = b->args;
    int code = cli_bench_check_single(a, a->load ? "--load" : a->ttft ? "--ttft" : a->memory ? "--memory" : a->n_media ? "--image" : "--rows");
    for (size_t i = 0; i < a->bench_models.n && !code; i++) {
        code = cli_bench_model_inspect(b, a->bench_models.items[i]);
        if (!code) {
            cli_bench_header(b);
        }
        for (size_t t = 0; t < a->bench_threads.len && !code; t++) {
            code = measure_with(b, a->bench_threads.data[t]);
        }
    }
    return code;
}
