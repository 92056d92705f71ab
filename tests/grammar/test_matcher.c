/* The matcher: masks say what accept does, steps can be taken back, copies and long replies lose nothing. */
#include "fixture.h"

static const char json[] =
    "root ::= value\n"
    "value ::= object | array | string | number | \"true\" | \"false\" | \"null\"\n"
    "object ::= \"{\" ws (pair (\",\" ws pair)*)? \"}\"\n"
    "pair ::= string \":\" ws value\n"
    "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\"\n"
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\nrt] | \"u\" [0-9a-f]{4}))* \"\\\"\"\n"
    "number ::= \"-\"? [0-9]{1,5} (\".\" [0-9]{1,3})?\n"
    "ws ::= \" \"?\n";

static void test_masks(void **state) {
    (void)state;
    static const char *const texts[] = {
        json,
        "root ::= \"a\"* \"b\"",
        "root ::= (\"a\" | \"ab\" | \"abc\"){3,400} \"\\\"\"",
        "root ::= [^x]{2,300}",
        "root ::= \"{\" root? \"}\" | \"[\" (root \",\")* \"]\"",
        "root ::= x{100,200} \"!\" x{0,3}\nx ::= \"a\" | \"aa\" | \"b\" \"c\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        clt_grammar *g = gbnf(texts[i]);
        for (unsigned seed = 1; seed <= 4; seed++) assert_int_equal(compare_masks(g, seed, 120), 120);
        clt_grammar_free(g);
    }
}

/* However a text is cut into tokens, the position after it is the same: equal masks. */
static void test_bytes_decide(void **state) {
    (void)state;
    static const char text[] = "{\"name\": \"caf\xC3\xA9\", \"age\": 12";
    clt_grammar *g = gbnf(json);
    clt_matcher *whole = matcher_of(g), *bytes = matcher_of(g);
    uint64_t a[(N_TOKENS + 63) / 64], b[(N_TOKENS + 63) / 64];
    clt_err err;
    assert_true(clt_matcher_accept_bytes(whole, text, sizeof text - 1));
    for (size_t i = 0; i < sizeof text - 1; i++) assert_true(clt_matcher_accept_bytes(bytes, text + i, 1));
    assert_int_equal(clt_matcher_mask(whole, a, &err), CLT_OK);
    assert_int_equal(clt_matcher_mask(bytes, b, &err), CLT_OK);
    assert_memory_equal(a, b, sizeof a);
    clt_matcher_free(whole);
    clt_matcher_free(bytes);
    clt_grammar_free(g);
}

static void test_rollback(void **state) {
    (void)state;
    clt_grammar *g = gbnf("root ::= \"a\" \"b\" \"c\" \"d\"");
    clt_matcher *m = matcher_of(g);
    assert_true(clt_matcher_accept(m, 'a'));
    assert_true(clt_matcher_accept_bytes(m, "bc", 2));
    assert_false(clt_matcher_accept(m, 'x')); /* changes nothing */
    assert_true(clt_matcher_accept(m, 'd'));
    assert_true(clt_matcher_may_end(m));
    assert_true(clt_matcher_must_end(m));
    assert_true(clt_matcher_rollback(m, 2));
    assert_false(clt_matcher_may_end(m));
    assert_false(clt_matcher_accept(m, 'c'));
    assert_true(clt_matcher_accept(m, 'b'));
    assert_true(clt_matcher_rollback(m, 2));
    assert_false(clt_matcher_rollback(m, 1)); /* nothing is before the beginning */
    assert_true(clt_matcher_accept(m, 'a'));
    clt_matcher_reset(m);
    assert_true(clt_matcher_accept(m, 'a'));
    assert_false(clt_matcher_accept(m, -1));
    assert_false(clt_matcher_accept(m, N_TOKENS));
    assert_false(clt_matcher_accept(m, 0xF8)); /* a token without text */
    clt_matcher_free(m);
    clt_grammar_free(g);
}

static void test_copy(void **state) {
    (void)state;
    clt_grammar *g = gbnf(json);
    clt_matcher *m = matcher_of(g), *copy;
    clt_err err;
    assert_true(clt_matcher_accept_bytes(m, "[[", 2));
    assert_true(clt_matcher_accept_bytes(m, "1", 1));
    assert_int_equal(clt_matcher_copy(m, &copy, &err), CLT_OK);
    assert_true(clt_matcher_accept_bytes(m, "]]", 2));
    assert_true(clt_matcher_may_end(m));
    assert_false(clt_matcher_may_end(copy));
    assert_true(clt_matcher_rollback(copy, 1));
    assert_true(clt_matcher_accept_bytes(copy, "2]]", 3));
    assert_true(clt_matcher_may_end(copy));
    clt_matcher_free(m);
    clt_matcher_free(copy);
    clt_grammar_free(g);
}

