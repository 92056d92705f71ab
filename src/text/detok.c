/* Ids -> bytes -> text. Byte pieces of several tokens assemble to characters; what can still become a whole character is
 * held back, what cannot is replaced by U+FFFD per maximal subpart. Any split of the same ids gives the same text. */
#include "base/utf8.h"
#include "text/vocab_impl.h"

/* Parts of one token's bytes, cut so that none needs changing: start with *at = 0, false at the end. */
static bool next_part(const clt_vocab *v, int32_t id, bool special, size_t *at, const char **part, size_t *n, char *byte) {
    const clt_vocab_entry *e = &v->entries[id];
    unsigned value;
    if (*at >= e->len || (e->special && !special)) return false;
    *part = e->text + *at;
    *n = e->len - *at;
    if (e->kind == CLT_TOKEN_BYTE && clt_vocab_text_is_byte(e->text, e->len, &value)) {
        *byte = (char)(uint8_t)value;
        *part = byte;
        *at += *n;
        *n = 1;
        return true;
    }
    const char *mark = e->special ? NULL : memmem(*part, *n, CLT_MARK, CLT_MARK_BYTES);
    if (mark == *part) {
        *part = " ";
        *n = 1;
        *at += CLT_MARK_BYTES;
        return true;
    }
    if (mark) *n = (size_t)(mark - *part);
    *at += *n;
    return true;
}

void clt_vocab_append_bytes(const clt_vocab *v, int32_t id, bool special, clt_buf *out) {
    if (id < 0 || id >= v->size) return;
    const char *part;
    char byte;
    for (size_t at = 0, n; next_part(v, id, special, &at, &part, &n, &byte);) clt_buf_put(out, part, n);
}

void clt_detok_init(clt_detok *d, const clt_vocab *v, bool special) {
    *d = (clt_detok){.vocab = v, .special = special};
}

void clt_detok_push_bytes(clt_detok *d, const char *bytes, size_t n, clt_buf *out) {
    size_t at = 0;
    while (at < n && d->n_held) { /* byte by byte until nothing is held back any more */
        d->held[d->n_held++] = bytes[at++];
        size_t whole = clt_utf8_complete(d->held, d->n_held);
        if (!whole) continue;
        clt_utf8_repair(out, d->held, whole);
        d->n_held -= (unsigned)whole;
        memmove(d->held, d->held + whole, d->n_held);
    }
    if (at == n) return;
    size_t whole = clt_utf8_complete(bytes + at, n - at);
    clt_utf8_repair(out, bytes + at, whole);
    d->n_held = (unsigned)(n - at - whole);
    memcpy(d->held, bytes + at + whole, d->n_held);
}

void clt_detok_push(clt_detok *d, int32_t id, clt_buf *out) {
    if (id < 0 || id >= d->vocab->size) return;
    const char *part;
    char byte;
    for (size_t at = 0, n; next_part(d->vocab, id, d->special, &at, &part, &n, &byte);) {
        clt_detok_push_bytes(d, part, n, out);
    }
}

void clt_detok_end(clt_detok *d, clt_buf *out) {
    clt_utf8_repair(out, d->held, d->n_held);
    d->n_held = 0;
}
