/* culet chat: a conversation on one session. Reads lines, answers, keeps the history; the slash commands are in
 * chat_commands.c. Replies go to standard output, each ended by a newline; everything else goes to standard error. */
#include "chat.h"
#include <signal.h>
#include <string.h>
#include "base/mem.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "signals.h"
#include "verbs.h"

/* ---- one reply ---- */

/* After the engine stopped: keeps the reply, also one that Ctrl-C cut short. */
static int take_reply(cli_chat_state *c, culet_status st, const culet_reply *reply, culet_error *failure) {
    if (cli_signals_caught() == SIGTERM) {
        c->leaving = true;
        return cli_signals_exit();
    }
    if (st == CULET_CANCELLED && !cli_signals_caught()) {
        c->leaving = true; /* standard output failed; cli_finish says so */
        return CULET_FAILED;
    }
    if (st && st != CULET_CANCELLED) {
        return cli_fail_engine(failure);
    }
    if (cli_history_reply(&c->history, c->engine, reply, failure)) {
        return cli_fail_engine(failure);
    }
    cli_timings_read(&c->args, c->engine, c->session, reply, c->vision_ms, &c->last);
    c->has_last = true;
    cli_reply_note_calls(reply);
    cli_timings_print(&c->last, c->args.stats);
    if (cli_signals_caught()) {
        cli_note("stopped; Ctrl-C again leaves");
    }
    return 0;
}

/* The history's ids with all tokens of its pictures and sounds; *whole is to be freed. */
static culet_status whole_prompt(const cli_chat_state *c, culet_generate_params *p, int32_t **whole, culet_error *failure) {
    const cli_history *h = &c->history;
    p->media = h->media.item;
    p->n_media = h->n_media;
    p->prompt = h->ids.data;
    p->n_prompt = h->ids.len;
    if (!h->n_media) {
        return CULET_OK;
    }
    culet_status st = culet_media_expand(c->engine, h->ids.data, h->ids.len, h->media.item, h->n_media, whole, &p->n_prompt,
                                         failure);
    p->prompt = *whole;
    return st;
}

int cli_chat_reply(cli_chat_state *c) {
    cli_stream stream = {.hide_thoughts = c->args.quiet};
    culet_generate_params p = {
        .max_tokens = c->args.predict,
        .sampling = c->sampling,
        .stops = c->args.stops.items,
        .n_stops = c->args.stops.n,
        .on_delta = cli_stream_delta,
        .on_progress = cli_on_prompt_progress,
        .user = &stream,
    };
    culet_reply reply = {0};
    culet_error failure = {0};
    int32_t *whole = NULL;
    cli_speculation(&c->args, &c->prediction, &p);
    cli_bound_apply(&c->bound, &c->args, &p);
    cli_signals_hold(c->session);
    culet_status st = cli_history_prompt(&c->history, c->engine, c->args.think, &p.in_thought, &failure);
    if (!st) {
        st = whole_prompt(c, &p, &whole, &failure);
    }
    if (!st) {
        st = culet_generate(c->session, &p, &reply, &failure);
        cli_progress_end();
        cli_stream_end(&stream, !st || stream.any);
    }
    cli_signals_release();
    int code = take_reply(c, st, &reply, &failure);
    culet_reply_free(&reply);
    culet_free(whole);
    if (st == CULET_CONTEXT) {
        cli_say("/clear begins anew; a larger context is set with -c");
    }
    return code;
}

/* What waits stands before the text: in this order it was given. */
static bool add_message(cli_chat_state *c, const char *text, size_t len) {
    cli_content *w = &c->waiting;
    if (!w->n) {
        c->vision_ms = 0;
        return cli_history_add(&c->history, "user", text, len);
    }
    cli_item *last = &w->item[w->n]; /* do_media has left room for it */
    *last = (cli_item){.kind = CLI_PART_TEXT};
    clt_buf_put(&last->text, text, len);
    w->n++;
    bool added = cli_history_add_content(&c->history, "user", w);
    c->vision_ms = c->history.media.ms;
    c->history.media.ms = 0;
    cli_content_free(w);
    return added;
}

static void answer(cli_chat_state *c, const char *text, size_t len) {
    int code;
    if (!add_message(c, text, len)) {
        code = cli_failf(CLT_E_MEMORY, "chat: out of memory for the conversation");
    } else {
        code = cli_chat_reply(c);
        if (code && !c->history.replied) {
            cli_history_drop_last(&c->history);
        }
    }
    /* A script that pipes its lines in learns of a reply that failed; a person has seen it. */
    if (code && (c->leaving || !cli_in_terminal())) {
        c->exit_code = c->exit_code ? c->exit_code : code;
    }
}

/* ---- lines ---- */

/* A message between """ and """, which may span lines. `line` holds the first. The line breaks at the quotes do not count.
 */
