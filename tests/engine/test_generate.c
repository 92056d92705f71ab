/* Generation: golden ids, every way to finish, stop strings across tokens, thoughts and calls, what is shown against what is
 * returned, seeds, cancellation, allocations. */
#include "engine/tiny.h"
#include "base/mem.h"

static culet_reply generate(culet_session *s, const culet_generate_params *p) {
    culet_error err;
    culet_reply r;
    if (culet_generate(s, p, &r, &err) != CULET_OK) fail_msg("%s", err.text);
    return r;
}

static void assert_text(const culet_reply *r, const char *want) {
    assert_int_equal(r->text_len, strlen(want));
    assert_string_equal(r->text, want);
}

/* ---- golden ids ---- */

static void check_golden(const char *model, const char *prompt_name) {
    culet_engine *e = tiny_open(model, CULET_OPEN_FULL, 2);
    culet_session *s = tiny_session(e, 512, 0);
    tiny_ids prompt = tiny_golden(model, prompt_name, "prompt_ids"), want = tiny_golden(model, prompt_name, "greedy_ids");
    culet_generate_params p = {.prompt = prompt.data, .n_prompt = prompt.n, .max_tokens = (int)want.n,
                               .sampling = tiny_greedy(), .raw = true};
    culet_reply r = generate(s, &p);
    assert_int_equal(r.n_ids, want.n);
    assert_memory_equal(r.ids, want.data, want.n * sizeof *r.ids);
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    assert_int_equal(r.timings.cache_n, 0);
    assert_int_equal(r.timings.prompt_n, prompt.n);
    assert_int_equal(r.timings.predicted_n, want.n);
    assert_true(r.timings.ttft_ms > 0 && r.timings.prompt_ms > 0 && r.timings.predicted_ms > 0);

    size_t n;
    const int32_t *timeline = culet_session_tokens(s, &n);
    assert_int_equal(n, prompt.n + want.n); /* prompt and reply */
    assert_memory_equal(timeline, prompt.data, prompt.n * sizeof *timeline);
    assert_memory_equal(timeline + prompt.n, want.data, want.n * sizeof *timeline);

    culet_reply again = generate(s, &p); /* the prompt is evaluated again only as far as needed */
    assert_memory_equal(again.ids, want.data, want.n * sizeof *again.ids);
    assert_int_equal(again.timings.cache_n, prompt.n - 1);
    assert_int_equal(again.timings.prompt_n, 1);
    culet_reply_free(&r);
    culet_reply_free(&again);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_golden_ids(void **state) {
    (void)state;
    static const char *const prompts[] = {"short", "mid", "main", "long", "chat"};
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        check_golden("tiny-gemma3", prompts[i]);
        check_golden("tiny-unified", prompts[i]); /* with ids that must never win */
    }
}

/* ---- dictated replies ---- */

typedef struct stage {
    culet_engine *e;
    culet_session *s;
    tiny_script script;
    tiny_view view;
    int32_t prompt[1];
    culet_generate_params p;
} stage;

static void setup(stage *g) {
    memset(g, 0, sizeof *g);
    g->e = tiny_open("tiny-unified", CULET_OPEN_FULL, 1);
    g->s = tiny_session(g->e, 128, 0);
    g->prompt[0] = culet_engine_info(g->e)->bos_id;
    g->p = (culet_generate_params){.prompt = g->prompt, .n_prompt = 1, .max_tokens = -1, .on_delta = tiny_on_delta};
    g->p.user = &g->view;
}

static void teardown(stage *g) {
    culet_session_close(g->s);
    culet_engine_close(g->e);
}

