/* A persistent thread pool: a function and a number of tasks in, all tasks done out. Knows nothing of what the tasks do.
 *
 * One 64-bit ticket publishes a job: its number above, the count of tasks that nobody has taken below. A task is taken by
 * a compare-and-swap of the ticket. Its success proves that the job is still unfinished, hence that the job's fields, read
 * just before, were those of this job: the caller writes the next job only after every task of this one has been done.
 *
 * Waiting goes in three stages: spin for a moment (decode steps follow each other closely), yield, sleep on a futex. Where
 * other work competes for the cores, endless spinning would steal the time of the very thread that is waited for. */
#include "base/pool.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"

#define SPIN_MS 0.05
#define YIELD_MS 0.2
enum { MAX_THREADS = 1024, CACHE_LINE = 128 };

typedef struct worker {
    clt_pool *pool;
    pthread_t id;
    int thread;
} worker;

struct clt_pool {
    int n_threads, n_started;
    double spin_ms;                               /* 0 where there are fewer cores than threads */
    worker *workers;                              /* n_threads - 1 */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket; /* job << 32 | tasks not taken */
    _Atomic(clt_task_fn) fn;                      /* the job: atomic because a late worker may read while the next one */
    _Atomic(void *) ctx;                          /* is being written; it then fails to take a task and drops them */
    atomic_int n_tasks;
    _Alignas(CACHE_LINE) _Atomic uint32_t left;   /* tasks not finished; the caller sleeps on it */
    atomic_bool caller_sleeps;
    _Alignas(CACHE_LINE) _Atomic uint32_t signal; /* changes with every job; workers sleep on it */
    atomic_int sleepers;
    atomic_bool stopping;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits without sleeping until *word differs from `from` (is_not) or equals 0. False if it took too long. */
static bool wait_awake(const clt_pool *p, _Atomic uint32_t *word, uint32_t from, bool is_not) {
    double start = clt_now_ms(), waited = 0;
    do {
        for (int i = 0; i < 32; i++) {
            uint32_t now = atomic_load_explicit(word, memory_order_acquire);
            if (is_not ? now != from : now == 0) return true;
            if (waited < p->spin_ms) pause_cpu();
            else sched_yield();
        }
        waited = clt_now_ms() - start;
    } while (waited < p->spin_ms + YIELD_MS);
    return false;
}

/* Takes and runs tasks until the current job has none left to take. */
static void work(clt_pool *p, int thread) {
    uint64_t ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    while ((uint32_t)ticket != 0) {
        clt_task_fn fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&p->ctx, memory_order_relaxed);
        int task = atomic_load_explicit(&p->n_tasks, memory_order_relaxed) - (int)(uint32_t)ticket;
        if (!atomic_compare_exchange_weak_explicit(&p->ticket, &ticket, ticket - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        fn(ctx, task, thread);
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps)) futex_wake(&p->left, 1);
        ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    }
}

static void *worker_main(void *arg) {
    worker *w = arg;
    clt_pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        while (!wait_awake(p, &p->signal, seen, true)) {
            atomic_fetch_add(&p->sleepers, 1);
            futex_wait(&p->signal, seen);
            atomic_fetch_sub(&p->sleepers, 1);
        }
        seen = atomic_load(&p->signal);
        if (atomic_load(&p->stopping)) return NULL;
        work(p, w->thread);
    }
}

static void wake_workers(clt_pool *p, int count) {
    atomic_fetch_add(&p->signal, 1);
    if (atomic_load(&p->sleepers) > 0) futex_wake(&p->signal, count);
}

void clt_pool_run(clt_pool *p, clt_task_fn fn, void *ctx, int n_tasks) {
    if (p->n_threads == 1 || n_tasks <= 1) {
        for (int task = 0; task < n_tasks; task++) fn(ctx, task, 0);
        return;
    }
    uint64_t job = (atomic_load_explicit(&p->ticket, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&p->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&p->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&p->n_tasks, n_tasks, memory_order_relaxed);
    atomic_store_explicit(&p->left, (uint32_t)n_tasks, memory_order_relaxed);
    atomic_store_explicit(&p->ticket, job << 32 | (uint32_t)n_tasks, memory_order_release);
    wake_workers(p, n_tasks - 1);
    work(p, 0);
    if (wait_awake(p, &p->left, 0, false)) return;
    atomic_store(&p->caller_sleeps, true);
    for (uint32_t left; (left = atomic_load(&p->left)) != 0;) futex_wait(&p->left, left);
    atomic_store(&p->caller_sleeps, false);
}

/* Logical CPUs that this process may use. */
static int usable_cpus(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : INT_MAX;
}

static clt_status start_workers(clt_pool *p, clt_err *err) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the caller's business: workers inherit a full mask */
    clt_status status = CLT_OK;
    for (int i = 0; i < p->n_threads - 1; i++) {
        worker *w = &p->workers[i];
        *w = (worker){.pool = p, .thread = i + 1};
        int failed = pthread_create(&w->id, NULL, worker_main, w);
        if (failed) {
            status = clt_fail(err, CLT_E_FAILED, "threads: cannot start thread %d of %d: %s", i + 2, p->n_threads,
                              strerror(failed));
            break;
        }
        p->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return status;
}

clt_status clt_pool_create(int n_threads, clt_pool **out, clt_err *err) {
    *out = NULL;
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return clt_fail(err, CLT_E_USAGE, "threads: %d is not between 1 and %d", n_threads, MAX_THREADS);
    clt_pool *p = clt_pages_alloc(sizeof *p); /* pages, because a block is not aligned to a cache line */
    if (!p) return clt_fail_memory(err, "thread pool", sizeof *p);
    p->n_threads = n_threads;
    p->spin_ms = n_threads <= usable_cpus() ? SPIN_MS : 0;
    p->workers = clt_calloc((size_t)n_threads, sizeof *p->workers);
    clt_status status = p->workers ? start_workers(p, err) : clt_fail_memory(err, "thread pool", sizeof(worker));
    if (status != CLT_OK) clt_pool_free(p);
    else *out = p;
    return status;
}

int clt_pool_threads(const clt_pool *p) {
    return p->n_threads;
}

void clt_pool_free(clt_pool *p) {
    if (!p) return;
    atomic_store(&p->stopping, true);
    wake_workers(p, INT_MAX);
    for (int i = 0; i < p->n_started; i++) pthread_join(p->workers[i].id, NULL);
    clt_free(p->workers);
    clt_pages_free(p, sizeof *p);
}
