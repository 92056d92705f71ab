/* What the files of bench share: tests, the model being measured, where results go.
 *
 * bench.c reads the flags and chooses; bench_grid.c times prompts and generation in this process; bench_compare.c runs
 * another program in turns with ours; bench_measure.c starts a fresh process for each condition, whose work is
 * bench_probe.c; bench_suite.c lays the published tables beside such measurements. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H
#include "args.h"
#include "base/bandwidth.h"
#include "records.h"

/* In the order of the choices. */
typedef enum cli_probe { CLI_PROBE_FIRST, CLI_PROBE_TEXT, CLI_PROBE_REPLY, CLI_PROBE_ROWS, CLI_PROBE_IMAGE } cli_probe;

typedef struct cli_bench_test {
    int n_prompt, n_gen, n_depth;    /* tokens */
    int threads, batch, ubatch, kv_k, kv_v;
} cli_bench_test;

/* The model's facts, kept when its engine is closed. */
typedef struct cli_bench_model {
    char *path;
    char family[128], level[32], digest[80];
    const char *digest_kind;         /* what `digest` covers; "" if there is none */
    uint64_t file_bytes, weight_bytes, parameters;
    double token_bytes;              /* weights that a generated token reads, as the file holds them; NaN = not known */
    int threads, context_limit;
    bool is_base;
    bool headed;                     /* its header was written */
} cli_bench_model;

typedef struct cli_bench_run {
    const cli_args *args;            /* lists hold their defaults */
    cli_records out, err;            /* err: a second form on standard error */
    bool has_err;
    cli_bench_model model;
} cli_bench_run;

/* ---- bench_report.c: what every record begins with, and how it is written ---- */

/* Program, machine, model. */
void cli_bench_begin(const cli_bench_run *b, const char *table, cli_record *r);
/* Writes and frees the record. */
void cli_bench_put(cli_bench_run *b, cli_record *r);
/* The lines above the tables: program, machine, model. Once per model. */
void cli_bench_header(cli_bench_run *b);
/* A paragraph; only in Markdown. */
void cli_bench_say(cli_bench_run *b, const char *text);
void cli_bench_sayf(cli_bench_run *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* pp512, tg128, pp512+tg128, with @ dDEPTH. */
void cli_bench_test_name(const cli_bench_test *t, char *out, size_t size);
void cli_bench_now(char out[32]); /* UTC, ISO 8601 */

/* ---- bench_model.c ---- */

/* Takes the facts of an opened engine, or opens the model for inspection to get them. Returns 0, or an exit code with the
 * error printed. */
int cli_bench_model_take(cli_bench_run *b, const culet_engine *e);
int cli_bench_model_inspect(cli_bench_run *b, const char *model);
void cli_bench_model_free(cli_bench_model *m);
double cli_bench_token_bytes(const culet_engine *e); /* bench_bytes.c */

/* ---- bench_stats.c ---- */

double cli_mean(const double *v, size_t n);
double cli_stddev(const double *v, size_t n);      /* of a sample; 0 below two values */
/* Nearest rank: the smallest value that at least `share` of all values do not exceed. NaN for n = 0. Sorts v. */
double cli_percentile(double *v, size_t n, double share);
double cli_median(double *v, size_t n);            /* middle, or mean of the two middle ones. Sorts v. */

/* ---- the modes; each returns 0 or an exit code ---- */

int cli_bench_grid(cli_bench_run *b);
int cli_bench_compare(cli_bench_run *b);
int cli_bench_measure(cli_bench_run *b);
int cli_bench_suite(cli_bench_run *b);
int cli_bench_probe(const cli_args *args);

/* Calls fn for every test of the grid, in llama-bench's order, until it returns a code. */
int cli_bench_each(const cli_args *args, int (*fn)(void *user, const cli_bench_test *t), void *user);
/* Two lines of the same bandwidth, measured at different times, and how near to it generation came. */
typedef struct cli_bench_limit {
    clt_bandwidth before, after;
    bool known;
} cli_bench_limit;
int cli_bench_measure_bandwidth(const cli_args *args, int threads, clt_bandwidth *out);
/* The larger of the two plain bandwidths, GB/s. */
double cli_bench_limit_gb_s(const cli_bench_limit *l);

#endif