/* Makes the model say `texts`. A byte ("<0x74>") stands for itself where a token may not come twice. */
static culet_reply say(stage *g, const char *const *texts, size_t n_texts) {
    int32_t ids[64];
    size_t n = 0;
    for (size_t i = 0; i < n_texts; i++) n += tiny_tokens(g->e, texts[i], ids + n, 64 - n);
    tiny_dictate(&g->script, ids, n);
    bool ignore = g->p.sampling.ignore_eos;
    g->p.sampling = g->script.sampling;
    g->p.sampling.ignore_eos = ignore;
    memset(&g->view, 0, offsetof(tiny_view, stop_after));
    culet_reply r = generate(g->s, &g->p);
    assert_int_equal(g->view.n_content, r.text_len); /* what was shown is what is returned */
    assert_string_equal(g->view.content, r.text);
    assert_int_equal(g->view.n_thought, r.thought_len);
    assert_string_equal(g->view.thought, r.thought);
    return r;
}
#define THOUGHT "<|channel>", "t", "hou", "gh", "<0x74>", "\n"
#define SAY(g, ...) say((g), (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void test_finish_stop_at_every_end_id(void **state) {
    (void)state;
    static const char *const ends[] = {"<eos>", "<turn|>", "<|tool_response>"};
    stage g;
    setup(&g);
    for (size_t i = 0; i < 3; i++) {
        culet_reply r = SAY(&g, "What", " is", " the", ends[i], " then");
        assert_text(&r, "What is the");
        assert_int_equal(r.n_ids, 3); /* without the end id */
        assert_int_equal(r.finish, CULET_FINISH_STOP);
        assert_int_equal(r.timings.predicted_n, 3);
        culet_reply_free(&r);
    }
    teardown(&g);
}

static void test_ignore_eos(void **state) {
    (void)state;
    stage g;
    setup(&g);
    g.p.sampling.ignore_eos = true;
    g.p.max_tokens = 4;
    culet_reply r = SAY(&g, "What", "<turn|>", " is", "<eos>");
    assert_text(&r, "What is");
    assert_int_equal(r.n_ids, 4);
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    teardown(&g);
}

static void test_finish_length(void **state) {
    (void)state;
    stage g;
    setup(&g);
    g.p.max_tokens = 2;
    culet_reply r = SAY(&g, "What", " is", " the", "<eos>");
    assert_text(&r, "What is");
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    g.p.max_tokens = 0;
    r = SAY(&g, "What");
    assert_text(&r, "");
    assert_int_equal(r.n_ids, 0);
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    assert_non_null(r.text);
    culet_reply_free(&r);
    teardown(&g);
}

static void test_finish_when_the_context_is_full(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session(e, 24, 0);
    tiny_ids prompt = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    tiny_ids want = tiny_golden("tiny-gemma3", "mid", "greedy_ids");
    culet_generate_params p = {.prompt = prompt.data, .n_prompt = prompt.n, .max_tokens = -1, .sampling = tiny_greedy()};
    culet_reply r = generate(s, &p);
    assert_int_equal(r.n_ids, 24 - prompt.n);
    assert_memory_equal(r.ids, want.data, r.n_ids * sizeof *r.ids);
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    culet_session_close(s);
    s = tiny_session(e, (int)prompt.n, 0); /* no room at all */
    r = generate(s, &p);
    assert_int_equal(r.n_ids, 0);
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    culet_session_close(s);
    s = tiny_session(e, (int)prompt.n - 1, 0);
    culet_error err;
    assert_int_equal(culet_generate(s, &p, &r, &err), CULET_CONTEXT);
    assert_non_null(strstr(err.text, "18"));
    assert_non_null(strstr(err.text, "17"));
    assert_null(r.text);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_stop_strings_span_tokens(void **state) {
    (void)state;
    static const struct { const char *stop, *text; size_t ids; } cases[] = {
        {"s th", "What i", 3}, {" is", "What", 2}, {"What", "", 1}, {"he d", "What is t", 4}, {"zzz", "What is the d", 4}};
    stage g;
    setup(&g);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        g.p.stops = &cases[i].stop;
        g.p.n_stops = 1;
        culet_reply r = SAY(&g, "What", " is", " the", " d", "<eos>");
        assert_text(&r, cases[i].text);
        assert_int_equal(r.n_ids, cases[i].ids); /* the ids that completed it are part of the list */
        assert_int_equal(r.finish, CULET_FINISH_STOP);
        culet_reply_free(&r);
    }
    const char *two[] = {"e d", "s "};
    g.p.stops = two;
    g.p.n_stops = 2;
    culet_reply r = SAY(&g, "What", " is", " the", " d", "<eos>");
    assert_text(&r, "What i");
    culet_reply_free(&r);
    g.p.stops = (const char *[]){" the world"}; /* held back to the end, then shown */
    g.p.n_stops = 1;
    r = SAY(&g, "What", " is", " the", "<eos>");
    assert_text(&r, "What is the");
    culet_reply_free(&r);
    g.p.max_tokens = 3;
    r = SAY(&g, "What", " is", " the");
    assert_text(&r, "What is the");
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    teardown(&g);
}

