/* Packed copies of engines: written on request, used by later openings, the same logits, ignored when the file or the copy
 * changes, listed and removed by name or model. */
#include "engine/tiny.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"

#define MODEL "tiny-e2b/gguf/tiny-e2b-Q4_0.gguf"

typedef struct heard {
    char notes[2048], warnings[2048];
} heard;

static void on_note(void *user, const char *line) {
    heard *h = user;
    snprintf(h->notes, sizeof h->notes, "%s", line);
}

static void on_log(void *user, const char *line) {
    heard *h = user;
    snprintf(h->warnings, sizeof h->warnings, "%s", line);
}

static char model[512], home[512];

static culet_engine *open_model(heard *h, bool pack_cache) {
    culet_error err;
    culet_engine *e;
    culet_engine_params p = {.model = model, .threads = 2, .log = on_log, .note = on_note, .user = h,
                             .pack_cache = pack_cache};
    memset(h, 0, sizeof *h);
    if (culet_engine_open(&p, &e, &err) != CULET_OK) fail_msg("%s", err.text);
    return e;
}

static void copy_model(void) {
    FILE *from = fopen(tiny_path(MODEL), "rb"), *to = fopen(model, "wb");
    char block[65536];
    assert_true(from && to);
    for (size_t n; (n = fread(block, 1, sizeof block, from)) > 0;) assert_int_equal(fwrite(block, 1, n, to), n);
    fclose(from);
    assert_int_equal(fclose(to), 0);
}

static int setup(void **state) {
    (void)state;
    snprintf(model, sizeof model, "%s/m.gguf", tiny_folder());
    snprintf(home, sizeof home, "%s/home", tiny_folder());
    return setenv("CULET_HOME", home, 1);
}

static float *logits_of(culet_engine *e) {
    culet_error err;
    culet_session *s = tiny_session(e, 64, 0);
    const int32_t ids[] = {2, 5, 9, 100, 7};
    assert_int_equal(culet_session_sync(s, ids, 5, NULL, &err), CULET_OK);
    size_t bytes = (size_t)culet_engine_info(e)->vocab * sizeof(float);
    float *copy = malloc(bytes);
    memcpy(copy, culet_session_logits(s), bytes);
    culet_session_close(s);
    return copy;
}

static char *list(void) {
    static char text[4096];
    culet_error err;
    char *json;
    assert_int_equal(culet_packed_list(&json, &err), CULET_OK);
    snprintf(text, sizeof text, "%s", json);
    culet_free(json);
    return text;
}

static void test_the_life_of_a_copy(void **state) {
    (void)state;
    heard h;
    culet_error err;
    char *path;
    size_t n;
    copy_model();
    culet_engine *e = open_model(&h, false);
    assert_string_equal(h.notes, "");
    assert_null(culet_engine_info(e)->packed_path);
    assert_string_equal(list(), "[]");
    float *want = logits_of(e);
    size_t bytes = (size_t)culet_engine_info(e)->vocab * sizeof(float);
    assert_int_equal(culet_engine_pack(e, &path, &err), CULET_OK);
    assert_non_null(strstr(path, home));
    culet_engine_close(e);

    e = open_model(&h, false);
    assert_non_null(strstr(h.notes, path));
    assert_string_equal(h.warnings, "");
    assert_string_equal(culet_engine_info(e)->packed_path, path);
    float *got = logits_of(e);
    assert_memory_equal(got, want, bytes);
    assert_non_null(strstr(list(), "\"format\":\"packed\""));
    assert_non_null(strstr(list(), model));
    culet_free(path);
    assert_int_equal(culet_engine_pack(e, &path, &err), CULET_OK); /* there already */

    /* Removing it does not disturb who uses it. */
    assert_int_equal(culet_packed_remove("another", &n, &err), CULET_FILE);
    assert_int_equal(culet_packed_remove(model, &n, &err), CULET_OK);
    assert_int_equal(n, 1);
    free(got);
    got = logits_of(e);
    assert_memory_equal(got, want, bytes);
    culet_engine_close(e);
    assert_string_equal(list(), "[]");
    culet_free(path);
    free(want), free(got);
}

