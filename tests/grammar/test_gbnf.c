/* GBNF: what the notation means, what is refused and with which words, and that hostile grammars end in bounded work. */
#include "fixture.h"

#define VERDICTS(text, ...)                                   \
    do {                                                      \
        clt_grammar *g_ = gbnf(text);                         \
        assert_verdicts(g_, (const char *const[]){__VA_ARGS__, NULL}); \
        clt_grammar_free(g_);                                 \
    } while (0)

static void test_notation(void **state) {
    (void)state;
    VERDICTS("root ::= \"yes\" | \"no\"", "+yes", "+no", "~", "~ye", "-x", "-yesno");
    VERDICTS("root ::= [a-c]+ [^a-z]", "+ab1", "~abc", "-d", "-1", "+a\xC3\xA9", "-a1x");
    VERDICTS("root ::= \"a\"* \"b\"? \"c\"+", "+c", "+aabcc", "~aab", "-bb");
    VERDICTS("root ::= \"a\"{2} \"b\"{1,2} \"c\"{2,}", "+aabcc", "+aabbccc", "~aabc", "-aaa", "-aabbb", "-ab");
    VERDICTS("root ::= \"x\"{0,3} \"x\"{0} [y]{,2}", "+", "+xxx", "-xxxx", "+yy", "-yyy");
    VERDICTS("root ::= (\"a\" | \"b\" (\"c\" | \"d\")) \"e\"", "+ae", "+bce", "+bde", "-be");
    VERDICTS("root ::= one two\none ::= \"1\"\n# a comment\ntwo ::= \"2\" # another\n", "+12", "-2");
    VERDICTS("root ::=\n  \"a\" |\n  \"b\"\n", "+a", "+b");
    VERDICTS("root ::= (\n  \"a\"\n  \"b\"\n)", "+ab", "~a");
    VERDICTS("root ::= \"\\x41\\u00e9\\U0001F600\\n\\\"\\\\\"", "+A\xC3\xA9\xF0\x9F\x98\x80\n\"\\", "-a");
    VERDICTS("root ::= [\\]\\\\^-] [a-]", "+]a", "+\\-", "+^a", "+-a", "-a");
    VERDICTS("root ::= . \"!\"", "+a!", "+\xE2\x82\xAC!", "~\xE2\x82", "-\xFF!", "-\xED\xA0\x80!", "-\xC0\x80!");
    VERDICTS("root ::= \"\"", "+", "-a");
    VERDICTS("root ::= empty \"a\" empty\nempty ::= | \"e\" empty", "+a", "+eeaee", "~ee");
    VERDICTS("root ::= [\xC3\xA0-\xE2\x82\xAC]", "+\xC3\xA9", "+\xE2\x82\xAC", "-\xE2\x82\xAD", "-\xC3\x9F");
}

static void test_recursion(void **state) {
    (void)state;
    VERDICTS("root ::= \"(\" root \")\" | \"x\"", "+x", "+((x))", "~((x)", "-)", "-(x))");
    VERDICTS("root ::= \"a\" root | \"b\"", "+b", "+aaab", "~aaa");
    VERDICTS("root ::= s\ns ::= \"a\" s s | \"b\"", "+b", "+abb", "~aab", "+aabbb"); /* ambiguous where to end */
    VERDICTS("root ::= x x x x x x x x\nx ::= \"a\"*", "+", "+aaaaaaaaaaaa", "-b");  /* many ways, one position */
    VERDICTS("root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9]+ | \"(\" e \")\"", "+1+(2+3)", "~1+(", "-1+)");
}

static void test_bounds_are_counted(void **state) {
    (void)state;
    char text[3001];
    clt_grammar *g = gbnf("root ::= (\"a\" | \"bc\"){1000,2000} \"!\"");
    memset(text, 'a', sizeof text);
    text[999] = '!';
    assert_int_equal(judge(g, text, 1000), REFUSED);
    text[999] = 'a';
    text[1000] = '!';
    assert_int_equal(judge(g, text, 1001), COMPLETE);
    text[1000] = 'a';
    text[2000] = '!';
    assert_int_equal(judge(g, text, 2001), COMPLETE);
    text[2000] = 'a';
    assert_int_equal(judge(g, text, 2001), REFUSED);
    clt_grammar_free(g);
    /* what may be empty counts as often as one likes */
    VERDICTS("root ::= (\"a\"*){5,1000000} \"b\"", "+b", "+aab", "~aaaa");
    VERDICTS("root ::= ((\"a\"{1,1000000}){1,1000000}){1,1000000}", "+a", "+aaaa", "-b", "~");
}

