/* Replies that must be something: content, calls and thoughts under grammars, schemas and tools; sampled at random from tiny
 * models, and with ids that a test dictates. */
#include "engine/tiny.h"
#include <math.h>
#include "base/json.h"
#include "base/mem.h"

typedef struct stage {
    culet_engine *e;
    culet_session *s;
    culet_prompt prompt;
    culet_generate_params p;
} stage;

static void setup(stage *g, const char *model, bool think) {
    culet_error err;
    char request[256];
    memset(g, 0, sizeof *g);
    g->e = tiny_open(model, CULET_OPEN_FULL, 1);
    g->s = tiny_session(g->e, 512, 0);
    snprintf(request, sizeof request,
             "{\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}],\"chat_template_kwargs\":{\"enable_thinking\":%s}}",
             think ? "true" : "false");
    if (culet_render(g->e, request, strlen(request), &g->prompt, &err)) fail_msg("%s", err.text);
    g->p = (culet_generate_params){.prompt = g->prompt.ids, .n_prompt = g->prompt.n_ids, .max_tokens = 120,
                                   .in_thought = g->prompt.in_thought, .may_think = think,
                                   .sampling = culet_engine_info(g->e)->sampling};
}

static void teardown(stage *g) {
    culet_prompt_free(&g->prompt);
    culet_session_close(g->s);
    culet_engine_close(g->e);
}

static culet_reply reply(stage *g, uint64_t seed) {
    culet_error err;
    culet_reply r;
    g->p.sampling.seed = seed;
    if (culet_generate(g->s, &g->p, &r, &err) != CULET_OK) fail_msg("%s", err.text);
    return r;
}

static void assert_json(const char *text, clt_json_type type) {
    clt_err err;
    clt_json *doc;
    if (clt_json_parse(text, strlen(text), "reply", &doc, &err)) fail_msg("%s in: %s", err.text, text);
    assert_int_equal(clt_json_kind(doc), type);
    clt_json_free(doc);
}

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"put\",\"parameters\":{\"type\":\"object\",\"properties\":{\"key\":{\"t"
    "ype\":\"string\","
    "\"maxLength\":5},\"n\":{\"type\":\"integer\",\"minimum\":10,\"maximum\":19}},\"required\":[\"key\",\"n\"]}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"stop\",\"parameters\":{\"type\":\"object\",\"properties\":{}, "
    "\"additionalProperties\":false}}}]";

static void assert_call(const char *name, const char *arguments) {
    clt_err err;
    clt_json *doc;
    int64_t n;
    assert_int_equal(clt_json_parse(arguments, strlen(arguments), "arguments", &doc, &err), CLT_OK);
    if (!strcmp(name, "put")) {
        assert_non_null(clt_json_str(clt_json_get(doc, "key"), NULL));
        assert_true(clt_json_int(clt_json_get(doc, "n"), &n));
        assert_in_range(n, 10, 19);
        assert_int_equal(clt_json_len(doc), 2);
    } else {
        assert_string_equal(name, "stop");
        assert_string_equal(arguments, "{}");
    }
    clt_json_free(doc);
}

static void test_required_calls(void **state) {
    (void)state;
    stage g;
    setup(&g, "tiny-dense", false);
    g.p.tools = tools;
    g.p.tool_choice = CULET_TOOLS_REQUIRED;
    g.p.one_call = true;
    bool put = false, stop = false;
    for (uint64_t seed = 0; seed < 12; seed++) {
        culet_reply r = reply(&g, seed);
        assert_int_equal(r.finish, CULET_FINISH_TOOL_CALLS);
        assert_int_equal(r.n_calls, 1);
        assert_int_equal(r.text_len, 0);
        assert_call(r.calls[0].name, r.calls[0].arguments);
        put |= !strcmp(r.calls[0].name, "put");
        stop |= !strcmp(r.calls[0].name, "stop");
        culet_reply_free(&r);
    }
    assert_true(put && stop);
    g.p.tool_name = "put";
    culet_reply r = reply(&g, 1);
    assert_string_equal(r.calls[0].name, "put");
    culet_reply_free(&r);
    g.p.one_call = false; /* several, each whole, none cut */
    r = reply(&g, 2);
    assert_true(r.n_calls >= 1);
    for (size_t i = 0; i < r.n_calls; i++) assert_call(r.calls[i].name, r.calls[i].arguments);
    culet_reply_free(&r);
    teardown(&g);
}

