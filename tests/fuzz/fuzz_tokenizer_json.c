/* Fuzzes the reader of tokenizer.json, once for each algorithm. What it accepts must tokenize: plain text yields no special
 * id, and the ids of a text print as the text. */
#include <stdlib.h>
#include "text/vocab_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text of pieces, and the input itself. */
static void make_text(const clt_vocab *v, const char *data, size_t size, clt_buf *text) {
    for (int32_t id = 0; id < clt_vocab_size(v) && id < 64; id++) {
        size_t len;
        const char *piece = clt_vocab_piece(v, id, &len);
        clt_buf_put(text, piece, len < 300 ? len : 300);
    }
    clt_buf_put(text, data, size < 500 ? size : 500);
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] == '\xE2') text->data[i] = ' '; /* no marks: they print as spaces */
    }
}

static void use(const clt_vocab *v, const char *data, size_t size, bool special) {
    clt_buf text = {0}, back = {0};
    clt_ids ids = {0};
    clt_err err;
    make_text(v, data, size, &text);
    if (clt_tokenize(v, text.data, text.len, special, &ids, &err) != CLT_OK) abort();
    for (size_t i = 0; i < ids.len; i++) {
        if (!special && clt_vocab_is_special(v, ids.data[i])) abort();
        clt_vocab_append_bytes(v, ids.data[i], true, &back);
    }
    if (back.len != text.len || (back.len && memcmp(back.data, text.data, back.len) != 0)) abort();
    clt_buf_free(&text);
    clt_buf_free(&back);
    clt_ids_free(&ids);
}

/* A special piece with marks in its text is found by spaces and prints marks, and where no piece is a lone mark, a space falls
 * apart into the bytes of one; such texts are not compared. */
static bool has_marked_special(const clt_vocab *v) {
    for (int32_t id = 0; id < clt_vocab_size(v); id++) {
        size_t len;
        const char *piece = clt_vocab_piece(v, id, &len);
        if (clt_vocab_is_special(v, id) && memmem(piece, len, CLT_MARK, CLT_MARK_BYTES)) return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int algorithm = CLT_VOCAB_BPE; algorithm <= CLT_VOCAB_SPM; algorithm++) {
        clt_vocab *v;
        clt_err err;
        if (clt_vocab_read_json((const char *)data, size, "fuzz", (clt_vocab_algorithm)algorithm, &v, &err) != CLT_OK) {
            if (err.code == CLT_OK || !err.text[0]) abort();
            continue;
        }
        if (clt_vocab_find(v, CLT_MARK) >= 0 && !has_marked_special(v)) {
            use(v, (const char *)data, size, false);
            use(v, (const char *)data, size, true);
        }
        clt_vocab_free(v);
    }
    return 0;
}
