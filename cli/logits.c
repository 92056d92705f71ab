/* culet logits: ids (or a text) -> the model's logits in a file of raw float32, the last row or every row. */
#include "content.h"
#include "media.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "rawfile.h"
#include "signals.h"
#include "verbs.h"

typedef struct writer {
    cli_rawfile file;
    size_t vocab, rows;
    clt_err err;
} writer;

static bool on_row(void *user, size_t row, const float *logits) {
    writer *w = user;
    (void)row;
    w->rows++;
    return cli_rawfile_write(&w->file, logits, w->vocab, &w->err) == CLT_OK;
}

static int evaluate(const cli_args *args, culet_session *s, const clt_ids *ids, const cli_media *m, writer *w) {
    culet_error failure = {0};
    culet_status st;
    cli_signals_hold(s);
    if (args->all) {
        st = culet_session_logits_all_media(s, ids->data, ids->len, m->item, m->n, on_row, w, &failure);
    } else {
        st = culet_session_sync_media(s, ids->data, ids->len, m->item, m->n, NULL, &failure);
        if (!st) {
            on_row(w, ids->len - 1, culet_session_logits(s));
        }
    }
    cli_signals_release();
    if (cli_signals_caught()) {
        return cli_signals_exit();
    }
    if (w->err.code) {
        return cli_fail(&w->err);
    }
    return st ? cli_fail_engine(&failure) : 0;
}

static void report(const cli_args *args, const writer *w) {
    if (args->json) {
        cli_outf("{\"rows\":%zu,\"vocab\":%zu}\n", w->rows, w->vocab);
    } else if (args->verbose) {
        cli_say("culet: %zu rows of %zu values in %s", w->rows, w->vocab, w->file.path);
    }
}

static int read_prompt(const cli_args *args, culet_engine *e, clt_ids *ids, cli_media *media) {
    cli_content content = {0};
    int code = cli_media_load(args, e, media);
    if (code) {
        return code;
    }
    if (args->ids) {
        code = cli_read_ids(args->ids, culet_engine_info(e)->vocab, ids);
    } else {
        code = cli_content_read(args, &content);
        code = code ? code : cli_content_tokenize(args, &content, e, ids);
    }
    cli_content_free(&content);
    return code ? code : cli_media_expand(media, e, ids);
}

int cli_logits(const cli_args *args) {
    culet_engine *e = NULL;
    culet_session *s = NULL;
    clt_ids ids = {0};
    cli_media media = {0};
    writer w = {0};
    int code = cli_check_operands(args, 0);
    if (!code && !args->out_file) {
        code = cli_failf(CLT_E_USAGE, "--out: logits needs a file to write to");
    }
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_FULL, args->threads, &e);
    }
    if (!code) {
        code = read_prompt(args, e, &ids, &media);
    }
    if (!code && !ids.len) {
        code = cli_failf(CLT_E_USAGE, "--ids: there are none, so there is no row");
    }
    if (!code) {
        code = cli_open_session(args, e, ids.len, &s);
    }
    if (!code && cli_rawfile_create(args->out_file, &w.file, &w.err)) {
        code = cli_fail(&w.err);
    }
    if (!code) {
        w.vocab = (size_t)culet_engine_info(e)->vocab;
        code = evaluate(args, s, &ids, &media, &w);
    }
    if (cli_rawfile_close(&w.file, !code, &w.err)) {
        code = cli_fail(&w.err);
    }
    if (!code) {
        report(args, &w);
    }
    clt_ids_free(&ids);
    culet_session_close(s);
    cli_media_free(&media);
    culet_engine_close(e);
    return code;
}