static void test_forced(void **state) {
    (void)state;
    clt_grammar *g = gbnf("root ::= \"{\\\"name\\\": \" ([0-9] | \"-\") \"!\"?");
    clt_matcher *m = matcher_of(g);
    clt_buf out = {0};
    clt_matcher_forced(m, &out);
    assert_string_equal(out.data, "{\"name\": ");
    assert_true(clt_matcher_accept_bytes(m, "{\"na", 4));
    clt_buf_reset(&out);
    clt_matcher_forced(m, &out);
    assert_string_equal(out.data, "me\": ");
    assert_true(clt_matcher_accept_bytes(m, "me\": 1", 6));
    clt_buf_reset(&out);
    clt_matcher_forced(m, &out); /* it may end, so nothing is forced */
    assert_int_equal(out.len, 0);
    clt_buf_free(&out);
    clt_matcher_free(m);
    clt_grammar_free(g);
}

/* Every step of a counted repetition is a position of its own: half a million of them fit, and steps back still work. */
static void test_long_replies(void **state) {
    (void)state;
    clt_grammar *g = gbnf("root ::= ([a-z] | \"<\" [a-z]+ \">\"){3,100000000} \".\"");
    clt_matcher *m = matcher_of(g);
    for (int i = 0; i < 500000; i++) assert_true(clt_matcher_accept(m, 'a' + i % 26));
    assert_true(clt_matcher_bytes(m) < 64u << 20);
    assert_true(clt_matcher_rollback(m, CLT_MATCHER_STEPS));
    assert_true(clt_matcher_accept(m, '.'));
    assert_true(clt_matcher_must_end(m));
    clt_matcher_free(m);
    clt_grammar_free(g);
}

/* Nesting stops at a depth, and what was opened can be closed. */
static void test_depth(void **state) {
    (void)state;
    clt_grammar *g = gbnf("root ::= \"[\" root \"]\" | \"x\"");
    clt_matcher *m = matcher_of(g);
    size_t depth = 0;
    while (depth < 100000 && clt_matcher_accept(m, '[')) depth++;
    assert_in_range(depth, 100, 1000);
    assert_true(clt_matcher_accept(m, 'x'));
    for (size_t i = 0; i < depth; i++) assert_true(clt_matcher_accept(m, ']'));
    assert_true(clt_matcher_must_end(m));
    clt_err err;
    assert_int_equal(clt_matcher_check(m, &err), CLT_OK);
    clt_matcher_free(m);
    clt_grammar_free(g);
    g = gbnf("root ::= \"a\" root | \"b\""); /* a rule that ends in itself nests nothing */
    m = matcher_of(g);
    for (int i = 0; i < 5000; i++) assert_true(clt_matcher_accept(m, 'a'));
    assert_true(clt_matcher_accept(m, 'b'));
    assert_true(clt_matcher_must_end(m));
    clt_matcher_free(m);
    clt_grammar_free(g);
}

/* Without memory everything fails in order: an error, no crash, nothing left behind. */
static void test_memory(void **state) {
    (void)state;
    small_vocabulary();
    long live = clt_mem_live();
    bool done = false;
    for (long n = 1; !done && n < 100000; n++) {
        clt_err err;
        clt_grammar *g = NULL;
        clt_matcher *m = NULL;
        uint64_t bits[(N_TOKENS + 63) / 64];
        clt_mem_fail_after(n);
        clt_status status = clt_grammar_from_gbnf(json, sizeof json - 1, &g, &err);
        if (status == CLT_OK) status = clt_matcher_create(g, small_vocabulary(), &m, &err);
        if (status == CLT_OK && !clt_matcher_accept_bytes(m, "{\"a\":[", 6)) status = clt_matcher_check(m, &err);
        if (status == CLT_OK) status = clt_matcher_mask(m, bits, &err);
        done = status == CLT_OK;
        clt_mem_fail_after(0);
        if (!done) assert_int_equal(status, CLT_E_MEMORY);
        clt_matcher_free(m);
        clt_grammar_free(g);
        assert_int_equal(clt_mem_live(), live);
    }
    assert_true(done);
}

static void test_tokens_memory(void **state) {
    (void)state;
    long live = clt_mem_live();
    bool done = false;
    for (long n = 1; !done && n < 1000; n++) {
        clt_err err;
        clt_tokens *t;
        clt_mem_fail_after(n);
        clt_status status = clt_tokens_create(token_text(0), N_TOKENS, &t, &err);
        clt_mem_fail_after(0);
        done = status == CLT_OK;
        if (!done) assert_int_equal(status, CLT_E_MEMORY);
        clt_tokens_free(t);
        assert_int_equal(clt_mem_live(), live);
    }
    assert_true(done);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_bytes_decide),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_forced),
        cmocka_unit_test(test_long_replies),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_tokens_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    drop_vocabulary();
    return failed;
}
