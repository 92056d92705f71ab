/* culet run: one prompt, one reply. The prompt is text (as a chat, or raw) or ids; the reply goes to standard output. */
#include <string.h>
#include "base/hash.h"
#include "base/mem.h"
#include "bound.h"
#include "content.h"
#include "media.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "reply.h"
#include "signals.h"
#include "verbs.h"

typedef struct run {
    const cli_args *args;
    culet_engine *engine;
    culet_session *session;
    clt_ids prompt;
    cli_media media;
    cli_bound bound;
    bool raw, in_thought;
    culet_sampling sampling;
    clt_ids prediction; /* --predict-file */
    int32_t *bias_ids;
    float *bias_values;
} run;

/* Markers of Gemma 3 are plain text to Gemma 4: the reply would be poor and nothing would say why. */
static void warn_old_markers(const run *r, const clt_buf *text) {
    if (!text->data || strcmp(culet_engine_info(r->engine)->architecture, "gemma4")) {
        return;
    }
    static const char *const markers[] = {"<start_of_turn>", "<end_of_turn>"};
    for (size_t i = 0; i < 2; i++) {
        if (memmem(text->data, text->len, markers[i], strlen(markers[i]))) {
            cli_note("warning: the prompt holds %s, a marker of Gemma 3 that is plain text to this Gemma 4 model",
                     markers[i]);
            return;
        }
    }
}

static int read_text_prompt(run *r) {
    cli_content content = {0};
    int code = cli_content_read(r->args, &content);
    for (size_t i = 0; i < content.n && r->raw; i++) {
        warn_old_markers(r, &content.item[i].text);
    }
    if (!code) {
        code = r->raw ? cli_content_tokenize(r->args, &content, r->engine, &r->prompt)
                      : cli_content_render(r->args, &content, r->engine, &r->prompt, &r->in_thought);
    }
    cli_content_free(&content);
    return code;
}

static int read_prompt(run *r) {
    const cli_args *args = r->args;
    const culet_model_info *info = culet_engine_info(r->engine);
    r->raw = args->raw || cli_completes_only(args, info);
    if (r->raw && args->system) {
        return cli_failf(CLT_E_USAGE, "--system-prompt: there is no place for it in a raw completion%s",
                         args->raw ? "" : "; this is a base model without a chat template");
    }
    int code = cli_media_load(args, r->engine, &r->media); /* before the text: a model that cannot see says so at once */
    if (code) {
        return code;
    }
    if (args->ids) {
        code = cli_read_ids(args->ids, info->vocab, &r->prompt);
        r->in_thought = !r->raw && cli_ids_in_thought(r->engine, r->prompt.data, r->prompt.len);
    } else {
        code = read_text_prompt(r);
    }
    if (!code && r->prompt.failed) {
        code = cli_failf(CLT_E_MEMORY, "run: out of memory for the prompt");
    }
    if (!code) {
        code = cli_media_expand(&r->media, r->engine, &r->prompt);
    }
    if (!code && !r->prompt.len) {
        code = cli_failf(CLT_E_USAGE, "--prompt: it has no tokens, and nothing can follow nothing");
    }
    return code;
}

static void show_facts(const run *r) {
    if (r->args->verbose) {
        const culet_model_info *info = culet_engine_info(r->engine);
        cli_say("culet: %s, %s, context %d, %zu prompt tokens, seed %llu", info->family, info->path,
                culet_session_context(r->session), r->prompt.len, (unsigned long long)r->sampling.seed);
    }
}

/* After a successful generation: what was not streamed. */
static int show_reply(run *r, const culet_reply *reply) {
    cli_timings timings;
    cli_timings_read(r->args, r->engine, r->session, reply, r->media.ms, &timings);
    if (r->args->json) {
        clt_buf document = {0};
        cli_reply_json(reply, r->prompt.data, r->prompt.len, &timings, &document);
        cli_out_buf(&document);
        clt_buf_free(&document);
    } else {
        cli_reply_note_calls(reply);
    }
    cli_timings_print(&timings, r->args->stats);
    return 0;
}

static int digest_of(const culet_reply *reply, char hex[65]) {
    clt_err err;
    clt_err_clear(&err);
    return clt_sha256_hex(reply->text, reply->text_len, hex, &err) ? cli_fail(&err) : 0;
}

