/* What all results of bench share: the fields that say program, machine and model, the header, the names of tests. Field
 * names are llama-bench's where it has the field, so that tools which read the one read the other. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <time.h>
#include "base/cpu.h"
#include "base/os.h"
#include "bench.h"

#ifndef CULET_COMMIT
#define CULET_COMMIT "unknown" /* configured outside of a git checkout */
#endif

static void kernel_name(char *out, size_t size) {
    struct utsname u;
    if (uname(&u)) {
        snprintf(out, size, "unknown");
    } else {
        snprintf(out, size, "%s %s %s", u.sysname, u.release, u.machine);
    }
}

void cli_bench_begin(const cli_bench_run *b, const char *table, cli_record *r) {
    const cli_bench_model *m = &b->model;
    char kernel[256];
    kernel_name(kernel, sizeof(kernel));
    cli_record_begin(r, table);
    cli_record_text(r, "build_commit", CULET_COMMIT);
    cli_record_int(r, "build_number", 0);
    cli_record_text(r, "build_version", CULET_VERSION);
    cli_record_text(r, "cpu_info", clt_cpu_model());
    cli_record_text(r, "gpu_info", "");
    cli_record_text(r, "backends", "CPU");
    cli_record_text(r, "cpu_level", m->level);
    cli_record_int(r, "cpu_cores", clt_cores());
    cli_record_text(r, "kernel", kernel);
    cli_record_int(r, "memory_bytes", (int64_t)clt_memory_total_bytes());
    cli_record_text(r, "model_filename", m->path);
    cli_record_text(r, "model_type", m->family);
    cli_record_int(r, "model_size", (int64_t)m->file_bytes);
    cli_record_int(r, "model_n_params", (int64_t)m->parameters);
    cli_record_text(r, "model_digest", m->digest);
    cli_record_text(r, "model_digest_kind", m->digest_kind);
}

void cli_bench_put(cli_bench_run *b, cli_record *r) {
    cli_records_put(&b->out, r);
    if (b->has_err) {
        cli_records_put(&b->err, r);
    }
    cli_record_free(r);
}

void cli_bench_say(cli_bench_run *b, const char *text) {
    cli_records_say(&b->out, text);
    if (b->has_err) {
        cli_records_say(&b->err, text);
    }
}

void cli_bench_sayf(cli_bench_run *b, const char *fmt, ...) {
    char text[4096];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    cli_bench_say(b, text);
}

void cli_bench_header(cli_bench_run *b) {
    cli_bench_model *m = &b->model;
    char kernel[256];
    if (m->headed) {
        return;
    }
    m->headed = true;
    kernel_name(kernel, sizeof(kernel));
    int cores = clt_cores();
    cli_bench_sayf(b, "culet " CULET_VERSION ", commit " CULET_COMMIT ", on %s (%s), %d core%s, %.1f GiB, %s",
                   clt_cpu_model(), m->level, cores, cores == 1 ? "" : "s",
                   (double)clt_memory_total_bytes() / (1 << 30), kernel);
    cli_bench_sayf(b, "%s: %s, %.2f GB, %.2f M parameters%s%s%s%s", m->path, m->family, (double)m->file_bytes * 1e-9,
                   (double)m->parameters * 1e-6, m->digest[0] ? ", " : "", m->digest_kind, m->digest[0] ? " " : "",
                   m->digest);
}

void cli_bench_test_name(const cli_bench_test *t, char *out, size_t size) {
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

void cli_bench_now(char out[32]) {
    time_t now = time(NULL);
    struct tm utc;
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}
