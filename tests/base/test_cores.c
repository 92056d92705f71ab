/* Processors: masks as people write them; physical cores, kinds and quotas as systems state them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include "base/cores.h"
#include "base/fake_root.h"
#include "base/os.h"

static void cpus(int online, const char *allowed) {
    char text[64];
    snprintf(text, sizeof text, "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\n", allowed);
    fake_root_put("/proc/thread-self/status", text);
    snprintf(text, sizeof text, "0-%d\n", online - 1);
    fake_root_put("/sys/devices/system/cpu/online", text);
}

static void cpu(int number, const char *siblings, const char *capacity) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", number);
    fake_root_put(path, siblings);
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", number);
    if (capacity) fake_root_put(path, capacity);
}

static void expect(int logical, int physical, int fast, int threads) {
    clt_cores_info c;
    clt_cores_look(NULL, &c);
    assert_int_equal(c.logical, logical);
    assert_int_equal(c.physical, physical);
    assert_int_equal(c.fast, fast);
    assert_int_equal(c.threads, threads);
    assert_int_equal(clt_cores(), physical);
    assert_int_equal(clt_threads_default(), threads);
}

static void test_hyperthreads(void **state) {
    (void)state;
    cpus(8, "0-7");
    expect(8, 8, 8, 8); /* nothing says that they share cores */
    for (int i = 0; i < 8; i++) {
        char siblings[16];
        snprintf(siblings, sizeof siblings, "%d,%d\n", i % 4, i % 4 + 4);
        cpu(i, siblings, NULL);
    }
    expect(8, 4, 4, 4);
    cpus(8, "1,4-5");
    expect(3, 2, 2, 2);
    cpus(8, "6-127"); /* a container's list may go beyond what is online */
    expect(2, 2, 2, 2);
    cpus(8, "7");
    expect(1, 1, 1, 1);
}

static void test_two_kinds(void **state) {
    (void)state;
    cpus(8, "0-7");
    for (int i = 0; i < 8; i++) {
        char self[8];
        snprintf(self, sizeof self, "%d\n", i);
        cpu(i, self, i < 4 ? "530\n" : i < 7 ? "870\n" : "1024\n");
    }
    expect(8, 8, 4, 4);
    cpus(8, "0-3"); /* nothing but slow ones: then they are what there is */
    expect(4, 4, 4, 4);
    cpus(8, "0-7");
    fake_root_put("/sys/devices/cpu_core/cpus", "0-5\n");
    expect(8, 8, 6, 6);
    fake_root_put("/sys/devices/cpu_core/cpus", "nonsense\n");
    expect(8, 8, 4, 4);
}

static void test_within(void **state) {
    (void)state;
    cpus(4, "0-3");
    clt_cpus set = {0};
    clt_cores_info c;
    clt_cpus_add(&set, 2);
    clt_cpus_add(&set, 9);
    clt_cores_look(&set, &c);
    assert_int_equal(c.logical, 1);
    assert_true(clt_cpus_has(&c.allowed, 2) && !clt_cpus_has(&c.allowed, 9));
    memset(&set, 0, sizeof set);
    clt_cores_look(&set, &c);
    assert_int_equal(c.logical, 0);
    assert_int_equal(c.threads, 1);
}

static void expect_threads(double quota, int threads) {
    clt_cores_info c;
    clt_cores_look(NULL, &c);
    assert_true(c.quota > quota - 1e-9 && c.quota < quota + 1e-9);
    assert_int_equal(c.threads, threads);
}

