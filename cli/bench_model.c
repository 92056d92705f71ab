/* The facts of the model being measured: taken from an engine, with a digest of its files. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "bench.h"
#include "bench_files.h"
#include "open.h"
#include "out.h"

/* The digest, or "" in a build that has none; only a digest that was asked for may fail. */
static int take_digest(cli_bench_run *b) {
    cli_bench_model *m = &b->model;
    cli_files files = {0};
    clt_err err;
    clt_err_clear(&err);
    bool whole = b->args->sha256;
    clt_status st = cli_files_of_model(m->path, &files, &err);
    if (!st) {
        st = cli_files_digest(&files, whole, m->digest, &err);
    }
    cli_files_free(&files);
    m->digest_kind = whole ? "sha256" : "sha256 of the size and 256 samples";
    if (st) {
        m->digest[0] = 0;
        m->digest_kind = "";
    }
    return st && (whole || st != CLT_E_UNSUPPORTED) ? cli_fail(&err) : 0;
}

int cli_bench_model_take(cli_bench_run *b, const culet_engine *e) {
    const culet_model_info *info = culet_engine_info(e);
    cli_bench_model *m = &b->model;
    bool known = m->path && !strcmp(m->path, info->path);
    if (!known) {
        cli_bench_model_free(m);
        m->path = clt_strdup(info->path);
        if (!m->path) {
            return cli_failf(CLT_E_MEMORY, "bench: out of memory");
        }
    }
    snprintf(m->family, sizeof(m->family), "%s", info->family);
    snprintf(m->level, sizeof(m->level), "%s", info->cpu_level);
    m->file_bytes = info->file_bytes;
    m->weight_bytes = info->weight_bytes;
    m->parameters = info->parameters;
    m->threads = info->threads > 0 ? info->threads : clt_threads_default(); /* none where it was only inspected */
    m->context_limit = info->context_limit;
    m->is_base = info->is_base;
    if (known) {
        return 0;
    }
    m->token_bytes = cli_bench_token_bytes(e);
    return take_digest(b);
}

int cli_bench_model_inspect(cli_bench_run *b, const char *model) {
    cli_args args = *b->args;
    culet_engine *e = NULL;
    args.model = model;
    int code = cli_open_engine(&args, CULET_OPEN_INSPECT, 0, &e);
    if (!code) {
        code = cli_bench_model_take(b, e);
    }
    culet_engine_close(e);
    return code;
}

void cli_bench_model_free(cli_bench_model *m) {
    clt_free(m->path);
    *m = (cli_bench_model){0};
}
