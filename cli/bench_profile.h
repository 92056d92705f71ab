/* Time per stage of the forward pass, as the engine counts it, and what a token reads. */
#ifndef CLI_BENCH_PROFILE_H
#define CLI_BENCH_PROFILE_H
#include "base/json.h"
#include "culet.h"

typedef struct cli_bench_profile {
    double wall_ms;
} cli_bench_profile;

void cli_bench_profile_start(cli_bench_profile *p, culet_engine *e);
void cli_bench_profile_stop(cli_bench_profile *p, culet_engine *e);
/* [{"stage",…},…] */
void cli_bench_profile_json(const cli_bench_profile *p, clt_jsonw *w);
/* A Markdown table under the name of its test. */
void cli_bench_profile_text(const cli_bench_profile *p, const char *test, int threads, clt_buf *out);

#endif
