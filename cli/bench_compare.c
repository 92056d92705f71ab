/* Our speed beside another program's, or beside earlier results.
 *
 * A program runs in turns with ours, A B A B…, each run a process of its own that loads the model, warms up and times every
 * test once: a machine that slows down for a while slows both. A pair gives one ratio per test; what is told is their median
 * and range. Earlier results cannot be interleaved, and that is told too. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "bench.h"
#include "bench_read.h"
#include "bench_spawn.h"
#include "open.h"
#include "out.h"

static const char SELF[] = "/proc/self/exe";

typedef struct pair_samples {
    cli_bench_test test;
    double *ours, *theirs, *ratios, *sorted; /* [n] */
    size_t n;
} pair_samples;

typedef struct comparison {
    cli_bench_run *b;
    cli_args args;           /* threads resolved */
    const char *other;       /* as given */
    bool is_file;
    pair_samples *tests;
    size_t n_tests, pairs, done;
    double our_ms;           /* of our last run */
    char commit[64], cpu[128];
} comparison;

/* ---- what runs ---- */

static bool is_list_of(const clt_ids *list, int value) {
    return list->len == 1 && list->data[0] == value;
}

/* The flags of both programs; what has llama-bench's default anyway is left out, as not every program knows it. */
static void add_flags(const comparison *c, int repetitions, cli_words *w) {
    const cli_args *a = &c->args;
    static const int32_t none[] = {0};
    clt_ids zero = {.data = (int32_t *)none, .len = 1};
    cli_words_add(w, "-m");
    cli_words_add(w, c->b->model.path);
    cli_words_list(w, "-p", a->bench_prompt.len ? &a->bench_prompt : &zero);
    cli_words_list(w, "-n", a->bench_gen.len ? &a->bench_gen : &zero);
    for (size_t i = 0; i + 1 < a->bench_pairs.len; i += 2) {
        cli_words_add(w, "-pg");
        cli_words_addf(w, "%d,%d", a->bench_pairs.data[i], a->bench_pairs.data[i + 1]);
    }
    if (!is_list_of(&a->bench_depth, 0)) {
        cli_words_list(w, "-d", &a->bench_depth);
    }
    if (!is_list_of(&a->bench_batch, 2048)) {
        cli_words_list(w, "-b", &a->bench_batch);
    }
    if (!is_list_of(&a->bench_ubatch, 512)) {
        cli_words_list(w, "-ub", &a->bench_ubatch);
    }
    if (!is_list_of(&a->bench_kv_k, CULET_KV_F16)) {
        cli_words_add(w, "-ctk");
        cli_words_add(w, cli_kv_name(a->bench_kv_k.data[0]));
    }
    if (!is_list_of(&a->bench_kv_v, CULET_KV_F16)) {
        cli_words_add(w, "-ctv");
        cli_words_add(w, cli_kv_name(a->bench_kv_v.data[0]));
    }
    cli_words_list(w, "-t", &a->bench_threads);
    if (a->no_warmup) {
        cli_words_add(w, "--no-warmup");
    }
    cli_words_add(w, "-r");
    cli_words_addf(w, "%d", repetitions);
    cli_words_add(w, "-o");
    cli_words_add(w, "json");
}

static void our_words(const comparison *c, int repetitions, cli_words *w) {
    cli_words_add(w, SELF);
    cli_words_add(w, "bench");
    cli_bench_forward(&c->args, w);
    add_flags(c, repetitions, w);
}

/* A path may hold spaces; what is no path may be a command with its first arguments. */
static void their_words(const comparison *c, cli_words *w) {
    if (clt_is_file(c->other)) {
        cli_words_add(w, c->other);
    } else {
        cli_words_split(w, c->other);
    }
    const char *name = w->n ? w->items[0] : "", *slash = strrchr(name, '/');
    if (w->n == 1 && !strcmp(slash ? slash + 1 : name, "culet")) {
        cli_words_add(w, "bench");
    }
    cli_bench_forward_shared(&c->args, w);
    add_flags(c, 1, w);
}

/* ---- one run ---- */

