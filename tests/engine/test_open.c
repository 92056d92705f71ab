/* Opening: what an engine says of each kind of file, base models and templates, refusals with their status, three modes. */
#include "engine/tiny.h"
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"

static culet_status open_status(culet_engine_params p, culet_error *err) {
    culet_engine *e = (culet_engine *)err;
    culet_status status = culet_engine_open(&p, &e, err);
    assert_true((e != NULL) == (status == CULET_OK));
    assert_int_equal(err->status, status);
    if (status != CULET_OK) assert_true(err->text[0] != 0 && !strchr(err->text, '\n'));
    culet_engine_close(e);
    return status;
}

static bool has_id(const int32_t *ids, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static void assert_end_ids(const culet_model_info *i, const int32_t *want, size_t n) {
    assert_int_equal(i->n_end_ids, n);
    for (size_t k = 0; k < n; k++) assert_true(has_id(i->end_ids, i->n_end_ids, want[k]));
}

static void test_info_of_a_folder(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-unified", CULET_OPEN_FULL, 2);
    const culet_model_info *i = culet_engine_info(e);
    assert_string_equal(i->path, tiny_path("tiny-unified"));
    assert_string_equal(i->format, "Hugging Face");
    assert_string_equal(i->architecture, "gemma4");
    assert_int_equal(i->layers, 6);
    assert_int_equal(i->width, 64);
    assert_int_equal(i->vocab, 1280);
    assert_int_equal(i->context_limit, 131072);
    assert_int_equal(i->bos_id, 2);
    assert_int_equal(i->threads, 2);
    assert_false(i->is_base);
    assert_true(i->template_recognised);
    assert_true(i->template_name[0] != 0);
    assert_end_ids(i, (int32_t[]){1, 106, 50}, 3);
    assert_int_equal(i->n_suppressed_ids, 3);
    for (int k = 0; k < 3; k++) assert_true(has_id(i->suppressed_ids, 3, (int32_t[]){1275, 1276, 1279}[k]));
    assert_true(i->sampling.temperature == 1 && i->sampling.top_k == 64 && i->sampling.top_p == 0.95f);
    assert_true(i->sampling.repeat_penalty == 1 && i->sampling.min_p == 0 && i->sampling.presence_penalty == 0);
    assert_true(i->weight_bytes > 0 && i->parameters > 0 && i->load_ms > 0 && i->file_bytes > i->weight_bytes / 10);
    culet_engine_close(e);
}

static void test_info_of_a_gguf(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", CULET_OPEN_FULL, 0);
    const culet_model_info *i = culet_engine_info(e);
    assert_string_equal(i->format, "GGUF v3");
    assert_string_equal(i->architecture, "gemma3");
    assert_string_equal(i->name, "Tiny Gemma3");
    assert_false(i->is_base); /* it has a template */
    assert_end_ids(i, (int32_t[]){1, 106, 50}, 3); /* the file names 1 alone; the others end turns, by their text */
    assert_int_equal(i->threads, clt_threads_default());
    assert_true(i->sampling.temperature == 1 && i->sampling.top_k == 64 && i->sampling.top_p == 0.95f);
    culet_engine_close(e);
}

/* ---- base models ---- */

/* A copy of a tiny GGUF under another name, in which every `from` has become `to` (of the same length). */
static const char *patched(const char *sub, const char *name, const char *from, const char *to) {
    static char path[512];
    clt_err err;
    clt_buf file = {0};
    size_t n = strlen(from), hits = 0;
    assert_int_equal(strlen(to), n);
    assert_int_equal(clt_read_file(tiny_path(sub), 1 << 26, &file, &err), CLT_OK);
    for (size_t i = 0; i + n <= file.len; i++)
        if (memcmp(file.data + i, from, n) == 0) memcpy(file.data + i, to, n), hits++;
    assert_true(hits > 0);
    snprintf(path, sizeof path, "%s/%s", tiny_folder(), name);
    assert_int_equal(clt_write_file_atomic(path, file.data, file.len, false, &err), CLT_OK);
    clt_buf_free(&file);
    return path;
}

static void test_base_model(void **state) {
    (void)state;
    culet_error err;
    culet_prompt prompt;
    culet_engine *e;
    culet_engine_params p = {.mode = CULET_OPEN_TEXT};
    p.model = patched("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", "base.gguf", ".chat_template", ".chat_tEmplate");
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_OK);
    assert_true(culet_engine_info(e)->is_base);
    assert_string_equal(culet_engine_info(e)->template_name, "");
    assert_end_ids(culet_engine_info(e), (int32_t[]){1}, 1);
    static const char request[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}";
    assert_int_equal(culet_render(e, request, strlen(request), &prompt, &err), CULET_UNSUPPORTED);
    assert_int_equal(culet_status_exit(err.status), 6);
    culet_engine_close(e);

    char file[600];
    snprintf(file, sizeof file, "%s", tiny_path("tiny-gemma3/chat_template.jinja"));
    p.chat_template_file = file; /* forces chat, and the ids that end a turn */
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_OK);
    assert_false(culet_engine_info(e)->is_base);
    assert_end_ids(culet_engine_info(e), (int32_t[]){1, 106, 50}, 3);
    assert_int_equal(culet_render(e, request, strlen(request), &prompt, &err), CULET_OK);
    culet_prompt_free(&prompt);
    culet_engine_close(e);
}

