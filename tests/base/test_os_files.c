/* Files and folders: whole or not at all, sorted lists, and where culet keeps its things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"

static char folder[] = "/tmp/culet-test-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state) {
    (void)state;
    return rmdir(folder); /* fails if a test left a temporary file behind */
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void test_write_then_read(void **state) {
    (void)state;
    clt_err err;
    clt_buf b = {0};
    struct stat st;
    const char *path = in_folder("file");
    static char big[100000];
    memset(big, 'b', sizeof big);
    assert_int_equal(clt_write_file_atomic(path, big, sizeof big, false, &err), CLT_OK);
    assert_int_equal(clt_write_file_atomic(path, "a\0b", 3, true, &err), CLT_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(clt_read_file(path, 3, &b, &err), CLT_OK);
    assert_int_equal(b.len, 3);
    assert_memory_equal(b.data, "a\0b", 4);
    clt_buf_reset(&b);
    assert_int_equal(clt_read_file(path, 2, &b, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, "larger than 2 bytes"));
    assert_true(clt_is_file(path));
    assert_false(clt_is_dir(path));
    assert_true(clt_is_dir(folder));
    assert_false(clt_is_file(folder));
    clt_buf_free(&b);
    unlink(path);
}

static void test_public_mode_follows_umask(void **state) {
    (void)state;
    clt_err err;
    struct stat st;
    const char *path = in_folder("open");
    mode_t mask = umask(027);
    assert_int_equal(clt_write_file_atomic(path, NULL, 0, false, &err), CLT_OK);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(st.st_size, 0);
    unlink(path);
}

static void test_failures_name_the_path(void **state) {
    (void)state;
    clt_err err;
    clt_buf b = {0};
    char **names;
    size_t n;
    assert_int_equal(clt_write_file_atomic("/no/such/folder/x", "a", 1, false, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, "/no/such/folder/x"));
    assert_int_equal(clt_write_file_atomic(folder, "a", 1, false, &err), CLT_E_FILE); /* a folder is not replaced */
    struct stat st;
    const char *pipe_path = in_folder("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(clt_write_file_atomic(pipe_path, "a", 1, false, &err), CLT_E_FILE); /* nor a pipe or a device */
    assert_non_null(strstr(err.text, "a device or a pipe"));
    assert_int_equal(stat(pipe_path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(unlink(pipe_path), 0);
    assert_int_equal(clt_read_file("/no/such/file", 10, &b, &err), CLT_E_FILE);
    assert_int_equal(clt_read_file(folder, 10, &b, &err), CLT_E_FILE);
    assert_int_equal(clt_list_dir("/no/such/folder", &names, &n, &err), CLT_E_FILE);
    assert_null(names);
    clt_buf_free(&b);
    rmdir(folder);
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void test_read_survives_failed_allocation(void **state) {
    (void)state;
    clt_err err;
    clt_buf b = {0};
    clt_mem_fail_after(1);
    assert_int_equal(clt_read_file("/proc/self/status", 1 << 20, &b, &err), CLT_E_MEMORY);
    clt_mem_fail_after(0);
    clt_buf_free(&b);
}

static void test_list_is_sorted_and_fails_cleanly(void **state) {
    (void)state;
    clt_err err;
    char **names, name[16];
    size_t n;
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "f%02d", i * 31 % 50);
        fclose(fopen(in_folder(name), "w"));
    }
    assert_int_equal(clt_list_dir(folder, &names, &n, &err), CLT_OK);
    assert_int_equal(n, 50);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "f%02d", i);
        assert_string_equal(names[i], name);
        clt_free(names[i]);
    }
    clt_free(names);
    long live = clt_mem_live();
    for (long k = 1; k <= 52; k++) { /* 50 names and two sizes of the list */
        clt_mem_fail_after(k);
        assert_int_equal(clt_list_dir(folder, &names, &n, &err), CLT_E_MEMORY);
        clt_mem_fail_after(0);
        assert_int_equal(clt_mem_live(), live);
    }
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "f%02d", i);
        unlink(in_folder(name));
    }
}

static void test_ends_with(void **state) {
    (void)state;
    assert_true(clt_ends_with("a.gguf", ".gguf"));
    assert_true(clt_ends_with(".gguf", ".gguf"));
    assert_true(clt_ends_with("a", ""));
    assert_false(clt_ends_with("gguf", ".gguf"));
    assert_false(clt_ends_with("a.gguf.part", ".gguf"));
}

static void test_read_at_is_exact(void **state) {
    (void)state;
    clt_err err;
    char got[8] = "-------";
    const char *path = in_folder("positions");
    assert_int_equal(clt_write_file_atomic(path, "0123456789", 10, false, &err), CLT_OK);
    int fd = open(path, O_RDONLY);
    assert_true(clt_read_at(fd, got, 4, 6));
    assert_memory_equal(got, "6789---", 7);
    assert_true(clt_read_at(fd, got, 0, 99));
    errno = 7;
    assert_false(clt_read_at(fd, got, 4, 7)); /* ends before */
    assert_int_equal(errno, 0);
    close(fd);
    assert_false(clt_read_at(fd, got, 1, 0));
    assert_int_equal(errno, EBADF);
    unlink(path);
}

static void test_home(void **state) {
    (void)state;
    clt_err err;
    clt_buf b = {0};
    setenv("CULET_HOME", "/models here", 1);
    assert_int_equal(clt_home_path("models", &b, &err), CLT_OK);
    assert_string_equal(b.data, "/models here/models");
    clt_buf_reset(&b);
    setenv("CULET_HOME", "", 1);
    setenv("HOME", "/home/me", 1);
    assert_int_equal(clt_home_path(NULL, &b, &err), CLT_OK);
    assert_string_equal(b.data, "/home/me/.cache/culet");
    clt_buf_reset(&b);
    unsetenv("CULET_HOME");
    unsetenv("HOME");
    assert_int_equal(clt_home_path("x", &b, &err), CLT_OK); /* from the user's entry */
    assert_non_null(strstr(b.data, "/.cache/culet/x"));
    clt_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_then_read),
        cmocka_unit_test(test_public_mode_follows_umask),
        cmocka_unit_test(test_failures_name_the_path),
        cmocka_unit_test(test_read_survives_failed_allocation),
        cmocka_unit_test(test_list_is_sorted_and_fails_cleanly),
        cmocka_unit_test(test_ends_with),
        cmocka_unit_test(test_read_at_is_exact),
        cmocka_unit_test(test_home),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
