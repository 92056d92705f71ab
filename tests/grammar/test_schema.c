/* JSON Schema: what each key lets through and keeps out, and the errors of what cannot be honoured. */
#include "fixture.h"

#define VERDICTS(text, ...)                                            \
    do {                                                               \
        clt_grammar *g_ = schema(text);                                \
        assert_verdicts(g_, (const char *const[]){__VA_ARGS__, NULL}); \
        clt_grammar_free(g_);                                          \
    } while (0)

static void test_scalars(void **state) {
    (void)state;
    VERDICTS("{\"type\":\"null\"}", "+null", "~nul", "-true");
    VERDICTS("{\"type\":\"boolean\"}", "+true", "+false", "-1");
    VERDICTS("{\"type\":\"integer\"}", "+0", "+-7", "+123456", "-01", "-1.", "-1e", "-+1", "~-", "--0");
    VERDICTS("{\"type\":\"number\"}", "+0", "+-0.5", "+12.25", "+1e9", "+1.5E-3", "~1.", "-.5", "-1..", "-00");
    VERDICTS("{\"type\":\"string\"}", "+\"\"", "+\"a\\n\\u00e9\"", "+\"\\ud83d\\ude00\"", "+\"\xF0\x9F\x98\x80\"", "~\"a",
             "-\"\n",
             "-\"\\q", "-\"\\ud83d\"", "-\"\\ude00", "-\"\xFF", "-\"\xC3\"", "-\"\\u0000");
    VERDICTS("{\"type\":[\"integer\",\"null\"]}", "+3", "+null", "-\"");
    VERDICTS("{\"type\":\"string\",\"nullable\":true}", "+\"a\"", "+null", "-1");
    VERDICTS("true", "+1", "+\"x\"", "+[1,{\"a\":null}]", "-x");
    VERDICTS("{}", "+{}", "+[]", "+-1.5", "~{\"a\"", "-{a");
    VERDICTS("{\"type\":\"object\"}", "+{}", "+{\"a\": [1, {}]}", "-[", "-1");
}

static void test_lengths(void **state) {
    (void)state;
    VERDICTS("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "+\"ab\"", "+\"abc\"", "-\"abcd", "-\"a\"",
             "+\"\\n\\u00e9\"",
             "+\"\xF0\x9F\x98\x80\xC3\xA9\"", "-\"\xF0\x9F\x98\x80\"", "+\"\\ud83d\\ude00x\"", "-\"\\ud83d\\ude00\"");
    VERDICTS("{\"maxLength\":0}", "+\"\"", "-\"a");
    clt_grammar *g = schema("{\"type\":\"array\",\"maxItems\":128,\"items\":{\"type\":\"string\",\"maxLength\":65536}}");
    char text[65540];
    memset(text, 'a', sizeof text);
    memcpy(text, "[\"", 2);
    memcpy(text + 65536 + 2, "\"]", 2);
    assert_int_equal(judge(g, text, 65540), COMPLETE);
    text[65538] = 'a';
    assert_int_equal(judge(g, text, 65539), REFUSED);
    clt_grammar_free(g);
}