static void test_instruct_by_name(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e;
    char base[512];
    clt_err inner;
    clt_buf file = {0};
    snprintf(base, sizeof base, "%s",
             patched("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", "it.gguf", ".chat_template", ".chat_tEmplate"));
    assert_int_equal(clt_read_file(base, 1 << 26, &file, &inner), CLT_OK);
    char *name = memmem(file.data, file.len, "Tiny Gemma3", 11);
    assert_non_null(name);
    memcpy(name, "Tiny Gem-it", 11);
    assert_int_equal(clt_write_file_atomic(base, file.data, file.len, false, &inner), CLT_OK);
    clt_buf_free(&file);
    culet_engine_params p = {.model = base, .mode = CULET_OPEN_TEXT};
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_OK);
    assert_false(culet_engine_info(e)->is_base); /* rendered by family and size */
    assert_end_ids(culet_engine_info(e), (int32_t[]){1, 106, 50}, 3);
    culet_engine_close(e);
}

/* ---- templates ---- */

static void keep_line(void *user, const char *line) {
    char *to = user;
    snprintf(to + strlen(to), 1024 - strlen(to), "%s\n", line);
}

static void test_unknown_templates(void **state) {
    (void)state;
    char log[1024] = "", file[512], hex[65];
    clt_err inner;
    culet_error err;
    culet_engine *e;
    culet_engine_params p = {.mode = CULET_OPEN_TEXT, .log = keep_line, .user = log};
    p.model = patched("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", "odd.gguf", "|turn>", "|TURN>");
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_OK);
    assert_false(culet_engine_info(e)->template_recognised);
    assert_non_null(strstr(log, "template")); /* said once, with its digest */
    assert_ptr_equal(strchr(log, '\n'), log + strlen(log) - 1);
    snprintf(hex, sizeof hex, "%s", culet_engine_info(e)->template_digest);
    assert_non_null(strstr(log, hex));
    assert_true(culet_engine_info(e)->template_name[0] != 0);
    culet_engine_close(e);

    snprintf(file, sizeof file, "%s/odd.jinja", tiny_folder());
    assert_int_equal(clt_write_file_atomic(file, "{{ messages }}", 14, false, &inner), CLT_OK);
    p.chat_template_file = file;
    p.model = tiny_path("tiny-gemma3");
    assert_int_equal(open_status(p, &err), CULET_UNSUPPORTED);
    assert_non_null(strstr(err.text, "odd.jinja"));
    p.chat_template_file = "/nowhere/none.jinja";
    assert_int_equal(open_status(p, &err), CULET_FILE);
}

/* ---- ids beyond the rows ---- */

