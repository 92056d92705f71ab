/* Results of bench as a Markdown table, CSV, JSON or a JSON object per line. Field names are llama-bench's, so that tools
 * which read the one read the other. */
#include <math.h>
#include <stdio.h>
#include "base/cpu.h"
#include "base/json.h"
#include "bench.h"
#include "open.h"
#include "out.h"

static double tokens_per_second(const cli_bench_result *r, double ms) {
    return ms > 0 ? (double)(r->test.n_prompt + r->test.n_gen) * 1000 / ms : 0;
}

typedef struct summary {
    double avg_ns, stddev_ns, avg_ts, stddev_ts;
} summary;

static summary summarise(const cli_bench_result *r) {
    summary s = {0};
    for (int i = 0; i < r->n; i++) {
        s.avg_ns += r->ms[i] * 1e6 / r->n;
        s.avg_ts += tokens_per_second(r, r->ms[i]) / r->n;
    }
    for (int i = 0; i < r->n && r->n > 1; i++) {
        double ns = r->ms[i] * 1e6 - s.avg_ns, ts = tokens_per_second(r, r->ms[i]) - s.avg_ts;
        s.stddev_ns += ns * ns / (r->n - 1);
        s.stddev_ts += ts * ts / (r->n - 1);
    }
    s.stddev_ns = sqrt(s.stddev_ns);
    s.stddev_ts = sqrt(s.stddev_ts);
    return s;
}

static void test_name(const cli_bench_test *t, char *out, size_t size) {
    char depth[24] = "";
    if (t->n_depth) {
        snprintf(depth, sizeof(depth), " @ d%d", t->n_depth);
    }
    if (t->n_prompt && t->n_gen) {
        snprintf(out, size, "pp%d+tg%d%s", t->n_prompt, t->n_gen, depth);
    } else {
        snprintf(out, size, "%s%d%s", t->n_prompt ? "pp" : "tg", t->n_prompt ? t->n_prompt : t->n_gen, depth);
    }
}

/* ---- JSON ---- */

static void put_text(clt_jsonw *w, const char *key, const char *v) {
    clt_jsonw_key(w, key);
    clt_jsonw_cstr(w, v);
}

static void put_int(clt_jsonw *w, const char *key, int64_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, v);
}

static void put_num(clt_jsonw *w, const char *key, double v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, v);
}

static void put_object(const cli_bench_result *r, clt_jsonw *w) {
    const culet_model_info *info = r->info;
    const cli_bench_test *t = &r->test;
    summary s = summarise(r);
    char name[64];
    test_name(t, name, sizeof(name));
    clt_jsonw_open(w, '{');
    put_text(w, "build_commit", CULET_VERSION);
    put_int(w, "build_number", 0);
    put_text(w, "cpu_info", clt_cpu_model());
    put_text(w, "gpu_info", "");
    put_text(w, "backends", "CPU");
    put_text(w, "cpu_level", info->cpu_level);
    put_text(w, "model_filename", info->path);
    put_text(w, "model_type", info->family);
    put_int(w, "model_size", (int64_t)info->file_bytes);
    put_int(w, "model_n_params", (int64_t)info->parameters);
    put_int(w, "n_batch", t->batch);
    put_int(w, "n_ubatch", t->ubatch);
    put_int(w, "n_threads", info->threads);
    put_text(w, "type_k", cli_kv_name(t->kv_k));
    put_text(w, "type_v", cli_kv_name(t->kv_v));
    put_int(w, "n_prompt", t->n_prompt);
    put_int(w, "n_gen", t->n_gen);
    put_int(w, "n_depth", t->n_depth);
    put_text(w, "test", name);
    put_text(w, "test_time", r->time);
    put_int(w, "avg_ns", (int64_t)s.avg_ns);
    put_int(w, "stddev_ns", (int64_t)s.stddev_ns);
    put_num(w, "avg_ts", s.avg_ts);
    put_num(w, "stddev_ts", s.stddev_ts);
    clt_jsonw_key(w, "samples_ns");
    clt_jsonw_open(w, '[');
    for (int i = 0; i < r->n; i++) {
        clt_jsonw_int(w, (int64_t)(r->ms[i] * 1e6));
    }
    clt_jsonw_close(w, ']');
    clt_jsonw_key(w, "samples_ts");
    clt_jsonw_open(w, '[');
    for (int i = 0; i < r->n; i++) {
        clt_jsonw_num(w, tokens_per_second(r, r->ms[i]));
    }
    clt_jsonw_close(w, ']');
    clt_jsonw_close(w, '}');
}

