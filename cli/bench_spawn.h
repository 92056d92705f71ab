/* Starting a process of ours for one condition, and reading what it measured. */
#ifndef CLI_BENCH_SPAWN_H
#define CLI_BENCH_SPAWN_H
#include "bench.h"
#include "child.h"

typedef struct cli_condition {
    cli_probe probe;
    int threads;                        /* 0 = its default */
    int n_prompt, n_reused, n_gen;      /* of a reply: tokens in all, of these evaluated beforehand, generated */
    int repetitions;                    /* timed ones */
    bool no_warmup;
} cli_condition;

/* Runs it and parses its object. Returns 0, or an exit code with the error printed. Free with clt_json_free. */
int cli_bench_spawn(const cli_bench_run *b, const cli_condition *c, clt_json **result);
/* Appends the flags that every process of ours inherits. */
void cli_bench_forward(const cli_args *a, cli_words *w);
/* Of these, those that llama-bench has too, where they are not at their default. */
void cli_bench_forward_shared(const cli_args *a, cli_words *w);

double cli_json_number(const clt_json *object, const char *key);           /* NaN if absent */
/* A list of numbers into `out` (at most `most`); how many. */
size_t cli_json_numbers(const clt_json *object, const char *key, double *out, size_t most);
/* Checks that lists of which a process takes one value have one. */
int cli_bench_check_single(const cli_args *a, const char *mode);

#endif