static void test_refusals(void **state) {
    (void)state;
    static const struct { const char *text, *words; } bad[] = {
        {"", "no rule \"root\""},
        {"a ::= \"b\"", "no rule \"root\""},
        {"root ::= other", "\"other\" is used but not defined"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2: a rule that stands here twice"},
        {"root ::= \"abc", "without its closing quote"},
        {"root ::= [abc", "without its closing bracket"},
        {"root ::= [z-a]", "runs backwards"},
        {"root ::= (\"a\"", "not closed"},
        {"root ::= \"a\" )", "line 1: unexpected text at \")\""},
        {"root = \"a\"", "expected ::="},
        {"root ::= \"\\q\"", "unknown escape"},
        {"root ::= \"\\x4\"", "hexadecimal"},
        {"root ::= \"\\uD800\"", "no such character"},
        {"root ::= \"a\"{3,2}", "bounds run backwards"},
        {"root ::= \"a\"{x}", "expected a number"},
        {"root ::= \"a\"{1,99999999999}", "beyond 100,000,000"},
        {"root ::= root | \"a\"", "\"root\" begins with itself"},
        {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= a", "begins with itself"},
        {"root ::= e a\ne ::= | \"e\"\na ::= e a \"x\" | \"y\"", "rule \"a\" begins with itself"},
        {"root ::= \"a\" root", "could never end"},
        {"root ::= \"\xFF\"", "not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *found = gbnf_error(bad[i].text);
        if (!strstr(found, bad[i].words)) fail_msg("%s\n  does not say: %s", found, bad[i].words);
    }
}

/* What can never end is no way to go, although the rest of the grammar is fine. */
static void test_dead_ends_are_left_out(void **state) {
    (void)state;
    VERDICTS("root ::= \"a\" | \"b\" loop\nloop ::= \"c\" loop", "+a", "-b", "-bc");
    VERDICTS("root ::= \"a\" []  | \"b\"", "+b", "-a");
}

static clt_buf repeated(const char *head, const char *item, size_t n, const char *tail) {
    clt_buf b = {0};
    clt_buf_puts(&b, head);
    for (size_t i = 0; i < n; i++) clt_buf_printf(&b, item, (int)i);
    clt_buf_puts(&b, tail);
    assert_false(b.failed);
    return b;
}

static void test_hostile(void **state) {
    (void)state;
    clt_buf held = repeated("root ::= \"start\"", " | \"word%d\"", 100000, "");
    clt_grammar *g = gbnf(held.data);
    assert_verdicts(g, (const char *const[]){"+start", "+word99999", "~wor", "-word100000", NULL});
    clt_grammar_free(g);
    clt_buf_free(&held);

    held = repeated("root ::= \"x\"", " | r%1$d", 20000, "\n");
    clt_buf rules = repeated("", "r%1$d ::= \"%1$d\"\n", 20000, "");
    clt_buf whole = {0};
    clt_buf_printf(&whole, "%s%s", held.data, rules.data);
    g = gbnf(whole.data);
    assert_verdicts(g, (const char *const[]){"+x", "+19999", "~", "-20000", NULL});
    clt_grammar_free(g);
    clt_buf_free(&held);
    clt_buf_free(&rules);
    clt_buf_free(&whole);

    held = repeated("root ::= (\"x\"", " | \"w%d\" [a-z]*", 20000, ")*"); /* all ways lead to all beginnings */
    assert_non_null(strstr(gbnf_error(held.data), "too many ways"));
    clt_buf_free(&held);

    held = repeated("root ::= ", "(", 300, "\"a\"");
    assert_non_null(strstr(gbnf_error(held.data), "nested too deeply"));
    clt_buf_free(&held);

    held = repeated("root ::= [ab]* \"a\"", " [ab]", 40, ""); /* 2^40 subsets */
    g = gbnf(held.data);
    assert_int_equal(compare_masks(g, 1, 60), 60);
    clt_grammar_free(g);
    clt_buf_free(&held);

}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notation),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_bounds_are_counted),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_dead_ends_are_left_out),
        cmocka_unit_test(test_hostile),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    drop_vocabulary();
    return failed;
}
