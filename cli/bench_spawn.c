/* Our own processes: one per condition, with the flags of the command that started them. */
#include "bench_spawn.h"
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "open.h"
#include "out.h"

static void forward_text(const char *flag, const char *value, cli_words *w) {
    if (value) {
        cli_words_add(w, flag);
        cli_words_add(w, value);
    }
}

static void forward_int(const char *flag, int value, int usual, cli_words *w) {
    if (value != usual) {
        cli_words_add(w, flag);
        cli_words_addf(w, "%d", value);
    }
}

void cli_bench_forward_shared(const cli_args *a, cli_words *w) {
    forward_text("-C", a->cpu_mask, w);
    forward_int("--cpu-strict", a->cpu_strict, 0, w);
    forward_int("--prio", a->priority, 0, w);
    forward_int("--poll", a->poll, 50, w);
}

void cli_bench_forward(const cli_args *a, cli_words *w) {
    if (a->quiet) {
        cli_words_add(w, "-q");
    }
    forward_int("-c", a->context, 0, w);
    forward_text("--mmproj", a->mmproj, w);
    forward_text("-Cr", a->cpu_range, w);
    forward_text("--memory-check", a->memory_check ? NULL : "off", w);
    cli_bench_forward_shared(a, w);
}

static void make_words(const cli_bench_run *b, const cli_condition *c, cli_words *w) {
    static const char *const probes[] = {"first", "text", "reply", "rows", "image"};
    const cli_args *a = b->args;
    cli_words_add(w, "/proc/self/exe");
    cli_words_add(w, "bench");
    cli_words_add(w, "--probe");
    cli_words_add(w, probes[c->probe]);
    cli_bench_forward(a, w);
    cli_words_add(w, "-m");
    cli_words_add(w, b->model.path);
    cli_words_add(w, "-t");
    cli_words_addf(w, "%d", c->threads);
    cli_words_list(w, "-b", &a->bench_batch);
    cli_words_list(w, "-ub", &a->bench_ubatch);
    cli_words_add(w, "-ctk");
    cli_words_add(w, cli_kv_name(a->bench_kv_k.data[0]));
    cli_words_add(w, "-ctv");
    cli_words_add(w, cli_kv_name(a->bench_kv_v.data[0]));
    if (c->probe == CLI_PROBE_REPLY || c->probe == CLI_PROBE_ROWS) {
        cli_words_add(w, "-p");
        cli_words_addf(w, "%d", c->n_prompt);
        cli_words_add(w, "-d");
        cli_words_addf(w, "%d", c->n_reused);
        cli_words_add(w, "-n");
        cli_words_addf(w, "%d", c->n_gen);
        cli_words_add(w, "-r");
        cli_words_addf(w, "%d", c->repetitions);
    }
    if (c->probe == CLI_PROBE_IMAGE) {
        cli_words_add(w, "--image");
        cli_words_add(w, a->parts[0].value);
        forward_int("--image-tokens", a->image_tokens, 0, w);
        cli_words_add(w, "-r");
        cli_words_addf(w, "%d", c->repetitions);
    }
    if (c->no_warmup) {
        cli_words_add(w, "--no-warmup");
    }
    cli_words_add(w, "--since");
    cli_words_addf(w, "%.3f", clt_now_ms());
}

int cli_bench_spawn(const cli_bench_run *b, const cli_condition *c, clt_json **result) {
    cli_words words = {0};
    cli_child run = {0};
    clt_err err;
    clt_err_clear(&err);
    *result = NULL;
    make_words(b, c, &words);
    int code = cli_child_run(&words, INFINITY, &run, &err) ? cli_fail(&err) : 0;
    if (!code) {
        cli_progress_end();
        cli_err_text(run.err.data ? run.err.data : "", run.err.len, false); /* its warnings, or its error line */
    }
    if (!code && run.signal) {
        code = cli_failf(CLT_E_FAILED, "bench: signal %d (%s) ended a measuring process", run.signal, strsignal(run.signal));
    }
    code = code ? code : run.exit_code;
    if (!code && clt_json_parse(run.out.data ? run.out.data : "", run.out.len, "bench: a measuring process", result, &err)) {
        code = cli_fail(&err);
    }
    cli_child_free(&run);
    cli_words_free(&words);
    return code;
}

double cli_json_number(const clt_json *object, const char *key) {
    double v;
    return clt_json_num(clt_json_get(object, key), &v) ? v : NAN;
}

size_t cli_json_numbers(const clt_json *object, const char *key, double *out, size_t most) {
    const clt_json *list = clt_json_get(object, key);
    size_t n = clt_json_len(list) < most ? clt_json_len(list) : most;
    for (size_t i = 0; i < n; i++) {
        if (!clt_json_num(clt_json_at(list, i), &out[i])) {
            return i;
        }
    }
    return n;
}

int cli_bench_check_single(const cli_args *a, const char *mode) {
    const clt_ids *lists[] = {&a->bench_batch, &a->bench_ubatch, &a->bench_kv_k, &a->bench_kv_v};
    static const char *const names[] = {"-b", "-ub", "-ctk", "-ctv"};
    for (size_t i = 0; i < 4; i++) {
        if (lists[i]->len > 1) {
            return cli_failf(CLT_E_USAGE, "%s: %s takes one value of it", names[i], mode);
        }
    }
    return 0;
}
