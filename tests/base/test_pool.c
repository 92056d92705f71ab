/* The thread pool: every task once, nothing of one job leaks into the next, whatever the threads and pauses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
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
    clt_pool_params params = {.threads = 2, .poll = 101};
    assert_int_equal(clt_pool_create_with(&params, &p, &err), CLT_E_USAGE);
    params.poll = -1;
    assert_int_equal(clt_pool_create_with(&params, &p, &err), CLT_E_USAGE);
    clt_pool_free(NULL);
    assert_int_equal(clt_mem_live(), live);
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* However long they look for work at most: once there is none, threads sleep. */
static void test_idle_threads_take_no_time(void **state) {
    (void)state;
    static const int polls[] = {0, CLT_POLL_USUAL, 100};
    for (size_t i = 0; i < sizeof polls / sizeof polls[0]; i++) {
        clt_err err;
        clt_pool *p;
        clt_pool_params params = {.threads = 4, .poll = polls[i]};
        struct timespec settle = {0, 50000000}, pause = {0, 400000000};
        assert_int_equal(clt_pool_create_with(&params, &p, &err), CLT_OK);
        run_and_check(p, 64, 1);
        nanosleep(&settle, NULL);
        double before = cpu_seconds();
        nanosleep(&pause, NULL);
        double spent = cpu_seconds() - before;
        if (spent > 0.1) fail_msg("poll %d: %g s of processor time in 0.4 s of idleness", polls[i], spent);
        run_and_check(p, 64, 1);
        clt_pool_free(p);
    }
}

static void note_thread(void *ctx, int task, int thread) {
    (void)task;
    struct timespec moment = {0, 200000};
    nanosleep(&moment, NULL); /* so that every thread that takes part gets a task */
    atomic_fetch_or((atomic_int *)ctx, 1 << thread);
}

/* Threads beyond the limit take no task, also those that were asleep or idle when it sank. */
static void test_limit(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    assert_int_equal(clt_pool_create(4, &p, &err), CLT_OK);
    for (int i = 0; i < 30; i++) {
        int limit = i % 6; /* 0 and 5 are cut to 1 and 4 */
        atomic_int seen = 0;
        clt_pool_limit(p, limit);
        clt_pool_run(p, note_thread, &seen, 24);
        int most = limit < 1 ? 1 : limit > 4 ? 4 : limit;
        if (atomic_load(&seen) >> most) fail_msg("limit %d: threads %#x", limit, (unsigned)atomic_load(&seen));
        run_and_check(p, 100, i + 1);
    }
    clt_pool_limit(p, 2); /* freed with threads that sit out */
    clt_pool_free(p);
}

typedef struct places { atomic_int wrong; cpu_set_t want[2]; } places;

static void check_place(void *ctx, int task, int thread) {
    (void)task;
    places *at = ctx;
    cpu_set_t here;
    struct timespec moment = {0, 200000};
    nanosleep(&moment, NULL);
    if (sched_getaffinity(0, sizeof here, &here) != 0 || !CPU_EQUAL(&here, &at->want[thread])) atomic_store(&at->wrong, 1);
}

static void test_placement(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    clt_cores_info cores;
    cpu_set_t before, after;
    clt_cores_look(NULL, &cores);
    int first = 0, last = CLT_MAX_CPUS - 1;
    while (!clt_cpus_has(&cores.allowed, first)) first++;
    while (!clt_cpus_has(&cores.allowed, last)) last--;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int strict = 0; strict < 2; strict++) {
        clt_pool_params params = {.threads = 2, .poll = CLT_POLL_USUAL, .strict = strict};
        places at = {0};
        clt_cpus_add(&params.cpus, first);
        clt_cpus_add(&params.cpus, last);
        for (int t = 0; t < 2; t++) {
            CPU_ZERO(&at.want[t]);
            if (!strict || t == 0) CPU_SET((size_t)first, &at.want[t]);
            if (!strict || t == 1) CPU_SET((size_t)last, &at.want[t]);
        }
        assert_int_equal(clt_pool_create_with(&params, &p, &err), CLT_OK);
        assert_null(clt_pool_refusal(p));
        clt_pool_run(p, check_place, &at, 16);
        assert_int_equal(atomic_load(&at.wrong), 0);
        clt_pool_free(p);
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
}

/* What the system refuses is told and leaves a pool that works. */
static void test_refused_placement(void **state) {
    (void)state;
    clt_err err;
    clt_pool *p;
    clt_cores_info cores;
    clt_cores_look(NULL, &cores);
    clt_pool_params params = {.threads = 2, .poll = 0};
    clt_cpus_add(&params.cpus, CLT_MAX_CPUS - 1);
    if (clt_cpus_has(&cores.allowed, CLT_MAX_CPUS - 1)) skip();
    assert_int_equal(clt_pool_create_with(&params, &p, &err), CLT_OK);
    assert_non_null(clt_pool_refusal(p));
    assert_non_null(strstr(clt_pool_refusal(p), "affinity"));
    run_and_check(p, 32, 3);
    clt_pool_free(p);
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
        cmocka_unit_test(test_idle_threads_take_no_time),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_refused_placement),
        cmocka_unit_test(test_running_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
