/* Text -> ids. Takes special and user-defined pieces out of the raw text, turns spaces into marks, cuts what is left where
 * no merge can reach across, and hands each cut to merge.c. Whatever is no piece in the end becomes byte pieces.
 * Adds no BOS and normalises nothing else. */
#include "base/utf8.h"
#include "text/vocab_impl.h"

enum { LONGEST_TEXT = INT32_MAX / 4 }; /* bytes; marks take three bytes and positions are 32 bits */

typedef struct work {
    const clt_vocab *v;
    clt_buf marked; /* the plain text at hand, spaces as marks */
    clt_merge_work merge;
    clt_ids *out;
    clt_err *err;
} work;

static void emit_bytes(work *w, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) clt_ids_push(w->out, w->v->byte_ids[(uint8_t)bytes[i]]);
}

static void emit_symbols(work *w) {
    const clt_symbol *symbols = w->merge.symbols;
    for (int32_t i = 0; i >= 0; i = symbols[i].next) {
        if (symbols[i].id >= 0) clt_ids_push(w->out, symbols[i].id);
        else emit_bytes(w, w->marked.data + symbols[i].start, symbols[i].len);
    }
}

/* Gemma 4 takes a run of newlines that is a piece as it stands. */
static int32_t whole_newline_run(const work *w) {
    const clt_symbol *first = w->merge.symbols, *last = first + w->merge.n - 1;
    const char *text = w->marked.data + first->start;
    if (w->v->algorithm != CLT_VOCAB_BPE || *text != '\n') return -1;
    int32_t id = clt_index_find(w->v, text, last->start + last->len - first->start);
    return id >= 0 && w->v->entries[id].mergeable ? id : -1;
}

/* Merges and emits the symbols gathered so far. */
static clt_status flush_symbols(work *w) {
    clt_status status = CLT_OK;
    if (!w->merge.n) return CLT_OK;
    int32_t id = whole_newline_run(w);
    if (id >= 0) {
        clt_ids_push(w->out, id);
    } else {
        status = clt_merge_run(w->v, &w->merge, w->marked.data, w->err);
        if (status == CLT_OK) emit_symbols(w);
    }
    w->merge.n = 0;
    return status;
}

static bool may_cut(const work *w, const char *text, size_t at, size_t len) {
    if (w->v->algorithm == CLT_VOCAB_BPE && (text[at - 1] == '\n') != (text[at] == '\n')) return true;
    return !clt_vocab_joins(w->v, clt_byte_before(text, at), clt_byte_after(text, at, len));
}

/* The mergeable piece of one character, or -1. */
static int32_t character_id(const clt_vocab *v, const char *text, size_t n) {
    if (n == 1 && !(*text & 0x80)) return v->ascii_ids[(uint8_t)*text];
    int32_t id = clt_index_find(v, text, n);
    return id >= 0 && v->entries[id].mergeable ? id : -1;
}

static clt_status tokenize_marked(work *w) {
    const char *text = w->marked.data;
    size_t len = w->marked.len;
    for (size_t at = 0; at < len;) {
        if (at && may_cut(w, text, at, len)) {
            clt_status status = flush_symbols(w);
            if (status != CLT_OK) return status;
        }
        uint32_t code_point;
        size_t n = clt_utf8_decode(text + at, len - at, &code_point);
        if (!n) n = 1; /* not UTF-8: a symbol of one byte */
        if (!clt_merge_add(&w->merge, (uint32_t)at, (uint32_t)n, character_id(w->v, text + at, n))) {
            return clt_fail_memory(w->err, "tokenizing", (w->merge.n + 1) * sizeof *w->merge.symbols);
        }
        at += n;
    }
    return flush_symbols(w);
}

/* Text that holds no matched piece. */
static clt_status tokenize_plain(work *w, const char *text, size_t len) {
    clt_buf_reset(&w->marked);
    for (size_t at = 0; at < len;) {
        const char *space = memchr(text + at, ' ', len - at);
        size_t upto = space ? (size_t)(space - text) : len;
        clt_buf_put(&w->marked, text + at, upto - at);
        if (space) clt_buf_put(&w->marked, CLT_MARK, CLT_MARK_BYTES);
        at = upto + (space != NULL);
    }
    if (w->marked.failed) return clt_fail_memory(w->err, "tokenizing", 3 * len);
    return tokenize_marked(w);
}

static clt_status tokenize_all(work *w, const char *text, size_t len, bool special) {
    const bool *starts = w->v->matcher.starts[special];
    size_t plain = 0; /* start of the text not yet handed on */
    for (size_t at = 0; at < len;) {
        size_t n = 1;
        int32_t id = -1;
        if (starts[(uint8_t)text[at]]) id = clt_match_longest(&w->v->matcher, w->v, text + at, len - at, special, &n);
        if (id >= 0) {
            clt_status status = tokenize_plain(w, text + plain, at - plain);
            if (status != CLT_OK) return status;
            clt_ids_push(w->out, id);
            plain = at + n;
        }
        at += n;
    }
    return tokenize_plain(w, text + plain, len - plain);
}

clt_status clt_tokenize(const clt_vocab *v, const char *text, size_t len, bool special, clt_ids *out, clt_err *err) {
    if (len > LONGEST_TEXT) {
        return clt_fail(err, CLT_E_REQUEST, "a text of %zu bytes is too long: at most %d can be tokenized at once", len,
                        LONGEST_TEXT);
    }
    if (!len) return CLT_OK;
    work w = {.v = v, .out = out, .err = err};
    clt_status status = tokenize_all(&w, text, len, special);
    if (status == CLT_OK && out->failed) status = clt_fail_memory(err, "tokenizing", len * sizeof(int32_t));
    clt_merge_free(&w.merge);
    clt_buf_free(&w.marked);
    return status;
}