/* ---- tables ---- */

static void put_markdown(const cli_bench_result *r, bool first, clt_buf *out) {
    const cli_bench_test *t = &r->test;
    summary s = summarise(r);
    char name[64];
    test_name(t, name, sizeof(name));
    if (first) {
        clt_buf_puts(out, "| model | size | params | level | threads | k/v | batch | test | t/s |\n"
                          "| --- | ---: | ---: | --- | ---: | --- | ---: | ---: | ---: |\n");
    }
    clt_buf_printf(out, "| %s | %.2f MiB | %.2f M | %s | %d | %s/%s | %d/%d | %s | %.2f ± %.2f |\n", r->info->family,
                   (double)r->info->file_bytes / 1048576, (double)r->info->parameters / 1e6, r->info->cpu_level,
                   r->info->threads, cli_kv_name(t->kv_k), cli_kv_name(t->kv_v), t->batch, t->ubatch, name, s.avg_ts,
                   s.stddev_ts);
}

/* A CSV field in quotes, quotes inside doubled. */
static void put_quoted(clt_buf *out, const char *s) {
    clt_buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"') {
            clt_buf_putc(out, '"');
        }
        clt_buf_putc(out, *s);
    }
    clt_buf_putc(out, '"');
}

static void put_csv(const cli_bench_result *r, bool first, clt_buf *out) {
    const cli_bench_test *t = &r->test;
    summary s = summarise(r);
    if (first) {
        clt_buf_puts(
            out,
            "build_commit,cpu_info,cpu_level,model_filename,model_type,model_size,model_n_params,n_batch,n_ubatch,n_threads,"
            "type_k,type_v,n_prompt,n_gen,n_depth,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts\n");
    }
    const char *const texts[] = {CULET_VERSION, clt_cpu_model(), r->info->cpu_level, r->info->path, r->info->family};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        put_quoted(out, texts[i]);
        clt_buf_putc(out, ',');
    }
    clt_buf_printf(out, "%llu,%llu,%d,%d,%d,%s,%s,%d,%d,%d,%s,%.0f,%.0f,%.6f,%.6f\n",
                   (unsigned long long)r->info->file_bytes, (unsigned long long)r->info->parameters, t->batch, t->ubatch,
                   r->info->threads, cli_kv_name(t->kv_k), cli_kv_name(t->kv_v), t->n_prompt, t->n_gen, t->n_depth, r->time,
                   s.avg_ns, s.stddev_ns, s.avg_ts, s.stddev_ts);
}

/* ---- rows ---- */

void cli_bench_row(cli_bench_report *r, const cli_bench_result *result) {
    clt_buf out = {0};
    clt_jsonw w = {.out = &out};
    bool first = !r->rows++;
    switch (r->format) {
    case CLI_MD:
        put_markdown(result, first, &out);
        break;
    case CLI_CSV:
        put_csv(result, first, &out);
        break;
    case CLI_JSON:
        clt_buf_puts(&out, first ? "[\n  " : ",\n  ");
        put_object(result, &w);
        break;
    default:
        put_object(result, &w);
        clt_buf_putc(&out, '\n');
    }
    cli_out_buf(&out);
    clt_buf_free(&out);
}

void cli_bench_end(cli_bench_report *r) {
    if (r->format == CLI_JSON) {
        cli_outf("%s]\n", r->rows ? "\n" : "[");
    }
}