static void test_numbers(void **state) {
    (void)state;
    VERDICTS("{\"type\":\"integer\",\"minimum\":5,\"maximum\":120}", "+5", "+9", "+10", "+99", "+120", "-121", "~4", "+45",
             "-0", "--",
             "~1", "+12", "-13.", "-999");
    VERDICTS("{\"type\":\"integer\",\"minimum\":-12,\"maximum\":3}", "+-12", "+-9", "+0", "+3", "-4", "--13", "-10", "+-1");
    VERDICTS("{\"type\":\"integer\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":10}", "+1", "+9", "-0", "-10", "--");
    VERDICTS("{\"type\":\"integer\",\"maximum\":-5}", "+-5", "+-500", "~-4", "-0", "-5", "+-45");
    VERDICTS("{\"type\":\"number\",\"minimum\":-1.5,\"maximum\":99.25}", "+-1.5", "+-1.50", "--1.51", "+99.25", "+99.2",
             "-99.26",
             "-99.251", "+0", "+-0.3", "-100", "--2");
    VERDICTS("{\"type\":\"number\",\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}", "~0", "+0.1", "~0.0", "+0.01", "-1",
             "--",
             "+0.999");
    VERDICTS("{\"type\":\"number\",\"minimum\":0.1}", "+0.1", "-0.0", "+5", "+0.25", "+100000", "--");
    VERDICTS("{\"type\":\"integer\",\"multipleOf\":7}", "+0", "+7", "+14", "~1", "+-21", "+105", "~10");
    VERDICTS("{\"type\":\"number\",\"multipleOf\":0.01}", "+0.01", "+3", "+3.5", "+12.34", "-0.001", "-12.345");
    VERDICTS("{\"type\":\"number\",\"multipleOf\":2.5}", "+0", "+2.5", "+5", "+5.0", "~2", "+7.5", "~7");
    VERDICTS("{\"type\":\"integer\",\"multipleOf\":2.5}", "+5", "+10", "~2", "-2.");
    VERDICTS("{\"type\":\"integer\",\"format\":\"int32\"}", "+2147483647", "-2147483648", "+-2147483648");
    VERDICTS("{\"allOf\":[{\"minimum\":3},{\"maximum\":5},{\"type\":\"integer\"}]}", "+3", "+5", "-6", "-2");
}

static void test_patterns(void **state) {
    (void)state;
    VERDICTS("{\"pattern\":\"^[a-z]+$\"}", "+\"abc\"", "-\"\"", "-\"A", "~\"ab");
    VERDICTS("{\"pattern\":\"b+\"}", "+\"abba\"", "+\"b\"", "-\"aa\"", "~\"aa");
    VERDICTS("{\"pattern\":\"^ab|yz$\"}", "+\"abq\"", "+\"qyz\"", "-\"ayzq\"", "+\"ab\"");
    VERDICTS("{\"pattern\":\"\\\\S\"}", "+\"a\"", "+\" a \"", "-\"  \"");
    VERDICTS("{\"pattern\":\"^\\\\d{3}-(?:\\\\d{2}|x)?$\"}", "+\"123-\"", "+\"123-45\"", "+\"123-x\"", "-\"123-4\"",
             "-\"12-\"");
    VERDICTS("{\"pattern\":\"^[^\\\"]$\"}", "+\"a\"", "+\"\\\\\"", "-\"\\\"", "+\"\xC3\xA9\"", "+\"\\n\"", "-\"aa");
    VERDICTS("{\"pattern\":\"^\\\\u00e9\\\\x41\\\\.\\\\/$\"}", "+\"\xC3\xA9"
                                                                "A./\"",
             "-\"\xC3\xA9"
             "Ax");
    VERDICTS("{\"pattern\":\"^.{2,}$\",\"maxLength\":3}", "+\"ab\"", "+\"abc\"", "-\"abcd", "-\"a\"", "-\"\\n");
    VERDICTS("{\"pattern\":\"^(ab)*$\",\"minLength\":3,\"maxLength\":7}", "+\"abab\"", "+\"ababab\"", "-\"ab\"",
             "-\"abababa");
    VERDICTS("{\"pattern\":\"^a{3}$|^b*$\",\"maxLength\":2}", "-\"a", "+\"bb\"", "-\"bbb");
    VERDICTS("{\"pattern\":\"^[a-c\\\\]]{2,3}$\"}", "+\"ab\"", "+\"a]c\"", "-\"a\"", "-\"abca", "-\"ad");
    VERDICTS("{\"pattern\":\"^\\\\d{3}$\",\"maxLength\":9}", "+\"123\"", "-\"12\"", "-\"1234");
    VERDICTS("{\"pattern\":\"^.{1,64}$\",\"minLength\":3,\"maxLength\":4}", "+\"abc\"", "-\"ab\"", "-\"abcde");
    VERDICTS("{\"pattern\":\"^a{2,}$\"}", "+\"aa\"", "+\"aaaaaa\"", "-\"a\"", "-\"aab");
    VERDICTS("{\"pattern\":\"^(?<year>\\\\d{4})$\"}", "+\"2024\"", "-\"x");
    VERDICTS("{\"pattern\":\"^\\\\w\\\\W[\\\\d-]$\"}", "+\"a 5\"", "+\"_--\"", "-\"ab");
}

