/* Messages and tokens of a conversation. Evaluates nothing. */
#include "history.h"
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/utf8.h"
#include "prompt.h"

void cli_history_free(cli_history *h) {
    for (size_t i = 0; i < h->n; i++) {
        clt_free(h->messages[i].json);
    }
    clt_free(h->messages);
    cli_media_free(&h->media);
    clt_ids_free(&h->ids);
    clt_buf_free(&h->text);
    *h = (cli_history){0};
}

/* Takes over `message`. */
static bool append_message(cli_history *h, char *message, size_t n_media) {
    if (h->n == h->cap) {
        size_t cap = h->cap ? h->cap * 2 : 16;
        cli_history_message *grown = clt_realloc(h->messages, cap * sizeof(*grown));
        if (!grown) {
            clt_free(message);
            return false;
        }
        h->messages = grown;
        h->cap = cap;
    }
    h->messages[h->n++] = (cli_history_message){message, n_media};
    h->n_media += n_media;
    return true;
}

bool cli_history_add_content(cli_history *h, const char *role, const cli_content *content) {
    clt_buf message = {0};
    size_t n_media = 0;
    for (size_t i = 0; i < content->n; i++) {
        n_media += content->item[i].kind != CLI_PART_TEXT;
    }
    cli_content_message(content, role, &message);
    if (message.failed) {
        clt_buf_free(&message);
        return false;
    }
    h->replied = !strcmp(role, "assistant");
    return append_message(h, message.data, n_media);
}

bool cli_history_add(cli_history *h, const char *role, const char *text, size_t len) {
    clt_buf message = {0};
    cli_message(&message, role, text, len);
    if (message.failed) {
        clt_buf_free(&message);
        return false;
    }
    h->replied = !strcmp(role, "assistant");
    return append_message(h, message.data, 0);
}

void cli_history_drop_last(cli_history *h) {
    if (h->n) {
        cli_history_message *last = &h->messages[--h->n];
        h->n_media -= last->n_media;
        cli_media_remove(&h->media, h->n_media, last->n_media);
        clt_free(last->json);
        h->replied = false;
    }
}

/* ---- prompts ---- */

static culet_status out_of_memory(culet_error *err) {
    err->status = CULET_MEMORY;
    snprintf(err->text, sizeof(err->text), "chat: out of memory for the conversation");
    err->hint[0] = 0;
    return CULET_MEMORY;
}

/* How many of the last ids make exactly the last `bytes` bytes of the rendered text; false if no id begins there. */
static bool ids_of_tail(const culet_engine *e, const culet_prompt *p, size_t bytes, size_t *n_ids) {
    size_t n = 0;
    while (bytes && n < p->n_ids) {
        char *text = NULL;
        size_t len = 0;
        culet_error ignored = {0};
        if (culet_detokenize(e, &p->ids[p->n_ids - 1 - n], 1, true, &text, &len, &ignored)) {
            return false;
        }
        culet_free(text);
        if (len > bytes) {
            return false;
        }
        bytes -= len;
        n++;
    }
    *n_ids = n;
    return !bytes;
}

/* Cuts h to its first n_ids ids, n_text bytes, and lets the rest of the rendered prompt follow. */
static bool continue_from(cli_history *h, const culet_engine *e, const culet_prompt *p, size_t n_ids, size_t n_text) {
    size_t tail;
    if (!n_text || n_text > h->text.len || n_text > p->text_len || memcmp(h->text.data, p->text, n_text) ||
        !ids_of_tail(e, p, p->text_len - n_text, &tail)) {
        return false;
    }
    h->ids.len = n_ids;
    h->text.len = n_text;
    clt_ids_append(&h->ids, p->ids + p->n_ids - tail, tail);
    clt_buf_put(&h->text, p->text + n_text, p->text_len - n_text);
    return true;
}

culet_status cli_history_prompt(cli_history *h, const culet_engine *e, bool think, bool *in_thought, culet_error *err) {
    clt_buf messages = {0}, request = {0};
    culet_prompt p = {0};
    culet_status st = CULET_OK;
    for (size_t i = 0; i < h->n; i++) {
        clt_buf_puts(&messages, i ? "," : "");
        clt_buf_puts(&messages, h->messages[i].json);
    }
    cli_request(&request, messages.data ? messages.data : "", messages.len, think);
    if (messages.failed || request.failed) {
        st = out_of_memory(err);
    } else {
        st = culet_render(e, request.data, request.len, &p, err);
    }
    if (!st) {
        *in_thought = p.in_thought;
        if (!continue_from(h, e, &p, h->ids.len, h->text.len) && !continue_from(h, e, &p, h->prompt_ids, h->prompt_text)) {
            h->ids.len = h->text.len = 0;
            clt_ids_append(&h->ids, p.ids, p.n_ids);
            clt_buf_put(&h->text, p.text, p.text_len);
        }
        h->prompt_ids = h->ids.len;
        h->prompt_text = h->text.len;
        st = h->ids.failed || h->text.failed ? out_of_memory(err) : CULET_OK;
    }
    culet_prompt_free(&p);
    clt_buf_free(&messages);
    clt_buf_free(&request);
    return st;
}

/* The text that the template will write for a reply: its content without white space at both ends. Where there is more than
 * content, all of it; the template may keep or drop the rest. */
static culet_status reply_text(cli_history *h, const culet_engine *e, const culet_reply *reply, culet_error *err) {
    const char *content = reply->text;
    size_t len = reply->text_len;
    if (!reply->thought_len && !reply->n_calls) {
        clt_utf8_trim(&content, &len);
        clt_buf_put(&h->text, content, len);
        return CULET_OK;
    }
    char *text = NULL;
    culet_status st = culet_detokenize(e, reply->ids, reply->n_ids, true, &text, &len, err);
    if (!st) {
        clt_utf8_repair(&h->text, text, len);
    }
    culet_free(text);
    return st;
}

