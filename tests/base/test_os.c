/* Time, memory and cores: plausible numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include "base/os.h"

static void test_time_goes_forward(void **state) {
    (void)state;
    struct timespec pause = {0, 5000000};
    double before = clt_now_ms();
    nanosleep(&pause, NULL);
    double after = clt_now_ms();
    assert_true(after - before >= 4.9);
    assert_true(after - before < 60000);
}

static void test_memory_numbers(void **state) {
    (void)state;
    uint64_t total = clt_memory_total_bytes(), available = clt_memory_available_bytes(), peak = clt_rss_peak_bytes();
    assert_true(total > 1u << 24);
    assert_true(available <= total);
    assert_true(peak > 100000 && peak < total);
    assert_true(clt_disk_free_bytes("/") > 0);
    assert_int_equal(clt_disk_free_bytes("/no/such/folder"), 0);
}

static void test_cores_follow_affinity(void **state) {
    (void)state;
    cpu_set_t before, one;
    assert_true(clt_cores() >= 1);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_true(clt_cores() <= CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(clt_cores(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_goes_forward),
        cmocka_unit_test(test_memory_numbers),
        cmocka_unit_test(test_cores_follow_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
