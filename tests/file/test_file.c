/* Opening by path: what is chosen, what is refused, and the reference models as GGUF and as folder. */
#include "file/files.h"

#define GEMMA3 CLT_TEST_DIR "/golden/models/tiny-gemma3"

static void test_paths_that_are_no_models(void **state) {
    (void)state;
    REFUSED(in_folder("absent.gguf"), CLT_E_FILE, "absent.gguf: No such file");
    REFUSED(in_folder("absent.safetensors"), CLT_E_FILE, "No such file");
    REFUSED(in_folder("absent-00001-of-00001.gguf"), CLT_E_FILE, "No such file");
    REFUSED("", CLT_E_FILE, "No such file");
    REFUSED("/dev/null", CLT_E_FILE, "not a regular file");
    REFUSED(write_text("empty.gguf", ""), CLT_E_FILE, "empty.gguf: the file is empty", "fetch the file again");
    REFUSED(write_text("page.gguf", "<html>404"), CLT_E_FILE, "page.gguf: an HTML page");
    REFUSED(write_text("lfs.gguf", "version https://git-lfs.github.com/spec/v1\n"), CLT_E_FILE, "a Git LFS pointer");
    REFUSED(write_text("line\nbreak.gguf", "abcd"), CLT_E_FILE, "line<0x0A>break.gguf");
}

static void test_single_files_of_a_folder(void **state) {
    (void)state;
    char hint[400];
    snprintf(hint, sizeof hint, "give the folder that holds config.json, tokenizer.json and the safetensors files: %s/",
             folder);
    REFUSED(write_text("model.safetensors", "x"), CLT_E_FILE, "one file of a Hugging Face folder", hint);
    REFUSED(write_text("model.safetensors.index.json", "{}"), CLT_E_FILE, "one file of a Hugging Face folder", hint);
}

static void test_a_fifo_does_not_block(void **state) {
    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe.gguf"), 0600), 0);
    REFUSED(in_folder("pipe.gguf"), CLT_E_FILE, "not a regular file");
}

static void test_reference_gguf(void **state) {
    (void)state;
    clt_file *f = open_ok(GEMMA3 "/gguf/tiny-gemma3-Q4_0.gguf");
    const char *s = NULL;
    uint64_t len = 0, pos = 0, n = 0;
    assert_int_equal(clt_file_version(f), 3);
    assert_int_equal(clt_file_tensors(f), 93);
    assert_int_equal(clt_file_metas(f), 35);
    assert_true(clt_meta_str(clt_file_meta_find(f, "general.architecture"), &s, &len));
    assert_true(len == 6 && memcmp(s, "gemma3", 6) == 0);
    const clt_meta *tokens = clt_file_meta_find(f, "tokenizer.ggml.tokens");
    while (clt_meta_next_str(tokens, &pos, &s, &len)) n++;
    assert_int_equal(n, 1280);
    assert_int_equal(tokens->count, 1280);
    assert_int_equal(clt_file_find(f, "token_embd.weight")->dims[1], 1280);
    touch_all(f);
    clt_file_close(f);
}

/* Rows read past the mapping are those in it; rows that are gone are refused, not fatal. */
static void test_rows_are_decoded(void **state) {
    (void)state;
    clt_err err;
    clt_buf bytes = {0};
    assert_int_equal(clt_read_file(GEMMA3 "/gguf/tiny-gemma3-Q4_0.gguf", 64 << 20, &bytes, &err), CLT_OK);
    char path[512];
    snprintf(path, sizeof path, "%s", write_buf("rows.gguf", &bytes));
    clt_file *f = open_ok(path);
    for (size_t i = 0; i < clt_file_tensors(f); i++) {
        const clt_tensor *t = clt_file_tensor(f, i);
        int64_t n = t->dims[0], last = clt_tensor_rows(t) - 1;
        float *want = malloc((size_t)n * sizeof *want), *got = malloc((size_t)n * sizeof *got);
        for (int64_t row = 0; row <= last; row += last ? last : 1) {
            clt_type_get((uint32_t)t->type)->decode(clt_tensor_row(t, row), want, n);
            assert_true(clt_file_decode_row(f, t, row, got));
            assert_memory_equal(got, want, (size_t)n * sizeof *want);
        }
        free(want), free(got);
    }
    const clt_tensor *t = clt_file_find(f, "token_embd.weight");
    float *row = malloc((size_t)t->dims[0] * sizeof *row);
    assert_int_equal(truncate(path, (off_t)(t->offset + t->bytes / 2)), 0);
    assert_true(clt_file_decode_row(f, t, 0, row));
    assert_false(clt_file_decode_row(f, t, clt_tensor_rows(t) - 1, row));
    free(row);
    clt_file_close(f);
}

static void test_reference_folder(void **state) {
    (void)state;
#if !CLT_HAVE_JANSSON
    skip();
#endif
    clt_file *f = open_ok(GEMMA3);
    uint64_t len = 0;
    assert_int_equal(clt_file_tensors(f), 93);
    assert_int_equal(clt_file_find(f, "model.embed_tokens.weight")->dims[1], 1280);
    assert_non_null(clt_file_json(f, "config.json"));
    assert_non_null(clt_file_json(f, "generation_config.json"));
    assert_non_null(clt_file_json(f, "tokenizer_config.json"));
    assert_non_null(clt_file_text(f, "tokenizer.json", &len));
    assert_int_equal(len, 186424);
    assert_non_null(clt_file_text(f, "chat_template.jinja", &len));
    assert_int_equal(len, 16448);
    touch_all(f);
    clt_file_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_that_are_no_models), cmocka_unit_test(test_single_files_of_a_folder),
        cmocka_unit_test(test_a_fifo_does_not_block),    cmocka_unit_test(test_reference_gguf),
        cmocka_unit_test(test_rows_are_decoded),
        cmocka_unit_test(test_reference_folder),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