static void test_no_code_point_is_split(void **state) {
    (void)state;
    stage g;
    setup(&g);
    /* U+1F680 byte by byte, then one that breaks off */
    culet_reply r = SAY(&g, "What", "<0xF0>", "<0x9F>", "<0x9A>", "<0x80>", " is", "<0xE2>", "<0x82>", "<eos>");
    assert_text(&r, "What\xF0\x9F\x9A\x80 is\xEF\xBF\xBD");
    assert_int_equal(g.view.deltas, 4);
    culet_reply_free(&r);
    teardown(&g);
}

static void test_thoughts(void **state) {
    (void)state;
    stage g;
    setup(&g);
    culet_reply r = SAY(&g, THOUGHT, " the", " wind", "<channel|>", "What", " is", "<turn|>");
    assert_text(&r, "What is");
    assert_string_equal(r.thought, " the wind");
    assert_int_equal(r.n_ids, 11);
    assert_int_equal(r.finish, CULET_FINISH_STOP);
    culet_reply_free(&r);
    g.p.in_thought = true; /* opened by the prompt */
    r = SAY(&g, " the", " wind", "<channel|>", "What", "<turn|>");
    assert_text(&r, "What");
    assert_string_equal(r.thought, " the wind");
    culet_reply_free(&r);
    g.p.stops = (const char *[]){"wind"}; /* stop strings look at content alone */
    g.p.n_stops = 1;
    r = SAY(&g, " the", " wind", "<channel|>", "What", "<turn|>");
    assert_text(&r, "What");
    culet_reply_free(&r);
    g.p.n_stops = 0;
    g.p.max_tokens = 2; /* cut inside: all of it stays thought */
    r = SAY(&g, " the", " wind", "<channel|>");
    assert_text(&r, "");
    assert_string_equal(r.thought, " the wind");
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    teardown(&g);
}

static void test_tool_calls(void **state) {
    (void)state;
    stage g;
    setup(&g);
    culet_reply r = SAY(&g, "What", "<|tool_call>", "call:", "is", "{", "d", "}", "<tool_call|>", "<|tool_response>");
    assert_int_equal(r.n_calls, 0); /* an argument without a value is no call: it becomes content */
    assert_non_null(strstr(r.text, "call:is{d}"));
    assert_int_equal(r.finish, CULET_FINISH_STOP);
    culet_reply_free(&r);
    r = SAY(&g, "What", "<|tool_call>", "call:", "is", "{", "}", "<tool_call|>", "<|tool_response>");
    assert_int_equal(r.n_calls, 1);
    assert_string_equal(r.calls[0].name, "is");
    assert_string_equal(r.calls[0].arguments, "{}");
    assert_text(&r, "What");
    assert_int_equal(r.finish, CULET_FINISH_TOOL_CALLS);
    assert_int_equal(r.n_ids, 10);
    culet_reply_free(&r);
    g.p.max_tokens = 9; /* cut: no half call */
    r = SAY(&g, "What", "<|tool_call>", "call:", "is", "{", "}");
    assert_int_equal(r.n_calls, 0);
    assert_text(&r, "What");
    assert_int_equal(r.finish, CULET_FINISH_LENGTH);
    culet_reply_free(&r);
    teardown(&g);
}

