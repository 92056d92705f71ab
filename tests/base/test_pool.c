/* The thread pool: every task once, nothing of one job leaks into the next, whatever the threads and pauses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include "base/mem.h"
#include "base/pool.h"

enum { MAX_TASKS = 512 };

typedef struct job {
    int n_tasks, n_threads;
    int runs[MAX_TASKS]; /* plain ints: a task that ran twice at once would be a data race */
    atomic_int bad_thread;
    int value;
} job;

static void count_task(void *ctx, int task, int thread) {
    job *j = ctx;
    if (thread < 0 || thread >= j->n_threads) atomic_store(&j->bad_thread, 1);
    if (task >= 0 && task < j->n_tasks) j->runs[task] += j->value;
}

static void run_and_check(clt_pool *p, int n_tasks, int value) {
    job j = {.n_tasks = n_tasks, .n_threads = clt_pool_threads(p), .value = value};
    clt_pool_run(p, count_task, &j, n_tasks);
    for (int i = 0; i < n_tasks; i++)
        if (j.runs[i] != value) fail_msg("task %d of %d: %d instead of %d", i, n_tasks, j.runs[i], value);
    assert_int_equal(atomic_load(&j.bad_thread), 0);
}

static void test_every_task_once(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 4, 8};
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        clt_err err;
        clt_pool *p;
        assert_int_equal(clt_pool_create(threads[t], &p, &err), CLT_OK);
        assert_int_equal(clt_pool_threads(p), threads[t]);
        for (int i = 0; i < 500; i++) run_and_check(p, i * 37 % MAX_TASKS, i + 1);
        clt_pool_run(p, count_task, NULL, 0);
        clt_pool_run(p, count_task, NULL, -5);
        clt_pool_free(p);
    }
}

/* Pauses let the workers pass from spinning to yielding to sleeping before the next job. */
static void test_jobs_after_pauses(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    assert_int_equal(clt_pool_create(3, &p, &err), CLT_OK);
    for (int i = 0; i < 60; i++) {
        struct timespec pause = {0, i * 20000};
        nanosleep(&pause, NULL);
        run_and_check(p, 1 + i % 7, i + 1);
    }
    clt_pool_free(p);
}

static void slow_task(void *ctx, int task, int thread) {
    (void)thread;
    struct timespec pause = {0, 3000000};
    if (task == 1) nanosleep(&pause, NULL);
    ((int *)ctx)[task] = 1;
}

static void test_caller_sleeps_until_the_last_task(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    assert_int_equal(clt_pool_create(2, &p, &err), CLT_OK);
    for (int i = 0; i < 10; i++) {
        int done[2] = {0};
        clt_pool_run(p, slow_task, done, 2);
        assert_int_equal(done[0] + done[1], 2);
    }
    clt_pool_free(p);
}

static void add_to_sum(void *ctx, int task, int thread) {
    (void)thread;
    atomic_fetch_add((atomic_long *)ctx, task);
}

/* Jobs that differ in size back to back: a worker late for one must not take tasks of the next under the old fields. */
static void test_short_jobs_back_to_back(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    assert_int_equal(clt_pool_create(4, &p, &err), CLT_OK);
    for (int i = 0; i < 5000; i++) {
        atomic_long sum = 0;
        int n = 2 + i % 5;
        clt_pool_run(p, add_to_sum, &sum, n);
        if (atomic_load(&sum) != n * (n - 1) / 2) fail_msg("job %d", i);
    }
    clt_pool_free(p);
}

static void test_refusals(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    long live = clt_mem_live();
    assert_int_equal(clt_pool_create(0, &p, &err), CLT_E_USAGE);
    assert_null(p);
    assert_int_equal(clt_pool_create(-1, &p, &err), CLT_E_USAGE);
    assert_int_equal(clt_pool_create(1000000, &p, &err), CLT_E_USAGE);
    for (long n = 1; n <= 2; n++) {
        clt_mem_fail_after(n);
        assert_int_equal(clt_pool_create(2, &p, &err), CLT_E_MEMORY);
        assert_null(p);
        clt_mem_fail_after(0);
    }
    clt_pool_free(NULL);
    assert_int_equal(clt_mem_live(), live);
}

static void test_running_allocates_nothing(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    assert_int_equal(clt_pool_create(2, &p, &err), CLT_OK);
    long count = clt_mem_count();
    for (int i = 0; i < 100; i++) run_and_check(p, 16, 1);
    assert_int_equal(clt_mem_count(), count);
    clt_pool_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_jobs_after_pauses),
        cmocka_unit_test(test_caller_sleeps_until_the_last_task),
        cmocka_unit_test(test_short_jobs_back_to_back),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_running_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
