/* Hugging Face folders: documents, shards with an index, and what is missing or does not match. */
#include "file/files.h"

#define X_HEADER "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define Y_HEADER "{\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define YZ_HEADER                                                     \
    "{\"y\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}," \
    "\"z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}"
#define ONE_FILE "model-00001-of-00002.safetensors"
#define TWO_FILE "model-00002-of-00002.safetensors"

static char dir[300]; /* a fresh folder for each test */

static int fresh_folder(void **state) {
    static int n;
    (void)state;
    char name[16];
    snprintf(name, sizeof name, "hf%d", n++);
    snprintf(dir, sizeof dir, "%s", in_folder(name));
    return mkdir(dir, 0700);
}

static void put(const char *name, const char *text) {
    char rel[300];
    snprintf(rel, sizeof rel, "%s/%s", strrchr(dir, '/') + 1, name);
    write_text(rel, text);
}

static void put_weights(const char *name, const char *header) {
    char rel[300];
    clt_buf b = {0};
    snprintf(rel, sizeof rel, "%s/%s", strrchr(dir, '/') + 1, name);
    safetensors(&b, header, 8);
    write_buf(rel, &b);
}

static void put_index(const char *weight_map) {
    char text[1000];
    snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":16},\"weight_map\":%s}", weight_map);
    put("model.safetensors.index.json", text);
}

static void put_sharded(const char *weight_map) {
    put("config.json", "{\"a\":1}");
    put_weights(ONE_FILE, X_HEADER);
    put_weights(TWO_FILE, Y_HEADER);
    put_index(weight_map);
}

static void test_documents(void **state) {
    (void)state;
    put("config.json", "{\"model_type\":\"gemma4\"}");
    put("tokenizer_config.json", "{\"model_max_length\":1000000000000000019884624838656,\"add_bos_token\":true}");
    put("tokenizer.json", "{\"big\":1}");
    put_weights("model.safetensors", X_HEADER);
    clt_file *f = open_ok(dir);
    uint64_t len = 0;
    size_t n = 0;
    assert_string_equal(clt_json_str(clt_json_get(clt_file_json(f, "config.json"), "model_type"), &n), "gemma4");
    assert_true(clt_json_is_true(clt_json_get(clt_file_json(f, "tokenizer_config.json"), "add_bos_token")));
    assert_null(clt_file_json(f, "generation_config.json"));
    assert_null(clt_file_json(f, "other.json"));
    assert_memory_equal(clt_file_text(f, "tokenizer.json", &len), "{\"big\":1}", 9);
    assert_int_equal(len, 9);
    assert_null(clt_file_text(f, "chat_template.jinja", &len));
    assert_int_equal(len, 0);
    assert_int_equal(clt_file_shards(f), 1);
    clt_file_close(f);
}

static void test_shards(void **state) {
    (void)state;
    put_sharded("{\"y\":\"" TWO_FILE "\",\"x\":\"" ONE_FILE "\"}");
    char slashed[400];
    snprintf(slashed, sizeof slashed, "%s///", dir);
    clt_file *f = open_ok(slashed);
    assert_int_equal(clt_file_shards(f), 2);
    assert_non_null(strstr(clt_file_shard_path(f, 0), "/" ONE_FILE));
    assert_null(strstr(clt_file_shard_path(f, 0), "//"));
    assert_int_equal(clt_file_find(f, "x")->shard, 0);
    assert_int_equal(clt_file_find(f, "y")->shard, 1);
    touch_all(f);
    clt_file_close(f);
}

static void test_missing_shards_are_listed(void **state) {
    (void)state;
    put_sharded("{\"x\":\"" ONE_FILE "\",\"y\":\"" TWO_FILE "\","
                "\"z\":\"model-00003.safetensors\",\"w\":\"model-00004.safetensors\"}");
    REFUSED(dir, CLT_E_FILE, "2 of the 4 weight files are missing", "model-00003.safetensors, model-00004.safetensors");
}

static void test_index_and_shards_are_compared_both_ways(void **state) {
    (void)state;
    put_sharded("{\"x\":\"" ONE_FILE "\",\"y\":\"" TWO_FILE "\",\"p\":\"" TWO_FILE "\",\"q\":\"" ONE_FILE "\"}");
    REFUSED(dir, CLT_E_FILE, "model.safetensors.index.json", "2 tensors are not in the file that it names: p, q");
    put_index("{\"x\":\"" TWO_FILE "\",\"y\":\"" ONE_FILE "\"}");
    REFUSED(dir, CLT_E_FILE, "2 tensors are not in the file that it names: x, y");
    put_index("{\"x\":\"" ONE_FILE "\",\"y\":\"" TWO_FILE "\"}");
    put_weights(TWO_FILE, YZ_HEADER);
    REFUSED(dir, CLT_E_FILE, "does not list 1 of their tensors: z", "one version of the model");
    put_weights(TWO_FILE, X_HEADER);
    REFUSED(dir, CLT_E_FILE, TWO_FILE, "'x' appears twice, first in", ONE_FILE);
}

