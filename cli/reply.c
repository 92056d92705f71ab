/* Shows replies: deltas as they come, then timings or one JSON document. Evaluates nothing. */
#include "reply.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/json.h"
#include "base/os.h"
#include "open.h"
#include "out.h"

/* ---- streaming ---- */

bool cli_stream_delta(void *stream, culet_delta kind, const char *text, size_t len) {
    cli_stream *s = stream;
    if (s->silent || !len) {
        return true;
    }
    if (kind == CULET_DELTA_THOUGHT) {
        if (!s->hide_thoughts) {
            cli_err_text(text, len, true);
            s->in_thought = true;
        }
        return true;
    }
    if (s->in_thought) {
        cli_err_text("\n", 1, false);
        s->in_thought = false;
    }
    s->any = true;
    s->newline = text[len - 1] == '\n';
    return cli_out_text(text, len);
}

void cli_stream_end(cli_stream *s, bool always) {
    if (s->in_thought) {
        cli_err_text("\n", 1, false);
        s->in_thought = false;
    }
    if (!s->silent && (always || (cli_out_terminal() && s->any && !s->newline))) {
        cli_out("\n", 1);
    }
}

/* ---- timings ---- */

void cli_timings_read(const cli_args *args, const culet_engine *e, const culet_session *s, const culet_reply *r,
                      double vision_ms, cli_timings *out) {
    const culet_model_info *info = culet_engine_info(e);
    *out = (cli_timings){
        .t = r->timings,
        .finish = r->finish,
        .load_ms = info->load_ms,
        .vision_ms = vision_ms,
        .kv_bytes = culet_session_kv_bytes(s),
        .spec = cli_spec_name(args->spec),
        .cpu_level = info->cpu_level,
        .threads = info->threads,
    };
}

static double per_second(size_t n, double ms) {
    return ms > 0 ? (double)n * 1000 / ms : 0;
}

static void put_int(clt_jsonw *w, const char *key, uint64_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, (int64_t)v);
}

/* Times to the microsecond: more digits would be noise. */
static void put_num(clt_jsonw *w, const char *key, double v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, round(v * 1000) / 1000);
}

static void put_text(clt_jsonw *w, const char *key, const char *v) {
    clt_jsonw_key(w, key);
    clt_jsonw_cstr(w, v);
}

void cli_timings_json(const cli_timings *m, clt_buf *out) {
    clt_jsonw w = {.out = out};
    clt_jsonw_open(&w, '{');
    put_int(&w, "cache_n", m->t.cache_n);
    put_int(&w, "prompt_n", m->t.prompt_n);
    put_num(&w, "prompt_ms", m->t.prompt_ms);
    put_num(&w, "prompt_per_second", per_second(m->t.prompt_n, m->t.prompt_ms));
    put_int(&w, "predicted_n", m->t.predicted_n);
    put_num(&w, "predicted_ms", m->t.predicted_ms);
    put_num(&w, "predicted_per_second", per_second(m->t.predicted_n, m->t.predicted_ms));
    put_int(&w, "draft_n", m->t.draft_n);
    put_int(&w, "draft_n_accepted", m->t.draft_n_accepted);
    put_num(&w, "ttft_ms", m->t.ttft_ms);
    put_num(&w, "load_ms", m->load_ms);
    put_num(&w, "vision_ms", m->vision_ms);
    put_int(&w, "rss_peak_bytes", clt_rss_peak_bytes());
    put_int(&w, "kv_bytes", m->kv_bytes);
    put_text(&w, "finish_reason", culet_finish_name(m->finish));
    put_text(&w, "spec_type", m->spec);
    put_text(&w, "cpu_level", m->cpu_level);
    put_int(&w, "threads", (uint64_t)m->threads);
    clt_jsonw_close(&w, '}');
}