static void test_raw_parses_nothing(void **state) {
    (void)state;
    stage g;
    setup(&g);
    g.p.raw = true;
    culet_reply r = SAY(&g, THOUGHT, " the", "<channel|>", "What", "<turn|>");
    assert_text(&r, "thought\n theWhat");
    assert_string_equal(r.thought, "");
    culet_reply_free(&r);
    teardown(&g);
}

static void test_suppressed_ids_never_win(void **state) {
    (void)state;
    stage g;
    setup(&g);
    const culet_model_info *info = culet_engine_info(g.e);
    assert_int_equal(info->n_suppressed_ids, 3);
    int32_t ids[3] = {info->suppressed_ids[0], info->suppressed_ids[2], 1};
    tiny_dictate(&g.script, ids, 3);
    g.p.sampling = g.script.sampling;
    culet_reply r = generate(g.s, &g.p);
    assert_int_equal(r.n_ids, 0);
    assert_int_equal(r.finish, CULET_FINISH_STOP);
    culet_reply_free(&r);
    teardown(&g);
}

/* ---- sampling ---- */

static void test_seed_decides(void **state) {
    (void)state;
    enum { N = 24 };
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1), *more = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 3);
    tiny_ids prompt = tiny_golden("tiny-gemma3", "main", "prompt_ids");
    culet_generate_params p = {.prompt = prompt.data, .n_prompt = prompt.n, .max_tokens = N, .raw = true};
    p.sampling = culet_engine_info(e)->sampling;
    p.sampling.ignore_eos = true;
    p.sampling.temperature = 2;
    p.sampling.seed = 11;
    culet_session *s = tiny_session(e, 128, 0), *chopped = tiny_session(more, 96, 3);
    culet_reply first = generate(s, &p), same = generate(chopped, &p), again = generate(s, &p);
    assert_memory_equal(first.ids, same.ids, N * sizeof *first.ids);
    assert_memory_equal(first.ids, again.ids, N * sizeof *first.ids);
    p.sampling.seed = 12;
    culet_reply other = generate(s, &p);
    assert_memory_not_equal(first.ids, other.ids, N * sizeof *first.ids);
    /* Half the reply as part of the prompt: the rest comes out the same, as draws hang on their position alone. */
    memcpy(prompt.data + prompt.n, first.ids, N / 2 * sizeof *first.ids);
    p.n_prompt += N / 2;
    p.max_tokens = N / 2;
    p.sampling.seed = 11;
    culet_reply rest = generate(s, &p);
    assert_memory_equal(rest.ids, first.ids + N / 2, N / 2 * sizeof *rest.ids);
    culet_reply *all[] = {&first, &same, &again, &other, &rest};
    for (int i = 0; i < 5; i++) culet_reply_free(all[i]);
    culet_session_close(s);
    culet_session_close(chopped);
    culet_engine_close(e);
    culet_engine_close(more);
}

static void refused(stage *g, culet_status status, const char *word) {
    culet_error err;
    culet_reply r;
    size_t n, after;
    culet_session_tokens(g->s, &n);
    assert_int_equal(culet_generate(g->s, &g->p, &r, &err), status);
    assert_non_null(strstr(err.text, word));
    assert_null(r.text);
    assert_null(r.ids);
    culet_session_tokens(g->s, &after);
    assert_int_equal(n, after);
}

static void test_senseless_parameters(void **state) {
    (void)state;
    stage g;
    setup(&g);
    g.p.sampling = tiny_greedy();
    culet_generate_params good = g.p;
    g.p.sampling.temperature = -1;
    refused(&g, CULET_USAGE, "temperature");
    g.p = good;
    g.p.sampling.top_p = 0;
    refused(&g, CULET_USAGE, "top_p");
    g.p = good;
    g.p.max_tokens = -2;
    refused(&g, CULET_USAGE, "max_tokens");
    g.p = good;
    g.p.n_prompt = 0;
    refused(&g, CULET_USAGE, "prompt");
    g.p = good;
    g.p.stops = (const char *[]){""};
    g.p.n_stops = 1;
    refused(&g, CULET_USAGE, "stop string");
    teardown(&g);
}

/* ---- cancellation ---- */