static void test_formats(void **state) {
    (void)state;
    VERDICTS("{\"format\":\"date\"}", "+\"2024-02-29\"", "-\"2023-02-29\"", "-\"1900-02-29\"", "+\"2000-02-29\"",
             "-\"2024-04-31\"",
             "+\"2024-12-31\"", "-\"2024-13");
    VERDICTS("{\"format\":\"date-time\"}", "+\"2024-01-01T00:00:00Z\"", "+\"2024-01-01T23:59:59.123+02:00\"",
             "-\"2024-01-01T24",
             "-\"2024-01-01 ");
    VERDICTS("{\"format\":\"time\"}", "+\"12:00:00Z\"", "-\"12:60");
    VERDICTS("{\"format\":\"email\"}", "+\"a.b@example.com\"", "~\"a@", "-\"@", "-\"a..");
    VERDICTS("{\"format\":\"uuid\"}", "+\"123e4567-e89b-12d3-a456-426614174000\"", "-\"123e4567e");
    VERDICTS("{\"format\":\"ipv4\"}", "+\"255.0.10.1\"", "-\"256", "-\"1.2.3\"", "-\"01");
    VERDICTS("{\"format\":\"ipv6\"}", "+\"::\"", "+\"::1\"", "+\"2001:db8::8a2e:370:7334\"", "+\"1:2:3:4:5:6:7:8\"",
             "+\"::ffff:1.2.3.4\"", "-\"1:2:3:4:5:6:7:8:", "-\"1::2::", "-\"12345");
    VERDICTS("{\"format\":\"hostname\"}", "+\"example.com\"", "+\"a-b.c\"", "-\"-a", "-\"a-\"");
    VERDICTS("{\"format\":\"uri\"}", "+\"https://example.com/a?b=c#d\"", "+\"mailto:a@b.c\"", "-\"//", "-\"a b");
    VERDICTS("{\"format\":\"duration\"}", "+\"P1DT2H\"", "+\"P3W\"", "+\"PT5M\"", "-\"P\"", "-\"PT\"");
    VERDICTS("{\"format\":\"json-pointer\"}", "+\"\"", "+\"/a/~0b\"", "-\"a");
    VERDICTS("{\"format\":\"password\"}", "+\"anything at all\"");
}

