/* Configurations of Hugging Face folders that no golden model has: what later versions of the reference library write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "model/model.h"

static char folder[64];

static const char *at(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int setup(void **state) {
    (void)state;
    static const char *const links[] = {"model.safetensors", "tokenizer.json"};
    char from[PATH_MAX], whole[PATH_MAX];
    snprintf(folder, sizeof folder, "/tmp/culet-model-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/golden/models/tiny-dense/%s", CLT_TEST_DIR, links[i]);
        if (!realpath(from, whole) || symlink(whole, at(links[i])) != 0) return -1;
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    static const char *const files[] = {"model.safetensors", "tokenizer.json", "config.json"};
    for (int i = 0; i < 3; i++) unlink(at(files[i]));
    rmdir(folder);
    return clt_mem_live() == 0 ? 0 : -1;
}

static void replace(clt_buf *text, const char *from, const char *to) {
    char *hit = memmem(text->data, text->len, from, strlen(from));
    assert_non_null(hit);
    clt_buf out = {0};
    size_t head = (size_t)(hit - text->data), tail = head + strlen(from);
    clt_buf_put(&out, text->data, head);
    clt_buf_put(&out, to, strlen(to));
    clt_buf_put(&out, text->data + tail, text->len - tail);
    clt_buf_free(text);
    *text = out;
}

/* Binds tiny-dense with one change of its configuration, and without the "global" keys if there are `overrides`. */
static clt_status bind(const char *from, const char *to, const char *overrides, clt_model *m, clt_file **f, clt_err *err) {
    clt_buf text = {0};
    char source[PATH_MAX];
    snprintf(source, sizeof source, "%s/golden/models/tiny-dense/config.json", CLT_TEST_DIR);
    assert_int_equal(clt_read_file(source, 1 << 20, &text, err), CLT_OK);
    if (from) replace(&text, from, to);
    if (overrides) {
        replace(&text, "\"num_global_key_value_heads\": 2,", "");
        replace(&text, "\"global_head_dim\": 32,", overrides);
    }
    assert_int_equal(clt_write_file_atomic(at("config.json"), text.data, text.len, false, err), CLT_OK);
    clt_buf_free(&text);
    assert_int_equal(clt_file_open(folder, f, err), CLT_OK);
    return clt_model_bind(*f, m, err);
}

static void assert_binds(const char *from, const char *to, const char *overrides) {
    clt_err err;
    clt_file *f;
    clt_model m;
    if (bind(from, to, overrides, &m, &f, &err) != CLT_OK) fail_msg("%s", err.text);
    for (int l = 0; l < 6; l++) {
        const clt_layer_config *lc = &m.config.layer[l];
        assert_int_equal(lc->sliding, l < 5);
        assert_int_equal(lc->head_dim, l < 5 ? 16 : 32);
        assert_int_equal(lc->kv_heads, l < 5 ? 4 : 2);
    }
    assert_int_equal(m.config.rope_pairs_full, 4);
    clt_model_free(&m);
    clt_file_close(f);
}

static void assert_refused(const char *overrides, const char *word) {
    clt_err err;
    clt_file *f;
    clt_model m;
    assert_int_equal(bind(NULL, NULL, overrides, &m, &f, &err), CLT_E_FILE);
    if (!strstr(err.text, word)) fail_msg("%s", err.text);
    clt_file_close(f);
}

/* Written by transformers from 5.23 on in place of the "global" keys. */
static void test_per_layer_config(void **state) {
    (void)state;
    assert_binds(NULL, NULL, "\"per_layer_config\": {\"5\": {\"head_dim\": 32, \"num_key_value_heads\": 2}},");
    assert_refused("\"per_layer_config\": {\"6\": {\"head_dim\": 32}},", "do not exist");
    assert_refused("\"per_layer_config\": {\"05\": {\"head_dim\": 32}},", "do not exist");
    assert_refused("\"per_layer_config\": {\"5\": {\"head_dim\": 32, \"hidden_size\": 32}},", "sets more");
    assert_refused("\"per_layer_config\": {\"4\": {\"head_dim\": 32}},", "two widths");
    assert_refused("\"per_layer_config\": {\"5\": {\"head_dim\": -32}},", "head_dim");
    assert_refused("\"per_layer_config\": {\"5\": {\"head_dim\": 16}},", "wrong tensors");
}

/* The reference implementation makes the last layer full whatever the list says. */
static void test_last_layer_is_full(void **state) {
    (void)state;
    assert_binds("\"full_attention\"\n", "\"sliding_attention\"\n", NULL);
}

int main(void) {
#if !CLT_HAVE_JANSSON
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_per_layer_config),
        cmocka_unit_test(test_last_layer_is_full),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
