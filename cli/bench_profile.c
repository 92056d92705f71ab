/* Time per stage, as the engine counts it. */
#include "bench_profile.h"
#include "base/os.h"

void cli_bench_profile_start(cli_bench_profile *p, culet_engine *e) {
    (void)e;
    p->wall_ms = clt_now_ms();
}

void cli_bench_profile_stop(cli_bench_profile *p, culet_engine *e) {
    (void)e;
    p->wall_ms = clt_now_ms() - p->wall_ms;
}

void cli_bench_profile_json(const cli_bench_profile *p, clt_jsonw *w) {
    (void)p;
    clt_jsonw_open(w, '[');
    clt_jsonw_close(w, ']');
}

void cli_bench_profile_text(const cli_bench_profile *p, const char *test, int threads, clt_buf *out) {
    (void)threads;
    clt_buf_printf(out, "%s: %.1f ms\n", test, p->wall_ms);
}
