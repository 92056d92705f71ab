/* Tool calls: Gemma's notation, held to the schemas of the functions. */
#include "fixture.h"

#define Q "\xFF"
#define BEGIN "\xFE" "call:"
#define END "\xFD"

static clt_grammar *tools(const char *json, const char *only) {
    clt_err err;
    clt_json *doc;
    clt_grammar *g;
    assert_int_equal(clt_json_parse(json, strlen(json), "tools", &doc, &err), CLT_OK);
    clt_status status = clt_grammar_from_tools(doc, only, &g, &err);
    if (status != CLT_OK) fail_msg("%s", err.text);
    clt_json_free(doc);
    return g;
}

static void assert_refused(const char *json, const char *only, const char *words) {
    clt_err err;
    clt_json *doc;
    clt_grammar *g;
    assert_int_equal(clt_json_parse(json, strlen(json), "tools", &doc, &err), CLT_OK);
    assert_int_equal(clt_grammar_from_tools(doc, only, &g, &err), CLT_E_REQUEST);
    if (!strstr(err.text, words)) fail_msg("%s\n  does not say: %s", err.text, words);
    clt_json_free(doc);
}

static const char two[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{\"type\":\"object\",\"properties\":{\"ci"
    "ty\":{"
    "\"type\":\"string\",\"minLength\":2},\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":14},\"unit\":{\"enum\":["
    "\"c\",\"f\"]},"
    "\"tags\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tag\"}}},\"required\":[\"city\"],\"$defs\":{\"tag\":{\"type"
    "\":"
    "\"string\"}}}}},{\"type\":\"function\",\"function\":{\"name\":\"now\"}},{\"type\":\"function\",\"name\":\"flat\",\"para"
    "meters\":{"
    "\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}}]";

static void test_calls(void **state) {
    (void)state;
    clt_grammar *g = tools(two, NULL);
    assert_verdicts(g, (const char *const[]){
        "+" BEGIN "get_weather{city:" Q "Oslo" Q "}" END,
        "+" BEGIN "get_weather{city:" Q "a \"b\" {c}\n\\" Q ",days:14,unit:" Q "c" Q ",tags:[" Q Q "," Q "x" Q "]}" END,
        "+" BEGIN "now{}" END,
        "+" BEGIN "now{any_key:[1,{a:null}],b:" Q "x" Q "}" END,
        "+" BEGIN "flat{}" END,
        "-" BEGIN "flat{a",
        "-" BEGIN "get_weather{}",
        "-" BEGIN "get_weather{city:Oslo",
        "-" BEGIN "get_weather{city:\"",
        "-" BEGIN "get_weather{city: ",
        "-" BEGIN "get_weather{city:" Q "O" Q,
        "-" BEGIN "get_weather{city:" Q "Oslo" Q ",days:15",
        "-" BEGIN "get_weather{city:" Q "Oslo" Q ",unit:" Q "k",
        "-" BEGIN "other",
        "-call:now{}",
        "~" BEGIN "now{}",
        NULL});
    for (unsigned seed = 1; seed < 4; seed++) assert_int_equal(compare_masks(g, seed, 100), 100);
    clt_grammar_free(g);
}

static void test_one_function(void **state) {
    (void)state;
    clt_grammar *g = tools(two, "now");
    assert_verdicts(g, (const char *const[]){"+" BEGIN "now{}" END, "-" BEGIN "g", NULL});
    clt_grammar_free(g);
}

static void test_odd_names(void **state) {
    (void)state;
    clt_grammar *g = tools("[{\"function\":{\"name\":\"a.b/c-1\",\"parameters\":{\"type\":\"object\",\"properties\":{\"x:y"
                           "\":{\"type\":"
                           "\"null\"},\"caf\xC3\xA9\":{\"const\":{\"k\":[1,\"t\"]}}},\"required\":[\"x:y\",\"caf\xC3\xA9\"]}"
                           "}}]", NULL);
    assert_verdicts(g, (const char *const[]){"+" BEGIN "a.b/c-1{" Q "x:y" Q ":null,caf\xC3\xA9:{k:[1," Q "t" Q "]}}" END,
                                             NULL});
    clt_grammar_free(g);
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused("[]", NULL, "expected a list of functions");
    assert_refused(two, "later", "no function \"later\"");
    assert_refused("[{\"function\":{}}]", NULL, "needs a name");
    assert_refused("[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"not\":{}}}}}"
                   "}]", NULL,
                   "tools: f: #/properties/a: not");
}

/* The schemas that other grammars choke on, many at once. */
static void test_many(void **state) {
    (void)state;
    clt_buf b = {0};
    clt_buf_putc(&b, '[');
    for (int i = 0; i < 34; i++) {
        clt_buf_printf(&b, "%s{\"type\":\"function\",\"function\":{\"name\":\"tool_%d\",\"parameters\":{\"type\":\"object\","
                           "\"properties\":{"
                           "\"a\":{\"type\":\"string\",\"maxLength\":65536},\"b\":{\"type\":\"array\",\"maxItems\":128,\"ite"
                           "ms\":{\"type\":"
                           "\"string\",\"maxLength\":1000}},\"c\":{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"},\"d\":{\"ty"
                           "pe\":\"string\","
                           "\"pattern\":\"\\\\S\"},\"e\":{\"type\":\"object\",\"properties\":{}}}}}}", i ? "," : "", i);
    }
    clt_buf_putc(&b, ']');
    clt_grammar *g = tools(b.data, NULL);
    assert_verdicts(g, (const char *const[]){"+" BEGIN "tool_33{c:" Q "abc" Q ",d:" Q " x " Q ",e:{}}" END,
                                             "-" BEGIN "tool_7{d:" Q "  " Q, NULL});
    clt_grammar_free(g);
    clt_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls), cmocka_unit_test(test_one_function), cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_many),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    drop_vocabulary();
    return failed;
}
