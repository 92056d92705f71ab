/* The tokens of a vocabulary as grammars see them: the bytes that each adds to a reply, markers of calls as bytes that UTF-8
 * never has. Other special ids are in no grammar. */
#include "base/mem.h"
#include "engine/constrain.h"

/* The bytes of an id as grammars see them. Bytes that UTF-8 never has stand for markers and are no text. */
static void append_bytes(const clt_vocab *v, int32_t id, clt_buf *out) {
    const clt_vocab_roles *roles = clt_vocab_get_roles(v);
    clt_token_kind kind = clt_vocab_kind(v, id);
    size_t start = out->len;
    if (id == roles->quote) clt_buf_putc(out, (char)(uint8_t)CLT_BYTE_QUOTE);
    else if (id == roles->call_open) clt_buf_putc(out, (char)(uint8_t)CLT_BYTE_CALL);
    else if (id == roles->call_close) clt_buf_putc(out, (char)(uint8_t)CLT_BYTE_CALL_END);
    else if (!clt_vocab_is_special(v, id) && kind != CLT_TOKEN_CONTROL && kind != CLT_TOKEN_UNUSED &&
             kind != CLT_TOKEN_UNKNOWN)
        clt_vocab_append_bytes(v, id, false, out);
    bool marker = id == roles->quote || id == roles->call_open || id == roles->call_close;
    for (size_t i = start; i < out->len && !marker; i++)
        if ((uint8_t)out->data[i] >= CLT_BYTE_CALL_END) out->len = start;
}

clt_status clt_constraint_tokens(const clt_vocab *v, int32_t n, clt_tokens **out, clt_err *err) {
    int32_t pieces = clt_vocab_size(v);
    clt_buf all = {0};
    clt_token_text *texts = clt_calloc((size_t)n + 1, sizeof *texts);
    size_t *from = clt_calloc((size_t)n + 1, sizeof *from);
    bool ok = texts && from;
    for (int32_t id = 0; ok && id < n; id++) {
        from[id] = all.len;
        if (id < pieces) append_bytes(v, id, &all);
        texts[id].len = (uint32_t)(all.len - from[id]);
    }
    for (int32_t id = 0; ok && id < n; id++) texts[id].bytes = all.data ? all.data + from[id] : "";
    clt_status status = ok && !all.failed ? clt_tokens_create(texts, n, out, err)
                                          : clt_fail_memory(err, "the tokens of a grammar", all.len);
    clt_buf_free(&all);
    clt_free(texts);
    clt_free(from);
    return status;
}