/* A model may write the placeholder of a picture. Kept as an id it would be the place of a picture that nobody gave. */
static bool has_placeholder(const culet_engine *e, const culet_reply *reply) {
    for (int kind = CLI_PART_IMAGE; kind <= CLI_PART_VIDEO; kind++) {
        int32_t id = cli_placeholder(e, (cli_part_kind)kind);
        for (size_t i = 0; i < reply->n_ids && id >= 0; i++) {
            if (reply->ids[i] == id) {
                return true;
            }
        }
    }
    return false;
}

culet_status cli_history_reply(cli_history *h, const culet_engine *e, const culet_reply *reply, culet_error *err) {
    if (has_placeholder(e, reply)) { /* the next prompt is taken as rendered */
        h->ids.len = h->text.len = h->prompt_ids = h->prompt_text = 0;
        return cli_history_add(h, "assistant", reply->text, reply->text_len) ? CULET_OK : out_of_memory(err);
    }
    culet_status st = reply_text(h, e, reply, err);
    if (st) {
        return st;
    }
    clt_ids_append(&h->ids, reply->ids, reply->n_ids);
    if (!cli_history_add(h, "assistant", reply->text, reply->text_len) || h->ids.failed || h->text.failed) {
        return out_of_memory(err);
    }
    return CULET_OK;
}

/* ---- saved conversations ---- */

static void put_count(clt_jsonw *w, const char *key, size_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, (int64_t)v);
}

void cli_history_write(const cli_history *h, clt_jsonw *w) {
    clt_jsonw_key(w, "messages");
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < h->n; i++) {
        clt_jsonw_raw(w, h->messages[i].json, strlen(h->messages[i].json));
    }
    clt_jsonw_close(w, ']');
    clt_jsonw_key(w, "text");
    clt_jsonw_str(w, h->text.data ? h->text.data : "", h->text.len);
    clt_jsonw_key(w, "ids");
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < h->ids.len; i++) {
        clt_jsonw_int(w, h->ids.data[i]);
    }
    clt_jsonw_close(w, ']');
    put_count(w, "prompt_ids", h->prompt_ids);
    put_count(w, "prompt_text", h->prompt_text);
}

static clt_status bad_history(clt_err *err, const char *what) {
    return clt_fail(err, CLT_E_FILE, "saved conversation: %s is missing or wrong", what);
}

/* One message; *known: it was understood. False: no memory. */
static bool read_message(cli_history *h, const clt_json *message, bool *known) {
    static const char *const roles[] = {"system", "user", "assistant"};
    const clt_json *content = clt_json_get(message, "content");
    const char *role = clt_json_str(clt_json_get(message, "role"), NULL);
    cli_content parsed = {0};
    *known = false;
    for (size_t r = 0; role && r < 3; r++) {
        *known |= !strcmp(role, roles[r]);
    }
    bool read = cli_content_parse(content, &parsed, known);
    bool added = read && (!*known || cli_history_add_content(h, role, &parsed));
    cli_content_free(&parsed);
    return added;
}

static clt_status read_messages(cli_history *h, const clt_json *list, clt_err *err) {
    bool known;
    for (size_t i = 0; i < clt_json_len(list); i++) {
        if (!read_message(h, clt_json_at(list, i), &known)) {
            return clt_fail_memory(err, "a saved conversation", i);
        }
        if (!known) {
            return bad_history(err, "a message");
        }
    }
    return CLT_OK;
}

static clt_status read_tokens(cli_history *h, const clt_json *document, int vocab, clt_err *err) {
    const clt_json *ids = clt_json_get(document, "ids");
    int64_t id, n_ids, n_text;
    size_t len;
    const char *text = clt_json_str(clt_json_get(document, "text"), &len);
    for (size_t i = 0; i < clt_json_len(ids); i++) {
        if (!clt_json_int(clt_json_at(ids, i), &id) || id < 0 || id >= vocab) {
            return bad_history(err, "an id");
        }
        clt_ids_push(&h->ids, (int32_t)id);
    }
    if (!text || !clt_json_int(clt_json_get(document, "prompt_ids"), &n_ids) || n_ids < 0 || (size_t)n_ids > h->ids.len ||
        !clt_json_int(clt_json_get(document, "prompt_text"), &n_text) || n_text < 0 || (size_t)n_text > len) {
        return bad_history(err, "the text");
    }
    clt_buf_put(&h->text, text, len);
    h->prompt_ids = (size_t)n_ids;
    h->prompt_text = (size_t)n_text;
    return h->ids.failed || h->text.failed ? clt_fail_memory(err, "a saved conversation", len) : CLT_OK;
}

clt_status cli_history_read(cli_history *h, const clt_json *document, int vocab, cli_media *media, clt_err *err) {
    cli_history fresh = {0};
    clt_status st = read_messages(&fresh, clt_json_get(document, "messages"), err);
    if (!st) {
        st = read_tokens(&fresh, document, vocab, err);
    }
    if (!st && media->n < fresh.n_media) {
        st = bad_history(err, "a picture or sound");
    }
    if (st) {
        cli_history_free(&fresh);
        return st;
    }
    cli_media_cut(media, fresh.n_media);
    fresh.media = *media;
    *media = (cli_media){0};
    cli_history_free(h);
    *h = fresh;
    return CLT_OK;
}
