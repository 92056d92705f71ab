/* The slash commands of chat. They print to standard error and never end the conversation by failing. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "chat.h"
#include "open.h"
#include "out.h"
#include "signals.h"

typedef struct chat_command {
    const char *name;
    void (*run)(cli_chat_state *c, char *argument);
    const char *argument, *help;
} chat_command;

/* ---- conversation ---- */

static void do_clear(cli_chat_state *c, char *argument) {
    (void)argument;
    if (cli_chat_clear(c)) {
        cli_note("the conversation begins anew");
    } else {
        cli_failf(CLT_E_MEMORY, "/clear: out of memory");
    }
}

/* The same prompt with the next seed: the same seed would draw the same reply again. */
static void do_regen(cli_chat_state *c, char *argument) {
    (void)argument;
    if (!c->history.replied) {
        cli_failf(CLT_E_USAGE, "/regen: there is no reply yet");
        return;
    }
    cli_history_drop_last(&c->history);
    c->args.seed = ++c->sampling.seed;
    if (cli_chat_reply(c) && !c->history.replied) {
        cli_history_drop_last(&c->history);
    }
}

static void do_bye(cli_chat_state *c, char *argument) {
    (void)argument;
    c->leaving = true;
}

/* ---- settings ---- */

static void do_think(cli_chat_state *c, char *argument) {
    if (!strcmp(argument, "on") || !strcmp(argument, "off")) {
        c->args.think = !strcmp(argument, "on");
    } else if (argument[0]) {
        cli_failf(CLT_E_USAGE, "/think: '%s' is neither on nor off", argument);
        return;
    }
    cli_note("thinking is %s", c->args.think ? "on" : "off");
}

static void show_settings(const cli_chat_state *c) {
    const culet_sampling *s = &c->sampling;
    cli_say("temp %g  top_k %d  top_p %g  min_p %g  repeat_penalty %g  repeat_last_n %d", (double)s->temperature, s->top_k,
            (double)s->top_p, (double)s->min_p, (double)s->repeat_penalty, s->repeat_last_n);
    cli_say("presence_penalty %g  frequency_penalty %g  seed %llu  n_predict %d", (double)s->presence_penalty,
            (double)s->frequency_penalty, (unsigned long long)s->seed, c->args.predict);
}

static void do_set(cli_chat_state *c, char *argument) {
    if (!argument[0]) {
        show_settings(c);
        return;
    }
    char *value = argument + strcspn(argument, " \t=");
    if (*value) {
        *value++ = 0;
        value += strspn(value, " \t=");
    }
    clt_err err;
    clt_err_clear(&err);
    if (cli_args_set(&c->args, argument, value, &err)) {
        cli_fail(&err);
        return;
    }
    cli_chat_resample(c);
    cli_note("%s is %s", argument, value);
}

static void do_stats(cli_chat_state *c, char *argument) {
    (void)argument;
    if (!c->has_last) {
        cli_say("no reply yet");
        return;
    }
    cli_say("reused %zu of %zu prompt tokens", c->last.t.cache_n, c->last.t.cache_n + c->last.t.prompt_n);
    cli_timings_print(&c->last, CLI_STATS_TEXT);
}

/* ---- saved conversations ---- */

/* Floats as double print and read back exactly. */
static void put_real(clt_jsonw *w, const char *key, float v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, (double)v);
}

static void put_whole(clt_jsonw *w, const char *key, int64_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, v);
}

static void write_document(const cli_chat_state *c, clt_buf *out) {
    const culet_sampling *s = &c->sampling;
    clt_jsonw w = {.out = out};
    clt_jsonw_open(&w, '{');
    put_whole(&w, "culet_chat", 1);
    clt_jsonw_key(&w, "think");
    clt_jsonw_bool(&w, c->args.think);
    clt_jsonw_key(&w, "sampling");
    clt_jsonw_open(&w, '{');
    put_real(&w, "temp", s->temperature);
    put_whole(&w, "top_k", s->top_k);
    put_real(&w, "top_p", s->top_p);
    put_real(&w, "min_p", s->min_p);
    put_real(&w, "repeat_penalty", s->repeat_penalty);
    put_whole(&w, "repeat_last_n", s->repeat_last_n);
    put_real(&w, "presence_penalty", s->presence_penalty);
    put_real(&w, "frequency_penalty", s->frequency_penalty);
    put_whole(&w, "seed", (int64_t)s->seed); /* all 64 bits, read back as they are */
    put_whole(&w, "n_predict", c->args.predict);
    clt_jsonw_close(&w, '}');
    cli_history_write(&c->history, &w);
    clt_jsonw_close(&w, '}');
}

