/* Control groups: the own group and its ancestors, through the mounts that hosts and containers show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/cgroup.h"
#include "base/fake_root.h"

static void collect(void *user, const clt_cgroup *g) {
    char *seen = user;
    strcat(strcat(strcat(strcat(seen, g->folder), "="), g->name), ";");
}

static void expect_v2(const char *want) {
    char seen[2048] = "";
    clt_cgroup_walk_v2(collect, seen);
    assert_string_equal(seen, want);
}

static void expect_v1(const char *controller, const char *want) {
    char seen[2048] = "";
    clt_cgroup_walk_v1(controller, collect, seen);
    assert_string_equal(seen, want);
}

static void test_host_v2(void **state) {
    (void)state;
    expect_v2("");
    fake_root_put("/proc/self/cgroup", "0::/user.slice/run-1.scope\n");
    expect_v2("");
    fake_root_put("/proc/self/mountinfo", "25 1 0:23 / /proc rw - proc proc rw\n"
                  "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    expect_v2("/sys/fs/cgroup/user.slice/run-1.scope=/user.slice/run-1.scope;/sys/fs/cgroup/user.slice=/user.slice;"
              "/sys/fs/cgroup=/;");
    expect_v1("memory", "");
    fake_root_put("/proc/self/cgroup", "0::/\n");
    expect_v2("/sys/fs/cgroup=/;");
}

/* A container that sees the host's names: the mount shows what lies below its own group. */
static void test_container_v1(void **state) {
    (void)state;
    fake_root_put("/proc/self/cgroup", "5:cpuacct,cpu:/docker/ab\n4:memory:/docker/ab/inner\n1:name=memory:/no\n0::/\n");
    fake_root_put("/proc/self/mountinfo",
                  "31 25 0:27 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
                  "33 25 0:29 /docker/ab /sys/fs/cgroup/my\\040memory ro master:9 - cgroup cgroup rw,memory\n");
    expect_v1("memory", "/sys/fs/cgroup/my memory/inner=/inner;/sys/fs/cgroup/my memory=/;");
    expect_v1("cpu", "/sys/fs/cgroup/cpu,cpuacct=/;");
    expect_v1("pids", "");
    expect_v2("");
}

/* What lies outside of the mount is seen through the mount point alone. */
static void test_outside(void **state) {
    (void)state;
    fake_root_put("/proc/self/mountinfo", "33 25 0:29 /docker/ab /m ro - cgroup2 none rw\n");
    fake_root_put("/proc/self/cgroup", "0::/docker/abc\n");
    expect_v2("/m=/;");
    fake_root_put("/proc/self/cgroup", "0::/../other\n");
    expect_v2("/m=/;");
    fake_root_put("/proc/self/mountinfo", "33 25 0:29 /docker/ab /m ro - cgroup2 none rw\n40 25 0:29 / /all ro - cgroup2 none rw\n");
    fake_root_put("/proc/self/cgroup", "0::/docker/abc\n");
    expect_v2("/all/docker/abc=/docker/abc;/all/docker=/docker;/all=/;");
}

static void test_foreign_forms(void **state) {
    (void)state;
    char line[6000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = 0;
    fake_root_put("/proc/self/cgroup", "\nnothing\n0:\n::\n0::/a\n");
    fake_root_put("/proc/self/mountinfo", "\n - \n33 - cgroup2\n33 25 0:29 - cgroup2 none rw\n1 2 3 / - cgroup2\n");
    expect_v2("");
    expect_v1("memory", "");
    fake_root_put("/proc/self/mountinfo", line);
    expect_v2("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host_v2, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_container_v1, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_outside, fake_root_begin, fake_root_end),
        cmocka_unit_test_setup_teardown(test_foreign_forms, fake_root_begin, fake_root_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
