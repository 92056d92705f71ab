/* A vocabulary as grammars need it: the bytes of every token, a trie over them, and what tokens do inside strings. */
#include "grammar/impl.h"

static clt_status build(clt_tokens *t, const clt_token_text *texts, size_t total, clt_err *err) {
    size_t n = 0;
    clt_trie_entry *entries = clt_calloc((size_t)t->n + 1, sizeof *entries);
    t->words = ((size_t)t->n + 63) / 64;
    t->bytes = clt_alloc(total + 1);
    t->offsets = clt_calloc((size_t)t->n + 1, sizeof *t->offsets);
    bool ok = entries && t->bytes && t->offsets;
    for (int32_t id = 0; ok && id < t->n; id++) {
        uint32_t at = t->offsets[id], len = texts[id].len <= CLT_MAX_TOKEN_BYTES ? texts[id].len : 0;
        if (len) memcpy(t->bytes + at, texts[id].bytes, len);
        t->offsets[id + 1] = at + len;
        if (len) entries[n++] = (clt_trie_entry){.bytes = t->bytes + at, .len = len, .id = id};
    }
    ok = ok && clt_trie_build(&t->trie, entries, n, false) && clt_trie_survey(&t->trie);
    t->held = total + (size_t)t->n * sizeof *t->offsets + t->trie.n_nodes * sizeof *t->trie.nodes + n * sizeof *t->trie.ids +
              t->trie.n_below * sizeof *t->trie.below;
    for (int body = CLT_BODY_JSON; ok && body < CLT_BODIES; body++) ok = clt_string_table_build(t, body);
    clt_free(entries);
    return ok ? CLT_OK : clt_fail_memory(err, "the tokens of a grammar", total);
}

clt_status clt_tokens_create(const clt_token_text *texts, int32_t n, clt_tokens **out, clt_err *err) {
    uint64_t total = 0;
    *out = NULL;
    for (int32_t id = 0; id < n; id++) total += texts[id].len;
    if (n <= 0 || total > UINT32_MAX / 2)
        return clt_fail(err, CLT_E_UNSUPPORTED, "grammar: a vocabulary of %d tokens with %llu bytes", n,
                        (unsigned long long)total);
    clt_tokens *t = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(err, "the tokens of a grammar", sizeof *t);
    t->n = n;
    clt_status status = build(t, texts, (size_t)total, err);
    if (status == CLT_OK) *out = t;
    else clt_tokens_free(t);
    return status;
}

void clt_tokens_free(clt_tokens *t) {
    if (!t) return;
    for (int body = 0; body < CLT_BODIES; body++) clt_string_table_free(&t->tables[body]);
    clt_trie_free(&t->trie);
    clt_free(t->bytes);
    clt_free(t->offsets);
    clt_free(t);
}

uint64_t clt_tokens_bytes(const clt_tokens *t) {
    return t ? t->held : 0;
}
