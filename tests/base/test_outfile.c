/* Files that appear whole or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/outfile.h"

static char folder[] = "/tmp/culet-outfile-XXXXXX";
static char path[256];

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return rmdir(folder);
}

static size_t entries(void) {
    char **names;
    size_t n;
    clt_err err;
    assert_int_equal(clt_list_dir(folder, &names, &n, &err), CLT_OK);
    for (size_t i = 0; i < n; i++) clt_free(names[i]);
    clt_free(names);
    return n;
}

static void assert_content(const char *want) {
    clt_buf b = {0};
    clt_err err;
    assert_int_equal(clt_read_file(path, 1 << 20, &b, &err), CLT_OK);
    assert_string_equal(b.data, want);
    clt_buf_free(&b);
}

static void test_commit(void **state) {
    clt_err err;
    clt_outfile f;
    (void)state;
    for (int round = 0; round < 2; round++) { /* the second one takes the place of the first */
        assert_int_equal(clt_outfile_open(path, 8, &f, &err), CLT_OK);
        assert_true(clt_outfile_write(&f, round ? "later" : "bytes", 5, 3));
        assert_true(clt_outfile_write(&f, "old", 3, 0));
        if (round) assert_content("oldbytes"); /* nothing has changed yet */
        assert_int_equal(clt_outfile_commit(&f, &err), CLT_OK);
        assert_content(round ? "oldlater" : "oldbytes");
        assert_int_equal(entries(), 1);
    }
    unlink(path);
}

static void test_abandon(void **state) {
    clt_err err;
    clt_outfile f;
    (void)state;
    assert_int_equal(clt_outfile_open(path, 8, &f, &err), CLT_OK);
    assert_true(clt_outfile_write(&f, "bytes", 5, 0));
    clt_outfile_abandon(&f);
    clt_outfile_abandon(&f);
    assert_int_equal(entries(), 0);
}

static void test_refusals(void **state) {
    clt_err err;
    clt_outfile f;
    (void)state;
    assert_int_equal(clt_outfile_open(folder, 8, &f, &err), CLT_E_USAGE);
    assert_int_equal(clt_outfile_open("/dev/null", 8, &f, &err), CLT_E_USAGE);
    assert_int_equal(clt_outfile_open("/nonexistent/folder/file", 8, &f, &err), CLT_E_FAILED);
    assert_int_equal(clt_outfile_open(path, UINT64_MAX / 2, &f, &err), CLT_E_FAILED);
    assert_non_null(strstr(err.text, "disk"));
    assert_int_equal(entries(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commit), cmocka_unit_test(test_abandon), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