static int32_t id_of(const culet_engine *e, const char *text) {
    int32_t id;
    assert_int_equal(tiny_tokens(e, text, &id, 1), 1);
    return id;
}

/* A bias that makes the model want a call: free text goes over into one that is held to the tools, or never, as is chosen.
 * */
static void test_call_of_its_own_accord(void **state) {
    (void)state;
    stage g;
    setup(&g, "tiny-dense", false);
    int32_t ids[] = {id_of(g.e, "<|tool_call>")};
    float values[] = {40};
    g.p.sampling.bias_ids = ids;
    g.p.sampling.bias_values = values;
    g.p.sampling.n_bias = 1;
    g.p.tools = tools;
    g.p.one_call = true;
    for (uint64_t seed = 0; seed < 4; seed++) {
        culet_reply r = reply(&g, seed);
        assert_int_equal(r.n_calls, 1);
        assert_call(r.calls[0].name, r.calls[0].arguments);
        culet_reply_free(&r);
    }
    g.p.json_schema = "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"maxItems\":3}"; /* content or a call */
    culet_reply r = reply(&g, 1);
    assert_int_equal(r.n_calls, 1);
    assert_int_equal(r.text_len, 0);
    culet_reply_free(&r);
    g.p.tool_choice = CULET_TOOLS_NONE;
    r = reply(&g, 1);
    assert_int_equal(r.n_calls, 0);
    assert_json(r.text, CLT_JSON_ARRAY);
    culet_reply_free(&r);
    g.p.json_schema = NULL;
    r = reply(&g, 1);
    for (size_t i = 0; i < r.n_ids; i++) assert_int_not_equal(r.ids[i], ids[0]);
    culet_reply_free(&r);
    teardown(&g);
}

/* The thought is free, also of the end ids' temptation; the content behind it is bound. */
static void test_thoughts(void **state) {
    (void)state;
    stage g;
    setup(&g, "tiny-dense", true);
    int32_t ids[] = {id_of(g.e, "<|channel>"), id_of(g.e, "<turn|>"), id_of(g.e, "<channel|>")};
    float values[] = {12, 4, 12};
    g.p.sampling.bias_ids = ids;
    g.p.sampling.bias_values = values;
    g.p.sampling.n_bias = 3;
    g.p.json_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"],\"additionalP"
                      "roperties\":false}";
    size_t thought = 0, stopped = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        culet_reply r = reply(&g, seed);
        if (r.finish == CULET_FINISH_STOP) assert_json(r.text, CLT_JSON_OBJECT);
        else assert_int_equal(r.finish, CULET_FINISH_LENGTH);
        thought += r.thought_len > 0;
        stopped += r.finish == CULET_FINISH_STOP;
        culet_reply_free(&r);
    }
    assert_true(thought > 0 && stopped > 0);
    g.p.may_think = false; /* then none begins, however much the model wants it */
    culet_reply r = reply(&g, 3);
    assert_int_equal(r.thought_len, 0);
    assert_json(r.text, CLT_JSON_OBJECT);
    culet_reply_free(&r);
    g.p.in_thought = true; /* a prompt that has opened the thought already */
    r = reply(&g, 4);
    assert_true(r.thought_len > 0);
    if (r.finish == CULET_FINISH_STOP) assert_json(r.text, CLT_JSON_OBJECT);
    culet_reply_free(&r);
    teardown(&g);
}

