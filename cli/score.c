/* culet score: how likely a text is to the model, and how far the model is from saved logits.
 *
 * The text is tokenised once and cut into windows. With BOS a window is BOS and context - 1 tokens, each scored; without it
 * a window is context tokens, of which the first is not scored. Rows are used as they come: at most two are in memory. */
#include <math.h>
#include "base/json.h"
#include "base/mem.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "rawfile.h"
#include "score_base.h"
#include "signals.h"
#include "verbs.h"

typedef struct score {
    const cli_args *args;
    culet_engine *engine;
    culet_session *session;
    size_t vocab;
    clt_ids tokens;           /* the text, without BOS */
    clt_ids window;           /* the ids being evaluated */
    size_t windows, rows, scored;
    double nll, nll_squared;  /* sums over scored tokens, nats */
    cli_rawfile logits, ids;  /* --save-logits */
    char *ids_path;
    cli_score_base base;      /* --kl-base */
    clt_err err;
} score;

/* ln of the sum of exp: what turns logits into log-probabilities. */
double cli_log_sum_exp(const float *logits, size_t n) {
    float most = logits[0];
    double sum = 0;
    for (size_t i = 1; i < n; i++) {
        most = logits[i] > most ? logits[i] : most;
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)logits[i] - (double)most);
    }
    return (double)most + log(sum);
}

static bool on_row(void *user, size_t row, const float *logits) {
    score *s = user;
    double log_sum = cli_log_sum_exp(logits, s->vocab);
    if (row + 1 < s->window.len) {
        double nll = log_sum - (double)logits[s->window.data[row + 1]];
        if (isnan(nll)) {
            clt_fail(&s->err, CLT_E_FAILED, "score: the logits of row %zu are not numbers", s->rows);
            clt_hint(&s->err, "the model's weights are damaged; culet show and another copy of the file help to tell");
            return false;
        }
        s->nll += nll;
        s->nll_squared += nll * nll;
        s->scored++;
    }
    s->rows++;
    if (s->logits.stream) {
        if (cli_rawfile_write(&s->logits, logits, s->vocab, &s->err) ||
            cli_rawfile_write(&s->ids, &s->window.data[row], 1, &s->err)) {
            return false;
        }
    }
    if (s->base.stream) {
        return cli_score_base_row(&s->base, s->window.data[row], logits, log_sum, &s->err) == CLT_OK;
    }
    return true;
}

static int evaluate_windows(score *s, size_t context) {
    bool bos = !s->args->no_bos && !s->args->ids;
    size_t per_window = bos ? context - 1 : context;
    for (size_t at = 0; at < s->tokens.len; at += per_window) {
        size_t n = s->tokens.len - at < per_window ? s->tokens.len - at : per_window;
        culet_error failure = {0};
        s->window.len = 0;
        if (bos) {
            clt_ids_push(&s->window, culet_engine_info(s->engine)->bos_id);
        }
        clt_ids_append(&s->window, s->tokens.data + at, n);
        if (s->window.failed) {
            return cli_failf(CLT_E_MEMORY, "score: out of memory for a window of %zu tokens", context);
        }
        cli_signals_hold(s->session);
        culet_status st = culet_session_logits_all(s->session, s->window.data, s->window.len, on_row, s, &failure);
        cli_signals_release();
        if (cli_signals_caught()) {
            return cli_signals_exit();
        }
        if (s->err.code) {
            return cli_fail(&s->err);
        }
        if (st) {
            return cli_fail_engine(&failure);
        }
        s->windows++;
        cli_progress("scoring", (double)(at + n) / (double)s->tokens.len);
    }
    cli_progress_end();
    return s->base.stream && cli_score_base_end(&s->base, &s->err) ? cli_fail(&s->err) : 0;
}

/* ---- files ---- */

static int open_files(score *s) {
    const cli_args *args = s->args;
    if (args->kl_base && cli_score_base_open(args->kl_base, s->vocab, &s->base, &s->err)) {
        return cli_fail(&s->err);
    }
    if (!args->save_logits) {
        return 0;
    }
    clt_buf path = {0};
    clt_buf_printf(&path, "%s.ids", args->save_logits);
    s->ids_path = path.data;
    if (path.failed) {
        return cli_failf(CLT_E_MEMORY, "score: out of memory");
    }
    if (cli_rawfile_create(args->save_logits, &s->logits, &s->err) || cli_rawfile_create(s->ids_path, &s->ids, &s->err)) {
        return cli_fail(&s->err);
    }
    return 0;
}