/* tiny-gemma3 with one more added token, which has no row in the embedding: the path of the folder. */
static const char *with_added_token(const char *token) {
    static char folder[512];
    static const char anchor[] = "\"added_tokens\": [", *const links[] = {"config.json", "model.safetensors"};
    char path[600], text[256];
    clt_err err;
    clt_buf file = {0};
    snprintf(folder, sizeof folder, "%s/added", tiny_folder());
    mkdir(folder, 0700);
    for (size_t i = 0; i < 2; i++) {
        char from[600], to[600];
        snprintf(from, sizeof from, "%s/%s", tiny_path("tiny-gemma3"), links[i]);
        snprintf(to, sizeof to, "%s/%s", folder, links[i]);
        unlink(to);
        assert_int_equal(symlink(realpath(from, path), to), 0);
    }
    assert_int_equal(clt_read_file(tiny_path("tiny-gemma3/tokenizer.json"), 1 << 26, &file, &err), CLT_OK);
    char *at = memmem(file.data, file.len, anchor, strlen(anchor));
    assert_non_null(at);
    clt_buf edited = {0};
    size_t head = (size_t)(at - file.data) + strlen(anchor);
    snprintf(text, sizeof text, "{\"id\": 1280, %s},", token);
    clt_buf_put(&edited, file.data, head);
    clt_buf_put(&edited, text, strlen(text));
    clt_buf_put(&edited, file.data + head, file.len - head);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    assert_int_equal(clt_write_file_atomic(path, edited.data, edited.len, false, &err), CLT_OK);
    clt_buf_free(&file);
    clt_buf_free(&edited);
    return folder;
}

static void test_special_ids_beyond_the_rows(void **state) {
    (void)state;
    static const char soft[] = "<image_soft_token>";
    culet_error err;
    culet_engine *e;
    int32_t *ids;
    size_t n, len;
    char *text, path[600];
    culet_engine_params p = {.threads = 1};
    p.model = with_added_token("\"content\": \"<image_soft_token>\", \"special\": true");
    if (culet_engine_open(&p, &e, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(culet_engine_info(e)->vocab, 1280);
    assert_int_equal(culet_tokenize(e, soft, strlen(soft), true, false, &ids, &n, &err), CULET_OK);
    assert_true(n == 1 && ids[0] == 1280);
    assert_int_equal(culet_detokenize(e, ids, n, true, &text, &len, &err), CULET_OK);
    assert_true(len == strlen(soft) && memcmp(text, soft, len) == 0);
    culet_session *s = tiny_session(e, 64, 0);
    assert_int_equal(culet_session_sync(s, ids, n, NULL, &err), CULET_USAGE); /* it has no row: refused, not read */
    assert_non_null(strstr(err.text, "1280"));
    culet_session_close(s);
    culet_free(text);
    culet_free(ids);
    culet_engine_close(e);
    p.model = with_added_token("\"content\": \"any text\", \"special\": false");
    assert_int_equal(open_status(p, &err), CULET_FILE); /* what text may become needs a row */
    assert_non_null(strstr(err.text, "1280 rows"));
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", p.model, files[i]);
        unlink(path);
    }
    rmdir(p.model);
}

/* ---- modes ---- */

static void test_modes(void **state) {
    (void)state;
    culet_error err;
    int32_t *ids;
    size_t n;
    for (int mode = CULET_OPEN_FULL; mode <= CULET_OPEN_TEXT; mode++) {
        culet_engine *e = tiny_open("tiny-e/gguf/tiny-e-Q4_K_M.gguf", (culet_open_mode)mode, 1);
        assert_int_equal(culet_engine_info(e)->vocab, 1280);
        assert_true((culet_engine_info(e)->weight_bytes > 0) == (mode == CULET_OPEN_FULL));
        assert_int_equal(culet_tokenize(e, "What is", 7, false, true, &ids, &n, &err), CULET_OK);
        assert_int_equal(n, 3);
        culet_free(ids);
        culet_engine_close(e);
    }
}

static bool stop_loading(void *user, double done) {
    (void)user, (void)done;
    return false;
}

static void test_refusals(void **state) {
    (void)state;
    culet_error err;
    culet_engine_params p = {.model = "/nowhere/at-all.gguf"};
    assert_int_equal(open_status(p, &err), CULET_FILE);
    assert_int_equal(culet_status_exit(err.status), 3);
    assert_non_null(strstr(err.text, "at-all.gguf"));
    p.model = "";
    assert_int_equal(open_status(p, &err), CULET_FILE);
    p.model = tiny_path("tiny-gemma3/config.json");
    assert_int_equal(open_status(p, &err), CULET_FILE);
    p.model = tiny_path("tiny-gemma3");
    p.threads = -1;
    assert_int_equal(open_status(p, &err), CULET_USAGE);
    p.threads = 1000000;
    assert_int_equal(open_status(p, &err), CULET_USAGE);
    p.threads = 1;
    p.progress = stop_loading;
    assert_int_equal(open_status(p, &err), CULET_CANCELLED);
    p.progress = NULL;
    p.model = patched("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", "foreign.gguf", "gemma3", "llama7");
    p.mode = CULET_OPEN_FULL;
    assert_int_equal(open_status(p, &err), CULET_UNSUPPORTED);
    assert_non_null(strstr(err.text, "llama7"));
}

static void test_cpu_levels(void **state) {
    (void)state;
    culet_error err;
    culet_engine_params p = {.model = tiny_path("tiny-gemma3"), .threads = 1};
    setenv("CULET_CPU", "abacus", 1);
    assert_int_equal(open_status(p, &err), CULET_USAGE);
    setenv("CULET_CPU", "scalar", 1);
    culet_engine *e;
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_OK);
    assert_string_equal(culet_engine_info(e)->cpu_level, "scalar");
    culet_engine_close(e);
    setenv("CULET_CPU", "", 1); /* empty is unset */
    assert_int_equal(open_status(p, &err), CULET_OK);
    unsetenv("CULET_CPU");
}

