/* Threads, placement, priority: what is refused with which words, what is a warning; that no number depends on them. */
#include "engine/tiny.h"
#include <sched.h>
#include "base/cores.h"
#include "base/os.h"

static char warnings[1024];

static void note(void *user, const char *line) {
    (void)user;
    snprintf(warnings + strlen(warnings), sizeof warnings - strlen(warnings), "%s;", line);
}

static culet_engine *open_as(culet_engine_params p) {
    culet_error err;
    culet_engine *e;
    p.model = tiny_path("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf");
    p.log = note;
    warnings[0] = 0;
    if (culet_engine_open(&p, &e, &err) != CULET_OK) fail_msg("%s", err.text);
    return e;
}

static void expect_refusal(culet_engine_params p, const char *text) {
    culet_error err;
    culet_engine *e;
    p.model = "/nowhere/at-all.gguf"; /* judged before any file is looked for */
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_USAGE);
    if (!strstr(err.text, text)) fail_msg("'%s' lacks '%s'", err.text, text);
}

static void test_refusals(void **state) {
    (void)state;
    expect_refusal((culet_engine_params){.threads = -1}, "threads: -1");
    expect_refusal((culet_engine_params){.threads_batch = 1025}, "threads for batches: 1025");
    expect_refusal((culet_engine_params){.priority = 4}, "priority: 4");
    expect_refusal((culet_engine_params){.priority = -2}, "priority: -2");
    expect_refusal((culet_engine_params){.poll = 101}, "poll: 101");
    expect_refusal((culet_engine_params){.cpu_mask = "xyz"}, "--cpu-mask: 'xyz'");
    expect_refusal((culet_engine_params){.cpu_range = "3"}, "--cpu-range: '3'");
    clt_cores_info here;
    clt_cores_look(NULL, &here);
    if (clt_cpus_has(&here.allowed, CLT_MAX_CPUS - 1)) skip();
    expect_refusal((culet_engine_params){.cpu_range = "1023-1023"}, "names none of the");
}

static void test_threads(void **state) {
    (void)state;
    culet_engine *e = open_as((culet_engine_params){0});
    assert_int_equal(culet_engine_info(e)->threads, clt_threads_default());
    assert_int_equal(culet_engine_info(e)->threads_batch, clt_threads_default());
    culet_engine_close(e);
    e = open_as((culet_engine_params){.threads = 1, .threads_batch = 3});
    assert_int_equal(culet_engine_info(e)->threads, 1);
    assert_int_equal(culet_engine_info(e)->threads_batch, 3);
    culet_engine_close(e);
}

/* Logits of a prompt and of one token behind it. */
static void evaluate(culet_engine *e, float *out) {
    culet_error err;
    tiny_ids prompt = tiny_golden("tiny-gemma3", "main", "prompt_ids");
    culet_session *s = tiny_session(e, 256, 8);
    int vocab = culet_engine_info(e)->vocab;
    assert_int_equal(culet_session_sync(s, prompt.data, prompt.n, NULL, &err), CULET_OK);
    memcpy(out, culet_session_logits(s), (size_t)vocab * sizeof *out);
    assert_int_equal(culet_session_extend(s, &(int32_t){7}, 1, &err), CULET_OK);
    memcpy(out + vocab, culet_session_logits(s), (size_t)vocab * sizeof *out);
    culet_session_close(s);
}

static void test_same_bits(void **state) {
    (void)state;
    static const culet_engine_params ways[] = {
        {.threads = 1}, {.threads = 1, .threads_batch = 3}, {.threads = 4, .threads_batch = 2}, {.threads = 2, .poll = -1},
        {.threads = 3, .poll = 100, .cpu_strict = true}, {.threads = 2, .cpu_range = "0-1023"}};
    static float want[2 * 1280], got[2 * 1280];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        culet_engine *e = open_as(ways[i]);
        assert_int_equal(culet_engine_info(e)->vocab, 1280);
        evaluate(e, i ? got : want);
        if (i && memcmp(got, want, sizeof want) != 0) fail_msg("way %zu", i);
        culet_engine_close(e);
    }
}

static void test_placement_is_taken_back(void **state) {
    (void)state;
    cpu_set_t before, during, after;
    clt_cores_info here;
    char range[32];
    int first = 0;
    clt_cores_look(NULL, &here);
    while (!clt_cpus_has(&here.allowed, first)) first++;
    snprintf(range, sizeof range, "%d-%d", first, first);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    culet_engine *e = open_as((culet_engine_params){.cpu_range = range});
    assert_int_equal(culet_engine_info(e)->threads, 1); /* the default counts within the range */
    assert_int_equal(sched_getaffinity(0, sizeof during, &during), 0);
    assert_int_equal(CPU_COUNT(&during), 1);
    assert_string_equal(warnings, "");
    culet_engine_close(e);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_placement_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
