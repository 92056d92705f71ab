/* Lets every single allocation between opening a model and the end of a saved, restored reply fail in turn: each time one
 * clean error of the right kind, nothing leaked, nothing torn. */
#include "engine/tiny.h"
#include "base/mem.h"

typedef struct road {
    culet_engine *e;
    culet_session *s;
    culet_prompt prompt;
    culet_reply reply;
    char *text, *description, *extra;
} road;

static const char request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"What is the capital?\"}]}";

static culet_status walk(road *r, const char *model, const char *path, culet_error *err) {
    culet_engine_params ep = {.model = model, .threads = 2};
    culet_session_params sp = {.context = 96, .kv_k = CULET_KV_F16, .kv_v = CULET_KV_F16};
    culet_generate_params gp = {.max_tokens = 12, .sampling = tiny_greedy(), .stops = (const char *[]){"never said"},
                                .n_stops = 1};
    size_t len;
    culet_status status = culet_engine_open(&ep, &r->e, err);
    if (status == CULET_OK) status = culet_engine_describe(r->e, &sp, false, &r->description, err);
    if (status == CULET_OK) status = culet_render(r->e, request, strlen(request), &r->prompt, err);
    if (status == CULET_OK) status = culet_session_open(r->e, &sp, &r->s, err);
    gp.prompt = r->prompt.ids;
    gp.n_prompt = r->prompt.n_ids;
    if (status == CULET_OK) status = culet_generate(r->s, &gp, &r->reply, err);
    if (status == CULET_OK) status = culet_detokenize(r->e, r->reply.ids, r->reply.n_ids, true, &r->text, &len, err);
    if (status == CULET_OK) status = culet_session_save(r->s, path, "[1]", 3, err);
    if (status == CULET_OK) status = culet_session_load(r->s, path, &r->extra, &len, err);
    if (status == CULET_UNSUPPORTED && r->text) status = CULET_OK; /* built without libzstd */
    return status;
}

static void leave(road *r) {
    culet_free(r->extra);
    culet_free(r->text);
    culet_free(r->description);
    culet_reply_free(&r->reply);
    culet_session_close(r->s);
    culet_prompt_free(&r->prompt);
    culet_engine_close(r->e);
    memset(r, 0, sizeof *r);
}

static void check(const char *sub) {
    char model[1024], path[512];
    culet_error err;
    road r = {0};
    snprintf(model, sizeof model, "%s", tiny_path(sub));
    snprintf(path, sizeof path, "%s/road.session", tiny_folder());
    long start = clt_mem_count(), live = clt_mem_live();
    if (walk(&r, model, path, &err) != CULET_OK) fail_msg("%s", err.text);
    leave(&r);
    long total = clt_mem_count() - start;
    assert_int_equal(clt_mem_live(), live);
    assert_true(total > 30);
    /* All of them, or about 400 where a vocabulary makes thousands of equal ones. */
    for (long n = 1; n <= total; n += n < 120 || n > total - 200 ? 1 : 1 + total / 300) {
        clt_mem_fail_after(n);
        culet_status status = walk(&r, model, path, &err);
        clt_mem_fail_after(0);
        if (status != CULET_MEMORY) fail_msg("allocation %ld of %ld: status %d (%s)", n, total, status,
                                             status == CULET_OK ? "went unnoticed" : err.text);
        assert_true(err.text[0] != 0);
        leave(&r);
        if (clt_mem_live() != live) fail_msg("allocation %ld of %ld: %ld blocks left", n, total, clt_mem_live() - live);
    }
}

static void test_gguf(void **state) {
    (void)state;
    check("tiny-e/gguf/tiny-e-Q4_K_M.gguf");
}

static void test_folder(void **state) {
    (void)state;
    check("tiny-unified");
}

static int cleanup(void **state) {
    (void)state;
    tiny_remove_folder();
    return 0;
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