/* The last line that says something. */
static const char *last_line(clt_buf *err) {
    char *text = err->data ? err->data : "";
    for (size_t n = err->len; n && strchr(" \t\r\n", text[n - 1]); n--) {
        text[n - 1] = 0;
    }
    char *newline = strrchr(text, '\n');
    return newline ? newline + 1 : text;
}

/* Why the run gave no results, if it gave none. */
static int judge(const comparison *c, cli_child *run, double limit_ms) {
    if (run->timed_out) {
        return cli_failf(CLT_E_FAILED, "bench: --compare %s: it did not end within %.0f s and was stopped (--timeout)",
                         c->other, limit_ms / 1000);
    }
    if (run->too_much) {
        return cli_failf(CLT_E_FAILED, "bench: --compare %s: it wrote more than results would take and was stopped",
                         c->other);
    }
    const char *said = last_line(&run->err), *colon = said[0] ? ": " : "";
    if (run->signal) {
        return cli_failf(CLT_E_FAILED, "bench: --compare %s: signal %d (%s) ended it%s%.500s", c->other, run->signal,
                         strsignal(run->signal), colon, said);
    }
    if (run->exit_code) {
        return cli_failf(CLT_E_FAILED, "bench: --compare %s: exit code %d%s%.500s", c->other, run->exit_code, colon, said);
    }
    return 0;
}

static int read_results(const char *text, size_t len, const char *what, cli_seen_list *seen) {
    clt_err err;
    clt_err_clear(&err);
    clt_status st = cli_seen_read(text, len, what, seen, &err);
    if (st == CLT_E_FAILED) {
        clt_hint(&err, "expected is what llama-bench -o json writes: an array of objects with n_prompt, n_gen and avg_ts");
    }
    return st ? cli_fail(&err) : 0;
}

static int run_ours(comparison *c, int repetitions, cli_seen_list *seen) {
    cli_words words = {0};
    cli_child run = {0};
    clt_err err;
    clt_err_clear(&err);
    our_words(c, repetitions, &words);
    int code = cli_child_run(&words, INFINITY, &run, &err) ? cli_fail(&err) : 0;
    c->our_ms = run.ms;
    if (!code && (run.exit_code || run.signal)) {
        cli_err_text(run.err.data ? run.err.data : "", run.err.len, false); /* our own error line */
        code = run.exit_code > 0 ? run.exit_code
                                 : cli_failf(CLT_E_FAILED, "bench: our own run: signal %d (%s) ended it", run.signal,
                                             strsignal(run.signal));
    }
    if (!code) {
        code = read_results(run.out.data ? run.out.data : "", run.out.len, "bench: our own run", seen);
    }
    cli_child_free(&run);
    cli_words_free(&words);
    return code;
}

static int run_theirs(comparison *c, cli_seen_list *seen) {
    cli_words words = {0};
    cli_child run = {0};
    char what[300];
    clt_err err;
    clt_err_clear(&err);
    double limit_ms = c->args.timeout_s ? c->args.timeout_s * 1e3 : 600e3 + 20 * c->our_ms;
    their_words(c, &words);
    int code = 0;
    if (cli_child_run(&words, limit_ms, &run, &err)) {
        code = err.code == CLT_E_MEMORY ? cli_fail(&err) : cli_failf(CLT_E_FAILED, "bench: --compare %s", err.text);
    }
    code = code ? code : judge(c, &run, limit_ms);
    if (!code) {
        snprintf(what, sizeof(what), "bench: --compare %.200s: its output", c->other);
        code = read_results(run.out.data ? run.out.data : "", run.out.len, what, seen);
    }
    cli_child_free(&run);
    cli_words_free(&words);
    return code;
}

/* ---- results to tests ---- */

static bool fits(const cli_seen *s, const cli_bench_test *t) {
    return s->n_prompt == t->n_prompt && s->n_gen == t->n_gen && s->n_depth == t->n_depth &&
           (!s->n_threads || s->n_threads == t->threads);
}

static void seen_name(const cli_seen *s, char *out, size_t size) {
    cli_bench_test t = {.n_prompt = (int)s->n_prompt, .n_gen = (int)s->n_gen, .n_depth = (int)s->n_depth};
    cli_bench_test_name(&t, out, size);
}

