/* Time per stage, and passes with the logits of all rows: counted completely, and without touching a bit. */
#include "engine/tiny.h"
#include <math.h>
#include "base/os.h"

enum { V = 1280, MAX = 64 };

static culet_engine *engine;
static culet_session *session;

static void extend(const int32_t *ids, size_t n) {
    culet_error err;
    if (culet_session_extend(session, ids, n, &err) != CULET_OK) fail_msg("%s", err.text);
}

static void profile(bool on) {
    culet_error err;
    if (culet_engine_profile(engine, on, &err) != CULET_OK) fail_msg("%s", err.text);
}

static const culet_stage *find(const culet_stage *stages, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(stages[i].stage, name)) return &stages[i];
    fail_msg("no stage \"%s\"", name);
    return NULL;
}

static void begin(const char *model, int threads) {
    engine = tiny_open(model, CULET_OPEN_FULL, threads);
    session = tiny_session(engine, 256, 32);
}

static void end(void) {
    culet_session_close(session);
    culet_engine_close(engine);
}

static void test_stages_add_up(void **state) {
    (void)state;
    begin("tiny-e/gguf/tiny-e-Q4_K_M.gguf", 2);
    tiny_ids p = tiny_golden("tiny-e", "long", "prompt_ids");
    culet_stage s[MAX];
    assert_int_equal(culet_engine_stages(engine, s, MAX), 0);
    profile(true);
    double start = clt_now_ms();
    extend(p.data, 32);
    double wall = clt_now_ms() - start, sum = 0;
    size_t n = culet_engine_stages(engine, s, MAX);
    assert_in_range(n, 8, MAX);
    for (size_t i = 0; i < n; i++) {
        assert_true(s[i].ms >= 0 && s[i].busy_ms <= 2 * s[i].ms + 0.5 && s[i].calls > 0);
        assert_int_equal(s[i].macs > 0, s[i].type[0] != 0);
        sum += s[i].ms;
    }
    assert_true(sum > 0 && sum <= wall);
    const culet_stage *head = find(s, n, "lm_head");
    assert_int_equal(head->calls, 1);
    assert_int_equal(head->macs % V, 0); /* one row of V outputs */
    uint64_t macs = find(s, n, "ffn")->macs;
    /* Stopping keeps the counts, and counts no more; starting again clears them. */
    profile(false);
    extend(p.data, 8);
    assert_int_equal(culet_engine_stages(engine, s, MAX), n);
    assert_int_equal(find(s, n, "ffn")->macs, macs);
    profile(true);
    assert_int_equal(culet_engine_stages(engine, s, MAX), 0);
    extend(p.data, 1);
    n = culet_engine_stages(engine, s, MAX);
    uint64_t one = find(s, n, "ffn")->macs;
    extend(p.data, 1);
    n = culet_engine_stages(engine, s, MAX);
    assert_int_equal(find(s, n, "ffn")->macs, 2 * one);
    assert_int_equal(culet_engine_stages(engine, s, 1), n); /* less room: no write behind it */
    end();
}

static void test_experts_and_sampling_are_counted(void **state) {
    (void)state;
    begin("tiny-moe/gguf/tiny-moe-Q4_0.gguf", 1);
    tiny_ids p = tiny_golden("tiny-moe", "long", "prompt_ids");
    culet_stage s[MAX];
    culet_error err;
    culet_reply reply;
    culet_generate_params g = {.prompt = p.data, .n_prompt = 20, .max_tokens = 5, .sampling = tiny_greedy(), .raw = true};
    profile(true);
    if (culet_generate(session, &g, &reply, &err) != CULET_OK) fail_msg("%s", err.text);
    size_t n = culet_engine_stages(engine, s, MAX);
    assert_int_equal(find(s, n, "sampling")->calls, reply.n_ids);
    assert_true(find(s, n, "experts")->macs > 0 && find(s, n, "experts")->bytes > 0);
    culet_reply_free(&reply);
    end();
}

static void test_profile_needs_weights(void **state) {
    (void)state;
    culet_error err;
    engine = tiny_open("tiny-e/gguf/tiny-e-Q4_K_M.gguf", CULET_OPEN_INSPECT, 1);
    assert_int_equal(culet_engine_profile(engine, true, &err), CULET_USAGE);
    assert_int_equal(culet_engine_stages(engine, NULL, 0), 0);
    culet_engine_close(engine);
}

/* ---- all rows ---- */

typedef struct rows {
    float logits[40][V];
    size_t n, stop_after;
} rows;

static bool keep(void *user, size_t row, const float *logits) {
    rows *r = user;
    assert_int_equal(row, r->n);
    memcpy(r->logits[r->n++], logits, sizeof r->logits[0]);
    return r->n != r->stop_after;
}

static void test_rows_are_those_of_single_steps(void **state) {
    (void)state;
    begin("tiny-e/gguf/tiny-e-Q4_K_M.gguf", 2);
    tiny_ids p = tiny_golden("tiny-e", "long", "prompt_ids");
    static rows want, got;
    culet_error err;
    memset(&want, 0, sizeof want), memset(&got, 0, sizeof got);
    extend(p.data, 10);
    for (size_t i = 10; i < 50; i++) {
        extend(p.data + i, 1);
        keep(&want, i - 10, culet_session_logits(session));
    }
    profile(true);
    /* From a cut timeline, in pieces that fit a pass (32 rows) and one that does not. */
    const size_t cuts[] = {1, 4, 8, 40};
    for (size_t c = 0; c < 4; c++) {
        assert_int_equal(culet_session_rewind(session, 10, &err), CULET_OK);
        got.n = 0;
        if (culet_session_extend_all(session, p.data + 10, cuts[c], keep, &got, &err) != CULET_OK) fail_msg("%s", err.text);
        assert_int_equal(got.n, cuts[c]);
        assert_memory_equal(got.logits, want.logits, cuts[c] * sizeof want.logits[0]);
        assert_memory_equal(culet_session_logits(session), want.logits[cuts[c] - 1], sizeof want.logits[0]);
    }
    /* Without a function: the last row's logits are kept. */
    assert_int_equal(culet_session_rewind(session, 12, &err), CULET_OK);
    assert_int_equal(culet_session_extend_all(session, p.data + 12, 3, NULL, NULL, &err), CULET_OK);
    assert_memory_equal(culet_session_logits(session), want.logits[4], sizeof want.logits[0]);
    /* A function that wants no more: the timeline is what was evaluated. */
    assert_int_equal(culet_session_rewind(session, 10, &err), CULET_OK);
    got.n = 0, got.stop_after = 2;
    assert_int_equal(culet_session_extend_all(session, p.data + 10, 6, keep, &got, &err), CULET_CANCELLED);
    size_t n;
    culet_session_tokens(session, &n);
    assert_int_equal(n, 16);
    assert_int_equal(culet_session_extend_all(session, p.data, 0, NULL, NULL, &err), CULET_USAGE);
    assert_int_equal(culet_session_extend_all(session, p.data, 250, NULL, NULL, &err), CULET_CONTEXT);
    end();
}

int main(void) {
    int cannot = tiny_cannot_run();
    if (cannot) return cannot;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages_add_up),
        cmocka_unit_test(test_experts_and_sampling_are_counted),
        cmocka_unit_test(test_profile_needs_weights),
        cmocka_unit_test(test_rows_are_those_of_single_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
