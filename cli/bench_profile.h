/* Time per stage of one run, as the engine counts it. */
#ifndef CLI_BENCH_PROFILE_H
#define CLI_BENCH_PROFILE_H
#include "base/json.h"
#include "culet.h"

enum { CLI_MOST_STAGES = 128 };

typedef struct cli_bench_profile {
    culet_stage stages[CLI_MOST_STAGES];
    size_t n;
    int threads;
    double wall_ms;          /* from start to stop */
} cli_bench_profile;

culet_status cli_bench_profile_start(cli_bench_profile *p, culet_engine *e, culet_error *err);
culet_status cli_bench_profile_stop(cli_bench_profile *p, culet_engine *e, culet_error *err);
/* {"wall_ms",…,"stages":[…]} */
void cli_bench_profile_json(const cli_bench_profile *p, clt_jsonw *w);
/* A Markdown table under the name of its test. */
void cli_bench_profile_text(const cli_bench_profile *p, const char *test, clt_buf *out);

#endif
