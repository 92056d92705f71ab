/* Descriptions: a JSON document whose facts are those of the file and whose plan is what sessions then take. */
#include "engine/tiny.h"
#include "base/json.h"

static clt_json *describe(const culet_engine *e, const culet_session_params *p) {
    culet_error err;
    clt_err inner;
    char *text;
    clt_json *doc;
    if (culet_engine_describe(e, p, false, &text, &err) != CULET_OK) fail_msg("%s", err.text);
    if (clt_json_parse(text, strlen(text), "description", &doc, &inner) != CLT_OK) fail_msg("%s", inner.text);
    culet_free(text);
    return doc;
}

static int64_t number(const clt_json *doc, const char *object, const char *key) {
    int64_t v = -1;
    if (!clt_json_int(clt_json_get(clt_json_get(doc, object), key), &v)) fail_msg("%s.%s is no number", object, key);
    return v;
}

static const clt_json *tensor(const clt_json *doc, const char *name) {
    const clt_json *list = clt_json_get(doc, "tensors");
    for (size_t i = 0; i < clt_json_len(list); i++) {
        const clt_json *t = clt_json_at(list, i);
        if (strcmp(clt_json_str(clt_json_get(t, "name"), NULL), name) == 0) return t;
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static void assert_shape(const clt_json *t, int64_t a, int64_t b) {
    const clt_json *shape = clt_json_get(t, "shape");
    int64_t v[2];
    assert_int_equal(clt_json_len(shape), 2);
    for (size_t i = 0; i < 2; i++) assert_true(clt_json_int(clt_json_at(shape, i), &v[i]));
    assert_int_equal(v[0], a);
    assert_int_equal(v[1], b);
}

static void assert_text(const clt_json *doc, const char *key, const char *want) {
    assert_string_equal(clt_json_str(clt_json_get(doc, key), NULL), want);
}

static void test_gguf(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", CULET_OPEN_INSPECT, 1);
    clt_json *doc = describe(e, NULL);
    assert_text(doc, "format", "GGUF v3");
    assert_text(doc, "shape_order", "innermost first");
    assert_int_equal(number(doc, "config", "layers"), 7);
    assert_int_equal(number(doc, "config", "window"), 8);
    assert_int_equal(clt_json_len(clt_json_get(clt_json_get(doc, "config"), "layer")), 7);
    assert_int_equal(clt_json_len(clt_json_get(doc, "tensors")), 93);
    const clt_json *embed = tensor(doc, "token_embd.weight");
    int64_t offset, bytes;
    assert_shape(embed, 64, 1280);
    assert_true(clt_json_int(clt_json_get(embed, "offset"), &offset) && offset > 0);
    assert_true(clt_json_int(clt_json_get(embed, "bytes"), &bytes) && bytes > 0);
    assert_true(offset + bytes <= 284832);
    clt_json_free(doc);
    culet_engine_close(e);
}

static void test_folder(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_INSPECT, 1);
    clt_json *doc = describe(e, NULL);
    assert_text(doc, "shape_order", "innermost last");
    const clt_json *embed = tensor(doc, "model.embed_tokens.weight");
    assert_shape(embed, 1280, 64);
    assert_text(embed, "type", "BF16");
    clt_json_free(doc);
    culet_engine_close(e);
}

/* The plan is no estimate: sessions and engines report the same numbers. */
static void check_plan(const char *model, culet_session_params p, int shared_layers) {
    culet_error err;
    culet_session *s;
    culet_engine *e = tiny_open(model, CULET_OPEN_FULL, 1);
    assert_int_equal(culet_session_open(e, &p, &s, &err), CULET_OK);
    clt_json *doc = describe(e, &p);
    assert_int_equal(number(doc, "memory", "context"), culet_session_context(s));
    assert_int_equal(number(doc, "memory", "kv_bytes"), culet_session_kv_bytes(s));
    assert_int_equal(number(doc, "memory", "kv_full_bytes") + number(doc, "memory", "kv_sliding_bytes"),
                     culet_session_kv_bytes(s));
    assert_true(number(doc, "memory", "kv_sliding_bytes") > 0 && number(doc, "memory", "kv_full_bytes") > 0);
    assert_int_equal(number(doc, "memory", "weight_bytes"), culet_engine_info(e)->weight_bytes);
    assert_int_equal(number(doc, "memory", "kv_shared_layers"), shared_layers);
    assert_int_equal(number(doc, "memory", "total_bytes"),
                     number(doc, "memory", "weight_bytes") + number(doc, "memory", "kv_bytes") +
                     number(doc, "memory", "scratch_bytes") + number(doc, "memory", "vocabulary_bytes") +
                     number(doc, "memory", "table_bytes"));
    assert_true(number(doc, "memory", "vocabulary_bytes") > 1280 * 8 && number(doc, "memory", "table_bytes") > 0);
    assert_int_equal(number(doc, "memory", "threads"), 1);
    clt_json_free(doc);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_plan(void **state) {
    (void)state;
    check_plan("tiny-gemma3", (culet_session_params){0}, 0);
    culet_session_params mixed = {.context = 4096, .ubatch = 32, .kv_k = CULET_KV_F16, .kv_v = CULET_KV_Q8_0};
    check_plan("tiny-gemma3", mixed, 0);
    check_plan("tiny-e/gguf/tiny-e-Q4_K_M.gguf", (culet_session_params){.context = 1000, .kv_k = CULET_KV_Q8_0}, 3);
}

/* Longer contexts cost only full layers. */
static void test_sliding_layers_do_not_grow(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_INSPECT, 1);
    clt_json *small = describe(e, &(culet_session_params){.context = 2048, .ubatch = 64});
    clt_json *large = describe(e, &(culet_session_params){.context = 16384, .ubatch = 64});
    assert_int_equal(number(small, "memory", "kv_sliding_bytes"), number(large, "memory", "kv_sliding_bytes"));
    assert_int_equal(number(small, "memory", "kv_full_bytes") * 8, number(large, "memory", "kv_full_bytes"));
    clt_json_free(small);
    clt_json_free(large);
    culet_engine_close(e);
}

static void test_text_and_refusals(void **state) {
    (void)state;
    culet_error err;
    char *text;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_INSPECT, 1);
    assert_int_equal(culet_engine_describe(e, NULL, true, &text, &err), CULET_OK);
    assert_non_null(strstr(text, "model.embed_tokens.weight"));
    assert_non_null(strstr(text, "7 layers"));
    assert_non_null(strstr(text, "total"));
    culet_free(text);
    culet_session_params p = {.context = 1 << 30};
    assert_int_equal(culet_engine_describe(e, &p, true, &text, &err), CULET_USAGE);
    assert_null(text);
    culet_engine_close(e);
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_sliding_layers_do_not_grow),
        cmocka_unit_test(test_text_and_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
