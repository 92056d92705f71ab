/* culet bench: reads its flags, fills in what was not given, and hands on to what was asked for. Measures nothing itself. */
#include "bench.h"
#include <math.h>
#include "base/mem.h"
#include "open.h"
#include "out.h"
#include "verbs.h"

/* ---- the grid's points ---- */

/* Prompts alone, generation alone, then pairs, as llama-bench orders them. */
static int each_length(const cli_args *args, cli_bench_test t, int (*fn)(void *, const cli_bench_test *), void *user) {
    int code = 0;
    for (size_t i = 0; i < args->bench_prompt.len && !code; i++) {
        t.n_prompt = args->bench_prompt.data[i];
        t.n_gen = 0;
        code = t.n_prompt ? fn(user, &t) : 0;
    }
    for (size_t i = 0; i < args->bench_gen.len && !code; i++) {
        t.n_prompt = 0;
        t.n_gen = args->bench_gen.data[i];
        code = t.n_gen ? fn(user, &t) : 0;
    }
    for (size_t i = 0; i + 1 < args->bench_pairs.len && !code; i += 2) {
        t.n_prompt = args->bench_pairs.data[i];
        t.n_gen = args->bench_pairs.data[i + 1];
        code = t.n_prompt || t.n_gen ? fn(user, &t) : 0;
    }
    return code;
}

/* Every combination of the other lists: the digits of one running number, the last list fastest. */
int cli_bench_each(const cli_args *a, int (*fn)(void *user, const cli_bench_test *t), void *user) {
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
        cli_bench_test t = {.threads = value[0], .n_depth = value[1], .batch = value[2],
                            .ubatch = value[3],  .kv_k = value[4],    .kv_v = value[5]};
        code = each_length(a, t, fn, user);
    }
    return code;
}

/* ---- bandwidth ---- */

int cli_bench_measure_bandwidth(const cli_args *args, int threads, clt_bandwidth *out) {
    clt_err err;
    clt_err_clear(&err);
    uint64_t bytes = (uint64_t)args->bandwidth_mib << 20;
    return clt_bandwidth_measure(threads, bytes, out, &err) ? cli_fail(&err) : 0;
}

double cli_bench_limit_gb_s(const cli_bench_limit *l) {
    return l->known ? fmax(l->before.plain_gb_s, l->after.plain_gb_s) : NAN;
}

/* ---- flags ---- */

static bool measures(const cli_args *a) {
    return a->load || a->ttft || a->memory || a->bench_rows.len || a->n_media;
}

/* What cannot be asked for together. */
static int check_modes(const cli_args *a) {
    const char *chosen = NULL;
    const struct {
        bool given;
        const char *name;
    } modes[] = {
        {a->compare != NULL, "--compare"}, {a->suite >= 0, "--suite"}, {a->load, "--load"},
        {a->ttft, "--ttft"},               {a->memory, "--memory"},    {a->bench_rows.len > 0, "--rows"},
        {a->n_media > 0, "--image"},
    };
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        bool alone = i < 2;
        if (modes[i].given && chosen) {
            return cli_failf(CLT_E_USAGE, "%s: not together with %s", modes[i].name, chosen);
        }
        chosen = modes[i].given && alone ? modes[i].name : chosen;
    }
    if (chosen && a->profile) {
        return cli_failf(CLT_E_USAGE, "--profile: not together with %s", chosen);
    }
    if (a->n_media > 1) {
        return cli_failf(CLT_E_USAGE, "--image: bench measures one picture at a time");
    }
    if (a->suite >= 0 && a->format != CLI_MD && a->format != CLI_JSON && a->format != CLI_JSONL) {
        return cli_failf(CLT_E_USAGE, "--output: --suite is written as md, json or jsonl");
    }
    if (a->profile && (a->format == CLI_CSV || a->format == CLI_SQL)) {
        return cli_failf(CLT_E_USAGE, "--output: --profile is written as md, json or jsonl");
    }
    if (a->timeout_s && !a->compare) {
        return cli_failf(CLT_E_USAGE, "--timeout: it is the limit of the program given by --compare");
    }
    return 0;
}

static int run_mode(cli_bench_run *b) {
    const cli_args *a = b->args;
    if (a->compare) {
        return cli_bench_compare(b);
    }
    if (a->suite >= 0) {
        return cli_bench_suite(b);
    }
    bool lengths = a->bench_prompt.len || a->bench_gen.len || a->bench_pairs.len;
    int code = lengths ? cli_bench_grid(b) : 0;
    return !code && measures(a) ? cli_bench_measure(b) : code;
}

/* Fills the lists that were not given. Those belong to the caller's arguments; `added` says which are ours. */
enum { LISTS = 8 };
static int add_defaults(cli_args *a, bool added[LISTS]) {
    clt_ids *lists[LISTS] = {&a->bench_prompt, &a->bench_gen,    &a->bench_threads, &a->bench_depth,
                             &a->bench_batch,  &a->bench_ubatch, &a->bench_kv_k,    &a->bench_kv_v};
    static const int defaults[LISTS] = {512, 128, 0, 0, 2048, 512, CULET_KV_F16, CULET_KV_F16};
    /* Where only pairs or other measurements were asked for, the usual lengths would be a surprise. */
    bool only_others = a->bench_pairs.len || measures(a);
    bool failed = false;
    for (size_t i = 0; i < LISTS; i++) {
        added[i] = !lists[i]->len && !(i < 2 && only_others);
        if (added[i]) {
            clt_ids_push(lists[i], defaults[i]);
            failed |= lists[i]->failed;
        }
    }
    return failed ? cli_failf(CLT_E_MEMORY, "bench: out of memory") : 0;
}

static void drop_defaults(cli_args *a, const bool added[LISTS]) {
    clt_ids *lists[LISTS] = {&a->bench_prompt, &a->bench_gen,    &a->bench_threads, &a->bench_depth,
                             &a->bench_batch,  &a->bench_ubatch, &a->bench_kv_k,    &a->bench_kv_v};
    for (size_t i = 0; i < LISTS; i++) {
        if (added[i]) {
            clt_ids_free(lists[i]);
        }
    }
}

int cli_bench(const cli_args *given) {
    static const char *default_model[1] = {NULL};
    cli_args args = *given;
    bool added[LISTS] = {false};
    cli_bench_run b = {.args = &args, .out = {.format = given->format}, .has_err = given->format_err >= 0};
    b.err = (cli_records){.format = given->format_err, .to_err = true};
    int code = cli_check_operands(given, 0);
    code = code ? code : check_modes(given);
    if (code) {
        return code;
    }
    if (!args.bench_models.n) {
        args.bench_models = (cli_strings){default_model, 1};
    }
    args.model = args.bench_models.items[0];
    code = add_defaults(&args, added);
    if (!code && args.probe >= 0) {
        code = cli_bench_probe(&args);
    } else if (!code) {
        code = run_mode(&b);
        if (!code) {
            cli_records_end(&b.out);
            cli_records_end(&b.err);
        }
    }
    drop_defaults(&args, added);
    cli_bench_model_free(&b.model);
    return code;
}
