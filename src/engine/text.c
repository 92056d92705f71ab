/* The public face of the text room: bytes <-> ids, and requests -> prompts. */
#include <string.h>
#include "base/json.h"
#include "base/mem.h"
#include "engine/impl.h"

/* Leaves exactly one BOS at the front. A vocabulary without one changes nothing. */
static void put_bos(clt_ids *ids, int32_t bos, size_t first) {
    if (bos < 0 || ids->failed) return;
    size_t own = first; /* ids[0] was set aside for the BOS; the text may bring its own */
    while (own < ids->len && ids->data[own] == bos) own++;
    memmove(ids->data + first, ids->data + own, (ids->len - own) * sizeof *ids->data);
    ids->len -= own - first;
}

culet_status culet_tokenize(const culet_engine *e, const char *text, size_t len, bool special, bool bos, int32_t **ids,
                            size_t *n, culet_error *err) {
    clt_err inner;
    clt_ids list = {0};
    int32_t bos_id = e->info.bos_id;
    *ids = NULL;
    *n = 0;
    if (bos && bos_id >= 0) clt_ids_push(&list, bos_id);
    clt_status status = clt_tokenize(e->vocab, text, len, special, &list, &inner);
    if (status == CLT_OK && bos && bos_id >= 0) put_bos(&list, bos_id, 1);
    if (status == CLT_OK && !list.data && !list.failed) list.data = clt_calloc(1, sizeof *list.data); /* no ids: not NULL */
    if (status == CLT_OK && (list.failed || !list.data)) status = clt_fail_memory(&inner, "ids", len * sizeof *list.data);
    if (status == CLT_OK) {
        *ids = list.data;
        *n = list.len;
    } else {
        clt_ids_free(&list);
    }
    return clt_report(status, &inner, err);
}

culet_status culet_detokenize(const culet_engine *e, const int32_t *ids, size_t n, bool special, char **text, size_t *len,
                              culet_error *err) {
    clt_err inner;
    clt_buf out = {0};
    clt_status status = CLT_OK;
    int32_t pieces = clt_vocab_size(e->vocab), rows = e->info.vocab, limit = pieces > rows ? pieces : rows;
    *text = NULL;
    *len = 0;
    clt_buf_put(&out, "", 0);
    for (size_t i = 0; i < n && status == CLT_OK; i++) {
        if (ids[i] < 0 || ids[i] >= limit)
            status = clt_fail(&inner, CLT_E_USAGE, "id %d is not in the vocabulary of %d ids", ids[i], limit);
        else clt_vocab_append_bytes(e->vocab, ids[i], special, &out);
    }
    if (status == CLT_OK && out.failed) status = clt_fail_memory(&inner, "text", out.len);
    if (status == CLT_OK) {
        *text = out.data;
        *len = out.len;
    } else {
        clt_buf_free(&out);
    }
    return clt_report(status, &inner, err);
}

const char *culet_piece(const culet_engine *e, int32_t id, size_t *len) {
    return clt_vocab_piece(e->vocab, id, len);
}

/* ---- chat ---- */

static clt_status render(const culet_engine *e, const clt_json *request, bool with_ids, culet_prompt *out, clt_err *err) {
    clt_chat_options options;
    clt_prompt prompt = {0};
    clt_ids ids = {0};
    clt_status status = clt_chat_read_options(request, &options, err);
    if (status == CLT_OK) status = clt_chat_render(&e->chat, request, &options, &prompt, err);
    if (status == CLT_OK && with_ids) status = clt_prompt_tokenize(&prompt, e->vocab, &ids, err);
    if (status == CLT_OK && !prompt.text.failed) clt_buf_put(&prompt.text, "", 0);
    if (status == CLT_OK && (prompt.text.failed || ids.failed)) status = clt_fail_memory(err, "prompt", prompt.text.len);
    if (status == CLT_OK) {
        *out = (culet_prompt){.text = prompt.text.data, .text_len = prompt.text.len, .ids = ids.data, .n_ids = ids.len,
                              .in_thought = prompt.in_thought};
        prompt.text = (clt_buf){0};
        ids = (clt_ids){0};
    }
    clt_prompt_free(&prompt);
    clt_ids_free(&ids);
    return status;
}

static culet_status render_request(const culet_engine *e, const char *request_json, size_t len, bool with_ids,
                                   culet_prompt *out, culet_error *err) {
    clt_err inner;
    clt_json *request = NULL;
    clt_status status;
    memset(out, 0, sizeof *out);
    if (!e->has_chat) {
        status = clt_fail(&inner, CLT_E_UNSUPPORTED, "%s: a base model has no chat template", e->info.path);
        clt_hint(&inner, "complete text with `run --raw`, or give a template with --chat-template-file");
        return clt_report(status, &inner, err);
    }
    status = clt_json_parse(request_json, len, "request", &request, &inner);
    if (status == CLT_OK) status = render(e, request, with_ids, out, &inner);
    clt_json_free(request);
    return clt_report(status, &inner, err);
}

culet_status culet_render(const culet_engine *e, const char *request_json, size_t len, culet_prompt *out, culet_error *err) {
    return render_request(e, request_json, len, true, out, err);
}

culet_status culet_render_text(const culet_engine *e, const char *request_json, size_t len, culet_prompt *out,
                               culet_error *err) {
    return render_request(e, request_json, len, false, out, err);
}

void culet_prompt_free(culet_prompt *p) {
    clt_free(p->text);
    clt_free(p->ids);
    memset(p, 0, sizeof *p);
}