/* Gives every test its result: found[i] for tests[i]. Results that belong to no test are an error unless `more`. */
static int match(const comparison *c, const cli_seen_list *seen, const char *whose, bool more, cli_seen **found) {
    bool *used = clt_calloc(seen->n + 1, sizeof(*used));
    char name[64];
    int code = used ? 0 : cli_failf(CLT_E_MEMORY, "bench: out of memory");
    for (size_t i = 0; i < c->n_tests && !code; i++) {
        const cli_bench_test *t = &c->tests[i].test;
        found[i] = NULL;
        for (size_t k = 0; k < seen->n && !found[i]; k++) {
            if (!used[k] && fits(&seen->items[k], t)) {
                used[k] = true;
                found[i] = &seen->items[k];
            }
        }
        if (!found[i]) {
            cli_bench_test_name(t, name, sizeof(name));
            code = cli_failf(CLT_E_FAILED, "bench: --compare %s: no result for %s with %d thread%s among its %zu",
                             whose, name, t->threads, t->threads == 1 ? "" : "s", seen->n);
        }
    }
    for (size_t k = 0; k < seen->n && !code && !more; k++) {
        if (!used[k]) {
            seen_name(&seen->items[k], name, sizeof(name));
            code = cli_failf(CLT_E_FAILED, "bench: --compare %s: a result that was not asked for: %s (%lld threads)",
                             whose, name, (long long)seen->items[k].n_threads);
        }
    }
    clt_free(used);
    return code;
}

/* ---- all runs ---- */

static void rest(int seconds) {
    struct timespec left = {.tv_sec = seconds};
    while (seconds && nanosleep(&left, &left)) {
    }
}

static void announce(comparison *c, const char *who, size_t pair) {
    rest(c->args.delay_s);
    if (c->args.show_tests) {
        cli_say("culet bench: pair %zu of %zu: %s", pair + 1, c->pairs, who);
    }
    cli_progress("compare", (double)c->done++ / (double)(2 * c->pairs));
}

static int run_pair(comparison *c, size_t pair, cli_seen **ours, cli_seen **theirs) {
    cli_seen_list a = {0}, b = {0};
    announce(c, "culet", pair);
    int code = run_ours(c, 1, &a);
    code = code ? code : match(c, &a, "our own run", false, ours);
    if (!code) {
        announce(c, c->other, pair);
        code = run_theirs(c, &b);
    }
    code = code ? code : match(c, &b, c->other, false, theirs);
    for (size_t i = 0; i < c->n_tests && !code; i++) {
        pair_samples *t = &c->tests[i];
        t->ours[pair] = cli_median(ours[i]->ts, ours[i]->n_ts);
        t->theirs[pair] = cli_median(theirs[i]->ts, theirs[i]->n_ts);
        t->ratios[pair] = t->ours[pair] / t->theirs[pair];
        t->n = pair + 1;
        snprintf(c->commit, sizeof(c->commit), "%s", theirs[i]->commit);
    }
    cli_progress_end();
    cli_seen_free(&a);
    cli_seen_free(&b);
    return code;
}

/* ---- records ---- */

typedef struct summary {
    double ours, theirs, ratio, least, most;
} summary;

static double median_of(const double *v, size_t n, double *space) {
    memcpy(space, v, n * sizeof(*v));
    return cli_median(space, n);
}

static summary summarise(const pair_samples *t) {
    summary s = {.ours = median_of(t->ours, t->n, t->sorted), .theirs = median_of(t->theirs, t->n, t->sorted)};
    s.ratio = median_of(t->ratios, t->n, t->sorted); /* sorted now holds the ratios */
    s.least = t->sorted[0];
    s.most = t->sorted[t->n - 1];
    return s;
}

