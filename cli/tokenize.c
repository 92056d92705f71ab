/* culet tokenize and detokenize: text -> ids, ids -> bytes, as the model's vocabulary sees them. */
#include "base/json.h"
#include "base/utf8.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "verbs.h"

/* The bytes that an id stands for; bytes that are not UTF-8 by themselves as <0xHH>. */
static int put_piece(const culet_engine *e, int32_t id, clt_jsonw *w) {
    char *text = NULL;
    size_t len = 0;
    culet_error failure = {0};
    if (culet_detokenize(e, &id, 1, true, &text, &len, &failure)) {
        return cli_fail_engine(&failure);
    }
    if (clt_utf8_valid(text, len)) {
        clt_jsonw_str(w, text, len);
    } else {
        clt_buf shown = {0};
        for (size_t i = 0; i < len; i++) {
            clt_buf_printf(&shown, "<0x%02X>", (unsigned char)text[i]);
        }
        clt_jsonw_str(w, shown.data ? shown.data : "", shown.len);
        w->out->failed |= shown.failed;
        clt_buf_free(&shown);
    }
    culet_free(text);
    return 0;
}

static int write_json(const culet_engine *e, const clt_ids *ids) {
    clt_buf document = {0};
    clt_jsonw w = {.out = &document};
    int code = 0;
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "ids");
    clt_jsonw_open(&w, '[');
    for (size_t i = 0; i < ids->len; i++) {
        clt_jsonw_int(&w, ids->data[i]);
    }
    clt_jsonw_close(&w, ']');
    clt_jsonw_key(&w, "pieces");
    clt_jsonw_open(&w, '[');
    for (size_t i = 0; i < ids->len && !code; i++) {
        code = put_piece(e, ids->data[i], &w);
    }
    clt_jsonw_close(&w, ']');
    clt_jsonw_close(&w, '}');
    clt_buf_putc(&document, '\n');
    if (!code) {
        cli_out_buf(&document);
    }
    clt_buf_free(&document);
    return code;
}

/* "2,818,5279": what --ids takes. */
static void write_list(const clt_ids *ids) {
    clt_buf line = {0};
    for (size_t i = 0; i < ids->len; i++) {
        clt_buf_printf(&line, "%s%d", i ? "," : "", ids->data[i]);
    }
    clt_buf_putc(&line, '\n');
    cli_out_buf(&line);
    clt_buf_free(&line);
}

int cli_tokenize(const cli_args *args) {
    culet_engine *e = NULL;
    clt_ids ids = {0};
    int code = cli_check_operands(args, 0);
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_TEXT, 0, &e);
    }
    if (!code) {
        code = cli_read_tokens(args, e, &ids);
    }
    if (!code && args->json) {
        code = write_json(e, &ids);
    } else if (!code) {
        write_list(&ids);
    }
    clt_ids_free(&ids);
    culet_engine_close(e);
    return code;
}

/* Special pieces may stand beyond the rows of the embedding. */
static int vocabulary_size(const culet_engine *e) {
    int n = culet_engine_info(e)->vocab;
    for (size_t len; culet_piece(e, n, &len);) {
        n++;
    }
    return n;
}

int cli_detokenize(const cli_args *args) {
    culet_engine *e = NULL;
    clt_ids ids = {0};
    char *text = NULL;
    size_t len = 0;
    culet_error failure = {0};
    int code = cli_check_operands(args, 0);
    if (!code && !args->ids) {
        code = cli_failf(CLT_E_USAGE, "--ids: detokenize needs the ids");
    }
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_TEXT, 0, &e);
    }
    if (!code) {
        code = cli_read_ids(args->ids, vocabulary_size(e), &ids);
    }
    if (!code && culet_detokenize(e, ids.data, ids.len, args->special, &text, &len, &failure)) {
        code = cli_fail_engine(&failure);
    }
    if (!code) {
        cli_out(text, len);
    }
    culet_free(text);
    clt_ids_free(&ids);
    culet_engine_close(e);
    return code;
}
