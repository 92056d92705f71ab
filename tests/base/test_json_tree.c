/* The JSON tree: values, order, and the refusal of hostile documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/json.h"
#include "base/mem.h"

static clt_json *parse(const char *text) {
    clt_err err;
    clt_json *doc;
    if (clt_json_parse(text, strlen(text), "test", &doc, &err) != CLT_OK) fail_msg("%s", err.text);
    return doc;
}

static void test_values(void **state) {
    (void)state;
    clt_json *d =
        parse("{\"n\":null,\"t\":true,\"f\":false,\"i\":-7,\"r\":2.5,\"w\":3.0,\"s\":\"a\\u0000\\u00e9\\ud83d\\ude00\","
              "\"a\":[1,[2]],\"o\":{}}");
    int64_t i = 0;
    double r = 0;
    size_t len = 0;
    assert_int_equal(clt_json_kind(d), CLT_JSON_OBJECT);
    assert_int_equal(clt_json_len(d), 9);
    assert_int_equal(clt_json_kind(clt_json_get(d, "n")), CLT_JSON_NULL);
    assert_non_null(clt_json_get(d, "n"));
    assert_null(clt_json_get(d, "missing"));
    assert_true(clt_json_is_true(clt_json_get(d, "t")));
    assert_false(clt_json_is_true(clt_json_get(d, "f")));
    assert_int_equal(clt_json_kind(clt_json_get(d, "f")), CLT_JSON_BOOL);
    assert_true(clt_json_int(clt_json_get(d, "i"), &i));
    assert_int_equal(i, -7);
    assert_false(clt_json_int(clt_json_get(d, "r"), &i));
    assert_true(clt_json_num(clt_json_get(d, "r"), &r));
    assert_true(r == 2.5);
    assert_true(clt_json_int(clt_json_get(d, "w"), &i));
    assert_int_equal(i, 3);
    assert_true(clt_json_num(clt_json_get(d, "i"), &r));
    assert_true(r == -7);
    const char *s = clt_json_str(clt_json_get(d, "s"), &len);
    assert_int_equal(len, 8);
    assert_memory_equal(s, "a\0\xC3\xA9\xF0\x9F\x98\x80", 9);
    const clt_json *a = clt_json_get(d, "a");
    assert_int_equal(clt_json_len(a), 2);
    assert_int_equal(clt_json_kind(clt_json_at(a, 1)), CLT_JSON_ARRAY);
    assert_null(clt_json_at(a, 2));
    assert_int_equal(clt_json_len(clt_json_get(d, "s")), 0);
    clt_json_free(d);
}

static void test_wrong_kinds_answer_nothing(void **state) {
    (void)state;
    int64_t i;
    double r;
    size_t len = 9;
    void *iter = NULL;
    const char *key;
    const clt_json *v;
    clt_json *d = parse("\"text\"");
    const clt_json *nodes[] = {NULL, d};
    for (int k = 0; k < 2; k++) {
        assert_null(clt_json_get(nodes[k], "x"));
        assert_null(clt_json_at(nodes[k], 0));
        assert_int_equal(clt_json_len(nodes[k]), 0);
        assert_false(clt_json_int(nodes[k], &i));
        assert_false(clt_json_num(nodes[k], &r));
        assert_false(clt_json_is_true(nodes[k]));
        assert_false(clt_json_next(nodes[k], &iter, &key, &len, &v));
    }
    assert_null(clt_json_str(NULL, &len));
    assert_int_equal(len, 0);
    assert_int_equal(clt_json_kind(NULL), CLT_JSON_NULL);
    clt_json_free(d);
    clt_json_free(NULL);
}

static void test_integers_at_the_limits(void **state) {
    (void)state;
    int64_t i;
    clt_json *d = parse("[9223372036854775807,-9223372036854775808,9.3e18,-9223372036854775808.0,1e300,1e3]");
    assert_true(clt_json_int(clt_json_at(d, 0), &i));
    assert_true(i == INT64_MAX);
    assert_true(clt_json_int(clt_json_at(d, 1), &i));
    assert_true(i == INT64_MIN);
    assert_false(clt_json_int(clt_json_at(d, 2), &i));
    assert_true(clt_json_int(clt_json_at(d, 3), &i));
    assert_true(i == INT64_MIN);
    assert_false(clt_json_int(clt_json_at(d, 4), &i));
    assert_true(clt_json_int(clt_json_at(d, 5), &i));
    assert_int_equal(i, 1000);
    clt_json_free(d);
}

static void test_integers_beyond_64_bits_make_reals(void **state) {
    (void)state;
    clt_json *d = parse("{\"model_max_length\":1000000000000000019884624838656,\"n\":7}");
    double r = 0;
    int64_t i = 0;
    assert_int_equal(clt_json_kind(clt_json_get(d, "model_max_length")), CLT_JSON_REAL);
    assert_true(clt_json_num(clt_json_get(d, "model_max_length"), &r));
    assert_true(r == 1e30);
    assert_false(clt_json_int(clt_json_get(d, "model_max_length"), &i));
    assert_true(clt_json_int(clt_json_get(d, "n"), &i));
    assert_int_equal(i, 7);
    clt_json_free(d);
}

static void test_objects_keep_their_order(void **state) {
    (void)state;
    clt_json *d = parse("{\"z\":0,\"a\":1,\"m\":2,\"\\u00e9\":3,\"\":4}");
    static const char *const keys[] = {"z", "a", "m", "\xC3\xA9", ""};
    void *iter = NULL;
    const char *key;
    size_t len;
    const clt_json *v;
    int64_t i, n = 0;
    for (; clt_json_next(d, &iter, &key, &len, &v); n++) {
        assert_string_equal(key, keys[n]);
        assert_int_equal(len, strlen(keys[n]));
        assert_true(clt_json_int(v, &i));
        assert_int_equal(i, n);
    }
    assert_int_equal(n, 5);
    clt_json_free(d);
}

static void assert_refused(const char *text, size_t len) {
    clt_err err;
    clt_json *doc = (clt_json *)&err;
    if (clt_json_parse(text, len, "doc", &doc, &err) != CLT_E_REQUEST) fail_msg("accepted: %s", text);
    assert_null(doc);
    assert_memory_equal(err.text, "doc: ", 5);
}

static void test_hostile_documents_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "[1] x",
        "01",
        "+1",
        ".5",
        "1.",
        "NaN",
        "Infinity",
        "'a'",
        "nul",
        "\"\n\"",
        "\"\\x\"",
        "\"open",
        "\"\\",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\xFF\"",
        "\"\xED\xA0\x80\"",
        "\"\xC0\x80\"",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "{\"a\\u0000b\":1}",
        "1e999",
        "// x\n1",
        "\xEF\xBB\xBF{}",
        "{\"a\":1 \"b\":2}",
        "[1 2]",
        "]",
        "}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) assert_refused(bad[i], strlen(bad[i]));
    assert_refused("1\0", 2);
    assert_refused("\0", 1);
}

static void test_depth(void **state) {
    (void)state;
    char text[200];
    for (size_t depth = 64; depth <= 65; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = 0;
        if (depth == 65) assert_refused(text, 130);
        else clt_json_free(parse(text));
    }
    static char deep[1000000];
    memset(deep, '[', sizeof deep);
    assert_refused(deep, sizeof deep);
    clt_json_free(parse("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[\""));
}

/* Strings, keys, numbers and brackets of many lengths: the library's buffer then grows at every kind of byte. */
static void put_awkward(clt_buf *b) {
    clt_buf_puts(b, "[");
    for (int len = 1; len < 70; len++)
        clt_buf_printf(b, "{\"k%0*d\":\"%0*d\"},%0*d.5,%d, ", len, 1, 2 * len, 1, 0, 10000000, 1 + len);
    for (int len = 10; len < 70; len++) {
        clt_buf_puts(b, "1");
        for (int i = 0; i < len; i++) clt_buf_putc(b, '0');
        clt_buf_puts(b, "e-9,");
    }
    clt_buf_puts(b, "null]");
}