/* Two sessions of an engine share its tokens; the same seed gives the same reply in both, and after another reply. */
static void test_repeats(void **state) {
    (void)state;
    stage g;
    setup(&g, "tiny-unified", false);
    g.p.json_schema = "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":2}";
    culet_reply a = reply(&g, 5), other = reply(&g, 6), b = reply(&g, 5);
    culet_session *first = g.s;
    g.s = tiny_session(g.e, 300, 0);
    culet_reply c = reply(&g, 5);
    assert_int_equal(a.n_ids, b.n_ids);
    assert_memory_equal(a.ids, b.ids, a.n_ids * sizeof *a.ids);
    assert_int_equal(a.n_ids, c.n_ids);
    assert_memory_equal(a.ids, c.ids, a.n_ids * sizeof *a.ids);
    culet_reply_free(&a);
    culet_reply_free(&b);
    culet_reply_free(&c);
    culet_reply_free(&other);
    culet_session_close(first);
    teardown(&g);
}

static void test_errors(void **state) {
    (void)state;
    stage g;
    culet_error err;
    culet_reply r;
    setup(&g, "tiny-dense", false);
    g.p.json_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"contains\":{}}}}";
    assert_int_equal(culet_generate(g.s, &g.p, &r, &err), CULET_REQUEST);
    assert_non_null(strstr(err.text, "json_schema: #/properties/a: contains"));
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_REQUEST);
    g.p.grammar = "root ::= \"a\"";
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_USAGE);
    g.p.json_schema = NULL;
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_OK);
    g.p.tools = "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"x\":{\"not\":{}}}}}}]";
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_REQUEST);
    assert_non_null(strstr(err.text, "tools: f: #/properties/x: not"));
    g.p.tools = NULL;
    g.p.tool_choice = CULET_TOOLS_REQUIRED;
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_REQUEST);
    g.p.tools = tools;
    g.p.tool_name = "absent";
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_REQUEST);
    assert_non_null(strstr(err.text, "\"absent\""));
    g.p.tool_choice = CULET_TOOLS_AUTO;
    assert_int_equal(culet_constraint_check(&g.p, &err), CULET_USAGE);
    g.p = (culet_generate_params){.prompt = g.prompt.ids, .n_prompt = g.prompt.n_ids, .max_tokens = 5,
                                  .sampling = tiny_greedy()};
    int32_t banned[256];
    float values[256];
    for (int i = 0; i < 256; i++) values[i] = -INFINITY;
    size_t n = 0;
    /* every token that begins like the grammar */
    for (int32_t id = 0; id < culet_engine_info(g.e)->vocab && n < 256; id++) {
        size_t len;
        const char *piece = culet_piece(g.e, id, &len);
        if (piece && len && (*piece == 'q' || !strcmp(piece, "<0x71>"))) banned[n++] = id;
    }
    g.p.grammar = "root ::= \"q\"";
    g.p.sampling.bias_ids = banned;
    g.p.sampling.bias_values = values;
    g.p.sampling.n_bias = n;
    assert_int_equal(culet_generate(g.s, &g.p, &r, &err), CULET_FAILED);
    assert_non_null(strstr(err.text, "no token that may be chosen"));
    teardown(&g);
}

static void test_memory(void **state) {
    (void)state;
    stage g;
    culet_error err;
    culet_reply r;
    setup(&g, "tiny-dense", false);
    g.p.json_schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"]}";
    g.p.sampling.seed = 1;
    bool done = false;
    long live = clt_mem_live();
    for (long n = 1; !done && n < 5000; n += 1 + n / 50) {
        clt_mem_fail_after(n);
        culet_status st = culet_generate(g.s, &g.p, &r, &err);
        clt_mem_fail_after(0);
        done = st == CULET_OK;
        if (!done) assert_int_equal(st, CULET_MEMORY);
        culet_reply_free(&r);
    }
    assert_true(done);
    assert_true(clt_mem_live() >= live); /* the tokens stay with the engine */
    teardown(&g);
    assert_int_equal(clt_mem_live(), 0);
}

int main(void) {
    int cannot = tiny_cannot_run();
    if (cannot) return cannot;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required_calls), cmocka_unit_test(test_call_of_its_own_accord),
            cmocka_unit_test(test_thoughts),
        cmocka_unit_test(test_repeats), cmocka_unit_test(test_errors), cmocka_unit_test(test_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tiny_remove_folder();
    return failed;
}