static void test_objects(void **state) {
    (void)state;
    static const char person[] =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"},\"ok\":{\"type"
        "\":"
        "\"boolean\"}},\"required\":[\"name\"],\"additionalProperties\":false}";
    VERDICTS(person, "+{\"name\":\"a\"}", "+{\"name\": \"a\", \"age\": 1}", "+{\"name\":\"a\",\"ok\":true}", "-{\"age",
             "-{}",
             "-{\"name\":\"a\",}", "-{\"name\":\"a\",\"ok\":true,\"age", "+{\n  \"name\": \"a\",\n  \"age\": 3\n}",
                 "-{\"nam\":",
             "-{   ", "~{\"name\":\"a\"");
    VERDICTS("{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"},\"c\":{\"type\":\"null\"}},\"required\":["
             "\"b\"]}",
             "+{\"b\":null}", "+{\"a\":null,\"b\":null}", "+{\"b\":null,\"c\":null}", "-{\"a\":null}", "-{\"c",
                 "-{\"b\":null,\"a",
             "-{\"a\":null,\"c");
    VERDICTS("{\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}}", "+{}", "+{\"a\":null}",
             "+{\"b\":null}",
             "+{\"a\":null,\"b\":null}", "-{\"b\":null,\"a", "-{\"x");
    VERDICTS("{\"properties\":{\"a\":{\"type\":\"null\"}},\"additionalProperties\":{\"type\":\"integer\"}}", "+{}",
             "+{\"x\":1}",
             "-{\"a\":null,}", "-{\"x\":1,}", "+{\"a\":null,\"x\":1,\"y\":2}", "+{\"ab\":1}", "+{\"\":1,\"b\":2}",
                 "-{\"a\":1", "-{\"x\":1,\"a\"", "-{\"x\":null");
    VERDICTS("{\"properties\":{\"na\":{},\"name\":{},\"nix\":{}},\"additionalProperties\":true,\"required\":[\"na\"]}",
             "+{\"na\":1,\"nam\":2}", "+{\"na\":1,\"names\":2}", "+{\"na\":1,\"n\":2}", "-{\"na\":1,\"na\"",
                 "~{\"na\":1,\"name\"",
             "-{\"na\":1,\"z\":1,\"name\"", "-{\"na\":1,\"\\u006e", "+{\"na\":1,\"z\\u006e\":1}");
    VERDICTS("{\"additionalProperties\":{\"type\":\"integer\"},\"minProperties\":1,\"maxProperties\":2}", "-{}",
             "+{\"a\":1}",
             "+{\"a\":1,\"b\":2}", "-{\"a\":1,\"b\":2,");
    VERDICTS("{\"patternProperties\":{\"^x-\":{\"type\":\"integer\"}},\"additionalProperties\":false}", "+{}",
             "+{\"x-a\":1}",
             "-{\"a");
    VERDICTS("{\"propertyNames\":{\"enum\":[\"p\",\"q\"]},\"additionalProperties\":{\"type\":\"integer\"}}", "+{\"p\":1}",
             "-{\"r");
    VERDICTS("{\"type\":\"object\",\"required\":[\"id\"]}", "+{\"id\":1}", "+{\"id\":[]}", "-{}");
    VERDICTS("{\"properties\":{\"caf\xC3\xA9 \\\"x\\\"\":{\"type\":\"null\"}},\"required\":[\"caf\xC3\xA9 \\\"x\\\"\"]}",
             "+{\"caf\xC3\xA9 \\\"x\\\"\":null}", "-{\"cafe");
    VERDICTS("{\"properties\":{\"a\":false,\"b\":{\"type\":\"null\"}}}", "+{}", "+{\"b\":null}", "-{\"a");
}

static void test_arrays(void **state) {
    (void)state;
    VERDICTS("{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", "+[]", "+[1]", "+[1, 2,3]", "-[1,]", "-[,", "-[\"");
    VERDICTS("{\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":3}", "-[]", "-[null]", "+[null,null]",
             "+[null,null,null]",
             "-[null,null,null,");
    VERDICTS("{\"items\":{\"type\":\"null\"},\"maxItems\":1}", "+[]", "+[null]", "-[null,");
    VERDICTS("{\"type\":\"array\",\"maxItems\":0}", "+[]", "-[1");
    VERDICTS("{\"type\":\"array\",\"minItems\":1}", "-[]", "+[{}]");
    VERDICTS("{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"null\"}],\"items\":{\"type\":\"boolean\"}}", "+[]",
             "+[1]",
             "+[1,null]", "+[1,null,true,false]", "-[null", "-[1,null,1");
    VERDICTS("{\"prefixItems\":[{\"type\":\"integer\"},{\"type\":\"null\"}],\"items\":false,\"minItems\":2}", "+[1,null]",
             "-[1]",
             "-[1,null,");
    VERDICTS("{\"items\":[{\"type\":\"integer\"},{\"type\":\"null\"}],\"minItems\":3}", "+[1,null,{}]", "-[1,null]");
}

