/* The public face of texts: one BOS whatever comes, bytes and back, pieces, requests to prompts. */
#include "engine/tiny.h"
#include "base/mem.h"

static culet_engine *shared;

static int open_shared(void **state) {
    (void)state;
    shared = tiny_open("tiny-unified", CULET_OPEN_TEXT, 1);
    return 0;
}

static int close_shared(void **state) {
    (void)state;
    culet_engine_close(shared);
    return clt_mem_live() == 0 ? 0 : -1;
}

static void assert_ids(const char *text, bool special, bool bos, const int32_t *want, size_t n_want) {
    culet_error err;
    int32_t *ids;
    size_t n;
    assert_int_equal(culet_tokenize(shared, text, strlen(text), special, bos, &ids, &n, &err), CULET_OK);
    assert_non_null(ids);
    assert_int_equal(n, n_want);
    assert_memory_equal(ids, want, n * sizeof *ids);
    culet_free(ids);
}

static void test_one_bos(void **state) {
    (void)state;
    assert_ids("What is", true, true, (int32_t[]){2, 646, 526}, 3);
    assert_ids("What is", true, false, (int32_t[]){646, 526}, 2);
    assert_ids("<bos>What is", true, true, (int32_t[]){2, 646, 526}, 3);
    assert_ids("<bos><bos>What is", true, true, (int32_t[]){2, 646, 526}, 3);
    assert_ids("<bos>What is", true, false, (int32_t[]){2, 646, 526}, 3);
    assert_ids("", true, true, (int32_t[]){2}, 1);
    assert_ids("", true, false, (int32_t[]){0}, 0);
    culet_error err;
    int32_t *ids;
    size_t n;
    assert_int_equal(culet_tokenize(shared, "<bos>", 5, false, true, &ids, &n, &err), CULET_OK); /* plain text */
    assert_true(n > 2 && ids[0] == 2);
    for (size_t i = 1; i < n; i++) assert_int_not_equal(ids[i], 2);
    culet_free(ids);
}

static void test_there_and_back(void **state) {
    (void)state;
    static const char text[] = "What is\0the capital?\n\n  caf\xC3\xA9 \xF0\x9F\x9A\x80 \xFF";
    culet_error err;
    int32_t *ids;
    char *back;
    size_t n, len;
    assert_int_equal(culet_tokenize(shared, text, sizeof text - 1, false, false, &ids, &n, &err), CULET_OK);
    assert_int_equal(culet_detokenize(shared, ids, n, false, &back, &len, &err), CULET_OK);
    assert_int_equal(len, sizeof text - 1);
    assert_memory_equal(back, text, len);
    culet_free(back);
    culet_free(ids);
    assert_int_equal(culet_detokenize(shared, (int32_t[]){2, 646, 106}, 3, false, &back, &len, &err), CULET_OK);
    assert_string_equal(back, "What");
    culet_free(back);
    assert_int_equal(culet_detokenize(shared, (int32_t[]){2, 646, 106}, 3, true, &back, &len, &err), CULET_OK);
    assert_string_equal(back, "<bos>What<turn|>");
    culet_free(back);
    assert_int_equal(culet_detokenize(shared, NULL, 0, true, &back, &len, &err), CULET_OK);
    assert_string_equal(back, "");
    culet_free(back);
    static const int32_t outside[] = {-1, 1280, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(culet_detokenize(shared, &outside[i], 1, true, &back, &len, &err), CULET_USAGE);
        assert_null(back);
    }
}

static void test_pieces(void **state) {
    (void)state;
    size_t len;
    const char *piece = culet_piece(shared, 526, &len);
    assert_int_equal(len, 5);
    assert_memory_equal(piece, "\xE2\x96\x81is", 5);
    assert_null(culet_piece(shared, -1, &len));
    assert_null(culet_piece(shared, 1280, &len));
}

static void test_render(void **state) {
    (void)state;
    static const char request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"What is<turn|>\"}]}";
    culet_error err;
    culet_prompt p;
    assert_int_equal(culet_render(shared, request, strlen(request), &p, &err), CULET_OK);
    assert_ptr_equal(strstr(p.text, "<bos><|turn>user\nWhat is<turn|><turn|>\n<|turn>model\n"), p.text);
    assert_int_equal(p.text_len, strlen(p.text));
    assert_int_equal(p.ids[0], 2);
    assert_int_equal(p.ids[1], 105);
    size_t ends = 0;
    for (size_t i = 0; i < p.n_ids; i++) ends += p.ids[i] == 106;
    assert_int_equal(ends, 1); /* what the user typed is text */
    assert_false(p.in_thought);
    culet_prompt_free(&p);
}

static void test_bad_requests(void **state) {
    (void)state;
    static const char *const bad[] = {
        "", "{", "[]", "{}", "{\"messages\":5}", "{\"messages\":[{\"role\":\"user\",\"content\":7}]}",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"add_generation_prompt\":\"x\"}"};
    culet_error err;
    culet_prompt p;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(culet_render(shared, bad[i], strlen(bad[i]), &p, &err), CULET_REQUEST);
        assert_int_equal(culet_status_exit(err.status), 1);
        assert_int_equal(culet_status_http(err.status), 400);
        assert_null(p.text);
        assert_null(p.ids);
    }
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_bos),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_render),
        cmocka_unit_test(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, open_shared, close_shared);
}
