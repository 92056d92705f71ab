/* File mappings: the file's bytes, and a clear refusal of everything that is not a file. */
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
#include "base/map.h"

static char folder[] = "/tmp/culet-test-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void test_maps_a_file(void **state) {
    (void)state;
    clt_err err;
    clt_map map;
    const char *path = in_folder("data");
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 10000; i++) fputc(i % 251, f);
    fclose(f);
    assert_int_equal(clt_map_open(path, &map, &err), CLT_OK);
    assert_int_equal(map.size, 10000);
    for (int use = CLT_MAP_SEQUENTIAL; use <= CLT_MAP_DONTNEED; use++) {
        clt_map_advise(&map, 0, map.size, (clt_map_use)use);
        clt_map_advise(&map, 5000, 10, (clt_map_use)use);
        clt_map_advise(&map, 9999, UINT64_MAX, (clt_map_use)use);
        clt_map_advise(&map, UINT64_MAX, 1, (clt_map_use)use);
    }
    for (int i = 0; i < 10000; i++) assert_int_equal(map.data[i], i % 251);
    clt_map_close(&map);
    assert_null(map.data);
    clt_map_close(&map);
    unlink(path);
}

static void test_reads_past_the_mapping(void **state) {
    (void)state;
    clt_err err;
    clt_map map;
    char got[300];
    const char *path = in_folder("data");
    FILE *f = fopen(path, "w");
    for (int i = 0; i < 10000; i++) fputc(i % 251, f);
    fclose(f);
    assert_int_equal(clt_map_open(path, &map, &err), CLT_OK);
    assert_true(clt_map_read(&map, 9700, got, 300));
    assert_memory_equal(got, map.data + 9700, 300);
    assert_true(clt_map_read(&map, 10000, got, 0));
    assert_false(clt_map_read(&map, 9701, got, 300));
    assert_false(clt_map_read(&map, UINT64_MAX, got, 2));
    assert_int_equal(truncate(path, 9000), 0);
    assert_false(clt_map_read(&map, 8900, got, 300));
    clt_map_close(&map);
    assert_false(clt_map_read(&map, 0, got, 1));
    unlink(path);
}

static void test_parts(void **state) {
    (void)state;
    clt_map part;
    const char *path = in_folder("parts");
    FILE *f = fopen(path, "w+");
    for (int i = 0; i < (5 << 20); i++) fputc(i * 7 >> 3 & 0xff, f);
    fflush(f);
    for (uint64_t offset = 0; offset <= CLT_MAP_HUGE; offset += CLT_MAP_HUGE)
        for (uint64_t bytes = 1; bytes <= 3 << 20; bytes = bytes * 9 + 11) {
            assert_true(clt_map_part(fileno(f), offset, bytes, &part));
            assert_int_equal((uintptr_t)part.data % CLT_MAP_HUGE, 0);
            assert_int_equal(part.size, bytes);
            for (uint64_t i = 0; i < bytes; i += bytes < 5000 ? 1 : 4099)
                assert_int_equal(part.data[i], (offset + i) * 7 >> 3 & 0xff);
            clt_map_is_huge(&part, bytes); /* either answer is right */
            clt_map_close(&part);
            assert_null(part.data);
        }
    assert_false(clt_map_part(fileno(f), 0, 0, &part));
    assert_false(clt_map_part(-1, 0, 5, &part));
    assert_true(clt_map_part(fileno(f), 0, 4096, &part));
    assert_false(clt_map_is_huge(&part, 4096)); /* less than one huge page */
    clt_map_close(&part);
    fclose(f);
    unlink(path);
}

static void test_empty_file(void **state) {
    (void)state;
    clt_err err;
    clt_map map;
    const char *path = in_folder("empty");
    fclose(fopen(path, "w"));
    assert_int_equal(clt_map_open(path, &map, &err), CLT_OK);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    clt_map_advise(&map, 0, 1, CLT_MAP_WILLNEED);
    clt_map_close(&map);
    unlink(path);
}

static void test_refusals_name_the_path(void **state) {
    (void)state;
    clt_err err;
    clt_map map;
    const char *path = in_folder("missing");
    assert_int_equal(clt_map_open(path, &map, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, "missing"));
    assert_int_equal(clt_map_open(folder, &map, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, "folder"));
    assert_int_equal(clt_map_open("/dev/null", &map, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, "not a regular file"));
    path = in_folder("fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(clt_map_open(path, &map, &err), CLT_E_FILE); /* and does not wait for a writer */
    assert_null(map.data);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_a_file),
        cmocka_unit_test(test_reads_past_the_mapping),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_refusals_name_the_path),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