static void put_result(const comparison *c, const cli_bench_test *t, const summary *s, const double *ours, size_t n_ours,
                       const double *theirs, size_t n_theirs, const double *ratios) {
    char name[64];
    cli_record r;
    cli_bench_test_name(t, name, sizeof(name));
    cli_bench_begin(c->b, "culet_bench_compare", &r);
    cli_record_int(&r, "n_threads", t->threads);
    cli_record_int(&r, "n_prompt", t->n_prompt);
    cli_record_int(&r, "n_gen", t->n_gen);
    cli_record_int(&r, "n_depth", t->n_depth);
    cli_record_text(&r, "test", name);
    cli_record_text(&r, "compare_with", c->other);
    cli_record_text(&r, "compare_commit", c->commit);
    cli_record_bool(&r, "interleaved", !c->is_file);
    cli_record_int(&r, "n_pairs", c->is_file ? 0 : (int64_t)n_ours);
    cli_record_num(&r, "ratio", s->ratio);
    cli_record_num(&r, "ratio_min", s->least);
    cli_record_num(&r, "ratio_max", s->most);
    cli_record_num(&r, "median_ts", s->ours);
    cli_record_num(&r, "compare_median_ts", s->theirs);
    cli_record_num(&r, "avg_ts", cli_mean(ours, n_ours));
    cli_record_num(&r, "stddev_ts", cli_stddev(ours, n_ours));
    cli_record_nums(&r, "samples_ts", ours, n_ours);
    cli_record_nums(&r, "compare_samples_ts", theirs, n_theirs);
    if (ratios) {
        cli_record_nums(&r, "ratios", ratios, n_ours);
    }
    cli_record_cell(&r, "test", 15, "%s", name);
    cli_record_cell(&r, "threads", -7, "%d", t->threads);
    cli_record_cell(&r, "culet t/s", -12, "%.2f", s->ours);
    cli_record_cell(&r, "other t/s", -12, "%.2f", s->theirs);
    cli_record_cell(&r, "ratio", -7, "%.2f", s->ratio);
    cli_record_cell(&r, "range", -13, "%.2f–%.2f", s->least, s->most);
    cli_bench_put(c->b, &r);
}

/* Told before our own runs, which may take minutes. */
static int check_program(const comparison *c) {
    cli_words words = {0};
    their_words(c, &words);
    int code = 0;
    if (words.failed) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory");
    } else if (!cli_child_exists(words.items[0])) {
        code = cli_failf(CLT_E_FAILED, "bench: --compare %s: neither a program that can be started nor a file of results",
                         c->other);
    }
    cli_words_free(&words);
    return code;
}

static int compare_program(comparison *c, cli_seen **ours, cli_seen **theirs) {
    int code = check_program(c);
    for (size_t pair = 0; pair < c->pairs && !code; pair++) {
        code = run_pair(c, pair, ours, theirs);
    }
    if (code) {
        return code;
    }
    cli_bench_header(c->b);
    cli_bench_sayf(c->b, "In turns with %s%s%s%s: %zu pair%s, every run a process of its own that warms up first. Medians; "
                         "ratio = culet / other, median and range of the pairs.",
                   c->other, c->commit[0] ? " (commit " : "", c->commit, c->commit[0] ? ")" : "", c->pairs,
                   c->pairs == 1 ? "" : "s");
    for (size_t i = 0; i < c->n_tests; i++) {
        const pair_samples *t = &c->tests[i];
        summary s = summarise(t);
        put_result(c, &t->test, &s, t->ours, t->n, t->theirs, t->n, t->ratios);
    }
    return 0;
}

static int compare_file(comparison *c, cli_seen **ours, cli_seen **theirs) {
    clt_buf text = {0};
    clt_err err;
    cli_seen_list a = {0}, b = {0};
    clt_err_clear(&err);
    int code = 0;
    if (clt_read_file(c->other, 64 << 20, &text, &err)) {
        code = cli_failf(CLT_E_FAILED, "bench: --compare %s", err.text);
    }
    code = code ? code : read_results(text.data, text.len, c->other, &b);
    code = code ? code : match(c, &b, c->other, true, theirs);
    if (!code) {
        cli_progress("compare", 0);
        code = run_ours(c, c->args.repetitions, &a);
        cli_progress_end();
    }
    code = code ? code : match(c, &a, "our own run", false, ours);
    if (!code) {
        snprintf(c->commit, sizeof(c->commit), "%s", theirs[0]->commit);
        bool moved = ours[0]->cpu[0] && theirs[0]->cpu[0] && strcmp(ours[0]->cpu, theirs[0]->cpu);
        cli_bench_header(c->b);
        cli_bench_sayf(c->b, "Beside the earlier results in %s%s%s%s. Not interleaved: the machine may have changed "
                             "since%s%s%s. Medians; ratio = culet / earlier, range from the extremes of both.",
                       c->other, c->commit[0] ? " (commit " : "", c->commit, c->commit[0] ? ")" : "",
                       moved ? ", and they are of another processor (" : "", moved ? theirs[0]->cpu : "", moved ? ")" : "");
    }
    for (size_t i = 0; i < c->n_tests && !code; i++) {
        cli_seen *o = ours[i], *t = theirs[i];
        summary s = {.ours = cli_median(o->ts, o->n_ts), .theirs = cli_median(t->ts, t->n_ts)}; /* both sorted now */
        s.ratio = s.ours / s.theirs;
        s.least = o->ts[0] / t->ts[t->n_ts - 1];
        s.most = o->ts[o->n_ts - 1] / t->ts[0];
        put_result(c, &c->tests[i].test, &s, o->ts, o->n_ts, t->ts, t->n_ts, NULL);
    }
    clt_buf_free(&text);
    cli_seen_free(&a);
    cli_seen_free(&b);
    return code;
}