static bool same_reply(const culet_reply *a, const culet_reply *b) {
    return a->n_ids == b->n_ids && !memcmp(a->ids, b->ids, a->n_ids * sizeof(*a->ids)) && a->text_len == b->text_len &&
           !memcmp(a->text, b->text, a->text_len) && a->finish == b->finish;
}

/* The same reply once more, with speculation and unseen. */
static int verify(run *r, const culet_generate_params *off, const culet_reply *want) {
    culet_generate_params p = *off;
    culet_reply got = {0};
    culet_error failure = {0};
    char without[65], with[65];
    p.on_delta = NULL;
    cli_speculation(r->args, &r->prediction, &p);
    cli_signals_hold(r->session);
    culet_status st = culet_session_rewind(r->session, 0, &failure);
    st = st ? st : culet_generate(r->session, &p, &got, &failure);
    cli_signals_release();
    cli_progress_end();
    int code = cli_signals_caught() ? cli_signals_exit() : st ? cli_fail_engine(&failure) : 0;
    code = code ? code : digest_of(want, without);
    code = code ? code : digest_of(&got, with);
    if (!code) {
        cli_say("spec off   %s  %zu tokens in %.1f ms", without, want->n_ids, want->timings.predicted_ms);
        cli_say("spec %-5s %s  %zu tokens in %.1f ms, %zu of %zu drafted were right", cli_spec_name(r->args->spec), with, got.n_ids,
                got.timings.predicted_ms, got.timings.draft_n_accepted, got.timings.draft_n);
        code = same_reply(want, &got) ? 0 : cli_failf(CLT_E_FAILED, "--verify-spec: the replies differ");
    }
    culet_reply_free(&got);
    return code;
}

static int generate(run *r) {
    const cli_args *args = r->args;
    cli_stream stream = {.silent = args->json, .hide_thoughts = args->quiet};
    culet_generate_params p = {
        .prompt = r->prompt.data,
        .n_prompt = r->prompt.len,
        .media = r->media.item,
        .n_media = r->media.n,
        .max_tokens = args->predict,
        .sampling = r->sampling,
        .stops = args->stops.items,
        .n_stops = args->stops.n,
        .raw = r->raw,
        .in_thought = r->in_thought,
        .on_delta = cli_stream_delta,
        .on_progress = cli_on_prompt_progress,
        .user = &stream,
    };
    culet_reply reply = {0};
    culet_error failure = {0};
    cli_bound_apply(&r->bound, args, &p);
    if (!args->verify_spec) { /* else it follows, and is compared */
        cli_speculation(args, &r->prediction, &p);
    }
    cli_signals_hold(r->session);
    culet_status st = culet_generate(r->session, &p, &reply, &failure);
    cli_signals_release();
    cli_progress_end();
    cli_stream_end(&stream, false);
    int code;
    if (cli_signals_caught()) {
        code = cli_signals_exit();
    } else if (st == CULET_CANCELLED) {
        code = CULET_FAILED; /* standard output failed; cli_finish says so */
    } else {
        code = st ? cli_fail_engine(&failure) : show_reply(r, &reply);
    }
    if (!code && args->verify_spec) {
        code = verify(r, &p, &reply);
    }
    culet_reply_free(&reply);
    return code;
}

/* Room for the prompt and what may follow it; without a limit on the reply, for a long one. */
static size_t wanted_context(const run *r) {
    enum { LONG_REPLY = 1024 };
    return r->prompt.len + (r->args->predict >= 0 ? (size_t)r->args->predict : LONG_REPLY);
}

int cli_run(const cli_args *args) {
    run r = {.args = args};
    int code = cli_check_operands(args, 0);
    if (!code) {
        code = cli_bound_read(args, &r.bound);
    }
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_FULL, args->threads, &r.engine);
    }
    if (!code) {
        code = read_prompt(&r);
    }
    if (!code) {
        code = cli_sampling(args, culet_engine_info(r.engine), &r.sampling, &r.bias_ids, &r.bias_values);
    }
    if (!code) {
        code = cli_open_session(args, r.engine, wanted_context(&r), &r.session);
    }
    if (!code) {
        code = cli_read_prediction(args, r.engine, &r.prediction);
    }
    if (!code) {
        show_facts(&r);
        code = generate(&r);
    }
    culet_session_close(r.session);
    cli_media_free(&r.media);
    cli_bound_free(&r.bound);
    culet_engine_close(r.engine);
    clt_ids_free(&r.prompt);
    clt_ids_free(&r.prediction);
    clt_free(r.bias_ids);
    clt_free(r.bias_values);
    return code;
}