static void test_quota_v2(void **state) {
    (void)state;
    cpus(8, "0-7");
    fake_root_put("/proc/self/cgroup", "0::/a/b\n");
    fake_root_put("/proc/self/mountinfo", "30 25 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    expect_threads(0, 8);
    fake_root_put("/cg/a/b/cpu.max", "max 100000\n");
    expect_threads(0, 8);
    fake_root_put("/cg/a/b/cpu.max", "250000 100000\n");
    expect_threads(2.5, 3);
    fake_root_put("/cg/a/cpu.max", "100000 100000\n");
    expect_threads(1, 1);
    fake_root_put("/cg/a/cpu.max", "10000 100000\n");
    expect_threads(0.1, 1);
    fake_root_put("/cg/a/cpu.max", "1600000 100000\n");
    fake_root_put("/cg/a/b/cpu.max", "max 100000\n");
    expect_threads(16, 8);
}

static void test_quota_v1(void **state) {
    (void)state;
    cpus(8, "0-7");
    fake_root_put("/proc/self/cgroup", "3:cpu,cpuacct:/x\n");
    fake_root_put("/proc/self/mountinfo", "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    fake_root_put("/cg/cpu/x/cpu.cfs_period_us", "50000\n");
    fake_root_put("/cg/cpu/x/cpu.cfs_quota_us", "-1\n");
    expect_threads(0, 8);
    fake_root_put("/cg/cpu/x/cpu.cfs_quota_us", "75000\n");
    expect_threads(1.5, 2);
}

static void test_masks(void **state) {
    (void)state;
    static const struct { const char *mask, *range; int count, first, last; } good[] = {
        {"F", NULL, 4, 0, 3}, {"0x5", NULL, 2, 0, 2}, {"0XaB", NULL, 5, 0, 7}, {"100000000", NULL, 1, 32, 32},
        {NULL, "2-5", 4, 2, 5}, {NULL, "-1", 2, 0, 1}, {NULL, "1020-", 4, 1020, 1023}, {NULL, "7-7", 1, 7, 7},
        {"1", "4-5", 3, 0, 5}, {"0", NULL, 0, 0, 0},
    };
    static const char *const bad_masks[] = {"", "0x", "g", "1 ", "-1", "0x1F,3"};
    static const char *const bad_ranges[] = {"", "-", "3", "a-b", "5-2", "0-1024", "99999999999-", "1-2-3", "1-2,5"};
    clt_err err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        clt_cpus set = {0};
        if (good[i].mask) assert_int_equal(clt_cpus_add_mask(&set, "--cpu-mask", good[i].mask, &err), CLT_OK);
        if (good[i].range) assert_int_equal(clt_cpus_add_range(&set, "--cpu-range", good[i].range, &err), CLT_OK);
        if (clt_cpus_count(&set) != good[i].count) fail_msg("case %zu: %d", i, clt_cpus_count(&set));
        assert_true(!good[i].count || (clt_cpus_has(&set, good[i].first) && clt_cpus_has(&set, good[i].last)));
    }
    clt_cpus set = {0};
    for (size_t i = 0; i < sizeof bad_masks / sizeof bad_masks[0]; i++) {
        assert_int_equal(clt_cpus_add_mask(&set, "--cpu-mask", bad_masks[i], &err), CLT_E_USAGE);
        assert_non_null(strstr(err.text, "--cpu-mask: '"));
    }
    for (size_t i = 0; i < sizeof bad_ranges / sizeof bad_ranges[0]; i++)
        if (clt_cpus_add_range(&set, "--cpu-range", bad_ranges[i], &err) != CLT_E_USAGE) fail_msg("%s", bad_ranges[i]);
    char beyond[300];
    memset(beyond, '0', sizeof beyond);
    beyond[0] = '1', beyond[257] = 0;
    assert_int_equal(clt_cpus_add_mask(&set, "--cpu-mask", beyond, &err), CLT_E_USAGE);
    beyond[0] = '0'; /* zeros beyond the last CPU name nothing */
    assert_int_equal(clt_cpus_add_mask(&set, "--cpu-mask", beyond, &err), CLT_OK);
}

/* This machine: what the files say is what the scheduler says. */
static void test_here(void **state) {
    (void)state;
    cpu_set_t set;
    clt_cores_info c;
    clt_cores_look(NULL, &c);
    assert_true(c.threads >= 1 && c.threads <= c.physical && c.fast <= c.physical && c.physical <= c.logical);
    if (sched_getaffinity(0, sizeof set, &set) != 0) skip();
    assert_int_equal(c.logical, CPU_COUNT(&set));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_hyperthreads, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_two_kinds, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_within, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_quota_v2, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_quota_v1, fake_root_begin, fake_root_end),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
