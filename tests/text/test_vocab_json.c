/* tokenizer.json: every accepted spelling gives the same vocabulary, every damaged one is refused with a reason. */
#include "text/vocabs.h"
#include "text/vocab_impl.h"

#define VOCAB "\"a\":0,\"b\":1,\"ab\":2,\"<bos>\":3,\"<unk>\":4,\"\\n\":5,\"" CLT_MARK "\":6"
#define MODEL(vocab, merges) "\"model\":{\"type\":\"BPE\",\"vocab\":{" vocab ",@},\"merges\":" merges "}"
#define TOKEN(id, content, special) "{\"id\":" #id ",\"content\":\"" content "\",\"special\":" #special "}"

/* The document with '@' replaced by the 256 byte pieces, whose ids count from first_byte. */
static clt_buf document(const char *pattern, int first_byte) {
    clt_buf b = {0};
    for (const char *p = pattern; *p; p++) {
        if (*p != '@') {
            clt_buf_putc(&b, *p);
            continue;
        }
        for (int i = 0; i < 256; i++) clt_buf_printf(&b, "%s\"<0x%02X>\":%d", i ? "," : "", (unsigned)i, first_byte + i);
    }
    assert_false(b.failed);
    return b;
}

static clt_vocab *read_ok(const char *pattern, int first_byte) {
    clt_buf b = document(pattern, first_byte);
    clt_err err;
    clt_vocab *v = NULL;
    if (clt_vocab_read_json(b.data, b.len, "made", CLT_VOCAB_BPE, &v, &err)) fail_msg("%s in %s", err.text, pattern);
    clt_buf_free(&b);
    return v;
}

static void refuse(const char *pattern, clt_status code, const char *word) {
    clt_buf b = document(pattern, 7);
    clt_err err;
    clt_vocab *v = NULL;
    long live = clt_mem_live();
    clt_status status = clt_vocab_read_json(b.data, b.len, "made", CLT_VOCAB_BPE, &v, &err);
    if (status == CLT_OK) fail_msg("accepted: %s", pattern);
    if (!strstr(err.text, word)) fail_msg("'%s' is not in: %s", word, err.text);
    assert_int_equal(status, code);
    assert_int_equal(err.code, code);
    assert_memory_equal(err.text, "made: ", 6);
    assert_one_line(err.text);
    assert_null(v);
    assert_int_equal(clt_mem_live(), live);
    clt_buf_free(&b);
}

static void spellings(void **state) {
    (void)state;
    static const char *const documents[] = {
        "{" MODEL(VOCAB, "[\"a b\"]") "}",
        "{" MODEL(VOCAB, "[[\"a\",\"b\"]]") "}",
        "{\"model\":{\"merges\":[[\"a\",\"b\"]],\"x\":{\"vocab\":[1]},\"vocab\":{@," VOCAB
        "},\"type\":\"BPE\"},\"added_tokens\":[]}",
        "{\"added_tokens\":[" TOKEN(3, "<bos>", true) "]," MODEL(VOCAB, "[\"a b\"]") ",\"normalizer\":null,\"z\":[[{}]]}",
        "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" CLT_MARK
        "\"}," MODEL(VOCAB, "[\"a b\"]") "}",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        clt_vocab *v = read_ok(documents[i], 7);
        assert_int_equal(clt_vocab_size(v), 263);
        TOKENS(v, false, "aab\n b", 0, 2, 5, 6, 1);
        TOKENS(v, true, "<bos>c", 3, 7 + 'c');
        assert_int_equal(clt_vocab_get_roles(v)->unk, 4);
        clt_vocab_free(v);
    }
}

static void added_tokens(void **state) {
    (void)state;
    clt_vocab *v = read_ok(
        "{\"added_tokens\":[" TOKEN(270, "<image_soft_token>", true) "," TOKEN(271, CLT_MARK CLT_MARK, false) "," TOKEN(
            5, "\\n", false) "," TOKEN(272, "<unused7>", false) "," TOKEN(273, "<|channel>",
                                                                          true) "]," MODEL(VOCAB, "[\"a b\"]") "}",
        7);
    assert_int_equal(clt_vocab_size(v), 274);
    assert_int_equal(clt_vocab_get_roles(v)->image_slot, 270);
    assert_int_equal(clt_vocab_kind(v, 270), CLT_TOKEN_CONTROL);
    assert_int_equal(clt_vocab_kind(v, 271), CLT_TOKEN_USER);
    assert_int_equal(clt_vocab_kind(v, 272), CLT_TOKEN_CONTROL); /* as converters to GGUF type them */
    assert_int_equal(clt_vocab_kind(v, 273), CLT_TOKEN_USER);
    assert_true(clt_vocab_is_special(v, 273));
    assert_int_equal(clt_vocab_kind(v, 265), CLT_TOKEN_UNUSED);  /* a hole */
    assert_string_equal(clt_vocab_piece(v, 265, NULL), "");
    TOKENS(v, false, "a  b\n", 0, 271, 1, 5);
    TOKENS(v, true, "<unused7><image_soft_token>", 272, 270);
    clt_vocab_free(v);
}