static void test_pack_cache(void **state) {
    (void)state;
    heard h;
    culet_error err;
    size_t n;
    struct timespec times[2] = {{100, 0}, {100, 0}};
    copy_model();
    culet_engine_close(open_model(&h, true));
    assert_non_null(strstr(h.notes, "written"));
    culet_engine_close(open_model(&h, true));
    assert_null(strstr(h.notes, "written"));
    assert_non_null(strstr(h.notes, "weights from the packed copy"));
    /* The model's file is touched: the copy is not believed any more, and replaced on request. */
    assert_int_equal(utimensat(AT_FDCWD, model, times, 0), 0);
    culet_engine_close(open_model(&h, false));
    assert_non_null(strstr(h.warnings, "earlier state"));
    assert_string_equal(h.notes, "");
    culet_engine_close(open_model(&h, true));
    assert_non_null(strstr(h.notes, "written"));
    culet_engine_close(open_model(&h, false));
    assert_non_null(strstr(h.notes, "weights from"));
    assert_int_equal(culet_packed_remove(NULL, &n, &err), CULET_OK);
    assert_int_equal(n, 1);
    assert_int_equal(culet_packed_remove(NULL, &n, &err), CULET_OK);
    assert_int_equal(n, 0);
}

static void test_a_damaged_copy(void **state) {
    (void)state;
    heard h;
    culet_error err;
    char *path;
    copy_model();
    culet_engine *e = open_model(&h, false);
    float *want = logits_of(e), *got;
    size_t bytes = (size_t)culet_engine_info(e)->vocab * sizeof(float);
    assert_int_equal(culet_engine_pack(e, &path, &err), CULET_OK);
    culet_engine_close(e);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "flip", 4, (2 << 20) + 5000), 4);
    close(fd);
    e = open_model(&h, false);
    assert_non_null(strstr(h.warnings, "damaged packed copy"));
    assert_null(culet_engine_info(e)->packed_path);
    got = logits_of(e);
    assert_memory_equal(got, want, bytes);
    culet_engine_close(e);
    culet_free(path);
    free(want), free(got);
    assert_int_equal(culet_packed_remove(NULL, NULL, &err), CULET_OK);
}

/* A folder that cannot be written to: a warning, and the model opens. */
static void test_no_place_for_a_copy(void **state) {
    (void)state;
    heard h;
    culet_error err;
    copy_model();
    setenv("CULET_HOME", "/proc/nowhere", 1);
    culet_engine *e = open_model(&h, true);
    assert_non_null(strstr(h.warnings, "no packed copy"));
    assert_int_equal(culet_engine_pack(e, NULL, &err), CULET_FAILED);
    culet_engine_close(e);
    setenv("CULET_HOME", home, 1);
}

static void test_failing_allocations(void **state) {
    (void)state;
    culet_error err;
    heard h;
    copy_model();
    culet_engine_close(open_model(&h, true));
    long start = clt_mem_count(), live = clt_mem_live();
    culet_engine_close(open_model(&h, false));
    long total = clt_mem_count() - start;
    for (long n = total > 60 ? total - 60 : 1; n <= total; n++) {
        culet_engine *e;
        culet_engine_params p = {.model = model, .threads = 2};
        clt_mem_fail_after(n);
        culet_status status = culet_engine_open(&p, &e, &err);
        clt_mem_fail_after(0);
        if (status != CULET_MEMORY) fail_msg("allocation %ld of %ld: %s", n, total, status ? err.text : "opened");
        assert_int_equal(clt_mem_live(), live);
    }
    assert_int_equal(culet_packed_remove(NULL, NULL, &err), CULET_OK);
}

static int teardown(void **state) {
    (void)state;
    char path[600];
    unlink(model);
    snprintf(path, sizeof path, "%s/packed", home);
    rmdir(path);
    rmdir(home);
    tiny_remove_folder();
    return 0;
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_life_of_a_copy), cmocka_unit_test(test_pack_cache), cmocka_unit_test(test_a_damaged_copy),
        cmocka_unit_test(test_no_place_for_a_copy), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