static void assert_failures_reported(const char *text, size_t len) {
    clt_err err;
    clt_json *doc;
    long live = clt_mem_live(), n = 0;
    clt_status status;
    do {
        clt_mem_fail_after(++n);
        status = clt_json_parse(text, len, "doc", &doc, &err);
        clt_mem_fail_after(0);
        if (status == CLT_OK) clt_json_free(doc);
        else assert_int_equal(status, CLT_E_MEMORY);
        assert_int_equal(clt_mem_live(), live);
    } while (status != CLT_OK && n < 10000);
    assert_true(n > 1 && n < 10000);
}

static void test_every_failed_allocation_is_reported(void **state) {
    (void)state;
    static const char small[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"},{\"x\":[1,2.5,null,true]}],"
                                "\"seed\":123456789012345678901234567890}";
    assert_failures_reported(small, strlen(small));
    assert_failures_reported("true", 4);
    clt_buf b = {0};
    put_awkward(&b);
    assert_failures_reported(b.data, b.len);
    for (size_t cut = 1; cut < 40; cut++) { /* numbers that end with the text: the library puts one byte back */
        clt_buf_reset(&b);
        clt_buf_puts(&b, "1");
        for (size_t i = 1; i < cut; i++) clt_buf_putc(&b, i % 20 ? '0' : '.');
        clt_buf_puts(&b, cut > 20 ? "0" : "e1");
        assert_failures_reported(b.data, b.len);
    }
    clt_buf_free(&b);
}

/* A document outlives later parses, failed ones too, and may be freed by another owner in any order. */
static void test_documents_are_independent(void **state) {
    (void)state;
    long live = clt_mem_live();
    clt_json *a = parse("[1,{\"k\":\"v\"}]"), *b = parse("{\"x\":[true]}"), *c = parse("false");
    assert_failures_reported("[[1]]", 5);
    clt_json_free(a);
    clt_json_free(c);
    assert_true(clt_json_is_true(clt_json_at(clt_json_get(b, "x"), 0)));
    clt_json_free(b);
    assert_int_equal(clt_mem_live(), live);
}

static void test_missing_library_is_named(void **state) {
    (void)state;
    clt_err err;
    clt_json *doc;
    assert_int_equal(clt_json_parse("1", 1, "doc", &doc, &err), CLT_E_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "libjansson-dev"));
    assert_int_equal(clt_json_kind(doc), CLT_JSON_NULL);
}

static void test_kind_names(void **state) {
    (void)state;
    assert_string_equal(clt_json_kind_name(CLT_JSON_NULL), "null");
    assert_string_equal(clt_json_kind_name(CLT_JSON_OBJECT), "object");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_wrong_kinds_answer_nothing),
        cmocka_unit_test(test_integers_at_the_limits),
        cmocka_unit_test(test_integers_beyond_64_bits_make_reals),
        cmocka_unit_test(test_objects_keep_their_order),
        cmocka_unit_test(test_hostile_documents_are_refused),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_every_failed_allocation_is_reported),
        cmocka_unit_test(test_documents_are_independent),
        cmocka_unit_test(test_kind_names),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(test_missing_library_is_named), cmocka_unit_test(test_kind_names)};
#if CLT_HAVE_JANSSON
    (void)without;
    return cmocka_run_group_tests(tests, NULL, NULL);
#else
    (void)tests;
    return cmocka_run_group_tests(without, NULL, NULL);
#endif
}