/* ---- the whole ---- */

/* A file that cannot be run, or whose text begins as results do. */
static bool holds_results(const char *path) {
    char first = 0;
    if (!clt_is_file(path)) {
        return false;
    }
    FILE *f = fopen(path, "re");
    bool read = f && fscanf(f, " %c", &first) == 1;
    if (f) {
        fclose(f);
    }
    return (read && (first == '[' || first == '{')) || access(path, X_OK) != 0;
}

static int add_test(void *user, const cli_bench_test *t) {
    comparison *c = user;
    if (c->tests) {
        c->tests[c->n_tests].test = *t;
    }
    c->n_tests++;
    return 0;
}

static int compare_model(comparison *c) {
    cli_bench_each(&c->args, add_test, c);
    size_t n = c->n_tests, each = 4 * c->pairs;
    c->n_tests = 0;
    c->tests = clt_calloc(n, sizeof(*c->tests));
    double *samples = clt_calloc(n, each * sizeof(*samples));
    cli_seen **found = clt_calloc(n, 2 * sizeof(*found));
    int code = 0;
    if (!c->tests || !samples || !found) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu tests", n);
    } else if (!n) {
        code = cli_failf(CLT_E_USAGE, "bench: nothing to compare: -p and -n are 0");
    } else {
        cli_bench_each(&c->args, add_test, c);
        for (size_t i = 0; i < n; i++) {
            double *at = samples + i * each;
            c->tests[i].ours = at;
            c->tests[i].theirs = at + c->pairs;
            c->tests[i].ratios = at + 2 * c->pairs;
            c->tests[i].sorted = at + 3 * c->pairs;
        }
        code = c->is_file ? compare_file(c, found, found + n) : compare_program(c, found, found + n);
    }
    clt_free(found);
    clt_free(samples);
    clt_free(c->tests);
    return code;
}

/* 0 threads means a number that both programs must be told. Replaces the list by one of our own. */
static bool resolve_threads(comparison *c, clt_ids *own) {
    const clt_ids *given = &c->b->args->bench_threads;
    for (size_t i = 0; i < given->len; i++) {
        clt_ids_push(own, given->data[i] > 0 ? given->data[i] : c->b->model.threads);
    }
    c->args.bench_threads = *own;
    return !own->failed;
}

int cli_bench_compare(cli_bench_run *b) {
    int code = cli_bench_check_single(b->args, "--compare");
    if (!code && clt_is_dir(b->args->compare)) {
        code = cli_failf(CLT_E_USAGE, "--compare: %s is a folder", b->args->compare);
    }
    for (size_t i = 0; i < b->args->bench_models.n && !code; i++) {
        clt_ids threads = {0};
        comparison c = {.b = b, .args = *b->args, .other = b->args->compare, .pairs = (size_t)b->args->repetitions};
        c.is_file = holds_results(c.other);
        code = cli_bench_model_inspect(b, b->args->bench_models.items[i]);
        if (!code && !resolve_threads(&c, &threads)) {
            code = cli_failf(CLT_E_MEMORY, "bench: out of memory");
        }
        code = code ? code : compare_model(&c);
        clt_ids_free(&threads);
    }
    return code;
}
