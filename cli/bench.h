/* What bench measures and how a result is written. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H
#include "args.h"

typedef struct cli_bench_test {
    int n_prompt, n_gen, n_depth;    /* tokens */
    int threads, batch, ubatch, kv_k, kv_v;
} cli_bench_test;

typedef struct cli_bench_result {
    cli_bench_test test;
    const culet_model_info *info;
    const double *ms;                /* [n]: of each timed run */
    int n;
    char time[32];                   /* start, UTC, ISO 8601 */
} cli_bench_result;

/* Writes results in one format. The name of a test is pp512, tg128, pp512+tg128, with @ dDEPTH. */
typedef struct cli_bench_report {
    int format; /* cli_format */
    int rows;
} cli_bench_report;
void cli_bench_row(cli_bench_report *r, const cli_bench_result *result);
void cli_bench_end(cli_bench_report *r);

#endif
