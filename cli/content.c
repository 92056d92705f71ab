/* Texts and media of a prompt, as items of a chat message or as ids. Opens no media. */
#include "content.h"
#include <string.h>
#include "base/mem.h"
#include "out.h"
#include "prompt.h"

/* The last item if it is a text, else a new one. NULL: no memory; there is room for all parts and a text after each. */
static cli_item *text_item(cli_content *c) {
    if (!c->n || c->item[c->n - 1].kind != CLI_PART_TEXT) {
        c->item[c->n++] = (cli_item){.kind = CLI_PART_TEXT};
    }
    return &c->item[c->n - 1];
}

static int read_parts(const cli_args *args, cli_content *out, bool *has_text) {
    int code = 0;
    for (size_t i = 0; i < args->n_parts && !code; i++) {
        const cli_part *p = &args->parts[i];
        if (p->kind == CLI_PART_TEXT) {
            clt_buf_puts(&text_item(out)->text, p->value);
        } else if (p->kind == CLI_PART_FILE) {
            code = cli_read_file_text(p->value, &text_item(out)->text);
        } else {
            out->item[out->n++] = (cli_item){.kind = p->kind};
        }
        *has_text |= p->kind == CLI_PART_TEXT || p->kind == CLI_PART_FILE;
    }
    return code;
}

int cli_content_read(const cli_args *args, cli_content *out) {
    bool has_text = false;
    out->item = clt_calloc(args->n_parts + 1, sizeof(*out->item));
    if (!out->item) {
        return cli_failf(CLT_E_MEMORY, "--prompt: out of memory");
    }
    int code = read_parts(args, out, &has_text);
    /* A picture may be all that is asked; without one, a person who gave no text is told so. */
    if (!code && !has_text && !(out->n && cli_in_terminal())) {
        code = cli_read_text(args, &text_item(out)->text);
    }
    for (size_t i = 0; i < out->n && !code; i++) {
        code = out->item[i].text.failed ? cli_failf(CLT_E_MEMORY, "--prompt: out of memory") : 0;
    }
    return code;
}

void cli_content_free(cli_content *c) {
    for (size_t i = 0; i < c->n; i++) {
        clt_buf_free(&c->item[i].text);
    }
    clt_free(c->item);
    *c = (cli_content){0};
}

int32_t cli_placeholder(const culet_engine *e, cli_part_kind kind) {
    static const char *const names[] = {"", "", "<|image|>", "<|audio|>", "<|video|>"};
    const char *name = names[kind];
    int32_t *ids = NULL, id = -1;
    size_t n = 0;
    culet_error ignored = {0};
    if (*name && !culet_tokenize(e, name, strlen(name), true, false, &ids, &n, &ignored) && n == 1) {
        id = ids[0];
    }
    culet_free(ids);
    return id;
}

int cli_content_tokenize(const cli_args *args, const cli_content *c, const culet_engine *e, clt_ids *out) {
    int code = 0;
    bool bos = !args->no_bos;
    for (size_t i = 0; i < c->n && !code; i++) {
        const cli_item *item = &c->item[i];
        if (item->kind == CLI_PART_TEXT) {
            code = cli_tokenize_text(e, item->text.data, item->text.len, args->special, bos, out);
        } else {
            int32_t id = cli_placeholder(e, item->kind);
            code = bos ? cli_tokenize_text(e, "", 0, false, true, out) : 0;
            clt_ids_push(out, id); /* -1 never gets here: the engine has refused the medium */
        }
        bos = false;
    }
    return code;
}

bool cli_content_parse(const clt_json *content, cli_content *out, bool *known) {
    static const char *const names[] = {"", "", "image", "audio"};
    size_t n = clt_json_kind(content) == CLT_JSON_ARRAY ? clt_json_len(content) : 1;
    out->item = clt_calloc(n + 1, sizeof(*out->item));
    for (size_t i = 0; out->item && i < n; i++) {
        const clt_json *item = n == 1 && clt_json_kind(content) != CLT_JSON_ARRAY ? content : clt_json_at(content, i);
        const char *type = clt_json_str(clt_json_get(item, "type"), NULL);
        size_t len = 0;
        const char *text = clt_json_str(item == content ? content : clt_json_get(item, "text"), &len);
        cli_item *made = &out->item[out->n++];
        *made = (cli_item){.kind = CLI_PART_TEXT};
        for (int kind = CLI_PART_IMAGE; type && kind <= CLI_PART_AUDIO; kind++) {
            made->kind = strcmp(type, names[kind]) ? made->kind : (cli_part_kind)kind;
        }
        *known &= made->kind != CLI_PART_TEXT || text;
        if (made->kind == CLI_PART_TEXT && text) {
            clt_buf_put(&made->text, text, len);
        }
        if (made->text.failed) {
            return false;
        }
    }
    return out->item != NULL;
}

static void put_item(clt_jsonw *w, const cli_item *item) {
    static const char *const names[] = {"text", "text", "image", "audio", "video"};
    clt_jsonw_open(w, '{');
    clt_jsonw_key(w, "type");
    clt_jsonw_cstr(w, names[item->kind]);
    if (item->kind == CLI_PART_TEXT) {
        clt_jsonw_key(w, "text");
        clt_jsonw_str(w, item->text.data ? item->text.data : "", item->text.len);
    }
    clt_jsonw_close(w, '}');
}

void cli_content_message(const cli_content *c, const char *role, clt_buf *out) {
    clt_jsonw w = {.out = out};
    if (c->n == 1 && c->item[0].kind == CLI_PART_TEXT) {
        cli_message(out, role, c->item[0].text.data, c->item[0].text.len);
        return;
    }
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "role");
    clt_jsonw_cstr(&w, role);
    clt_jsonw_key(&w, "content");
    clt_jsonw_open(&w, '[');
    for (size_t i = 0; i < c->n; i++) {
        put_item(&w, &c->item[i]);
    }
    clt_jsonw_close(&w, ']');
    clt_jsonw_close(&w, '}');
}

int cli_content_render(const cli_args *args, const cli_content *c, const culet_engine *e, clt_ids *out, bool *in_thought) {
    clt_buf messages = {0}, request = {0};
    culet_prompt prompt = {0};
    culet_error failure = {0};
    int code = 0;
    if (args->system) {
        cli_message(&messages, "system", args->system, strlen(args->system));
        clt_buf_putc(&messages, ',');
    }
    cli_content_message(c, "user", &messages);
    cli_request(&request, messages.data, messages.len, args->think);
    if (messages.failed || request.failed) {
        code = cli_failf(CLT_E_MEMORY, "--prompt: out of memory");
    } else if (culet_render(e, request.data, request.len, &prompt, &failure)) {
        code = cli_fail_engine(&failure);
    } else {
        clt_ids_append(out, prompt.ids, prompt.n_ids);
        *in_thought = prompt.in_thought;
    }
    culet_prompt_free(&prompt);
    clt_buf_free(&messages);
    clt_buf_free(&request);
    return code;
}