/* Pictures are saved with the session, which knows those that it has evaluated. */
static bool session_holds_media(const cli_chat_state *c) {
    cli_media held = {0};
    bool all = !c->history.n_media || (!cli_media_of_session(&held, c->session) && held.n >= c->history.n_media);
    cli_media_free(&held);
    if (!all) {
        cli_failf(CLT_E_FAILED, "/save: a picture or sound has not been answered yet; /regen and save again");
    }
    return all;
}

static void do_save(cli_chat_state *c, char *argument) {
    culet_error failure = {0};
    clt_buf document = {0};
    if (!argument[0]) {
        cli_failf(CLT_E_USAGE, "/save: needs a file name");
        return;
    }
    if (!session_holds_media(c)) {
        return;
    }
    write_document(c, &document);
    if (document.failed) {
        cli_failf(CLT_E_MEMORY, "/save: out of memory");
    } else if (culet_session_save(c->session, argument, document.data, document.len, &failure)) {
        cli_fail_engine(&failure);
    } else {
        cli_note("saved to %s", argument);
    }
    clt_buf_free(&document);
}

/* A saved value counts unless the command line gave its own. */
static void take_real(const clt_json *saved, const char *key, float given, float *value) {
    double v;
    if (isnan(given) && clt_json_num(clt_json_get(saved, key), &v)) {
        *value = (float)v;
    }
}

static void take_whole(const clt_json *saved, const char *key, bool given, int *value) {
    int64_t v;
    if (!given && clt_json_int(clt_json_get(saved, key), &v) && v >= INT_MIN && v <= INT_MAX) {
        *value = (int)v;
    }
}

static void take_settings(cli_chat_state *c, const clt_json *document) {
    const clt_json *s = clt_json_get(document, "sampling");
    const cli_args *g = c->given;
    cli_args *a = &c->args;
    int64_t seed;
    take_real(s, "temp", g->temperature, &a->temperature);
    take_real(s, "top_p", g->top_p, &a->top_p);
    take_real(s, "min_p", g->min_p, &a->min_p);
    take_real(s, "repeat_penalty", g->repeat_penalty, &a->repeat_penalty);
    take_real(s, "presence_penalty", g->presence_penalty, &a->presence_penalty);
    take_real(s, "frequency_penalty", g->frequency_penalty, &a->frequency_penalty);
    take_whole(s, "top_k", g->top_k != CLI_INT_UNSET, &a->top_k);
    take_whole(s, "repeat_last_n", g->repeat_last_n != CLI_INT_UNSET, &a->repeat_last_n);
    take_whole(s, "n_predict", g->predict != -1, &a->predict);
    if (!g->seed_given && clt_json_int(clt_json_get(s, "seed"), &seed)) {
        a->seed = (uint64_t)seed;
        a->seed_given = true;
    }
    a->think = clt_json_is_true(clt_json_get(document, "think"));
    cli_chat_resample(c);
}

static void do_load(cli_chat_state *c, char *argument) {
    culet_error failure = {0};
    clt_err err;
    clt_json *document = NULL;
    char *text = NULL;
    size_t len = 0;
    cli_media media = {0};
    clt_err_clear(&err);
    if (!argument[0]) {
        cli_failf(CLT_E_USAGE, "/load: needs a file name");
        return;
    }
    if (culet_session_load(c->session, argument, &text, &len, &failure)) {
        cli_fail_engine(&failure);
    } else if (cli_media_of_session(&media, c->session)) {
        cli_content_free(&c->waiting); /* said already */
    } else if (clt_json_parse(text ? text : "", len, argument, &document, &err) ||
               cli_history_read(&c->history, document, culet_engine_info(c->engine)->vocab, &media, &err)) {
        /* The session's tokens changed, which only costs time: the next reply brings it back to this conversation. */
        cli_fail(&err);
    } else {
        cli_content_free(&c->waiting); /* belonged to the conversation that is gone */
        take_settings(c, document);
        c->has_last = false;
        cli_note("loaded %s: %zu messages, %zu tokens", argument, c->history.n, c->history.ids.len);
    }
    cli_media_free(&media);
    clt_json_free(document);
    culet_free(text);
}

