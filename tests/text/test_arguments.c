/* Tool arguments: the notation itself, what models make of it, and what cannot be read. */
#include "chats.h"
#include "text/reply.h"

#define Q "<|\"|>"

static void expect_json(const char *text, const char *json) {
    clt_buf out = {0};
    clt_err err;
    clt_json *doc = NULL;
    if (!clt_arguments_to_json(text, strlen(text), &out)) fail_msg("%s: not read", text);
    assert_string_equal(out.data, json);
    clt_status status = clt_json_parse(out.data, out.len, "arguments", &doc, &err);
    if (status != CLT_OK && status != CLT_E_UNSUPPORTED) fail_msg("%s: %s", out.data, err.text);
    clt_json_free(doc);
    clt_buf_free(&out);
}

static void expect_unreadable(const char *text, size_t len) {
    clt_buf out = {0};
    clt_buf_puts(&out, "before");
    if (clt_arguments_to_json(text, len, &out)) fail_msg("%s: read as %s", text, out.data);
    assert_string_equal(out.data, "before"); /* nothing is left behind */
    clt_buf_free(&out);
}

static void test_notation(void **state) {
    (void)state;
    expect_json("{}", "{}");
    expect_json("{city:" Q "Oslo" Q ",days:2}", "{\"city\":\"Oslo\",\"days\":2}");
    expect_json("{a:" Q Q ",b:true,c:false,d:null,e:-1.5e3,f:[1," Q "x" Q ",[],{}],g:{h:{i:" Q "j" Q "}}}",
                "{\"a\":\"\",\"b\":true,\"c\":false,\"d\":null,\"e\":-1.5e3,\"f\":[1,\"x\",[],{}],"
                "\"g\":{\"h\":{\"i\":\"j\"}}}");
    expect_json("{t:" Q "say \"hi\", {ok}: [1]\n\\n" Q "}", "{\"t\":\"say \\\"hi\\\", {ok}: [1]\\n\\\\n\"}");
    expect_json("{" Q "a b" Q ":1}", "{\"a b\":1}");
    expect_json(" { a : 1 , b : [ 1 , 2 ] } ", "{\"a\":1,\"b\":[1,2]}");
}

static void test_other_quotes(void **state) {
    (void)state;
    expect_json("{ids:[\"a\"]}", "{\"ids\":[\"a\"]}");
    expect_json("{ids:['a']}", "{\"ids\":[\"a\"]}");
    expect_json("{opts:{\"m\": \"fast\"}}", "{\"opts\":{\"m\":\"fast\"}}");
    expect_json("{unit:celsius}", "{\"unit\":\"celsius\"}");
    expect_json("{tags:[bug,ui]}", "{\"tags\":[\"bug\",\"ui\"]}");
    expect_json("{memory: \"The user's name is john.\"}", "{\"memory\":\"The user's name is john.\"}");
    expect_json("{include:" Q "*.py" Q ",pattern:':\\s*\\w+'}", "{\"include\":\"*.py\",\"pattern\":\":\\\\s*\\\\w+\"}");
    expect_json("{a:'It's fine', b:1}", "{\"a\":\"It's fine\",\"b\":1}");
    expect_json("{\"a\":\"x\\\"y\\n\\u00e9\\ud83d\\ude42\\ud800\"}", "{\"a\":\"x\\\"y\\né🙂\xEF\xBF\xBD\"}");
    expect_json("{'a':'\\bword\\b'}", "{\"a\":\"\\\\bword\\\\b\"}");
    expect_json("{a:\"open}", "{\"a\":\"\\\"open\"}"); /* a quote that nothing closes belongs to the word */
}

static void test_words_and_numbers(void **state) {
    (void)state;
    expect_json("{a:None,b:True,c:False,d:}", "{\"a\":null,\"b\":true,\"c\":false,\"d\":null}");
    expect_json("{a:007,b:1.,c:+5,d:1e999,e:-,f:0x1}",
                "{\"a\":\"007\",\"b\":\"1.\",\"c\":\"+5\",\"d\":\"1e999\",\"e\":\"-\",\"f\":\"0x1\"}");
    expect_json("{a:9223372036854775807,b:9223372036854775808,c:-0,d:1E5}",
                "{\"a\":9223372036854775807,\"b\":\"9223372036854775808\",\"c\":-0,\"d\":1E5}");
    expect_json("{url:http://x.y/z?a=b c}", "{\"url\":\"http://x.y/z?a=b c\"}");
}

static void test_slips(void **state) {
    (void)state;
    expect_json("{a:1,}", "{\"a\":1}");
    expect_json("{a:[1,,2,],b:2", "{\"a\":[1,2],\"b\":2}");
    expect_json("{a:{b:[1", "{\"a\":{\"b\":[1]}}");
    expect_json("{a:1}}", "{\"a\":1}");
    expect_json("{", "{}");
    expect_json("{a:1,b:2,a:3}", "{\"b\":2,\"a\":3}");
    expect_json("{a:1,\"a\":2," Q "a" Q ":{x:1,x:2}}", "{\"a\":{\"x\":2}}");
    expect_json("{\xFF:1,a:\xC3}", "{\"\xEF\xBF\xBD\":1,\"a\":\"\xEF\xBF\xBD\"}");
}

static void test_unreadable(void **state) {
    (void)state;
    static const char *const texts[] = {"", "a", "[1]", "{a}", "{:1}", "{a:" Q "x}", "{a:1}b", "{a:1 " Q "b" Q "}",
                                        "{{a:1}}", "{a:[1}",
                                        "{a:{b:1]}", "{a:\"x\"y:1" Q "}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) expect_unreadable(texts[i], strlen(texts[i]));
}

/* 64 levels are read, 65 are not. */
static void test_depth(void **state) {
    (void)state;
    for (int depth = 64; depth <= 65; depth++) {
        clt_buf text = {0}, json = {0};
        clt_buf_puts(&text, "{a:");
        for (int i = 1; i < depth; i++) clt_buf_puts(&text, "[");
        assert_int_equal(clt_arguments_to_json(text.data, text.len, &json), depth == 64);
        clt_buf_free(&text);
        clt_buf_free(&json);
    }
}

/* Long hostile texts end in reasonable time: unclosed quotes, equal keys, deep lists. */
static void test_long_texts(void **state) {
    (void)state;
    static const char *const items[] = {"\"a,", "k:1,", "'b' ,", "x:[", "\"a\":'b,"};
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        clt_buf text = {0}, json = {0};
        clt_buf_puts(&text, i % 2 ? "{" : "{a:[");
        while (text.len < 400000) clt_buf_puts(&text, items[i]);
        bool ok = clt_arguments_to_json(text.data, text.len, &json);
        if (i == 0 || i == 1) assert_true(ok);
        clt_buf_free(&text);
        clt_buf_free(&json);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notation),   cmocka_unit_test(test_other_quotes), cmocka_unit_test(test_words_and_numbers),
        cmocka_unit_test(test_slips),      cmocka_unit_test(test_unreadable),   cmocka_unit_test(test_depth),
        cmocka_unit_test(test_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
