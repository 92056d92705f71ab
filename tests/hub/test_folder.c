/* The model folder: paths as they are, names with and without ending, folders, what counts as a model in the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "hub/folder.h"

static char home[64];
static const char *const files[] = {"models/a.gguf", "models/b-00001-of-00002.gguf", "models/b-00002-of-00002.gguf",
                                    "models/notes.txt", "models/hf/config.json", "models/hf/model.safetensors",
                                    "models/one/only.gguf", "models/one/mmproj-F16.gguf", "models/two/x.gguf",
                                    "models/two/y.gguf", "models/empty/readme.md", "outside.gguf"};
static const char *const folders[] = {"models", "models/hf", "models/one", "models/two", "models/empty"};
enum { N_FILES = sizeof files / sizeof *files, N_FOLDERS = sizeof folders / sizeof *folders };

static const char *at(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", home, name);
    return path;
}

static int setup(void **state) {
    (void)state;
    snprintf(home, sizeof home, "/tmp/culet-hub-XXXXXX");
    if (!mkdtemp(home)) return -1;
    for (int i = 0; i < N_FOLDERS; i++)
        if (mkdir(at(folders[i]), 0700) != 0) return -1;
    for (int i = 0; i < N_FILES; i++) {
        FILE *f = fopen(at(files[i]), "wb");
        if (!f || fwrite("12345", 1, 5, f) != 5 || fclose(f) != 0) return -1;
    }
    return setenv("CULET_HOME", home, 1);
}

static int teardown(void **state) {
    (void)state;
    for (int i = 0; i < N_FILES; i++) unlink(at(files[i]));
    for (int i = N_FOLDERS; i-- > 0;) rmdir(at(folders[i]));
    rmdir(home);
    unsetenv("CULET_HOME");
    return clt_mem_live() == 0 ? 0 : -1;
}

static void assert_finds(const char *name, const char *want) {
    clt_err err;
    clt_buf path = {0};
    if (clt_hub_find(name, &path, &err) != CLT_OK) fail_msg("%s", err.text);
    assert_string_equal(path.data, want);
    clt_buf_free(&path);
}

static void assert_missing(const char *name, const char *word, const char *hint) {
    clt_err err;
    clt_buf path = {0};
    assert_int_equal(clt_hub_find(name, &path, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, word));
    assert_non_null(strstr(err.hint, hint));
    clt_buf_free(&path);
}

static void test_find(void **state) {
    (void)state;
    char outside[256];
    snprintf(outside, sizeof outside, "%s", at("outside.gguf"));
    assert_finds(outside, outside);
    assert_finds("a", at("models/a.gguf"));
    assert_finds("a.gguf", at("models/a.gguf"));
    assert_finds("b-00002-of-00002", at("models/b-00002-of-00002.gguf"));
    assert_finds("hf", at("models/hf"));
    assert_finds("one", at("models/one/only.gguf")); /* the projector beside it is no model */
    assert_finds("two", at("models/two"));           /* which of them? left to the opening to refuse */
    assert_missing("c", "c: neither", "culet ls");
    assert_missing("", "neither", "culet ls");
    assert_missing(NULL, CLT_DEFAULT_MODEL, "./quickstart");
}

static void test_find_tilde(void **state) {
    (void)state;
    const char *own = getenv("HOME");
    char *kept = own ? clt_strdup(own) : NULL;
    setenv("HOME", home, 1);
    assert_finds("~/outside.gguf", at("outside.gguf"));
    assert_missing("~/nothing.gguf", "~/nothing.gguf", "culet ls");
    if (kept) setenv("HOME", kept, 1);
    clt_free(kept);
}

static void test_default(void **state) {
    (void)state;
    char path[256];
    snprintf(path, sizeof path, "%s", at("models/" CLT_DEFAULT_MODEL));
    assert_int_equal(symlink(at("models/a.gguf"), path), 0);
    assert_finds(NULL, path);
    unlink(path);
}

static void add(void *user, const clt_hub_entry *e) {
    char *to = user;
    snprintf(to + strlen(to), 1024 - strlen(to), "%s %llu %s\n", e->name, (unsigned long long)e->bytes, e->format);
}

static void test_each(void **state) {
    (void)state;
    clt_err err;
    char list[1024] = "";
    assert_int_equal(clt_hub_each(add, list, &err), CLT_OK);
    assert_string_equal(list, "a.gguf 5 GGUF\nb-00001-of-00002.gguf 5 GGUF\nhf 10 Hugging Face\none 10 GGUF\n");
}

static void test_no_folder(void **state) {
    (void)state;
    clt_err err;
    char list[1024] = "";
    setenv("CULET_HOME", "/nowhere/at/all", 1);
    assert_int_equal(clt_hub_each(add, list, &err), CLT_OK);
    assert_string_equal(list, "");
    assert_missing("a", "/nowhere/at/all/models", "culet ls");
    setenv("CULET_HOME", home, 1);
}

static void test_failing_allocations(void **state) {
    (void)state;
    clt_err err;
    char list[1024];
    for (long n = 1;; n++) {
        clt_buf path = {0};
        list[0] = 0;
        clt_mem_fail_after(n);
        clt_status found = clt_hub_find("one", &path, &err), listed = clt_hub_each(add, list, &err);
        clt_mem_fail_after(0);
        clt_buf_free(&path);
        assert_int_equal(clt_mem_live(), 0);
        if (found == CLT_OK && listed == CLT_OK) break;
        assert_true(found == CLT_E_MEMORY || listed == CLT_E_MEMORY);
        assert_true(n < 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_find_tilde),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_each),
        cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