static void test_choices(void **state) {
    (void)state;
    VERDICTS("{\"enum\":[\"red\",\"green\",3,null,[1,2],{\"a\":1}]}", "+\"red\"", "+3", "+null", "+[1,2]", "+[1, 2]",
             "+{\"a\":1}",
             "-\"r\"", "-4");
    VERDICTS("{\"const\":\"a\\\"b\"}", "+\"a\\\"b\"", "-\"b");
    VERDICTS("{\"type\":\"string\",\"enum\":[\"a\",1]}", "+\"a\"", "-1");
    VERDICTS("{\"type\":\"integer\",\"enum\":[1,5,9],\"maximum\":5}", "+1", "+5", "-9");
    VERDICTS("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"},{\"type\":\"null\"}]}", "+\"a\"", "+1", "+null",
             "-t");
    VERDICTS("{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"a\"},\"x\":{\"type\":\"integer\"}},\"requi"
             "red\":["
             "\"k\",\"x\"]},{\"type\":\"object\",\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"]}]}",
             "+{\"k\":\"a\",\"x\":1}", "+{\"k\":\"b\"}", "-{\"k\":\"a\"}", "-{\"k\":\"c");
    VERDICTS("{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]},{\"proper"
             "ties\":{"
             "\"b\":{\"type\":\"null\"},\"a\":{\"minimum\":5}}}]}",
             "+{\"a\":5}", "+{\"a\":7,\"b\":null}", "-{\"a\":4}", "-{\"b");
    VERDICTS("{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}},\"required\":[\"x\"],\"anyOf\":[{\"properti"
             "es\":{"
             "\"x\":{\"maximum\":3}}},{\"properties\":{\"x\":{\"minimum\":7}}}]}",
             "+{\"x\":3}", "+{\"x\":7}", "-{\"x\":5}");
}