static void test_damaged_index(void **state) {
    (void)state;
    static const struct { const char *map, *words; } cases[] = {
        {"{}", "weight_map is empty"},
        {"[]", "weight_map is missing or no object"},
        {"{\"x\":1}", "the file of 'x' is 'no string'"},
        {"{\"x\":\"../../etc/passwd.safetensors\"}", "'../../etc/passwd.safetensors'"},
        {"{\"x\":\"/etc/x.safetensors\"}", "expected a safetensors file of this folder"},
        {"{\"x\":\".x.safetensors\"}", "expected a safetensors file of this folder"},
        {"{\"x\":\"pytorch_model.bin\"}", "expected a safetensors file of this folder"},
        {"{\"x\":\"a\\u0000.safetensors\"}", "'a<0x00>.safetensors'"},
        {"{\"x\":\"\"}", "the file of 'x' is ''"},
        {"{", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put_sharded(cases[i].map);
        REFUSED(dir, CLT_E_FILE, "model.safetensors.index.json", cases[i].words);
    }
}

static void test_folders_that_are_no_models(void **state) {
    (void)state;
    REFUSED(dir, CLT_E_FILE, "holds no config.json", "a Hugging Face folder holds config.json");
    put("pytorch_model.bin", "x");
    REFUSED(dir, CLT_E_FILE, "holds no config.json", "pytorch_model.bin is a PyTorch file");
    put("m.gguf", "x");
    REFUSED(dir, CLT_E_FILE, "give the GGUF file itself", "/m.gguf");
    put("config.json", "{}");
    REFUSED(dir, CLT_E_FILE, "holds no model.safetensors and no model.safetensors.index.json");
}

static void test_shards_without_index(void **state) {
    (void)state;
    put("config.json", "{}");
    put_weights(ONE_FILE, X_HEADER);
    REFUSED(dir, CLT_E_FILE, "no model.safetensors.index.json", "it holds " ONE_FILE, "fetch the files beside it");
}

static void test_damaged_documents(void **state) {
    (void)state;
    put_weights("model.safetensors", X_HEADER);
    put("config.json", "");
    REFUSED(dir, CLT_E_FILE, "config.json", "the file is empty");
    put("config.json", "{\"a\":");
    REFUSED(dir, CLT_E_FILE, "config.json", "not valid JSON");
    put("config.json", "[1]");
    REFUSED(dir, CLT_E_FILE, "config.json", "expected a JSON object, found array");
    put("config.json", "{}");
    put("generation_config.json", "<!doctype html>");
    REFUSED(dir, CLT_E_FILE, "generation_config.json", "an HTML page");
    put("generation_config.json", "{}");
    put("tokenizer.json", "version https://git-lfs.github.com/spec/v1\n");
    REFUSED(dir, CLT_E_FILE, "tokenizer.json", "a Git LFS pointer");
}

static void test_every_failed_allocation_is_reported(void **state) {
    (void)state;
    put_sharded("{\"x\":\"" ONE_FILE "\",\"y\":\"" TWO_FILE "\"}");
    clt_file_close(open_ok(dir)); /* whatever a library allocates once is there now */
    long live = clt_mem_live();
    int refusals = 0;
    for (long n = 1;; n++) {
        clt_err err;
        clt_file *f = NULL;
        clt_mem_fail_after(n);
        clt_status st = clt_file_open(dir, &f, &err);
        clt_mem_fail_after(0);
        clt_file_close(f);
        assert_int_equal(clt_mem_live(), live);
        if (!st) break;
        if (st != CLT_E_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
        refusals++;
    }
    assert_true(refusals >= 20);
}

static void test_without_jansson_the_package_is_named(void **state) {
    (void)state;
    put("config.json", "{}");
    put_weights("model.safetensors", X_HEADER);
    REFUSED(dir, CLT_E_UNSUPPORTED, "libjansson-dev");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_documents, fresh_folder),
        cmocka_unit_test_setup(test_shards, fresh_folder),
        cmocka_unit_test_setup(test_missing_shards_are_listed, fresh_folder),
        cmocka_unit_test_setup(test_index_and_shards_are_compared_both_ways, fresh_folder),
        cmocka_unit_test_setup(test_damaged_index, fresh_folder),
        cmocka_unit_test_setup(test_folders_that_are_no_models, fresh_folder),
        cmocka_unit_test_setup(test_shards_without_index, fresh_folder),
        cmocka_unit_test_setup(test_damaged_documents, fresh_folder),
        cmocka_unit_test_setup(test_every_failed_allocation_is_reported, fresh_folder),
    };
    const struct CMUnitTest without[] = {
        cmocka_unit_test_setup(test_without_jansson_the_package_is_named, fresh_folder),
    };
#if CLT_HAVE_JANSSON
    (void)without;
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
#else
    (void)tests;
    return cmocka_run_group_tests(without, files_setup, files_teardown);
#endif
}