static void wrong_structure(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"[]", "expected an object"},
        {"1", "expected an object"},
        {"\"x\"", "expected an object"},
        {"", "made"},
        {"{", "made"},
        {"{}", "model.type is missing"},
        {"{\"model\":null}", "model is no object"},
        {"{\"model\":[]}", "model is no object"},
        {"{\"model\":\"BPE\"}", "model is no object"},
        {"{\"model\":{\"type\":1}}", "model.type is no string"},
        {"{\"model\":{\"type\":{}}}", "model.type is no string"},
        {"{\"model\":{\"type\":\"BPE\"}}", "model.vocab is missing"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{}}}", "model.vocab is missing or empty"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{" VOCAB "}}}", "model.merges is missing"},
        {"{\"model\":{\"vocab\":{" VOCAB "},\"merges\":[]}}", "model.type is missing"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":[[\"a\",-1.5]]}}", "model.vocab is no object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":1}}", "model.vocab is no object"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":\"0\"}}}", "does not map pieces to ids"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":{}}}}", "does not map pieces to ids"},
        {"{" MODEL(VOCAB, "{}") "}", "model.merges is no array"},
        {"{" MODEL(VOCAB, "null") "}", "model.merges is no array"},
        {"{" MODEL(VOCAB, "[1]") "}", "model.merges is no array of"},
        {"{" MODEL(VOCAB, "[[\"a\"]]") "}", "lacks an item"},
        {"{" MODEL(VOCAB, "[[]]") "}", "lacks an item"},
        {"{" MODEL(VOCAB, "[[\"a\",\"b\",\"a\"]]") "}", "more than two"},
        {"{" MODEL(VOCAB, "[[\"a\",1]]") "}", "model.merges is no array of"},
        {"{" MODEL(VOCAB, "[[\"a\",[\"b\"]]]") "}", "model.merges"},
        {"{" MODEL(VOCAB, "[{}]") "}", "model.merges is no array"},
        {"{" MODEL(VOCAB, "[\"ab\"]") "}", "left right"},
        {"{" MODEL(VOCAB, "[\"\"]") "}", "left right"},
        {"{" MODEL(VOCAB, "[[\"a\",\"\"]]") "}", "merge 0 joins"},
        {"{" MODEL(VOCAB, "[\"a b\",\"a z\"]") "}", "merge 1 joins \"a\" and \"z\""},
        {"{" MODEL(VOCAB, "[\"b a\"]") "}", "merge 0 joins"},
        {"{" MODEL(VOCAB, "[]") "," MODEL(VOCAB, "[]") "}", "occurs twice"},
        {"{\"added_tokens\":{}," MODEL(VOCAB, "[]") "}", "added_tokens is no array"},
        {"{\"added_tokens\":null," MODEL(VOCAB, "[]") "}", "added_tokens is no array"},
        {"{\"added_tokens\":[1]," MODEL(VOCAB, "[]") "}", "added_tokens is no array"},
        {"{\"added_tokens\":[[]]," MODEL(VOCAB, "[]") "}", "no plain object"},
        {"{\"added_tokens\":[{}]," MODEL(VOCAB, "[]") "}", "lacks its id or content"},
        {"{\"added_tokens\":[{\"id\":1}]," MODEL(VOCAB, "[]") "}", "lacks its id or content"},
        {"{\"added_tokens\":[{\"content\":\"b\"}]," MODEL(VOCAB, "[]") "}", "lacks its id or content"},
        {"{\"added_tokens\":[{\"id\":\"1\",\"content\":\"b\"}]," MODEL(VOCAB, "[]") "}", "is a string"},
        {"{\"added_tokens\":[{\"id\":1,\"content\":null}]," MODEL(VOCAB, "[]") "}", "content is no string"},
        {"{\"added_tokens\":[{\"id\":{},\"content\":\"b\"}]," MODEL(VOCAB, "[]") "}", "no plain object"},
        {"{\"added_tokens\":[{\"id\":1,\"content\":\"b\",\"special\":1}]," MODEL(VOCAB, "[]") "}", "neither true nor false"},
        {"{\"added_tokens\":[{\"id\":1,\"content\":\"b\",\"content\":\"c\"}]," MODEL(VOCAB, "[]") "}", "two contents"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) refuse(wrong[i][0], CLT_E_FILE, wrong[i][1]);
}

