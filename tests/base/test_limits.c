/* Memory limits: the least of machine, control groups and ulimits, with its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/resource.h>
#include "base/fake_root.h"
#include "base/limits.h"
#include "base/os.h"

#define MIB (UINT64_C(1) << 20)

static int begin(void **state) {
    fake_root_begin(state);
    fake_root_put("/proc/meminfo", "MemTotal: 8388608 kB\nMemFree: 1024 kB\nMemAvailable: 4194304 kB\n"
                  "CommitLimit: 3145728 kB\nCommitted_AS: 2097152 kB\n");
    return 0;
}

static void expect(uint64_t mib, const char *source) {
    clt_memory_room r;
    clt_memory_look(&r);
    assert_int_equal(r.free_bytes, mib * MIB);
    if (!strstr(r.source, source)) fail_msg("'%s' lacks '%s'", r.source, source);
}

static void test_machine(void **state) {
    (void)state;
    expect(4096, "free memory");
    assert_int_equal(clt_memory_total_bytes(), 8192 * MIB);
    assert_int_equal(clt_memory_available_bytes(), 4096 * MIB);
    fake_root_put("/proc/sys/vm/overcommit_memory", "0\n");
    expect(4096, "free memory");
    fake_root_put("/proc/sys/vm/overcommit_memory", "2\n");
    expect(1024, "commit limit");
}

static void test_nothing_says(void **state) {
    (void)state;
    fake_root_put("/proc/meminfo", "nothing here\n");
    clt_memory_room r;
    clt_memory_look(&r);
    assert_true(r.free_bytes == CLT_UNLIMITED && r.group_limit == CLT_UNLIMITED);
}

static void enter_v2(void) {
    fake_root_put("/proc/self/cgroup", "0::/a/b\n");
    fake_root_put("/proc/self/mountinfo", "30 25 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
}

/* Pages of files are charged, and give way: 1000 used of which 900 are files leave 1948 of 2048. */
static void test_group_v2(void **state) {
    (void)state;
    enter_v2();
    fake_root_put("/cg/a/b/memory.max", "max\n");
    fake_root_put("/cg/a/b/memory.current", "1\n");
    expect(4096, "free memory");
    fake_root_put("/cg/a/b/memory.max", "2147483648\n");
    fake_root_put("/cg/a/b/memory.current", "1048576000\n");
    fake_root_put("/cg/a/b/memory.stat", "anon 104857600\nfile 943718400\ninactive_file 629145600\nactive_file 209715200\n"
                  "slab_reclaimable 104857600\n");
    expect(1948, "control group /a/b, memory.max 2048.0 MiB");
    assert_int_equal(clt_memory_total_bytes(), 2048 * MIB);
    fake_root_put("/cg/a/b/memory.high", "1073741824\n");
    expect(924, "control group /a/b, memory.high 1024.0 MiB");
}

/* A roomy group inside of a narrow one is as narrow. */
static void test_ancestors(void **state) {
    (void)state;
    enter_v2();
    fake_root_put("/cg/a/b/memory.max", "3221225472\n");
    fake_root_put("/cg/a/b/memory.current", "0\n");
    fake_root_put("/cg/a/memory.max", "3221225472\n");
    fake_root_put("/cg/a/memory.current", "2147483648\n");
    expect(1024, "control group /a,");
    fake_root_put("/cg/a/memory.current", "4294967296\n");
    expect(0, "control group /a,");
    assert_int_equal(clt_memory_available_bytes(), 0);
}

static void test_group_v1(void **state) {
    (void)state;
    fake_root_put("/proc/self/cgroup", "4:memory:/x\n0::/\n");
    fake_root_put("/proc/self/mountinfo", "32 31 0:29 / /cg/memory rw - cgroup cgroup rw,memory\n");
    fake_root_put("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_put("/cg/memory/memory.usage_in_bytes", "5000\n");
    fake_root_put("/cg/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_put("/cg/memory/x/memory.usage_in_bytes", "209715200\n");
    expect(4096, "free memory");
    fake_root_put("/cg/memory/x/memory.limit_in_bytes", "1073741824\n");
    fake_root_put("/cg/memory/x/memory.stat", "active_file 1\ntotal_active_file 52428800\ntotal_inactive_file 52428800\n");
    expect(924, "control group /x, memory.limit_in_bytes 1024.0 MiB");
}

static void test_ulimits(void **state) {
    (void)state;
    static const struct { __rlimit_resource_t resource; const char *name; } cases[] = {
        {RLIMIT_AS, "ulimit -v 2048.0 MiB"}, {RLIMIT_DATA, "ulimit -d 2048.0 MiB"}};
    fake_root_put("/proc/self/status", "VmPeak: 9 kB\nVmSize:\t 1048576 kB\nVmData:\t 1048576 kB\n");
    for (size_t i = 0; i < 2; i++) {
        struct rlimit before, narrow;
        assert_int_equal(getrlimit(cases[i].resource, &before), 0);
        if (before.rlim_max < 2048 * MIB) skip();
        narrow = (struct rlimit){2048 * MIB, before.rlim_max};
        if (setrlimit(cases[i].resource, &narrow) != 0) skip();
        clt_memory_room r;
        clt_memory_look(&r);
        setrlimit(cases[i].resource, &before);
        assert_int_equal(r.free_bytes, 1024 * MIB);
        assert_string_equal(r.source, cases[i].name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_machine, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_nothing_says, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_group_v2, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_ancestors, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_group_v1, begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_ulimits, begin, fake_root_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