static bool cancel_prompt(void *user, size_t done, size_t total) {
    (void)user;
    return done * 2 < total;
}

static void test_cancel(void **state) {
    (void)state;
    culet_error err;
    culet_reply r;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session(e, 512, 8);
    tiny_ids prompt = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    tiny_ids want = tiny_golden("tiny-gemma3", "mid", "greedy_ids");
    tiny_view view = {.stop_after = 3};
    culet_generate_params p = {.prompt = prompt.data, .n_prompt = prompt.n, .max_tokens = 20, .sampling = tiny_greedy(),
                               .raw = true, .on_delta = tiny_on_delta, .user = &view};
    assert_int_equal(culet_generate(s, &p, &r, &err), CULET_CANCELLED);
    assert_int_equal(r.finish, CULET_FINISH_CANCELLED);
    assert_int_equal(view.deltas, 3); /* not asked again */
    assert_true(r.n_ids >= 3 && r.n_ids < 20);
    assert_memory_equal(r.ids, want.data, r.n_ids * sizeof *r.ids);
    assert_string_equal(r.text, view.content);
    size_t n;
    culet_session_tokens(s, &n);
    assert_int_equal(n, prompt.n + r.n_ids);
    culet_reply_free(&r);

    culet_session_rewind(s, 0, &err);
    p.on_delta = NULL;
    p.on_progress = cancel_prompt;
    assert_int_equal(culet_generate(s, &p, &r, &err), CULET_CANCELLED);
    assert_int_equal(r.finish, CULET_FINISH_CANCELLED);
    assert_int_equal(r.n_ids, 0);
    assert_non_null(r.text);
    culet_session_tokens(s, &n);
    assert_int_equal(n, 16);
    culet_reply_free(&r);
    p.on_progress = NULL;
    r = generate(s, &p);
    assert_int_equal(r.timings.cache_n, 16);
    assert_memory_equal(r.ids, want.data, r.n_ids * sizeof *r.ids);
    culet_reply_free(&r);
    culet_session_close(s);
    culet_engine_close(e);
}

/* ---- allocations ---- */

static long allocations_of(culet_session *s, culet_generate_params p, int tokens) {
    p.max_tokens = tokens;
    culet_reply warm = generate(s, &p);
    culet_reply_free(&warm);
    long before = clt_mem_count();
    culet_reply r = generate(s, &p);
    long count = clt_mem_count() - before;
    assert_int_equal(r.n_ids, tokens);
    culet_reply_free(&r);
    return count;
}

/* Texts grow by halves: 16 times the tokens may cost a few allocations, not one per token. */
static void test_the_loop_allocates_by_growth_only(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session(e, 512, 0);
    tiny_ids prompt = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    culet_generate_params p = {.prompt = prompt.data, .n_prompt = prompt.n, .sampling = tiny_greedy(), .raw = true};
    long few = allocations_of(s, p, 25), many = allocations_of(s, p, 400);
    assert_true(many - few <= 12);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(culet_finish_name(CULET_FINISH_STOP), "stop");
    assert_string_equal(culet_finish_name(CULET_FINISH_LENGTH), "length");
    assert_string_equal(culet_finish_name(CULET_FINISH_TOOL_CALLS), "tool_calls");
    assert_string_equal(culet_finish_name(CULET_FINISH_CANCELLED), "cancelled");
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_ids),
        cmocka_unit_test(test_finish_stop_at_every_end_id),
        cmocka_unit_test(test_ignore_eos),
        cmocka_unit_test(test_finish_length),
        cmocka_unit_test(test_finish_when_the_context_is_full),
        cmocka_unit_test(test_stop_strings_span_tokens),
        cmocka_unit_test(test_no_code_point_is_split),
        cmocka_unit_test(test_thoughts),
        cmocka_unit_test(test_tool_calls),
        cmocka_unit_test(test_raw_parses_nothing),
        cmocka_unit_test(test_suppressed_ids_never_win),
        cmocka_unit_test(test_seed_decides),
        cmocka_unit_test(test_senseless_parameters),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_the_loop_allocates_by_growth_only),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