static void wrong_ids(void **state) {
    (void)state;
    static const char *const ids[] = {"-1",   "1.5",        "1e3",        "null",
                                      "true", "2147483647", "4294967296", "99999999999999999999999"};
    char text[256];
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        snprintf(text, sizeof text, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":%s}}}", ids[i]);
        refuse(text, CLT_E_FILE, "model.vocab: an id is no id");
        snprintf(text, sizeof text, "{\"added_tokens\":[{\"id\":%s,\"content\":\"a\"}]}", ids[i]);
        refuse(text, CLT_E_FILE, "added_tokens: an id is no id");
    }
    refuse("{" MODEL("\"a\":2000000000", "[]") "}", CLT_E_FILE, "ids reach 2000000000");
    refuse("{\"added_tokens\":[" TOKEN(2000000000, "x", true) "]," MODEL(VOCAB, "[]") "}", CLT_E_FILE,
           "ids reach 2000000000");
    refuse("{" MODEL("\"a\":0,\"b\":0", "[]") "}", CLT_E_FILE, "gives the id 0 twice");
    refuse("{" MODEL("\"a\":0,\"a\":1", "[]") "}", CLT_E_FILE, "same text");
    refuse("{" MODEL("\"a\":0,\"\":1", "[]") "}", CLT_E_FILE, "the piece 1 is empty");
    refuse("{\"added_tokens\":[" TOKEN(1, "x", true) "]," MODEL(VOCAB, "[]") "}", CLT_E_FILE,
           "the id 1 belongs to two pieces");
    refuse("{\"added_tokens\":[" TOKEN(300, "a", true) "]," MODEL(VOCAB, "[]") "}", CLT_E_FILE, "same text");
    refuse("{\"added_tokens\":[" TOKEN(300, "", true) "]," MODEL(VOCAB, "[]") "}", CLT_E_FILE, "empty");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{" VOCAB "},\"merges\":[]}}", CLT_E_FILE, "<0x00> is missing");
}

static void not_understood(void **state) {
    (void)state;
    refuse("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.5]]}}", CLT_E_UNSUPPORTED, "Unigram");
    refuse("{\"normalizer\":{\"type\":\"NFKC\"}," MODEL(VOCAB, "[]") "}", CLT_E_UNSUPPORTED, "normalizer of type \"NFKC\"");
    refuse("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"x\"}]}}",
           CLT_E_UNSUPPORTED, "\"Prepend\"");
    refuse("{\"pre_tokenizer\":{\"type\":\"ByteLevel\"}," MODEL(VOCAB, "[]") "}", CLT_E_UNSUPPORTED, "\"ByteLevel\"");
    refuse("{\"added_tokens\":[{\"id\":1,\"content\":\"b\",\"lstrip\":true}]," MODEL(VOCAB, "[]") "}", CLT_E_UNSUPPORTED,
           "lstrip");
}

static void failed_allocations(void **state) {
    (void)state;
    clt_buf b = document("{\"added_tokens\":[" TOKEN(3, "<bos>", true) "]," MODEL(VOCAB, "[\"a b\"]") "}", 7);
    long live = clt_mem_live();
    int failures = 0;
    for (long nth = 1;; nth++) {
        clt_err err;
        clt_vocab *v = NULL;
        clt_mem_fail_after(nth);
        clt_status status = clt_vocab_read_json(b.data, b.len, "made", CLT_VOCAB_BPE, &v, &err);
        clt_mem_fail_after(0);
        clt_vocab_free(v);
        assert_int_equal(clt_mem_live(), live);
        if (status == CLT_OK) break;
        assert_int_equal(status, CLT_E_MEMORY);
        failures++;
    }
    assert_true(failures >= 5);
    clt_buf_free(&b);
}

int main(void) {
#if !CLT_HAVE_YAJL
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),
        cmocka_unit_test(added_tokens),
        cmocka_unit_test(wrong_structure),
        cmocka_unit_test(wrong_ids),
        cmocka_unit_test(not_understood),
        cmocka_unit_test(failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
