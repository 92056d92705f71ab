/* See fixture.h. */
#include "fixture.h"

static const char *const words[] = {
    "a", "b", "ab", "abc", "aa", "aaa", "aaaa", "aaaaaaaaaaaaaaaa", "bc", "\"", "\":", "\": ", "\": \"", "\",", "\", \"",
        "\"}",
    "\"}]", "{\"", "{", "}", "}}", "}]", "[", "]", "[[", "]]", "[\"", "\"]", ",\"", ", ", ",", ":", ": ", " ", "  ", "\n",
        "\n\n",
    "\n  ", "\t", "\\n", "\\", "\\\"", "\\u", "\\u00", "00e9", "0", "1", "12", "123", "-", "-1", ".", ".5", "e", "e+",
        "true",
    "false", "null", "tr", "ue", "name", "name\"", "\"name", "\"name\":", "age", "\"age\"", "\"age\": ", "hello", " hello",
        " world",
    "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "x\xC3", "\xC3", "caf\xC3\xA9", "2024", "-01", "T", ":00", "Z", "@",
        ".com",
    "\xFF", "\xFE", "\xFD", "call", "call:", "{city:", "city", "Oslo", "days:", "\"b\"", "\"a\":1", "1}", "1,"};

static clt_tokens *vocabulary;
static clt_token_text texts[N_TOKENS];
static char single[256];

clt_tokens *small_vocabulary(void) {
    clt_err err;
    if (vocabulary) return vocabulary;
    for (size_t i = 0; i < 256; i++) {
        single[i] = (char)(uint8_t)i;
        /* As in real vocabularies: bytes that UTF-8 never has are no text. */
        texts[i] = (clt_token_text){single + i, i < 0xF8};
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        texts[256 + i] = (clt_token_text){words[i], (uint32_t)strlen(words[i])};
    assert_int_equal(clt_tokens_create(texts, N_TOKENS, &vocabulary, &err), CLT_OK);
    return vocabulary;
}

void drop_vocabulary(void) {
    clt_tokens_free(vocabulary);
    vocabulary = NULL;
}

const clt_token_text *token_text(int32_t id) {
    small_vocabulary();
    return &texts[id];
}

static clt_grammar *compiled(clt_status status, clt_grammar *g, const clt_err *err, const char *text) {
    if (status != CLT_OK) fail_msg("%s\n  for %s", err->text, text);
    return g;
}

clt_grammar *gbnf(const char *text) {
    clt_err err;
    clt_grammar *g;
    clt_status status = clt_grammar_from_gbnf(text, strlen(text), &g, &err);
    return compiled(status, g, &err, text);
}

clt_grammar *schema(const char *json) {
    clt_err err;
    clt_grammar *g;
    clt_status status = clt_grammar_from_schema(json, strlen(json), "schema", &g, &err);
    return compiled(status, g, &err, json);
}

static const char *refusal(clt_status status, clt_grammar *g, const clt_err *err, const char *text) {
    if (status != CLT_E_REQUEST) fail_msg("status %d (%s) for %s", (int)status, status ? err->text : "", text);
    assert_null(g);
    return err->text;
}

const char *gbnf_error(const char *text) {
    static clt_err err;
    clt_grammar *g;
    clt_status status = clt_grammar_from_gbnf(text, strlen(text), &g, &err);
    return refusal(status, g, &err, text);
}

const char *schema_error(const char *json) {
    static clt_err err;
    clt_grammar *g;
    clt_status status = clt_grammar_from_schema(json, strlen(json), "schema", &g, &err);
    return refusal(status, g, &err, json);
}

clt_matcher *matcher_of(const clt_grammar *g) {
    clt_err err;
    clt_matcher *m;
    if (clt_matcher_create(g, small_vocabulary(), &m, &err) != CLT_OK) fail_msg("%s", err.text);
    return m;
}

verdict judge(const clt_grammar *g, const char *text, size_t len) {
    clt_matcher *m = matcher_of(g);
    verdict v = UNFINISHED;
    for (size_t i = 0; i < len && v != REFUSED; i++)
        if (!clt_matcher_accept_bytes(m, text + i, 1)) v = REFUSED;
    if (v != REFUSED && clt_matcher_may_end(m)) v = COMPLETE;
    clt_err err;
    assert_int_equal(clt_matcher_check(m, &err), CLT_OK);
    clt_matcher_free(m);
    return v;
}

void assert_verdicts(const clt_grammar *g, const char *const *lines) {
    for (; *lines; lines++) {
        verdict wanted = **lines == '+' ? COMPLETE : **lines == '~' ? UNFINISHED : REFUSED;
        verdict found = judge(g, *lines + 1, strlen(*lines + 1));
        if (found != wanted) fail_msg("%s: verdict %d instead of %d", *lines, (int)found, (int)wanted);
    }
}

static bool has(const uint64_t *bits, int32_t id) {
    return bits[id / 64] >> id % 64 & 1;
}

size_t compare_masks(const clt_grammar *g, unsigned seed, size_t steps) {
    clt_matcher *m = matcher_of(g);
    clt_err err;
    uint64_t bits[(N_TOKENS + 63) / 64];
    size_t compared = 0;
    for (; compared < steps; compared++) {
        int32_t allowed[N_TOKENS], n = 0;
        if (clt_matcher_mask(m, bits, &err) != CLT_OK) fail_msg("%s", err.text);
        for (int32_t id = 0; id < N_TOKENS; id++) {
            bool accepted = clt_matcher_accept(m, id);
            if (accepted) assert_true(clt_matcher_rollback(m, 1));
            if (accepted != has(bits, id)) fail_msg("step %zu, token %d: mask %d, accept %d", compared, id, !accepted,
                                                    accepted);
            if (accepted) allowed[n++] = id;
        }
        if (n == 0) {
            assert_true(clt_matcher_may_end(m)); /* nothing is ever a dead end */
            clt_matcher_reset(m);
            continue;
        }
        seed = seed * 1103515245 + 12345;
        assert_true(clt_matcher_accept(m, allowed[(seed >> 8) % (unsigned)n]));
    }
    clt_matcher_free(m);
    return compared;
}