static cli_line_result read_block(cli_chat_state *c, clt_buf *line, clt_buf *text) {
    static const char quotes[] = "\"\"\"";
    bool first = true; /* nothing but the quotes on the first line: the message begins on the next */
    clt_buf_put(text, line->data + 3, line->len - 3);
    for (;;) {
        if (text->len >= 3 && !memcmp(text->data + text->len - 3, quotes, 3)) {
            text->len -= 3;
            text->len -= text->len && text->data[text->len - 1] == '\n';
            text->data[text->len] = 0;
            return CLI_LINE;
        }
        cli_line_result r = cli_lines_next(c->lines, "... ", line);
        if (r != CLI_LINE) {
            return r == CLI_LINE_END && text->len ? CLI_LINE : r;
        }
        if (!first || text->len) {
            clt_buf_putc(text, '\n');
        }
        first = false;
        clt_buf_put(text, line->data ? line->data : "", line->len);
    }
}

static void handle_line(cli_chat_state *c, clt_buf *line, cli_line_result *result) {
    if (line->len >= 3 && !memcmp(line->data, "\"\"\"", 3)) {
        clt_buf text = {0};
        *result = read_block(c, line, &text);
        if (*result == CLI_LINE && text.failed) {
            *result = CLI_LINE_FAILED;
        } else if (*result == CLI_LINE) {
            answer(c, text.data, text.len);
        }
        clt_buf_free(&text);
    } else if (line->len && line->data[0] == '/') {
        cli_chat_command(c, line->data);
    } else if (line->len && strspn(line->data, " \t\r") < line->len) {
        answer(c, line->data, line->len);
    }
}

static void leave(cli_chat_state *c, int code) {
    c->leaving = true;
    c->exit_code = code ? code : c->exit_code;
}

/* Ctrl-C stops a reply; at the prompt, or right after a stopped reply, a second one leaves. */
static void talk(cli_chat_state *c) {
    clt_buf line = {0};
    bool warned = false;
    while (!c->leaving) {
        cli_line_result r = cli_lines_next(c->lines, ">>> ", &line);
        if (r == CLI_LINE) {
            handle_line(c, &line, &r);
            warned = r == CLI_LINE && cli_signals_caught() == SIGINT;
        }
        if (r == CLI_LINE_SIGNAL && cli_signals_caught() == SIGINT && !warned) {
            cli_say("Ctrl-C again leaves, and so does /bye");
            warned = true;
        } else if (r == CLI_LINE_SIGNAL) {
            leave(c, cli_signals_exit());
        } else if (r == CLI_LINE_FAILED) {
            leave(c, cli_failf(CLT_E_MEMORY, "chat: out of memory for a line"));
        } else if (r == CLI_LINE_END) {
            leave(c, 0);
        }
    }
    clt_buf_free(&line);
}

/* ---- the command ---- */

bool cli_chat_clear(cli_chat_state *c) {
    cli_history_free(&c->history);
    cli_content_free(&c->waiting);
    return !c->args.system || cli_history_add(&c->history, "system", c->args.system, strlen(c->args.system));
}

void cli_chat_resample(cli_chat_state *c) {
    culet_sampling fresh;
    uint64_t seed = c->sampling.seed;
    clt_free(c->bias_ids);
    clt_free(c->bias_values);
    if (!cli_sampling(&c->args, culet_engine_info(c->engine), &fresh, &c->bias_ids, &c->bias_values)) {
        fresh.seed = c->args.seed_given ? c->args.seed : seed;
        c->sampling = fresh;
    }
}

static int open_chat(cli_chat_state *c) {
    const cli_args *args = c->given;
    int code = cli_open_engine(args, CULET_OPEN_FULL, args->threads, &c->engine);
    if (code) {
        return code;
    }
    const culet_model_info *info = culet_engine_info(c->engine);
    if (cli_completes_only(args, info)) {
        clt_err err;
        clt_err_clear(&err);
        clt_fail(&err, CLT_E_UNSUPPORTED, "%s: a base model, which completes text and does not chat", info->path);
        clt_hint(&err, "use culet run, or name a template with --chat-template-file");
        return cli_fail(&err);
    }
    code = cli_sampling(args, info, &c->sampling, &c->bias_ids, &c->bias_values);
    if (!code) {
        code = cli_open_session(args, c->engine, 0, &c->session);
    }
    code = code ? code : cli_read_prediction(args, c->engine, &c->prediction);
    if (!code && (!cli_chat_clear(c) || !(c->lines = cli_lines_open()))) {
        code = cli_failf(CLT_E_MEMORY, "chat: out of memory");
    }
    if (!code && (args->verbose || cli_in_terminal())) {
        cli_note("%s, context %d; /? for help", info->family, culet_session_context(c->session));
    }
    if (!code && args->verbose) {
        cli_note("seed %llu", (unsigned long long)c->sampling.seed);
    }
    return code;
}

int cli_chat(const cli_args *args) {
    cli_chat_state c = {.given = args, .args = *args};
    int code = cli_check_operands(args, 0);
    if (!code) {
        code = cli_bound_read(args, &c.bound);
    }
    if (!code) {
        code = open_chat(&c);
    }
    if (!code) {
        talk(&c);
        code = c.exit_code;
    }
    cli_lines_close(c.lines);
    cli_history_free(&c.history);
    cli_content_free(&c.waiting);
    cli_bound_free(&c.bound);
    culet_session_close(c.session);
    culet_engine_close(c.engine);
    clt_free(c.bias_ids);
    clt_free(c.bias_values);
    clt_ids_free(&c.prediction);
    return code;
}