void cli_timings_print(const cli_timings *m, int stats) {
    const culet_timings *t = &m->t;
    if (stats == CLI_STATS_JSON) {
        clt_buf line = {0};
        cli_timings_json(m, &line);
        clt_buf_putc(&line, '\n');
        cli_err_text(line.data, line.len, false);
        clt_buf_free(&line);
    } else if (stats == CLI_STATS_TEXT) {
        cli_say("prompt   %zu tokens: %zu reused, %zu evaluated in %.1f ms (%.1f per second)", t->cache_n + t->prompt_n,
                t->cache_n, t->prompt_n, t->prompt_ms, per_second(t->prompt_n, t->prompt_ms));
        if (m->vision_ms > 0) {
            cli_say("media    decoded and encoded in %.1f ms", m->vision_ms);
        }
        cli_say("reply    %zu tokens in %.1f ms (%.1f per second), first after %.1f ms, ended by %s", t->predicted_n,
                t->predicted_ms, per_second(t->predicted_n, t->predicted_ms), t->ttft_ms, culet_finish_name(m->finish));
        if (t->draft_n) {
            cli_say("drafts   %zu tokens, %zu of them right (%.0f %%)", t->draft_n, t->draft_n_accepted,
                    100 * (double)t->draft_n_accepted / (double)t->draft_n);
        }
        cli_say("memory   %.1f MiB at most, cache %.1f MiB; load %.1f ms; %s, %d thread%s",
                (double)clt_rss_peak_bytes() / 1048576, (double)m->kv_bytes / 1048576, m->load_ms, m->cpu_level, m->threads,
                m->threads == 1 ? "" : "s");
    }
}

/* ---- the document ---- */

static void put_ids(clt_jsonw *w, const char *key, const int32_t *ids, size_t n) {
    clt_jsonw_key(w, key);
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < n; i++) {
        clt_jsonw_int(w, ids[i]);
    }
    clt_jsonw_close(w, ']');
}

/* OpenAI's form of tool calls. */
static void put_calls(clt_jsonw *w, const culet_reply *r) {
    clt_jsonw_key(w, "tool_calls");
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < r->n_calls; i++) {
        char id[32];
        snprintf(id, sizeof(id), "call_%zu", i);
        clt_jsonw_open(w, '{');
        put_text(w, "id", id);
        put_text(w, "type", "function");
        clt_jsonw_key(w, "function");
        clt_jsonw_open(w, '{');
        put_text(w, "name", r->calls[i].name);
        put_text(w, "arguments", r->calls[i].arguments);
        clt_jsonw_close(w, '}');
        clt_jsonw_close(w, '}');
    }
    clt_jsonw_close(w, ']');
}

void cli_reply_json(const culet_reply *r, const int32_t *prompt, size_t n_prompt, const cli_timings *m, clt_buf *out) {
    clt_buf timings = {0};
    clt_jsonw w = {.out = out};
    clt_jsonw_open(&w, '{');
    put_ids(&w, "prompt_ids", prompt, n_prompt);
    put_ids(&w, "ids", r->ids, r->n_ids);
    clt_jsonw_key(&w, "text");
    clt_jsonw_str(&w, r->text ? r->text : "", r->text_len);
    clt_jsonw_key(&w, "reasoning");
    clt_jsonw_str(&w, r->thought ? r->thought : "", r->thought_len);
    put_calls(&w, r);
    put_text(&w, "finish_reason", culet_finish_name(r->finish));
    cli_timings_json(m, &timings);
    clt_jsonw_key(&w, "timings");
    clt_jsonw_raw(&w, timings.data ? timings.data : "null", timings.data ? timings.len : 4);
    clt_jsonw_close(&w, '}');
    clt_buf_putc(out, '\n');
    out->failed |= timings.failed;
    clt_buf_free(&timings);
}

void cli_reply_note_calls(const culet_reply *r) {
    for (size_t i = 0; i < r->n_calls; i++) {
        cli_note("the model calls %s %s", r->calls[i].name, r->calls[i].arguments);
    }
}