/* ---- the table ---- */

/* Encodes a file and lets it wait for the text that comes next. */
static void do_media(cli_chat_state *c, const char *command, cli_part_kind kind, const char *path) {
    cli_content *w = &c->waiting;
    if (!path[0]) {
        cli_failf(CLT_E_USAGE, "%s: needs a file name", command);
        return;
    }
    cli_item *grown = clt_realloc(w->item, (w->n + 2) * sizeof(*grown)); /* this one, and the text */
    if (!grown) {
        cli_failf(CLT_E_MEMORY, "%s: out of memory", command);
        return;
    }
    w->item = grown;
    cli_signals_hold_media(c->engine);
    int code = cli_media_add(&c->history.media, c->engine, kind, path, c->args.image_tokens);
    cli_signals_release();
    if (!code) {
        const culet_media_info *info = culet_media_get_info(c->history.media.item[c->history.media.n - 1]);
        w->item[w->n++] = (cli_item){.kind = kind};
        cli_note("%s: %zu tokens, in %.0f ms; it goes with your next message", path, info->tokens,
                 info->decode_ms + info->encode_ms);
    }
}

static void do_image(cli_chat_state *c, char *argument) {
    do_media(c, "/image", CLI_PART_IMAGE, argument);
}

static void do_audio(cli_chat_state *c, char *argument) {
    do_media(c, "/audio", CLI_PART_AUDIO, argument);
}

static void do_help(cli_chat_state *c, char *argument);

static const chat_command commands[] = {
    {"/clear", do_clear, "", "forget the conversation"},
    {"/regen", do_regen, "", "answer the last message again"},
    {"/save", do_save, "FILE", "save the conversation and its state"},
    {"/load", do_load, "FILE", "continue a saved conversation"},
    {"/think", do_think, "on|off", "let the model think first"},
    {"/set", do_set, "NAME VALUE", "change a sampling value; alone, show them"},
    {"/stats", do_stats, "", "times and reused tokens of the last reply"},
    {"/image", do_image, "FILE", "show a picture with the next message"},
    {"/audio", do_audio, "FILE", "let a sound be heard with the next message"},
    {"/?", do_help, "", "this list"},
    {"/help", do_help, "", "this list"},
    {"/bye", do_bye, "", "leave"},
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void do_help(cli_chat_state *c, char *argument) {
    (void)c;
    (void)argument;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        cli_say("  %-8s%-12s%s", commands[i].name, commands[i].argument, commands[i].help);
    }
    cli_say("  \"\"\" begins and ends a message of several lines; Ctrl-C stops a reply, twice leaves");
}

void cli_chat_command(cli_chat_state *c, const char *line) {
    const char *names[N_COMMANDS];
    clt_err err;
    char *copy = clt_strdup(line);
    if (!copy) {
        cli_failf(CLT_E_MEMORY, "%.16s: out of memory", line);
        return;
    }
    char *argument = copy + strcspn(copy, " \t");
    if (*argument) {
        *argument++ = 0;
        argument += strspn(argument, " \t");
    }
    for (size_t end = strlen(argument); end && strchr(" \t\r", argument[end - 1]); end--) {
        argument[end - 1] = 0;
    }
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (!strcmp(copy, commands[i].name)) {
            commands[i].run(c, argument);
            clt_free(copy);
            return;
        }
    }
    clt_err_clear(&err);
    clt_fail(&err, CLT_E_USAGE, "%s: unknown command", copy);
    const char *near = cli_nearest(copy, names, N_COMMANDS);
    clt_hint(&err, "%s%s", near ? "did you mean " : "/? lists the commands", near ? near : "");
    cli_fail(&err);
    clt_free(copy);
}
