/* Prompts: reading them and turning them into ids or chat requests. Evaluates nothing. */
#include "prompt.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/os.h"
#include "out.h"

static const uint64_t largest_text_bytes = 1ull << 30;

static int read_standard_input(clt_buf *out) {
    char block[65536];
    ssize_t n;
    while ((n = read(STDIN_FILENO, block, sizeof(block))) != 0) {
        if (n < 0 && errno != EINTR) {
            return cli_failf(CLT_E_FAILED, "standard input: %s", strerror(errno));
        }
        if (n > 0) {
            clt_buf_put(out, block, (size_t)n);
        }
        if (out->len > largest_text_bytes) {
            return cli_failf(CLT_E_FAILED, "standard input: more than %llu bytes", (unsigned long long)largest_text_bytes);
        }
    }
    return out->failed ? cli_failf(CLT_E_MEMORY, "standard input: out of memory after %zu bytes", out->len) : 0;
}

int cli_read_source(const char *path, clt_buf *out) {
    if (!strcmp(path, "-")) {
        return read_standard_input(out);
    }
    clt_err err;
    clt_err_clear(&err);
    if (clt_read_file(path, largest_text_bytes, out, &err)) {
        /* A text that cannot be read is a failure of the run; exit code 3 belongs to model files. */
        err.code = err.code == CLT_E_FILE ? CLT_E_FAILED : err.code;
        return cli_fail(&err);
    }
    return 0;
}

int cli_read_file_text(const char *path, clt_buf *out) {
    int code = cli_read_source(path, out);
    if (!code && strcmp(path, "-") && out->len && out->data[out->len - 1] == '\n') {
        out->data[--out->len] = 0;
    }
    return code;
}

int cli_read_text(const cli_args *args, clt_buf *out) {
    if (args->prompts.n) {
        for (size_t i = 0; i < args->prompts.n; i++) {
            clt_buf_puts(out, args->prompts.items[i]);
        }
        return out->failed ? cli_failf(CLT_E_MEMORY, "--prompt: out of memory") : 0;
    }
    if (args->file) {
        return cli_read_file_text(args->file, out);
    }
    if (cli_in_terminal()) {
        clt_err err;
        clt_err_clear(&err);
        clt_fail(&err, CLT_E_USAGE, "--prompt: no text was given");
        clt_hint(&err, "give it with -p TEXT, -f FILE or on standard input");
        return cli_fail(&err);
    }
    return read_standard_input(out);
}

int cli_read_ids(const char *text, int vocab, clt_ids *out) {
    clt_buf file = {0};
    int code = 0;
    if (text[0] == '@') {
        code = cli_read_source(text + 1, &file);
        text = file.data ? file.data : "";
    }
    for (const char *s = text; !code;) {
        s += strspn(s, ", \t\r\n");
        size_t n = strcspn(s, ", \t\r\n");
        if (!n) {
            break;
        }
        char item[24];
        long long id;
        snprintf(item, sizeof(item), "%.*s", (int)(n < 20 ? n : 20), s);
        if (n > 20 || !cli_read_int(item, INT32_MIN, INT32_MAX, &id)) {
            code = cli_failf(CLT_E_USAGE, "--ids: '%s' is not a token id", item);
        } else if (id < 0 || id >= vocab) {
            code = cli_failf(CLT_E_USAGE, "--ids: %lld is outside the vocabulary of %d tokens", id, vocab);
        } else {
            clt_ids_push(out, (int32_t)id);
        }
        s += n;
    }
    clt_buf_free(&file);
    return !code && out->failed ? cli_failf(CLT_E_MEMORY, "--ids: out of memory") : code;
}

int cli_tokenize_text(const culet_engine *e, const char *text, size_t len, bool special, bool bos, clt_ids *out) {
    int32_t *ids = NULL;
    size_t n = 0;
    culet_error failure = {0};
    if (culet_tokenize(e, text ? text : "", len, special, bos, &ids, &n, &failure)) {
        return cli_fail_engine(&failure);
    }
    clt_ids_append(out, ids, n);
    culet_free(ids);
    return out->failed ? cli_failf(CLT_E_MEMORY, "tokenize: out of memory for %zu ids", n) : 0;
}

int cli_read_tokens(const cli_args *args, const culet_engine *e, clt_ids *out) {
    if (args->ids) {
        return cli_read_ids(args->ids, culet_engine_info(e)->vocab, out);
    }
    clt_buf text = {0};
    int code = cli_read_text(args, &text);
    if (!code) {
        code = cli_tokenize_text(e, text.data, text.len, args->special, !args->no_bos, out);
    }
    clt_buf_free(&text);
    return code;
}

int cli_read_prediction(const cli_args *args, const culet_engine *e, clt_ids *out) {
    clt_buf text = {0};
    int code = args->predict_file ? cli_read_source(args->predict_file, &text) : 0;
    if (!code && text.len) {
        code = cli_tokenize_text(e, text.data, text.len, false, false, out);
    }
    clt_buf_free(&text);
    return code;
}

void cli_speculation(const cli_args *args, const clt_ids *prediction, culet_generate_params *p) {
    static const culet_spec kinds[] = {CULET_SPEC_OFF, CULET_SPEC_LOOKUP, CULET_SPEC_OFF, CULET_SPEC_AUTO};
    p->spec = kinds[args->spec];
    p->draft_max = args->draft_max;
    p->prediction = prediction->data;
    p->n_prediction = prediction->len;
}

void cli_message(clt_buf *out, const char *role, const char *text, size_t len) {
    clt_jsonw w = {.out = out};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "role");
    clt_jsonw_cstr(&w, role);
    clt_jsonw_key(&w, "content");
    clt_jsonw_str(&w, text ? text : "", len);
    clt_jsonw_close(&w, '}');
}

void cli_request(clt_buf *out, const char *messages, size_t len, bool think) {
    clt_buf_puts(out, "{\"messages\":[");
    clt_buf_put(out, messages, len);
    clt_buf_printf(out, "],\"chat_template_kwargs\":{\"enable_thinking\":%s}}", think ? "true" : "false");
}

bool cli_ids_in_thought(const culet_engine *e, const int32_t *ids, size_t n) {
    static const char open[] = "<|channel>", close[] = "<channel|>", turn[] = "<|turn>";
    for (size_t i = n; i-- > 0;) {
        size_t len = 0;
        const char *piece = culet_piece(e, ids[i], &len);
        if (!piece) {
            continue;
        }
        if (len == sizeof(open) - 1 && !memcmp(piece, open, len)) {
            return true;
        }
        if ((len == sizeof(close) - 1 && !memcmp(piece, close, len)) ||
            (len == sizeof(turn) - 1 && !memcmp(piece, turn, len))) {
            return false;
        }
    }
    return false;
}