static int close_files(score *s, int code) {
    clt_status first = cli_rawfile_close(&s->logits, !code, &s->err);
    clt_status second = cli_rawfile_close(&s->ids, !code, &s->err);
    cli_score_base_close(&s->base);
    clt_free(s->ids_path);
    return first || second ? cli_fail(&s->err) : code;
}

/* ---- results ---- */

static double standard_error(double sum, double sum_squared, size_t n) {
    if (n < 2) {
        return 0;
    }
    double mean = sum / (double)n, variance = (sum_squared / (double)n - mean * mean) * (double)n / (double)(n - 1);
    return variance > 0 ? sqrt(variance / (double)n) : 0;
}

static void put_num(clt_jsonw *w, const char *key, double v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, v);
}

static void put_count(clt_jsonw *w, const char *key, size_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, (int64_t)v);
}

static void write_json(const score *s, size_t context) {
    clt_buf document = {0};
    clt_jsonw w = {.out = &document};
    double mean = s->scored ? s->nll / (double)s->scored : NAN;
    clt_jsonw_open(&w, '{');
    put_count(&w, "tokens", s->tokens.len);
    put_count(&w, "scored", s->scored);
    put_count(&w, "windows", s->windows);
    put_count(&w, "context", context);
    put_count(&w, "rows", s->rows);
    put_num(&w, "nll", s->nll);
    put_num(&w, "nll_mean", mean);
    put_num(&w, "nll_mean_stderr", standard_error(s->nll, s->nll_squared, s->scored));
    put_num(&w, "perplexity", exp(mean));
    if (s->args->kl_base) {
        clt_jsonw_key(&w, "kl");
        cli_score_base_json(&s->base, &w);
    }
    clt_jsonw_close(&w, '}');
    clt_buf_putc(&document, '\n');
    cli_out_buf(&document);
    clt_buf_free(&document);
}

static void write_text(const score *s, size_t context) {
    clt_buf text = {0};
    double mean = s->scored ? s->nll / (double)s->scored : NAN;
    clt_buf_printf(&text, "tokens      %zu scored of %zu, in %zu windows of at most %zu\n", s->scored, s->tokens.len,
                   s->windows, context);
    clt_buf_printf(&text, "nll         %.6f in all, %.6f ± %.6f per token\n", s->nll, mean,
                   standard_error(s->nll, s->nll_squared, s->scored));
    clt_buf_printf(&text, "perplexity  %.6f\n", exp(mean));
    if (s->args->kl_base) {
        cli_score_base_text(&s->base, &text);
    }
    cli_out_buf(&text);
    clt_buf_free(&text);
}

/* ---- the command ---- */

/* The text without BOS: every window brings its own. */
static int read_text(score *s) {
    cli_args plain = *s->args;
    plain.no_bos = true;
    int code = cli_read_tokens(&plain, s->engine, &s->tokens);
    if (!code && s->tokens.len < (s->args->no_bos || s->args->ids ? 2u : 1u)) {
        code = cli_failf(CLT_E_USAGE, "--file: the text has %zu tokens, too few to score one", s->tokens.len);
    }
    return code;
}

int cli_score(const cli_args *args) {
    score s = {.args = args};
    size_t context = 0;
    int code = cli_check_operands(args, 0);
    if (!code && (args->context == 1)) {
        code = cli_failf(CLT_E_USAGE, "--ctx-size: scoring needs a context of 2 tokens at least");
    }
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_FULL, args->threads, &s.engine);
    }
    if (!code) {
        s.vocab = (size_t)culet_engine_info(s.engine)->vocab;
        code = read_text(&s);
    }
    if (!code) {
        code = cli_open_session(args, s.engine, 0, &s.session);
    }
    if (!code) {
        code = open_files(&s);
    }
    if (!code) {
        context = (size_t)culet_session_context(s.session);
        code = evaluate_windows(&s, context);
    }
    code = close_files(&s, code);
    if (!code && args->json) {
        write_json(&s, context);
    } else if (!code) {
        write_text(&s, context);
    }
    clt_ids_free(&s.tokens);
    clt_ids_free(&s.window);
    culet_session_close(s.session);
    culet_engine_close(s.engine);
    return code;
}
