/* The JSON stream: the events of a document, stopping, and the refusal of hostile documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/buf.h"
#include "base/json.h"

/* Writes every event as text; stops after `budget` events if it is not 0. */
typedef struct trace {
    clt_buf out;
    int budget;
    clt_err *report; /* filled when it stops, if not NULL */
} trace;

static bool go_on(trace *t) {
    if (t->budget == 0 || --t->budget > 0) return true;
    if (t->report) clt_fail(t->report, CLT_E_FILE, "enough");
    return false;
}

static bool on_scalar(void *ctx, clt_json_type type, const char *s, size_t len) {
    trace *t = ctx;
    clt_buf_printf(&t->out, "%s:%.*s ", clt_json_kind_name(type), (int)len, s);
    return go_on(t);
}

static bool on_string(void *ctx, const char *s, size_t len) {
    trace *t = ctx;
    clt_buf_printf(&t->out, "'%.*s' ", (int)len, s);
    return go_on(t);
}

static bool on_key(void *ctx, const char *s, size_t len) {
    trace *t = ctx;
    clt_buf_printf(&t->out, "%.*s= ", (int)len, s);
    return go_on(t);
}

static bool on_open(void *ctx, bool is_array) {
    trace *t = ctx;
    clt_buf_puts(&t->out, is_array ? "[ " : "{ ");
    return go_on(t);
}

static bool on_close(void *ctx, bool is_array) {
    trace *t = ctx;
    clt_buf_puts(&t->out, is_array ? "] " : "} ");
    return go_on(t);
}

static const clt_json_events all = {on_scalar, on_string, on_key, on_open, on_close};

#if CLT_HAVE_YAJL
static void test_events(void **state) {
    (void)state;
    clt_err err;
    trace t = {0};
    const char *text = "{\"a\": [1, -2.5, 1e3, true, false, null], \"\\u00e9\\n\": \"x\\ud83d\\ude00\", \"o\": {}}";
    assert_int_equal(clt_json_stream(text, strlen(text), "doc", &all, &t, &err), CLT_OK);
    assert_string_equal(t.out.data, "{ a= [ integer:1 number:-2.5 number:1e3 boolean:true boolean:false null:null ] "
                                    "\xC3\xA9\n= 'x\xF0\x9F\x98\x80' o= { } } ");
    clt_buf_free(&t.out);
}

static void test_missing_callbacks_accept(void **state) {
    (void)state;
    clt_err err;
    const clt_json_events none = {0};
    const char *text = "{\"a\":[1,\"x\",null],\"a\":{}}";
    assert_int_equal(clt_json_stream(text, strlen(text), "doc", &none, NULL, &err), CLT_OK);
}

static void test_a_callback_stops_the_parse(void **state) {
    (void)state;
    clt_err err;
    const char *text = "{\"a\":[1,\"x\",null],\"b\":{}}";
    for (int stop = 1; stop <= 9; stop++) {
        trace t = {.budget = stop};
        assert_int_equal(clt_json_stream(text, strlen(text), "doc", &all, &t, &err), CLT_E_FAILED);
        assert_int_equal(t.budget, 0);
        t.budget = stop;
        t.report = &err;
        assert_int_equal(clt_json_stream(text, strlen(text), "doc", &all, &t, &err), CLT_E_FILE);
        assert_string_equal(err.text, "enough");
        clt_buf_free(&t.out);
    }
}

static void test_hostile_documents_are_refused(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "[1] x",
        "[1][2]",
        "01",
        "+1",
        ".5",
        "1.",
        "NaN",
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
        "\"\xFF\"",
        "\"\xED\xA0\x80\"",
        "\"\xC0\x80\"",
        "\"\xF4\x90\x80\x80\"",
        "\xEF\xBB\xBF{}",
        "[1 2]",
        "]",
        "}",
    };
    clt_err err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        trace t = {0};
        if (clt_json_stream(bad[i], strlen(bad[i]), "doc", &all, &t, &err) != CLT_E_REQUEST)
            fail_msg("accepted: %s", bad[i]);
        assert_memory_equal(err.text, "doc: ", 5);
        clt_buf_free(&t.out);
    }
    static char deep[100000];
    trace t = {0};
    memset(deep, '[', sizeof deep);
    assert_int_equal(clt_json_stream(deep, sizeof deep, "doc", &all, &t, &err), CLT_E_REQUEST);
    assert_int_equal(t.out.len, 0);
    clt_buf_free(&t.out);
}

static void test_a_large_document(void **state) {
    (void)state;
    clt_err err;
    clt_buf text = {0};
    trace t = {0};
    clt_buf_puts(&text, "{\"vocab\":{");
    for (int i = 0; i < 50000; i++) clt_buf_printf(&text, "%s\"token\\u2581%d\":%d", i ? "," : "", i, i);
    clt_buf_puts(&text, "}}");
    assert_int_equal(clt_json_stream(text.data, text.len, "doc", &all, &t, &err), CLT_OK);
    assert_non_null(strstr(t.out.data, "token\xE2\x96\x81" "49999= integer:49999 } } "));
    clt_buf_free(&text);
    clt_buf_free(&t.out);
}
#else
static void test_missing_library_is_named(void **state) {
    (void)state;
    clt_err err;
    trace t = {0};
    assert_int_equal(clt_json_stream("1", 1, "doc", &all, &t, &err), CLT_E_UNSUPPORTED);
    assert_non_null(strstr(err.hint, "libyajl-dev"));
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
#if CLT_HAVE_YAJL
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_missing_callbacks_accept),
        cmocka_unit_test(test_a_callback_stops_the_parse),
        cmocka_unit_test(test_hostile_documents_are_refused),
        cmocka_unit_test(test_a_large_document),
#else
        cmocka_unit_test(test_missing_library_is_named),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