static void test_references(void **state) {
    (void)state;
    VERDICTS("{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/b\":{\"type\":\"null\"}}}", "+null", "-1");
    VERDICTS("{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}},\"required"
             "\":["
             "\"next\"],\"additionalProperties\":false}",
             "+{\"next\":null}", "+{\"next\":{\"next\":null}}", "~{\"next\":{\"next\":", "-{}");
    VERDICTS("{\"$defs\":{\"t\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/t\"}}},\"$ref\":\"#/$defs/t\"}",
             "+[[],[[]]]",
             "~[[", "-1");
    VERDICTS("{\"$ref\":\"#/$defs/n\",\"description\":\"x\",\"minimum\":3,\"$defs\":{\"n\":{\"type\":\"integer\"}}}", "+3",
             "+20", "~2", "--");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct { const char *text, *words; } bad[] = {
        {"{\"not\":{}}", "schema: #: not: this key cannot be honoured"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"if\":{}}}}", "#/properties/a: if: "},
        {"{\"type\":\"array\",\"items\":{\"uniqueItems\":true,\"type\":\"array\"}}", "uniqueItems"},
        {"{\"type\":\"text\"}", "type: expected"},
        {"{\"type\":\"string\",\"format\":\"regex\"}", "format: \"regex\" is not a format"},
        {"{\"type\":\"string\",\"format\":\"shoe-size\"}", "format: \"shoe-size\""},
        {"{\"pattern\":\"(?=a)b\"}", "pattern: looking around"},
        {"{\"pattern\":\"(a)\\\\1\"}", "back reference"},
        {"{\"pattern\":\"\\\\bword\"}", "\\b cannot"},
        {"{\"pattern\":\"\\\\p{L}\"}", "\\p{"},
        {"{\"pattern\":\"a^b\"}", "anchor"},
        {"{\"pattern\":\"[a\"}", "closing bracket"},
        {"{\"pattern\":\"(a\"}", "not closed"},
        {"{\"pattern\":\"a)\"}", "closing parenthesis"},
        {"{\"pattern\":\"*a\"}", "nothing to repeat"},
        {"{\"pattern\":\"^(a{1,1000}){1,1000}$\"}", "pattern: a repetition that is too large"},
        {"{\"pattern\":5}", "pattern: expected a text"},
        {"{\"minimum\":3,\"maximum\":2}", "minimum: no number is left"},
        {"{\"minimum\":\"3\"}", "minimum: expected a number"},
        {"{\"minLength\":3,\"maxLength\":2}", "minLength: 3 is more than maxLength, 2"},
        {"{\"minLength\":-1}", "minLength: expected a whole number"},
        {"{\"minItems\":3,\"maxItems\":2}", "minItems"},
        {"{\"multipleOf\":0}", "multipleOf: expected a number above 0"},
        {"{\"type\":\"integer\",\"multipleOf\":123456}", "multipleOf"},
        {"{\"$ref\":\"#/$defs/x\"}", "$ref: \"#/$defs/x\" is not in this schema"},
        {"{\"$ref\":\"http://example.com/a\"}", "$ref"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", "oneOf: a value could match branches 0 and 1"},
        {"{\"enum\":[]}", "enum: expected a list"},
        {"{\"anyOf\":5}", "anyOf: expected a list"},
        {"{\"properties\":5}", "properties: expected"},
        {"{\"type\":\"object\",\"required\":[5]}", "required: expected"},
        {"{\"properties\":{\"a\":5}}", "#/properties/a: expected a schema"},
        {"{\"patternProperties\":{\"a\":{},\"b\":{}}}", "patternProperties"},
        {"{\"properties\":{\"a\":{}},\"minProperties\":1}", "minProperties"},
        {"{\"enum\":[\"a\"],\"pattern\":\"a\"}", "pattern: this key cannot be honoured beside enum"},
        {"{\"type\":\"integer\",\"enum\":[\"a\"]}", "nothing can satisfy it"},
        {"false", "nothing can satisfy it"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "nothing can satisfy it"},
        {"{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"type\":\"null\"}]}},\"$ref\":\"#/$defs/a\"}",
         "begins with itself"},
        {"{\"$ref\":\"#\"}", "$ref: it leads back to itself"},
        {"{\"type\":\"object\",\"anyOf\":[{\"$ref\":\"#\"},{\"required\":[\"a\"]}]}", "leads back to its own place"},
        {"[]", "expected a schema"},
        {"{\"type\":", "not valid JSON"},
        {"", "schema"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *found = schema_error(bad[i].text);
        if (!strstr(found, bad[i].words)) fail_msg("%s\n  does not say: %s", found, bad[i].words);
    }
}

/* Masks say what accept does, and no way ends in nothing. */
static void test_masks(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":9},\"age\":{\"type"
        "\":"
        "\"integer\",\"minimum\":3,\"maximum\":1200},\"a\":{\"type\":\"array\",\"items\":{\"type\":\"number\",\"multipleOf"
        "\":0.5},"
        "\"minItems\":1,\"maxItems\":3}},\"required\":[\"a\"],\"additionalProperties\":{\"type\":\"string\"}}",
        "{\"type\":\"array\",\"items\":{\"pattern\":\"^(a|b\\\"|\xC3\xA9){2,5}$\",\"minLength\":3}}",
        "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":3},{\"type\":\"string\",\"pattern\":\"a\",\"minLength\":6},{\"type"
        "\":\"array\","
        "\"items\":{}}]}",
        "{\"type\":\"object\"}",
        "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"minLength\":40,\"maxLength\":60}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        clt_grammar *g = schema(texts[i]);
        for (unsigned seed = 1; seed <= 6; seed++) assert_int_equal(compare_masks(g, seed, 100), 100);
        clt_grammar_free(g);
    }
}

/* The kinds of schema that trip grammars up: each is accepted, and none takes long. */
static void test_heavy(void **state) {
    (void)state;
    clt_buf b = {0};
    clt_buf_puts(&b, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 500; i++) clt_buf_printf(&b, "%s\"property_%d\":{\"type\":\"string\",\"maxLength\":2000}", i ? ","
                                                 : "", i);
    clt_buf_puts(&b, "}}");
    clt_grammar *g = schema(b.data);
    assert_verdicts(g, (const char *const[]){"+{}", "+{\"property_3\":\"a\",\"property_499\":\"b\"}", "-{\"property_500",
                                             NULL});
    clt_grammar_free(g);

    clt_buf_reset(&b); /* branches of branches: 2^20 places if each were written out */
    clt_buf_puts(&b, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 20; i++) clt_buf_printf(&b,
                                                "\"%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/%d\"},{\"$ref\":\"#/$defs/%d\"}]},",
                                                    i, i + 1, i + 1);
    clt_buf_puts(&b, "\"20\":{\"type\":\"null\"}}}");
    g = schema(b.data);
    assert_verdicts(g, (const char *const[]){"+null", "-1", NULL});
    clt_grammar_free(g);

    clt_buf_reset(&b); /* many ways from each number to what follows it */
    clt_buf_puts(&b, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 300; i++) clt_buf_printf(&b, "%s\"p%d\":{\"type\":\"integer\",\"minimum\":%d}", i ? "," : "", i, i);
    clt_buf_puts(&b, "}}");
    g = schema(b.data);
    assert_verdicts(g, (const char *const[]){"+{\"p7\":7,\"p299\":300}", "-{\"p7\":6,", "-{\"p7\":7,\"p6\"", NULL});
    clt_grammar_free(g);

    clt_buf_reset(&b);
    clt_buf_puts(&b, "{\"required\":[\"id\"");
    for (int i = 0; i < 2000; i++) clt_buf_printf(&b, ",\"r%d\"", i % 1999);
    clt_buf_puts(&b, "],\"properties\":{\"id\":{\"enum\":[0");
    for (int i = 1; i < 20000; i++) clt_buf_printf(&b, ",\"v%d\"", i);
    clt_buf_puts(&b, "]}}}");
    g = schema(b.data);
    assert_verdicts(g, (const char *const[]){"~{\"id\":\"v19999\",\"r0\":1,\"r1\":", "-{\"id\":\"v20000\"",
                                             "-{\"id\":0,\"r1\"", NULL});
    clt_grammar_free(g);

    clt_buf_reset(&b);
    for (int i = 0; i < 15; i++) clt_buf_puts(&b, "{\"type\":\"array\",\"minItems\":1,\"maxItems\":100000,\"items\":");
    clt_buf_puts(&b, "{\"type\":\"null\"}");
    for (int i = 0; i < 15; i++) clt_buf_putc(&b, '}');
    g = schema(b.data);
    assert_verdicts(g, (const char *const[]){"+[[[[[[[[[[[[[[[null]]]]]]]]]]]]]]]", "-[]", NULL});
    clt_grammar_free(g);
    clt_buf_free(&b);
}

static void test_memory(void **state) {
    (void)state;
    static const char text[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":3},\"b\":{\"pattern\":\"^[a-z]+$\"},"
                               "\"c\":{\"enum\":[1,\"x\"]},\"d\":{\"items\":{\"$ref\":\"#\"}}},\"additionalProperties\":true"
                               "}";
    long live = clt_mem_live();
    bool done = false;
    for (long n = 1; !done && n < 100000; n++) {
        clt_err err;
        clt_grammar *g;
        clt_mem_fail_after(n);
        clt_status status = clt_grammar_from_schema(text, sizeof text - 1, "schema", &g, &err);
        clt_mem_fail_after(0);
        done = status == CLT_OK;
        if (!done) assert_int_equal(status, CLT_E_MEMORY);
        clt_grammar_free(g);
        assert_int_equal(clt_mem_live(), live);
    }
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),   cmocka_unit_test(test_lengths), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_patterns),  cmocka_unit_test(test_formats), cmocka_unit_test(test_objects),
        cmocka_unit_test(test_arrays),    cmocka_unit_test(test_choices), cmocka_unit_test(test_references),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_masks),   cmocka_unit_test(test_heavy),
        cmocka_unit_test(test_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    drop_vocabulary();
    return failed;
}