static void test_names_in_the_model_folder(void **state) {
    (void)state;
    culet_error err;
    char home[512], folder[600], from[700];
    snprintf(home, sizeof home, "%s", tiny_folder());
    patched("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", "x.gguf", "general.name", "general.name");
    snprintf(folder, sizeof folder, "%s/models", home);
    snprintf(from, sizeof from, "%s", home);
    assert_int_equal(symlink(from, folder), 0); /* the folder itself serves as its "models" */
    setenv("CULET_HOME", home, 1);
    culet_engine_params p = {.model = "x", .mode = CULET_OPEN_TEXT};
    assert_int_equal(open_status(p, &err), CULET_OK);
    p.model = "x.gguf";
    assert_int_equal(open_status(p, &err), CULET_OK);
    p.model = "y";
    assert_int_equal(open_status(p, &err), CULET_FILE);
    p.model = NULL; /* the default model is not there */
    assert_int_equal(open_status(p, &err), CULET_FILE);
    assert_non_null(strstr(err.hint, "./quickstart"));
    char *json = NULL, *path = NULL;
    assert_int_equal(culet_model_list(&json, &err), CULET_OK);
    assert_non_null(strstr(json, "\"name\":\"x.gguf\""));
    assert_int_equal(culet_model_find("x", &path, &err), CULET_OK);
    assert_non_null(strstr(path, "/models/x.gguf"));
    culet_free(json);
    culet_free(path);
    unsetenv("CULET_HOME");
    unlink(folder);
}

static int cleanup(void **state) {
    (void)state;
    tiny_remove_folder();
    return clt_mem_live() == 0 ? 0 : -1; /* every test of this file gave everything back */
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info_of_a_folder),
        cmocka_unit_test(test_info_of_a_gguf),
        cmocka_unit_test(test_base_model),
        cmocka_unit_test(test_instruct_by_name),
        cmocka_unit_test(test_unknown_templates),
        cmocka_unit_test(test_special_ids_beyond_the_rows),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_cpu_levels),
        cmocka_unit_test(test_names_in_the_model_folder),
    };
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
