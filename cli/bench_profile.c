/* Reads what the engine counted and writes it: shares of the time, multiplications and bytes per second, waiting. */
#include "bench_profile.h"
#include <string.h>
#include "base/os.h"

culet_status cli_bench_profile_start(cli_bench_profile *p, culet_engine *e, culet_error *err) {
    culet_status st = culet_engine_profile(e, true, err);
    p->threads = culet_engine_info(e)->threads;
    p->wall_ms = clt_now_ms();
    return st;
}

culet_status cli_bench_profile_stop(cli_bench_profile *p, culet_engine *e, culet_error *err) {
    p->wall_ms = clt_now_ms() - p->wall_ms;
    size_t n = culet_engine_stages(e, p->stages, CLI_MOST_STAGES);
    p->n = n < CLI_MOST_STAGES ? n : CLI_MOST_STAGES;
    return culet_engine_profile(e, false, err);
}

/* ---- sums ---- */

/* Of all stages, or of those that multiply weights. */
static culet_stage sum_of(const cli_bench_profile *p, const char *name, bool products) {
    culet_stage sum = {.stage = name, .type = ""};
    for (size_t i = 0; i < p->n; i++) {
        const culet_stage *s = &p->stages[i];
        if (!products || s->macs) {
            sum.ms += s->ms;
            sum.busy_ms += s->busy_ms;
            sum.calls += s->calls;
            sum.macs += s->macs;
            sum.bytes += s->bytes;
        }
    }
    return sum;
}

/* 1e9 per second. */
static double rate(uint64_t count, double ms) {
    return ms > 0 ? (double)count / ms * 1e-6 : 0;
}

static double waited_ms(const cli_bench_profile *p, const culet_stage *s) {
    double ms = p->threads * s->ms - s->busy_ms;
    return ms > 0 ? ms : 0;
}

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

/* ---- writing ---- */

static void put_num(clt_jsonw *w, const char *key, double v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, v);
}

static void put_stage(const cli_bench_profile *p, const culet_stage *s, double all_ms, clt_jsonw *w) {
    clt_jsonw_open(w, '{');
    clt_jsonw_key(w, "stage");
    clt_jsonw_cstr(w, s->stage);
    clt_jsonw_key(w, "type");
    clt_jsonw_cstr(w, s->type);
    clt_jsonw_key(w, "calls");
    clt_jsonw_int(w, (int64_t)s->calls);
    put_num(w, "ms", s->ms);
    put_num(w, "percent", percent(s->ms, all_ms));
    put_num(w, "busy_ms", s->busy_ms);
    put_num(w, "waiting_ms", waited_ms(p, s));
    clt_jsonw_key(w, "macs");
    clt_jsonw_int(w, (int64_t)s->macs);
    clt_jsonw_key(w, "bytes");
    clt_jsonw_int(w, (int64_t)s->bytes);
    put_num(w, "gmac_s", rate(s->macs, s->ms));
    put_num(w, "gb_s", rate(s->bytes, s->ms));
    clt_jsonw_close(w, '}');
}

void cli_bench_profile_json(const cli_bench_profile *p, clt_jsonw *w) {
    culet_stage all = sum_of(p, "all", false), products = sum_of(p, "all products", true);
    clt_jsonw_open(w, '{');
    put_num(w, "wall_ms", p->wall_ms);
    clt_jsonw_key(w, "threads");
    clt_jsonw_int(w, p->threads);
    clt_jsonw_key(w, "stages");
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < p->n; i++) {
        put_stage(p, &p->stages[i], all.ms, w);
    }
    clt_jsonw_close(w, ']');
    clt_jsonw_key(w, "products");
    put_stage(p, &products, all.ms, w);
    clt_jsonw_key(w, "all");
    put_stage(p, &all, all.ms, w);
    clt_jsonw_close(w, '}');
}

static void put_row(const cli_bench_profile *p, const culet_stage *s, double all_ms, clt_buf *out) {
    clt_buf_printf(out, "| %-22s | %-7s | %8llu | %10.2f | %5.1f |", s->stage, s->type, (unsigned long long)s->calls, s->ms,
                   percent(s->ms, all_ms));
    if (s->macs) {
        clt_buf_printf(out, " %7.1f | %6.1f |", rate(s->macs, s->ms), rate(s->bytes, s->ms));
    } else {
        clt_buf_printf(out, " %7s | %6s |", "", "");
    }
    clt_buf_printf(out, " %6.1f |\n", percent(waited_ms(p, s), p->threads * s->ms));
}

void cli_bench_profile_text(const cli_bench_profile *p, const char *test, clt_buf *out) {
    culet_stage all = sum_of(p, "all", false), products = sum_of(p, "all products", true);
    if (!out->len) {
        clt_buf_puts(out, "Stages, each test once more and watched. GMAC/s counts a weight once for each row; GB/s counts "
                          "packed weights as often as they were\npassed over; waiting is a share of the threads' time in "
                          "that stage.\n");
    }
    clt_buf_printf(out,
                   "\n%s: %.1f ms on %d thread%s\n\n"
                   "| stage                  | weights |    calls |         ms | %% all |  GMAC/s |   GB/s | %% wait |\n"
                   "| ---------------------- | ------- | -------: | ---------: | ----: | ------: | -----: | -----: |\n",
                   test, p->wall_ms, p->threads, p->threads == 1 ? "" : "s");
    for (size_t i = 0; i < p->n; i++) {
        put_row(p, &p->stages[i], all.ms, out);
    }
    put_row(p, &products, all.ms, out);
    put_row(p, &all, all.ms, out);
}
