/* Fuzzes grammars: the same bytes as GBNF, as a JSON Schema and as a list of tools. What compiles is walked for some steps:
 * a mask and accept agree on a sample of tokens, every mask lets something through unless the reply may end, and what is
 * refused says why. */
#include <stdlib.h>
#include <string.h>
#include "grammar/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 16, N = 256 + WORDS, STEPS = 24 };

static clt_tokens *tokens(void) {
    static const char *const words[WORDS] = {"ab", "\":", "{\"", "\"}", "[[", "]]", "12", "true", "\xC3\xA9", "\\u00", ", ",
                                             "\": \"", "aaaa", "\xFF", "\xFE", "\xFD"};
    static clt_tokens *made;
    static char bytes[256];
    clt_token_text texts[N];
    clt_err err;
    if (made) return made;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)(uint8_t)i;
        texts[i] = (clt_token_text){bytes + i, i < 0xF8};
    }
    for (int i = 0; i < WORDS; i++) texts[256 + i] = (clt_token_text){words[i], (uint32_t)strlen(words[i])};
    if (clt_tokens_create(texts, N, &made, &err) != CLT_OK) abort();
    return made;
}

static void walk(const clt_grammar *g, uint32_t seed) {
    clt_err err;
    clt_matcher *m;
    uint64_t bits[(N + 63) / 64];
    if (clt_matcher_create(g, tokens(), &m, &err) != CLT_OK) {
        if (!err.text[0]) abort();
        return;
    }
    for (int step = 0; step < STEPS && clt_matcher_mask(m, bits, &err) == CLT_OK; step++) {
        int32_t allowed[N], n = 0;
        for (int32_t id = 0; id < N; id++)
            if (bits[id / 64] >> id % 64 & 1) allowed[n++] = id;
        for (int k = 0; k < 8; k++) {
            seed = seed * 1103515245 + 12345;
            int32_t id = (int32_t)((seed >> 8) % N);
            bool accepted = clt_matcher_accept(m, id);
            if (clt_matcher_check(m, &err) != CLT_OK) break;
            if (accepted != (bits[id / 64] >> id % 64 & 1)) abort();
            if (accepted && !clt_matcher_rollback(m, 1)) abort();
        }
        if (clt_matcher_check(m, &err) != CLT_OK) break;
        if (n == 0) break;
        if (!clt_matcher_accept(m, allowed[(seed >> 8) % (uint32_t)n]) && clt_matcher_check(m, &err) == CLT_OK) abort();
    }
    clt_matcher_free(m);
}

static void take(clt_status status, clt_grammar *g, const clt_err *err, uint32_t seed) {
    if (status == CLT_OK) walk(g, seed);
    else if (!err->text[0] || g || (status != CLT_E_REQUEST && status != CLT_E_MEMORY)) abort();
    clt_grammar_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    clt_err err;
    clt_grammar *g = NULL;
    clt_json *doc;
    clt_status status = clt_grammar_from_gbnf(text, size, &g, &err);
    take(status, g, &err, (uint32_t)size);
    if (clt_json_parse(text, size, "fuzz", &doc, &err) != CLT_OK) return 0;
    status = clt_grammar_from_schema_node(doc, "schema", &g, &err);
    take(status, g, &err, (uint32_t)size + 1);
    status = clt_grammar_from_tools(doc, NULL, &g, &err);
    take(status, g, &err, (uint32_t)size + 2);
    clt_json_free(doc);
    return 0;
}
